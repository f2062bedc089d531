//! A mechanism's parameters, read from a table by what the mechanism declares of them.

use inprofile_core::params::{Bounds, Default, Field, Kind, Value, Values};

use crate::text::problem::Wrong;
use crate::text::section::{Entry, Section};
use crate::text::show;

/// Reads `fields` out of `section`: kinds and bounds checked, defaults filled in, derived defaults left
/// open. Refusing unknown keys is left to the caller, which knows the other keys of the table.
/// `None` if anything was reported.
#[must_use]
pub fn read(section: &Section<'_, '_>, fields: &'static [Field]) -> Option<Values> {
    let given = given(section, fields)?;
    let values = fields.iter().filter_map(|field| {
        let value = match (given.get(field.name), field.default) {
            (Some(value), _) => value.clone(),
            (None, Default::Value(default)) => default(),
            (None, _) => return None,
        };
        Some((field.name, value))
    });
    Some(Values(values.collect()))
}

/// As [`read`], without defaults: what the file says.
#[must_use]
pub fn given(section: &Section<'_, '_>, fields: &'static [Field]) -> Option<Values> {
    let mut values = Vec::with_capacity(fields.len());
    let mut whole = true;
    for field in fields {
        let required = matches!(field.default, Default::Required);
        let entry =
            if required { section.need(field.name, &example(field)) } else { section.get(field.name) };
        match entry.map(|entry| value(&entry, field)) {
            Some(Some(value)) => values.push((field.name, value)),
            Some(None) => whole = false,
            None => whole &= !required,
        }
    }
    whole.then_some(Values(values))
}

/// The default values of `fields`; `None` if one has to be given.
#[must_use]
pub fn defaults(fields: &'static [Field]) -> Option<Values> {
    let mut values = Vec::with_capacity(fields.len());
    for field in fields {
        match field.default {
            Default::Required => return None,
            Default::Value(default) => values.push((field.name, default())),
            Default::Derived => {}
        }
    }
    Some(Values(values))
}

/// The names of `fields`, after those that the table holds beside them.
#[must_use]
pub fn known(others: &[&'static str], fields: &'static [Field]) -> Vec<&'static str> {
    others.iter().copied().chain(fields.iter().map(|f| f.name)).collect()
}

fn value(entry: &Entry<'_, '_>, field: &Field) -> Option<Value> {
    let value = match field.kind {
        Kind::Flag => Value::Flag(entry.flag()?),
        Kind::Count => Value::Count(entry.count_in(0..=u64::MAX)?),
        Kind::Number => Value::Number(entry.number()?),
        Kind::Rate => Value::Rate(entry.rate()?),
        Kind::Duration => Value::Duration(entry.duration()?),
        Kind::Bytes => Value::Bytes(entry.bytes()?),
        Kind::Backlog => Value::Backlog(entry.backlog()?),
        Kind::Choice(words) => Value::Choice(entry.word(words, "choice")?),
        Kind::Group(fields) => {
            let inner = entry.section(&known(&[], fields))?;
            Value::Group(read(&inner, fields)?)
        }
    };
    match base(&value) {
        Some(x) if !field.bounds.allow(x) => entry.wrong(out_of_bounds(field)),
        _ => Some(value),
    }
}

/// The number to which bounds apply, in its base unit.
fn base(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Count(n) => *n as f64,
        Value::Number(x) => *x,
        Value::Rate(r) => r.0 as f64,
        Value::Duration(d) => d.secs(),
        Value::Bytes(b) => b.0 as f64,
        Value::Backlog(b) => b.amount(),
        Value::Flag(_) | Value::Choice(_) | Value::Group(_) => return None,
    })
}

fn out_of_bounds(field: &Field) -> Wrong {
    let range = bounds(field).unwrap_or_default();
    Wrong::new(format!("must be {range}"), format!("write {} = {}", field.name, example(field)))
}

/// The values a parameter may have, in words: `above 0 bit/s`, `from 0 to 1`, `soft or hard`; `None` where any will do.
#[must_use]
pub fn bounds(field: &Field) -> Option<String> {
    let unit = match field.kind {
        Kind::Choice(words) => return Some(words.join(" or ")),
        Kind::Rate => " bit/s",
        Kind::Duration => " s",
        Kind::Bytes => " B",
        _ => "",
    };
    let Bounds { min, max, open_min } = field.bounds;
    Some(match (min.is_finite(), max.is_finite()) {
        (false, false) => return None,
        (true, false) if open_min => format!("above {min}{unit}"),
        (true, false) => format!("{min}{unit} or more"),
        (false, true) => format!("at most {max}{unit}"),
        (true, true) if open_min => format!("above {min} and at most {max}{unit}"),
        (true, true) => format!("from {min} to {max}{unit}"),
    })
}

/// How the parameter is written: its default, or else a value within its bounds.
#[must_use]
pub fn example(field: &Field) -> String {
    if let Default::Value(default) = field.default {
        return show::toml(&default());
    }
    match field.kind {
        Kind::Flag => "true".into(),
        Kind::Count => number(field.bounds, &[10.0, 1.0]),
        Kind::Number => match field.name {
            // A Pareto distribution has a mean from 1 on.
            "shape" => "1.5".into(),
            "w_q" => "0.002".into(),
            // RFC 9332, Appendix A.
            "alpha" => "0.16".into(),
            "beta" => "3.2".into(),
            _ => number(field.bounds, &[0.1, 1.0, 10.0]),
        },
        Kind::Rate => "\"1.2 Mbit/s\"".into(),
        Kind::Duration => match field.name {
            "ce_threshold" => "\"1 ms\"".into(),
            "t_update" => "\"16 ms\"".into(),
            "perturb" => "\"10 s\"".into(),
            _ => "\"100 ms\"".into(),
        },
        Kind::Bytes => match field.name {
            "flow_quantum" | "mtu" => "\"1500 B\"".into(),
            "memory_limit" => "\"4 MB\"".into(),
            "header" => "\"40 B\"".into(),
            _ => "\"1000 B\"".into(),
        },
        Kind::Backlog => match field.name {
            "quantum" => "\"1500 B\"".into(),
            "size" => "\"1 MB\"".into(),
            "initial_window" => "\"10 packets\"".into(),
            // The lower of a pair: about a third of the upper (Floyd's advice for RED).
            "t_rd" => "\"15 packets\"".into(),
            name if name.starts_with("min_") => "\"15 packets\"".into(),
            _ => "\"50 packets\"".into(),
        },
        Kind::Choice(words) => format!("\"{}\"", words.first().copied().unwrap_or("")),
        Kind::Group(fields) => {
            let needed = fields.iter().filter(|f| matches!(f.default, Default::Required));
            let inner: Vec<String> = needed.map(|f| format!("{} = {}", f.name, example(f))).collect();
            if inner.is_empty() { "{}".into() } else { format!("{{ {} }}", inner.join(", ")) }
        }
    }
}

/// The first of these that the bounds allow, or one of their ends.
fn number(bounds: Bounds, candidates: &[f64]) -> String {
    let mut candidates = candidates.iter().copied().chain([bounds.max, bounds.min]);
    candidates.find(|x| bounds.allow(*x)).map_or_else(|| "1".into(), |x| x.to_string())
}

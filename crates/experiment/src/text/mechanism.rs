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

pub mod named {
    //! Mechanisms by name: an entry of the registry, what its parameters were set to, and whether they fit their place.

    use inprofile_core::params::{Check, Context, Fault, Field, Make, Value, Values, Warning};
    use inprofile_core::registry;
    use inprofile_core::units::{Backlog, Bytes, Duration, Rate};
    use serde_json::{Value as Json, json};

    use crate::text::mechanism;
    use crate::text::nearest::suggest;
    use crate::text::problem::Wrong;
    use crate::text::section::{Entry, Section};
    use crate::text::show;

    /// The shortest interval at which a mechanism may repeat something: a run has to come to an end.
    const SHORTEST_INTERVAL: Duration = Duration::from_micros(1);
    /// The longest a full queue may take to drain, in seconds, so that times fit into 64 bits.
    const SLOWEST_DRAIN: f64 = 1e6;
    /// The most packets or bytes a queue may be allowed to hold.
    const LARGEST_LIMIT: f64 = 1e9;

    /// A mechanism and what it was given.
    pub struct Mechanism<M: 'static> {
        /// Its name in the registry.
        pub name: &'static str,
        /// The operator's settings, defaults filled in.
        pub values: Values,
        /// All its parameters.
        pub fields: &'static [Field],
        /// Makes one.
        pub build: Make<M>,
    }

    impl<M> std::fmt::Debug for Mechanism<M> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct(self.name).field("values", &self.values).finish()
        }
    }

    // Not derived: that would require the mechanism itself to be Clone.
    impl<M> Clone for Mechanism<M> {
        fn clone(&self) -> Mechanism<M> {
            Mechanism { name: self.name, values: self.values.clone(), fields: self.fields, build: self.build }
        }
    }

    impl<M> Mechanism<M> {
        /// Its name under `key`, and its parameters beside it; see [`show::values`].
        #[must_use]
        pub fn show(&self, key: &str, packet: Bytes, rate: Option<Rate>) -> Json {
            let mut out = show::values(&self.values, packet, rate);
            // A default that follows from the mechanism's place is described in words.
            for field in self.fields.iter().filter(|f| self.values.get(f.name).is_none()) {
                out[field.name] = json!(show::derived(field));
            }
            out[key] = json!(self.name);
            out
        }
    }

    /// A mechanism that was read, and the table it was read from.
    pub struct ParsedMechanism<'d, 'r, M: 'static> {
        /// The mechanism.
        pub mechanism: Mechanism<M>,
        check: Check,
        section: Section<'d, 'r>,
    }

    impl<M> std::fmt::Debug for ParsedMechanism<'_, '_, M> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.mechanism.fmt(f)
        }
    }

    impl<M> ParsedMechanism<'_, '_, M> {
        /// The warnings of its check, which are not reported here.
        ///
        /// # Errors
        /// Why it cannot be used there.
        pub fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
            (self.check)(&self.mechanism.values, context)
        }

        /// Warns of what is a fault for some only.
        pub fn warn_of(&self, fault: Fault, whom: &str) {
            let problem = format!("for {whom}: {}", fault.problem);
            self.section.report().warning(
                &self.section.locate(fault.field),
                problem,
                format!("write {}", fault.remedy),
            );
        }

        /// Whether the mechanism can be used at this place; if not, the reason is reported. Its warnings are too, if `warn`.
        #[must_use]
        pub fn fits(&self, context: &Context, warn: bool) -> bool {
            let report = self.section.report();
            match self.check(context) {
                Ok(warnings) => {
                    for w in warnings.iter().filter(|_| warn) {
                        report.warning(&self.section.locate(w.field), w.text.as_str(), "");
                    }
                    true
                }
                Err(fault) => {
                    let remedy = format!("write {}", fault.remedy);
                    report.error(&self.section.locate(fault.field), fault.problem, remedy);
                    false
                }
            }
        }
    }

    /// The table that names one of `entries` under `key`.
    #[must_use]
    pub fn open<'d, 'r, M>(
        entry: &Entry<'d, 'r>,
        key: &str,
        entries: &[registry::Entry<M>],
    ) -> Option<Section<'d, 'r>> {
        entry.open(&format!("{{ {key} = \"{}\", … }}", entries.first().map_or("", |e| e.name)))
    }

    /// Reads the mechanism that `key` names out of `entries`; `others` are keys that are no parameters.
    /// `None` if anything was reported.
    #[must_use]
    pub fn read<'d, 'r, M>(
        section: &Section<'d, 'r>,
        (key, what): (&'static str, &str),
        others: &[&'static str],
        entries: &[registry::Entry<M>],
    ) -> Option<ParsedMechanism<'d, 'r, M>> {
        let first = entries.first().map_or("", |e| e.name);
        let word = section.need(key, &format!("\"{first}\""))?;
        let name = word.text(&format!("\"{first}\""))?;
        let Some(known) = entries.iter().find(|e| e.name == name) else {
            let names: Vec<&str> = entries.iter().map(|e| e.name).collect();
            return word.wrong(Wrong::new(format!("there is no such {what}"), suggest(name, &names)));
        };
        let mut keys = vec![key];
        keys.extend(others);
        section.refuse_unknown(&mechanism::known(&keys, known.fields));
        let values = mechanism::read(section, known.fields)?;
        reject_tiny_intervals(section, "", &values)?;
        let mechanism = Mechanism { name: known.name, values, fields: known.fields, build: known.build };
        Some(ParsedMechanism { mechanism, check: known.check, section: section.clone() })
    }

    /// Refuses intervals so short that a run would do nothing but repeat them.
    fn reject_tiny_intervals(section: &Section<'_, '_>, prefix: &str, values: &Values) -> Option<()> {
        for (name, value) in &values.0 {
            match value {
                Value::Duration(d) if *d > Duration::ZERO && *d < SHORTEST_INTERVAL => {
                    let place = section.locate(&format!("{prefix}{name}"));
                    section.report().error(&place, "is shorter than 1 us", "write \"1 us\" or more");
                    return None;
                }
                Value::Group(inner) => reject_tiny_intervals(section, &format!("{prefix}{name}."), inner)?,
                _ => {}
            }
        }
        Some(())
    }

    /// A queue's limit: whole packets or bytes, room for at least one packet, and drained in finite time.
    /// `None` also where `rate`, at which it leaves, or the size of a full `packet` is not known.
    #[must_use]
    pub fn limit(entry: &Entry<'_, '_>, rate: Option<Rate>, packet: Option<Bytes>) -> Option<Backlog> {
        let limit = entry.backlog()?;
        match limit {
            Backlog::Packets(n) if n < 1.0 => {
                return entry.wrong(Wrong::new(
                    "a queue that holds no packet drops every packet that has to wait",
                    "write at least \"1 packets\"",
                ));
            }
            Backlog::Packets(n) if n.fract() != 0.0 => {
                return entry
                    .wrong(Wrong::new("a limit is a whole number of packets", "write \"100 packets\""));
            }
            _ if limit.amount() > LARGEST_LIMIT => {
                return entry
                    .wrong(Wrong::new("more than a queue can hold", "write at most \"1000000000 packets\""));
            }
            _ => {}
        }
        let packet = packet?;
        if let Backlog::Bytes(b) = limit
            && b < packet.0 as f64
        {
            return entry.wrong(Wrong::new(
                format!("less than a full packet of {packet}: every full packet that has to wait is dropped"),
                format!("write at least \"{packet}\""),
            ));
        }
        let rate = rate?;
        let drain = limit.bytes(packet) * 8.0 / rate.0 as f64;
        if drain > SLOWEST_DRAIN {
            return entry.wrong(Wrong::new(
                format!("a full queue would take {drain:.0} s to drain at {rate}"),
                format!("write a limit that drains within {SLOWEST_DRAIN:.0} s"),
            ));
        }
        Some(limit)
    }
}

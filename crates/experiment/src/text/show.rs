//! Typed values written out: as an operator would write them, and as JSON.

use inprofile_core::params::{Field, Value, Values};
use inprofile_core::units::{Backlog, Bytes, Rate};
use serde_json::{Map, Value as Json, json};

/// As in an experiment file: `"1.2 Mbit/s"`, `0.02`, `{ min_th = "45 packets" }`.
#[must_use]
pub fn toml(value: &Value) -> String {
    match value {
        Value::Flag(b) => b.to_string(),
        Value::Count(n) => n.to_string(),
        Value::Number(x) => x.to_string(),
        Value::Rate(r) => format!("\"{r}\""),
        Value::Duration(d) => format!("\"{d}\""),
        Value::Bytes(b) => format!("\"{b}\""),
        Value::Backlog(b) => format!("\"{b}\""),
        Value::Choice(word) => format!("\"{word}\""),
        Value::Group(values) => {
            let inner: Vec<String> = values.0.iter().map(|(n, v)| format!("{n} = {}", toml(v))).collect();
            format!("{{ {} }}", inner.join(", "))
        }
    }
}

/// As JSON a person reads: quantities are texts with units; numbers and words are themselves.
#[must_use]
pub fn json(value: &Value) -> Json {
    match value {
        Value::Flag(b) => json!(b),
        Value::Count(n) => json!(n),
        Value::Number(x) => json!(x),
        Value::Rate(r) => json!(r.to_string()),
        Value::Duration(d) => json!(d.to_string()),
        Value::Bytes(b) => json!(b.to_string()),
        Value::Backlog(b) => json!(b.to_string()),
        Value::Choice(word) => json!(word),
        Value::Group(values) => all(values, json),
    }
}

/// As JSON in base units: bit/s, ps, B; an amount of queue says which of its two units it is in.
/// Equal values, however they were written, give equal JSON.
#[must_use]
pub fn base(value: &Value) -> Json {
    match value {
        Value::Rate(r) => json!(r.0),
        Value::Duration(d) => json!(d.0),
        Value::Bytes(b) => json!(b.0),
        Value::Backlog(b) => backlog(*b),
        Value::Group(values) => all(values, base),
        plain => json(plain),
    }
}

/// `{"packets": 45.0}` or `{"bytes": 46800.0}`.
#[must_use]
pub fn backlog(amount: Backlog) -> Json {
    match amount {
        Backlog::Packets(n) => json!({ "packets": n }),
        Backlog::Bytes(b) => json!({ "bytes": b }),
    }
}

/// Values as an object, each written by `write`.
#[must_use]
pub fn all(values: &Values, write: impl Fn(&Value) -> Json + Copy) -> Json {
    Json::Object(values.0.iter().map(|(n, v)| ((*n).to_owned(), write(v))).collect::<Map<_, _>>())
}

/// The source of a parameter's default, as its documentation says after `Default:`.
#[must_use]
pub fn derived(field: &Field) -> String {
    let doc = field.summary();
    match doc.split_once("Default: ") {
        Some((_, rest)) => rest.trim_end_matches('.').to_owned(),
        None => "derived".to_owned(),
    }
}

/// Values as JSON; amounts of queue as [`amount`] has them.
#[must_use]
pub fn values(all: &Values, packet: Bytes, rate: Option<Rate>) -> Json {
    let write = |value: &Value| match value {
        Value::Backlog(b) => amount(*b, packet, rate),
        Value::Group(inner) => values(inner, packet, rate),
        plain => json(plain),
    };
    Json::Object(all.0.iter().map(|(n, v)| ((*n).to_owned(), write(v))).collect::<Map<_, _>>())
}

/// An amount of queue as it was written, in full packets, in bytes, and the time it takes at the link's rate.
#[must_use]
pub fn amount(b: Backlog, packet: Bytes, rate: Option<Rate>) -> Json {
    let bytes = b.bytes(packet);
    let mut out = json!({ "is": b.to_string(), "packets": b.packets(packet), "bytes": bytes });
    if let Some(rate) = rate {
        out["ms"] = json!(bytes * 8e3 / rate.0 as f64);
    }
    out
}

/// JSON in one line with every object's keys in alphabetical order, whatever order they were put in.
#[must_use]
pub fn canonical(value: &Json) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Json, out: &mut String) {
    match value {
        Json::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Json::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        Json::Array(list) => {
            out.push('[');
            for (i, item) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

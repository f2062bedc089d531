//! JSON Schema (draft 2020-12) and plain descriptions from the declarations that the parser uses.

use inprofile_core::params::{Bounds, Default, Field, Kind};
use serde_json::{Map, Value as Json, json};

use crate::text::quantity::Unit;
use crate::text::show;

/// A decimal number without separators, as a regular expression.
const NUMBER: &str = r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?";

/// The schema of a text that holds a quantity.
#[must_use]
pub fn quantity(unit: Unit, doc: &str) -> Json {
    let units = match unit {
        Unit::Rate => "[kMG]?bit/s",
        Unit::Time | Unit::Moment => "([mnpuµμ]?s)",
        Unit::Size => "([kM]?B|[KM]iB)",
        Unit::Backlog => "(packets?|[kM]?B|[KM]iB)",
    };
    json!({
        "type": "string",
        "pattern": format!("^\\s*{NUMBER}\\s*{units}\\s*$"),
        "examples": [unit.example()],
        "description": doc,
    })
}

/// The schema of one parameter.
#[must_use]
pub fn field(field: &Field) -> Json {
    let doc = field.summary();
    let mut schema = match field.kind {
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Count => bounded("integer", field.bounds),
        Kind::Number => bounded("number", field.bounds),
        Kind::Rate => quantity(Unit::Rate, &doc),
        Kind::Duration => quantity(Unit::Time, &doc),
        Kind::Bytes => quantity(Unit::Size, &doc),
        Kind::Backlog => quantity(Unit::Backlog, &doc),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Group(fields) => object(&Map::new(), &[], fields),
    };
    schema["description"] = json!(doc);
    if let Default::Value(default) = field.default {
        schema["default"] = show::json(&default());
    }
    schema
}

/// The schema of a table with `others` beside a mechanism's own `fields`; no further keys.
#[must_use]
pub fn object(others: &Map<String, Json>, needed: &[&str], fields: &[Field]) -> Json {
    let mut properties = others.clone();
    let mut required: Vec<&str> = needed.to_vec();
    for f in fields {
        properties.insert(f.name.to_owned(), field(f));
        if matches!(f.default, Default::Required) {
            required.push(f.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn bounded(kind: &str, bounds: Bounds) -> Json {
    let mut schema = json!({ "type": kind });
    if bounds.min.is_finite() {
        schema[if bounds.open_min { "exclusiveMinimum" } else { "minimum" }] = json!(bounds.min);
    }
    if bounds.max.is_finite() {
        schema["maximum"] = json!(bounds.max);
    }
    schema
}

/// A parameter's type, in a word.
#[must_use]
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Flag => "flag",
        Kind::Count => "count",
        Kind::Number => "number",
        Kind::Rate => "rate",
        Kind::Duration => "duration",
        Kind::Bytes => "bytes",
        Kind::Backlog => "backlog",
        Kind::Choice(_) => "choice",
        Kind::Group(_) => "table",
    }
}

/// The units it may be given in, if it has any.
#[must_use]
pub fn units(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Rate => Some(Unit::Rate.choices()),
        Kind::Duration => Some(Unit::Time.choices()),
        Kind::Bytes => Some(Unit::Size.choices()),
        Kind::Backlog => Some(Unit::Backlog.choices()),
        Kind::Flag | Kind::Count | Kind::Number | Kind::Choice(_) | Kind::Group(_) => None,
    }
}

//! Every mechanism there is, with what an operator sets of each.

use crate::text::{mechanism, schema, show};
use inprofile_core::params::{Default, Field, Kind};
use inprofile_core::registry::Registry;
use serde_json::{Value as Json, json};

/// A list of mechanisms: `name`, `kind` (`marker`, `aqm`, or `scheduler`, whose parameters are each class's),
/// `summary`, `source` and `parameters`. A parameter has `name` (that of a nested one with its table: `in.min_th`),
/// `kind`, `unit`, `bounds`, `default` (as it would be written, or in words what it follows from; null where it must be
/// given), and `doc`.
#[must_use]
pub fn catalogue(registry: &Registry) -> Json {
    let markers = registry.markers.iter().map(|e| entry("marker", e.name, e.summary, e.source, e.fields));
    let aqms = registry.aqms.iter().map(|e| entry("aqm", e.name, e.summary, e.source, e.fields));
    let schedulers =
        registry.schedulers.iter().map(|e| entry("scheduler", e.name, e.summary, e.source, e.fields));
    markers.chain(aqms).chain(schedulers).collect()
}

fn entry(kind: &str, name: &str, summary: &str, source: &str, fields: &[Field]) -> Json {
    let mut parameters = Vec::new();
    for field in fields {
        parameter("", field, &mut parameters);
    }
    json!({ "name": name, "kind": kind, "summary": summary, "source": source, "parameters": parameters })
}

fn parameter(prefix: &str, field: &Field, out: &mut Vec<Json>) {
    let name = format!("{prefix}{}", field.name);
    if let Kind::Group(inner) = field.kind {
        for f in inner {
            parameter(&format!("{name}."), f, out);
        }
        return;
    }
    out.push(json!({
        "name": name,
        "kind": schema::kind(field.kind),
        "unit": schema::units(field.kind),
        "bounds": mechanism::bounds(field),
        "default": match field.default {
            Default::Required => None,
            Default::Value(default) => Some(show::toml(&default())),
            Default::Derived => Some(show::derived(field)),
        },
        "doc": field.summary(),
    }));
}

//! The changes that a new configuration makes: single values by their path, customers and classes by their name.

use serde_json::{Map, Value as Json};

/// Lines: `+` is new, `-` goes, `~` has another value; the old one first. None: nothing changes.
#[must_use]
pub fn between(old: &Json, new: &Json) -> Vec<String> {
    let mut lines = Vec::new();
    compare("", old, new, &mut lines);
    lines
}

fn compare(path: &str, old: &Json, new: &Json, lines: &mut Vec<String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (old, new) {
        (old, new) if old == new => {}
        // A quantity is shown in several units: what the file says is what changes.
        (Json::Object(a), Json::Object(b)) if a.contains_key("is") && b.contains_key("is") => {
            lines.push(format!("~ {path}: {} → {}", short(&a["is"]), short(&b["is"])));
        }
        (Json::Object(a), Json::Object(b)) => {
            for (key, value) in a {
                compare(&below(key), value, b.get(key).unwrap_or(&Json::Null), lines);
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                compare(&below(key), &Json::Null, value, lines);
            }
        }
        (Json::Array(a), Json::Array(b)) if a.iter().chain(b).all(|item| name(item).is_some()) => {
            named(path, a, b, lines);
        }
        (Json::Null, new) => lines.push(format!("+ {path}: {}", short(new))),
        (old, Json::Null) => lines.push(format!("- {path}: {}", short(old))),
        (old, new) => lines.push(format!("~ {path}: {} → {}", short(old), short(new))),
    }
}

/// Lists of things that have names: ten thousand customers are compared in one go.
fn named(path: &str, old: &[Json], new: &[Json], lines: &mut Vec<String>) {
    let of = |list| -> std::collections::BTreeMap<&str, &Json> {
        let all: &[Json] = list;
        all.iter().filter_map(|item| Some((name(item)?, item))).collect()
    };
    let (before, after) = (of(old), of(new));
    for item in old {
        let Some(name) = name(item) else { continue };
        match after.get(name) {
            Some(new) => compare(&format!("{path}.{name}"), item, new, lines),
            None => lines.push(format!("- {path}.{name}: {}", short(item))),
        }
    }
    for item in new {
        if let Some(name) = name(item).filter(|name| !before.contains_key(name)) {
            lines.push(format!("+ {path}.{name}: {}", short(item)));
        }
    }
    let order = |list: &[Json], other: &std::collections::BTreeMap<&str, &Json>| -> Vec<String> {
        list.iter().filter_map(name).filter(|n| other.contains_key(n)).map(str::to_owned).collect()
    };
    if order(old, &after) != order(new, &before) {
        lines.push(format!("~ {path}: their order"));
    }
}

fn name(item: &Json) -> Option<&str> {
    item.get("name").and_then(Json::as_str)
}

/// A value on one line.
pub(crate) fn short_line(value: &Json) -> String {
    if value.is_null() { String::new() } else { short(value) }
}

/// A value on one line: a thing by what it is made of, without what it doesn't have.
fn short(value: &Json) -> String {
    match value {
        Json::String(s) => s.clone(),
        Json::Object(map) if map.contains_key("is") => short(&map["is"]),
        Json::Object(map) => {
            let said = |(key, value): (&String, &Json)| match value {
                Json::Null => None,
                Json::Array(list) if list.is_empty() => None,
                _ if key == "name" || key == "kind" => None,
                value => Some(format!("{key} = {}", short(value))),
            };
            let rest = map_of(map, said).join(", ");
            map.get("kind").and_then(Json::as_str).map_or_else(|| rest.clone(), |kind| of(kind, &rest))
        }
        Json::Array(list) => {
            let one = |item| name(item).map_or_else(|| short(item), |name| of(name, &short(item)));
            list.iter().map(one).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// A thing of this kind or name, and what it is made of.
fn of(what: &str, rest: &str) -> String {
    if rest.is_empty() { what.to_owned() } else { format!("{what} ({rest})") }
}

fn map_of(map: &Map<String, Json>, each: impl Fn((&String, &Json)) -> Option<String>) -> Vec<String> {
    map.iter().filter_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The kind of a mechanism before its settings, and each service by its name.
    #[test]
    fn a_thing_is_told_by_its_kind_or_name() {
        let marker = json!({ "depth": { "is": "30 kB", "bytes": 30000 }, "kind": "srtcm", "rate": null });
        assert_eq!(short(&marker), "srtcm (depth = 30 kB)");
        let services = json!([{ "name": "voice", "rate": "1 Mbit/s" }, { "name": "web" }]);
        assert_eq!(short(&services), "voice (rate = 1 Mbit/s) web");
    }

    #[test]
    fn what_changes_is_told_by_path_and_name() {
        let old = json!({
            "fail": "open",
            "upstream": { "rate": "10 Mbit/s", "customers": [
                { "name": "alice", "contract": "4 Mbit/s", "marker": { "kind": "srtcm", "depth": { "is": "30 kB", "bytes": 30000 } } },
                { "name": "bob", "contract": null, "prefix": ["10.0.2.0/24"] },
                { "name": "carol" }] },
            "downstream": null,
        });
        assert_eq!(between(&old, &old), Vec::<String>::new());
        let new = json!({
            "fail": "open",
            "upstream": { "rate": "12 Mbit/s", "customers": [
                { "name": "carol" },
                { "name": "alice", "contract": "4 Mbit/s", "marker": { "kind": "srtcm", "depth": { "is": "40 kB", "bytes": 40000 } } },
                { "name": "dave", "prefix": ["10.0.4.0/24", "2001:db8::/32"], "contract": null }] },
            "downstream": { "rate": "5 Mbit/s" },
        });
        assert_eq!(
            between(&old, &new),
            [
                "+ downstream: rate = 5 Mbit/s",
                "~ upstream.customers.alice.marker.depth: 30 kB → 40 kB",
                "- upstream.customers.bob: prefix = 10.0.2.0/24",
                "+ upstream.customers.dave: prefix = 10.0.4.0/24 2001:db8::/32",
                "~ upstream.customers: their order",
                "~ upstream.rate: 10 Mbit/s → 12 Mbit/s",
            ]
        );
    }
}

//! `--set KEY=VALUE`: values from the command line put into the tree before it is read.
//!
//! A key is names joined by points. In an array of tables a name is that of the table (its `name`
//! or `node`) or its number from 0. The value is read as a TOML value, else taken as a string, so that `3 packets` needs no
//! quotes of its own on the command line.

use toml::de::DeValue;

use crate::text::nearest::suggest;
use crate::text::problem::Wrong;
use crate::text::quantity::clip;
use crate::text::tree::{Item, Node, Origin, Table, node};

/// Puts one override in its place; `source` is its number among the document's.
///
/// # Errors
/// A key that names no place.
pub(crate) fn put(root: &mut Table, key: &str, value: &str, source: u32) -> Result<(), Wrong> {
    let node = match DeValue::parse(value) {
        Ok(parsed) => node(parsed.get_ref(), parsed.span(), source),
        Err(_) => {
            let origin = Origin { source, start: 0, end: value.len() as u32 };
            Node { item: Item::Text(value.to_owned()), origin }
        }
    };
    let parts: Vec<&str> = key.split('.').map(str::trim).collect();
    if parts.iter().any(|p| p.is_empty()) {
        Err(Wrong::new("the key is empty or has an empty part", EXAMPLE))
    } else if parts.len() > DEEPEST {
        Err(Wrong::new("no key has so many parts", EXAMPLE))
    } else {
        place(root, &parts, node)
    }
}

/// More parts than any key of an experiment has.
const DEEPEST: usize = 16;

const EXAMPLE: &str = "write a key such as links.bottleneck.queue.limit";

/// Walks down `parts` from `table` and puts `value` at the end; missing tables are made on the way.
fn place(table: &mut Table, parts: &[&str], value: Node) -> Result<(), Wrong> {
    let [key, rest @ ..] = parts else {
        return Err(Wrong::new("the key names a table", EXAMPLE));
    };
    if rest.is_empty() {
        match table.get_mut(key) {
            Some(old) => *old = value,
            None => table.0.push(((*key).to_owned(), value.origin, value)),
        }
        return Ok(());
    }
    if table.get(key).is_none() {
        let empty = Node { item: Item::Table(Table::default()), origin: value.origin };
        table.0.push(((*key).to_owned(), value.origin, empty));
    }
    match table.get_mut(key) {
        Some(Node { item: Item::Table(inner), .. }) => place(inner, rest, value),
        Some(Node { item: Item::List(list), .. }) => within(list, key, rest, value),
        Some(Node { item, .. }) => {
            Err(Wrong::new(format!("\"{key}\" is {}; it has no keys", item.noun()), EXAMPLE))
        }
        None => Err(Wrong::new("the key does not lead to a value", EXAMPLE)),
    }
}

/// The element of a list with this name, or else with this number.
pub(crate) fn named(list: &[Node], which: &str) -> Option<usize> {
    let by_name = list.iter().position(|n| matches!(&n.item, Item::Table(t) if t.own_name() == Some(which)));
    by_name.or_else(|| which.parse().ok().filter(|i: &usize| *i < list.len()))
}

/// Finds the element of `list` that the first of `parts` names, and continues there with the others.
fn within(list: &mut [Node], list_key: &str, parts: &[&str], value: Node) -> Result<(), Wrong> {
    let [which, rest @ ..] = parts else {
        return Err(Wrong::new("the key names a list", EXAMPLE));
    };
    let Some(index) = named(list, which) else {
        let names: Vec<&str> = list
            .iter()
            .filter_map(|n| if let Item::Table(t) = &n.item { t.own_name() } else { None })
            .take(20)
            .collect();
        return Err(Wrong::new(
            format!("nothing in \"{list_key}\" is named \"{}\"", clip(which)),
            suggest(which, &names),
        ));
    };
    match (&mut list[index].item, rest.is_empty()) {
        (_, true) => {
            list[index] = value;
            Ok(())
        }
        (Item::Table(inner), false) => place(inner, rest, value),
        (other, false) => {
            Err(Wrong::new(format!("\"{list_key}.{which}\" is {}; it has no keys", other.noun()), EXAMPLE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Document, Problem};

    const FILE: &str = "a = 1\n[[links]]\nname = \"x\"\nrate = \"1 Mbit/s\"\n[[links]]\nname = \"y\"\n";

    fn with(set: &[(&str, &str)]) -> Result<Document, Vec<Problem>> {
        let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Document::parse(FILE, "f.toml", &set)
    }

    fn text<'d>(document: &'d Document, path: &[&str]) -> &'d Item {
        let mut table = document.root();
        for (i, part) in path.iter().enumerate() {
            let node = table.get(part).unwrap();
            match &node.item {
                Item::Table(t) => table = t,
                Item::List(l) => {
                    let index: usize = path[i + 1].parse().unwrap();
                    let Item::Table(t) = &l[index].item else { panic!() };
                    return &t.get(path[i + 2]).unwrap().item;
                }
                other => return other,
            }
        }
        panic!("a table")
    }

    #[test]
    fn tables_in_lists_are_addressed_by_name_or_number() {
        let d = with(&[("links.y.rate", "2 Mbit/s"), ("links.0.rate", "\"3 Mbit/s\""), ("tcp.window", "7")])
            .unwrap();
        assert_eq!(*text(&d, &["links", "1", "rate"]), Item::Text("2 Mbit/s".into()));
        assert_eq!(*text(&d, &["links", "0", "rate"]), Item::Text("3 Mbit/s".into()));
        assert_eq!(*text(&d, &["tcp", "window"]), Item::Number("7".into(), true));
    }

    #[test]
    fn a_key_of_many_parts_is_refused_however_many() {
        let key = vec!["a"; 1_000_000].join(".");
        assert!(with(&[(&key, "1")]).unwrap_err()[0].problem.contains("so many parts"));
    }

    #[test]
    fn keys_that_lead_nowhere_are_all_refused() {
        let problems = with(&[("links.z.rate", "1"), ("a.b", "1"), ("", "1"), ("x..y", "1")]).unwrap_err();
        assert_eq!(problems.len(), 4);
        assert_eq!(problems[0].file, "--set links.z.rate=1");
        assert!(problems[0].remedy.contains("x, y"), "{}", problems[0].remedy);
        assert!(problems[1].problem.contains("a number; it has no keys"));
    }
}

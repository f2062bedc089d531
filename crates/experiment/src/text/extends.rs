//! `extends = "base.toml"`: an experiment that says only what differs from another.
//!
//! Tables merge key by key, entries of `[[links]]` and its like by what names them, and everything else replaces what the base
//! has. A table that says what kind of thing it is (`aqm`, `kind`, `scheduler`) merges with one of the same kind only: parameters
//! of one mechanism say nothing about another.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::text::document::Document;
use crate::text::problem::{Problem, Wrong};
use crate::text::source::utf8;
use crate::text::tree::{Item, Node, Table};

/// The key that names the base.
pub const KEY: &str = "extends";

/// More files than any chain of experiments has.
const DEEPEST: usize = 16;

/// The keys that say what kind of thing a table is.
const KINDS: [&str; 3] = ["aqm", "kind", "scheduler"];

/// A file that an experiment extends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// Its name in messages: beside the file that extends it.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// The files that the text of `file` extends: its base, that one's base, and so on. `read` reads them.
///
/// Of a text that is no TOML there are none: [`Document::parse`] says what is wrong with it.
///
/// # Errors
/// A base that is not named by a string, is missing, cannot be read, is no TOML or extends itself, at the place that names it.
pub fn bases(
    text: &str,
    file: &str,
    read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<Vec<Base>, Vec<Problem>> {
    let mut found: Vec<Base> = Vec::new();
    let mut seen = vec![plain(Path::new(file))];
    loop {
        let (text, file) = found.last().map_or((text, file), |b| (b.text.as_str(), b.file.as_str()));
        // Most experiments extend nothing, and are not parsed twice.
        if !text.contains(KEY) {
            return Ok(found);
        }
        let document = match Document::parse(text, file, &[]) {
            Ok(document) => document,
            Err(_) if found.is_empty() => return Ok(found),
            Err(problems) => return Err(problems),
        };
        let Some(node) = document.root().get(KEY) else { return Ok(found) };
        let wrong =
            |wrong: Wrong| vec![document.problem(KEY, node.origin, true, wrong.problem, wrong.remedy)];
        let path = beside(file, node).map_err(wrong)?;
        if seen.contains(&plain(&path)) {
            let problem = format!("{} extends itself by this", path.display());
            return Err(wrong(Wrong::new(problem, "name a file that does not lead back here")));
        }
        if found.len() == DEEPEST {
            let problem = format!("more than {DEEPEST} files extend one another");
            return Err(wrong(Wrong::new(problem, "write some of them as one")));
        }
        let name = path.display().to_string();
        let bytes = read(&path).map_err(|error| wrong(unread(&name, file, &error)))?;
        let text = utf8(&bytes, &name)?.to_owned();
        seen.push(plain(&path));
        found.push(Base { file: name, text });
    }
}

/// The path that `extends` names in `file`.
fn beside(file: &str, node: &Node) -> Result<PathBuf, Wrong> {
    let remedy = format!("write {KEY} = \"base.toml\", a file beside this one");
    match &node.item {
        Item::Text(name) if name.trim().is_empty() => Err(Wrong::new("this names no file", remedy)),
        Item::Text(name) => Ok(Path::new(file).with_file_name("").join(name)),
        other => Err(Wrong::new(format!("this is {}, not the name of a file", other.noun()), remedy)),
    }
}

fn unread(name: &str, file: &str, error: &io::Error) -> Wrong {
    let remedy = format!("name an experiment file, by its path from the folder of {file}");
    match error.kind() {
        io::ErrorKind::NotFound => Wrong::new(format!("there is no file {name}"), remedy),
        // What `file::read` says reads on from the name.
        io::ErrorKind::InvalidInput => Wrong::new(format!("{name} {error}"), remedy),
        _ => Wrong::new(format!("{name} can't be read: {error}"), remedy),
    }
}

/// The same path without `.` and `a/..`, by which a file is known again.
fn plain(path: &Path) -> PathBuf {
    let mut made = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(made.components().next_back(), Some(Component::Normal(_))) => {
                made.pop();
            }
            _ => made.push(part),
        }
    }
    made
}

/// `over`, and the keys of `base` that `over` does not set.
pub(crate) fn merge(base: &mut Table, over: Table) {
    let mut places: BTreeMap<String, usize> =
        base.0.iter().enumerate().map(|(i, (key, ..))| (key.clone(), i)).collect();
    for (key, origin, node) in over.0 {
        match places.entry(key) {
            Entry::Occupied(at) => {
                let (_, place, old) = &mut base.0[*at.get()];
                *place = origin;
                merge_node(old, node);
            }
            Entry::Vacant(at) => {
                let key = at.key().clone();
                at.insert(base.0.len());
                base.0.push((key, origin, node));
            }
        }
    }
}

fn merge_node(old: &mut Node, new: Node) {
    match (&mut old.item, new) {
        (Item::Table(base), Node { item: Item::Table(over), origin }) => {
            if of_one_kind(base, &over) {
                merge(base, over);
            } else {
                *old = Node { item: Item::Table(over), origin };
            }
        }
        (Item::List(base), Node { item: Item::List(over), .. }) if are_named(base) && are_named(&over) => {
            merge_lists(base, over);
        }
        (_, new) => *old = new,
    }
}

/// Whether `over` says nothing about its kind, or that of `base`.
fn of_one_kind(base: &Table, over: &Table) -> bool {
    let item = |table: &Table, key| table.get(key).map(|node| node.item.clone());
    let told = KINDS.iter().filter(|key| over.get(key).is_some());
    told.into_iter().all(|key| item(over, key) == item(base, key))
}

/// Whether these are tables, and one of them at least has a name.
fn are_named(list: &[Node]) -> bool {
    list.iter().all(|node| matches!(node.item, Item::Table(_))) && list.iter().any(|n| name(n).is_some())
}

/// Each entry goes to the first of that name, if there is one that no other has gone to. What else it names is new, and follows
/// the entry written before it; where there is none, it comes last.
fn merge_lists(base: &mut Vec<Node>, over: Vec<Node>) {
    let mut places = BTreeMap::new();
    for (i, node) in base.iter().enumerate() {
        if let Some(name) = name(node) {
            places.entry(name).or_insert(i);
        }
    }
    let last = base.len().saturating_sub(1);
    let mut followers: Vec<Vec<Node>> = base.iter().map(|_| Vec::new()).collect();
    let mut before = last;
    for node in over {
        match name(&node).and_then(|name| places.remove(&name)) {
            Some(at) => {
                merge_node(&mut base[at], node);
                before = at;
            }
            None => followers[before].push(node),
        }
    }
    let old = std::mem::take(base);
    base.extend(old.into_iter().zip(followers).flat_map(|(node, new)| std::iter::once(node).chain(new)));
}

/// The identity of an entry of a list: its name or node; of a monitor what it samples, of a signal its two ends.
fn name(node: &Node) -> Option<Vec<(&'static str, String)>> {
    let Item::Table(table) = &node.item else { return None };
    let text = |key: &'static str| match table.get(key) {
        Some(Node { item: Item::Text(text), .. }) => Some((key, text.clone())),
        _ => None,
    };
    let one = ["name", "node", "queue", "flows", "edge"].into_iter().find_map(text);
    one.map(|one| vec![one]).or_else(|| Some(vec![text("from")?, text("to")?]))
}

pub(super) mod overrides {
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
        let by_name =
            list.iter().position(|n| matches!(&n.item, Item::Table(t) if t.own_name() == Some(which)));
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
            (other, false) => Err(Wrong::new(
                format!("\"{list_key}.{which}\" is {}; it has no keys", other.noun()),
                EXAMPLE,
            )),
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
            let d =
                with(&[("links.y.rate", "2 Mbit/s"), ("links.0.rate", "\"3 Mbit/s\""), ("tcp.window", "7")])
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
            let problems =
                with(&[("links.z.rate", "1"), ("a.b", "1"), ("", "1"), ("x..y", "1")]).unwrap_err();
            assert_eq!(problems.len(), 4);
            assert_eq!(problems[0].file, "--set links.z.rate=1");
            assert!(problems[0].remedy.contains("x, y"), "{}", problems[0].remedy);
            assert!(problems[1].problem.contains("a number; it has no keys"));
        }
    }
}

//! `extends = "base.toml"`: an experiment that says only what differs from another.
//!
//! Tables merge key by key, entries of `[[links]]` and its like by what names them, and everything else replaces what the base
//! has. A table that says what kind of thing it is (`aqm`, `kind`, `scheduler`) merges with one of the same kind only: parameters
//! of one mechanism say nothing about another.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::text::document::{Document, utf8};
use crate::text::problem::{Problem, Wrong};
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

//! `customers = "customers.csv"`: customers in a file of their own, a line each, beside the router's file.
//!
//! A list may have such names among its tables. `plan` is the template that has a customer's other settings.

use std::path::Path;

use inprofile_experiment::text::csv::{Column, Kind};
use inprofile_experiment::text::file;
use inprofile_experiment::text::tree::{Item, Node, Origin};
use inprofile_experiment::text::{Document, Problem};

use super::DIRECTIONS;

/// The columns that there may be, in any order.
const COLUMNS: [Column; 8] = [
    Column { heading: "name", key: "name", kind: Kind::Text },
    Column { heading: "prefix", key: "prefix", kind: Kind::Texts },
    Column { heading: "vlan", key: "vlan", kind: Kind::Numbers },
    Column { heading: "session", key: "session", kind: Kind::Numbers },
    Column { heading: "port", key: "port", kind: Kind::Numbers },
    Column { heading: "contract", key: "contract", kind: Kind::Text },
    Column { heading: "plan", key: "template", kind: Kind::Text },
    Column { heading: "group", key: "group", kind: Kind::Text },
];

/// Puts the customers of the files that are named into their places; `file` is the router's own.
///
/// # Errors
/// A file that cannot be read, and every line of one that is no customer's.
pub(super) fn take_in(document: &mut Document, file: &str) -> Result<(), Vec<Problem>> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let mut problems = Vec::new();
    for direction in DIRECTIONS {
        for (name, origin) in named(document, direction) {
            let path = folder.join(&name);
            let found = match file::read(&path) {
                Ok(bytes) => document.rows(&bytes, &path.display().to_string(), &COLUMNS),
                Err(error) => {
                    let problem = format!("{}: {error}", path.display());
                    let remedy =
                        "write the name of a CSV file beside this one, with name,prefix,contract,plan";
                    let at = format!("{direction}.customers");
                    Err(vec![document.problem(&at, origin, true, problem, remedy.into())])
                }
            };
            match found {
                Ok(rows) => put(document, direction, origin, rows),
                Err(wrong) => problems.extend(wrong),
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The files that a direction names, and where.
fn named(document: &mut Document, direction: &str) -> Vec<(String, Origin)> {
    let Some(customers) = place(document, direction) else { return Vec::new() };
    let of = |node: &Node| match &node.item {
        Item::Text(name) => Some((name.clone(), node.origin)),
        _ => None,
    };
    match &customers.item {
        Item::List(entries) => entries.iter().filter_map(of).collect(),
        _ => of(customers).into_iter().collect(),
    }
}

fn place<'d>(document: &'d mut Document, direction: &str) -> Option<&'d mut Node> {
    match &mut document.root_mut().get_mut(direction)?.item {
        Item::Table(table) => table.get_mut("customers"),
        _ => None,
    }
}

/// Puts rows where a file's name stands.
fn put(document: &mut Document, direction: &str, origin: Origin, rows: Vec<Node>) {
    let Some(customers) = place(document, direction) else { return };
    match &mut customers.item {
        Item::List(entries) => {
            let at = entries.iter().position(|e| e.origin == origin).unwrap_or(entries.len());
            entries.splice(at..(at + 1).min(entries.len()), rows);
        }
        item => *item = Item::List(rows),
    }
}

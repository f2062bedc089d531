//! Names of links, flows and nodes: their syntax, and that each is given once.

use std::collections::BTreeMap;

use crate::text::problem::Wrong;
use crate::text::{Entry, Report};

use crate::model::At;

/// The longest name.
const LONGEST: usize = 64;

/// Reads a name: letters, digits, `_` and `-`. Dots and blanks would make results ambiguous.
pub(crate) fn name(entry: &Entry<'_, '_>) -> Option<At<String>> {
    let text = entry.text("a name in quotes")?;
    let good = !text.is_empty()
        && text.len() <= LONGEST
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !good {
        return entry.wrong(Wrong::new(
            "not a valid name",
            format!("write 1 to {LONGEST} letters, digits, _ or -, such as \"bottleneck\""),
        ));
    }
    Some(At { value: text.to_owned(), place: entry.place().clone() })
}

/// Numbers by name, each name once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: BTreeMap<String, (usize, crate::text::Location)>,
    incomplete: bool,
}

impl Names {
    /// Gives `name` the number `index`; a name that is taken is reported.
    pub fn claim(&mut self, report: &Report<'_>, name: &At<String>, index: usize, what: &str) {
        if let Some((_, first)) = self.taken.get(&name.value) {
            self.incomplete = true;
            let at = report.whereabouts(first);
            report.error(
                &name.place,
                format!("{what} with this name already exists ({at})"),
                "give each its own name",
            );
        } else {
            self.taken.insert(name.value.clone(), (index, name.place.clone()));
        }
    }

    /// The number of `name`.
    pub fn get(&self, name: &str) -> Option<usize> {
        self.taken.get(name).map(|(i, _)| *i)
    }

    /// Records that a name could not be read.
    pub fn incomplete(&mut self) {
        self.incomplete = true;
    }

    /// Whether an unknown name is certainly wrong, because every name could be read and none was given twice.
    pub fn is_complete(&self) -> bool {
        !self.incomplete
    }

    /// Some of the names, for messages.
    pub fn some(&self) -> Vec<&str> {
        self.taken.keys().take(20).map(String::as_str).collect()
    }
}

//! Collects all problems of a document, so that they are reported together.

use std::cell::{Cell, RefCell};

use crate::text::document::Document;
use crate::text::problem::{Problem, Severity, Wrong};
use crate::text::tree::Origin;

/// How many problems are reported; the rest is only counted.
const MAX_SHOWN: usize = 100;

/// The place of a value: its key as `--set` names it, and its position in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// `links.bottleneck.rate`.
    pub path: String,
    /// Where a message points.
    pub origin: Origin,
    /// Whether the text there is the value itself, to be quoted in messages.
    pub quoted: bool,
}

/// The problems found so far.
#[derive(Debug)]
pub struct Report<'d> {
    document: &'d Document,
    problems: RefCell<Vec<Problem>>,
    errors: Cell<usize>,
    unshown: Cell<usize>,
}

impl<'d> Report<'d> {
    /// None yet.
    #[must_use]
    pub fn new(document: &'d Document) -> Report<'d> {
        Report { document, problems: RefCell::default(), errors: Cell::new(0), unshown: Cell::new(0) }
    }

    /// The document.
    #[must_use]
    pub fn document(&self) -> &'d Document {
        self.document
    }

    /// Something that stops the experiment.
    pub fn error(&self, place: &Location, problem: impl Into<String>, remedy: impl Into<String>) {
        self.errors.set(self.errors.get() + 1);
        self.push(place, problem.into(), remedy.into(), Severity::Error);
    }

    /// Something that stops the experiment, found by a parser that doesn't know its place.
    pub fn wrong(&self, place: &Location, wrong: Wrong) {
        self.error(place, wrong.problem, wrong.remedy);
    }

    /// Something that may not be meant.
    pub fn warning(&self, place: &Location, problem: impl Into<String>, remedy: impl Into<String>) {
        self.push(place, problem.into(), remedy.into(), Severity::Warning);
    }

    /// A place in words: `line 12`, `base.toml:12`, or the override it came from.
    #[must_use]
    pub fn whereabouts(&self, place: &Location) -> String {
        if self.is_full() {
            return String::new(); // It will not be shown, and finding the line takes time.
        }
        let at = self.document.problem("", place.origin, false, String::new(), String::new());
        match at.line {
            Some(line) if at.file == self.document.file() => format!("line {line}"),
            Some(line) => format!("{}:{line}", at.file),
            None => at.file,
        }
    }

    /// Whether further problems are only counted, so that their messages need not be composed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.problems.borrow().len() >= MAX_SHOWN
    }

    /// Whether anything stops the experiment.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors.get() > 0
    }

    /// Everything found, in the order of the file, then of those it extends, overrides last.
    #[must_use]
    pub fn finish(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        // Stable: what has no line, the command line's, stays in its order.
        problems.sort_by_cached_key(|p| {
            (p.line.is_none(), p.line.map(|line| (self.document.rank(&p.file), line)), p.column)
        });
        let unshown = self.unshown.get();
        if unshown > 0 {
            problems.push(Problem {
                file: self.document.file().to_owned(),
                line: None,
                column: None,
                path: String::new(),
                value: None,
                problem: format!("{unshown} more problems of the same file are not shown"),
                remedy: "correct those above and check again".into(),
                severity: if self.errors.get() > 0 { Severity::Error } else { Severity::Warning },
            });
        }
        problems
    }

    fn push(&self, place: &Location, problem: String, remedy: String, severity: Severity) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() >= MAX_SHOWN {
            self.unshown.set(self.unshown.get() + 1);
            return;
        }
        let made = self.document.problem(&place.path, place.origin, place.quoted, problem, remedy);
        // What many have in common is wrong once.
        let same = |p: &Problem| {
            (&p.file, p.line, p.column, &p.path, &p.problem)
                == (&made.file, made.line, made.column, &made.path, &made.problem)
        };
        if problems.iter().any(same) {
            return;
        }
        problems.push(Problem { severity, ..made });
    }
}

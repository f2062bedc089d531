//! Problems of a text, worded so that a person can act on them.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

/// Whether a problem stops the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The experiment can't be run.
    Error,
    /// It can, but it may not be what was meant.
    Warning,
}

/// One thing that is wrong: where, what, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, or `--set KEY=VALUE` where the value came from the command line.
    pub file: String,
    /// Line, from 1; none for what came from the command line or concerns the file as a whole.
    pub line: Option<u32>,
    /// Column in characters, from 1.
    pub column: Option<u32>,
    /// The key as `--set` would name it: `links.bottleneck.queue.limit`. Empty: the file as a whole.
    pub path: String,
    /// The value as it was written, shortened where long; none where it is missing.
    pub value: Option<String>,
    /// The fault.
    pub problem: String,
    /// The remedy: the text to write instead.
    pub remedy: String,
    /// Whether it stops the experiment.
    pub severity: Severity,
}

/// Whether a terminal obeys a character instead of showing it: a control character, or one that changes the direction of the
/// text after it (Unicode Annex 9).
#[must_use]
pub fn acts(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The same text with every character that a terminal would obey written as in TOML: `\u001b`.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { shown.push_str(&format!("\\u{:04x}", u32::from(c))) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

impl fmt::Display for Problem {
    /// For a terminal or a log: see [`visible`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        f.write_str(match self.severity {
            Severity::Error => ": error: ",
            Severity::Warning => ": warning: ",
        })?;
        match (self.path.is_empty(), &self.value) {
            (false, Some(value)) => write!(f, "{} = {}: ", visible(&self.path), visible(value))?,
            (false, None) => write!(f, "{}: ", visible(&self.path))?,
            (true, Some(value)) => write!(f, "{}: ", visible(value))?,
            (true, None) => {}
        }
        f.write_str(&visible(&self.problem))?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n  {}", visible(&self.remedy)) }
    }
}

/// A problem of a value, without its place: what a parser of text alone can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The fault.
    pub problem: String,
    /// The remedy: the text to write instead.
    pub remedy: String,
}

impl Wrong {
    /// From its two sentences.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Wrong {
        Wrong { problem: problem.into(), remedy: remedy.into() }
    }
}

pub mod report {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_written_out() {
        let esc = Problem {
            file: "a\u{1b}[2J.toml".into(),
            line: None,
            column: None,
            path: "title".into(),
            value: Some("\"\u{9b}31m\u{202e}é\"".into()),
            problem: "x\ry".into(),
            remedy: "z\u{7f}".into(),
            severity: Severity::Error,
        };
        let shown = esc.to_string();
        assert!(shown.chars().all(|c| c == '\n' || !acts(c)), "{shown:?}");
        assert_eq!(shown, "a\\u001b[2J.toml: error: title = \"\\u009b31m\\u202eé\": x\\u000dy\n  z\\u007f");
    }

    #[test]
    fn a_problem_reads_as_place_key_value_fault_remedy() {
        let p = Problem {
            file: "a.toml".into(),
            line: Some(3),
            column: Some(8),
            path: "links.edge.rate".into(),
            value: Some("\"10\"".into()),
            problem: "a rate needs a unit".into(),
            remedy: "write \"10 Mbit/s\"".into(),
            severity: Severity::Error,
        };
        assert_eq!(
            p.to_string(),
            "a.toml:3:8: error: links.edge.rate = \"10\": a rate needs a unit\n  write \"10 Mbit/s\""
        );
        let whole = Problem { line: None, column: None, path: String::new(), value: None, ..p };
        assert_eq!(whole.to_string(), "a.toml: error: a rate needs a unit\n  write \"10 Mbit/s\"");
    }
}

//! What is wrong with a text, said so that a person can act on it.

use std::fmt;

use serde::Serialize;

/// Whether a problem stops the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The experiment can't be run.
    Error,
    /// It can, but perhaps it isn't what was meant.
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
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
    /// Whether it stops the experiment.
    pub severity: Severity,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
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
            (false, Some(value)) => write!(f, "{} = {value}: ", self.path)?,
            (false, None) => write!(f, "{}: ", self.path)?,
            (true, Some(value)) => write!(f, "{value}: ")?,
            (true, None) => {}
        }
        f.write_str(&self.problem)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.remedy) }
    }
}

/// A problem of a value, without its place: what a parser of text alone can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl Wrong {
    /// From its two sentences.
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Wrong {
        Wrong { problem: problem.into(), remedy: remedy.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

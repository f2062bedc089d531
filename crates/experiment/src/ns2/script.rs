//! A script for ns-2 as it is being written, with what ns-2 turned out to lack.

use std::fmt;
use std::fmt::Write as _;

/// The purpose of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The same events as ours: everything in ns-2's own arithmetic, and every event in a trace.
    Events,
    /// Metrics of the same distribution: ns-2's counterpart of every mechanism, and counts over the measured window.
    Counts,
}

pub(super) struct Script {
    pub text: String,
    pub missing: Vec<String>,
    pub aim: Aim,
}

impl Script {
    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        // A string takes everything.
        let _ = writeln!(self.text, "{line}");
    }

    pub fn lacks(&mut self, what: impl Into<String>) {
        self.missing.push(what.into());
    }
}

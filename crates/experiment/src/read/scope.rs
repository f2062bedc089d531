//! The context that every part of the reader needs beside the text.

use inprofile_core::registry::Registry;
use inprofile_core::units::{Duration, Time};
use inprofile_sim::tcp;

/// The mechanisms that may be named, and the experiment's defaults.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The mechanisms that may be named.
    pub registry: &'a Registry,
    /// TCP's defaults in this experiment; `None` if they could not be read.
    pub tcp: Option<&'a tcp::Config>,
}

/// A time after the start of the run as a moment of the run.
pub(crate) fn moment(d: Duration) -> Time {
    Time(d.0)
}

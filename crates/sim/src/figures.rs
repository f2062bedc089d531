//! The figures behind each verdict of a departure: on the packets dropped at the head, and on the one that was sent.

use inprofile_core::verdict::{Notes, Why};

/// Those of one departure.
#[derive(Default)]
pub(crate) struct Figures {
    /// Behind each drop, in order.
    pub dropped: Vec<Notes>,
    /// Behind the verdict being given.
    pub now: Option<Notes>,
}

impl Why for Figures {
    fn note(&mut self, what: &'static str, value: f64) {
        self.now.get_or_insert_default().note(what, value);
    }

    fn next_packet(&mut self) {
        self.dropped.push(self.now.take().unwrap_or_default());
    }
}

//! The state that an external TCP sender reports.

use crate::tcp::Tally;

/// The last report of an external sender.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// Congestion window in segments.
    pub cwnd: f64,
    /// Slow-start threshold in segments; infinite before the first loss.
    pub ssthresh: f64,
    /// The counts of it since the start of the run.
    pub tally: Tally,
}

/// Before its first report.
impl Default for Sender {
    fn default() -> Sender {
        Sender { cwnd: 0.0, ssthresh: f64::INFINITY, tally: Tally::default() }
    }
}

//! A TCP sender that is not simulated, as far as the run knows of it: what it says of itself.

use crate::tcp::Tally;

/// What an outside sender last said.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// Congestion window in segments.
    pub cwnd: f64,
    /// Slow-start threshold in segments; infinite before the first loss.
    pub ssthresh: f64,
    /// What it has done so far.
    pub tally: Tally,
}

/// It hasn't said anything yet.
impl Default for Sender {
    fn default() -> Sender {
        Sender { cwnd: 0.0, ssthresh: f64::INFINITY, tally: Tally::default() }
    }
}

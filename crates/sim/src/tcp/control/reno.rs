//! Reno's window (RFC 5681): a segment more in each round trip, half of what is in flight after congestion.

use super::{Cause, Law};

/// It remembers nothing.
#[derive(Clone, Copy, Debug)]
pub struct Reno;

impl Law for Reno {
    fn avoid(&mut self, cwnd: f64, segments: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        // RFC 5681 §3.1: one segment for a window of them.
        cwnd + f64::from(segments) / cwnd
    }

    fn reduce(&mut self, _: Cause, _: f64, flight: f64) -> f64 {
        // RFC 5681, Eq. (4): half of FlightSize.
        flight / 2.0
    }
}

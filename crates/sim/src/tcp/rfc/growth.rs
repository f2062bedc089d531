//! How the window grows without loss, and how much of it congestion leaves: RFC 5681 or RFC 9438.

use crate::tcp::{Config, Congestion};

use super::cubic::Cubic;

/// A congestion control but for its loss recovery, in segments and seconds.
#[derive(Clone, Debug)]
pub enum Growth {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic(Box<Cubic>),
}

impl Growth {
    /// As the flow is told.
    pub fn new(config: &Config) -> Growth {
        match config.congestion {
            Congestion::Cubic { .. } => Growth::Cubic(Box::default()),
            Congestion::Reno | Congestion::NewReno | Congestion::Sack => Growth::Reno,
        }
    }

    /// The window after `segments` were acknowledged in congestion avoidance; `at`: the smoothed round-trip time and
    /// the present.
    pub fn avoid(&mut self, cwnd: f64, segments: u32, at: impl FnOnce() -> (f64, f64)) -> f64 {
        match self {
            // RFC 5681, Eq. (3): a segment a round trip.
            Growth::Reno => cwnd + 1.0 / cwnd,
            Growth::Cubic(cubic) => {
                let (rtt, now) = at();
                cubic.acknowledged(cwnd, segments, rtt, now)
            }
        }
    }

    /// An acknowledgement came. `unused`: when, if less was on the way than the window allows. True if the window stays.
    pub fn pause(&mut self, unused: impl FnOnce() -> Option<f64>) -> bool {
        match self {
            Growth::Reno => false,
            Growth::Cubic(cubic) => {
                let Some(now) = unused() else { return false };
                cubic.pause(now);
                true
            }
        }
    }

    /// The share of `flight` that congestion leaves, not yet bounded from below.
    pub fn reduce(&mut self, cwnd: f64, flight: f64) -> f64 {
        match self {
            // RFC 5681, Eq. (4): half of what was on the way.
            Growth::Reno => flight / 2.0,
            Growth::Cubic(cubic) => cubic.reduce(cwnd, flight),
        }
    }

    /// As [`Growth::reduce`], by a timeout.
    pub fn timed_out(&mut self, cwnd: f64, flight: f64) -> f64 {
        match self {
            Growth::Reno => flight / 2.0,
            Growth::Cubic(cubic) => cubic.timed_out(cwnd, flight),
        }
    }
}

//! The congestion window without loss recovery: how it grows in congestion avoidance, and by how much congestion reduces it.
//! RFC 5681 or RFC 9438.

use crate::tcp::{Config, Congestion};

pub mod cubic;

use cubic::Cubic;

/// Growth and reduction of the window, in segments and seconds.
#[derive(Clone, Debug)]
pub enum Growth {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic(Box<Cubic>),
}

impl Growth {
    /// As the flow's congestion control has it.
    pub fn new(config: &Config) -> Growth {
        match config.congestion {
            Congestion::Cubic { .. } => Growth::Cubic(Box::default()),
            Congestion::Reno | Congestion::NewReno | Congestion::Sack => Growth::Reno,
        }
    }

    /// The window after `segments` were acknowledged in congestion avoidance; `at`: the smoothed round-trip time and
    /// the current time.
    pub fn avoid(&mut self, cwnd: f64, segments: u32, at: impl FnOnce() -> (f64, f64)) -> f64 {
        match self {
            // RFC 5681, Eq. (3): one segment a round trip.
            Growth::Reno => cwnd + 1.0 / cwnd,
            Growth::Cubic(cubic) => {
                let (rtt, now) = at();
                cubic.acknowledged(cwnd, segments, rtt, now)
            }
        }
    }

    /// An acknowledgement arrived; `unused` gives the current time if less was in flight than the window allows. True: the
    /// window must not grow.
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

    /// The slow-start threshold after congestion, not yet bounded from below; `flight`: FlightSize.
    pub fn reduce(&mut self, cwnd: f64, flight: f64) -> f64 {
        match self {
            // RFC 5681, Eq. (4): half of FlightSize.
            Growth::Reno => flight / 2.0,
            Growth::Cubic(cubic) => cubic.reduce(cwnd, flight),
        }
    }

    /// As [`Growth::reduce`], after a timeout.
    pub fn timed_out(&mut self, cwnd: f64, flight: f64) -> f64 {
        match self {
            Growth::Reno => flight / 2.0,
            Growth::Cubic(cubic) => cubic.timed_out(cwnd, flight),
        }
    }
}

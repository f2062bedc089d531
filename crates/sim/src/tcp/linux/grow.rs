//! How the window grows: slow start, what ends it, and congestion avoidance.

use crate::clock::Clock;
use crate::tcp::rfc::HyStartPlusPlus;
use crate::tcp::{Config, SlowStart};

use super::Sender;
use super::acknowledgement::Told;
use super::hystart::HyStart;

/// What ends slow start before something is lost.
#[derive(Clone, Debug)]
pub(super) enum Exit {
    /// Nothing.
    None,
    /// HyStart, in any slow start.
    HyStart(HyStart),
    /// HyStart++ (RFC 9406), in the first.
    HyStartPlusPlus(HyStartPlusPlus),
}

impl Exit {
    /// The flow's.
    pub(super) fn new(config: &Config) -> Exit {
        match config.slow_start {
            SlowStart::Standard => Exit::None,
            SlowStart::HyStart => Exit::HyStart(HyStart::new()),
            SlowStart::HyStartPlusPlus => Exit::HyStartPlusPlus(HyStartPlusPlus::new(config.pacing)),
        }
    }
}

impl<C: Clock> Sender<C> {
    /// The window grows. `limited`: it was full when the acknowledgement arrived (RFC 9438 §5.8).
    #[inline]
    pub(super) fn grow(&mut self, told: Told, limited: bool, now: f64) {
        let paused = self.control.pause(|| (!limited).then_some(now));
        if self.cwnd < self.ssthresh {
            let growth = self.slow_start_growth(told, now);
            // Linux: slow start wants the window at least half used.
            if !limited && self.cwnd >= f64::from(2 * self.board.in_flight().max(1)) {
                return;
            }
            self.cwnd = (self.cwnd + growth).min(self.ssthresh.max(self.cwnd));
        } else if !paused && limited {
            let at = || (self.rto.srtt(), now);
            self.cwnd = self.control.avoid(self.cwnd, told.delivered, at);
        }
    }

    /// By how much an acknowledgement lets the window grow in slow start, unless that ends with it: then the threshold is the window.
    fn slow_start_growth(&mut self, told: Told, now: f64) -> f64 {
        let (una, max) = (self.board.una(), self.board.max());
        let growth = match &mut self.exit {
            Exit::HyStart(h) => {
                let ends = h.acknowledged(una, max, self.cwnd, told.rtt, self.pacer.is_some(), now);
                (!ends).then_some(f64::from(told.delivered))
            }
            // RFC 9406 §4.3: only while nothing has set the threshold.
            Exit::HyStartPlusPlus(h) if self.ssthresh == f64::INFINITY => {
                h.acknowledged(una, max, told.delivered, told.rtt)
            }
            Exit::None | Exit::HyStartPlusPlus(_) => Some(f64::from(told.delivered)),
        };
        growth.unwrap_or_else(|| {
            self.ssthresh = self.cwnd;
            0.0
        })
    }
}

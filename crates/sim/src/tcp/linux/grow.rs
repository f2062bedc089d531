//! How the window grows: slow start, what ends it, and congestion avoidance.

use crate::clock::Clock;
use crate::tcp::control::least;
use crate::tcp::rfc::HyStartPlusPlus;
use crate::tcp::{Config, SlowStart};

use super::Sender;
use super::acknowledgement::AckSample;
use super::hystart::HyStart;

/// The rule that ends slow start before a loss.
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
    pub(super) fn grow(&mut self, sample: AckSample, limited: bool, now: f64) {
        let paused = self.control.pause(|| (!limited).then_some(now));
        let rest = if self.cwnd < self.ssthresh {
            self.grow_in_slow_start(sample, limited, now)
        } else if !paused && limited {
            sample.delivered
        } else {
            0
        };
        if rest > 0 {
            let at = || (self.timeout.srtt(), now);
            self.cwnd = self.control.avoid(self.cwnd, rest, at);
        }
    }

    /// The window is below the threshold. As in Linux, what an acknowledgement tells of beyond it, or when slow start ends, counts in congestion
    /// avoidance: so many segments.
    #[inline]
    fn grow_in_slow_start(&mut self, sample: AckSample, limited: bool, now: f64) -> u32 {
        let Some(growth) = self.slow_start_growth(sample, now) else {
            self.ssthresh = self.cwnd;
            return if limited { sample.delivered } else { 0 };
        };
        // Linux: slow start wants the window at least half used.
        if !limited && self.cwnd >= f64::from(2 * self.board.in_flight().max(1)) {
            return 0;
        }
        let room = self.ssthresh - self.cwnd;
        self.cwnd += least(growth, room);
        if growth > room { (growth - room) as u32 } else { 0 }
    }

    /// By how much an acknowledgement lets the window grow in slow start, unless that ends with it.
    fn slow_start_growth(&mut self, sample: AckSample, now: f64) -> Option<f64> {
        let (una, max) = (self.board.una(), self.board.max());
        match &mut self.exit {
            Exit::HyStart(h) => {
                let ends = h.acknowledged(una, max, self.cwnd, sample.rtt, self.pacer.is_some(), now);
                (!ends).then_some(f64::from(sample.delivered))
            }
            // RFC 9406 §4.3: only while nothing has set the threshold.
            Exit::HyStartPlusPlus(h) if self.ssthresh == f64::INFINITY => {
                h.acknowledged(una, max, sample.delivered, sample.rtt)
            }
            Exit::None | Exit::HyStartPlusPlus(_) => Some(f64::from(sample.delivered)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;
    use crate::tcp::{Congestion, Profile};

    /// RFC 9406 §4.3: only the first slow start is HyStart++'s, whose limit is eight segments an acknowledgement; later ones are the standard's.
    #[test]
    fn a_later_slow_start_is_the_standards() {
        let mut sender = Sender::<Exact>::new(&Config {
            profile: Profile::Linux,
            congestion: Congestion::Sack,
            slow_start: SlowStart::HyStartPlusPlus,
            ..Config::plain()
        });
        let sample = AckSample { delivered: 12, advanced: true, rtt: None };
        sender.cwnd = 20.0;
        sender.grow(sample, true, 0.0);
        assert_eq!(sender.cwnd, 28.0);
        sender.ssthresh = 60.0;
        sender.grow(sample, true, 0.0);
        assert_eq!(sender.cwnd, 40.0);
    }
}

//! The averages of RED: an exponentially weighted mean of the queue's length, which idle time ages.
//!
//! Source: Floyd and Jacobson 1993, Fig. 2 and §11. Non-goal: which arrivals are samples of which average
//! ([`Config::weights`]).

use crate::aqm::red::common::Config;
use crate::aqm::red::law::{Arrival, Vars};
use crate::units::{Bytes, Rate, Time};

/// How fast the averages of one queue move.
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    /// Weight of the newest sample.
    pub w_q: f64,
    /// Typical packets a second that the link can send; 0: unknown, and idle time does not age.
    pub ptc: f64,
    /// Binary logarithm of what a picosecond of idle time leaves of an average: log2(1 − w_q) · ptc / 10¹².
    fade: f64,
}

impl Weight {
    /// `packet` is the typical size on a link of this rate; without a rate idle time does not age.
    #[must_use]
    pub fn new(w_q: f64, link: Option<Rate>, packet: Bytes) -> Weight {
        let ptc = link.map_or(0.0, |rate| rate.0 as f64 / (8.0 * packet.0 as f64));
        let fade = libm::log1p(-w_q) * std::f64::consts::LOG2_E * ptc / 1e12;
        Weight { w_q, ptc, fade }
    }
}

impl<const N: usize> Vars<N> {
    /// Fig. 2, for each average: avg ← (1 − w)·avg + w·q; where the arrival finds the link idle, the averages age instead.
    /// No branch asks for the colour, which a processor would guess wrong every second time.
    #[inline]
    pub fn sample(&mut self, c: &Config<N>, a: &Arrival<N>) {
        match a.idle {
            Some(since) if c.weight.ptc > 0.0 => self.age(c, a.now, since),
            _ => {
                let weights = &c.weights[a.colour];
                for ((avg, w), q) in self.avg.iter_mut().zip(weights).zip(a.lengths) {
                    *avg += w * (q - *avg);
                }
            }
        }
    }

    /// Fig. 2: avg ← (1 − w)^m·avg, as if m packets had been finding an empty queue all the while; m = idle time · packets a
    /// second, a real number (§11), so that however often an idle stretch is looked at, it ages the same.
    #[cold]
    #[inline(never)]
    pub fn age(&mut self, c: &Config<N>, now: Time, idle: Time) {
        let left = self.left(c, now, idle);
        self.avg.iter_mut().for_each(|avg| *avg *= left);
    }

    /// The part of an average that is left by the idle time not accounted for yet, which it accounts for.
    pub(crate) fn left(&mut self, c: &Config<N>, now: Time, idle: Time) -> f64 {
        let idle = now.since(idle.max(self.aged)).picos();
        self.aged = now;
        if idle > 0.0 { libm::exp2(c.weight.fade * idle) } else { 1.0 }
    }
}

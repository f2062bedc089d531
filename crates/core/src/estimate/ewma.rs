//! The exponentially weighted moving average of a queue, as RED defines it, idle time included.
//!
//! Floyd and Jacobson 1993, Fig. 2: an arrival that finds the link busy takes a sample,
//! avg ← (1 − w)·avg + w·q; one that finds it idle ages the average instead, as if packets had been
//! finding an empty queue all the while: avg ← (1 − w)^m·avg, m = idle time · packets a second (their §11
//! leaves m a real number, and so do we: however often an idle stretch is looked at, it ages the same).
//! ns-2 rounds m down, ages, and then takes the sample too. Non-goal: any other queue measure.

use crate::units::{Bytes, Rate, Time};

/// How fast an average moves: shared by all averages of one queue.
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    /// Weight of the newest sample.
    w_q: f64,
    /// Typical packets a second that the link can send; 0: unknown, and idle time does not age.
    ptc: f64,
}

impl Weight {
    /// `packet` is the typical size on a link of this rate; without a rate idle time does not age.
    #[must_use]
    pub fn new(w_q: f64, link: Option<Rate>, packet: Bytes) -> Weight {
        let ptc = link.map_or(0.0, |rate| rate.0 as f64 / (8.0 * packet.0 as f64));
        Weight { w_q, ptc }
    }
}

/// The average, and until when idle time has aged it.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueAverage {
    avg: f64,
    aged: Time,
}

impl QueueAverage {
    /// The average as of the last arrival.
    #[must_use]
    #[inline]
    pub fn get(&self) -> f64 {
        self.avg
    }

    /// Takes in an arrival that found the length `q`, and the link idle since `idle` if it was.
    #[inline]
    pub fn sample(&mut self, w: &Weight, now: Time, q: f64, idle: Option<Time>) -> f64 {
        match idle {
            Some(since) if w.ptc > 0.0 => self.age(w, now, since),
            _ => self.avg += w.w_q * (q - self.avg),
        }
        self.avg
    }

    /// Ages by the part of the idle time that nothing has accounted for yet.
    pub fn age(&mut self, w: &Weight, now: Time, idle: Time) {
        let m = now.since(idle.max(self.aged)).secs() * w.ptc;
        self.aged = now;
        if m > 0.0 && self.avg > 0.0 {
            self.avg *= libm::pow(1.0 - w.w_q, m);
        }
    }

    /// [`QueueAverage::sample`] in ns-2's arithmetic: ages by whole packets, then takes the sample.
    #[inline]
    pub fn sample_ns2(&mut self, w: &Weight, now: Time, q: f64, idle: Option<Time>) -> f64 {
        if let Some(since) = idle {
            self.age_ns2(w, now, since);
        }
        self.avg *= 1.0 - w.w_q;
        self.avg += w.w_q * q;
        self.avg
    }

    /// [`QueueAverage::age`] in ns-2's arithmetic: seconds in double precision, whole packets, one
    /// multiplication a packet.
    pub fn age_ns2(&mut self, w: &Weight, now: Time, idle: Time) {
        let since = idle.max(self.aged);
        self.aged = now;
        let m = (w.ptc * (now.secs() - since.secs())) as u64;
        for _ in 0..m {
            let next = self.avg * (1.0 - w.w_q);
            if next == self.avg {
                break; // 0, or the smallest number there is: more factors change nothing
            }
            self.avg = next;
        }
    }
}

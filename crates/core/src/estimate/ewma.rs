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

    /// Whether idle time ages averages.
    #[must_use]
    #[inline]
    pub fn ages(&self) -> bool {
        self.ptc > 0.0
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
            Some(since) if w.ages() => self.age(w, now, since),
            _ => self.step(w.w_q, q),
        }
        self.avg
    }

    /// An arrival that found the link busy and this length, taken in with the weight `w`.
    #[inline]
    pub fn step(&mut self, w: f64, q: f64) {
        self.avg += w * (q - self.avg);
    }

    /// Ages by the part of the idle time that nothing has accounted for yet.
    #[cold]
    #[inline(never)]
    pub fn age(&mut self, w: &Weight, now: Time, idle: Time) {
        let idle = now.since(idle.max(self.aged)).picos();
        self.aged = now;
        if idle > 0.0 && w.ages() {
            self.avg *= libm::exp2(w.fade * idle);
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
        self.age_ns2_for(w, now, now.secs() - idle.max(self.aged).secs());
    }

    /// [`QueueAverage::age_ns2`] for so many seconds. Traffic in step leaves links idle for whole numbers of
    /// packets, and the last bit of a double then decides how many.
    pub fn age_ns2_for(&mut self, w: &Weight, now: Time, secs: f64) {
        self.aged = now;
        let m = (w.ptc * secs) as u64;
        for _ in 0..m {
            let next = self.avg * (1.0 - w.w_q);
            if next == self.avg {
                break; // 0, or the smallest number there is: more factors change nothing
            }
            self.avg = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 1,000 packets a second.
    fn weight(w_q: f64) -> Weight {
        Weight::new(w_q, Some(Rate(8_000_000)), Bytes(1000))
    }

    fn at(ms: f64) -> Time {
        Time::from_secs(ms * 1e-3)
    }

    fn of(avg: f64) -> QueueAverage {
        QueueAverage { avg, aged: Time::ZERO }
    }

    #[test]
    fn a_sample_moves_it_by_its_weight() {
        let (mut a, mut b) = (of(10.0), of(10.0));
        assert_eq!(a.sample(&weight(0.25), at(1.0), 20.0, None), 12.5);
        assert_eq!(b.sample_ns2(&weight(0.25), at(1.0), 20.0, None), 12.5);
    }

    /// Floyd and Jacobson 1993, §11.
    #[test]
    fn idle_time_ages_it_as_so_many_empty_queues_would() {
        let mut slow = 10.0;
        for _ in 0..7 {
            slow *= 1.0 - 0.25;
        }
        let mut a = of(10.0);
        assert!((a.sample(&weight(0.25), at(10.0), 0.0, Some(at(3.0))) - slow).abs() < 1e-12);
        // ns-2: whole packets only, and then the arrival's own sample.
        let mut b = of(10.0);
        assert_eq!(b.sample_ns2(&weight(0.25), at(10.9), 0.0, Some(at(3.0))), slow * 0.75);
    }

    #[test]
    fn ns2_ages_an_idle_stretch_once() {
        let mut a = of(8.0);
        a.age_ns2(&weight(0.5), at(12.5), at(10.0));
        a.age_ns2(&weight(0.5), at(14.0), at(10.0));
        assert_eq!(a.get(), 1.0);
    }

    #[test]
    fn without_a_rate_idle_time_does_not_age_it() {
        let w = Weight::new(0.25, None, Bytes(1000));
        assert_eq!(of(10.0).sample(&w, at(1e6), 0.0, Some(at(0.0))), 7.5);
        assert_eq!(of(10.0).sample_ns2(&w, at(1e6), 0.0, Some(at(0.0))), 7.5);
    }

    /// Only the last sample counts: any idle time empties the average, and without a rate none does.
    #[test]
    fn a_weight_of_one_forgets_at_once() {
        let mut a = of(10.0);
        a.age(&weight(1.0), at(1.0), at(0.5));
        assert_eq!(a.get(), 0.0);
        let mut b = of(10.0);
        b.age(&Weight::new(1.0, None, Bytes(1000)), at(1.0), at(0.5));
        assert_eq!(b.get(), 10.0);
    }

    #[test]
    fn an_endless_idle_time_ends() {
        let mut a = of(10.0);
        a.age_ns2(&weight(0.002), Time(u64::MAX), Time::ZERO);
        assert!(a.get() < 1e-300);
    }

    proptest! {
        /// Arrivals that are dropped leave the link idle: whoever looks, each moment ages it once.
        #[test]
        fn idle_time_counts_once(w_q in 0.001f64..0.5, looks in prop::collection::vec(0f64..50.0, 1..10)) {
            let mut looks = looks;
            looks.sort_by(f64::total_cmp);
            let mut often = of(100.0);
            for ms in &looks {
                often.age(&weight(w_q), at(10.0 + ms), at(10.0));
            }
            let mut once = of(100.0);
            once.age(&weight(w_q), at(10.0 + looks[looks.len() - 1]), at(10.0));
            prop_assert!((often.get() - once.get()).abs() <= 1e-9 * (1.0 + once.get()));
        }
    }
}

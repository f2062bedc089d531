//! Copa (Arun and Balakrishnan, NSDI 2018): the window moves toward the rate 1/(δ·d_q), d_q being the queueing delay, so that 1/δ packets
//! of each flow wait in the queue.
//!
//! Its default mode alone: a flow that meets ones that fill the queue yields to them. There is no competitive mode (§3), and losses reduce
//! nothing; after a timeout it starts anew. Windows are in segments, times in seconds.

use std::collections::VecDeque;

use super::{Cause, Law, Phase, Sample, Window, least};

/// §2.1: δ of the default mode.
const DELTA: f64 = 0.5;
/// §2.1: RTTmin is the shortest of so many seconds; kept second by second.
const MIN_RTT_SECONDS: usize = 10;
/// §2.1: the velocity doubles once the direction has stayed the same for so many round trips.
const STEADY: u32 = 3;
/// Fewer segments than these would wait for delayed acknowledgements.
const MIN_CWND: f64 = 2.0;

/// The round-trip times, and which way the window moves.
#[derive(Clone, Debug)]
pub struct Copa {
    slow_start: bool,
    /// The shortest of each of the last seconds, the current one last; infinite where there was no sample.
    shortest: [f64; MIN_RTT_SECONDS],
    /// The current second.
    second: u64,
    /// Those of the last half of a smoothed round-trip time that may become its shortest: later ones are longer. With their times.
    recent: VecDeque<(f64, f64)>,
    velocity: f64,
    /// Whether the window grew over the last round trip, and over how many in a row it went that way.
    up: bool,
    steady: u32,
    /// The round trip ends when more than this is acknowledged; the window at its beginning.
    round_end: u32,
    round_cwnd: f64,
}

impl Default for Copa {
    fn default() -> Copa {
        Copa {
            slow_start: true,
            shortest: [f64::INFINITY; MIN_RTT_SECONDS],
            second: 0,
            recent: VecDeque::new(),
            velocity: 1.0,
            up: true,
            steady: 0,
            round_end: 0,
            round_cwnd: 0.0,
        }
    }
}

impl Copa {
    fn measured(&mut self, rtt: f64, now: f64, srtt: f64) {
        let second = now as u64;
        let over = (second - self.second).min(MIN_RTT_SECONDS as u64) as usize;
        self.second = second;
        self.shortest.rotate_left(over);
        self.shortest[MIN_RTT_SECONDS - over..].fill(f64::INFINITY);
        let newest = &mut self.shortest[MIN_RTT_SECONDS - 1];
        *newest = least(*newest, rtt);
        while self.recent.back().is_some_and(|(_, later)| *later >= rtt) {
            self.recent.pop_back();
        }
        self.recent.push_back((now, rtt));
        while self.recent.front().is_some_and(|(at, _)| now - at > srtt / 2.0) {
            self.recent.pop_front();
        }
    }

    /// §2.1, RTTmin; infinite before a sample.
    fn rtt_min(&self) -> f64 {
        self.shortest.iter().copied().fold(f64::INFINITY, least)
    }

    /// §2.1, RTTstanding: the shortest of the last half of a round trip; none before a sample.
    fn rtt_standing(&self) -> Option<f64> {
        self.recent.front().map(|(_, rtt)| *rtt)
    }

    /// §2.1, step 3: whether the rate cwnd/RTTstanding is at most the target 1/(δ·d_q).
    fn below_target(&self, cwnd: f64, standing: f64) -> bool {
        cwnd * DELTA * (standing - self.rtt_min()) <= standing
    }

    /// §2.1, step 4: once a round trip; the velocity doubles while the window keeps its direction, and is 1 again where it turns.
    fn end_round(&mut self, cwnd: f64) {
        let up = cwnd > self.round_cwnd;
        self.steady = if up == self.up { self.steady + 1 } else { 0 };
        self.velocity = if self.steady >= STEADY { self.velocity * 2.0 } else { 1.0 };
        self.up = up;
    }

    /// The window after `acked` segments; `full`: it was used.
    fn moved(&mut self, cwnd: f64, acked: f64, full: bool, standing: f64) -> f64 {
        let below = self.below_target(cwnd, standing);
        // §2.2.
        if self.slow_start && below {
            return if full { cwnd + acked } else { cwnd };
        }
        self.slow_start = false;
        // No faster than slow start, and no more than half of the window in a round trip.
        let step = least(self.velocity / (DELTA * cwnd), if below { 1.0 } else { 0.5 }) * acked;
        match below {
            true if full => cwnd + step,
            true => cwnd,
            false => (cwnd - step).max(MIN_CWND),
        }
    }
}

impl Law for Copa {
    fn acknowledged(&mut self, sample: &Sample, window: &mut Window) -> bool {
        if let Some(rtt) = sample.rtt {
            self.measured(rtt, sample.now, sample.srtt);
        }
        if sample.phase == Phase::Recovery {
            return false;
        }
        let Some(standing) = self.rtt_standing() else { return true };
        if sample.una > self.round_end {
            if self.round_end > 0 && !self.slow_start {
                self.end_round(window.cwnd);
            }
            (self.round_end, self.round_cwnd) = (sample.next, window.cwnd);
        }
        // Paced at twice the window a round trip, it is in flight up to a half of it.
        let full = sample.limited || f64::from(sample.prior_in_flight) >= window.cwnd / 2.0;
        window.cwnd = self.moved(window.cwnd, f64::from(sample.delivered), full, standing);
        true
    }

    /// §2.2: twice the window a round trip, so that the sender does not burst.
    fn pacing_rate(&self, window: &Window, _: u32, _: f64) -> Option<f64> {
        self.rtt_standing().map(|standing| 2.0 * window.cwnd / standing)
    }

    fn reduce(&mut self, cause: Cause, cwnd: f64, _: f64) -> f64 {
        if cause == Cause::Timeout {
            *self = Copa { shortest: self.shortest, second: self.second, ..Copa::default() };
            return (cwnd / 2.0).max(MIN_CWND);
        }
        cwnd
    }

    fn avoid(&mut self, cwnd: f64, _: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// §2.1: with `queued` segments waiting at a path of 100 ms and 1,000 segments a second.
    fn settled(queued: f64) -> (Copa, f64, f64) {
        let mut copa = Copa { slow_start: false, ..Copa::default() };
        let standing = 0.1 + queued / 1000.0;
        copa.measured(0.1, 0.0, 0.1);
        copa.measured(standing, 1.0, 0.1);
        (copa, 1000.0 * standing, standing)
    }

    /// §2.1: the fixed point is 1/δ = 2 segments in the queue: with fewer the window grows, with more it shrinks, by 1/δ a round trip.
    #[test]
    fn two_segments_wait() {
        for (queued, by) in [(1.9, 2.0), (2.1, -2.0)] {
            let (mut copa, cwnd, standing) = settled(queued);
            let after = copa.moved(cwnd, 1.0, true, standing);
            assert!(((after - cwnd) * cwnd - by).abs() < 1e-9, "{queued}: {after}");
        }
    }

    /// §2.1, step 4: doubling begins once the direction was the same for three round trips, and a turn ends it.
    #[test]
    fn the_velocity_doubles_while_the_direction_stays() {
        let mut copa = Copa::default();
        let mut seen = Vec::new();
        for cwnd in [10.0, 11.0, 12.0, 13.0, 14.0, 13.0, 12.0] {
            copa.end_round(cwnd);
            copa.round_cwnd = cwnd;
            seen.push(copa.velocity);
        }
        assert_eq!(seen, [1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0]);
    }

    proptest! {
        /// RTTmin and RTTstanding are those of a search through all samples.
        #[test]
        fn minima_are_those_of_a_search(samples in prop::collection::vec((0.0..3.0f64, 0.01..1.0f64), 1..60)) {
            let mut copa = Copa::default();
            let mut all: Vec<(f64, f64)> = Vec::new();
            let mut now = 0.0;
            for (pause, rtt) in samples {
                now += pause;
                copa.measured(rtt, now, 0.5);
                all.push((now, rtt));
                let shortest = |kept: &dyn Fn(f64) -> bool| {
                    all.iter().filter(|(at, _)| kept(*at)).map(|(_, r)| *r).fold(f64::INFINITY, f64::min)
                };
                let first = (now as u64 + 1).saturating_sub(MIN_RTT_SECONDS as u64);
                prop_assert_eq!(copa.rtt_min(), shortest(&|at| at as u64 >= first));
                prop_assert_eq!(copa.rtt_standing(), Some(shortest(&|at| now - at <= 0.25)));
            }
        }
    }
}

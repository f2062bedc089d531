//! Copa (Arun and Balakrishnan, NSDI 2018): the window moves toward the rate 1/(δ·d_q), d_q being the queueing delay, so that 1/δ packets
//! of each flow wait in the queue.
//!
//! The default mode of §2.2 alone: a flow that meets ones that fill the queue yields to them. Every acknowledgement is judged by its delay,
//! whatever is lost; only after a timeout, of which §2 says nothing, it starts anew. Windows are in segments, times in seconds.

use std::collections::VecDeque;

use super::{Cause, Law, Sample, Window, least, most};

/// §2.2: δ of the default mode.
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
    /// The shortest of each of the last seconds, the current one last; infinite where there was no sample.
    shortest: [f64; MIN_RTT_SECONDS],
    /// The current second.
    second: u64,
    /// Those of the last half of a smoothed round-trip time that may become its shortest: later ones are longer. With their times.
    recent: VecDeque<(f64, f64)>,
    motion: Motion,
    /// Before a timeout that may have been needless: the window, and how it moved.
    before: Option<(f64, Motion)>,
}

/// The way the window moves.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Motion {
    slow_start: bool,
    velocity: f64,
    /// The direction, and over how many round trips in a row the window went that way.
    up: bool,
    steady: u32,
    /// The round trip ends when more than this is acknowledged; the window at its beginning.
    round_end: u32,
    round_cwnd: f64,
}

impl Default for Motion {
    fn default() -> Motion {
        Motion { slow_start: true, velocity: 1.0, up: true, steady: 0, round_end: 0, round_cwnd: 0.0 }
    }
}

impl Motion {
    /// §2.1, step 4: once a round trip; the velocity doubles while the window keeps its direction, and is 1 again where it turns or rests.
    fn end_round(&mut self, cwnd: f64) {
        let turns = (cwnd > self.round_cwnd) != self.up;
        self.steady = if turns || cwnd == self.round_cwnd { 0 } else { self.steady + 1 };
        self.velocity = if self.steady >= STEADY { self.velocity * 2.0 } else { 1.0 };
        self.up ^= turns;
    }

    /// The window is to go the other way: what it has gathered of velocity was for the one before.
    fn turn(&mut self, up: bool) {
        if self.up != up && self.velocity > 1.0 {
            (self.velocity, self.steady, self.up) = (1.0, 0, up);
        }
    }
}

impl Default for Copa {
    fn default() -> Copa {
        Copa {
            shortest: [f64::INFINITY; MIN_RTT_SECONDS],
            second: 0,
            recent: VecDeque::new(),
            motion: Motion::default(),
            before: None,
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

    /// The window after `acked` segments; `full`: it was used.
    fn moved(&mut self, cwnd: f64, acked: f64, full: bool, standing: f64) -> f64 {
        let below = self.below_target(cwnd, standing);
        let motion = &mut self.motion;
        if motion.slow_start && below {
            // §2.1: twice the window a round trip.
            return if full { cwnd + acked } else { cwnd };
        }
        if motion.slow_start {
            *motion = Motion {
                slow_start: false,
                round_cwnd: cwnd,
                round_end: motion.round_end,
                ..Motion::default()
            };
        }
        motion.turn(below);
        // Bounds of ours: no faster than slow start, and no more than half of the window in a round trip.
        let step = least(motion.velocity / (DELTA * cwnd), if below { 1.0 } else { 0.5 }) * acked;
        match below {
            true if full => cwnd + step,
            true => cwnd,
            false => most(cwnd - step, MIN_CWND),
        }
    }

    /// The timer expired: slow start, from the round-trip times as they are known. Retransmissions measure none (Karn's rule).
    fn restart(&mut self, cwnd: f64) {
        // Of several timeouts in a row the first has found the window.
        self.before.get_or_insert((cwnd, self.motion));
        self.motion = Motion::default();
    }
}

impl Law for Copa {
    fn acknowledged(&mut self, sample: &Sample, window: &mut Window) -> bool {
        if let Some(rtt) = sample.rtt {
            self.measured(rtt, sample.now, sample.srtt);
        }
        // The SYN is no part of the window.
        if sample.una <= 1 {
            return true;
        }
        let Some(standing) = self.rtt_standing() else { return true };
        let motion = &mut self.motion;
        if sample.una > motion.round_end {
            if motion.round_end > 0 && !motion.slow_start {
                motion.end_round(window.cwnd);
            }
            (motion.round_end, motion.round_cwnd) = (sample.next, window.cwnd);
        }
        // What the application leaves unused does not grow: without a queue the window would double for as long as it has little to send.
        window.cwnd = self.moved(window.cwnd, f64::from(sample.delivered), sample.limited, standing);
        true
    }

    /// §2.1: twice the window a round trip, so that the sender does not burst.
    fn pacing_rate(&self, window: &Window, _: u32, _: f64) -> Option<f64> {
        self.rtt_standing().map(|standing| 2.0 * window.cwnd / standing)
    }

    /// There is no slow-start threshold.
    fn reduce(&mut self, cause: Cause, cwnd: f64, _: f64) -> f64 {
        if cause == Cause::Timeout {
            self.restart(cwnd);
        }
        f64::INFINITY
    }

    fn timed_out_again(&mut self, cwnd: f64) {
        self.restart(cwnd);
    }

    fn recovered(&mut self, _: &mut Window) {
        self.before = None;
    }

    fn undone(&mut self, window: &mut Window) {
        if let Some((cwnd, motion)) = self.before.take() {
            window.cwnd = most(window.cwnd, cwnd);
            self.motion = motion;
        }
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn restarts_slowly(&self) -> bool {
        false
    }

    fn avoid(&mut self, cwnd: f64, _: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::control::Phase;
    use proptest::prelude::*;

    /// §2.1: with `queued` segments waiting at a path of 100 ms and 1,000 segments a second.
    fn settled(queued: f64) -> (Copa, f64, f64) {
        let motion = Motion { slow_start: false, ..Motion::default() };
        let mut copa = Copa { motion, ..Copa::default() };
        let standing = 0.1 + queued / 1000.0;
        copa.measured(0.1, 0.0, 0.1);
        copa.measured(standing, 1.0, 0.1);
        (copa, 1000.0 * standing, standing)
    }

    /// An acknowledgement of one segment, of a window that is full.
    fn sample(now: f64, rtt: Option<f64>, phase: Phase) -> Sample {
        Sample {
            now,
            delivered: 1,
            marked: 0,
            lost: 0,
            rtt,
            srtt: 0.1,
            prior_in_flight: 100,
            in_flight: 99,
            una: 1000,
            next: 1100,
            advanced: true,
            limited: true,
            phase,
            rate: None,
        }
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

    /// Losses, and what is sent again for them, change nothing: what counts is the delay.
    #[test]
    fn a_recovery_is_judged_by_delay() {
        for (queued, grows) in [(1.0, true), (9.0, false)] {
            let (copa, cwnd, standing) = settled(queued);
            let after = |phase: Phase| {
                let mut window = Window { cwnd, ssthresh: cwnd };
                assert!(copa.clone().acknowledged(&sample(1.0, Some(standing), phase), &mut window));
                window.cwnd
            };
            assert_eq!(after(Phase::Recovery), after(Phase::Open));
            assert_eq!(after(Phase::Recovery) > cwnd, grows, "{queued} waiting");
        }
        let mut copa = settled(1.0).0;
        let before = copa.motion;
        copa.reduce(Cause::Loss, 100.0, 100.0);
        assert_eq!(copa.motion, before);
    }

    /// §2.1: slow start doubles the window a round trip until the rate is above the target, and begins with a velocity of 1 from there.
    #[test]
    fn slow_start_ends_above_the_target() {
        let (mut copa, cwnd, standing) = settled(1.0);
        copa.motion.slow_start = true;
        assert_eq!(copa.moved(cwnd, 3.0, true, standing), cwnd + 3.0);
        assert!(copa.motion.slow_start);
        let (mut copa, cwnd, standing) = settled(5.0);
        copa.motion = Motion { steady: 9, velocity: 8.0, ..Motion::default() };
        let after = copa.moved(cwnd, 1.0, true, standing);
        assert!(((cwnd - after) * cwnd - 2.0).abs() < 1e-9, "{after}");
        assert_eq!((copa.motion.slow_start, copa.motion.steady, copa.motion.round_cwnd), (false, 0, cwnd));
    }

    /// Whatever the velocity, an acknowledgement moves the window by no more than it tells of up, half of that down, and not below two.
    #[test]
    fn steps_are_bounded() {
        for (queued, up, by) in [(1.0, true, 1.0), (9.0, false, -0.5)] {
            let (mut copa, cwnd, standing) = settled(queued);
            (copa.motion.velocity, copa.motion.up) = (1e9, up);
            assert_eq!(copa.moved(cwnd, 1.0, true, standing), cwnd + by);
        }
        let (mut copa, _, _) = settled(0.0);
        // 9.9 s of queueing: the target is below any window.
        assert_eq!(copa.moved(2.2, 1.0, true, 10.0), 2.0);
    }

    /// §2.1, step 4: doubling begins once the direction was the same for three round trips; a turn ends it, and so does a window that stays.
    #[test]
    fn the_velocity_doubles_while_the_direction_stays() {
        let mut motion = Motion { round_cwnd: 9.0, ..Motion::default() };
        let mut seen = Vec::new();
        for cwnd in [10.0, 11.0, 12.0, 13.0, 12.0, 11.0, 10.0, 9.0, 9.0, 9.0, 9.0, 9.0] {
            motion.end_round(cwnd);
            motion.round_cwnd = cwnd;
            seen.push(motion.velocity);
        }
        assert_eq!(seen, [1.0, 1.0, 2.0, 4.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0]);
    }

    /// A window that has to go the other way does so at a velocity of 1.
    #[test]
    fn a_turn_ends_the_velocity() {
        let (mut copa, cwnd, standing) = settled(9.0);
        (copa.motion.velocity, copa.motion.steady) = (16.0, 6);
        let after = copa.moved(cwnd, 1.0, true, standing);
        assert!(((cwnd - after) * cwnd - 2.0).abs() < 1e-9, "{after}");
        assert_eq!((copa.motion.velocity, copa.motion.steady, copa.motion.up), (1.0, 0, false));
    }

    /// §2.1: twice the window a round trip, of the shortest round-trip time of late.
    #[test]
    fn the_rate_is_twice_the_windows() {
        let (copa, cwnd, standing) = settled(2.0);
        let window = Window { cwnd, ssthresh: f64::INFINITY };
        assert_eq!(copa.pacing_rate(&window, 0, 1.0), Some(2.0 * cwnd / standing));
        assert_eq!(Copa::default().pacing_rate(&window, 0, 1.0), None);
    }

    /// A timeout, also one within a recovery, begins slow start anew with the round-trip times that are known: retransmissions tell of
    /// none, and yet the window grows with their acknowledgements. A timeout that was needless leaves window and motion as they were.
    #[test]
    fn a_timeout_starts_anew() {
        let (copa, cwnd, _) = settled(9.0);
        let mut first = copa.clone();
        first.reduce(Cause::Timeout, cwnd, cwnd);
        let mut within = copa.clone();
        within.timed_out_again(cwnd);
        for mut restarted in [first, within] {
            restarted.timed_out_again(1.0);
            assert_eq!(restarted.motion, Motion::default());
            let mut window = Window { cwnd: 1.0, ssthresh: cwnd };
            restarted.acknowledged(&sample(1.5, None, Phase::Loss), &mut window);
            assert_eq!(window.cwnd, 2.0);
            restarted.undone(&mut window);
            assert_eq!((window.cwnd, restarted.motion), (cwnd, copa.motion));
            restarted.timed_out_again(cwnd);
            restarted.recovered(&mut window);
            window.cwnd = 1.0;
            restarted.undone(&mut window);
            assert_eq!(window.cwnd, 1.0, "the timeout was none for nothing");
        }
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

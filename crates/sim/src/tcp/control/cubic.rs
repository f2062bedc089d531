//! CUBIC's congestion avoidance (RFC 9438): the window is a cubic function of the time since the last congestion event, flat
//! around the window at which that event happened, and never grows more slowly than Reno's.
//!
//! In segments and seconds. Slow start, HyStart++ and the undoing of a reduction are the sender's, and Linux's arithmetic is
//! [`linux_cubic`](super::linux_cubic)'s.

use libm::cbrt;

use super::{Cause, Law, Window};

/// RFC 9438 §4.6: the multiplicative decrease factor.
const BETA: f64 = 0.7;
/// RFC 9438 §5.1: the steepness of the function, in segments per second cubed.
const C: f64 = 0.4;
/// RFC 9438 §4.3: the additive increase, in segments a round trip, with which [`BETA`] gives Reno's mean window.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The last congestion event, and the current stage of congestion avoidance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cubic {
    /// Where the function is flat (W_max), in segments.
    w_max: f64,
    /// The window just before the last reduction.
    cwnd_prior: f64,
    /// Seconds until the function reaches `w_max` (K).
    k: f64,
    /// The window Reno would have (W_est).
    w_est: f64,
    /// When the current stage began, plus the time for which the window was not fully used; `None`: it begins with the next
    /// acknowledgement.
    epoch: Option<f64>,
    /// The last acknowledgement of the stage.
    last: f64,
    /// The last reduction was by fast retransmit or ECN, not by a timeout: `w_max` is valid.
    w_max_valid: bool,
}

/// RFC 9438 §4.2: the window at `t` seconds into the stage.
fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    let d = t - k;
    C * d * d * d + w_max
}

/// RFC 9438 §4.2: the time to grow from `cwnd` to `w_max`.
fn time_to(w_max: f64, cwnd: f64) -> f64 {
    cbrt((w_max - cwnd) / C)
}

impl Cubic {
    /// New data is acknowledged in congestion avoidance: the window that follows from `cwnd`. `rtt`: the smoothed
    /// round-trip time in seconds.
    fn grown(&mut self, cwnd: f64, segments: u32, rtt: f64, now: f64) -> f64 {
        let began = match self.epoch {
            Some(began) => began,
            None => self.begin(cwnd, now),
        };
        self.last = now;
        // RFC 9438 §4.3: as fast as Reno once W_est has reached cwnd_prior.
        let alpha = if self.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        self.w_est += alpha * f64::from(segments) / cwnd;
        let t = now - began;
        if w_cubic(t, self.k, self.w_max) < self.w_est {
            cwnd.max(self.w_est)
        } else {
            // RFC 9438 §4.4 and §4.5: towards the function's value one round trip ahead; §4.2: that target is neither below the
            // window nor above one and a half times the window.
            let target = w_cubic(t + rtt, self.k, self.w_max).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) / cwnd
        }
    }

    /// Starts a stage with a window of `cwnd`.
    fn begin(&mut self, cwnd: f64, now: f64) -> f64 {
        if self.w_max_valid && cwnd < self.w_max {
            self.k = time_to(self.w_max, cwnd);
        } else {
            // RFC 9438 §4.8: the first stage after a timeout; §4.10: slow start ended without a loss.
            self.w_max = cwnd;
            self.k = 0.0;
        }
        self.w_est = cwnd;
        self.epoch = Some(now);
        now
    }

    /// An acknowledgement arrived while less was in flight than the window allows (RFC 9438 §5.8): the window stays, and by
    /// §4.2 the function's time does not advance.
    fn paused(&mut self, now: f64) {
        if let Some(began) = &mut self.epoch {
            *began += now - self.last;
            self.last = now;
        }
    }

    /// Congestion: the slow-start threshold that follows, before it is bounded from below (RFC 9438 §4.6).
    fn reduced(&mut self, cwnd: f64, flight: f64) -> f64 {
        // RFC 9438 §4.7, fast convergence: a window that has not reached its previous maximum releases bandwidth. §4.8: after a timeout
        // there is no such maximum.
        let before = if self.w_max_valid { self.w_max } else { 0.0 };
        self.w_max = if cwnd < before { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        flight * BETA
    }
}

impl Law for Cubic {
    fn avoid(&mut self, cwnd: f64, segments: u32, at: impl FnOnce() -> (f64, f64)) -> f64 {
        let (rtt, now) = at();
        self.grown(cwnd, segments, rtt, now)
    }

    fn reduce(&mut self, cause: Cause, cwnd: f64, flight: f64) -> f64 {
        let ssthresh = self.reduced(cwnd, flight);
        // RFC 9438 §4.8: a timeout says nothing of where the function is flat.
        self.w_max_valid = cause != Cause::Timeout;
        ssthresh
    }

    fn timed_out_again(&mut self, _: f64) {
        // RFC 9438 §4.8, as for any timeout.
        self.epoch = None;
        self.w_max_valid = false;
    }

    /// RFC 9438 §4.2: the pause is no part of the stage. Where slow start follows, another stage begins after it.
    fn restarts_from_idle(&mut self, now: f64, window: &mut Window) {
        if window.cwnd < window.ssthresh {
            self.epoch = None;
        }
        self.paused(now);
    }

    fn pause(&mut self, unused: impl FnOnce() -> Option<f64>) -> bool {
        let now = unused();
        if let Some(now) = now {
            self.paused(now);
        }
        now.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Round trips of `rtt` from a window of `cwnd` on, one acknowledgement a segment: the window at the start of
    /// each round trip.
    fn rounds(cubic: &mut Cubic, mut cwnd: f64, rtt: f64, from: f64, n: usize) -> Vec<f64> {
        let mut windows = Vec::new();
        for round in 0..n {
            windows.push(cwnd);
            let acks = cwnd as u32;
            for i in 0..acks {
                let now = from + (round as f64 + f64::from(i) / f64::from(acks)) * rtt;
                cwnd = cubic.grown(cwnd, 1, rtt, now);
            }
        }
        windows
    }

    /// RFC 9438 §4.2, the closed form by hand: from 700 back to 1000 takes cbrt(300 / 0.4) = 9.0856 s.
    #[test]
    fn the_window_follows_the_cubic_function() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.reduce(Cause::Loss, 1000.0, 1000.0), 700.0);
        let rtt = 0.1;
        let windows = rounds(&mut cubic, 700.0, rtt, 5.0, 150);
        assert!((cubic.k - 9.085_603).abs() < 1e-6, "{}", cubic.k);
        for (round, window) in windows.iter().enumerate().skip(1) {
            let t = round as f64 * rtt;
            let law = 0.4 * libm::pow(t - 9.085_603, 3.0) + 1000.0;
            // §4.4: a share 1 − 1/e of the way to where the function is a round trip ahead: behind it by less than
            // it grows in a round trip.
            let ahead = 0.4 * libm::pow(t + rtt - 9.085_603, 3.0) + 1000.0;
            assert!(
                *window > law - (ahead - law) - 0.1 && *window < ahead + 0.1,
                "{round}: {window} for {law}"
            );
        }
        // RFC 9438 §4.4: concave up to W_max; flat around it; §4.5: convex beyond. All with the C of §5.1.
        assert!((windows[91] - 1000.0).abs() < 0.5, "{}", windows[91]);
        assert!(windows[20] - windows[10] > windows[80] - windows[70]);
        assert!(windows[149] - windows[139] > windows[110] - windows[100]);
    }

    /// RFC 9438 §4.3: at 10 ms and 20 segments the function is slower than Reno, whose mean window it keeps: 0.529
    /// segments a round trip up to where the window was, and one a round trip from there.
    #[test]
    fn at_short_round_trips_the_window_is_renos() {
        let mut cubic = Cubic::default();
        let cwnd = cubic.reduce(Cause::Loss, 20.0, 20.0);
        let windows = rounds(&mut cubic, cwnd, 0.01, 0.0, 40);
        for pair in windows.windows(2) {
            let grown = pair[1] - pair[0];
            let law = if pair[1] < 20.0 { 0.9 / 1.7 } else { 1.0 };
            assert!(pair[0] < 20.0 && pair[1] > 20.0 || (grown - law).abs() < 0.06, "{pair:?}");
        }
        assert!(windows[39] > 24.0);
    }

    /// RFC 9438 §4.7.
    #[test]
    fn fast_convergence_lowers_w_max() {
        let mut cubic = Cubic::default();
        cubic.reduce(Cause::Loss, 100.0, 100.0);
        assert_eq!(cubic.w_max, 100.0);
        assert_eq!(cubic.reduce(Cause::Loss, 80.0, 80.0), 80.0 * 0.7);
        assert_eq!(cubic.w_max, 80.0 * 0.85);
        cubic.reduce(Cause::Loss, 90.0, 90.0);
        assert_eq!((cubic.w_max, cubic.cwnd_prior), (90.0, 90.0));
    }

    /// RFC 9438 §4.8: after a timeout the function starts flat, from the window at the start of the stage; §4.10: so
    /// it does when slow start ends without a loss.
    #[test]
    fn after_a_timeout_the_function_starts_flat() {
        let mut after = Cubic::default();
        assert_eq!(after.reduce(Cause::Timeout, 100.0, 100.0), 70.0);
        let mut fresh = Cubic::default();
        for cubic in [&mut after, &mut fresh] {
            cubic.grown(70.0, 1, 0.1, 3.0);
            assert_eq!((cubic.k, cubic.w_max, cubic.epoch), (0.0, 70.0, Some(3.0)));
        }
        // W_est grows from the same window, slower only after the timeout.
        assert!((after.w_est - (70.0 + ALPHA / 70.0)).abs() < 1e-12);
        assert!((fresh.w_est - (70.0 + 1.0 / 70.0)).abs() < 1e-12);
        // The next loss is remembered again.
        after.reduce(Cause::Loss, 90.0, 90.0);
        after.grown(63.0, 1, 0.1, 9.0);
        assert_eq!(after.w_max, 90.0);
    }

    /// RFC 9438 §4.7 and §4.8: a loss in the slow start after a timeout, or after a timer that expired in a recovery, is not compared with the
    /// maximum of before; the one after it is.
    #[test]
    fn a_timeout_forgets_the_maximum() {
        for again in [false, true] {
            let mut cubic = Cubic::default();
            cubic.reduce(Cause::Loss, 100.0, 100.0);
            if again {
                cubic.timed_out_again(70.0);
            } else {
                cubic.reduce(Cause::Timeout, 70.0, 70.0);
            }
            cubic.reduce(Cause::Loss, 40.0, 40.0);
            assert_eq!(cubic.w_max, 40.0);
            cubic.reduce(Cause::Loss, 30.0, 30.0);
            assert_eq!(cubic.w_max, 30.0 * 0.85);
        }
    }

    /// RFC 9438 §5.8 and §4.2.
    #[test]
    fn time_with_an_unused_window_does_not_count() {
        let mut steady = Cubic::default();
        steady.reduce(Cause::Loss, 1000.0, 1000.0);
        let mut paused = steady.clone();
        let a = steady.grown(700.0, 1, 0.1, 1.0);
        assert_eq!(a, paused.grown(700.0, 1, 0.1, 1.0));
        // Thirty seconds with a window that is not full.
        for s in 2..=31 {
            paused.paused(f64::from(s));
        }
        assert_eq!(steady.grown(a, 1, 0.1, 2.0), paused.grown(a, 1, 0.1, 32.0));
    }

    /// RFC 9438 §4.2: nor does a pause after which the window is full at once; after one that slow start follows, a stage begins anew.
    #[test]
    fn a_pause_does_not_count() {
        let mut steady = Cubic::default();
        steady.reduce(Cause::Loss, 1000.0, 1000.0);
        let mut idle = steady.clone();
        let a = steady.grown(700.0, 1, 0.1, 1.0);
        idle.grown(700.0, 1, 0.1, 1.0);
        idle.restarts_from_idle(31.0, &mut Window { cwnd: a, ssthresh: 700.0 });
        let mut slow = idle.clone();
        assert_eq!(steady.grown(a, 1, 0.1, 2.0), idle.grown(a, 1, 0.1, 32.0));
        slow.restarts_from_idle(90.0, &mut Window { cwnd: 10.0, ssthresh: 700.0 });
        slow.grown(800.0, 1, 0.1, 95.0);
        assert_eq!((slow.epoch, slow.k), (Some(95.0), time_to(1000.0, 800.0)));
    }

    proptest! {
        /// RFC 9438 §4.2: an acknowledgement never lowers the window, and a round trip adds at most half of it —
        /// beyond what Reno's floor adds.
        #[test]
        fn growth_is_bounded(
            lost_at in 2.0f64..5000.0, rtt in 0.001f64..0.5, gaps in prop::collection::vec(0.0f64..3.0, 1..60),
        ) {
            let mut cubic = Cubic::default();
            let mut cwnd = cubic.reduce(Cause::Loss, lost_at, lost_at).max(2.0);
            let mut now = 0.0;
            for gap in gaps {
                now += gap;
                let next = cubic.grown(cwnd, 1, rtt, now);
                prop_assert!(next >= cwnd && next <= (cwnd + 0.5 + 1e-9).max(cubic.w_est), "{cwnd} to {next}");
                cwnd = next;
            }
        }
    }
}

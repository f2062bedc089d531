//! LEDBAT (RFC 6817): the window follows the queueing delay, so that the connection uses what others leave and yields before they lose.
//!
//! As §2.4.2 has it, without the slow start that §2.2 allows. The timeout is the sender's retransmission timeout, as §2.4.2 asks of TCP.
//! Windows are in segments.

use super::{Cause, Law, Phase, Sample, Window};
use crate::tcp::Settings;

/// RFC 6817 §2.5: ALLOWED_INCREASE, MIN_CWND, BASE_HISTORY.
const ALLOWED_INCREASE: f64 = 1.0;
const MIN_CWND: f64 = 2.0;
const BASE_HISTORY: usize = 10;
/// RFC 6817 §2.5, CURRENT_FILTER: at least four samples, and none older than a round trip.
const CURRENT_FILTER: usize = 4;
const MINUTE: f64 = 60.0;

/// The measurements of the one-way delay, in seconds.
#[derive(Clone, Debug)]
pub struct Ledbat {
    /// TARGET and GAIN (RFC 6817 §2.5).
    target: f64,
    gain: f64,
    /// The shortest delay of each of the last minutes, the current one last; infinite where there was no sample.
    base: [f64; BASE_HISTORY],
    /// The current minute; none before the first sample.
    minute: Option<u64>,
    /// The last delays, and when they were told of.
    current: [(f64, f64); CURRENT_FILTER],
}

impl Default for Ledbat {
    fn default() -> Ledbat {
        Ledbat::new(&Settings::default())
    }
}

impl Ledbat {
    /// Before the first sample.
    #[must_use]
    pub fn new(settings: &Settings) -> Ledbat {
        Ledbat {
            target: settings.target.secs(),
            gain: settings.gain,
            base: [f64::INFINITY; BASE_HISTORY],
            minute: None,
            current: [(f64::NEG_INFINITY, f64::INFINITY); CURRENT_FILTER],
        }
    }

    /// RFC 6817 §2.4.2, update_base_delay(); a minute without a sample stands for +INFINITY, as the text below the pseudocode has it.
    fn update_base_delay(&mut self, delay: f64, now: f64) {
        let minute = (now / MINUTE) as u64;
        let since = minute - self.minute.replace(minute).unwrap_or(minute);
        let over = since.min(BASE_HISTORY as u64) as usize;
        self.base.rotate_left(over);
        self.base[BASE_HISTORY - over..].fill(f64::INFINITY);
        let newest = &mut self.base[BASE_HISTORY - 1];
        *newest = newest.min(delay);
    }

    /// FILTER(current_delays) − MIN(base_delays) (RFC 6817 §2.4.2), with the minimum as the filter; none before a sample.
    fn queueing_delay(&self, now: f64, srtt: f64) -> Option<f64> {
        let (newest, last) = self.current[CURRENT_FILTER - 1];
        if newest == f64::NEG_INFINITY {
            return None;
        }
        let fresh = self.current.iter().filter(|(at, _)| now - at <= srtt).map(|(_, delay)| *delay);
        let base = self.base.iter().copied().fold(f64::INFINITY, f64::min);
        Some(fresh.fold(last, f64::min) - base)
    }

    /// RFC 6817 §2.4.2, on acknowledgement: the window that follows.
    fn grown(&self, cwnd: f64, acked: f64, flight: f64, queueing: f64) -> f64 {
        let off_target = (self.target - queueing) / self.target;
        let grown = cwnd + self.gain * off_target * acked / cwnd;
        grown.min(flight + ALLOWED_INCREASE).max(MIN_CWND)
    }
}

impl Law for Ledbat {
    fn delays(&mut self, delays: &[f64], now: f64) {
        for &delay in delays {
            self.update_base_delay(delay, now);
            self.current.rotate_left(1);
            self.current[CURRENT_FILTER - 1] = (now, delay);
        }
    }

    fn acknowledged(&mut self, sample: &Sample, window: &mut Window) -> bool {
        // What follows a loss or a mark is the sender's.
        if sample.phase == Phase::Recovery || sample.marked > 0 {
            return false;
        }
        if sample.delivered > 0
            && let Some(queueing) = self.queueing_delay(sample.now, sample.srtt)
        {
            let acked = f64::from(sample.delivered);
            window.cwnd = self.grown(window.cwnd, acked, f64::from(sample.prior_in_flight), queueing);
        }
        true
    }

    /// RFC 6817 §2.4.2, on data loss.
    fn reduce(&mut self, _: Cause, cwnd: f64, _: f64) -> f64 {
        cwnd.min((cwnd / 2.0).max(MIN_CWND))
    }

    fn avoid(&mut self, cwnd: f64, _: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 6817 §2.4.2, by hand: a segment a round trip with an empty queue, none at the target, as much less as the delay is above it;
    /// §2.5: no more than a segment beyond what is in flight, never below two.
    #[test]
    fn the_window_moves_with_the_distance_from_the_target() {
        let ledbat = Ledbat::default();
        assert_eq!(ledbat.grown(10.0, 1.0, 10.0, 0.0), 10.1);
        assert_eq!(ledbat.grown(10.0, 1.0, 10.0, 0.1), 10.0);
        assert!((ledbat.grown(10.0, 1.0, 10.0, 0.25) - 9.85).abs() < 1e-12);
        assert_eq!(ledbat.grown(10.0, 1.0, 4.0, 0.0), 5.0);
        assert_eq!(ledbat.grown(2.1, 2.0, 2.0, 0.5), 2.0);
    }

    /// RFC 6817 §2.4.2: the minima of the last ten minutes, idle ones included: after ten of those measurement begins anew.
    #[test]
    fn the_base_is_the_shortest_of_ten_minutes() {
        let mut ledbat = Ledbat::default();
        assert_eq!(ledbat.queueing_delay(0.0, 0.1), None);
        ledbat.delays(&[0.03, 0.02], 5.0);
        for minute in 1..10 {
            ledbat.delays(&[0.05], 5.0 + 60.0 * f64::from(minute));
        }
        let q = ledbat.queueing_delay(545.0, 0.1).expect("a sample");
        assert!((q - 0.03).abs() < 1e-12, "{q}");
        ledbat.delays(&[0.05], 605.0);
        assert_eq!(ledbat.queueing_delay(605.0, 0.1), Some(0.0));
        ledbat.delays(&[0.04], 606.0);
        // Nine idle minutes leave the minute before them, ten nothing.
        let mut nine = ledbat.clone();
        nine.delays(&[0.09], 606.0 + 540.0);
        let q = nine.queueing_delay(1146.0, 0.1).expect("a sample");
        assert!((q - 0.05).abs() < 1e-12, "{q}");
        ledbat.delays(&[0.09], 606.0 + 600.0);
        assert_eq!(ledbat.queueing_delay(1206.0, 0.1), Some(0.0));
    }

    /// RFC 6817 §2.4.2: FILTER() passes over one late sample; §2.5: nothing older than a round trip counts.
    #[test]
    fn a_single_late_sample_does_not_count() {
        let mut ledbat = Ledbat::default();
        ledbat.delays(&[0.02], 1.0);
        ledbat.delays(&[0.07], 1.05);
        assert_eq!(ledbat.queueing_delay(1.05, 0.1), Some(0.0));
        let q = ledbat.queueing_delay(1.11, 0.1).expect("a sample");
        assert!((q - 0.05).abs() < 1e-12, "{q}");
    }

    /// RFC 6817 §2.4.2, on data loss: half, but not below two, nor above what it was.
    #[test]
    fn a_loss_halves_the_window() {
        let mut ledbat = Ledbat::default();
        assert_eq!([20.0, 3.0, 1.0].map(|cwnd| ledbat.reduce(Cause::Loss, cwnd, cwnd)), [10.0, 2.0, 1.0]);
    }

    proptest! {
        /// RFC 6817 §2.4.2: whatever the delay, a window neither grows by more than GAIN segments a round trip nor beyond what is in flight and one;
        /// a longer delay never leaves a larger one; with the same flight it moves towards TARGET's, and stays there.
        #[test]
        fn a_longer_delay_never_leaves_a_larger_window(
            cwnd in 2.0f64..2000.0, acked in 1u32..9, spare in 0u32..20, gain in 0.1f64..=1.0, ms in (0.0f64..1000.0, 0.0f64..1000.0),
        ) {
            let ledbat = Ledbat::new(&Settings { gain, ..Settings::default() });
            let (acked, flight) = (f64::from(acked), cwnd + f64::from(spare));
            let (short, long) = (ms.0.min(ms.1) / 1e3, ms.0.max(ms.1) / 1e3);
            let [after_short, after_long] = [short, long].map(|q| ledbat.grown(cwnd, acked, flight, q));
            prop_assert!(after_long <= after_short && after_long >= MIN_CWND);
            prop_assert!(after_short <= flight + ALLOWED_INCREASE && after_short - cwnd <= gain * acked / cwnd + 1e-9);
            prop_assert!((ledbat.grown(cwnd, acked, flight, ledbat.target) - cwnd).abs() < 1e-9);
            prop_assert!((after_short >= cwnd) == (short <= ledbat.target) || after_short == MIN_CWND);
        }

        /// RFC 6817 §2.4.2: the queueing delay is never negative, and a path that is longer by a constant has the same (clocks need not agree).
        #[test]
        fn delays_are_relative(offset in -5.0f64..5.0, delays in prop::collection::vec((0.0f64..0.5, 0.0f64..30.0), 1..60)) {
            let (mut one, mut other, mut now) = (Ledbat::default(), Ledbat::default(), 0.0);
            for (delay, pause) in delays {
                now += pause;
                one.delays(&[delay], now);
                other.delays(&[delay + offset], now);
                let [a, b] = [&one, &other].map(|l| l.queueing_delay(now, 0.1).expect("a sample"));
                prop_assert!(a >= 0.0 && (a - b).abs() < 1e-9, "{a} {b}");
            }
        }
    }
}

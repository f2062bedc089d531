//! Prague (draft-briscoe-iccrg-prague-congestion-control-04; the L4S requirements of RFC 9331): DCTCP for the Internet. Its packets
//! are ECT(1), each mark counts, short round trips gain nothing, and a loss is answered as Reno does.
//!
//! Where the draft names figures of Linux's implementation, they are taken. Not implemented: detection of queues that mark ECT(1) as
//! they would drop (RFC 9331 §4.3 leaves it to the operator; off by default in Linux), the paced chirping and the draft's other variants.

use super::reno::Reno;
use super::{Cause, Law, Phase, Sample, Window, most};
use crate::tcp::Settings;

/// §2.3.2: the weight of the last round trip, g, as in RFC 8257 §4.2.
const G: f64 = 1.0 / 16.0;
/// §2.4.4: so many round trips after slow start the virtual round-trip time counts; before, a flow may need its speed.
const ROUNDS: u32 = 500;
/// §2.5.2: a train of segments takes no longer than this at the pacing rate; a quarter of the queue at which a queue marks.
const TRAIN: f64 = 1.0 / 4096.0;
/// RFC 9331 §4.3 has a connection respond down to a window of a segment or less; as Linux's, this one stops at two.
const MIN_WINDOW: f64 = 2.0;

/// The share of marked segments, and when it last reduced the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Prague {
    /// §2.4.4: the virtual round-trip time is at least this, in seconds; 0: there is none.
    rtt_virt: f64,
    /// §2.3.2: the moving average; 1 until the first mark, which thus halves the window.
    alpha: f64,
    /// A mark has been seen. Before, there may be no L4S queue on the path, and the average stays.
    saw_mark: bool,
    acked: u64,
    marked: u64,
    /// The round trip ends when more than this is acknowledged.
    round_end: u32,
    /// Round trips since slow start.
    rounds: u32,
    /// When the average was last brought up to date.
    averaged_at: f64,
    /// No further reduction before more than this is acknowledged.
    reduced_end: u32,
    reduced_at: f64,
}

impl Default for Prague {
    fn default() -> Prague {
        Prague::new(&Settings::default())
    }
}

impl Prague {
    /// Before the first mark.
    #[must_use]
    pub fn new(settings: &Settings) -> Prague {
        Prague {
            rtt_virt: settings.rtt_virt.secs(),
            alpha: 1.0,
            saw_mark: false,
            acked: 0,
            marked: 0,
            round_end: 0,
            rounds: 0,
            averaged_at: f64::NEG_INFINITY,
            reduced_end: 0,
            reduced_at: f64::NEG_INFINITY,
        }
    }

    /// §2.4.4: the virtual round-trip time, and whether it counts.
    fn virtual_rtt(&self, srtt: f64) -> Option<f64> {
        (self.rtt_virt > 0.0 && self.rounds >= ROUNDS && srtt > 0.0).then(|| srtt.max(self.rtt_virt))
    }

    /// §2.4.4: the additive increase in segments a round trip, so that the window grows as fast in time as that of a flow with the
    /// virtual round-trip time, and the rate, too.
    fn increase(&self, srtt: f64) -> f64 {
        self.virtual_rtt(srtt).map_or(1.0, |rtt| (srtt / rtt) * (srtt / rtt))
    }

    /// §2.3.2: the average, once a round trip, and once a virtual one.
    fn average(&mut self, sample: &Sample, slow_start: bool) {
        self.acked += u64::from(sample.delivered);
        self.marked += u64::from(sample.marked.min(sample.delivered));
        let soon = self.virtual_rtt(sample.srtt).is_some_and(|rtt| sample.now - self.averaged_at < rtt);
        if sample.una <= self.round_end || soon {
            return;
        }
        if self.saw_mark && self.acked > 0 {
            self.alpha += G * (self.marked as f64 / self.acked as f64 - self.alpha);
            self.averaged_at = sample.now;
        }
        (self.acked, self.marked) = (0, 0);
        self.round_end = sample.next;
        self.rounds = self.rounds.saturating_add(u32::from(!slow_start));
    }

    /// §2.4.2: at once with the first mark, by half the average, then not again for a round trip.
    #[inline(never)]
    fn on_marks(&mut self, sample: &Sample, window: &mut Window) {
        self.saw_mark = true;
        let soon = self.virtual_rtt(sample.srtt).is_some_and(|rtt| sample.now - self.reduced_at < rtt);
        if sample.una <= self.reduced_end || soon {
            return;
        }
        window.cwnd = self.reduce(Cause::Mark, window.cwnd, window.cwnd).max(MIN_WINDOW);
        window.ssthresh = window.cwnd;
        (self.reduced_end, self.reduced_at) = (sample.next, sample.now);
    }

    /// §2.4.3: what is not marked increases the window, also in a round trip that has reduced it.
    fn grow(&self, unmarked: u32, sample: &Sample, window: &mut Window) {
        let mut unmarked = f64::from(unmarked);
        if window.cwnd < window.ssthresh {
            let room = (window.ssthresh - window.cwnd).min(unmarked);
            window.cwnd += room;
            unmarked -= room;
        }
        window.cwnd += unmarked * self.increase(sample.srtt) / window.cwnd;
    }
}

impl Law for Prague {
    #[inline(always)]
    fn acknowledged(&mut self, sample: &Sample, window: &mut Window) -> bool {
        if sample.next <= 1 {
            // The SYN's acknowledgement is none of data.
            return false;
        }
        let slow_start = window.cwnd < window.ssthresh;
        // §2.4.1: while a loss is recovered from, the sender reduces the window as for any other control.
        let own = sample.phase == Phase::Open;
        if own {
            if sample.marked > 0 {
                self.on_marks(sample, window);
            }
            let unmarked = sample.delivered.saturating_sub(sample.marked);
            // As in Linux: in slow start a window that is half used grows.
            let used = sample.limited || slow_start && window.cwnd < 2.0 * f64::from(sample.prior_in_flight);
            if unmarked > 0 && used {
                self.grow(unmarked, sample, window);
            }
        }
        self.average(sample, slow_start);
        own
    }

    fn avoid(&mut self, cwnd: f64, segments: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        // Where the sender grows the window itself, after a timeout.
        cwnd + f64::from(segments) / cwnd
    }

    fn reduce(&mut self, cause: Cause, cwnd: f64, flight: f64) -> f64 {
        match cause {
            Cause::Mark => cwnd * (1.0 - self.alpha / 2.0),
            // §2.4.1, RFC 9331 §4.3: as a Reno-friendly control.
            Cause::Loss | Cause::Timeout => Reno.reduce(cause, cwnd, flight),
        }
    }

    fn restarts_slowly(&self) -> bool {
        false
    }

    /// §2.5.1: the window, or what is in flight if that is more, over a round-trip time; twice that while the window doubles.
    fn pacing_rate(&self, window: &Window, in_flight: u32, srtt: f64) -> Option<f64> {
        let gain = if window.cwnd < window.ssthresh / 2.0 { 2.0 } else { 1.0 };
        (srtt > 0.0).then(|| gain * most(window.cwnd, f64::from(in_flight)) / srtt)
    }

    fn train(&self) -> Option<f64> {
        Some(TRAIN)
    }

    /// As Linux's: rounded down, a window of a few segments would be short by half a segment on average.
    fn rounds_up(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A connection in congestion avoidance whose window is acknowledged segment by segment.
    struct Bench {
        prague: Prague,
        window: Window,
        now: f64,
        una: u32,
    }

    impl Bench {
        fn new(cwnd: f64) -> Bench {
            Bench { prague: Prague::default(), window: Window { cwnd, ssthresh: cwnd }, now: 0.0, una: 1 }
        }

        /// A round trip of `rtt` in which the first so many segments are marked.
        fn round(&mut self, rtt: f64, marked: u32) {
            let flight = self.window.cwnd as u32;
            for i in 0..flight {
                self.now += rtt / f64::from(flight);
                self.una += 1;
                let sample = Sample {
                    now: self.now,
                    delivered: 1,
                    marked: u32::from(i < marked),
                    lost: 0,
                    rtt: Some(rtt),
                    srtt: rtt,
                    prior_in_flight: flight,
                    in_flight: flight - 1,
                    una: self.una,
                    next: self.una + flight - 1,
                    advanced: true,
                    limited: true,
                    phase: Phase::Open,
                    rate: None,
                };
                assert!(self.prague.acknowledged(&sample, &mut self.window));
            }
        }

        fn rounds(&mut self, n: u32, rtt: f64) {
            (0..n).for_each(|_| self.round(rtt, 0));
        }
    }

    /// draft-briscoe-iccrg-prague-congestion-control-04 §2.3.2: the average stays at 1 until a mark is seen, so the first halves the
    /// window (§2.4.2); then it is the moving average, and a window of marks reduces once.
    #[test]
    fn the_first_mark_halves_the_window() {
        let mut b = Bench::new(40.0);
        b.rounds(20, 0.05);
        assert_eq!(b.prague.alpha, 1.0);
        let before = b.window.cwnd;
        b.round(0.05, 5);
        // Half, and a little for the unmarked (§2.4.3).
        assert!(
            (b.window.cwnd - before / 2.0 - 55.0 / (before / 2.0)).abs() < 0.5,
            "{} of {before}",
            b.window.cwnd
        );
        b.rounds(30, 0.05);
        assert!(b.prague.alpha < 0.2, "{}", b.prague.alpha);
        let (before, alpha) = (b.window.cwnd, b.prague.alpha);
        b.round(0.05, 1);
        let law = before * (1.0 - alpha / 2.0);
        assert!((b.window.cwnd - law - 1.0).abs() < 0.3, "{} for {law} + 1", b.window.cwnd);
    }

    /// draft-briscoe-iccrg-prague-congestion-control-04 §2.4.4: from 500 round trips after slow start on, a flow of 5 ms gains what
    /// one of 25 ms does in rate, in the same time: a segment for each 25 ms of a window five times as large.
    #[test]
    fn short_round_trips_give_no_advantage() {
        let gain = |rtt: f64, rounds: u32| {
            let mut b = Bench::new(50.0);
            b.prague.rounds = rounds;
            let n = (1.0 / rtt).round() as u32;
            b.rounds(n, rtt);
            // Segments a second, gained in a second.
            (b.window.cwnd - 50.0) / rtt
        };
        assert!((gain(0.025, 500) / 1600.0 - 1.0).abs() < 0.05);
        assert!((gain(0.005, 500) / 1600.0 - 1.0).abs() < 0.05, "{}", gain(0.005, 500));
        assert!(gain(0.005, 0) > 20.0 * 1600.0);
        assert!((gain(0.05, 500) / 400.0 - 1.0).abs() < 0.05);
    }

    /// §2.4.4: nor does it reduce its window, or average, more often than once in 25 ms.
    #[test]
    fn reductions_are_a_virtual_round_trip_apart() {
        let mut b = Bench::new(50.0);
        b.prague.rounds = 500;
        b.prague.alpha = 0.2;
        b.round(0.005, 1);
        let after = b.window.cwnd;
        (0..4).for_each(|_| b.round(0.005, 1));
        assert!(b.window.cwnd > after, "{} from {after}", b.window.cwnd);
        b.rounds(1, 0.005);
        b.round(0.005, 1);
        assert!(b.window.cwnd < 0.95 * after, "{} from {after}", b.window.cwnd);
    }

    /// draft-briscoe-iccrg-prague-congestion-control-04 §2.4.1: a loss halves, whatever the average; §2.5.1 and §2.5.2: the window over a round
    /// trip, twice that in slow start, in trains of a quarter of a millisecond. RFC 9331 §4.3: not below two segments for marks.
    #[test]
    fn losses_rates_and_the_least_window() {
        let mut b = Bench::new(2.5);
        b.prague.alpha = 0.1;
        assert_eq!(b.prague.reduce(Cause::Loss, 40.0, 40.0), 20.0);
        let rate = |cwnd, ssthresh| b.prague.pacing_rate(&Window { cwnd, ssthresh }, 30, 0.05);
        assert_eq!((rate(40.0, 40.0), rate(40.0, f64::INFINITY)), (Some(800.0), Some(1600.0)));
        assert_eq!(b.prague.train(), Some(1.0 / 4096.0));
        b.prague.alpha = 1.0;
        (0..20).for_each(|_| b.round(0.05, 2));
        assert!(b.window.cwnd >= 2.0 && b.window.cwnd < 3.0, "{}", b.window.cwnd);
    }

    proptest! {
        /// draft-briscoe-iccrg-prague-congestion-control-04 §2.3.2, §2.4.1 to §2.4.3: whatever is marked, the average is a share; a mark costs no more than half
        /// and no less than nothing; a round trip adds a segment at most; a window with more marks is never the larger one.
        #[test]
        fn more_marks_never_leave_a_larger_window(
            cwnd in 2.0f64..400.0, rtt in 0.002f64..0.2, rounds in prop_oneof![Just(0), Just(500)],
            marks in prop::collection::vec((0u32..20, 0u32..20), 1..40),
        ) {
            let [mut few, mut many] = [0, 1].map(|_| Bench::new(cwnd));
            for b in [&mut few, &mut many] {
                b.prague.rounds = rounds;
            }
            for (some, more) in marks {
                for (b, marked) in [(&mut few, some), (&mut many, some + more)] {
                    let before = b.window.cwnd;
                    b.round(rtt, marked);
                    prop_assert!((0.0..=1.0).contains(&b.prague.alpha));
                    prop_assert!(b.window.cwnd >= (before / 2.0).max(MIN_WINDOW) - 1e-9);
                    prop_assert!(b.window.cwnd <= before + 1.0 + 1e-9, "{} from {before}", b.window.cwnd);
                }
                if more == 0 && few.window == many.window && few.prague == many.prague {
                    continue;
                }
                // Side by side only as long as neither has run ahead: afterwards the windows' sizes decide what is marked.
                prop_assert!(few.window.cwnd >= many.window.cwnd - 1e-9, "{} < {}", few.window.cwnd, many.window.cwnd);
                break;
            }
        }
    }
}

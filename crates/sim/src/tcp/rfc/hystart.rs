//! HyStart++ (RFC 9406): the first slow start ends before it overflows the path, once round-trip times grow from one round to the next, and goes on where they grew by
//! chance.
//!
//! A round trip that is clearly longer than the one before begins Conservative Slow Start (CSS), in which the window grows a quarter as fast. One that is shorter
//! again resumes slow start; after five rounds congestion avoidance begins. Both senders use it (`slow_start = "hystart++"`). It is not Linux's HyStart, which ends
//! slow start at once, and also by how closely acknowledgements follow each other (`linux/hystart.rs`).
//!
//! Windows are in segments, times in seconds.

use std::collections::VecDeque;

use crate::clock::Clock;

/// RFC 9406 §4.3: what it recommends.
const MIN_RTT_THRESH: f64 = 4e-3;
const MAX_RTT_THRESH: f64 = 16e-3;
const MIN_RTT_DIVISOR: f64 = 8.0;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// RFC 9406 §4.3: L, where the sender does not pace. A paced one has no limit.
const L: u32 = 8;

/// The measurements of this round and of the one before.
#[derive(Clone, Debug, PartialEq)]
pub struct HyStartPlusPlus {
    /// windowEnd: the round ends when this segment is acknowledged.
    window_end: u32,
    /// rttSampleCount.
    samples: u32,
    /// lastRoundMinRTT and currentRoundMinRTT; infinite before a sample.
    last: f64,
    current: f64,
    /// cssBaselineMinRtt; infinite in standard slow start.
    baseline: f64,
    /// Rounds of CSS that are complete.
    rounds: u32,
    /// L.
    limit: u32,
}

/// RFC 9406 §4.2, RttThresh: by how much a round has to be longer than one of `last`.
fn rtt_thresh(last: f64) -> f64 {
    (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

impl HyStartPlusPlus {
    /// Before the first data. `paced`: segments leave at a rate.
    #[must_use]
    pub fn new(paced: bool) -> HyStartPlusPlus {
        HyStartPlusPlus {
            // SND.NXT once the SYN is sent: the first acknowledgement of data begins the first round.
            window_end: 1,
            samples: 0,
            last: f64::INFINITY,
            current: f64::INFINITY,
            baseline: f64::INFINITY,
            rounds: 0,
            limit: if paced { u32::MAX } else { L },
        }
    }

    /// In slow start, `segments` more are acknowledged: all before `una`, of all before `next` that are sent. `rtt`: the round-trip time that the acknowledgement
    /// measures, if any. By how much the window may grow; `None`: slow start is over (RFC 9406 §4.2: ssthresh = cwnd).
    pub fn acknowledged(&mut self, una: u32, next: u32, segments: u32, rtt: Option<f64>) -> Option<f64> {
        if una > self.window_end {
            self.begin_round(next);
            if self.rounds >= CSS_ROUNDS {
                return None;
            }
        }
        // RFC 9406 §4.2: the window first, and then the round-trip time.
        let counted = f64::from(segments.min(self.limit));
        let growth = if self.is_conservative() { counted / CSS_GROWTH_DIVISOR } else { counted };
        if let Some(rtt) = rtt {
            self.measured(rtt);
        }
        Some(growth)
    }

    /// RFC 9406 §4.2: windowEnd is acknowledged. The round in which CSS began counts as its first, however little was left of it.
    fn begin_round(&mut self, next: u32) {
        self.window_end = next;
        self.rounds += u32::from(self.is_conservative());
        self.last = std::mem::replace(&mut self.current, f64::INFINITY);
        self.samples = 0;
    }

    /// Whether this is CSS.
    fn is_conservative(&self) -> bool {
        self.baseline < f64::INFINITY
    }

    /// RFC 9406 §4.2: a sample of the round.
    fn measured(&mut self, rtt: f64) {
        self.current = self.current.min(rtt);
        self.samples += 1;
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        if self.is_conservative() {
            if self.current < self.baseline {
                // The delay was no queue: slow start goes on.
                self.baseline = f64::INFINITY;
                self.rounds = 0;
            }
        } else if self.last < f64::INFINITY && self.current >= self.last + rtt_thresh(self.last) {
            self.baseline = self.current;
        }
    }
}

/// The first slow start of a sender that times one segment a round trip otherwise (RFC 6298 §3): RFC 9406 §4.3 wants eight round-trip times in each round, so it
/// remembers when each segment was sent. None is sent again before it is over.
#[derive(Clone, Debug)]
pub struct FirstSlowStart<C> {
    law: HyStartPlusPlus,
    /// When the segments that are not acknowledged were sent, in their order.
    sent: VecDeque<C>,
    /// The first of them.
    una: u32,
}

impl<C: Clock> FirstSlowStart<C> {
    /// Before the SYN.
    pub fn new() -> FirstSlowStart<C> {
        FirstSlowStart { law: HyStartPlusPlus::new(false), sent: VecDeque::new(), una: 0 }
    }

    /// A segment leaves that was never sent.
    pub fn sent(&mut self, now: C) {
        self.sent.push_back(now);
    }

    /// All before `una` are acknowledged. The round-trip time of the last of them: what a receiver has delayed the acknowledgement for is not in it. As for
    /// [`HyStartPlusPlus::acknowledged`].
    pub fn acknowledged(&mut self, una: u32, next: u32, segments: u32, now: C) -> Option<f64> {
        let arrived = (una - std::mem::replace(&mut self.una, una)) as usize;
        let rtt = self.sent.drain(..arrived).next_back().map(|at| C::secs_of(now.since(at)));
        self.law.acknowledged(una, next, segments, rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 9406 §4.2 from the samples of each round, all kept.
    struct Slow {
        end: u32,
        rounds: Vec<Vec<f64>>,
        /// The round in which CSS began, and its cssBaselineMinRtt.
        css: Option<(usize, f64)>,
    }

    fn shortest(samples: &[f64]) -> Option<f64> {
        samples.iter().copied().min_by(f64::total_cmp)
    }

    impl Slow {
        fn new() -> Slow {
            Slow { end: 1, rounds: vec![Vec::new()], css: None }
        }

        fn acknowledged(
            &mut self,
            una: u32,
            next: u32,
            segments: u32,
            rtt: Option<f64>,
            l: u32,
        ) -> Option<f64> {
            if una > self.end {
                self.end = next;
                self.rounds.push(Vec::new());
            }
            let now = self.rounds.len() - 1;
            if self.css.is_some_and(|(began, _)| now - began == 5) {
                return None;
            }
            let n = f64::from(if segments > l { l } else { segments });
            let growth = if self.css.is_some() { n / 4.0 } else { n };
            let Some(rtt) = rtt else { return Some(growth) };
            self.rounds[now].push(rtt);
            let current = shortest(&self.rounds[now]).expect("a sample");
            if self.rounds[now].len() >= 8 {
                self.css = match (self.css, shortest(&self.rounds[now - 1])) {
                    (Some((_, baseline)), _) if current < baseline => None,
                    (None, Some(last)) if current >= last + (last / 8.0).clamp(0.004, 0.016) => {
                        Some((now, current))
                    }
                    (as_it_was, _) => as_it_was,
                };
            }
            Some(growth)
        }
    }

    proptest! {
        /// RFC 9406 §4.2: whatever round-trip times, acknowledgements and pauses there are, in both.
        #[test]
        fn agrees_with_the_text(
            acks in prop::collection::vec((1u32..14, 0u32..30, prop::option::weighted(0.9, 0usize..6)), 1..600),
            base in 0.001f64..0.3, paced: bool,
        ) {
            let (mut fast, mut slow) = (HyStartPlusPlus::new(paced), Slow::new());
            let (mut una, mut next) = (1, 40);
            for (segments, sent, rtt) in acks {
                una += segments;
                next = una.max(next + sent);
                // Steps of a tenth: some round trips are above the threshold, some below.
                let rtt = rtt.map(|step| base * (1.0 + 0.1 * step as f64));
                let growth = fast.acknowledged(una, next, segments, rtt);
                prop_assert_eq!(growth, slow.acknowledged(una, next, segments, rtt, if paced { u32::MAX } else { 8 }));
                if growth.is_none() {
                    break;
                }
            }
        }

        /// RFC 9406 §4.2: round trips as long as those of the round before leave slow start as it is, however they vary within a round.
        #[test]
        fn a_path_without_a_queue_is_left_alone(rtts in prop::collection::vec(0.1f64..0.5, 7), rounds in 2u32..60) {
            let mut law = HyStartPlusPlus::new(false);
            let mut una = 1;
            for _ in 0..rounds {
                let next = una + 8;
                for rtt in rtts.iter().chain([&0.1]) {
                    una += 1;
                    prop_assert_eq!(law.acknowledged(una, next, 1, Some(*rtt)), Some(1.0));
                }
            }
        }
    }

    /// RFC 9406 §4.3: an eighth of the round trip, but 4 ms at least and 16 ms at most.
    #[test]
    fn the_threshold_is_an_eighth_within_bounds() {
        for (last, thresh) in [(0.001, 0.004), (0.032, 0.004), (0.08, 0.01), (0.128, 0.016), (0.6, 0.016)] {
            assert_eq!(rtt_thresh(last), thresh);
        }
    }

    /// Rounds of `samples` acknowledgements with these round-trip times, in ms; the growth of each round, and none after slow start is over.
    fn rounds(samples: u32, rtts: &[u32]) -> Vec<Option<f64>> {
        let mut law = HyStartPlusPlus::new(false);
        let mut una = 1;
        let mut round = |rtt: &u32| {
            let next = una + samples;
            (0..samples).try_fold(0.0, |sum, _| {
                una += 1;
                law.acknowledged(una, next, 1, Some(f64::from(*rtt) / 1000.0)).map(|growth| sum + growth)
            })
        };
        rtts.iter().map(&mut round).collect()
    }

    /// RFC 9406 §4.2 and §4.3, by hand: the threshold for 40 ms is 5 ms; eight samples; a quarter; five rounds, of which the first is the one that it began in;
    /// back when a round is shorter than the one that began it, and five rounds anew from then on.
    #[test]
    fn rounds_by_hand() {
        let (whole, css) = (Some(10.0), Some(2.5));
        let enters = Some(8.0 + 0.5);
        let resumes = Some(2.0 + 2.0);
        assert_eq!(rounds(10, &[40, 44, 48, 52]), [whole; 4], "by less than the threshold each");
        assert_eq!(rounds(10, &[40, 45, 45, 45, 45, 45, 45]), [whole, enters, css, css, css, css, None]);
        assert_eq!(
            rounds(10, &[40, 50, 90, 49, 49, 60, 60, 60, 60, 60, 60]),
            [whole, enters, css, resumes, whole, enters, css, css, css, css, None]
        );
        assert_eq!(rounds(7, &[40, 80, 120, 160, 200, 240, 280]), [Some(7.0); 7], "too few samples");
        assert_eq!(rounds(8, &[40, 80]), [Some(8.0); 2], "the eighth begins it");
    }

    /// The round-trip time is of the last segment that an acknowledgement stands for, by when it was sent.
    #[test]
    fn each_segment_is_timed() {
        use crate::clock::Exact;
        use inprofile_core::units::Duration;
        let mut first = FirstSlowStart::<Exact>::new();
        let at = |ms| Exact(Duration::from_millis(ms).0);
        for ms in [0, 100, 110, 120, 125] {
            first.sent(at(ms));
        }
        assert_eq!(first.acknowledged(3, 5, 2, at(150)), Some(2.0));
        assert_eq!(first.law.current, 0.04);
        assert_eq!(first.acknowledged(5, 5, 2, at(160)), Some(2.0));
        assert_eq!((first.law.current, first.sent.len()), (0.035, 0));
    }
}

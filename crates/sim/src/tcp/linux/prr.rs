//! Proportional rate reduction (RFC 9937, and RFC 6937 before it): during recovery the window goes down to the threshold in proportion to what
//! arrives, instead of waiting for half of it.

inprofile_core::choice! {
    /// Proportional rate reduction: how the window comes down during recovery. The texts differ in what a recovery starts from, and in what it
    /// may send while less than the threshold is in flight.
    pub enum PrrRules {
        /// As in Linux: from the window, with the bounds of RFC 9937.
        Linux = "linux",
        /// RFC 9937: from what is in flight; slow start towards the threshold only while nothing more is lost.
        Rfc9937 = "rfc9937",
        /// RFC 6937, its predecessor: slow start towards the threshold whatever is lost.
        Rfc6937 = "rfc6937",
    }
}

/// The outstanding segments when a recovery begins.
#[derive(Clone, Copy, Debug)]
pub struct Outstanding {
    /// The window.
    pub cwnd: f64,
    /// SND.NXT − SND.UNA.
    pub flight: u32,
    /// Of these, the ones that are SACKed.
    pub sacked: u32,
    /// Segments that have arrived by the acknowledgement with which it begins.
    pub delivered: u32,
}

/// Its state during one recovery, in segments.
#[derive(Clone, Debug)]
pub struct Prr {
    rules: PrrRules,
    /// RecoverFS; Linux's `prior_cwnd`.
    recover_fs: f64,
    /// prr_delivered: segments that have arrived since.
    delivered: u32,
    /// prr_out: segments that were sent since.
    out: u32,
}

impl Prr {
    /// A recovery begins: RecoverFS (RFC 9937 §6.1, RFC 6937 §3).
    pub fn new(rules: PrrRules, at: &Outstanding) -> Prr {
        let start = match rules {
            PrrRules::Linux => at.cwnd,
            // Of what is outstanding, the segments that may still arrive.
            PrrRules::Rfc9937 => f64::from(at.flight - at.sacked + at.delivered),
            PrrRules::Rfc6937 => f64::from(at.flight),
        };
        Prr { rules, recover_fs: start.max(1.0), delivered: 0, out: 0 }
    }

    /// RFC 9937 §6.3: a segment is sent.
    pub fn sent(&mut self) {
        self.out += 1;
    }

    /// RFC 9937 §6.2: so many segments have arrived; how many may be sent now. `pipe` are in flight; `safe` (SafeACK): SND.UNA moved on, and
    /// nothing more was found lost.
    pub fn allow(&mut self, delivered: u32, pipe: u32, ssthresh: f64, safe: bool) -> f64 {
        let (arrived, pipe) = (f64::from(delivered), f64::from(pipe));
        self.delivered += delivered;
        let (all, out) = (f64::from(self.delivered), f64::from(self.out));
        let allowed = if pipe > ssthresh {
            (all * ssthresh / self.recover_fs).ceil() - out
        } else {
            // PRR-SSRB: slow start up to the threshold; by RFC 9937 only where recovery makes progress, otherwise PRR-CRB.
            let grows = safe || self.rules == PrrRules::Rfc6937;
            let by_arrivals = (all - out).max(arrived) + f64::from(u8::from(grows));
            by_arrivals.min(ssthresh - pipe)
        };
        // The first acknowledgement of a recovery retransmits, whatever the counts.
        allowed.max(if self.out > 0 { 0.0 } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A recovery with all of the window outstanding, by Linux's rules.
    fn from_window(cwnd: u32) -> Prr {
        of(PrrRules::Linux, cwnd, 0, 0)
    }

    fn of(rules: PrrRules, flight: u32, sacked: u32, delivered: u32) -> Prr {
        Prr::new(rules, &Outstanding { cwnd: f64::from(flight), flight, sacked, delivered })
    }

    /// RFC 6937 §4: a window of 20, half of it the threshold, one loss: a segment for every other acknowledgement.
    #[test]
    fn the_window_goes_down_with_what_arrives() {
        let mut prr = from_window(20);
        let mut pipe = 19;
        let mut sent = Vec::new();
        for _ in 0..19 {
            pipe -= 1;
            let n = prr.allow(1, pipe, 10.0, false) as u32;
            for _ in 0..n {
                prr.sent();
            }
            pipe += n;
            sent.push(n);
        }
        assert_eq!(sent.iter().sum::<u32>(), 10);
        assert!(sent.iter().all(|n| *n <= 1), "{sent:?}");
        assert_eq!(pipe, 10);
    }

    /// RFC 6937 §3: after heavy losses it sends as much as arrives, and one more where there is progress.
    #[test]
    fn below_the_threshold_it_grows_as_slow_start_does() {
        let mut prr = from_window(20);
        assert_eq!(prr.allow(1, 2, 10.0, false), 1.0);
        prr.sent();
        assert_eq!(prr.allow(1, 2, 10.0, true), 2.0);
        prr.sent();
        prr.sent();
        assert_eq!(prr.allow(1, 9, 10.0, true), 1.0);
    }

    /// RFC 9937 §6.1: what was SACKed before cannot arrive any more, what the first acknowledgement tells of counts. 20 outstanding, three SACKed,
    /// one of them now: eighteen are to arrive. RFC 6937 §3 has all twenty. Either way the recovery ends with the threshold in flight or less.
    #[test]
    fn recovery_starts_from_what_may_still_arrive() {
        assert_eq!(of(PrrRules::Rfc9937, 20, 3, 1).recover_fs, 18.0);
        assert_eq!(of(PrrRules::Rfc6937, 20, 3, 1).recover_fs, 20.0);
        assert_eq!(of(PrrRules::Rfc9937, 0, 0, 1).recover_fs, 1.0, "the last outstanding one arrived");
        // The tenth to arrive: half of 18 are ⌈10 · 10 / 18⌉ = 6 sent, of 20 five.
        for (rules, sent) in [(PrrRules::Rfc9937, 6.0), (PrrRules::Rfc6937, 5.0), (PrrRules::Linux, 5.0)] {
            let mut prr = of(rules, 20, 3, 1);
            for _ in 0..9 {
                prr.allow(1, 15, 10.0, true);
            }
            assert_eq!(prr.allow(1, 15, 10.0, true), sent, "{rules:?}");
        }
    }

    /// RFC 6937 §3, PRR-SSRB: a segment more than what arrives, always. RFC 9937 §6.2: only where nothing more is lost.
    #[test]
    fn only_the_older_text_grows_through_further_losses() {
        for (rules, losing) in [(PrrRules::Rfc9937, 2.0), (PrrRules::Linux, 2.0), (PrrRules::Rfc6937, 3.0)] {
            assert_eq!(of(rules, 20, 0, 0).allow(2, 4, 10.0, false), losing, "{rules:?}");
            assert_eq!(of(rules, 20, 0, 0).allow(2, 4, 10.0, true), 3.0, "{rules:?}");
            assert_eq!(
                of(rules, 20, 0, 0).allow(5, 9, 10.0, true),
                1.0,
                "{rules:?}: no further than the threshold"
            );
        }
    }

    proptest! {
        /// RFC 9937 §7 and RFC 6937 §3: whatever is lost, and whenever, no more is in flight than the threshold or what already was, but for the first
        /// retransmission; and what is sent is never more than what arrives, as long as more than the threshold is in flight.
        #[test]
        fn the_flight_comes_down_to_the_threshold(
            rules in prop::sample::select(vec![PrrRules::Linux, PrrRules::Rfc9937, PrrRules::Rfc6937]),
            flight in 4u32..200, share in 0.3f64..0.9,
            acks in prop::collection::vec((1u32..4, 0u32..4), 1..200),
        ) {
            let ssthresh = (f64::from(flight) * share).floor().max(2.0);
            let mut prr = of(rules, flight, 0, 0);
            let (mut pipe, mut arrived, mut sent) = (flight, 0, 0);
            for (i, (delivered, lost)) in acks.into_iter().enumerate() {
                pipe -= pipe.min(delivered + lost);
                arrived += delivered;
                let allowed = prr.allow(delivered, pipe, ssthresh, lost == 0);
                prop_assert!(allowed >= 0.0);
                let most = ssthresh.max(f64::from(pipe)) + f64::from(u8::from(i == 0));
                // A recovery's acknowledgements tell of no more than what was in flight when it began.
                prop_assume!(arrived <= flight);
                let in_proportion = f64::from(pipe) > ssthresh;
                (0..allowed as u32).for_each(|_| prr.sent());
                sent += allowed as u32;
                pipe += allowed as u32;
                if in_proportion {
                    prop_assert!(f64::from(sent) <= f64::from(arrived).max(1.0), "{sent} for {arrived}");
                } else {
                    prop_assert!(f64::from(pipe) <= most, "{pipe} in flight, threshold {ssthresh}");
                }
            }
        }
    }
}

//! DCTCP (RFC 8257): the window is reduced by half the share of segments that were marked, so that a queue which marks early and
//! steeply keeps it full and short. Growth, and what a loss does, are Reno's.
//!
//! For networks under one administration: beside senders that halve their window it takes the link (RFC 8257's deployment issues). In the text's words:
//! bytes are full segments here; and as in Linux, what SACK blocks tell of counts when they tell of it, where §3.3 waits until it is
//! acknowledged.

use super::reno::Reno;
use super::{Cause, Law, Sample, Window};

/// RFC 8257 §4.2: the weight of the last round trip (g).
pub(super) const G: f64 = 1.0 / 16.0;

/// The estimate of how many segments are marked (RFC 8257 §3.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Dctcp {
    /// DCTCP.Alpha.
    alpha: f64,
    /// DCTCP.WindowEnd: the observation ends when more than this is acknowledged.
    window_end: u32,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked, in segments.
    acked: u64,
    marked: u64,
}

impl Default for Dctcp {
    /// RFC 8257 §4.2: 1, so that the first mark halves the window, as a classic sender's.
    fn default() -> Dctcp {
        Dctcp { alpha: 1.0, window_end: 0, acked: 0, marked: 0 }
    }
}

/// RFC 8257 §3.3, step 6.
pub(super) fn average(alpha: f64, fraction: f64) -> f64 {
    alpha * (1.0 - G) + G * fraction
}

/// RFC 8257 §3.3, step 9.
fn reduced(cwnd: f64, alpha: f64) -> f64 {
    cwnd * (1.0 - alpha / 2.0)
}

impl Law for Dctcp {
    fn acknowledged(&mut self, sample: &Sample, _: &mut Window) -> bool {
        if sample.next <= 1 {
            // The SYN's acknowledgement is none of data.
            return false;
        }
        // RFC 8257 §3.3, steps 1 to 3.
        self.acked += u64::from(sample.delivered);
        self.marked += u64::from(sample.marked);
        // Steps 4 to 8: once a window of data.
        if sample.una > self.window_end {
            if self.acked > 0 {
                self.alpha = average(self.alpha, self.marked as f64 / self.acked as f64);
            }
            self.window_end = sample.next;
            (self.acked, self.marked) = (0, 0);
        }
        false
    }

    fn avoid(&mut self, cwnd: f64, segments: u32, at: impl FnOnce() -> (f64, f64)) -> f64 {
        // RFC 8257 §3.4: as conventional TCP.
        Reno.avoid(cwnd, segments, at)
    }

    fn reduce(&mut self, cause: Cause, cwnd: f64, flight: f64) -> f64 {
        match cause {
            Cause::Mark => reduced(cwnd, self.alpha),
            // RFC 8257 §3.5: a loss is answered as conventional TCP does.
            Cause::Loss | Cause::Timeout => Reno.reduce(cause, cwnd, flight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Phase;
    use super::*;
    use proptest::prelude::*;

    /// An acknowledgement of everything before `una`, of `delivered` segments, so many of them marked; all up to `next` are sent.
    pub(crate) fn sample(una: u32, next: u32, delivered: u32, marked: u32) -> Sample {
        Sample {
            now: 0.0,
            delivered,
            marked,
            lost: 0,
            rtt: None,
            srtt: 0.1,
            prior_in_flight: next - una + delivered,
            in_flight: next - una,
            una,
            next,
            advanced: true,
            limited: true,
            phase: Phase::Open,
            rate: None,
        }
    }

    /// Windows of ten segments, each with this many marked; the average after each.
    fn windows(dctcp: &mut Dctcp, from: u32, marked: &[u32]) -> Vec<f64> {
        let mut window = Window { cwnd: 10.0, ssthresh: 10.0 };
        let mut una = from;
        marked
            .iter()
            .map(|marked| {
                for i in 0..10 {
                    una += 1;
                    let own =
                        dctcp.acknowledged(&sample(una, una + 9, 1, u32::from(i < *marked)), &mut window);
                    assert!(!own);
                }
                dctcp.alpha
            })
            .collect()
    }

    proptest! {
        /// RFC 8257 §3.3: where a fixed share is marked, the average comes to that share, from wherever it was, by a sixteenth of the
        /// distance a window.
        #[test]
        fn the_average_comes_to_the_share_that_is_marked(marked in 0u32..=10) {
            let mut dctcp = Dctcp::default();
            let alphas = windows(&mut dctcp, 1, &[marked; 150]);
            let share = f64::from(marked) / 10.0;
            prop_assert!((alphas[149] - share).abs() < 1e-3, "{} for {share}", alphas[149]);
            for pair in alphas[10..40].windows(2) {
                let (before, after) = (pair[0] - share, pair[1] - share);
                prop_assert!((after - before * 15.0 / 16.0).abs() < 1e-12, "{pair:?}");
            }
        }

        /// RFC 8257 §3.4, §3.5: what is not marked increases the window, and what is lost reduces it, as under Reno, whatever the
        /// average is.
        #[test]
        fn growth_and_loss_are_renos(cwnd in 4.0f64..1e4, flight in 4.0f64..1e4, marked in 0u32..=10) {
            let mut dctcp = Dctcp::default();
            windows(&mut dctcp, 1, &[marked; 20]);
            prop_assert_eq!(dctcp.avoid(cwnd, 2, || (0.0, 0.1)), Reno.avoid(cwnd, 2, || (0.0, 0.1)));
            prop_assert_eq!(dctcp.reduce(Cause::Loss, cwnd, flight), Reno.reduce(Cause::Loss, cwnd, flight));
            prop_assert_eq!(dctcp.reduce(Cause::Timeout, cwnd, flight), Reno.reduce(Cause::Timeout, cwnd, flight));
        }

        /// The reduction lies between none and that of a loss.
        #[test]
        fn a_mark_never_costs_more_than_a_loss(cwnd in 2.0f64..1e4, marks in prop::collection::vec(0u32..=10, 0..40)) {
            let mut dctcp = Dctcp::default();
            windows(&mut dctcp, 1, &marks);
            let marked = dctcp.clone().reduce(Cause::Mark, cwnd, cwnd);
            prop_assert!(marked <= cwnd && marked >= dctcp.reduce(Cause::Loss, cwnd, cwnd));
        }
    }
}

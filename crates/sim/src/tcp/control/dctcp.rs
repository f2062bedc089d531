//! DCTCP (RFC 8257): the window is reduced by half the share of segments that were marked, so that a queue which marks early and
//! steeply keeps it full and short. Growth, and what a loss does, are Reno's.
//!
//! For networks under one administration: beside senders that halve their window it takes the link (RFC 8257's deployment issues). In the text's words:
//! bytes are full segments here; and as in Linux (`tcp_dctcp.c`), what SACK blocks tell of counts when they tell of it, where §3.3 waits until it is
//! acknowledged, windows are whole, and the average is in 1024ths, each term of which is rounded down.

use super::reno::{LinuxReno, whole};
use super::{Cause, Law, Sample, Window};

/// RFC 8257 §4.2: the weight of the last round trip (g), a sixteenth, as a shift.
const G: u32 = 4;
/// An average of one.
const ONE: u32 = 1024;

/// The estimate of how many segments are marked (RFC 8257 §3.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Dctcp {
    /// DCTCP.Alpha, in 1024ths.
    alpha: u32,
    /// DCTCP.WindowEnd: the observation ends when everything before this is acknowledged.
    window_end: u32,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked, in segments.
    acked: u32,
    marked: u32,
    /// Growth, and what a loss does.
    reno: LinuxReno,
}

impl Default for Dctcp {
    /// RFC 8257 §4.2: 1, so that the first mark halves the window, as a classic sender's.
    fn default() -> Dctcp {
        Dctcp { alpha: ONE, window_end: 0, acked: 0, marked: 0, reno: LinuxReno::default() }
    }
}

/// RFC 8257 §3.3, step 6. An average below g comes to nothing at once.
fn average(alpha: u32, marked: u32, acked: u32) -> u32 {
    let rest = if alpha >> G == 0 { 0 } else { alpha - (alpha >> G) };
    let news = (u64::from(marked) * u64::from(ONE >> G) / u64::from(acked.max(1))) as u32;
    (rest + news).min(ONE)
}

/// RFC 8257 §3.3, step 9.
fn reduced(cwnd: u32, alpha: u32) -> u32 {
    cwnd - (u64::from(cwnd) * u64::from(alpha) / u64::from(2 * ONE)) as u32
}

impl Law for Dctcp {
    fn acknowledged(&mut self, sample: &Sample, _: &mut Window) -> bool {
        if sample.next <= 1 {
            // The SYN's acknowledgement is none of data.
            return false;
        }
        // RFC 8257 §3.3, steps 1 to 3.
        self.acked += sample.delivered;
        self.marked += sample.marked;
        // Steps 4 to 8: once a window of data; as in Linux, with the last segment of one.
        if sample.una >= self.window_end {
            self.alpha = average(self.alpha, self.marked, self.acked);
            self.window_end = sample.next;
            (self.acked, self.marked) = (0, 0);
        }
        false
    }

    fn avoid(&mut self, cwnd: f64, segments: u32, at: impl FnOnce() -> (f64, f64)) -> f64 {
        // RFC 8257 §3.4: as conventional TCP.
        self.reno.avoid(cwnd, segments, at)
    }

    fn reduce(&mut self, cause: Cause, cwnd: f64, flight: f64) -> f64 {
        // RFC 8257 §3.5: a loss is answered as conventional TCP does.
        let half = self.reno.reduce(cause, cwnd, flight);
        if cause == Cause::Mark { f64::from(reduced(whole(cwnd), self.alpha)) } else { half }
    }

    fn timed_out_again(&mut self, cwnd: f64) {
        self.reno.timed_out_again(cwnd);
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
    fn windows(dctcp: &mut Dctcp, from: u32, marked: &[u32]) -> Vec<u32> {
        let mut window = Window { cwnd: 10.0, ssthresh: 10.0 };
        let mut una = from;
        marked
            .iter()
            .map(|marked| {
                for i in 0..10 {
                    una += 1;
                    let own =
                        dctcp.acknowledged(&sample(una, una + 10, 1, u32::from(i < *marked)), &mut window);
                    assert!(!own);
                }
                dctcp.alpha
            })
            .collect()
    }

    /// RFC 8257 §3.3 in 1024ths, by hand: 1024 less 64, then 64 × 3/10 more; the window less 979 / 2048 of it, rounded down. An average below 16 is
    /// nothing at once.
    #[test]
    fn the_average_is_in_1024ths() {
        assert_eq!(average(1024, 3, 10), 960 + 19);
        assert_eq!((reduced(41, 979), reduced(40, 51), reduced(41, 51)), (22, 40, 40));
        assert_eq!((average(15, 0, 10), average(16, 0, 10)), (0, 15));
        assert_eq!(average(1024, 10, 10), 1024);
        let mut dctcp = Dctcp::default();
        // The first observation is of one segment; the next, of ten, ends with the first of the second row.
        assert_eq!(windows(&mut dctcp, 1, &[3, 0]), [1024, 960 + 12]);
        assert_eq!(dctcp.reduce(Cause::Mark, 41.0, 1.0), f64::from(reduced(41, dctcp.alpha)));
    }

    proptest! {
        /// RFC 8257 §3.3: where a fixed share is marked, the average comes to that share, by a sixteenth of the distance a window; above it, it stays
        /// where a sixteenth, rounded down, is no more than what comes.
        #[test]
        fn the_average_comes_to_the_share_that_is_marked(marked in 0u32..=10) {
            let mut dctcp = Dctcp::default();
            let alphas = windows(&mut dctcp, 1, &[marked; 150]);
            let share = f64::from(marked) * 102.4;
            let last = f64::from(alphas[149]);
            prop_assert!(last >= share - 16.0 && last < share + 16.0, "{last} for {share}");
            for pair in alphas[10..40].windows(2) {
                let (before, after) = (f64::from(pair[0]) - share, f64::from(pair[1]) - share);
                let law = before * 15.0 / 16.0;
                prop_assert!(pair[0] < 32 || after > law - 1.01 && after < law + 1.01, "{pair:?}");
            }
        }

        /// RFC 8257 §3.4, §3.5: what is not marked increases the window, and what is lost reduces it, as under Reno, whatever the
        /// average is.
        #[test]
        fn growth_and_loss_are_renos(cwnd in 4u32..10_000, segments in 1u32..9, marked in 0u32..=10) {
            let (mut dctcp, mut reno) = (Dctcp::default(), LinuxReno::default());
            windows(&mut dctcp, 1, &[marked; 20]);
            let cwnd = f64::from(cwnd);
            for _ in 0..40 {
                let none = || unreachable!("Reno asks for no time");
                prop_assert_eq!(dctcp.avoid(cwnd, segments, none), reno.avoid(cwnd, segments, none));
            }
            prop_assert_eq!(dctcp.reduce(Cause::Loss, cwnd, 1.0), reno.reduce(Cause::Loss, cwnd, 1.0));
            prop_assert_eq!(dctcp.reduce(Cause::Timeout, cwnd, 1.0), reno.reduce(Cause::Timeout, cwnd, 1.0));
        }

        /// The reduction lies between none and that of a loss; of an odd window, that is half a segment less.
        #[test]
        fn a_mark_never_costs_more_than_a_loss(cwnd in 2u32..10_000, marks in prop::collection::vec(0u32..=10, 0..40)) {
            let mut dctcp = Dctcp::default();
            windows(&mut dctcp, 1, &marks);
            let cwnd = f64::from(cwnd);
            let marked = dctcp.clone().reduce(Cause::Mark, cwnd, cwnd);
            prop_assert!(marked <= cwnd && marked >= dctcp.reduce(Cause::Loss, cwnd, cwnd));
        }
    }
}

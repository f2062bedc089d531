//! Reno's window (RFC 5681): a segment more in each round trip, half of what is in flight after congestion.

use super::{Cause, Law};

/// It remembers nothing.
#[derive(Clone, Copy, Debug)]
pub struct Reno;

impl Law for Reno {
    fn avoid(&mut self, cwnd: f64, segments: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        // RFC 5681 §3.1: one segment for a window of them.
        cwnd + f64::from(segments) / cwnd
    }

    fn reduce(&mut self, _: Cause, _: f64, flight: f64) -> f64 {
        // RFC 5681, Eq. (4): half of FlightSize.
        flight / 2.0
    }
}

/// Segments that were acknowledged since the window last grew (`snd_cwnd_cnt`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(u32);

impl Count {
    /// `segments` more are acknowledged, and so many as `each` make the window grow by one: by how many it grows (`tcp_cong_avoid_ai`).
    #[inline(always)]
    pub(super) fn growth(&mut self, segments: u32, each: u32) -> u32 {
        let mut growth = 0;
        // What was counted while a segment more took longer is worth one, however much it is.
        if self.0 >= each {
            self.0 = 0;
            growth = 1;
        }
        self.0 += segments;
        if self.0 >= each {
            growth += self.0 / each;
            self.0 %= each;
        }
        growth
    }

    /// The window is being reduced.
    pub(super) fn reset(&mut self) {
        self.0 = 0;
    }
}

/// A window in whole segments, at least one.
#[inline(always)]
pub(super) fn whole(cwnd: f64) -> u32 {
    (cwnd as u32).max(1)
}

/// It remembers what it has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxReno {
    count: Count,
}

impl Law for LinuxReno {
    #[inline(always)]
    fn avoid(&mut self, cwnd: f64, segments: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        // RFC 5681 §3.1: a segment more for a window of them.
        cwnd + f64::from(self.count.growth(segments, whole(cwnd)))
    }

    fn reduce(&mut self, _: Cause, cwnd: f64, _: f64) -> f64 {
        self.count.reset();
        f64::from(whole(cwnd) / 2)
    }

    fn timed_out_again(&mut self, _: f64) {
        self.count.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn none() -> (f64, f64) {
        unreachable!("Reno asks for no time")
    }

    /// RFC 5681 §3.1, in whole segments: ten acknowledgements take ten to eleven, eleven more to twelve. The half of eleven is five, and the
    /// count begins anew.
    #[test]
    fn a_window_of_acknowledgements_is_a_segment() {
        let mut reno = LinuxReno::default();
        let mut cwnd = 10.0;
        let mut windows = Vec::new();
        for _ in 0..26 {
            cwnd = reno.avoid(cwnd, 1, none);
            windows.push(cwnd as u32);
        }
        let law: Vec<u32> = [(10, 9), (11, 11), (12, 6)].iter().flat_map(|(w, n)| vec![*w; *n]).collect();
        assert_eq!(windows, law);
        assert_eq!(reno.reduce(Cause::Loss, 11.0, 3.0), 5.0);
        assert_eq!(reno, LinuxReno::default());
    }

    /// Linux's `tcp_cong_avoid_ai`: what is counted while a segment takes a hundred is worth one segment when it takes ten, and the acknowledgement that
    /// tells is counted as well.
    #[test]
    fn what_was_counted_at_a_lower_rate_is_one_segment() {
        let mut count = Count::default();
        assert_eq!(count.growth(70, 100), 0);
        assert_eq!(count.growth(3, 10), 1);
        assert_eq!(count, Count(3));
        assert_eq!(count.growth(27, 10), 3);
        assert_eq!(count, Count(0));
    }

    proptest! {
        /// However many segments an acknowledgement stands for, none is lost: with a fixed number to each, growth is what was acknowledged divided
        /// by it.
        #[test]
        fn nothing_acknowledged_is_lost(each in 2u32..50, acks in prop::collection::vec(1u32..100, 1..40)) {
            let mut count = Count::default();
            let grown: u32 = acks.iter().map(|segments| count.growth(*segments, each)).sum();
            prop_assert_eq!(grown, acks.iter().sum::<u32>() / each);
        }
    }
}

//! A shaper with absolute deadlines: a packet may leave when the one before it has been sent at the set rate, counted from when
//! that one *should* have left. So a caller that wakes late sends at once what is due, and no rate is lost.
//!
//! Non-goal: a burst after an idle period. An idle link starts afresh at the next arrival, like a wire.

use std::collections::VecDeque;

use inprofile_core::units::{Bytes, Duration, Rate, Time};

/// A link of a set rate.
#[derive(Clone, Copy, Debug)]
pub struct Shaper {
    rate: Rate,
    /// When the packet on the link will have been sent; `None`: idle.
    until: Option<Time>,
}

impl Shaper {
    /// An idle link. The rate must not be zero.
    #[must_use]
    pub fn new(rate: Rate) -> Shaper {
        Shaper { rate, until: None }
    }

    /// When the link is next free; `None` if it is now.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.until
    }

    /// A packet goes onto the link, at `at`: an arrival at an idle link, or the deadline of the one before.
    pub fn start(&mut self, at: Time, size: Bytes) {
        self.until = Some(at + self.rate.serialise(size));
    }

    /// Nothing follows: the link goes idle.
    pub fn rest(&mut self) {
        self.until = None;
    }

    /// The set rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Another rate, from the next packet on. It must not be zero.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }
}

// Propagation delay: packets come out a fixed time after they went in, in order.

/// A wire of a set length. It holds what fits into its delay at the rate of who feeds it.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    delay: Duration,
    inside: VecDeque<(Time, T)>,
}

impl<T> DelayLine<T> {
    /// An empty wire.
    #[must_use]
    pub fn new(delay: Duration) -> DelayLine<T> {
        DelayLine { delay, inside: VecDeque::new() }
    }

    /// Something goes in at `at`; times never run back.
    pub fn push(&mut self, at: Time, item: T) {
        debug_assert!(self.inside.back().is_none_or(|(last, _)| *last <= at + self.delay), "time ran back");
        self.inside.push_back((at + self.delay, item));
    }

    /// When something next comes out.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.inside.front().map(|(at, _)| *at)
    }

    /// The frames that have come out by `now`, and when.
    pub fn pop(&mut self, now: Time) -> Option<(Time, T)> {
        if self.due()? <= now { self.inside.pop_front() } else { None }
    }

    /// How much is inside.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inside.len()
    }

    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }
}

pub mod lateness {
    //! A histogram of how late events were handled, in powers of two, of fixed size.

    use inprofile_core::units::Duration;

    /// Nanoseconds below the first bound.
    const FIRST_NS: u64 = 1_000;
    /// Bounds: 1 µs, 2 µs, … 2²² µs (4.2 s); above the last, one more cell.
    const BOUNDS: usize = 23;

    /// How many times something was so and so late.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Lateness {
        cells: [u64; BOUNDS + 1],
        sum_ns: u64,
        most: Duration,
    }

    impl Lateness {
        /// Something happened so long after it was due.
        pub fn record(&mut self, late: Duration) {
            let ns = late.0 / 1_000;
            let cell = (ns / FIRST_NS).checked_ilog2().map_or(0, |log| log as usize + 1).min(BOUNDS);
            self.cells[cell] += 1;
            self.sum_ns = self.sum_ns.saturating_add(ns);
            self.most = Duration(self.most.0.max(late.0));
        }

        /// How many were recorded.
        #[must_use]
        pub fn count(&self) -> u64 {
            self.cells.iter().sum()
        }

        /// Sum of all.
        #[must_use]
        pub fn sum(&self) -> Duration {
            Duration(self.sum_ns.saturating_mul(1_000))
        }

        /// The latest.
        #[must_use]
        pub fn most(&self) -> Duration {
            self.most
        }

        /// Each cell's upper bound and how many lie in it, ascending; the last has no bound.
        pub fn cells(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
            let bound = |i: usize| (i < BOUNDS).then(|| Duration((FIRST_NS << i) * 1_000));
            self.cells.iter().enumerate().map(move |(i, n)| (bound(i), *n))
        }

        /// A time that at least this share was no later than: the upper bound of the cell it falls into, or the
        /// latest of all. Zero if nothing was recorded.
        #[must_use]
        pub fn quantile(&self, share: f64) -> Duration {
            let rank = (share * self.count() as f64).ceil() as u64;
            let mut seen = 0;
            for (bound, n) in self.cells() {
                seen += n;
                if n > 0 && seen >= rank {
                    return bound.map_or(self.most, |b| Duration(b.0.min(self.most.0)));
                }
            }
            self.most
        }

        /// Adds what another has recorded.
        pub fn add(&mut self, other: &Lateness) {
            self.cells.iter_mut().zip(other.cells).for_each(|(a, b)| *a += b);
            self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
            self.most = Duration(self.most.0.max(other.most.0));
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn quantiles_by_hand() {
            let mut l = Lateness::default();
            assert_eq!((l.count(), l.quantile(0.5)), (0, Duration::ZERO));
            let us = Duration::from_micros;
            for late in [Duration(0), Duration(999_999), us(1), us(3), us(3), us(100), us(9_000_000)] {
                l.record(late);
            }
            assert_eq!((l.count(), l.most()), (7, us(9_000_000)));
            // Two below 1 µs, one in [1, 2), two in [2, 4), one in [64, 128), one beyond all bounds.
            let cells: Vec<u64> = l.cells().map(|(_, n)| n).collect();
            assert_eq!((&cells[..4], cells[7], cells[23]), (&[2, 1, 2, 0][..], 1, 1));
            assert_eq!((l.quantile(0.1), l.quantile(0.5), l.quantile(0.8)), (us(1), us(4), us(128)));
            assert_eq!(l.quantile(1.0), us(9_000_000));
            let mut twice = l;
            twice.add(&l);
            assert_eq!((twice.count(), twice.sum()), (14, Duration(2 * l.sum().0)));
        }
    }
}

#[cfg(test)]
mod delay_line_tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_later_and_in_order() {
        let mut line = DelayLine::new(Duration(100));
        line.push(Time(1), 'a');
        line.push(Time(1), 'b');
        line.push(Time(7), 'c');
        assert_eq!((line.due(), line.pop(Time(100)), line.len()), (Some(Time(101)), None, 3));
        assert_eq!(line.pop(Time(101)), Some((Time(101), 'a')));
        assert_eq!(line.pop(Time(200)), Some((Time(101), 'b')));
        assert_eq!(line.pop(Time(200)), Some((Time(107), 'c')));
        assert!(line.is_empty() && line.pop(Time(u64::MAX)).is_none());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inprofile_core::units::Duration;

    #[test]
    fn deadlines_follow_each_other_however_late_somebody_looks() {
        let mut s = Shaper::new(Rate(8_000_000));
        assert_eq!(s.due(), None);
        s.start(Time(5), Bytes(1000));
        let ms = Duration::from_millis(1);
        assert_eq!(s.due(), Some(Time(5) + ms));
        // A shaper that wakes 10 ms late still starts the next packet at its own deadline.
        let due = s.due().unwrap();
        s.start(due, Bytes(1000));
        assert_eq!(s.due(), Some(Time(5) + ms * 2));
        s.set_rate(Rate(4_000_000));
        assert_eq!(s.due(), Some(Time(5) + ms * 2));
        s.start(Time(5) + ms * 2, Bytes(1000));
        assert_eq!(s.due(), Some(Time(5) + ms * 4));
        s.rest();
        assert_eq!(s.due(), None);
    }
}

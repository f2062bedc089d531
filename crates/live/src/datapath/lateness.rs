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

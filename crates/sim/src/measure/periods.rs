//! Sums over periods of equal length within the measured window (RFC 7928 §2.7: every K · minRTT).

use inprofile_core::units::{Duration, Time};

/// Sums by period, one row a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Periods {
    from: Time,
    every: Duration,
    /// How many whole periods the window has.
    count: usize,
    /// By group.
    sums: Vec<Vec<u64>>,
}

impl Periods {
    /// Zero, for the whole periods of a window.
    #[must_use]
    pub fn new(window: (Time, Time), every: Duration) -> Periods {
        let count = (window.1 - window.0).0 / every.0.max(1);
        Periods { from: window.0, every, count: count as usize, sums: Vec::new() }
    }

    /// Adds to the period that a moment of the window is in.
    pub fn add(&mut self, group: u32, at: Time, amount: u64) {
        let (group, period) = (group as usize, (at.since(self.from).0 / self.every.0) as usize);
        if self.sums.len() <= group {
            self.sums.resize(group + 1, Vec::new());
        }
        let sums = &mut self.sums[group];
        // What is left of the window after its last whole period is not measured.
        if period < self.count {
            if sums.is_empty() {
                sums.resize(self.count, 0);
            }
            sums[period] += amount;
        }
    }

    /// Their length.
    #[must_use]
    pub fn every(&self) -> Duration {
        self.every
    }

    /// The end of each period and the sum over it; of a group of which nothing was added, zeros.
    pub fn of(&self, group: u32) -> impl Iterator<Item = (Time, u64)> {
        let sums = self.sums.get(group as usize);
        let end = |i: usize| self.from + Duration(self.every.0 * (i as u64 + 1));
        (0..self.count).map(move |i| (end(i), sums.and_then(|s| s.get(i)).copied().unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_in_one_period_and_the_rest_of_the_window_in_none() {
        // From 10 to 35, every 10: two whole periods.
        let mut p = Periods::new((Time(10), Time(35)), Duration(10));
        for (at, amount) in [(10, 1), (19, 2), (20, 4), (29, 8), (30, 16), (34, 32)] {
            p.add(1, Time(at), amount);
        }
        assert_eq!(p.of(1).collect::<Vec<_>>(), [(Time(20), 3), (Time(30), 12)]);
        assert_eq!(p.of(0).collect::<Vec<_>>(), [(Time(20), 0), (Time(30), 0)]);
        assert_eq!(p.of(7).collect::<Vec<_>>(), [(Time(20), 0), (Time(30), 0)]);
    }
}

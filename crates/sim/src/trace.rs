//! A link that sends only at given times, as traces of cellular links have them: mahimahi's format (Netravali et al. 2015), a
//! line for each opportunity to deliver 1,500 bytes, with its time in whole milliseconds. The last time is the length of the
//! trace, after which it starts over.
//!
//! An opportunity serves the packets that came before its time, in order, up to its 1,500 bytes: several small ones, or a part of
//! one, whose rest the next opportunity delivers. What it cannot use is lost to the link. What comes at its very time comes too late, as
//! there, where opportunities that are due are used up before a packet is put into the queue.

use inprofile_core::units::{Bytes, Duration, Rate, Time};

/// Bytes that an opportunity delivers.
pub const OPPORTUNITY: u64 = 1500;
/// A millisecond, in picoseconds.
const MS: u64 = 1_000_000_000;

/// The opportunities of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Their times in milliseconds, in order.
    times: Vec<u32>,
}

impl Trace {
    /// At these times in milliseconds, which are in order; the last is above 0.
    ///
    /// # Panics
    /// If they are not.
    #[must_use]
    pub fn new(times: Vec<u32>) -> Trace {
        assert!(times.is_sorted() && times.last().is_some_and(|last| *last > 0), "checked when it is read");
        Trace { times }
    }

    /// The times of one round, in milliseconds.
    #[must_use]
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// How long a round lasts.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        Duration(u64::from(self.times.last().copied().unwrap_or(1)) * MS)
    }

    /// The mean rate, in whole bits per second and at least 1.
    #[must_use]
    pub fn mean(&self) -> Rate {
        let bits = self.times.len() as u128 * u128::from(8 * OPPORTUNITY) * 1_000_000_000_000;
        Rate(u64::try_from(bits / u128::from(self.lasts().0)).unwrap_or(u64::MAX).max(1))
    }

    /// The longest time without an opportunity.
    #[must_use]
    pub fn longest_gap(&self) -> Duration {
        let first = self.times.first().copied().unwrap_or(0);
        let within = self.times.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        Duration(u64::from(within.max(first)) * MS)
    }

    /// The time of an opportunity by its number from the start of the run.
    fn time(&self, number: u64) -> Time {
        let n = self.times.len() as u64;
        let in_round = u64::from(self.times[(number % n) as usize]) * MS;
        Time((number / n).saturating_mul(self.lasts().0).saturating_add(in_round))
    }

    /// The number of the first opportunity after a time.
    fn first_after(&self, at: Time) -> u64 {
        let (lasts, n) = (self.lasts().0, self.times.len() as u64);
        let (round, since) = (at.0 / lasts, at.0 % lasts);
        round * n + self.times.partition_point(|ms| u64::from(*ms) * MS <= since) as u64
    }
}

/// A [`Trace`] in a run.
#[derive(Clone, Debug)]
pub(crate) struct TraceState {
    trace: Trace,
    /// The number of the next opportunity that nothing has used.
    next: u64,
    /// The time of the last one that was used, and the bytes that are left of it.
    open: (Time, u64),
}

impl TraceState {
    /// At the start of a run.
    pub fn new(trace: Trace) -> TraceState {
        TraceState { trace, next: 0, open: (Time::ZERO, 0) }
    }

    /// How long a packet takes that came at `arrived` and whose turn it is at `begins`: to the opportunity that delivers its last byte,
    /// and a picosecond at least.
    pub fn serialise(&mut self, arrived: Time, begins: Time, size: Bytes) -> Duration {
        let mut need = size.0;
        if arrived < self.open.0 {
            let used = need.min(self.open.1);
            need -= used;
            self.open.1 -= used;
        }
        if need > 0 {
            let more = need.div_ceil(OPPORTUNITY);
            let last = self.next.max(self.trace.first_after(arrived)) + more - 1;
            self.next = last + 1;
            self.open = (self.trace.time(last), more * OPPORTUNITY - need);
        }
        Duration(self.open.0.0.saturating_sub(begins.0).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(t: u64) -> Time {
        Time(t * MS)
    }

    #[test]
    fn packets_leave_at_opportunities() {
        let mut t = TraceState::new(Trace::new(vec![1, 1, 2, 5]));
        let mut ends =
            |arrived: u64, begins: Time, size| begins + t.serialise(ms(arrived), begins, Bytes(size));
        // Two at 1 ms, the next at 2 and 5; the second round begins at 5 ms, and its first is at 6.
        let first = ends(0, ms(0), 1500);
        assert_eq!(first, ms(1));
        let second = ends(0, first, 1500);
        assert_eq!(second, Time(MS + 1));
        // A packet of half the size, and one that needs the other half and one opportunity more.
        let third = ends(0, second, 750);
        assert_eq!(third, ms(2));
        let fourth = ends(0, third, 2250);
        assert_eq!(fourth, ms(5));
        assert_eq!(ends(0, fourth, 40), ms(6));
        // What is left of an opportunity is not for packets that come later.
        assert_eq!(ends(9, ms(9), 40), ms(10));
        // At its very time it is too late, whether all of it was used or not.
        assert_eq!(ends(11, ms(11), 40), ms(12));
        assert_eq!(ends(12, ms(12), 40), ms(15));
    }

    #[test]
    fn a_round_has_its_rate_and_its_gap() {
        let trace = Trace::new(vec![0, 10, 10, 40, 100]);
        assert_eq!(trace.mean(), Rate(5 * 12_000 * 10));
        assert_eq!((trace.lasts(), trace.longest_gap()), (Duration(100 * MS), Duration(60 * MS)));
        // The last of a round and the first of the next at the same time: both are opportunities.
        assert_eq!([4, 5, 6].map(|k| trace.time(k)), [ms(100), ms(100), ms(110)]);
        assert_eq!([0, 1, 99, 100, 101, 200].map(|t| trace.first_after(ms(t))), [1, 1, 4, 6, 6, 11]);
    }

    proptest! {
        /// As mahimahi has it: at each opportunity in turn, what waits is served up to 1,500 bytes.
        #[test]
        fn as_a_queue_that_is_served_at_each_opportunity(
            mut times in prop::collection::vec(0u32..30, 1..12),
            packets in prop::collection::vec((0u64..40, 40u64..4000), 1..40),
        ) {
            times.push(30);
            times.sort_unstable();
            let trace = Trace::new(times.clone());
            let mut arrived = 0;
            let packets: Vec<(u64, u64)> = packets.into_iter().map(|(gap, size)| { arrived += gap; (arrived, size) }).collect();
            let mut delivered = Vec::new();
            let (mut waiting, mut left) = (packets.iter().copied(), None::<(u64, u64)>);
            let mut number = 0u64;
            let mut head = waiting.next();
            while let Some((came, size)) = head {
                let n = times.len() as u64;
                let at = (number / n) * 30 + u64::from(times[(number % n) as usize]);
                number += 1;
                let mut room = OPPORTUNITY;
                let (mut came, mut size) = (came, size);
                while came < at && room > 0 {
                    let need = left.take().map_or(size, |(_, need)| need);
                    let used = need.min(room);
                    room -= used;
                    if used < need {
                        left = Some((came, need - used));
                        break;
                    }
                    delivered.push(at);
                    head = waiting.next();
                    let Some(next) = head else { break };
                    (came, size) = next;
                }
            }
            let mut state = TraceState::new(trace);
            let mut free = Time::ZERO;
            for ((came, size), at) in packets.into_iter().zip(delivered) {
                let begins = free.max(ms(came));
                free = begins + state.serialise(ms(came), begins, Bytes(size));
                prop_assert!(free.0.abs_diff(at * MS) < 100_000, "{free} {at} ms");
            }
        }
    }
}

//! A link whose rate changes at set times, once or again and again (RFC 7928 §8.2.6).
//!
//! A packet whose transmission is under way goes on at the new rate: how long it takes follows from when it begins, so the
//! changes themselves need no event.

use inprofile_core::units::{Bytes, Duration, Rate, Time};

/// A bit times a second, in picoseconds.
const BIT: u128 = 1_000_000_000_000;

/// The rate of a link over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// When the rate becomes what, in order; the first is at 0. No rate is 0.
    steps: Vec<(Time, Rate)>,
    /// After how long it starts over; later than the last step.
    repeat: Option<Duration>,
    /// The amount sent until then, in bits times seconds over picoseconds; 1 where it does not start over.
    round: u128,
}

impl Capacity {
    /// `first` until the first of the steps, which are in order and after 0; with `repeat`, the last one is before it.
    #[must_use]
    pub fn new(first: Rate, steps: &[(Time, Rate)], repeat: Option<Duration>) -> Capacity {
        let all = std::iter::once((Time::ZERO, first)).chain(steps.iter().copied());
        let steps: Vec<(Time, Rate)> = all.collect();
        let ends = steps.iter().skip(1).map(|s| s.0.0).chain(repeat.map(|r| r.0));
        let sent = |((at, rate), end): (&(Time, Rate), u64)| u128::from(rate.0) * u128::from(end - at.0);
        let round = if repeat.is_some() { steps.iter().zip(ends).map(sent).sum() } else { 1 };
        Capacity { steps, repeat, round }
    }

    /// The changes after the start, and after how long they start over.
    #[must_use]
    pub fn changes(&self) -> (&[(Time, Rate)], Option<Duration>) {
        (&self.steps[1..], self.repeat)
    }

    /// Every rate that it has.
    pub fn rates(&self) -> impl Iterator<Item = Rate> {
        self.steps.iter().map(|(_, rate)| *rate)
    }

    /// The rate at a time, and how long it stays.
    fn at(&self, t: Time) -> (Rate, Option<Duration>) {
        let since = Time(self.repeat.map_or(t.0, |r| t.0 % r.0));
        let next = self.steps.partition_point(|(at, _)| *at <= since);
        let ends = self.steps.get(next).map(|(at, _)| at.0).or(self.repeat.map(|r| r.0));
        (self.steps[next - 1].1, ends.map(|end| Duration(end - since.0)))
    }

    /// How long a packet of this size takes whose transmission begins then, to the nearest picosecond.
    #[must_use]
    pub fn serialise(&self, begins: Time, size: Bytes) -> Duration {
        let mut left = u128::from(size.0) * 8 * BIT;
        let mut now = begins;
        if let Some(repeat) = self.repeat {
            // Whatever it begins with, as long as a round lasts it sends what a round has: all but the last are skipped.
            let skipped = (left / self.round).saturating_sub(1);
            let Ok(lasts) = u64::try_from(skipped.saturating_mul(u128::from(repeat.0))) else {
                return Duration(u64::MAX);
            };
            left -= skipped * self.round;
            now = Time(now.0.saturating_add(lasts));
        }
        loop {
            let (rate, stays) = self.at(now);
            let rate = u128::from(rate.0);
            let takes = u64::try_from((left + rate / 2) / rate).unwrap_or(u64::MAX);
            match stays {
                Some(stays) if stays.0 < takes => {
                    left -= rate * u128::from(stays.0);
                    now += stays;
                }
                _ => return Duration(now.since(begins).0.saturating_add(takes)),
            }
        }
    }

    /// The mean rate up to a time, in bit/s.
    #[must_use]
    pub fn mean(&self, until: Duration) -> f64 {
        let (mut now, mut bits) = (Time::ZERO, 0.0);
        // A schedule of picoseconds is not summed to the end of a long run.
        for _ in 0..10_000 {
            let (rate, stays) = self.at(now);
            let stays = stays.map_or(u64::MAX, |s| s.0).min(until.0 - now.0);
            bits += rate.0 as f64 * Duration(stays).secs();
            now += Duration(stays);
            if now.0 >= until.0 {
                break;
            }
        }
        bits / Duration(now.0.max(1)).secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000_000;

    /// 10 Mbit/s, from 20 ms on 1 Mbit/s, and so on every 40 ms.
    fn capacity() -> Capacity {
        Capacity::new(Rate(10_000_000), &[(Time(20 * MS), Rate(1_000_000))], Some(Duration(40 * MS)))
    }

    #[test]
    fn a_packet_goes_on_at_the_new_rate() {
        let c = capacity();
        let takes = |ms: u64, bytes| c.serialise(Time(ms * MS), Bytes(bytes)).0;
        // 1250 B are 10 kbit: 1 ms at 10 Mbit/s, 10 ms at 1 Mbit/s.
        assert_eq!([takes(0, 1250), takes(19, 1250), takes(20, 1250)], [MS, MS, 10 * MS]);
        // From 18 ms on 20 kbit at 10 Mbit/s, the last 5 kbit at 1 Mbit/s: 2 + 5 ms.
        assert_eq!(takes(18, 3125), 7 * MS);
        // From 39 ms on 1 kbit at 1 Mbit/s, and 9 kbit at 10 Mbit/s in the next round: 1 + 0.9 ms.
        assert_eq!(takes(39, 1250), MS + 9 * MS / 10);
        // A hundred rounds later the same.
        assert_eq!(takes(39 + 4000, 1250), MS + 9 * MS / 10);
        // More than a round holds, 220 kbit: 40 ms for each of two rounds, 1 ms for the rest.
        assert_eq!(takes(0, (2 * 220_000 + 10_000) / 8), 81 * MS);
        // As many rounds as fill a day are not gone through one by one.
        let tiny = Capacity::new(Rate(1), &[(Time(1), Rate(3))], Some(Duration(2)));
        assert_eq!(tiny.serialise(Time(0), Bytes(21_600)), Duration(86_400_000_000_000_000));
        let mean = c.mean(Duration(40 * MS));
        assert!((mean - 5.5e6).abs() < 1.0, "{mean}");
    }

    proptest! {
        /// Of two packets in a row, the second begins when the first ends, and both take what one of their size takes.
        #[test]
        fn transmissions_add_up(begins in 0..200u64, a in 1..3000u64, b in 1..3000u64) {
            let (c, at) = (capacity(), Time(begins * MS));
            let first = c.serialise(at, Bytes(a));
            let both = first.0 + c.serialise(at + first, Bytes(b)).0;
            prop_assert!(both.abs_diff(c.serialise(at, Bytes(a + b)).0) <= 2);
        }
    }
}

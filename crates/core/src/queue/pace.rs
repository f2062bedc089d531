//! A set rate: a class is served at this rate and no faster, even if the link is free.
//!
//! Deadlines are absolute: while the class is backlogged, its packet after `b` bytes may leave at `since + 8·b / rate` and not
//! before, however late earlier packets left. So the rate is exact over any length of time, and a packet that waited for
//! another class's is made up for. After an idle period the class starts afresh: unused rate is lost, but for a burst, if it
//! has one, that it may send ahead of these deadlines: then it is a token bucket with a queue, as Linux's tbf. (Rate-controlled
//! service, as in Zhang and Ferrari 1993.)
//!
//! Non-goal: a guarantee. Whether the class gets its rate depends on the scheduler: the first class in strict priority does.

use crate::units::{Bytes, PS_PER_S, Rate, Time};

/// The deadlines of one class.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rate: Rate,
    /// How far ahead of the deadlines it may be.
    burst: u64,
    /// When the current busy period began.
    since: Time,
    /// Sent since then.
    bytes: u64,
}

impl Pace {
    /// At this rate, which must be above 0, and so much ahead of it after an idle period.
    #[must_use]
    pub fn new(rate: Rate, burst: Bytes) -> Pace {
        Pace { rate, burst: burst.0, since: Time::ZERO, bytes: 0 }
    }

    /// When its next packet may leave.
    #[must_use]
    pub fn ready_at(&self) -> Time {
        self.paid_at(self.bytes.saturating_sub(self.burst))
    }

    /// When the rate has made up for so many bytes.
    fn paid_at(&self, bytes: u64) -> Time {
        let ps = (u128::from(bytes) * 8 * u128::from(PS_PER_S)).div_ceil(u128::from(self.rate.0));
        Time(self.since.0.saturating_add(u64::try_from(ps).unwrap_or(u64::MAX)))
    }

    /// A packet has come and nothing waited.
    pub fn begin(&mut self, now: Time) {
        if self.paid_at(self.bytes) <= now {
            (self.since, self.bytes) = (now, 0);
        }
    }

    /// A packet has left.
    pub fn sent(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    #[test]
    fn deadlines_do_not_move_with_lateness_but_with_pauses() {
        // 1000 B at 1 Mbit/s: 8 ms.
        let mut pace = Pace::new(Rate(1_000_000), Bytes(0));
        pace.begin(Time(5 * MS));
        assert_eq!(pace.ready_at(), Time(5 * MS));
        pace.sent(1000);
        assert_eq!(pace.ready_at(), Time(13 * MS));
        // Sent at 16 ms instead of 13: the next one is due all the same at 21.
        pace.sent(1000);
        assert_eq!(pace.ready_at(), Time(21 * MS));
        // Comes at 18, and nothing waited: still not before 21.
        pace.begin(Time(18 * MS));
        assert_eq!(pace.ready_at(), Time(21 * MS));
        // After a pause, at once.
        pace.begin(Time(40 * MS));
        assert_eq!(pace.ready_at(), Time(40 * MS));
    }

    /// 1000 B at 1 Mbit/s: 8 ms. Two packets go at once, and as much again only after as long a pause.
    #[test]
    fn a_burst_goes_ahead_of_the_rate_and_comes_back_with_time() {
        let mut pace = Pace::new(Rate(1_000_000), Bytes(1000));
        pace.begin(Time(5 * MS));
        pace.sent(1000);
        assert!(pace.ready_at() <= Time(5 * MS));
        pace.sent(1000);
        assert_eq!(pace.ready_at(), Time(13 * MS));
        // At 17 ms half of the burst is there again: half a packet's time is lacking for a whole one.
        pace.begin(Time(17 * MS));
        pace.sent(1000);
        assert_eq!(pace.ready_at(), Time(21 * MS));
        // At 29 ms all is paid, and no more than the burst is saved.
        pace.begin(Time(90 * MS));
        pace.sent(2000);
        assert_eq!(pace.ready_at(), Time(98 * MS));
    }

    /// 8 ps · 10¹² / 3 never comes out even: a million packets are late by less than a picosecond all the same.
    #[test]
    fn rounding_does_not_add_up() {
        let mut pace = Pace::new(Rate(3), Bytes(0));
        pace.begin(Time::ZERO);
        (0..1_000_000).for_each(|_| pace.sent(1));
        assert_eq!(pace.ready_at(), Time(2_666_666_666_666_666_667));
    }
}

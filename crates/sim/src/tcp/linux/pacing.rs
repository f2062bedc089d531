//! Pacing: segments leave at a rate, in short trains, instead of as fast as the window allows. As Linux's TCP paces by itself, with
//! the `fq` discipline or without it.
//!
//! A train is about a millisecond at that rate (Linux's automatic sizing of segments for offloading), so pacing costs a timer for each
//! train and not for each segment; and none at all while acknowledgements come no faster than the rate.

use crate::tcp::control::{least, most};

/// Linux's `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`: the rate over window by round-trip time, in slow start and after it.
const SLOW_START: f64 = 2.0;
const AVOIDANCE: f64 = 1.2;
/// The train's length in seconds: Linux's `sk_pacing_shift` of 10.
const TRAIN: f64 = 1.0 / 1024.0;
/// The shortest train, in segments, unless the congestion control has its own: Linux's `tcp_min_tso_segs`.
const LEAST: u8 = 2;
/// The longest, in bytes: Linux's `gso_max_size`.
const LONGEST: f64 = 65_536.0;
/// Linux's `tcp_tso_rtt_log`: trains may be longer where the shortest round-trip time is less than a few times this, in seconds.
const NEAR: f64 = 512e-6;
/// As `fq` does, Linux lets the first segments of a connection go unpaced.
const UNPACED: u8 = 10;
/// Linux's clock, in seconds: what is due within a tick is due.
const TICK: f64 = 1e-9;

/// The pacer of one connection, in segments and seconds: a cache line.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Segments a second; infinite before a round-trip time is measured.
    rate: f64,
    /// When the next train may leave (`tcp_wstamp_ns`).
    next: f64,
    /// Smoothed over every acknowledgement, where RFC 6298 §3 takes one measurement a round trip.
    srtt: f64,
    min_rtt: f64,
    /// The train's length in seconds.
    train: f64,
    /// How many segments longer trains are because the peer is near.
    near: f64,
    /// The longest train in segments.
    longest: f64,
    /// The shortest.
    least: u8,
    /// So many segments are still to leave before they are paced.
    unpaced: u8,
    /// The congestion control bounds the train's length, wherever the peer is.
    bounded: bool,
}

const _: () = assert!(size_of::<Option<Pacer>>() == 64, "a cache line");

impl Pacer {
    /// Before the first round-trip time. `segment`: a full segment's payload in bytes; `train`: a length in seconds of the congestion
    /// control's own.
    pub fn new(segment: u32, train: Option<f64>) -> Pacer {
        Pacer {
            rate: f64::INFINITY,
            next: 0.0,
            srtt: 0.0,
            min_rtt: f64::INFINITY,
            near: 0.0,
            train: train.unwrap_or(TRAIN),
            longest: LONGEST / f64::from(segment),
            least: if train.is_some() { 1 } else { LEAST },
            // One by one: the first ones, too.
            unpaced: if train == Some(0.0) { 0 } else { UNPACED },
            bounded: train.is_some(),
        }
    }

    /// A round-trip time was measured.
    #[inline(always)]
    pub fn measured(&mut self, rtt: f64) {
        self.srtt += if self.srtt == 0.0 { rtt } else { (rtt - self.srtt) / 8.0 };
        if rtt < self.min_rtt {
            self.shortest(rtt);
        }
    }

    /// A round-trip time is shorter than all before.
    #[inline(never)]
    fn shortest(&mut self, rtt: f64) {
        self.min_rtt = rtt;
        if self.bounded {
            return;
        }
        // Half as much more for each 512 µs of the shortest round-trip time: what a near peer can take at once.
        let halvings = rtt / NEAR;
        self.near = if halvings < 32.0 { self.longest / libm::exp2(halvings.floor()) } else { 0.0 };
    }

    /// The rate that follows from the window, in segments (Linux's `tcp_update_pacing_rate`): twice what the window gives while it is
    /// below half of the threshold, 1.2 times from there.
    /// `outstanding`: segments sent and not acknowledged by number.
    pub fn follow_window(&mut self, cwnd: f64, ssthresh: f64, outstanding: u32) {
        if self.srtt > 0.0 {
            let ratio = if cwnd < ssthresh / 2.0 { SLOW_START } else { AVOIDANCE };
            self.rate = ratio * most(cwnd, f64::from(outstanding)) / self.srtt;
        }
    }

    /// The congestion control's own rate, in segments a second.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Segments a second.
    #[cfg(test)]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// How long the next train has to wait; `None`: it may leave.
    #[inline]
    pub fn wait(&self, now: f64) -> Option<f64> {
        let wait = self.next - now;
        (wait > TICK).then_some(wait)
    }

    /// How many segments the next train may have (Linux's `tcp_tso_autosize`).
    pub fn train(&self) -> u32 {
        let segments = self.rate * self.train + self.near;
        (least(segments, self.longest) as u32).max(self.least.into())
    }

    /// A train of so many segments has left.
    pub fn left(&mut self, segments: u32, now: f64) {
        if segments == 0 {
            return;
        }
        if self.unpaced > 0 {
            self.unpaced = u32::from(self.unpaced).saturating_sub(segments) as u8;
        }
        let late = most(now - self.next, 0.0);
        self.next = most(self.next, now);
        if self.unpaced == 0 && self.rate > 0.0 {
            // None at an infinite rate.
            let gap = f64::from(segments) / self.rate;
            // What left late is caught up with, but by no more than half a gap.
            self.next += gap - least(late, gap / 2.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A pacer at this rate whose first segments have left, at a round-trip time that adds nothing to trains.
    fn at(rate: f64) -> Pacer {
        let mut p = Pacer::new(1460, None);
        p.measured(0.1);
        p.left(10, 0.0);
        p.set_rate(rate);
        p
    }

    #[test]
    fn the_rate_is_twice_the_windows_in_slow_start_and_a_fifth_more_later() {
        let mut p = Pacer::new(1460, None);
        p.follow_window(10.0, f64::INFINITY, 10);
        assert_eq!(p.rate, f64::INFINITY);
        p.measured(0.1);
        p.follow_window(10.0, f64::INFINITY, 10);
        assert_eq!(p.rate, 200.0);
        p.follow_window(10.0, 20.0, 10);
        assert_eq!(p.rate, 120.0);
        // More in flight than the window: after a reduction.
        p.follow_window(10.0, 10.0, 20);
        assert_eq!(p.rate, 240.0);
    }

    #[test]
    fn trains_last_a_millisecond_and_are_longer_near_by() {
        let mut p = at(100.0);
        assert_eq!(p.train(), 2);
        p.set_rate(10_240.0);
        assert_eq!(p.train(), 10);
        p.set_rate(1e9);
        assert_eq!(p.train(), 44, "64 KiB");
        // 1.1 ms: a quarter of 64 KiB more.
        p.set_rate(1024.0);
        p.measured(0.0011);
        assert_eq!(p.train(), 12);
    }

    /// Trains that a control bounds are of one segment at least, not of two: two would wait for each other at a slow link, longer than an
    /// L4S queue lets pass unmarked.
    #[test]
    fn trains_of_a_bounded_time_may_be_single_segments() {
        let mut p = Pacer::new(1460, Some(1.0 / 4096.0));
        for (rate, train) in [(100.0, 1), (8_191.0, 1), (8_192.0, 2), (40_960.0, 10)] {
            p.set_rate(rate);
            assert_eq!(p.train(), train, "{rate} segments a second");
        }
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let mut p = Pacer::new(1460, None);
        p.measured(0.1);
        p.set_rate(100.0);
        for _ in 0..4 {
            assert_eq!(p.wait(1.0), None);
            p.left(2, 1.0);
        }
        p.left(2, 1.0);
        let wait = p.wait(1.0).expect("the tenth has left");
        assert!((wait - 0.02).abs() < 1e-9, "{wait}");
    }

    proptest! {
        /// However late the sender comes for its trains, over any stretch no more than the rate and one train leaves; and where it
        /// is never late, exactly the rate.
        #[test]
        fn the_rate_is_kept(rate in 10.0f64..1e6, late in prop::collection::vec(0.0f64..3.0, 1..200)) {
            let mut p = at(rate);
            let mut punctual = p.clone();
            let (mut now, mut sent, mut previous) = (p.next, 0.0, 0.0);
            let begin = now;
            for l in late {
                let n = p.train();
                now = now.max(p.next) + l * f64::from(n) / rate;
                prop_assert!(p.wait(now).is_none());
                p.left(n, now);
                // What was late is made good by half a gap at most, so the excess is a train.
                prop_assert!(sent <= (now - begin) * rate + previous + 1e-6);
                sent += f64::from(n);
                previous = f64::from(n);
                punctual.left(n, punctual.next);
                prop_assert!((punctual.next - begin - sent / rate).abs() < 1e-9 * sent);
            }
        }
    }
}

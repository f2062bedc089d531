//! CUBIC as Linux has it (`tcp_cubic.c` of 6.18): RFC 9438's function in whole segments and ticks of the kernel's clock, and departures from the RFC
//! that show where windows are small:
//!
//! - the window grows by one for each `cnt` segments acknowledged, and `cnt` is the window divided by its distance from the function's value, both
//!   whole numbers: so a window that lies one segment below it grows as Reno's does;
//! - in the Reno-friendly region the window grows by a segment in 15/8 of a window always, also beyond where the last loss was (the RFC has
//!   Reno's rate there), and a segment behind the window that Reno would have;
//! - the function's time goes on while the window is not full, but not while nothing is in flight;
//! - a timeout forgets everything.
//!
//! [`cubic`](super::cubic) has the RFC's. Not as in the kernel: the cube root is exact here, where the kernel's is within 0.2 %, and
//! the function stays where it is four minutes after its flat part, where the kernel's overflows.

use super::reno::{Count, whole};
use super::{Cause, Law};

/// Ticks of the clock in a second (`CONFIG_HZ`): the configuration's default.
const HZ: i64 = 250;
/// `beta`, in 1024ths: what a loss leaves of the window (RFC 9438 §4.6).
const BETA: u32 = 717;
/// One, in the unit of [`BETA`].
const ONE: u32 = 1024;
/// The function's C in segments per second cubed, times 1024 (`bic_scale` × 10; RFC 9438 §5.1).
const C: u64 = 410;
/// The function's time counts 2^-10 s (`BICTCP_HZ`).
const UNIT: u32 = 10;
/// 2^40: C's 1024 and the cube of a second in that unit.
const CUBE: u32 = 10 + 3 * UNIT;
/// RFC 9438 §4.3: the share of a window that is acknowledged for each segment of Reno's window, in eighths (`beta_scale`): 15.
const FRIENDLY: u32 = 8 * (ONE + BETA) / 3 / (ONE - BETA);
/// As long as no loss is known, so many segments acknowledged are one more in the window, at most.
const UNKNOWN: u32 = 20;
/// RFC 9438 §4.2: at most half a window more in a round trip.
const LEAST: u32 = 2;
/// The function's time counts up to here, four minutes.
const FARTHEST: u64 = 1 << 18;

/// Time in ticks.
#[inline(always)]
fn ticks(seconds: f64) -> i64 {
    (seconds * HZ as f64) as i64
}

/// The state, in a cache line. Windows are in segments, moments in ticks, the function's time in 2^-10 s.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct LinuxCubic {
    /// Segments to be acknowledged for one more in the window (`cnt`).
    cnt: u32,
    count: Count,
    /// The window for which `cnt` was computed, and when.
    last_cwnd: u32,
    last_time: i64,
    /// Segments acknowledged since Reno's window last grew (`ack_cnt`).
    acked: u32,
    /// The window that Reno would have (`tcp_cwnd`; RFC 9438's W_est).
    friendly: u32,
    /// When the stage began; `None`: it begins with the next acknowledgement.
    epoch: Option<i64>,
    /// The window at the last loss, or less by fast convergence (`last_max_cwnd`); 0: none is known.
    last_max: u32,
    /// Where the function is flat, and how long after the stage began.
    origin: u32,
    k: u32,
    /// The shortest round-trip time in seconds.
    delay_min: f64,
}

const _: () = assert!(size_of::<LinuxCubic>() == 64, "a cache line");

impl Default for LinuxCubic {
    /// Before the first congestion event.
    fn default() -> LinuxCubic {
        LinuxCubic {
            cnt: 0,
            count: Count::default(),
            last_cwnd: 0,
            last_time: 0,
            acked: 0,
            friendly: 0,
            epoch: None,
            last_max: 0,
            origin: 0,
            k: 0,
            delay_min: f64::INFINITY,
        }
    }
}

/// RFC 9438 §4.2: how long the function takes over so many segments to its flat part.
fn time_to(segments: u32) -> u32 {
    let cube = ((1u64 << CUBE) / C) as f64 * f64::from(segments);
    libm::cbrt(cube) as u32
}

/// RFC 9438 §4.2: how far the function is from its flat part, so long before or after.
fn distance(time: u64) -> u32 {
    let time = time.min(FARTHEST);
    ((C * time * time * time) >> CUBE) as u32
}

impl LinuxCubic {
    /// A round-trip time was measured, in whatever state the sender is. In the first second of a stage it says nothing of the path.
    #[inline(always)]
    pub fn measured(&mut self, rtt: f64, now: f64) {
        if rtt < self.delay_min {
            self.shortened(rtt, now);
        }
    }

    #[inline(never)]
    fn shortened(&mut self, rtt: f64, now: f64) {
        if self.epoch.is_none_or(|epoch| ticks(now) - epoch >= HZ) {
            self.delay_min = rtt;
        }
    }

    /// Something leaves when nothing is in flight: that time is no part of the stage. `last`: when a segment was last sent.
    pub fn starts(&mut self, last: f64, now: f64) {
        let now = ticks(now);
        if let Some(epoch) = &mut self.epoch {
            *epoch = now.min(*epoch + now - ticks(last));
        }
    }

    /// How many segments make the window of `cwnd` grow by one, after `segments` more were acknowledged.
    #[inline(always)]
    fn update(&mut self, cwnd: u32, segments: u32, now: i64) {
        self.acked += segments;
        // As long as the window is the same, once in a 32nd of a second.
        if self.last_cwnd != cwnd || now - self.last_time > HZ / 32 {
            self.compute(cwnd, segments, now);
        }
    }

    #[inline(never)]
    fn compute(&mut self, cwnd: u32, segments: u32, now: i64) {
        // The function has no more than one value a tick.
        if self.epoch.is_none() || now != self.last_time {
            (self.last_cwnd, self.last_time) = (cwnd, now);
            let epoch = match self.epoch {
                Some(epoch) => epoch,
                None => self.begin(cwnd, segments, now),
            };
            self.cnt = self.towards(self.value(now - epoch), cwnd);
        }
        // RFC 9438 §4.3.
        let each = (cwnd * FRIENDLY) >> 3;
        while self.acked > each {
            self.acked -= each;
            self.friendly += 1;
        }
        if self.friendly > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.friendly - cwnd));
        }
        self.cnt = self.cnt.max(LEAST);
    }

    /// A stage begins.
    fn begin(&mut self, cwnd: u32, segments: u32, now: i64) -> i64 {
        (self.acked, self.friendly) = (segments, cwnd);
        (self.origin, self.k) =
            if self.last_max <= cwnd { (cwnd, 0) } else { (self.last_max, time_to(self.last_max - cwnd)) };
        self.epoch = Some(now);
        now
    }

    /// RFC 9438 §4.2: the function's value a round trip from now, so many ticks after the stage began. Its distance from the flat part is rounded
    /// down on either side.
    fn value(&self, since: i64) -> u32 {
        // The shortest round-trip time in whole microseconds, rounded up to ticks.
        let ahead = if self.delay_min.is_finite() {
            ((self.delay_min * 1e6) as u64 * HZ as u64).div_ceil(1_000_000)
        } else {
            0
        };
        let t = ((since as u64 + ahead) << UNIT) / HZ as u64;
        let k = u64::from(self.k);
        let far = distance(t.abs_diff(k));
        if t < k { self.origin.saturating_sub(far) } else { self.origin + far }
    }

    /// RFC 9438 §4.4 and §4.5: how many segments take the window one nearer to `target`.
    fn towards(&self, target: u32, cwnd: u32) -> u32 {
        let each = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 { each.min(UNKNOWN) } else { each }
    }
}

impl Law for LinuxCubic {
    #[inline(always)]
    fn avoid(&mut self, cwnd: f64, segments: u32, at: impl FnOnce() -> (f64, f64)) -> f64 {
        let (_, now) = at();
        self.update(whole(cwnd), segments, ticks(now));
        cwnd + f64::from(self.count.growth(segments, self.cnt))
    }

    fn reduce(&mut self, cause: Cause, cwnd: f64, _: f64) -> f64 {
        let cwnd = whole(cwnd);
        self.epoch = None;
        self.count.reset();
        // RFC 9438 §4.7.
        self.last_max = if cwnd < self.last_max { cwnd * (ONE + BETA) / (2 * ONE) } else { cwnd };
        if cause == Cause::Timeout {
            *self = LinuxCubic::default();
        }
        f64::from(cwnd * BETA / ONE)
    }

    fn timed_out_again(&mut self, _: f64) {
        *self = LinuxCubic::default();
    }
}

#[cfg(test)]
mod tests {
    //! The law of `tcp_cubic.c`, by sequences computed by hand and by the function it approximates.

    use super::*;
    use proptest::prelude::*;

    const MS: f64 = 1e-3;

    /// One acknowledgement of a segment at each of these times: the window after each.
    fn windows(cubic: &mut LinuxCubic, mut cwnd: f64, times: impl Iterator<Item = f64>) -> Vec<u32> {
        times
            .map(|now| {
                cwnd = cubic.avoid(cwnd, 1, || (0.1, now));
                cwnd as u32
            })
            .collect()
    }

    /// A flow that fills its window: the window at the start of each round trip.
    fn rounds(cubic: &mut LinuxCubic, mut cwnd: f64, rtt: f64, from: f64, n: usize) -> Vec<f64> {
        let mut seen = Vec::new();
        for round in 0..n {
            seen.push(cwnd);
            let acks = cwnd as u32;
            for i in 0..acks {
                let now = from + (round as f64 + f64::from(i) / f64::from(acks)) * rtt;
                cubic.measured(rtt, now);
                cwnd = cubic.avoid(cwnd, 1, || (rtt, now));
            }
        }
        seen
    }

    /// After a loss in a window of `lost_at`, with nothing known before.
    fn after_loss(lost_at: f64) -> (LinuxCubic, f64) {
        let mut cubic = LinuxCubic::default();
        let cwnd = cubic.reduce(Cause::Loss, lost_at, lost_at);
        (cubic, cwnd)
    }

    /// RFC 9438 §4.6 and §4.7 in 1024ths, rounded down: 717, and 1741 / 2048 where the last maximum was not reached.
    #[test]
    fn a_loss_leaves_seven_tenths_rounded_down() {
        let mut cubic = LinuxCubic::default();
        let left = |cwnd| LinuxCubic::default().reduce(Cause::Loss, cwnd, 1.0);
        assert_eq!([3.0, 7.0, 10.0, 20.0, 1000.0].map(left), [2.0, 4.0, 7.0, 14.0, 700.0]);
        cubic.reduce(Cause::Loss, 10.0, 10.0);
        assert_eq!(cubic.last_max, 10);
        cubic.reduce(Cause::Mark, 8.0, 8.0);
        assert_eq!(cubic.last_max, 6, "8 × 1741 / 2048 = 6.8");
        cubic.reduce(Cause::Loss, 6.0, 6.0);
        assert_eq!(cubic.last_max, 6, "reached");
    }

    /// RFC 9438 §4.2: from 700 back to 1000 takes cbrt(300 / 0.4) s; C is 410 / 1024 here, and 2^40 / 410 is rounded down.
    #[test]
    fn the_way_back_takes_a_cube_root() {
        assert_eq!(time_to(300), 9300, "9.082 s");
        assert_eq!(time_to(1), 1389, "1.356 s");
        assert_eq!((distance(1389), distance(1390)), (0, 1));
        assert_eq!(distance(9300), 299);
        assert_eq!(distance(u64::MAX), distance(FARTHEST));
    }

    /// Below the flat part, the distance to it is rounded down: a window that the function has just left lies one below it, and grows as Reno's does. A loss
    /// in a window of 10 leaves 7, and K is cbrt(3 × 2^40 / 410) = 2003 units of 1/1024 s: at once the function is 2 below, at 8, and from 62 ticks of 4 ms on, 1
    /// below.
    #[test]
    fn cnt_is_the_window_by_its_distance() {
        let (mut cubic, cwnd) = after_loss(10.0);
        assert_eq!(cwnd, 7.0);
        let mut at =
            |cwnd, tick: u32| windows(&mut cubic, cwnd, std::iter::once(10.0 + 0.0041 * f64::from(tick)));
        let first: Vec<u32> = (0..7).flat_map(|_| at(7.0, 0)).collect();
        assert_eq!(first, [7, 7, 7, 7, 7, 7, 8]);
        // In the same tick the function has no other value.
        at(8.0, 0);
        assert_eq!((cubic.k, cubic.origin, cubic.cnt), (2003, 10, 7));
        let cnt = |cubic: &mut LinuxCubic, tick: i64| {
            cubic.update(8, 1, 2500 + tick);
            cubic.cnt
        };
        assert_eq!(cnt(&mut cubic, 1), 800, "8 is what the function asks for");
        assert_eq!((cubic.value(61), cubic.value(62)), (8, 9));
        cubic.acked = 0;
        assert_eq!(cnt(&mut cubic, 61), 800);
        assert_eq!(cnt(&mut cubic, 68), 800, "not before a 32nd of a second has passed");
        assert_eq!(cnt(&mut cubic, 69), 8);
    }

    /// RFC 9438 §4.3: the friendly window grows by one for each 15/8 of the window, beyond the window of the last loss as well, and the window follows once
    /// it is behind.
    #[test]
    fn the_friendly_window_grows_by_15_eighths_of_the_window() {
        assert_eq!(FRIENDLY, 15);
        let (mut cubic, cwnd) = after_loss(20.0);
        // The function takes 2.5 s to 20, and 4.9 s to 26; at 50 ms Reno is faster.
        let seen = rounds(&mut cubic, cwnd, 0.05, 0.0, 100);
        for (round, cwnd) in seen.iter().enumerate() {
            let law = 14.0 + 8.0 / 15.0 * round as f64;
            assert!((cwnd - law).abs() <= 2.0, "{cwnd} for {law} in round {round}");
        }
    }

    /// Linux: as long as no loss is known, twenty segments are one more in the window, at most.
    #[test]
    fn without_a_loss_growth_is_a_twentieth() {
        let mut cubic = LinuxCubic::default();
        let seen = windows(&mut cubic, 100.0, std::iter::repeat_n(5.0, 40));
        assert_eq!((seen[18], seen[19], seen[38], seen[39]), (100, 101, 101, 102));
    }

    /// RFC 9438 §4.2: however far the window is below the function, it grows by no more than half in a round trip.
    #[test]
    fn growth_is_bounded_by_half() {
        let (mut cubic, _) = after_loss(1000.0);
        windows(&mut cubic, 100.0, std::iter::once(5.0));
        let seen = windows(&mut cubic, 100.0, std::iter::repeat_n(30.0, 100));
        assert_eq!(seen[99], 150);
    }

    /// Linux's `bictcp_reset`: a timeout, also one in a recovery, forgets all; a loss does not forget the shortest round-trip time.
    #[test]
    fn a_timeout_forgets_everything() {
        for again in [false, true] {
            let (mut cubic, _) = after_loss(100.0);
            cubic.measured(0.1, 1.0);
            cubic.avoid(70.0, 1, || (0.1, 2.0));
            if again {
                cubic.timed_out_again(70.0);
            } else {
                assert_eq!(cubic.reduce(Cause::Timeout, 70.0, 1.0), 49.0);
            }
            let fresh = LinuxCubic::default();
            assert_eq!(format!("{cubic:?}"), format!("{fresh:?}"));
            cubic.measured(0.2, 3.0);
            assert_eq!(cubic.delay_min, 0.2);
            cubic.reduce(Cause::Loss, 40.0, 40.0);
            assert_eq!((cubic.last_max, cubic.delay_min), (40, 0.2));
        }
    }

    /// Linux's `bictcp_acked`: round-trip times of a stage's first second do not count, those of a recovery do.
    #[test]
    fn the_shortest_round_trip_is_not_of_a_stages_first_second() {
        let (mut cubic, cwnd) = after_loss(100.0);
        cubic.measured(0.1, 0.5);
        cubic.avoid(cwnd, 1, || (0.1, 1.0));
        cubic.measured(0.05, 1.9);
        assert_eq!(cubic.delay_min, 0.1);
        cubic.measured(0.05, 2.0);
        assert_eq!(cubic.delay_min, 0.05);
    }

    /// RFC 9438 §4.2, `bictcp_cwnd_event`: time with nothing in flight is no part of the stage, which never begins in the future.
    #[test]
    fn a_pause_moves_the_stage() {
        let (mut cubic, cwnd) = after_loss(100.0);
        cubic.avoid(cwnd, 1, || (0.1, 1.0));
        assert_eq!(cubic.epoch, Some(250));
        cubic.starts(3.0, 13.0);
        assert_eq!(cubic.epoch, Some(2750));
        cubic.starts(0.0, 14.0);
        assert_eq!(cubic.epoch, Some(3500), "14 s");
    }

    proptest! {
        /// RFC 9438 §4.2: where windows are large, whole numbers matter little: the window is within two segments, and what the function grows in a round trip
        /// and a 32nd of a second, of the function.
        #[test]
        fn large_windows_follow_the_function(lost_at in 300u32..3000, rtt_ms in 20u32..200) {
            let rtt = f64::from(rtt_ms) * MS;
            let (mut cubic, cwnd) = after_loss(f64::from(lost_at));
            let n = (12.0 / rtt) as usize;
            let k = libm::cbrt((f64::from(lost_at) - cwnd) / 0.4);
            let law = |t: f64| 0.4 * libm::pow(t - k, 3.0) + f64::from(lost_at);
            for (round, cwnd) in rounds(&mut cubic, cwnd, rtt, 7.0, n).iter().enumerate().skip(3) {
                let t = round as f64 * rtt;
                // Reno's window is below the function here but at the longest times; it only adds.
                let least = law(t - rtt - 0.036) - 3.0;
                let most = (law(t + rtt + 0.036) + 3.0).max(0.7 * f64::from(lost_at) + 0.54 * round as f64 + 3.0);
                prop_assert!(*cwnd >= least && *cwnd <= most, "{cwnd} at {t}: {least} to {most}");
            }
        }

        /// An acknowledgement never lowers the window, and adds no more than half of what it acknowledges, and one.
        #[test]
        fn growth_is_bounded(
            lost_at in 3u32..5000,
            acks in prop::collection::vec((1u32..60, 0.0f64..0.5), 1..200),
        ) {
            let (mut cubic, mut cwnd) = after_loss(f64::from(lost_at));
            cwnd = cwnd.max(2.0);
            let mut now = 0.0;
            for (segments, gap) in acks {
                now += gap;
                cubic.measured(0.01 + gap, now);
                let next = cubic.avoid(cwnd, segments, || (0.1, now));
                prop_assert!(next >= cwnd && next <= cwnd + f64::from(segments) / 2.0 + 1.0, "{cwnd} to {next}");
                prop_assert_eq!(next.fract(), 0.0);
                cwnd = next;
            }
        }
    }
}

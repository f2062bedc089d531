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

/// The state. Windows are in segments, moments in ticks, the function's time in 2^-10 s.
#[derive(Clone, Debug)]
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
    k: u64,
    /// The shortest round-trip time in seconds.
    delay_min: f64,
}

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
fn time_to(segments: u32) -> u64 {
    let cube = ((1u64 << CUBE) / C) as f64 * f64::from(segments);
    libm::cbrt(cube) as u64
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
        let far = distance(t.abs_diff(self.k));
        if t < self.k { self.origin.saturating_sub(far) } else { self.origin + far }
    }

    /// RFC 9438 §4.4 and §4.5: how many segments take the window one nearer to `target`.
    fn towards(&self, target: u32, cwnd: u32) -> u32 {
        let each = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 { each.min(UNKNOWN) } else { each }
    }
}

impl Law for LinuxCubic {
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
mod tests;

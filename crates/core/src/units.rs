//! The field's quantities, each with a type of its own: a rate cannot be added to a size.
//!
//! Time is in whole picoseconds, so that 10,000 transmissions of 1,040 B at 1.5 Mbit/s (5.546… ms each) are exact to the
//! picosecond; 64 bits are enough for 213 days.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// Picoseconds in a second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// A moment: picoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// An amount of queue: what thresholds, limits and bucket depths are given in.
/// Thresholds may be fractional.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Backlog {
    /// So many packets, whatever their size.
    Packets(f64),
    /// So many bytes on the wire.
    Bytes(f64),
}

/// The most that [`Duration::picos`] says. Out of line, so that nobody waits for a choice that is never made.
#[cold]
#[inline(never)]
fn longest() -> f64 {
    i64::MAX as f64
}

/// So many picoseconds in seconds. Processors convert signed numbers in one step, unsigned ones in several: more than half of their
/// range is halved first, with a last digit that rounds as the one lost would. (Converted as it is, a compiler sees that the cases are
/// one, and takes the several steps for both.)
#[inline]
fn seconds(picos: u64) -> f64 {
    let converted = match i64::try_from(picos) {
        Ok(picos) => picos as f64,
        Err(_) => (picos >> 1 | picos & 1) as i64 as f64 * 2.0,
    };
    converted / 1e12
}

/// The nearest whole number, halves upwards; `x` must not be negative. What `x.round()` is, which is a call where the compiler
/// may not assume that the processor rounds by itself.
#[inline]
fn nearest(x: f64) -> u64 {
    let whole = (x as i64).max(0);
    if whole == i64::MAX {
        return x as u64;
    }
    whole as u64 + u64::from(x - whole as f64 >= 0.5)
}

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const NEVER: Time = Time(u64::MAX);

    /// Nearest picosecond to `s` seconds; `s` must be finite and not negative.
    #[must_use]
    #[inline]
    pub fn from_secs(s: f64) -> Time {
        Time(Duration::from_secs(s).0)
    }

    /// Seconds since the start of the run.
    #[must_use]
    #[inline]
    pub fn secs(self) -> f64 {
        seconds(self.0)
    }

    /// Time since `earlier`; zero if `earlier` is in fact later.
    #[must_use]
    pub fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// Nearest picosecond to `s` seconds; `s` must be finite and not negative.
    #[must_use]
    #[inline]
    pub fn from_secs(s: f64) -> Duration {
        debug_assert!(s.is_finite() && s >= 0.0);
        Duration(nearest(s * 1e12))
    }

    /// In seconds.
    #[must_use]
    #[inline]
    pub fn secs(self) -> f64 {
        seconds(self.0)
    }

    /// In picoseconds; more than 106 days count as 106, for processors convert signed numbers in one step.
    #[must_use]
    #[inline]
    pub fn picos(self) -> f64 {
        match i64::try_from(self.0) {
            Ok(picos) => picos as f64,
            Err(_) => longest(),
        }
    }

    /// So many microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Duration {
        Duration(us * 1_000_000)
    }

    /// So many milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Duration {
        Duration(ms * 1_000_000_000)
    }
}

impl Rate {
    /// Time to serialise `size`, to the nearest picosecond, or all there is if that is more than fits. The rate
    /// must not be zero.
    #[must_use]
    pub fn serialise(self, size: Bytes) -> Duration {
        let bits = u128::from(size.0) * 8 * u128::from(PS_PER_S);
        let rate = u128::from(self.0);
        Duration(u64::try_from((bits + rate / 2) / rate).unwrap_or(u64::MAX))
    }

    /// Bytes that pass in `t`, as a fraction.
    #[must_use]
    pub fn bytes_in(self, t: Duration) -> f64 {
        self.0 as f64 * t.secs() / 8.0
    }
}

impl Bytes {
    /// In bits.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Backlog {
    /// The number alone, in the amount's own unit.
    #[must_use]
    pub fn amount(self) -> f64 {
        match self {
            Backlog::Packets(n) | Backlog::Bytes(n) => n,
        }
    }

    /// In bytes, where `packet` is the size of a packet.
    #[must_use]
    pub fn bytes(self, packet: Bytes) -> f64 {
        match self {
            Backlog::Packets(n) => n * packet.0 as f64,
            Backlog::Bytes(b) => b,
        }
    }

    /// In packets, where `packet` is the size of a packet.
    #[must_use]
    pub fn packets(self, packet: Bytes) -> f64 {
        match self {
            Backlog::Packets(n) => n,
            Backlog::Bytes(b) => b / packet.0 as f64,
        }
    }

    /// Whether both are packets or both are bytes.
    #[must_use]
    pub fn same_unit(self, other: Backlog) -> bool {
        matches!(
            (self, other),
            (Backlog::Packets(_), Backlog::Packets(_)) | (Backlog::Bytes(_), Backlog::Bytes(_))
        )
    }
}

/// Never passes [`Time::NEVER`].
impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, d: Duration) -> Time {
        Time(self.0 - d.0)
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        Duration(self.0 - earlier.0)
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, n: u64) -> Duration {
        Duration(self.0 * n)
    }
}

macro_rules! adds {
    ($($t:ty),*) => {$(
        impl Add for $t {
            type Output = $t;
            fn add(self, o: $t) -> $t { Self(self.0 + o.0) }
        }
        impl AddAssign for $t {
            fn add_assign(&mut self, o: $t) { self.0 += o.0; }
        }
        impl Sub for $t {
            type Output = $t;
            fn sub(self, o: $t) -> $t { Self(self.0 - o.0) }
        }
        impl SubAssign for $t {
            fn sub_assign(&mut self, o: $t) { self.0 -= o.0; }
        }
        impl Sum for $t {
            fn sum<I: Iterator<Item = $t>>(it: I) -> $t { it.fold(Self(0), |a, b| a + b) }
        }
    )*};
}
adds!(Duration, Rate, Bytes);

/// Writes `value` with the largest unit of `scale` that leaves at least 1, without
/// trailing zeros; what it prints reads back as the same quantity.
fn scaled(f: &mut fmt::Formatter<'_>, value: u64, scale: &[(u64, &str)]) -> fmt::Result {
    let &(unit, name) = scale.iter().find(|(unit, _)| value >= *unit).unwrap_or(&scale[scale.len() - 1]);
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return write!(f, "{whole} {name}");
    }
    let digits = unit.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    write!(f, "{whole}.{} {name}", fraction.trim_end_matches('0'))
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = [(PS_PER_S, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns"), (1, "ps")];
        if self.0 == 0 { write!(f, "0 s") } else { scaled(f, self.0, &scale) }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Duration(self.0), f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")];
        scaled(f, self.0, &scale)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Backlog::Packets(n) => write!(f, "{n} packets"),
            Backlog::Bytes(b) => write!(f, "{b} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_serialisations_do_not_drift() {
        let one = Rate(1_500_000).serialise(Bytes(1040));
        assert_eq!(one, Duration(5_546_666_667));
        let many: Duration = (0..10_000).map(|_| one).sum();
        let exact = 10_000.0 * 1040.0 * 8.0 / 1.5e6;
        assert!((many.secs() - exact).abs() < 1e-8);
    }

    #[test]
    fn the_nearest_is_what_rounding_gives() {
        let halves = (0..200).map(|n| f64::from(n) / 2.0);
        let powers = (0..70).flat_map(|e| [-1.0, -0.5, 0.0, 0.5, 1.0].map(|d| libm::exp2(f64::from(e)) + d));
        let close = [0.499_999_999_999_999_94, 4_503_599_627_370_495.5, 1e300, f64::MAX];
        for x in halves.chain(powers).chain(close) {
            let x = x.max(0.0);
            assert_eq!(nearest(x), libm::round(x) as u64, "{x}");
            assert_eq!(
                nearest(x.next_down().max(0.0)),
                libm::round(x.next_down().max(0.0)) as u64,
                "below {x}"
            );
        }
    }

    /// As the language converts and divides, whichever half of the range it is in and however it rounds.
    #[test]
    fn seconds_are_the_nearest_to_the_picoseconds() {
        let powers = (0..64).flat_map(|e| [-2i64, -1, 0, 1, 2].map(|d| (1u64 << e).wrapping_add_signed(d)));
        // Halfway between two numbers of 53 digits, and one beside it.
        let ties =
            [10, 11].into_iter().flat_map(|e| [0u64, 1, 2, 3].map(|n| (n << e) + (1 << (e - 1)) + (1 << 63)));
        let near = ties.flat_map(|picos| [picos - 1, picos, picos + 1]);
        for picos in powers.chain(near).chain([u64::MAX, u64::MAX - 1024]) {
            assert_eq!(seconds(picos), picos as f64 / 1e12, "{picos}");
        }
    }

    #[test]
    fn quantities_print_as_an_operator_writes_them() {
        assert_eq!(Rate(1_200_000).to_string(), "1.2 Mbit/s");
        assert_eq!(Rate(64_000).to_string(), "64 kbit/s");
        assert_eq!(Duration::from_millis(1500).to_string(), "1.5 s");
        assert_eq!(Duration::from_micros(20).to_string(), "20 us");
        assert_eq!(Duration::ZERO.to_string(), "0 s");
        assert_eq!(Backlog::Packets(0.1).to_string(), "0.1 packets");
    }

    #[test]
    fn what_does_not_fit_is_the_most_that_does() {
        assert_eq!(Rate(1).serialise(Bytes(u64::MAX)), Duration(u64::MAX));
        assert_eq!(Time::NEVER + Duration(1), Time::NEVER);
        let mut t = Time(u64::MAX - 1);
        t += Duration(5);
        assert_eq!(t, Time::NEVER);
    }

    #[test]
    fn backlogs_convert_by_the_packet() {
        let packet = Bytes(1000);
        assert_eq!(
            (Backlog::Packets(2.5).bytes(packet), Backlog::Bytes(500.0).packets(packet)),
            (2500.0, 0.5)
        );
        assert_eq!(
            (Backlog::Packets(2.5).packets(packet), Backlog::Bytes(500.0).bytes(packet)),
            (2.5, 500.0)
        );
        assert!(!Backlog::Packets(1.0).same_unit(Backlog::Bytes(1.0)));
    }

    #[test]
    fn since_never_goes_below_zero() {
        assert_eq!(Time(3).since(Time(5)), Duration::ZERO);
        assert_eq!(Time(5).since(Time(3)), Duration(2));
    }
}

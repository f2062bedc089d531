//! ns-2's clock: seconds in double precision.
//!
//! ns-2's event times are sums of doubles, and some of its events coincide only because of how those sums round. To order
//! events as ns-2 does, the engine has to add the same numbers in the same order.

use std::cmp::Ordering;

use inprofile_core::units::{Bytes, Duration, Rate, Time};

use crate::clock::Clock;

/// Seconds in double precision, as ns-2 has them. Never negative.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Clock for Seconds {
    type Span = f64;
    /// Buckets a second.
    type Buckets = f64;
    const NS2: bool = true;
    const ZERO: Seconds = Seconds(0.0);
    const NEVER: Seconds = Seconds(f64::INFINITY);
    const NO_TIME: f64 = 0.0;

    fn span(d: Duration) -> f64 {
        d.secs()
    }
    fn span_secs(s: f64) -> f64 {
        s
    }
    fn secs_of(span: f64) -> f64 {
        span
    }
    fn span_ps(span: f64) -> u64 {
        Duration::from_secs(span).0
    }
    fn serialise(rate: Rate, size: Bytes) -> f64 {
        8.0 * size.0 as f64 / rate.0 as f64
    }
    fn add(a: f64, b: f64) -> f64 {
        a + b
    }
    fn after(self, span: f64) -> Seconds {
        Seconds(self.0 + span)
    }
    fn since(self, earlier: Seconds) -> f64 {
        self.0 - earlier.0
    }
    fn max(self, other: Seconds) -> Seconds {
        if self.0 >= other.0 { self } else { other }
    }
    fn at(t: Time) -> Seconds {
        Seconds(t.secs())
    }
    fn time(self) -> Time {
        Time::from_secs(self.0)
    }
    fn secs(self) -> f64 {
        self.0
    }
    fn bits(self) -> u64 {
        self.0.to_bits()
    }
    fn from_bits(bits: u64) -> Seconds {
        Seconds(f64::from_bits(bits))
    }
    fn buckets(width: Duration) -> f64 {
        1.0 / width.secs()
    }
    #[inline]
    fn bucket(bits: u64, buckets: f64) -> u64 {
        // By way of a signed number, which processors convert in one step.
        (f64::from_bits(bits) * buckets) as i64 as u64
    }
    /// First in, first out; the count may wrap.
    fn tie(a: u32, b: u32) -> Ordering {
        (a.wrapping_sub(b) as i32).cmp(&0)
    }
}

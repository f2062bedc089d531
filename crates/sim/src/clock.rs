//! The engine's clock, as a type: whole picoseconds here, or ns-2's seconds ([`crate::ns2`]).

use std::cmp::Ordering;
use std::fmt::Debug;

use inprofile_core::units::{Bytes, Duration, Rate, Time};

/// A moment on the engine's clock. The engine is generic over it; everything that ns-2 does otherwise in the engine asks
/// [`Clock::NS2`].
pub trait Clock: Copy + PartialOrd + Debug + Send + 'static {
    /// A length of time on this clock.
    type Span: Copy + PartialOrd + Debug + Send;
    /// The width of the calendar's buckets, as is best to count with.
    type Buckets: Copy + Debug + Send;
    /// Whether the engine keeps ns-2's order of events: every link is served packet by packet, and events at the same moment
    /// happen in the order in which they were scheduled.
    const NS2: bool;
    /// The start of the run.
    const ZERO: Self;
    /// Later than any event.
    const NEVER: Self;
    /// Zero length.
    const NO_TIME: Self::Span;

    /// A length of time.
    fn span(d: Duration) -> Self::Span;
    /// A length of time from seconds.
    fn span_secs(s: f64) -> Self::Span;
    /// A length of time in seconds.
    fn secs_of(span: Self::Span) -> f64;
    /// A length of time in whole picoseconds.
    fn span_ps(span: Self::Span) -> u64;
    /// Time to serialise a packet.
    fn serialise(rate: Rate, size: Bytes) -> Self::Span;
    /// The sum of two lengths.
    fn add(a: Self::Span, b: Self::Span) -> Self::Span;
    /// This moment plus a length.
    fn after(self, span: Self::Span) -> Self;
    /// The length from `earlier` to this moment.
    fn since(self, earlier: Self) -> Self::Span;
    /// The later of two.
    fn max(self, other: Self) -> Self;
    /// From picoseconds.
    fn at(t: Time) -> Self;
    /// To picoseconds: what mechanisms see.
    fn time(self) -> Time;
    /// In seconds.
    fn secs(self) -> f64;
    /// As bits that are ordered as the moments are.
    fn bits(self) -> u64;
    /// Back from [`Clock::bits`].
    fn from_bits(bits: u64) -> Self;
    /// For [`Clock::bucket`]: buckets of this width, which is a power of two picoseconds.
    fn buckets(width: Duration) -> Self::Buckets;
    /// The number of the bucket that it falls in; monotone.
    fn bucket(bits: u64, buckets: Self::Buckets) -> u64;
    /// Which of two events at the same moment comes first, by their second key.
    fn tie(a: u32, b: u32) -> Ordering;
}

/// Whole picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exact(pub u64);

impl Clock for Exact {
    type Span = Duration;
    /// Binary digits of a time that lie within a bucket.
    type Buckets = u32;
    const NS2: bool = false;
    const ZERO: Exact = Exact(0);
    const NEVER: Exact = Exact(u64::MAX);
    const NO_TIME: Duration = Duration::ZERO;

    #[inline]
    fn span(d: Duration) -> Duration {
        d
    }
    fn span_secs(s: f64) -> Duration {
        Duration::from_secs(s)
    }
    fn secs_of(span: Duration) -> f64 {
        span.secs()
    }
    fn span_ps(span: Duration) -> u64 {
        span.0
    }
    #[inline]
    fn serialise(rate: Rate, size: Bytes) -> Duration {
        rate.serialise(size)
    }
    #[inline]
    fn add(a: Duration, b: Duration) -> Duration {
        a + b
    }
    #[inline]
    fn after(self, span: Duration) -> Exact {
        Exact(self.0 + span.0)
    }
    #[inline]
    fn since(self, earlier: Exact) -> Duration {
        Duration(self.0 - earlier.0)
    }
    #[inline]
    fn max(self, other: Exact) -> Exact {
        Ord::max(self, other)
    }
    #[inline]
    fn at(t: Time) -> Exact {
        Exact(t.0)
    }
    #[inline]
    fn time(self) -> Time {
        Time(self.0)
    }
    fn secs(self) -> f64 {
        Time(self.0).secs()
    }
    #[inline]
    fn bits(self) -> u64 {
        self.0
    }
    #[inline]
    fn from_bits(bits: u64) -> Exact {
        Exact(bits)
    }
    fn buckets(width: Duration) -> u32 {
        width.0.trailing_zeros()
    }
    #[inline]
    fn bucket(bits: u64, buckets: u32) -> u64 {
        bits >> buckets
    }
    /// The second key says what an event is, not when it was scheduled.
    #[inline]
    fn tie(a: u32, b: u32) -> Ordering {
        a.cmp(&b)
    }
}

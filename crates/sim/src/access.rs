//! Links that may not send at once: in slots that are granted, as on cable and passive optical networks, or after contention and in
//! bursts, as on Wi-Fi; or by a [trace](crate::trace). Simple models: what they state is all they have.
//!
//! How long a packet takes follows from when it came and when its turn is, in the order of transmissions, as with a
//! [capacity](crate::capacity) that changes; the waiting counts as a part of its transmission.

use inprofile_core::rng::Rng;
use inprofile_core::units::{Bytes, Duration, Rate, Time};

use crate::trace::{Trace, TraceState};

/// No packet is sent later, however long it waits for its turn: a million seconds, in picoseconds.
const LATEST: u64 = 1_000_000_000_000_000_000;

/// How a link comes to send.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// In slots.
    Slots(Slots),
    /// In bursts.
    Bursts(Bursts),
    /// At the opportunities of a trace.
    Trace(Trace),
}

/// Slots at regular times, for packets that came a while before: a packet is asked for as it comes, and the next slot that begins
/// `request` later or more may carry it. It is sent whole within one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Time from the beginning of one slot to that of the next; the first begins at 0.
    pub every: Duration,
    /// How long a slot lasts.
    pub length: Duration,
    /// From a packet's arrival to the earliest slot that it may use.
    pub request: Duration,
}

impl Slots {
    /// How long a packet takes whose bits alone take `bits`, no longer than a slot.
    fn takes(&self, arrived: Time, begins: Time, bits: Duration) -> Duration {
        let every = self.every.0.max(1);
        let asked = arrived.0.saturating_add(self.request.0).div_ceil(every).saturating_mul(every);
        let slot = begins.0 / every * every;
        let from = if asked > slot {
            asked
        } else if begins.0 + bits.0 <= slot.saturating_add(self.length.0) {
            begins.0
        } else {
            slot.saturating_add(every)
        };
        Duration((from - begins.0).saturating_add(bits.0))
    }
}

/// Bursts: before each there is a time without data, and all that waits when it begins goes back to back, up to a number of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Time before each burst: spaces between frames, preamble, acknowledgement of the block.
    pub overhead: Duration,
    /// Contention on top: uniform up to this.
    pub contention: Duration,
    /// The most packets of a burst.
    pub most: u32,
}

/// An [`Access`] in a run.
#[derive(Debug)]
pub(crate) struct AccessState {
    how: How,
    rng: Rng,
    /// Bursts: when the last one began, when it ends, and how many packets it has.
    burst: (Time, Time, u32),
}

#[derive(Debug)]
enum How {
    Slots(Slots),
    Bursts(Bursts),
    Trace(TraceState),
}

impl AccessState {
    /// At the start of a run.
    pub fn new(access: Access, rng: Rng) -> AccessState {
        let how = match access {
            Access::Slots(slots) => How::Slots(slots),
            Access::Bursts(bursts) => How::Bursts(bursts),
            Access::Trace(trace) => How::Trace(TraceState::new(trace)),
        };
        AccessState { how, rng, burst: (Time::ZERO, Time::ZERO, 0) }
    }

    /// How long a packet takes that came at `arrived`, and whose turn is at `begins`, at a link of this rate.
    pub fn serialise(&mut self, arrived: Time, begins: Time, size: Bytes, rate: Rate) -> Duration {
        let takes = self.takes(arrived, begins, size, rate);
        Duration(takes.0.min(LATEST.saturating_sub(begins.0)).max(1))
    }

    fn takes(&mut self, arrived: Time, begins: Time, size: Bytes, rate: Rate) -> Duration {
        match &mut self.how {
            How::Trace(trace) => trace.serialise(arrived, begins, size),
            How::Slots(slots) => slots.takes(arrived, begins, rate.serialise(size)),
            How::Bursts(bursts) => {
                let (began, ends, packets) = self.burst;
                let bits = rate.serialise(size);
                if begins == ends && arrived <= began && packets > 0 && packets < bursts.most {
                    self.burst = (began, begins + bits, packets + 1);
                    return bits;
                }
                let wait = (self.rng.uniform() * bursts.contention.0 as f64) as u64;
                let before = Duration(bursts.overhead.0.saturating_add(wait).min(LATEST));
                self.burst = (begins + before, begins + before + bits, 1);
                before + bits
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use inprofile_core::rng::Rng;

    const US: u64 = 1_000_000;

    fn us(t: u64) -> Time {
        Time(t * US)
    }

    /// 10 Mbit/s: 1250 B take 1 ms.
    fn end(state: &mut AccessState, arrived: Time, begins: Time, bytes: u64) -> Time {
        begins + state.serialise(arrived, begins, Bytes(bytes), Rate(10_000_000))
    }

    #[test]
    fn a_slot_carries_what_was_asked_for_before_it() {
        let slots = Slots {
            every: Duration::from_micros(2_000),
            length: Duration::from_micros(1_000),
            request: Duration::from_micros(1_500),
        };
        let mut s = AccessState::new(Access::Slots(slots), Rng::for_component(1, "slots"));
        // Came at 100 µs, asked for by 1.6 ms: the slot at 2 ms carries 625 B in half a millisecond.
        let first = end(&mut s, us(100), us(100), 625);
        assert_eq!(first, us(2_500));
        // The second half of that slot, which it was in time for; one that came at 0.6 ms was not.
        assert_eq!(end(&mut s, us(500), first, 625), us(3_000));
        assert_eq!(end(&mut s, us(600), first, 625), us(4_500));
        // Too long for what is left: the next slot.
        assert_eq!(end(&mut s, us(100), first, 1250), us(5_000));
        // Exactly in time.
        assert_eq!(end(&mut s, us(2_500), us(2_500), 1250), us(5_000));
    }

    #[test]
    fn a_burst_carries_what_waits_when_it_begins() {
        let bursts = Bursts { overhead: Duration::from_micros(200), contention: Duration::ZERO, most: 3 };
        let mut s = AccessState::new(Access::Bursts(bursts), Rng::for_component(1, "bursts"));
        let first = end(&mut s, us(0), us(0), 1250);
        assert_eq!(first, us(1_200));
        let second = end(&mut s, us(100), first, 1250);
        assert_eq!(second, us(2_200));
        // Came while the burst was under way: the next one.
        let third = end(&mut s, us(300), second, 1250);
        assert_eq!(third, us(3_400));
        let fourth = end(&mut s, us(400), third, 1250);
        let fifth = end(&mut s, us(500), fourth, 1250);
        assert_eq!([fourth, fifth], [us(4_400), us(5_400)]);
        // The burst is full.
        assert_eq!(end(&mut s, us(600), fifth, 1250), us(6_600));
        // Nothing waited: each has its own.
        assert_eq!(end(&mut s, us(9_000), us(9_000), 1250), us(10_200));
    }

    /// Waits that add up beyond any run's end stay in order, and never turn into times long past.
    #[test]
    fn no_wait_is_without_end() {
        let long = Duration(LATEST);
        let slots = Slots { every: long, length: long, request: long };
        let bursts = Bursts { overhead: long, contention: long, most: 1 };
        let trace = Trace::new(vec![u32::MAX]);
        for access in [Access::Slots(slots), Access::Bursts(bursts), Access::Trace(trace)] {
            let mut s = AccessState::new(access, Rng::for_component(1, "long"));
            let mut last = Time::ZERO;
            for _ in 0..1000 {
                let ends = end(&mut s, Time::ZERO, last, 1500);
                assert!(ends > last && ends.0 <= LATEST + 1000, "{last} {ends}");
                last = ends;
            }
        }
    }

    proptest! {
        /// Every packet lies within one slot that begins `request` after it came or later, and none overlaps the one before.
        #[test]
        fn packets_lie_within_slots(
            (every, length, request) in (200u64..3_000, 100u64..200, 0u64..5_000),
            packets in prop::collection::vec((0u64..2_000, 1u64..125), 1..60),
        ) {
            let slots = Slots {
                every: Duration::from_micros(every),
                length: Duration::from_micros(length),
                request: Duration::from_micros(request),
            };
            let mut s = AccessState::new(Access::Slots(slots), Rng::for_component(1, "slots"));
            let (mut arrived, mut free) = (0, Time::ZERO);
            for (gap, bytes) in packets {
                arrived += gap;
                let begins = free.max(us(arrived));
                let ends = end(&mut s, us(arrived), begins, bytes);
                let starts = ends.0 - Rate(10_000_000).serialise(Bytes(bytes)).0;
                let slot = starts / (every * US) * (every * US);
                prop_assert!(starts >= begins.0);
                prop_assert!(ends.0 <= slot + length * US, "{starts} {ends}");
                prop_assert!(slot >= (arrived + request) * US);
                // It could not have gone a slot earlier.
                if let Some(before) = slot.checked_sub(every * US) {
                    let earlier = begins.0.max(before);
                    let would_fit = earlier + (ends.0 - starts) <= before + length * US;
                    prop_assert!(!would_fit || before < (arrived + request) * US);
                }
                free = ends;
            }
        }
    }
}

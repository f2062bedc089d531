//! The backlog that a queue of a given rate would have: a counter that grows by what is accepted and drains at the rate.
//!
//! v(t) = max(0, v − C·Δt), and each accepted packet adds its size: the bytes that a first-in-first-out link of rate C has still to send,
//! the rest of the packet in transmission included. It is counted in bits times picoseconds a second, in which every drain is a whole
//! number: nothing is ever rounded.
//! What of it is of each colour drains in proportion: as if the packets had been mixed before they left. A real queue sends the
//! oldest first, so that the parts differ after a burst of one colour, never the sum.
//! Non-goal: any decision.

use crate::packet::Colour;
use crate::queue::Queue;
use crate::units::{Backlog, Bytes, PS_PER_S, Rate, Time};

/// Units of the counter in a byte.
const BYTE: u128 = 8 * PS_PER_S as u128;

/// The counter of one virtual queue, and its limit.
#[derive(Clone, Debug)]
pub struct VirtualBacklog {
    rate: Rate,
    limit: Backlog,
    /// Bytes that make a packet where lengths are in packets.
    packet: f64,
    /// The most that may be accepted, in units of the counter.
    most: u128,
    /// What waits, in units of the counter, as of `last`.
    level: u128,
    last: Time,
    /// Since when nothing has waited.
    empty_since: Option<Time>,
    /// What of it is of each colour, in bytes.
    parts: [f64; 3],
}

impl VirtualBacklog {
    /// Empty since the start of the run. A length in packets is in packets of size `packet`.
    #[must_use]
    pub fn new(rate: Rate, limit: Backlog, packet: Bytes) -> VirtualBacklog {
        VirtualBacklog {
            rate,
            limit,
            packet: packet.0.max(1) as f64,
            // Limits are whole packets or bytes, at most 10⁹ of them.
            most: limit.bytes(packet) as u128 * BYTE,
            level: 0,
            last: Time::ZERO,
            empty_since: Some(Time::ZERO),
            parts: [0.0; 3],
        }
    }

    /// What would have drained by `now`: no more than there is.
    fn drained(&self, now: Time) -> u128 {
        let since = u128::from(now.since(self.last).0);
        (u128::from(self.rate.0) * since).min(self.level)
    }

    /// Lets it drain until `now`.
    #[inline]
    pub fn drain(&mut self, now: Time) {
        if self.level == 0 || now <= self.last {
            return;
        }
        let drained = self.drained(now);
        let left = self.level - drained;
        if left == 0 {
            let after = self.level.div_ceil(u128::from(self.rate.0));
            self.empty_since = Some(Time(self.last.0.saturating_add(after as u64)));
            self.parts = [0.0; 3];
        } else if drained > 0 {
            let kept = left as f64 / self.level as f64;
            self.parts.iter_mut().for_each(|part| *part *= kept);
        }
        self.level = left;
        self.last = now;
    }

    /// A packet is accepted at the time up to which it has drained.
    #[inline]
    pub fn add(&mut self, now: Time, size: u32, colour: Colour) {
        self.last = self.last.max(now);
        self.level += u128::from(size) * BYTE;
        self.parts[colour as usize] += f64::from(size);
        self.empty_since = None;
    }

    /// Its length at `now`, in full packets.
    #[must_use]
    pub fn at(&self, now: Time) -> f64 {
        self.in_unit(self.level - self.drained(now), false)
    }

    /// What waits, in bits times picoseconds a second.
    #[cfg(test)]
    pub(super) fn level(&self) -> u128 {
        self.level
    }

    fn in_unit(&self, level: u128, in_bytes: bool) -> f64 {
        let bytes = level as f64 / BYTE as f64;
        if in_bytes { bytes } else { bytes / self.packet }
    }
}

/// As a drop law sees it: lengths of so many full packets, fractions included. Nothing in it can be struck.
impl Queue for VirtualBacklog {
    fn packets(&self) -> u32 {
        self.length(false).ceil() as u32
    }
    fn bytes(&self) -> u64 {
        self.level.div_ceil(BYTE) as u64
    }
    fn packets_of(&self, colour: Colour) -> u32 {
        self.length_of(colour, false).ceil() as u32
    }
    fn bytes_of(&self, colour: Colour) -> u64 {
        self.parts[colour as usize].ceil() as u64
    }
    fn limit(&self) -> Backlog {
        self.limit
    }
    #[inline]
    fn length(&self, in_bytes: bool) -> f64 {
        self.in_unit(self.level, in_bytes)
    }
    #[inline]
    fn length_of(&self, colour: Colour, in_bytes: bool) -> f64 {
        let bytes = self.parts[colour as usize];
        if in_bytes { bytes } else { bytes / self.packet }
    }
    #[inline]
    fn fits(&self, size: u32) -> bool {
        self.level + u128::from(size) * BYTE <= self.most
    }
    fn idle_since(&self) -> Option<Time> {
        self.empty_since
    }
}

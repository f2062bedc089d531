//! A packet waiting in a queue, and the counters of a queue at one time.

use inprofile_core::packet::{Colour, Ecn, FlowId, Packet};
use inprofile_core::queue::Counts;
use inprofile_core::queue::fifo::Item;
use inprofile_core::units::Time;

use crate::clock::Clock;

/// A waiting packet: its slot, and what the queue needs to know of it.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket<C> {
    /// Computed service: when its transmission starts. Stepped: when it came.
    pub(crate) at: C,
    /// Where the packet is kept.
    pub slot: u32,
    pub(crate) size: u32,
    flow: FlowId,
    colour: Colour,
    /// Its ECN bits, perhaps changed while it waited.
    pub ecn: Ecn,
}

impl<C> QueuedPacket<C> {
    #[inline]
    pub(crate) fn new(at: C, slot: u32, packet: &Packet) -> QueuedPacket<C> {
        let &Packet { size, flow, colour, ecn, .. } = packet;
        QueuedPacket { at, slot, size, flow, colour, ecn }
    }

    /// As mechanisms see it: what the queue knows of it, and the rest from where it is kept, which the nearest cache rarely holds.
    #[inline]
    pub(crate) fn as_packet(&self, kept: &Packet) -> Packet {
        let &QueuedPacket { size, flow, colour, ecn, .. } = self;
        Packet { size, flow, colour, ecn, ..*kept }
    }
}

impl<C: Clock> QueuedPacket<C> {
    /// Stepped service: how long it has waited by now, in picoseconds.
    #[inline]
    pub(crate) fn waited(&self, now: Time) -> u128 {
        u128::from(now.since(self.at.time()).0)
    }

    /// Stepped service: how long of that it has waited within a window, in picoseconds.
    #[inline]
    pub(crate) fn waited_within(&self, window: (Time, Time), now: Time) -> u128 {
        u128::from(now.min(window.1).since(self.at.time().max(window.0)).0)
    }
}

impl<C: Clock> Item for QueuedPacket<C> {
    #[inline]
    fn size(&self) -> u32 {
        self.size
    }
    #[inline]
    fn colour(&self) -> Colour {
        self.colour
    }
    fn flow(&self) -> FlowId {
        self.flow
    }
    /// With stepped service, where a discipline decides at departure.
    fn since(&self) -> Time {
        self.at.time()
    }
    fn mark(&mut self) -> bool {
        self.ecn.mark()
    }
}

/// A queue's counters at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Counts since the start of the run.
    pub counts: Counts,
    /// Packets waiting, integrated over time since the start of the run, in packet-picoseconds.
    pub area: u128,
    /// How long it has been sending since the start of the run, in picoseconds; of a packet being sent, the part
    /// already sent.
    pub sending: u64,
}

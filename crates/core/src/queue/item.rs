//! The items in queues: packets, or a simulator's or router's own records of them.

use std::ops::Deref;

use crate::packet::{Colour, FlowId, Packet};
use crate::units::Time;

/// An item in a queue: a packet, or a simulator's or router's own record of one.
pub trait Item {
    /// Size on the wire.
    fn size(&self) -> u32;
    /// Drop precedence.
    fn colour(&self) -> Colour;
    /// Whose it is.
    fn flow(&self) -> FlowId;
    /// When it came to the queue. Asked as it departs, where the discipline decides then.
    fn since(&self) -> Time;
    /// Sets congestion experienced; false if its transport doesn't understand ECN.
    fn mark(&mut self) -> bool;
}

/// A packet of which the queue knows only when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The packet.
    pub packet: Packet,
    /// When it came to the queue.
    pub since: Time,
}

impl Deref for Stamped {
    type Target = Packet;
    fn deref(&self) -> &Packet {
        &self.packet
    }
}

impl Item for Stamped {
    fn size(&self) -> u32 {
        self.packet.size
    }
    fn colour(&self) -> Colour {
        self.packet.colour
    }
    fn flow(&self) -> FlowId {
        self.packet.flow
    }
    fn since(&self) -> Time {
        self.since
    }
    fn mark(&mut self) -> bool {
        self.packet.ecn.mark()
    }
}

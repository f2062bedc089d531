//! The unit in which a controller counts a queue: packets, or bytes of which so many make a packet.

use crate::queue::Queue;
use crate::units::Backlog;

/// Packets, or bytes.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Where bytes are counted: how many make a packet.
    pub packet: Option<f64>,
}

impl Unit {
    /// The unit of a target, and the target in packets; `mean` is a typical packet's size in bytes.
    #[must_use]
    pub fn of(target: Backlog, mean: f64) -> (Unit, f64) {
        match target {
            Backlog::Packets(n) => (Unit { packet: None }, n),
            Backlog::Bytes(n) => (Unit { packet: Some(mean) }, n / mean),
        }
    }

    /// How much waits in a queue.
    #[must_use]
    pub fn length<Q: Queue + ?Sized>(self, queue: &Q) -> u64 {
        if self.packet.is_some() { queue.bytes() } else { u64::from(queue.packets()) }
    }

    /// The length that a packet of this size adds.
    #[must_use]
    pub fn added_by(self, size: u32) -> u64 {
        if self.packet.is_some() { u64::from(size) } else { 1 }
    }

    /// A length in packets.
    #[must_use]
    pub fn packets(self, length: f64) -> f64 {
        self.packet.map_or(length, |packet| length / packet)
    }
}

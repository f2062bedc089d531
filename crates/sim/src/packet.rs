//! Packets on their way, in a slab: an event or a queue names one by a number.

use inprofile_core::packet::{FlowId, Kind, Packet};

use crate::tcp::Sack;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct Travelling {
    /// What mechanisms see of it.
    pub packet: Packet,
    /// The segment it carries, or that its sender waits for.
    pub segment: u32,
    /// The next link on its way, as a place in the list of all routes.
    pub way: u32,
    /// Links it has still to pass.
    pub left: u16,
    /// Whether it travels towards the receiver of data.
    pub forward: bool,
    /// CWR with data (RFC 3168 §6.1.2), ECN-Echo with an acknowledgement (§6.1.3).
    pub flag: bool,
    /// Its number in the run.
    pub number: u64,
}

impl Travelling {
    /// Where it now stands on its way.
    #[inline]
    pub fn stand(&mut self, way: u32, left: u16) {
        self.way = way;
        self.left = left;
    }
}

/// The packets on their way.
#[derive(Debug, Default)]
pub struct Slab {
    packets: Vec<Travelling>,
    free: Vec<u32>,
    numbered: u64,
    /// By slot, as far as any acknowledgement has said something: what it says the receiver has.
    sacks: Vec<Sack>,
}

/// The flow of a slot that holds nothing.
const NOBODY: FlowId = FlowId(u32::MAX);

impl Slab {
    /// Takes in a packet and numbers it. Its route: where it stands in the list of all routes, and how many links it has.
    #[inline]
    pub fn add(&mut self, packet: Packet, segment: u32, forward: bool, route: (u32, u16)) -> u32 {
        let number = self.numbered;
        self.numbered += 1;
        let travelling =
            Travelling { packet, segment, way: route.0, left: route.1, forward, flag: false, number };
        if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = travelling;
            slot
        } else {
            self.packets.push(travelling);
            (self.packets.len() - 1) as u32
        }
    }

    /// Puts another packet into a slot, under the number of the one before.
    #[inline]
    pub fn put(&mut self, slot: u32, packet: Packet, segment: u32, forward: bool, route: (u32, u16)) {
        let number = self.packets[slot as usize].number;
        self.packets[slot as usize] =
            Travelling { packet, segment, way: route.0, left: route.1, forward, flag: false, number };
    }

    /// Gives the packet in a slot a new number.
    #[inline]
    pub fn number(&mut self, slot: u32) {
        self.packets[slot as usize].number = self.numbered;
        self.numbered += 1;
    }

    /// What the acknowledgement in a slot says the receiver has beyond the acknowledged segment.
    pub fn set_sack(&mut self, slot: u32, sack: Sack) {
        if self.sacks.len() <= slot as usize {
            self.sacks.resize(self.packets.len(), Sack::default());
        }
        self.sacks[slot as usize] = sack;
    }

    /// See [`Slab::set_sack`]. Only for a flow whose acknowledgements all say something.
    #[inline]
    pub fn sack(&self, slot: u32) -> Sack {
        self.sacks.get(slot as usize).copied().unwrap_or_default()
    }

    /// The packet in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> &Travelling {
        &self.packets[slot as usize]
    }

    /// The packet in a slot.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut Travelling {
        &mut self.packets[slot as usize]
    }

    /// It has arrived or was dropped.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        let packet = &mut self.packets[slot as usize].packet;
        debug_assert_ne!(packet.flow, NOBODY, "a packet left the run twice");
        packet.flow = NOBODY;
        self.free.push(slot);
    }

    /// Those still on their way.
    pub fn iter(&self) -> impl Iterator<Item = &Travelling> {
        self.packets.iter().filter(|t| t.packet.flow != NOBODY)
    }
}

/// One letter for logs.
#[must_use]
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Ack => "ack",
        Kind::Data | Kind::Syn => "tcp",
        Kind::Datagram => "udp",
    }
}

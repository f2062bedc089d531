//! Packets on their way, in a slab: an event or a queue names one by a number.

use inprofile_core::packet::{FlowId, Kind, Packet};

use crate::route::{MOST_HOPS, Route};
use crate::tcp::{ByteOption, Delays, Flags, Sack};

/// A packet on its way: half a cache line, as that of a packet which has waited is rarely in the nearest cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct InFlight {
    /// The packet as mechanisms see it.
    pub packet: Packet,
    /// The segment it carries; of an acknowledgement, the next one expected.
    pub segment: u32,
    /// See [`InFlight::position`] and what follows it.
    bits: u32,
}

const _: () = assert!(size_of::<InFlight>() == 32, "two to a cache line");

const FORWARD: u32 = MOST_HOPS;
/// Four bits.
const FLAGS: u32 = 28;

impl InFlight {
    /// At the hop of this position, with [`flags`](InFlight::flags).
    #[inline(always)]
    #[must_use]
    pub fn new(packet: Packet, segment: u32, position: u32, forward: bool, flags: Flags) -> InFlight {
        let way = if forward { FORWARD } else { 0 };
        InFlight { packet, segment, bits: position | way | u32::from(flags.bits()) << FLAGS }
    }

    /// The hop it is at: an index into the hops of all routes.
    #[inline]
    #[must_use]
    pub fn position(&self) -> u32 {
        self.bits & (MOST_HOPS - 1)
    }

    /// It is at another hop.
    #[inline]
    pub fn set_position(&mut self, position: u32) {
        self.bits = self.bits & !(MOST_HOPS - 1) | position;
    }

    /// Whether it travels towards the receiver of data.
    #[inline]
    #[must_use]
    pub fn forward(&self) -> bool {
        self.bits & FORWARD != 0
    }

    /// ECN's flags in TCP's header.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags::from_bits((self.bits >> FLAGS) as u8)
    }
}

/// The packets in flight.
#[derive(Debug, Default)]
pub struct Slab {
    packets: Vec<InFlight>,
    free: Vec<u32>,
    /// Numbers of packets in the run, where they are needed.
    numbers: Option<Numbers>,
    /// SACK options by slot, up to the highest slot that has held one.
    sacks: Vec<Sack>,
    /// By slot, where delays are measured: when data was sent, what delays an acknowledgement tells of.
    delays: Vec<Delays>,
    /// By slot, where they are told: the AccECN Option of an acknowledgement.
    bytes: Vec<Option<ByteOption>>,
}

/// The numbers of packets.
#[derive(Debug, Default)]
struct Numbers {
    by_slot: Vec<u64>,
    given: u64,
}

impl Numbers {
    #[cold]
    fn give(&mut self, slot: u32) {
        if self.by_slot.len() <= slot as usize {
            self.by_slot.resize(slot as usize + 1, 0);
        }
        self.by_slot[slot as usize] = self.given;
        self.given += 1;
    }
}

/// The flow of a slot that holds nothing.
const NOBODY: FlowId = FlowId(u32::MAX);

impl Slab {
    /// Empty. `numbered`: whether packets are numbered, for traces and logs.
    #[must_use]
    pub fn new(numbered: bool) -> Slab {
        Slab { numbers: numbered.then(Numbers::default), ..Slab::default() }
    }

    /// Takes in a packet at the beginning of a route. Inlined, so that it is built where it is kept: to copy what was just
    /// written in smaller pieces stalls the processor.
    #[inline(always)]
    pub fn add(&mut self, packet: Packet, segment: u32, forward: bool, flags: Flags, route: Route) -> u32 {
        let in_flight = InFlight::new(packet, segment, route.0, forward, flags);
        let slot = if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = in_flight;
            slot
        } else {
            self.packets.push(in_flight);
            (self.packets.len() - 1) as u32
        };
        self.number(slot);
        slot
    }

    /// Takes in a packet from another part of the run.
    pub(crate) fn take_in(&mut self, packet: InFlight) -> u32 {
        let Some(slot) = self.free.pop() else {
            self.packets.push(packet);
            return (self.packets.len() - 1) as u32;
        };
        self.packets[slot as usize] = packet;
        slot
    }

    /// The packets of another part of the run are in flight too.
    pub(crate) fn absorb(&mut self, other: &Slab) {
        self.packets.extend(other.iter());
    }

    /// Gives the packet in a slot a new number, where they are numbered.
    #[inline]
    pub fn number(&mut self, slot: u32) {
        if let Some(numbers) = &mut self.numbers {
            numbers.give(slot);
        }
    }

    /// The number in the run of the packet in a slot; 0 where they aren't numbered.
    #[must_use]
    pub fn number_of(&self, slot: u32) -> u64 {
        self.numbers.as_ref().map_or(0, |n| n.by_slot[slot as usize])
    }

    /// Sets the SACK option of the acknowledgement in a slot.
    pub fn set_sack(&mut self, slot: u32, sack: Sack) {
        if self.sacks.len() <= slot as usize {
            self.sacks.resize(self.packets.len(), Sack::default());
        }
        self.sacks[slot as usize] = sack;
    }

    /// The SACK option of the acknowledgement in a slot, of a flow that uses SACK.
    #[inline]
    pub fn sack(&self, slot: u32) -> Sack {
        self.sacks.get(slot as usize).copied().unwrap_or_default()
    }

    /// Notes when the data in a slot was sent, in seconds.
    pub fn set_sent(&mut self, slot: u32, secs: f64) {
        let mut sent = Delays::default();
        sent.push(secs);
        self.set_delays(slot, sent);
    }

    /// Notes what delays the acknowledgement in a slot tells of.
    pub fn set_delays(&mut self, slot: u32, delays: Delays) {
        if self.delays.len() <= slot as usize {
            self.delays.resize(self.packets.len(), Delays::default());
        }
        self.delays[slot as usize] = delays;
    }

    /// The note on a slot.
    pub fn delays(&self, slot: u32) -> Delays {
        self.delays.get(slot as usize).copied().unwrap_or_default()
    }

    /// Sets the AccECN Option of the acknowledgement in a slot, of a flow that has some.
    pub fn set_byte_option(&mut self, slot: u32, option: Option<ByteOption>) {
        if self.bytes.len() <= slot as usize {
            self.bytes.resize(self.packets.len(), None);
        }
        self.bytes[slot as usize] = option;
    }

    /// The AccECN Option of the acknowledgement in a slot, of a flow that has some.
    pub fn byte_option(&self, slot: u32) -> Option<ByteOption> {
        self.bytes.get(slot as usize).copied().flatten()
    }

    /// The packet in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> &InFlight {
        &self.packets[slot as usize]
    }

    /// The packet in a slot.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut InFlight {
        &mut self.packets[slot as usize]
    }

    /// Frees a slot: its packet has arrived or was dropped.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        let packet = &mut self.packets[slot as usize].packet;
        debug_assert_ne!(packet.flow, NOBODY, "a packet left the run twice");
        packet.flow = NOBODY;
        self.free.push(slot);
    }

    /// The packets in flight.
    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
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

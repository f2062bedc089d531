//! Look-ups of waiting frames, kept so that nothing is looked up twice.
//!
//! Each hash and owner is handed on with all that it was worked out from, and is taken for the same alone: whatever order frames come
//! in, no decision depends on what was foreseen.

use inprofile_core::units::{Duration, Time};
use inprofile_live::flow::{FiveTuple, Flows};
use inprofile_live::packet::{Headers, Link};

use super::owners::Owner;

/// The keys by which a packet's flow and owner are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    tuple: FiveTuple,
    /// The tuple doesn't tell none from 0, nor do the two that follow.
    ports: Option<Ports>,
    vlans: [Option<u16>; 2],
    session: Option<u16>,
}

impl Key {
    /// That of a packet which has, or as a fragment should have, these ports.
    pub fn of(headers: &Headers, ports: Option<Ports>) -> Key {
        let Link { vlans, session, .. } = headers.link;
        Key { tuple: FiveTuple::with_ports(headers, ports), ports, vlans, session }
    }

    /// The key of its flow.
    pub fn tuple(&self) -> &FiveTuple {
        &self.tuple
    }
}

/// The look-up of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// For all frames with this key.
    pub key: Key,
    /// The hash of its flow.
    pub hash: u64,
    /// Whose it is.
    pub owner: Owner,
}

/// Of the frames that wait, in the order in which they will be decided on.
#[derive(Debug, Default)]
pub struct Lookups {
    frames: Vec<Option<Lookup>>,
    next: usize,
}

impl Lookups {
    /// Nothing is known of any frame.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.next = 0;
    }

    /// Of one frame more; `None`: nothing.
    pub fn push(&mut self, found: Option<Lookup>) {
        self.frames.push(found);
    }

    /// Probably of the frame that is decided on after the next one.
    pub fn soon(&self) -> Option<Lookup> {
        self.frames.get(self.next + 2).copied()?
    }

    /// Probably of the frame that is decided on now.
    pub fn next(&mut self) -> Option<Lookup> {
        let next = self.frames.get(self.next).copied()?;
        self.next += 1;
        next
    }
}

// Fragments of packets whose ports say whose they are. Only the first fragment has the ports; those that follow are known by the
// identification that they share with it (RFC 791 §3.2, RFC 8200 §4.5).
//
// A bounded number of packets is remembered, each for as long as its receiver may wait. A fragment that overtook its first one, or
// whose packet was forgotten, has no ports: it is counted. Non-goal: putting packets together; holding fragments back.

/// The most packets that are remembered at a time.
const PACKETS: u32 = 4096;
/// RFC 791 §3.2: "the current recommendation for the initial timer setting is 15 seconds".
const REASSEMBLY_TIMEOUT: Duration = Duration::from_millis(15_000);

/// Source and destination port.
pub type Ports = (u16, u16);

/// The ports of packets whose fragments are under way.
#[derive(Debug)]
pub struct Fragments {
    /// Numbers packets as a table of flows numbers flows.
    packets: Flows,
    ports: Vec<(Ports, Time)>,
}

impl Fragments {
    /// None is under way. `secret` keeps packets from being chosen that collide.
    #[must_use]
    pub fn new(secret: u64) -> Fragments {
        let packets = Flows::new(PACKETS, secret);
        let ports = vec![((0, 0), Time::ZERO); packets.capacity() as usize];
        Fragments { packets, ports }
    }

    /// The ports of the packet that a fragment belongs to: `first`, if the fragment shows them itself, or those that its first
    /// one showed.
    pub fn ports(&mut self, now: Time, packet: &FiveTuple, first: Option<Ports>) -> Option<Ports> {
        if let Some(ports) = first {
            let number = self.packets.number(packet).flow.0;
            self.ports[number as usize] = (ports, now);
            return first;
        }
        let number = self.packets.find(packet)?.0;
        let (ports, since) = self.ports[number as usize];
        (now.since(since) <= REASSEMBLY_TIMEOUT).then_some(ports)
    }
}

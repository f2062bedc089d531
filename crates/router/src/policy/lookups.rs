//! Look-ups of waiting frames, kept so that nothing is looked up twice.
//!
//! Each hash and owner is handed on with all that it was worked out from, and is taken for the same alone: whatever order frames come
//! in, no decision depends on what was foreseen.

use inprofile_live::flow::FiveTuple;
use inprofile_live::packet::{Headers, Link};

use super::fragments::Ports;
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

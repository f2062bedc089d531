//! What a mechanism sees of a packet.

use crate::units::Bytes;

/// A flow, numbered from 0 in the order of the experiment file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Drop precedence of RFC 2597, best first. Two-colour systems use green and yellow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Colour {
    /// Lowest drop precedence (AFx1): in profile.
    #[default]
    Green = 0,
    /// Middle drop precedence (AFx2): out of profile where there are two colours.
    Yellow = 1,
    /// Highest drop precedence (AFx3).
    Red = 2,
}

impl Colour {
    /// In profile.
    pub const IN: Colour = Colour::Green;
    /// Out of profile.
    pub const OUT: Colour = Colour::Yellow;
    /// Best first.
    pub const ALL: [Colour; 3] = [Colour::Green, Colour::Yellow, Colour::Red];

    /// Whether the packet is in profile.
    #[must_use]
    pub fn is_in(self) -> bool {
        self == Colour::IN
    }

    /// The name in results: `in`, `out`, `red`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["in", "out", "red"][self as usize]
    }
}

/// The two ECN bits (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand ECN.
    #[default]
    NotCapable,
    /// The transport understands ECN (ECT(0) or ECT(1)).
    Capable,
    /// Congestion experienced.
    Experienced,
}

impl Ecn {
    /// Sets congestion experienced where the transport understands it (RFC 3168 §5); whether it does.
    #[inline]
    pub fn mark(&mut self) -> bool {
        let capable = *self != Ecn::NotCapable;
        if capable {
            *self = Ecn::Experienced;
        }
        capable
    }
}

/// What the packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// TCP with payload.
    #[default]
    Data,
    /// TCP without payload.
    Ack,
    /// The first packet of a TCP connection.
    Syn,
    /// Anything but TCP.
    Datagram,
}

/// A packet as markers, queue disciplines and estimators see it, in the simulator and on a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Whose it is.
    pub flow: FlowId,
    /// Size on the wire, headers included.
    pub size: u32,
    /// Size of the payload.
    pub payload: u32,
    /// TCP: number of the first payload byte, modulo 2³². Others: 0.
    pub seq: u32,
    /// TCP: the next byte the receiver expects, modulo 2³². Others: 0.
    pub ack: u32,
    /// Drop precedence.
    pub colour: Colour,
    /// What it carries.
    pub kind: Kind,
    /// ECN bits.
    pub ecn: Ecn,
    /// The class that a scheduler serves it in, by its number in the experiment; 0 where nothing is said.
    pub class: u8,
}

impl Packet {
    /// Size on the wire.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.size))
    }
}

/// The direction in which a packet passes an observer, seen from the sender of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// With the data.
    Forward,
    /// With the acknowledgements.
    Reverse,
}

//! A packet as mechanisms see it.

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

/// The code point of the two ECN bits (RFC 3168 §5), numbered as in the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not-ECT: the transport does not understand ECN.
    #[default]
    NotCapable = 0,
    /// ECT(1): understood, and answered as a scalable congestion control does (L4S, RFC 9331 §4.1). Where a queue knows nothing
    /// of L4S it is worth what ECT(0) is (RFC 3168 §5).
    Ect1 = 1,
    /// ECT(0): understood, and answered as a loss would be.
    Ect0 = 2,
    /// CE: congestion experienced.
    Experienced = 3,
}

impl Ecn {
    /// That of the lower two bits of IPv4's type of service or IPv6's traffic class.
    #[must_use]
    pub const fn of_octet(octet: u8) -> Ecn {
        [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Experienced][(octet & 3) as usize]
    }

    /// The two bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Whether a packet may be marked rather than dropped: its transport understands ECN.
    #[must_use]
    #[inline]
    pub fn can_mark(self) -> bool {
        self != Ecn::NotCapable
    }

    /// RFC 9331 §5.1: whether an L4S node treats the packet as L4S traffic: ECT(1), or CE, which may have been either.
    #[must_use]
    #[inline]
    pub const fn is_l4s(self) -> bool {
        self.bits() & 1 == 1
    }

    /// Sets congestion experienced where the transport understands it (RFC 3168 §5); whether it does.
    #[inline]
    pub fn mark(&mut self) -> bool {
        let capable = self.can_mark();
        if capable {
            *self = Ecn::Experienced;
        }
        capable
    }
}

/// The packet's payload.
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
    /// Its payload.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3168, Figure 1; RFC 9331 §5.1: the identifier is the lower bit.
    #[test]
    fn code_points_are_the_two_bits() {
        let all = [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Experienced];
        for octet in 0..=255u8 {
            let ecn = Ecn::of_octet(octet);
            assert_eq!((ecn, ecn.bits()), (all[usize::from(octet % 4)], octet % 4));
            assert_eq!((ecn.can_mark(), ecn.is_l4s()), (octet % 4 != 0, octet % 2 == 1));
            let mut after = ecn;
            assert_eq!(after.mark(), ecn.can_mark());
            assert_eq!(after, if ecn.can_mark() { Ecn::Experienced } else { ecn });
        }
    }
}

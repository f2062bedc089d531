//! The agreement of the two ends in the handshake about ECN (RFC 3168 §6.1.1, RFC 9768 §3.1.1): the flags of SYN and SYN/ACK as a law, without
//! state. The flow's sender is the client, its receiver the server.
//!
//! Each end enters the mode of the first SYN or SYN/ACK that reaches it, and stays in it (RFC 9768 §3.1.5). Data goes one way here, so the
//! ACK of the SYN/ACK is the first segment of data, and the SYN/ACK, which is never ECT, can't be marked: its feedback (Table 3) would tell
//! nothing.

use inprofile_core::packet::Ecn;

use super::{Feedback, Flags};

inprofile_core::choice! {
    /// A receiver's support of ECN.
    pub enum Ability {
        /// RFC 9768: counts of what was marked; and ECN-Echo with senders that ask for no more.
        Accurate = "accurate",
        /// RFC 8257 §3.2: ECN-Echo of each mark.
        EachMark = "dctcp",
        /// RFC 3168: ECN-Echo until the sender has reduced its window.
        Classic = "classic",
        /// Nothing: no packet is ECT.
        None = "none",
    }
}

impl Ability {
    /// The protocol that it speaks.
    #[must_use]
    pub fn speaks(self) -> Option<Feedback> {
        match self {
            Ability::Accurate => Some(Feedback::Counter),
            Ability::EachMark => Some(Feedback::EachMark),
            Ability::Classic => Some(Feedback::Echo),
            Ability::None => None,
        }
    }
}

/// The flags of the SYN of a client that speaks this. Once two have gone without an answer (`lost`), accurate feedback is asked for no more:
/// something on the way may drop what it does not know (RFC 9768 §3.1.4.1). RFC 3168 §6.1.1.1 leaves that to the sender; this one goes on.
#[must_use]
pub fn syn(speaks: Option<Feedback>, lost: u32) -> Flags {
    let classic = Flags::CWR.and(Flags::ECE);
    match speaks {
        None => Flags::NONE,
        Some(Feedback::Counter) if lost > 1 => Flags::NONE,
        Some(Feedback::Counter) => classic.and(Flags::AE),
        Some(Feedback::Echo | Feedback::EachMark) => classic,
    }
}

/// The mode that a server which speaks this enters with the first SYN.
#[must_use]
pub fn server(speaks: Option<Feedback>, syn: Flags) -> Option<Feedback> {
    match (speaks?, syn.ace()) {
        (_, 0) => None,
        // RFC 9768 §3.1.2, the third block of Table 2.
        (Feedback::Counter, 0b011) => Some(Feedback::Echo),
        // RFC 9768 §3.1.3: what is not known asks for the same.
        (Feedback::Counter, _) => Some(Feedback::Counter),
        // RFC 3168 §6.1.1: an ECN-setup SYN has both; AE was reserved.
        (classic, _) => syn.has(Flags::CWR.and(Flags::ECE)).then_some(classic),
    }
}

/// The flags of the SYN/ACK of a server in this mode, whose latest SYN arrived with this code point (RFC 9768, Table 2 and §3.1.5).
#[must_use]
pub fn syn_ack(mode: Option<Feedback>, arrived: Ecn) -> Flags {
    Flags::SYN.and(match (mode, arrived) {
        (None, _) => Flags::NONE,
        (Some(Feedback::Echo | Feedback::EachMark), _) => Flags::ECE,
        (Some(Feedback::Counter), Ecn::NotCapable) => Flags::CWR,
        (Some(Feedback::Counter), Ecn::Ect1) => Flags::CWR.and(Flags::ECE),
        (Some(Feedback::Counter), Ecn::Ect0) => Flags::AE,
        (Some(Feedback::Counter), Ecn::Experienced) => Flags::AE.and(Flags::CWR),
    })
}

/// The client's knowledge from the first SYN/ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// How marks come back; `None`: there is no ECN.
    pub mode: Option<Feedback>,
    /// With accurate feedback: the code point with which the SYN arrived.
    pub arrived: Option<Ecn>,
}

/// The knowledge that a SYN/ACK gives a client that speaks this and takes RFC 3168's ECN for `classic`; its SYN was `sent` with this code point.
#[must_use]
pub fn client(speaks: Option<Feedback>, classic: Feedback, sent: Ecn, answer: Flags) -> Agreed {
    let without = |mode| Agreed { mode, arrived: None };
    let accurate = |arrived| Agreed { mode: Some(Feedback::Counter), arrived: Some(arrived) };
    match (speaks, answer.ace()) {
        (None, _) => without(None),
        // RFC 9768, Table 2.
        (Some(Feedback::Counter), 0b010) => accurate(Ecn::NotCapable),
        (Some(Feedback::Counter), 0b011) => accurate(Ecn::Ect1),
        (Some(Feedback::Counter), 0b100) => accurate(Ecn::Ect0),
        (Some(Feedback::Counter), 0b110) => accurate(Ecn::Experienced),
        // RFC 9768 §3.1.3: reserved, once ECN Nonce's; as if the SYN had arrived unchanged.
        (Some(Feedback::Counter), 0b101) => accurate(sent),
        (Some(Feedback::Counter), 0b001) => without(Some(classic)),
        // The fourth block: a server that sends back what it was sent.
        (Some(Feedback::Counter), _) => without(None),
        // RFC 3168 §6.1.1: an ECN-setup SYN/ACK has ECE and not CWR.
        (Some(own), _) => without((answer.ace() & 0b011 == 0b001).then_some(own)),
    }
}

/// RFC 9768 §3.2.2.3, RFC 3168 §18: whether no router may change one code point to the other.
#[must_use]
pub fn is_mangled(sent: Ecn, arrived: Ecn) -> bool {
    match sent {
        Ecn::NotCapable => arrived != Ecn::NotCapable,
        Ecn::Ect0 | Ecn::Ect1 => arrived == Ecn::NotCapable,
        Ecn::Experienced => arrived != Ecn::Experienced,
    }
}

pub mod flags {
    //! The flags of TCP's header that a packet here carries: the three of ECN (RFC 3168 §6.1.1, RFC 9768 §3.1.1), and SYN where they have the
    //! handshake's meaning. What they mean is for the two ends to know.

    /// ECN's three flags, and SYN.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags(u8);

    impl Flags {
        /// None is set.
        pub const NONE: Flags = Flags(0);
        /// ECN-Echo.
        pub const ECE: Flags = Flags(1);
        /// Congestion window reduced.
        pub const CWR: Flags = Flags(2);
        /// Accurate ECN.
        pub const AE: Flags = Flags(4);
        /// An acknowledgement is a SYN/ACK. Not set in the SYN itself, nor where a flow has no ECN.
        pub const SYN: Flags = Flags(8);

        /// From [`Flags::bits`].
        #[inline(always)]
        #[must_use]
        pub const fn from_bits(bits: u8) -> Flags {
            Flags(bits & 15)
        }

        /// A number of four bits: SYN, AE, CWR, ECE, from the most significant.
        #[inline(always)]
        #[must_use]
        pub const fn bits(self) -> u8 {
            self.0
        }

        /// Those set in either.
        #[inline(always)]
        #[must_use]
        pub const fn and(self, others: Flags) -> Flags {
            Flags(self.0 | others.0)
        }

        /// Whether all of these are set.
        #[inline(always)]
        #[must_use]
        pub const fn has(self, others: Flags) -> bool {
            self.0 & others.0 == others.0
        }

        /// ECN's three as one number (RFC 9768 §3.2.2, Figure 3; in a SYN or a SYN/ACK, a row of its Table 2).
        #[inline(always)]
        #[must_use]
        pub const fn ace(self) -> u8 {
            self.0 & 7
        }

        /// The three with this value.
        #[inline(always)]
        #[must_use]
        pub const fn of_ace(ace: u8) -> Flags {
            Flags(ace & 7)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPOKEN: [Option<Feedback>; 4] =
        [None, Some(Feedback::Echo), Some(Feedback::EachMark), Some(Feedback::Counter)];
    const POINTS: [Ecn; 4] = [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Experienced];

    /// RFC 9768 §3.1.1, Table 2, as printed: what A and B speak, the SYN's and the SYN/ACK's AE, CWR and ECE, and A's mode.
    #[test]
    fn table_2() {
        let (accurate, echo) = (Some(Feedback::Counter), Some(Feedback::Echo));
        let rows = [
            (accurate, accurate, 0b111, Ecn::NotCapable, 0b010, accurate),
            (accurate, accurate, 0b111, Ecn::Ect1, 0b011, accurate),
            (accurate, accurate, 0b111, Ecn::Ect0, 0b100, accurate),
            (accurate, accurate, 0b111, Ecn::Experienced, 0b110, accurate),
            (accurate, echo, 0b111, Ecn::Ect1, 0b001, echo),
            (accurate, None, 0b111, Ecn::Ect1, 0b000, None),
            (echo, accurate, 0b011, Ecn::NotCapable, 0b001, echo),
            (None, accurate, 0b000, Ecn::NotCapable, 0b000, None),
        ];
        for (a, b, asked, point, answered, mode) in rows {
            assert_eq!(syn(a, 0).ace(), asked, "{a:?} {b:?}");
            let answer = syn_ack(server(b, syn(a, 0)), point);
            assert_eq!(answer, Flags::SYN.and(Flags::of_ace(answered)), "{a:?} {b:?}");
            let agreed = client(a, Feedback::Echo, point, answer);
            assert_eq!(agreed.mode, mode, "{a:?} {b:?}");
            assert_eq!(agreed.arrived, (mode == accurate).then_some(point));
        }
        // The reserved row, and the fourth block.
        let nonce = client(accurate, Feedback::Echo, Ecn::Ect1, Flags::AE.and(Flags::ECE));
        assert_eq!(nonce, Agreed { mode: accurate, arrived: Some(Ecn::Ect1) });
        assert_eq!(client(accurate, Feedback::Echo, Ecn::Ect1, Flags::of_ace(7)).mode, None);
    }

    /// RFC 9768 §3.1.5: whatever of its SYNs arrives first, and whatever of their answers, both ends are in one mode.
    #[test]
    fn both_ends_are_in_one_mode() {
        for (a, b) in SPOKEN.into_iter().flat_map(|a| SPOKEN.map(|b| (a, b))) {
            // The answer to a later SYN is in the mode of the first to arrive.
            for (lost, point) in (0..3).flat_map(|lost| POINTS.map(|point| (lost, point))) {
                let of_server = server(b, syn(a, lost));
                let of_client = client(a, Feedback::Echo, point, syn_ack(of_server, point)).mode;
                assert_eq!(of_client.is_some(), of_server.is_some(), "{a:?} {b:?} {lost}");
                let accurate = |mode| mode == Some(Feedback::Counter);
                assert_eq!(accurate(of_client), accurate(of_server), "{a:?} {b:?} {lost}");
            }
        }
    }

    /// RFC 9768 §3.1.3: what a server does not know asks for accurate feedback. RFC 3168 §6.1.1: its server wants both flags.
    #[test]
    fn a_syn_that_is_not_known() {
        for asked in 1..8 {
            let mode = |speaks| server(Some(speaks), Flags::of_ace(asked));
            let accurate = if asked == 0b011 { Feedback::Echo } else { Feedback::Counter };
            assert_eq!(mode(Feedback::Counter), Some(accurate));
            assert_eq!(mode(Feedback::Echo), (asked & 0b011 == 0b011).then_some(Feedback::Echo));
        }
    }

    /// RFC 9768 §3.2.2.3, RFC 3168 §18: not-ECT and CE stay; ECT becomes CE, or the other ECT, but not not-ECT.
    #[test]
    fn what_no_router_may_do() {
        let bad = |sent| POINTS.map(|arrived| is_mangled(sent, arrived));
        assert_eq!(bad(Ecn::NotCapable), [false, true, true, true]);
        assert_eq!(bad(Ecn::Ect1), [true, false, false, false]);
        assert_eq!(bad(Ecn::Ect0), [true, false, false, false]);
        assert_eq!(bad(Ecn::Experienced), [true, true, true, false]);
    }
}

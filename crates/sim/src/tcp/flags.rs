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

//! Accurate ECN feedback (RFC 9768): each acknowledgement carries, modulo 8, how many packets marked CE the receiver has seen (the ACE
//! field). Where both ends have it, the sender learns of every mark, and not only that there was one in a window.
//!
//! That both ends have it is [agreed on](super::negotiation) in the handshake. Here: the field, with the rule for when it may have wrapped; the
//! option that tells of bytes has [a file of its own](super::byte_option).

use super::Flags;
use super::byte_option::{ByteOption, Reader};

/// The divisor of the ACE field (DIVACE).
const MODULUS: u32 = 8;
/// RFC 9768 §3.2.1: both counters begin here, so that a field of zeros tells of a broken path.
const INITIAL: u32 = 5;
/// The ACE field of one who was sent nothing marked.
pub const UNMARKED: Flags = Flags::of_ace(INITIAL as u8);

/// The receiver's end.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// r.cep: packets marked CE so far.
    packets: u32,
    /// Whether the last packet was.
    experienced: bool,
}

impl Default for Counter {
    /// No packet has come.
    fn default() -> Counter {
        Counter { packets: INITIAL, experienced: false }
    }
}

impl Counter {
    /// A packet arrives. True: it is acknowledged at once, as it is marked and the one before was not (§3.2.2.5.1, change-triggered).
    pub fn arrived(&mut self, ce: bool) -> bool {
        // §3.2: every packet counts, retransmissions too.
        self.packets = self.packets.wrapping_add(u32::from(ce));
        let before = std::mem::replace(&mut self.experienced, ce);
        ce && !before
    }

    /// A SYN arrives. §3.2: the SYN/ACK tells of its mark, and it counts no more; §3.2.2.5.1: but it is a packet before another.
    pub fn syn_arrived(&mut self, ce: bool) {
        self.experienced = ce;
    }

    /// The ACE field of an acknowledgement sent now.
    pub fn ace(&self) -> Flags {
        Flags::of_ace((self.packets % MODULUS) as u8)
    }
}

/// The sender's end: s.cep.
#[derive(Clone, Copy, Debug)]
pub struct Tracker(u32);

impl Default for Tracker {
    /// Nothing is acknowledged.
    fn default() -> Tracker {
        Tracker(INITIAL)
    }
}

impl Tracker {
    /// Whether an acknowledgement with this ACE field, which tells that `delivered` more packets have arrived, tells of no mark.
    #[inline]
    pub fn is_told(&self, flags: Flags, delivered: u32) -> bool {
        delivered < MODULUS && u32::from(flags.bits()) == self.0 % MODULUS
    }

    /// An acknowledgement with this ACE field tells that `delivered` more packets have arrived: how many more were marked.
    pub fn marks(&mut self, ace: u8, delivered: u32) -> u32 {
        if delivered == 0 {
            // §3.2.2.5.2: one that tells of nothing new may be older than others.
            return 0;
        }
        let least = self.least(ace);
        let marks = if delivered < MODULUS {
            least
        } else {
            // §3.2.2.5.2 and Appendix A.2: the field may have wrapped. The safest likely case: as many as it can mean of what arrived.
            delivered - (delivered - least) % MODULUS
        };
        self.0 = self.0.wrapping_add(marks);
        marks
    }

    /// The same where the acknowledgement has an option that tells of bytes, and packets have so many.
    pub fn marks_with(
        &mut self,
        ace: u8,
        delivered: u32,
        option: &ByteOption,
        segment: u32,
        reader: &mut Reader,
    ) -> u32 {
        if delivered == 0 {
            // Appendix A.1: as above.
            return 0;
        }
        let marks = reader.marks(option, segment, self.least(ace), MODULUS);
        self.0 = self.0.wrapping_add(marks);
        marks
    }

    /// How many more were marked, at least and modulo 8 (d.cep).
    fn least(&self, ace: u8) -> u32 {
        (u32::from(ace) + MODULUS - self.0 % MODULUS) % MODULUS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// RFC 9768 §3.2.2.5.2: whatever acknowledgements are lost, the sender is told of every mark as long as each covers fewer than
        /// eight packets; and beyond that of no fewer.
        #[test]
        fn no_mark_is_missed(
            packets in prop::collection::vec(any::<bool>(), 1..400), lengths in prop::collection::vec(1usize..40, 1..60),
        ) {
            let (mut receiver, mut sender) = (Counter::default(), Tracker::default());
            let (mut marked, mut told, mut short, mut from) = (0, 0, true, 0);
            for n in lengths {
                let of = &packets[from.min(packets.len())..(from + n).min(packets.len())];
                if of.is_empty() { break }
                from += n;
                of.iter().for_each(|ce| { receiver.arrived(*ce); });
                marked += of.iter().filter(|ce| **ce).count() as u32;
                told += sender.marks(receiver.ace().ace(), of.len() as u32);
                short &= of.len() < 8;
                prop_assert!(told >= marked, "{told} of {marked}");
                prop_assert_eq!(told % 8, marked % 8);
                if short {
                    prop_assert_eq!(told, marked);
                }
            }
        }
    }

    /// RFC 9768 §3.2.2.5.2 and Appendix A.2, by hand.
    #[test]
    fn the_field_may_have_wrapped() {
        // From 5 to 6: one of seven, one or nine of ten.
        assert_eq!(Tracker(5).marks(6, 7), 1);
        assert_eq!(Tracker(5).marks(6, 10), 9);
        assert_eq!(Tracker(5).marks(5, 8), 8);
        assert_eq!(Tracker(5).marks(5, 7), 0);
        assert_eq!(Tracker(7).marks(1, 2), 2);
        assert_eq!(Tracker(7).marks(1, 0), 0);
    }

    /// RFC 9768 §3.2.2.5.1: an acknowledgement at once for the first mark after a packet without.
    #[test]
    fn the_first_mark_is_told_at_once() {
        let mut counter = Counter::default();
        let told: Vec<bool> = [false, true, true, false, true].map(|ce| counter.arrived(ce)).to_vec();
        assert_eq!(told, [false, true, false, false, true]);
        assert_eq!(counter.ace(), Flags::NONE);
    }
}

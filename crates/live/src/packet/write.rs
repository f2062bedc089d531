//! Writing: the DSCP and the ECN bits, and IPv4's checksum with them; the classes of tags and labels. Nothing else of a
//! frame ever changes.

use super::{Family, Headers, Link};
use crate::code_points::Dscp;

/// Where a packet's DSCP and ECN bits are in its frame. Much smaller than all its headers: a queue keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Where the IP header begins.
    at: u32,
    family: Family,
}

impl Headers {
    /// Where to write the DSCP and the ECN bits.
    #[must_use]
    pub fn bits(&self) -> Bits {
        Bits { at: self.link.at as u32, family: self.family }
    }
}

/// Writes the DSCP; the ECN bits stay (RFC 3168 §5). False if the frame isn't the one that `bits` are of.
pub fn set_dscp(frame: &mut [u8], bits: Bits, dscp: Dscp) -> bool {
    rewrite(frame, bits, |octet| (dscp.value() << 2) | (octet & 3))
}

/// Sets both ECN bits; the DSCP stays. Only for a packet whose transport understands it (RFC 3168 §5).
pub fn congestion_experienced(frame: &mut [u8], bits: Bits) -> bool {
    rewrite(frame, bits, |octet| octet | 3)
}

/// Changes the octet that holds DSCP and ECN. A checksum that was wrong stays wrong by as much: no damage is
/// covered up.
fn rewrite(frame: &mut [u8], bits: Bits, change: impl Fn(u8) -> u8) -> bool {
    let Some(ip) = frame.get_mut(bits.at as usize..) else { return false };
    match bits.family {
        Family::V4 => {
            let Some(h) = ip.first_chunk_mut::<20>() else { return false };
            let new = change(h[1]);
            let before = u16::from_be_bytes([h[0], h[1]]);
            let after = u16::from_be_bytes([h[0], new]);
            let sum = checksum::update(u16::from_be_bytes([h[10], h[11]]), before, after);
            if before != after {
                h[1] = new;
                [h[10], h[11]] = sum.to_be_bytes();
            }
        }
        Family::V6 => {
            let Some(h) = ip.first_chunk_mut::<40>() else { return false };
            let new = change((h[0] << 4) | (h[1] >> 4));
            h[0] = (h[0] & 0xf0) | (new >> 4);
            h[1] = (h[1] & 0x0f) | (new << 4);
        }
    }
    true
}

/// Takes the classes off the link layer of an Ethernet frame: the priority of its VLAN tags (IEEE 802.1Q §6.9.3) and the
/// traffic class of its MPLS labels (RFC 5462) become 0, best effort. The drop-eligible bit stays.
pub fn clear_link_classes(frame: &mut [u8]) {
    let (link, _) = Link::read(frame);
    for tag in 0..usize::from(link.tags) {
        if let Some(tci) = frame.get_mut(14 + 4 * tag) {
            *tci &= 0x1f;
        }
    }
    for label in 0..usize::from(link.labels) {
        if let Some(octet) = frame.get_mut(link.labels_at + 4 * label + 2) {
            *octet &= 0xf1;
        }
    }
}

pub mod checksum {
    //! The Internet checksum: computed in full (RFC 1071), and updated for one changed word (RFC 1624).

    /// The one's complement sum of `bytes` in words of 16 bits, an odd last byte padded with zero; folded, not inverted.
    ///
    /// RFC 1071 §2 (B) and (C): in the machine's own order of bytes, four words at a time, in four sums that don't wait for
    /// each other.
    #[must_use]
    pub fn sum(bytes: &[u8]) -> u16 {
        let (words, rest) = bytes.as_chunks::<8>();
        let (fours, few) = words.as_chunks::<4>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let wide = |word: &[u8; 8]| u128::from(u64::from_ne_bytes(*word));
        let mut sums = [0; 4];
        for four in fours {
            for (sum, word) in sums.iter_mut().zip(four) {
                *sum += wide(word);
            }
        }
        let total: u128 = sums.iter().sum::<u128>() + few.iter().chain([&last]).map(wide).sum::<u128>();
        // 2^64 is 1 in one's complement arithmetic of 16 bits.
        let (low, high) = (total as u64, (total >> 64) as u64);
        u16::from_be(fold((low & 0xffff_ffff) + (low >> 32) + high))
    }

    /// The one's complement sum of two words.
    #[must_use]
    pub fn add(one: u16, other: u16) -> u16 {
        fold(u64::from(one) + u64::from(other))
    }

    /// The checksum of a header in which the field itself counts as it is: 0 where that is right.
    #[must_use]
    pub fn check(header: &[u8]) -> u16 {
        !sum(header)
    }

    /// RFC 1624 Eq. 3: HC' = ~(~HC + ~m + m'), for one word that changes from `old` to `new`.
    #[must_use]
    pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
        !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
    }

    fn fold(mut s: u64) -> u16 {
        while s >> 16 != 0 {
            s = (s & 0xffff) + (s >> 16);
        }
        s as u16
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use proptest::prelude::*;

        #[test]
        fn rfc_1624_section_4() {
            // The RFC's own example: HC = 0xDD2F, m = 0x5555, m' = 0x3285 gives 0x0000.
            assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
        }

        #[test]
        fn rfc_1071_section_3() {
            assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
            assert_eq!(sum(&[0x12]), 0x1200);
        }

        proptest! {
            /// RFC 1071 §1: word by word in network order.
            #[test]
            fn a_sum_is_that_of_its_words(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
                let words = bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | w.get(1).map_or(0, |b| u64::from(*b)));
                let mut slow: u64 = words.sum();
                while slow > 0xffff {
                    slow = (slow & 0xffff) + (slow >> 16);
                }
                prop_assert_eq!(u64::from(sum(&bytes)), slow);
            }

            /// The short way gives what the long way does, for every header that is not all zero.
            #[test]
            fn an_update_is_a_recomputation(mut header in prop::array::uniform20(any::<u8>()), at in 0usize..9, word in any::<u16>()) {
                header[0] |= 0x40;
                let at = 2 * if at < 5 { at } else { at + 1 };
                (header[10], header[11]) = (0, 0);
                let before = check(&header);
                [header[10], header[11]] = before.to_be_bytes();
                let old = u16::from_be_bytes([header[at], header[at + 1]]);
                let word = if at == 0 { word | 0x4000 } else { word };
                [header[at], header[at + 1]] = word.to_be_bytes();
                let short = update(before, old, word);
                (header[10], header[11]) = (0, 0);
                prop_assert_eq!(short, check(&header));
            }
        }
    }
}

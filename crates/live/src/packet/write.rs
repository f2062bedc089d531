//! Writing: the DSCP and the ECN bits, and IPv4's checksum with them; the classes of tags and labels. Nothing else of a
//! frame ever changes.

use super::checksum;
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

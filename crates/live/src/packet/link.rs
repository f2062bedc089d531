//! The part of a frame before the IP header: Ethernet, VLAN tags (IEEE 802.1Q, stacked as in 802.1ad), a PPPoE session
//! (RFC 2516), MPLS labels (RFC 3032); and the frames by which links and neighbours are kept up, which carry none.
//!
//! Non-goal: what is encrypted, compressed or put together from pieces behind the link layer (MACsec, multilink PPP,
//! pseudowires, tunnels in IP): that is opaque, or the IP packet outside counts.

use super::{Control, Layer, Unread};

/// IEEE 802: what an Ethernet frame carries.
mod ether {
    /// A type below this is the length of an 802.3 frame.
    pub const FIRST_TYPE: u16 = 0x0600;
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    pub const RARP: u16 = 0x8035;
    pub const IPV6: u16 = 0x86dd;
    /// PAUSE (IEEE 802.3 Annex 31B).
    pub const MAC_CONTROL: u16 = 0x8808;
    pub const SLOW_PROTOCOLS: u16 = 0x8809;
    pub const MPLS: u16 = 0x8847;
    /// Of labels that the one before has given out, once multicast.
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    pub const PPPOE_DISCOVERY: u16 = 0x8863;
    pub const PPPOE_SESSION: u16 = 0x8864;
    pub const EAPOL: u16 = 0x888e;
    pub const LLDP: u16 = 0x88cc;
    /// IEEE 802.1Q and 802.1ad, and the number stacked tags had before that.
    pub const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
}

/// Bytes of a VLAN tag.
pub const TAG: usize = 4;

/// IANA's PPP protocol numbers.
mod ppp {
    pub const IPV4: u16 = 0x0021;
    pub const IPV6: u16 = 0x0057;
    pub const MPLS: u16 = 0x0281;
    /// From here on: network control protocols, and above 0xc000 link control, authentication, link quality.
    pub const FIRST_CONTROL: u16 = 0x8000;
}

/// Addresses and type.
pub const ETHERNET_HEADER: usize = 14;
/// Shorter frames are padded to 60 bytes, tags and the check sequence beside that (IEEE 802.3 §3.2.8).
pub const SHORTEST_PAYLOAD: usize = 46;
/// The most VLAN tags that are looked behind.
pub const MOST_TAGS: u8 = 4;
/// The most MPLS labels that are looked behind.
pub const MOST_LABELS: u8 = 8;
/// Bytes that may stand before an IP packet that is looked into.
pub const MOST_BEFORE_IP: usize = ETHERNET_HEADER + TAG * MOST_TAGS as usize + 8 + 4 * MOST_LABELS as usize;

/// Whether an interface of this MTU sends a frame: as Linux has it, one tag of IEEE 802.1Q goes beside the MTU, none of 802.1ad.
#[must_use]
pub fn fits(layer: Layer, frame: &[u8], mtu: usize) -> bool {
    let beside = match layer {
        Layer::Ip => 0,
        Layer::Ethernet if word(frame, ETHERNET_HEADER - 2) == Some(ether::TAGS[0]) => ETHERNET_HEADER + TAG,
        Layer::Ethernet => ETHERNET_HEADER,
    };
    frame.len() <= mtu + beside
}

/// The part of a frame before the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The Ethernet address it came from.
    pub source: [u8; 6],
    /// Where the IP header begins in the frame; where no IP is found, how far it was read.
    pub at: usize,
    /// VLAN tags.
    pub tags: u8,
    /// The VLANs of the two outermost tags.
    pub vlans: [Option<u16>; 2],
    /// The PPPoE session.
    pub session: Option<u16>,
    /// MPLS labels.
    pub labels: u8,
    /// Where the first label is.
    pub labels_at: usize,
    /// The PPPoE header's length field says something else than what is there.
    pub(super) disagrees: bool,
}

impl Link {
    /// Bytes between the Ethernet header and the IP header.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.at.saturating_sub(ETHERNET_HEADER) as u32
    }

    /// Whether a frame is so short that what is behind its packet is padding.
    pub(super) fn may_be_padded(&self, frame: &[u8]) -> bool {
        frame.len() <= ETHERNET_HEADER + SHORTEST_PAYLOAD + TAG * usize::from(self.tags)
    }

    /// Reads up to the IP header. `Ok`: there should be one of this version; 0: one of either.
    pub(super) fn read(frame: &[u8]) -> (Link, Result<u8, Unread>) {
        let source = frame.get(6..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        let mut link = Link { at: ETHERNET_HEADER, source, ..Link::default() };
        let found = link.ethernet(frame);
        (link, found)
    }

    fn ethernet(&mut self, frame: &[u8]) -> Result<u8, Unread> {
        loop {
            let kind = word(frame, self.at - 2).ok_or(Unread::Truncated)?;
            if !ether::TAGS.contains(&kind) {
                return self.payload(kind, frame);
            }
            if self.tags == MOST_TAGS {
                return Err(Unread::TooDeep);
            }
            let tci = word(frame, self.at).ok_or(Unread::Truncated)?;
            if let Some(vlan) = self.vlans.get_mut(usize::from(self.tags)) {
                *vlan = Some(tci & 0xfff);
            }
            self.tags += 1;
            self.at += TAG;
        }
    }

    fn payload(&mut self, kind: u16, frame: &[u8]) -> Result<u8, Unread> {
        match kind {
            ether::IPV4 => Ok(4),
            ether::IPV6 => Ok(6),
            ether::PPPOE_SESSION => self.pppoe(frame),
            ether::MPLS | ether::MPLS_UPSTREAM => self.mpls(frame),
            ether::ARP | ether::RARP => Err(Unread::Control(Control::Arp)),
            ether::PPPOE_DISCOVERY => Err(Unread::Control(Control::PppoeDiscovery)),
            ether::SLOW_PROTOCOLS => Err(Unread::Control(Control::SlowProtocols)),
            ether::EAPOL => Err(Unread::Control(Control::Eapol)),
            ether::LLDP => Err(Unread::Control(Control::Lldp)),
            ether::MAC_CONTROL => Err(Unread::MacControl),
            length if length < ether::FIRST_TYPE => Err(self.llc(frame)),
            _ => Err(Unread::NotIp),
        }
    }

    /// IEEE 802.2: a spanning tree's frames, also those with which Cisco's switches keep a tree a VLAN, behind SNAP.
    fn llc(&self, frame: &[u8]) -> Unread {
        let spanning_tree = matches!(
            frame.get(self.at..),
            Some([0x42, 0x42, 3, ..] | [0xaa, 0xaa, 3, 0x00, 0x00, 0x0c, 0x01, 0x0b, ..])
        );
        if spanning_tree { Unread::Control(Control::SpanningTree) } else { Unread::NotIp }
    }

    /// RFC 2516 §4 and §6.
    fn pppoe(&mut self, frame: &[u8]) -> Result<u8, Unread> {
        let Some(&[kind, code, s1, s2, l1, l2]) = frame.get(self.at..).and_then(|h| h.first_chunk()) else {
            return Err(Unread::Truncated);
        };
        // Version 1, type 1; code 0 is a session's data.
        if (kind, code) != (0x11, 0) {
            return Err(Unread::Malformed);
        }
        self.session = Some(u16::from_be_bytes([s1, s2]));
        self.at += 6;
        let (length, there) = (usize::from(u16::from_be_bytes([l1, l2])), frame.len() - self.at);
        self.disagrees = length > there || (length < there && !self.may_be_padded(frame));
        // RFC 1661 §2: a protocol's number ends with the first odd byte, so that it may be one byte long.
        let protocol = match frame.get(self.at).ok_or(Unread::Truncated)? {
            odd if odd & 1 == 1 => {
                self.at += 1;
                u16::from(*odd)
            }
            _ => {
                self.at += 2;
                word(frame, self.at - 2).ok_or(Unread::Truncated)?
            }
        };
        match protocol {
            ppp::IPV4 => Ok(4),
            ppp::IPV6 => Ok(6),
            ppp::MPLS => self.mpls(frame),
            ppp::FIRST_CONTROL.. => Err(Unread::Control(Control::Ppp)),
            _ => Err(Unread::NotIp),
        }
    }

    /// RFC 3032 §2.1. What the last label stands for only its router knows: by the first bits it is IPv4, IPv6 or neither
    /// (RFC 4928 §3).
    fn mpls(&mut self, frame: &[u8]) -> Result<u8, Unread> {
        self.labels_at = self.at;
        loop {
            let entry: &[u8; 4] =
                frame.get(self.at..).and_then(|h| h.first_chunk()).ok_or(Unread::Truncated)?;
            self.labels += 1;
            self.at += 4;
            if entry[2] & 1 == 1 {
                return Ok(0);
            }
            if self.labels == MOST_LABELS {
                return Err(Unread::TooDeep);
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

//! A frame's headers: read without ever panicking, and the few bits of them that may be written.
//!
//! A frame that is not IP, or is broken, is not an error: it is [opaque](Opaque), and [counted](Census). No length field is
//! believed about how much there is: a packet is as long as what was received of it.

mod link;
mod read;
mod write;

pub use link::{ETHERNET_HEADER, Link, MOST_BEFORE_IP, MOST_LABELS, MOST_TAGS, SHORTEST_PAYLOAD, TAG, fits};
pub use read::parse;
pub use write::{Bits, checksum, clear_link_classes, congestion_experienced, set_dscp};

use inprofile_core::packet::{Colour, Ecn, FlowId, Kind, Packet};

use crate::code_points::Dscp;

/// IPv4's header: there is no shorter IP packet.
pub const SHORTEST_IP: usize = 20;

/// The first layer of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// An Ethernet header.
    Ethernet,
    /// The IP header: a TUN device.
    Ip,
}

/// Which IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

/// The transport of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP (RFC 9293).
    Tcp {
        /// Source and destination port.
        ports: (u16, u16),
        /// Number of the first byte.
        seq: u32,
        /// The next byte expected.
        ack: u32,
        /// The octet of flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
        flags: u8,
    },
    /// UDP (RFC 768).
    Udp {
        /// Source and destination port.
        ports: (u16, u16),
    },
    /// Something else, or a transport header that is cut off.
    Other,
    /// A fragment. Whose it is should not depend on which it is, so it has no ports of its own.
    Fragment {
        /// The identification that all fragments of a packet share, beside its addresses and IPv4's protocol.
        id: u32,
        /// The packet's ports, which only the first fragment shows.
        first: Option<(u16, u16)>,
    },
}

/// The headers of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Which IP.
    pub family: Family,
    /// The part of a frame before the IP header.
    pub link: Link,
    /// Bytes received behind the link layer, whatever the length field says; the padding of a short frame isn't among
    /// them.
    pub size: u32,
    /// A length field says something else than that.
    pub length_disagrees: bool,
    /// Bytes of what the transport carries; of the IP payload where there is no transport known.
    pub payload: u32,
    /// DSCP.
    pub dscp: Dscp,
    /// ECN bits.
    pub ecn: Ecn,
    /// The number of the transport, behind any extension headers.
    pub protocol: u8,
    /// Addresses, source and destination; IPv4's in the first four bytes.
    pub addresses: ([u8; 16], [u8; 16]),
    /// The transport's header.
    pub transport: Transport,
    /// It keeps neighbours up.
    pub control: Option<Control>,
}

impl Headers {
    /// Source and destination port, if the packet is whole and has some.
    #[must_use]
    pub fn ports(&self) -> Option<(u16, u16)> {
        match self.transport {
            Transport::Tcp { ports, .. } | Transport::Udp { ports } => Some(ports),
            Transport::Other | Transport::Fragment { .. } => None,
        }
    }

    /// Those of a packet that goes the other way.
    #[must_use]
    pub fn reversed(&self) -> Headers {
        let transport = match self.transport {
            Transport::Tcp { ports: (a, b), seq, ack, flags } => {
                Transport::Tcp { ports: (b, a), seq, ack, flags }
            }
            Transport::Udp { ports: (a, b) } => Transport::Udp { ports: (b, a) },
            Transport::Fragment { id, first } => {
                Transport::Fragment { id, first: first.map(|(a, b)| (b, a)) }
            }
            Transport::Other => Transport::Other,
        };
        let (a, b) = self.addresses;
        Headers { addresses: (b, a), transport, ..*self }
    }

    /// The packet as mechanisms see it, once its flow is known.
    #[must_use]
    pub fn packet(&self, flow: FlowId, colour: Colour, class: u8) -> Packet {
        let (kind, seq, ack) = match self.transport {
            Transport::Tcp { seq, ack, flags, .. } => {
                let kind = if flags & 0x02 != 0 {
                    Kind::Syn
                } else if self.payload > 0 {
                    Kind::Data
                } else {
                    Kind::Ack
                };
                (kind, seq, ack)
            }
            _ => (Kind::Datagram, 0, 0),
        };
        Packet { flow, size: self.size, payload: self.payload, seq, ack, colour, kind, ecn: self.ecn, class }
    }
}

/// Protocols that keep links and neighbours up, and are no customer's traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Control {
    /// ARP (RFC 826) and RARP.
    Arp = 0,
    /// IPv6 neighbour discovery (RFC 4861).
    NeighbourDiscovery,
    /// IEEE 802.1AB.
    Lldp,
    /// IEEE 802.1D and its successors.
    SpanningTree,
    /// LACP, OAM and what else IEEE 802.3 calls slow protocols.
    SlowProtocols,
    /// IEEE 802.1X.
    Eapol,
    /// PPPoE's discovery stage (RFC 2516).
    PppoeDiscovery,
    /// PPP's link and network control within a PPPoE session (RFC 1661).
    Ppp,
}

impl Control {
    /// All of them, in order.
    pub const ALL: [Control; 8] = [
        Control::Arp,
        Control::NeighbourDiscovery,
        Control::Lldp,
        Control::SpanningTree,
        Control::SlowProtocols,
        Control::Eapol,
        Control::PppoeDiscovery,
        Control::Ppp,
    ];

    /// Its name in counts.
    #[must_use]
    pub fn name(self) -> &'static str {
        Census::NAMES[8 + self as usize]
    }
}

/// A frame that is not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// Why not.
    pub why: Unread,
    /// The part before its payload, as far as it was read: by this its sender can still be known.
    pub link: Link,
    /// All of it behind the link's first header, and no less than the shortest there is.
    pub size: u32,
}

/// Why a frame is not looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// It keeps links or neighbours up.
    Control(Control),
    /// Some other protocol.
    NotIp,
    /// Behind more VLAN tags or MPLS labels than are looked behind.
    TooDeep,
    /// Cut off within the headers it claims to have.
    Truncated,
    /// A header that can't be: a wrong version, a length shorter than itself.
    Malformed,
    /// PAUSE and its like: meant for the port that hears it, no bridge forwards it (IEEE 802.1Q Table 8-1).
    MacControl,
}

/// A frame's headers, or why it is opaque.
pub type Seen = Result<Headers, Opaque>;

/// Frames by what they turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    counts: [u64; Census::NAMES.len()],
}

impl Census {
    /// The kinds, in the order of [`Census::iter`].
    pub const NAMES: [&'static str; 21] = [
        "ipv4_tcp",
        "ipv4_udp",
        "ipv4_other",
        "ipv4_fragment",
        "ipv6_tcp",
        "ipv6_udp",
        "ipv6_other",
        "ipv6_fragment",
        "arp",
        "neighbour_discovery",
        "lldp",
        "spanning_tree",
        "slow_protocols",
        "eapol",
        "pppoe_discovery",
        "ppp_control",
        "not_ip",
        "too_deep",
        "truncated",
        "malformed",
        "mac_control",
    ];

    /// Counts one frame.
    pub fn count(&mut self, seen: &Seen) {
        let index = match seen {
            Ok(Headers { control: Some(control), .. })
            | Err(Opaque { why: Unread::Control(control), .. }) => 8 + *control as usize,
            Ok(h) => {
                let transport = match h.transport {
                    Transport::Tcp { .. } => 0,
                    Transport::Udp { .. } => 1,
                    Transport::Other => 2,
                    Transport::Fragment { .. } => 3,
                };
                transport + if h.family == Family::V4 { 0 } else { 4 }
            }
            Err(Opaque { why: Unread::NotIp, .. }) => 16,
            Err(Opaque { why: Unread::TooDeep, .. }) => 17,
            Err(Opaque { why: Unread::Truncated, .. }) => 18,
            Err(Opaque { why: Unread::Malformed, .. }) => 19,
            Err(Opaque { why: Unread::MacControl, .. }) => 20,
        };
        self.counts[index] += 1;
    }

    /// Every kind and how many there were.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Census::NAMES.into_iter().zip(self.counts)
    }

    /// All frames.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    //! Frames as they are built for the tests of what is read of them and written into them.

    mod ip;
    mod link;

    use super::*;

    /// The headers, or why the frame is opaque.
    fn parse(layer: Layer, frame: &[u8]) -> Result<Headers, Unread> {
        super::parse(layer, frame).map_err(|opaque| opaque.why)
    }

    /// 10.0.0.1:1000 → 10.0.0.2:2000, with options, and a right checksum.
    fn v4(options: &[u8], protocol: u8, body: &[u8], flags_and_offset: u16) -> Vec<u8> {
        assert_eq!(options.len() % 4, 0);
        let header = 20 + options.len();
        let total = (header + body.len()) as u16;
        let mut p = vec![0x40 | (header / 4) as u8, 0x29, 0, 0, 0x12, 0x34, 0, 0, 64, protocol, 0, 0];
        p[2..4].copy_from_slice(&total.to_be_bytes());
        p[6..8].copy_from_slice(&flags_and_offset.to_be_bytes());
        p.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        p.extend(options);
        let sum = checksum::check(&p);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p.extend(body);
        p
    }

    fn v6(next: u8, body: &[u8]) -> Vec<u8> {
        let mut p = vec![0x62, 0x9a, 0xbc, 0xde, 0, 0, next, 64];
        p[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
        p.extend([0xfd; 16]);
        p.extend([0xfe; 16]);
        p.extend(body);
        p
    }

    fn tcp(flags: u8, payload: usize) -> Vec<u8> {
        let mut t =
            vec![3, 232, 7, 208, 1, 2, 3, 4, 5, 6, 7, 8, 0x60, flags, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 1, 0];
        t.resize(24 + payload, 0xaa);
        t
    }

    fn ethernet(kinds: &[u16], ip: &[u8]) -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for (i, kind) in kinds.iter().enumerate() {
            if i > 0 {
                f.extend([0xe0, 0x64]);
            }
            f.extend(kind.to_be_bytes());
        }
        f.extend(ip);
        f
    }

    /// Session 0x0102 and this protocol before an IP packet.
    fn pppoe(protocol: u16, ip: &[u8]) -> Vec<u8> {
        let mut p = vec![0x11, 0, 1, 2];
        p.extend((ip.len() as u16 + 2).to_be_bytes());
        p.extend(protocol.to_be_bytes());
        p.extend(ip);
        p
    }

    /// So many labels, traffic class 5, before whatever follows.
    fn labelled(labels: u8, rest: &[u8]) -> Vec<u8> {
        let each = (1..=labels).flat_map(|n| [0, n, 5 << 1 | u8::from(n == labels), 64]);
        each.chain(rest.iter().copied()).collect()
    }
}

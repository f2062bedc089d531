//! Packet trains: consecutive TCP segments of one connection, or UDP datagrams of one flow, that leave at the same time are given
//! to the kernel as one long packet, with the headers that say how to cut it (generic segmentation offload, PACKET_VNET_HDR).
//!
//! One system call, one route lookup and one wake-up of the receiver then serve the whole train. A packet joins a train only
//! if cutting restores its exact bytes: the fields that Linux's software segmentation derives (lengths, IPv4's identification,
//! sequence number, PSH, checksums) must be those of the packet, and everything else as in the first one. So checksums are
//! verified: a packet with a wrong one is sent by itself, and stays wrong. Frames keep their order, and none waits for
//! another.
//! Non-goal: joining segments with other frames between them; VLAN tags, IP options, extension headers.

use crate::packet::checksum;
use crate::packet::{self, Family, Layer, Transport};

/// Ethernet's header: where IP begins.
const IP: usize = 14;
/// The longest IP packet that a length of 16 bits allows.
const LONGEST: usize = 65_535;
/// Ethernet, IPv6 and TCP with all the options it can have.
const MOST_HEADERS: usize = IP + 40 + 60;
/// IANA's numbers of TCP and UDP.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// TCP's flags (RFC 9293 §3.1).
mod flag {
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const ECE: u8 = 0x40;
}

/// The header of each frame on a socket with PACKET_VNET_HDR: flags, kind of segmentation, length of the headers, bytes
/// a segment, where the checksum starts and where in there it is written (linux/virtio_net.h).
pub const PREFIX: usize = 10;
/// Before a frame that is to go out as it is.
pub const AS_IT_IS: [u8; PREFIX] = [0; PREFIX];

/// VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_TCPV4, …_TCPV6 and …_UDP_L4 (Linux 6.2).
mod prefix {
    pub const NEEDS_CHECKSUM: u8 = 1;
    pub const TCP_V4: u8 = 1;
    pub const TCP_V6: u8 = 4;
    pub const UDP: u8 = 5;
}

/// Which trains a kernel cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// TCP's alone.
    Tcp,
    /// TCP's and UDP's.
    TcpAndUdp,
}

/// Some frames that go out as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// How many; at least two.
    pub frames: usize,
    /// Where in each frame the payload begins.
    pub body: usize,
    /// Whether they are UDP's.
    pub datagrams: bool,
    head: [u8; PREFIX + MOST_HEADERS],
}

impl Train {
    /// The longest train that these frames begin with; `None` if the first doesn't fit together with the second, or is
    /// longer than `mtu` lets a packet be: of a train's frames nobody else would see that.
    #[must_use]
    pub fn at_the_head_of(frames: &[&[u8]], mtu: usize, kinds: Kinds) -> Option<Train> {
        let (first, second) = (Segment::read(frames.first()?)?, Segment::read(frames.get(1)?)?);
        let datagrams = first.transport == UDP;
        if datagrams && kinds == Kinds::Tcp {
            return None;
        }
        if first.frame.len() > IP + mtu || !first.goes_on_with(&second) || !first.is_intact() {
            return None;
        }
        let (most, full) = (LONGEST - (first.body - IP), first.payload());
        let (mut count, mut last, mut payload) = (1, first, full);
        for frame in &frames[1..] {
            let Some(next) = Segment::read(frame) else { break };
            // All are full-sized but the last.
            let fits = last.payload() == full && next.payload() <= full && payload + next.payload() <= most;
            if !fits || !last.goes_on_with(&next) || !next.is_intact() {
                break;
            }
            payload += next.payload();
            (count, last) = (count + 1, next);
        }
        let head = || head(&first, &last, payload);
        (count > 1).then(|| Train { frames: count, body: first.body, datagrams, head: head() })
    }

    /// The bytes before the payloads: the prefix, and the long segment's headers.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head[..PREFIX + self.body]
    }
}

/// A TCP segment or UDP datagram in a frame, of the kind that trains are made of.
#[derive(Clone, Copy)]
struct Segment<'a> {
    frame: &'a [u8],
    family: Family,
    /// [`TCP`] or [`UDP`].
    transport: u8,
    /// Where the transport's header begins, and where its payload does.
    header: usize,
    body: usize,
    /// TCP's; 0 for UDP.
    seq: u32,
    flags: u8,
}

impl<'a> Segment<'a> {
    /// `None` if the frame is no such segment, whatever its checksums are.
    fn read(frame: &'a [u8]) -> Option<Segment<'a>> {
        let headers = packet::parse(Layer::Ethernet, frame).ok()?;
        let (transport, seq, flags) = match headers.transport {
            Transport::Tcp { seq, flags, .. } if flags & !(flag::PSH | flag::ECE) == flag::ACK => {
                (TCP, seq, flags)
            }
            Transport::Udp { .. } => (UDP, 0, 0),
            _ => return None,
        };
        let (header, plain) = match headers.family {
            Family::V4 => (IP + 20, frame[IP] == 0x45),
            Family::V6 => (IP + 40, frame[IP + 6] == transport),
        };
        // Nothing behind the packet either: padding would be lost.
        let whole =
            headers.link.at == IP && IP + headers.size as usize == frame.len() && !headers.length_disagrees;
        let body = if transport == UDP { header + 8 } else { frame.len() - headers.payload as usize };
        let segment = Segment { frame, family: headers.family, transport, header, body, seq, flags };
        (plain && whole && frame.len() > body && segment.datagram_is_whole()).then_some(segment)
    }

    /// Whether UDP's own length says so too: segmentation would rewrite it.
    fn datagram_is_whole(&self) -> bool {
        let field = &self.frame[self.header + 4..self.header + 6];
        self.transport == TCP
            || usize::from(u16::from_be_bytes([field[0], field[1]])) == self.frame.len() - self.header
    }

    /// Where the transport's checksum is.
    fn check(&self) -> usize {
        self.header + if self.transport == TCP { 16 } else { 6 }
    }

    fn payload(&self) -> usize {
        self.frame.len() - self.body
    }

    /// IPv4's identification.
    fn id(&self) -> u16 {
        u16::from_be_bytes([self.frame[IP + 4], self.frame[IP + 5]])
    }

    /// Whether segmentation would give this, cut off behind `self`.
    fn goes_on_with(&self, next: &Segment<'_>) -> bool {
        let same = |from: usize, to: usize| self.frame[from..to] == next.frame[from..to];
        let (header, body) = (self.header, self.body);
        let network = || match self.family {
            // But for the length, the identification and the checksum.
            Family::V4 => {
                same(0, IP + 2)
                    && same(IP + 6, IP + 10)
                    && same(IP + 12, header)
                    && next.id() == self.id().wrapping_add(1)
            }
            // But for the length.
            Family::V6 => same(0, IP + 4) && same(IP + 6, header),
        };
        let transport = || match self.transport {
            // But for sequence number, PSH and checksum. Only the last of a train has PSH.
            TCP => {
                same(header, header + 4)
                    && same(header + 8, header + 13)
                    && same(header + 14, header + 16)
                    && same(header + 18, body)
                    && next.seq == self.seq.wrapping_add(self.payload() as u32)
                    && self.flags & flag::PSH == 0
                    && (self.flags ^ next.flags) & !flag::PSH == 0
            }
            // But for length and checksum.
            _ => same(header, header + 4),
        };
        self.family == next.family
            && self.transport == next.transport
            && body == next.body
            && network()
            && transport()
    }

    /// Whether its checksums are right, and written as segmentation writes them: TCP's never as 0xffff, which is another 0. In UDP
    /// 0 says that there is none (RFC 768), and segmentation would put one there: neither form of 0 joins a train.
    fn is_intact(&self) -> bool {
        let written = |at: usize| self.frame[at..at + 2] != [0xff; 2];
        let network = self.family == Family::V6
            || (checksum::check(&self.frame[IP..self.header]) == 0 && written(IP + 10));
        let check = self.check();
        let there = self.transport == TCP || self.frame[check..check + 2] != [0; 2];
        let transport = &self.frame[self.header..];
        let sum = || checksum::add(checksum::sum(transport), pseudo(self, transport.len()));
        network && there && written(check) && sum() == 0xffff
    }
}

/// The sum of the pseudo-header (RFC 9293 §3.1, RFC 768, RFC 8200 §8.1), for so many bytes of header and payload.
fn pseudo(segment: &Segment<'_>, length: usize) -> u16 {
    let addresses = match segment.family {
        Family::V4 => IP + 12..IP + 20,
        Family::V6 => IP + 8..IP + 40,
    };
    let rest = checksum::add(u16::from(segment.transport), length as u16);
    checksum::add(checksum::sum(&segment.frame[addresses]), rest)
}

/// Prefix and headers of a train: those of its first segment, with the length of all and the PSH of the last.
fn head(first: &Segment<'_>, last: &Segment<'_>, payload: usize) -> [u8; PREFIX + MOST_HEADERS] {
    let mut head = [0; PREFIX + MOST_HEADERS];
    let (header, body) = (first.header, first.body);
    let kind = match (first.transport, first.family) {
        (TCP, Family::V4) => prefix::TCP_V4,
        (TCP, Family::V6) => prefix::TCP_V6,
        _ => prefix::UDP,
    };
    (head[0], head[1]) = (prefix::NEEDS_CHECKSUM, kind);
    for (at, number) in [(2, body), (4, first.payload()), (6, header), (8, first.check() - header)] {
        head[at..at + 2].copy_from_slice(&(number as u16).to_ne_bytes());
    }
    let headers = &mut head[PREFIX..PREFIX + body];
    headers.copy_from_slice(&first.frame[..body]);
    let length = body + payload - IP;
    match first.family {
        Family::V4 => {
            headers[IP + 2..IP + 4].copy_from_slice(&(length as u16).to_be_bytes());
            headers[IP + 10..IP + 12].copy_from_slice(&[0; 2]);
            let check = checksum::check(&headers[IP..header]);
            headers[IP + 10..IP + 12].copy_from_slice(&check.to_be_bytes());
        }
        Family::V6 => headers[IP + 4..IP + 6].copy_from_slice(&((length - 40) as u16).to_be_bytes()),
    }
    let length = body - header + payload;
    match first.transport {
        TCP => headers[header + 13] = last.flags,
        _ => headers[header + 4..header + 6].copy_from_slice(&(length as u16).to_be_bytes()),
    }
    // Where the checksum is still to be computed, its field holds the pseudo-header's sum.
    let (at, sum) = (first.check(), pseudo(first, length));
    headers[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    head
}

#[cfg(test)]
pub(super) mod tests;

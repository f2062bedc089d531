//! Reading: IPv4 with options, IPv6 with extension headers, TCP, UDP; behind what the [link](super::link) puts before.

use inprofile_core::packet::Ecn;

use super::{
    Control, ETHERNET_HEADER, Family, Headers, Layer, Link, Opaque, SHORTEST_IP, SHORTEST_PAYLOAD, Seen,
    Transport, Unread, checksum,
};
use crate::code_points::Dscp;

/// IANA's protocol numbers.
mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const AUTHENTICATION: u8 = 51;
    pub const DESTINATION: u8 = 60;
    pub const ICMP_V6: u8 = 58;
    pub const MOBILITY: u8 = 135;
}

/// The most extension headers that are looked behind: RFC 8200 §4.1 lists fewer.
const MOST_EXTENSIONS: u32 = 10;

/// Reads a frame's headers.
pub fn parse(layer: Layer, frame: &[u8]) -> Seen {
    let (link, version) = match layer {
        Layer::Ip => (Link::default(), Ok(0)),
        Layer::Ethernet => Link::read(frame),
    };
    version.and_then(|version| ip(layer, frame, link, version)).map_err(|why| {
        let size = match layer {
            Layer::Ethernet => frame.len().saturating_sub(ETHERNET_HEADER).max(SHORTEST_PAYLOAD),
            Layer::Ip => frame.len().max(SHORTEST_IP),
        };
        Opaque { why, link, size: size as u32 }
    })
}

/// The part behind the link header: IP of this version, 0 for either.
fn ip(layer: Layer, frame: &[u8], link: Link, version: u8) -> Result<Headers, Unread> {
    let ip = frame.get(link.at..).ok_or(Unread::Truncated)?;
    let first = ip.first().ok_or(Unread::Truncated)? >> 4;
    let padded = layer == Layer::Ethernet && link.may_be_padded(frame);
    let mut headers = match first {
        4 | 6 if version != 0 && version != first => return Err(Unread::Malformed),
        4 => ipv4(ip, padded)?,
        6 => ipv6(ip, padded)?,
        // Behind labels anything may stand.
        _ if link.labels > 0 => return Err(Unread::NotIp),
        _ => return Err(Unread::Malformed),
    };
    if link.labels > 0 && !is_surely_ip(ip, &headers) {
        return Err(Unread::NotIp);
    }
    headers.length_disagrees |= link.disagrees;
    headers.link = link;
    Ok(headers)
}

/// Behind labels it is only by its first bits that a packet looks like IP: so could the addresses of an Ethernet frame.
fn is_surely_ip(ip: &[u8], headers: &Headers) -> bool {
    match headers.family {
        // A receiver accepts a packet shorter than what is there, so padding one is no way round; one that is cut off it
        // drops.
        Family::V4 => {
            let right = ip.get(..usize::from(ip[0] & 15) * 4).is_some_and(|h| checksum::check(h) == 0);
            right && usize::from(u16::from_be_bytes([ip[2], ip[3]])) <= ip.len()
        }
        Family::V6 => !headers.length_disagrees,
    }
}

/// How long a packet is, and whether its length field says so. What is there counts, but for the padding of a short
/// frame.
fn size(says: usize, header: usize, there: usize, padded: bool) -> (usize, bool) {
    if padded && (header..there).contains(&says) { (says, false) } else { (there, says != there) }
}

/// The packet's payload: as far as its length field says, which its receiver will go by; all that is there if the field
/// can't be right.
fn body(ip: &[u8], header: usize, says: usize) -> Option<&[u8]> {
    ip.get(header..says).or_else(|| ip.get(header..))
}

/// RFC 791 §3.1.
fn ipv4(ip: &[u8], padded: bool) -> Result<Headers, Unread> {
    let fixed: &[u8; 20] = ip.first_chunk().ok_or(Unread::Truncated)?;
    let header = usize::from(fixed[0] & 15) * 4;
    let says = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if header < 20 {
        return Err(Unread::Malformed);
    }
    let body = body(ip, header, says).ok_or(Unread::Truncated)?;
    let (mut source, mut destination) = ([0; 16], [0; 16]);
    source[..4].copy_from_slice(&fixed[12..16]);
    destination[..4].copy_from_slice(&fixed[16..20]);
    // More fragments follow, or this is not the first.
    let place = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff;
    let id = u32::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let fragment = (place != 0).then_some(Piece { id, is_first: place & 0x1fff == 0 });
    let size = size(says, header, ip.len(), padded);
    Ok(with_transport(Family::V4, fixed[1], size, fixed[9], (source, destination), body, fragment))
}

/// RFC 8200 §3 and §4.
fn ipv6(ip: &[u8], padded: bool) -> Result<Headers, Unread> {
    let fixed: &[u8; 40] = ip.first_chunk().ok_or(Unread::Truncated)?;
    // A payload length of 0 with a hop-by-hop option says "jumbo" (RFC 2675): longer than a frame can be, so a lie.
    let says = 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let mut body = body(ip, 40, says).ok_or(Unread::Truncated)?;
    let size = size(says, 40, ip.len(), padded);
    let (mut source, mut destination) = ([0; 16], [0; 16]);
    source.copy_from_slice(&fixed[8..24]);
    destination.copy_from_slice(&fixed[24..40]);
    let octet = (fixed[0] << 4) | (fixed[1] >> 4);
    let (mut next, mut fragment) = (fixed[6], None::<Piece>);
    for _ in 0..MOST_EXTENSIONS {
        let length = match (next, body) {
            (
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION | protocol::MOBILITY,
                [_, n, ..],
            ) => 8 + 8 * usize::from(*n),
            // RFC 4302 §2.2: counted in words of 32 bits, less two.
            (protocol::AUTHENTICATION, [_, n, ..]) => 8 + 4 * usize::from(*n),
            (protocol::FRAGMENT, [_, _, high, low, id @ ..]) => {
                // RFC 8200 §4.5: offset in the upper 13 bits, "more" in the lowest. Neither: an atomic fragment
                // (RFC 6946), which is whole.
                let place = u16::from_be_bytes([*high, *low]) & 0xfff9;
                let id = id.first_chunk().map_or(0, |id| u32::from_be_bytes(*id));
                fragment = fragment.or((place != 0).then_some(Piece { id, is_first: place & 0xfff8 == 0 }));
                8
            }
            _ => break,
        };
        if fragment.is_some_and(|piece| !piece.is_first) {
            // What follows is the middle of something.
            (next, body) = (body[0], body.get(length..).unwrap_or_default());
            break;
        }
        let Some(rest) = body.get(length..) else { break };
        (next, body) = (body[0], rest);
    }
    let mut headers = with_transport(Family::V6, octet, size, next, (source, destination), body, fragment);
    headers.control = neighbour_discovery(fixed[7], next, fragment.is_some(), body);
    Ok(headers)
}

/// RFC 4861 §4 and §6.1, §7.1: solicitations, advertisements, redirects, of a neighbour and of no one further away.
fn neighbour_discovery(hops: u8, next: u8, fragment: bool, body: &[u8]) -> Option<Control> {
    let is = next == protocol::ICMP_V6 && hops == 255 && !fragment && matches!(body, [133..=137, 0, ..]);
    is.then_some(Control::NeighbourDiscovery)
}

/// A fragment: what its packet's others have too, and whether it is the first.
#[derive(Clone, Copy)]
struct Piece {
    id: u32,
    is_first: bool,
}

impl Piece {
    /// The ports that a first fragment shows: both in its first four bytes, of TCP as of UDP.
    fn ports(self, protocol: u8, body: &[u8]) -> Option<(u16, u16)> {
        let has_ports = self.is_first && [protocol::TCP, protocol::UDP].contains(&protocol);
        let [a, b, c, d] = *body.first_chunk().filter(|_| has_ports)?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }
}

fn with_transport(
    family: Family,
    octet: u8,
    (size, length_disagrees): (usize, bool),
    protocol: u8,
    addresses: ([u8; 16], [u8; 16]),
    body: &[u8],
    fragment: Option<Piece>,
) -> Headers {
    let (transport, header) = match (fragment, protocol) {
        (Some(piece), _) => (Transport::Fragment { id: piece.id, first: piece.ports(protocol, body) }, 0),
        (None, protocol::TCP) => tcp(body),
        (None, protocol::UDP) => udp(body),
        (None, _) => (Transport::Other, 0),
    };
    Headers {
        family,
        link: Link::default(),
        size: size as u32,
        length_disagrees,
        payload: body.len().saturating_sub(header) as u32,
        dscp: Dscp::of_octet(octet),
        ecn: Ecn::of_octet(octet),
        protocol,
        addresses,
        transport,
        control: None,
    }
}

/// RFC 9293 §3.1, and the length of the header.
fn tcp(body: &[u8]) -> (Transport, usize) {
    let Some(h) = body.first_chunk::<20>() else { return (Transport::Other, 0) };
    let header = usize::from(h[12] >> 4) * 4;
    if header < 20 || header > body.len() {
        return (Transport::Other, 0);
    }
    let long = |i: usize| u32::from_be_bytes([h[i], h[i + 1], h[i + 2], h[i + 3]]);
    let ports = (u16::from_be_bytes([h[0], h[1]]), u16::from_be_bytes([h[2], h[3]]));
    (Transport::Tcp { ports, seq: long(4), ack: long(8), flags: h[13] }, header)
}

/// RFC 768, and the length of the header.
fn udp(body: &[u8]) -> (Transport, usize) {
    let Some(h) = body.first_chunk::<8>() else { return (Transport::Other, 0) };
    let ports = (u16::from_be_bytes([h[0], h[1]]), u16::from_be_bytes([h[2], h[3]]));
    (Transport::Udp { ports }, 8)
}

//! Reading: Ethernet with VLAN tags, IPv4 with options, IPv6 with extension headers, TCP, UDP.

use inprofile_core::packet::Ecn;

use super::{Family, Headers, Layer, Passes, Seen, Transport};
use crate::code_points::Dscp;

/// IEEE 802: what an Ethernet frame carries.
mod ether {
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    pub const IPV6: u16 = 0x86dd;
    /// IEEE 802.1Q and 802.1ad, and the number stacked tags had before that.
    pub const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
    pub const HEADER: usize = 14;
    pub const TAG: usize = 4;
}

/// IANA's protocol numbers.
mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const AUTHENTICATION: u8 = 51;
    pub const DESTINATION: u8 = 60;
    pub const MOBILITY: u8 = 135;
}

/// The most VLAN tags that are looked behind.
const MOST_TAGS: u8 = 4;
/// The most extension headers that are looked behind: RFC 8200 §4.1 lists fewer.
const MOST_EXTENSIONS: u32 = 10;

/// Reads a frame's headers.
pub fn parse(layer: Layer, frame: &[u8]) -> Seen {
    let (at, tags) = match layer {
        Layer::Ip => (0, 0),
        Layer::Ethernet => network_layer(frame)?,
    };
    let ip = frame.get(at..).ok_or(Passes::Truncated)?;
    let mut headers = match ip.first().ok_or(Passes::Truncated)? >> 4 {
        4 => ipv4(ip)?,
        6 => ipv6(ip)?,
        _ => return Err(Passes::Malformed),
    };
    (headers.at, headers.tags) = (at, tags);
    Ok(headers)
}

/// Where the IP header begins, and how many tags come before it.
fn network_layer(frame: &[u8]) -> Result<(usize, u8), Passes> {
    let mut at = ether::HEADER - 2;
    for tags in 0..=MOST_TAGS {
        let kind = word(frame, at).ok_or(Passes::Truncated)?;
        match kind {
            ether::IPV4 | ether::IPV6 => {
                let version = frame.get(at + 2).ok_or(Passes::Truncated)? >> 4;
                let right = if kind == ether::IPV4 { 4 } else { 6 };
                return if version == right { Ok((at + 2, tags)) } else { Err(Passes::Malformed) };
            }
            ether::ARP => return Err(Passes::Arp),
            k if ether::TAGS.contains(&k) => at += ether::TAG,
            _ => return Err(Passes::NotIp),
        }
    }
    Err(Passes::NotIp)
}

/// RFC 791 §3.1.
fn ipv4(ip: &[u8]) -> Seen {
    let fixed: &[u8; 20] = ip.first_chunk().ok_or(Passes::Truncated)?;
    let header = usize::from(fixed[0] & 15) * 4;
    let size = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if header < 20 || size < header {
        return Err(Passes::Malformed);
    }
    // Ethernet pads short packets: what counts is the length the header says, if the frame has it.
    let body = ip.get(header..size).ok_or(Passes::Truncated)?;
    let (mut source, mut destination) = ([0; 16], [0; 16]);
    source[..4].copy_from_slice(&fixed[12..16]);
    destination[..4].copy_from_slice(&fixed[16..20]);
    // More fragments follow, or this is not the first.
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0;
    let octet = fixed[1];
    Ok(with_transport(Family::V4, octet, size, fixed[9], (source, destination), body, fragment))
}

/// RFC 8200 §3 and §4.
fn ipv6(ip: &[u8]) -> Seen {
    let fixed: &[u8; 40] = ip.first_chunk().ok_or(Passes::Truncated)?;
    let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    // A payload length of 0 with a hop-by-hop option says "jumbo" (RFC 2675): longer than a frame can be.
    if length == 0 && fixed[6] == protocol::HOP_BY_HOP {
        return Err(Passes::Malformed);
    }
    let size = 40 + length;
    let mut body = ip.get(40..size).ok_or(Passes::Truncated)?;
    let (mut source, mut destination) = ([0; 16], [0; 16]);
    source.copy_from_slice(&fixed[8..24]);
    destination.copy_from_slice(&fixed[24..40]);
    let octet = (fixed[0] << 4) | (fixed[1] >> 4);
    let (mut next, mut fragment) = (fixed[6], false);
    for _ in 0..MOST_EXTENSIONS {
        let length = match (next, body) {
            (
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION | protocol::MOBILITY,
                [_, n, ..],
            ) => 8 + 8 * usize::from(*n),
            // RFC 4302 §2.2: counted in words of 32 bits, less two.
            (protocol::AUTHENTICATION, [_, n, ..]) => 8 + 4 * usize::from(*n),
            (protocol::FRAGMENT, [_, _, high, low, ..]) => {
                // RFC 8200 §4.5: offset in the upper 13 bits, "more" in the lowest. Neither: an atomic fragment
                // (RFC 6946), which is whole.
                fragment |= u16::from_be_bytes([*high, *low]) & 0xfff9 != 0;
                8
            }
            _ => break,
        };
        if fragment {
            next = body[0];
            break;
        }
        let Some(rest) = body.get(length..) else { break };
        (next, body) = (body[0], rest);
    }
    Ok(with_transport(Family::V6, octet, size, next, (source, destination), body, fragment))
}

fn with_transport(
    family: Family,
    octet: u8,
    size: usize,
    protocol: u8,
    addresses: ([u8; 16], [u8; 16]),
    body: &[u8],
    fragment: bool,
) -> Headers {
    let (transport, header) = match protocol {
        _ if fragment => (Transport::Fragment, 0),
        protocol::TCP => tcp(body),
        protocol::UDP => udp(body),
        _ => (Transport::Other, 0),
    };
    let ecn = match octet & 3 {
        0 => Ecn::NotCapable,
        3 => Ecn::Experienced,
        _ => Ecn::Capable,
    };
    Headers {
        family,
        at: 0,
        size: size as u32,
        payload: body.len().saturating_sub(header) as u32,
        dscp: Dscp::of_octet(octet),
        ecn,
        protocol,
        addresses,
        transport,
        tags: 0,
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

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

//! Frames as they are built for the tests of what is read of them and written into them.

mod ip;
mod link;
mod write;

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
    let mut t = vec![3, 232, 7, 208, 1, 2, 3, 4, 5, 6, 7, 8, 0x60, flags, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 1, 0];
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

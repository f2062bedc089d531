//! Frames by chance: of every encapsulation, changed, or of nothing in particular.

use inprofile_core::rng::Rng;

use crate::frames::{Ip, Wrap, other};

/// A number below `n`.
pub fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.uniform() * n as f64) as usize
}

/// A frame of some encapsulation, with nothing wrong about it.
pub fn good(rng: &mut Rng) -> Vec<u8> {
    let mut wraps: Vec<Wrap> = (0..below(rng, 6))
        .map(|_| Wrap::Tag([0x8100, 0x88a8, 0x9100][below(rng, 3)], below(rng, 65_536) as u16))
        .collect();
    match below(rng, 4) {
        0 => wraps.push(Wrap::Pppoe(below(rng, 65_536) as u16)),
        1 => wraps.push(Wrap::Mpls(1 + below(rng, 9) as u8, below(rng, 8) as u8)),
        _ => {}
    }
    let v6 = below(rng, 2) == 0;
    let payload: Vec<u8> = (0..below(rng, 60)).map(|_| below(rng, 256) as u8).collect();
    match below(rng, 14) {
        // Neighbour discovery, and spanning trees by LLC and behind SNAP.
        12 => {
            let mut frame = Ip { v6: true, bytes: 72, protocol: 58, wraps, ..Ip::default() }.frame();
            let at = frame.at();
            (frame.0[at + 7], frame.0[at + 40], frame.0[at + 41]) = (255, 133 + below(rng, 5) as u8, 0);
            frame.0
        }
        13 => {
            let llc: [&[u8]; 2] = [&[0x42, 0x42, 3], &[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x01, 0x0b]];
            other(0x0026 + below(rng, 90) as u16, &[llc[below(rng, 2)], &payload].concat()).0
        }
        0 => {
            other([0x0806, 0x88cc, 0x8809, 0x888e, 0x8863, 0x8864, 0x8847, 0x0026][below(rng, 8)], &payload).0
        }
        _ => {
            let most = [80, 1_440][below(rng, 2)];
            let ip = Ip {
                v6,
                from: [1, 2, 77][below(rng, 3)],
                port: below(rng, 65_536) as u16,
                octet: below(rng, 256) as u8,
                protocol: [6, 17, 58, 44, 0, 60, 51][below(rng, 7)],
                bytes: 60 + below(rng, most),
                says: None,
                fragment: [0, 0x2000, 0x4000, 0x0007][below(rng, 4)],
                options: below(rng, 11) as u8,
                wraps,
            };
            if below(rng, 4) == 0 { ip.frame().padded().0 } else { ip.frame().0 }
        }
    }
}

/// Bytes changed, added or cut off.
pub fn mutate(frame: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..below(rng, 6) {
        let at = 12 + below(rng, frame.len() - 12).min(70);
        if let Some(byte) = frame.get_mut(at) {
            *byte = if below(rng, 2) == 0 { below(rng, 256) as u8 } else { *byte ^ (1 << below(rng, 8)) };
        }
    }
    match below(rng, 8) {
        0 => frame.truncate(below(rng, frame.len() + 1)),
        1 => frame.resize(frame.len() + below(rng, 40), 0xa5),
        _ => {}
    }
}

/// Bytes, most of which look like some protocol at first.
pub fn random(rng: &mut Rng) -> Vec<u8> {
    let length = below(rng, 200);
    let mut frame: Vec<u8> = (0..length).map(|_| below(rng, 256) as u8).collect();
    // Most get further than their EtherType.
    if length > 15 && below(rng, 4) > 0 {
        let kinds = [0x0800u16, 0x86dd, 0x8100, 0x88a8, 0x8847, 0x8864, 0x0026];
        frame[12..14].copy_from_slice(&kinds[below(rng, kinds.len())].to_be_bytes());
        frame[14] = [frame[14], 0x45, 0x60, 0x11][below(rng, 4)];
    }
    frame
}

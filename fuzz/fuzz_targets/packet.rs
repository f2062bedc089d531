//! Any bytes as a frame: what is read of it lies within it, and what is written stays where it belongs.

#![cfg_attr(fuzzing, no_main)]

use inprofile_live::code_points::Dscp;
use inprofile_live::packet::{Headers, Layer, congestion_experienced, parse, set_dscp};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| run(bytes));

/// The first byte says whether an Ethernet header comes first; the rest is the frame.
pub fn run(bytes: &[u8]) {
    let Some((&how, frame)) = bytes.split_first() else { return };
    let layer = if how & 1 == 0 { Layer::Ip } else { Layer::Ethernet };
    let Ok(h) = parse(layer, frame) else { return };
    // The packet lies within the frame. Beside it are charged tags and labels beyond two tags and a PPPoE session.
    let beyond = h.link.at.saturating_sub(14 + 2 * 4 + 8);
    assert!(h.link.at + h.size as usize <= frame.len() + beyond);
    assert!(h.payload < h.size);
    let mut changed = frame.to_vec();
    let dscp = Dscp::new(h.dscp.value() ^ 63).expect("six bits");
    assert!(set_dscp(&mut changed, h.bits(), dscp));
    assert_eq!(parse(layer, &changed), Ok(Headers { dscp, ..h }));
    assert!(congestion_experienced(&mut changed, h.bits()));
    assert_eq!(parse(layer, &changed).map(|c| (c.dscp, c.size)), Ok((dscp, h.size)));
    // Only DSCP, ECN and IPv4's checksum.
    let differ = frame.iter().zip(&changed).enumerate().filter(|(_, (a, b))| a != b);
    let places: Vec<usize> = differ.map(|(i, _)| i - h.link.at).collect();
    assert!(places.iter().all(|i| [0, 1, 10, 11].contains(i)), "changed: {places:?}");
}

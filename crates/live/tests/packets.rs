//! Random and mutated frames through the fuzz target's body: PACKETS of each, a million in `make soak`.

#[path = "../../../fuzz/fuzz_targets/packet.rs"]
mod body;

use inprofile_live::packet::checksum;
use proptest::prelude::*;

/// An IP header's worth of what the mutations start from: IPv4 plain, with options, a fragment; IPv6 plain, and behind
/// extension headers.
fn good_packets() -> Vec<Vec<u8>> {
    let v4 = |words: u8, fragment: u16, protocol: u8| {
        let mut p = vec![0x40 | words, 0x29, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        p[6..8].copy_from_slice(&fragment.to_be_bytes());
        p.resize(usize::from(words) * 4, 1);
        p.extend([
            3, 232, 7, 208, 1, 2, 3, 4, 5, 6, 7, 8, 0x60, 0x10, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 1, 0, 9, 9,
        ]);
        let length = p.len() as u16;
        p[2..4].copy_from_slice(&length.to_be_bytes());
        let sum = checksum::check(&p[..usize::from(words) * 4]).to_be_bytes();
        p[10..12].copy_from_slice(&sum);
        p
    };
    let v6 = |next: u8, body: &[u8]| {
        let mut p = vec![0x62, 0x9a, 0xbc, 0xde, 0, 0, next, 64];
        p[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
        p.extend([0xfd; 32]);
        p.extend(body);
        p
    };
    let extensions =
        [[60, 0, 0, 0, 0, 0, 0, 0], [44, 0, 0, 0, 0, 0, 0, 0], [6, 0, 0, 9, 0, 0, 0, 0]].concat();
    vec![
        v4(5, 0, 6),
        v4(15, 0x4000, 17),
        v4(5, 0x2000, 17),
        v6(6, &[0x50; 40]),
        v6(17, &[0; 8]),
        v6(0, &extensions),
    ]
}

/// The part before a packet: VLAN tags, a PPPoE session or MPLS labels, or some of each.
#[derive(Clone, Copy, Debug)]
struct Before {
    tags: u8,
    session: bool,
    labels: u8,
}

fn before() -> impl Strategy<Value = Before> {
    (0u8..=5, any::<bool>(), prop::sample::select(vec![0u8, 0, 0, 1, 3, 8, 9]))
        .prop_map(|(tags, session, labels)| Before { tags, session, labels })
}

/// Behind Ethernet's header and these.
fn framed(before: Before, ip: &[u8]) -> Vec<u8> {
    let v4 = ip[0] >> 4 == 4;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for tag in 0..before.tags {
        frame.extend([[0x88, 0xa8], [0x81, 0], [0x91, 0]][usize::from(tag) % 3]);
        frame.extend([0xe0, 0x64]);
    }
    let labels: Vec<u8> =
        (1..=before.labels).flat_map(|n| [0, n, 0x0a | u8::from(n == before.labels), 64]).collect();
    let (ether, ppp) = match (before.labels > 0, v4) {
        (true, _) => ([0x88, 0x47], [0x02, 0x81]),
        (false, true) => ([0x08, 0x00], [0x00, 0x21]),
        (false, false) => ([0x86, 0xdd], [0x00, 0x57]),
    };
    if before.session {
        frame.extend([0x88, 0x64, 0x11, 0, 0, 7]);
        frame.extend(((labels.len() + ip.len() + 2) as u16).to_be_bytes());
        frame.extend(ppp);
    } else {
        frame.extend(ether);
    }
    frame.extend(labels);
    frame.extend(ip);
    frame
}

/// Each bare, or in a frame of any encapsulation, with the byte that tells the body.
fn good() -> impl Strategy<Value = Vec<u8>> {
    (prop::sample::select(good_packets()), prop::option::weighted(0.8, before())).prop_map(|(ip, before)| {
        match before {
            None => [&[0], &ip[..]].concat(),
            Some(before) => [&[1], &framed(before, &ip)[..]].concat(),
        }
    })
}

fn cases() -> u32 {
    match std::env::var("PACKETS") {
        Ok(n) => n.parse().expect("PACKETS is a number"),
        Err(_) => 4_000,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..120), version in 0usize..4) {
        // Half of them get as far as an IP header.
        if let ([how, first, ..], 0..2) = (&mut bytes[..], version) {
            (*how, *first) = (0, (*first & 15) | [0x40, 0x60][version]);
        }
        body::run(&bytes);
    }

    #[test]
    fn mutated_packets_do_no_harm(
        mut bytes in good(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        body::run(&bytes);
    }
}

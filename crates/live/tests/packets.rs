//! Random and mutated frames through the fuzz target's body: PACKETS of each, a million in `make soak`.

#[path = "../../../fuzz/bodies/packet.rs"]
mod body;

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

/// Each bare and behind Ethernet headers with up to two tags, with the byte that tells the body.
fn good() -> impl Strategy<Value = Vec<u8>> {
    let tags = prop::sample::select(vec![None, Some(0), Some(1), Some(2)]);
    (prop::sample::select(good_packets()), tags).prop_map(|(ip, tags)| {
        let Some(tags) = tags else { return [&[0], &ip[..]].concat() };
        let mut frame = vec![1, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0xe0, 0x64]));
        frame.extend(if ip[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xdd] });
        frame.extend(ip);
        frame
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

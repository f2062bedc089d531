//! Tests of what is written into frames.

use super::*;

/// RFC 3168 §5, RFC 2474 §3: for all 64 code points and all four ECN fields, in both families, behind tags or not.
#[test]
fn only_the_dscp_changes_or_only_the_ecn() {
    let packets = [v4(&[1, 1, 1, 0], 6, &tcp(0x10, 9), 0x4000), v6(6, &tcp(0x10, 9))];
    for ip in packets {
        let kind = if ip[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        for octet in 0..=255u8 {
            let mut ip = ip.clone();
            if kind == 0x0800 {
                ip[1] = octet;
                (ip[10], ip[11]) = (0, 0);
                let sum = checksum::check(&ip[..24]);
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
            } else {
                (ip[0], ip[1]) = (0x60 | octet >> 4, octet << 4 | 0x0a);
            }
            let before = ethernet(&[0x8100, kind], &ip);
            let h = parse(Layer::Ethernet, &before).unwrap();
            for dscp in (0..64).filter_map(Dscp::new) {
                let mut frame = before.clone();
                assert!(set_dscp(&mut frame, h.bits(), dscp));
                let after = parse(Layer::Ethernet, &frame).unwrap();
                assert_eq!(after, Headers { dscp, ..h });
                assert_eq!(after.ecn.bits(), octet & 3);
                if kind == 0x0800 {
                    assert_eq!(checksum::check(&frame[18..42]), 0);
                }
                assert!(set_dscp(&mut frame, h.bits(), h.dscp));
                assert_eq!(frame, before, "there and back");
            }
            let mut frame = before.clone();
            assert!(congestion_experienced(&mut frame, h.bits()));
            let after = parse(Layer::Ethernet, &frame).unwrap();
            assert_eq!(after, Headers { ecn: Ecn::Experienced, ..h });
        }
    }
}

#[test]
fn a_wrong_checksum_is_not_covered_up() {
    let mut p = v4(&[], 6, &tcp(0x10, 0), 0);
    p[10] ^= 0x55;
    let h = parse(Layer::Ip, &p).unwrap();
    set_dscp(&mut p, h.bits(), Dscp::EF);
    assert_ne!(checksum::check(&p[..20]), 0);
}

#[test]
fn classes_of_tags_and_labels_are_taken_off() {
    let ip = v4(&[], 17, &[0, 1, 0, 2, 0, 8, 0, 0], 0);
    for kinds in [
        &[0x0800][..],
        &[0x8100, 0x8847],
        &[0x88a8, 0x8100, 0x8100, 0x9100, 0x8100, 0x0800],
        &[0x8100, 0x88b5],
    ] {
        let rest = if kinds.contains(&0x8847) { labelled(3, &ip) } else { ip.clone() };
        let before = ethernet(kinds, &rest);
        let mut after = before.clone();
        clear_link_classes(&mut after);
        let tags = (kinds.len() - 1).min(MOST_TAGS.into());
        let changed: Vec<usize> = (0..before.len()).filter(|i| before[*i] != after[*i]).collect();
        let mut wanted: Vec<usize> = (0..tags).map(|t| 14 + 4 * t).collect();
        if kinds.contains(&0x8847) {
            wanted.extend([20, 24, 28]);
        }
        assert_eq!(changed, wanted);
        // 0xe064 was priority 7 of VLAN 100.
        assert!((0..tags).all(|t| after[14 + 4 * t..16 + 4 * t] == [0x00, 0x64]));
        assert_eq!(parse(Layer::Ethernet, &after).is_ok(), parse(Layer::Ethernet, &before).is_ok());
    }
    for cut in 0..40 {
        clear_link_classes(&mut ethernet(&[0x8100, 0x8847], &labelled(9, &ip))[..cut]);
    }
}

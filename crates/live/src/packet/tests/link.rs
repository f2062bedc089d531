//! The part before IP: tags, sessions, labels; and what is no IP.

use super::*;

#[test]
fn sessions_and_labels_are_looked_behind() {
    const UDP: Transport = Transport::Udp { ports: (1, 2) };
    let (four, six) =
        (v4(&[1, 1, 1, 0], 17, &[0, 1, 0, 2, 0, 8, 0, 0], 0), v6(17, &[0, 1, 0, 2, 0, 8, 0, 0]));
    for (kinds, rest, at) in [
        (&[0x8864][..], pppoe(0x0021, &four), 22),
        (&[0x8864], pppoe(0x0057, &six), 22),
        (&[0x88a8, 0x8100, 0x8864], pppoe(0x0057, &six), 30),
        (&[0x9100, 0x88a8, 0x8100, 0x8100, 0x8864], pppoe(0x0281, &labelled(8, &four)), 70),
        (&[0x8847], labelled(1, &four), 18),
        (&[0x8848], labelled(8, &six), 46),
    ] {
        let h = parse(Layer::Ethernet, &ethernet(kinds, &rest)).unwrap();
        assert_eq!((h.link.at, h.transport, h.length_disagrees), (at, UDP, false));
        assert_eq!(h.link.tags as usize, kinds.len() - 1);
        assert_eq!(h.link.session, (kinds.last() == Some(&0x8864)).then_some(0x0102));
        assert_eq!(h.link.vlans[0], (kinds.len() > 1).then_some(100));
        assert!(h.link.at <= MOST_BEFORE_IP);
    }
    // The protocol in one byte (RFC 1661 §2).
    let mut short = pppoe(0x2121, &four);
    short.remove(6);
    short[5] -= 1;
    let h = parse(Layer::Ethernet, &ethernet(&[0x8864], &short)).unwrap();
    assert_eq!((h.link.at, h.transport, h.length_disagrees), (21, UDP, false));
}

#[test]
fn what_only_looks_like_ip_behind_labels_is_not_ip() {
    let seen = |rest: &[u8]| parse(Layer::Ethernet, &ethernet(&[0x8847], &labelled(2, rest)));
    let four = v4(&[], 17, &[0; 60], 0);
    assert!(seen(&four).is_ok());
    // The addresses of an Ethernet frame may begin with a 4.
    let mut other = four.clone();
    other[9] ^= 1;
    assert_eq!(seen(&other), Err(Unread::NotIp));
    assert_eq!(seen(&[0; 60]), Err(Unread::NotIp));
    // A length that is too short is no way to be overlooked; with one too long nobody takes it.
    let with_length = |says: u16| {
        let mut p = four.clone();
        p[2..4].copy_from_slice(&says.to_be_bytes());
        (p[10], p[11]) = (0, 0);
        let sum = checksum::check(&p[..20]).to_be_bytes();
        p[10..12].copy_from_slice(&sum);
        p
    };
    assert!(seen(&with_length(28)).is_ok_and(|h| h.size == 80 && h.length_disagrees));
    assert_eq!(seen(&with_length(81)), Err(Unread::NotIp));
    let mut six = v6(17, &[0; 60]);
    six[5] ^= 1;
    assert_eq!(seen(&six), Err(Unread::NotIp));
    assert_eq!(parse(Layer::Ethernet, &ethernet(&[0x8847], &labelled(9, &four))), Err(Unread::TooDeep));
    assert_eq!(parse(Layer::Ethernet, &ethernet(&[0x8847], &[0, 1, 0, 64])), Err(Unread::Truncated));
}

#[test]
fn what_keeps_links_and_neighbours_up_is_known() {
    let seen = |kinds: &[u16], rest: &[u8]| match parse(Layer::Ethernet, &ethernet(kinds, rest)) {
        Ok(h) => h.control,
        Err(Unread::Control(control)) => Some(control),
        Err(_) => None,
    };
    let ppp = |protocol| pppoe(protocol, &[0; 40]);
    for (kind, rest, control) in [
        (0x0806, vec![0; 46], Control::Arp),
        (0x8035, vec![0; 46], Control::Arp),
        (0x88cc, vec![2, 7], Control::Lldp),
        (0x0026, [0x42, 0x42, 3, 0, 0].to_vec(), Control::SpanningTree),
        (0x0032, [0xaa, 0xaa, 3, 0, 0, 0xc, 1, 0xb, 0].to_vec(), Control::SpanningTree),
        (0x8809, vec![1, 1], Control::SlowProtocols),
        (0x888e, vec![1, 1], Control::Eapol),
        (0x8863, vec![0x11, 9], Control::PppoeDiscovery),
        (0x8864, ppp(0xc021), Control::Ppp),
        (0x8864, ppp(0x8057), Control::Ppp),
    ] {
        assert_eq!(seen(&[kind], &rest), Some(control));
        assert_eq!(seen(&[0x88a8, 0x8100, kind], &rest), Some(control), "in VLANs");
    }
    // RFC 4861: solicitations and advertisements, from next door.
    let nd = |kind, code, hops| {
        let mut p = v6(58, &[kind, code, 0, 0, 0, 0, 0, 0]);
        p[7] = hops;
        p
    };
    for kind in 133..=137 {
        assert_eq!(seen(&[0x86dd], &nd(kind, 0, 255)), Some(Control::NeighbourDiscovery));
        assert_eq!(seen(&[0x8864], &pppoe(0x57, &nd(kind, 0, 255))), Some(Control::NeighbourDiscovery));
        assert_eq!(seen(&[0x86dd], &nd(kind, 1, 255)), None);
        assert_eq!(seen(&[0x86dd], &nd(kind, 0, 254)), None, "routed: anybody may send it from anywhere");
    }
    assert_eq!(seen(&[0x86dd], &nd(128, 0, 255)), None, "an echo request");
    for (kind, rest) in [
        (0x88b5, vec![0; 46]),
        (0x0026, vec![0xe0, 0xe0, 3]),
        (0x05ff, [0xaa, 0xaa, 3, 0, 0, 0, 8, 0].to_vec()),
        (0x8864, ppp(0x00fd)),
        (0x8864, vec![0x11, 1, 0, 0, 0, 0, 0, 0x21]),
        (0x0806, vec![]),
    ] {
        assert_eq!(seen(&[kind], &rest), (kind == 0x0806).then_some(Control::Arp), "{kind:x}");
    }
}

#[test]
fn tags_are_looked_behind() {
    let ip = v6(17, &[0, 1, 0, 2, 0, 8, 0, 0]);
    let h = parse(Layer::Ethernet, &ethernet(&[0x88a8, 0x8100, 0x86dd], &ip)).unwrap();
    assert_eq!((h.link.at, h.link.tags, h.transport), (22, 2, Transport::Udp { ports: (1, 2) }));
    assert_eq!(
        parse(Layer::Ethernet, &ethernet(&[0x8100, 0x0806], &[0; 28])),
        Err(Unread::Control(Control::Arp))
    );
    assert_eq!(parse(Layer::Ethernet, &ethernet(&[0x8100; 9], &ip)), Err(Unread::TooDeep));
}

/// A frame that is not looked into still says in which VLANs and session it came, from whom, and how long it is.
#[test]
fn what_is_not_read_has_its_link() {
    let broken = |kinds: &[u16], rest: &[u8]| {
        crate::packet::parse(Layer::Ethernet, &ethernet(kinds, rest)).unwrap_err()
    };
    let vlans = [Some(100), Some(100)];
    for (kinds, rest, why) in [
        (&[0x88a8, 0x8100, 0x88b5][..], vec![0; 90], Unread::NotIp),
        (&[0x88a8, 0x8100, 0x0800], vec![0x44; 90], Unread::Malformed),
        (&[0x88a8, 0x8100, 0x86dd], vec![0x60; 39], Unread::Truncated),
        (&[0x8100; 6], vec![0; 90], Unread::TooDeep),
        (&[0x8100, 0x8100, 0x0806], vec![1; 46], Unread::Control(Control::Arp)),
    ] {
        let seen = broken(kinds, &rest);
        assert_eq!((seen.why, seen.link.vlans, seen.link.session), (why, vlans, None));
        assert_eq!(
            (seen.link.source, seen.size as usize),
            ([2, 0, 0, 0, 0, 2], rest.len() + 4 * (kinds.len() - 1))
        );
    }
    let seen = broken(&[0x8100, 0x8864], &pppoe(0x0057, &v4(&[], 17, &[0; 60], 0)));
    assert_eq!(
        (seen.why, seen.link.vlans, seen.link.session),
        (Unread::Malformed, [Some(100), None], Some(0x102))
    );
    assert_eq!(broken(&[0x0800], &[]).size, 46, "the shortest there is");
    assert_eq!(crate::packet::parse(Layer::Ip, &[]).unwrap_err().size, 20);
}

pub(super) mod write {
    //! Tests of what is written into frames.

    use super::super::*;

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
}

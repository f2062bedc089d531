use super::*;

/// What it is, or why it is nothing that is looked into.
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

const TCP: Transport =
    Transport::Tcp { ports: (1000, 2000), seq: 0x0102_0304, ack: 0x0506_0708, flags: 0x10 };

#[test]
fn tcp_over_ipv4_with_options() {
    let h = parse(Layer::Ip, &v4(&[1, 1, 1, 0], 6, &tcp(0x10, 100), 0x4000)).unwrap();
    assert_eq!((h.family, h.link.at, h.size, h.payload), (Family::V4, 0, 24 + 24 + 100, 100));
    // 0x29: DSCP 10, ECT(1).
    assert_eq!((h.dscp.value(), h.ecn, h.protocol, h.transport), (10, Ecn::Ect1, 6, TCP));
    assert_eq!((&h.addresses.0[..5], &h.addresses.1[..5]), (&[10, 0, 0, 1, 0][..], &[10, 0, 0, 2, 0][..]));
}

#[test]
fn what_a_mechanism_sees() {
    let see = |flags, payload| {
        let h = parse(Layer::Ip, &v4(&[], 6, &tcp(flags, payload), 0)).unwrap();
        h.packet(FlowId(7), Colour::OUT, 2)
    };
    let p = see(0x18, 1000);
    assert_eq!((p.flow, p.colour, p.class, p.size, p.payload), (FlowId(7), Colour::OUT, 2, 1044, 1000));
    assert_eq!((p.kind, p.seq, p.ack, p.ecn), (Kind::Data, 0x0102_0304, 0x0506_0708, Ecn::Ect1));
    assert_eq!((see(0x02, 0).kind, see(0x12, 0).kind, see(0x10, 0).kind), (Kind::Syn, Kind::Syn, Kind::Ack));
    let udp = parse(Layer::Ip, &v4(&[], 17, &[0, 1, 0, 2, 0, 12, 0, 0, 9, 9, 9, 9], 0)).unwrap();
    assert_eq!(udp.transport, Transport::Udp { ports: (1, 2) });
    let p = udp.packet(FlowId(0), Colour::IN, 0);
    assert_eq!((p.kind, p.size, p.payload, p.seq), (Kind::Datagram, 32, 4, 0));
}

#[test]
fn padding_of_a_short_frame_is_not_payload() {
    for (kinds, ip) in [
        (&[0x0800][..], v4(&[], 17, &[0; 8], 0)),
        (&[0x8100, 0x0800], v4(&[], 17, &[0; 8], 0)),
        (&[0x86dd], v6(59, &[])),
    ] {
        let size = ip.len() as u32;
        let mut frame = ethernet(kinds, &ip);
        let shortest = 60 + 4 * (kinds.len() - 1);
        frame.resize(shortest, 0);
        let h = parse(Layer::Ethernet, &frame).unwrap();
        assert_eq!((h.size, h.length_disagrees), (size, false));
        // What follows the packet in a longer frame is no padding, and counts.
        frame.push(0);
        let h = parse(Layer::Ethernet, &frame).unwrap();
        assert_eq!((h.size as usize, h.length_disagrees), (frame.len() - h.link.at, true));
    }
}

/// A length field that says too little, too much, nothing or less than the header: what was received counts, and whose it is
/// can still be told.
#[test]
fn a_length_field_is_not_believed() {
    let good = v4(&[], 17, &[1; 1480], 0);
    for says in [0u16, 19, 20, 28, 1499, 1501, u16::MAX] {
        let mut ip = good.clone();
        ip[2..4].copy_from_slice(&says.to_be_bytes());
        for frame in [ethernet(&[0x0800], &ip), ethernet(&[0x8864], &pppoe(0x21, &ip))] {
            let h = parse(Layer::Ethernet, &frame).unwrap();
            assert_eq!(
                (h.size, h.length_disagrees, h.addresses.0[..4].to_vec()),
                (1500, true, vec![10, 0, 0, 1])
            );
        }
    }
    let good = v6(17, &[1; 1460]);
    for (says, next) in [(0u16, 17), (0, 0), (8, 17), (1459, 17), (1461, 17), (u16::MAX, 17)] {
        let mut ip = good.clone();
        ip[4..6].copy_from_slice(&says.to_be_bytes());
        ip[6] = next;
        let h = parse(Layer::Ip, &ip).unwrap();
        assert_eq!((h.size, h.length_disagrees, h.addresses.0[0]), (1500, true, 0xfd), "{says}");
    }
    // PPPoE's own.
    for says in [0u16, 1501, 1503, u16::MAX] {
        let mut frame = ethernet(&[0x8864], &pppoe(0x21, &v4(&[], 17, &[1; 1480], 0)));
        frame[18..20].copy_from_slice(&says.to_be_bytes());
        let h = parse(Layer::Ethernet, &frame).unwrap();
        assert_eq!((h.size, h.length_disagrees), (1500, true), "{says}");
    }
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
fn ipv6_behind_extension_headers() {
    // Hop-by-hop of 8, destination options of 16, authentication of 16 bytes, an atomic fragment, then TCP.
    let mut body = vec![60, 0, 1, 4, 0, 0, 0, 0];
    body.extend([51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    body.extend([44, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4]);
    body.extend([6, 0, 0, 0, 0, 0, 0, 9]);
    body.extend(tcp(0x10, 50));
    let h = parse(Layer::Ip, &v6(0, &body)).unwrap();
    assert_eq!((h.family, h.protocol, h.transport, h.payload), (Family::V6, 6, TCP, 50));
    // 0x629…: traffic class 0x29.
    assert_eq!((h.dscp.value(), h.ecn, h.size as usize), (10, Ecn::Ect1, 40 + body.len()));
}

#[test]
fn fragments_are_known_as_such() {
    for flags_and_offset in [0x2000, 0x0001, 0x2010] {
        let packet = v4(&[], 6, &tcp(0x10, 8), flags_and_offset);
        let h = parse(Layer::Ip, &packet).unwrap();
        let id = u32::from(u16::from_be_bytes([packet[4], packet[5]]));
        // Its ports are seen in the first alone; no fragment goes by them unless somebody asks.
        let first = (flags_and_offset == 0x2000).then_some((1000, 2000));
        assert_eq!((h.transport, h.payload, h.ports()), (Transport::Fragment { id, first }, 32, None));
    }
    for (offset, first) in [(0x0001u16, Some((5, 6))), (0x0008, None)] {
        let mut body = vec![17, 0, 0, 0, 0, 0, 0, 9];
        body[2..4].copy_from_slice(&offset.to_be_bytes());
        body.extend([0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let h = parse(Layer::Ip, &v6(44, &body)).unwrap();
        assert_eq!((h.transport, h.protocol, h.payload), (Transport::Fragment { id: 9, first }, 17, 16));
        // Behind it another extension header, and then a second fragment header, which is no more than data.
        let mut behind = [&body[..8], &[17, 0, 0, 0, 0, 0, 0, 0], &body[8..]].concat();
        behind[0] = 60;
        let h = parse(Layer::Ip, &v6(44, &behind)).unwrap();
        assert_eq!(h.transport, Transport::Fragment { id: 9, first });
    }
    // Too short for ports, and of a protocol that has none.
    assert_eq!(
        parse(Layer::Ip, &v4(&[], 17, &[0, 5, 0], 0x2000)).unwrap().ports(),
        parse(Layer::Ip, &v4(&[], 1, &[0; 16], 0x2000)).unwrap().ports()
    );
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

#[test]
fn what_is_no_ip_says_why() {
    let good = v4(&[], 6, &tcp(0x10, 8), 0);
    let with = |at: usize, byte: u8| {
        let mut p = good.clone();
        p[at] = byte;
        parse(Layer::Ip, &p)
    };
    assert_eq!(parse(Layer::Ip, &[]), Err(Unread::Truncated));
    assert_eq!(parse(Layer::Ip, &good[..19]), Err(Unread::Truncated));
    assert!(parse(Layer::Ip, &good[..40]).is_ok_and(|h| h.size == 40 && h.length_disagrees));
    assert_eq!(with(0, 0x44), Err(Unread::Malformed));
    assert_eq!(with(0, 0x55), Err(Unread::Malformed));
    assert_eq!(parse(Layer::Ip, &[&[0x4f][..], &good[1..40]].concat()), Err(Unread::Truncated));
    assert_eq!(parse(Layer::Ethernet, &ethernet(&[0x86dd], &good)), Err(Unread::Malformed));
    assert_eq!(parse(Layer::Ethernet, &ethernet(&[0x88b5], &good)), Err(Unread::NotIp));
    assert_eq!(parse(Layer::Ethernet, &[0; 13]), Err(Unread::Truncated));
    // A transport header that is cut off or lies about its length is no transport, but the packet is IP.
    assert_eq!(parse(Layer::Ip, &v4(&[], 6, &[0; 19], 0)).unwrap().transport, Transport::Other);
    let mut long = tcp(0x10, 0);
    long[12] = 0xf0;
    assert_eq!(parse(Layer::Ip, &v4(&[], 6, &long, 0)).unwrap().transport, Transport::Other);
    assert_eq!(parse(Layer::Ip, &v6(0, &[6, 200])).unwrap().transport, Transport::Other);
}

/// What is not looked into still says in which VLANs and session it came, from whom, and how long it is.
#[test]
fn what_is_not_read_has_its_link() {
    let broken =
        |kinds: &[u16], rest: &[u8]| super::parse(Layer::Ethernet, &ethernet(kinds, rest)).unwrap_err();
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
    assert_eq!(super::parse(Layer::Ip, &[]).unwrap_err().size, 20);
}

#[test]
fn the_census_has_a_place_for_each() {
    let opaque = |why| Opaque { why, link: Link::default(), size: 60 };
    let mut census = Census::default();
    let fragment = super::parse(Layer::Ip, &v4(&[], 6, &tcp(0, 0), 1));
    for seen in [
        super::parse(Layer::Ip, &v6(17, &[0; 8])),
        fragment,
        fragment,
        Err(opaque(Unread::Control(Control::Arp))),
        Err(opaque(Unread::Malformed)),
    ] {
        census.count(&seen);
    }
    let seen: Vec<_> = census.iter().filter(|(_, n)| *n > 0).collect();
    assert_eq!(seen, [("ipv4_fragment", 2), ("ipv6_udp", 1), ("arp", 1), ("malformed", 1)]);
    assert_eq!(census.total(), 5);
}

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
                assert!(set_dscp(&mut frame, &h, dscp));
                let after = parse(Layer::Ethernet, &frame).unwrap();
                assert_eq!(after, Headers { dscp, ..h });
                assert_eq!(after.ecn.bits(), octet & 3);
                if kind == 0x0800 {
                    assert_eq!(checksum::check(&frame[18..42]), 0);
                }
                assert!(set_dscp(&mut frame, &h, h.dscp));
                assert_eq!(frame, before, "there and back");
            }
            let mut frame = before.clone();
            assert!(congestion_experienced(&mut frame, &h));
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
    set_dscp(&mut p, &h, Dscp::EF);
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

use super::*;

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
    assert_eq!((h.family, h.at, h.size, h.payload), (Family::V4, 0, 24 + 24 + 100, 100));
    // 0x29: DSCP 10, ECT(1).
    assert_eq!((h.dscp.value(), h.ecn, h.protocol, h.transport), (10, Ecn::Capable, 6, TCP));
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
    assert_eq!((p.kind, p.seq, p.ack, p.ecn), (Kind::Data, 0x0102_0304, 0x0506_0708, Ecn::Capable));
    assert_eq!((see(0x02, 0).kind, see(0x12, 0).kind, see(0x10, 0).kind), (Kind::Syn, Kind::Syn, Kind::Ack));
    let udp = parse(Layer::Ip, &v4(&[], 17, &[0, 1, 0, 2, 0, 12, 0, 0, 9, 9, 9, 9], 0)).unwrap();
    assert_eq!(udp.transport, Transport::Udp { ports: (1, 2) });
    let p = udp.packet(FlowId(0), Colour::IN, 0);
    assert_eq!((p.kind, p.size, p.payload, p.seq), (Kind::Datagram, 32, 4, 0));
}

#[test]
fn padding_of_a_short_frame_is_not_payload() {
    let mut frame = ethernet(&[0x0800], &v4(&[], 6, &tcp(0x10, 0), 0));
    frame.resize(120, 0);
    let h = parse(Layer::Ethernet, &frame).unwrap();
    assert_eq!((h.at, h.size, h.payload, h.tags), (14, 44, 0, 0));
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
    assert_eq!((h.dscp.value(), h.ecn, h.size as usize), (10, Ecn::Capable, 40 + body.len()));
}

#[test]
fn fragments_are_known_as_such() {
    for flags_and_offset in [0x2000, 0x0001, 0x2010] {
        let h = parse(Layer::Ip, &v4(&[], 6, &tcp(0x10, 8), flags_and_offset)).unwrap();
        assert_eq!((h.transport, h.payload), (Transport::Fragment, 32));
    }
    for offset in [0x0001u16, 0x0008] {
        let mut body = vec![17, 0, 0, 0, 0, 0, 0, 9];
        body[2..4].copy_from_slice(&offset.to_be_bytes());
        body.extend([0; 16]);
        let h = parse(Layer::Ip, &v6(44, &body)).unwrap();
        assert_eq!((h.transport, h.protocol), (Transport::Fragment, 17));
    }
}

#[test]
fn tags_are_looked_behind() {
    let ip = v6(17, &[0, 1, 0, 2, 0, 8, 0, 0]);
    let h = parse(Layer::Ethernet, &ethernet(&[0x88a8, 0x8100, 0x86dd], &ip)).unwrap();
    assert_eq!((h.at, h.tags, h.transport), (22, 2, Transport::Udp { ports: (1, 2) }));
    assert_eq!(parse(Layer::Ethernet, &ethernet(&[0x8100, 0x0806], &[0; 28])), Err(Passes::Arp));
    assert_eq!(parse(Layer::Ethernet, &ethernet(&[0x8100; 9], &ip)), Err(Passes::NotIp));
}

#[test]
fn what_is_no_ip_passes_and_says_why() {
    let good = v4(&[], 6, &tcp(0x10, 8), 0);
    let with = |at: usize, byte: u8| {
        let mut p = good.clone();
        p[at] = byte;
        parse(Layer::Ip, &p)
    };
    assert_eq!(parse(Layer::Ip, &[]), Err(Passes::Truncated));
    assert_eq!(parse(Layer::Ip, &good[..19]), Err(Passes::Truncated));
    assert_eq!(parse(Layer::Ip, &good[..40]), Err(Passes::Truncated));
    assert_eq!(with(0, 0x44), Err(Passes::Malformed));
    assert_eq!(with(0, 0x55), Err(Passes::Malformed));
    assert_eq!(with(3, 19), Err(Passes::Malformed));
    assert_eq!(parse(Layer::Ethernet, &ethernet(&[0x86dd], &good)), Err(Passes::Malformed));
    assert_eq!(parse(Layer::Ethernet, &ethernet(&[0x88cc], &good)), Err(Passes::NotIp));
    assert_eq!(parse(Layer::Ethernet, &[0; 13]), Err(Passes::Truncated));
    // A transport header that is cut off or lies about its length is no transport, but the packet is IP.
    assert_eq!(parse(Layer::Ip, &v4(&[], 6, &[0; 19], 0)).unwrap().transport, Transport::Other);
    let mut long = tcp(0x10, 0);
    long[12] = 0xf0;
    assert_eq!(parse(Layer::Ip, &v4(&[], 6, &long, 0)).unwrap().transport, Transport::Other);
    assert_eq!(parse(Layer::Ip, &v6(0, &[6, 200])).unwrap().transport, Transport::Other);
}

#[test]
fn the_census_has_a_place_for_each() {
    let mut census = Census::default();
    let fragment = parse(Layer::Ip, &v4(&[], 6, &tcp(0, 0), 1));
    for seen in
        [parse(Layer::Ip, &v6(17, &[0; 8])), fragment, fragment, Err(Passes::Arp), Err(Passes::Malformed)]
    {
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
                assert_eq!(after.ecn, h.ecn);
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

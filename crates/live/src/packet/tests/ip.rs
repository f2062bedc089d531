//! Tests of what is read of an IP packet and its transport.

use super::*;

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

#[test]
fn the_census_has_a_place_for_each() {
    let opaque = |why| Opaque { why, link: Link::default(), size: 60 };
    let mut census = Census::default();
    let fragment = crate::packet::parse(Layer::Ip, &v4(&[], 6, &tcp(0, 0), 1));
    for seen in [
        crate::packet::parse(Layer::Ip, &v6(17, &[0; 8])),
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

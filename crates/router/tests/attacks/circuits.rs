//! A customer whom a VLAN or a session tells sends what is no packet of his: not IP, broken, under foreign addresses. He answers
//! for all of it, and it takes nothing from anybody else.

use inprofile_core::units::Duration;

use crate::bench::Bench;
use crate::frames::{Frame, Ip, Wrap, other};

/// Alice has 2 Mbit/s in VLAN 100, bob 2 Mbit/s in VLAN 100.7 of which he uses a prefix, carol a session; dave a plain address. Of
/// 20 Mbit/s, ten times what any of them bought.
fn file(marker: &str) -> String {
    let shaped =
        "queue = { aqm = \"drop_tail\", limit = \"50 packets\" }\nrate = \"2 Mbit/s\"\nburst = \"3 kB\"";
    let customer = |name: &str, whose: &str, queue: &str| {
        format!(
            "[[upstream.customers]]\nname = \"{name}\"\n{whose}\ncontract = \"1 Mbit/s\"\nmarker = {marker}\n{queue}\n"
        )
    };
    let each = [
        customer("alice", "vlan = 100", shaped),
        customer("bob", "vlan = \"200.7\"\nprefix = \"10.0.0.2\"", shaped),
        customer("carol", "session = 9", shaped),
        customer("dave", "prefix = \"10.0.0.4\"", ""),
    ];
    format!(
        "inside = \"a\"\noutside = \"b\"\nframes.unreadable = \"best_effort\"\n[upstream]\nrate = \"20 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"100 packets\" }}\n{}",
        each.concat()
    )
}

const BUCKET: &str = "{ kind = \"token_bucket\", depth = \"3 kB\" }";
const POLICER: &str = "{ kind = \"token_bucket\", depth = \"3 kB\", action = \"drop\" }";

/// The same frame, in these VLANs, outermost first.
fn tagged(frame: &Frame, vlans: &[u16]) -> Frame {
    let mut f = frame.0.clone();
    let tags: Vec<u8> =
        vlans.iter().flat_map(|vlan| [&[0x81, 0x00][..], &vlan.to_be_bytes()].concat()).collect();
    f.splice(12..12, tags.iter().copied());
    f[7] += tags.len() as u8;
    Frame(f)
}

/// Charged for all behind the Ethernet header.
fn unread(mut frame: Frame) -> Frame {
    frame.0[7] = 14;
    frame
}

fn foreign(from: u8, wraps: Vec<Wrap>) -> Frame {
    Ip { from, wraps, ..Ip::default() }.frame()
}

/// The attempts of each of the three, all in his own circuit.
fn tricks() -> Vec<(&'static str, Frame)> {
    let tag = |vlan| Wrap::Tag(0x8100, vlan);
    let (alice, bob) = (&[100][..], &[200, 7][..]);
    let session = |protocol: [u8; 2], rest: &[u8]| {
        let mut payload = vec![0x11, 0, 0, 9];
        payload.extend((rest.len() as u16 + 2).to_be_bytes());
        payload.extend(protocol);
        payload.extend(rest);
        other(0x8864, &payload)
    };
    vec![
        ("alice: not IP", unread(tagged(&other(0x88b5, &[0x5a; 1400]), alice))),
        ("alice: SNAP", unread(tagged(&other(1400, &[0xaa; 1400]), alice))),
        ("alice: IP of version 5", unread(tagged(&other(0x0800, &[0x55; 1400]), alice))),
        ("alice: a header of 8 bytes", unread(tagged(&other(0x0800, &[0x42; 1400]), alice))),
        ("alice: cut off", unread(tagged(&other(0x86dd, &[0x60; 39]), alice))),
        ("alice: five more tags", unread(tagged(&foreign(1, vec![]), &[100, 1, 2, 3, 4, 5]))),
        ("alice: nine labels", unread(tagged(&foreign(1, vec![Wrap::Mpls(9, 0)]), alice))),
        ("alice: a priority tag within", tagged(&foreign(1, vec![]), &[100, 0xe000])),
        ("alice: another inner VLAN", tagged(&foreign(1, vec![]), &[100, 7])),
        ("alice: dave's address", foreign(4, vec![tag(100)])),
        ("alice: a fragment", tagged(&Ip { fragment: 0x2000, ..Ip::default() }.frame(), alice)),
        ("bob: not IP", unread(tagged(&other(0x88b5, &[0x5a; 1400]), bob))),
        ("bob: a foreign address", tagged(&foreign(77, vec![]), bob)),
        ("bob: dave's address", tagged(&foreign(4, vec![]), bob)),
        ("bob: a foreign address, IPv6", tagged(&Ip { v6: true, from: 77, ..Ip::default() }.frame(), bob)),
        ("bob: a session nobody has", tagged(&foreign(77, vec![Wrap::Pppoe(3)]), bob)),
        ("carol: PPP that is not IP", unread(session([0x00, 0xfd], &[0x5a; 1400]))),
        ("carol: IPv4 said to be IPv6", unread(session([0x00, 0x57], &[0x45; 1400]))),
        ("carol: dave's address", foreign(4, vec![Wrap::Pppoe(9)])),
        ("carol: in VLAN 300", unread(tagged(&session([0x00, 0xfd], &[0x5a; 1400]), &[300]))),
    ]
}

/// 20 Mbit/s of each, for a second; and twice a packet of dave's as IN beside it, which is nobody else's to use up.
#[test]
fn who_is_known_by_his_circuit_answers_for_all_that_comes_in_it() {
    let mut won = Vec::new();
    for (marker, bought) in [(BUCKET, 2e6), (POLICER, 1e6)] {
        for (name, frame) in tricks() {
            let mut bench = Bench::new(&file(marker));
            let (bytes, dave) = (frame.bytes(), Ip { from: 4, bytes: 100, ..Ip::default() }.frame());
            let count = 2_500_000 / bytes;
            for n in 0..count {
                bench.send(Duration(bytes * 8 * 1_000_000_000_000 / 20_000_000), &frame);
                if n == count / 2 || n == count - 1 {
                    bench.send(Duration(0), &dave);
                }
            }
            bench.drain();
            let rate = (bench.out.bytes - 200).saturating_sub(3_000) as f64 * 8.0 / bench.last.secs();
            let lost = bench.lost_of(3);
            println!("{name:<32} {:6.3} Mbit/s of {:.0} bought; dave lost {lost}", rate / 1e6, bought / 1e6);
            if rate > bought * 1.01 || bench.out.ef > 0 || lost > 0 {
                won.push((name, rate));
            }
        }
    }
    assert!(won.is_empty(), "{won:#?}");
}

/// Foreign addresses in somebody's circuit, or code points that are not metered, have none of the colour that is bought for his
/// own packets.
#[test]
fn a_foreign_address_has_no_contract() {
    for frame in [
        tagged(&Ip { from: 77, octet: 10 << 2, ..Ip::default() }.frame(), &[200, 7]),
        tagged(&Ip { from: 4, octet: 10 << 2, ..Ip::default() }.frame(), &[200, 7]),
        foreign(4, vec![Wrap::Tag(0x8100, 100)]),
    ] {
        let mut bench = Bench::new(&file(BUCKET));
        for _ in 0..100 {
            bench.send(Duration(20_000_000_000), &frame);
        }
        bench.drain();
        let his = frame.0[12..16] == [0x81, 0, 0, 100];
        assert_eq!(bench.out.green > 0, his, "all of VLAN 100 is alice's, whatever the address");
    }
}

/// A tag with VLAN 0 only gives a priority (IEEE 802.1Q §6.9): it neither takes a contract from who is known by his address, nor gives
/// him another's.
#[test]
fn a_priority_tag_is_no_circuit() {
    let greens = [vec![], vec![Wrap::Tag(0x8100, 0xe000)]].map(|wraps| {
        let mut bench = Bench::new(&file(BUCKET));
        for _ in 0..1_000 {
            bench.send(Duration(6_000_000_000), &foreign(4, wraps.clone()));
        }
        bench.drain();
        assert_eq!(bench.out.link_classes, 0);
        bench.out.green
    });
    // 1 Mbit/s of twice that, for six seconds, and a bucket.
    assert!(greens[0] == greens[1] && (750_000..=753_000).contains(&greens[0]), "{greens:?}");
}

/// Who is known by a port answers for the fragments of his packets, those that show no port too.
#[test]
fn fragments_do_not_go_past_a_policer_of_a_port() {
    for v6 in [false, true] {
        let text =
            file(POLICER).replace("vlan = 100", "prefix = [\"10.0.0.1\", \"2001:db8::1\"]\nport = 4000");
        let mut bench = Bench::new(&text);
        let fragments = [0x2000, 0x00b9].map(|place| {
            let protocol = if v6 { 44 } else { 17 };
            let mut frame = Ip { v6, protocol, fragment: place, ..Ip::default() }.frame();
            if v6 {
                // RFC 8200 §4.5: next header, offset and flag, identification; then the ports.
                let at = frame.at() + 40;
                let offset = if place == 0x2000 { [0, 1] } else { [5, 0xc8] };
                let header = [17, 0, offset[0], offset[1], 0, 0, 0, 7, 0x0f, 0xa0, 0, 9, 0, 0, 0, 0];
                frame.0[at..at + 16].copy_from_slice(&header);
            }
            frame
        });
        for n in 0..2_000 {
            bench.send(Duration(600_000_000), &fragments[n % 2]);
        }
        bench.drain();
        let rate = bench.out.bytes.saturating_sub(3_000) as f64 * 8.0 / bench.last.secs();
        println!(
            "fragments of a port, {}: {rate:.0} bit/s of 1,000,000 bought",
            if v6 { "IPv6" } else { "IPv4" }
        );
        assert!(rate < 1.01e6 && rate > 0.95e6, "{v6}: {rate}");
    }
}

/// A policer polices whatever comes: other code points, fragments, what can't be read.
#[test]
fn nothing_goes_past_a_policer() {
    for octet in [0u8, 8 << 2, 18 << 2, 34 << 2, 46 << 2, 56 << 2, 63 << 2] {
        for fragment in [0, 0x2000] {
            let mut bench = Bench::new(&file(POLICER));
            let frame = tagged(&Ip { octet, fragment, ..Ip::default() }.frame(), &[100]);
            for _ in 0..2_000 {
                bench.send(Duration(600_000_000), &frame);
            }
            bench.drain();
            let rate = bench.out.bytes.saturating_sub(3_000) as f64 * 8.0 / bench.last.secs();
            assert!(rate < 1.01e6 && rate > 0.95e6, "{octet}: {rate}");
        }
    }
}

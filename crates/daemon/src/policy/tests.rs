use std::net::IpAddr;

use inprofile_core::units::Duration;
use inprofile_live::code_points::Dscp;
use inprofile_live::packet::{Control, Family, Link, Opaque, Unread};
use proptest::prelude::{any, prop, prop_assert_eq, proptest};

use super::*;
use crate::config::{self, Config};
use crate::router;

fn file(rest: &str) -> String {
    format!(
        "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"8 Mbit/s\"\n{rest}\n[upstream.queue]\naqm = \"drop_tail\"\nlimit = \"9 packets\"\n{CLASSES}"
    )
}

fn config(rest: &str) -> Config {
    parsed(&file(rest))
}

fn parsed(text: &str) -> Config {
    config::parse(text.as_bytes(), "r.toml", &router::registry()).map_err(|p| format!("{p:#?}")).unwrap().0
}

const CLASSES: &str = r#"
[upstream.best_effort]
aqm = "drop_tail"
limit = "9 packets"
[[upstream.classes]]
name = "voice"
dscp = ["EF", 44]
aqm = "drop_tail"
limit = "9 packets"
[[upstream.customers]]
name = "web"
prefix = ["10.0.1.0/24", "2001:db8::/33"]
port = [80, 443]
contract = "1 Mbit/s"
marker = { kind = "colour", colour = "red" }
[[upstream.customers]]
name = "net"
prefix = ["10.0.0.0/16", "2001:db8::/32"]
marker = { kind = "colour", colour = "red" }
"#;

fn packet(source: &str, destination: &str, ports: (u16, u16), dscp: Dscp) -> Headers {
    let bytes = |a: &str| match a.parse().unwrap() {
        IpAddr::V4(a) => {
            let mut all = [0; 16];
            all[..4].copy_from_slice(&a.octets());
            (Family::V4, all)
        }
        IpAddr::V6(a) => (Family::V6, a.octets()),
    };
    let ((family, from), (_, to)) = (bytes(source), bytes(destination));
    Headers {
        family,
        link: Link::default(),
        size: 100,
        length_disagrees: false,
        payload: 72,
        dscp,
        ecn: inprofile_core::packet::Ecn::NotCapable,
        protocol: 17,
        addresses: (from, to),
        transport: Transport::Udp { ports },
        control: None,
    }
}

/// A frame of 60 bytes that is not looked into, in no circuit.
fn unread(why: Unread) -> Seen {
    Err(Opaque { why, link: Link::default(), size: 46 })
}

fn succeeded(c: &mut Classifier, was: &Config, is: &Config) -> Classifier {
    c.succeeded_by(NextRules::of(was.directions[0].as_ref(), is.directions[0].as_ref(), true, is)).0
}

fn classifier(config: &Config, upstream: bool) -> Classifier {
    Classifier::new(config.directions[0].as_ref(), upstream, config, Flows::new(64, 1))
}

/// What is done with a packet that is queued.
fn way(c: &mut Classifier, now: Time, seen: &Seen) -> Way {
    match c.decide(now, seen) {
        Decision::Queue(way) => way,
        other => panic!("{other:?}"),
    }
}

#[test]
fn packets_find_their_customer_class_and_colour() {
    let config = config("role = \"core\"\naggregate = { kind = \"colour\", colour = \"out\" }");
    let mut c = classifier(&config, true);
    let mut way = |source: &str, port: u16, dscp: &str| {
        let headers = packet(source, "192.0.2.1", (port, 5), Dscp::parse(dscp).unwrap());
        let w = way(&mut c, Time(1), &Ok(headers));
        (w.class, w.colour, w.markers, w.paint != Paint::Keep)
    };
    let (voice, assured, best_effort) = (1, 2, 3);
    let (green, yellow, red) = (Colour::Green, Colour::Yellow, Colour::Red);
    // The first customer that fits; then the wider prefix; then nobody.
    assert_eq!(way("10.0.1.9", 80, "BE"), (assured, green, [Some(0), Some(2)], true));
    assert_eq!(way("10.0.1.9", 81, "BE"), (assured, green, [Some(1), Some(2)], true));
    assert_eq!(way("2001:db8:7fff::1", 443, "AF13"), (assured, red, [Some(0), Some(2)], true));
    assert_eq!(way("2001:db8:8000::1", 443, "AF12"), (assured, yellow, [Some(1), Some(2)], true));
    assert_eq!(way("10.1.0.1", 80, "BE"), (best_effort, yellow, [None; 2], false));
    // Metered elsewhere: trusted, past the aggregate's marker.
    assert_eq!(way("10.1.0.1", 80, "AF11"), (assured, green, [None, Some(2)], true));
    // Another service, a customer's or not: its class, untouched.
    assert_eq!(way("10.0.1.9", 80, "EF"), (voice, yellow, [None; 2], false));
    assert_eq!(way("10.0.1.9", 80, "44"), (voice, yellow, [None; 2], false));
    assert_eq!(way("10.0.1.9", 80, "AF21"), (best_effort, yellow, [None; 2], false));
}

/// Whoever knows contracts is told of each flow's with its first packet, whichever direction that goes, however many come, and
/// anew after a reload.
#[test]
fn the_aggregates_marker_is_told_of_every_flow() {
    let file = config("aggregate = { kind = \"colour\", colour = \"out\" }");
    let flows = 6_000;
    let mut c = Classifier::new(file.directions[0].as_ref(), true, &file, Flows::new(65_536, 1));
    let of = |n: u32| {
        let (host, port) = (n % 200, 1024 + n / 200);
        let net = if n.is_multiple_of(2) { 1 } else { 2 };
        packet(
            &format!("10.0.{net}.{host}"),
            "192.0.2.1",
            (if net == 1 { 80 } else { 81 }, port as u16),
            Dscp::DEFAULT,
        )
    };
    let promised = |c: &mut Classifier, n: u32| {
        // Every third is first seen from the other direction.
        let told = if n.is_multiple_of(3) {
            c.way_back(Time(1), &of(n).turned()).unwrap()
        } else {
            way(c, Time(1), &Ok(of(n)))
        };
        told.contract.map(|c| (c.marker, c.rate.0))
    };
    let contract = |n: u32| if n.is_multiple_of(2) { 1_000_000 } else { 0 };
    assert!((0..flows).all(|n| promised(&mut c, n) == Some((2, contract(n)))));
    assert!((0..flows).all(|n| promised(&mut c, n).is_none()), "once");
    let mut c = succeeded(&mut c, &file, &file);
    assert!((0..flows).all(|n| promised(&mut c, n) == Some((2, contract(n)))));
}

/// The longest prefix counts, wherever its customer stands in the file; at equal length a port that is named.
#[test]
fn the_longest_prefix_counts() {
    let customers = |all: &[(&str, &str)]| {
        let table = |(name, whose): &(&str, &str)| {
            format!(
                "[[upstream.customers]]\nname = \"{name}\"\n{whose}\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n"
            )
        };
        let tables: String = all.iter().map(table).collect();
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n{tables}"
        );
        config::parse(text.as_bytes(), "r.toml", &router::registry())
            .map_err(|p| format!("{p:#?}"))
            .unwrap()
            .0
    };
    let mut all = vec![
        ("everybody", "prefix = [\"0.0.0.0/0\", \"::/0\"]"),
        ("net", "prefix = [\"10.0.0.0/8\", \"2001:db8::/32\"]"),
        ("site", "prefix = [\"10.0.1.0/24\", \"2001:db8:1::/48\"]"),
        ("web", "prefix = \"10.0.1.0/24\"\nport = [80, 443]"),
        ("host", "prefix = [\"10.0.1.7\", \"2001:db8:1::7\"]"),
        ("mail", "prefix = \"10.0.1.7\"\nport = 25"),
        ("names", "port = 53"),
    ];
    for _ in 0..all.len() {
        all.rotate_left(1);
        let config = customers(&all);
        let mut c = classifier(&config, true);
        let mut whose = |source: &str, port: u16| {
            let headers = packet(source, "192.0.2.1", (port, 5000), Dscp::DEFAULT);
            let way = way(&mut c, Time(1), &Ok(headers));
            way.markers[0].map(|n| all[usize::from(n)].0)
        };
        for (source, port, owner) in [
            ("10.0.1.7", 25, "mail"),
            ("10.0.1.7", 80, "host"),
            ("10.0.1.8", 80, "web"),
            ("10.0.1.8", 53, "site"),
            ("10.0.2.8", 53, "net"),
            ("11.0.0.1", 53, "names"),
            ("11.0.0.1", 54, "everybody"),
            ("2001:db8:1::7", 25, "host"),
            ("2001:db8:1::8", 80, "site"),
            ("2001:db8:2::8", 80, "net"),
            ("2001:db9::", 80, "everybody"),
            ("2001:db9::", 53, "names"),
        ] {
            assert_eq!(whose(source, port), Some(owner), "{source} {port}, {:?} first", all[0].0);
        }
    }
}

/// A number that goes to another flow is forgotten by the marker that the flow before passed, and by the aggregate's; also
/// where a reload came between, which renumbered the markers, or gave the flow itself to another customer.
#[test]
fn who_knew_a_flow_is_told_to_forget_it() {
    let file = config("aggregate = { kind = \"colour\", colour = \"out\" }");
    let of = |port| packet("10.0.1.9", "192.0.2.1", (port, 5), Dscp::DEFAULT);
    let mut c = Classifier::new(file.directions[0].as_ref(), true, &file, Flows::new(1, 1));
    let mut now = 0;
    let mut forget = |c: &mut Classifier, port: u16| {
        now += 1;
        way(c, Time(now), &Ok(of(port))).forget.map(|f| f.markers)
    };
    // Places for eight: customer 0 has port 80, customer 1 the others.
    assert_eq!(forget(&mut c, 80), Some([None, Some(2)]));
    assert_eq!(forget(&mut c, 80), None);
    for port in 1000..1007 {
        assert_eq!(forget(&mut c, port), Some([None, Some(2)]));
    }
    assert_eq!(forget(&mut c, 2000), Some([Some(0), Some(2)]), "it has the number of the flow of port 80");
    // The customers change places, and there is one more: 1000's flow is looked up anew, and is still his.
    let mut other = file.clone();
    let direction = other.directions[0].as_mut().unwrap();
    direction.customers.reverse();
    let mut c = succeeded(&mut c, &file, &other);
    assert_eq!(forget(&mut c, 1006), None);
    // The oldest is that of port 1000, who is customer 0 now.
    assert_eq!(forget(&mut c, 80), Some([Some(0), Some(2)]));
    // He goes: nobody's marker is told, and what was his is the other's.
    let before = other.clone();
    other.directions[0].as_mut().unwrap().customers.remove(0);
    let mut c = succeeded(&mut c, &before, &other);
    assert_eq!(forget(&mut c, 1006), None, "nobody's now; nobody keeps anything of it");
    // And comes again while the flow goes on: it is his from now on.
    let mut c = succeeded(&mut c, &other, &file);
    assert_eq!(forget(&mut c, 1006), Some([None, Some(2)]));
}

/// The circuit goes before the address: both VLANs before the outer one, the session before none; flows of the same addresses in
/// different circuits are different flows.
#[test]
fn customers_are_known_by_their_circuits() {
    let table = |(name, whose): &(&str, &str)| {
        format!(
            "[[upstream.customers]]\nname = \"{name}\"\n{whose}\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n"
        )
    };
    let all = [
        ("address", "prefix = \"10.0.0.0/8\""),
        ("outer", "vlan = 100"),
        ("inner", "vlan = \"100.7\""),
        ("part", "vlan = \"100.7\"\nprefix = \"10.0.0.0/24\""),
        ("session", "session = 9"),
        ("both", "vlan = 100\nsession = 9"),
    ];
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n{}",
        all.iter().map(table).collect::<String>()
    );
    let config = config::parse(text.as_bytes(), "r.toml", &router::registry())
        .map_err(|p| format!("{p:#?}"))
        .unwrap()
        .0;
    let mut c = classifier(&config, true);
    let mut whose = |vlans: [Option<u16>; 2], session: Option<u16>, source: &str| {
        let mut headers = packet(source, "192.0.2.1", (1, 2), Dscp::DEFAULT);
        (headers.link.vlans, headers.link.session) = (vlans, session);
        let way = way(&mut c, Time(1), &Ok(headers));
        (way.customer.map(|place| all[place as usize].0), way.flow)
    };
    let mut flows = std::collections::BTreeSet::new();
    for (vlans, session, source, owner) in [
        ([None; 2], None, "10.0.0.1", Some("address")),
        ([Some(100), None], None, "10.0.0.1", Some("outer")),
        ([Some(100), Some(8)], None, "10.0.0.1", Some("outer")),
        ([Some(100), Some(7)], None, "10.0.1.1", Some("inner")),
        ([Some(100), Some(7)], None, "10.0.0.1", Some("part")),
        ([Some(100), Some(7)], Some(9), "10.0.0.1", Some("part")),
        ([Some(100), Some(8)], Some(9), "10.0.0.1", Some("both")),
        ([Some(200), None], Some(9), "10.0.0.1", Some("session")),
        ([Some(200), None], Some(8), "10.0.0.1", Some("address")),
        ([Some(200), None], None, "192.0.2.9", None),
    ] {
        let (found, flow) = whose(vlans, session, source);
        assert_eq!(found, owner, "{vlans:?} {session:?} {source}");
        flows.insert(flow.0);
    }
    assert_eq!(flows.len(), 10);
}

proptest! {
    /// As one who looks at every prefix of every customer.
    #[test]
    fn prefixes_are_found_as_by_looking_at_all(
        prefixes in prop::collection::vec((any::<bool>(), any::<u32>(), 0u8..=32, prop::option::of(0u16..4)), 1..40),
        asked in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), 0u8..=32, 0u16..4), 1..60),
    ) {
        // The first 32 bits of either family.
        let wide = |v6: bool, a: u32| if v6 { u128::from(a) << 96 } else { u128::from(a) };
        let mask = |a: u32, bits: u8| a & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
        let template = config("").directions[0].as_ref().unwrap().customers[0].clone();
        let mut whose = Whose::default();
        let mut known: Vec<(bool, u32, u8, Option<u16>, u16)> = Vec::new();
        for (number, &(v6, a, bits, port)) in (0..).zip(&prefixes) {
            let a = mask(a, bits);
            let address = if v6 { IpAddr::V6(wide(true, a).into()) } else { IpAddr::V4(a.into()) };
            let ports = port.into_iter().collect();
            let customer = Customer { prefixes: vec![config::Prefix { address, bits }], ports, ..template.clone() };
            let taken = known.iter().any(|k| (k.0, k.1, k.2, k.3) == (v6, a, bits, port));
            prop_assert_eq!(whose.add(number, &customer).is_err(), taken);
            if !taken { known.push((v6, a, bits, port, number)); }
        }
        for (near, noise, keep, port) in asked {
            // Near one of the prefixes, so that there is something to find.
            let (v6, a, ..) = prefixes[near.index(prefixes.len())];
            let a = mask(a, keep) | (noise & !mask(u32::MAX, keep));
            let best = known.iter()
                .filter(|k| k.0 == v6 && mask(a, k.2) == k.1 && k.3.is_none_or(|p| p == port))
                .max_by_key(|k| (k.2, k.3.is_some()))
                .map(|k| k.4);
            let mut address = [0; 16];
            address[..4].copy_from_slice(&a.to_be_bytes());
            let family = if v6 { Family::V6 } else { Family::V4 };
            let owner = whose.find(&Link::default(), family, &address, Some(port));
            prop_assert_eq!((owner.customer, owner.entitled), (best, best.is_some()));
        }
    }
}

/// RFC 2475 §2.1.2: at an edge nothing is believed. What nobody has bought is best effort, and says so.
#[test]
fn an_edge_gives_nothing_that_was_not_bought() {
    let seen = |c: &mut Classifier, source: &str, dscp: &str| {
        let headers = packet(source, "192.0.2.1", (80, 5), Dscp::parse(dscp).unwrap());
        let w = way(c, Time(1), &Ok(headers));
        (w.class, w.markers, w.paint, w.clear_link)
    };
    let (voice, assured, best_effort) = (1, 2, 3);
    let bought = "services = [{ class = \"voice\", rate = \"1 Mbit/s\", burst = \"3 kB\" }]\n";
    let text = file("role = \"edge\"").replace("name = \"net\"\n", &format!("name = \"net\"\n{bought}"));
    let mut c = classifier(&parsed(&text), true);
    let bleached = (best_effort, [None; 2], Paint::As(Dscp::DEFAULT), true);
    for dscp in (0..64).filter_map(Dscp::new) {
        // A stranger gets nothing, and a customer nothing beside what is metered.
        assert_eq!(seen(&mut c, "192.0.2.7", &dscp.to_string()), bleached);
        if !["BE", "CS0", "AF11", "AF12", "AF13"].contains(&dscp.to_string().as_str()) {
            assert_eq!(seen(&mut c, "10.0.1.9", &dscp.to_string()), bleached, "{dscp}");
        }
    }
    let paint = Paint::Colour(CodePoints::default());
    assert_eq!(seen(&mut c, "10.0.1.9", "AF11"), (assured, [Some(0), None], paint, true));
    // He has bought it: policed, by the marker behind those of the customers.
    assert_eq!(seen(&mut c, "10.0.2.9", "EF"), (voice, [Some(2), None], Paint::Keep, false));
    // Remapped, or kept: still best effort.
    let text = file("remap = { EF = \"CS1\", 5 = 7 }\ndscp = \"keep\"");
    let mut c = classifier(&parsed(&text), true);
    let kept = |paint| (best_effort, [None; 2], paint, false);
    assert_eq!(seen(&mut c, "10.0.2.9", "EF"), kept(Paint::As(Dscp::parse("CS1").unwrap())));
    assert_eq!(seen(&mut c, "10.0.2.9", "5"), kept(Paint::As(Dscp::parse("7").unwrap())));
    assert_eq!(seen(&mut c, "192.0.2.7", "AF11"), kept(Paint::Keep));
    // In the core code points are believed.
    let mut c = classifier(&config("role = \"core\""), true);
    assert_eq!(seen(&mut c, "192.0.2.7", "AF11"), (assured, [None; 2], Paint::Keep, false));
    assert_eq!(seen(&mut c, "192.0.2.7", "EF"), (voice, [None; 2], Paint::Keep, false));
    assert_eq!(seen(&mut c, "192.0.2.7", "AF21"), kept(Paint::Keep));
}

/// Control frames have a class of their own, each kind with a policer of its own; what can't be read is best effort, or
/// refused by choice, and so is what a length field is wrong of.
#[test]
fn nothing_passes_unless_everything_does() {
    let mut c = classifier(&config(""), true);
    let unreadable = [Unread::NotIp, Unread::TooDeep, Unread::Truncated, Unread::Malformed];
    for kind in Control::ALL {
        let w = way(&mut c, Time(1), &unread(Unread::Control(kind)));
        assert_eq!((w.class, w.markers), (0, [Some(2 + kind as u16), None]));
        let nd = Headers { control: Some(kind), ..packet("10.0.1.9", "192.0.2.1", (1, 2), Dscp::EF) };
        let w = way(&mut c, Time(1), &Ok(nd));
        assert_eq!((w.class, w.paint), (0, Paint::As(Dscp::DEFAULT)));
    }
    for why in unreadable {
        let w = way(&mut c, Time(1), &unread(why));
        assert_eq!((w.class, w.colour, w.markers), (3, Colour::OUT, [None; 2]));
    }
    let lying = Headers { length_disagrees: true, ..packet("10.0.2.9", "192.0.2.1", (1, 2), Dscp::DEFAULT) };
    assert_eq!(way(&mut c, Time(1), &Ok(lying)).markers, [Some(1), None], "charged");
    let text = file("")
        .replace("[upstream]", "[frames]\nunreadable = \"drop\"\nlength_mismatch = \"drop\"\n[upstream]");
    let mut c = classifier(&parsed(&text), true);
    for why in unreadable {
        assert_eq!(c.decide(Time(1), &unread(why)), Decision::Refuse);
    }
    assert_eq!(c.decide(Time(1), &Ok(lying)), Decision::Refuse);
    assert_eq!(way(&mut c, Time(1), &unread(Unread::Control(Control::Arp))).class, 0);
}

/// The number that frames share that aren't IP was somebody's flow's: a packet with their tuple isn't his.
#[test]
fn an_opaque_frame_leaves_nobody_its_number() {
    let file = config("");
    let mut c = Classifier::new(file.directions[0].as_ref(), true, &file, Flows::new(1, 1));
    for port in 1000..1008 {
        way(&mut c, Time(u64::from(port)), &Ok(packet("10.0.1.9", "192.0.2.1", (port, 5), Dscp::DEFAULT)));
    }
    let w = way(&mut c, Time(2000), &unread(Unread::NotIp));
    assert_eq!(w.forget.map(|f| f.markers), Some([Some(1), None]));
    let same = Headers {
        protocol: 255,
        transport: Transport::Other,
        ..packet("0.0.0.0", "0.0.0.0", (0, 0), Dscp::DEFAULT)
    };
    let same = way(&mut c, Time(2001), &Ok(same));
    assert_eq!((same.flow == w.flow, same.markers), (false, [None; 2]));
}

/// Fragments of a packet are his whose ports its first one shows; one that has no first is his who is known by address alone, else
/// nobody's, and counted.
#[test]
fn fragments_follow_their_first() {
    let config = config("");
    let mut c = classifier(&config, true);
    let fragment = |source: &str, id, first| Headers {
        transport: Transport::Fragment { id, first },
        ..packet(source, "192.0.2.1", (0, 0), Dscp::DEFAULT)
    };
    let second = Time::ZERO + Duration::from_millis(1_000);
    let owner = |c: &mut Classifier, now, source: &str, id, first| {
        way(c, now, &Ok(fragment(source, id, first))).markers[0]
    };
    let (web, net) = (Some(0), Some(1));
    for source in ["10.0.1.9", "2001:db8::9"] {
        // It overtook its first.
        assert_eq!(owner(&mut c, second, source, 7, None), net);
        assert_eq!(owner(&mut c, second, source, 7, Some((80, 9))), web);
        assert_eq!(owner(&mut c, second, source, 7, None), web);
        assert_eq!(owner(&mut c, second, source, 8, None), net, "of another packet");
        assert_eq!(owner(&mut c, second, source, 8, Some((81, 80))), net, "the peer's port is nobody's");
        assert_eq!(owner(&mut c, second, source, 8, None), net);
    }
    assert_eq!(owner(&mut c, second, "10.0.1.8", 7, None), net, "of another host");
    assert_eq!(c.fragments_without_first(), 5);
    let late = second + Duration::from_millis(15_000);
    let mut c = succeeded(&mut c, &config, &config);
    assert_eq!(owner(&mut c, late, "10.0.1.9", 7, None), web, "a reload forgets none");
    assert_eq!(owner(&mut c, late + Duration(1), "10.0.1.9", 7, None), net);
    assert_eq!(c.fragments_without_first(), 6);
}

/// A fragment without a first has no ports to go by: it is metered as his who is known by address alone, else treated as nobody's.
#[test]
fn fragments_are_metered_by_address() {
    let fragment = |source: &str, dscp: &str| Headers {
        transport: Transport::Fragment { id: 1, first: None },
        ..packet(source, "192.0.2.1", (80, 80), Dscp::parse(dscp).unwrap())
    };
    let way = |role: &str, source: &str, dscp: &str| {
        let way = way(&mut classifier(&config(role), true), Time(1), &Ok(fragment(source, dscp)));
        (way.class, way.colour, way.markers[0])
    };
    let (voice, assured, best_effort) = (1, 2, 3);
    // The ports that would make it the first customer's are not asked: the second has the wider prefix and names none.
    for role in ["role = \"core\"", "role = \"edge\""] {
        assert_eq!(way(role, "10.0.1.9", "BE"), (assured, Colour::IN, Some(1)));
        assert_eq!(way(role, "10.0.1.9", "AF11"), (assured, Colour::Green, Some(1)));
        assert_eq!(way(role, "2001:db8::9", "AF13"), (assured, Colour::Red, Some(1)));
        assert_eq!(way(role, "192.0.2.7", "BE"), (best_effort, Colour::OUT, None));
    }
    assert_eq!(way("role = \"core\"", "10.0.1.9", "EF"), (voice, Colour::OUT, None));
    assert_eq!(way("role = \"core\"", "192.0.2.7", "AF11"), (assured, Colour::Green, None));
    assert_eq!(way("role = \"edge\"", "10.0.1.9", "EF"), (best_effort, Colour::OUT, None));
    assert_eq!(way("role = \"edge\"", "192.0.2.7", "AF11"), (best_effort, Colour::OUT, None));
}

#[test]
fn the_inside_is_the_destination_on_the_way_back() {
    let config = config("");
    let mut down = classifier(&config, false);
    let answer = packet("192.0.2.1", "10.0.1.9", (6000, 80), Dscp::DEFAULT);
    assert_eq!(way(&mut down, Time(1), &Ok(answer)).markers, [Some(0), None]);
    // Seen from the other direction's markers: the flow that it answers.
    let mut up = classifier(&config, true);
    let there = packet("10.0.1.9", "192.0.2.1", (80, 6000), Dscp::DEFAULT);
    let there = way(&mut up, Time(1), &Ok(there));
    let back = up.way_back(Time(2), &answer).unwrap();
    assert_eq!((back.flow, back.markers), (there.flow, there.markers));
}

/// Behind a shared address customers are told apart by their own ports: what port the peer has chosen says nothing, in either
/// direction.
#[test]
fn the_peers_port_is_nobodys() {
    let config = config("");
    for upstream in [true, false] {
        let mut c = classifier(&config, upstream);
        let mut whose = |own: u16, peers: u16| {
            let out = packet("10.0.1.9", "192.0.2.1", (own, peers), Dscp::DEFAULT);
            let headers = if upstream { out } else { out.turned() };
            way(&mut c, Time(1), &Ok(headers)).markers[0]
        };
        assert_eq!(
            [whose(80, 5), whose(443, 80), whose(5, 80), whose(5, 6)],
            [Some(0), Some(0), Some(1), Some(1)]
        );
    }
}

/// A circuit as a whole is his who names no prefix in it, else his who is in it alone; what nobody claims there is never another's
/// who is known by addresses alone, and where several share a circuit it is nobody's.
#[test]
fn what_nobody_claims_is_the_circuits() {
    let table = |(name, whose): &(&str, &str)| {
        format!(
            "[[upstream.customers]]\nname = \"{name}\"\n{whose}\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n"
        )
    };
    let all = [
        ("address", "prefix = \"10.0.0.0/8\""),
        ("alone", "vlan = 100\nprefix = \"10.1.0.0/16\""),
        ("one", "vlan = 200\nprefix = \"10.2.0.0/16\""),
        ("rest", "vlan = 200"),
        ("two", "vlan = 300\nprefix = \"10.3.0.0/16\""),
        ("three", "vlan = 300\nprefix = \"10.4.0.0/16\""),
        ("inner", "vlan = \"200.7\"\nport = 80"),
        ("everybody", "prefix = [\"0.0.0.0/0\", \"::/0\"]"),
    ];
    for count in [all.len() - 1, all.len()] {
        let tables: String = all[..count].iter().map(table).collect();
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n{tables}"
        );
        let config = parsed(&text);
        let mut c = classifier(&config, true);
        let everybody = (count == all.len()).then_some("everybody");
        let mut whose = |vlans: [Option<u16>; 2], source: Option<&str>| {
            let mut link = Link::default();
            link.vlans = vlans;
            let seen = match source {
                Some(source) => {
                    Ok(Headers { link, ..packet(source, "192.0.2.1", (1, 2), Dscp::parse("AF11").unwrap()) })
                }
                None => Err(Opaque { why: Unread::Malformed, link, size: 100 }),
            };
            let way = way(&mut c, Time(1), &seen);
            let name = way.customer.and_then(|place| Some(all.get(place as usize)?.0));
            (name, matches!(way.paint, Paint::Colour(_)))
        };
        for (vlans, source, owner, painted) in [
            ([None; 2], Some("10.1.0.1"), Some("address"), true),
            ([None; 2], None, everybody, false),
            ([Some(100), None], Some("10.1.0.1"), Some("alone"), true),
            ([Some(100), None], Some("10.9.0.1"), Some("alone"), false),
            ([Some(100), None], None, Some("alone"), false),
            ([Some(200), None], Some("10.2.0.1"), Some("one"), true),
            ([Some(200), None], Some("10.9.0.1"), Some("rest"), true),
            ([Some(200), None], None, Some("rest"), false),
            ([Some(300), None], Some("10.4.0.1"), Some("three"), true),
            ([Some(300), None], Some("10.9.0.1"), everybody, everybody.is_some()),
            ([Some(300), None], None, everybody, false),
            ([Some(200), Some(7)], Some("10.9.0.2"), Some("rest"), true),
            ([Some(200), Some(7)], None, Some("inner"), false),
            ([Some(900), None], None, everybody, false),
        ] {
            assert_eq!(whose(vlans, source), (owner, painted), "{vlans:?} {source:?}");
        }
    }
}

#[test]
fn with_the_bypass_on_everything_passes() {
    let config = config("");
    let mut c = classifier(&config, true);
    c.set_bypass(true);
    let headers = packet("10.0.1.9", "192.0.2.1", (80, 5), Dscp::DEFAULT);
    assert_eq!((c.decide(Time(1), &Ok(headers)), c.bypassed()), (Decision::Pass, 1));
    let mut next = succeeded(&mut c, &config, &config);
    assert_eq!(
        (next.decide(Time(1), &Ok(headers)), next.bypassed()),
        (Decision::Pass, 2),
        "a reload doesn't end it"
    );
    next.set_bypass(false);
    assert_ne!(next.decide(Time(1), &Ok(headers)), Decision::Pass);
    // A direction that the file doesn't name.
    let mut none = Classifier::new(None, true, &config, Flows::new(1, 1));
    assert_eq!(none.decide(Time(1), &unread(Unread::NotIp)), Decision::Pass);
}

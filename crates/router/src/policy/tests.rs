//! A classifier's decisions on single frames.

mod circuits;

use std::net::IpAddr;

use inprofile_core::rng::Rng;
use inprofile_core::units::Duration;
use inprofile_live::code_points::Dscp;
use inprofile_live::packet::Family;
use proptest::prelude::{any, prop, prop_assert_eq, proptest};

use super::*;
use crate::config::{self, Customer};
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
    c.succeeded_by(NextRules::of(was.directions[0].as_ref(), is.directions[0].as_ref(), true, is), Time::ZERO)
        .0
}

fn classifier(config: &Config, upstream: bool) -> Classifier {
    Classifier::new(config.directions[0].as_ref(), upstream, config, Flows::keeping(64, 1))
}

/// The treatment of a queued packet.
fn treatment(c: &mut Classifier, now: Time, seen: &Seen) -> Treatment {
    match c.decide(now, seen) {
        Decision::Queue(treatment) => treatment,
        other => panic!("{other:?}"),
    }
}

#[test]
fn packets_find_their_customer_class_and_colour() {
    let config = config("role = \"core\"\naggregate = { kind = \"colour\", colour = \"out\" }");
    let mut c = classifier(&config, true);
    let mut treatment = |source: &str, port: u16, dscp: &str| {
        let headers = packet(source, "192.0.2.1", (port, 5), Dscp::parse(dscp).unwrap());
        let w = treatment(&mut c, Time(1), &Ok(headers));
        (w.class, w.colour, w.markers, w.rewrite != Rewrite::Keep)
    };
    let (voice, assured, best_effort) = (1, 2, 3);
    let (green, yellow, red) = (Colour::Green, Colour::Yellow, Colour::Red);
    // The first customer that fits; then the wider prefix; then nobody.
    assert_eq!(treatment("10.0.1.9", 80, "BE"), (assured, green, [Some(0), Some(2)], true));
    assert_eq!(treatment("10.0.1.9", 81, "BE"), (assured, green, [Some(1), Some(2)], true));
    assert_eq!(treatment("2001:db8:7fff::1", 443, "AF13"), (assured, red, [Some(0), Some(2)], true));
    assert_eq!(treatment("2001:db8:8000::1", 443, "AF12"), (assured, yellow, [Some(1), Some(2)], true));
    assert_eq!(treatment("10.1.0.1", 80, "BE"), (best_effort, yellow, [None; 2], false));
    // Metered elsewhere: trusted, past the aggregate's marker.
    assert_eq!(treatment("10.1.0.1", 80, "AF11"), (assured, green, [None, Some(2)], true));
    // Another service, a customer's or not: its class, untouched.
    assert_eq!(treatment("10.0.1.9", 80, "EF"), (voice, yellow, [None; 2], false));
    assert_eq!(treatment("10.0.1.9", 80, "44"), (voice, yellow, [None; 2], false));
    assert_eq!(treatment("10.0.1.9", 80, "AF21"), (best_effort, yellow, [None; 2], false));
}

/// The prefetch reads what the decision needs. It pays where many customers have state; in bypass nothing is decided.
#[test]
fn what_is_foreseen_is_what_is_needed() {
    let of = |n: usize, vlan: &str| {
        let customer = |i: usize| {
            format!(
                "[[upstream.customers]]\nname = \"c{i}\"\nprefix = [\"10.0.{i}.0/24\", \"2001:db8:{i}::/48\"]\n{vlan}\ncontract = \"1 Mbit/s\"\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n"
            )
        };
        let customers: String = (0..n).map(customer).collect();
        parsed(&format!(
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n{customers}"
        ))
    };
    assert!(!classifier(&of(MANY - 1, ""), true).looks_ahead());
    for vlan in ["", "vlan = 100"] {
        let config = of(MANY, vlan);
        let mut c = classifier(&config, true);
        for source in ["10.0.7.1", "10.0.255.9", "2001:db8:31::1", "10.1.0.1"] {
            let mut headers = packet(source, "192.0.2.1", (0, 5), Dscp::DEFAULT);
            headers.link.vlans[0] = (!vlan.is_empty()).then_some(100);
            c.look_anew();
            // Two before it.
            (0..3).for_each(|_| c.foresee(&Ok(headers)));
            let foreseen = c.soon();
            let treatment = treatment(&mut c, Time(1), &Ok(headers));
            assert_eq!(foreseen.map(|f| f.customer), treatment.customer, "{source}");
            assert_eq!(foreseen.map(|f| f.marker), treatment.markers[0], "{source}");
            assert_eq!(foreseen.is_some(), source != "10.1.0.1", "nobody's");
            assert_eq!(c.soon(), None, "there is but one more");
        }
        assert!(c.looks_ahead());
        c.set_bypass(true);
        assert!(!c.looks_ahead());
    }
    let mut c = classifier(&of(MANY, ""), true);
    (0..3).for_each(|_| c.foresee(&unread(Unread::NotIp)));
    assert_eq!(c.soon(), None);
}

/// A look-up holds for its own key alone: no port is not port 0, no VLAN is not VLAN 0.
#[test]
fn a_key_is_all_that_a_lookup_goes_by() {
    let headers = packet("10.0.1.9", "192.0.2.1", (0, 0), Dscp::DEFAULT);
    let with = |change: fn(&mut Headers)| {
        let mut other = headers;
        change(&mut other);
        Key::of(&other, other.ports())
    };
    let key = with(|_| {});
    assert_eq!(with(|h| (h.size, h.dscp, h.link.at) = (1500, Dscp::new(46).unwrap(), 14)), key);
    let others: [fn(&mut Headers); 9] = [
        |h| h.family = Family::V6,
        |h| h.addresses.0[3] = 8,
        |h| h.addresses.1[3] = 8,
        |h| h.protocol = 6,
        |h| h.transport = Transport::Udp { ports: (1, 0) },
        |h| h.transport = Transport::Other,
        |h| h.link.vlans[0] = Some(0),
        |h| h.link.vlans[1] = Some(0),
        |h| h.link.session = Some(0),
    ];
    for (n, other) in others.into_iter().enumerate() {
        assert_ne!(with(other), key, "{n}");
    }
}

/// Whatever is foreseen, in whatever order, in part or of other frames: the same is decided as without.
#[test]
fn what_is_foreseen_decides_nothing() {
    let config = config("");
    let (mut ahead, mut plain) = (classifier(&config, true), classifier(&config, true));
    let mut rng = Rng::for_component(1, "foreseen");
    let mut below = |n: u32| (rng.uniform() * f64::from(n)) as u32;
    let mut foreseen = 0;
    for _ in 0..500 {
        let mut frames: Vec<Seen> = Vec::new();
        for _ in 0..below(20) {
            let source = format!("10.0.{}.{}", below(4), below(6));
            let mut headers =
                packet(&source, "192.0.2.1", (79 + below(3) as u16, below(9) as u16), Dscp::DEFAULT);
            frames.push(match below(10) {
                0 => Err(Opaque { why: Unread::NotIp, link: Link::default(), size: 46 }),
                1 => {
                    headers.transport = Transport::Fragment { id: below(3), first: None };
                    Ok(headers)
                }
                _ => Ok(headers),
            });
        }
        ahead.look_anew();
        let shown = below(25) as usize;
        for frame in frames.iter().take(shown) {
            // Mostly that one; else another in its place.
            let other = frames[below(frames.len() as u32) as usize];
            ahead.foresee(if below(20) == 0 { &other } else { frame });
            foreseen += 1;
        }
        for seen in &frames {
            assert_eq!(ahead.decide(Time(1), seen), plain.decide(Time(1), seen));
        }
    }
    assert!(foreseen > 1_000);
}

/// Whoever knows contracts is told of each flow's with its first packet, whichever direction that goes, however many come, and
/// anew after a reload.
#[test]
fn the_aggregates_marker_is_told_of_every_flow() {
    let file = config("aggregate = { kind = \"colour\", colour = \"out\" }");
    let flows = 6_000;
    let mut c = Classifier::new(file.directions[0].as_ref(), true, &file, Flows::keeping(65_536, 1));
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
            c.reverse_treatment(&of(n).reversed()).unwrap()
        } else {
            treatment(c, Time(1), &Ok(of(n)))
        };
        told.contract.map(|c| (c.marker, c.rate.0))
    };
    let contract = |n: u32| if n.is_multiple_of(2) { 1_000_000 } else { 0 };
    assert!((0..flows).all(|n| promised(&mut c, n) == Some((2, contract(n)))));
    assert!((0..flows).all(|n| promised(&mut c, n).is_none()), "once");
    let mut c = succeeded(&mut c, &file, &file);
    assert!((0..flows).all(|n| promised(&mut c, n) == Some((2, contract(n)))));
}

/// The longest prefix counts, wherever its customer is in the file; at equal length a port that is named.
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
            let treatment = treatment(&mut c, Time(1), &Ok(headers));
            treatment.markers[0].map(|n| all[usize::from(n)].0)
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
    let mut c = Classifier::new(file.directions[0].as_ref(), true, &file, Flows::keeping(1, 1));
    let mut now = 0;
    let mut forget = |c: &mut Classifier, port: u16| {
        now += 1;
        treatment(c, Time(now), &Ok(of(port))).forget.map(|f| f.markers)
    };
    // Places for eight: customer 0 has port 80, customer 1 the others.
    assert_eq!(forget(&mut c, 80), Some([None, Some(2)]));
    assert_eq!(forget(&mut c, 80), None);
    for port in 1000..1007 {
        assert_eq!(forget(&mut c, port), Some([None, Some(2)]));
    }
    assert_eq!(forget(&mut c, 2000), Some([Some(0), Some(2)]), "it has the number of the flow of port 80");
    // The customers change places, and there is one more: 1000's flow is looked up again, and is still his.
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
        let mut owners = Owners::default();
        let mut known: Vec<(bool, u32, u8, Option<u16>, u16)> = Vec::new();
        for (number, &(v6, a, bits, port)) in (0..).zip(&prefixes) {
            let a = mask(a, bits);
            let address = if v6 { IpAddr::V6(wide(true, a).into()) } else { IpAddr::V4(a.into()) };
            let ports = port.into_iter().collect();
            let customer = Customer { prefixes: vec![config::Prefix { address, bits }], ports, ..template.clone() };
            let taken = known.iter().any(|k| (k.0, k.1, k.2, k.3) == (v6, a, bits, port));
            prop_assert_eq!(owners.add(number, &customer).is_err(), taken);
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
            let owner = owners.find(&Link::default(), family, &address, Some(port));
            prop_assert_eq!((owner.customer, owner.entitled), (best, best.is_some()));
        }
    }
}

#[test]
fn the_inside_is_the_destination_on_the_way_back() {
    let config = config("");
    let mut down = classifier(&config, false);
    let answer = packet("192.0.2.1", "10.0.1.9", (6000, 80), Dscp::DEFAULT);
    assert_eq!(treatment(&mut down, Time(1), &Ok(answer)).markers, [Some(0), None]);
    // Seen from the other direction's markers: the flow that it answers.
    let mut up = classifier(&config, true);
    let there = packet("10.0.1.9", "192.0.2.1", (80, 6000), Dscp::DEFAULT);
    let there = treatment(&mut up, Time(1), &Ok(there));
    let back = up.reverse_treatment(&answer).unwrap();
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
            let headers = if upstream { out } else { out.reversed() };
            treatment(&mut c, Time(1), &Ok(headers)).markers[0]
        };
        assert_eq!(
            [whose(80, 5), whose(443, 80), whose(5, 80), whose(5, 6)],
            [Some(0), Some(0), Some(1), Some(1)]
        );
    }
}

use std::net::IpAddr;

use inprofile_live::code_points::Dscp;
use inprofile_live::packet::{Control, Family, Link, Opaque};
use proptest::prelude::{any, prop, prop_assert_eq, proptest};

use super::*;
use crate::config::{self, Config};
use crate::router;

fn config(rest: &str) -> Config {
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"8 Mbit/s\"\n{rest}\n[upstream.queue]\naqm = \"drop_tail\"\nlimit = \"9 packets\"\n{CLASSES}"
    );
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

fn classifier(config: &Config, upstream: bool) -> Classifier {
    Classifier::new(config.directions[0].as_ref(), upstream, config.points, Flows::new(64, 1))
}

#[test]
fn packets_find_their_customer_class_and_colour() {
    let config = config("aggregate = { kind = \"colour\", colour = \"out\" }");
    let mut c = classifier(&config, true);
    let mut way = |source: &str, port: u16, dscp: &str| {
        let headers = packet(source, "192.0.2.1", (port, 5), Dscp::parse(dscp).unwrap());
        let w = c.way(Time(1), &Ok(headers)).unwrap();
        (w.class, w.colour, w.markers, w.paint.is_some())
    };
    let (voice, assured, best_effort) = (0, 1, 2);
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
    // Contracts of the flows that came, by their order: with one, and without.
    let told: Vec<f64> = c.newcomers().map(|s| s.value).collect();
    assert_eq!(told[..2], [1e6, 0.0]);
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
            let way = c.way(Time(1), &Ok(headers)).unwrap();
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
    let mut c = Classifier::new(file.directions[0].as_ref(), true, file.points, Flows::new(1, 1));
    let mut now = 0;
    let mut forget = |c: &mut Classifier, port: u16| {
        now += 1;
        c.way(Time(now), &Ok(of(port))).unwrap().forget
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
    let mut c = c.succeeded_by(other.directions[0].as_ref(), true, file.points);
    assert_eq!(forget(&mut c, 1006), None);
    // The oldest is that of port 1000, who is customer 0 now.
    assert_eq!(forget(&mut c, 80), Some([Some(0), Some(2)]));
    // He goes: nobody's marker is told, and what was his is the other's.
    other.directions[0].as_mut().unwrap().customers.remove(0);
    let mut c = c.succeeded_by(other.directions[0].as_ref(), true, file.points);
    assert_eq!(forget(&mut c, 1006), None, "nobody's now; nobody keeps anything of it");
    // And comes again while the flow goes on: it is his from now on.
    let mut c = c.succeeded_by(file.directions[0].as_ref(), true, file.points);
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
            prop_assert_eq!(whose.find(family, &address, Some((9, port))), best);
        }
    }
}

#[test]
fn others_may_not_be_trusted() {
    let config = config("others = \"best_effort\"");
    let mut c = classifier(&config, true);
    let headers = packet("192.0.2.7", "192.0.2.1", (1, 2), Dscp::parse("AF11").unwrap());
    let way = c.way(Time(1), &Ok(headers)).unwrap();
    assert_eq!((way.class, way.colour, way.paint), (2, Colour::OUT, None));
}

/// A fragment has no ports to go by: it is metered as his who is known by address alone, else treated as nobody's.
#[test]
fn fragments_are_metered_by_address() {
    let fragment = |source: &str, dscp: &str| Headers {
        transport: Transport::Fragment,
        ..packet(source, "192.0.2.1", (80, 80), Dscp::parse(dscp).unwrap())
    };
    let way = |others: &str, source: &str, dscp: &str| {
        let way = classifier(&config(others), true).way(Time(1), &Ok(fragment(source, dscp))).unwrap();
        (way.class, way.colour, way.markers[0], way.paint.is_some())
    };
    let (voice, assured, best_effort) = (0, 1, 2);
    // The ports that would make it the first customer's are not asked: the second has the wider prefix and names none.
    for others in ["", "others = \"best_effort\""] {
        assert_eq!(way(others, "10.0.1.9", "BE"), (assured, Colour::IN, Some(1), true));
        assert_eq!(way(others, "10.0.1.9", "AF11"), (assured, Colour::Green, Some(1), true));
        assert_eq!(way(others, "2001:db8::9", "AF13"), (assured, Colour::Red, Some(1), true));
        assert_eq!(way(others, "10.0.1.9", "EF"), (voice, Colour::OUT, None, false));
        assert_eq!(way(others, "192.0.2.7", "BE"), (best_effort, Colour::OUT, None, false));
    }
    assert_eq!(way("", "192.0.2.7", "AF11"), (assured, Colour::Green, None, false));
    assert_eq!(way("others = \"best_effort\"", "192.0.2.7", "AF11"), (best_effort, Colour::OUT, None, false));
}

#[test]
fn the_inside_is_the_destination_on_the_way_back() {
    let config = config("");
    let mut down = classifier(&config, false);
    let answer = packet("192.0.2.1", "10.0.1.9", (80, 6000), Dscp::DEFAULT);
    assert_eq!(down.way(Time(1), &Ok(answer)).unwrap().markers, [Some(0), None]);
    // Seen from the other direction's markers: the flow that it answers.
    let mut up = classifier(&config, true);
    let there = up.way(Time(1), &Ok(packet("10.0.1.9", "192.0.2.1", (6000, 80), Dscp::DEFAULT))).unwrap();
    let back = up.way_back(Time(2), &answer).unwrap();
    assert_eq!((back.flow, back.markers), (there.flow, there.markers));
}

#[test]
fn what_is_not_ip_and_the_bypass_pass() {
    let config = config("");
    let mut c = classifier(&config, true);
    assert_eq!(c.way(Time(1), &Err(Opaque::Control(Control::Arp))), None);
    c.set_bypass(true);
    let headers = packet("10.0.1.9", "192.0.2.1", (80, 5), Dscp::DEFAULT);
    assert_eq!((c.way(Time(1), &Ok(headers)), c.bypassed()), (None, 1));
    let mut next = c.succeeded_by(config.directions[0].as_ref(), true, config.points);
    assert_eq!((next.way(Time(1), &Ok(headers)), next.bypassed()), (None, 2), "a reload doesn't end it");
    next.set_bypass(false);
    assert!(next.way(Time(1), &Ok(headers)).is_some());
}

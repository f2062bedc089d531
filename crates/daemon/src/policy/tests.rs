use inprofile_live::code_points::Dscp;
use inprofile_live::packet::{Control, Link, Opaque};

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

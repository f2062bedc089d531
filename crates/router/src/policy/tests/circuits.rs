//! Customers known by VLAN tags, PPPoE sessions and ports.

use super::*;

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
        let treatment = treatment(&mut c, Time(1), &Ok(headers));
        (treatment.customer.map(|place| all[place as usize].0), treatment.flow)
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
            "inside = \"a\"\noutside = \"b\"\nframes.unreadable = \"best_effort\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n{tables}"
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
            let treatment = treatment(&mut c, Time(1), &seen);
            let name = treatment.customer.and_then(|place| Some(all.get(place as usize)?.0));
            (name, matches!(treatment.rewrite, Rewrite::Colour(_)))
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

/// Who has all addresses answers for what has none, whatever control frames came before: his policer polices it.
#[test]
fn control_frames_make_nobody_answer_for_what_is_not_read() {
    let text = "inside = \"a\"\noutside = \"b\"\nframes.unreadable = \"best_effort\"\n[upstream]\nrate = \"8 Mbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"9 packets\" }\n[[upstream.customers]]\nname = \"all\"\nprefix = [\"0.0.0.0/0\", \"::/0\"]\ncontract = \"1 Mbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"30 kB\", action = \"drop\" }\n";
    let mut c = classifier(&parsed(text), true);
    let arp = treatment(&mut c, Time(1), &unread(Unread::Control(Control::Arp)));
    let other = treatment(&mut c, Time(2), &unread(Unread::NotIp));
    let again = treatment(&mut c, Time(3), &unread(Unread::Control(Control::Arp)));
    assert_eq!((arp.customer, again.customer), (None, None));
    assert_eq!((other.customer, other.markers), (Some(0), [Some(0), None]));
}

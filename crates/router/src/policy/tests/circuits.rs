//! Customers known by VLAN tags, PPPoE sessions and ports.

use inprofile_live::code_points::CodePoints;

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

// Traffic that passes at an edge, and traffic that does not.

/// RFC 2475 §2.1.2: at an edge nothing is believed. What nobody has bought is best effort, and says so.
#[test]
fn an_edge_gives_nothing_that_was_not_bought() {
    let seen = |c: &mut Classifier, source: &str, dscp: &str| {
        let headers = packet(source, "192.0.2.1", (80, 5), Dscp::parse(dscp).unwrap());
        let w = treatment(c, Time(1), &Ok(headers));
        (w.class, w.markers, w.rewrite, w.clear_link)
    };
    let (voice, assured, best_effort) = (1, 2, 3);
    let bought = "services = [{ class = \"voice\", rate = \"1 Mbit/s\", burst = \"3 kB\" }]\n";
    let text = file("role = \"edge\"").replace("name = \"net\"\n", &format!("name = \"net\"\n{bought}"));
    let mut c = classifier(&parsed(&text), true);
    let bleached = (best_effort, [None; 2], Rewrite::To(Dscp::DEFAULT), true);
    for dscp in (0..64).filter_map(Dscp::new) {
        // A stranger gets nothing, and a customer nothing beside what is metered.
        assert_eq!(seen(&mut c, "192.0.2.7", &dscp.to_string()), bleached);
        if !["BE", "CS0", "AF11", "AF12", "AF13"].contains(&dscp.to_string().as_str()) {
            assert_eq!(seen(&mut c, "10.0.1.9", &dscp.to_string()), bleached, "{dscp}");
        }
    }
    let rewrite = Rewrite::Colour(CodePoints::default());
    assert_eq!(seen(&mut c, "10.0.1.9", "AF11"), (assured, [Some(0), None], rewrite, true));
    // He has bought it: policed, by the marker behind those of the customers.
    assert_eq!(seen(&mut c, "10.0.2.9", "EF"), (voice, [Some(2), None], Rewrite::Keep, false));
    // Remapped, or kept: still best effort.
    let text = file("remap = { EF = \"CS1\", 5 = 7 }\ndscp = \"keep\"");
    let mut c = classifier(&parsed(&text), true);
    let kept = |rewrite| (best_effort, [None; 2], rewrite, false);
    assert_eq!(seen(&mut c, "10.0.2.9", "EF"), kept(Rewrite::To(Dscp::parse("CS1").unwrap())));
    assert_eq!(seen(&mut c, "10.0.2.9", "5"), kept(Rewrite::To(Dscp::parse("7").unwrap())));
    assert_eq!(seen(&mut c, "192.0.2.7", "AF11"), kept(Rewrite::Keep));
    // In the core code points are believed.
    let mut c = classifier(&config("role = \"core\""), true);
    assert_eq!(seen(&mut c, "192.0.2.7", "AF11"), (assured, [None; 2], Rewrite::Keep, false));
    assert_eq!(seen(&mut c, "192.0.2.7", "EF"), (voice, [None; 2], Rewrite::Keep, false));
    assert_eq!(seen(&mut c, "192.0.2.7", "AF21"), kept(Rewrite::Keep));
}

/// Control frames have a class of their own, each kind with a policer of its own; what can't be read is refused, or best
/// effort by choice, and so is what a length field is wrong of.
#[test]
fn nothing_passes_unless_everything_does() {
    let with = |frames: &str| file("").replace("[upstream]", &format!("[frames]\n{frames}\n[upstream]"));
    let mut c = classifier(&parsed(&with("unreadable = \"best_effort\"")), true);
    let unreadable = [Unread::NotIp, Unread::TooDeep, Unread::Truncated, Unread::Malformed];
    for kind in Control::ALL {
        let w = treatment(&mut c, Time(1), &unread(Unread::Control(kind)));
        assert_eq!((w.class, w.markers), (0, [Some(2 + kind as u16), None]));
        let nd = Headers { control: Some(kind), ..packet("10.0.1.9", "192.0.2.1", (1, 2), Dscp::EF) };
        let w = treatment(&mut c, Time(1), &Ok(nd));
        assert_eq!((w.class, w.rewrite), (0, Rewrite::To(Dscp::DEFAULT)));
    }
    for why in unreadable {
        let w = treatment(&mut c, Time(1), &unread(why));
        assert_eq!((w.class, w.colour, w.markers), (3, Colour::OUT, [None; 2]));
    }
    let lying = Headers { length_disagrees: true, ..packet("10.0.2.9", "192.0.2.1", (1, 2), Dscp::DEFAULT) };
    assert_eq!(treatment(&mut c, Time(1), &Ok(lying)).markers, [Some(1), None], "charged");
    let mut c = classifier(&parsed(&with("length_mismatch = \"drop\"")), true);
    for why in unreadable {
        assert_eq!(c.decide(Time(1), &unread(why)), Decision::Refuse(Refusal::Unread(why)));
    }
    assert_eq!(c.decide(Time(1), &Ok(lying)), Decision::Refuse(Refusal::LengthMismatch));
    assert_eq!(treatment(&mut c, Time(1), &unread(Unread::Control(Control::Arp))).class, 0);
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
    let mut none = Classifier::new(None, true, &config, Flows::keeping(1, 1));
    assert_eq!(none.decide(Time(1), &unread(Unread::NotIp)), Decision::Pass);
}

// Fragments, and frames that are not read as IP.

/// The number that frames share that aren't IP was somebody's flow's: a packet with their tuple isn't his.
#[test]
fn an_opaque_frame_leaves_nobody_its_number() {
    let file = config("dscp = \"keep\"");
    let mut c = Classifier::new(file.directions[0].as_ref(), true, &file, Flows::keeping(1, 1));
    for port in 1000..1008 {
        treatment(
            &mut c,
            Time(u64::from(port)),
            &Ok(packet("10.0.1.9", "192.0.2.1", (port, 5), Dscp::DEFAULT)),
        );
    }
    let w = treatment(&mut c, Time(2000), &unread(Unread::NotIp));
    assert_eq!(w.forget.map(|f| f.markers), Some([Some(1), None]));
    let same = Headers {
        protocol: 255,
        transport: Transport::Other,
        ..packet("0.0.0.0", "0.0.0.0", (0, 0), Dscp::DEFAULT)
    };
    let same = treatment(&mut c, Time(2001), &Ok(same));
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
        treatment(c, now, &Ok(fragment(source, id, first))).markers[0]
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
    // Where no port is named none is asked: nobody's place is taken, and nothing is counted.
    for id in 0..10_000 {
        assert_eq!(owner(&mut c, second, "10.0.2.9", id, Some((80, 9))), net);
    }
    assert_eq!(owner(&mut c, second, "10.0.2.9", 10_001, None), net);
    assert_eq!(owner(&mut c, second, "192.0.2.9", 7, None), None);
    assert_eq!(owner(&mut c, second, "10.0.1.9", 7, None), web);
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
    let treatment = |role: &str, source: &str, dscp: &str| {
        let treatment = treatment(&mut classifier(&config(role), true), Time(1), &Ok(fragment(source, dscp)));
        (treatment.class, treatment.colour, treatment.markers[0])
    };
    let (voice, assured, best_effort) = (1, 2, 3);
    // The ports that would make it the first customer's are not asked: the second has the wider prefix and names none.
    for role in ["role = \"core\"", "role = \"edge\""] {
        assert_eq!(treatment(role, "10.0.1.9", "BE"), (assured, Colour::IN, Some(1)));
        assert_eq!(treatment(role, "10.0.1.9", "AF11"), (assured, Colour::Green, Some(1)));
        assert_eq!(treatment(role, "2001:db8::9", "AF13"), (assured, Colour::Red, Some(1)));
        assert_eq!(treatment(role, "192.0.2.7", "BE"), (best_effort, Colour::OUT, None));
    }
    assert_eq!(treatment("role = \"core\"", "10.0.1.9", "EF"), (voice, Colour::OUT, None));
    assert_eq!(treatment("role = \"core\"", "192.0.2.7", "AF11"), (assured, Colour::Green, None));
    assert_eq!(treatment("role = \"edge\"", "10.0.1.9", "EF"), (best_effort, Colour::OUT, None));
    assert_eq!(treatment("role = \"edge\"", "192.0.2.7", "AF11"), (best_effort, Colour::OUT, None));
}

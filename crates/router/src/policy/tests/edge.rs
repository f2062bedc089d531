//! Traffic that passes at an edge, and traffic that does not.

use inprofile_live::code_points::CodePoints;

use super::*;

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

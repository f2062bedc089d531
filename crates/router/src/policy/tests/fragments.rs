//! Fragments, and frames that are not read as IP.

use super::*;

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

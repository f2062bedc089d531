//! Links whose rate changes, pages of the web, adaptive video and voice: what a run makes of them.

use inprofile_core::units::{Duration, Time};
use inprofile_experiment::Scenario;
use inprofile_sim::outcome::Outcome;
use inprofile_sim::tcp::control::Kind;

/// A dumbbell of 10 Mbit/s with a round trip of 40 ms, and these flows and keys of the link.
fn run(link: &str, flows: &str, trace: bool) -> (Scenario, Outcome) {
    let text = format!(
        r#"
title = "Applications"
duration = "40 s"
measure = {{ distributions = true }}
[[links]]
name = "bottleneck"
from = "L"
to = "R"
rate = "10 Mbit/s"
delay = "5 ms"
queue = {{ aqm = "drop_tail", limit = "50 packets" }}
{link}
[[flows]]
name = "f"
from = "H*"
join = {{ node = "L", rate = "100 Mbit/s" }}
to = "R"
rtt = "40 ms"
{flows}
"#
    );
    let scenario = crate::parse(&text);
    let outcome = crate::run(scenario.network(1, trace));
    (scenario, outcome)
}

/// RFC 7928 §8.2.6: 10 Mbit/s for 2 s, 1 Mbit/s for 2 s, and so on.
const CHANGES: &str = r#"capacity = { steps = [{ at = "2 s", rate = "1 Mbit/s" }], repeat = "4 s" }"#;

#[test]
fn a_link_sends_what_its_capacity_allows() {
    let cbr = r#"traffic = { kind = "cbr", rate = "20 Mbit/s" }"#;
    for trace in [false, true] {
        let (_, o) = run(CHANGES, cbr, trace);
        let link = &o.links[0];
        // 5.5 Mbit/s on average, in packets of 1000 B; the first comes after 15.08 ms, in which 19 could have been sent.
        let sent = link.total.sent.iter().sum::<u64>() as i64;
        assert!((sent - (27_500 - 19)).abs() <= 2, "{sent}");
        assert!(link.sending.secs() > 39.98, "{}", link.sending);
        // A full queue of 50 kB drains in 40 ms at 10 Mbit/s and in 400 ms at 1 Mbit/s.
        let waits = &o.measured.as_ref().unwrap().queueing[0].1.delays.together(|_, _| true);
        let (p10, p99) = (waits.quantile(0.1).unwrap(), waits.quantile(0.99).unwrap());
        assert!((p10 - 0.04).abs() < 0.002 && (p99 - 0.4).abs() < 0.02, "{p10} {p99}");
    }
}

#[test]
fn computed_and_stepped_service_agree_on_a_changing_rate() {
    let same = |o: &Outcome| Outcome { verdicts: Vec::new(), events: 0, ..o.clone() };
    let (_, computed) = run(CHANGES, "count = 3\nstart = \"uniform 0..1 s\"", false);
    let (_, stepped) = run(CHANGES, "count = 3\nstart = \"uniform 0..1 s\"", true);
    assert_eq!(same(&computed), same(&stepped));
}

#[test]
fn pages_follow_one_another_and_all_objects_arrive() {
    let web = "count = 12\nstart = \"1 s\"\n\
        traffic = { kind = \"web\", connections = 6, objects = 50, object = \"2 packets\", think = \"500 ms\" }";
    let (_, o) = run("", web, false);
    let [first, second] = o.downloads.as_slice() else { panic!("{:?}", o.downloads) };
    assert_eq!((first.flow, first.number, second.flow, second.number), (0, 0, 6, 1));
    // Fifty objects of two full segments each, whichever connection fetched them.
    let segment = 1460;
    assert_eq!((first.size.0, second.size.0), (100 * segment, 100 * segment));
    assert_eq!(first.asked, Time(0) + Duration::from_millis(1000));
    // The client thinks from the last object on.
    assert_eq!(second.asked, first.completed + Duration::from_millis(500));
    // The handshake and 50 objects over six connections, each a round trip: at least ten of 40 ms, and no losses.
    let took = first.completed.since(first.asked).secs();
    assert!(took > 10.0 * 0.04 && took < 0.8, "{took}");
    assert!(o.flows.iter().all(|f| f.total.sent.iter().sum::<u64>() > 0), "every connection has its part");
}

/// A client has its first object after a round trip of handshake and one of request and data, and each next object of a segment one
/// later. A player that has waited asks by a packet of its own.
#[test]
fn requests_take_their_way_to_the_server() {
    // 1000 B at 100 and 10 Mbit/s, of the SYN as well; acknowledgements of 40 B at 100 Mbit/s.
    let serial = 0.000_88;
    for objects in [1, 3] {
        let web = format!(
            "count = 1\ntraffic = {{ kind = \"web\", connections = 1, objects = {objects}, object = \"1 packets\" }}"
        );
        let (_, o) = run("", &web, false);
        let took = o.downloads[0].completed.since(o.downloads[0].asked).secs();
        let round_trips = 0.04 * f64::from(1 + objects);
        assert!((0.0..2.0 * serial * f64::from(objects)).contains(&(took - round_trips)), "{took}");
    }
    // Levels of 8 kbit/s and chunks of a second: a segment each.
    let video = r#"traffic = { kind = "video", levels = 1, lowest = "8 kbit/s", highest = "8 kbit/s", chunk = "1 s", buffer = "2 s" }"#;
    let (_, o) = run("", video, false);
    assert!(o.downloads.len() > 30, "{}", o.downloads.len());
    for (number, d) in (0..).zip(&o.downloads) {
        let took = d.completed.since(d.asked).secs() - 0.04;
        let (least, most) = if number == 0 { (0.04, 0.04 + 2.0 * serial) } else { (0.0, 2.0 * serial) };
        assert!((least..most).contains(&took), "chunk {number}: {took} s more than a round trip");
    }
    // Each next chunk is asked for as soon as the buffer has room: a second after the one before.
    let pauses = o.downloads.windows(2).skip(2).map(|w| w[1].asked.since(w[0].asked));
    assert!(pauses.clone().all(|p| p == Duration::from_millis(1000)), "{:?}", pauses.collect::<Vec<_>>());
}

#[test]
fn a_page_begins_when_its_own_client_is_ready() {
    let web = "count = 36\ntraffic = { kind = \"web\", clients = 6, objects = 6, object = \"1 packets\" }";
    let (_, o) = run("", web, false);
    assert_eq!(o.downloads.len(), 6);
    assert!(o.downloads.iter().all(|d| d.number == 0 && d.asked == Time::ZERO));
}

#[test]
fn video_takes_the_level_that_fits_and_stalls_where_none_does() {
    let video = |levels: &str| format!("traffic = {{ kind = \"video\", chunk = \"2 s\", {levels} }}");
    let (_, fits) = run("", &video(r#"lowest = "500 kbit/s", highest = "8 Mbit/s""#), false);
    assert!(fits.downloads.iter().all(|d| d.stalled == Duration::ZERO));
    // The last chunks are of the highest level below four fifths of what the link gives: 4 Mbit/s of 0.5, 1, 2, 4, 8.
    let late = &fits.downloads[fits.downloads.len() - 3..];
    assert!(late.iter().all(|d| d.size.0.abs_diff(1_000_000) < 1460), "{late:?}");
    // No chunk is asked for before the buffer of 20 s has room for its 2 s.
    let first = fits.downloads[0].completed.secs();
    assert!(fits.downloads.iter().all(|d| d.asked.secs() >= first + 2.0 * f64::from(d.number) - 18.0 - 1e-9));
    let (_, stalls) = run("", &video(r#"lowest = "12 Mbit/s", highest = "12 Mbit/s", levels = 1"#), false);
    assert!(stalls.downloads.iter().filter(|d| d.stalled > Duration::ZERO).count() > 5);
}

/// Every control of the linux profile loads pages and video, as it asks for what comes next when all has arrived.
#[test]
fn applications_run_over_every_control_of_the_linux_profile() {
    let controls = Kind::ALL.iter().map(|kind| kind.name()).chain(["cubic", "sack"]);
    for name in controls {
        let tcp = format!("tcp = {{ profile = \"linux\", congestion = \"{name}\" }}");
        let web =
            "count = 2\ntraffic = { kind = \"web\", connections = 2, objects = 20, object = \"30 kB\" }";
        let (_, o) = run("", &format!("{web}\n{tcp}"), false);
        let [page] = o.downloads.as_slice() else { panic!("{name}: {:?}", o.downloads) };
        // 600 kB: half a second at the link's rate, and ten round trips of 40 ms on each connection; those of a small first window more.
        let took = page.completed.since(page.asked).secs();
        assert!((0.5..4.0).contains(&took), "{name}: {took}");
        let video = "traffic = { kind = \"video\", chunk = \"2 s\", lowest = \"500 kbit/s\", highest = \"4 Mbit/s\" }";
        let (_, o) = run("", &format!("{video}\n{tcp}"), false);
        assert!(o.downloads.len() > 15, "{name}: {}", o.downloads.len());
        assert!(o.downloads.iter().all(|d| d.stalled == Duration::ZERO), "{name}");
    }
}

#[test]
fn voice_sends_small_packets_at_regular_times() {
    // G.711: 160 B every 20 ms, with 40 B of headers.
    let (_, o) = run("", r#"traffic = { kind = "voice" }"#, false);
    // At 0, at 20 ms, … and at the very end.
    assert_eq!(o.flows[0].total.sent.iter().sum::<u64>(), 2001);
    assert_eq!(o.flows[0].total.sent_bytes.iter().sum::<u64>(), 2001 * 200);
    let (_, o) = run("", r#"traffic = { kind = "voice", talk = "1 s", silence = "1 s" }"#, false);
    let sent = o.flows[0].total.sent.iter().sum::<u64>();
    assert!(sent > 400 && sent < 1600, "{sent}");
}

/// Pages and video ask for one piece after the other over the same connections: none of these is a transfer that completes.
#[test]
fn completions_are_those_of_transfers() {
    let others = r#"traffic = { kind = "transfer", size = "1 MB" }
[[flows]]
name = "web"
count = 2
from = "H*"
join = { node = "L", rate = "100 Mbit/s" }
to = "R"
rtt = "40 ms"
traffic = { kind = "web", connections = 2, objects = 4 }
[[flows]]
name = "video"
from = "H*"
join = { node = "L", rate = "100 Mbit/s" }
to = "R"
rtt = "40 ms"
traffic = { kind = "video", chunk = "2 s" }"#;
    let (scenario, o) = run("", others, false);
    assert!(o.downloads.len() > 10, "a page and chunks of video arrive: {:?}", o.downloads);
    let completed: Vec<bool> = o.flows.iter().map(|f| f.completed.is_some()).collect();
    assert_eq!(completed, [true, false, false, false]);
    let all = scenario.metrics(&o);
    let value = |name| all.iter().find(|m| m.name == name).map(|m| m.value);
    assert_eq!(value("completions"), Some(1.0));
    assert_eq!(value("completion_mean"), o.flows[0].completed.map(Time::secs));
}

/// A client's next page begins when the one before is there, and its connections have windows from then on.
#[test]
fn an_oracle_tells_the_windows_of_later_pages() {
    let web = "count = 24\ntraffic = { kind = \"web\", connections = 6, objects = 12, object = \"100 packets\" }\n\
        [[edges]]\nnode = \"L\"\nmarker = { kind = \"twam\", window_source = \"oracle\", rtt = \"40 ms\" }";
    let (_, o) = run("", web, false);
    let [.., last] = o.downloads.as_slice() else { panic!("no page arrived") };
    assert_eq!(o.downloads.len(), 4);
    let (_, intervals) = o.edges[0].stats.iter().find(|(name, _)| *name == "intervals").unwrap();
    // One each 40 ms with a window open, but for the handshakes' ends.
    let most = last.completed.secs() / 0.04;
    assert!(*intervals as f64 > 0.9 * most, "{intervals} of {most}");
}

/// The rule for a group's first pages holds for the later ones: after `stop` no connection asks for anything.
#[test]
fn pages_end_at_their_stop() {
    let web = "count = 240\nstop = \"4 s\"\n\
        traffic = { kind = \"web\", connections = 6, objects = 12, object = \"20 packets\", think = \"500 ms\" }";
    let (_, o) = run("", web, false);
    // The second ends at 3.0 s; the third begins half a second later and is cut short.
    assert_eq!(o.downloads.iter().map(|d| d.asked.secs() as u32).collect::<Vec<_>>(), [0, 1]);
    let begun = o.flows.iter().filter(|f| f.total.sent.iter().sum::<u64>() > 0).count();
    assert_eq!(begun, 3 * 6);
}

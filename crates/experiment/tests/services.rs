//! A link may be computed ahead or stepped packet by packet: the same packets meet the same fate.

use crate::random;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;
use inprofile_sim::outcome::{LinkOutcome, Outcome};
use proptest::prelude::*;

/// Equal delays and rates on purpose: many events fall on the same moment.
const BASE: &str = r#"
title = "two hops, ties"
duration = "8 s"
measure = { from = "2 s", to = "7 s", at = "first" }

[tcp]
profile = "ns2"

[[links]]
name = "first"
from = "A"
to = "B"
rate = "1 Mbit/s"
delay = "5 ms"
queue = { aqm = "rio", limit = "30 packets", in = { min_th = "10 packets", max_th = "20 packets", max_p = 0.02 }, out = { min_th = "3 packets", max_th = "9 packets", max_p = 0.1 } }

[[links]]
name = "second"
from = "B"
to = "C"
rate = "1 Mbit/s"
delay = "5 ms"
queue = { aqm = "red", limit = "12 packets", min_th = "2 packets", max_th = "8 packets", max_p = 0.1 }

[[flows]]
name = "tcp"
count = 3
from = "H*"
join = { node = "A", rate = "2 Mbit/s", limit = "6 packets" }
to = "C"
rtt = "40 ms"
start = "0 s"
contract = "200 kbit/s"
marker = { kind = "token_bucket", depth = "3 packets" }

[[edges]]
node = "A"
marker = { kind = "ard", tpr_max = "1 Mbit/s", bucket = "20 packets", t_rd = "5 packets", interval = "1 s" }
"#;

fn outcome(set: &[(String, String)], seed: u64, stepped: bool) -> Outcome {
    let scenario = Scenario::parse(BASE, "ties", set, &Registry::default()).expect("a good experiment");
    // A trace makes every link step.
    crate::run(scenario.network(seed, stepped))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn computed_and_stepped_agree(
        seed in 1u64..1000, count in 1u32..12, profile in prop::sample::select(vec!["ns2", "rfc"]),
        rate in prop::sample::select(vec!["500 kbit/s", "1 Mbit/s", "3 Mbit/s"]),
        rtt in prop::sample::select(vec!["40 ms", "20 ms", "0.1 s"]),
        delayed in prop::sample::select(vec!["0 s", "100 ms"]),
        limit in 2u32..40, congestion in prop::sample::select(vec!["reno", "newreno", "sack", "cubic"]),
        ecn in any::<bool>(),
    ) {
        // The ns-2 profile has neither CUBIC nor ECN.
        let rfc = profile == "rfc";
        let congestion = if rfc || congestion != "cubic" { congestion } else { "sack" };
        let set = [
            ("flows.tcp.count", count.to_string()),
            ("flows.tcp.rtt", rtt.to_string()),
            ("tcp.profile", profile.to_string()),
            ("tcp.congestion", congestion.to_string()),
            ("tcp.delayed_ack", delayed.to_string()),
            ("tcp.ecn", (ecn && rfc).to_string()),
            ("links.first.queue.ecn", ecn.to_string()),
            ("links.second.queue.ecn", ecn.to_string()),
            ("links.second.rate", rate.to_string()),
            ("links.first.queue.limit", format!("{limit} packets")),
        ]
        .map(|(k, v)| (k.to_string(), v));
        let computed = outcome(&set, seed, false);
        let stepped = outcome(&set, seed, true);
        prop_assert!(!stepped.verdicts.is_empty() && computed.verdicts.is_empty());
        prop_assert_eq!(&computed.flows, &stepped.flows);
        prop_assert_eq!(&computed.drops, &stepped.drops);
        prop_assert_eq!(&computed.edges, &stepped.edges);
        // A join link's books at the end differ by what was computed ahead; reported links are compared.
        for i in 0..4 {
            prop_assert_eq!(&computed.links[i].window, &stepped.links[i].window, "link {}", i);
            prop_assert_eq!(computed.links[i].queue_mean, stepped.links[i].queue_mean, "link {}", i);
            prop_assert_eq!(computed.links[i].sending, stepped.links[i].sending, "link {}", i);
        }
    }
}

/// Two bottlenecks of which each feeds the next: nobody looks at what happens there but those who ask for it.
const IN_A_ROW: &str = r#"
title = "served on demand"
duration = "8 s"
measure = { from = "2 s", to = "7 s", at = "first" }
[[links]]
name = "access"
from = "a"
to = "A"
rate = "10 Mbit/s"
delay = "DELAY"
queue = { aqm = "drop_tail", limit = "100 packets" }
[[links]]
name = "first"
from = "A"
to = "B"
rate = "2 Mbit/s"
delay = "DELAY"
queue = { QUEUE }
[[links]]
name = "second"
from = "B"
to = "b"
rate = "1800 kbit/s"
delay = "3 ms"
queue = { aqm = "pie", limit = "40 packets", t_update = "5 ms" }
[[flows]]
name = "tcp"
count = 3
class = "one"
from = "a"
to = "b"
start = "uniform 0..1 s"
[[flows]]
name = "other"
count = 2
class = "two"
from = "a"
to = "b"
start = "uniform 0..1 s"
[[monitors]]
queue = "first"
every = "250 ms"
[[monitors]]
queue = "second"
every = "DELAY2"
[[monitors]]
flows = "tcp"
every = "100 ms"
"#;

/// Links served on demand, with delays down to nothing, ticks, classes that rest and monitors that look, and the same links that nobody
/// watches and that run ahead: everything is as if each arrival, departure and tick were an event, and few of them are one.
#[test]
fn on_demand_and_by_events_agree() {
    const CLASSES: &str = "classes = [\
        { name = \"one\", aqm = \"codel\", limit = \"30 packets\", quantum = \"1 packets\" }, \
        { name = \"two\", aqm = \"drop_tail\", limit = \"20 packets\", quantum = \"2 packets\", rate = \"300 kbit/s\" } ]";
    let queues = [
        "aqm = \"codel\", limit = \"40 packets\"".to_owned(),
        "aqm = \"drop_tail\", limit = \"20 packets\"".to_owned(),
        "aqm = \"ared\", limit = \"40 packets\", target_delay = \"40 ms\"".to_owned(),
        "aqm = \"fq_codel\", limit = \"40 packets\"".to_owned(),
        "aqm = \"dualpi2\", limit = \"40 packets\", t_update = \"4 ms\"".to_owned(),
        format!("scheduler = \"drr\", {CLASSES}"),
        format!(
            "scheduler = \"priority\", {}",
            CLASSES.replace(", quantum = \"1 packets\"", "").replace(", quantum = \"2 packets\"", "")
        ),
    ];
    for queue in &queues {
        let delays = [("0 s", "10 ms"), ("5 ms", "5 ms"), ("20 ms", "1 s")];
        for ((delay, every), watched) in delays.into_iter().flat_map(|d| [(d, true), (d, false)]) {
            let text = IN_A_ROW.replace("QUEUE", queue).replace("DELAY2", every).replace("DELAY", delay);
            let set = if watched { Vec::new() } else { vec![("monitors".to_owned(), "[]".to_owned())] };
            let scenario = Scenario::parse(&text, "row", &set, &Registry::default())
                .unwrap_or_else(|problems| panic!("{queue}: {problems:#?}"));
            let run = |trace| crate::run(scenario.network(7, trace));
            let (on_demand, by_events) = (run(false), run(true));
            let text = format!("{queue}, {delay}, watched: {watched}");
            assert_eq!(on_demand.flows, by_events.flows, "{text}");
            assert_eq!(on_demand.drops, by_events.drops, "{text}");
            assert_eq!(on_demand.links[2], by_events.links[2], "{text}");
            assert_eq!(on_demand.links[4], by_events.links[4], "{text}");
            assert_eq!(format!("{:?}", on_demand.series), format!("{:?}", by_events.series), "{text}");
            assert!(on_demand.drops.len() > 1, "{text}: nothing was dropped");
            let share = on_demand.events as f64 / by_events.events as f64;
            let most = match (delay, watched) {
                ("20 ms", true) => 0.7,
                (_, true) => 0.9,
                (_, false) => 0.5,
            };
            assert!(share < most, "{text}: {share} of the events");
        }
    }
}

/// How many random experiments: INPROFILE_CASES, else a few hundred.
fn cases() -> u64 {
    match std::env::var("INPROFILE_CASES") {
        Ok(text) => text.parse().expect("INPROFILE_CASES is a number"),
        Err(_) => 240,
    }
}

/// A link's utilisation, which is at most 1 and what its packets' bytes say but for one packet at each end of the window, unless it has
/// waited for its turn, too; its classes' add up to it.
fn within_its_window(scenario: &Scenario, way: usize, link: &LinkOutcome, text: &str) -> f64 {
    let (from, to) = scenario.window();
    let window = (to - from).secs();
    let utilisation = link.sending.secs() / window;
    assert!((0.0..=1.0).contains(&utilisation), "link {way}: utilisation {utilisation}\n{text}");
    let direction = scenario.model().direction(way);
    let rate = direction.rate.0 as f64;
    let bits = 8.0 * link.window.sent_bytes.iter().sum::<u64>() as f64;
    // The largest packet of a random experiment has 9,000 B.
    let apart = (utilisation * rate * window - bits).abs();
    let waits = direction.access.is_some();
    assert!(waits || apart <= 8.0 * 9000.0 + 1e-9 * bits, "link {way}: {apart} bits apart\n{text}");
    if !link.classes.is_empty() {
        let all: u64 = link.classes.iter().map(|c| c.sending.0).sum();
        assert_eq!(all, link.sending.0, "link {way}: classes\n{text}");
    }
    utilisation
}

/// Whatever is put together: packets are conserved (the engine fails otherwise), time never runs back, computed and
/// stepped service agree, nothing panics, no figure is NaN, and equal seeds leave equal bytes.
#[test]
fn any_experiment_keeps_the_books_and_repeats_itself() {
    let registry = Registry::default();
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut packets, mut events, mut busiest) = (0, 0, 0.0f64);
    for number in 0..cases() {
        let drawn = random::draw(number, &registry);
        let scenario = &drawn.scenario;
        let run = |trace| {
            let network = scenario.network(number, trace);
            match engine::run(network, &AtomicBool::new(false), None) {
                Ok(outcome) => outcome,
                Err(failure) => panic!("{failure}\n{}", drawn.text),
            }
        };
        let (computed, again, stepped) = (run(false), run(false), run(true));
        assert_eq!(format!("{computed:?}"), format!("{again:?}"), "equal seeds differ\n{}", drawn.text);
        assert_eq!(computed.flows, stepped.flows, "{}", drawn.text);
        assert_eq!(computed.drops, stepped.drops, "{}", drawn.text);
        assert_eq!(computed.edges, stepped.edges, "{}", drawn.text);
        assert_eq!(computed.flow_markers, stepped.flow_markers, "{}", drawn.text);
        assert_eq!(computed.signals, stepped.signals, "{}", drawn.text);
        assert_eq!(format!("{:?}", computed.series), format!("{:?}", stepped.series), "{}", drawn.text);
        for i in 0..2 * scenario.model().links.len() {
            let (a, b) = (&computed.links[i], &stepped.links[i]);
            assert_eq!(
                (a.window, a.queue_mean, a.sending),
                (b.window, b.queue_mean, b.sending),
                "link {i}\n{}",
                drawn.text
            );
            busiest = busiest.max(within_its_window(scenario, i, a, &drawn.text));
        }
        assert!(stepped.verdicts.windows(2).all(|w| w[0].at <= w[1].at), "time ran back\n{}", drawn.text);
        let markers = computed.edges.iter().chain(computed.flow_markers.iter().filter_map(|m| m.as_deref()));
        for m in markers {
            for (name, value) in &m.gauges {
                assert!(!value.is_nan(), "{name} is not a number\n{}", drawn.text);
            }
        }
        assert!(scenario.metrics(&computed).iter().all(|m| m.value.is_finite()), "{}", drawn.text);
        for name in drawn.parts {
            *seen.entry(name).or_default() += 1;
        }
        packets += computed.flows.iter().map(|f| f.total.sent.iter().sum::<u64>()).sum::<u64>();
        events += computed.events;
    }
    println!(
        "{} random experiments, {packets} packets, {events} events, utilisation up to {busiest}; drawn: {seen:?}",
        cases()
    );
    assert!(busiest > 0.99, "no link was ever full: {busiest}");
    let queues = registry.aqms.iter().map(|e| e.name).chain(registry.schedulers.iter().map(|e| e.name));
    let controls = random::CONTROLS.iter().flat_map(|(_, controls)| controls.iter().copied());
    let senders = controls.chain(random::TRAFFIC.iter().map(|(kind, _)| *kind));
    for name in registry.markers.iter().map(|e| e.name).chain(queues).chain(senders) {
        assert!(seen.contains_key(name), "{name} was never drawn");
    }
}

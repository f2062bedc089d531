//! From file to figures: what the networks of good files do when they run.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::{Metric, Scenario};
use inprofile_sim::engine;
use inprofile_sim::outcome::Outcome;

fn figures(name: &str, set: &[(&str, &str)]) -> Vec<Metric> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good").join(name);
    let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let scenario =
        Scenario::parse_bytes(&std::fs::read(path).unwrap(), name, &set, &Registry::default()).unwrap();
    let outcome = engine::run(scenario.network(1, false), &AtomicBool::new(false), None).unwrap();
    scenario.metrics(&outcome)
}

fn value(all: &[Metric], name: &str) -> f64 {
    all.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

#[test]
fn paper_a_fills_its_link_and_shares_it() {
    let all =
        figures("four-flows.toml", &[("duration", "60 s"), ("measure.from", "20 s"), ("measure.to", "60 s")]);
    assert!(value(&all, "utilisation") > 0.95 && value(&all, "utilisation") <= 1.0 + 1e-3);
    // Payload is 1000 of 1040 B; little is received out of order for long.
    let ratio = value(&all, "goodput") / value(&all, "throughput");
    assert!((ratio - 1000.0 / 1040.0).abs() < 1e-3, "{ratio}");
    let arrived = value(&all, "lambda_in") + value(&all, "lambda_out");
    assert!(arrived > 1.1e6 && arrived < 1.35e6, "{arrived}");
    // A bucket of two packets at 250 kbit/s each: some of the traffic is IN, and not all.
    assert!(value(&all, "lambda_in") > 2e5 && value(&all, "lambda_in") < 1.0e6 + 1e4);
    assert!(value(&all, "fi") > 0.9 && value(&all, "fi") <= 1.0);
    assert!(value(&all, "queue_mean") > 1.0 && value(&all, "queue_mean") < 100.0);
    // Little: queue_mean packets of 1040 B at 1.2 Mbit/s.
    let expected = value(&all, "queue_mean") * 1040.0 * 8.0 / 1.2e6 / value(&all, "utilisation");
    assert!((value(&all, "delay_mean") - expected).abs() < 0.02 * expected);
}

#[test]
fn a_marker_that_drops_at_the_edge_is_seen_there() {
    let set = [
        ("edges.ER.marker", "{ kind = \"blind_drop\", p = 0.05 }"),
        ("duration", "30 s"),
        ("measure", "{ from = \"10 s\", at = \"bottleneck\" }"),
    ];
    let all = figures("four-flows.toml", &set);
    assert!(value(&all, "edge_drops") > 10.0);
    let passive = figures("four-flows.toml", &set[1..]);
    assert_eq!(value(&passive, "edge_drops"), 0.0);
    assert!(value(&all, "throughput") < value(&passive, "throughput"));
}

#[test]
fn a_mesh_with_unequal_ways_runs() {
    let all = figures("mesh.toml", &[]);
    assert!(value(&all, "goodput") > 1e6);
}

/// 100 Mbit/s and 80 ms, 660 packets on the way: two CUBIC flows and two Reno flows, and a RED queue that is never
/// full.
const FAT: &str = r#"
title = "CUBIC beside Reno on a long fat link"
duration = "40 s"
measure = { from = "10 s", to = "40 s", at = "fat" }
[tcp]
congestion = "cubic"
ecn = true
window = "4000 packets"
[[links]]
name = "fat"
from = "A"
to = "B"
rate = "100 Mbit/s"
delay = "30 ms"
queue = { aqm = "red", limit = "10000 packets", min_th = "100 packets", max_th = "4000 packets", max_p = 0.1, ecn = true }
[[flows]]
name = "cubic"
count = 2
from = "H*"
join = { node = "A", rate = "1 Gbit/s", limit = "100000 packets" }
to = "B"
rtt = "80 ms"
start = "uniform 0..1 s"
[[flows]]
name = "reno"
count = 2
from = "H*"
join = { node = "A", rate = "1 Gbit/s", limit = "100000 packets" }
to = "B"
rtt = "80 ms"
start = "uniform 0..1 s"
tcp = { congestion = "reno" }
"#;

fn fat(set: &[(&str, &str)]) -> Outcome {
    let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let scenario = Scenario::parse(FAT, "fat", &set, &Registry::default()).unwrap();
    // An outcome: every packet sent was received, dropped, or is on its way.
    engine::run(scenario.network(1, false), &AtomicBool::new(false), None).unwrap()
}

#[test]
fn marks_take_the_place_of_losses_and_cubic_the_larger_share() {
    let outcome = fat(&[]);
    let queue = &outcome.links[0].window;
    assert!(outcome.drops.is_empty(), "{:?}", outcome.drops);
    assert!(queue.marked.iter().sum::<u64>() > 10, "{:?}", queue.marked);
    for flow in &outcome.flows {
        assert_eq!((flow.tally.retransmissions, flow.tally.timeouts), (0, 0));
    }
    let sent: Vec<u64> = outcome.flows.iter().map(|f| f.window.received_bytes.iter().sum::<u64>()).collect();
    let (cubic, reno) = (sent[0] + sent[1], sent[2] + sent[3]);
    assert!(cubic > reno, "{sent:?}");
    assert!((cubic + reno) as f64 * 8.0 > 0.9 * 100e6 * 30.0, "{sent:?}");

    // The same queue, and flows that don't understand: what would be marked is dropped.
    let deaf = fat(&[("tcp.ecn", "false")]);
    assert_eq!(deaf.links[0].window.marked, [0; 3]);
    assert!(!deaf.drops.is_empty());
}

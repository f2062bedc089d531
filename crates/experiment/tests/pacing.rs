//! The cost of pacing in events: one for a train of segments, whatever its length, and none where acknowledgements come no faster than
//! the rate.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;

/// So many connections share a link of that many Mbit/s, with 64 ms of buffer.
fn file(connections: u32, mbits: u32, tcp: &str) -> String {
    let limit = 8 * mbits;
    format!(
        r#"
title = "Trains"
duration = "20 s"
measure = {{ from = "5 s", at = "bottleneck" }}
tcp = {{ profile = "linux", {tcp}, segment = "1000 B", window = "10000 packets", delayed_ack = "0 s" }}

[[links]]
name = "access"
from = "a"
to = "R1"
rate = "{access} Mbit/s"
delay = "15 ms"
queue = {{ aqm = "drop_tail", limit = "100000 packets" }}

[[links]]
name = "bottleneck"
from = "R1"
to = "b"
rate = "{mbits} Mbit/s"
delay = "10 ms"
queue = {{ aqm = "drop_tail", limit = "{limit} packets" }}

[[flows]]
name = "tcp"
count = {connections}
from = "a"
to = "b"
start = "uniform 0..0.1 s"
"#,
        access = 10 * mbits,
    )
}

/// Events a packet through the bottleneck.
fn events(connections: u32, mbits: u32, tcp: &str) -> f64 {
    let text = file(connections, mbits, tcp);
    let scenario = Scenario::parse(&text, "trains.toml", &[], &Registry::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let outcome = engine::run(scenario.network(1, false), &AtomicBool::new(false), None).expect("it runs");
    let packets: u64 = outcome.links[scenario.measured()].total.sent.iter().sum();
    outcome.events as f64 / packets as f64
}

/// A timer for each segment would be two events a packet.
#[test]
fn a_train_is_one_event() {
    // Segments of a train at 100 Mbit/s: about twelve (Linux's millisecond), three for Prague (a quarter of one).
    for (tcp, most) in [
        ("congestion = \"cubic\", pacing = true", 1.2),
        ("congestion = \"bbr\"", 1.25),
        ("congestion = \"prague\", ecn = true, accurate_ecn = true", 1.5),
    ] {
        let events = events(1, 100, tcp);
        assert!(events < most, "{tcp}: {events}");
    }
}

/// At a megabit a second, where a train is two segments, or one of Prague's.
#[test]
fn slow_trains_cost_no_more_events_than_they_have() {
    for (tcp, most) in [
        ("congestion = \"cubic\"", 1.15),
        ("congestion = \"cubic\", pacing = true", 1.4),
        ("congestion = \"bbr\"", 1.65),
        ("congestion = \"prague\", ecn = true, accurate_ecn = true", 1.85),
    ] {
        let events = events(10, 10, tcp);
        assert!(events < most, "{tcp}: {events}");
    }
}

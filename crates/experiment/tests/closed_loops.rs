//! Loss-based senders before an AQM settle: what a timeout leaves of the window is no reason for the next one.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;

const RED: &str = r#"aqm = "red", min_th = "10 packets", max_th = "30 packets", max_p = 0.02"#;
const CODEL: &str = r#"aqm = "codel""#;
const PIE: &str = r#"aqm = "pie""#;

/// Five flows of 80 to 120 ms for half a minute: utilisation, drops and timeouts after ten seconds.
fn five_flows(queue: &str, profile: &str, congestion: &str, seed: u64) -> (f64, f64, f64) {
    let text = format!(
        r#"
title = "Five flows before one queue"
duration = "30 s"
measure = {{ from = "10 s" }}
tcp = {{ profile = "{profile}", congestion = "{congestion}" }}

[[links]]
name = "bottleneck"
from = "edge"
to = "server"
rate = "20 Mbit/s"
delay = "10 ms"
queue = {{ {queue}, limit = "1000 packets" }}

[[flows]]
name = "tcp"
count = 5
from = "H*"
join = {{ node = "edge", rate = "1 Gbit/s" }}
to = "server"
rtt = ["80 ms", "90 ms", "100 ms", "110 ms", "120 ms"]
start = "uniform 0..1 s"
"#
    );
    let scenario = Scenario::parse(&text, "loop.toml", &[], &Registry::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let outcome = engine::run(scenario.network(seed, false), &AtomicBool::new(false), None).expect("it runs");
    let metrics = scenario.metrics(&outcome);
    let value = |name| metrics.iter().find(|m| m.name == name).expect("a metric").value;
    (value("utilisation"), value("drops"), value("timeouts"))
}

/// RFC 5681 §3.1 and RFC 9438 §4.6, at five flows' own round trips: within a few percent of a link's capacity, with losses of a few
/// in a thousand packets and hardly a timeout. `linux` beside them.
#[test]
fn five_flows_fill_a_link_before_an_aqm() {
    let tcps = [("rfc", "reno"), ("rfc", "newreno"), ("rfc", "sack"), ("rfc", "cubic"), ("linux", "cubic")];
    for queue in [RED, CODEL, PIE] {
        for (profile, congestion) in tcps {
            for seed in 1..=2 {
                let (utilisation, drops, timeouts) = five_flows(queue, profile, congestion, seed);
                let sensible = utilisation > 0.85 && drops < 100.0 && timeouts < 4.0;
                assert!(
                    sensible,
                    "{queue}, {profile} {congestion}, seed {seed}: {utilisation}, {drops} drops, {timeouts} timeouts"
                );
            }
        }
    }
}

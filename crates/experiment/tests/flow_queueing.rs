//! Flow queueing from an experiment file to the shares of flows: ten TCP flows beside one that sends whatever happens.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;
use inprofile_sim::outcome::Outcome;

const RATE: f64 = 20e6;

/// TCP without CUBIC's aggressiveness, and 16 of 20 Mbit/s at a constant rate.
fn run(queue: &str) -> Outcome {
    let text = format!(
        r#"
title = "Ten TCP flows and an unresponsive one"
duration = "12 s"
measure = {{ from = "4 s", to = "12 s" }}
tcp = {{ congestion = "newreno" }}

[[links]]
name = "bottleneck"
from = "R1"
to = "R2"
rate = "20 Mbit/s"
delay = "5 ms"
queue = {{ limit = "200 packets", {queue} }}

[[flows]]
name = "tcp"
count = 10
from = "H*"
join = {{ node = "R1", rate = "1 Gbit/s" }}
to = "R2"
rtt = "20..60 ms"
start = "uniform 0..1 s"

[[flows]]
name = "udp"
from = "H*"
join = {{ node = "R1", rate = "1 Gbit/s" }}
to = "R2"
rtt = "20 ms"
traffic = {{ kind = "cbr", rate = "16 Mbit/s", packet = "1000 B" }}
"#
    );
    let scenario = Scenario::parse(&text, "fair.toml", &[], &Registry::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    engine::run(scenario.network(1, false), &AtomicBool::new(false), None).expect("it runs")
}

/// Rates received in the window of 8 s by the TCP flows and by the other, in fair shares.
fn shares(queue: &str) -> (Vec<f64>, f64) {
    let outcome = run(queue);
    let rates: Vec<f64> = outcome
        .flows
        .iter()
        .map(|f| f.window.received_bytes.iter().sum::<u64>() as f64 / (RATE / 11.0))
        .collect();
    (rates[..10].to_vec(), rates[10])
}

#[test]
fn an_unresponsive_flow_gets_its_share_and_no_more() {
    let (tcp, udp) = shares(r#"aqm = "drop_tail""#);
    assert!(udp > 7.0 && tcp.iter().all(|share| *share < 0.8), "{tcp:?} {udp}");
    for aqm in ["fq_codel", "fq_pie", "sfq"] {
        let (tcp, udp) = shares(&format!("aqm = \"{aqm}\""));
        // It gets what the others leave of theirs, too.
        assert!((1.0..1.6).contains(&udp), "{aqm}: {tcp:?} {udp}");
        assert!(tcp.iter().all(|share| (0.65..1.4).contains(share)), "{aqm}: {tcp:?} {udp}");
    }
}

/// RFC 8290 §6.1, §5.3: with one queue, as with any number that all collide in, there is no isolation.
#[test]
fn with_one_queue_there_is_no_isolation() {
    let (tcp, udp) = shares(r#"aqm = "fq_codel", flows = 1"#);
    assert!(udp > 7.0 && tcp.iter().all(|share| *share < 0.8), "{tcp:?} {udp}");
}

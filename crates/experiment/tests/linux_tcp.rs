//! TCP as Linux has it, from an experiment file: through a policer, where losses come in heaps, it needs no timeout.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;

/// One connection through a policer of 10 Mbit/s. Linux's host is late by up to a millisecond, as the kernel's are: otherwise a window stays in one train, and what a small burst
/// lets through of that depends on the last 0.3 ms of the round trip.
fn file(profile: &str, congestion: &str, burst: &str) -> String {
    let jitter = if profile == "linux" { "1 ms" } else { "0 ms" };
    format!(
        r#"
title = "A policer"
duration = "30 s"
measure = {{ from = "10 s", at = "network" }}
tcp = {{ profile = "{profile}", congestion = "{congestion}", jitter = "{jitter}" }}

[[links]]
name = "access"
from = "customer"
to = "policer"
rate = "100 Mbit/s"
delay = "0 ms"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }}

[[links]]
name = "network"
from = "policer"
to = "server"
rate = "100 Mbit/s"
delay = "1 ms"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }}

[[edges]]
node = "policer"
marker = {{ kind = "token_bucket", rate = "10 Mbit/s", depth = "{burst}", action = "drop" }}

[[flows]]
name = "flow"
from = "H*"
join = {{ node = "customer", rate = "1 Gbit/s" }}
to = "server"
rtt = "20 ms"
start = "uniform 0..1 s"
"#
    )
}

/// With CUBIC: goodput in bit/s, timeouts, retransmissions.
fn through_a_policer(profile: &str, burst: &str, seed: u64) -> (f64, f64, f64) {
    let text = file(profile, "cubic", burst);
    let scenario = Scenario::parse(&text, "policer.toml", &[], &Registry::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let outcome = engine::run(scenario.network(seed, false), &AtomicBool::new(false), None).expect("it runs");
    let metrics = scenario.metrics(&outcome);
    let value = |name| metrics.iter().find(|m| m.name == name).expect("a metric").value;
    (value("goodput"), value("timeouts"), value("retransmissions"))
}

/// Linux 6.18 itself, over the same links: 8.51, 9.59, 9.74 and 9.73 Mbit/s, without a timeout (three runs of the first and second, one of the others).
#[test]
fn it_gets_through_a_policer_what_the_kernel_gets() {
    for (burst, kernel) in [("18 kB", 8.51e6), ("36 kB", 9.59e6), ("125 kB", 9.74e6), ("1 MB", 9.73e6)] {
        for seed in 1..=2 {
            let (goodput, timeouts, retransmissions) = through_a_policer("linux", burst, seed);
            assert_eq!(timeouts, 0.0, "{burst}");
            assert!((goodput / kernel - 1.0).abs() < 0.08, "{burst}: {goodput}, the kernel {kernel}");
            assert!(retransmissions > 0.0);
        }
    }
}

/// RFC 9937 §6 and RFC 6937 §3 are other laws than Linux's where losses come in heaps. The default is Linux's, and can be written.
#[test]
fn each_texts_reduction_can_be_chosen() {
    let parse = |prr: &str| {
        let text = file("linux", "sack", "36 kB").replace("jitter =", &format!("{prr} jitter ="));
        Scenario::parse(&text, "policer.toml", &[], &Registry::default())
            .unwrap_or_else(|problems| panic!("{problems:?}"))
    };
    assert_eq!(parse("").canonical(), parse(r#"prr = "linux","#).canonical());
    let resent = |prr: &str| {
        let scenario = parse(prr);
        let runs = (1..=3).map(|seed| {
            let outcome =
                engine::run(scenario.network(seed, false), &AtomicBool::new(false), None).expect("it runs");
            let metrics = scenario.metrics(&outcome);
            metrics.iter().find(|m| m.name == "retransmissions").expect("a metric").value
        });
        runs.sum::<f64>()
    };
    let (linux, newer, older) = (resent(""), resent(r#"prr = "rfc9937","#), resent(r#"prr = "rfc6937","#));
    assert!(linux != newer && newer != older && older != linux, "{linux}, {newer}, {older}");
}

/// By RFC 6675 the loss of a retransmission is found by the timer alone. Its threshold is a share of the window just left (RFC 5681 §3.1), so
/// even after bursts of losses it is not far behind.
#[test]
fn recovery_by_rfc_6675_gets_through_as_well() {
    for burst in ["36 kB", "125 kB", "1 MB"] {
        let (goodput, _, _) = through_a_policer("rfc", burst, 1);
        assert!(goodput > 9.3e6, "{burst}: {goodput}");
    }
}

#[test]
fn what_linux_does_not_have_is_refused() {
    let text = file("linux", "newreno", "36 kB");
    let Err(problems) = Scenario::parse(&text, "policer.toml", &[], &Registry::default()) else {
        panic!("taken for a good file");
    };
    let said = format!("{problems:?}");
    assert!(said.contains("selective acknowledgements") && said.contains("cubic"), "{said}");
}

//! RDMA over Converged Ethernet, from an experiment file: DCQCN senders at an N:1 incast.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;
use inprofile_sim::outcome::Outcome;

/// So many senders with ports of 10 Gbit/s to one of the same rate, with the paper's thresholds (Figure 14) for a quarter of its rate.
fn incast(senders: u32, queue: &str, tcp: &str) -> String {
    format!(
        r#"
title = "Incast"
duration = "30 ms"
measure = {{ from = "10 ms", at = "port" }}
tcp = {{ profile = "linux", window = "10000 packets", {tcp} }}

[[links]]
name = "port"
from = "S"
to = "R"
rate = "10 Gbit/s"
delay = "2 us"
queue = {{ {queue} }}

[[flows]]
name = "sender"
count = {senders}
from = "H*"
join = {{ node = "S", rate = "10 Gbit/s", limit = "10000 packets" }}
to = "R"
rtt = "20 us"
"#
    )
}

const DCQCN: &str = r#"congestion = "dcqcn", line_rate = "10 Gbit/s""#;
const MARKS: &str = r#"aqm = "wred", limit = "4 MB", w_q = 1.0, green = { min_th = "3.9 MB", max_th = "4 MB", max_p = 1.0 }, yellow = { min_th = "3.9 MB", max_th = "4 MB", max_p = 1.0 }, green_ecn = { min_th = "5 kB", max_th = "200 kB", max_p = 0.01 }"#;

fn run(text: &str) -> (Outcome, impl Fn(&str) -> f64 + use<>) {
    let scenario = Scenario::parse(text, "file.toml", &[], &Registry::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let outcome = engine::run(scenario.network(1, false), &AtomicBool::new(false), None).expect("it runs");
    let metrics = scenario.metrics(&outcome);
    let value = move |name: &str| {
        metrics.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("no {name}")).value
    };
    (outcome, value)
}

/// Zhu et al., abstract: throughput and fairness. One sender has the port; of several, which begin at its rate all at once, each has its share,
/// the port recovers, and nothing is lost.
#[test]
fn dcqcn_senders_fill_a_port_and_share_it() {
    for (senders, least) in [(1, 0.99), (2, 0.95), (8, 0.7)] {
        let (_, value) = run(&incast(senders, MARKS, DCQCN));
        assert!(value("utilisation") > least, "{senders}: {}", value("utilisation"));
        assert!(value("fi") > 0.97, "{senders}: {}", value("fi"));
        assert_eq!(value("loss_in"), 0.0, "{senders}");
    }
}

fn lost(outcome: &Outcome) -> u64 {
    outcome.flows.iter().map(|f| f.dropped.iter().sum::<u64>()).sum()
}

/// The same without marks, behind a queue that pauses its links: `limit` is what they may send at most.
fn paused(senders: u32, limit: &str, xoff: &str, xon: &str) -> String {
    let text = incast(senders, &format!("aqm = \"drop_tail\", limit = \"{limit}\""), DCQCN);
    text.replace(
        "queue = { aqm",
        &format!("pause = {{ xoff = \"{xoff}\", xon = \"{xon}\" }}\nqueue = {{ aqm"),
    )
    .replace("duration = \"30 ms\"", "duration = \"4 ms\"")
    .replace("from = \"10 ms\"", "from = \"1 ms\"")
}

fn stat(outcome: &Outcome, name: &str) -> f64 {
    let link = &outcome.links[0];
    let counts = link.stats.iter().map(|(n, v)| (*n, *v as f64)).chain(link.gauges.iter().copied());
    counts.into_iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// IEEE 802.1Q §36: links are paused and nothing is lost while the headroom suffices, which `check` tells; the port is never idle. With less,
/// packets are lost, and it says so before.
#[test]
fn a_paused_link_loses_nothing_while_the_headroom_suffices() {
    for senders in [2, 5] {
        let (outcome, value) = run(&paused(senders, "10 MB", "30 kB", "20 kB"));
        assert_eq!(value("loss_in"), 0.0);
        assert!(value("utilisation") > 0.999, "{}", value("utilisation"));
        assert!(value("fi") > 0.99, "each link has its own count: {}", value("fi"));
        assert!(stat(&outcome, "pauses") > 10.0 && stat(&outcome, "paused_time") > 1e-3);
        // 10 Gbit/s over 2 · 8 µs, and two packets of 1500 B.
        let most = 30_000.0 + 20_000.0 + 3_000.0;
        assert!(stat(&outcome, "ingress_most") > 30_000.0 && stat(&outcome, "ingress_most") <= most);
        let enough = f64::from(senders) * most;
        let limit = |bytes: f64| paused(senders, &format!("{bytes} B"), "30 kB", "20 kB");
        let (_, value) = run(&limit(enough));
        assert_eq!(value("loss_in"), 0.0, "{senders}");
        assert!(warnings(&limit(enough)).is_empty(), "{:?}", warnings(&limit(enough)));
        let said = warnings(&limit(enough - 1.0));
        assert!(said.iter().any(|w| w.contains("before all links have paused")), "{said:?}");
        // Half of what check asks for: the links are not paused before the room ends.
        let (outcome, _) = run(&limit(0.5 * enough));
        assert!(lost(&outcome) > 0, "{senders}: {:?}", outcome.links[0].stats);
    }
}

fn warnings(text: &str) -> Vec<String> {
    let scenario = Scenario::parse(text, "file.toml", &[], &Registry::default()).expect("it is valid");
    scenario.warnings().iter().map(|w| w.problem.clone()).collect()
}

/// A pause spreads: the link before the paused one fills its own queue, which pauses those before it; where it does not, that queue loses.
#[test]
fn a_pause_spreads_to_the_links_before() {
    let two = |pause: &str| {
        paused(4, "10 MB", "30 kB", "20 kB")
            .replace("node = \"S\"", "node = \"T\"")
            .replace("[[flows]]", &format!(
                "[[links]]\nname = \"trunk\"\nfrom = \"T\"\nto = \"S\"\nrate = \"20 Gbit/s\"\ndelay = \"2 us\"\n{pause}queue = {{ aqm = \"drop_tail\", limit = \"300 kB\" }}\n\n[[flows]]"
            ))
    };
    assert_eq!(lost(&run(&two("pause = { xoff = \"30 kB\", xon = \"20 kB\" }\n")).0), 0);
    assert!(lost(&run(&two("")).0) > 0);
}

/// A link that would go on above the mark at which it is paused, and one that names half of it.
#[test]
fn a_pause_that_cannot_be_is_refused() {
    let said = |text: &str| {
        let problems = Scenario::parse(text, "file.toml", &[], &Registry::default()).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<String>()
    };
    let text = paused(2, "10 MB", "30 kB", "31 kB");
    assert!(said(&text).contains("a link would go on at 31000 B, above the 30000 B"), "{}", said(&text));
    let text = paused(2, "10 MB", "30 kB", "20 kB").replace(", xon = \"20 kB\"", "");
    assert!(said(&text).contains("xon"), "{}", said(&text));
}

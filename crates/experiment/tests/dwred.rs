//! DWRED told by a TWAM edge: thresholds that follow, signals that come late or never, and flows that are all alike.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;
use inprofile_sim::outcome::{LinkOutcome, Outcome};

/// Three flows of 1, 2 and 3 Mbit/s on a link of 4 Mbit/s: 50 packets fill it for a round trip of 100 ms.
const FILE: &str = r#"
title = "The edge tells the core"
duration = "60 s"
measure = { from = "10 s", at = "core" }
[tcp]
profile = "ns2"
window = "100 packets"
[[links]]
name = "core"
from = "E"
to = "C"
rate = "4 Mbit/s"
delay = "20 ms"
queue = { aqm = "dwred", limit = "200 packets" }
[[flows]]
name = "tcp"
count = 3
from = "H*"
join = { node = "E", rate = "10 Mbit/s" }
to = "C"
rtt = "100 ms"
start = "uniform 0..1 s"
contract = ["1 Mbit/s", "2 Mbit/s", "3 Mbit/s"]
[[edges]]
node = "E"
marker = { kind = "twam" }
[[signals]]
from = "E"
to = "core"
"#;

fn run(set: &[(&str, &str)]) -> Outcome {
    let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let scenario = Scenario::parse(FILE, "test.toml", &set, &Registry::default())
        .unwrap_or_else(|p| panic!("{}", p.iter().map(ToString::to_string).collect::<String>()));
    engine::run(scenario.network(1, false), &AtomicBool::new(false), None).unwrap()
}

fn core(outcome: &Outcome) -> &LinkOutcome {
    outcome.links.iter().find(|l| l.stats.iter().any(|s| s.0 == "unguided")).unwrap()
}

fn stat(outcome: &Outcome, name: &str) -> u64 {
    core(outcome).stats.iter().find(|s| s.0 == name).unwrap().1
}

fn gauge(outcome: &Outcome, name: &str) -> f64 {
    core(outcome).gauges.iter().find(|g| g.0 == name).unwrap().1
}

#[test]
fn thresholds_follow_what_the_edge_tells() {
    for delay in ["0 s", "1 s"] {
        let told = run(&[("signals.0.delay", delay)]);
        assert!(stat(&told, "signals") > 50 && gauge(&told, "guided") == 1.0);
        let max_th = gauge(&told, "max_th");
        assert!(max_th > 20.0 && max_th < 300.0 && max_th != 200.0, "{max_th}");
        assert!((gauge(&told, "min_th") - 0.15 * max_th).abs() < 1e-9);
        assert!(stat(&told, "early_out") + stat(&told, "forced_out") > 0);
    }
}

#[test]
fn signals_lost_for_good_leave_the_fallback() {
    let lost = run(&[("signals.0.loss", "1.0"), ("links.core.queue.fallback_max_th", "80 packets")]);
    assert_eq!((stat(&lost, "signals"), gauge(&lost, "guided"), gauge(&lost, "max_th")), (0, 0.0, 80.0));
    let arrived: u64 = core(&lost).total.arrived.iter().sum();
    assert_eq!(stat(&lost, "unguided"), arrived);
    // Half of them lost: what is told is a little older, and is still followed.
    let half = run(&[("signals.0.loss", "0.5"), ("links.core.queue.stale_after", "2 s")]);
    assert!(stat(&half, "signals") > 20 && gauge(&half, "guided") == 1.0);
}

/// Bouras and Sevasti 2004, §4, Eq. (4), (5): with ΣW in flight the queue holds ΣW less the 48.1 packets of the wire, so drops
/// begin where 0.15·ΣW is exceeded, at a queue of 0.176 of the wire: 8.5 packets. (A packet in transmission does not wait, nor do
/// 0.4 of one on the hosts' own links.)
#[test]
fn drops_begin_at_a_part_of_what_the_wire_holds() {
    let wire = 4e6 * 0.1 / (8.0 * 1040.0);
    for (window, drops) in [(18, false), (20, true)] {
        // The receiver holds each of the three to this window, and thresholds act on every packet.
        let limited = run(&[
            ("tcp.window", &format!("{window} packets")),
            ("links.core.queue.colours", "both"),
            ("links.core.queue.w_q", "0.05"),
        ]);
        let sum = f64::from(3 * window);
        let told = gauge(&limited, "max_th");
        assert!((told / sum - 1.0).abs() < 0.12, "told {told}, in flight {sum}");
        let early = stat(&limited, "early_in") + stat(&limited, "early_out");
        assert_eq!(early > 0, drops, "{early} early drops with windows of {window}");
        assert_eq!(stat(&limited, "forced_in") + stat(&limited, "forced_out"), 0, "the queue is below ΣW");
        if !drops {
            let queue = core(&limited).queue_mean;
            assert!((queue - (sum - wire - 1.4)).abs() < 0.3, "{queue} waiting of {sum}, {wire} on the wire");
        }
    }
}

/// Equal contracts: whoever has the larger window has OUT packets, and thresholds for OUT act on them.
#[test]
fn equal_contracts_have_out_packets_where_windows_differ() {
    let outcome = run(&[("flows.tcp.contract", "2 Mbit/s")]);
    assert!(core(&outcome).total.arrived[1] > 0);
    assert!(stat(&outcome, "early_out") + stat(&outcome, "forced_out") > 0);
}

/// The weighted reading of Eq. (3): with equal contracts everything is IN, and thresholds for OUT have nothing to act on.
#[test]
fn weighted_shares_of_equal_contracts_make_a_tail_drop_queue_of_it() {
    let drops = |colours: &str| {
        let outcome = run(&[
            ("flows.tcp.contract", "2 Mbit/s"),
            ("edges.E.marker.shares", "weighted"),
            ("links.core.queue.colours", colours),
        ]);
        assert_eq!(core(&outcome).total.arrived[1], 0, "nothing is OUT");
        (stat(&outcome, "early_in") + stat(&outcome, "forced_in"), stat(&outcome, "overflow_in"))
    };
    let (early, overflow) = drops("out");
    assert!(early == 0 && overflow > 0, "{early} {overflow}");
    let (early, _) = drops("both");
    assert!(early > 0);
}

//! Markers that need the network around them: contracts told at the edge, windows and round-trip times seen there, flows
//! kept apart.

use std::sync::atomic::AtomicBool;

use inprofile_core::marker::POLICED;
use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;
use inprofile_sim::outcome::Outcome;

/// Two flows of 1 and 3 Mbit/s over a link of 2 Mbit/s, and one without a contract; round trips of 100 ms.
const BASE: &str = r#"
title = "markers"
duration = "60 s"
measure = { from = "10 s", to = "60 s", at = "bottleneck" }
[tcp]
profile = "ns2"
window = "100 packets"
[[links]]
name = "bottleneck"
from = "E"
to = "C"
rate = "2 Mbit/s"
delay = "20 ms"
queue = { aqm = "red", limit = "200 packets", min_th = "10 packets", max_th = "30 packets", max_p = 0.1 }
[[flows]]
name = "promised"
count = 2
from = "H*"
join = { node = "E", rate = "10 Mbit/s" }
to = "C"
rtt = "100 ms"
start = "uniform 0..1 s"
contract = ["1 Mbit/s", "3 Mbit/s"]
[[flows]]
name = "other"
from = "H*"
join = { node = "E", rate = "10 Mbit/s" }
to = "C"
rtt = "100 ms"
start = "uniform 0..1 s"
"#;

fn run(more: &str, set: &[(&str, &str)]) -> Outcome {
    let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let text = format!("{BASE}{more}");
    let scenario = Scenario::parse(&text, "markers", &set, &Registry::default())
        .unwrap_or_else(|p| panic!("{}", p.iter().map(ToString::to_string).collect::<String>()));
    engine::run(scenario.network(1, false), &AtomicBool::new(false), None).unwrap()
}

/// Share of the packets that a flow's receiver got as IN.
fn share_in(outcome: &Outcome, flow: usize) -> f64 {
    let [green, yellow, red] = outcome.flows[flow].window.received;
    green as f64 / (green + yellow + red) as f64
}

#[test]
fn twam_at_an_edge_knows_the_contracts_of_the_flows_that_pass() {
    for source in ["estimated", "outstanding", "oracle"] {
        let edge = format!(
            "[[edges]]\nnode = \"E\"\nmarker = {{ kind = \"twam\", window_source = \"{source}\" }}\n"
        );
        let outcome = run(&edge, &[]);
        // A quarter of the two flows' packets is due the first flow as IN (Bouras and Sevasti 2004, Eq. (3)), all its
        // packets if it has fewer.
        let received = |flow: usize| outcome.flows[flow].window.received.iter().sum::<u64>() as f64;
        let due = 0.25 * (received(0) + received(1)) / received(0);
        let (first, second) = (share_in(&outcome, 0), share_in(&outcome, 1));
        assert!(first < 0.999 && (first - due.min(1.0)).abs() < 0.12, "{source}: {first}, due {due}");
        assert!(second > 0.95, "{source}: {second}");
        assert!(share_in(&outcome, 2) < 0.01, "{source}: best effort");
        // The other reading: the largest contract is always IN, and so are equal ones.
        let weighted = edge.replace("\"twam\",", "\"twam\", shares = \"weighted\",");
        assert!(share_in(&run(&weighted, &[]), 1) > 0.999, "{source}");
        let equal = run(&weighted, &[("flows.promised.contract", "1 Mbit/s")]);
        assert_eq!([share_in(&equal, 0), share_in(&equal, 1)], [1.0; 2], "{source}");
    }
}

/// The sum that the edge tells is near what the senders' windows are in truth.
#[test]
fn twam_estimates_the_sum_of_the_windows() {
    let sum = |source: &str| {
        let outcome = run(
            &format!(
                "[[edges]]\nnode = \"E\"\nmarker = {{ kind = \"twam\", window_source = \"{source}\" }}\n\
                 [[monitors]]\nedge = \"E\"\nevery = \"100 ms\"\n"
            ),
            &[],
        );
        let series = &outcome.series[0];
        let (_, sums) = series.columns.iter().find(|(what, _)| *what == "sum_window").unwrap();
        let late: Vec<f64> =
            series.times.iter().zip(sums).filter(|(t, _)| t.secs() > 10.0).map(|(_, sum)| *sum).collect();
        late.iter().sum::<f64>() / late.len() as f64
    };
    let truth = sum("oracle");
    // 2 Mbit/s · 100 ms are 24 packets, and the queue holds some more.
    assert!(truth > 24.0 && truth < 70.0, "{truth}");
    for source in ["estimated", "outstanding"] {
        let ratio = sum(source) / truth;
        assert!((0.6..1.2).contains(&ratio), "{source}: {ratio}");
    }
}

#[test]
fn a_probe_marker_at_an_edge_keeps_flows_apart() {
    let own = |p: &str| format!("flows.{p}.marker");
    let (a, b) = (own("promised"), own("other"));
    let marker = "{ kind = \"probe\" }";
    let hosts = run("", &[(&a, marker), (&b, marker)]);
    let edge = run("[[edges]]\nnode = \"E\"\nmarker = { kind = \"probe\" }\n", &[]);
    for flow in 0..3 {
        let (own, shared) = (share_in(&hosts, flow), share_in(&edge, flow));
        // No losses between the hosts and the edge, so both see the same packets in the same order.
        assert_eq!(own, shared);
        assert!((0.8..1.0).contains(&own), "{own}");
    }
}

/// A policer at the edge: nothing out of profile gets past it, and every drop has its word.
#[test]
fn a_policer_lets_no_packet_out_of_profile_past() {
    for (kind, worst) in [
        ("kind = \"token_bucket\", rate = \"1 Mbit/s\", depth = \"15 kB\"", 1),
        ("kind = \"srtcm\", cir = \"1 Mbit/s\", cbs = \"10 kB\", ebs = \"5 kB\"", 2),
        ("kind = \"trtcm\", cir = \"500 kbit/s\", pir = \"1 Mbit/s\", cbs = \"10 kB\", pbs = \"15 kB\"", 2),
        (
            "kind = \"rfc4115\", cir = \"500 kbit/s\", eir = \"500 kbit/s\", cbs = \"10 kB\", ebs = \"5 kB\"",
            2,
        ),
    ] {
        let edge =
            |action: &str| format!("[[edges]]\nnode = \"E\"\nmarker = {{ {kind}, action = \"{action}\" }}\n");
        let policed = run(&edge("drop"), &[]);
        let drops = |o: &Outcome| -> u64 { o.flows.iter().map(|f| f.window_dropped[POLICED.index()]).sum() };
        assert!(drops(&policed) > 100, "{kind}: {}", drops(&policed));
        let received = policed.flows.iter().fold([0; 3], |mut all, f| {
            all.iter_mut().zip(f.window.received).for_each(|(a, n)| *a += n);
            all
        });
        assert_eq!(received[worst..], [0, 0][worst - 1..], "{kind}");
        // 1 Mbit/s for 50 s, less than a burst more; packets have 1,040 B.
        let bytes = received.iter().sum::<u64>() * 1_040;
        assert!(bytes as f64 <= 1e6 / 8.0 * 50.0 + 15_000.0 + 2.0 * 20_800.0, "{kind}: {bytes}");
        assert!(bytes as f64 >= 0.5 * 1e6 / 8.0 * 50.0, "{kind}: {bytes}");
        assert_eq!(drops(&run(&edge("mark"), &[])), 0, "{kind}");
    }
}

/// An edge's bucket is measured by the packets that pass it: of the flows whose data goes on from there, with their headers.
#[test]
fn an_edges_bucket_is_measured_by_the_packets_that_pass_it() {
    let text = |depth: &str, node: &str, flows: &str| {
        format!(
            "title = \"edge\"\nduration = \"10 s\"\nmeasure = {{ from = \"1 s\", to = \"10 s\", at = \"bottleneck\" }}\n\
             [[links]]\nname = \"edge\"\nfrom = \"A\"\nto = \"E\"\nrate = \"8 Mbit/s\"\ndelay = \"1 ms\"\n\
             queue = {{ aqm = \"drop_tail\", limit = \"50 packets\" }}\n\
             [[links]]\nname = \"bottleneck\"\nfrom = \"E\"\nto = \"C\"\nrate = \"8 Mbit/s\"\ndelay = \"1 ms\"\n\
             queue = {{ aqm = \"drop_tail\", limit = \"50 packets\" }}\n\
             [[edges]]\nnode = \"{node}\"\n\
             marker = {{ kind = \"token_bucket\", rate = \"1 Mbit/s\", depth = \"{depth}\" }}\n{flows}"
        )
    };
    let udp = "[[flows]]\nname = \"udp\"\nfrom = \"A\"\nto = \"C\"\ntraffic = { kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"1000 B\" }\n";
    let tcp = "[[flows]]\nname = \"tcp\"\nfrom = \"A\"\nto = \"C\"\n";
    // Data of TCP from E, whose acknowledgements alone pass A's link.
    let local = "[[flows]]\nname = \"local\"\nfrom = \"E\"\nto = \"A\"\n";
    let read = |text: &str| Scenario::parse(text, "edge", &[], &Registry::default());
    let said = |text: &str| match read(text) {
        Ok(s) => s.warnings().iter().map(ToString::to_string).collect::<String>(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    };

    assert_eq!(said(&text("1000 B", "E", udp)), "");
    assert_eq!(said(&text("1000 B", "E", &format!("{udp}{local}"))), "");
    let refused = said(&text("999 B", "E", udp));
    assert!(refused.contains("less than a packet of 1000 B"), "{refused}");
    // A packet is one of theirs as a unit of depth, too.
    assert!(read(&text("1 packets", "E", udp)).is_ok());

    // Of two kinds one fits: what never will is said, and of whom.
    let mixed = said(&text("1000 B", "E", &format!("{udp}{tcp}")));
    assert!(
        mixed.contains("warning") && mixed.contains("packet of 1500 B") && mixed.contains("tcp"),
        "{mixed}"
    );
    assert!(said(&text("999 B", "E", &format!("{udp}{tcp}"))).contains("error"));

    // What ends at a node does not go on from it.
    let ends = said(&text("1500 B", "C", udp));
    assert!(ends.contains("its marker has nothing to do"), "{ends}");
}

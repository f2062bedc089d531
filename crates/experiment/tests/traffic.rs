//! The traffic of flows: datagrams at their rates, transfers that come to an end, flows that start and stop; and the
//! networks of several hops and domains that the papers need.

use inprofile_core::registry::Registry;
use inprofile_core::units::Time;
use inprofile_experiment::{Scenario, Severity};
use inprofile_sim::network::Transport;
use inprofile_sim::outcome::Outcome;

use crate::parse;

/// Two nodes, 10 Mbit/s, 10 ms each way; flows are added.
const LINK: &str = r#"
title = "traffic"
duration = "20 s"
measure = { from = "5 s", to = "15 s" }
[[links]]
name = "link"
from = "A"
to = "B"
rate = "10 Mbit/s"
delay = "10 ms"
queue = { aqm = "drop_tail", limit = "100 packets" }
"#;

fn errors(text: &str) -> Vec<String> {
    match Scenario::parse(text, "traffic", &[], &Registry::default()) {
        Ok(_) => Vec::new(),
        Err(problems) => {
            let errors = problems.iter().filter(|p| p.severity == Severity::Error);
            errors.map(|p| format!("{}: {}", p.path, p.problem)).collect()
        }
    }
}

fn run(text: &str, seed: u64) -> Outcome {
    let scenario = parse(text);
    let computed = crate::run(scenario.network(seed, false));
    let stepped = crate::run(scenario.network(seed, true));
    assert_eq!(computed.flows, stepped.flows, "computed and stepped service differ");
    assert_eq!(computed.drops, stepped.drops, "computed and stepped service differ");
    computed
}

fn flows(name: &str, more: &str) -> String {
    format!("[[flows]]\nname = \"{name}\"\nfrom = \"A\"\nto = \"B\"\n{more}\n")
}

fn metric(scenario: &Scenario, outcome: &Outcome, name: &str) -> Option<f64> {
    scenario.metrics(outcome).iter().find(|m| m.name == name).map(|m| m.value)
}

#[test]
fn a_constant_rate_is_received_at_that_rate() {
    let text = LINK.to_owned()
        + &flows("udp", "traffic = { kind = \"cbr\", rate = \"4 Mbit/s\", packet = \"500 B\" }");
    let o = run(&text, 1);
    let f = &o.flows[0];
    // One packet a millisecond: 20,001 from 0 to 20 s, the last one as the run ends; each is 10.4 ms on its way.
    assert_eq!(f.total.sent, [20_001, 0, 0]);
    assert_eq!((f.total.received[0], f.in_flight), (19_990, 11));
    assert_eq!(f.window.received[0], 10_000);
    assert_eq!(f.window.received_bytes[0], 5_000_000);
    assert_eq!(f.window.in_order_payload_bytes, 10_000 * (500 - 28));
    assert_eq!(f.acks, [0; 4]);
    assert_eq!(metric(&parse(&text), &o, "goodput"), Some(10_000.0 * 472.0 * 8.0 / 10.0));
}

#[test]
fn more_than_the_link_is_lost_and_counted() {
    let text =
        LINK.to_owned() + &flows("udp", "traffic = { kind = \"cbr\", rate = \"11 Mbit/s\", dither = 1.0 }");
    let o = run(&text, 1);
    let f = &o.flows[0];
    let lost: u64 = f.window_dropped.iter().sum();
    // 1375 packets a second come, 1250 pass.
    assert!(f.window.received[0].abs_diff(12_500) <= 1, "{:?}", f.window);
    assert!(lost.abs_diff(1250) <= 110, "{lost}");
    assert_eq!(metric(&parse(&text), &o, "utilisation").map(|u| (u - 1.0).abs() < 1e-3), Some(true));
}

#[test]
fn on_and_off_in_fixed_and_in_random_periods() {
    for (periods, tolerance) in [("fixed", 0.005), ("exponential", 0.15), ("pareto", 0.5)] {
        let traffic = format!(
            "traffic = {{ kind = \"on_off\", peak = \"3 Mbit/s\", on = \"50 ms\", off = \"50 ms\", periods = \"{periods}\" }}"
        );
        let text = LINK.to_owned() + &flows("udp", &format!("count = 3\n{traffic}"));
        let o = run(&text, 7);
        let rates: Vec<f64> = o.flows.iter().map(|f| f.window.received_bytes[0] as f64 * 0.8).collect();
        for rate in &rates {
            assert!((rate / 1.5e6 - 1.0).abs() < tolerance, "{periods}: {rate}");
        }
        // Each flow draws its own periods; equal seeds draw the same.
        assert_eq!(rates[0] == rates[1], periods == "fixed", "{rates:?}");
        assert_eq!(run(&text, 7), o);
    }
}

/// By hand: the SYN and its answer, ten segments, then twenty-five.
#[test]
fn a_transfer_completes_and_says_when() {
    let text = LINK.to_owned()
        + "[tcp]\ndelayed_ack = \"0 s\"\n"
        + &flows("web", "start = \"6 s\"\ntraffic = { kind = \"transfer\", size = \"35 packets\" }");
    let o = run(&text, 1);
    let f = &o.flows[0];
    assert_eq!(f.total.received[0], 36);
    assert_eq!(f.total.in_order_payload_bytes, 35 * 1460);
    let took = f.completed.expect("it completes") - f.start;
    // A header of 40 B takes 0.032 ms, a segment of 1500 B 1.2 ms. The first segment's acknowledgement comes 21.232 ms after
    // it was sent; from then on each one lets two go, and the link is busy with the other 25.
    let by_hand = (20.064 + 21.232 + 25.0 * 1.2 + 10.0) * 1e-3;
    assert!((took.secs() - by_hand).abs() < 1e-6, "{} against {by_hand}", took.secs());
    let s = parse(&text);
    assert_eq!(metric(&s, &o, "completions"), Some(1.0));
    assert_eq!(metric(&s, &o, "completion_mean"), Some(took.secs()));
    // Sent once, acknowledged, and then nothing more happens.
    assert_eq!((f.total.sent[0], f.in_flight, f.tally.timeouts), (36, 0, 0));
}

#[test]
fn transfers_complete_under_loss_in_every_tcp() {
    for profile in ["rfc", "ns2"] {
        for congestion in ["reno", "newreno", "sack"] {
            let tcp = format!("[tcp]\nprofile = \"{profile}\"\ncongestion = \"{congestion}\"\n");
            let small = LINK.replace("100 packets", "5 packets");
            let text = small
                + &tcp
                + &flows(
                    "web",
                    "count = 12\nstart = \"uniform 0..1 s\"\ntraffic = { kind = \"transfer\", size = \"100 kB\" }",
                );
            let o = run(&text, 3);
            let (mut lost, mut last) = (0, Time::ZERO);
            for (i, f) in o.flows.iter().enumerate() {
                let at =
                    f.completed.unwrap_or_else(|| panic!("{profile} {congestion}: flow {i} is not done"));
                last = last.max(at);
                lost += f.dropped.iter().sum::<u64>();
                let segment = if profile == "ns2" { 1000 } else { 1460 };
                assert_eq!(f.total.in_order_payload_bytes, 100_000u64.div_ceil(segment) * segment);
                // Nothing is out, and nothing is timed out for.
                assert_eq!(f.in_flight + f.acks[3], 0);
            }
            assert!(lost > 10, "{profile} {congestion}: {lost} lost");
            assert!(last < Time::from_secs(15.0), "{profile} {congestion}: {last}");
        }
    }
}

#[test]
fn arrivals_are_so_long_apart_and_sizes_drawn() {
    let of = |arrivals: &str, sizes: &str| {
        let more = format!(
            "count = 400\nstart = {{ first = \"1 s\", every = \"20 ms\", arrivals = \"{arrivals}\" }}\n\
             traffic = {{ kind = \"transfer\", size = \"30 kB\", sizes = \"{sizes}\" }}"
        );
        LINK.to_owned() + &flows("web", &more)
    };
    let net = parse(&of("fixed", "fixed")).network(1, false);
    assert_eq!(net.flows[3].start, Time::from_secs(1.06));
    assert!(net.flows.iter().all(|f| matches!(f.transport, Transport::Transfer(_, 21))));
    let net = parse(&of("poisson", "exponential")).network(1, false);
    let gaps: Vec<f64> = net.flows.windows(2).map(|w| (w[1].start - w[0].start).secs()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    // 399 exponential gaps: 4 standard errors of a fifth.
    assert!((mean / 0.02 - 1.0).abs() < 0.2, "{mean}");
    let short = gaps.iter().filter(|g| **g < 0.02 * std::f64::consts::LN_2).count();
    assert!(short.abs_diff(200) < 40, "{short} below the median");
    let sizes: Vec<f64> = net
        .flows
        .iter()
        .map(|f| if let Transport::Transfer(_, n) = f.transport { f64::from(n) * 1460.0 } else { 0.0 })
        .collect();
    let mean = sizes.iter().sum::<f64>() / 400.0;
    assert!((mean / 30_730.0 - 1.0).abs() < 0.2, "{mean}");
    assert_ne!(sizes[0], sizes[1]);
    // Offered 12 Mbit/s for 8 s: most are through by the end, all are accounted for.
    let o = run(&of("poisson", "pareto"), 2);
    assert!(o.flows.iter().filter(|f| f.completed.is_some()).count() > 300);
}

/// Every flow that stops sends nothing new: what was out is acknowledged, and all is silent.
#[test]
fn flows_stop() {
    for profile in ["rfc", "ns2"] {
        let text = LINK.to_owned()
            + &format!("[tcp]\nprofile = \"{profile}\"\njitter = \"1 ms\"\n")
            + &flows("tcp", "count = 3\nstop = [\"3 s\", \"4 s\", \"12 s\"]")
            + &flows("udp", "stop = \"4 s\"\ntraffic = { kind = \"cbr\", rate = \"1 Mbit/s\" }");
        let o = run(&text, 1);
        for (i, f) in o.flows.iter().enumerate() {
            let silent = i != 2;
            assert_eq!(f.window.received[0] == 0, silent, "{profile}: flow {i}: {:?}", f.window);
            assert_eq!((f.in_flight, f.acks[3]), (0, 0), "{profile}: flow {i}");
            assert_eq!(f.window_tally.timeouts, 0, "{profile}: flow {i}");
            assert_eq!(f.completed, None);
        }
        // 125 packets a second from 0 s on, none at 4 s.
        assert_eq!(o.flows[3].total.sent[0], 500, "{profile}");
    }
}

#[test]
fn free_flows_beside_marked_ones_and_fairness_among_bulk() {
    let text = LINK.replace("{ aqm = \"drop_tail\", limit = \"100 packets\" }", "{ aqm = \"rio\", limit = \"100 packets\", in = { min_th = \"40 packets\", max_th = \"70 packets\", max_p = 0.02 }, out = { min_th = \"10 packets\", max_th = \"30 packets\", max_p = 0.1 } }")
        + &flows("sold", "count = 2\ncontract = \"3 Mbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"10 packets\" }")
        + &flows("free", "count = 2\nstart = \"2 s\"\nmarker = { kind = \"colour\", colour = \"out\" }")
        + &flows("voice", "traffic = { kind = \"cbr\", rate = \"64 kbit/s\", packet = \"200 B\" }\nmarker = { kind = \"token_bucket\", rate = \"64 kbit/s\", depth = \"2 packets\" }");
    let o = run(&text, 1);
    assert_eq!(o.flows[2].window.received[0], 0);
    assert!(o.flows[2].window.received[1] > 500);
    assert!(o.flows[0].window.received[0] > o.flows[0].window.received[1]);
    assert_eq!(o.flows[4].window.received[1], 0);
    assert!(o.flow_markers[4].is_some());
    let share = |i: usize| o.flows[i].window.in_order_payload_bytes as f64;
    let (sum, squares) = (0..4).map(share).fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    assert_eq!(metric(&parse(&text), &o, "fi"), Some(sum * sum / (4.0 * squares)));
}

/// Three hops with traffic that crosses each, and two domains with an edge each: per group its own round trips and start.
#[test]
fn three_hops_and_two_domains() {
    let mut text =
        "title = \"hops\"\nduration = \"20 s\"\nmeasure = { from = \"5 s\", at = \"hop1\" }\n[tcp]\ncongestion = \"sack\"\n".to_owned();
    for (i, (from, to)) in [("R0", "R1"), ("R1", "R2"), ("R2", "R3")].into_iter().enumerate() {
        text += &format!(
            "[[links]]\nname = \"hop{i}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"2 Mbit/s\"\ndelay = \"5 ms\"\nqueue = {{ aqm = \"red\", limit = \"60 packets\", min_th = \"10 packets\", max_th = \"30 packets\", max_p = 0.1 }}\n"
        );
    }
    let group = |name: &str, node: &str, to: &str, rtt: &str, start: &str| {
        format!(
            "[[flows]]\nname = \"{name}\"\ncount = 3\nfrom = \"H*\"\njoin = {{ node = \"{node}\", rate = \"10 Mbit/s\" }}\nto = \"{to}\"\nrtt = \"{rtt}\"\nstart = \"{start}\"\n"
        )
    };
    text += &group("long", "R0", "R3", "40..80 ms", "uniform 0..1 s");
    text += &group("first", "R0", "R1", "20 ms", "0 s");
    text += &group("second", "R1", "R2", "30..50 ms", "uniform 1..2 s");
    text += &group("third", "R2", "R3", "20 ms", "2 s");
    for node in ["R0", "R1"] {
        text += &format!(
            "[[edges]]\nnode = \"{node}\"\nmarker = {{ kind = \"token_bucket\", rate = \"1 Mbit/s\", depth = \"10 packets\" }}\n"
        );
    }
    let o = run(&text, 1);
    let scenario = parse(&text);
    let net = scenario.network(1, false);
    assert_eq!(net.flows[1].path.len(), 4);
    for (row, i) in scenario.flow_rows().zip(0usize..) {
        let rtt: u64 =
            net.flows[i].path.iter().chain(&net.flows[i].back).map(|&l| net.links[l as usize].delay.0).sum();
        assert_eq!(row.rtt.0, rtt, "{}", row.name);
    }
    let goodput =
        |range: std::ops::Range<usize>| range.map(|i| o.flows[i].window.in_order_payload_bytes).sum::<u64>();
    // Each hop is full; who crosses three of them gets least.
    for (k, hop) in [3..6, 6..9, 9..12].into_iter().enumerate() {
        let sent: u64 = o.links[2 * k].window.sent_bytes.iter().sum();
        let utilisation = sent as f64 * 8.0 / 15.0 / 2e6;
        assert!(utilisation > 0.85 && utilisation < 1.01, "hop{k}: {utilisation}");
        assert!(goodput(0..3) < goodput(hop));
    }
    // The second domain's edge marks what comes from the first domain and its own; the first one's only its own.
    assert!(o.edges[1].window.arrived.iter().sum::<u64>() > 0);
    assert!(o.edges[0].window.left[1] > 0 && o.edges[1].window.left[1] > 0);
}

#[test]
fn no_best_effort_at_all_is_a_point_of_a_sweep() {
    let none = flows("free", "count = 0\nfrom_here = 1").replace("from_here = 1\n", "contract = []\n");
    let text = LINK.to_owned() + &flows("tcp", "") + &none;
    let (with, without) = (run(&text, 1), run(&(LINK.to_owned() + &flows("tcp", "")), 1));
    assert_eq!(with.flows, without.flows);
    let scenario = parse(&text);
    assert_eq!(scenario.flow_rows().count(), 1);
    let _ = (scenario.describe(), scenario.canonical());
    assert_eq!(errors(&(LINK.to_owned() + &flows("tcp", "count = 0"))), ["flows: there are no flows at all"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let wrong = |more: &str| errors(&(LINK.to_owned() + &flows("x", more)));
    for (more, expected) in [
        ("traffic = { kind = \"cbr\" }", "flows.x.traffic.rate: is missing"),
        ("traffic = { kind = \"cbr\", rate = \"0 bit/s\" }", "flows.x.traffic.rate: must be above 0 bit/s"),
        (
            "traffic = { kind = \"cbs\", rate = \"1 Mbit/s\" }",
            "flows.x.traffic.kind: there is no such traffic",
        ),
        (
            "traffic = { kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"28 B\" }",
            "flows.x.traffic.packet: packets of 28 B: with IPv4 and UDP headers a packet has 29 to 65535 B",
        ),
        (
            "traffic = { kind = \"cbr\", rate = \"1 Mbit/s\" }\ntcp = { window = \"5 packets\" }",
            "flows.x.tcp: the traffic of these flows is not TCP",
        ),
        (
            "traffic = { kind = \"on_off\", peak = \"1 kbit/s\", on = \"1 us\", off = \"1 s\" }",
            "flows.x.traffic.on: an on period of 1 us is too short to send a thousandth of a packet",
        ),
        (
            "traffic = { kind = \"on_off\", peak = \"1 Mbit/s\", on = \"1 s\", off = \"1 s\", shape = 2 }",
            "flows.x.traffic.shape: only a Pareto distribution has a shape",
        ),
        (
            "traffic = { kind = \"transfer\", size = \"1 MB\", sizes = \"pareto\", shape = 1.0 }",
            "flows.x.traffic.shape: a Pareto distribution of this shape has no mean",
        ),
        (
            "traffic = { kind = \"transfer\", size = \"1.5 packets\" }",
            "flows.x.traffic.size: a transfer is a whole number of segments",
        ),
        ("start = \"5 s\"\nstop = \"5 s\"", "flows.x.stop: flow 0 may start at 5 s and stops at 5 s"),
        (
            "count = 300\nstart = { every = \"100 ms\" }",
            "flows.x.start: the flow starts at 29.9 s, the run ends at 20 s",
        ),
        ("start = { every = \"0 s\" }", "flows.x.start.every: must be above 0"),
        ("start = { every = \"1 s\", arrivals = \"random\" }", "flows.x.start.arrivals: unknown arrivals"),
    ] {
        let got = wrong(more);
        assert_eq!(got.len(), 1, "{more}: {got:?}");
        assert_eq!(got[0], expected, "{more}");
    }
}

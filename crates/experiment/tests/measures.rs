//! Distributions of delays and losses: what they agree with, and that measuring changes nothing.

use std::sync::atomic::AtomicBool;

use inprofile_core::packet::Colour;
use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;
use inprofile_sim::measure::waits::ByGroup;
use inprofile_sim::outcome::{Measured, Outcome};

const TEXT: &str = include_str!("good/four-flows.toml");

fn scenario(set: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Scenario::parse(TEXT, "four-flows.toml", &set, &Registry::default()).unwrap()
}

fn run(set: &[(&str, &str)], trace: bool) -> (Scenario, Outcome) {
    let mut all = vec![("duration", "30 s"), ("measure.from", "10 s"), ("measure.to", "30 s")];
    all.extend(set);
    let scenario = scenario(&all);
    let outcome = engine::run(scenario.network(1, trace), &AtomicBool::new(false), None).unwrap();
    (scenario, outcome)
}

/// Without what is meant to differ.
fn plain(o: &Outcome) -> Outcome {
    Outcome { verdicts: Vec::new(), events: 0, measured: None, ..o.clone() }
}

/// A discipline that decides on arrival, where packets bypass the queue of most links, and one that decides at departure.
const QUEUES: [&str; 5] = [
    r#"{ aqm = "drop_tail", limit = "50 packets" }"#,
    r#"{ aqm = "rio", limit = "50 packets", in = { min_th = "20 packets", max_th = "40 packets", max_p = 0.02 }, out = { min_th = "5 packets", max_th = "15 packets", max_p = 0.1 } }"#,
    r#"{ aqm = "codel", limit = "50 packets" }"#,
    r#"{ aqm = "fq_codel", limit = "20 packets" }"#,
    r#"{ aqm = "red", limit = "20 packets", min_th = "10 packets", max_th = "30 packets", max_p = 0.02, drop = "random" }"#,
];

#[test]
fn measuring_changes_nothing_and_steps_agree_with_what_is_computed() {
    for queue in QUEUES {
        let queue = ("links.bottleneck.queue", queue);
        let (_, without) = run(&[queue], false);
        assert_eq!(without.measured, None);
        let asked = [queue, ("measure.every", "1 s")];
        let (_, measured) = run(&asked, false);
        assert_eq!(plain(&measured), plain(&without), "{queue:?}");
        let (_, stepped) = run(&asked, true);
        assert_eq!(stepped.measured, measured.measured, "{queue:?}");
    }
}

fn measured(outcome: &Outcome) -> &Measured {
    outcome.measured.as_ref().unwrap()
}

/// The same packets by other counters.
#[test]
fn delays_agree_with_counts() {
    for queue in QUEUES {
        let (s, o) = run(&[("links.bottleneck.queue", queue), ("measure.every", "1 s")], false);
        let (at, m) = (s.measured(), measured(&o));
        let waits = &m.queueing.iter().find(|(l, _)| *l as usize == at).unwrap().1;
        let link = &o.links[at];
        // Every packet sent in the window is measured, by colour.
        for colour in Colour::ALL {
            let n = waits.delays.together(|_, c| c == colour).len();
            assert_eq!(n, link.window.sent[colour as usize], "{queue} {colour:?}");
        }
        // By Little's law, of the packets that are sent: those at either end of the window differ.
        let all = waits.delays.together(|_, _| true);
        let by_little = s.metrics(&o).iter().find(|m| m.name == "delay_mean").unwrap().value;
        let mean = all.mean().unwrap();
        assert!((mean / by_little - 1.0).abs() < 0.01, "{queue}: {mean}, by Little {by_little}");
        // Periods add up to the window.
        let [packets, _] = waits.by_period.as_ref().unwrap();
        assert_eq!(packets.of(0).map(|(_, n)| n).sum::<u64>(), all.len());
        let readable: u64 = o.flows.iter().map(|f| f.window.in_order_payload_bytes).sum();
        let goodput = m.goodput.as_ref().unwrap();
        assert_eq!((0..1).flat_map(|g| goodput.of(g)).map(|(_, b)| b).sum::<u64>(), readable);
        // Data that arrived: one delay each, at least the propagation, at most that and the queues.
        let one_way = m.one_way.together(|_, _| true);
        assert_eq!(one_way.len(), o.flows.iter().map(|f| f.window.received.iter().sum::<u64>()).sum::<u64>());
        // 26 ms there and back for the nearest.
        assert!(one_way.min().unwrap() >= 0.013, "{:?}", one_way.min());
        let (excess, waited) = (m.excess.together(|_, _| true), all.max().unwrap());
        assert!(excess.max().unwrap() >= 0.9 * waited && excess.max().unwrap() < waited + 0.2);
        // RFC 5481 §4.2: not below zero, and no more than the delay in excess of an empty path.
        assert_eq!(m.variation.together(|_, _| true).min(), Some(0.0));
        for colour in [Colour::IN, Colour::OUT] {
            let of = |delays: &ByGroup| delays.together(|_, c| c == colour);
            assert_eq!(
                [&m.excess, &m.variation].map(|d| of(d).len()),
                [of(&m.one_way).len(); 2],
                "{colour:?}"
            );
            assert!(of(&m.variation).max().unwrap() <= of(&m.excess).max().unwrap());
        }
        assert!(o.flows.iter().zip(&m.first_data).all(|(f, t)| t.unwrap() > f.start));
    }
}

/// One flow: whoever loses, all lose.
#[test]
fn one_flow_is_always_synchronised() {
    let set = [
        ("flows.tcp.count", "1"),
        ("flows.tcp.rtt", "26 ms"),
        ("links.bottleneck.queue", r#"{ aqm = "drop_tail", limit = "10 packets" }"#),
    ];
    let (s, o) = run(&[&set[..], &[("measure.distributions", "true")]].concat(), false);
    let losses = &measured(&o).losses;
    assert!(losses.events > 0, "the flow fills the link");
    assert_eq!(losses.synchronisation, Some(1.0));
    let all = s.metrics(&o);
    let value = |name: &str| all.iter().find(|m| m.name == name).unwrap().value;
    assert_eq!(value("loss_synchronisation"), 1.0);
    assert!(value("delay_p50") <= value("delay_p90") && value("delay_p90") <= value("delay_p99"));
}

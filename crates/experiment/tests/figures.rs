//! From file to figures: what networks do when they run, what is measured of them, and the edges of what can be asked for.

use inprofile_experiment::Scenario;
use inprofile_sim::outcome::Outcome;

mod runs {
    //! From file to figures: what the networks of good files do when they run.

    use std::path::Path;

    use inprofile_experiment::Metric;

    use super::*;
    use crate::value;

    fn figures(name: &str, set: &[(&str, &str)]) -> Vec<Metric> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good").join(name);
        let scenario = crate::parse_with(&std::fs::read_to_string(path).unwrap(), set);
        let outcome = crate::run(scenario.network(1, false));
        scenario.metrics(&outcome)
    }

    #[test]
    fn paper_a_fills_its_link_and_shares_it() {
        let all = figures(
            "four-flows.toml",
            &[("duration", "60 s"), ("measure.from", "20 s"), ("measure.to", "60 s")],
        );
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
        // An outcome: every packet sent was received, dropped, or is on its way.
        crate::run(crate::parse_with(FAT, set).network(1, false))
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
        let sent: Vec<u64> =
            outcome.flows.iter().map(|f| f.window.received_bytes.iter().sum::<u64>()).collect();
        let (cubic, reno) = (sent[0] + sent[1], sent[2] + sent[3]);
        assert!(cubic > reno, "{sent:?}");
        assert!((cubic + reno) as f64 * 8.0 > 0.9 * 100e6 * 30.0, "{sent:?}");

        // The same queue, and flows that don't understand: what would be marked is dropped.
        let deaf = fat(&[("tcp.ecn", "false")]);
        assert_eq!(deaf.links[0].window.marked, [0; 3]);
        assert!(!deaf.drops.is_empty());
    }
}

mod measures {
    //! Distributions of delays and losses: what they agree with, and that measuring changes nothing.

    use inprofile_core::packet::Colour;
    use inprofile_sim::measure::waits::ByGroup;
    use inprofile_sim::outcome::Measured;

    use super::*;

    const TEXT: &str = include_str!("good/four-flows.toml");

    fn scenario(set: &[(&str, &str)]) -> Scenario {
        crate::parse_with(TEXT, set)
    }

    fn run(set: &[(&str, &str)], trace: bool) -> (Scenario, Outcome) {
        let mut all = vec![("duration", "30 s"), ("measure.from", "10 s"), ("measure.to", "30 s")];
        all.extend(set);
        let scenario = scenario(&all);
        let outcome = crate::run(scenario.network(1, trace));
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
            let by_little = crate::value(&s.metrics(&o), "delay_mean");
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
            assert_eq!(
                one_way.len(),
                o.flows.iter().map(|f| f.window.received.iter().sum::<u64>()).sum::<u64>()
            );
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
        let value = |name| crate::value(&all, name);
        assert_eq!(value("loss_synchronisation"), 1.0);
        assert!(value("delay_p50") <= value("delay_p90") && value("delay_p90") <= value("delay_p99"));
    }
}

mod limits {
    //! At the edges of what can be asked for: no delay at all, sequence numbers that wrap, contracts above the link, and (for
    //! `make soak`) a million packets.

    use super::*;
    use crate::{parse, value};

    fn run(text: &str) -> Outcome {
        crate::run(parse(text).network(1, false))
    }

    fn file(duration: &str, tcp: &str, rate: &str, delay: &str, queue: &str, flows: &str) -> String {
        format!(
            "title = \"limits\"\nduration = \"{duration}\"\n[tcp]\n{tcp}\n[[links]]\nname = \"link\"\nfrom = \"A\"\nto = \"B\"\n\
             rate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = {{ {queue} }}\n[[flows]]\nname = \"tcp\"\nfrom = \"A\"\nto = \"B\"\n{flows}\n"
        )
    }

    /// Every discipline and, at the host, every marker that takes no more than a contract, with a round trip of nothing.
    #[test]
    fn a_round_trip_of_nothing() {
        for profile in ["rfc", "ns2"] {
            for queue in [
                "aqm = \"drop_tail\", limit = \"20 packets\"",
                "aqm = \"red\", limit = \"20 packets\", min_th = \"2 packets\", max_th = \"6 packets\", max_p = 0.1",
                "aqm = \"fdd_red\", limit = \"20 packets\", min_th = \"2 packets\", max_th = \"6 packets\", max_p = 0.1",
            ] {
                let flows = "count = 2\ncontract = \"300 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"2 packets\" }";
                let text = file("5 s", &format!("profile = \"{profile}\""), "1 Mbit/s", "0 s", queue, flows);
                let scenario = parse(&text);
                assert!(scenario.flow_rows().all(|f| f.rtt.0 == 0));
                let o = run(&text);
                let sent: u64 = o.links[0].window.sent_bytes.iter().sum();
                assert!(sent as f64 * 8.0 / 5.0 > 0.4e6, "{profile} {queue}: {sent} B");
                assert!(scenario.metrics(&o).iter().all(|m| m.value.is_finite()));
            }
        }
    }

    /// 2³² bytes are passed at about 3.5 s of 6: the second half is like the first, and every byte is delivered once.
    #[test]
    fn sequence_numbers_wrap_within_a_run() {
        let halves = |from: &str, to: &str| {
            let tcp = "segment = \"60000 B\"\nwindow = \"500 packets\"\ncongestion = \"sack\"";
            let queue = "aqm = \"red\", limit = \"400 packets\", min_th = \"50 packets\", max_th = \"300 packets\", max_p = 0.01";
            let flows =
                "contract = \"5 Gbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"20 packets\" }";
            let text = file("6 s", tcp, "10 Gbit/s", "1 ms", queue, flows)
                .replace("[tcp]", &format!("measure = {{ from = \"{from}\", to = \"{to}\" }}\n[tcp]"));
            run(&text)
        };
        let (before, after) = (halves("1 s", "3 s"), halves("4 s", "6 s"));
        let total = after.flows[0].total.in_order_payload_bytes;
        assert!(total > 1 << 32, "{total} bytes");
        assert_eq!(before.flows[0].total, after.flows[0].total);
        let [a, b] = [&before, &after].map(|o| o.flows[0].window.in_order_payload_bytes as f64);
        assert!((a / b - 1.0).abs() < 0.05, "{a} bytes before, {b} after");
    }

    /// Promises beyond the link's rate get a warning, and share what the link allows.
    #[test]
    fn contracts_above_the_link() {
        let queue = "aqm = \"rio\", limit = \"50 packets\", in = { min_th = \"20 packets\", max_th = \"40 packets\", max_p = 0.05 }, out = { min_th = \"5 packets\", max_th = \"15 packets\", max_p = 0.2 }";
        let flows = "count = 2\ncontract = [\"900 kbit/s\", \"800 kbit/s\"]\nmarker = { kind = \"token_bucket\", depth = \"5 packets\" }";
        let text = file("20 s", "profile = \"ns2\"", "1 Mbit/s", "10 ms", queue, flows);
        let scenario = parse(&text);
        let warnings: Vec<_> = scenario.warnings().iter().map(|w| w.problem.as_str()).collect();
        assert_eq!(
            warnings,
            ["contracts add up to 1.7 Mbit/s, more than the 1 Mbit/s of link: not all can be kept"]
        );
        let o = run(&text);
        let sent: u64 = o.links[0].window.sent_bytes.iter().sum();
        assert!(sent as f64 * 8.0 / 20.0 > 0.7e6);
        let shares = [0, 1].map(|i| o.flows[i].window.in_order_payload_bytes as f64 * 8.0 / 20.0);
        assert!(shares.iter().all(|s| *s > 2e5), "{shares:?}");
    }

    /// A link that is slower for a while is warned about by its lowest rate.
    #[test]
    fn contracts_above_the_lowest_rate() {
        let queue = "aqm = \"drop_tail\", limit = \"50 packets\"";
        let flows = "contract = \"900 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"5 packets\" }";
        let text = file("20 s", "", "1 Mbit/s", "10 ms", queue, flows);
        assert!(parse(&text).warnings().is_empty());
        let capacity = "capacity = { steps = [{ at = \"5 s\", rate = \"500 kbit/s\" }, { at = \"9 s\", rate = \"2 Mbit/s\" }] }";
        let text = text.replace("queue = {", &format!("{capacity}\nqueue = {{"));
        let scenario = parse(&text);
        let warnings: Vec<_> = scenario.warnings().iter().map(|w| w.problem.as_str()).collect();
        assert_eq!(
            warnings,
            ["contracts add up to 900 kbit/s, more than the 500 kbit/s of link: not all can be kept"]
        );
    }

    /// One flow alone: it has the link, and fairness is 1.
    #[test]
    fn one_flow() {
        let text = file(
            "20 s",
            "window = \"25 packets\"",
            "1 Mbit/s",
            "10 ms",
            "aqm = \"drop_tail\", limit = \"30 packets\"",
            "",
        );
        let o = run(&text);
        let metrics = parse(&text).metrics(&o);
        assert_eq!(value(&metrics, "fi"), 1.0);
        let used = value(&metrics, "utilisation");
        assert!(used > 0.9, "{used}");
    }

    #[test]
    #[ignore = "long: make soak"]
    fn a_million_packets() {
        let queue = "aqm = \"rio\", limit = \"500 packets\", in = { min_th = \"200 packets\", max_th = \"400 packets\", max_p = 0.02 }, out = { min_th = \"50 packets\", max_th = \"150 packets\", max_p = 0.1 }";
        let flows = "count = 100\nstart = \"uniform 0..1 s\"\ncontract = \"500 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"5 packets\" }";
        let o = run(&file("150 s", "congestion = \"sack\"", "100 Mbit/s", "10 ms", queue, flows));
        let sent: u64 = o.links[0].total.sent.iter().sum();
        assert!(sent >= 1_000_000, "{sent} packets");
        println!("{sent} packets through one link, {} events, every packet accounted for", o.events);
    }
}

//! Markers, and what happens to packets on the way.

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::outcome::Outcome;

mod markers {
    //! Markers that need the network around them: contracts told at the edge, windows and round-trip times seen there, flows
    //! kept apart.

    use inprofile_core::marker::POLICED;

    use super::*;

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
        crate::run(crate::parse_with(&format!("{BASE}{more}"), set).network(1, false))
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
            (
                "kind = \"trtcm\", cir = \"500 kbit/s\", pir = \"1 Mbit/s\", cbs = \"10 kB\", pbs = \"15 kB\"",
                2,
            ),
            (
                "kind = \"rfc4115\", cir = \"500 kbit/s\", eir = \"500 kbit/s\", cbs = \"10 kB\", ebs = \"5 kB\"",
                2,
            ),
        ] {
            let edge = |action: &str| {
                format!("[[edges]]\nnode = \"E\"\nmarker = {{ {kind}, action = \"{action}\" }}\n")
            };
            let policed = run(&edge("drop"), &[]);
            let drops =
                |o: &Outcome| -> u64 { o.flows.iter().map(|f| f.window_dropped[POLICED.index()]).sum() };
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
}

mod on_the_way {
    //! Links whose delay varies and which lose packets, as an experiment file has them.

    use inprofile_core::verdict::Cause;

    use super::*;

    /// A link of 100 Mbit/s and 20 ms with these keys, and these flows from one end to the other.
    fn run(link: &str, flows: &str, trace: bool) -> Outcome {
        let text = format!(
            r#"
title = "On the way"
duration = "120 s"
measure = {{ from = "10 s", to = "120 s", distributions = true }}

[[links]]
name = "bottleneck"
from = "L"
to = "R"
rate = "100 Mbit/s"
delay = "20 ms"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }}
{link}

[[flows]]
name = "f"
from = "L"
to = "R"
{flows}
"#
        );
        let scenario = crate::parse(&text);
        crate::run(scenario.network(1, trace))
    }

    /// Datagrams so far apart that none waits for another.
    const CBR: &str = r#"traffic = { kind = "cbr", rate = "100 kbit/s", packet = "125 B" }"#;
    const RENO: &str =
        r#"tcp = { profile = "rfc", congestion = "newreno", window = "10000 packets", delayed_ack = "0 s" }"#;

    fn sent(o: &Outcome) -> u64 {
        o.flows.iter().flat_map(|f| f.total.sent).sum()
    }

    fn lost_on_the_way(o: &Outcome) -> u64 {
        o.flows.iter().map(|f| f.dropped[Cause::LINK_ERROR.index()]).sum()
    }

    #[test]
    fn delays_are_those_of_the_law() {
        let quantile = |link: &str, q: f64| {
            let o = run(link, CBR, false);
            o.measured.as_ref().unwrap().one_way.together(|_, _| true).quantile(q).unwrap()
        };
        // 125 B take 10 µs at 100 Mbit/s. Uniform over 10 ms: deciles; exponential of mean 5 ms: the median is 5 ln 2 ms.
        let base = 0.02001;
        let near = |is: f64, want: f64| assert!((is - want).abs() < 0.02 * want, "{is} {want}");
        near(quantile("", 0.5), base);
        let uniform = "jitter = { kind = \"uniform\", to = \"10 ms\" }";
        near(quantile(uniform, 0.1), base + 0.001);
        near(quantile(uniform, 0.9), base + 0.009);
        near(
            quantile("jitter = { kind = \"exponential\", mean = \"5 ms\" }", 0.5),
            base + 0.005 * std::f64::consts::LN_2,
        );
        // Half of each 20 s at 60 ms.
        let steps = "delays = { steps = [{ at = \"10 s\", delay = \"60 ms\" }], repeat = \"20 s\" }";
        near(quantile(steps, 0.4), base);
        near(quantile(steps, 0.6), base + 0.04);
    }

    /// Mathis et al. 1997: a Reno flow that loses a share p of its packets at random gets √(3/2)/√p segments per round trip.
    #[test]
    fn a_lossy_link_gives_tcp_what_the_formula_says() {
        for p in [0.0004, 0.0025] {
            let o = run(&format!("loss = {{ kind = \"independent\", share = {p} }}"), RENO, false);
            let lost = lost_on_the_way(&o) as f64 / sent(&o) as f64;
            assert!((lost / p - 1.0).abs() < 0.25, "{lost}");
            // After the first slow start nothing else is lost.
            let dropped = o.flows[0].window_dropped;
            assert_eq!(dropped.iter().sum::<u64>(), dropped[Cause::LINK_ERROR.index()]);
            let segments: u64 = o.flows[0].window.received.iter().sum();
            let window = segments as f64 / 110.0 * 0.0402;
            let formula = (1.5 / p).sqrt();
            assert!((window / formula - 1.0).abs() < 0.2, "{window} of {formula}");
        }
    }

    /// Bursts of ten packets on average, a hundredth of all: the share is that of the chain.
    #[test]
    fn bursts_of_losses_add_up() {
        let loss = "loss = { kind = \"gilbert_elliott\", to_bad = 0.001010101, to_good = 0.1 }";
        let cbr = "traffic = { kind = \"cbr\", rate = \"2 Mbit/s\", packet = \"125 B\" }";
        let o = run(loss, cbr, false);
        let share = lost_on_the_way(&o) as f64 / sent(&o) as f64;
        assert!((share / 0.01 - 1.0).abs() < 0.1, "{share}");
    }

    /// RFC 4737: late packets look lost to TCP. In order, the same delays cost nothing.
    #[test]
    fn reordering_costs_what_jitter_does_not() {
        let run = |reorder: bool, trace| {
            let link = format!(
                "jitter = {{ kind = \"share\", share = 0.01, delay = \"2 ms\", reorder = {reorder} }}"
            );
            run(&link, "tcp = { profile = \"rfc\", congestion = \"sack\", window = \"100 packets\" }", trace)
        };
        let (kept, passed) = (run(false, false), run(true, false));
        assert_eq!(kept.flows[0].tally.fast_retransmits, 0);
        assert!(passed.flows[0].tally.fast_retransmits > 50, "{:?}", passed.flows[0].tally);
        assert_eq!(lost_on_the_way(&passed), 0);
        let same = |o: &Outcome| Outcome { verdicts: Vec::new(), events: 0, ..o.clone() };
        assert_eq!(same(&passed), same(&run(true, true)));
        assert_eq!(same(&kept), same(&run(false, true)));
    }

    /// Datagrams of a full opportunity each, more than the link can send.
    const FLOOD: &str = r#"traffic = { kind = "cbr", rate = "50 Mbit/s", packet = "1500 B" }"#;

    fn delivered(o: &Outcome) -> u64 {
        o.links[0].total.sent.iter().sum()
    }

    /// Netravali et al. 2015: seven opportunities in 20 ms are seven full packets, whose times are the trace's.
    #[test]
    fn a_trace_is_sent_to_the_opportunity() {
        let trace = "trace = \"\"\"\n1\n1\n4\n9\n9\n9\n20\n\"\"\"";
        let o = run(trace, FLOOD, false);
        // The first packet comes after 0.24 ms; every opportunity of 6,000 rounds is used, and one packet is under way.
        assert!(delivered(&o).abs_diff(42_000) <= 1, "{}", delivered(&o));
        let stepped = run(trace, FLOOD, true);
        assert_eq!(Outcome { verdicts: Vec::new(), events: 0, ..stepped }, Outcome { events: 0, ..o });
        // The rate of a trace is its mean: 7 · 12,000 bits in 20 ms. A flow that needs less than every opportunity waits for the next.
        let o = run(trace, r#"traffic = { kind = "cbr", rate = "1.2 Mbit/s", packet = "1500 B" }"#, false);
        let delays = o.measured.as_ref().unwrap().one_way.together(|_, _| true);
        // A packet each 10 ms, from 0 s on: it comes at the beginning or the middle of a round; the next opportunities are at 1 and 20 ms.
        let (least, most) = (delays.quantile(0.01).unwrap(), delays.quantile(0.99).unwrap());
        assert!((least - 0.021).abs() < 3e-4 && (most - 0.030).abs() < 3e-4, "{least} {most}");
    }

    #[test]
    fn slots_and_bursts_share_the_rate_that_they_leave() {
        // A slot of 2 ms in 10: at 100 Mbit/s 16 packets of 120 µs fit.
        let slots = "access = { kind = \"slots\", every = \"10 ms\", length = \"2 ms\", request = \"4 ms\" }";
        let o = run(slots, FLOOD, false);
        assert!(delivered(&o).abs_diff(12_000 * 16) <= 16, "{}", delivered(&o));
        // Ten packets of 120 µs after 400 µs and up to 200 µs more: 1.7 ms a burst on average.
        let bursts =
            "access = { kind = \"bursts\", overhead = \"400 us\", contention = \"200 us\", most = 10 }";
        let flood = r#"traffic = { kind = "cbr", rate = "95 Mbit/s", packet = "1500 B" }"#;
        let o = run(bursts, flood, false);
        let expected = 120.0 / 0.0017 * 10.0;
        assert!((delivered(&o) as f64 / expected - 1.0).abs() < 0.002, "{} of {expected}", delivered(&o));
    }

    /// RFC 3449 §2: acknowledgements on a slow way back clock what a sender gets: 64 kbit/s carry 200 of them a second. With a filter two wait of
    /// each flow, and the link is full.
    #[test]
    fn a_filter_makes_up_for_a_slow_way_back() {
        let run = |filter: bool, trace| {
            let text = format!(
                r#"
title = "Asymmetric"
duration = "60 s"
measure = {{ from = "30 s" }}
[tcp]
profile = "linux"
congestion = "cubic"
window = "200 packets"
delayed_ack = "0 s"
[[links]]
name = "down"
from = "L"
to = "R"
rate = "20 Mbit/s"
delay = "10 ms"
queue = {{ aqm = "drop_tail", limit = "500 packets" }}
reverse = {{ rate = "64 kbit/s", queue = {{ aqm = "drop_tail", limit = "1000 packets" }}, ack_filter = {filter} }}
[[flows]]
name = "f"
count = 2
from = "L"
to = "R"
"#
            );
            let scenario = crate::parse(&text);
            crate::run(scenario.network(1, trace))
        };
        let each_second =
            |o: &Outcome| o.flows.iter().flat_map(|f| f.window.received).sum::<u64>() as f64 / 30.0;
        let gone = |o: &Outcome| o.links[1].window.dropped_by(Cause::EVICTED) as f64 / 30.0;
        let (without, with) = (run(false, false), run(true, false));
        assert!((each_second(&without) - 200.0).abs() < 1.0, "{}", each_second(&without));
        assert_eq!(gone(&without), 0.0);
        // Packets of 1,500 B at 20 Mbit/s; of their acknowledgements the filter takes all but those that the way back carries.
        let full = 20e6 / 8.0 / 1500.0;
        assert!((each_second(&with) / full - 1.0).abs() < 0.002, "{} of {full}", each_second(&with));
        assert!((gone(&with) - (full - 200.0)).abs() < 3.0, "{}", gone(&with));
        assert!((1.0..=4.0).contains(&with.links[1].queue_mean), "{}", with.links[1].queue_mean);
        let stepped = run(true, true);
        assert_eq!(Outcome { verdicts: Vec::new(), events: 0, ..stepped }, Outcome { events: 0, ..with });
    }
}

//! Senders from an experiment file: what profiles and settings of TCP do to a run.

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;

mod linux_tcp {
    //! TCP as Linux has it, from an experiment file: through a policer, where losses come in heaps, it needs no timeout.

    use super::*;

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
        let scenario = crate::parse(&text);
        let outcome = crate::run(scenario.network(seed, false));
        let metrics = scenario.metrics(&outcome);
        let value = |name| crate::value(&metrics, name);
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
            crate::parse(&text)
        };
        assert_eq!(parse("").canonical(), parse(r#"prr = "linux","#).canonical());
        let resent = |prr: &str| {
            let scenario = parse(prr);
            let runs = (1..=3).map(|seed| {
                let outcome = crate::run(scenario.network(seed, false));
                crate::value(&scenario.metrics(&outcome), "retransmissions")
            });
            runs.sum::<f64>()
        };
        let (linux, newer, older) =
            (resent(""), resent(r#"prr = "rfc9937","#), resent(r#"prr = "rfc6937","#));
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
}

mod slow_start {
    //! The end of the first slow start, from an experiment file: HyStart++ (RFC 9406) beside the standard's.

    use super::*;

    /// One connection over 50 Mbit/s and 100 ms, which are 417 packets, with a buffer of twelve times as much.
    fn file(tcp: &str) -> String {
        format!(
            r#"
title = "A slow start"
duration = "6 s"
measure = {{ from = "0 s", at = "link" }}
tcp = {{ window = "20000 packets", {tcp} }}

[[links]]
name = "link"
from = "edge"
to = "server"
rate = "50 Mbit/s"
delay = "1 ms"
queue = {{ aqm = "drop_tail", limit = "5000 packets" }}

[[flows]]
name = "one"
from = "H*"
join = {{ node = "edge", rate = "1 Gbit/s" }}
to = "server"
rtt = "100 ms"
"#
        )
    }

    /// Segments sent again, and Mbit/s.
    fn run(tcp: &str) -> (u64, f64) {
        let scenario = crate::parse(&file(tcp));
        let outcome = crate::run(scenario.network(1, false));
        let flow = &outcome.flows[0];
        (flow.tally.retransmissions, flow.window.in_order_payload_bytes as f64 * 8.0 / 6e6)
    }

    /// RFC 9406 §4.2: with every window that it goes with, with and without pacing, however acknowledgements are delayed, slow start is over after five rounds of slow
    /// growth, before it overflows the buffer, and no less is delivered.
    #[test]
    fn the_first_slow_start_loses_nothing() {
        for tcp in [
            r#"congestion = "reno""#,
            r#"congestion = "sack""#,
            r#"congestion = "cubic""#,
            r#"congestion = "cubic", sack = false"#,
            r#"profile = "linux", congestion = "sack", pacing = true"#,
            r#"profile = "linux", congestion = "cubic", delayed_ack = "0 s""#,
            r#"profile = "linux", congestion = "cubic", pacing = true"#,
        ] {
            let (lost, standard) = run(&format!(r#"{tcp}, slow_start = "standard""#));
            let (again, rate) = run(&format!(r#"{tcp}, slow_start = "hystart++""#));
            assert!(lost > 0, "{tcp}");
            assert_eq!(again, 0, "{tcp}");
            assert!(rate > standard, "{tcp}: {rate} and {standard} Mbit/s");
        }
    }

    /// The defaults are what they were, and can be written.
    #[test]
    fn defaults_can_be_written() {
        for (tcp, said) in [
            (r#"congestion = "cubic""#, "standard"),
            (r#"profile = "linux", congestion = "sack""#, "standard"),
            (r#"profile = "linux""#, "hystart"),
            (r#"profile = "ns2", window = "20 packets""#, "standard"),
            (r#"profile = "linux", congestion = "dctcp""#, "standard"),
        ] {
            let parse = |tcp: &str| crate::parse(&file(tcp).replace("window = \"20000 packets\", ", ""));
            let (left, written) = (parse(tcp), parse(&format!(r#"{tcp}, slow_start = "{said}""#)));
            assert_eq!(left.canonical(), written.canonical(), "{tcp}");
        }
    }

    /// Contradictions are named, with a remedy.
    #[test]
    fn what_cannot_be_meant_is_named() {
        for (tcp, problem, remedy) in [
            (
                r#"profile = "ns2", slow_start = "hystart++""#,
                "the ns2 profile has neither",
                "write profile = \"rfc\" or \"linux\"",
            ),
            (
                r#"profile = "ns2", slow_start = "hystart""#,
                "the ns2 profile has neither",
                "write profile = \"rfc\" or \"linux\"",
            ),
            (
                r#"congestion = "cubic", slow_start = "hystart""#,
                "only cubic in the linux profile",
                "write \"hystart++\" (RFC 9406)",
            ),
            (
                r#"profile = "linux", congestion = "sack", slow_start = "hystart""#,
                "only cubic in the linux profile",
                "write \"hystart++\"",
            ),
            (
                r#"profile = "linux", congestion = "bbr", slow_start = "hystart++""#,
                "bbr has no slow start",
                "remove it",
            ),
            (
                r#"profile = "linux", congestion = "ledbat", slow_start = "standard""#,
                "ledbat has no slow start",
                "remove it",
            ),
            (
                r#"profile = "linux", congestion = "dctcp", slow_start = "hystart++""#,
                "dctcp leaves slow start at the first mark",
                "remove it",
            ),
            (
                r#"profile = "linux", congestion = "prague", slow_start = "hystart""#,
                "prague leaves slow start at the first mark",
                "remove it",
            ),
            (r#"slow_start = "hystart+""#, "hystart+", "hystart++"),
        ] {
            let problems =
                Scenario::parse(&file(tcp), "one.toml", &[], &Registry::default()).err().unwrap_or_default();
            let text: Vec<_> = problems.iter().map(ToString::to_string).collect();
            assert!(text.iter().any(|p| p.contains(problem) && p.contains(remedy)), "{tcp}: {text:?}");
        }
    }
}

mod pacing {
    //! The cost of pacing in events: one for a train of segments, whatever its length, and none where acknowledgements come no faster than
    //! the rate.

    /// So many connections share a link of that many Mbit/s, with 64 ms of buffer.
    fn file(connections: u32, mbits: u32, tcp: &str) -> String {
        let limit = 8 * mbits;
        format!(
            r#"
title = "Trains"
duration = "20 s"
measure = {{ from = "5 s", at = "bottleneck" }}
tcp = {{ profile = "linux", {tcp}, segment = "1000 B", window = "10000 packets", delayed_ack = "0 s" }}

[[links]]
name = "access"
from = "a"
to = "R1"
rate = "{access} Mbit/s"
delay = "15 ms"
queue = {{ aqm = "drop_tail", limit = "100000 packets" }}

[[links]]
name = "bottleneck"
from = "R1"
to = "b"
rate = "{mbits} Mbit/s"
delay = "10 ms"
queue = {{ aqm = "drop_tail", limit = "{limit} packets" }}

[[flows]]
name = "tcp"
count = {connections}
from = "a"
to = "b"
start = "uniform 0..0.1 s"
"#,
            access = 10 * mbits,
        )
    }

    /// Events a packet through the bottleneck.
    fn events(connections: u32, mbits: u32, tcp: &str) -> f64 {
        let text = file(connections, mbits, tcp);
        let scenario = crate::parse(&text);
        let outcome = crate::run(scenario.network(1, false));
        let packets: u64 = outcome.links[scenario.measured()].total.sent.iter().sum();
        outcome.events as f64 / packets as f64
    }

    /// A timer for each segment would be two events a packet.
    #[test]
    fn a_train_is_one_event() {
        // Segments of a train at 100 Mbit/s: about twelve (Linux's millisecond), three for Prague (a quarter of one).
        for (tcp, most) in [
            ("congestion = \"cubic\", pacing = true", 1.2),
            ("congestion = \"bbr\"", 1.25),
            ("congestion = \"prague\", ecn = true, accurate_ecn = true", 1.5),
        ] {
            let events = events(1, 100, tcp);
            assert!(events < most, "{tcp}: {events}");
        }
    }

    /// At a megabit a second, where a train is two segments, or one of Prague's.
    #[test]
    fn slow_trains_cost_no_more_events_than_they_have() {
        for (tcp, most) in [
            ("congestion = \"cubic\"", 1.15),
            ("congestion = \"cubic\", pacing = true", 1.4),
            ("congestion = \"bbr\"", 1.65),
            ("congestion = \"prague\", ecn = true, accurate_ecn = true", 1.85),
        ] {
            let events = events(10, 10, tcp);
            assert!(events < most, "{tcp}: {events}");
        }
    }
}

mod closed_loops {
    //! Loss-based senders before an AQM settle: what a timeout leaves of the window is no reason for the next one.

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
        let scenario = crate::parse(&text);
        let outcome = crate::run(scenario.network(seed, false));
        let metrics = scenario.metrics(&outcome);
        let value = |name| crate::value(&metrics, name);
        (value("utilisation"), value("drops"), value("timeouts"))
    }

    /// RFC 5681 §3.1 and RFC 9438 §4.6, at five flows' own round trips: within a few percent of a link's capacity, with losses of a few
    /// in a thousand packets and hardly a timeout. `linux` beside them.
    #[test]
    fn five_flows_fill_a_link_before_an_aqm() {
        let tcps =
            [("rfc", "reno"), ("rfc", "newreno"), ("rfc", "sack"), ("rfc", "cubic"), ("linux", "cubic")];
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
}

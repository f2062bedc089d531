//! The end of the first slow start, from an experiment file: HyStart++ (RFC 9406) beside the standard's.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;

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
    let scenario = Scenario::parse(&file(tcp), "one.toml", &[], &Registry::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let outcome = engine::run(scenario.network(1, false), &AtomicBool::new(false), None).expect("it runs");
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
        let parse = |tcp: &str| {
            Scenario::parse(
                &file(tcp).replace("window = \"20000 packets\", ", ""),
                "one.toml",
                &[],
                &Registry::default(),
            )
            .unwrap_or_else(|problems| panic!("{problems:?}"))
        };
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

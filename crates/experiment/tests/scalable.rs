//! Scalable congestion controls, from an experiment file: the laws of their windows, and how they share a link.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;

/// Groups `one` and `two` of a connection each over a link of 20 Mbit/s with this queue; from 10 s on is measured.
fn file(queue: &str, groups: [(&str, &str); 2], seconds: u32) -> String {
    let group = |name: &str, (rtt, tcp): (&str, &str)| {
        format!(
            r#"
[[flows]]
name = "{name}"
from = "H*"
join = {{ node = "edge", rate = "1 Gbit/s" }}
to = "server"
rtt = "{rtt}"
start = "uniform 0..1 s"
tcp = {{ {tcp} }}
"#
        )
    };
    format!(
        r#"
title = "Two connections"
duration = "{seconds} s"
measure = {{ from = "10 s", at = "link" }}
tcp = {{ profile = "linux" }}

[[links]]
name = "link"
from = "edge"
to = "server"
rate = "20 Mbit/s"
delay = "1 ms"
queue = {{ {queue} }}
{}{}"#,
        group("one", groups[0]),
        group("two", groups[1]),
    )
}

/// The payload that each group delivered.
fn rates(text: &str, seed: u64) -> [f64; 2] {
    let scenario = Scenario::parse(text, "two.toml", &[], &Registry::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let outcome = engine::run(scenario.network(seed, false), &AtomicBool::new(false), None).expect("it runs");
    [0, 1].map(|f| outcome.flows[f].window.in_order_payload_bytes as f64)
}

/// The ratio of the first group's rate to the second's, geometric mean and 95 % interval over six seeds.
fn ratio(queue: &str, groups: [(&str, &str); 2]) -> [f64; 3] {
    let text = file(queue, groups, 20);
    let logs = [1, 2, 3, 4, 5, 6].map(|seed| {
        let [one, two] = rates(&text, seed);
        libm::log(one / two)
    });
    let mean = logs.iter().sum::<f64>() / 6.0;
    let variance = logs.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 5.0;
    // Student's t with five degrees of freedom.
    let half = 2.571 * (variance / 6.0).sqrt();
    [mean, mean - half, mean + half].map(libm::exp)
}

const DUALPI2: &str = r#"aqm = "dualpi2", limit = "500 packets""#;
const PRAGUE: &str = r#"congestion = "prague""#;

/// Two of the same round-trip time share an L queue alike.
#[test]
fn two_prague_connections_share_alike() {
    let [mean, low, high] = ratio(DUALPI2, [("20 ms", PRAGUE), ("20 ms", PRAGUE)]);
    assert!((0.85..1.18).contains(&mean) && low < 1.15 && high > 0.87, "{mean} ({low} to {high})");
}

/// RFC 9332 §2.1 and Appendix A: the coupling k = 2 lets a scalable connection and a classic one get about the same rate.
#[test]
fn prague_and_cubic_share_a_coupled_link() {
    let cubic = r#"congestion = "cubic", ecn = true"#;
    let [mean, low, high] = ratio(DUALPI2, [("20 ms", PRAGUE), ("20 ms", cubic)]);
    assert!(low > 0.6 && high < 1.7, "{mean} ({low} to {high})");
}

/// RFC 9331 §4.3, Prague's draft §2.4.4: 500 round trips after slow start a connection of 10 ms has no advantage over one of 25 ms;
/// without a virtual round-trip time it has, about the inverse ratio of the two.
#[test]
fn short_round_trips_have_no_advantage() {
    let ratio = |tcp: &str| {
        let [short, long] = rates(&file(DUALPI2, [("10 ms", tcp), ("25 ms", PRAGUE)], 50), 1);
        short / long
    };
    let (independent, dependent) = (ratio(PRAGUE), ratio(r#"congestion = "prague", rtt_virt = "0 s""#));
    assert!((0.6..1.67).contains(&independent), "{independent}");
    assert!((1.8..4.5).contains(&dependent), "{dependent}");
}

/// RFC 9331 §4.1: what is ECT(1) joins the L4S queue, where DCTCP, unpaced, has less than CUBIC beside it; ECT(0)
/// is marked by the square, and takes the link.
#[test]
fn dctcp_may_be_l4s_traffic() {
    let cubic = r#"congestion = "cubic", ecn = true"#;
    let share = |tcp: &str| {
        let [dctcp, other] = rates(&file(DUALPI2, [("20 ms", tcp), ("20 ms", cubic)], 20), 1);
        dctcp / other
    };
    let l4s = share(r#"congestion = "dctcp", ect1 = true"#);
    let classic = share(r#"congestion = "dctcp""#);
    assert!((0.1..1.0).contains(&l4s), "{l4s}");
    assert!(classic > 3.0, "{classic}");
}

/// RFC 9768 §3.1.2: with a receiver that lacks what is asked for, the sender is what it is where it asks for less, to the last byte.
#[test]
fn what_the_receiver_lacks_is_as_if_it_were_not_asked_for() {
    // Its SYN is ECT(1) all the same, which this queue takes for ECT(0).
    let pie = r#"aqm = "pie", limit = "100 packets", ecn = true"#;
    let outcome = |tcp: &str| {
        let cubic = r#"congestion = "cubic", ecn = true"#;
        rates(&file(pie, [("20 ms", tcp), ("20 ms", cubic)], 20), 1)
    };
    let asked = [
        (
            r#"congestion = "prague", receiver_ecn = "classic""#,
            r#"congestion = "prague", accurate_ecn = false"#,
        ),
        (r#"congestion = "prague", receiver_ecn = "accurate""#, PRAGUE),
        (r#"congestion = "dctcp", receiver_ecn = "dctcp""#, r#"congestion = "dctcp""#),
        (r#"congestion = "dctcp", receiver_ecn = "none""#, r#"congestion = "sack""#),
        (r#"ecn = true, accurate_ecn = true, receiver_ecn = "classic""#, "ecn = true"),
        (r#"ecn = true, receiver_ecn = "accurate""#, "ecn = true"),
        (r#"ecn = true, receiver_ecn = "none""#, "ecn = false"),
        (
            r#"profile = "rfc", congestion = "sack", ecn = true, receiver_ecn = "none""#,
            r#"profile = "rfc", congestion = "sack""#,
        ),
    ];
    for (more, less) in asked {
        assert_eq!(outcome(more), outcome(less), "{more}");
    }
    assert_ne!(outcome(PRAGUE), outcome(asked[0].0));
}

fn problems(queue: &str, tcp: &str) -> Vec<String> {
    let text = file(queue, [("20 ms", tcp), ("20 ms", "")], 20);
    match Scenario::parse(&text, "two.toml", &[], &Registry::default()) {
        Ok(scenario) => scenario.warnings().iter().map(ToString::to_string).collect(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

/// Contradictions are named, with a remedy; sensible files are not.
#[test]
fn what_cannot_be_meant_is_named() {
    let drop_tail = r#"aqm = "drop_tail", limit = "100 packets""#;
    let pie = r#"aqm = "pie", limit = "100 packets", ecn = true"#;
    let cases = [
        (drop_tail, PRAGUE, "one sends ECT(1), but drop_tail at link does not mark"),
        (pie, PRAGUE, "L4S flows would take far more than their share"),
        (pie, PRAGUE, "congestion = \"cubic\" in the group's tcp"),
        (DUALPI2, r#"congestion = "prague", accurate_ecn = false"#, "no L4S sender: its packets are ECT(0)"),
        (
            DUALPI2,
            r#"congestion = "prague", receiver_ecn = "classic""#,
            "no L4S sender: its packets are ECT(0)",
        ),
        (DUALPI2, r#"congestion = "prague", receiver_ecn = "classic""#, "remove receiver_ecn, unless"),
        (
            DUALPI2,
            r#"congestion = "prague", receiver_ecn = "none""#,
            "prague's packets are not ECT, and its window is Reno's",
        ),
        (
            pie,
            r#"congestion = "dctcp", receiver_ecn = "none""#,
            "dctcp's packets are not ECT, and its window is Reno's",
        ),
        (pie, r#"congestion = "dctcp", receiver_ecn = "classic""#, "it counts marks that were none"),
        (pie, r#"ecn = true, receiver_ecn = "none""#, "cubic's packets are not ECT, and none is marked"),
        (
            pie,
            r#"ecn = true, accurate_ecn = true, receiver_ecn = "classic""#,
            "cubic is told of marks by ECN-Echo",
        ),
        (pie, "ecn = true, accurate_ecn_option = true", "write accurate_ecn = true"),
        (pie, r#"receiver_ecn = "accurate""#, "write ecn = true, or remove receiver_ecn"),
        (pie, r#"ecn = true, receiver_ecn = "nonce""#, "classic"),
        (DUALPI2, r#"congestion = "prague", ecn = false"#, "and has no other measure"),
        (DUALPI2, r#"congestion = "dctcp", ecn = false"#, "remove ecn, or write congestion = \"cubic\""),
        (DUALPI2, r#"profile = "rfc", congestion = "prague""#, "only the linux profile has prague"),
        (
            DUALPI2,
            r#"profile = "rfc", accurate_ecn = true, ecn = true"#,
            "only the linux profile has accurate feedback",
        ),
        (DUALPI2, "accurate_ecn = true", "without ECN nothing is marked"),
        (DUALPI2, r#"rtt_virt = "5 ms""#, "is prague's; cubic has none"),
        (DUALPI2, r#"congestion = "prague", ect1 = true"#, "is dctcp's; prague has none"),
        (
            drop_tail,
            r#"congestion = "dctcp", ect1 = true"#,
            "one sends ECT(1), but drop_tail at link does not mark",
        ),
    ];
    for (queue, tcp, said) in cases {
        let problems = problems(queue, tcp);
        assert!(problems.iter().any(|p| p.contains(said)), "{tcp}: {problems:?} and not {said}");
    }
    for (queue, tcp) in [
        (DUALPI2, PRAGUE),
        (pie, r#"congestion = "dctcp""#),
        (pie, r#"ecn = true, accurate_ecn = true"#),
        (pie, r#"congestion = "prague", accurate_ecn = false"#),
        (pie, r#"congestion = "prague", receiver_ecn = "classic""#),
        (pie, r#"congestion = "dctcp", ect1 = true, receiver_ecn = "none""#),
    ] {
        let problems: Vec<_> = problems(queue, tcp).into_iter().filter(|p| p.contains("ECT(1)")).collect();
        assert!(problems.is_empty(), "{tcp}: {problems:?}");
    }
}

/// RFC 9768 §3.2.3: where most acknowledgements are lost on a narrow way back, the field of three bits has mostly wrapped, and the safest likely case takes
/// packets for marked that were not. With the option the link stays full.
#[test]
fn the_option_tells_what_lost_acknowledgements_had() {
    let back = r#"reverse = { rate = "32 kbit/s", delay = "1 ms", queue = { aqm = "drop_tail", limit = "4 packets" } }"#;
    let rate = |option: bool, back: &str| {
        let tcp = format!(r#"congestion = "prague", accurate_ecn_option = {option}"#);
        let text = file(DUALPI2, [("20 ms", &tcp), ("20 ms", &tcp)], 20);
        rates(&text.replacen("delay = \"1 ms\"", &format!("delay = \"1 ms\"\n{back}"), 1), 1)
            .iter()
            .sum::<f64>()
    };
    let wide = rate(false, "");
    assert!((rate(true, "") / wide - 1.0).abs() < 0.02, "{} and {wide}", rate(true, ""));
    let (with, without) = (rate(true, back), rate(false, back));
    assert!(
        with > 0.9 * wide && without < 0.5 * wide,
        "{with} with it, {without} without, {wide} where none is lost"
    );
}

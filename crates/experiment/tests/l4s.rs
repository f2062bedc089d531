//! ECT(1) end to end: through queues that know L4S and queues that don't.

use inprofile_experiment::Scenario;
use inprofile_sim::outcome::Outcome;

/// Four Reno flows with ECN and a datagram flow of this code point and rate, at 10 Mbit/s.
fn scenario(queue: &str, ecn: &str, rate: &str) -> Scenario {
    read(&text(queue, ecn, rate))
}

fn read(text: &str) -> Scenario {
    crate::parse(text)
}

fn text(queue: &str, ecn: &str, rate: &str) -> String {
    format!(
        r#"
title = "l4s"
duration = "20 s"
measure = {{ from = "5 s", to = "20 s" }}
tcp = {{ ecn = true }}
[[links]]
name = "b"
from = "r"
to = "s"
rate = "10 Mbit/s"
delay = "5 ms"
queue = {{ {queue}, limit = "1000 packets" }}
[[flows]]
name = "reno"
count = 4
from = "H*"
join = {{ node = "r", rate = "1 Gbit/s" }}
to = "s"
rtt = "20 ms"
[[flows]]
name = "cbr"
from = "H*"
join = {{ node = "r", rate = "1 Gbit/s" }}
to = "s"
rtt = "20 ms"
traffic = {{ kind = "cbr", rate = "{rate}", packet = "1000 B", dither = 1.0, ecn = "{ecn}" }}
"#
    )
}

fn run(scenario: &Scenario, traced: bool) -> Outcome {
    crate::run(scenario.network(1, traced))
}

/// The warnings, without their places.
fn warnings(scenario: &Scenario) -> Vec<String> {
    scenario.warnings().iter().map(|w| w.problem.clone()).collect()
}

#[test]
fn ect1_into_a_queue_without_l4s_is_warned_of() {
    let codel = r#"aqm = "codel", ecn = true"#;
    assert_eq!(
        warnings(&scenario(codel, "ect1", "2 Mbit/s")),
        [
            "cbr sends ECT(1), but codel at b marks it like ECT(0): L4S flows would take far more than their share there"
        ]
    );
    assert_eq!(
        warnings(&scenario(r#"aqm = "drop_tail""#, "ect1", "2 Mbit/s")),
        [
            "cbr sends ECT(1), but drop_tail at b does not mark: its packets are dropped as if they were not ECN-capable"
        ]
    );
    // RFC 9331 §5.1.
    let off = r#"aqm = "dualpi2", l4s = false"#;
    let of_off = scenario(off, "ect1", "2 Mbit/s");
    assert_eq!(
        warnings(&of_off),
        [
            "cbr sends ECT(1), but dualpi2 at b has l4s = false: it treats ECT(1) as Not-ECT and drops where it would mark"
        ]
    );
    assert!(of_off.warnings()[0].remedy.contains("l4s = true"), "{}", of_off.warnings()[0].remedy);
    for (queue, ecn) in [(off, "ect0"), (codel, "ect0"), (codel, "not_ect"), (r#"aqm = "pi2""#, "ect1")] {
        assert_eq!(warnings(&scenario(queue, ecn, "2 Mbit/s")), [""; 0], "{queue} {ecn}");
    }
}

/// Which disciplines mark: by a parameter of that name, by curves or a threshold of their own, or not at all. A run's marks agree.
#[test]
fn what_marks_is_told_from_what_drops() {
    let red = r#"min_th = "20 packets", max_th = "60 packets", max_p = 0.1"#;
    let thresholds =
        |low: u32| format!(r#"{{ min_th = "{low} packets", max_th = "60 packets", max_p = 0.1 }}"#);
    let (one, low) = (thresholds(20), thresholds(5));
    let wred = format!(r#"aqm = "wred", green = {one}, yellow = {one}"#);
    let rio = |aqm: &str| format!(r#"aqm = "{aqm}", in = {one}, out = {one}"#);
    let plain = |aqm: &str| format!(r#"aqm = "{aqm}""#);
    let with_ecn = [
        format!(r#"aqm = "red", {red}"#),
        format!(r#"aqm = "choke", {red}"#),
        plain("ared"),
        plain("sfb"),
        rio("rio"),
        wred.clone(),
        plain("pie"),
        plain("fq_pie"),
        plain("codel"),
        plain("fq_codel"),
        plain("cobalt"),
    ];
    let cases = with_ecn
        .iter()
        .flat_map(|queue| [(format!("{queue}, ecn = true"), true), (format!("{queue}, ecn = false"), false)]);
    let of_their_own = [
        (format!("{wred}, green_ecn = {low}"), true),
        (format!("{wred}, yellow_ecn = {low}, ecn = false"), true),
        (r#"aqm = "fq_codel", ecn = false, ce_threshold = "1 ms""#.into(), true),
        // RFC 8033 §5.1: no drop probability is below 0.
        (r#"aqm = "pie", ecn = true, mark_ecnth = 0.0"#.into(), false),
        (r#"aqm = "fq_pie", ecn = true, mark_ecnth = 0.0"#.into(), false),
        (r#"aqm = "sfq""#.into(), false),
    ];
    for (queue, marks) in cases.chain(of_their_own) {
        let scenario = scenario(&queue, "ect1", "11 Mbit/s");
        let said = warnings(&scenario).into_iter().find(|w| w.contains("ECT(1)")).expect("a warning");
        assert_eq!(said.contains("marks it like ECT(0)"), marks, "{queue}: {said}");
        assert_eq!(said.contains("does not mark"), !marks, "{queue}: {said}");
        if queue.contains("yellow_ecn") {
            continue; // Nothing here is yellow.
        }
        let marked = run(&scenario, false).links[0].total.marked[0];
        assert_eq!(marked > 0, marks, "{queue}: {marked} packets");
    }
}

/// A queue before the slowest link is warned of where it marks, whatever the parameter is called.
#[test]
fn marks_before_the_slowest_link_are_warned_of() {
    let before = |queue: &str| {
        let link = format!(
            r#"[[links]]
name = "a"
from = "r"
to = "m"
rate = "20 Mbit/s"
delay = "1 ms"
queue = {{ {queue}, limit = "1000 packets" }}
[[links]]
name = "b"
from = "m""#
        );
        let slowest = text(r#"aqm = "dualpi2""#, "ect1", "2 Mbit/s");
        warnings(&read(&slowest.replacen("[[links]]\nname = \"b\"\nfrom = \"r\"", &link, 1)))
    };
    let curve = r#"{ min_th = "20 packets", max_th = "60 packets", max_p = 0.1 }"#;
    let wred = format!(r#"aqm = "wred", green = {curve}, yellow = {curve}"#);
    for queue in [
        r#"aqm = "codel", ecn = true"#,
        &format!("{wred}, green_ecn = {curve}"),
        r#"aqm = "fq_codel", ecn = false, ce_threshold = "1 ms""#,
    ] {
        let said = before(queue);
        assert!(said.len() == 1 && said[0].contains("at a marks it like ECT(0)"), "{queue}: {said:?}");
    }
    for queue in [r#"aqm = "codel""#, r#"aqm = "pie", ecn = true, mark_ecnth = 0.0"#, &wred] {
        assert_eq!(before(queue), [""; 0], "{queue}");
    }
}

/// RFC 3168 §5: to a queue without L4S both code points are the same, to the last bit.
#[test]
fn without_l4s_both_code_points_are_the_same() {
    for queue in [
        r#"aqm = "codel", ecn = true"#,
        r#"aqm = "pie", ecn = true"#,
        r#"aqm = "red", min_th = "20 packets", max_th = "60 packets", max_p = 0.1, ecn = true"#,
    ] {
        let [one, other] = ["ect0", "ect1"].map(|ecn| run(&scenario(queue, ecn, "4 Mbit/s"), false));
        assert!(one.links[0].total.marked[0] > 20, "{queue}: {:?}", one.links[0].total.marked);
        assert_eq!(format!("{:?}", one.flows), format!("{:?}", other.flows), "{queue}");
        assert_eq!(format!("{:?}", one.links), format!("{:?}", other.links), "{queue}");
    }
}

/// RFC 9332, Eq. (1), in a run: what PI2 marks of ECT(1) traffic and of ECT(0) traffic goes by p_C = (p_CL/k)², verdict by verdict.
#[test]
fn pi2_marks_ect1_with_the_root() {
    let outcome = run(&scenario(r#"aqm = "pi2""#, "ect1", "4 Mbit/s"), true);
    let of = |name: &str, why: &[(&'static str, f64)]| why.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    let (mut l4s, mut classic) = (0, 0);
    for v in outcome.verdicts.iter().filter(|v| v.verdict == "mark") {
        let p_prime = of("p_prime", &v.why).expect("it is noted");
        match (of("p_cl", &v.why), of("p_c", &v.why)) {
            // Under overload p_c has been tried before.
            (Some(p_cl), _) => {
                assert_eq!(p_cl, (2.0 * p_prime).min(1.0));
                l4s += 1;
            }
            (None, Some(p_c)) => {
                assert_eq!(p_c, p_prime * p_prime);
                classic += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    // The queue's own counts of the same: a packet that is marked as it leaves is in the verdicts once.
    let counted: u64 = outcome.links[0].total.marked.iter().sum();
    assert_eq!(l4s + classic, counted);
    // The datagrams are 40 % of the packets and have most of the marks.
    assert!(l4s > 5 * classic && classic > 50, "{l4s} and {classic}");
}

/// RFC 9332 §2.2 in a run: beside Reno flows that fill the Classic queue to its target, L4S datagrams hardly wait; a flood of them is
/// dropped like Classic traffic, and the Reno flows are not shut out (§4.2.3.1).
#[test]
fn dualpi2_keeps_l4s_short_and_floods_out() {
    let queue = r#"aqm = "dualpi2""#;
    let sojourns = |outcome: &Outcome, flow: u32| {
        let mut of_flow = Vec::new();
        for v in outcome.verdicts.iter().filter(|v| v.flow == flow) {
            of_flow.extend(v.why.iter().find(|(what, _)| *what == "sojourn").map(|(_, s)| *s));
        }
        of_flow
    };
    let outcome = run(&scenario(queue, "ect1", "4 Mbit/s"), true);
    let marked = sojourns(&outcome, 4);
    let mean = marked.iter().sum::<f64>() / marked.len() as f64;
    assert!(marked.len() > 100 && mean < 0.002, "{} marks, mean wait {mean} s", marked.len());
    let received: u64 = outcome.flows[4].total.received.iter().sum();
    let sent: u64 = outcome.flows[4].total.sent.iter().sum();
    assert!(sent - received < 200, "{received} of {sent}");

    // Two and a half times the link's rate.
    let flood = |queue: &str, ecn: &str| {
        let outcome = run(&scenario(queue, ecn, "25 Mbit/s"), false);
        outcome.flows[4].total.received.iter().sum::<u64>()
    };
    let (ect1, not_ect) = (flood(queue, "ect1"), flood(queue, "not_ect"));
    assert!(ect1 as f64 / (not_ect as f64) < 1.05, "{ect1} of ECT(1), {not_ect} of Not-ECT");
}

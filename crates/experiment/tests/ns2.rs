//! Experiments written for ns-2, and features refused by name.

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;

/// Two groups of flows over one measured link; `top` is the `[tcp]` table's segment, the others are the groups'.
fn counting(aqm: &str, top: u32, groups: [u32; 2]) -> Result<String, Vec<String>> {
    let mut text = format!(
        r#"
title    = "sizes"
duration = "10 s"
measure  = {{ from = "1 s", to = "10 s", at = "bottleneck" }}

[tcp]
profile = "ns2"
segment = "{top} B"

[[links]]
name  = "bottleneck"
from  = "R1"
to    = "R2"
rate  = "1 Mbit/s"
delay = "10 ms"
queue = {{ aqm = "{aqm}", limit = "50 packets"{} }}
"#,
        if aqm == "red" { ", min_th = \"5 packets\", max_th = \"15 packets\", max_p = 0.1" } else { "" }
    );
    for (name, segment) in ["a", "b"].into_iter().zip(groups) {
        text.push_str(&format!(
            r#"
[[flows]]
name  = "{name}"
from  = "H*"
join  = {{ node = "R1", rate = "10 Mbit/s" }}
to    = "R2"
rtt   = "40 ms"
start = "0 s"
tcp   = {{ segment = "{segment} B" }}
"#
        ));
    }
    let scenario = crate::parse(&text);
    scenario.ns2_counting_script(1).map_err(|missing| missing.0)
}

#[test]
fn a_packet_has_the_size_of_the_flows_that_pass() {
    let script = counting("drop_tail", 1000, [500, 500]).unwrap();
    assert!(script.contains("return \"packets 540 "), "{script}");
    assert!(script.contains("write 9 {{500 40 1} {500 40 1}}"), "{script}");
}

#[test]
fn bytes_are_counted_where_ns2_counts_them() {
    let script = counting("red", 1000, [1000, 300]).unwrap();
    assert!(script.contains("return \"bytes [$monitor set barrivals_] 0 0 "), "{script}");
    assert!(script.contains("write 9 {{1000 40 1} {300 40 1}}"), "{script}");
}

#[test]
fn sizes_that_differ_are_refused_where_only_packets_are_counted() {
    assert_eq!(
        counting("drop_tail", 1000, [1000, 300]).unwrap_err(),
        ["measure.at: packets of 1040 B and 340 B pass bottleneck, and dsRED counts packets of any size"]
    );
}

#[test]
fn the_largest_seed_is_ns2s_own() {
    let text = include_str!("../../../validation/ns2/one-hop.toml");
    let scenario = crate::parse(text);
    assert!(scenario.ns2_script(2_147_483_646).is_ok());
    // ns-2 ends at this one with an error of its own.
    assert_eq!(
        scenario.ns2_script(2_147_483_647).unwrap_err().0,
        ["seed 2147483647: ns-2 takes none above 2147483646"]
    );
}

/// One link with this queue in ns-2's profile, and these flows.
fn over_one_link(queue: &str, flows: &str) -> Scenario {
    let text = format!(
        r#"
title    = "one link"
duration = "2 s"
[engine]
profile = "ns2"
[tcp]
profile = "ns2"
[[links]]
name  = "a"
from  = "A"
to    = "B"
rate  = "1 Mbit/s"
delay = "10 ms"
queue = {{ {queue} }}
[[flows]]
name = "f"
from = "A"
to   = "B"
{flows}
"#
    );
    crate::parse(&text)
}

/// One flow of this traffic over one link, and what comes beside it in the flow's table.
fn sending(traffic: &str, more: &str) -> Scenario {
    let flow = format!("start = \"100 ms\"\ntraffic = {{ {traffic} }}\n{more}");
    over_one_link(r#"aqm = "drop_tail", limit = "5 packets""#, &flow)
}

fn commands(scenario: &Scenario, first: &str) -> Vec<String> {
    let script = scenario.ns2_script(1).unwrap();
    let said = script.lines().filter(|line| line.starts_with(&format!("{first} 0 1 ")));
    said.map(str::to_owned).collect()
}

#[test]
fn traffic_in_ns2s_words() {
    let cbr = sending("kind = \"cbr\", rate = \"300 kbit/s\", packet = \"200 B\"", "stop = \"1.5 s\"");
    assert_eq!(commands(&cbr, "cbr"), ["cbr 0 1 0.1 200 300000 1.5"]);
    let transfer = sending("kind = \"transfer\", size = \"20500 B\"", "");
    let flow = commands(&transfer, "flow");
    assert!(flow.len() == 1 && flow[0].ends_with("{packetSize_ 40} never 21"), "{flow:?}");
    let stopped = sending("kind = \"bulk\"", "stop = \"1.5 s\"");
    assert!(commands(&stopped, "flow")[0].ends_with("{packetSize_ 40} 1.5"));
    let bulk = sending("kind = \"bulk\"", "");
    assert!(commands(&bulk, "flow")[0].ends_with("{packetSize_ 40}"));
}

/// 10 ms on, 90 ms off, 4 ms a packet at the peak: 0, 4, 8, then 12 is 2 ms into the next period.
#[test]
fn moments_are_listed_where_ns2_has_no_such_source() {
    let on_off =
        "kind = \"on_off\", peak = \"2 Mbit/s\", packet = \"1000 B\", on = \"10 ms\", off = \"90 ms\"";
    let said = commands(&sending(on_off, "stop = \"220 ms\""), "datagrams");
    let times: Vec<f64> = said[0]
        .split_once('{')
        .and_then(|(_, list)| list.strip_suffix('}'))
        .map(|list| list.split(' ').map(|t| t.parse().unwrap()).collect())
        .unwrap();
    let expected = [0.1, 0.104, 0.108, 0.202, 0.206];
    assert_eq!(times.len(), expected.len());
    assert!(times.iter().zip(expected).all(|(t, e)| (t - e).abs() < 1e-9), "{times:?}");
    assert!(said[0].starts_with("datagrams 0 1 0.1 1000 {0.1 "), "{}", said[0]);
    let dithered = sending("kind = \"cbr\", rate = \"1 Mbit/s\", dither = 0.5", "");
    assert_eq!(commands(&dithered, "datagrams").len(), 1);
}

#[test]
fn too_many_moments_are_refused_by_name() {
    let on_off = "kind = \"on_off\", peak = \"10 Gbit/s\", packet = \"29 B\", on = \"1 s\", off = \"1 ms\"";
    let missing = sending(on_off, "").ns2_script(1).unwrap_err().0;
    assert_eq!(
        missing,
        ["flows.f.0: more than 1000000 datagrams, whose moments the script would list one by one"]
    );
}

#[test]
fn a_limit_in_bytes_goes_where_thresholds_are_in_bytes() {
    let limit = |limit: &str, th: [&str; 2]| {
        let queue = format!(
            "{{ aqm = \"red\", variant = \"ns2\", limit = \"{limit}\", min_th = \"{}\", max_th = \"{}\", max_p = 0.1, mean_packet = \"500 B\" }}",
            th[0], th[1]
        );
        let set = [("links.a.queue".to_owned(), queue)];
        let text = include_str!("../../../validation/ns2/one-hop.toml").replace("bottleneck", "a");
        let scenario = Scenario::parse(&text, "bytes.toml", &set, &Registry::default()).unwrap();
        scenario.ns2_script(1).map_err(|missing| missing.0)
    };
    let bytes = ["1000 B", "2000 B"];
    assert!(limit("3 packets", bytes).unwrap().contains(" RED {limit_ 3 thresh_ 2 "));
    assert!(limit("1500 B", bytes).unwrap().contains(" RED {limit_ 3 thresh_ 2 "));
    assert_eq!(
        limit("1600 B", bytes).unwrap_err(),
        ["links.a.queue.limit: 1600 B with packets of 500 B; write limit = \"1500 B\""]
    );
    assert_eq!(
        limit("3000 B", ["1 packets", "2 packets"]).unwrap_err(),
        ["links.a.queue.limit: 3000 B, and ns-2's is in packets; write limit = \"2 packets\""]
    );
}

/// A discipline or a unit that ns-2 lacks is named with what to write instead.
#[test]
fn what_queues_of_ns2_lack_is_named_with_a_remedy() {
    let events = "ns-2 has drop_tail, red, rio, dsred, pi, rem, ns2_sfq, ns2_drr and ns2_fq";
    for aqm in ["codel", "fq_codel", "pie", "fq_pie", "pi2", "dualpi2", "curvy_red", "cobalt", "sfb", "sfq"] {
        let queue = format!("aqm = \"{aqm}\", limit = \"60 packets\"");
        assert_eq!(refused(&queue), [format!("links.a.queue.aqm: {aqm}; {events}")]);
    }
    let counted = before(r#"aqm = "codel", limit = "60 packets""#).ns2_counting_script(1).unwrap_err().0;
    assert_eq!(
        counted,
        ["links.a.queue.aqm: codel; ns-2 has drop_tail, red, rio, wred, dsred, pi, rem, ns2_sfq and ns2_drr"]
    );
    assert_eq!(
        refused(r#"aqm = "drop_tail", limit = "60000 B""#),
        ["links.a.queue.limit: 60000 B, and ns-2's is in packets; write limit = \"57 packets\""]
    );
    assert_eq!(
        refused(r#"aqm = "ns2_drr", limit = "60 packets""#),
        ["links.a.queue.limit: 60 packets, and DRR's is in bytes; write limit = \"62400 B\""]
    );
}

/// Three flows over one link with this queue.
fn before(queue: &str) -> Scenario {
    over_one_link(queue, "count = 3\nstart = \"0 s\"")
}

fn refused(queue: &str) -> Vec<String> {
    before(queue).ns2_script(1).map_or_else(|missing| missing.0, |_| Vec::new())
}

#[test]
fn controllers_in_ns2s_words() {
    let link = |queue| commands(&before(queue), "link");
    assert_eq!(
        link(r#"aqm = "pi", variant = "ns2", limit = "60 packets", q_ref = "20 packets""#),
        [
            "link 0 1 1000000 0.01 PI {limit_ 60 a_ 0.00001822 b_ 0.00001816 w_ 160 qref_ 20 mean_pktsize_ 1040 \
             bytes_ false queue_in_bytes_ false setbit_ false}"
        ]
    );
    assert_eq!(
        link(
            r#"aqm = "rem", variant = "ns2", limit = "60000 B", b_star = "15000 B", mean_packet = "1000 B""#
        ),
        ["link 0 1 1000000 0.01 REM {limit_ 60 gamma_ 0.001 phi_ 1.001 inw_ 1 mean_pktsize_ 1000 \
             pupdtime_ 0.002 pbo_ 15 qib_ true markpkts_ false}"]
    );
    let fq = before(r#"aqm = "ns2_fq", limit = "60 packets", flow_limit = 20"#);
    assert_eq!(commands(&fq, "link"), ["link 0 1 1000000 0.01 FQ {}"]);
    assert_eq!(commands(&fq, "fq"), ["fq 0 1 20 {0 1 2}"]);
}

#[test]
fn what_controllers_of_ns2_lack_is_named() {
    assert_eq!(
        refused(r#"aqm = "pi", limit = "60 packets", q_ref = "20 packets""#),
        ["links.a.queue.variant: hollot01; write variant = \"ns2\""]
    );
    assert_eq!(
        refused(r#"aqm = "pi", variant = "ns2", limit = "60000 B", q_ref = "20 packets""#),
        ["links.a.queue.limit: 60000 B, and ns-2's is in packets; write limit = \"57 packets\""]
    );
    assert_eq!(
        refused(
            r#"aqm = "pi", variant = "ns2", limit = "60500 B", q_ref = "2000 B", mean_packet = "1000 B""#
        ),
        ["links.a.queue.limit: 60500 B with packets of 1000 B; write limit = \"60000 B\""]
    );
    assert_eq!(
        refused(r#"aqm = "rem", limit = "60 packets", mismatch = "backlog", alpha = 0.2, ecn = true"#),
        [
            "links.a.queue.variant: athuraliya01; write variant = \"ns2\"",
            "links.a.queue.mismatch: backlog; write mismatch = \"rate\"",
            "links.a.queue.alpha: 0.2; ns-2's is 0.1",
            "links.a.queue.ecn: marking, ns-2's REM draws a random number even when nothing is left to send; \
             write ecn = false",
        ]
    );
    assert_eq!(
        refused(r#"aqm = "ns2_fq", limit = "59 packets", flow_limit = 20, buckets = 2"#),
        [
            "links.a.queue.aqm: ns2_fq with 2 queues before flow 2, counted from 0; every flow needs its own, and \
             ns-2 has 32",
            "links.a.queue.limit: 59 packets of all flows, which ns-2's FQ doesn't count; write at least 60 packets, \
             flow_limit for each",
        ]
    );
}

/// Where only figures are compared, the papers' algorithms may stand beside ns-2's, and a monitor counts.
#[test]
fn figures_of_controllers_are_counted_in_bytes() {
    let script =
        before(r#"aqm = "pi", limit = "60 packets", q_ref = "20 packets""#).ns2_counting_script(1).unwrap();
    assert!(script.contains("return \"bytes [$monitor set barrivals_] 0 0 "), "{script}");
    let missing = before(r#"aqm = "ns2_fq", limit = "150 packets""#).ns2_counting_script(1).unwrap_err().0;
    assert!(
        missing[0].starts_with("links.a.queue.aqm: ns2_fq, whose FQLink runs only with a trace"),
        "{missing:?}"
    );
}

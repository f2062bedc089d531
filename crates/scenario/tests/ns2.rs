//! What is written for ns-2, and what is refused by name.

use inprofile_core::registry::Registry;
use inprofile_scenario::Scenario;

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
    let scenario = Scenario::parse(&text, "sizes.toml", &[], &Registry::default()).unwrap();
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
    let text = include_str!("../../../validation/ns2/drop-tail-reno-1.toml");
    let scenario = Scenario::parse(text, "x.toml", &[], &Registry::default()).unwrap();
    assert!(scenario.ns2_script(2_147_483_646).is_ok());
    // ns-2 ends at this one with an error of its own.
    assert_eq!(
        scenario.ns2_script(2_147_483_647).unwrap_err().0,
        ["seed 2147483647: ns-2 takes none above 2147483646"]
    );
}

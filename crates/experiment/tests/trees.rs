//! `[[trees]]`: what a tree stands for, and that what is sold below a node is added up.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_core::units::Duration;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;

/// An uplink and streets, with these keys of the tree and of its streets.
fn tree(keys: &str, street: &str) -> Scenario {
    let text = format!(
        r#"
title = "A tree"
duration = "300 ms"
measure = {{ at = "uplink-1" }}
[[trees]]
name = "isp"
root = "core"
{keys}
[[trees.levels]]
name = "uplink"
fan_out = 1
rate = "40 Mbit/s"
delay = "2 ms"
queue = {{ aqm = "drop_tail", limit = "50 packets" }}
[[trees.levels]]
name = "street"
rate = "20 Mbit/s"
queue = {{ aqm = "drop_tail", limit = "50 packets" }}
{street}
[[trees.flows]]
name = "gold"
count = 2
join = {{ rate = "50 Mbit/s" }}
rtt = "20 ms"
contract = "5 Mbit/s"
[[trees.flows]]
name = "basic"
count = 3
join = {{ rate = "50 Mbit/s" }}
rtt = "20..40 ms"
"#
    );
    Scenario::parse(&text, "tree.toml", &[], &Registry::default())
        .unwrap_or_else(|p| panic!("{}", p.iter().map(|p| format!("{p}\n")).collect::<String>()))
}

#[test]
fn a_tree_stands_for_links_and_flows() {
    let scenario = tree("", "fan_out = 3\ndelay = \"1..3 ms\"\ncontract = \"12 Mbit/s\"");
    let net = scenario.network(1, false);
    let named = |name: &str| net.links.iter().find(|l| l.name == name).unwrap();
    let node = |n: u32| net.nodes[n as usize].as_str();
    for (name, from, delay) in [
        ("uplink-1", "core", 2),
        ("street-1-1", "uplink-1", 1),
        ("street-1-2", "uplink-1", 2),
        ("street-1-3", "uplink-1", 3),
    ] {
        let link = named(name);
        assert_eq!((node(link.from), node(link.to)), (from, name));
        assert_eq!(link.delay, Duration::from_millis(delay));
    }
    assert_eq!(net.flows.len(), 15);
    let last = net.flows.last().unwrap();
    assert_eq!(last.name, "basic-1-3.2");
    let route: Vec<&str> = last.path.iter().skip(1).map(|l| net.links[*l as usize].name.as_str()).collect();
    assert_eq!(route, ["uplink-1", "street-1-3"]);
    // It runs, and every packet is accounted for.
    let o = engine::run(net, &AtomicBool::new(false), None).unwrap();
    assert!(o.flows.iter().all(|f| f.total.received.iter().sum::<u64>() > 0));
}

#[test]
fn upwards_everything_is_turned_round() {
    let net = tree("direction = \"up\"", "fan_out = 3\ndelay = \"1 ms\"").network(1, false);
    let route: Vec<&str> =
        net.flows[0].path.iter().skip(1).map(|l| net.links[*l as usize].name.as_str()).collect();
    assert_eq!(route, ["street-1-1", "uplink-1"]);
}

#[test]
fn what_is_drawn_is_the_same_for_every_seed() {
    let street = "fan_out = \"uniform 2..3\"\ndelay = \"uniform 1..3 ms\"";
    let delays = |keys: &str, seed| {
        let net = tree(keys, street).network(seed, false);
        net.links.iter().filter(|l| l.reported).map(|l| l.delay).collect::<Vec<_>>()
    };
    assert_eq!(delays("", 1), delays("", 2));
    assert_ne!(delays("", 1), delays("draw = 2", 1));
}

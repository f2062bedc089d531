//! Customers: prefixes, templates, groups, circuits and queues of their own.

use super::*;

/// An address that two customers would share is reported, with its owner; a longer prefix, or ports of its own, make it one's.
#[test]
fn packets_of_two_customers_are_refused() {
    let told = |customers: &[(&str, &str)]| {
        let mut text =
            "inside = \"a\"\noutside = \"b\"\n[upstream]\nrate = \"1 Mbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"9 packets\" }\nbest_effort = { aqm = \"drop_tail\", limit = \"9 packets\" }\n"
                .to_owned();
        for (name, whose) in customers {
            text += &format!(
                "[[upstream.customers]]\nname = \"{name}\"\n{whose}\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n"
            );
        }
        read(&text).map_or_else(|problems| problems, |(_, warnings)| warnings)
    };
    let net = "prefix = \"10.0.1.0/24\"";
    assert_eq!(
        told(&[("alice", net), ("bob", "prefix = [\"10.0.2.0/24\", \"10.0.1.0/24\"]")]),
        [
            "r.toml:13:10: error: upstream.customers.bob.prefix = [\"10.0.2.0/24\", \"10.0.1.0/24\"]: packets of 10.0.1.0/24 are alice's already\n  a longer prefix goes before a shorter one; of equal ones each needs ports of its own"
        ]
    );
    assert_eq!(
        told(&[("alice", net), ("alice", "prefix = \"10.0.2.0/24\"")]),
        [
            "r.toml:12:8: error: upstream.customers.alice.name = \"alice\": another customer has this name\n  give each its own"
        ]
    );
    for (first, second, both) in [
        (net, "prefix = \"10.0.1.128/25\"", false),
        (net, "prefix = \"10.0.1.0/24\"\nport = 80", false),
        ("prefix = \"10.0.1.0/24\"\nport = [80, 443]", "prefix = \"10.0.1.0/24\"\nport = 443", true),
        ("prefix = \"10.0.1.0/24\"\nport = [80, 443]", "prefix = \"10.0.1.0/24\"\nport = 22", false),
        ("port = 80", "prefix = \"::/0\"\nport = 80", true),
        ("port = 80", "port = 443", false),
        ("prefix = \"0.0.0.0/0\"", "port = 80", false),
        ("prefix = \"0.0.0.0/0\"", "prefix = \"::/0\"", false),
        ("prefix = [\"10.0.1.7\", \"10.0.1.7\"]", net, false),
    ] {
        let problems = told(&[("first", first), ("second", second)]);
        assert_eq!(problems.len(), usize::from(both), "{first}; {second}: {problems:?}");
    }
}

/// Customers of a direction of 10 Mbit/s, with whatever comes before them: the problems, or else the warnings.
fn told(tables: &str) -> Vec<String> {
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\nrole = \"core\"\n[upstream]\nrate = \"10 Mbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"9 packets\" }}\n{tables}"
    );
    read(&text).map_or_else(|problems| problems, |(_, warnings)| warnings)
}

/// Faults in templates, groups, circuits and customers' own queues: each with its place and a remedy.
#[test]
fn customers_terms_that_cannot_be_are_refused() {
    let marker = "marker = { kind = \"colour\", colour = \"red\" }";
    let queue = "queue = { aqm = \"drop_tail\", limit = \"9 packets\" }";
    let of = |rest: &str| format!("[[upstream.customers]]\nname = \"a\"\nprefix = \"10.0.0.1\"\n{rest}\n");
    let gold = format!("[[upstream.templates]]\nname = \"gold\"\n{marker}\n");
    for (tables, wanted) in [
        (
            gold.clone() + &of("template = \"glod\""),
            "r.toml:13:12: error: upstream.customers.a.template = \"glod\": there is no such template\n  did you mean \"gold\"?",
        ),
        (
            of("template = \"gold\""),
            "r.toml:10:12: error: upstream.customers.a.template = \"gold\": there is no such template\n  add it: [[….templates]] with this name",
        ),
        (
            of(&format!("group = \"west\"\n{marker}")),
            "r.toml:10:9: error: upstream.customers.a.group = \"west\": there is no such group",
        ),
        (
            gold.clone() + &gold,
            "r.toml:11:8: error: upstream.templates.gold.name = \"gold\": another template has this name",
        ),
        (
            "[[upstream.templates]]\nname = \"gold\"\nprefix = \"10.0.0.1\"\n".into(),
            "r.toml:9:1: error: upstream.templates.gold.prefix: unknown key",
        ),
        (
            of(&format!("rate = \"1 Mbit/s\"\n{marker}")),
            "r.toml:10:8: error: upstream.customers.a.rate = \"1 Mbit/s\": it is of a queue of the customer's own, and he has none",
        ),
        (
            of(&format!("rate = \"1 Mbit/s\"\ncontract = \"2 Mbit/s\"\n{marker}\n{queue}")),
            "r.toml:10:8: error: upstream.customers.a.rate = \"1 Mbit/s\": his contract of 2 Mbit/s is above his shaper",
        ),
        (
            of(&format!("rate = \"11 Mbit/s\"\n{marker}\n{queue}")),
            "r.toml:10:8: error: upstream.customers.a.rate = \"11 Mbit/s\": a customer can't be served faster than the direction",
        ),
        (
            of(&format!("quantum = \"100 B\"\n{marker}\n{queue}")),
            "r.toml:10:11: error: upstream.customers.a.quantum = \"100 B\": a turn is a packet of",
        ),
        (
            of(&format!("priority = 0\n{marker}\n{queue}")),
            "r.toml:10:12: error: upstream.customers.a.priority = 0",
        ),
        (
            of(&format!("burst = \"3 kB\"\n{marker}\n{queue}")),
            "r.toml:10:9: error: upstream.customers.a.burst = \"3 kB\": it is a shaper's, and there is none",
        ),
        (of(&format!("vlan = 4095\n{marker}")), "r.toml:10:8: error: upstream.customers.a.vlan = 4095"),
        (
            of(&format!("vlan = \"1.x\"\n{marker}")),
            "r.toml:10:8: error: upstream.customers.a.vlan = \"1.x\": no such VLAN",
        ),
        (
            of(&format!("vlan = 7\n{marker}"))
                + &of(&format!("vlan = [6, 7]\n{marker}")).replace("\"a\"", "\"b\""),
            "r.toml:14:10: error: upstream.customers.b.prefix = \"10.0.0.1\": packets of 10.0.0.1/32 in VLAN 7 are a's already",
        ),
        (
            of(&format!(
                "{marker}\nqueue = {{ aqm = \"red\", limit = \"9 packets\", min_th = \"20 packets\", max_th = \"30 packets\", max_p = 0.1 }}"
            )),
            "r.toml:11:54: warning: upstream.customers.a.queue.min_th",
        ),
    ] {
        let problems = told(&tables);
        assert!(problems.iter().any(|p| p.starts_with(wanted)), "{tables}\n{wanted}\n{problems:#?}");
    }
}

/// A fault that a template has is told once, however many customers have it.
#[test]
fn a_templates_fault_is_told_once() {
    let mut tables = "[[upstream.templates]]\nname = \"t\"\nmarker = { kind = \"token_bucket\", depth = \"10 B\" }\ncontract = \"1 Mbit/s\"\n".to_owned();
    for i in 0..50 {
        tables +=
            &format!("[[upstream.customers]]\nname = \"c{i}\"\nprefix = \"10.0.0.{i}\"\ntemplate = \"t\"\n");
    }
    let problems = told(&tables);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    assert!(problems[0].starts_with("r.toml:9:"), "{problems:#?}");
}

/// A customer's own key goes before his template's, his template before his group's.
#[test]
fn terms_come_from_the_nearest() {
    let (config, _) = read(
        r#"inside = "a"
outside = "b"
role = "core"
[upstream]
rate = "10 Mbit/s"
queue = { aqm = "drop_tail", limit = "9 packets" }
[[upstream.templates]]
name = "home"
contract = "1 Mbit/s"
marker = { kind = "colour", colour = "red" }
queue = { aqm = "drop_tail", limit = "9 packets" }
rate = "2 Mbit/s"
[[upstream.templates]]
name = "office"
contract = "5 Mbit/s"
marker = { kind = "token_bucket", depth = "15 kB" }
[[upstream.groups]]
name = "street"
template = "home"
[[upstream.customers]]
name = "one"
prefix = "10.0.0.1"
group = "street"
[[upstream.customers]]
name = "two"
vlan = [100, "200.7"]
session = 9
group = "street"
template = "office"
[[upstream.customers]]
name = "three"
prefix = "10.0.0.3"
group = "street"
contract = "700 kbit/s"
"#,
    )
    .unwrap();
    let up = config.directions[0].as_ref().unwrap();
    let of = |i: usize| {
        let c = &up.customers[i];
        (c.contract.unwrap().0, c.marker.name, c.own.as_ref().and_then(|o| o.rate).map(|r| r.0), c.group)
    };
    assert_eq!(of(0), (1_000_000, "colour", Some(2_000_000), Some(0)));
    assert_eq!(of(1), (5_000_000, "token_bucket", None, Some(0)));
    assert_eq!(of(2), (700_000, "colour", Some(2_000_000), Some(0)));
    let circuits: Vec<String> = up.customers[1].circuits.iter().map(ToString::to_string).collect();
    assert_eq!(circuits, ["VLAN 100, session 9", "VLAN 200.7, session 9"]);
    assert_eq!(up.groups, ["street"]);
    // All of it is shown.
    let text = describe::text(&config);
    for line in [
        "circuits = VLAN 100, session 9, VLAN 200.7, session 9",
        "group = street",
        "rate = 2 Mbit/s",
        "limit = 9 packets (13500 B, 54 ms)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

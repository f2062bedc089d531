//! Trees, classes and what a network warns of before it runs.

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::outcome::Outcome;

mod trees {
    //! `[[trees]]`: what a tree stands for, and that what is sold below a node is added up.

    use inprofile_core::units::Duration;

    use super::*;

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
        crate::parse(&text)
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
        let route: Vec<&str> =
            last.path.iter().skip(1).map(|l| net.links[*l as usize].name.as_str()).collect();
        assert_eq!(route, ["uplink-1", "street-1-3"]);
        // It runs, and every packet is accounted for.
        let o = crate::run(net);
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
}

mod classes {
    //! Links whose queue is several: as read, as described, as built, and as they come out of a run.

    use std::path::Path;

    use inprofile_core::units::Rate;
    use inprofile_experiment::{Problem, Severity, catalogue, schema};
    use inprofile_sim::network::Target;
    use inprofile_sim::outcome::LinkOutcome;
    use serde_json::json;

    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Scenario, Vec<Problem>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good/classes.toml");
        Scenario::parse(
            &std::fs::read_to_string(path).unwrap(),
            "classes.toml",
            &crate::overrides(set),
            &Registry::default(),
        )
    }

    fn with(set: &[(&str, &str)]) -> Scenario {
        read(set).unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    fn run(scenario: &Scenario, trace: bool) -> Outcome {
        crate::run(scenario.network(1, trace))
    }

    fn sent(class: &LinkOutcome) -> u64 {
        class.window.sent_bytes.iter().sum()
    }

    #[test]
    fn check_shows_each_class_with_what_it_was_given() {
        let queue = &with(&[]).describe()["links"][0]["queue"];
        assert_eq!(queue["scheduler"], "priority");
        let [ef, af] = queue["classes"].as_array().unwrap().as_slice() else { panic!("{queue}") };
        assert_eq!(
            (&ef["name"], &ef["aqm"], &ef["rate"]),
            (&json!("ef"), &json!("drop_tail"), &json!("1 Mbit/s"))
        );
        // 50 packets of 1040 B at the class's own rate.
        assert_eq!(ef["limit"]["ms"], json!(416.0));
        assert_eq!((&af["in"]["min_th"]["packets"], af.get("rate")), (&json!(45.0), None));
        let back = &with(&[]).describe()["links"][1]["queue"];
        assert_eq!(back["classes"][1]["quantum"]["bytes"], json!(1040.0));
    }

    #[test]
    fn classes_are_numbered_as_links_name_them_and_found_by_name() {
        let net = with(&[]).network(1, false);
        let numbers = |l: usize| -> Vec<_> {
            net.links[l].queue.classes().iter().map(|c| (c.name.as_str(), c.setup.number)).collect()
        };
        assert_eq!(numbers(0), [("ef", 1), ("af", 2)]);
        assert_eq!(numbers(1), [("af", 2), ("ef", 1)]);
        assert_eq!(net.flows.iter().map(|f| f.class).collect::<Vec<_>>(), [1, 1, 2, 2, 2]);
        assert_eq!(
            net.monitors.iter().map(|m| (m.name.as_str(), m.target)).collect::<Vec<_>>(),
            [("bottleneck/af", Target::Class(0, 1))]
        );
        let slower = with(&[("links.bottleneck.queue.classes.ef.rate", "500 kbit/s")]).network(1, false);
        assert_eq!(slower.links[0].queue.classes()[0].setup.rate, Some(Rate(500_000)));
    }

    #[test]
    fn an_experiment_without_classes_is_filed_as_before() {
        let text = include_str!("good/two-flows.toml");
        let scenario = Scenario::parse(text, "two-flows.toml", &[], &Registry::default()).unwrap();
        assert!(!scenario.canonical().contains("class"));
        assert_ne!(
            with(&[]).canonical(),
            with(&[("links.bottleneck.queue.classes.ef.rate", "2 Mbit/s")]).canonical()
        );
    }

    /// The expedited class has two TCPs that would take the whole link, and gets its rate to the packet; the assured class
    /// gets the rest; rows of classes add up to the link's.
    #[test]
    fn a_class_has_its_set_rate_and_the_other_the_rest() {
        let outcome = run(&with(&[]), false);
        let link = &outcome.links[0];
        let [ef, af] = link.classes.as_slice() else { panic!("two classes") };
        let seconds = 8.0;
        let rate = |class| sent(class) as f64 * 8.0 / seconds;
        assert!((rate(ef) - 1e6).abs() <= 8.0 * 1040.0 / seconds, "{}", rate(ef));
        assert!(rate(af) > 2.9e6 && rate(af) <= 3e6 + 8.0 * 1040.0, "{}", rate(af));
        assert_eq!(link.window, ef.window.and(&af.window));
        assert_eq!(link.total, ef.total.and(&af.total));
        assert_eq!(link.waiting, ef.waiting + af.waiting);
        assert!((link.queue_mean - ef.queue_mean - af.queue_mean).abs() < 1e-9);
        // Colours and early drops are the assured class's alone.
        assert!(af.total.dropped[0].iter().sum::<u64>() > 0 && ef.total.dropped[0] == [0; 3]);
        assert!(af.total.arrived[1] > 0 && ef.total.arrived[1] == 0);
    }

    /// With nobody else about, the link sleeps between the packets of a class at a set rate, and wakes up for each.
    #[test]
    fn a_class_alone_keeps_its_rate() {
        let set = [
            ("flows.tcp.start", "9.9 s"),
            ("measure.to", "9 s"),
            ("links.bottleneck.queue.classes.ef.rate", "700 kbit/s"),
        ];
        let outcome = run(&with(&set), false);
        let link = &outcome.links[0];
        let rate = sent(&link.classes[0]) as f64 * 8.0 / 7.0;
        assert!((rate - 7e5).abs() <= 8.0 * 1040.0 / 7.0, "{rate}");
        assert_eq!(sent(&link.classes[1]), 0);
    }

    /// A class that bursts: what it was behind by when its flows began (a full bucket) goes ahead of its rate, and no more than that.
    #[test]
    fn a_class_may_be_a_burst_ahead_of_its_rate() {
        let of = |burst: &str| {
            let set = [
                ("flows.tcp.start", "9.9 s"),
                ("measure.from", "0 s"),
                ("measure.to", "9 s"),
                ("links.bottleneck.queue.classes.ef.burst", burst),
            ];
            sent(&run(&with(&set), false).links[0].classes[0]) as f64
        };
        let ahead = of("50 kB") - of("0 B");
        assert!((ahead - 50_000.0).abs() <= 2.0 * 1040.0, "{ahead}");
        let said = read(&[("links.bottleneck.queue.classes.af.burst", "50 kB")]).unwrap_err();
        assert!(said.iter().any(|p| p.to_string().contains("a class without a rate of its own")), "{said:?}");
        let described = with(&[("links.bottleneck.queue.classes.ef.burst", "50 kB")]);
        assert_eq!(described.describe()["links"][0]["queue"]["classes"][0]["burst"], "50000 B");
        assert_ne!(described.canonical(), with(&[]).canonical());
        assert_eq!(
            with(&[("links.bottleneck.queue.classes.ef.burst", "0 B")]).canonical(),
            with(&[]).canonical()
        );
    }

    #[test]
    fn watching_a_class_or_writing_verdicts_down_changes_nothing() {
        let plain = |o: Outcome| Outcome { verdicts: Vec::new(), series: Vec::new(), events: 0, ..o };
        let (quiet, traced) = (run(&with(&[("monitors", "[]")]), false), run(&with(&[]), true));
        let series = &traced.series[0];
        assert_eq!(series.columns[0].0, "packets");
        assert!(series.columns.iter().any(|(name, _)| *name == "avg"), "the discipline's gauges");
        assert_eq!(plain(quiet), plain(traced));
    }

    /// Under deficit round robin what each class gets of a full link is as its quantum. (Windows of 20 packets fill the link and
    /// both queues without a loss, so that both always have something to send.)
    #[test]
    fn shares_are_as_the_quanta() {
        let drr = r#"[
        { name = "ef", aqm = "drop_tail", limit = "100 packets", quantum = "1 packets" },
        { name = "af", aqm = "drop_tail", limit = "100 packets", quantum = "3 packets" },
    ]"#;
        let set = [("links.bottleneck.queue.scheduler", "drr"), ("links.bottleneck.queue.classes", drr)];
        let outcome = run(&with(&set), false);
        let [ef, af] = outcome.links[0].classes.as_slice() else { panic!("two classes") };
        let ratio = sent(af) as f64 / sent(ef) as f64;
        assert!((ratio - 3.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn a_class_that_nobody_looks_at_is_warned_of() {
        let text =
            include_str!("good/two-flows.toml").replacen("count = 2\n", "count = 2\nclass = \"af\"\n", 1);
        let scenario = Scenario::parse(&text, "two-flows.toml", &[], &Registry::default()).unwrap();
        let said: Vec<String> = scenario.warnings().iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|w| w.contains("no link on the route of tcp has classes")), "{said:?}");
        // A quantum below a packet is served, with a warning.
        let small = with(&[("links.bottleneck.reverse.queue.classes.ef.quantum", "500 B")]);
        assert!(
            small.warnings().iter().any(|w| w.severity == Severity::Warning && w.path.ends_with("quantum"))
        );
    }

    #[test]
    fn catalogue_and_schema_know_schedulers() {
        let registry = Registry::default();
        let all = catalogue(&registry);
        let drr = all.as_array().unwrap().iter().find(|m| m["name"] == "drr").unwrap();
        assert_eq!((&drr["kind"], &drr["parameters"][0]["name"]), (&json!("scheduler"), &json!("quantum")));
        let schema = schema(&registry);
        let queues = schema["$defs"]["queue"]["oneOf"].as_array().unwrap();
        let drr = queues.iter().find(|q| q["title"] == "drr").unwrap();
        let class = &drr["properties"]["classes"]["items"]["oneOf"][0];
        assert!(class["required"].as_array().unwrap().contains(&json!("quantum")));
        assert!(class["properties"].get("rate").is_some());
    }
}

mod warnings {
    //! Experiments that can be run but are hardly meant: the warning, and that the run bears it out.

    use super::*;

    /// A thousand TCPs that start together, before a link of 10 Mbit/s with 100 packets.
    const CROWD: &str = r#"
title = "crowd"
duration = "790 ms"
measure = { from = "0 s", to = "790 ms" }
[[links]]
name = "link"
from = "A"
to = "B"
rate = "10 Mbit/s"
delay = "400 ms"
queue = { aqm = "drop_tail", limit = "100 packets" }
[[flows]]
name = "tcp"
count = 1000
from = "A"
to = "B"
"#;

    fn scenario(text: &str) -> Scenario {
        crate::parse(text)
    }

    fn said(scenario: &Scenario) -> Vec<String> {
        scenario.warnings().iter().map(ToString::to_string).collect()
    }

    fn run(scenario: &Scenario) -> Outcome {
        crate::run(scenario.network(1, false))
    }

    /// No flow has had an answer by the end: all that is dropped is SYNs, as many as the warning says.
    #[test]
    fn syns_that_are_lost_together_are_counted_beforehand() {
        let from_hosts = |rtt: &str| {
            CROWD.replace(
                "count = 1000\nfrom = \"A\"\nto = \"B\"\n",
                &format!(
                    "count = 1000\nfrom = \"H*\"\njoin = {{ node = \"A\", rate = \"1 Gbit/s\" }}\nto = \"B\"\nrtt = \"{rtt}\"\n"
                ),
            )
        };
        for (text, lost) in [
            // One is being sent, 100 wait.
            (CROWD.to_owned(), Some(899)),
            (from_hosts("810 ms"), Some(899)),
            // In 10 ms the link sends 312 SYNs of 40 B.
            (from_hosts("810..830 ms"), Some(587)),
            (CROWD.replace("count = 1000", "count = 1000\nstart = \"uniform 0..500 ms\""), None),
            (CROWD.replace("limit = \"100 packets\"", "limit = \"1000 packets\""), None),
            (CROWD.replace("count = 1000", "count = 150"), None),
        ] {
            let scenario = scenario(&text);
            let said = said(&scenario);
            let drops: u64 = run(&scenario).drops.iter().flat_map(|d| d.packets).sum();
            match lost {
                None => assert!(said.is_empty() && drops < 100, "{said:?} {drops}"),
                Some(lost) => {
                    let [warning] = &said[..] else { panic!("{said:?}") };
                    assert!(
                        warning.contains(&format!(
                            "{lost} of 1000 SYNs find the queue of link, 100 packets, full"
                        )),
                        "{warning}"
                    );
                    assert!(drops.abs_diff(lost) <= 2, "{drops} {warning}");
                    assert!(warning.contains("fewer flows"), "{warning}");
                }
            }
        }
        let longer = scenario(&CROWD.replace("duration = \"790 ms\"", "duration = \"60 s\""));
        assert!(said(&longer)[0].contains("write start = \"uniform 0..2 s\""), "{:?}", said(&longer));
    }

    /// 1,000 B at 1 kbit/s take 8 s.
    #[test]
    fn a_packet_that_takes_longer_than_the_run_is_said() {
        let slow = |duration: &str| {
            let text = CROWD.replace("790 ms", duration).replace("10 Mbit/s", "1 kbit/s").replace(
                "count = 1000\nfrom = \"A\"\nto = \"B\"\n",
                "from = \"A\"\nto = \"B\"\ntraffic = { kind = \"cbr\", rate = \"1 kbit/s\" }\n",
            );
            let scenario = scenario(&text);
            let received: u64 = run(&scenario).flows[0].total.received.iter().sum();
            (said(&scenario).concat(), received)
        };
        let (warning, received) = slow("8 s");
        assert!(warning.contains("a packet of 1000 B takes 8.4 s, 8.4 s of it at link (1 kbit/s), and the run ends at 8 s: none arrives"), "{warning}");
        assert_eq!(received, 0);
        assert_eq!(slow("9 s"), (String::new(), 1));
    }
}

//! Good files: what is in effect, the same experiment written two ways, and the networks that are built.

use std::path::Path;

use inprofile_core::registry::Registry;
use inprofile_core::units::{Backlog, Duration, Rate, Time};
use inprofile_experiment::text::{extends, file};
use inprofile_experiment::{Scenario, Severity};
use inprofile_sim::network::{Network, Profile, Queue, Target, Transport};
use inprofile_sim::tcp;

fn with(name: &str, set: &[(&str, &str)]) -> Scenario {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good").join(name), set)
}

/// An experiment in a file, with what it extends.
fn read(path: &Path, set: &[(&str, &str)]) -> Scenario {
    let (text, name) = (std::fs::read_to_string(path).unwrap(), path.display().to_string());
    let bases = extends::bases(&text, &name, &file::read);
    match bases.and_then(|b| {
        Scenario::parse_extended(&text, &name, &b, &crate::overrides(set), &Registry::default())
    }) {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{}", problems.iter().map(|p| format!("{p}\n")).collect::<String>()),
    }
}

fn load(name: &str) -> Scenario {
    with(name, &[])
}

fn path_names(net: &Network, flow: usize) -> (Vec<&str>, Vec<&str>) {
    let names = |path: &[u32]| path.iter().map(|l| net.links[*l as usize].name.as_str()).collect();
    (names(&net.flows[flow].path), names(&net.flows[flow].back))
}

fn round_trip(net: &Network, flow: usize) -> Duration {
    let f = &net.flows[flow];
    f.path.iter().chain(&f.back).map(|l| net.links[*l as usize].delay).sum()
}

/// Every path leads from link to link, from the sender to the receiver and back.
fn assert_connected(net: &Network) {
    for flow in &net.flows {
        for (path, from, to) in [(&flow.path, flow.from, flow.to), (&flow.back, flow.to, flow.from)] {
            let mut at = from;
            for l in path {
                let link = &net.links[*l as usize];
                assert_eq!(link.from, at, "{} does not go on from where it is", flow.name);
                at = link.to;
            }
            assert_eq!(at, to, "{}", flow.name);
        }
    }
}

#[test]
fn every_good_file_makes_a_connected_network() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = ["tests/good", "../../python/inprofile/papers/ard"]
        .map(|folder| std::fs::read_dir(here.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    let experiments = entries
        .into_iter()
        .flatten()
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .filter(|path| !["paper.toml", "advice.toml"].iter().any(|other| path.ends_with(other)));
    let mut files = 0;
    for path in experiments {
        let (scenario, name) = (read(&path, &[]), path.display());
        let net = scenario.network(1, true);
        assert_connected(&net);
        assert!(net.trace);
        for (row, (i, flow)) in scenario.flow_rows().zip(net.flows.iter().enumerate()) {
            assert_eq!(row.name, flow.name);
            assert_eq!(row.contract, flow.contract);
            assert_eq!(row.rtt, round_trip(&net, i), "{name}: {}", row.name);
        }
        assert_eq!(scenario.flow_rows().count(), net.flows.len());
        files += 1;
    }
    assert!(files >= 10);
}

/// The middle of a range, as the mean of the round-trip times that more flows would have.
#[test]
fn a_range_of_round_trip_times_is_its_middle_for_one_flow() {
    for (range, middle) in
        [("26..32 ms", Duration::from_millis(29)), ("30..30 ms", Duration::from_millis(30))]
    {
        let net =
            with("two-flows.toml", &[("flows.tcp.count", "1"), ("flows.tcp.rtt", range)]).network(1, false);
        assert_eq!(round_trip(&net, 0), middle, "{range}");
    }
}

#[test]
fn paper_a_with_four_flows() {
    let scenario = load("four-flows.toml");
    assert_eq!(scenario.seeds(), 30);
    assert!(scenario.warnings().is_empty(), "{:?}", scenario.warnings());
    let net = scenario.network(7, false);
    assert_eq!(net.nodes, ["ER", "CR1", "CR2", "tcp.0", "tcp.1", "tcp.2", "tcp.3"]);
    assert_eq!(net.links.len(), 2 * (2 + 4));
    assert_eq!(
        path_names(&net, 2),
        (
            vec!["tcp.2.join", "edge", "bottleneck"],
            vec!["bottleneck.reverse", "edge.reverse", "tcp.2.join.reverse"]
        )
    );
    for (i, ms) in [26, 28, 30, 32].into_iter().enumerate() {
        assert_eq!(round_trip(&net, i), Duration::from_millis(ms));
        assert_eq!(net.links[4 + 2 * i].delay, Duration::from_millis(ms / 2 - 6));
        assert!(!net.links[4 + 2 * i].reported);
        assert!(net.flows[i].start < Time::from_secs(1.0));
        assert_eq!(net.flows[i].contract, Some(Rate(250_000)));
        assert!(net.flows[i].marker.is_some());
    }
    assert_eq!(net.links[2].rate, Rate(1_200_000));
    assert!(matches!(net.links[2].queue, Queue::One { limit: Backlog::Packets(100.0), .. }));
    assert_eq!(scenario.measured(), 2);
    assert_eq!(net.window, (Time::from_secs(100.0), Time::from_secs(200.0)));
    assert_eq!(net.edges[0].name, "ER");
    let names: Vec<_> = net.monitors.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["bottleneck", "tcp.0", "tcp.1", "tcp.2", "tcp.3", "ER"]);
    assert_eq!(net.monitors[4].target, Target::Flow(3));
}

#[test]
fn starts_are_drawn_one_a_flow_and_differ_by_seed_only() {
    let starts =
        |s: &Scenario, seed| s.network(seed, false).flows.iter().map(|f| f.start).collect::<Vec<_>>();
    let four = load("four-flows.toml");
    assert_eq!(starts(&four, 3), starts(&four, 3));
    assert_ne!(starts(&four, 3), starts(&four, 4));
    // Another rate or range leaves the draws alone.
    let slower = with("four-flows.toml", &[("links.bottleneck.rate", "2 Mbit/s")]);
    assert_eq!(starts(&four, 3), starts(&slower, 3));
    let wider = with("four-flows.toml", &[("flows.tcp.start", "uniform 0..2 s")]);
    for (narrow, wide) in starts(&four, 3).into_iter().zip(starts(&wider, 3)) {
        assert!(wide.0.abs_diff(2 * narrow.0) <= 2);
    }
}

#[test]
fn routes_and_delays_of_a_mesh() {
    let scenario = load("mesh.toml");
    let net = scenario.network(1, false);
    assert_eq!(path_names(&net, 0), (vec!["a", "b.reverse", "c"], vec!["c.reverse", "b", "a.reverse"]));
    // 1 + 2 + 3 there, 3 + 2 + 4 back.
    assert_eq!(round_trip(&net, 0), Duration::from_millis(15));
    let rtts: Vec<_> = (1..4).map(|i| round_trip(&net, i)).collect();
    assert_eq!(rtts, [Duration::from_millis(21), Duration::from_micros(30_500), Duration::from_millis(40)]);
    // 21 ms: 10.5 there, of which 6 on the way; 10.5 back, of which 9.
    let join = |i: usize| {
        (
            net.links[net.flows[i].path[0] as usize].delay,
            net.links[*net.flows[i].back.last().unwrap() as usize].delay,
        )
    };
    assert_eq!(join(1), (Duration::from_micros(4_500), Duration::from_micros(1_500)));
    assert_eq!(path_names(&net, 4), (vec!["near.0.join"], vec!["near.0.join.reverse"]));
    assert_eq!(net.links[1].rate, Rate(2_000_000));
    assert_eq!(net.flows[3].start, Time::from_secs(2.5));
    // The slowest link by its forward direction is measured where nothing is said.
    assert_eq!(scenario.measured(), 2);
    assert_eq!(net.profile, Profile::Exact);
    let Transport::Tcp(rfc) = &net.flows[0].transport else { panic!("bulk TCP") };
    assert_eq!(
        (rfc.profile, rfc.segment, rfc.window, rfc.initial_window),
        (tcp::Profile::Rfc, 1460, 1000, 10)
    );
    assert_eq!(rfc.delayed_ack, Some(Duration::from_millis(100)));
    let Transport::Tcp(ns2) = &net.flows[1].transport else { panic!("bulk TCP") };
    assert_eq!((ns2.profile, ns2.segment, ns2.window, ns2.initial_window), (tcp::Profile::Ns2, 1000, 64, 2));
    assert_eq!((ns2.delayed_ack, ns2.min_rto), (None, Duration::from_millis(200)));
}

/// RFC 7323 §2.3: 2^30 B is the largest window.
#[test]
fn the_largest_window_is_a_gibibyte() {
    let set = |window: &str| {
        let set = [("tcp.segment", "1024 B"), ("tcp.window", window)].map(|(k, v)| (k.into(), v.into()));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good/two-flows.toml");
        let parsed = Scenario::parse_bytes(&std::fs::read(path).unwrap(), "two", &set, &Registry::default());
        parsed.map(|_| ()).map_err(|problems| problems[0].to_string())
    };
    assert_eq!(set("1048576 packets"), Ok(()));
    let said = set("1048577 packets").expect_err("one more");
    assert!(said.contains("more than TCP can offer"), "{said}");
}

#[test]
fn the_same_experiment_has_one_canonical_text() {
    let (one, other) = (load("two-flows.toml"), load("two-flows-otherwise.toml"));
    assert_eq!(one.canonical(), other.canonical());
    // What is not the experiment is not in it; everything else is.
    assert_eq!(one.canonical(), with("two-flows.toml", &[("seeds", "7")]).canonical());
    for (key, value) in [
        ("title", "Other"),
        ("duration", "21 s"),
        ("measure.from", "6 s"),
        ("links.bottleneck.rate", "1.2001 Mbit/s"),
        ("links.bottleneck.delay", "5.000000001 ms"),
        ("links.bottleneck.queue.w_q", "0.0020001"),
        ("links.edge.queue.limit_rule", "waiting"),
        ("links.edge.reverse.delay", "0 s"),
        ("flows.tcp.rtt", "26 ms"),
        ("flows.tcp.start", "0 s"),
        ("flows.tcp.contract", "251 kbit/s"),
        ("flows.tcp.marker.starts_full", "false"),
        ("flows.tcp.tcp.window", "21 packets"),
        ("tcp.jitter", "1 ms"),
        ("engine.profile", "ns2"),
        ("edges.ER.marker.kind", "arm"),
        ("monitors.0.every", "1 s"),
    ] {
        assert_ne!(one.canonical(), with("two-flows.toml", &[(key, value)]).canonical(), "{key}");
    }
}

#[test]
fn canonical_is_json_with_sorted_keys() {
    let text = load("four-flows.toml").canonical();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["links"][1]["ways"][0]["rate"], 1_200_000);
    let keys: Vec<_> =
        ["\"duration\"", "\"edges\"", "\"engine\"", "\"flows\"", "\"format\"", "\"links\"", "\"measure\""]
            .iter()
            .map(|k| text.find(k).unwrap())
            .collect();
    assert!(keys.is_sorted(), "{keys:?}");
}

#[test]
fn describe_shows_what_was_left_out() {
    let d = load("two-flows.toml").describe();
    assert_eq!(d["tcp"]["segment"], "1000 B");
    assert_eq!(d["tcp"]["min_rto"], "200 ms");
    assert_eq!(d["tcp"]["limited_transmit"], true);
    assert_eq!(d["engine"]["profile"], "exact");
    let bottleneck = &d["links"][2];
    assert_eq!(bottleneck["name"], "bottleneck");
    assert_eq!(bottleneck["queue"]["w_q"], 0.002);
    assert_eq!(bottleneck["queue"]["avg_update"], "clark_fang");
    let min_th = &bottleneck["queue"]["in"]["min_th"];
    assert_eq!(
        (&min_th["packets"], &min_th["bytes"], &min_th["ms"]),
        (&45.0.into(), &46_800.0.into(), &312.0.into())
    );
    // Nobody wrote it: it is said where it comes from.
    assert_eq!(d["links"][3]["queue"]["limit_rule"], "ns2");
    assert_eq!(d["links"][3]["queue"]["limit_rule_from"], "tcp.profile");
    assert_eq!(d["links"][3]["queue"]["limit"]["packets"], 10_000.0);
    let flows = &d["flows"][0];
    assert_eq!(flows["marker"]["rate"], "the flow's contract");
    assert_eq!(flows["marker"]["starts_full"], true);
    assert_eq!(flows["route"], serde_json::json!(["edge", "bottleneck"]));
    assert_eq!(flows["join"]["delay"], serde_json::json!(["7 ms", "8 ms"]));
    assert_eq!(d["edges"][0]["marker"]["p_drop"], 0.02);
    // The RFC profile reads a limit literally.
    let mesh = load("mesh.toml").describe();
    assert_eq!(mesh["links"][2]["queue"]["limit_rule"], "waiting");
    assert!(mesh["links"][2]["queue"].get("limit_rule_from").is_none());
    // What is written is not from elsewhere.
    let written = with("two-flows.toml", &[("links.edge.queue.limit_rule", "\"ns2\"")]).describe();
    assert_eq!(written["links"][0]["queue"]["limit_rule"], "ns2");
    assert!(written["links"][0]["queue"].get("limit_rule_from").is_none());
}

#[test]
fn what_papers_do_is_a_warning() {
    let said = |set: &[(&str, &str)]| {
        let scenario = with("two-flows.toml", set);
        assert!(scenario.warnings().iter().all(|w| w.severity == Severity::Warning));
        scenario.warnings().iter().map(|w| (w.path.clone(), w.problem.clone())).collect::<Vec<_>>()
    };
    assert_eq!(said(&[]), []);
    let over = said(&[("flows.tcp.contract", "700 kbit/s")]);
    assert_eq!(over.len(), 1);
    assert!(over[0].1.contains("1.4 Mbit/s, more than the 1.2 Mbit/s of bottleneck"), "{over:?}");
    let above = said(&[("links.bottleneck.queue.in.max_th", "160 packets")]);
    assert_eq!(above[0].0, "links.bottleneck.queue.in.max_th");
    let unseen = said(&[("edges.ER.node", "CR1"), ("flows.tcp.join.node", "CR2"), ("flows.tcp.to", "CR1")]);
    assert!(unseen.iter().any(|(_, p)| p.contains("no flow's data crosses the measured link")), "{unseen:?}");
    let idle = said(&[
        ("edges.0", "{ node = \"CR1\", marker = { kind = \"blind_drop\", p = 0.1 } }"),
        ("flows.tcp.from", "CR1"),
        ("flows.tcp", "{ name = \"tcp\", from = \"CR1\", to = \"CR2\" }"),
    ]);
    assert_eq!(idle.len(), 1, "{idle:?}");
    assert_eq!(idle[0].0, "edges.CR1");
}

/// REM compares what comes with the rate that it was told at first; where that changes, this is said with what to write.
#[test]
fn rem_before_a_rate_that_changes_is_warned() {
    let text = std::fs::read_to_string("tests/good/two-flows.toml").unwrap().replace(
        "rate = \"1.2 Mbit/s\"\n",
        "rate = \"1.2 Mbit/s\"\ncapacity = { steps = [{ at = \"30 s\", rate = \"600 kbit/s\" }] }\n",
    );
    let said = |queue: &str| {
        let set = [
            ("links.bottleneck.queue".to_owned(), queue.to_owned()),
            ("monitors".to_owned(), "[]".to_owned()),
        ];
        let scenario = Scenario::parse(&text, "rem.toml", &set, &Registry::default()).unwrap();
        scenario.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let warnings = said(r#"{ aqm = "rem", limit = "100 packets" }"#);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.contains("compares its input with 1.2 Mbit/s all the time"), "{warning}");
    assert!(warning.contains(r#"write mismatch = "backlog""#), "{warning}");
    assert_eq!(said(r#"{ aqm = "rem", limit = "100 packets", mismatch = "backlog" }"#), [""; 0]);
    assert_eq!(said(r#"{ aqm = "pie", limit = "100 packets" }"#), [""; 0]);
}

#[test]
fn a_hundred_thousand_flows_are_cheap() {
    let scenario = with(
        "two-flows.toml",
        &[("flows.tcp.count", "100000"), ("flows.tcp.rtt", "26..32 ms"), ("monitors", "[]")],
    );
    let net = scenario.network(1, false);
    assert_eq!(net.flows.len(), 100_000);
    assert_eq!(net.links.len(), 4 + 200_000);
    assert_eq!(round_trip(&net, 99_999), Duration::from_millis(32));
    assert_eq!(net.flows[99_999].name, "tcp.99999");
}

/// A goal is part of what is shown, and no part of what is run.
#[test]
fn a_plan_is_read_and_leaves_the_experiment_as_it_is() {
    let text = std::fs::read_to_string("tests/good/two-flows.toml").unwrap();
    let parse =
        |plan: &str| Scenario::parse(&format!("{text}{plan}"), "x", &[], &Registry::default()).unwrap();
    let bare = parse("");
    let asked = parse("[plan]\nkept = 0.95\nschemes = [\"rio\"]\n[plan.router]\ncustomers = \"vlan\"\n");
    assert_eq!(asked.canonical(), bare.canonical());
    assert!(bare.describe().get("plan").is_none());
    assert!(parse("[plan]\n").describe().get("plan").is_none(), "an empty table asks for nothing");
    let router = serde_json::json!({ "inside": "lan0", "outside": "wan0", "direction": "upstream", "customers": "vlan", "first": 1 });
    let plan = serde_json::json!({ "kept": 0.95, "delay": null, "best_effort": "0 bit/s", "schemes": ["rio"], "router": router });
    assert_eq!(asked.describe()["plan"], plan);
}

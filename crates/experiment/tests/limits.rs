//! At the edges of what can be asked for: no delay at all, sequence numbers that wrap, contracts above the link, and (for
//! `make soak`) a million packets.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;
use inprofile_sim::outcome::Outcome;

fn parse(text: &str) -> Scenario {
    match Scenario::parse(text, "limits", &[], &Registry::default()) {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{}", problems.iter().map(|p| format!("{p}\n")).collect::<String>()),
    }
}

fn run(text: &str) -> Outcome {
    engine::run(parse(text).network(1, false), &AtomicBool::new(false), None).expect("the run ends")
}

fn file(duration: &str, tcp: &str, rate: &str, delay: &str, queue: &str, flows: &str) -> String {
    format!(
        "title = \"limits\"\nduration = \"{duration}\"\n[tcp]\n{tcp}\n[[links]]\nname = \"link\"\nfrom = \"A\"\nto = \"B\"\n\
         rate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = {{ {queue} }}\n[[flows]]\nname = \"tcp\"\nfrom = \"A\"\nto = \"B\"\n{flows}\n"
    )
}

/// Every discipline and, at the host, every marker that takes no more than a contract, with a round trip of nothing.
#[test]
fn a_round_trip_of_nothing() {
    for profile in ["rfc", "ns2"] {
        for queue in [
            "aqm = \"drop_tail\", limit = \"20 packets\"",
            "aqm = \"red\", limit = \"20 packets\", min_th = \"2 packets\", max_th = \"6 packets\", max_p = 0.1",
            "aqm = \"fdd_red\", limit = \"20 packets\", min_th = \"2 packets\", max_th = \"6 packets\", max_p = 0.1",
        ] {
            let flows = "count = 2\ncontract = \"300 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"2 packets\" }";
            let text = file("5 s", &format!("profile = \"{profile}\""), "1 Mbit/s", "0 s", queue, flows);
            let scenario = parse(&text);
            assert!(scenario.flow_rows().all(|f| f.rtt.0 == 0));
            let o = run(&text);
            let sent: u64 = o.links[0].window.sent_bytes.iter().sum();
            assert!(sent as f64 * 8.0 / 5.0 > 0.4e6, "{profile} {queue}: {sent} B");
            assert!(scenario.metrics(&o).iter().all(|m| m.value.is_finite()));
        }
    }
}

/// 2³² bytes are passed at about 3.5 s of 6: the second half is like the first, and every byte is delivered once.
#[test]
fn sequence_numbers_wrap_within_a_run() {
    let halves = |from: &str, to: &str| {
        let tcp = "segment = \"60000 B\"\nwindow = \"500 packets\"\ncongestion = \"sack\"";
        let queue = "aqm = \"red\", limit = \"400 packets\", min_th = \"50 packets\", max_th = \"300 packets\", max_p = 0.01";
        let flows = "contract = \"5 Gbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"20 packets\" }";
        let text = file("6 s", tcp, "10 Gbit/s", "1 ms", queue, flows)
            .replace("[tcp]", &format!("measure = {{ from = \"{from}\", to = \"{to}\" }}\n[tcp]"));
        run(&text)
    };
    let (before, after) = (halves("1 s", "3 s"), halves("4 s", "6 s"));
    let total = after.flows[0].total.in_order_payload_bytes;
    assert!(total > 1 << 32, "{total} bytes");
    assert_eq!(before.flows[0].total, after.flows[0].total);
    let [a, b] = [&before, &after].map(|o| o.flows[0].window.in_order_payload_bytes as f64);
    assert!((a / b - 1.0).abs() < 0.05, "{a} bytes before, {b} after");
}

/// Promises beyond the link's rate get a warning, and share what the link allows.
#[test]
fn contracts_above_the_link() {
    let queue = "aqm = \"rio\", limit = \"50 packets\", in = { min_th = \"20 packets\", max_th = \"40 packets\", max_p = 0.05 }, out = { min_th = \"5 packets\", max_th = \"15 packets\", max_p = 0.2 }";
    let flows = "count = 2\ncontract = [\"900 kbit/s\", \"800 kbit/s\"]\nmarker = { kind = \"token_bucket\", depth = \"5 packets\" }";
    let text = file("20 s", "profile = \"ns2\"", "1 Mbit/s", "10 ms", queue, flows);
    let scenario = parse(&text);
    let warnings: Vec<_> = scenario.warnings().iter().map(|w| w.problem.as_str()).collect();
    assert_eq!(
        warnings,
        ["contracts add up to 1.7 Mbit/s, more than the 1 Mbit/s of link: not all can be kept"]
    );
    let o = run(&text);
    let sent: u64 = o.links[0].window.sent_bytes.iter().sum();
    assert!(sent as f64 * 8.0 / 20.0 > 0.7e6);
    let shares = [0, 1].map(|i| o.flows[i].window.in_order_payload_bytes as f64 * 8.0 / 20.0);
    assert!(shares.iter().all(|s| *s > 2e5), "{shares:?}");
}

/// A link that is slower for a while is warned about by its lowest rate.
#[test]
fn contracts_above_the_lowest_rate() {
    let queue = "aqm = \"drop_tail\", limit = \"50 packets\"";
    let flows = "contract = \"900 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"5 packets\" }";
    let text = file("20 s", "", "1 Mbit/s", "10 ms", queue, flows);
    assert!(parse(&text).warnings().is_empty());
    let capacity = "capacity = { steps = [{ at = \"5 s\", rate = \"500 kbit/s\" }, { at = \"9 s\", rate = \"2 Mbit/s\" }] }";
    let text = text.replace("queue = {", &format!("{capacity}\nqueue = {{"));
    let scenario = parse(&text);
    let warnings: Vec<_> = scenario.warnings().iter().map(|w| w.problem.as_str()).collect();
    assert_eq!(
        warnings,
        ["contracts add up to 900 kbit/s, more than the 500 kbit/s of link: not all can be kept"]
    );
}

/// One flow alone: it has the link, and fairness is 1.
#[test]
fn one_flow() {
    let text = file(
        "20 s",
        "window = \"25 packets\"",
        "1 Mbit/s",
        "10 ms",
        "aqm = \"drop_tail\", limit = \"30 packets\"",
        "",
    );
    let o = run(&text);
    let metrics = parse(&text).metrics(&o);
    let value = |name: &str| metrics.iter().find(|m| m.name == name).map(|m| m.value);
    assert_eq!(value("fi"), Some(1.0));
    let used = value("utilisation").expect("the link has a rate");
    assert!(used > 0.9, "{used}");
}

#[test]
#[ignore = "long: make soak"]
fn a_million_packets() {
    let queue = "aqm = \"rio\", limit = \"500 packets\", in = { min_th = \"200 packets\", max_th = \"400 packets\", max_p = 0.02 }, out = { min_th = \"50 packets\", max_th = \"150 packets\", max_p = 0.1 }";
    let flows = "count = 100\nstart = \"uniform 0..1 s\"\ncontract = \"500 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"5 packets\" }";
    let o = run(&file("150 s", "congestion = \"sack\"", "100 Mbit/s", "10 ms", queue, flows));
    let sent: u64 = o.links[0].total.sent.iter().sum();
    assert!(sent >= 1_000_000, "{sent} packets");
    println!("{sent} packets through one link, {} events, every packet accounted for", o.events);
}

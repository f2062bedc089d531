//! Congestion controls that go by delay or by rate, from an experiment file: LEDBAT and Copa beside Reno, BBR and a paced sender behind short and
//! long queues.

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_sim::engine;

/// Two groups of one flow each, the second from 5 s on, over a link of 10 Mbit/s and a round trip of 50 ms; the queue has room for `limit` packets.
fn file(first: &str, second: Option<&str>, limit: u32) -> String {
    let group = |name: &str, tcp: &str, start: &str| {
        format!(
            "[[flows]]\nname = \"{name}\"\nfrom = \"H*\"\njoin = {{ node = \"L\", rate = \"100 Mbit/s\" }}\nto = \"R\"\nrtt = \"50 ms\"\n\
             start = \"{start}\"\ntcp = {{ {tcp} }}\n"
        )
    };
    format!(
        r#"
title = "Delay and rate"
duration = "40 s"
measure = {{ from = "20 s", at = "bottleneck" }}
tcp = {{ profile = "linux", congestion = "sack" }}

[[links]]
name = "bottleneck"
from = "L"
to = "R"
rate = "10 Mbit/s"
delay = "1 ms"
queue = {{ aqm = "drop_tail", limit = "{limit} packets" }}

[[monitors]]
queue = "bottleneck"
every = "50 ms"

{}{}"#,
        group("a", first, "0 s"),
        second.map_or(String::new(), |tcp| group("b", tcp, "5 s")),
    )
}

/// Goodput of both groups in bit/s, the mean queue in seconds, packets lost over packets sent.
struct Outcome {
    goodput: Vec<f64>,
    queue: f64,
    loss: f64,
}

fn run(text: &str) -> Outcome {
    let scenario = Scenario::parse(text, "file.toml", &[], &Registry::default())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let outcome = engine::run(scenario.network(1, false), &AtomicBool::new(false), None).expect("it runs");
    let metrics = scenario.metrics(&outcome);
    let value =
        |name: &str| metrics.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("no {name}")).value;
    let seconds = 20.0;
    let payload =
        |f: &inprofile_sim::outcome::FlowOutcome| f.window.in_order_payload_bytes as f64 * 8.0 / seconds;
    Outcome {
        goodput: outcome.flows.iter().map(payload).collect(),
        queue: value("queue_mean"),
        loss: value("loss_in"),
    }
}

/// RFC 6817 §2.1 to §2.3 and §3.3: alone, the link is full and the queueing delay what it aims at: 83 packets of 1500 B at 100 ms, a fifth of that at
/// 20 ms; nothing is lost.
#[test]
fn ledbat_keeps_the_queue_at_its_target() {
    for (target, packets) in [("100 ms", 83.3), ("20 ms", 16.7)] {
        let o = run(&file(&format!("congestion = \"ledbat\", target = \"{target}\""), None, 400));
        assert!(o.goodput[0] > 9.5e6, "{target}: {:?}", o.goodput);
        assert!((o.queue / packets - 1.0).abs() < 0.15, "{target}: {} packets", o.queue);
        assert_eq!(o.loss, 0.0);
    }
}

/// RFC 6817 §2.1: it yields to Reno, which fills the queue beyond the target; two Renos share. It was first, and knows the path
/// without a queue. §3.3: in a queue shorter than the target it is
/// no more than Reno.
#[test]
fn ledbat_yields_to_reno() {
    let o = run(&file("congestion = \"ledbat\"", Some("congestion = \"sack\""), 400));
    assert!(o.goodput[0] < 0.05 * o.goodput[1] && o.goodput[1] > 8.5e6, "{:?}", o.goodput);
    let reno = run(&file("congestion = \"sack\"", Some("congestion = \"sack\""), 200));
    assert!(reno.goodput[0] > 0.3 * reno.goodput[1], "{:?}", reno.goodput);
    let short = run(&file("congestion = \"ledbat\"", Some("congestion = \"sack\""), 30));
    assert!(short.goodput[0] < 1.3 * short.goodput[1], "{:?}", short.goodput);
}

/// draft-ietf-ccwg-bbr §3.1: full use of the link with a queue well below the path's volume (42 packets), however long the queue may
/// become; and behind a short one, few losses.
#[test]
fn bbr_fills_the_link_and_not_the_queue() {
    let o = run(&file("congestion = \"bbr\"", None, 1000));
    assert!(o.goodput[0] > 9.3e6, "{:?}", o.goodput);
    assert!(o.queue < 15.0, "{}", o.queue);
    let short = run(&file("congestion = \"bbr\"", None, 10));
    assert!(short.goodput[0] > 8.8e6 && short.loss < 0.01, "{:?}, {}", short.goodput, short.loss);
}

/// Pacing spaces what slow start sends: behind a queue of a quarter of the path's volume it gets further before the first loss.
#[test]
fn paced_slow_start_needs_a_shorter_queue() {
    let got = |pacing: bool| {
        let text = file(&format!("congestion = \"cubic\", pacing = {pacing}"), None, 10);
        let early = text.replace("from = \"20 s\"", "from = \"0 s\", to = \"2 s\"");
        run(&early).goodput[0]
    };
    let (paced, unpaced) = (got(true), got(false));
    assert!(paced > 1.1 * unpaced, "{paced} with, {unpaced} without");
}

/// Copa (NSDI 2018, §2.2): alone, the link is full with two packets and a little more in the queue; of two flows each has as many there;
/// it yields to Reno, whose queue it cannot tell from one of its own making.
#[test]
fn copa_keeps_a_few_packets_in_the_queue() {
    let o = run(&file("congestion = \"copa\"", None, 400));
    assert!(o.goodput[0] > 9.3e6, "{:?}", o.goodput);
    assert!((1.0..3.5).contains(&o.queue), "{} packets", o.queue);
    assert_eq!(o.loss, 0.0);
    let two = run(&file("congestion = \"copa\"", Some("congestion = \"copa\""), 400));
    assert!(
        two.goodput[0] / two.goodput[1] < 1.3 && two.goodput[1] / two.goodput[0] < 1.3,
        "{:?}",
        two.goodput
    );
    assert!((3.0..6.0).contains(&two.queue), "{} packets", two.queue);
    let reno = run(&file("congestion = \"copa\"", Some("congestion = \"sack\""), 400));
    assert!(reno.goodput[0] < 0.2 * reno.goodput[1], "{:?}", reno.goodput);
}

/// Copa's target is below what a short queue holds, and every acknowledgement is judged by it, whatever was lost: slow start's losses are
/// the only ones.
#[test]
fn copa_loses_little_behind_a_short_queue() {
    for (rate, limit) in [(20, 10), (100, 50)] {
        let text = file("congestion = \"copa\"", None, limit)
            .replace("\"100 Mbit/s\"", "\"1 Gbit/s\"")
            .replace("10 Mbit/s", &format!("{rate} Mbit/s"))
            .replace("rtt = \"50 ms\"", "rtt = \"40 ms\"")
            .replace("duration = \"40 s\"", "duration = \"20 s\"")
            .replace("from = \"20 s\"", "from = \"0 s\"");
        let o = run(&text);
        assert!(o.loss < 0.01, "{rate} Mbit/s: {}", o.loss);
        assert!(o.goodput[0] > 0.9e6 * f64::from(rate), "{rate} Mbit/s: {:?}", o.goodput);
    }
}

//! A stage that is looked at late and seldom decides the same as one that is looked at all the time.

use std::sync::atomic::AtomicBool;

use inprofile_core::packet::{Colour, Ecn, FlowId, Kind, Packet};
use inprofile_core::registry::Registry;
use inprofile_core::units::{Duration, Time};
use inprofile_experiment::Scenario;
use inprofile_sim::outcome::Outcome;
use inprofile_sim::stage::{Egress, HostReport, Stage};
use inprofile_sim::tcp::Flags;
use inprofile_sim::traffic::ExternalSender;

/// When, whose, which way.
fn packets() -> Vec<(Time, u32, bool)> {
    let data = (0..3_000).map(|i| (Time(i * 1_000_000_000 + i % 7 * 1_000), (i % 4) as u32, i % 5 != 0));
    data.collect()
}

fn packet(forward: bool) -> Packet {
    let (size, payload, kind) = if forward { (1040, 1000, Kind::Data) } else { (40, 0, Kind::Ack) };
    Packet { flow: FlowId(0), size, payload, kind, ecn: Ecn::Ect0, ..Packet::default() }
}

/// Puts the packets in at their times, and looks besides every `every`, if at all.
fn run(every: Option<Duration>) -> (Outcome, Vec<Egress>) {
    let text = include_str!("emulate.toml");
    let scenario = Scenario::parse(text, "emulate.toml", &[], &Registry::default()).expect("a good one");
    let mut stage = Stage::new(scenario.network(7, true));
    let stop = AtomicBool::new(false);
    let (mut out, mut looked) = (Vec::new(), Time::ZERO);
    for (at, flow, forward) in packets() {
        while let Some(every) = every.filter(|e| looked + *e < at) {
            looked += every;
            assert!(stage.advance(looked, &stop, |e| out.push(e)));
        }
        assert!(stage.advance(at, &stop, |e| out.push(e)));
        stage.put(flow, &packet(forward), forward, Flags::NONE);
    }
    let sender = ExternalSender::default();
    stage.report_hosts(0, &HostReport { sender: Some(sender), in_order_bytes: 12_500 });
    assert!(stage.due().is_some_and(|at| at > Time(2_999_000_000_000)));
    assert!(!stage.advance(Time::from_secs(10.0), &stop, |e| out.push(e)), "the run is over after 6 s");
    let outcome = stage.finish().expect("the books add up");
    (Outcome { events: 0, ..outcome }, out)
}

#[test]
fn looking_late_changes_no_verdict() {
    let (outcome, out) = run(None);
    let (again, same) = run(Some(Duration::from_micros(137)));
    assert_eq!(outcome.verdicts, again.verdicts);
    assert_eq!((&outcome.links, &outcome.drops), (&again.links, &again.drops));
    assert_eq!(out, same);

    // 2,400 of the 3,000 are data: 2 × the link's rate, half IN at most, and the queue overflows.
    let bottleneck = &outcome.links[0].total;
    assert_eq!(bottleneck.arrived.iter().sum::<u64>(), 2_400);
    assert!(bottleneck.arrived[0] > 0 && bottleneck.arrived[1] > 0 && bottleneck.dropped_of(Colour::OUT) > 0);
    let came = out.iter().filter(|e| e.forward).count() as u64;
    assert_eq!(came, bottleneck.sent.iter().sum::<u64>());
    assert_eq!(out.len() as u64 - came, 600);
    // Each came out when its wait, 2.08 ms at 4 Mbit/s and the propagation were over, not when somebody looked.
    assert!(out.windows(2).all(|w| w[0].at <= w[1].at));
    assert_eq!(outcome.flows[0].total.in_order_payload_bytes, 12_500);
    assert_eq!(outcome.flows[0].total.in_order_wire_bytes, 12_500 + 13 * 40);
}

/// Acknowledgements of real hosts in a burst on a slow way back: of those that wait and say no more than later ones, two are left; ECN's
/// flags, options and other flags stay.
#[test]
fn a_filter_takes_acknowledgements_of_real_hosts() {
    let text = r#"
title = "A slow way back"
duration = "6 s"
[[links]]
name = "bottleneck"
from = "A"
to = "B"
rate = "10 Mbit/s"
delay = "1 ms"
queue = { aqm = "drop_tail", limit = "100 packets" }
reverse = { rate = "10 kbit/s", queue = { aqm = "drop_tail", limit = "100 packets" }, ack_filter = true }
[[flows]]
name = "f"
from = "A"
to = "B"
"#;
    let scenario = Scenario::parse(text, "x.toml", &[], &Registry::default()).expect("a good one");
    let mut stage = Stage::new(scenario.network(1, false));
    let (stop, mut out) = (AtomicBool::new(false), Vec::new());
    // The first is sent at once; all others wait.
    let acks = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|ack| match ack {
        4 => (ack, 52, Flags::NONE),
        6 => (ack, 40, Flags::ECE),
        7 => (ack, 40, Flags::SYN),
        _ => (ack, 40, Flags::NONE),
    });
    assert!(stage.advance(Time::from_secs(1.0), &stop, |e| out.push(e)));
    for (ack, size, flags) in acks {
        stage.put(0, &Packet { ack, size, payload: 0, ..packet(false) }, false, flags);
    }
    assert!(stage.advance(Time::from_secs(5.0), &stop, |e| out.push(e)));
    let came: Vec<u32> = out.iter().map(|e| e.packet.ack).collect();
    assert_eq!(came, [1, 4, 5, 6, 7, 8, 9]);
}

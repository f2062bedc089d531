//! RED and RIO against ns-2.35: every arrival at a bottleneck of the real thing, and whether it dropped it.
//!
//! Each `golden/ns2-*.txt` is one queue's life in a run of the script of the same name: `+` joined, `x` dropped,
//! `-` left (`I`, `i`, `O`, `o` by colour for RIO), `~s` the link has been idle for s seconds. Links are
//! 1.5 Mbit/s, packets 1040 B, ns-2's mean_pktsize_ 1000 B; TCP itself is not replayed, only what it sent.

use inprofile_core::packet::{Colour, Packet};
use inprofile_core::params::{Context, Value, Values};
use inprofile_core::queue::fifo::{Fifo, Stamped};
use inprofile_core::registry::{AnyAqm, Registry};
use inprofile_core::units::{Backlog, Bytes, Duration, Rate, Time};
use inprofile_core::verdict::{Admission, Silent};

fn packets(n: f64) -> Value {
    Value::Backlog(Backlog::Packets(n))
}

fn thresholds(min_th: f64, max_th: f64, max_p: f64) -> Vec<(&'static str, Value)> {
    vec![("min_th", packets(min_th)), ("max_th", packets(max_th)), ("max_p", Value::Number(max_p))]
}

fn build(name: &str, mut own: Vec<(&'static str, Value)>) -> AnyAqm {
    own.extend([
        ("ecn", Value::Flag(false)),
        ("byte_scaled", Value::Flag(false)),
        ("mean_packet", Value::Bytes(Bytes(1000))),
        ("variant", Value::Choice("ns2")),
    ]);
    if name == "red" {
        own.push(("drop", Value::Choice("tail")));
    }
    let context =
        Context { link_rate: Some(Rate(1_500_000)), contract: None, packet: Bytes(1040), limit: None };
    let registry = Registry::default();
    let entry = registry.aqms.iter().find(|e| e.name == name).expect("a registered discipline");
    let values = Values(own);
    (entry.check)(&values, &context).expect("parameters that go together");
    (entry.build)(&values, &context)
}

/// The same life with our verdicts. TCP agents take two numbers each off the stream before the first packet.
fn relive(golden: &str, limit: f64, mut aqm: AnyAqm, draws: u32) -> String {
    let mut rng = inprofile_core::ns2::rng::stream(1);
    for _ in 0..draws {
        rng.uniform();
    }
    let mut queue = Fifo::new(Backlog::Packets(limit));
    let mut now = Time::ZERO;
    let mut ours = String::new();
    for word in golden.split_whitespace() {
        if let Some(idle) = word.strip_prefix('~') {
            queue.went_idle(now);
            now += Duration::from_secs(idle.parse().expect("seconds"));
            ours.extend([' ', '~']);
            ours.push_str(idle);
            ours.push(' ');
            continue;
        }
        for event in word.chars() {
            if event == '-' {
                ours.push(if queue.pop().is_some() { '-' } else { '?' });
                continue;
            }
            let colour = if matches!(event, 'O' | 'o') { Colour::OUT } else { Colour::IN };
            let packet = Packet { size: 1040, colour, ..Packet::default() };
            let verdict =
                queue.arrive(now, &packet, Stamped { packet, since: now }, &mut aqm, &mut rng, &mut Silent);
            let (joined, dropped) = match event {
                '+' | 'x' => ('+', 'x'),
                'O' | 'o' => ('O', 'o'),
                _ => ('I', 'i'),
            };
            ours.push(if verdict == Admission::Admit { joined } else { dropped });
        }
    }
    ours
}

fn same(golden: &str, limit: f64, aqm: AnyAqm, draws: u32) {
    let ours = relive(golden, limit, aqm, draws);
    let tidy = |s: &str| s.split_whitespace().collect::<Vec<_>>().join("");
    let (ours, theirs) = (tidy(&ours), tidy(golden));
    let at = ours.bytes().zip(theirs.bytes()).position(|(a, b)| a != b);
    if let Some(at) = at {
        let from = at.saturating_sub(60);
        panic!("event {at}:\n ours {}\nns-2 {}", &ours[from..at + 20], &theirs[from..at + 20]);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn red_that_waits_is_ns2s() {
    let mut own = thresholds(5.0, 15.0, 0.02);
    own.extend([("w_q", Value::Number(0.002)), ("gentle", Value::Flag(false)), ("wait", Value::Flag(true))]);
    same(include_str!("golden/ns2-red.txt"), 25.0, build("red", own), 4);
}

#[test]
fn gentle_red_that_does_not_wait_is_ns2s() {
    let mut own = thresholds(3.0, 9.0, 0.1);
    own.extend([("w_q", Value::Number(0.01)), ("gentle", Value::Flag(true)), ("wait", Value::Flag(false))]);
    same(include_str!("golden/ns2-red-gentle.txt"), 25.0, build("red", own), 12);
}

#[test]
fn rio_with_the_fault_in_its_averages_is_ns2s() {
    let own = vec![
        ("in", Value::Group(Values(thresholds(4.0, 12.0, 0.05)))),
        ("out", Value::Group(Values(thresholds(2.0, 6.0, 0.2)))),
        ("w_q", Value::Number(0.05)),
        ("gentle", Value::Flag(false)),
        ("wait", Value::Flag(true)),
        ("avg_update", Value::Choice("ns2")),
        ("count", Value::Choice("own")),
        ("watch", Value::Flag(false)),
    ];
    same(include_str!("golden/ns2-rio.txt"), 20.0, build("rio", own), 12);
}

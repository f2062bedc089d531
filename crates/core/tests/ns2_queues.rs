//! PI, REM and FQ against ns-2.35: every arrival at a bottleneck of the real thing, whether it dropped it, and whose packet left when.
//!
//! Each `golden/ns2-*.txt` is one queue's life in a run of the script of the same name: microseconds since the last event, what
//! happened (`+` joined, `x` dropped, `-` left), and the flow's number. Links are 1.5 Mbit/s; a flow's first packet is a SYN of
//! 40 B, the others have one size. TCP itself is not replayed, only what it sent.

use inprofile_core::packet::{FlowId, Packet};
use inprofile_core::params::{Context, Default as Fallback, Value, Values};
use inprofile_core::queue::fifo::{Fifo, Stamped};
use inprofile_core::registry::{AnyAqm, Registry};
use inprofile_core::signal::Outbox;
use inprofile_core::units::{Backlog, Bytes, Duration, Rate, Time};
use inprofile_core::verdict::{Admission, Silent};

fn build(name: &str, own: Vec<(&'static str, Value)>) -> AnyAqm {
    let context =
        Context { link_rate: Some(Rate(1_500_000)), contract: None, packet: Bytes(1000), limit: None };
    let registry = Registry::default();
    let entry = registry.aqms.iter().find(|e| e.name == name).expect("a registered discipline");
    let given = |name| own.iter().find(|(n, _)| *n == name).map(|(n, v)| (*n, v.clone()));
    let all = entry.fields.iter().filter_map(|f| {
        given(f.name).or_else(|| match f.default {
            Fallback::Value(value) => Some((f.name, value())),
            _ => None,
        })
    });
    let values = Values(all.collect());
    (entry.check)(&values, &context).expect("parameters that go together");
    (entry.build)(&values, &context)
}

/// The same life with our verdicts, and with our choice of the packet that leaves. Each of two TCP agents has taken two
/// numbers off the stream before the first packet.
fn same(golden: &str, limit: f64, sizes: [u32; 2], mut aqm: AnyAqm) {
    let mut rng = inprofile_core::ns2::rng::stream(1);
    for _ in 0..4 {
        rng.uniform();
    }
    let mut queue = Fifo::before(Backlog::Packets(limit), &aqm);
    let mut outbox = Outbox::default();
    let mut ticks = aqm.tick(Time::ZERO, &mut outbox);
    let (mut now, mut begun) = (Time::ZERO, [false; 2]);
    for (i, word) in golden.split_whitespace().enumerate() {
        let at = word.find(['+', 'x', '-']).expect("an event");
        let (since, flow) =
            (word[..at].parse().expect("microseconds"), word[at + 1..].parse().expect("a flow"));
        now += Duration::from_micros(since);
        while let Some(due) = ticks.filter(|due| *due <= now) {
            ticks = aqm.tick(due, &mut outbox);
        }
        let ours = if word[at..].starts_with('-') {
            let left = queue.depart(now, |p: &Stamped| p.packet, &mut aqm, &mut rng, &mut Silent, |_, _| ());
            left.map_or_else(|| "nothing leaves".to_owned(), |p| format!("-{}", p.flow.0))
        } else {
            let size =
                if std::mem::replace(&mut begun[flow as usize], true) { sizes[flow as usize] } else { 40 };
            let packet = Packet { flow: FlowId(flow), size, ..Packet::default() };
            let item = Stamped { packet, since: now };
            let verdict = queue.arrive(now, &packet, item, &mut aqm, &mut rng, &mut Silent);
            format!("{}{flow}", if verdict == Admission::Admit { '+' } else { 'x' })
        };
        assert_eq!(ours, word[at..], "event {i}, at {} s", now.secs());
    }
}

fn packets(n: f64) -> Value {
    Value::Backlog(Backlog::Packets(n))
}

#[test]
fn pi_is_ns2s() {
    let own = vec![
        ("q_ref", packets(5.0)),
        ("a", Value::Number(0.002)),
        ("b", Value::Number(0.0018)),
        ("w", Value::Number(97.3)),
        ("variant", Value::Choice("ns2")),
    ];
    same(include_str!("golden/ns2-pi.txt"), 12.0, [1040, 1040], build("pi", own));
}

#[test]
fn rem_is_ns2s() {
    let own = vec![
        ("b_star", packets(4.0)),
        ("gamma", Value::Number(0.02)),
        ("phi", Value::Number(1.02)),
        ("in_weight", Value::Number(0.5)),
        ("t_update", Value::Duration(Duration::from_micros(13_700))),
        ("variant", Value::Choice("ns2")),
    ];
    same(include_str!("golden/ns2-rem.txt"), 12.0, [1040, 1040], build("rem", own));
}

#[test]
fn fq_is_ns2s() {
    let own = vec![("flow_limit", Value::Count(6))];
    same(include_str!("golden/ns2-fq.txt"), 1e6, [1040, 440], build("ns2_fq", own));
}

//! Signals from mechanism to mechanism: sent by ticks, carried with a delay, some lost, delivered in order; what
//! oracles are told; and acknowledgements shown to queues.

use std::cell::RefCell;

use inprofile_core::aqm::{Aqm, At};
use inprofile_core::marker::Marker;
use inprofile_core::mechanism::Mechanism;
use inprofile_core::packet::{Direction, FlowId, Kind, Packet};
use inprofile_core::queue::Queue;
use inprofile_core::registry::{AnyAqm, AnyMarker, Entry, Registry};
use inprofile_core::rng::Rng;
use inprofile_core::signal::{Oracle, Outbox, Signal};
use inprofile_core::units::{Duration, Time};
use inprofile_core::verdict::{Admission, Cause, Mark, Why};
use inprofile_experiment::Scenario;
use inprofile_sim::outcome::Outcome;

thread_local! {
    /// The signals that mechanisms received, in order: who, when, what.
    static TOLD: RefCell<Vec<(&'static str, Time, Signal)>> = const { RefCell::new(Vec::new()) };
    /// Acknowledgements a queue saw: when, whose.
    static SEEN: RefCell<Vec<(Time, FlowId)>> = const { RefCell::new(Vec::new()) };
}

fn tell(who: &'static str, now: Time, signal: &Signal) {
    TOLD.with_borrow_mut(|t| t.push((who, now, *signal)));
}

/// Sends two numbered signals every 100 ms, and passes everything.
struct Sender {
    sent: f64,
    oracle: Option<Oracle>,
}

impl Mechanism for Sender {
    fn keeps_time(&self) -> bool {
        true
    }

    fn sends(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        for _ in 0..2 {
            outbox.signals.push(Signal { topic: "number", flow: None, value: self.sent });
            self.sent += 1.0;
        }
        Some(now + Duration::from_millis(100))
    }

    fn signal(&mut self, now: Time, signal: &Signal) {
        tell("marker", now, signal);
    }

    fn oracle(&self) -> Option<Oracle> {
        self.oracle
    }
}

impl Marker for Sender {
    fn mark<W: Why + ?Sized>(&mut self, _: Time, packet: &Packet, _: &mut Rng, _: &mut W) -> Mark {
        Mark::Pass(packet.colour)
    }
}

/// Drop-tail that writes down what it is told and shown.
struct Listener;

impl Mechanism for Listener {
    fn keeps_time(&self) -> bool {
        true
    }

    fn sees_reverse(&self) -> bool {
        true
    }

    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        assert_eq!((direction, packet.kind), (Direction::Reverse, Kind::Ack));
        SEEN.with_borrow_mut(|s| s.push((now, packet.flow)));
    }

    fn signal(&mut self, now: Time, signal: &Signal) {
        tell("queue", now, signal);
    }

    fn oracle(&self) -> Option<Oracle> {
        Some(Oracle::Rtt)
    }
}

impl Aqm for Listener {
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        if at.queue.fits(packet.size) { Admission::Admit } else { Admission::Drop(Cause::OVERFLOW) }
    }
}

fn registry() -> Registry {
    let mut r = Registry::default();
    let sender = Entry {
        name: "sender",
        summary: "Sends numbers.",
        source: "this test",
        fields: &[],
        check: &|_, _| Ok(Vec::new()),
        build: &|_, _| AnyMarker::Custom(Box::new(Sender { sent: 0.0, oracle: None })),
    };
    let asker = Entry {
        name: "asker",
        build: &|_, _| AnyMarker::Custom(Box::new(Sender { sent: 0.0, oracle: Some(Oracle::Window) })),
        ..sender
    };
    r.markers.extend([sender, asker]);
    r.aqms.push(Entry {
        name: "listener",
        summary: "Listens.",
        source: "this test",
        fields: &[],
        check: &|_, _| Ok(Vec::new()),
        build: &|_, _| AnyAqm::Custom(Box::new(Listener)),
    });
    r
}

/// A flow of its own beside two from hosts; 7 ms from the edge's node to the queue's.
const BASE: &str = r#"
title = "signals"
duration = "1 s"
[tcp]
window = "20 packets"
[[links]]
name = "access"
from = "A"
to = "E"
rate = "10 Mbit/s"
delay = "2 ms"
queue = { aqm = "drop_tail", limit = "100 packets" }
[[links]]
name = "edge"
from = "E"
to = "C"
rate = "10 Mbit/s"
delay = "7 ms"
queue = { aqm = "drop_tail", limit = "100 packets" }
[[links]]
name = "bottleneck"
from = "C"
to = "D"
rate = "4 Mbit/s"
delay = "11 ms"
queue = { aqm = "listener", limit = "100 packets" }
[[flows]]
name = "tcp"
count = 2
from = "H*"
join = { node = "A", rate = "10 Mbit/s" }
to = "D"
rtt = ["50 ms", "60 ms"]
marker = { kind = "sender" }
[[flows]]
name = "near"
from = "C"
to = "D"
start = "0.45 s"
tcp = { window = "6 packets" }
[[edges]]
node = "E"
marker = { kind = "sender" }
[[edges]]
node = "C"
marker = { kind = "asker" }
"#;

fn scenario(more: &str) -> Scenario {
    match Scenario::parse(&format!("{BASE}{more}"), "signals", &[], &registry()) {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{problems:#?}"),
    }
}

fn run(more: &str, seed: u64, trace: bool) -> (Outcome, Vec<(&'static str, Time, Signal)>) {
    TOLD.take();
    SEEN.take();
    let network = scenario(more).network(seed, trace);
    let outcome = crate::run(network);
    (outcome, TOLD.take())
}

fn numbers(told: &[(&'static str, Time, Signal)]) -> Vec<(Time, f64)> {
    let numbered = told.iter().filter(|(who, _, s)| *who == "queue" && s.topic == "number");
    numbered.map(|(_, at, s)| (*at, s.value)).collect()
}

fn ms(t: f64) -> Time {
    Time((t * 1e9) as u64)
}

#[test]
fn every_signal_comes_in_order_after_the_delay_of_the_links() {
    let (outcome, told) = run("[[signals]]\nfrom = \"E\"\nto = \"bottleneck\"\n", 1, false);
    // Ticks at 0, 100, … 1000 ms: the last one's signals are on their way when the run ends.
    let expected: Vec<(Time, f64)> =
        (0..20).map(|i| (ms(7.0 + f64::from(i / 2 * 100)), f64::from(i))).collect();
    assert_eq!(numbers(&told), expected);
    let s = outcome.signals[0];
    assert_eq!((outcome.signals.len(), s.sent, s.lost, s.delivered), (1, 22, 0, 20));
}

#[test]
fn a_set_delay_counts_and_none_is_the_same_moment() {
    let (_, told) = run("[[signals]]\nfrom = \"E\"\nto = \"bottleneck\"\ndelay = \"0 s\"\n", 1, false);
    let at: Vec<Time> = numbers(&told).iter().map(|n| n.0).collect();
    assert_eq!(at[..4], [ms(0.0), ms(0.0), ms(100.0), ms(100.0)]);
    assert_eq!(at.len(), 22);
}

#[test]
fn each_flow_of_a_group_has_a_path_that_begins_at_its_host() {
    let more =
        "[[signals]]\nfrom = \"tcp\"\nto = \"bottleneck\"\n[[signals]]\nfrom = \"tcp.1\"\nto = \"E\"\n";
    let network = scenario(more).network(1, false);
    let delays: Vec<u64> = network.signals.iter().map(|s| s.delay.0 / 1_000_000_000).collect();
    // Half of 50 and 60 ms, less the 20 ms to D: 5 and 10 ms to A; then 2 + 7 ms, or 2 ms.
    assert_eq!(delays, [14, 19, 12]);
    let names: Vec<&str> = network.signals.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["tcp.0 to bottleneck", "tcp.1 to bottleneck", "tcp.1 to E"]);
}

#[test]
fn lost_ones_are_counted_and_the_rest_keep_their_order() {
    let more = "[[signals]]\nfrom = \"E\"\nto = \"bottleneck\"\nloss = 0.5\n";
    let (outcome, told) = run(more, 3, false);
    let s = outcome.signals[0];
    let got = numbers(&told);
    assert_eq!(s.sent, 22);
    assert!(s.lost > 3 && s.lost < 19, "{s:?}");
    assert_eq!(got.len() as u64, s.delivered);
    assert!(s.sent - s.lost - s.delivered <= 2);
    assert!(got.windows(2).all(|w| w[0].1 < w[1].1));
    assert_eq!(run(more, 3, false), run(more, 3, false));
    assert_ne!(numbers(&run(more, 4, false).1), got);
    // What is lost changes nothing else: packets meet the fate that they meet without signals.
    assert_eq!(run("", 3, false).0.flows, outcome.flows);
}

#[test]
fn a_signal_lost_for_good_is_never_delivered() {
    let (outcome, told) = run("[[signals]]\nfrom = \"E\"\nto = \"bottleneck\"\nloss = 1.0\n", 1, false);
    assert_eq!(numbers(&told), []);
    assert_eq!((outcome.signals[0].sent, outcome.signals[0].lost), (22, 22));
}

/// Rtt: once, before the first tick, of each flow that passes. Window: before every tick.
#[test]
fn oracles_tell_the_truth() {
    let (_, told) = run("", 1, false);
    let rtt: Vec<_> = told.iter().filter(|(_, _, s)| s.topic == "rtt").collect();
    let values: Vec<_> = rtt.iter().map(|(who, at, s)| (*who, at.0, s.flow, s.value)).collect();
    assert_eq!(
        values,
        [
            ("queue", 0, Some(FlowId(0)), 0.050),
            ("queue", 0, Some(FlowId(1)), 0.060),
            ("queue", 0, Some(FlowId(2)), 0.022)
        ]
    );
    // The edge at C sees what comes to it by a link: not the flow that begins there. Ticks at 0, 100, … 1000 ms.
    let windows: Vec<_> = told.iter().filter(|(_, _, s)| s.topic == "window").collect();
    assert_eq!(windows.len(), 22);
    assert!(windows.iter().all(|(who, _, s)| *who == "marker" && s.flow < Some(FlowId(2))));
    let of_first: Vec<f64> =
        windows.iter().filter(|(_, _, s)| s.flow == Some(FlowId(0))).map(|(_, _, s)| s.value).collect();
    // The SYN: one segment of 1460 + 40 B. At 100 ms the initial window of ten, grown by the first acknowledgements.
    assert_eq!(of_first[0], 1500.0);
    assert!(of_first[1] >= 15_000.0 && of_first[1] < 40_000.0, "{of_first:?}");
}

#[test]
fn windows_are_none_before_the_start_and_bounded_by_the_receivers() {
    let here = BASE.replace("node = \"C\"", "node = \"D\"").replace("to = \"D\"\nstart", "to = \"F\"\nstart");
    let more = "[[links]]\nname = \"beyond\"\nfrom = \"D\"\nto = \"F\"\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\nqueue = { aqm = \"drop_tail\", limit = \"100 packets\" }\n";
    TOLD.take();
    let s =
        Scenario::parse(&format!("{here}{more}"), "signals", &[], &registry()).expect("a good experiment");
    crate::run(s.network(1, false));
    let told = TOLD.take();
    let of_near: Vec<f64> = told
        .iter()
        .filter(|(_, _, s)| s.topic == "window")
        .inspect(|(_, _, s)| assert_eq!(s.flow, Some(FlowId(2))))
        .map(|(_, _, s)| s.value)
        .collect();
    assert_eq!(of_near[..5], [0.0; 5]);
    assert_eq!(of_near[8..], [6.0 * 1500.0; 3]);
}

/// Computed ahead or stepped, the queue sees each acknowledgement when it comes to its node, 11 ms after it was sent.
#[test]
fn a_queue_sees_acknowledgements_come_back() {
    let (outcome, _) = run("", 1, false);
    let seen = SEEN.take();
    let sent: u64 = outcome.flows.iter().map(|f| f.acks[0]).sum();
    assert!(seen.len() as u64 <= sent && seen.len() as u64 + 30 > sent, "{} of {sent}", seen.len());
    for flow in 0..3 {
        let received = outcome.flows[flow as usize].acks[1];
        let shown = seen.iter().filter(|(_, f)| f.0 == flow).count() as u64;
        assert!(shown >= received && received > 5, "flow {flow}: {shown} of {received}");
    }
    assert!(seen.windows(2).all(|w| w[0].0 <= w[1].0));
    run("", 1, true);
    assert_eq!(SEEN.take(), seen);
}

#[test]
fn bad_connections_are_refused_and_odd_ones_warned_about() {
    let problems = |more: &str| match Scenario::parse(&format!("{BASE}{more}"), "signals", &[], &registry()) {
        Ok(s) => s.warnings().iter().map(|p| p.problem.clone()).collect::<Vec<_>>(),
        Err(problems) => {
            let errors = problems.iter().filter(|p| p.severity == inprofile_experiment::Severity::Error);
            errors.map(|p| format!("error: {}: {}", p.path, p.problem)).collect()
        }
    };
    let connect = |from: &str, to: &str, more: &str| {
        problems(&format!("[[signals]]\nfrom = \"{from}\"\nto = \"{to}\"\n{more}"))
    };
    assert_eq!(
        problems(""),
        [
            "the sender at E sends signals, but no [[signals]] says to whom",
            "the asker at C sends signals, but no [[signals]] says to whom",
            "the sender at tcp sends signals, but no [[signals]] says to whom"
        ]
    );
    assert_eq!(connect("C", "bottleneck", "").len(), 2);
    let odd = connect("edge", "bottleneck", "");
    assert!(odd.contains(&"the drop_tail at edge sends no signals".to_owned()), "{odd:?}");
    assert_eq!(
        connect("nowhere", "bottleneck", ""),
        ["error: signals.0.from: there is no edge at a node, group of flows, flow or link with this name"]
    );
    assert_eq!(
        connect("near", "bottleneck", ""),
        ["error: signals.0.from: the flows of near have no marker"]
    );
    assert_eq!(connect("tcp.2", "E", "").len(), 1);
    assert_eq!(connect("E", "E", ""), ["error: signals.0: the signals end where they start"]);
    assert_eq!(
        connect("E", "bottleneck", "loss = 1.5\n"),
        ["error: signals.0.loss: a probability is from 0 to 1"]
    );
    assert_eq!(connect("E", "bottleneck", "delay = \"-1 s\"\n").len(), 1);
    assert_eq!(connect("E", "bottleneck", "lost = 0.1\n"), ["error: signals.0.lost: unknown key"]);
}

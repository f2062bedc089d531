//! A flow's number that goes to another flow: mechanisms treat it as one that they have never seen.

use inprofile_core::aqm::drop_tail;
use inprofile_core::packet::Colour;
use inprofile_core::params::{Context, Default as Fallback, Value, Values};
use inprofile_core::queue::priority::Priority;
use inprofile_core::queue::scheduled::Setup;
use inprofile_core::registry::{AnyAqm, AnyMarker, AnyScheduler, Entry, Registry};
use inprofile_core::rng::Rng;
use inprofile_core::signal::Signal;
use inprofile_core::units::{Backlog, Bytes, Duration, Rate, Time};
use inprofile_core::verdict::Mark;
use inprofile_live::datapath::marker::Marking;
use inprofile_live::datapath::{
    Charge, Datapath, Decision, FormerFlow, Parts, Policy, Rewrite, Sharing, Treatment, Witness,
};
use inprofile_live::flow::{FiveTuple, Flows, Numbered};
use inprofile_live::packet::{Layer, Seen, Transport, checksum, parse};

/// Numbers that there are: one flow more takes the oldest's.
const PLACES: u32 = 8;

fn tcp(port: u16, seq: u32) -> Vec<u8> {
    let mut p = vec![0u8; 1040];
    (p[0], p[8], p[9], p[32], p[33]) = (0x45, 64, 6, 0x50, 16);
    p[2..4].copy_from_slice(&1040u16.to_be_bytes());
    p[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 1, 1]);
    p[20..22].copy_from_slice(&port.to_be_bytes());
    p[24..28].copy_from_slice(&seq.to_be_bytes());
    let sum = checksum::check(&p[..20]);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    p
}

fn tuple(port: u16) -> FiveTuple {
    let seen = parse(Layer::Ip, &tcp(port, 1));
    FiveTuple::of(&seen.expect("a packet"))
}

/// Numbers flows; the packets of this port, if any, come as OUT and are not metered.
struct Everything(Flows, Option<u16>);

impl Policy for Everything {
    fn decide(&mut self, _: Time, seen: &Seen) -> Decision {
        let Ok(headers) = seen else { return Decision::Pass };
        let Numbered { flow, new } = self.0.number(&FiveTuple::of(headers));
        let Transport::Tcp { ports, .. } = headers.transport else { return Decision::Pass };
        let (colour, marker) =
            if self.1 == Some(ports.0) { (Colour::OUT, None) } else { (Colour::IN, Some(0)) };
        let forget = new.then_some(FormerFlow { markers: [Some(0), None], customer: None });
        let (markers, rewrite) = ([marker, None], Rewrite::Keep);
        let (customer, own_queue, class) = (None, false, 0);
        Decision::Queue(Treatment {
            flow,
            forget,
            customer,
            own_queue,
            class,
            colour,
            markers,
            rewrite,
            clear_link: false,
            contract: None,
        })
    }
}

#[derive(Default)]
struct Marks(Vec<Mark>);

impl Witness for Marks {
    fn marked(&mut self, _: Time, _: u64, _: u16, verdict: Mark) {
        self.0.push(verdict);
    }
    fn send(&mut self, _: Time, _: u64, _: &mut [u8]) {}
}

fn context() -> Context {
    let limit = Some(Backlog::Packets(50.0));
    Context { link_rate: Some(Rate(10_000_000)), contract: None, packet: Bytes(1040), limit }
}

/// The mechanism of this name with these values; what isn't named has its default.
fn built<M>(entries: &[Entry<M>], name: &str, set: &[(&str, Value)]) -> M {
    let entry = entries.iter().find(|e| e.name == name).expect("registered");
    let values = entry.fields.iter().filter_map(|f| {
        let given = set.iter().find(|(n, _)| *n == f.name).map(|(_, v)| v.clone());
        let default = || if let Fallback::Value(v) = f.default { Some(v()) } else { None };
        Some((f.name, given.or_else(default)?))
    });
    (entry.build)(&Values(values.collect()), &context())
}

fn datapath(marker: AnyMarker, aqm: AnyAqm) -> Datapath<Everything> {
    Datapath::new(
        Everything(Flows::new(PLACES, 7), None),
        Parts {
            layer: Layer::Ip,
            markers: vec![Marking::new(marker, Rng::for_component(1, "marker"))],
            classes: vec![Setup {
                number: 0,
                limit: Backlog::Packets(50.0),
                aqm,
                rate: None,
                burst: Bytes(0),
            }],
            scheduler: AnyScheduler::Priority(Priority),
            sharing: Sharing::default(),
            rng: Rng::for_component(1, "queue"),
            rate: Rate(10_000_000),
            charge: Charge::default(),
            age_limit: None,
            buffers: 100,
        },
    )
}

fn drop_tail() -> AnyAqm {
    AnyAqm::DropTail(drop_tail::DropTail::default())
}

/// Runs packets of these ports a millisecond apart, each flow's the first, second, … of its own; what was decided.
fn run(path: &mut Datapath<Everything>, from: u64, ports: &[u16]) -> Vec<Mark> {
    let mut marks = Marks::default();
    for (i, port) in ports.iter().enumerate() {
        let nth = ports[..i].iter().filter(|p| *p == port).count() as u32;
        let now = Time((from + i as u64) * 1_000_000_000);
        path.arrive(now, &mut tcp(*port, 1 + 1000 * nth), &mut marks);
    }
    path.check().expect("nothing is lost");
    marks.0
}

const OLD: u16 = 1000;
const NEW: u16 = 2000;

/// The old flow sends; others fill the table; the new one takes the old one's number.
fn after_another(path: &mut Datapath<Everything>, packets: usize) -> Vec<Mark> {
    run(path, 0, &vec![OLD; packets]);
    let number = |path: &Datapath<Everything>, port| path.policy.0.find(&tuple(port));
    let others: Vec<u16> = (1..PLACES as u16).map(|n| OLD + n).collect();
    run(path, 1_000, &others);
    let old = number(path, OLD);
    assert!(old.is_some(), "it still has it");
    let marks = run(path, 2_000, &vec![NEW; packets]);
    assert_eq!(number(path, NEW), old, "the new one has it now");
    marks
}

/// Markers that count by flow, or remember what it sent: the same verdicts as if nobody had had the number.
#[test]
fn markers_start_over() {
    let registry = Registry::default();
    for (name, set, packets) in
        [("every_nth", vec![("n", Value::Count(7))], 24), ("probe", vec![("a_init", Value::Number(3.0))], 40)]
    {
        let marker = || built(&registry.markers, name, &set);
        let expected = run(&mut datapath(marker(), drop_tail()), 2_000, &vec![NEW; packets]);
        let got = after_another(&mut datapath(marker(), drop_tail()), packets);
        assert_eq!(got, expected, "{name}");
        let out = expected.iter().filter(|m| **m != Mark::Pass(Colour::IN)).count();
        assert!(out > 1 && out < packets, "{name} decides by what it has seen: {out}");
    }
}

/// A contract is a flow's, not a number's.
#[test]
fn contracts_go_with_their_flow() {
    let set = [("rtt", Value::Duration(Duration::from_millis(100)))];
    let mut path = datapath(built(&Registry::default().markers, "twam", &set), drop_tail());
    let contract = |flow, value| Signal { topic: "contract", flow: Some(flow), value };
    // The first flow has number 0: eight places, none taken.
    let old = path.policy.0.number(&tuple(OLD)).flow;
    path.tell(0, Time::ZERO, &contract(old, 1e6));
    // Somebody else keeps one, so that it matters to have none.
    let other = path.policy.0.number(&tuple(OLD + 1)).flow;
    path.tell(0, Time::ZERO, &contract(other, 1e6));
    assert_eq!(run(&mut path, 0, &[OLD; 5]), [Mark::Pass(Colour::IN); 5], "p = 1 before the first interval");
    assert!(!path.policy.0.number(&tuple(OLD + 1)).new, "seen after the first flow");
    let others: Vec<u16> = (2..PLACES as u16).map(|n| OLD + n).collect();
    run(&mut path, 1_000, &others);
    assert_eq!(run(&mut path, 2_000, &[NEW; 5]), [Mark::Pass(Colour::OUT); 5], "no contract, no IN packet");
    assert_eq!(path.policy.0.number(&tuple(NEW)), Numbered { flow: old, new: false });
}

/// RIO's mean for each flow: the new one, which sends OUT packets alone, has none, and the old one's is gone.
#[test]
fn disciplines_start_over() {
    let registry = Registry::default();
    let th = |n| Value::Backlog(Backlog::Packets(n));
    let curve = |min, max| {
        Value::Group(Values(vec![("min_th", th(min)), ("max_th", th(max)), ("max_p", Value::Number(0.1))]))
    };
    let rio = [("in", curve(20.0, 30.0)), ("out", curve(5.0, 10.0)), ("watch", Value::Flag(true))];
    let in_alone = built(&registry.markers, "every_nth", &[("n", Value::Count(1_000))]);
    let mut path = datapath(in_alone, built(&registry.aqms, "rio", &rio));
    path.policy.1 = Some(NEW);
    after_another(&mut path, 12);
    let mut flows = 0;
    let state = path.classes().next().expect("one class");
    state.aqm().flow_gauges(Time::from_secs(3.0), &mut |_, _, _| flows += 1);
    assert_eq!(flows, PLACES - 1);
}

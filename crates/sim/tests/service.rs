//! Whether a link's service is computed ahead or stepped through event by event, a run comes out the same.

use std::sync::atomic::AtomicBool;

use inprofile_core::aqm::{Aqm, At};
use inprofile_core::mechanism::Mechanism;
use inprofile_core::packet::Packet;
use inprofile_core::params::{Context, Default as Fallback, Field, Value, Values};
use inprofile_core::queue::Queue;
use inprofile_core::registry::{AnyAqm, AnyMarker, Entry, Registry};
use inprofile_core::units::{Backlog, Bytes, Duration, Rate, Time};
use inprofile_core::verdict::{Admission, Cause, Departure, Why};
use inprofile_sim::access::{Access, Bursts, Slots};
use inprofile_sim::capacity::Capacity;
use inprofile_sim::engine;
use inprofile_sim::network::{self, Edge, Flow, Link, Monitor, Network, Profile, Target, Transport};
use inprofile_sim::outcome::{Outcome, Series, VerdictPoint};
use inprofile_sim::tcp;
use inprofile_sim::trace::Trace;
use inprofile_sim::traffic::distribution::Distribution;
use inprofile_sim::wire::{Jitter, Law, Loss, Wire};
use proptest::prelude::*;

/// Drop-tail that says it has to be served packet by packet, though it drops nothing at departure.
struct Served;

impl Mechanism for Served {}

impl Aqm for Served {
    fn serves(&self) -> bool {
        true
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let full = !at.queue.fits(packet.size);
        if full { Admission::Drop(Cause::OVERFLOW) } else { Admission::Admit }
    }

    fn depart(&mut self, _: &Packet, _: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        Departure::Send
    }
}

/// The differences between the runs of a test.
#[derive(Clone, Debug)]
struct Plan {
    flows: u32,
    /// The discipline before the edge link and before the bottleneck.
    aqms: [&'static str; 2],
    limits: [f64; 2],
    /// Mbit/s.
    rates: [u64; 2],
    /// The bottleneck's rate changes twice a second.
    capacity: bool,
    /// The edge link and the bottleneck delay packets by different times, the second by bursts of them lost too.
    jitter: [Option<bool>; 2],
    lossy: bool,
    /// How the edge link comes to send: 1: slots, 2: bursts, 3: a trace.
    access: u8,
    /// The way back from the end is slow, and acknowledgements that wait there go as newer ones come.
    filter: bool,
    /// TCP uses ECN, and RED and RIO mark.
    ecn: bool,
    /// Difference between neighbours' delays in µs: at 0 many things happen at once.
    spread: u64,
    jitter_us: u64,
    delayed_ack: bool,
    ard: bool,
    seed: u64,
    /// Of the window, in ms.
    from: u64,
    to: u64,
}

const MS: u64 = 1_000_000_000;
const RUN: u64 = 3_000;

/// Defaults of these fields, but for what is `given`.
fn values(fields: &[Field], given: Vec<(&'static str, Value)>) -> Values {
    let mut all = given;
    for f in fields {
        if let Fallback::Value(v) = f.default
            && all.iter().all(|(name, _)| *name != f.name)
        {
            all.push((f.name, v()));
        }
    }
    Values(all)
}

fn built<M>(entries: &[Entry<M>], name: &str, given: Vec<(&'static str, Value)>, c: &Context) -> M {
    let entry = entries.iter().find(|e| e.name == name).expect("a registered mechanism");
    (entry.build)(&values(entry.fields, given), c)
}

fn packets(n: f64) -> Value {
    Value::Backlog(Backlog::Packets(n))
}

fn curve(min: f64, max: f64, p: f64) -> Vec<(&'static str, Value)> {
    vec![("min_th", packets(min)), ("max_th", packets(max)), ("max_p", Value::Number(p))]
}

fn aqm(name: &str, rate: Rate, limit: f64, ecn: bool) -> AnyAqm {
    if name == "served" {
        return AnyAqm::Custom(Box::new(Served));
    }
    let limit = Some(Backlog::Packets(limit));
    let context = Context { link_rate: Some(rate), contract: None, packet: Bytes(1040), limit };
    let given = match name {
        "red" => {
            let more = [("w_q", Value::Number(0.1)), ("ecn", Value::Flag(ecn))];
            curve(2.0, 6.0, 0.1).into_iter().chain(more).collect()
        }
        "rio" => vec![
            ("in", Value::Group(Values(curve(4.0, 8.0, 0.05)))),
            ("out", Value::Group(Values(curve(2.0, 4.0, 0.2)))),
            ("w_q", Value::Number(0.1)),
            ("ecn", Value::Flag(ecn)),
        ],
        _ => Vec::new(),
    };
    built(&Registry::default().aqms, name, given, &context)
}

fn marker(name: &str, given: Vec<(&'static str, Value)>) -> AnyMarker {
    let context = Context { link_rate: None, contract: None, packet: Bytes(1040), limit: None };
    built(&Registry::default().markers, name, given, &context)
}

/// host i ─10 Mbit/s─ edge ─rates[0]─ core ─rates[1]─ end; acknowledgements go back the same way.
fn network(plan: &Plan, trace: bool, watch: bool) -> Network {
    let mut nodes: Vec<String> = ["edge", "core", "end"].map(String::from).to_vec();
    let mut links = Vec::new();
    let mut add = |from: u32, to: u32, mbit: u64, delay_us: u64, name: &str, limit: f64, reported: bool| {
        let rate = Rate(mbit * 1_000_000);
        links.push(Link {
            name: format!("{from}-{to}"),
            from,
            to,
            rate,
            capacity: None,
            access: None,
            wire: Wire::default(),
            delay: Duration::from_micros(delay_us),
            queue: network::Queue::One {
                aqm: aqm(name, rate, limit, plan.ecn),
                limit: Backlog::Packets(limit),
            },
            reported,
            pause: None,
            ack_filter: false,
        });
        links.len() as u32 - 1
    };
    let [a, b] = plan.aqms;
    let (up, down) = (
        add(0, 1, plan.rates[0], 1_000, a, plan.limits[0], true),
        add(1, 2, plan.rates[1], 5_000, b, plan.limits[1], true),
    );
    let (back_up, back_down) =
        (add(2, 1, 10, 5_000, "drop_tail", 100.0, true), add(1, 0, 10, 1_000, "drop_tail", 100.0, true));
    let mut flows = Vec::new();
    let steps = [(Time(200 * MS), Rate(700_000)), (Time(350 * MS), Rate(3_000_000))];
    let capacity = plan
        .capacity
        .then(|| Capacity::new(Rate(plan.rates[1] * 1_000_000), &steps, Some(Duration::from_millis(500))));
    for i in 0..plan.flows {
        let host = 3 + i;
        nodes.push(format!("h{i}"));
        let delay = 2_000 + u64::from(i) * plan.spread;
        let there = add(host, 0, 10, delay, "drop_tail", 100.0, false);
        let home = add(0, host, 10, delay, "drop_tail", 100.0, false);
        let bucket = vec![("rate", Value::Rate(Rate(250_000))), ("depth", packets(2.0))];
        flows.push(Flow {
            name: format!("tcp.{i}"),
            from: host,
            to: 2,
            path: vec![there, up, down],
            back: vec![back_up, back_down, home],
            start: Time(u64::from(i % 3) * 10 * MS),
            contract: None,
            marker: Some(marker("token_bucket", bucket)),
            class: 0,
            stop: None,
            transport: Transport::Tcp(tcp::Config {
                window: 40,
                settings: tcp::Settings {
                    jitter: Duration::from_micros(plan.jitter_us),
                    ..tcp::Settings::default()
                },
                delayed_ack: plan.delayed_ack.then(|| Duration::from_millis(100)),
                initial_window: 4,
                ecn: plan.ecn,
                ..tcp::Config::plain()
            }),
        });
    }
    links[down as usize].capacity = capacity;
    for (link, reorder) in [up, down].into_iter().zip(plan.jitter) {
        let law = Law::Mean(Duration::from_millis(1), Distribution::Exponential);
        let jitter = |reorder| Jitter { law, most: None, hold: Duration::ZERO, reorder };
        links[link as usize].wire.jitter = reorder.map(jitter);
    }
    links[up as usize].access = match plan.access {
        1 => Some(Access::Slots(Slots {
            every: Duration::from_millis(8),
            length: Duration::from_millis(6 + 6 / plan.rates[0]),
            request: Duration::from_millis(3),
        })),
        2 => Some(Access::Bursts(Bursts {
            overhead: Duration::from_micros(300),
            contention: Duration::from_micros(500),
            most: 8,
        })),
        3 => Some(Access::Trace(Trace::new(vec![1, 1, 4, 9, 9, 9, 20]))),
        _ => None,
    };
    if plan.filter {
        let back = &mut links[back_up as usize];
        (back.rate, back.ack_filter) = (Rate(100_000), true);
    }
    if plan.lossy {
        let loss = Loss { to_bad: 0.02, to_good: 0.3, in_good: 0.0, in_bad: 0.7 };
        links[down as usize].wire.loss = Some(loss);
        links[back_down as usize].wire.loss = Some(Loss::independent(0.02));
    }
    let ard = vec![
        ("tpr_max", Value::Rate(Rate(1_000_000))),
        ("bucket", packets(10.0)),
        ("t_rd", packets(5.0)),
        ("interval", Value::Duration(Duration::from_millis(500))),
    ];
    let edges = plan.ard.then(|| Edge { name: "edge".into(), node: 0, marker: marker("ard", ard) });
    let targets = (0..links.len() as u32).map(Target::Queue).chain((0..plan.flows).map(Target::Flow));
    let every = Duration::from_millis(50);
    let monitors = targets.map(|target| Monitor { name: String::new(), target, every });
    Network {
        nodes,
        flows,
        edges: edges.into_iter().collect(),
        pages: Vec::new(),
        signals: Vec::new(),
        monitors: if watch { monitors.collect() } else { Vec::new() },
        measure: None,
        links,
        duration: Duration::from_millis(RUN),
        window: (Time(plan.from * MS), Time(plan.to * MS)),
        seed: plan.seed,
        profile: Profile::Exact,
        trace,
    }
}

fn outcome(plan: &Plan, trace: bool, watch: bool) -> Outcome {
    engine::run(network(plan, trace, watch), &AtomicBool::new(false), None).expect("the run ends")
}

/// Without what is meant to differ.
fn plain(o: Outcome) -> Outcome {
    Outcome { verdicts: Vec::new(), series: Vec::new(), events: 0, ..o }
}

/// With a number where there is none, which would not even equal itself.
fn comparable(mut o: Outcome) -> Vec<Series> {
    let values = o.series.iter_mut().flat_map(|s| s.columns.iter_mut()).flat_map(|(_, c)| c);
    values.filter(|v| v.is_nan()).for_each(|v| *v = -1.0);
    o.series
}

fn plans() -> impl Strategy<Value = Plan> {
    let names = || prop::sample::select(vec!["drop_tail", "red", "rio", "served"]);
    let limits = || prop::sample::select(vec![2.0, 5.0, 10.0, 50.0]);
    let rates = || prop::sample::select(vec![1u64, 2, 5, 10]);
    let jitters = || prop::sample::select(vec![None, None, Some(false), Some(true)]);
    (
        (1u32..8, names(), names(), limits(), limits(), rates(), rates()),
        (prop::sample::select(vec![0u64, 0, 200, 333]), prop::sample::select(vec![0u64, 0, 1_000])),
        (any::<bool>(), any::<bool>(), any::<u64>()),
        (0u64..1_500, 1_500u64..=RUN),
        (any::<bool>(), any::<bool>(), any::<bool>()),
        ([jitters(), jitters()], any::<bool>(), prop::sample::select(vec![0u8, 0, 1, 2, 3])),
    )
        .prop_map(
            |(
                (flows, a, b, l, m, r, s),
                (spread, jitter_us),
                (delayed_ack, ard, seed),
                (from, to),
                (capacity, ecn, filter),
                (jitter, lossy, access),
            )| Plan {
                flows,
                aqms: [a, b],
                limits: [l, m],
                rates: [r, s],
                capacity,
                jitter,
                lossy,
                access,
                filter,
                ecn,
                spread,
                jitter_us,
                delayed_ack,
                ard,
                seed,
                from,
                to,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Computed ahead, event by event at watched links, and stepped everywhere.
    #[test]
    fn computed_and_stepped_service_agree(plan in plans()) {
        let ahead = outcome(&plan, false, false);
        let watched = outcome(&plan, false, true);
        let stepped = outcome(&plan, true, true);
        prop_assert_eq!(comparable(watched.clone()), comparable(stepped.clone()));
        prop_assert_eq!(plain(watched), plain(stepped.clone()));
        prop_assert_eq!(plain(ahead), plain(stepped));
    }

    /// Where no verdict is recorded, a packet that finds a link idle does not join its queue: in ns-2's order, and in ours where a log
    /// asks for every event.
    #[test]
    fn sent_at_once_and_through_the_queue_agree(plan in plans(), ns2: bool) {
        let run = |trace| {
            let profile = if ns2 { Profile::Ns2 } else { Profile::Exact };
            let plan = if ns2 { Plan { jitter: [None; 2], lossy: false, access: 0, filter: false, ..plan.clone() } } else { plan.clone() };
            let network = Network { profile, ..network(&plan, trace, true) };
            engine::run(network, &AtomicBool::new(false), Some(Box::new(|_| {}))).expect("the run ends")
        };
        let (at_once, queued) = (run(false), run(true));
        prop_assert_eq!(at_once.events, queued.events);
        prop_assert_eq!(comparable(at_once.clone()), comparable(queued.clone()));
        prop_assert_eq!(plain(at_once), plain(queued));
    }
}

/// A plan without anything that comes by chance.
const PLAIN: Plan = Plan {
    flows: 1,
    aqms: ["drop_tail"; 2],
    limits: [50.0; 2],
    rates: [10, 1],
    capacity: false,
    jitter: [None; 2],
    lossy: false,
    access: 0,
    filter: false,
    ecn: false,
    spread: 100,
    jitter_us: 0,
    delayed_ack: false,
    ard: false,
    seed: 1,
    from: 0,
    to: RUN,
};

/// A discipline that is served packet by packet, behind a link that alone feeds it.
#[test]
fn a_served_queue_is_not_computed_ahead() {
    let plan = Plan { flows: 2, aqms: ["drop_tail", "served"], ..PLAIN };
    let (ahead, stepped) = (outcome(&plan, false, false), outcome(&plan, true, true));
    assert_eq!(plain(ahead), plain(stepped));
}

/// A queue that is cut through stays so where a monitor samples it, and none of its samples is an event.
#[test]
fn a_sample_takes_no_event_where_a_queue_passes_it() {
    let plan = Plan { flows: 3, aqms: ["red", "drop_tail"], limits: [50.0, 10.0], rates: [5, 1], ..PLAIN };
    let (alone, watched) = (outcome(&plan, false, false), outcome(&plan, false, true));
    let network = network(&plan, false, true);
    let cut_through = |series: &&Series| match network.monitors[series.monitor as usize].target {
        Target::Queue(l) => {
            let l = &network.links[l as usize];
            // Hosts send over links of their own, and several of these feed the next one.
            l.from < 3 && (l.from, l.to) != (0, 1)
        }
        _ => false,
    };
    let (ahead, by_events): (Vec<_>, Vec<_>) = watched.series.iter().partition(cut_through);
    let samples = |of: &[&Series]| of.iter().map(|series| series.times.len()).sum::<usize>();
    assert!(samples(&ahead) > 100);
    assert_eq!(watched.events, alone.events + samples(&by_events) as u64);
}

/// Acknowledgements that go are counted as evicted at their queue, and among the drops of no flow: those are data.
#[test]
fn acknowledgements_that_a_filter_takes_are_counted() {
    let plan = Plan { flows: 3, rates: [10, 10], filter: true, ..PLAIN };
    let o = outcome(&plan, false, false);
    let back = &o.links[2].total;
    let gone = back.dropped_by(Cause::EVICTED);
    assert!(gone > 500, "{gone}");
    assert_eq!(gone, back.dropped.iter().flatten().sum::<u64>());
    assert!(o.drops.iter().all(|d| d.place != VerdictPoint::Queue(2)));
}

/// What is lost on a link was sent by its queue, is counted by the flow alone, and every packet is accounted for.
#[test]
fn losses_on_a_link_are_counted_apart() {
    let plan = Plan { flows: 4, rates: [10, 10], lossy: true, ..PLAIN };
    let o = outcome(&plan, false, false);
    let lost: u64 = o.drops.iter().filter(|d| d.cause == Cause::LINK_ERROR).flat_map(|d| d.packets).sum();
    assert!(lost > 20, "{lost}");
    assert!(o.drops.iter().all(|d| (d.cause == Cause::LINK_ERROR) == (d.place == VerdictPoint::Link(1))));
    let of_flows: u64 = o.flows.iter().map(|f| f.dropped[Cause::LINK_ERROR.index()]).sum();
    assert_eq!(of_flows, lost);
    assert!(o.links[1].total.dropped.iter().flatten().all(|n| *n == 0));
    let sent: u64 = o.links[1].total.sent.iter().sum();
    let received: u64 = o.flows.iter().flat_map(|f| f.total.received).sum();
    let on_the_way = sent - lost - received;
    assert!(on_the_way < 40, "{on_the_way}");
}

//! What holding an aggregate to a rate costs a packet: a token bucket, the fair policer with and without burst control, and a shaper, which has to keep what it delays.
//!
//! `bench-limiters [ROUNDS [FLOWS]]` prints JSON: CPU time a packet in ns of each round, every limiter in every round, their order
//! changing. Flows send a fifth more than 100 Mbit/s together, in full packets at random moments; the bursts are 250 kB, and so is the
//! shaper's buffer. Of the shaper, what a packet's timer costs is not counted; `shaper_frames` also copies the packet's bytes in and out, as
//! one has to that keeps frames of a ring.

use std::{env, hint};

use inprofile_benches::cpu_time;
use inprofile_core::aqm::drop_tail;
use inprofile_core::marker::{Action, Marker, fair_policer, token_bucket};
use inprofile_core::packet::{Colour, FlowId, Packet};
use inprofile_core::params::{Build, Context};
use inprofile_core::queue::Pace;
use inprofile_core::queue::fifo::Fifo;
use inprofile_core::queue::{Item, Stamped};
use inprofile_core::registry::AnyAqm;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Duration, Rate, Time};
use inprofile_core::verdict::{Mark, Silent};

const RATE: Rate = Rate(100_000_000);
const SIZE: u32 = 1500;
const BURST: Backlog = Backlog::Bytes(250_000.0);
/// Packets of a round.
const PACKETS: usize = 200_000;

/// A packet with its bytes.
struct Frame {
    stamped: Stamped,
    bytes: [u8; SIZE as usize],
}

impl Item for Frame {
    fn size(&self) -> u32 {
        self.stamped.size()
    }
    fn colour(&self) -> Colour {
        self.stamped.colour()
    }
    fn flow(&self) -> FlowId {
        self.stamped.flow()
    }
    fn since(&self) -> Time {
        self.stamped.since()
    }
    fn mark(&mut self) -> bool {
        self.stamped.mark()
    }
}

/// Full packets of `flows` flows at random distances, a fifth more than the rate.
fn stream(flows: u32) -> Vec<(Time, Packet)> {
    let mut rng = Rng::for_component(1, "stream of packets");
    let spacing = f64::from(8 * SIZE) / (1.2 * RATE.0 as f64) * 1e12;
    let mut at = 0.0;
    (0..PACKETS)
        .map(|_| {
            // Uniform up to twice the mean.
            at += spacing * 2.0 * f64::from(rng.below(1 << 20)) / f64::from(1 << 20);
            let flow = FlowId(rng.below(u64::from(flows).try_into().expect("few flows")));
            (Time(at as u64), Packet { flow, size: SIZE, payload: SIZE - 40, ..Packet::default() })
        })
        .collect()
}

fn context() -> Context {
    Context { link_rate: None, contract: Some(RATE), packet: Bytes(u64::from(SIZE)), limit: None }
}

/// CPU time a packet in ns, and the share that passed.
type Cost = (f64, f64);

fn cost(stream: &[(Time, Packet)], mut passes: impl FnMut(Time, &Packet) -> u64) -> Cost {
    let before = cpu_time();
    let passed: u64 = stream.iter().map(|(at, packet)| hint::black_box(passes(*at, packet))).sum();
    ((cpu_time() - before).as_nanos() as f64 / stream.len() as f64, passed as f64 / stream.len() as f64)
}

fn metered<P: Build<Mechanism: Marker>>(stream: &[(Time, Packet)], params: &P) -> Cost {
    let mut marker = params.build(&context());
    let mut rng = Rng::for_component(1, "limiter");
    cost(stream, |at, packet| {
        u64::from(!matches!(marker.mark(at, packet, &mut rng, &mut Silent), Mark::Drop(_)))
    })
}

/// A buffer in front of the rate: what is due leaves before what comes is taken in.
fn shaped<T: Item>(stream: &[(Time, Packet)], hold: impl Fn(Stamped) -> T, send: impl Fn(T)) -> Cost {
    let mut aqm = AnyAqm::DropTail(drop_tail::DropTail::default());
    let mut queue: Fifo<T> = Fifo::before(BURST, &aqm);
    let mut pace = Pace::new(RATE, Bytes(0));
    let mut rng = Rng::for_component(1, "limiter");
    cost(stream, |at, packet| {
        let mut sent = 0;
        while queue.head().is_some() && pace.ready_at() <= at {
            let Some(item) = queue.pop() else { break };
            pace.sent(item.size());
            send(item);
            sent += 1;
        }
        if queue.head().is_none() {
            pace.begin(at);
        }
        let item = hold(Stamped { packet: *packet, since: at });
        hint::black_box(queue.arrive(at, packet, item, &mut aqm, &mut rng, &mut Silent));
        sent
    })
}

fn main() {
    let mut args = env::args().skip(1);
    let mut number = |or| args.next().map_or(or, |n| n.parse().expect("a number"));
    let (rounds, flows): (usize, u32) = (number(20) as usize, number(100));
    let stream = stream(flows);
    let bucket = token_bucket::Params {
        rate: None,
        depth: BURST,
        starts_full: true,
        conforms: token_bucket::Conforms::AtLeast,
        action: Action::Drop,
    };
    let fair = fair_policer::Params {
        rate: None,
        burst: BURST,
        queues: 1024,
        burst_control: None,
        action: Action::Drop,
    };
    // Room for a fifth of a second's half as much again, so that burst control acts.
    let controlled = fair_policer::Params {
        burst: Backlog::Bytes(5_000_000.0),
        burst_control: Some(Duration(200_000_000_000)),
        ..fair.clone()
    };
    let wire = [7_u8; SIZE as usize];
    let measures: [(&str, &dyn Fn() -> Cost); 5] = [
        ("token_bucket", &|| metered(&stream, &bucket)),
        ("fair_policer", &|| metered(&stream, &fair)),
        ("burst_control", &|| metered(&stream, &controlled)),
        ("shaper", &|| shaped(&stream, |stamped| stamped, |_| ())),
        ("shaper_frames", &|| {
            shaped(
                &stream,
                |stamped| Frame { stamped, bytes: *hint::black_box(&wire) },
                |frame| {
                    hint::black_box(frame.bytes);
                },
            )
        }),
    ];
    // One round to warm up, which is not counted.
    let shares: Vec<f64> = measures.iter().map(|(_, measure)| measure().1).collect();
    let mut found = vec![Vec::with_capacity(rounds); measures.len()];
    for round in 0..rounds {
        for turn in 0..measures.len() {
            let which = (round + turn) % measures.len();
            found[which].push(measures[which].1().0);
        }
    }
    println!("{{\n  \"flows\": {flows},\n  \"packets\": {PACKETS},");
    for ((name, _), share) in measures.iter().zip(&shares) {
        println!("  \"{name}_passed\": {share:.4},");
    }
    let lines: Vec<String> = measures
        .iter()
        .zip(&found)
        .map(|((name, _), times)| {
            let list: Vec<String> = times.iter().map(|x| format!("{x:.2}")).collect();
            format!("  \"{name}_ns\": [{}]", list.join(", "))
        })
        .collect();
    println!("{}\n}}", lines.join(",\n"));
}

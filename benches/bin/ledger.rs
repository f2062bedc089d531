//! The cost of a packet with RED alone, and with FDD-RED's ledger on top (claim D10 of paper D).
//!
//! `bench-ledger [ROUNDS]` prints JSON. Flows of 200 kbit/s, as five share the paper's link, load a link to 105 %;
//! the queue has the paper's thresholds and buffer. Round-trip times of 20 to 100 ms are given, so that no estimate of them is timed.
//! In turns, the same packets pass a queue with RED and one with FDD-RED. The time is that of a packet's whole way through the queue.

use std::{env, fs, hint};

use inprofile_benches::cpu_time;
use inprofile_core::aqm::fdd_red::ledger::{Charge, Latest, Ties};
use inprofile_core::aqm::fdd_red::{
    self, AppliesTo, IdleFrom, IdlePenalty, NoPacket, Rtt, RttSource, VictimFlow, VictimPacket,
};
use inprofile_core::aqm::red::common::Common;
use inprofile_core::aqm::red::{self, DropAt};
use inprofile_core::packet::{FlowId, Packet};
use inprofile_core::params::{Build, Context, defaults};
use inprofile_core::queue::Queue;
use inprofile_core::queue::fifo::{Fifo, Stamped};
use inprofile_core::registry::AnyAqm;
use inprofile_core::rng::Rng;
use inprofile_core::signal::Signal;
use inprofile_core::units::{Backlog, Bytes, Rate, Time};
use inprofile_core::verdict::Silent;

/// Numbers of flows: the paper's five, its most, and more.
const FLOWS: [u32; 4] = [5, 100, 1000, 4000];
/// Packets of a round.
const PACKETS: u32 = 100_000;
/// A flow's share of the link in bit/s.
const SHARE: u64 = 200_000;
/// Bytes of a packet, and the paper's buffer in packets.
const SIZE: u32 = 540;
const LIMIT: f64 = 100.0;

fn packets(n: f64) -> Backlog {
    Backlog::Packets(n)
}

/// The paper's RED: 25 and 75 packets, 0.01, 0.002.
fn red() -> red::Params {
    red::Params {
        min_th: packets(25.0),
        max_th: packets(75.0),
        max_p: 0.01,
        byte_scaled: false,
        drop: DropAt::Tail,
        common: Common { w_q: 0.002, gentle: true, ..defaults() },
    }
}

/// The same under the ledger, with round-trip times given.
fn fdd_red() -> fdd_red::Params {
    let red::Params { min_th, max_th, max_p, common, .. } = red();
    fdd_red::Params {
        min_th,
        max_th,
        max_p,
        latest: Latest::Oldest,
        ties: Ties::Random,
        charge: Charge::Both,
        victim_flow: VictimFlow::Ledger,
        victim_packet: VictimPacket::Head,
        no_packet: NoPacket::Arrival,
        applies_to: AppliesTo::EarlyAndOverflow,
        rtt: Rtt::WithQueue,
        idle_penalty: IdlePenalty::Forget,
        idle_from: IdleFrom::Departure,
        rtt_source: RttSource::Oracle,
        flows: 1 << 20,
        common,
    }
}

/// CPU time a packet in ns, and how many flows have an account at the end.
fn through(aqm: &mut AnyAqm, flows: u32) -> (f64, f64) {
    let link = Rate(SHARE * u64::from(flows));
    for flow in 0..flows {
        let value = 0.02 * f64::from(1 + flow % 5);
        aqm.signal(Time::ZERO, &Signal { topic: "rtt", flow: Some(FlowId(flow)), value });
    }
    let mut queue = Fifo::new(Backlog::Packets(LIMIT));
    let (mut rng, mut who) = (Rng::for_component(1, "queue"), Rng::for_component(1, "stream of packets"));
    let serialise = link.serialise(Bytes(u64::from(SIZE))).0;
    let (mut now, mut free) = (0, 0);
    let before = cpu_time();
    for _ in 0..PACKETS {
        // Between 0 and twice the mean: the link is offered a twentieth more than it carries.
        now += (u64::from(who.below(1 << 20)) * ((2 * serialise * 20 / 21) >> 10)) >> 10;
        while free <= now && queue.packets() > 0 {
            hint::black_box(queue.depart(
                Time(free),
                |p: &Stamped| p.packet,
                aqm,
                &mut rng,
                &mut Silent,
                |_, _| (),
            ));
            free += serialise;
        }
        free = free.max(now);
        let packet = Packet { flow: FlowId(who.below(flows)), size: SIZE, payload: 500, ..Packet::default() };
        let item = Stamped { packet, since: Time(now) };
        hint::black_box(queue.arrive(Time(now), &packet, item, aqm, &mut rng, &mut Silent));
        while queue.has_evicted() {
            hint::black_box(queue.take_evicted());
        }
    }
    let time = (cpu_time() - before).as_nanos() as f64 / f64::from(PACKETS);
    let mut accounts = 0.0;
    aqm.gauges(Time(now), &mut |name, value| {
        if name == "flows" {
            accounts = value;
        }
    });
    (time, accounts)
}

/// The processor's name, as Linux has it.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("an unnamed processor");
    name.trim_start_matches([' ', '\t', ':']).replace('"', "")
}

fn main() {
    let rounds: usize = env::args().nth(1).map_or(40, |n| n.parse().expect("a number of rounds"));
    let list = |xs: &[f64]| xs.iter().map(|x| format!("{x:.1}")).collect::<Vec<_>>().join(", ");
    println!("{{\n  \"machine\": \"{}\",\n  \"packets\": {PACKETS},\n  \"by_flows\": [", machine());
    for (i, flows) in FLOWS.into_iter().enumerate() {
        let link_rate = Some(Rate(SHARE * u64::from(flows)));
        let context = Context { link_rate, contract: None, packet: Bytes(u64::from(SIZE)), limit: None };
        let red = || through(&mut AnyAqm::Red(Box::new(red().build(&context))), flows);
        let fdd = || through(&mut AnyAqm::FddRed(Box::new(fdd_red().build(&context))), flows);
        // A round of each to warm up, which is not counted.
        hint::black_box(red());
        let (_, accounts) = fdd();
        let (mut of_red, mut of_fdd) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            if round % 2 == 0 {
                of_red.push(red().0);
                of_fdd.push(fdd().0);
            } else {
                of_fdd.push(fdd().0);
                of_red.push(red().0);
            }
        }
        let comma = if i + 1 < FLOWS.len() { "," } else { "" };
        println!(
            "    {{\"flows\": {flows}, \"accounts\": {accounts:.0}, \"red_ns\": [{}], \"fdd_red_ns\": [{}]}}{comma}",
            list(&of_red),
            list(&of_fdd)
        );
    }
    println!("  ]\n}}");
}

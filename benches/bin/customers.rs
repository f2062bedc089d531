//! What 10,000 customers cost the router, and whether each gets his share.
//!
//! `bench-customers [ROUNDS [flows|state_reads]]` prints JSON; with `flows` or `state_reads` that alone. The router's own code
//! runs on frames from memory, without ports, in virtual time.
//! - `new_flow_ns`: CPU time per packet of new flows, 64 B UDP from addresses in 10.0.0.0/8, with one customer and with 10,000 by
//!   turns, each with a prefix and a token bucket; `ratio`: 10,000 to one within a round, the median of the rounds.
//! - `reload`: replaces a file of 10,000 customers with queues of their own by one with every tenth contract changed: time to read
//!   and to prepare it, beside the packets, and how long packets are held meanwhile.
//! - `state_reads`: `stats` and the metrics of 10,000 customers with queues of their own: how long packets are held at a time
//!   while their state is copied or accounts are checked, at the median and at worst, and how long the rest takes beside them.
//! - `memory_kib`: what such a router takes, and a customer of it.
//! - `share`: 10,000 customers, all backlogged for 10 s at 10 Gbit/s, with packets of 1,500 B, and of 64 B to 1,500 B by customer:
//!   the worst error of a share, relative to it, and in percentage points of the link.

use std::time::Instant;
use std::{env, fs, hint};

use inprofile_benches::{cpu_time, median};
use inprofile_core::units::Time;
use inprofile_live::io::PortCounts;
use inprofile_live::io::afpacket::Oddities;
use inprofile_live::packet::Layer;
use inprofile_router::config::{self, Config};
use inprofile_router::hub::Reloads;
use inprofile_router::metrics;
use inprofile_router::presence::Standing;
use inprofile_router::router::{self, Next, Router};
use inprofile_router::snapshot::{Builder, PortState};

/// Packets of a turn.
const PACKETS: u32 = 400_000;
/// Packets that wait in the ring at a time, of a flood.
const BURST: usize = 64;
/// Bytes of each.
const SIZE: usize = 50;
const CUSTOMERS: u32 = 10_000;

fn read(text: &str) -> Config {
    let read = config::parse(text.as_bytes(), "customers.toml", &router::registry());
    read.unwrap_or_else(|problems| panic!("{}", problems[0])).0
}

fn head(rate: &str) -> String {
    format!(
        "inside = \"a\"\noutside = \"b\"\nflows = 65536\n[upstream]\nrate = \"{rate}\"\nqueue = {{ aqm = \"drop_tail\", limit = \"1000 packets\" }}\n"
    )
}

/// One customer who has 10.0.0.0/8, or 10,000 who share it out among them; the link is never full.
fn flat(n: u32) -> String {
    let mut text = head("100 Gbit/s");
    for i in 0..n {
        let prefix =
            if n == 1 { "10.0.0.0/8".to_owned() } else { format!("10.{}.{}.0/24", i / 100, i % 100) };
        text += &format!(
            "[[upstream.customers]]\nname = \"c{i}\"\nprefix = \"{prefix}\"\ncontract = \"1 Mbit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"15 kB\" }}\n"
        );
    }
    text
}

/// Customers with a queue each; every tenth has the contract `contract`.
fn queued(contract: &str) -> String {
    let mut text = head("10 Gbit/s")
        + "[[upstream.templates]]\nname = \"home\"\ncontract = \"500 kbit/s\"\nmarker = { kind = \"token_bucket\", depth = \"15 kB\" }\nqueue = { aqm = \"drop_tail\", limit = \"50 packets\" }\n";
    for i in 0..CUSTOMERS {
        let own = if i % 10 == 0 { format!("contract = \"{contract}\"\n") } else { String::new() };
        text += &format!(
            "[[upstream.customers]]\nname = \"c{i}\"\ntemplate = \"home\"\nprefix = \"10.{}.{}.0/24\"\n{own}",
            i / 100,
            i % 100
        );
    }
    text
}

/// A UDP packet of `size` bytes from a customer's host, of the `n`th flow.
fn fill(packet: &mut [u8], customer: u32, host: u8, n: u32) {
    let size = packet.len() as u16;
    (packet[0], packet[1], packet[8], packet[9]) = (0x45, 0, 64, 17);
    packet[2..4].copy_from_slice(&size.to_be_bytes());
    packet[24..26].copy_from_slice(&(size - 20).to_be_bytes());
    packet[12..16].copy_from_slice(&[10, (customer / 100) as u8, (customer % 100) as u8, host]);
    packet[16..20].copy_from_slice(&n.to_be_bytes());
}

/// As the packet thread takes in what waits.
fn receive(router: &mut Router, clock: &mut u64, burst: &mut [[u8; SIZE]]) {
    if router.looks_ahead() {
        router.look_anew();
        burst.iter().for_each(|packet| router.foresee(0, packet));
    }
    for packet in burst {
        *clock += 1_000_000;
        router.arrive(Time(*clock), 0, Layer::Ip, packet);
    }
    router.advance(Time(*clock));
    router.lanes[0].leaving.clear();
}

/// CPU time per packet, in nanoseconds.
fn turn(router: &mut Router, clock: &mut u64, flow: &mut u32) -> f64 {
    let mut burst = [[0; SIZE]; BURST];
    let before = cpu_time();
    for i in 0..PACKETS {
        *flow = flow.wrapping_add(1);
        let place = i as usize % BURST;
        // In a scattered order.
        fill(&mut burst[place], i.wrapping_mul(2_654_435_761) % CUSTOMERS, i as u8, *flow);
        if place == BURST - 1 {
            receive(router, clock, &mut burst);
        }
    }
    hint::black_box(&router);
    (cpu_time() - before).as_secs_f64() * 1e9 / f64::from(PACKETS)
}

fn new_flows(rounds: usize) -> String {
    let mut routers = [1, CUSTOMERS].map(|n| Router::new(read(&flat(n)), Layer::Ip, 1));
    let (mut clock, mut flow) = (0, 0);
    let mut found = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for turn_of in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let ns = turn(&mut routers[turn_of], &mut clock, &mut flow);
            // The first round fills tables and caches.
            if round > 0 {
                found[turn_of].push(ns);
            }
        }
    }
    routers.iter().for_each(|r| r.check().expect("every packet is accounted for"));
    let ratios: Vec<f64> = found[1].iter().zip(&found[0]).map(|(many, one)| many / one).collect();
    let [one, many] = found.map(median);
    format!(
        "\"new_flow_ns\": {{\"customers_1\": {one:.0}, \"customers_{CUSTOMERS}\": {many:.0}}}, \"ratio\": {:.3}, \"rounds\": {rounds}",
        median(ratios)
    )
}

/// KiB this process holds now.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux's /proc");
    let line = status.lines().find(|l| l.starts_with("VmRSS")).expect("a size");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of KiB")
}

fn reload() -> String {
    let texts = ["400 kbit/s", "600 kbit/s"].map(queued);
    let before = resident();
    let mut router = Router::new(read(&texts[0]), Layer::Ip, 1);
    let memory = resident() - before;
    let mut clock = 1_000_000_000;
    // Every queue holds something.
    let mut packet = [0; 1500];
    for i in 0..4 * CUSTOMERS {
        fill(&mut packet, i % CUSTOMERS, 1, 1);
        router.arrive(Time(clock), 0, Layer::Ip, &mut packet);
    }
    let (mut reading, mut preparing, mut holding) = (Vec::new(), Vec::new(), Vec::new());
    let waiting = router.waiting();
    for text in texts.iter().rev().cycle().take(5) {
        let ms = |since: Instant| since.elapsed().as_secs_f64() * 1e3;
        let start = Instant::now();
        let new = read(text);
        reading.push(ms(start));
        let start = Instant::now();
        let next = Next::prepare(&router.config, new, Layer::Ip, 1);
        preparing.push(ms(start));
        let start = Instant::now();
        let (next, unused) = router.adopt(next, Time(clock));
        holding.push(ms(start));
        drop(unused);
        router = next;
        clock += 1;
    }
    router.check().expect("every packet is accounted for");
    assert_eq!(router.waiting(), waiting, "no packet is lost");
    let worst = holding.iter().copied().fold(0.0, f64::max);
    format!(
        "\"reload\": {{\"read_ms\": {:.1}, \"prepare_ms\": {:.1}, \"held_ms\": {:.2}, \"held_worst_ms\": {worst:.2}}}, \"memory_kib\": {{\"router\": {memory}, \"customer\": {:.2}}}",
        median(reading),
        median(preparing),
        median(holding),
        memory as f64 / f64::from(CUSTOMERS)
    )
}

/// How long packets are held while the router's state is read.
fn state_reads() -> String {
    let mut router = Router::new(read(&queued("400 kbit/s")), Layer::Ip, 1);
    let mut packet = [0; 1500];
    for i in 0..4 * CUSTOMERS {
        fill(&mut packet, i % CUSTOMERS, 1, 1);
        router.arrive(Time(u64::from(i) * 1_000), 0, Layer::Ip, &mut packet);
    }
    let port = |interface: &str| PortState {
        interface: interface.into(),
        counts: PortCounts::default(),
        oddities: Oddities::default(),
        standing: Standing::Away,
        taken_away: 0,
        link: None,
    };
    let (mut holding, mut telling) = (Vec::new(), Vec::new());
    let mut ms = |since: Instant| holding.push(since.elapsed().as_secs_f64() * 1e3);
    for i in 0..5 {
        let now = Time(1_000_000_000 + i);
        let start = Instant::now();
        let mut building = Builder::begin(&router, now, false, ["a", "b"].map(port));
        ms(start);
        for done in std::iter::repeat_with(|| {
            let start = Instant::now();
            let done = building.go_on(&router, now);
            ms(start);
            done
        }) {
            if done {
                break;
            }
        }
        let start = Instant::now();
        router.audit().expect("every packet is accounted for");
        ms(start);
        let start = Instant::now();
        let mut snapshot = building.finish();
        snapshot.name_all();
        hint::black_box(snapshot.json().to_string());
        hint::black_box(metrics::page(&snapshot, &Reloads::default(), (0, 0)));
        telling.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let worst = holding.iter().copied().fold(0.0, f64::max);
    format!(
        "\"state_reads\": {{\"held_ms\": {:.2}, \"held_worst_ms\": {worst:.2}, \"beside_ms\": {:.1}}}",
        median(holding),
        median(telling)
    )
}

/// The worst error of a customer's share: relative to it, and in percentage points of the link. Every queue is topped up to
/// `waiting` packets and never runs empty.
fn share(seconds: u64, waiting: u64, size: impl Fn(u32) -> usize) -> (f64, f64) {
    let mut router = Router::new(read(&queued("500 kbit/s")), Layer::Ip, 1);
    let mut packet = [0; 1500];
    let mut fill_up = |router: &mut Router, clock: u64| {
        for customer in 0..CUSTOMERS {
            let there = router.lanes[0].path.customers().get(customer as usize).map_or(0, |c| c.waiting());
            let n = size(customer);
            for _ in there..waiting {
                fill(&mut packet[..n], customer, 1, 1);
                router.arrive(Time(clock), 0, Layer::Ip, &mut packet[..n]);
            }
        }
    };
    let sent = |router: &Router| -> Vec<u64> {
        router.lanes[0].path.customers().iter().map(|c| c.sent_bytes.iter().sum()).collect()
    };
    fill_up(&mut router, 0);
    let before = sent(&router);
    for step in 1..=seconds * 1_000 {
        let clock = step * 1_000_000_000;
        router.advance(Time(clock));
        router.lanes[0].leaving.clear();
        let least = router.lanes[0].path.customers().iter().map(|c| c.waiting()).min();
        assert!(least > Some(0), "all are backlogged");
        fill_up(&mut router, clock);
    }
    let each = sent(&router).into_iter().zip(before).map(|(now, before)| (now - before) as f64);
    let each: Vec<f64> = each.collect();
    let (all, fair): (f64, f64) = (each.iter().sum(), 1.0 / f64::from(CUSTOMERS));
    let worst = each.iter().map(|s| (s / all - fair).abs()).fold(0.0, f64::max);
    (worst / fair, worst * 100.0)
}

fn main() {
    let rounds: usize = env::args().nth(1).map_or(7, |n| n.parse().expect("a number of rounds"));
    if env::args().nth(2).is_some_and(|only| only == "flows") {
        return println!("{{{}}}", new_flows(rounds));
    }
    if env::args().nth(2).is_some_and(|only| only == "state_reads") {
        return println!("{{{}}}", state_reads());
    }
    // First, as it tells what memory it takes.
    let reload = reload();
    let state_reads = state_reads();
    let flows = new_flows(rounds);
    let equal = share(10, 5, |_| 1500);
    let mixed = share(10, 45, |customer| [64, 1500, 576, 1280][customer as usize % 4]);
    println!(
        "{{{flows}, {reload}, {state_reads}, \"share\": {{\"equal\": {{\"relative\": {:.5}, \"points\": {:.6}}}, \"mixed\": {{\"relative\": {:.5}, \"points\": {:.6}}}}}}}",
        equal.0, equal.1, mixed.0, mixed.1
    );
}

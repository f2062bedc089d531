//! What 10,000 customers cost the router, against one: a flood of packets of new flows.
//!
//! `bench-customers [ROUNDS]` prints JSON. The router's own code runs on frames from memory, without ports: 64 B UDP, every
//! packet of a flow never seen before, from addresses spread over 10.0.0.0/8. By turns the address space belongs to one
//! customer, and to 10,000 with a prefix and a token bucket each; the ratio is that of one round, its median is printed.

use std::{env, hint};

use inprofile_benches::{cpu_time, median};
use inprofile_core::units::Time;
use inprofile_daemon::config::{self, Config};
use inprofile_daemon::router::{self, Router};
use inprofile_live::packet::Layer;

/// Packets of a turn.
const PACKETS: u32 = 400_000;
/// Bytes of each.
const SIZE: usize = 50;

/// `n` customers who share 10.0.0.0/8 out among them, n a power of ten up to 10,000; the link is never full.
fn file(n: u32) -> Config {
    let mut text = "inside = \"a\"\noutside = \"b\"\nflows = 65536\n[upstream]\nrate = \"100 Gbit/s\"\nqueue = { aqm = \"drop_tail\", limit = \"1000 packets\" }\n".to_owned();
    for i in 0..n {
        let prefix =
            if n == 1 { "10.0.0.0/8".to_owned() } else { format!("10.{}.{}.0/24", i / 100, i % 100) };
        text += &format!(
            "[[upstream.customers]]\nname = \"c{i}\"\nprefix = \"{prefix}\"\ncontract = \"1 Mbit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"15 kB\" }}\n"
        );
    }
    let read = config::parse(text.as_bytes(), "customers.toml", &router::registry());
    read.unwrap_or_else(|problems| panic!("{}", problems[0])).0
}

/// A UDP packet from the `i`th address, of the `n`th flow.
fn fill(packet: &mut [u8; SIZE], i: u32, n: u32) {
    // 10,000 prefixes in a scattered order, a host of 256 each.
    let place = i.wrapping_mul(2_654_435_761) % 10_000;
    packet[12..16].copy_from_slice(&[10, (place / 100) as u8, (place % 100) as u8, i as u8]);
    packet[16..20].copy_from_slice(&n.to_be_bytes());
}

/// CPU time a packet, in nanoseconds.
fn turn(router: &mut Router, clock: &mut u64, flow: &mut u32) -> f64 {
    let mut packet = [0; SIZE];
    (packet[0], packet[8], packet[9]) = (0x45, 64, 17);
    packet[2..4].copy_from_slice(&(SIZE as u16).to_be_bytes());
    packet[24..26].copy_from_slice(&(SIZE as u16 - 20).to_be_bytes());
    let before = cpu_time();
    for i in 0..PACKETS {
        *clock += 1_000_000;
        *flow = flow.wrapping_add(1);
        fill(&mut packet, i, *flow);
        // The DSCP of best effort again: it was painted.
        packet[1] = 0;
        router.arrive(Time(*clock), 0, Layer::Ip, &mut packet);
        if i % 32 == 0 {
            router.advance(Time(*clock));
            router.lanes[0].leaving.clear();
        }
    }
    hint::black_box(&router);
    (cpu_time() - before).as_secs_f64() * 1e9 / f64::from(PACKETS)
}

fn main() {
    let rounds: usize = env::args().nth(1).map_or(7, |n| n.parse().expect("a number of rounds"));
    let mut routers = [1, 10_000].map(|n| Router::new(file(n), Layer::Ip, 1));
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
    let [one, many] = found;
    println!(
        "{{\"new_flow_ns\": {{\"customers_1\": {:.0}, \"customers_10000\": {:.0}}}, \"ratio\": {:.3}, \"rounds\": {rounds}}}",
        median(one),
        median(many),
        median(ratios)
    );
}

//! One dumbbell as a process of its own: `bench-dumbbell FLOWS SECONDS [LEAST_CPU_SECONDS [LAWS]]`.
//!
//! Runs seeds 1, 2, … until the runs have used the CPU time asked for, and prints what they did as `name=value`.

use std::env;
use std::time::Duration;

use inprofile_benches::{Laws, dumbbell, peak_kib, run, through};

fn main() {
    let number = |i: usize| env::args().nth(i).and_then(|a| a.parse::<f64>().ok());
    let (Some(flows), Some(seconds)) = (number(1), number(2)) else {
        eprintln!("bench-dumbbell FLOWS SECONDS [LEAST_CPU_SECONDS [LAWS]]");
        std::process::exit(2);
    };
    let least = Duration::from_secs_f64(number(3).unwrap_or(0.0));

    let before = peak_kib();
    let Some(laws) = Laws::named(&env::args().nth(4).unwrap_or_else(|| "own".into())) else {
        eprintln!("LAWS: own, ns-2 or ns-3");
        std::process::exit(2);
    };
    let scenario = dumbbell(flows as u64, seconds, laws);
    let (mut cpu, mut packets, mut arrived, mut dropped, mut events, mut runs) =
        (Duration::ZERO, 0, 0, 0, 0, 0);
    while runs == 0 || cpu < least {
        runs += 1;
        let (outcome, took) = run(&scenario, runs);
        cpu += took;
        packets += through(&scenario, &outcome);
        let counts = &outcome.links[scenario.measured()].total;
        arrived += counts.arrived.iter().sum::<u64>();
        dropped += counts.dropped.iter().flatten().sum::<u64>();
        events += outcome.events;
    }
    let capacity = flows * 1e6 * seconds * runs as f64;
    println!(
        "packets={packets} cpu_s={:.6} utilisation={:.5} loss={:.5} events={events} runs={runs} memory_kib={}",
        cpu.as_secs_f64(),
        packets as f64 * 1040.0 * 8.0 / capacity,
        dropped as f64 / arrived as f64,
        peak_kib() - before,
    );
}

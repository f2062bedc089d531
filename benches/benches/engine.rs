//! Our side of the race alone, for those who work on the engine: packets through the bottleneck per CPU second.

use inprofile_benches::{Laws, dumbbell, experiment_file, median, peak_kib, run, through};

const FOUR_FLOWS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../python/inprofile/papers/ard/four-flows.toml");

fn main() {
    // `cargo test --benches` calls this with --test: nothing here is a test.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    // Memory first: the peak of the process never falls.
    let events = run(&dumbbell(1000, 5.0, Laws::Own), 1).0.events;
    let peak = peak_kib() as f64 / 1024.0;
    println!("{:<44} {peak:>8.1} MiB  ({events} events)", "dumbbell, 1,000 flows, peak memory");

    speed("paper A, four flows, 200 s", &experiment_file(FOUR_FLOWS, &[("monitors", "[]")]), 40);
    for (n, runs) in [(10, 10), (100, 3), (1000, 1)] {
        speed(&format!("dumbbell, {n} flows, 100 s"), &dumbbell(n, 100.0, Laws::Own), runs);
    }
}

fn speed(name: &str, scenario: &inprofile_experiment::Scenario, runs: u64) {
    let mut rates = Vec::new();
    let mut per_packet = Vec::new();
    // The first run warms the caches and does not count.
    for seed in 0..=runs {
        let (outcome, took) = run(scenario, seed + 1);
        let packets = through(scenario, &outcome) as f64;
        if seed > 0 {
            rates.push(packets / took.as_secs_f64() / 1e6);
            per_packet.push(outcome.events as f64 / packets);
        }
    }
    let (rate, events) = (median(rates), median(per_packet));
    println!(
        "{name:<44} {rate:>8.2} M packets/CPU s  {:>6.1} ns a packet  {events:.2} events a packet",
        1e3 / rate
    );
}

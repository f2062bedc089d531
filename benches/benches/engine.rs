//! Packets through the bottleneck per CPU second on one core, and the memory of a large run.

use inprofile_benches::{cpu_seconds, experiment, median, peak_mib, run};

const FOUR_FLOWS: &str = include_str!("../../python/inprofile/papers/ard/four-flows.toml");
const DUMBBELL: &str = include_str!("../dumbbell.toml");

fn main() {
    // `cargo test --benches` calls with --test: nothing here is a test.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    // Memory first: the peak of the process never falls.
    let thousand = dumbbell(1000, "5 s");
    let events = run(&thousand, 1).events;
    println!("{:<44} {:>8.1} MiB  ({events} events)", "dumbbell, 1,000 flows, peak memory", peak_mib());

    let bare = FOUR_FLOWS.split("[[monitors]]").next().unwrap_or(FOUR_FLOWS);
    speed("paper A, four flows, 200 s", &experiment(bare, &[]), 40);
    for (n, runs) in [(10, 10), (100, 3), (1000, 1)] {
        speed(&format!("dumbbell, {n} flows, 100 s"), &dumbbell(n, "100 s"), runs);
    }
}

fn dumbbell(n: u64, duration: &str) -> inprofile_scenario::Scenario {
    let measure = format!("{{ from = \"0 s\", to = \"{duration}\", at = \"bottleneck\" }}");
    let packets = |k: u64| format!("{k} packets");
    let rate = |k: u64| format!("{k} Mbit/s");
    experiment(
        DUMBBELL,
        &[
            ("duration", duration),
            ("measure", &measure),
            ("flows.tcp.count", &n.to_string()),
            ("flows.tcp.start", &format!("uniform 0..{} s", n as f64 * 0.001)),
            ("links.bottleneck.rate", &rate(n)),
            ("links.access.rate", &rate(10 * n)),
            ("links.exit.rate", &rate(10 * n)),
            ("links.bottleneck.queue.limit", &packets(8 * n)),
            ("links.bottleneck.queue.min_th", &packets(n)),
            ("links.bottleneck.queue.max_th", &packets(3 * n)),
        ],
    )
}

fn speed(name: &str, scenario: &inprofile_scenario::Scenario, runs: u64) {
    let mut rates = Vec::new();
    let mut per_packet = Vec::new();
    for seed in 0..=runs {
        let before = cpu_seconds();
        let outcome = run(scenario, seed + 1);
        let took = cpu_seconds() - before;
        let through: u64 = outcome.links[scenario.measured()].total.sent.iter().sum();
        if seed > 0 {
            rates.push(through as f64 / took / 1e6);
            per_packet.push(outcome.events as f64 / through as f64);
        }
    }
    let (rate, events) = (median(rates), median(per_packet));
    println!(
        "{name:<44} {rate:>8.2} M packets/CPU s  {:>6.1} ns a packet  {events:.2} events a packet",
        1e3 / rate
    );
}

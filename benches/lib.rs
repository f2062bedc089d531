//! What the benchmarks share: experiments, CPU time and memory of this process as Linux counts them.

use std::fs;
use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_scenario::Scenario;
use inprofile_sim::engine;
use inprofile_sim::outcome::Outcome;

/// Reads an experiment, without the parts that start with one of `without`.
///
/// # Panics
/// If it is not one.
#[must_use]
pub fn experiment(text: &str, set: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    Scenario::parse(text, "benchmark", &set, &Registry::default())
        .unwrap_or_else(|problems| panic!("{}", problems[0]))
}

/// Runs it with one seed.
///
/// # Panics
/// If the run fails.
#[must_use]
pub fn run(scenario: &Scenario, seed: u64) -> Outcome {
    engine::run(scenario.network(seed, false), &AtomicBool::new(false), None).expect("the run ends")
}

/// CPU time this process has used, in seconds, to the nanosecond.
///
/// # Panics
/// Where there is no `/proc`.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/schedstat").expect("Linux's /proc");
    let ns = stat.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
    ns.expect("the first field is nanoseconds") as f64 * 1e-9
}

/// The most memory this process has held, in MiB.
///
/// # Panics
/// Where there is no `/proc`.
#[must_use]
pub fn peak_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux's /proc");
    let line = status.lines().find(|l| l.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).expect("kB") / 1024.0
}

/// The middle of some measurements.
#[must_use]
pub fn median(mut xs: Vec<f64>) -> f64 {
    xs.sort_by(f64::total_cmp);
    xs[xs.len() / 2]
}

//! What the benchmarks share: experiments, CPU time and memory of this process as Linux counts them.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;
use inprofile_experiment::text::{extends, file};
use inprofile_sim::engine;
use inprofile_sim::outcome::Outcome;
use rustix::time::{ClockId, clock_gettime};

const DUMBBELL: &str = include_str!("dumbbell.toml");

/// Reads an experiment, changed by `set`.
///
/// # Panics
/// If it is not one.
#[must_use]
pub fn experiment(text: &str, set: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    Scenario::parse(text, "benchmark", &set, &Registry::default())
        .unwrap_or_else(|problems| panic!("{}", problems[0]))
}

/// Reads an experiment from a file, with what it extends, changed by `set`.
///
/// # Panics
/// If it is not one.
#[must_use]
pub fn experiment_file(path: &str, set: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    extends::bases(&text, path, &file::read)
        .and_then(|bases| Scenario::parse_extended(&text, path, &bases, &set, &Registry::default()))
        .unwrap_or_else(|problems| panic!("{}", problems[0]))
}

/// Whose laws a dumbbell's TCP and RED follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Laws {
    /// The RFCs' Reno, Floyd and Jacobson's RED.
    Own,
    /// ns-2's Reno and RED.
    Ns2,
    /// The RFCs' SACK, which ns-3's is made to follow, and ns-2's RED, which ns-3 has.
    Ns3,
    /// Linux's CUBIC, Floyd and Jacobson's RED.
    Linux,
}

impl Laws {
    /// As the command line has them.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "own" => Some(Self::Own),
            "ns-2" => Some(Self::Ns2),
            "ns-3" => Some(Self::Ns3),
            "linux" => Some(Self::Linux),
            _ => None,
        }
    }
}

/// `n` flows share `n` Mbit/s for so many seconds.
#[must_use]
pub fn dumbbell(n: u64, seconds: f64, laws: Laws) -> Scenario {
    // ns-3's run is the same to the last packet with its LimitedTransmit off.
    let (profile, congestion, limited, red) = match laws {
        Laws::Own => ("rfc", "reno", "true", "floyd93"),
        Laws::Ns2 => ("ns2", "reno", "true", "ns2"),
        Laws::Ns3 => ("rfc", "sack", "false", "ns2"),
        Laws::Linux => ("linux", "cubic", "true", "floyd93"),
    };
    let duration = format!("{seconds} s");
    let measure = format!("{{ from = \"0 s\", to = \"{duration}\", at = \"bottleneck\" }}");
    let packets = |k: u64| format!("{k} packets");
    let rate = |k: u64| format!("{k} Mbit/s");
    experiment(
        DUMBBELL,
        &[
            ("duration", &duration),
            ("tcp.profile", profile),
            ("tcp.congestion", congestion),
            ("tcp.limited_transmit", limited),
            ("links.bottleneck.queue.variant", red),
            ("measure", &measure),
            ("flows.tcp.count", &n.to_string()),
            ("flows.tcp.start", &format!("uniform 0..{} s", (n as f64 * 0.001).min(1.0))),
            ("links.bottleneck.rate", &rate(n)),
            ("links.access.rate", &rate(10 * n)),
            ("links.exit.rate", &rate(10 * n)),
            ("links.access.queue.limit", &packets(100_000.max(8 * n))),
            ("links.exit.queue.limit", &packets(100_000.max(8 * n))),
            ("links.bottleneck.queue.limit", &packets(8 * n)),
            ("links.bottleneck.queue.min_th", &packets(n)),
            ("links.bottleneck.queue.max_th", &packets(3 * n)),
        ],
    )
}

/// Runs it with one seed; the CPU time is the run's alone, not that of building the network.
///
/// # Panics
/// If the run fails.
#[must_use]
pub fn run(scenario: &Scenario, seed: u64) -> (Outcome, Duration) {
    let network = scenario.network(seed, false);
    let before = cpu_time();
    let outcome = engine::run(network, &AtomicBool::new(false), None).expect("the run ends");
    (outcome, cpu_time() - before)
}

/// CPU time that all threads of this process have used.
#[must_use]
pub fn cpu_time() -> Duration {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec.unsigned_abs(), t.tv_nsec as u32)
}

/// CPU time that this thread has used.
#[must_use]
pub fn own_cpu_time() -> Duration {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec.unsigned_abs(), t.tv_nsec as u32)
}

/// Packets that left for the measured link.
#[must_use]
pub fn through(scenario: &Scenario, outcome: &Outcome) -> u64 {
    outcome.links[scenario.measured()].total.sent.iter().sum()
}

/// The most memory this process has held, in KiB.
///
/// # Panics
/// Where there is no `/proc`.
#[must_use]
pub fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux's /proc");
    let line = status.lines().find(|l| l.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of KiB")
}

/// The middle of some measurements.
#[must_use]
pub fn median(mut xs: Vec<f64>) -> f64 {
    xs.sort_by(f64::total_cmp);
    xs[xs.len() / 2]
}

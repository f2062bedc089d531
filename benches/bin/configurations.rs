//! The configurations that users run, compared with the plain link: `bench-configurations FLOWS SECONDS ROUNDS [NAME…]`.
//!
//! The plain link has one drop-tail queue, and nothing is sampled. Each round runs every configuration right after a plain
//! link with the same seed, and prints both speeds in packets through the bottleneck per CPU second: their ratio is what counts,
//! as any other load on the machine affects both.

use std::env;

use inprofile_benches::{experiment, run, through};
use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;

const DUMBBELL: &str = include_str!("../dumbbell.toml");

/// The other half of the flows: the schedulers' second class.
const OTHERS: &str = r#"
[[flows]]
name  = "others"
count = 10
from  = "a"
to    = "b"
start = "uniform 0..0.01 s"
"#;

/// A configuration: its name, and what it changes in the experiment.
struct Configuration {
    name: &'static str,
    /// The discipline or scheduler at the bottleneck; the limit is added. None: drop-tail, as on the plain link.
    queue: Option<&'static str>,
    /// Text appended to the experiment.
    more: &'static str,
    /// The keys that it sets.
    set: &'static [(&'static str, &'static str)],
}

const fn queue(name: &'static str) -> Configuration {
    Configuration { name, queue: Some(name), more: "", set: &[] }
}

const CONFIGURATIONS: [Configuration; 14] = [
    queue("codel"),
    queue("pie"),
    queue("dualpi2"),
    queue("fq_codel"),
    queue("drr"),
    queue("priority"),
    Configuration {
        name: "queue_monitor",
        queue: None,
        more: "[[monitors]]\nqueue = \"bottleneck\"\nevery = \"10 ms\"\n",
        set: &[],
    },
    Configuration {
        name: "flow_monitor",
        queue: None,
        more: "[[monitors]]\nflows = \"tcp.0\"\nevery = \"10 ms\"\n",
        set: &[],
    },
    Configuration {
        name: "ns2_profile",
        queue: None,
        more: "",
        set: &[("engine.profile", "ns2"), ("tcp.profile", "ns2")],
    },
    Configuration {
        name: "linux",
        queue: None,
        more: "",
        set: &[("tcp.profile", "linux"), ("tcp.congestion", "cubic")],
    },
    Configuration {
        name: "linux_paced",
        queue: None,
        more: "",
        set: &[("tcp.profile", "linux"), ("tcp.congestion", "cubic"), ("tcp.pacing", "true")],
    },
    Configuration {
        name: "bbr",
        queue: None,
        more: "",
        set: &[("tcp.profile", "linux"), ("tcp.congestion", "bbr")],
    },
    // With accurate feedback and ECT(1) packets, although drop-tail marks none: this is the cost of the sender alone.
    Configuration {
        name: "prague",
        queue: None,
        more: "",
        set: &[
            ("tcp.profile", "linux"),
            ("tcp.congestion", "prague"),
            ("tcp.ecn", "true"),
            ("tcp.accurate_ecn", "true"),
        ],
    },
    // The plain link against itself: how far apart two runs of the same configuration are.
    Configuration { name: "plain", queue: None, more: "", set: &[] },
];

impl Configuration {
    /// Whether this version has its discipline or scheduler.
    fn exists(&self, registry: &Registry) -> bool {
        let names = || registry.aqms.iter().map(|e| e.name).chain(registry.schedulers.iter().map(|e| e.name));
        self.queue.is_none_or(|name| names().any(|n| n == name))
    }

    /// `n` flows, half of them in each class, share `n` Mbit/s for `seconds` seconds.
    fn scenario(&self, n: u64, seconds: f64) -> Scenario {
        let limit = format!("limit = \"{} packets\"", 8 * n);
        let queue = match self.queue {
            None => format!("{{ aqm = \"drop_tail\", {limit} }}"),
            Some(scheduler @ ("drr" | "priority")) => {
                let quantum = if scheduler == "drr" { ", quantum = \"1 packets\"" } else { "" };
                let class = |name| format!("{{ name = \"{name}\", aqm = \"drop_tail\", {limit}{quantum} }}");
                format!(
                    "{{ scheduler = \"{scheduler}\", classes = [{}, {}] }}",
                    class("first"),
                    class("second")
                )
            }
            Some(aqm) => format!("{{ aqm = \"{aqm}\", {limit} }}"),
        };
        let (before, red) = DUMBBELL.split_once("queue = { aqm = \"red\"").expect("the bottleneck has RED");
        let (_, after) = red.split_once('\n').expect("other lines follow");
        let text = format!("{before}queue = {queue}\n{after}{OTHERS}{}", self.more);
        let rate = |k: u64| format!("{k} Mbit/s");
        let start = format!("uniform 0..{} s", (n as f64 * 0.001).min(1.0));
        let duration = format!("{seconds} s");
        let measure = format!("{{ from = \"0 s\", to = \"{duration}\", at = \"bottleneck\" }}");
        let (half, access) = ((n / 2).to_string(), format!("{} packets", 100_000.max(8 * n)));
        let (narrow, wide) = (rate(n), rate(10 * n));
        let mut set = vec![
            ("duration", duration.as_str()),
            ("measure", &measure),
            ("flows.tcp.count", &half),
            ("flows.others.count", &half),
            ("flows.tcp.start", &start),
            ("flows.others.start", &start),
            ("links.bottleneck.rate", &narrow),
            ("links.access.rate", &wide),
            ("links.exit.rate", &wide),
            ("links.access.queue.limit", &access),
            ("links.exit.queue.limit", &access),
        ];
        if matches!(self.queue, Some("drr" | "priority")) {
            set.extend([("flows.tcp.class", "first"), ("flows.others.class", "second")]);
        }
        set.extend(self.set);
        experiment(&text, &set)
    }
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |i: usize| words.get(i).and_then(|a| a.parse::<f64>().ok());
    let (Some(flows), Some(seconds), Some(rounds)) = (number(0), number(1), number(2)) else {
        eprintln!("bench-configurations FLOWS SECONDS ROUNDS [NAME…]");
        std::process::exit(2);
    };
    let (flows, wanted) = (flows as u64, &words[3..]);
    let plain = CONFIGURATIONS[CONFIGURATIONS.len() - 1].scenario(flows, seconds);
    let registry = Registry::default();
    let raced: Vec<_> = CONFIGURATIONS
        .iter()
        .filter(|c| c.exists(&registry) && (wanted.is_empty() || wanted.iter().any(|w| w == c.name)))
        .map(|c| (c.name, c.scenario(flows, seconds)))
        .collect();
    // The first round warms the caches and does not count.
    for round in 0..=rounds as u64 {
        for (name, scenario) in &raced {
            let [beside, this] = [&plain, scenario].map(|scenario| {
                let (outcome, took) = run(scenario, round + 1);
                let packets = through(scenario, &outcome) as f64;
                (packets / took.as_secs_f64(), outcome.events as f64 / packets)
            });
            if round > 0 {
                let (plain, (packets, events)) = (beside.0, this);
                println!("name={name} plain={plain:.0} packets={packets:.0} events={events:.3}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_is_an_experiment() {
        for c in &CONFIGURATIONS {
            assert_eq!(c.scenario(10, 1.0).network(1, false).flows.len(), 10, "{}", c.name);
        }
    }
}

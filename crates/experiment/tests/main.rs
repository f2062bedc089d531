//! The tests of the crate in one program, a file for each subject.

mod applications;
mod bad;
mod catalogue;
mod checksums;
mod extends;
mod figures;
mod fuzz;
mod good;
mod l4s;
mod lossless;
mod networks;
mod no_panic;
mod ns2;
mod own_discipline;
mod papers;
mod parity;
mod parts;
mod path;
mod queues;
mod random;
mod rates;
mod services;
mod signals;
mod tcp;
mod traffic;

use std::sync::atomic::AtomicBool;

use inprofile_core::registry::Registry;
use inprofile_experiment::{Metric, Scenario};
use inprofile_sim::engine;
use inprofile_sim::network::Network;
use inprofile_sim::outcome::Outcome;

/// The experiment of a text, which must be right.
fn parse(text: &str) -> Scenario {
    parse_with(text, &[])
}

/// The same with these keys set.
fn parse_with(text: &str, set: &[(&str, &str)]) -> Scenario {
    Scenario::parse(text, "test.toml", &overrides(set), &Registry::default()).unwrap_or_else(|problems| {
        panic!("{}{text}", problems.iter().map(|p| format!("{p}\n")).collect::<String>())
    })
}

/// Keys and values as a user's `--set`.
fn overrides(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The figure of this name.
fn value(metrics: &[Metric], name: &str) -> f64 {
    metrics.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

/// The outcome at the end of a run.
fn run(network: Network) -> Outcome {
    engine::run(network, &AtomicBool::new(false), None).expect("it runs")
}

//! The tests of the crate in one program, a file for each subject.

mod applications;
mod bad;
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
use inprofile_experiment::Scenario;
use inprofile_sim::engine;
use inprofile_sim::network::Network;
use inprofile_sim::outcome::Outcome;

/// The experiment of a text, which must be right.
fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", &[], &Registry::default()).unwrap_or_else(|problems| {
        panic!("{}{text}", problems.iter().map(|p| format!("{p}\n")).collect::<String>())
    })
}

/// The outcome at the end of a run.
fn run(network: Network) -> Outcome {
    engine::run(network, &AtomicBool::new(false), None).expect("it runs")
}

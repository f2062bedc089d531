//! Any bytes as an experiment file: no panic; every problem has a place and a text; an accepted file can be shown and built.

#![cfg_attr(fuzzing, no_main)]

use inprofile_core::registry::Registry;
use inprofile_experiment::Scenario;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| run(bytes, &Registry::default()));

/// The largest number of flows for which a network is built.
const MOST: usize = 1000;

pub fn run(bytes: &[u8], registry: &Registry) {
    match Scenario::parse_bytes(bytes, "x.toml", &[], registry) {
        Ok(scenario) => {
            let _ = (scenario.describe(), scenario.canonical(), scenario.warnings());
            if scenario.model().flows() <= MOST {
                let net = scenario.network(1, false);
                assert_eq!(scenario.flow_rows().count(), net.flows.len());
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            for p in problems {
                assert!(!p.problem.is_empty());
                assert!(p.line.is_some(), "no line: {p}");
            }
        }
    }
}

//! Any text as lines of `tc`, Cisco and Open vSwitch: no panic; every problem says what is wrong; what is read is a file of ours
//! without fault, which can be written as `tc`'s lines and Open vSwitch's.

#![cfg_attr(fuzzing, no_main)]

use inprofile_core::registry::Registry;
use inprofile_router::config::parse;
use inprofile_router::interchange::{cisco, export, ovs, tc};

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| run(bytes, &Registry::default()));

pub fn run(bytes: &[u8], registry: &Registry) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for import in [tc::import, cisco::import, ovs::import] {
        match import(text, "x") {
            Ok(ours) => match parse(ours.as_bytes(), "imported", registry) {
                Ok((config, _)) => drop((export::tc(&config), ovs::export(&config))),
                Err(problems) => panic!("{text}\nbecame\n{ours}\n{}", problems[0]),
            },
            Err(problems) => {
                assert!(!problems.is_empty(), "refused without a reason");
                assert!(problems.iter().all(|p| !p.problem.is_empty()));
            }
        }
    }
}

#![no_main]

#[path = "../bodies/import.rs"]
mod body;

use inprofile_core::registry::Registry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| body::run(bytes, &Registry::default()));

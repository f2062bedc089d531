#![no_main]

#[path = "../bodies/packet.rs"]
mod body;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| body::run(bytes));

//! The router as a process between two ports, in namespaces of the tests' own.
#![cfg(target_os = "linux")]

#[path = "../attacks/frames.rs"]
#[expect(dead_code, reason = "the attacks use the rest")]
mod attack;
mod bench;
mod faults;
mod frames;
mod host;
mod kernel;
mod links;
mod neighbours;
mod operation;
mod packets;
#[path = "../kernel/pin.rs"]
mod pin;
mod ports;
mod servers;
mod service;

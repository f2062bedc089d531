//! The router as a process between two ports, in namespaces of the tests' own.
#![cfg(target_os = "linux")]

#[path = "../attacks/frames.rs"]
#[expect(dead_code, reason = "the attacks use the rest")]
mod attack;
mod bench;
mod commands;
mod cpus;
mod encapsulated;
mod faults;
mod forwarding;
mod frames;
mod host;
mod kernel;
mod links;
mod mtu;
mod neighbours;
#[path = "../kernel/pin.rs"]
mod pin;
mod ports;
mod reload;
mod servers;
mod service;

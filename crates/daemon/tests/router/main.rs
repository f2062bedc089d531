//! The router as a process between two ports, in namespaces of the tests' own.
#![cfg(target_os = "linux")]

mod bench;
mod commands;
mod faults;
mod forwarding;
mod frames;
mod links;
mod ports;
mod reload;
mod servers;
mod service;

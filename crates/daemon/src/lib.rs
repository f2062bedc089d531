//! `inprofiled`: a router of two ports. What comes in at one goes out at the other; on the way it is metered by its
//! customer's marker, queued by its class and colour, shaped, and given the DSCP of its colour, by the same mechanisms
//! that the simulator runs.
//!
//! ```text
//! signals ──┐                                   ┌─→ port
//! control ──┼─→ commands ─→ packets (one thread) ┤
//! metrics ──┘       ↑ snapshots                 └─← port
//! ```
//!
//! One thread has the packets and shares nothing: the others, one for signals and the watchdog, one for control and metrics, one
//! for reloads, send it [`Command`](packets::Command)s and get
//! [`Snapshot`](snapshot::Snapshot)s.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(target_os = "linux")]
mod acl;
pub mod changes;
#[cfg(target_os = "linux")]
pub mod client;
pub mod config;
#[cfg(target_os = "linux")]
pub mod control;
#[cfg(target_os = "linux")]
pub mod files;
#[cfg(target_os = "linux")]
pub mod hub;
pub mod interchange;
#[cfg(target_os = "linux")]
pub mod link_loss;
pub mod log;
#[cfg(target_os = "linux")]
pub mod metrics;
#[cfg(target_os = "linux")]
pub mod notify;
#[cfg(target_os = "linux")]
pub mod offload;
pub mod packets;
pub mod policers;
pub mod policy;
#[cfg(target_os = "linux")]
pub mod ports;
#[cfg(target_os = "linux")]
pub mod presence;
#[cfg(target_os = "linux")]
pub mod privileges;
pub mod router;
#[cfg(target_os = "linux")]
pub mod run;
#[cfg(target_os = "linux")]
pub mod serve;
pub mod snapshot;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "system calls; each with its reason")]
mod sys;
pub mod watch;

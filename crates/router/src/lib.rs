//! `inprofiled`: a router of two ports. Frames that come in at one leave by the other; on the way they are metered by their
//! customer's marker, queued by class and colour, shaped, and given the DSCP of their colour, by the same mechanisms that the
//! simulator runs.
//!
//! ```text
//! signals ──┐                                   ┌─→ port
//! control ──┼─→ commands ─→ packets (one thread) ┤
//! metrics ──┘       ↑ snapshots                 └─← port
//! ```
//!
//! One thread handles the packets and shares no state. The others (one for signals and the watchdog, one for control and
//! metrics, one for reloads) send it [`Command`](packets::Command)s and receive [`Snapshot`](snapshot::Snapshot)s.

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
pub mod isolation;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "what maps hold is plain bytes, of which the compiler has to be told")]
pub mod kernel;
#[cfg(target_os = "linux")]
pub mod link_loss;
pub mod load;
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

//! The mechanisms of `inprofile-core` on real packets, in wall time or under a virtual clock.
//!
//! A frame comes in through a driver of [`io`]; [`packet`] reads its headers, [`flow`] identifies its flow; a [`datapath`] marks
//! it, queues it and sends it at its deadline, with the DSCP of its colour. Only the driver knows what the time is: under
//! [`io::replay`] the same code runs in virtual time.
//!
//! ```text
//! io ─→ packet::parse ─→ Policy ─→ markers ─→ queue and its discipline ─→ shaper ─→ DSCP, ECN ─→ io
//! ```

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod addresses;
pub mod capture;
pub mod code_points;
pub mod datapath;
#[cfg(target_os = "linux")]
pub mod emulate;
pub mod flow;
pub mod io;
#[cfg(target_os = "linux")]
pub mod namespace;
pub mod packet;
#[expect(unsafe_code, reason = "the standard library's prefetch is an intrinsic of the processor")]
pub mod prefetch;

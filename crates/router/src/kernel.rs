//! `datapath = "kernel"`: contracts at the ports' ingress hooks. Two programs (`bpf/`, built by `make bpf`) read each frame, find its
//! customer, meter it, give it the DSCP of its colour or drop it, count it and send it by the other port. This process fills their maps,
//! reads their counts and answers the control socket; whether it lives makes no difference to a packet.
//!
//! ```text
//! file ─→ tables ─→ maps (two banks, one in force) ←─ programs ─→ the other port
//! socket ←─ counts ←────── accounts ←──────────────────┘
//! ```

pub mod attach;
pub mod export;
pub mod layout;
pub mod maps;
pub mod pins;
pub mod places;
pub mod run;
mod shown;
pub mod tables;

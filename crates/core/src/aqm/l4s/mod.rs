//! Coupled disciplines: ECT(1) packets (L4S) are marked, others dropped or marked with the square of that probability, so that flows
//! of both kinds get about the same rate (RFC 9332 §2.1).
//!
//! [`coupling`] is what is decided on a packet about to leave, [`pi`] the controller behind it; [`pi2`] has one queue.

pub mod coupling;
pub mod pi;
pub mod pi2;

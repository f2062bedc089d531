//! Coupled disciplines: ECT(1) packets (L4S) are marked, others dropped or marked with the square of that probability, so that flows
//! of both kinds get about the same rate (RFC 9332 §2.1).
//!
//! [`coupling`] is what is decided on a packet about to leave, [`pi`] the controller behind it. [`pi2`] has one queue; [`dual`] has two, which
//! [`order`] serves, and is [`dualpi2`] or, with another base in the controller's place, [`curvy_red`].

#[cfg(test)]
mod bench;
pub mod coupling;
pub mod curvy_red;
pub mod dual;
pub mod dualpi2;
pub mod order;
pub mod pi;
pub mod pi2;

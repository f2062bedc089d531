//! Packet markers and queue disciplines for DiffServ Assured Forwarding, each written once and run
//! in a simulator, over a kernel's own TCP and on a router.
//!
//! Nothing here reads a clock, does I/O, allocates per packet or holds a global: time, packets and
//! randomness come in as arguments. A [`marker`] sets a packet's colour at the edge; an [`aqm`]
//! decides in the core which packets a full [`queue`] drops; an [`estimate`] measures what both
//! need to know. The [`registry`] names them all.

pub mod aqm;
pub mod estimate;
pub mod flow_table;
pub mod marker;
pub mod mechanism;
pub mod ns2;
pub mod packet;
pub mod params;
pub mod queue;
pub mod registry;
pub mod rng;
pub mod signal;
pub mod units;
pub mod verdict;

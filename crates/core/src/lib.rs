//! Packet markers and queue disciplines for DiffServ Assured Forwarding. Each is written once, and runs in a simulator, behind
//! a kernel's own TCP, and in a router.
//!
//! Nothing here reads a clock, does I/O, allocates memory per packet or has global state: time, packets and random numbers are
//! arguments. A [`marker`] sets a packet's colour at the edge; an [`aqm`] decides in the core which packets of a [`queue`] are
//! dropped; [`estimate`] has the estimators that both use, and the [`registry`] lists every mechanism.

pub mod aqm;
pub mod estimate {
    //! Estimators: what mechanisms measure of the traffic that passes them.

    pub mod rtt;
    pub mod tsw;
    pub mod window;
}
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

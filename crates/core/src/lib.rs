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
#[cfg(test)]
pub(crate) mod testing;
pub mod units;
pub mod verdict;

pub mod signal {
    //! Signals between mechanisms: from an edge to a core, with the delay and loss of the links on the way; and from an oracle,
    //! where an experiment compares an estimate with the true value.

    use crate::packet::FlowId;

    /// One message.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Signal {
        /// Its subject, by the name the receiving mechanism documents.
        pub topic: &'static str,
        /// The flow it is about; `None`: all of them together.
        pub flow: Option<FlowId>,
        /// The figure.
        pub value: f64,
    }

    /// Topic: the flow's number has been given to another flow, whose first packet comes next, so the state kept under it must be
    /// forgotten. Sent to every mechanism by the caller that numbers flows; those without state per flow ignore it.
    pub const FORGET: &str = "forget";

    /// Topic: the marker replaces another, and its bucket may hold no more than this, in the unit of its gauge, so that a change of
    /// settings fills no bucket.
    pub const TOKENS: &str = "tokens";
    /// The same for the second bucket of a marker that has two.
    pub const EXCESS_TOKENS: &str = "excess_tokens";

    /// Signals a mechanism wants delivered to the peers that the experiment connected it to (`[[signals]]`): each after the
    /// connection's delay, in the order they were sent, but for those the connection loses. Only a tick sends, so that a
    /// packet never waits for a message. A mechanism that sends says so: [`Mechanism::sends`](crate::mechanism::Mechanism::sends).
    #[derive(Clone, Debug, Default)]
    pub struct Outbox {
        /// In the order they were sent.
        pub signals: Vec<Signal>,
    }

    /// The true value that a mechanism wants to be told instead of estimating it. Only a simulator knows it; a router does not.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Oracle {
        /// The propagation round-trip time in seconds (the delays of all links there and back) of every flow that passes,
        /// topic `"rtt"`: once, at time 0 before the first tick.
        Rtt,
        /// The window of every TCP flow that passes, topic `"window"`: before every tick. It is what the sender may have on
        /// the way, the smaller of its congestion window and the receiver's, in bytes on the wire (headers included, as a
        /// router counts them); 0 before the flow starts and after it has finished.
        Window,
    }
}

pub mod prelude {
    //! What nearly every mechanism names: `use inprofile_core::prelude::*`.

    pub use crate::aqm::{Aqm, At};
    pub use crate::marker::Marker;
    pub use crate::mechanism::{Gauge, Mechanism};
    pub use crate::packet::{Colour, Ecn, FlowId, Packet};
    pub use crate::params::{Build, Context, Fault, Warning};
    pub use crate::queue::{Counts, Queue};
    pub use crate::rng::Rng;
    pub use crate::signal::{Outbox, Signal};
    pub use crate::units::{Backlog, Bytes, Duration, Rate, Time};
    pub use crate::verdict::{Admission, Cause, Departure, Mark, Silent, Why};
}

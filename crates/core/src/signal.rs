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

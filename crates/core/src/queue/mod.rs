//! The containers that hold packets, what they show the discipline that decides, and the schedulers of classes.

pub mod drr;
#[cfg(test)]
pub mod fake;
pub mod fifo;
pub mod hierarchy;
pub mod pace;
pub mod priority;
pub mod scheduled;
pub mod scheduler;

use crate::packet::{Colour, FlowId};
use crate::units::{Backlog, Time};

/// Which of a flow's waiting packets is struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The packet that would leave first.
    Head,
    /// The packet that came last.
    Tail,
    /// The packet before which so many others of the flow would leave.
    Nth(u32),
}

/// What is done to a victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// Taken out and dropped.
    Drop,
    /// Marked as having experienced congestion, if its transport understands that.
    Mark,
}

/// A queue as its discipline sees it. The packet in transmission is not in the queue.
pub trait Queue {
    /// Packets waiting.
    fn packets(&self) -> u32;
    /// Bytes waiting.
    fn bytes(&self) -> u64;
    /// Packets of this colour waiting.
    fn packets_of(&self, colour: Colour) -> u32;
    /// Bytes of this colour waiting.
    fn bytes_of(&self, colour: Colour) -> u64;
    /// The hard limit.
    fn limit(&self) -> Backlog;
    /// Whether a packet of this size may join within the limit.
    fn fits(&self, size: u32) -> bool;
    /// Since when the link has had nothing to send; `None` while it sends.
    fn idle_since(&self) -> Option<Time>;
    /// Whether a packet of this flow waits.
    fn has(&self, flow: FlowId) -> bool;
    /// Packets of this flow waiting; takes time in proportion to the queue.
    fn packets_of_flow(&self, flow: FlowId) -> u32;
    /// Drops or marks a waiting packet of this flow; false if there was none to strike.
    fn strike(&mut self, flow: FlowId, end: End, how: Strike) -> bool;
    /// Drops or marks the waiting packet before which so many others would leave; false if there was none to strike.
    fn strike_at(&mut self, place: u32, how: Strike) -> bool;
}

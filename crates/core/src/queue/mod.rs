//! The containers that hold packets, what they show to their disciplines, and the schedulers of classes.

pub mod counts;
pub mod drr;
#[cfg(test)]
pub mod fake;
pub mod fifo;
pub mod flow_queues;
pub mod hierarchy;
pub mod item;
pub mod pace;
pub mod priority;
pub mod scheduled;
pub mod scheduler;

use crate::packet::{Colour, FlowId};
use crate::units::{Backlog, Time};

/// Which of a flow's waiting packets is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The packet that would leave first.
    Head,
    /// The packet that came last.
    Tail,
    /// The packet before which so many others of the flow would leave.
    Nth(u32),
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
    /// The length, in the limit's unit.
    #[inline]
    fn backlog(&self) -> f64 {
        self.length(matches!(self.limit(), Backlog::Bytes(_)))
    }
    /// The length, in bytes or in packets.
    #[inline(always)]
    fn length(&self, in_bytes: bool) -> f64 {
        if in_bytes { self.bytes() as f64 } else { f64::from(self.packets()) }
    }
    /// The length of this colour's packets, in bytes or in packets.
    #[inline(always)]
    fn length_of(&self, colour: Colour, in_bytes: bool) -> f64 {
        if in_bytes { self.bytes_of(colour) as f64 } else { f64::from(self.packets_of(colour)) }
    }
    /// Whether a packet of this size may join within the limit.
    fn fits(&self, size: u32) -> bool;
    /// Since when the link has had nothing to send; `None` while it sends.
    fn idle_since(&self) -> Option<Time>;
    /// When the packet at the head of this queue came; `None` if none waits. Queue 0 is that of a discipline with one. For disciplines
    /// that decide at departure: computed service has no such times.
    fn head_since(&self, queue: u32) -> Option<Time>;
    /// Whether a packet of this flow waits.
    fn has(&self, flow: FlowId) -> bool;
    /// Packets of this flow waiting; takes time in proportion to the queue.
    fn packets_of_flow(&self, flow: FlowId) -> u32;
    /// Position of a waiting packet of this flow: how many packets would leave before it. `None` if there is none.
    fn position(&self, flow: FlowId, end: End) -> Option<u32>;
    /// Whose the waiting packet at this position is; `None` if there is none.
    fn flow_at(&self, position: u32) -> Option<FlowId>;
    /// Drops the waiting packet at this position; false if there is none.
    fn evict(&mut self, position: u32) -> bool;
    /// Marks the waiting packet at this position as having experienced congestion; false if there is none, or its
    /// transport doesn't understand ECN.
    fn mark(&mut self, position: u32) -> bool;
    /// Where the discipline keeps [several queues](crate::aqm::Aqm::flow_queues): the arrival it decides on joins this one, if it joins.
    fn join(&mut self, queue: u32);
    /// Packets in one of several queues.
    fn packets_in(&self, queue: u32) -> u32;
    /// Bytes in one of several queues.
    fn bytes_in(&self, queue: u32) -> u64;
    /// Size of the packet at the head of one of several queues.
    fn head_size(&self, queue: u32) -> Option<u32>;
    /// Whose packet is at the head of one of several queues.
    fn head_flow(&self, queue: u32) -> Option<FlowId>;
    /// Moves the packet at the head of one of several queues to the end of another; false if there was none.
    fn move_head(&mut self, from: u32, to: u32) -> bool;
    /// Where the discipline keeps several queues and nothing of them is near: whose turns are next, in order. What they will need may be read
    /// ahead; nothing else comes of it.
    fn expect(&mut self, _turns: [u32; 2]) {}
    /// Drops a packet of one of several queues: its size, if there was one.
    fn evict_from(&mut self, queue: u32, end: End) -> Option<u32>;
}

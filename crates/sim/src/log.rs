//! A log of every packet at every link, for traces and for comparison with ns-2.

use crate::network::NodeId;
use crate::packet::InFlight;

/// What happened to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// It arrived at the queue of a link.
    Enqueue,
    /// It left the queue for the link. Only with stepped service.
    Dequeue,
    /// It arrived at the end of the link.
    Receive,
    /// It was dropped at the queue.
    Drop,
}

/// One line of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogRow {
    /// What happened.
    pub code: Code,
    /// When, in seconds.
    pub at: f64,
    /// The link's start.
    pub from: NodeId,
    /// The link's end.
    pub to: NodeId,
    /// The packet.
    pub packet: InFlight,
    /// Its number in the run.
    pub number: u64,
}

/// Receives the log.
pub type Log = Box<dyn FnMut(&LogRow) + Send>;

//! A log of every packet at every link, for traces, captures and comparison with ns-2.

use inprofile_core::units::Time;
use inprofile_core::verdict::Cause;

use crate::network::{LinkId, NodeId};
use crate::packet::InFlight;
use crate::tcp::{ByteOption, Sack};

/// The event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// It arrived at the queue of a link.
    Enqueue,
    /// It left the queue for the link. Only with stepped service.
    Dequeue,
    /// It arrived at the end of the link.
    Receive,
    /// It was dropped at the queue, and why.
    Drop(Cause),
}

/// One line of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogRow {
    /// The event.
    pub code: Code,
    /// When, in seconds: with ns-2's clock the double itself.
    pub at: f64,
    /// When, in picoseconds.
    pub time: Time,
    /// The link.
    pub link: LinkId,
    /// The link's start.
    pub from: NodeId,
    /// The link's end.
    pub to: NodeId,
    /// The packet.
    pub packet: InFlight,
    /// The SACK option of an acknowledgement, of a flow that uses SACK.
    pub sack: Sack,
    /// The AccECN Option of an acknowledgement.
    pub bytes: Option<ByteOption>,
    /// Its number in the run.
    pub number: u64,
}

/// Receives the log.
pub type Log = Box<dyn FnMut(&LogRow) + Send>;

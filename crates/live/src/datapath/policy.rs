//! What is decided about a frame before it is queued: whether it is, in which class and colour, and by which markers.

use inprofile_core::packet::{Colour, FlowId};
use inprofile_core::units::Time;

use crate::code_points::{CodePoints, Dscp};
use crate::packet::Seen;

/// The most markers one packet passes: its customer's, and the aggregate's.
pub const MOST_MARKERS: usize = 2;

/// What is done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Whose it is.
    pub flow: FlowId,
    /// The flow has only now been given this number: what mechanisms keep under it was another flow's.
    pub forget: Option<Former>,
    /// Whose packet it is, by his place; `None`: nobody's.
    pub customer: Option<u32>,
    /// The customer has queues of his own, and the packet waits there.
    pub own_queue: bool,
    /// The class a scheduler serves it in.
    pub class: u8,
    /// The colour it comes with.
    pub colour: Colour,
    /// Markers it passes, in order, by their number.
    pub markers: [Option<u16>; MOST_MARKERS],
    /// The DSCP it leaves with.
    pub paint: Paint,
    /// The classes of its VLAN tags and MPLS labels are taken off.
    pub clear_link: bool,
}

/// Where a flow's packets went before its number passed to another: what may still keep state under it, beside shared queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Former {
    /// The markers it passed.
    pub markers: [Option<u16>; MOST_MARKERS],
    /// The customer it was of.
    pub customer: Option<u32>,
}

/// Which DSCP a packet leaves with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// The one it came with.
    Keep,
    /// That of its colour.
    Colour(CodePoints),
    /// This one.
    As(Dscp),
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It goes on at once, unqueued and unmarked.
    Pass,
    /// It goes no further.
    Refuse,
    /// It is marked and queued.
    Queue(Way),
}

/// Decides what is done with which frame.
pub trait Policy {
    /// What is done with this one.
    fn decide(&mut self, now: Time, seen: &Seen) -> Decision;
}

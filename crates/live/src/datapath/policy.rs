//! The decision about a frame before it is queued: whether it is, in which class and colour, and by which markers.

use inprofile_core::packet::{Colour, FlowId};
use inprofile_core::units::{Rate, Time};

use crate::code_points::{CodePoints, Dscp};
use crate::packet::{Seen, Unread};

/// The most markers one packet passes: its customer's, and the aggregate's.
pub const MOST_MARKERS: usize = 2;

/// How a packet is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatment {
    /// Whose it is.
    pub flow: FlowId,
    /// The flow has just been given this number: the state that mechanisms keep under it belongs to another flow.
    pub forget: Option<FormerFlow>,
    /// Index of the customer whose packet it is, if any.
    pub customer: Option<u32>,
    /// The customer has queues of its own, and the packet joins one of them.
    pub own_queue: bool,
    /// Its class for the scheduler.
    pub class: u8,
    /// The colour it comes with.
    pub colour: Colour,
    /// Numbers of the markers it passes, in order.
    pub markers: [Option<u16>; MOST_MARKERS],
    /// How its DSCP is rewritten. Unless to its colour's, markers may drop the packet but do not colour it.
    pub rewrite: Rewrite,
    /// The classes of its VLAN tags and MPLS labels are taken off.
    pub clear_link: bool,
    /// The contract of a flow that is new to a marker, which is told before the packet; topic `contract`.
    pub contract: Option<Contract>,
}

/// The contract of a new flow, as a marker is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Number of the marker.
    pub marker: u16,
    /// 0: none.
    pub rate: Rate,
}

/// Which mechanisms, beside shared queues, may still keep state of the flow that had this number before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormerFlow {
    /// The markers that it passed.
    pub markers: [Option<u16>; MOST_MARKERS],
    /// Its customer, if it has queues of its own.
    pub customer: Option<u32>,
}

/// How a packet's DSCP is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Not at all.
    Keep,
    /// To that of its colour.
    Colour(CodePoints),
    /// To this one.
    To(Dscp),
}

/// Why a frame goes no further, no matter who sent it and how little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not read as IP, and what it holds could not be bleached.
    Unread(Unread),
    /// Its length field says something else than what was received.
    LengthMismatch,
    /// The port that it would leave by takes none so long.
    TooLong,
}

impl Refusal {
    /// Names of the reasons, in counts.
    pub const NAMES: [&'static str; 7] =
        ["not_ip", "too_deep", "truncated", "malformed", "mac_control", "length_mismatch", "too_long"];

    pub(super) fn index(self) -> usize {
        match self {
            // A control frame is never refused for what it is; it would be no IP.
            Refusal::Unread(Unread::NotIp | Unread::Control(_)) => 0,
            Refusal::Unread(Unread::TooDeep) => 1,
            Refusal::Unread(Unread::Truncated) => 2,
            Refusal::Unread(Unread::Malformed) => 3,
            Refusal::Unread(Unread::MacControl) => 4,
            Refusal::LengthMismatch => 5,
            Refusal::TooLong => 6,
        }
    }
}

/// The decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It goes on at once, unqueued and unmarked.
    Pass,
    /// It goes no further, for this reason.
    Refuse(Refusal),
    /// It goes no further: its sender is out of profile.
    Police,
    /// It is marked and queued.
    Queue(Treatment),
}

/// The state that a packet will probably need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreseen {
    /// See [`Treatment::customer`].
    pub customer: u32,
    /// The first marker it passes.
    pub marker: u16,
}

/// Decides what is done with which frame.
pub trait Policy {
    /// Whether it pays to [look ahead](Policy::foresee): what few customers keep stays in the processor's cache.
    fn looks_ahead(&self) -> bool {
        false
    }

    /// Frames that wait are about to be [foreseen](Policy::foresee), from the first on.
    fn look_anew(&mut self) {}

    /// A frame waits to be decided on: looks up what can be before, and prefetches what the rest will read. Nothing is decided by it.
    fn foresee(&mut self, seen: &Seen) {
        let _ = seen;
    }

    /// The state that a frame will probably need which was foreseen and is decided on after the next one; prefetches what its decision writes.
    fn soon(&self) -> Option<Foreseen> {
        None
    }

    /// The decision about this frame.
    fn decide(&mut self, now: Time, seen: &Seen) -> Decision;
}

//! Markers (traffic conditioners): they set a packet's colour at the edge, and some of them drop packets there.

pub mod action;
pub mod ard;
pub mod blind_drop;
pub mod colour;
pub mod counts;
pub mod every_nth;
pub mod meter;
pub mod probe;
pub mod token_bucket;
pub mod tsw2cm;
pub mod tsw3cm;
pub mod twam;

use crate::mechanism::Mechanism;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::units::Time;
use crate::verdict::{Cause, Mark, Why};

/// By a marker, at the edge.
pub const EDGE: Cause = Cause::named("edge");

/// The interface of every marker.
pub trait Marker: Mechanism {
    /// Decides on a packet. Nothing else about the packet may change.
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark
    where
        Self: Sized;
}

/// A [`Marker`] as [`AnyMarker::Custom`](crate::registry::AnyMarker) holds it. Every `Marker` is one.
pub trait DynMarker: Marker {
    /// [`Marker::mark`].
    fn mark_dyn(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut dyn Why) -> Mark;
    /// For all that is no decision.
    fn object(&self) -> &(dyn Marker + 'static);
    /// For all that is no decision.
    fn object_mut(&mut self) -> &mut (dyn Marker + 'static);
}

impl<M: Marker + 'static> DynMarker for M {
    fn mark_dyn(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut dyn Why) -> Mark {
        self.mark(now, packet, rng, why)
    }
    fn object(&self) -> &(dyn Marker + 'static) {
        self
    }
    fn object_mut(&mut self) -> &mut (dyn Marker + 'static) {
        self
    }
}

//! Markers (traffic conditioners): they set a packet's colour at the edge, and some drop there.

pub mod action;
pub mod ard;
pub mod blind_drop;
pub mod colour;
pub mod every_nth;
pub mod meter;
pub mod probe;
pub mod token_bucket;
pub mod tsw2cm;
pub mod tsw3cm;
pub mod twam;

use crate::packet::{Direction, Packet};
use crate::rng::Rng;
use crate::signal::{Oracle, Outbox, Signal};
use crate::units::Time;
use crate::verdict::{Mark, Why};

/// Shows a mechanism's state by name, for monitors.
pub type Gauge<'a> = &'a mut dyn FnMut(&'static str, f64);

/// What every marker does. Only [`mark`](Marker::mark) must be written.
pub trait Marker: Send {
    /// Whether it looks at what passes in the reverse direction. One that doesn't needs no simulated event for it.
    const SEES_REVERSE: bool = true;

    /// Whether its ticks send signals: an experiment that connects it to nobody is warned about.
    const SENDS: bool = false;

    /// Sees a packet pass, in either direction, before any verdict on it: an edge's marker what passes its node, a flow's
    /// own marker the flow's data and acknowledgements.
    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        let _ = (now, packet, direction);
    }

    /// Decides on a packet. Nothing else about the packet may change.
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark;

    /// On ns-2's clock only: the moment of the call that follows, in its own seconds. They are sums of doubles that whole
    /// picoseconds can't hold, and decide where a bucket holds exactly a packet or an idle stretch exactly a whole number.
    fn tell_secs(&mut self, now: Time, secs: f64) {
        let _ = (now, secs);
    }

    /// Called at the start of the run and then at each time it returned; `None`: never again.
    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        let _ = (now, outbox);
        None
    }

    /// A signal from another mechanism has arrived; or, topic `"contract"`, what whoever runs it knows of the flows that
    /// pass: each one's contract in bits per second, before the first tick and when it changes; or, topic
    /// [`FORGET`](crate::signal::FORGET), that a flow's number is another's from now on.
    fn signal(&mut self, now: Time, signal: &Signal) {
        let _ = (now, signal);
    }

    /// What it wants to be told of the truth, if anything: see [`Oracle`].
    fn oracle(&self) -> Option<Oracle> {
        None
    }

    /// Shows the state at `now`, without changing it.
    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let _ = (now, show);
    }

    /// Counts since the start of the run, by name.
    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let _ = show;
    }
}

/// [`Marker`] as an object: what [`AnyMarker::Custom`](crate::registry::AnyMarker) holds.
/// Every `Marker` is one.
pub trait DynMarker: Send {
    /// See [`Marker::SEES_REVERSE`].
    fn sees_reverse(&self) -> bool;
    /// See [`Marker::SENDS`].
    fn sends(&self) -> bool;
    /// See [`Marker::observe`].
    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction);
    /// See [`Marker::mark`].
    fn mark(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut dyn Why) -> Mark;
    /// See [`Marker::tell_secs`].
    fn tell_secs(&mut self, now: Time, secs: f64);
    /// See [`Marker::tick`].
    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time>;
    /// See [`Marker::signal`].
    fn signal(&mut self, now: Time, signal: &Signal);
    /// See [`Marker::oracle`].
    fn oracle(&self) -> Option<Oracle>;
    /// See [`Marker::gauges`].
    fn gauges(&self, now: Time, show: Gauge<'_>);
    /// See [`Marker::stats`].
    fn stats(&self, show: &mut dyn FnMut(&'static str, u64));
}

impl<M: Marker> DynMarker for M {
    fn sees_reverse(&self) -> bool {
        M::SEES_REVERSE
    }
    fn sends(&self) -> bool {
        M::SENDS
    }
    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        Marker::observe(self, now, packet, direction);
    }
    fn mark(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut dyn Why) -> Mark {
        Marker::mark(self, now, packet, rng, why)
    }
    fn tell_secs(&mut self, now: Time, secs: f64) {
        Marker::tell_secs(self, now, secs);
    }
    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        Marker::tick(self, now, outbox)
    }
    fn signal(&mut self, now: Time, signal: &Signal) {
        Marker::signal(self, now, signal);
    }
    fn oracle(&self) -> Option<Oracle> {
        Marker::oracle(self)
    }
    fn gauges(&self, now: Time, show: Gauge<'_>) {
        Marker::gauges(self, now, show);
    }
    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        Marker::stats(self, show);
    }
}

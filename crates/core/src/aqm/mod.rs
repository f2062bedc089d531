//! Queue disciplines (active queue management): they decide which packets a full link drops.

pub mod ared;
pub mod curve;
pub mod drop_tail;
pub mod dsred;
pub mod dwred;
pub mod fdd_red;
#[cfg(test)]
mod oracle;
mod out_seen;
pub mod red;
pub mod rio;
pub mod rio_plus_out;
pub mod spacing;
pub mod tally;
pub mod thresholds;
pub mod wred;

use crate::marker::Gauge;
use crate::packet::{Direction, FlowId, Packet};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::{Oracle, Outbox, Signal};
use crate::units::{Backlog, Time};
use crate::verdict::{Admission, Departure, Why};

/// Shows what a discipline keeps of each flow, by name.
pub type FlowGauge<'a> = &'a mut dyn FnMut(FlowId, &'static str, f64);

/// What every discipline does. Only [`arrive`](Aqm::arrive) must be written.
///
/// The container ([`Fifo`](crate::queue::fifo::Fifo)) holds the packets, obeys and counts. It refuses a packet that does not
/// fit even if the discipline admitted it; a discipline that wants its own counts right asks
/// [`Queue::fits`] itself, before or after its other work as its source says.
pub trait Aqm: Send {
    /// Whether it takes packets out of the queue, or decides at departure: such a queue is served
    /// packet by packet, while others know a packet's departure time on its arrival.
    const SERVES: bool = false;

    /// Whether it ticks, or takes signals or observations. One that doesn't sees nothing but arrivals in their order, so a
    /// simulator may compute a packet's verdict as soon as it knows when the packet will arrive.
    const KEEPS_TIME: bool = true;

    /// Whether it looks at the acknowledgements of what it queues. One that doesn't needs no simulated event for them.
    const SEES_REVERSE: bool = false;

    /// Whether its ticks send signals: an experiment that connects it to nobody is warned about.
    const SENDS: bool = false;

    /// [`SERVES`](Aqm::SERVES), for a discipline of which only some settings take packets out of the queue.
    fn serves_as_set(&self) -> bool {
        Self::SERVES
    }

    /// Sees an acknowledgement come to the node of this queue over the link's other direction, if it belongs to a flow
    /// whose data passes this queue (data is seen in `arrive`). Only where [`SEES_REVERSE`](Aqm::SEES_REVERSE) says so.
    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        let _ = (now, packet, direction);
    }

    /// Decides on an arrival; the queue does not hold it yet.
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission;

    /// Decides on the packet that is about to be sent; the queue does not hold it any more.
    fn depart<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Departure {
        let _ = (now, packet, queue, rng, why);
        Departure::Send
    }

    /// Where its source reads a limit otherwise than [`Queue::fits`] does: a packet joins while fewer bytes than this wait,
    /// whatever its own size. `None`: all that waits, the packet included, is within the limit.
    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        let _ = limit;
        None
    }

    /// On ns-2's clock only: the moment of the call that follows, in its own seconds, which whole picoseconds can't
    /// hold. Traffic in step leaves a link idle for exactly whole packets, and then the last bit counts.
    fn tell_secs(&mut self, secs: f64) {
        let _ = secs;
    }

    /// Called at the start of the run and then at each time it returned; `None`: never again.
    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        let _ = (now, outbox);
        None
    }

    /// A signal from another mechanism has arrived; or, topic [`FORGET`](crate::signal::FORGET), a flow's number is
    /// another's from now on.
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

    /// Shows what it keeps of each flow, without changing it.
    fn flow_gauges(&self, now: Time, show: FlowGauge<'_>) {
        let _ = (now, show);
    }

    /// Counts since the start of the run, by name.
    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let _ = show;
    }
}

/// [`Aqm`] as an object: what [`AnyAqm::Custom`](crate::registry::AnyAqm) holds. Every `Aqm` is one.
pub trait DynAqm: Send {
    /// See [`Aqm::serves_as_set`].
    fn serves(&self) -> bool;
    /// See [`Aqm::KEEPS_TIME`].
    fn keeps_time(&self) -> bool;
    /// See [`Aqm::SEES_REVERSE`].
    fn sees_reverse(&self) -> bool;
    /// See [`Aqm::SENDS`].
    fn sends(&self) -> bool;
    /// See [`Aqm::observe`].
    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction);
    /// See [`Aqm::arrive`].
    fn arrive(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut dyn Queue,
        rng: &mut Rng,
        why: &mut dyn Why,
    ) -> Admission;
    /// See [`Aqm::depart`].
    fn depart(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut dyn Queue,
        rng: &mut Rng,
        why: &mut dyn Why,
    ) -> Departure;
    /// See [`Aqm::joins_below`].
    fn joins_below(&self, limit: Backlog) -> Option<u64>;
    /// See [`Aqm::tell_secs`].
    fn tell_secs(&mut self, secs: f64);
    /// See [`Aqm::tick`].
    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time>;
    /// See [`Aqm::signal`].
    fn signal(&mut self, now: Time, signal: &Signal);
    /// See [`Aqm::oracle`].
    fn oracle(&self) -> Option<Oracle>;
    /// See [`Aqm::gauges`].
    fn gauges(&self, now: Time, show: Gauge<'_>);
    /// See [`Aqm::flow_gauges`].
    fn flow_gauges(&self, now: Time, show: FlowGauge<'_>);
    /// See [`Aqm::stats`].
    fn stats(&self, show: &mut dyn FnMut(&'static str, u64));
}

impl<A: Aqm> DynAqm for A {
    fn serves(&self) -> bool {
        Aqm::serves_as_set(self)
    }
    fn keeps_time(&self) -> bool {
        A::KEEPS_TIME
    }
    fn sees_reverse(&self) -> bool {
        A::SEES_REVERSE
    }
    fn sends(&self) -> bool {
        A::SENDS
    }
    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        Aqm::observe(self, now, packet, direction);
    }
    fn arrive(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut dyn Queue,
        rng: &mut Rng,
        why: &mut dyn Why,
    ) -> Admission {
        Aqm::arrive(self, now, packet, queue, rng, why)
    }
    fn depart(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut dyn Queue,
        rng: &mut Rng,
        why: &mut dyn Why,
    ) -> Departure {
        Aqm::depart(self, now, packet, queue, rng, why)
    }
    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        Aqm::joins_below(self, limit)
    }
    fn tell_secs(&mut self, secs: f64) {
        Aqm::tell_secs(self, secs);
    }
    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        Aqm::tick(self, now, outbox)
    }
    fn signal(&mut self, now: Time, signal: &Signal) {
        Aqm::signal(self, now, signal);
    }
    fn oracle(&self) -> Option<Oracle> {
        Aqm::oracle(self)
    }
    fn gauges(&self, now: Time, show: Gauge<'_>) {
        Aqm::gauges(self, now, show);
    }
    fn flow_gauges(&self, now: Time, show: FlowGauge<'_>) {
        Aqm::flow_gauges(self, now, show);
    }
    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        Aqm::stats(self, show);
    }
}

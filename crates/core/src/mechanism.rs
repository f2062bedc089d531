//! The hooks that markers and queue disciplines share: they observe packets, act at times that they ask for, take signals and show state.
//!
//! A [`Marker`](crate::marker::Marker) and an [`Aqm`](crate::aqm::Aqm) are mechanisms that also decide, each about its own kind
//! of event. Every hook here does nothing by default, so a mechanism implements only those it needs. All of them can be called
//! through a trait object, so a hook is declared here and implemented where it is used, and nowhere else.

use crate::packet::{Direction, FlowId, Packet};
use crate::signal::{Oracle, Outbox, Signal};
use crate::units::Time;

/// Shows a mechanism's state by name, for monitors.
pub type Gauge<'a> = &'a mut dyn FnMut(&'static str, f64);

/// Shows what a mechanism keeps of each flow, by name.
pub type FlowGauge<'a> = &'a mut dyn FnMut(FlowId, &'static str, f64);

/// The hooks of every marker and discipline.
pub trait Mechanism: Send {
    /// Whether it ticks, asks for an oracle, or decides by signals or observations. A discipline that doesn't sees only arrivals, in
    /// order, so a simulator may compute a packet's verdict as soon as it knows when the packet will arrive. The trials
    /// (`inprofile-trials`) find one that ticks without saying so.
    fn keeps_time(&self) -> bool {
        false
    }

    /// Whether it looks at what passes in the reverse direction: only then is it shown that. The trials find one that does without
    /// saying so.
    fn sees_reverse(&self) -> bool {
        false
    }

    /// Whether its ticks send signals: an experiment that connects it to nobody is warned about.
    fn sends(&self) -> bool {
        false
    }

    /// Sees a packet pass. A marker sees data before its verdict on it, and acknowledgements: an edge's marker sees those
    /// that pass its node, a flow's own marker those of its flow. A discipline sees the acknowledgements of flows whose
    /// data passes its queue, as they come to its node over the link's other direction; data it sees as it arrives.
    fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        let _ = (now, packet, direction);
    }

    /// Called at the start of the run and then at each time it returns; `None` means never again.
    fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        let _ = (now, outbox);
        None
    }

    /// A signal has arrived: from another mechanism; or from the caller, topic `"contract"`: a flow's contract in bits per
    /// second, before the first tick and when it changes; or topic [`FORGET`](crate::signal::FORGET): a flow's number belongs
    /// to another flow from now on.
    fn signal(&mut self, now: Time, signal: &Signal) {
        let _ = (now, signal);
    }

    /// Which true value it wants to be told, if any: see [`Oracle`].
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

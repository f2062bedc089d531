//! Queue disciplines (active queue management): they decide which packets are dropped or marked at a congested link.

pub mod cobalt;
pub mod codel;
pub mod drop_tail;
pub mod fdd_red;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
pub mod l4s {
    //! Coupled disciplines: ECT(1) packets (L4S) are marked, others dropped or marked with the square of that probability, so that flows
    //! of both kinds get about the same rate (RFC 9332 §2.1).
    //!
    //! [`coupling`] decides on a packet about to leave, [`pi`] is the controller behind it. [`pi2`] has one queue; [`dual`] has two, which
    //! [`Order`](dual::Order) serves, and is [`dualpi2`] or, with another base in the controller's place, [`curvy_red`].

    pub mod coupling;
    pub mod curvy_red;
    pub mod dual;
    pub mod dualpi2;
    pub mod pi;
    pub mod pi2;
}
pub mod pi;
pub mod pie;
pub mod red;
pub mod rem;
pub mod sfb;
pub mod sfq;
pub mod virtual_queue;

pub use l4s::{curvy_red, dualpi2, pi2};
pub use red::{ared, choke, dwred, rio, rio_plus_out, wred};

use crate::prelude::*;

/// Dropped on arrival, with the probability that a controller has set.
pub(crate) const EARLY: Cause = Cause::named("early");

/// When and where a discipline decides on a packet, and what it decides with.
#[derive(Debug)]
pub struct At<'a, Q: ?Sized, W: ?Sized> {
    /// The time.
    pub now: Time,
    /// When the packet came: now, if it is just arriving.
    pub since: Time,
    /// The queue, which does not hold the packet: not yet at its arrival, no more at its departure.
    pub queue: &'a mut Q,
    /// The discipline's random numbers.
    pub rng: &'a mut Rng,
    /// Takes down the figures behind the verdict.
    pub why: &'a mut W,
}

impl<'a, Q: ?Sized, W: ?Sized> At<'a, Q, W> {
    /// For a packet that arrives now.
    #[inline(always)]
    pub fn new(now: Time, queue: &'a mut Q, rng: &'a mut Rng, why: &'a mut W) -> Self {
        At { now, since: now, queue, rng, why }
    }

    /// For a packet that departs now and came at that time.
    #[inline(always)]
    #[must_use]
    pub fn since(self, since: Time) -> Self {
        At { since, ..self }
    }
}

#[cfg(test)]
impl<'a, Q: ?Sized> At<'a, Q, Silent> {
    /// Where nobody asks why.
    pub(crate) fn silent(now: Time, queue: &'a mut Q, rng: &'a mut Rng) -> Self {
        At::new(now, queue, rng, Box::leak(Box::new(Silent)))
    }
}

/// The interface of every discipline; only [`arrive`](Aqm::arrive) is required.
///
/// The container ([`Fifo`](crate::queue::fifo::Fifo)) holds the packets, carries out the verdicts and counts them. It refuses a packet
/// that does not fit even if the discipline has admitted it. So a discipline that keeps counts of its own asks [`Queue::fits`]
/// itself, before or after its other tests, as its source has it.
pub trait Aqm: Mechanism {
    /// Whether it removes waiting packets or decides at departure. Its queue is then served packet by packet; with any other
    /// discipline, when a packet will depart is known as it arrives.
    fn serves(&self) -> bool {
        false
    }

    /// Whether ECT(1) packets get the treatment of RFC 9331 §5: marked more often than others are dropped. A discipline without it
    /// treats them as ECT(0) (RFC 3168 §5), and L4S senders then take more than their share.
    fn l4s(&self) -> bool {
        false
    }

    /// Whether, with its settings, it ever marks packets of ECN-capable transports. One that doesn't drops them like any others: ECN's
    /// code points mean nothing to it.
    fn marks(&self) -> bool {
        false
    }

    /// Decides on an arrival; the queue does not hold it yet.
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission
    where
        Self: Sized;

    /// Decides on the packet that is about to be sent; the queue does not hold it any more. Asked only where it [serves](Aqm::serves).
    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure
    where
        Self: Sized,
    {
        let _ = (packet, at);
        Departure::Send
    }

    /// How many queues it keeps; 0: a single one, first in, first out. A discipline with several also [serves](Aqm::serves), names each
    /// arrival's queue by [`Queue::join`], and is asked which queue is [next](Aqm::next_queue).
    fn flow_queues(&self) -> u32 {
        0
    }

    /// Of several queues: the one whose head is decided on next, which must not be empty; `None` if all are. Called again after each
    /// packet that is sent or dropped.
    fn next_queue<Q: Queue + ?Sized>(&mut self, now: Time, queue: &mut Q, rng: &mut Rng) -> Option<u32>
    where
        Self: Sized,
    {
        let _ = (now, queue, rng);
        None
    }

    /// For a source that reads the limit differently from [`Queue::fits`]: a packet joins while fewer bytes than this are waiting,
    /// whatever its own size. `None`: what is waiting and the packet together must be within the limit.
    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        let _ = limit;
        None
    }

    /// Shows counts since the start of the run by name, for results: `queue` has counted what was dropped, by cause, and marked; whatever else
    /// there is to count is the discipline's own ([`Mechanism::stats`]).
    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        let _ = queue;
        self.stats(show);
    }
}

/// The verdict on an arrival that is dropped with probability `p`. A packet that finds the queue full is dropped without a draw; for any
/// other `chooses` draws. If `marks` is set and the packet's transport supports ECN, it is marked instead of dropped.
pub(crate) fn by_chance<Q: Queue + ?Sized, W: Why + ?Sized>(
    packet: &Packet,
    queue: &Q,
    (p, marks): (f64, bool),
    why: &mut W,
    chooses: impl FnOnce(&mut W) -> bool,
) -> Admission {
    why.note("drop_prob", p);
    if !queue.fits(packet.size) {
        Admission::Drop(Cause::OVERFLOW)
    } else if !chooses(why) {
        Admission::Admit
    } else if marks && packet.ecn.can_mark() {
        Admission::Mark
    } else {
        Admission::Drop(EARLY)
    }
}

/// RFC 8289 §4.3: the target is a small fraction of the interval.
///
/// # Errors
/// If the target is not below the interval at all.
pub(crate) fn target_below_interval(target: Duration, interval: Duration) -> Result<(), Fault> {
    if target < interval {
        return Ok(());
    }
    Err(Fault {
        field: "target",
        problem: format!("a target of {target} is not below the interval of {interval}"),
        remedy: "5 to 10 % of interval, such as \"5 ms\" of \"100 ms\"".into(),
    })
}

/// Warns of a target delay that even a full queue does not reach.
pub(crate) fn beyond_full_queue(target: Duration, context: &Context, name: &str) -> Option<Warning> {
    let (limit, rate) = (context.limit?, context.link_rate?);
    (rate.bytes_in(target) >= limit.bytes(context.packet)).then(|| Warning {
        field: "target",
        text: format!(
            "a full queue ({limit}) delays by less than target ({target}): the limit drops, {name} hardly ever"
        ),
    })
}

/// Warns of a target length that is not below the queue's limit; `mean` is a typical packet's size on the wire.
pub(crate) fn beyond_limit(
    (field, target): (&'static str, Backlog),
    mean: Bytes,
    context: &Context,
    name: &str,
) -> Option<Warning> {
    let limit = context.limit?;
    (target.bytes(mean) >= limit.bytes(mean)).then(|| Warning {
        field,
        text: format!(
            "{field} ({target}) is not below the limit ({limit}): the limit drops, {name} hardly ever"
        ),
    })
}

/// An [`Aqm`] as [`AnyAqm::Custom`](crate::registry::AnyAqm) holds it. Every `Aqm` is one.
pub trait DynAqm: Aqm {
    /// [`Aqm::arrive`].
    fn arrive_dyn(&mut self, packet: &Packet, at: At<'_, dyn Queue + '_, dyn Why + '_>) -> Admission;
    /// [`Aqm::depart`].
    fn depart_dyn(&mut self, packet: &Packet, at: At<'_, dyn Queue + '_, dyn Why + '_>) -> Departure;
    /// [`Aqm::next_queue`].
    fn next_queue_dyn(&mut self, now: Time, queue: &mut dyn Queue, rng: &mut Rng) -> Option<u32>;
    /// As an object, for the hooks that decide nothing.
    fn object(&self) -> &(dyn Aqm + 'static);
    /// As an object, for the hooks that decide nothing.
    fn object_mut(&mut self) -> &mut (dyn Aqm + 'static);
}

impl<A: Aqm + 'static> DynAqm for A {
    fn arrive_dyn(&mut self, packet: &Packet, at: At<'_, dyn Queue + '_, dyn Why + '_>) -> Admission {
        self.arrive(packet, at)
    }
    fn depart_dyn(&mut self, packet: &Packet, at: At<'_, dyn Queue + '_, dyn Why + '_>) -> Departure {
        self.depart(packet, at)
    }
    fn next_queue_dyn(&mut self, now: Time, queue: &mut dyn Queue, rng: &mut Rng) -> Option<u32> {
        self.next_queue(now, queue, rng)
    }
    fn object(&self) -> &(dyn Aqm + 'static) {
        self
    }
    fn object_mut(&mut self) -> &mut (dyn Aqm + 'static) {
        self
    }
}

/// Packets, or bytes.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Where lengths are in bytes: the size of a packet.
    pub packet: Option<f64>,
}

impl Unit {
    /// The unit of a target, and the target in packets; `mean` is a typical packet's size in bytes.
    #[must_use]
    pub fn of(target: Backlog, mean: f64) -> (Unit, f64) {
        match target {
            Backlog::Packets(n) => (Unit { packet: None }, n),
            Backlog::Bytes(n) => (Unit { packet: Some(mean) }, n / mean),
        }
    }

    /// The length of a queue.
    #[must_use]
    pub fn length<Q: Queue + ?Sized>(self, queue: &Q) -> u64 {
        if self.packet.is_some() { queue.bytes() } else { u64::from(queue.packets()) }
    }

    /// The length that a packet of this size adds.
    #[must_use]
    pub fn added_by(self, size: u32) -> u64 {
        if self.packet.is_some() { u64::from(size) } else { 1 }
    }

    /// A length in packets.
    #[must_use]
    pub fn packets(self, length: f64) -> f64 {
        self.packet.map_or(length, |packet| length / packet)
    }
}

//! Two coupled queues in front of one link: the structure of every DualQ discipline, over any base AQM (RFC 9332 §2.4, Appendix A).
//!
//! ```text
//!             L4S queue ──────→ native AQM (ramp) ─┐
//! ECT(1), CE ─↗                                    ├─ coupling ─ scheduler ─→ link
//! others ─────→ Classic queue → base AQM (p′) ─────┘
//! ```
//!
//! Both share one limit. The L4S queue goes first, unless Classic packets are owed their turn. The [coupling](Coupling) decides what
//! becomes of the packet that is about to leave; a base AQM only supplies p′.
//! A packet's queueing delay is the time it waited; a queue's, between departures, is the time its head has waited.

use crate::aqm::Aqm;
use crate::aqm::l4s::coupling::{CLASSIC, Coupling, L4S};
use crate::aqm::l4s::order::Order;
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::Packet;
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Outbox;
use crate::units::{Backlog, Bytes, Time};
use crate::verdict::{Admission, Cause, Departure, Why};

/// The controller that moves p′.
pub trait Base: Send {
    /// Whether departures move it, not only ticks.
    const MOVES_AT_DEPARTURE: bool = false;
    /// p′, 0 to 1.
    fn p_prime(&self) -> f64;
    /// A packet of one kind is about to leave, having waited `waited` seconds; the other queue's head has waited `other` seconds.
    /// Called for a base that [departures move](Base::MOVES_AT_DEPARTURE).
    fn departs(&mut self, kind: usize, waited: f64, other: f64) {
        let _ = (kind, waited, other);
    }
    /// An update with the delays of both queues' heads; returns the time when the next one is due.
    fn tick(&mut self, now: Time, delays: [f64; 2]) -> Option<Time> {
        let _ = (now, delays);
        None
    }
    /// Shows the state it keeps besides p′.
    fn gauges(&self, show: Gauge<'_>) {
        let _ = show;
    }
}

/// The L4S queue's native AQM (Figure 5): marks by the packet's own delay, unsmoothed.
#[derive(Clone, Copy, Debug)]
pub struct Ramp {
    /// Nothing is marked below this delay, in seconds (minTh).
    pub min_th: f64,
    /// The probability rises from there to 1 over this range of delay, in seconds; 0: a step.
    pub range: f64,
    /// Nothing is marked while the queue has no more packets than this (Th_len). The one about to leave counts: the pseudocode
    /// removes it before reading the length, but the check is meant to "exempt the last packet of a burst" (§A.2), not the last two.
    pub th_len: u32,
}

impl Ramp {
    /// laqm(): the probability at this delay.
    #[must_use]
    pub fn at(&self, delay: f64) -> f64 {
        if delay >= self.min_th + self.range {
            1.0
        } else if delay > self.min_th {
            (delay - self.min_th) / self.range
        } else {
            0.0
        }
    }
}

/// The discipline, over a base AQM.
#[derive(Clone, Debug)]
pub struct Dual<B> {
    base: B,
    coupling: Coupling,
    ramp: Ramp,
    order: Order,
    /// The arrival time of the packet at each queue's head.
    heads: [Option<Time>; 2],
    /// The room left for a full packet, whatever the size of the arriving one (Figure 3, line 2).
    mtu: Bytes,
    /// Whether marks no longer suffice.
    overloaded: bool,
    /// The number of times that overload has begun.
    overloads: u64,
    /// Packets dropped because the buffer was full.
    overflow: u64,
}

impl<B: Base> Dual<B> {
    /// The discipline with empty queues.
    #[must_use]
    pub fn new(base: B, coupling: Coupling, ramp: Ramp, order: Order, mtu: Bytes) -> Dual<B> {
        let (overloads, overflow) = (0, 0);
        Dual { base, coupling, ramp, order, heads: [None; 2], mtu, overloaded: false, overloads, overflow }
    }

    /// How long the packet at each queue's head has waited, in seconds.
    fn delays(&self, now: Time) -> [f64; 2] {
        self.heads.map(|head| head.map_or(0.0, |came| now.since(came).secs()))
    }

    /// p′ may have moved.
    fn note_overload(&mut self, p_prime: f64) {
        let overloaded = self.coupling.config().overloaded(p_prime);
        self.overloads += u64::from(overloaded && !self.overloaded);
        self.overloaded = overloaded;
    }
}

impl<B: Base> Mechanism for Dual<B> {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        let next = self.base.tick(now, self.delays(now));
        self.note_overload(self.base.p_prime());
        next
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let (p, config) = (self.base.p_prime(), self.coupling.config());
        let [l4s, classic] = self.delays(now);
        show("p_prime", p);
        show("p_c", config.p_c(p));
        show("p_cl", config.p_cl(p));
        show("delay_l4s", l4s);
        show("delay_classic", classic);
        show("overloaded", f64::from(u8::from(self.overloaded)));
        self.base.gauges(show);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.coupling.stats(show);
        show("overloads", self.overloads);
        show("overflow", self.overflow);
    }
}

impl<B: Base> Aqm for Dual<B> {
    fn serves(&self) -> bool {
        true
    }

    fn l4s(&self) -> bool {
        self.coupling.config().l4s
    }

    fn marks(&self) -> bool {
        self.coupling.config().marks()
    }

    fn flow_queues(&self) -> u32 {
        2
    }

    /// Figure 3, line 2: a packet joins while there is room for a full one.
    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        match limit {
            Backlog::Packets(_) => None,
            Backlog::Bytes(bytes) => Some((bytes as u64 + 1).saturating_sub(self.mtu.0)),
        }
    }

    /// Figure 3.
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        _: &mut Rng,
        _: &mut W,
    ) -> Admission {
        if queue.idle_since().is_some() {
            self.order.rest();
        }
        if !queue.fits(packet.size) {
            self.overflow += 1;
            return Admission::Drop(Cause::OVERFLOW);
        }
        let kind = self.coupling.config().kind_of(packet.ecn);
        if queue.packets_in(kind as u32) == 0 {
            self.heads[kind] = Some(now);
        }
        queue.join(kind as u32);
        Admission::Admit
    }

    /// Figure 7, line 3: scheduler().
    fn next_queue<Q: Queue + ?Sized>(&mut self, now: Time, queue: &mut Q, _: &mut Rng) -> Option<u32> {
        let waits = [L4S, CLASSIC].map(|kind| queue.packets_in(kind as u32) > 0);
        match waits {
            [false, false] => None,
            [true, false] => Some(L4S as u32),
            [false, true] => Some(CLASSIC as u32),
            [true, true] => Some(self.order.next(self.delays(now)) as u32),
        }
    }

    /// Figure 7, lines 4a to 17.
    #[inline(always)]
    fn depart<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        since: Time,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Departure {
        let kind = self.coupling.config().kind_of(packet.ecn);
        self.heads[kind] = queue.head_since(kind as u32);
        let waited = now.since(since).secs();
        if B::MOVES_AT_DEPARTURE {
            self.base.departs(kind, waited, self.delays(now)[1 - kind]);
            self.note_overload(self.base.p_prime());
        }
        let p_prime = self.base.p_prime();
        why.note("sojourn", waited);
        why.note("p_prime", p_prime);
        let native = if kind == L4S && queue.packets_in(L4S as u32) >= self.ramp.th_len {
            self.ramp.at(waited)
        } else {
            0.0
        };
        let waiting = queue.bytes() + u64::from(packet.size);
        let verdict = self.coupling.decide(packet, (p_prime, native), waiting, rng, why);
        if !matches!(verdict, Departure::Drop(_)) && queue.packets_in(1 - kind as u32) > 0 {
            self.order.sent(kind, packet.size);
        }
        verdict
    }
}

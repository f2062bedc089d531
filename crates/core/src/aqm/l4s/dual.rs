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

use crate::aqm::l4s::coupling::{CLASSIC, Coupling, L4S};
use crate::prelude::*;

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
    /// Room that must be left for a packet to join, whatever its size (Figure 3, line 2).
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
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        if at.queue.idle_since().is_some() {
            self.order.rest();
        }
        if !at.queue.fits(packet.size) {
            self.overflow += 1;
            return Admission::Drop(Cause::OVERFLOW);
        }
        let kind = self.coupling.config().kind_of(packet.ecn);
        if at.queue.packets_in(kind as u32) == 0 {
            self.heads[kind] = Some(at.now);
        }
        at.queue.join(kind as u32);
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
    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        let kind = self.coupling.config().kind_of(packet.ecn);
        self.heads[kind] = at.queue.head_since(kind as u32);
        let waited = at.now.since(at.since).secs();
        if B::MOVES_AT_DEPARTURE {
            self.base.departs(kind, waited, self.delays(at.now)[1 - kind]);
            self.note_overload(self.base.p_prime());
        }
        let p_prime = self.base.p_prime();
        at.why.note("sojourn", waited);
        at.why.note("p_prime", p_prime);
        let native = if kind == L4S && at.queue.packets_in(L4S as u32) >= self.ramp.th_len {
            self.ramp.at(waited)
        } else {
            0.0
        };
        let waiting = at.queue.bytes() + u64::from(packet.size);
        let verdict = self.coupling.decide(packet, (p_prime, native), waiting, at.rng, at.why);
        if !matches!(verdict, Departure::Drop(_)) && at.queue.packets_in(1 - kind as u32) > 0 {
            self.order.sent(kind, packet.size);
        }
        verdict
    }
}

// Which of the two queues sends next where both have something to send: L4S first, within a bound (RFC 9332 §4.2.2).

crate::choice! {
    /// How the priority of the L4S queue is bounded.
    pub enum Bound {
        /// Weighted round robin: while both have packets, Classic gets its weight of the bytes.
        Wrr = "wrr",
        /// Time-shifted FIFO: the head that has waited longest, L4S heads counting as `tshift` older.
        TsFifo = "ts_fifo",
    }
}

/// The scheduler of the two queues.
#[derive(Clone, Debug)]
pub enum Order {
    /// Weighted round robin.
    Wrr {
        /// Classic's share of the bytes.
        weight: f64,
        /// The bytes that Classic is owed, where above 0.
        credit: f64,
        /// The credit after an idle period.
        rested: f64,
    },
    /// Time-shifted FIFO: in seconds.
    TsFifo(f64),
}

/// Whether Classic's weight leaves L4S its priority.
///
/// # Errors
/// If it is one half or more.
pub fn fit(classic_weight: f64) -> Result<(), Fault> {
    if classic_weight < 0.5 {
        return Ok(());
    }
    Err(Fault {
        field: "classic_weight",
        problem: format!("a Classic weight of {classic_weight} leaves L4S packets no priority"),
        remedy: "classic_weight = 0.0625 (RFC 9332 §4.2.2), or another below 0.5".into(),
    })
}

impl Order {
    /// From the operator's settings.
    #[must_use]
    pub fn new(bound: Bound, classic_weight: f64, tshift: Duration, context: &Context) -> Order {
        match bound {
            Bound::Wrr => {
                // §A.1: in favour of the L4S queue, as if a full Classic packet had just been sent.
                let rested = -(1.0 - 2.0 * classic_weight) * context.packet.0 as f64;
                Order::Wrr { weight: classic_weight, credit: rested, rested }
            }
            Bound::TsFifo => Order::TsFifo(tshift.secs()),
        }
    }

    /// The link was idle (§A.1: "reset in favour of the L queue when the link is idle").
    pub fn rest(&mut self) {
        if let Order::Wrr { credit, rested, .. } = self {
            *credit = *rested;
        }
    }

    /// Whose turn it is when both have something to send, given how long each head has waited, in seconds.
    #[must_use]
    pub fn next(&self, [l4s, classic]: [f64; 2]) -> usize {
        let l4s_first = match self {
            Order::Wrr { credit, .. } => *credit <= 0.0,
            // Figure 10, lines 28 to 33.
            Order::TsFifo(tshift) => l4s + tshift >= classic,
        };
        if l4s_first { L4S } else { CLASSIC }
    }

    /// A packet of one kind is sent while the other waits: only then does it count (§A.1).
    pub fn sent(&mut self, kind: usize, size: u32) {
        if let Order::Wrr { weight, credit, .. } = self {
            let bytes = f64::from(size);
            *credit += if kind == L4S { *weight * bytes } else { (*weight - 1.0) * bytes };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1500), limit: None };

    fn wrr(weight: f64) -> Order {
        Order::new(Bound::Wrr, weight, Duration::ZERO, &CONTEXT)
    }

    /// RFC 9332 §4.2.2: "if the Classic weight is 1/16, the maximum that a Classic packet at the head of the queue can be delayed by
    /// L traffic is the serialization delay of 15 MTU-sized packets".
    #[test]
    fn fifteen_l4s_packets_to_one() {
        let mut order = wrr(1.0 / 16.0);
        let turns: Vec<usize> = (0..64)
            .map(|_| {
                let kind = order.next([0.0, 9.0]);
                order.sent(kind, 1500);
                kind
            })
            .collect();
        let expected: Vec<usize> = (1..=64).map(|i| if i % 16 == 0 { CLASSIC } else { L4S }).collect();
        assert_eq!(turns, expected);
        // After an idle period it is as at the start.
        (0..10).for_each(|_| order.sent(L4S, 1500));
        order.rest();
        assert_eq!(format!("{order:?}"), format!("{:?}", wrr(1.0 / 16.0)));
    }

    /// By bytes, whatever the sizes; a Classic head waits for at most (1/w − 1) full packets and the one that overdraws.
    #[test]
    fn shares_are_of_bytes() {
        let mut order = wrr(0.1);
        let (mut bytes, mut since) = ([0u64; 2], 0);
        for i in 0..100_000u32 {
            let kind = order.next([0.0; 2]);
            let size = if kind == L4S { 40 + i * 7919 % 1461 } else { 300 };
            order.sent(kind, size);
            bytes[kind] += u64::from(size);
            since = if kind == CLASSIC { 0 } else { since + size };
            assert!(since <= 9 * 1500 + 1500, "{since} B of L4S in a row");
        }
        let share = bytes[CLASSIC] as f64 / (bytes[L4S] + bytes[CLASSIC]) as f64;
        assert!((share - 0.1).abs() < 1e-3, "{share}");
    }

    #[test]
    fn a_shifted_fifo_is_strict_until_the_shift() {
        let order = Order::new(Bound::TsFifo, 0.1, Duration::from_millis(50), &CONTEXT);
        assert_eq!([0.049, 0.050, 0.051].map(|classic| order.next([0.0, classic])), [L4S, L4S, CLASSIC]);
        assert_eq!(order.next([0.001, 0.0515]), CLASSIC);
    }

    #[test]
    fn a_weight_without_priority_is_refused() {
        assert!(fit(0.0625).is_ok() && fit(0.49).is_ok());
        assert_eq!([0.5, 1.0].map(|w| fit(w).map_err(|f| f.field)), [Err("classic_weight"); 2]);
    }
}

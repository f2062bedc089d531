//! One direction through a router: frames are classified, marked, queued, and sent at a shaped rate.
//!
//! Time is an argument. [`Datapath::advance`] does everything that is due by a given time, in order, each event at its
//! *own* time. So a late caller delays packets but changes no decision of any mechanism. At equal times departures come
//! first, then ticks, then arrivals, as in the simulator.
//! Non-goal: routing. What comes in at one port leaves by the other.

pub mod buffers;
pub mod customer;
pub mod marker;
mod policy;
mod setup;
pub mod shaper;
mod state;

use buffers::queued_frame;
use marker::charge;
pub use shaper::lateness;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use inprofile_core::marker::POLICED;
use inprofile_core::packet::{Direction, Ecn, Kind, Packet};
use inprofile_core::queue::hierarchy::Hierarchy;
use inprofile_core::rng::Rng;
use inprofile_core::signal::{FORGET, Outbox, Signal};
use inprofile_core::units::{Bytes, Duration, Rate, Time};
use inprofile_core::verdict::{Admission, Cause, Mark, Silent};

use crate::packet::{self, Census, Layer};
use buffers::{Buffers, Slot};
pub use charge::Charge;
use customer::CustomerCounts;
use marker::Marking;
pub use policy::{
    Contract, Decision, Foreseen, FormerFlow, MOST_MARKERS, Policy, Refusal, Rewrite, Treatment,
};
use queued_frame::QueuedFrame;
pub use setup::{CustomerQueue, Parts, Sharing};
use shaper::Shaper;
pub use state::{ClassState, Totals};

/// Sees what becomes of each packet. `number` counts arrivals from 0.
pub trait Witness {
    /// A marker decided.
    fn marked(&mut self, now: Time, number: u64, marker: u16, verdict: Mark) {
        let _ = (now, number, marker, verdict);
    }
    /// The queue decided on an arrival.
    fn queued(&mut self, now: Time, number: u64, verdict: Admission) {
        let _ = (now, number, verdict);
    }
    /// A waiting packet was dropped.
    fn lost(&mut self, now: Time, number: u64, cause: Cause) {
        let _ = (now, number, cause);
    }
    /// A packet goes onto the link, for which it was due at `due`; `frame` is as it goes out.
    fn send(&mut self, due: Time, number: u64, frame: &mut [u8]);
}

/// Members of the hierarchy: the classes with priority, the other shared ones, and then customers by their index.
const FIRST: usize = 0;
const SHARED: usize = 1;
const CUSTOMERS: usize = 2;

/// One direction.
#[derive(Debug)]
pub struct Datapath<P> {
    /// Decides what is done with a frame.
    pub policy: P,
    layer: Layer,
    charge: Charge,
    /// See [`Datapath::set_mtu`].
    mtu: Option<usize>,
    age_limit: Option<Duration>,
    /// The caller's clock: no earlier than the events being processed.
    present: Time,
    markers: Vec<Marking>,
    /// Which of them keep state of single flows: the others are not even looked at when a flow comes or goes.
    keep_flows: Vec<bool>,
    queue: Hierarchy<QueuedFrame>,
    /// How many of the first classes have priority over all others.
    first: usize,
    customers: Vec<CustomerCounts>,
    rng: Rng,
    shaper: Shaper,
    /// The link is free and packets wait, but by their classes' set rates none may leave before this.
    held_until: Option<Time>,
    buffers: Buffers,
    /// See [`Sharing::reserved`].
    reserved: [u32; 2],
    census: Census,
    totals: Totals,
    /// When which marker ticks next: markers that do not tick cost nothing.
    ticks: BinaryHeap<Reverse<(Time, u16)>>,
}

impl<P: Policy> Datapath<P> {
    /// Sends a marker a signal.
    pub fn tell(&mut self, marker: u16, now: Time, signal: &Signal) {
        if let Some(m) = self.markers.get_mut(usize::from(marker)) {
            m.marker.signal(now, signal);
        }
    }

    /// Whether it pays to [look ahead](Datapath::foresee).
    #[must_use]
    pub fn looks_ahead(&self) -> bool {
        self.policy.looks_ahead()
    }

    /// A frame waits behind others and will come in: shows it to the policy, so that the cache misses of a burst overlap. Nothing is
    /// decided by it.
    pub fn foresee(&mut self, frame: &[u8]) {
        self.policy.foresee(&packet::parse(self.layer, frame));
    }

    /// A frame comes in. Everything that was due before is done first. A frame that leaves at once is rewritten in place; one
    /// that waits is copied.
    pub fn arrive<W: Witness>(&mut self, now: Time, frame: &mut [u8], witness: &mut W) {
        self.advance(now, witness);
        if let Some(Foreseen { customer, marker }) = self.policy.soon() {
            self.prefetch(Some(customer), Some(marker));
        }
        let number = self.totals.came;
        self.totals.came += 1;
        let seen = packet::parse(self.layer, frame);
        self.census.count(&seen);
        self.totals.length_disagrees += u64::from(seen.is_ok_and(|h| h.length_disagrees));
        if self.mtu.is_some_and(|mtu| !packet::fits(self.layer, frame, mtu)) {
            return self.totals.refuse(Refusal::TooLong);
        }
        let treatment = match self.policy.decide(now, &seen) {
            Decision::Queue(treatment) => treatment,
            Decision::Pass => {
                self.totals.passed += 1;
                witness.send(now, number, frame);
                return;
            }
            Decision::Refuse(why) => return self.totals.refuse(why),
            Decision::Police => {
                self.totals.policed += 1;
                return;
            }
        };
        self.prefetch(treatment.customer, treatment.markers[0]);
        self.announce(now, &treatment);
        let (bits, mut packet) = match &seen {
            Ok(h) => (Some((h.bits(), h.ecn)), h.packet(treatment.flow, treatment.colour, treatment.class)),
            Err(opaque) => (None, datagram(opaque.size, &treatment)),
        };
        packet.size = self.charge.packet(&seen);
        if let Some(counts) = counts(&mut self.customers, treatment.customer) {
            counts.arrive(packet.size);
        }
        for marker in treatment.markers.into_iter().flatten() {
            let verdict = self.markers[usize::from(marker)].decide(now, &packet);
            witness.marked(now, number, marker, verdict);
            match verdict {
                Mark::Pass(colour) if matches!(treatment.rewrite, Rewrite::Colour(_)) => {
                    packet.colour = colour
                }
                Mark::Pass(_) => {}
                Mark::Drop(cause) => {
                    *(if cause == POLICED {
                        &mut self.totals.policed
                    } else {
                        &mut self.totals.marker_dropped
                    }) += 1;
                    self.drop_of(treatment.customer, cause);
                    return;
                }
            }
        }
        let member = self.member_of(&treatment);
        let Some(slot) = self.may_wait(member).then(|| self.buffers.take()).flatten() else {
            self.totals.no_buffer += 1;
            if let Some(counts) = counts(&mut self.customers, treatment.customer) {
                counts.no_buffer += 1;
            }
            return;
        };
        let rewrite = treatment.rewrite;
        // Most frames have neither tags nor labels.
        let clear_link = treatment.clear_link
            && self.layer == Layer::Ethernet
            && seen.as_ref().map_or(true, |h| h.link.tags > 0 || h.link.labels > 0);
        let held = QueuedFrame {
            packet,
            on_link: self.charge.link(&seen),
            bits,
            rewrite,
            clear_link,
            slot,
            number,
            since: now,
            customer: treatment.customer,
        };
        let verdict = self.queue.arrive(now, member, &packet, held, &mut self.rng, &mut Silent);
        witness.queued(now, number, verdict);
        while let Some(victim) = self.queue.take_evicted() {
            self.totals.queue_dropped += 1;
            self.buffers.release(victim.slot);
            self.drop_of(victim.customer, Cause::EVICTED);
            witness.lost(now, victim.number, Cause::EVICTED);
        }
        if let Admission::Drop(cause) = verdict {
            self.totals.queue_dropped += 1;
            self.buffers.release(slot);
            self.drop_of(treatment.customer, cause);
            return;
        }
        // A frame that leaves at once is never copied.
        let left = self.shaper.due().is_none() && self.start_next(now, Some((slot, frame)), witness);
        if !left {
            self.buffers.fill(slot, frame);
        }
    }

    /// Prefetches the state of a packet's customer.
    #[inline]
    fn prefetch(&self, customer: Option<u32>, marker: Option<u16>) {
        if let Some(counts) = customer.and_then(|place| self.customers.get(place as usize)) {
            counts.prefetch();
        }
        if let Some(marking) = marker.and_then(|m| self.markers.get(usize::from(m))) {
            marking.prefetch();
        }
    }

    /// A frame in the other direction: shown to the queue's discipline and to markers, whose estimates may need both
    /// directions. `treatment` says which flow it belongs to and which markers that flow's data passes.
    pub fn reverse<W: Witness>(&mut self, now: Time, frame: &[u8], treatment: &Treatment, witness: &mut W) {
        self.advance(now, witness);
        let seen = packet::parse(self.layer, frame);
        if let Ok(headers) = &seen {
            self.announce(now, treatment);
            let mut packet = headers.packet(treatment.flow, treatment.colour, treatment.class);
            packet.size = self.charge.packet(&seen);
            self.queue.observe(now, self.member_of(treatment), &packet, Direction::Reverse);
            for marker in treatment.markers.into_iter().flatten() {
                self.markers[usize::from(marker)].observe_reverse(now, &packet);
            }
        }
    }

    /// If the flow has just been given its number, mechanisms forget the number's former flow, and the marker that goes by contracts
    /// is told of the new one's.
    fn announce(&mut self, now: Time, treatment: &Treatment) {
        if let Some(FormerFlow { markers, customer }) = treatment.forget {
            let signal = Signal { topic: FORGET, flow: Some(treatment.flow), value: 0.0 };
            let keeps = |m: &u16| self.keep_flows.get(usize::from(*m)).is_some_and(|keeps| *keeps);
            let each = markers.map(|m| m.filter(keeps));
            each.into_iter().flatten().for_each(|m| self.tell(m, now, &signal));
            let own = customer.map(|place| CUSTOMERS + place as usize);
            [Some(FIRST), Some(SHARED), own].into_iter().flatten().for_each(|member| {
                self.queue.signal(now, Some(member), &signal);
            });
        }
        if let Some(Contract { marker, rate }) = treatment.contract {
            let signal = Signal { topic: "contract", flow: Some(treatment.flow), value: rate.0 as f64 };
            self.tell(marker, now, &signal);
        }
    }

    /// The member of the hierarchy in which a packet waits.
    fn member_of(&self, treatment: &Treatment) -> usize {
        match treatment.customer {
            Some(place) if treatment.own_queue => CUSTOMERS + place as usize,
            _ if usize::from(treatment.class) < self.first => FIRST,
            _ => SHARED,
        }
    }

    /// Whether a packet may take a buffer: the second half is for members that have fewer than are reserved for each, so that those who
    /// fill their queues take nobody's.
    fn may_wait(&self, member: usize) -> bool {
        self.buffers.used() < self.buffers.most() / 2
            || self.queue.packets(member) < self.reserved[usize::from(member >= CUSTOMERS)]
    }

    /// Counts a dropped packet for its customer.
    fn drop_of(&mut self, customer: Option<u32>, cause: Cause) {
        if let Some(counts) = counts(&mut self.customers, customer) {
            counts.drop(cause);
        }
    }

    /// When the next event is due, if no frame comes in before.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.service_due().into_iter().chain(self.next_tick()).min()
    }

    /// The earliest tick of all mechanisms.
    fn next_tick(&self) -> Option<Time> {
        self.ticks.peek().map(|Reverse((at, _))| *at).into_iter().chain(self.queue.next_tick()).min()
    }

    /// When the link may take its next packet, if one waits or is being sent.
    fn service_due(&self) -> Option<Time> {
        self.shaper.due().or(self.held_until)
    }

    /// Does everything that is due up to and including `now`.
    pub fn advance<W: Witness>(&mut self, now: Time, witness: &mut W) {
        while let Some(at) = self.due().filter(|at| *at <= now) {
            if self.service_due() == Some(at) {
                self.start_next(at, None, witness);
            } else {
                self.tick(at);
            }
        }
    }

    /// The link has become free, or was idle: takes the next packet. `in_hand` is a packet that has joined the queue but is
    /// not copied into its buffer yet; returns whether that one left.
    fn start_next<W: Witness>(
        &mut self,
        at: Time,
        in_hand: Option<(Slot, &mut [u8])>,
        witness: &mut W,
    ) -> bool {
        let (buffers, rng, customers) = (&mut self.buffers, &mut self.rng, &mut self.customers);
        let dropped = &mut self.totals.queue_dropped;
        let next = self.queue.depart(
            at,
            |held| held.packet,
            rng,
            &mut Silent,
            |held, cause| {
                *dropped += 1;
                buffers.release(held.slot);
                if let Some(counts) = counts(customers, held.customer) {
                    counts.drop(cause);
                }
                witness.lost(at, held.number, cause);
            },
        );
        while let Some(victim) = self.queue.take_evicted() {
            self.totals.queue_dropped += 1;
            self.buffers.release(victim.slot);
            self.drop_of(victim.customer, Cause::EVICTED);
            witness.lost(at, victim.number, Cause::EVICTED);
        }
        self.held_until = None;
        let Some(held) = next else {
            self.shaper.rest();
            self.held_until = self.queue.next_ready().filter(|ready| *ready > at);
            return false;
        };
        self.shaper.start(at, Bytes(u64::from(held.on_link)));
        let in_hand = in_hand.filter(|(slot, _)| *slot == held.slot);
        let left = in_hand.is_some();
        let frame = in_hand.map_or_else(|| self.buffers.get_mut(held.slot), |(_, frame)| frame);
        if self.age_limit.is_some_and(|limit| self.present.since(at) > limit) {
            self.buffers.release(held.slot);
            self.totals.too_late += 1;
            if let Some(counts) = counts(&mut self.customers, held.customer) {
                counts.too_late += 1;
            }
            return left;
        }
        held.write(frame);
        witness.send(at, held.number, frame);
        self.buffers.release(held.slot);
        self.totals.sent += 1;
        if let Some(counts) = counts(&mut self.customers, held.customer) {
            counts.send(held.packet.colour, held.packet.size, at.since(held.since));
        }
        left
    }

    /// Sets the caller's clock. A late caller does so first; packets that are too late by then are dropped.
    pub fn set_present(&mut self, now: Time) {
        self.present = now;
    }

    /// The MTU of the interface that frames leave by, if it is known: what is longer is refused as it comes in, and takes no token,
    /// no place in a queue and no time on the link.
    pub fn set_mtu(&mut self, mtu: Option<usize>) {
        self.mtu = mtu;
    }

    /// Changes the rate from the next packet on. It must not be zero.
    pub fn set_rate(&mut self, rate: Rate) {
        self.shaper.set_rate(rate);
    }

    /// Ticks what is due: markers by their number, then the queue's disciplines; then delivers their signals to each other.
    /// Edge and core are one box here, so a signal arrives at once.
    fn tick(&mut self, at: Time) {
        let (mut from_markers, mut from_queue) = (Outbox::default(), Outbox::default());
        while let Some(Reverse((due, number))) =
            self.ticks.peek().copied().filter(|Reverse((due, _))| *due <= at)
        {
            self.ticks.pop();
            let marking = &mut self.markers[usize::from(number)];
            marking.tick(due, &mut from_markers);
            self.ticks.extend(marking.next_tick().map(|next| Reverse((next, number))));
        }
        if self.queue.next_tick().is_some_and(|t| t <= at) {
            self.queue.tick(at, &mut from_queue);
        }
        for signal in &from_markers.signals {
            self.queue.signal(at, None, signal);
        }
        for signal in &from_queue.signals {
            self.markers.iter_mut().for_each(|m| m.marker.signal(at, signal));
        }
    }
}

/// A frame that is not read as IP, as mechanisms see it.
fn datagram(size: u32, treatment: &Treatment) -> Packet {
    let Treatment { flow, colour, class, .. } = *treatment;
    Packet { flow, colour, class, ecn: Ecn::NotCapable, size, kind: Kind::Datagram, ..Packet::default() }
}

/// A customer's counts.
fn counts(all: &mut [CustomerCounts], place: Option<u32>) -> Option<&mut CustomerCounts> {
    all.get_mut(place? as usize)
}

#[cfg(test)]
mod tests;

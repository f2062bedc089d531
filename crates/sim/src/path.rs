//! The path of a packet through the network, top down. What nearly every packet does is inlined into [`World::enter`].
//!
//! ```text
//! send ─→ host marker ─→ link ─→ node ─→ edge marker ─→ link ─→ … ─→ receiver
//!                          ↑ queue discipline             acknowledgements go back the same way
//! ```
use std::hint::black_box;

use inprofile_core::packet::{Ecn, Packet};
use inprofile_core::verdict::{Admission, Cause, Silent};

use crate::calendar::Event;
use crate::clock::Clock;
use crate::event::EventKind;
use crate::figures::Figures;
use crate::flow::Care;
use crate::link::Shape;
use crate::log::Code;
use crate::outcome::Place;
use crate::route::{Hop, NextStep};
use crate::tcp::Flags;
use crate::waiting::Waiting;
use crate::world::World;

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// Sends a data packet, unless the host's marker drops it; returns its slot.
    #[inline(always)]
    pub(crate) fn launch(&mut self, packet: Packet, segment: u32, flags: Flags) -> u32 {
        let f = &mut self.flows[packet.flow.0 as usize];
        let slot = self.packets.add(packet, segment, true, flags, f.forward);
        if let Some(measures) = &mut self.measures {
            measures.sent(slot, packet.flow.0, segment, self.now.time());
        }
        if f.care != Care::All {
            f.counts.leave(packet.colour, packet.size);
            let (position, shape) = (f.forward.0, Shape::new(packet.size, packet.colour));
            self.pass_links(slot, position, shape, self.now);
        } else {
            self.launch_marked(slot);
        }
        slot
    }

    /// Sends a data packet of a flow that is marked, or whose delays are measured.
    #[inline(never)]
    fn launch_marked(&mut self, slot: u32) {
        let Packet { flow, colour, size, .. } = self.packets.get(slot).packet;
        let f = &mut self.flows[flow.0 as usize];
        if f.delays.is_some() {
            self.packets.set_sent(slot, self.now.secs());
        }
        if f.marker.is_none() {
            f.counts.leave(colour, size);
        } else if !self.mark_at_host(flow.0, slot) {
            return;
        }
        self.enter(slot, self.now);
    }

    /// A packet enters the link at its position at time `at`.
    pub(crate) fn enter(&mut self, slot: u32, at: C) {
        let t = self.packets.get(slot);
        let (position, shape) = (t.position(), Shape::new(t.packet.size, t.packet.colour));
        self.pass_links(slot, position, shape, at);
    }

    /// A packet of this shape enters the link at this position on its route at time `at`, and goes as far beyond it as can be
    /// computed now. If it reaches its receiver that way, so does the acknowledgement.
    #[inline(never)]
    pub(crate) fn pass_links(&mut self, slot: u32, mut position: u32, mut shape: Shape, mut at: C) {
        loop {
            let (hops, links) = (self.routes.hops(), self.links.as_mut_slice());
            let (hop, queue) = loop {
                let hop = &hops[position as usize];
                let link = &mut links[hop.link as usize];
                let Some(there) = link.bypass(at, shape) else { break (*hop, Some(link.stepped)) };
                at = there;
                if hop.next != NextStep::CutThrough {
                    break (*hop, None);
                }
                position += 1;
            };
            if let Some(stepped) = queue {
                if at > self.end {
                    // The run ends before that: the packet counts as in flight.
                    return;
                }
                if stepped {
                    return self.enter_stepped(slot, position, shape, at);
                }
                let Some(there) = self.join_queue(slot, hop.link, at) else { return };
                at = there;
                if hop.next == NextStep::CutThrough {
                    position += 1;
                    continue;
                }
            }
            let Some(goes_on) = self.finish_hop(slot, position, hop, at) else { return };
            (position, shape) = goes_on;
        }
    }

    /// Computed service: a packet that cannot bypass the queue of a link arrives there at `at`. Returns when it will be at the far
    /// end, unless it is dropped.
    #[inline(never)]
    fn join_queue(&mut self, slot: u32, link: u32, at: C) -> Option<C> {
        let l = &mut self.links[link as usize];
        match l.admit(at, slot, &mut self.packets.get_mut(slot).packet) {
            Ok(there) => Some(there),
            Err(cause) => {
                self.drop_packet(slot, Place::Queue(link), cause, at);
                None
            }
        }
    }

    /// A packet will reach the far end of a link at `there`. Returns its position and its shape, if its next hop can be computed
    /// now; perhaps as an acknowledgement.
    #[inline(always)]
    fn finish_hop(&mut self, slot: u32, position: u32, hop: Hop, there: C) -> Option<(u32, Shape)> {
        if hop.next == NextStep::Receive {
            return if there <= self.end { self.receive(slot, there) } else { None };
        }
        let t = self.packets.get_mut(slot);
        if hop.next == NextStep::Arrive {
            t.set_position(position);
            self.schedule_arrival(there, hop.link, slot);
            return None;
        }
        t.set_position(position + 1);
        if hop.next == NextStep::CutThrough {
            return Some((position + 1, Shape::new(t.packet.size, t.packet.colour)));
        }
        self.expect_arrival(self.routes.hop(position + 1).link, slot, there);
        None
    }

    /// Stepped service: a packet enters a link, and is sent at once where the link is idle and nobody has anything to decide.
    #[inline(never)]
    fn enter_stepped(&mut self, slot: u32, position: u32, shape: Shape, at: C) {
        let hop = self.routes.hop(position);
        if TRACE || !self.links[hop.link as usize].sends_at_once((self.now, self.order)) {
            self.join_stepped(slot, position, hop.link, at);
        } else {
            self.send_at_once(slot, position, hop, shape, at);
        }
    }

    /// Stepped service by events: the link is idle, and nobody has anything to decide.
    #[inline(never)]
    fn send_at_once(&mut self, slot: u32, position: u32, hop: Hop, shape: Shape, at: C) {
        let l = &mut self.links[hop.link as usize];
        debug_assert!(
            at == self.now && l.on_demand.is_none(),
            "idle now, which says nothing of another time"
        );
        let (until, there) = l.send_at_once(at, shape);
        self.log(Code::Enqueue, hop.link, slot, at);
        self.log(Code::Dequeue, hop.link, slot, at);
        // In ns-2's order, as in `start_next`.
        if let Some((position, shape)) = self.finish_hop(slot, position, hop, there) {
            self.pass_links(slot, position, shape, there);
        }
        let due = (until, self.tie(EventKind::Departure(hop.link)));
        self.links[hop.link as usize].rests_at = due;
    }

    /// Stepped service: a packet arrives at the queue of a link, and waits there for its departure.
    #[inline(always)]
    fn join_stepped(&mut self, slot: u32, position: u32, link: u32, at: C) {
        self.depart_before(link, at);
        self.packets.get_mut(slot).set_position(position);
        self.join_queue_stepped(slot, link, at);
        self.plan_catching_up(link);
    }

    /// The same, with all departures behind it that come before: the packet is at this link on its route.
    #[inline(always)]
    pub(crate) fn join_queue_stepped(&mut self, slot: u32, link: u32, at: C) {
        self.log(Code::Enqueue, link, slot, at);
        match self.ask_discipline(link, slot, at) {
            Some(true) => self.await_departure(link),
            Some(false) => self.start_next(link, at),
            None => {}
        }
    }

    /// The queue discipline of `link` decides on an arriving packet. Whether the link is busy; `None`: the packet was dropped.
    #[inline(always)]
    fn ask_discipline(&mut self, link: u32, slot: u32, at: C) -> Option<bool> {
        let l = &mut self.links[link as usize];
        let packet = &self.packets.get(slot).packet;
        let verdict = if TRACE {
            self.notes.clear();
            l.arrive(at, slot, packet, self.shared.as_mut(), &mut self.notes)
        } else {
            l.arrive(at, slot, packet, self.shared.as_mut(), &mut Silent)
        };
        let (busy, evicted) = (l.is_busy(), l.has_evicted());
        if TRACE {
            let word = match verdict {
                Admission::Admit => ("admit", None),
                Admission::Mark => ("mark", None),
                Admission::Drop(cause) => ("drop", Some(cause)),
            };
            self.record_verdict(at.time(), slot, Place::Queue(link), word);
        }
        if verdict == Admission::Mark {
            self.packets.get_mut(slot).packet.ecn = Ecn::Experienced;
        }
        if evicted {
            self.take_evicted(link, at);
        }
        if let Admission::Drop(cause) = verdict {
            self.drop_packet(slot, Place::Queue(link), cause, at);
            return None;
        }
        Some(busy)
    }

    /// Counts what the discipline has evicted.
    #[inline(never)]
    fn take_evicted(&mut self, link: u32, at: C) {
        while let Some(victim) = self.links[link as usize].take_evicted(at.time()) {
            self.drop_packet(victim.slot, Place::Queue(link), Cause::EVICTED, at);
        }
    }

    /// Stepped service: a link that is idle at `now` takes the next packet from its queue.
    pub(crate) fn start_next(&mut self, link: u32, now: C) {
        if TRACE {
            self.figures = Figures::default();
        }
        let l = &mut self.links[link as usize];
        let dropped = &mut self.dropped_at_head;
        let sink = |w: Waiting<C>, cause| dropped.push((w.slot, cause));
        let marked = if TRACE { l.marked() } else { 0 };
        let next = if TRACE {
            l.start_next(now, &self.packets, self.shared.as_mut(), &mut self.figures, sink)
        } else {
            l.start_next(now, &self.packets, self.shared.as_mut(), &mut Silent, sink)
        };
        let evicted = l.has_evicted();
        if let Some((slot, flow)) = l.take_expected() {
            // Read ahead: at its turn it would be waited for.
            black_box(self.packets.get(slot).segment ^ self.flows[flow as usize].touch_receiver());
        }
        if !self.dropped_at_head.is_empty() {
            self.drop_at_head(link, now);
        }
        if evicted {
            self.take_evicted(link, now);
        }
        let Some((next, takes, there)) = next else { return self.plan_rest(link, now) };
        self.packets.get_mut(next.slot).packet.ecn = next.ecn;
        if TRACE && self.links[link as usize].marked() > marked {
            self.notes = self.figures.now.take().unwrap_or_default();
            self.record_verdict(now.time(), next.slot, Place::Queue(link), ("mark", None));
        }
        self.log(Code::Dequeue, link, next.slot, now);
        // In ns-2's order: the arrival at the far end is scheduled before the end of transmission.
        let position = self.packets.get(next.slot).position();
        if let Some((position, shape)) =
            self.finish_hop(next.slot, position, self.routes.hop(position), there)
        {
            self.pass_links(next.slot, position, shape, there);
        }
        self.plan_departure(link, now.after(takes));
    }

    /// Counts what the discipline has dropped at the head of the queue, with the figures behind it.
    #[inline(never)]
    fn drop_at_head(&mut self, link: u32, now: C) {
        let mut dropped = std::mem::take(&mut self.dropped_at_head);
        for (number, (slot, cause)) in dropped.drain(..).enumerate() {
            if TRACE {
                self.notes = self.figures.dropped[number];
                self.record_verdict(now.time(), slot, Place::Queue(link), ("drop", Some(cause)));
            }
            self.drop_packet(slot, Place::Queue(link), cause, now);
        }
        self.dropped_at_head = dropped;
    }

    /// A link has finished a transmission; or it has been waiting for a class that may send from now on. Or it is served on
    /// demand, and what it has sent since it last acted is about to be seen.
    pub fn departure(&mut self, link: u32) {
        if self.links[link as usize].on_demand.is_some() {
            self.catch_up_by_event(link);
        } else if !self.links[link as usize].is_sending(self.now) {
            self.start_next(link, self.now);
        }
    }

    #[inline]
    fn schedule_arrival(&mut self, at: C, link: u32, slot: u32) {
        let tie = if C::NS2 { self.next_insertion() } else { EventKind::arrival_rank(link) };
        let event = Event::new(at.bits(), tie, EventKind::Arrive(slot).pack());
        if link == self.busiest {
            self.calendar.push_in_order(event);
        } else {
            self.calendar.push(event);
        }
    }

    /// A packet arrives at the end of a link. True: it has reached the end of its route.
    #[inline]
    pub fn arrive(&mut self, slot: u32) -> bool {
        let position = self.packets.get(slot).position();
        let hop = self.routes.hop(position);
        self.log(Code::Receive, hop.link, slot, self.now);
        if !self.observers.is_empty() && !self.packets.get(slot).forward() {
            let packet = self.packets.get(slot).packet;
            self.show_to_queues(hop.link, &packet);
        }
        if hop.last {
            return true;
        }
        self.packets.get_mut(slot).set_position(position + 1);
        let node = self.ends[hop.link as usize].1;
        if let Some(edge) = self.edge_at[node as usize]
            && !self.mark_at_edge(edge, slot)
        {
            return false;
        }
        self.enter(slot, self.now);
        false
    }

    /// Counts a dropped packet, and frees its slot.
    pub(crate) fn drop_packet(&mut self, slot: u32, place: Place, cause: Cause, at: C) {
        if let Place::Queue(link) = place {
            self.log(Code::Drop(cause), link, slot, at);
        }
        let t = *self.packets.get(slot);
        let flow = t.packet.flow.0;
        if t.forward() {
            if let Some(measures) = &mut self.measures {
                measures.lost(place, &t, at.time());
            }
            if at >= self.now {
                if self.pending_losses.len() >= self.prune_at {
                    let now = self.now;
                    self.pending_losses.retain(|loss| loss.0 >= now);
                    self.prune_at = 2 * self.pending_losses.len() + 16;
                }
                self.pending_losses.push((at, flow, cause));
            }
            self.drops.count(flow, place, cause, t.packet.colour);
        } else {
            self.flows[flow as usize].acks_dropped += 1;
        }
        self.packets.remove(slot);
    }

    /// Losses that are counted already, and happen now or later.
    pub fn pending_losses(&self) -> impl Iterator<Item = &(C, u32, Cause)> {
        let now = self.now;
        self.pending_losses.iter().filter(move |loss| loss.0 >= now)
    }
}

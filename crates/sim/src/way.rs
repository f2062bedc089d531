//! The way of a packet, top down. What nearly every packet passes is inlined into [`World::enter`] and `join`.
//!
//! ```text
//! send ─→ host marker ─→ link ─→ node ─→ edge marker ─→ link ─→ … ─→ receiver
//!                          ↑ queue discipline             an acknowledgement goes back likewise
//! ```
use inprofile_core::packet::{Ecn, Packet};
use inprofile_core::verdict::{Admission, Cause, Silent};

use crate::calendar::Event;
use crate::clock::Clock;
use crate::event::What;
use crate::link::Shape;
use crate::log::Code;
use crate::outcome::Place;
use crate::route::{Hop, Then};
use crate::waiting::Waiting;
use crate::world::World;

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// Data goes on its way, if the host's marker lets it; in which slot.
    #[inline(always)]
    pub(crate) fn launch(&mut self, packet: Packet, segment: u32, flag: bool) -> u32 {
        let f = &mut self.flows[packet.flow.0 as usize];
        let slot = self.packets.add(packet, segment, true, flag, f.forward);
        if f.marker.is_none() {
            f.counts.leave(packet.colour, packet.size);
        } else if !self.mark_at_host(packet.flow.0, slot) {
            return slot;
        }
        self.enter(slot, self.now);
        slot
    }

    /// A packet goes into the link it is at, at `at`, and as far beyond as can be computed now; so does its answer.
    pub(crate) fn enter(&mut self, slot: u32, mut at: C) {
        let (mut way, mut shape) = self.stands(slot);
        loop {
            let (hops, links) = (self.routes.hops(), self.links.as_mut_slice());
            let (hop, passed) = loop {
                let hop = &hops[way as usize];
                let Some(there) = links[hop.link as usize].pass(at, shape) else { break (*hop, false) };
                at = there;
                if hop.then != Then::GoesOn {
                    break (*hop, true);
                }
                way += 1;
            };
            if !passed {
                let Some(there) = self.join(slot, way, hop.link, at) else { return };
                at = there;
                if hop.then == Then::GoesOn {
                    way += 1;
                    continue;
                }
            }
            if !self.come_out(slot, way, hop, at) {
                return;
            }
            (way, shape) = self.stands(slot);
        }
    }

    /// Where on its route a packet is, and what links have to know of it.
    #[inline(always)]
    fn stands(&self, slot: u32) -> (u32, Shape) {
        let t = self.packets.get(slot);
        (t.way, Shape::new(t.packet.size, t.packet.colour))
    }

    /// A packet comes to the queue before a link at `at`: when it will be at the far end, if that is known now.
    #[inline(never)]
    fn join(&mut self, slot: u32, way: u32, link: u32, at: C) -> Option<C> {
        if at > self.end {
            // It will still be on its way when the run ends.
            return None;
        }
        let l = &mut self.links[link as usize];
        if l.stepped {
            self.wait(slot, way, link, at);
            return None;
        }
        match l.admit(at, slot, &mut self.packets.get_mut(slot).packet) {
            Ok(there) => Some(there),
            Err(cause) => {
                self.lose(slot, Place::Queue(link), cause, at);
                None
            }
        }
    }

    /// A packet will come out of a link at `there`. True: it enters the next one then, or its answer does.
    #[inline(always)]
    fn come_out(&mut self, slot: u32, way: u32, hop: Hop, there: C) -> bool {
        match hop.then {
            Then::Arrives => {
                self.packets.get_mut(slot).way = way;
                self.schedule_arrival(there, hop.link, slot);
                false
            }
            Then::GoesOn => {
                self.packets.get_mut(slot).way = way + 1;
                true
            }
            Then::IsReceived => there <= self.end && self.answer(slot, there),
        }
    }

    /// Stepped service: a packet comes to the queue before a link, and waits there for its departure.
    #[inline(never)]
    fn wait(&mut self, slot: u32, way: u32, link: u32, at: C) {
        self.log(Code::Enqueue, link, slot, at);
        if self.offer(link, slot, at) {
            self.packets.get_mut(slot).way = way;
            if !self.links[link as usize].is_busy() {
                self.start_next(link);
            }
        }
    }

    /// Asks the queue before `link`; a packet it drops is booked and gone. True: it joined.
    fn offer(&mut self, link: u32, slot: u32, at: C) -> bool {
        let l = &mut self.links[link as usize];
        let packet = &self.packets.get(slot).packet;
        let verdict = if TRACE {
            self.notes.clear();
            l.arrive(at, slot, packet, self.shared.as_mut(), &mut self.notes)
        } else {
            l.arrive(at, slot, packet, self.shared.as_mut(), &mut Silent)
        };
        if TRACE {
            let word = match verdict {
                Admission::Admit => ("admit", None),
                Admission::Mark => ("mark", None),
                Admission::Drop(cause) => ("drop", Some(cause)),
            };
            self.write_down(at.time(), slot, Place::Queue(link), word);
        }
        if verdict == Admission::Mark {
            self.packets.get_mut(slot).packet.ecn = Ecn::Experienced;
        }
        while let Some(victim) = self.links[link as usize].take_struck() {
            self.lose(victim.slot, Place::Queue(link), Cause::EVICTED, at);
        }
        if let Admission::Drop(cause) = verdict {
            self.lose(slot, Place::Queue(link), cause, at);
            return false;
        }
        true
    }

    /// Stepped service: the next packet of a link that has become free, or was idle.
    fn start_next(&mut self, link: u32) {
        let mut dropped = Vec::new();
        let l = &mut self.links[link as usize];
        let sink = |w: Waiting<C>, cause| dropped.push((w.slot, cause));
        let next = if TRACE {
            self.notes.clear();
            l.start_next(self.now, &self.packets, self.shared.as_mut(), &mut self.notes, sink)
        } else {
            l.start_next(self.now, &self.packets, self.shared.as_mut(), &mut Silent, sink)
        };
        for (slot, cause) in dropped {
            if TRACE {
                self.write_down(self.now.time(), slot, Place::Queue(link), ("drop", Some(cause)));
            }
            self.lose(slot, Place::Queue(link), cause, self.now);
        }
        let Some((next, takes, there)) = next else {
            if let Some(at) = self.links[link as usize].wake(self.now) {
                self.schedule(at, What::Departure(link));
            }
            return;
        };
        self.packets.get_mut(next.slot).packet.ecn = next.ecn;
        self.log(Code::Dequeue, link, next.slot, self.now);
        // ns-2's order: first the arrival at the far end, then the link's own readiness.
        let way = self.packets.get(next.slot).way;
        if self.come_out(next.slot, way, self.routes.hop(way), there) {
            self.enter(next.slot, there);
        }
        self.schedule(self.now.after(takes), What::Departure(link));
    }

    /// The link `link` has sent a packet and is ready for the next one; or it was to try again now.
    pub fn departure(&mut self, link: u32) {
        if !self.links[link as usize].is_sending(self.now) {
            self.start_next(link);
        }
    }

    #[inline]
    fn schedule_arrival(&mut self, at: C, link: u32, slot: u32) {
        let tie = if C::NS2 { self.turn() } else { What::arrival_rank(link) };
        let event = Event::new(at.bits(), tie, What::Arrive(slot).pack());
        if link == self.busiest {
            self.calendar.push_in_line(event);
        } else {
            self.calendar.push(event);
        }
    }

    /// A packet has come to the end of a link. True: the flow's agent there has to look at it.
    #[inline]
    pub fn arrive(&mut self, slot: u32) -> bool {
        let hop = self.routes.hop(self.packets.get(slot).way);
        self.log(Code::Receive, hop.link, slot, self.now);
        if !self.observers.is_empty() && !self.packets.get(slot).forward {
            let packet = self.packets.get(slot).packet;
            self.show_to_queues(hop.link, &packet);
        }
        if hop.last {
            return true;
        }
        self.packets.get_mut(slot).way += 1;
        let node = self.ends[hop.link as usize].1;
        if let Some(edge) = self.edge_at[node as usize]
            && !self.mark_at_edge(edge, slot)
        {
            return false;
        }
        self.enter(slot, self.now);
        false
    }

    /// Books a lost packet and forgets it.
    pub(crate) fn lose(&mut self, slot: u32, place: Place, cause: Cause, at: C) {
        if let Place::Queue(link) = place {
            self.log(Code::Drop, link, slot, at);
        }
        let t = *self.packets.get(slot);
        let flow = t.packet.flow.0;
        if t.forward {
            self.flows[flow as usize].counts.dropped[cause.index()] += 1;
            if at > self.now {
                if self.to_come.len() >= self.gather {
                    let now = self.now;
                    self.to_come.retain(|loss| loss.0 > now);
                    self.gather = 2 * self.to_come.len() + 16;
                }
                self.to_come.push((at, flow, cause));
            }
            let row = self.drops.entry((flow, place, cause)).or_default();
            row[t.packet.colour as usize] += 1;
        } else {
            self.flows[flow as usize].acks[2] += 1;
        }
        self.packets.remove(slot);
    }

    /// Losses already booked whose time has not come.
    pub fn losses_to_come(&self) -> impl Iterator<Item = &(C, u32, Cause)> {
        let now = self.now;
        self.to_come.iter().filter(move |loss| loss.0 >= now)
    }
}

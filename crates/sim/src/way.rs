//! The way of a packet, top down.
//!
//! ```text
//! send ─→ host marker ─→ link ─→ node ─→ edge marker ─→ link ─→ … ─→ receiver
//!                          ↑ queue discipline             an acknowledgement goes back likewise
//! ```
use inprofile_core::packet::Ecn;
use inprofile_core::verdict::{Admission, Cause, Silent};

use crate::calendar::Event;
use crate::clock::Clock;
use crate::event::What;
use crate::link::{Arrival, Waiting};
use crate::log::Code;
use crate::outcome::Place;
use crate::route::{Hop, Then};
use crate::world::World;

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// Data goes on its way, if the host's marker lets it.
    #[inline]
    pub(crate) fn launch(&mut self, flow: u32, slot: u32) {
        if self.mark_at_host(flow, slot) {
            let packet = &self.packets.get(slot).packet;
            let c = &mut self.flows[flow as usize].counts;
            c.sent[packet.colour as usize] += 1;
            c.sent_bytes[packet.colour as usize] += u64::from(packet.size);
            self.enter(slot, self.now);
        }
    }

    /// A packet goes into the link it is at, at `at`, and as far beyond as can be computed now.
    #[inline]
    pub(crate) fn enter(&mut self, slot: u32, mut at: C) {
        let t = self.packets.get(slot);
        let (mut way, size, colour) = (t.way, t.packet.size, t.packet.colour);
        loop {
            let hop = self.routes.hop(way);
            let there = match self.links[hop.link as usize].pass(at, size, colour) {
                Some(there) => there,
                None => match self.join(slot, way, hop.link, at) {
                    Some(there) => there,
                    None => return,
                },
            };
            if hop.then != Then::GoesOn {
                return self.come_out(slot, way, hop, there);
            }
            way += 1;
            at = there;
        }
    }

    /// A packet comes to the queue before a link at `at`: when it will be at the far end, if that is known now.
    #[inline(never)]
    fn join(&mut self, slot: u32, way: u32, link: u32, at: C) -> Option<C> {
        if at > self.end {
            // It will still be on its way when the run ends.
            return None;
        }
        self.log(Code::Enqueue, link, slot, at);
        match self.offer(link, slot, at)? {
            Arrival::Delivered(there) => return Some(there),
            Arrival::Start => {
                self.packets.get_mut(slot).way = way;
                self.start_next(link);
            }
            Arrival::Waits => self.packets.get_mut(slot).way = way,
        }
        None
    }

    /// A packet will come out of a link at `there`.
    #[inline]
    fn come_out(&mut self, slot: u32, way: u32, hop: Hop, there: C) {
        match hop.then {
            Then::Arrives => {
                self.packets.get_mut(slot).way = way;
                self.schedule_arrival(there, hop.link, slot);
            }
            Then::GoesOn => {
                self.packets.get_mut(slot).way = way + 1;
                self.enter(slot, there);
            }
            Then::IsReceived if there <= self.end => self.receive(slot, there),
            Then::IsReceived => {}
        }
    }

    /// Asks the queue before `link`; a packet it drops is booked and gone.
    #[inline]
    fn offer(&mut self, link: u32, slot: u32, at: C) -> Option<Arrival<C>> {
        let l = &mut self.links[link as usize];
        let packet = &self.packets.get(slot).packet;
        // Only a discipline that has its queue stepped takes packets out of it.
        let stepped = l.stepped;
        let answer = if TRACE {
            self.notes.clear();
            l.arrive(at, slot, packet, self.shared.as_mut(), &mut self.notes)
        } else {
            l.arrive(at, slot, packet, self.shared.as_mut(), &mut Silent)
        };
        let verdict = match answer {
            Ok((verdict, _)) | Err(verdict) => verdict,
        };
        if TRACE {
            let word = match verdict {
                Admission::Admit => ("admit", None),
                Admission::Mark => ("mark", None),
                Admission::Drop(cause) => ("drop", Some(cause)),
            };
            self.write_down(at.time(), slot, Place::Queue(link), word);
        }
        let cause = match verdict {
            Admission::Drop(cause) => Some(cause),
            Admission::Mark => {
                self.packets.get_mut(slot).packet.ecn = Ecn::Experienced;
                None
            }
            Admission::Admit => None,
        };
        if stepped {
            while let Some(victim) = self.links[link as usize].take_struck() {
                self.lose(victim.slot, Place::Queue(link), Cause::Evicted, at);
            }
        }
        match cause {
            None => answer.ok().map(|(_, arrival)| arrival),
            Some(cause) => {
                self.lose(slot, Place::Queue(link), cause, at);
                None
            }
        }
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
        self.come_out(next.slot, way, self.routes.hop(way), there);
        self.schedule(self.now.after(takes), What::Departure(link));
    }

    /// The link `link` has sent a packet and is ready for the next one; or it was to try again now.
    pub fn departure(&mut self, link: u32) {
        if !self.links[link as usize].is_sending(self.now) {
            self.start_next(link);
        }
    }

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
            self.flows[flow as usize].counts.dropped[cause as usize] += 1;
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

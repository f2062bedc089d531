//! The way of a packet, top down.
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
use crate::link::{Arrival, Waiting};
use crate::log::Code;
use crate::outcome::Place;
use crate::world::World;

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// Data goes on its way, if the host's marker lets it; in which slot.
    #[inline]
    pub fn launch(&mut self, flow: u32, packet: Packet, segment: u32, flag: bool) -> u32 {
        let slot = self.packets.add(packet, segment, true, self.flows[flow as usize].forward);
        self.packets.get_mut(slot).flag = flag;
        if self.mark_at_host(flow, slot) {
            let packet = &self.packets.get(slot).packet;
            let c = &mut self.flows[flow as usize].counts;
            c.sent[packet.colour as usize] += 1;
            c.sent_bytes[packet.colour as usize] += u64::from(packet.size);
            self.enter(slot, self.now);
        }
        slot
    }

    /// A packet goes into its next link at `at`, and as far beyond as can be computed now.
    #[inline]
    pub(crate) fn enter(&mut self, slot: u32, mut at: C) {
        let t = self.packets.get(slot);
        let (mut way, mut left, mut forward, mut packet) = (t.way, t.left, t.forward, t.packet);
        loop {
            let link = self.routes[way as usize];
            self.log(Code::Enqueue, link, slot, at);
            let there = match self.links[link as usize].pass(at, &packet) {
                Some(there) => there,
                None => match self.offer(link, slot, &mut packet, at) {
                    Some(Arrival::Delivered(there)) => there,
                    Some(Arrival::Start) => {
                        self.packets.get_mut(slot).stand(way, left);
                        return self.start_next(link);
                    }
                    Some(Arrival::Waits) => {
                        self.packets.get_mut(slot).stand(way, left);
                        return;
                    }
                    None => return,
                },
            };
            way += 1;
            left -= 1;
            let received = left == 0 && forward && self.flows[packet.flow.0 as usize].ahead;
            let on = received || (left > 0 && self.through[self.routes[way as usize] as usize]);
            if !on {
                self.packets.get_mut(slot).stand(way, left);
                return self.schedule_arrival(there, link, slot);
            }
            if there > self.end {
                // It will still be on its way when the run ends.
                return;
            }
            at = there;
            if received {
                if !self.take_in(slot, at) {
                    return self.packets.remove(slot);
                }
                self.acknowledge_in(slot, packet.flow.0);
                let t = self.packets.get(slot);
                (way, left, forward, packet) = (t.way, t.left, t.forward, t.packet);
            }
        }
    }

    /// Asks the queue before `link`; a packet it drops is booked and gone.
    #[inline]
    fn offer(&mut self, link: u32, slot: u32, packet: &mut Packet, at: C) -> Option<Arrival<C>> {
        let l = &mut self.links[link as usize];
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
                packet.ecn = Ecn::Experienced;
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
        self.leave(next.slot, link, there);
        self.schedule(self.now.after(takes), What::Departure(link));
    }

    /// The link `link` has sent a packet and is ready for the next one; or it was to try again now.
    pub fn departure(&mut self, link: u32) {
        if !self.links[link as usize].is_sending(self.now) {
            self.start_next(link);
        }
    }

    /// Stepped service: the packet in `slot` will come out of `link` at `there`.
    fn leave(&mut self, slot: u32, link: u32, there: C) {
        let t = self.packets.get_mut(slot);
        t.stand(t.way + 1, t.left - 1);
        let t = *t;
        let received = t.left == 0 && t.forward && self.flows[t.packet.flow.0 as usize].ahead;
        let on = received || (t.left > 0 && self.through[self.routes[t.way as usize] as usize]);
        if !on {
            return self.schedule_arrival(there, link, slot);
        }
        if there > self.end {
            return;
        }
        if received {
            if !self.take_in(slot, there) {
                return self.packets.remove(slot);
            }
            self.acknowledge_in(slot, t.packet.flow.0);
        }
        self.enter(slot, there);
    }

    fn schedule_arrival(&mut self, at: C, link: u32, slot: u32) {
        let tie = if C::NS2 { self.turn() } else { What::arrival_rank(link) };
        let event = Event { at: at.bits(), tie, what: What::Arrive(slot).pack() };
        if link == self.busiest {
            self.calendar.push_in_line(event);
        } else {
            self.calendar.push(event);
        }
    }

    /// A packet has come to the end of a link. True: the flow's agent there has to look at it.
    #[inline]
    pub fn arrive(&mut self, slot: u32) -> bool {
        let t = *self.packets.get(slot);
        let came_by = self.routes[t.way as usize - 1];
        self.log(Code::Receive, came_by, slot, self.now);
        if !t.forward && !self.observers.is_empty() {
            self.show_to_queues(came_by, &t.packet);
        }
        if t.left == 0 {
            return true;
        }
        let node = self.ends[came_by as usize].1;
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

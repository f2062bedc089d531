//! The path of a packet through the network, top down. What nearly every packet does is inlined into [`World::enter`].
//!
//! Here is the way through links that are free, or whose service is computed as the packet arrives ([`World::join_queue`]); [`stepped`]
//! has that through a queue that is served packet by packet, [`on_demand`] when that is done without events.
//!
//! ```text
//! send ─→ host marker ─→ link ─→ node ─→ edge marker ─→ link ─→ … ─→ receiver
//!                          ↑ queue discipline             acknowledgements go back the same way
//! ```
pub mod on_demand;
pub(crate) mod stepped;

use inprofile_core::packet::Packet;
use inprofile_core::verdict::Cause;

use crate::calendar::Event;
use crate::clock::Clock;
use crate::event::EventKind;
use crate::flow::Care;
use crate::link::Shape;
use crate::outcome::VerdictPoint;
use crate::route::{Hop, NextStep};
use crate::run_log::Code;
use crate::tcp::Flags;
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
                if cause == Cause::LINK_ERROR {
                    self.lose(slot, link);
                } else {
                    self.drop_packet(slot, VerdictPoint::Queue(link), cause, at);
                }
                None
            }
        }
    }

    /// A packet is lost on its way over a link, at the time at which its transmission begins; if that is after the end of the run, it
    /// counts as in flight.
    #[inline(never)]
    pub(crate) fn lose(&mut self, slot: u32, link: u32) {
        let at = self.links[link as usize].lost_at();
        if at <= self.end {
            self.drop_packet(slot, VerdictPoint::Link(link), Cause::LINK_ERROR, at);
        }
    }

    /// A packet will reach the far end of a link at `there`. Returns its position and its shape, if its next hop can be computed
    /// now; perhaps as an acknowledgement.
    #[inline(always)]
    pub(crate) fn finish_hop(
        &mut self,
        slot: u32,
        position: u32,
        hop: Hop,
        there: C,
    ) -> Option<(u32, Shape)> {
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
        if hop.next == NextStep::Leave {
            t.set_position(position);
            self.leave(slot, hop.link, there);
            return None;
        }
        self.expect_arrival(self.routes.hop(position + 1).link, slot, there);
        None
    }

    #[inline]
    pub(crate) fn schedule_arrival(&mut self, at: C, link: u32, slot: u32) {
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
        if self.flow_control.is_some() {
            self.count_in(slot, hop.link, self.routes.hop(position + 1).link);
        }
        self.enter(slot, self.now);
        false
    }

    /// Counts a dropped packet, and frees its slot.
    pub(crate) fn drop_packet(&mut self, slot: u32, place: VerdictPoint, cause: Cause, at: C) {
        if let VerdictPoint::Queue(link) | VerdictPoint::Link(link) = place {
            self.log(Code::Drop(cause), link, slot, at);
        }
        if self.flow_control.is_some() {
            self.count_out(slot);
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

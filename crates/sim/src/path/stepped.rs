//! The way of a packet through a link whose discipline decides packet by packet: what arrives joins the queue, and each departure
//! takes the next. By events, or [on demand](crate::path::on_demand), which calls the same functions with the times of the past.

use std::hint::black_box;

use inprofile_core::packet::{Ecn, Kind};
use inprofile_core::verdict::{Admission, Cause, Notes, Silent, Why};

use crate::clock::Clock;
use crate::event::EventKind;
use crate::link::Shape;
use crate::link_queue::QueuedPacket;
use crate::outcome::VerdictPoint;
use crate::route::Hop;
use crate::run_log::Code;
use crate::world::World;

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// Stepped service: a packet enters a link, and is sent at once where the link is idle and nobody has anything to decide.
    #[inline(never)]
    pub(super) fn enter_stepped(&mut self, slot: u32, position: u32, shape: Shape, at: C) {
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
        if l.filters_acks() && packet.kind == Kind::Ack && !matches!(verdict, Admission::Drop(_)) {
            l.filter_acks(slot, &self.packets, self.flows[packet.flow.0 as usize].header);
        }
        let (busy, evicted) = (l.is_busy(), l.queue.has_evicted());
        if TRACE {
            let word = match verdict {
                Admission::Admit => ("admit", None),
                Admission::Mark => ("mark", None),
                Admission::Drop(cause) => ("drop", Some(cause)),
            };
            self.record_verdict(at.time(), slot, VerdictPoint::Queue(link), word);
        }
        if verdict == Admission::Mark {
            self.packets.get_mut(slot).packet.ecn = Ecn::Experienced;
        }
        if evicted {
            self.take_evicted(link, at);
        }
        if let Admission::Drop(cause) = verdict {
            self.drop_packet(slot, VerdictPoint::Queue(link), cause, at);
            return None;
        }
        Some(busy)
    }

    /// Counts what the discipline has evicted.
    #[inline(never)]
    fn take_evicted(&mut self, link: u32, at: C) {
        while let Some(victim) = self.links[link as usize].queue.take_evicted(at.time()) {
            self.drop_packet(victim.slot, VerdictPoint::Queue(link), Cause::EVICTED, at);
        }
    }

    /// Stepped service: a link that is idle at `now` takes the next packet from its queue.
    pub(crate) fn start_next(&mut self, link: u32, now: C) {
        if self.flow_control.is_some() && self.holds(link, now) {
            return;
        }
        if TRACE {
            self.figures = Figures::default();
        }
        let l = &mut self.links[link as usize];
        let dropped = &mut self.dropped_at_head;
        let sink = |w: QueuedPacket<C>, cause| dropped.push((w.slot, cause));
        let marked = if TRACE { l.marked() } else { 0 };
        let next = if TRACE {
            l.start_next(now, &self.packets, self.shared.as_mut(), &mut self.figures, sink)
        } else {
            l.start_next(now, &self.packets, self.shared.as_mut(), &mut Silent, sink)
        };
        let evicted = l.queue.has_evicted();
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
        if self.flow_control.is_some() {
            self.count_out(next.slot);
        }
        if TRACE && self.links[link as usize].marked() > marked {
            self.notes = self.figures.now.take().unwrap_or_default();
            self.record_verdict(now.time(), next.slot, VerdictPoint::Queue(link), ("mark", None));
        }
        self.log(Code::Dequeue, link, next.slot, now);
        if there == C::NEVER {
            self.lose_stepped(link, next.slot, now);
            return self.plan_departure(link, now.after(takes));
        }
        // In ns-2's order: the arrival at the far end is scheduled before the end of transmission.
        let position = self.packets.get(next.slot).position();
        if let Some((position, shape)) =
            self.finish_hop(next.slot, position, self.routes.hop(position), there)
        {
            self.pass_links(next.slot, position, shape, there);
        }
        self.plan_departure(link, now.after(takes));
    }

    /// The same of a packet that is lost on its way.
    #[inline(never)]
    fn lose_stepped(&mut self, link: u32, slot: u32, now: C) {
        if TRACE {
            self.notes.clear();
            let word = ("drop", Some(Cause::LINK_ERROR));
            self.record_verdict(now.time(), slot, VerdictPoint::Link(link), word);
        }
        self.lose(slot, link);
    }

    /// Counts what the discipline has dropped at the head of the queue, with the figures behind it.
    #[inline(never)]
    fn drop_at_head(&mut self, link: u32, now: C) {
        let mut dropped = std::mem::take(&mut self.dropped_at_head);
        for (number, (slot, cause)) in dropped.drain(..).enumerate() {
            if TRACE {
                self.notes = self.figures.dropped[number];
                self.record_verdict(now.time(), slot, VerdictPoint::Queue(link), ("drop", Some(cause)));
            }
            self.drop_packet(slot, VerdictPoint::Queue(link), cause, now);
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
}

/// Those of one departure.
#[derive(Default)]
pub(crate) struct Figures {
    /// Behind each drop, in order.
    pub dropped: Vec<Notes>,
    /// Behind the verdict being given.
    pub now: Option<Notes>,
}

impl Why for Figures {
    fn note(&mut self, what: &'static str, value: f64) {
        self.now.get_or_insert_default().note(what, value);
    }

    fn next_packet(&mut self) {
        self.dropped.push(self.now.take().unwrap_or_default());
    }
}

//! Everything between senders and receivers, in the middle of a run: the way of a packet, top down.
//!
//! ```text
//! send ─→ host marker ─→ link ─→ node ─→ edge marker ─→ link ─→ … ─→ receiver
//!                          ↑ queue discipline             an acknowledgement goes back likewise
//! ```

use std::collections::BTreeMap;

use inprofile_core::packet::{Colour, Direction, Ecn, FlowId, Kind, Packet};
use inprofile_core::rng::Rng;
use inprofile_core::signal::{Outbox, Signal};
use inprofile_core::units::Time;
use inprofile_core::verdict::{Admission, Cause, Mark, Notes, Silent};

use crate::calendar::{Calendar, Event};
use crate::clock::Clock;
use crate::event::What;
use crate::flow::FlowState;
use crate::link::{Arrival, Link};
use crate::log::{Code, Log, LogRow};
use crate::marking::MarkerState;
use crate::network::{NodeId, Target};
use crate::outcome::{FlowCounts, Place, VerdictRow};
use crate::packet::Slab;
use crate::signals::Paths;
use crate::tcp::receiver::Delay;
use crate::tcp::{Alarm, Bits, Sack};

/// A packet that has come to a host outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emerged {
    /// When it came out of its last link.
    pub at: Time,
    /// The slot it was kept in.
    pub slot: u32,
    /// As it came: with its colour, and its ECN bits.
    pub packet: Packet,
    /// Whether it came to its flow's receiver.
    pub forward: bool,
}

/// The parts of a run that senders act on. `TRACE`: every verdict is written down.
pub struct World<C: Clock, const TRACE: bool> {
    /// The present moment.
    pub now: C,
    /// What is to come.
    pub calendar: Calendar<C>,
    /// Events inserted so far: the order among equals in the ns-2 profile.
    inserted: u32,
    /// Packets on their way.
    pub packets: Slab,
    /// Links by number.
    pub links: Vec<Link<C>>,
    /// Ends of links.
    pub ends: Vec<(NodeId, NodeId)>,
    /// Routes of all flows, one after the other.
    pub routes: Vec<u32>,
    /// Links that only one other link feeds (perhaps by receivers that answer at once), and that nobody watches:
    /// their part of the way is computed as soon as the packet enters the link before.
    pub through: Vec<bool>,
    /// The link at whose end most flows' packets come by an event.
    pub busiest: u32,
    /// Flows by number.
    pub flows: Vec<FlowState<C>>,
    /// Aggregate markers.
    pub edges: Vec<MarkerState>,
    /// Signals between mechanisms.
    pub signals: Paths,
    /// Queues that look at acknowledgements, by the link that brings these to their node.
    pub observers: BTreeMap<u32, Vec<u32>>,
    /// The edge at each node.
    pub edge_at: Vec<Option<u32>>,
    /// The ns-2 profile's one stream for all.
    pub shared: Option<Rng>,
    /// When the run ends: what would happen later is not computed.
    end: C,
    /// When the measured window turns.
    window: [C; 2],
    /// What receivers that are ahead of the present had counted when the window turned: which turn, whose.
    pub turned: Vec<(u8, u32, FlowCounts)>,
    /// Losses computed before their time: when, whose, why.
    to_come: Vec<(C, u32, Cause)>,
    /// How many of them to let gather before those whose time has come are looked for.
    gather: usize,
    /// Lost packets by flow, place and cause.
    pub drops: BTreeMap<(u32, Place, Cause), [u64; 3]>,
    /// What was traced.
    pub verdicts: Vec<VerdictRow>,
    /// Packets that have come to hosts outside.
    pub emerged: Vec<Emerged>,
    /// Figures behind the verdict being given.
    notes: Notes,
    /// Who is told of every packet at every link, if anybody.
    pub log: Option<Log>,
}

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// Empty of packets, at the start of the run.
    pub fn new(calendar: Calendar<C>, end: C, window: [C; 2], log: Option<Log>) -> World<C, TRACE> {
        World {
            now: C::ZERO,
            calendar,
            inserted: 0,
            packets: Slab::default(),
            links: Vec::new(),
            ends: Vec::new(),
            routes: Vec::new(),
            through: Vec::new(),
            busiest: 0,
            flows: Vec::new(),
            edges: Vec::new(),
            signals: Paths::default(),
            observers: BTreeMap::new(),
            edge_at: Vec::new(),
            shared: None,
            end,
            window,
            turned: Vec::new(),
            to_come: Vec::new(),
            gather: 0,
            drops: BTreeMap::new(),
            verdicts: Vec::new(),
            emerged: Vec::new(),
            notes: Notes::default(),
            log,
        }
    }

    /// The order of `what` among events at the same moment: what it is, or in the ns-2 profile its turn.
    #[inline]
    fn tie(&mut self, what: What) -> u32 {
        if C::NS2 { self.turn() } else { what.rank() }
    }

    /// The ns-2 profile's order: one more event inserted.
    fn turn(&mut self) -> u32 {
        self.inserted = self.inserted.wrapping_add(1);
        self.inserted
    }

    /// Lets `what` happen at `at`.
    #[inline]
    pub fn schedule(&mut self, at: C, what: What) {
        let tie = self.tie(what);
        self.calendar.push(Event { at: at.bits(), tie, what: what.pack() });
    }

    /// A flow's sender hands over a segment.
    #[inline]
    pub fn send(&mut self, flow: u32, segment: u32, bits: Bits) {
        let f = &self.flows[flow as usize];
        let (kind, payload) = if segment == 0 { (Kind::Syn, 0) } else { (Kind::Data, f.segment) };
        let packet = Packet {
            flow: FlowId(flow),
            size: f.header + payload,
            payload,
            seq: byte_of(segment, f.segment),
            ack: 0,
            colour: Colour::IN,
            kind,
            ecn: if bits.capable { Ecn::Capable } else { Ecn::NotCapable },
            class: f.class,
        };
        self.launch(flow, packet, segment, bits.cwr);
    }

    /// A flow's source hands over a datagram of this size on the wire.
    pub fn send_datagram(&mut self, flow: u32, number: u32, size: u32) {
        let f = &self.flows[flow as usize];
        let payload = size.saturating_sub(f.header);
        let kind = Kind::Datagram;
        let packet = Packet { flow: FlowId(flow), size, payload, kind, class: f.class, ..Packet::default() };
        self.launch(flow, packet, number, false);
    }

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

    /// A packet of a receiver outside goes on its way; in which slot.
    pub fn launch_back(&mut self, flow: u32, packet: Packet) -> u32 {
        let f = &mut self.flows[flow as usize];
        f.acks[0] += 1;
        let slot = self.packets.add(packet, 0, false, f.back);
        self.enter(slot, self.now);
        slot
    }

    /// A packet has come to a host outside.
    pub fn emerge(&mut self, slot: u32) {
        let t = *self.packets.get(slot);
        let f = &mut self.flows[t.packet.flow.0 as usize];
        if t.forward {
            f.counts.received[t.packet.colour as usize] += 1;
            f.counts.received_bytes[t.packet.colour as usize] += u64::from(t.packet.size);
        } else {
            f.acks[1] += 1;
            if let Some(m) = &mut f.marker {
                m.marker.observe(self.now.time(), &t.packet, Direction::Reverse);
            }
        }
        self.packets.remove(slot);
        self.emerged.push(Emerged { at: self.now.time(), slot, packet: t.packet, forward: t.forward });
    }

    /// A flow's receiver acknowledges.
    #[inline]
    pub fn acknowledge(&mut self, flow: u32) {
        let slot = self.packets.add(Packet { flow: FlowId(flow), ..Packet::default() }, 0, false, (0, 0));
        self.acknowledge_in(slot, flow);
        self.enter(slot, self.now);
    }

    /// Makes the packet in `slot` an acknowledgement from the flow's receiver, at the start of its way.
    #[inline]
    fn acknowledge_in(&mut self, slot: u32, flow: u32) {
        let f = &mut self.flows[flow as usize];
        f.acks[0] += 1;
        let expects = f.receiver.expects();
        let sack = f.receiver.selects().then(|| f.receiver.select());
        let said = sack.map_or(0, |s| s.blocks().len() as u32 * Sack::BYTES);
        let packet = Packet {
            flow: FlowId(flow),
            size: f.header + said,
            ack: byte_of(expects, f.segment),
            kind: Kind::Ack,
            class: f.class,
            ..Packet::default()
        };
        let echo = f.receiver.echo();
        self.packets.put(slot, packet, expects, false, f.back);
        self.packets.get_mut(slot).flag = echo;
        if let Some(sack) = sack {
            self.packets.set_sack(slot, sack);
        }
    }

    /// Data has come to the end of its way now.
    #[inline]
    pub fn receive(&mut self, slot: u32) {
        if self.take_in(slot, self.now) {
            self.acknowledge_in(slot, self.packets.get(slot).packet.flow.0);
            self.packets.number(slot);
            self.enter(slot, self.now);
        } else {
            self.packets.remove(slot);
        }
    }

    /// The receiver takes in the data in `slot`. True: it acknowledges at once.
    #[inline]
    fn take_in(&mut self, slot: u32, at: C) -> bool {
        let t = self.packets.get(slot);
        let (flow, segment) = (t.packet.flow.0, t.segment);
        let (colour, size) = (t.packet.colour as usize, u64::from(t.packet.size));
        let (ecn, reduced) = (t.packet.ecn, t.flag);
        let (kind, payload) = (t.packet.kind, u64::from(t.packet.payload));
        let f = &mut self.flows[flow as usize];
        if f.ahead && self.window.get(usize::from(f.turned)).is_some_and(|turn| *turn <= at) {
            self.turn_receiver(flow, at);
        }
        let f = &mut self.flows[flow as usize];
        f.counts.received[colour] += 1;
        f.counts.received_bytes[colour] += size;
        if kind == Kind::Datagram {
            f.counts.in_order_payload_bytes += payload;
            f.counts.in_order_wire_bytes += size;
            return false;
        }
        if ecn != Ecn::NotCapable {
            f.receiver.congestion(segment, ecn == Ecn::Experienced, reduced);
        }
        let first = f.receiver.expects();
        let reply = f.receiver.arrived(segment, f.timers[Alarm::Acknowledge as usize].is_set());
        let (payload, wire) = f.bytes_of(first, reply.delivered);
        f.counts.in_order_payload_bytes += payload;
        f.counts.in_order_wire_bytes += wire;
        if reply.delivered > 0 && f.receiver.expects() == f.complete_at {
            f.completed = Some(at.time());
        }
        match reply.timer {
            Delay::Leave => {}
            Delay::Stop => f.timers[Alarm::Acknowledge as usize].cancel(),
            Delay::Set => {
                let span = f.delay();
                self.set_timer(flow, Alarm::Acknowledge, span);
            }
        }
        reply.acknowledge
    }

    /// The window turns for a receiver that is ahead of the present, before what arrives at that moment.
    #[cold]
    fn turn_receiver(&mut self, flow: u32, at: C) {
        let f = &mut self.flows[flow as usize];
        while self.window.get(usize::from(f.turned)).is_some_and(|turn| *turn <= at) {
            self.turned.push((f.turned, flow, f.counts));
            f.turned += 1;
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

    /// The link `link` has sent a packet and is ready for the next one; or it was to try again now.
    pub fn departure(&mut self, link: u32) {
        if !self.links[link as usize].is_sending(self.now) {
            self.start_next(link);
        }
    }

    /// An edge's, queue's or host's mechanism is due.
    pub fn tick(&mut self, what: What) {
        let now = self.now.time();
        let mut outbox = Outbox::default();
        let next = match what {
            What::EdgeTick(e) => self.edges[e as usize].marker.tick(now, &mut outbox),
            What::QueueTick(l) => {
                self.links[l as usize].settle(self.now);
                self.links[l as usize].tick(now, &mut outbox)
            }
            What::HostTick(f) => {
                self.flows[f as usize].marker.as_mut().and_then(|m| m.marker.tick(now, &mut outbox))
            }
            _ => None,
        };
        if !outbox.signals.is_empty() {
            for (path, delay) in self.signals.post(what, &outbox) {
                self.schedule(self.now.after(C::span(delay)), What::Signals(path));
            }
        }
        if let Some(at) = next {
            self.schedule(C::at(at), what);
        }
    }

    /// A mechanism is told something.
    pub fn tell(&mut self, who: Target, signal: &Signal) {
        let now = self.now.time();
        match who {
            Target::Edge(e) => self.edges[e as usize].marker.signal(now, signal),
            Target::Queue(l) | Target::Class(l, _) => {
                let class = if let Target::Class(_, c) = who { Some(c as usize) } else { None };
                self.links[l as usize].settle(self.now);
                self.links[l as usize].signal(now, class, signal);
            }
            Target::Flow(f) => {
                if let Some(m) = &mut self.flows[f as usize].marker {
                    m.marker.signal(now, signal);
                }
            }
        }
    }

    /// Signals have come to the end of a path.
    pub fn deliver(&mut self, path: u32) {
        let (who, signals) = self.signals.arrive(path);
        for signal in &signals {
            self.tell(who, signal);
        }
    }

    /// An acknowledgement has come by a link: the queues at its end that its data passes may look at it.
    fn show_to_queues(&mut self, came_by: u32, packet: &Packet) {
        let Some(queues) = self.observers.get(&came_by) else { return };
        let (first, links) = self.flows[packet.flow.0 as usize].forward;
        let path = &self.routes[first as usize..][..usize::from(links)];
        for &l in queues.iter().filter(|l| path.contains(l)) {
            self.links[l as usize].settle(self.now);
            self.links[l as usize].observe(self.now.time(), packet, Direction::Reverse);
        }
    }

    /// Sets a flow's timer.
    pub fn set_timer(&mut self, flow: u32, which: Alarm, after: C::Span) {
        let what = What::Alarm(flow, which);
        let due = (self.now.after(after), self.tie(what));
        if self.flows[flow as usize].timers[which as usize].set(due) {
            self.put_back(due, what);
        }
    }

    /// Puts an event into the calendar whose order among equals is known.
    pub fn put_back(&mut self, due: (C, u32), what: What) {
        self.calendar.push(Event { at: due.0.bits(), tie: due.1, what: what.pack() });
    }

    /// A packet goes into its next link at `at`, and as far beyond as can be computed now.
    #[inline]
    fn enter(&mut self, slot: u32, mut at: C) {
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
        let sink = |w: crate::link::Waiting<C>, cause| dropped.push((w.slot, cause));
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

    /// The flow's own marker decides. False: it dropped the packet.
    #[inline]
    fn mark_at_host(&mut self, flow: u32, slot: u32) -> bool {
        let Some(m) = self.flows[flow as usize].marker.as_mut() else { return true };
        let packet = self.packets.get(slot).packet;
        let verdict = m.decide::<C, TRACE>(self.now, &packet, self.shared.as_mut(), &mut self.notes);
        if let Mark::Drop(_) = verdict {
            let c = &mut self.flows[flow as usize].counts;
            c.sent[packet.colour as usize] += 1;
            c.sent_bytes[packet.colour as usize] += u64::from(packet.size);
        }
        self.apply(verdict, slot, Place::Host)
    }

    /// An edge's marker decides on data, and sees acknowledgements pass. False: it dropped the packet.
    #[inline]
    fn mark_at_edge(&mut self, edge: u32, slot: u32) -> bool {
        let t = self.packets.get(slot);
        let packet = t.packet;
        let m = &mut self.edges[edge as usize];
        if !t.forward {
            m.marker.observe(self.now.time(), &packet, Direction::Reverse);
            return true;
        }
        let verdict = m.decide::<C, TRACE>(self.now, &packet, self.shared.as_mut(), &mut self.notes);
        self.apply(verdict, slot, Place::Edge(edge))
    }

    /// Does what a marker decided. False: the packet is gone.
    #[inline]
    fn apply(&mut self, verdict: Mark, slot: u32, place: Place) -> bool {
        if TRACE {
            let word = match verdict {
                Mark::Pass(colour) => (colour.name(), None),
                Mark::Drop(cause) => ("drop", Some(cause)),
            };
            self.write_down(self.now.time(), slot, place, word);
        }
        match verdict {
            Mark::Pass(colour) => {
                self.packets.get_mut(slot).packet.colour = colour;
                true
            }
            Mark::Drop(cause) => {
                self.lose(slot, place, cause, self.now);
                false
            }
        }
    }

    /// Books a lost packet and forgets it.
    fn lose(&mut self, slot: u32, place: Place, cause: Cause, at: C) {
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

    fn write_down(&mut self, at: Time, slot: u32, place: Place, word: (&'static str, Option<Cause>)) {
        let t = self.packets.get(slot);
        self.verdicts.push(VerdictRow {
            at,
            packet: t.number,
            flow: t.packet.flow.0,
            place,
            verdict: word.0,
            cause: word.1,
            why: self.notes.items().to_vec(),
        });
    }

    #[inline]
    fn log(&mut self, code: Code, link: u32, slot: u32, at: C) {
        if let Some(log) = &mut self.log {
            let (from, to) = self.ends[link as usize];
            log(&LogRow { code, at: at.secs(), from, to, packet: *self.packets.get(slot) });
        }
    }
}

/// The number of a segment's first byte, modulo 2³²: the SYN takes one number, data follows.
fn byte_of(segment: u32, size: u32) -> u32 {
    if segment == 0 { 0 } else { (segment - 1).wrapping_mul(size).wrapping_add(1) }
}

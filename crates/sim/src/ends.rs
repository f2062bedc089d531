//! The two ends of a packet's path: a sender's segment becomes a packet, and the receiver takes it and acknowledges it.
//! Packets of external hosts enter and leave the network here too.

use inprofile_core::packet::{Colour, Direction, Ecn, FlowId, Kind, Packet};

use crate::clock::Clock;
use crate::event::EventKind;
use crate::flow::Care;
use crate::link::Shape;
use crate::tcp::receiver::{Reply, TimerAction};
use crate::tcp::{EcnBits, Flags, Host, Sack, TimerKind, sequence_number};
use crate::timer::Timers;
use crate::world::{Egress, World};

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// A flow's sender sends a segment.
    #[inline(always)]
    pub fn send(&mut self, flow: u32, segment: u32, bits: EcnBits) {
        let f = &self.flows[flow as usize];
        let (kind, payload) = if segment == 0 { (Kind::Syn, 0) } else { (Kind::Data, f.segment) };
        let packet = Packet {
            flow: FlowId(flow),
            size: f.header + payload,
            payload,
            seq: sequence_number(segment, f.segment),
            ack: 0,
            colour: Colour::IN,
            kind,
            ecn: bits.ip,
            class: f.class,
        };
        self.launch(packet, segment, bits.flags);
    }

    /// A flow's source sends a datagram of this size on the wire.
    pub fn send_datagram(&mut self, flow: u32, number: u32, size: u32, ecn: Ecn) {
        let f = &self.flows[flow as usize];
        let payload = size.saturating_sub(f.header);
        let kind = Kind::Datagram;
        let packet =
            Packet { flow: FlowId(flow), size, payload, kind, ecn, class: f.class, ..Packet::default() };
        self.launch(packet, number, Flags::NONE);
    }

    /// Data reaches its receiver at `at`. If it is acknowledged at once, its slot now holds the acknowledgement, whose position at
    /// the start of its route and whose shape are returned.
    #[inline(always)]
    pub(crate) fn receive(&mut self, slot: u32, at: C) -> Option<(u32, Shape)> {
        let t = self.packets.get_mut(slot);
        let f = &mut self.flows[t.packet.flow.0 as usize];
        if f.care != Care::Plain || f.next_boundary <= at || self.measures.is_some() {
            return self.receive_unmarked(slot, at);
        }
        let reply = f.receive(t, at);
        if !reply.acknowledge {
            return self.receive_silently(slot, reply);
        }
        let said = f.make_ack(t);
        let back = (f.back.0, Shape::new(t.packet.size, t.packet.colour));
        self.packets.number(slot);
        if let Some(sack) = said {
            self.packets.set_sack(slot, sack);
        }
        Some(back)
    }

    /// The same for a flow [with ECN](Care::Unmarked).
    #[inline(never)]
    fn receive_unmarked(&mut self, slot: u32, at: C) -> Option<(u32, Shape)> {
        let t = self.packets.get_mut(slot);
        let f = &mut self.flows[t.packet.flow.0 as usize];
        if f.care == Care::All
            || f.next_boundary <= at
            || self.measures.is_some()
            || f.receiver.acknowledges_before(t.packet.ecn == Ecn::Experienced)
        {
            return self.receive_observed(slot, at);
        }
        let reply = f.receive(t, at);
        if !reply.acknowledge {
            return self.receive_silently(slot, reply);
        }
        let said = f.make_ack(t);
        let back = (f.back.0, Shape::new(t.packet.size, t.packet.colour));
        self.packets.number(slot);
        if let Some(sack) = said {
            self.packets.set_sack(slot, sack);
        }
        Some(back)
    }

    /// The same with all that is done for a flow that is marked, or whose delays are measured, at a boundary of the measured
    /// window, and where packets are measured.
    #[cold]
    #[inline(never)]
    fn receive_observed(&mut self, slot: u32, at: C) -> Option<(u32, Shape)> {
        let packet = &self.packets.get(slot).packet;
        let (flow, experienced) = (packet.flow.0, packet.ecn == Ecn::Experienced);
        if self.flows[flow as usize].receiver.acknowledges_before(experienced) {
            self.send_delayed_ack(flow);
        }
        let f = &mut self.flows[flow as usize];
        if f.next_boundary <= at {
            f.pass_boundaries(at, self.window, |turn, counts| {
                self.boundary_counts.push((turn, flow, counts))
            });
        }
        if let Some(delays) = &mut f.delays
            && let Some(sent) = self.packets.delays(slot).secs().first()
        {
            delays.push(at.secs() - sent);
        }
        let t = self.packets.get_mut(slot);
        if f.tells_bytes() {
            f.receiver.count_bytes(t.segment, t.packet.ecn);
        }
        let reply = f.receive(t, at);
        if let Some(measures) = &mut self.measures {
            measures.received(slot, t, at.time(), f.counts.in_order_payload_bytes);
        }
        if !reply.acknowledge {
            return self.receive_silently(slot, reply);
        }
        let said = f.make_ack(t);
        if let Some(delays) = &mut f.delays {
            self.packets.set_delays(slot, std::mem::take(delays));
        }
        self.packets.number(slot);
        self.set_options(slot, said);
        let t = self.packets.get(slot);
        Some((self.flows[flow as usize].back.0, Shape::new(t.packet.size, t.packet.colour)))
    }

    /// Sets the options of the acknowledgement in a slot, of any flow.
    fn set_options(&mut self, slot: u32, sack: Option<Sack>) {
        let t = self.packets.get_mut(slot);
        let f = &mut self.flows[t.packet.flow.0 as usize];
        if !f.tells_bytes() {
            if let Some(sack) = sack {
                self.packets.set_sack(slot, sack);
            }
            return;
        }
        // A packet that is longer than its header has both: what the slot held before is none of its.
        let mut sack = sack.unwrap_or_default();
        let option = f.add_byte_option(t, &mut sack);
        self.packets.set_sack(slot, sack);
        self.packets.set_byte_option(slot, option);
    }

    /// The data in this slot is not acknowledged now.
    #[inline(never)]
    fn receive_silently(&mut self, slot: u32, reply: Reply) -> Option<(u32, Shape)> {
        let flow = self.packets.get(slot).packet.flow.0;
        self.packets.remove(slot);
        if reply.timer == TimerAction::Set {
            self.delay_ack(flow);
        }
        None
    }

    /// A flow's receiver delays an acknowledgement.
    fn delay_ack(&mut self, flow: u32) {
        let what = EventKind::Timer(flow, TimerKind::DelayedAck);
        let due = self.due(what, self.flows[flow as usize].max_ack_delay());
        if self.flows[flow as usize].delayed_ack.set(due) {
            self.requeue(due, what);
        }
    }

    /// A flow's receiver sends its delayed acknowledgement.
    pub fn send_delayed_ack(&mut self, flow: u32) {
        self.flows[flow as usize].stop_delaying();
        let packet = Packet { flow: FlowId(flow), ..Packet::default() };
        let slot = self.packets.add(packet, 0, false, Flags::NONE, (0, 0));
        let said = self.flows[flow as usize].make_ack(self.packets.get_mut(slot));
        self.set_options(slot, said);
        if let Some(delays) = &mut self.flows[flow as usize].delays {
            self.packets.set_delays(slot, std::mem::take(delays));
        }
        self.enter(slot, self.now);
    }

    /// Sends a packet of an external sender; returns its slot.
    pub fn launch_data(&mut self, packet: Packet) -> u32 {
        self.launch(packet, 0, Flags::NONE)
    }

    /// Sends a packet of an external receiver; returns its slot.
    pub fn launch_back(&mut self, flow: u32, packet: Packet, flags: Flags) -> u32 {
        let f = &mut self.flows[flow as usize];
        f.acks_sent += 1;
        let slot = self.packets.add(packet, 0, false, flags, f.back);
        self.enter(slot, self.now);
        slot
    }

    /// A packet arrives at an external host.
    pub fn deliver_outside(&mut self, slot: u32) {
        let t = *self.packets.get(slot);
        let f = &mut self.flows[t.packet.flow.0 as usize];
        if t.forward() {
            f.counts.received[t.packet.colour as usize] += 1;
            f.counts.received_bytes[t.packet.colour as usize] += u64::from(t.packet.size);
            if let Some(measures) = &mut self.measures {
                measures.received(slot, &t, self.now.time(), 0);
            }
        } else {
            f.acks_received += 1;
            if let Some(m) = &mut f.marker {
                m.marker.observe(self.now.time(), &t.packet, Direction::Reverse);
            }
        }
        self.packets.remove(slot);
        self.egress.push(Egress { at: self.now.time(), slot, packet: t.packet, forward: t.forward() });
    }
}

/// A flow's sender's access to the world.
pub struct FlowHost<'a, C: Clock, const TRACE: bool> {
    /// The world.
    pub world: &'a mut World<C, TRACE>,
    /// The sender's timers.
    pub timers: &'a mut Timers<C>,
    /// The flow.
    pub flow: u32,
}

impl<C: Clock, const TRACE: bool> Host for FlowHost<'_, C, TRACE> {
    type Clock = C;

    #[inline]
    fn now(&self) -> C {
        self.world.now
    }
    #[inline(always)]
    fn send(&mut self, segment: u32, bits: EcnBits) {
        self.world.send(self.flow, segment, bits);
    }
    #[inline]
    fn set_timer(&mut self, which: TimerKind, after: C::Span) {
        let what = EventKind::Timer(self.flow, which);
        let due = self.world.due(what, after);
        if self.timers[which as usize].set(due) {
            self.world.requeue(due, what);
        }
    }
    fn cancel_timer(&mut self, which: TimerKind) {
        self.timers[which as usize].cancel();
    }
    #[inline]
    fn timer_is_set(&self, which: TimerKind) -> bool {
        self.timers[which as usize].is_set()
    }
    fn uniform(&mut self) -> f64 {
        let own = self.world.flows[self.flow as usize].jitter();
        self.world
            .shared
            .as_mut()
            .or(own)
            .expect("only senders that jitter, or whose congestion control draws, ask")
            .uniform()
    }
}

//! The two ends of a packet's way: a sender's segment becomes a packet, the receiver takes it in and answers, and packets
//! of hosts outside go in and come out.
use inprofile_core::packet::{Colour, Direction, Ecn, FlowId, Kind, Packet};

use crate::clock::Clock;
use crate::packet::Travelling;
use crate::tcp::receiver::Delay;
use crate::tcp::{Alarm, Bits, Sack};
use crate::world::{Emerged, World};

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
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
        let slot = self.packets.add(packet, segment, true, bits.cwr, f.forward);
        self.launch(flow, slot);
    }

    /// A flow's source hands over a datagram of this size on the wire.
    pub fn send_datagram(&mut self, flow: u32, number: u32, size: u32) {
        let f = &self.flows[flow as usize];
        let payload = size.saturating_sub(f.header);
        let kind = Kind::Datagram;
        let packet = Packet { flow: FlowId(flow), size, payload, kind, class: f.class, ..Packet::default() };
        let slot = self.packets.add(packet, number, true, false, f.forward);
        self.launch(flow, slot);
    }

    /// A flow's receiver acknowledges.
    #[inline]
    pub fn acknowledge(&mut self, flow: u32) {
        let slot =
            self.packets.add(Packet { flow: FlowId(flow), ..Packet::default() }, 0, false, false, (0, 0));
        self.acknowledge_in(slot, flow);
        self.enter(slot, self.now);
    }

    /// Makes the packet in `slot` an acknowledgement from the flow's receiver, at the start of its way.
    #[inline]
    pub(crate) fn acknowledge_in(&mut self, slot: u32, flow: u32) {
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
        self.packets.put(slot, packet, expects, false, echo, f.back);
        if let Some(sack) = sack {
            self.packets.set_sack(slot, sack);
        }
    }

    /// Data comes to the end of its way at `at`.
    #[inline]
    pub(crate) fn receive(&mut self, slot: u32, at: C) {
        if self.take_in(slot, at) {
            self.acknowledge_in(slot, self.packets.get(slot).packet.flow.0);
            self.packets.number(slot);
            self.enter(slot, at);
        } else {
            self.packets.remove(slot);
        }
    }

    /// The receiver takes in the data in `slot`. True: it acknowledges at once.
    #[inline]
    pub(crate) fn take_in(&mut self, slot: u32, at: C) -> bool {
        let Travelling { packet, segment, flag: reduced, .. } = self.packets.get(slot);
        let flow = packet.flow.0;
        let f = &mut self.flows[flow as usize];
        if f.turns_at <= at {
            f.turn(at, self.window, |turn, counts| self.turned.push((turn, flow, counts)));
        }
        f.counts.received[packet.colour as usize] += 1;
        f.counts.received_bytes[packet.colour as usize] += u64::from(packet.size);
        if packet.kind == Kind::Datagram {
            f.counts.in_order_payload_bytes += u64::from(packet.payload);
            f.counts.in_order_wire_bytes += u64::from(packet.size);
            return false;
        }
        let segment = *segment;
        if packet.ecn != Ecn::NotCapable {
            f.receiver.congestion(segment, packet.ecn == Ecn::Experienced, *reduced);
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

    /// A packet of a sender outside goes on its way; in which slot.
    pub fn launch_data(&mut self, flow: u32, packet: Packet) -> u32 {
        let slot = self.packets.add(packet, 0, true, false, self.flows[flow as usize].forward);
        self.launch(flow, slot);
        slot
    }

    /// A packet of a receiver outside goes on its way; in which slot.
    pub fn launch_back(&mut self, flow: u32, packet: Packet) -> u32 {
        let f = &mut self.flows[flow as usize];
        f.acks[0] += 1;
        let slot = self.packets.add(packet, 0, false, false, f.back);
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
}

/// The number of a segment's first byte, modulo 2³²: the SYN takes one number, data follows.
fn byte_of(segment: u32, size: u32) -> u32 {
    if segment == 0 { 0 } else { (segment - 1).wrapping_mul(size).wrapping_add(1) }
}

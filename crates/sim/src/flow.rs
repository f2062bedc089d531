//! A running flow, without its sender: its routes, its receiver and its counters.

use inprofile_core::packet::{Kind, Packet};
use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Time};

use crate::clock::Clock;
use crate::marker_points::MarkerState;
use crate::network::Transport;
use crate::outcome::FlowCounts;
use crate::packet::InFlight;
use crate::record::Samples;
use crate::route::Route;
use crate::tcp::receiver::{Receiver, Reply, TimerAction};
use crate::tcp::{ByteOption, Config, Delays, Flags, Sack, sequence_number};
use crate::timer::Timer;
use crate::traffic::udp;

/// The work for a flow's packets beside counting them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Nothing: it is TCP without ECN, nobody marks its packets, and nobody measures their delays.
    Plain,
    /// It has ECN or is not TCP; but nobody marks its packets or measures their delays, and no acknowledgement tells of bytes.
    Unmarked,
    /// Whatever there is.
    All,
}

/// A running flow, without its sender. What every packet touches comes first, and is four cache lines: of a thousand flows the
/// next packet's is rarely in the nearest cache. Data that arrives touches all but the third, an acknowledgement that arrives the first and the third.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct FlowState<C: Clock> {
    /// The route of its data.
    pub forward: Route,
    /// The route of its acknowledgements.
    pub back: Route,
    /// Sizes of a full segment and of the headers.
    pub segment: u32,
    /// See `segment`.
    pub header: u32,
    /// The segment after the last one of a transfer; `u32::MAX` if the flow has unlimited data.
    pub complete_at: u32,
    /// The class of its packets and their acknowledgements.
    pub class: u8,
    /// The work for its packets beside counting them.
    pub care: Care,
    /// Whether its receiver asks for the next piece of data as soon as it has one.
    pub asks: bool,
    /// How many boundaries of the measured window the receiver has passed, if it is
    /// [computed](FlowState::with_computed_receiver).
    boundaries_passed: u8,
    /// The next boundary of the measured window for such a receiver.
    pub next_boundary: C,
    /// Acknowledgements sent.
    pub acks_sent: u64,
    /// The delays that its next acknowledgement tells of, where they are measured.
    pub delays: Option<Box<Delays>>,
    /// Its receiver.
    pub receiver: Receiver,
    /// Its own marker.
    pub marker: Option<Box<MarkerState>>,
    /// Acknowledgements received.
    pub acks_received: u64,
    /// Counts since the start of the run.
    pub counts: FlowCounts,
    /// Acknowledgements dropped.
    pub acks_dropped: u64,
    /// The delayed-acknowledgement timer.
    pub delayed_ack: Timer<C>,
    /// When it starts.
    pub start: Time,
    /// When the receiver had received all of a transfer.
    pub completed: Option<Time>,
    /// The parts that few flows have.
    rare: Option<Box<Rare>>,
}

/// The parts that few flows have, for which none of a hundred thousand should take room.
#[derive(Debug, Default)]
struct Rare {
    /// Its random numbers, if its sends are jittered or its congestion control draws.
    jitter: Option<Rng>,
    /// Its acknowledgements have the AccECN Option.
    tells_bytes: bool,
    /// The samples that monitors take of its receiver, if that is [computed](FlowState::with_computed_receiver).
    samples: Box<[Samples]>,
}

impl<C: Clock> FlowState<C> {
    /// Before its first packet.
    pub fn new(
        transport: &Transport,
        start: Time,
        class: u8,
        forward: Route,
        back: Route,
        marker: Option<Box<MarkerState>>,
        rng: Rng,
    ) -> FlowState<C> {
        let (segment, header) = match transport {
            Transport::Tcp(config)
            | Transport::Transfer(config, _)
            | Transport::Web(config, _)
            | Transport::Video(config, _) => (config.segment, config.header()),
            Transport::Udp(config) => (config.largest().saturating_sub(udp::HEADER), udp::HEADER),
        };
        let measured = |c: &Config| c.congestion.measures_delay() || c.tells_bytes();
        let care = if marker.is_some() || transport.tcp().is_some_and(measured) {
            Care::All
        } else if transport.tcp().is_some_and(|c| !c.ecn) {
            Care::Plain
        } else {
            Care::Unmarked
        };
        let tells_bytes = transport.tcp().is_some_and(Config::tells_bytes);
        let jittered =
            transport.tcp().is_some_and(|c| c.settings.jitter > Duration::ZERO || c.congestion.draws());
        FlowState {
            class,
            care,
            forward,
            back,
            segment,
            header,
            delays: transport.tcp().filter(|c| c.congestion.measures_delay()).map(|_| Box::default()),
            receiver: transport.tcp().map_or_else(Receiver::idle, Receiver::new),
            complete_at: match transport {
                Transport::Transfer(_, segments) => segments.saturating_add(1),
                Transport::Tcp(_) | Transport::Udp(_) | Transport::Web(..) | Transport::Video(..) => u32::MAX,
            },
            asks: matches!(transport, Transport::Web(..) | Transport::Video(..)),
            start,
            completed: None,
            boundaries_passed: 0,
            next_boundary: C::NEVER,
            marker,
            delayed_ack: Timer::default(),
            counts: FlowCounts::default(),
            acks_sent: 0,
            acks_received: 0,
            acks_dropped: 0,
            rare: (jittered || tells_bytes)
                .then(|| Box::new(Rare { jitter: jittered.then_some(rng), tells_bytes, ..Rare::default() })),
        }
    }

    /// Its marker is in another part of the run: there is as much to do for its packets as there.
    pub(crate) fn is_marked_elsewhere(&mut self) {
        self.care = Care::All;
    }

    /// Adds what another part of the run has counted; `sends`: its sender is there.
    pub(crate) fn absorb(&mut self, other: FlowState<C>, sends: bool) {
        if sends {
            self.marker = other.marker;
            self.start = other.start;
        }
        self.counts.add(&other.counts);
        self.acks_sent += other.acks_sent;
        self.acks_received += other.acks_received;
        self.acks_dropped += other.acks_dropped;
        self.completed = self.completed.or(other.completed);
    }

    /// Its random numbers, if its sends are jittered or its congestion control draws.
    pub(crate) fn jitter(&mut self) -> Option<&mut Rng> {
        self.rare.as_mut()?.jitter.as_mut()
    }

    /// The samples of its receiver.
    fn samples(&mut self) -> &mut [Samples] {
        match &mut self.rare {
            Some(rare) => &mut rare.samples,
            None => &mut [],
        }
    }

    /// Lets its receiver run ahead of the current time: what it does is computed as soon as a packet is sent. It must
    /// acknowledge at once, and the first link of its acknowledgements must be one that is cut through. `samples`: those of its
    /// monitors.
    #[must_use]
    pub fn with_computed_receiver(mut self, window: [C; 2], samples: Box<[Samples]>) -> FlowState<C> {
        if !samples.is_empty() {
            self.rare.get_or_insert_default().samples = samples;
        }
        self.next_boundary = self.first_boundary(window);
        self
    }

    /// A receiver that runs ahead passes boundaries of the window and samples before what arrives at `at`: reports each
    /// boundary with the counters there.
    #[cold]
    pub fn pass_boundaries(&mut self, at: C, window: [C; 2], mut turned: impl FnMut(u8, FlowCounts)) {
        while self.next_boundary <= at {
            let here = self.next_boundary;
            let received = self.counts.received_bytes;
            for s in self.samples().iter_mut().filter(|s| s.boundary::<C>() == here) {
                s.pass(received);
            }
            if window.get(usize::from(self.boundaries_passed)) == Some(&here) {
                turned(self.boundaries_passed, self.counts);
                self.boundaries_passed += 1;
            }
            self.next_boundary = self.first_boundary(window);
        }
    }

    /// Bytes received, by colour, as a monitor that samples now sees them.
    pub fn sampled_bytes(&mut self, monitor: u32, window: [C; 2]) -> [u64; 3] {
        let now = self.counts.received_bytes;
        let Some(own) = self.samples().iter_mut().find(|s| s.are_of(monitor)) else { return now };
        let then = own.take();
        self.next_boundary = self.first_boundary(window);
        then.unwrap_or(now)
    }

    /// The current time has passed a boundary of the window: a receiver that had not passed it ahead of time has nothing to
    /// report.
    pub fn boundary_passed(&mut self, turn: u8, window: [C; 2]) {
        if self.next_boundary < C::NEVER && self.boundaries_passed == turn {
            self.boundaries_passed += 1;
            self.next_boundary = self.first_boundary(window);
        }
    }

    /// The first of the boundaries and samples that the receiver has not passed.
    fn first_boundary(&self, window: [C; 2]) -> C {
        let window = window.get(usize::from(self.boundaries_passed)).copied().unwrap_or(C::NEVER);
        self.rare.as_ref().map_or(window, |rare| Samples::first_boundary(&rare.samples, window))
    }

    /// More data was asked for: it ends before this segment.
    pub fn expect_until(&mut self, end: u32) {
        self.complete_at = end;
        self.completed = None;
    }

    /// The longest time an acknowledgement may be delayed.
    pub fn max_ack_delay(&self) -> C::Span {
        self.receiver.max_ack_delay::<C>()
    }

    /// Delayed segments are acknowledged now.
    pub fn stop_delaying(&mut self) {
        self.delayed_ack.cancel();
        self.receiver.on_delayed_ack_timer();
    }

    /// Data arrives at the receiver at `at`: what it does about it.
    #[inline(always)]
    pub fn receive(&mut self, t: &InFlight, at: C) -> Reply {
        let packet = &t.packet;
        let c = &mut self.counts;
        c.received[packet.colour as usize] += 1;
        c.received_bytes[packet.colour as usize] += u64::from(packet.size);
        if self.care != Care::Plain {
            if packet.kind == Kind::Datagram {
                c.in_order_payload_bytes += u64::from(packet.payload);
                c.in_order_wire_bytes += u64::from(packet.size);
                return Reply { delivered: 0, acknowledge: false, timer: TimerAction::Leave };
            }
            if packet.ecn.can_mark() || packet.kind == Kind::Syn {
                self.receiver.on_ecn_bits(t.segment, packet.ecn, t.flags());
            }
        }
        let first = self.receiver.rcv_nxt();
        let mut reply = self.receiver.on_segment(t.segment, || self.delayed_ack.is_set());
        if reply.timer == TimerAction::Cancel {
            self.delayed_ack.cancel();
        }
        if reply.delivered > 0 {
            let (payload, wire) = self.bytes_of(first, reply.delivered);
            self.counts.in_order_payload_bytes += payload;
            self.counts.in_order_wire_bytes += wire;
            if self.receiver.rcv_nxt() == self.complete_at {
                self.completed = Some(at.time());
                if self.asks && !reply.acknowledge {
                    // The request for what comes next does not wait, and carries the acknowledgement.
                    reply = Reply { acknowledge: true, timer: TimerAction::Leave, ..reply };
                }
            }
        }
        reply
    }

    /// Reads from each cache line that data touches as it arrives: what it reads means nothing.
    #[inline(always)]
    pub fn touch_receiver(&self) -> u32 {
        self.segment ^ self.receiver.rcv_nxt() ^ self.counts.received_bytes[0] as u32
    }

    /// The same of an acknowledgement as it arrives, and of the data sent then.
    #[inline(always)]
    pub fn touch_sender(&self) -> u32 {
        self.segment ^ self.counts.sent[0] as u32
    }

    /// Turns `t`, a packet of this flow, into an acknowledgement from its receiver, at the start of its route. Returns
    /// the SACK option, if the flow uses SACK.
    #[inline(always)]
    pub fn make_ack(&mut self, t: &mut InFlight) -> Option<Sack> {
        self.acks_sent += 1;
        let expects = self.receiver.rcv_nxt();
        let sack = self.receiver.selects().then(|| self.receiver.sack());
        let said = sack.map_or(0, |s| s.blocks().len() as u32 * Sack::BLOCK_BYTES);
        let packet = Packet {
            flow: t.packet.flow,
            size: self.header + said,
            ack: sequence_number(expects, self.segment),
            kind: Kind::Ack,
            class: self.class,
            ..Packet::default()
        };
        let flags = if self.care == Care::Plain { Flags::NONE } else { self.receiver.flags() };
        *t = InFlight::new(packet, expects, self.back.0, false, flags);
        sack
    }

    /// Whether its acknowledgements have the AccECN Option.
    pub fn tells_bytes(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.tells_bytes)
    }

    /// Adds the AccECN Option to an acknowledgement, beside as many of these SACK blocks as there is room for
    /// (RFC 9768 §3.2.3.3).
    pub fn add_byte_option(&mut self, t: &mut InFlight, sack: &mut Sack) -> Option<ByteOption> {
        let option = self.receiver.byte_option()?;
        sack.truncate(option.blocks_beside());
        t.packet.size = self.header + option.bytes_beside(sack.blocks().len());
        Some(option)
    }

    /// Bytes of `n` segments from `first` on: payload, and on the wire.
    fn bytes_of(&self, first: u32, n: u32) -> (u64, u64) {
        let with_data = u64::from(if first == 0 { n.saturating_sub(1) } else { n });
        let payload = with_data * u64::from(self.segment);
        (payload, payload + u64::from(n) * u64::from(self.header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;
    use std::mem::offset_of;

    #[test]
    fn what_packets_touch_is_four_cache_lines_of_five_and_of_data_that_arrives_three() {
        type Flow = FlowState<Exact>;
        assert_eq!(size_of::<Flow>(), 5 * 64);
        assert_eq!(offset_of!(Flow, acks_dropped), 4 * 64);
        assert!(offset_of!(Flow, acks_sent) < 64 && offset_of!(Flow, receiver) < 64);
        let counts = offset_of!(Flow, counts);
        assert!(offset_of!(Flow, marker) == 2 * 64 && offset_of!(Flow, acks_received) < 3 * 64);
        assert_eq!(counts + offset_of!(FlowCounts, received), 3 * 64);
    }
}

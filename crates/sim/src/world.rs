//! Everything between senders and receivers in a running simulation, and how events are scheduled.

use std::collections::BTreeMap;

use inprofile_core::packet::{Kind, Packet};
use inprofile_core::rng::Rng;
use inprofile_core::units::Time;
use inprofile_core::verdict::{Cause, Notes};

use crate::agenda::Moment;
use crate::calendar::{Calendar, Event};
use crate::clock::Clock;
use crate::drops::Drops;
use crate::event::EventKind;
use crate::flow::FlowState;
use crate::flow_control::FlowControl;
use crate::link::Link;
use crate::marker_points::MarkerState;
use crate::measure::Measures;
use crate::network::NodeId;
use crate::outcome::{Download, FlowCounts, VerdictPoint, VerdictRow};
use crate::packet::Slab;
use crate::parts::border::Border;
use crate::path::stepped::Figures;
use crate::route::Routes;
use crate::run_log::{Code, Log, LogRow};
use crate::signals::Paths;
use crate::tcp::Sack;
use crate::timer::Due;
use crate::traffic::page_load::PageLoad;

/// A packet that has arrived at an external host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// When it left its last link.
    pub at: Time,
    /// The slot it was kept in.
    pub slot: u32,
    /// The packet, with the colour and ECN bits with which it arrived.
    pub packet: Packet,
    /// Whether it arrived at its flow's receiver.
    pub forward: bool,
}

/// The parts of a run that senders act on. `TRACE`: every verdict is recorded.
pub struct World<C: Clock, const TRACE: bool> {
    /// The current time.
    pub now: C,
    /// The order of the current event among those at the same time.
    pub(crate) order: u32,
    /// The events to come.
    pub calendar: Calendar<C>,
    /// Events scheduled so far: the order at equal times in the ns-2 profile.
    pub(crate) inserted: u32,
    /// Packets in flight.
    pub packets: Slab,
    /// Links by number.
    pub links: Vec<Link<C>>,
    /// Ends of links.
    pub ends: Vec<(NodeId, NodeId)>,
    /// Routes of all flows.
    pub routes: Routes,
    /// The link that delivers the packets of most flows by an event.
    pub busiest: u32,
    /// Flows by number.
    pub flows: Vec<FlowState<C>>,
    /// Aggregate markers.
    pub edges: Vec<MarkerState>,
    /// Signals between mechanisms.
    pub signals: Paths,
    /// Queues that observe acknowledgements, by the link that brings these to their node.
    pub observers: BTreeMap<u32, Vec<u32>>,
    /// The edge at each node.
    pub edge_at: Vec<Option<u32>>,
    /// The one random stream of all components, with ns-2's random numbers.
    pub shared: Option<Rng>,
    /// The end of the run: nothing later is computed.
    pub(crate) end: C,
    /// The boundaries of the measured window.
    pub(crate) window: [C; 2],
    /// The counters of receivers that run ahead, at the boundaries of the window: which boundary, whose, the counters.
    pub boundary_counts: Vec<(u8, u32, FlowCounts)>,
    /// Losses computed ahead of time: when, whose, why.
    pub(crate) pending_losses: Vec<(C, u32, Cause)>,
    /// At how many of them those in the past are removed.
    pub(crate) prune_at: usize,
    /// Lost packets by flow, place and cause.
    pub drops: Drops,
    /// The recorded verdicts.
    pub verdicts: Vec<VerdictRow>,
    /// Packets that have arrived at external hosts.
    pub egress: Vec<Egress>,
    /// Figures behind the verdict being given.
    pub(crate) notes: Notes,
    /// Room for what a discipline drops as a packet departs: slots and causes; and for the figures behind it.
    pub(crate) dropped_at_head: Vec<(u32, Cause)>,
    /// See `dropped_at_head`.
    pub(crate) figures: Figures,
    /// Pages of the web by number.
    pub pages: Vec<PageLoad>,
    /// Pages and chunks of video that have been received whole, with the moment at which that was known.
    pub(crate) downloads: Vec<(Moment<C>, Download)>,
    /// The measurements beyond counts, if anything is.
    pub measures: Option<Box<Measures>>,
    /// Receives every packet's events at every link, if the run is logged.
    pub log: Option<Log>,
    /// What pauses links, if anything does.
    pub(crate) flow_control: Option<Box<FlowControl>>,
    /// What leads to other parts, if the run is simulated in parts.
    pub(crate) border: Option<Box<Border>>,
}

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// Empty of packets, at the start of the run.
    pub fn new(calendar: Calendar<C>, end: C, window: [C; 2], log: Option<Log>) -> World<C, TRACE> {
        World {
            now: C::ZERO,
            order: 0,
            calendar,
            inserted: 0,
            packets: Slab::new(TRACE || log.is_some()),
            links: Vec::new(),
            ends: Vec::new(),
            routes: Routes::default(),
            busiest: 0,
            flows: Vec::new(),
            edges: Vec::new(),
            signals: Paths::default(),
            observers: BTreeMap::new(),
            edge_at: Vec::new(),
            shared: None,
            end,
            window,
            boundary_counts: Vec::new(),
            pending_losses: Vec::new(),
            prune_at: 0,
            drops: Drops::default(),
            verdicts: Vec::new(),
            egress: Vec::new(),
            notes: Notes::default(),
            dropped_at_head: Vec::new(),
            figures: Figures::default(),
            pages: Vec::new(),
            downloads: Vec::new(),
            measures: None,
            log,
            flow_control: None,
            border: None,
        }
    }

    /// The order of an event among those at the same time: by its kind, or in the ns-2 profile by insertion.
    #[inline]
    pub(crate) fn tie(&mut self, what: EventKind) -> u32 {
        if C::NS2 { self.next_insertion() } else { what.rank() }
    }

    /// The ns-2 profile's order: counts one more scheduled event.
    pub(crate) fn next_insertion(&mut self) -> u32 {
        self.inserted = self.inserted.wrapping_add(1);
        self.inserted
    }

    /// Schedules an event.
    #[inline]
    pub fn schedule(&mut self, at: C, what: EventKind) {
        let tie = self.tie(what);
        self.calendar.push(Event::new(at.bits(), tie, what.pack()));
    }

    /// The deadline of a timer that is set now, with its order at equal times.
    #[inline]
    pub fn due(&mut self, what: EventKind, after: C::Span) -> Due<C> {
        (self.now.after(after), self.tie(what))
    }

    /// Schedules an event whose order at equal times is known.
    pub fn requeue(&mut self, due: Due<C>, what: EventKind) {
        self.calendar.push(Event::new(due.0.bits(), due.1, what.pack()));
    }

    pub(crate) fn record_verdict(
        &mut self,
        at: Time,
        slot: u32,
        place: VerdictPoint,
        word: (&'static str, Option<Cause>),
    ) {
        let t = self.packets.get(slot);
        self.verdicts.push(VerdictRow {
            at,
            packet: self.packets.number_of(slot),
            flow: t.packet.flow.0,
            place,
            verdict: word.0,
            cause: word.1,
            why: self.notes.items().to_vec(),
        });
    }

    #[inline(always)]
    pub(crate) fn log(&mut self, code: Code, link: u32, slot: u32, at: C) {
        if self.log.is_some() {
            self.write_log(code, link, slot, at);
        }
    }

    #[inline(never)]
    fn write_log(&mut self, code: Code, link: u32, slot: u32, at: C) {
        if let Some(log) = &mut self.log {
            let (from, to) = self.ends[link as usize];
            let (packet, number) = (*self.packets.get(slot), self.packets.number_of(slot));
            // An option makes an acknowledgement longer; without one the slot still has that of an earlier packet.
            let flow = &self.flows[packet.packet.flow.0 as usize];
            let has_option = packet.packet.kind == Kind::Ack && packet.packet.size > flow.header;
            let sack = if has_option { self.packets.sack(slot) } else { Sack::NONE };
            let bytes = if has_option && flow.tells_bytes() { self.packets.byte_option(slot) } else { None };
            let (at, time) = (at.secs(), at.time());
            log(&LogRow { code, at, time, link, from, to, packet, sack, bytes, number });
        }
    }
}

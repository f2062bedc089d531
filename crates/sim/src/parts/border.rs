//! What leaves a part of a run for another: packets over links, and signals.

use std::mem::take;

use inprofile_core::signal::Signal;

use crate::clock::Clock;
use crate::event::EventKind;
use crate::flow::FlowState;
use crate::network::{Network, SignalPath};
use crate::packet::InFlight;
use crate::parts::Part;
use crate::plan::Plan;
use crate::route::{Hop, Service};
use crate::tcp::{ByteOption, Delays, Sack};
use crate::world::World;

/// What leads to other parts.
#[derive(Debug, Default)]
pub(crate) struct Border {
    /// The part at the far end of each link.
    over: Vec<u32>,
    /// The part at the end of each signal path, if that is another one than at its start.
    by_signal: Vec<Option<u32>>,
    /// Links to other parts that are served on demand.
    pub gates: Vec<u32>,
    /// For each flow, how long an acknowledgement without an option is; [`NOTED`] if slots hold more of its packets.
    headers: Vec<u32>,
    /// What has left for each part, in the order in which that became known.
    pub out: Vec<Parcel>,
    /// When the first of that arrives.
    pub soonest: u64,
    /// How many packets have left.
    pub crossed: u64,
}

/// No packet is as long.
const NOTED: u32 = u32::MAX;

impl Border {
    /// Nothing has left yet.
    pub fn new(network: &Network, plan: &Plan, part: Part<'_>) -> Border {
        let cut = part.cut;
        let gate = |&l: &u32| {
            let link = &network.links[l as usize];
            let on_demand = match plan.services[l as usize] {
                Service::OnDemand(_) => true,
                Service::CutThrough => link.serves(),
                Service::ByEvents => false,
            };
            on_demand && plan.crosses(l) && part.has(link.from)
        };
        let end = |s: &SignalPath| {
            let to = cut.part_at(network, s.to);
            (to != cut.part_at(network, s.from)).then_some(to)
        };
        Border {
            over: network.links.iter().map(|l| cut.part_of(l.to)).collect(),
            by_signal: network.signals.iter().map(end).collect(),
            gates: (0..network.links.len() as u32).filter(gate).collect(),
            headers: Vec::new(),
            out: (0..cut.parts()).map(|_| Parcel::default()).collect(),
            soonest: u64::MAX,
            crossed: 0,
        }
    }

    /// The flows of the run, now that there are some.
    pub fn expect_flows<C: Clock>(&mut self, flows: &[FlowState<C>]) {
        let noted = |f: &FlowState<C>| f.delays.is_some() || f.tells_bytes();
        self.headers = flows.iter().map(|f| if noted(f) { NOTED } else { f.header }).collect();
    }
}

/// What arrives in another part.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    packets: Vec<Letter>,
    /// The SACK options of those that have one.
    sacks: Vec<Sack>,
    /// What else the slots of packets hold, of those that have it.
    notes: Vec<(Delays, Option<ByteOption>)>,
    /// Signals at the end of this path, and when.
    signals: Vec<(u64, u32, Vec<Signal>)>,
}

/// A packet at the end of a link.
#[derive(Debug)]
struct Letter {
    packet: InFlight,
    /// When, as [`Clock::bits`].
    at: u64,
    /// Whether it has a SACK option.
    sack: bool,
    /// Whether its slot holds anything else.
    notes: bool,
}

const _: () = assert!(size_of::<Letter>() == 64, "a cache line");

impl Parcel {
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.signals.is_empty()
    }
}

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// A packet will be at the far end of a link, in another part, at `at`.
    #[inline(never)]
    pub(crate) fn leave(&mut self, slot: u32, link: u32, at: C) {
        let packet = *self.packets.get(slot);
        let Some(border) = &mut self.border else { return };
        let flow = packet.packet.flow.0 as usize;
        let (mut sack, mut notes) = (!packet.forward() && packet.packet.size > border.headers[flow], false);
        let out = &mut border.out[border.over[link as usize] as usize];
        if border.headers[flow] == NOTED {
            // An acknowledgement without an option has to say so: what its slot had before is another's.
            let flow = &self.flows[flow];
            let counted = flow.tells_bytes();
            sack = !packet.forward() && (counted || packet.packet.size > flow.header);
            notes = true;
            let bytes = if counted { self.packets.byte_option(slot) } else { None };
            out.notes.push((self.packets.delays(slot), bytes));
        }
        if sack {
            out.sacks.push(self.packets.sack(slot));
        }
        self.packets.remove(slot);
        border.crossed += 1;
        border.soonest = border.soonest.min(at.bits());
        out.packets.push(Letter { packet, at: at.bits(), sack, notes });
    }

    /// The signals just posted on a path will arrive at `at`. False: they stay in this part.
    pub(crate) fn send_signals_away(&mut self, path: u32, at: C) -> bool {
        let Some(border) = &mut self.border else { return false };
        let Some(to) = border.by_signal[path as usize] else { return false };
        let signals = self.signals.take_posted(path);
        border.soonest = border.soonest.min(at.bits());
        border.out[to as usize].signals.push((at.bits(), path, signals));
        true
    }

    /// Something has left another part for this one. The parcel is empty afterwards, with room for the next.
    pub(crate) fn take_parcel(&mut self, parcel: &mut Parcel) {
        let (mut sacks, mut notes) = (parcel.sacks.drain(..), parcel.notes.drain(..));
        for letter in parcel.packets.drain(..) {
            let at = C::from_bits(letter.at);
            debug_assert!(at >= self.now, "what arrives comes after the window that has been simulated");
            let slot = self.packets.take_in(letter.packet);
            if letter.sack {
                self.packets.set_sack(slot, sacks.next().unwrap_or_default());
            }
            if letter.notes {
                let (delays, bytes) = notes.next().unwrap_or_default();
                self.packets.set_delays(slot, delays);
                self.packets.set_byte_option(slot, bytes);
            }
            // From here on it goes on as in one piece: what can be computed now needs no event.
            let position = self.packets.get(slot).position();
            let hop = self.routes.hop(position);
            let hop = Hop { next: hop.there, ..hop };
            if let Some((position, shape)) = self.finish_hop(slot, position, hop, at) {
                self.pass_links(slot, position, shape, at);
            }
        }
        for (at, path, signals) in parcel.signals.drain(..) {
            self.signals.expect(path, signals);
            self.schedule(C::from_bits(at), EventKind::Signals(path));
        }
    }

    /// Links that lead to other parts catch up, so that all that has entered them by now has left.
    pub(crate) fn pass_gates(&mut self) {
        let gates = self.border.as_mut().map(|b| take(&mut b.gates)).unwrap_or_default();
        for &link in &gates {
            self.catch_up(link);
        }
        if let Some(border) = &mut self.border {
            border.gates = gates;
        }
    }

    /// The earliest moment at which anything may still leave this part, less the lookahead, or arrives in another one, as [`Clock::bits`].
    pub(crate) fn earliest(&self) -> u64 {
        let Some(border) = &self.border else { return u64::MAX };
        let event = self.calendar.soonest().unwrap_or(u64::MAX);
        let acts = border
            .gates
            .iter()
            .filter_map(|l| self.links[*l as usize].on_demand.as_ref())
            .map(|o| o.next().bits());
        acts.fold(event.min(border.soonest), u64::min)
    }
}

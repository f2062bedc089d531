//! What leaves a part of a run for another: packets over links, and signals.

use std::mem::take;

use inprofile_core::signal::Signal;

use crate::clock::Clock;
use crate::event::EventKind;
use crate::network::{Network, SignalPath};
use crate::packet::InFlight;
use crate::parts::Part;
use crate::plan::Plan;
use crate::route::Service;
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
    /// What has left for each part, in the order in which that became known.
    pub out: Vec<Vec<Letter>>,
}

impl Border {
    /// Nothing has left yet.
    pub fn new(network: &Network, plan: &Plan, part: Part<'_>) -> Border {
        let cut = part.cut;
        let gate = |&l: &u32| {
            let link = &network.links[l as usize];
            let on_demand = match plan.services[l as usize] {
                Service::OnDemand(_) => true,
                Service::CutThrough => link.queue.serves(),
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
            out: (0..cut.parts()).map(|_| Vec::new()).collect(),
        }
    }
}

/// What arrives in another part.
#[derive(Debug)]
pub(crate) struct Letter {
    /// When, as [`Clock::bits`].
    pub at: u64,
    /// What.
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A packet at the end of a link, with its options, if it has any.
    Packet(u32, InFlight, Option<Box<Options>>),
    /// Signals at the end of their path.
    Signals(u32, Vec<Signal>),
}

/// What the slot of a packet has beside it.
#[derive(Debug)]
struct Options {
    sack: Sack,
    delays: Delays,
    bytes: Option<ByteOption>,
}

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// A packet will be at the far end of a link, in another part, at `at`.
    #[inline(never)]
    pub(crate) fn leave(&mut self, slot: u32, link: u32, at: C) {
        let packet = *self.packets.get(slot);
        let flow = &self.flows[packet.packet.flow.0 as usize];
        // Without an option, that it has none: what the slot had before is another's.
        let acknowledges = !packet.forward() && (packet.packet.size > flow.header || flow.tells_bytes());
        let options = (acknowledges || flow.delays.is_some()).then(|| {
            Box::new(Options {
                sack: self.packets.sack(slot),
                delays: self.packets.delays(slot),
                bytes: if flow.tells_bytes() { self.packets.byte_option(slot) } else { None },
            })
        });
        self.packets.remove(slot);
        if let Some(border) = &mut self.border {
            let to = border.over[link as usize] as usize;
            border.out[to].push(Letter { at: at.bits(), content: Content::Packet(link, packet, options) });
        }
    }

    /// The signals just posted on a path will arrive at `at`. False: they stay in this part.
    pub(crate) fn send_signals_away(&mut self, path: u32, at: C) -> bool {
        let Some(border) = &mut self.border else { return false };
        let Some(to) = border.by_signal[path as usize] else { return false };
        let signals = self.signals.take_posted(path);
        border.out[to as usize].push(Letter { at: at.bits(), content: Content::Signals(path, signals) });
        true
    }

    /// Something has left another part for this one.
    pub(crate) fn take_letter(&mut self, letter: Letter) {
        let at = C::from_bits(letter.at);
        debug_assert!(at >= self.now, "what arrives comes after the window that has been simulated");
        match letter.content {
            Content::Packet(link, packet, options) => {
                let slot = self.packets.take_in(packet);
                if let Some(options) = options {
                    self.packets.set_sack(slot, options.sack);
                    self.packets.set_delays(slot, options.delays);
                    self.packets.set_byte_option(slot, options.bytes);
                }
                self.schedule_arrival(at, link, slot);
            }
            Content::Signals(path, signals) => {
                self.signals.expect(path, signals);
                self.schedule(at, EventKind::Signals(path));
            }
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

    /// Nothing that has not left yet leaves this part sooner than the lookahead after this, as [`Clock::bits`].
    pub(crate) fn earliest(&mut self) -> u64 {
        let event = self.calendar.peek().map_or(u64::MAX, |e| e.at);
        let gates = self.border.iter().flat_map(|b| &b.gates);
        let acts = gates.filter_map(|l| self.links[*l as usize].on_demand.as_ref()).map(|o| o.next().bits());
        acts.fold(event, u64::min)
    }
}

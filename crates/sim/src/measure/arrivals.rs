//! Measurements of the packets that reach their receivers: one-way delay and its variation, the time until a flow's
//! first data is sent, and goodput by period.

use std::sync::Arc;

use inprofile_core::packet::{Colour, Packet};
use inprofile_core::units::{Duration, Time};

use crate::measure::Periods;
use crate::measure::sketch::Sketch;
use crate::measure::waits::ByGroup;
use crate::network::Network;

/// So many delays of a flow are kept one by one before they become [`Sketch`]es: most flows of the web have no more.
const FEW: usize = 256;
/// Picoseconds in a second, times bits in a byte.
const PS_BITS: u64 = 8_000_000_000_000;

/// The delays of one flow, by colour.
#[derive(Debug)]
enum OfFlow {
    Few(Vec<(Duration, Colour)>),
    Many([Option<Box<Sketch>>; 3]),
}

impl OfFlow {
    fn record(&mut self, delay: Duration, colour: Colour) {
        match self {
            OfFlow::Many(sketches) => sketches[colour as usize].get_or_insert_default().record(delay),
            OfFlow::Few(all) if all.len() < FEW => all.push((delay, colour)),
            OfFlow::Few(all) => {
                let all = std::mem::take(all);
                *self = OfFlow::Many(Default::default());
                all.into_iter().chain([(delay, colour)]).for_each(|(d, c)| self.record(d, c));
            }
        }
    }

    /// Adds them to their group's distributions: as they are, and less the least of the flow's, whatever its colour.
    fn add_to(&self, group: u32, as_they_are: &mut ByGroup, less_least: &mut ByGroup) {
        match self {
            OfFlow::Few(all) => {
                let least = all.iter().map(|(d, _)| *d).min().unwrap_or(Duration::ZERO);
                for &(d, colour) in all {
                    as_they_are.of(group, colour).record(d);
                    less_least.of(group, colour).record(Duration(d.0 - least.0));
                }
            }
            OfFlow::Many(sketches) => {
                let of_colours =
                    || Colour::ALL.into_iter().zip(sketches).filter_map(|(c, s)| Some((c, s.as_deref()?)));
                let least = of_colours().map(|(_, s)| s.least()).min().unwrap_or(Duration::ZERO);
                for (colour, sketch) in of_colours() {
                    as_they_are.of(group, colour).add(sketch);
                    less_least.of(group, colour).add_less(sketch, least);
                }
            }
        }
    }
}

/// The delays of the packets that arrived, by group and colour.
#[derive(Debug)]
pub struct Delays {
    /// From sender to receiver.
    pub one_way: ByGroup,
    /// Beyond what each packet would take without queues.
    pub excess: ByGroup,
    /// That, less the least of the same flow.
    pub variation: ByGroup,
}

/// The delay of a flow's packet where no queue is in its way.
#[derive(Clone, Copy, Debug)]
struct Unqueued {
    /// Propagation.
    delay: Duration,
    /// Transmission at every link, in picoseconds a byte.
    per_byte: u64,
}

impl Unqueued {
    fn of(network: &Network, path: &[u32]) -> Unqueued {
        let links = || path.iter().map(|&l| &network.links[l as usize]);
        Unqueued {
            delay: Duration(links().map(|l| l.delay.0).sum()),
            per_byte: links().map(|l| PS_BITS / l.fastest().0.max(1)).sum(),
        }
    }

    fn takes(self, size: u32) -> Duration {
        Duration(self.delay.0 + self.per_byte * u64::from(size))
    }
}

/// The measurements at receivers.
#[derive(Debug)]
pub struct Arrivals {
    window: (Time, Time),
    /// The group of each flow.
    groups: Arc<[u32]>,
    unqueued: Vec<Unqueued>,
    /// When the packet in each slot was sent.
    sent_at: Vec<Time>,
    /// When each flow last sent a packet.
    last_sent: Vec<Option<Time>>,
    delays: ByGroup,
    /// Delays beyond what they are without queues, by flow.
    queued: Vec<OfFlow>,
    /// When each TCP flow first sent data.
    first_data: Vec<Option<Time>>,
    /// Payload that could be read in order, and how much of it has been counted, by flow.
    goodput: Option<(Periods, Vec<u64>)>,
}

impl Arrivals {
    /// None yet.
    #[must_use]
    pub fn new(network: &Network, groups: Arc<[u32]>, periods: Option<Periods>) -> Arrivals {
        let n = network.flows.len();
        Arrivals {
            window: network.window,
            groups,
            unqueued: network.flows.iter().map(|f| Unqueued::of(network, &f.path)).collect(),
            sent_at: Vec::new(),
            last_sent: vec![None; n],
            delays: ByGroup::default(),
            queued: (0..n).map(|_| OfFlow::Few(Vec::new())).collect(),
            first_data: vec![None; n],
            goodput: periods.map(|p| (p, vec![0; n])),
        }
    }

    /// A flow's packet is sent now; segment 0 opens a connection.
    pub fn sent(&mut self, slot: u32, flow: u32, segment: u32, now: Time) {
        let (slot, flow) = (slot as usize, flow as usize);
        if self.sent_at.len() <= slot {
            self.sent_at.resize(slot + 1, Time::ZERO);
        }
        self.sent_at[slot] = now;
        self.last_sent[flow] = Some(now);
        if segment > 0 {
            self.first_data[flow].get_or_insert(now);
        }
    }

    /// The packet in a slot reaches its receiver at `at`, whose application could then have read so many bytes of payload.
    pub fn received(&mut self, slot: u32, packet: &Packet, at: Time, readable: u64) {
        let flow = packet.flow.0 as usize;
        let group = self.groups[flow];
        let inside = self.window.0 <= at && at < self.window.1;
        if inside {
            let delay = at.since(self.sent_at[slot as usize]);
            self.delays.of(group, packet.colour).record(delay);
            let unqueued = self.unqueued[flow].takes(packet.size);
            self.queued[flow].record(Duration(delay.0.saturating_sub(unqueued.0)), packet.colour);
        }
        if let Some((periods, counted)) = &mut self.goodput {
            let more = readable.saturating_sub(counted[flow]);
            counted[flow] = readable;
            if inside && more > 0 {
                periods.add(group, at, more);
            }
        }
    }

    /// Flows that sent something at `since` or later, of those that are asked for.
    pub fn active(&self, since: Time, asked: &[bool]) -> usize {
        self.last_sent.iter().zip(asked).filter(|(t, asked)| **asked && t.is_some_and(|t| t >= since)).count()
    }

    /// Delays; when each flow first sent data; and payload by period.
    #[must_use]
    pub fn close(self) -> (Delays, Vec<Option<Time>>, Option<Periods>) {
        let (mut excess, mut variation) = (ByGroup::default(), ByGroup::default());
        for (flow, group) in self.queued.iter().zip(self.groups.iter()) {
            flow.add_to(*group, &mut excess, &mut variation);
        }
        let delays = Delays { one_way: self.delays, excess, variation };
        (delays, self.first_data, self.goodput.map(|(periods, _)| periods))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// RFC 5481 §4.2, of a flow whose packets have several colours: one least delay for all of them, whether they are kept one by one
        /// or not, and a packet counts in its own colour.
        #[test]
        fn variation_is_against_the_flows_least(
            delays in prop::collection::vec((1_000_000u64..1_000_000_000, 0usize..3), 1..2 * FEW),
        ) {
            let (mut flow, mut excess, mut variation) =
                (OfFlow::Few(Vec::new()), ByGroup::default(), ByGroup::default());
            delays.iter().for_each(|&(d, c)| flow.record(Duration(d), Colour::ALL[c]));
            flow.add_to(2, &mut excess, &mut variation);
            let least = delays.iter().map(|(d, _)| *d).min().unwrap();
            for (c, colour) in Colour::ALL.into_iter().enumerate() {
                let mut own: Vec<u64> = delays.iter().filter(|d| d.1 == c).map(|d| d.0).collect();
                own.sort_unstable();
                let of = |all: &ByGroup| all.together(|g, c| g == 2 && c == colour);
                for (found, less) in [(of(&excess), 0), (of(&variation), least)] {
                    prop_assert_eq!(found.len() as usize, own.len());
                    let secs = |i: usize| own.get(i).map(|d| Duration(d - less).secs());
                    prop_assert_eq!(found.min(), secs(0));
                    prop_assert_eq!(found.max(), own.len().checked_sub(1).and_then(secs));
                    // Either of the two in the middle.
                    if let (Some(low), Some(high)) = (secs(own.len().saturating_sub(1) / 2), secs(own.len() / 2)) {
                        // A bucket is a thousandth of the delay wide, before the least is taken off and after; and nanoseconds are whole.
                        let near = 2e-3 * Duration(own[own.len() - 1]).secs() + 2e-9;
                        let median = found.quantile(0.5).unwrap();
                        prop_assert!(low - near <= median && median <= high + near, "{low} {median} {high} of {}", own.len());
                    }
                }
            }
        }
    }
}

//! What is measured of the packets that reach their receivers: one-way delay and its variation, the time until a flow's
//! first data is sent, and goodput by period.

use std::sync::Arc;

use inprofile_core::packet::Packet;
use inprofile_core::units::{Duration, Time};

use crate::measure::periods::Periods;
use crate::measure::sketch::Sketch;
use crate::measure::waits::ByGroup;
use crate::network::Network;
use crate::outcome::GroupDelays;

/// So many delays of a flow are kept one by one before they become a [`Sketch`]: most flows of the web have no more.
const FEW: usize = 256;
/// Picoseconds in a second, times bits in a byte.
const PS_BITS: u64 = 8_000_000_000_000;

/// The delays of one flow.
#[derive(Debug)]
enum OfFlow {
    Few(Vec<Duration>),
    Many(Box<Sketch>),
}

impl OfFlow {
    fn record(&mut self, delay: Duration) {
        match self {
            OfFlow::Many(sketch) => sketch.record(delay),
            OfFlow::Few(all) if all.len() < FEW => all.push(delay),
            OfFlow::Few(all) => {
                let mut sketch = Box::new(Sketch::default());
                all.iter().for_each(|&d| sketch.record(d));
                sketch.record(delay);
                *self = OfFlow::Many(sketch);
            }
        }
    }

    /// Adds them to two distributions: as they are, and less the least of them.
    fn add_to(&self, as_they_are: &mut Sketch, less_least: &mut Sketch) {
        match self {
            OfFlow::Few(all) => {
                let least = all.iter().min().copied().unwrap_or(Duration::ZERO);
                for &d in all {
                    as_they_are.record(d);
                    less_least.record(Duration(d.0 - least.0));
                }
            }
            OfFlow::Many(sketch) => {
                as_they_are.add(sketch);
                less_least.add_less(sketch, sketch.least());
            }
        }
    }
}

/// What a packet of a flow takes where no queue is in its way.
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

/// What has been measured at receivers.
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
            self.queued[flow].record(Duration(delay.0.saturating_sub(unqueued.0)));
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

    /// One-way delays; by group, delays beyond the unqueued ones and their variation; when each flow first sent data; and
    /// payload by period.
    #[must_use]
    pub fn close(self) -> (ByGroup, Vec<GroupDelays>, Vec<Option<Time>>, Option<Periods>) {
        let groups = self.groups.iter().max().map_or(0, |g| *g as usize + 1);
        let mut of_groups = vec![GroupDelays::default(); groups];
        for (flow, group) in self.queued.iter().zip(self.groups.iter()) {
            let of_group = &mut of_groups[*group as usize];
            flow.add_to(&mut of_group.queued, &mut of_group.variation);
        }
        (self.delays, of_groups, self.first_data, self.goodput.map(|(periods, _)| periods))
    }
}

//! The facts derived from a network before it runs: which parts of a packet's path can be computed ahead of time, and
//! about how many events there will be.

use std::collections::BTreeMap;

use inprofile_core::units::Duration;

use crate::network::{self, Network, Target};
use crate::parts::cut::Cut;
use crate::record::Samples;
use crate::route::Service;

/// What is derived from a whole network before it runs, and is the same in all parts of a run.
#[derive(Debug)]
pub(crate) struct Plan {
    /// For each flow: whether its receiver acknowledges every packet at once.
    pub immediate_acks: Vec<bool>,
    /// How each link is served.
    pub services: Vec<Service>,
    /// See [`lookahead`].
    pub lookahead: Vec<Duration>,
    /// See [`observers`].
    pub observers: BTreeMap<u32, Vec<u32>>,
    /// Whether packets leave a part of the run over a link; empty where there is only one part.
    crossing: Vec<bool>,
    /// Whether a flow has a marker of its own, in whatever part of the run; empty likewise.
    marked: Vec<bool>,
}

impl Plan {
    /// Of a run in these parts, if there are several. `by_events`: every departure is an event.
    pub fn of(network: &Network, by_events: bool, cut: Option<&Cut>) -> Plan {
        let crossing: Vec<bool> = match cut {
            Some(cut) => network.links.iter().map(|l| cut.crosses(l)).collect(),
            None => Vec::new(),
        };
        let immediate_acks = immediate_acks(network);
        let services = if by_events {
            vec![Service::ByEvents; network.links.len()]
        } else {
            services(network, &immediate_acks)
        };
        let lookahead = lookahead(network, &services, &crossing);
        let marked = cut.iter().flat_map(|_| &network.flows).map(|f| f.marker.is_some()).collect();
        Plan { immediate_acks, services, lookahead, observers: observers(network), crossing, marked }
    }

    /// Whether this flow's marker may be in another part of the run.
    pub fn marked(&self, flow: usize) -> bool {
        self.marked.get(flow).is_some_and(|marked| *marked)
    }

    /// Whether packets leave a part of the run over this link.
    pub fn crosses(&self, link: u32) -> bool {
        self.crossing.get(link as usize).is_some_and(|crosses| *crosses)
    }
}

/// Queues that observe acknowledgements, by the link that brings these to their node.
fn observers(network: &Network) -> BTreeMap<u32, Vec<u32>> {
    let mut observers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for f in &network.flows {
        for &queue in f.path.iter().filter(|&&l| network.links[l as usize].queue.sees_reverse()) {
            let (at, beyond) = (network.links[queue as usize].from, network.links[queue as usize].to);
            let back = |l: &&u32| {
                let link = &network.links[**l as usize];
                link.from == beyond && link.to == at
            };
            for &l in f.back.iter().filter(back) {
                let seen_by = observers.entry(l).or_default();
                if !seen_by.contains(&queue) {
                    seen_by.push(queue);
                }
            }
        }
    }
    observers
}

/// For each flow: whether its receiver acknowledges every packet at once.
fn immediate_acks(network: &Network) -> Vec<bool> {
    let at_once = |f: &network::Flow| f.transport.tcp().is_some_and(|config| config.delayed_ack.is_none());
    network.flows.iter().map(at_once).collect()
}

/// The samples that monitors take of each flow.
pub(crate) fn samples(network: &Network) -> BTreeMap<u32, Vec<Samples>> {
    let mut samples = BTreeMap::<u32, Vec<Samples>>::new();
    for (i, m) in (0..).zip(&network.monitors) {
        if let Target::Flow(flow) = m.target {
            samples.entry(flow).or_default().push(Samples::new(i, m.every));
        }
    }
    samples
}

/// The link that delivers the packets of most flows by an event, in the order in which it sends them; of those that end `here`.
pub(crate) fn busiest(network: &Network, plan: &Plan, here: impl Fn(u32) -> bool) -> u32 {
    let (immediate_ack, services) = (&plan.immediate_acks, &plan.services);
    let mut flows = vec![0u32; network.links.len()];
    for (f, immediate_ack) in network.flows.iter().zip(immediate_ack) {
        let by_event = |link: u32, next: Option<&u32>| {
            let next = next.map(|&l| services[l as usize]);
            !next.is_some_and(|s| s == Service::CutThrough || s.is_fed_by(link))
        };
        for (i, &link) in f.path.iter().enumerate() {
            let next = f.path.get(i + 1).or(f.back.first().filter(|_| *immediate_ack));
            flows[link as usize] += u32::from(by_event(link, next));
        }
        for (i, &link) in f.back.iter().enumerate() {
            flows[link as usize] += u32::from(by_event(link, f.back.get(i + 1)));
        }
    }
    let of = |link: u32| &network.links[link as usize];
    let in_order = (0..).zip(flows).filter(|&(link, _)| !of(link).wire.reorders() && here(of(link).to));
    in_order.max_by_key(|&(_, n)| n).map_or(u32::MAX, |(link, _)| link)
}

/// Who feeds a link.
#[derive(Clone, Copy, PartialEq)]
enum Feeder {
    Nobody,
    Link(u32),
    Several,
}

/// Who feeds each link. `immediate_ack`: flows whose receivers acknowledge at once, so that the first link of their
/// acknowledgements is fed by the last one of their data.
fn feeders(network: &Network, immediate_ack: &[bool]) -> Vec<Feeder> {
    let mut feeders = vec![Feeder::Nobody; network.links.len()];
    // What has passed other packets does not come in the order in which it was sent: as if over several links.
    let over =
        |l: u32| if network.links[l as usize].wire.reorders() { Feeder::Several } else { Feeder::Link(l) };
    for (f, immediate_ack) in network.flows.iter().zip(immediate_ack) {
        let turn = f.path.last().filter(|_| *immediate_ack).map_or(Feeder::Several, |l| over(*l));
        // Datagrams are not acknowledged.
        let back = if f.transport.tcp().is_some() { f.back.as_slice() } else { &[] };
        for (route, first) in [(f.path.as_slice(), Feeder::Several), (back, turn)] {
            let mut feeder = first;
            for &link in route {
                let known = &mut feeders[link as usize];
                *known = match *known {
                    Feeder::Nobody => feeder,
                    same if same == feeder => same,
                    _ => Feeder::Several,
                };
                feeder = over(link);
            }
        }
    }
    feeders
}

/// How each link is served, where only results count and not the order in which they are found.
///
/// Cut through: only one other link feeds it, and nobody tells its discipline anything. Where it is served packet by packet nobody
/// watches it either, and it may tick. Packets enter it in the order in which they enter the link before.
fn services(network: &Network, immediate_ack: &[bool]) -> Vec<Service> {
    // Acknowledgements that a queue observes have to arrive at its node by an event.
    let mut by_events = vec![false; network.links.len()];
    let observers = observers(network);
    for f in &network.flows {
        for (_, next) in f.back.iter().zip(f.back.iter().skip(1)).filter(|(l, _)| observers.contains_key(l)) {
            by_events[*next as usize] = true;
        }
    }
    let alone = alone(network);
    // An edge marker decides on data that arrives at its node, and may observe acknowledgements.
    for e in &network.edges {
        let data = network.flows.iter().flat_map(|f| f.path.iter());
        let acks = network.flows.iter().flat_map(|f| f.back.iter()).filter(|_| e.marker.sees_reverse());
        for &l in data.chain(acks) {
            by_events[l as usize] |= network.links[l as usize].from == e.node;
        }
    }
    // Losses that are told apart by time are compared with what flows have sent by then.
    let losses = network.measure.as_ref().map(|m| m.link as usize);
    // Acknowledgements that a receiver sends as data arrives have not come over a link.
    let mut turned = vec![false; network.links.len()];
    network.flows.iter().filter_map(|f| f.back.first()).for_each(|&l| turned[l as usize] = true);
    let service = |(i, feeder): (usize, Feeder)| {
        let link = &network.links[i];
        let fed_by = match feeder {
            _ if losses == Some(i) => return Service::ByEvents,
            Feeder::Link(l) if !by_events[i] => Some(l),
            _ => None,
        };
        match fed_by {
            Some(_) if !link.serves() && !link.queue.keeps_time() => Service::CutThrough,
            Some(_) if link.serves() && alone[i] && !turned[i] => Service::CutThrough,
            Some(l) if !turned[i] => Service::OnDemand(Some(l)),
            _ if link.serves() => Service::OnDemand(None),
            _ => Service::ByEvents,
        }
    };
    feeders(network, immediate_ack).into_iter().enumerate().map(service).collect()
}

/// For each link: whether its disciplines see nothing but packets and their own ticks, and nobody looks at them.
fn alone(network: &Network) -> Vec<bool> {
    let left = |l: &network::Link| {
        !l.queue.sees_reverse() && l.queue.aqms().all(|aqm| !aqm.keeps_time() || aqm.oracle().is_none())
    };
    let mut alone: Vec<bool> = network.links.iter().map(left).collect();
    let ends = network.signals.iter().flat_map(|s| [s.from, s.to]);
    for target in network.monitors.iter().map(|m| m.target).chain(ends) {
        if let Target::Queue(l) | Target::Class(l, _) = target {
            alone[l as usize] = false;
        }
    }
    alone
}

/// For each link: how long after the beginning of a transmission anything of it can be seen elsewhere, at the earliest: at the end of
/// the last link behind it that is computed and cut through, or where a queue is sampled. No transmission takes less than a
/// picosecond. What enters a link of `crossing` has to be known in time, whether it can be computed or not.
fn lookahead(network: &Network, services: &[Service], crossing: &[bool]) -> Vec<Duration> {
    let mut least = vec![None::<u64>; network.links.len()];
    let mut sampled = vec![false; network.links.len()];
    for m in &network.monitors {
        if let Target::Queue(l) = m.target {
            sampled[l as usize] = true;
        }
    }
    for route in network.flows.iter().flat_map(|f| [&f.path, &f.back]) {
        // From the far end: what comes behind a link is known before the link is.
        let mut behind = 1;
        for &link in route.iter().rev() {
            let delay = network.links[link as usize].delay.0 + behind;
            let known = &mut least[link as usize];
            *known = Some(known.map_or(delay, |least| least.min(delay)));
            let cut_through = services[link as usize] == Service::CutThrough;
            let computed = !network.links[link as usize].serves();
            let crosses = crossing.get(link as usize).is_some_and(|crosses| *crosses);
            let unseen = cut_through && computed && !sampled[link as usize] && !crosses;
            behind = if unseen { delay } else { 1 };
        }
    }
    least.into_iter().map(|least| Duration(least.unwrap_or(0))).collect()
}

/// Events per second, roughly: three for each full packet, where each flow has its share of the slowest of its links.
pub(crate) fn expected_events(network: &Network) -> f64 {
    let shares = shares(network);
    let packets =
        network.flows.iter().zip(shares).map(|(f, rate)| rate / 8.0 / f64::from(f.transport.packet().max(1)));
    3.0 * packets.filter(|packets| packets.is_finite()).sum::<f64>()
}

/// What each flow gets in bit/s, roughly, if it asks for all it can get: a link's flows share it evenly.
pub(crate) fn shares(network: &Network) -> Vec<f64> {
    let mut flows = vec![0u32; network.links.len()];
    network.flows.iter().flat_map(|f| &f.path).for_each(|&l| flows[l as usize] += 1);
    let share = |&l: &u32| network.links[l as usize].rate.0 as f64 / f64::from(flows[l as usize].max(1));
    network.flows.iter().map(|f| f.path.iter().map(share).fold(f64::INFINITY, f64::min)).collect()
}

/// The longest propagation delay from a sender to its receiver and back.
pub(crate) fn longest_delay(network: &Network) -> Duration {
    let of = |route: &[u32]| -> u64 { route.iter().map(|&l| network.links[l as usize].delay.0).sum() };
    let longest = network.flows.iter().map(|f| of(&f.path) + of(&f.back)).max();
    Duration(longest.unwrap_or(0).max(1_000_000))
}

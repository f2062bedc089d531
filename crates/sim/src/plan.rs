//! What can be derived from a network before it runs: which parts of a packet's path can be computed ahead of time, and
//! about how many events there will be.

use std::collections::BTreeMap;

use inprofile_core::units::Duration;

use crate::network::{self, Network, Target};

/// Queues that observe acknowledgements, by the link that brings these to their node.
pub(crate) fn observers(network: &Network) -> BTreeMap<u32, Vec<u32>> {
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

/// For each flow: whether its receiver acknowledges every packet at once and is not monitored.
pub(crate) fn immediate_acks(network: &Network) -> Vec<bool> {
    let at_once = |f: &network::Flow| f.transport.tcp().is_some_and(|config| config.delayed_ack.is_none());
    let mut immediate_ack: Vec<bool> = network.flows.iter().map(at_once).collect();
    for m in &network.monitors {
        if let Target::Flow(f) = m.target {
            immediate_ack[f as usize] = false;
        }
    }
    immediate_ack
}

/// The link that delivers the packets of most flows by an event: those whose next link is not cut through.
pub(crate) fn busiest(network: &Network, immediate_ack: &[bool], cut_through: &[bool]) -> u32 {
    let mut flows = vec![0u32; network.links.len()];
    for (f, immediate_ack) in network.flows.iter().zip(immediate_ack) {
        let ends = |l: Option<&u32>| !l.is_some_and(|&l| cut_through[l as usize]);
        for (i, &link) in f.path.iter().enumerate() {
            let next = f.path.get(i + 1).or(f.back.first().filter(|_| *immediate_ack));
            flows[link as usize] += u32::from(ends(next));
        }
        for (i, &link) in f.back.iter().enumerate() {
            flows[link as usize] += u32::from(ends(f.back.get(i + 1)));
        }
    }
    (0..).zip(flows).max_by_key(|&(_, n)| n).map_or(0, |(link, _)| link)
}

/// Links that are cut through: only one other link feeds them, their departures need no event, their discipline keeps
/// no time of its own, and they are not monitored. Packets enter them in the order in which they enter the link before.
///
/// `immediate_ack`: flows whose receivers acknowledge at once, so that the first link of their acknowledgements is fed
/// by the last one of their data.
pub(crate) fn cut_through_links(network: &Network, immediate_ack: &[bool]) -> Vec<bool> {
    /// Who feeds a link.
    #[derive(Clone, Copy, PartialEq)]
    enum Feeder {
        Nobody,
        Link(u32),
        Several,
    }
    let mut feeders = vec![Feeder::Nobody; network.links.len()];
    for (f, immediate_ack) in network.flows.iter().zip(immediate_ack) {
        let turn = f.path.last().filter(|_| *immediate_ack).map_or(Feeder::Several, |l| Feeder::Link(*l));
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
                feeder = Feeder::Link(link);
            }
        }
    }
    let mut watched = vec![false; network.links.len()];
    for m in &network.monitors {
        if let Target::Queue(l) | Target::Class(l, _) = m.target {
            watched[l as usize] = true;
        }
    }
    // Acknowledgements that a queue observes have to arrive at its node by an event.
    let observers = observers(network);
    for f in &network.flows {
        for (_, next) in f.back.iter().zip(f.back.iter().skip(1)).filter(|(l, _)| observers.contains_key(l)) {
            watched[*next as usize] = true;
        }
    }
    // An edge marker decides on data that arrives at its node, and may observe acknowledgements.
    for e in &network.edges {
        let data = network.flows.iter().flat_map(|f| f.path.iter());
        let acks = network.flows.iter().flat_map(|f| f.back.iter()).filter(|_| e.marker.sees_reverse());
        for &l in data.chain(acks) {
            watched[l as usize] |= network.links[l as usize].from == e.node;
        }
    }
    network
        .links
        .iter()
        .zip(feeders)
        .zip(watched)
        .map(|((l, feeder), watched)| {
            matches!(feeder, Feeder::Link(_)) && !watched && !l.queue.serves() && !l.queue.keeps_time()
        })
        .collect()
}

/// Events per second, roughly: three for each full packet through the slowest queue that counts.
pub(crate) fn expected_events(network: &Network) -> f64 {
    let packet = network.flows.first().map_or(1000, |f| f.transport.packet());
    let slowest = network.links.iter().filter(|l| l.reported).map(|l| l.rate.0).min();
    3.0 * slowest.unwrap_or(1_000_000) as f64 / 8.0 / f64::from(packet)
}

/// The longest propagation delay from a sender to its receiver and back.
pub(crate) fn longest_delay(network: &Network) -> Duration {
    let of = |route: &[u32]| -> u64 { route.iter().map(|&l| network.links[l as usize].delay.0).sum() };
    let longest = network.flows.iter().map(|f| of(&f.path) + of(&f.back)).max();
    Duration(longest.unwrap_or(0).max(1_000_000))
}

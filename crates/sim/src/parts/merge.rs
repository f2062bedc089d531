//! The parts of a run become one again when it has ended: what each has counted adds up, and each component is taken from its part.

use std::mem::swap;

use crate::account::take;
use crate::clock::Exact;
use crate::engine::Run;
use crate::network::Network;
use crate::parts::cut::Cut;

/// The part of each component.
#[derive(Debug)]
pub(crate) struct Homes {
    links: Vec<u32>,
    edges: Vec<u32>,
    /// Of their senders.
    flows: Vec<u32>,
}

impl Homes {
    /// Of a network.
    pub fn of(network: &Network, cut: &Cut) -> Homes {
        Homes {
            links: network.links.iter().map(|l| cut.part_of(l.from)).collect(),
            edges: network.edges.iter().map(|e| cut.part_of(e.node)).collect(),
            flows: network.flows.iter().map(|f| cut.part_of(f.from)).collect(),
        }
    }
}

/// One run of all parts, at its end.
pub(crate) fn merge(parts: Vec<Run<Exact, false>>, homes: &Homes) -> Option<Run<Exact, false>> {
    let mut parts = parts.into_iter();
    let mut all = parts.next()?;
    for (part, number) in parts.zip(1..) {
        absorb(&mut all, part, number, homes);
    }
    // In the order in which a run in one piece would have noted them.
    all.world.downloads.sort_by_key(|&((at, order), _)| (at, order));
    // What is seen of a flow's sender comes before what is seen of its receiver.
    all.watches.sort_by_key(|w| !w.sees_sender_alone());
    Some(all)
}

fn absorb(all: &mut Run<Exact, false>, other: Run<Exact, false>, number: u32, homes: &Homes) {
    let there = |home: &Vec<u32>| -> Vec<bool> { home.iter().map(|h| *h == number).collect() };
    let (links, edges, sends) = (there(&homes.links), there(&homes.edges), there(&homes.flows));
    all.events += other.events;
    all.watches.extend(other.watches);
    all.accounts.absorb(other.accounts, &sends, &edges);
    let (own, mut other, senders) = (&mut all.world, other.world, other.senders);
    for ((link, other), _) in
        own.links.iter_mut().zip(&mut other.links).zip(links).filter(|(_, there)| *there)
    {
        swap(link, other);
    }
    take(&mut own.edges, other.edges, &edges);
    all.senders.take(senders, &sends);
    for ((flow, other), sends) in own.flows.iter_mut().zip(other.flows).zip(sends) {
        flow.absorb(other, sends);
    }
    own.packets.absorb(&other.packets);
    own.drops.absorb(&other.drops);
    own.signals.absorb(other.signals);
    own.boundary_counts.extend(other.boundary_counts);
    own.pending_losses.extend(other.pending_losses);
    own.downloads.extend(other.downloads);
}

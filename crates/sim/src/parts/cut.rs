//! Which part of a run each node is in.
//!
//! Nodes stay together where something of one is seen at the other at once: over a link or by a signal without delay, where an oracle
//! tells a mechanism of a sender's window and of the end of its transfer, and at the two ends of a flow whose application asks for one piece of data after another,
//! as the sender has the state of both.

use inprofile_core::signal::Oracle;
use inprofile_core::units::Duration;

use crate::network::{Link, Network, NodeId, Profile, Target, Transport};

/// Which part of a run each node is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    part_of: Vec<u32>,
    parts: u32,
    lookahead: Duration,
}

impl Cut {
    /// All in one.
    #[must_use]
    pub fn none(network: &Network) -> Cut {
        Cut { part_of: vec![0; network.nodes.len()], parts: 1, lookahead: Duration::ZERO }
    }

    /// Each node in the part that `wanted` says, but for those that have to stay together: these are where the first of them is.
    #[must_use]
    pub fn wanted(network: &Network, wanted: impl Fn(NodeId) -> u32) -> Cut {
        if keeps_whole(network).is_some() {
            return Cut::none(network);
        }
        let mut together = together(network, Duration(1));
        let nodes = 0..network.nodes.len() as u32;
        let mut part_of: Vec<u32> = nodes.map(|n| wanted(together.first(n))).collect();
        let mut used = part_of.clone();
        used.sort_unstable();
        used.dedup();
        for part in &mut part_of {
            *part = used.partition_point(|u| u < part) as u32;
        }
        let mut cut = Cut { part_of, parts: used.len() as u32, lookahead: Duration::ZERO };
        let links = network.links.iter().filter(|l| cut.crosses(l)).map(|l| l.delay);
        let signals = network.signals.iter();
        let signals = signals.filter(|s| cut.part_at(network, s.from) != cut.part_at(network, s.to));
        let lookahead = links.chain(signals.map(|s| s.delay)).min();
        // Without a delay between them, parts never hear of one another.
        cut.lookahead = lookahead.unwrap_or(network.duration.max(Duration(1)));
        cut
    }

    /// How many parts there are.
    #[must_use]
    pub fn parts(&self) -> u32 {
        self.parts
    }

    /// How long it takes at least until something of one part is seen in another.
    #[must_use]
    pub fn lookahead(&self) -> Duration {
        self.lookahead
    }

    /// The part of a node.
    #[must_use]
    pub fn part_of(&self, node: NodeId) -> u32 {
        self.part_of[node as usize]
    }

    /// Whether a link leads from one part to another.
    #[must_use]
    pub fn crosses(&self, link: &Link) -> bool {
        self.part_of(link.from) != self.part_of(link.to)
    }

    /// The part of a mechanism.
    pub(crate) fn part_at(&self, network: &Network, target: Target) -> u32 {
        self.part_of(node_of(network, target))
    }
}

/// Where a mechanism is: a queue at the start of its link, a flow's marker at its sender.
fn node_of(network: &Network, target: Target) -> NodeId {
    match target {
        Target::Queue(l) | Target::Class(l, _) => network.links[l as usize].from,
        Target::Edge(e) => network.edges[e as usize].node,
        Target::Flow(f) => network.flows[f as usize].from,
    }
}

/// Why a network can't be simulated in parts, if so.
#[must_use]
pub fn keeps_whole(network: &Network) -> Option<&'static str> {
    match network {
        Network { profile: Profile::Ns2 | Profile::ExactNs2Random, .. } => {
            Some("with ns-2's order of events or random numbers, one stream serves all")
        }
        Network { trace: true, .. } => Some("a trace numbers packets in the order of the whole run"),
        network if network.pauses() => Some("a queue that pauses links acts at their other end"),
        Network { measure: Some(_), .. } => {
            Some("distributions compare each loss with what all senders have sent by then")
        }
        _ => None,
    }
}

/// Sets of nodes that stay together.
#[derive(Clone, Debug)]
pub(crate) struct Together(Vec<u32>);

impl Together {
    /// The first node of the set that this one is in.
    pub fn first(&mut self, node: NodeId) -> NodeId {
        let mut at = node;
        while self.0[at as usize] != at {
            let next = self.0[at as usize];
            self.0[at as usize] = self.0[next as usize];
            at = next;
        }
        at
    }

    /// These two stay together.
    pub fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

/// The nodes that stay together if no link or signal with a shorter delay than this one may be cut.
pub(crate) fn together(network: &Network, shortest: Duration) -> Together {
    let mut all = Together((0..network.nodes.len() as u32).collect());
    network.links.iter().filter(|l| l.delay < shortest).for_each(|l| all.join(l.from, l.to));
    for s in network.signals.iter().filter(|s| s.delay < shortest) {
        all.join(node_of(network, s.from), node_of(network, s.to));
    }
    let told = |wants: Option<Oracle>| wants == Some(Oracle::Window);
    let mut asks = vec![false; network.nodes.len()];
    network.edges.iter().filter(|e| told(e.marker.oracle())).for_each(|e| asks[e.node as usize] = true);
    for f in &network.flows {
        if matches!(f.transport, Transport::Web(..) | Transport::Video(..)) {
            all.join(f.from, f.to);
        }
        // Who is told of a window is told when all has been received, too, if there is an end.
        let ends = matches!(f.transport, Transport::Transfer(..));
        if ends && f.marker.as_ref().is_some_and(|marker| told(marker.oracle())) {
            all.join(f.from, f.to);
        }
        for &l in &f.path {
            let link = &network.links[l as usize];
            if link.queue.aqms().any(|aqm| told(aqm.oracle())) {
                all.join(f.from, link.from);
                all.join(link.from, if ends { f.to } else { f.from });
            }
            // An edge is told of what arrives at its node over a link.
            if asks[link.to as usize] {
                all.join(f.from, link.to);
                all.join(link.to, if ends { f.to } else { f.from });
            }
        }
    }
    all
}

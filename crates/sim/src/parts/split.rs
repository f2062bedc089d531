//! The networks of the parts of a run: each has all links, flows and edges under their numbers. Those of other parts have nothing in them.

use inprofile_core::aqm::drop_tail::DropTail;
use inprofile_core::marker::Marker;
use inprofile_core::mechanism::Mechanism;
use inprofile_core::packet::Packet;
use inprofile_core::registry::{AnyAqm, AnyMarker};
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Time};
use inprofile_core::verdict::{Mark, Why};

use crate::network::{Edge, Flow, Link, Network, Queue};
use crate::parts::cut::Cut;

/// The network of each part.
pub(crate) fn split(network: Network, cut: &Cut) -> Vec<Network> {
    let mut parts: Vec<Network> = (0..cut.parts()).map(|_| empty(&network)).collect();
    for link in network.links {
        let home = cut.part_of(link.from) as usize;
        for part in &mut parts {
            part.links.push(bare(&link));
        }
        if let Some(there) = parts[home].links.last_mut() {
            *there = link;
        }
    }
    for edge in network.edges {
        let home = cut.part_of(edge.node) as usize;
        for part in &mut parts {
            let marker = AnyMarker::Custom(Box::new(Elsewhere));
            part.edges.push(Edge { name: String::new(), node: edge.node, marker });
        }
        if let Some(there) = parts[home].edges.last_mut() {
            *there = edge;
        }
    }
    for mut flow in network.flows {
        let (marker, home) = (flow.marker.take(), cut.part_of(flow.from) as usize);
        for part in &mut parts {
            part.flows.push(unmarked(&flow));
        }
        if let Some(there) = parts[home].flows.last_mut() {
            there.marker = marker;
        }
    }
    parts
}

/// The network without links, flows and edges.
fn empty(network: &Network) -> Network {
    Network {
        nodes: vec![String::new(); network.nodes.len()],
        links: Vec::with_capacity(network.links.len()),
        flows: Vec::with_capacity(network.flows.len()),
        edges: Vec::with_capacity(network.edges.len()),
        pages: network.pages.clone(),
        signals: network.signals.clone(),
        monitors: network.monitors.clone(),
        measure: network.measure.clone(),
        ..*network
    }
}

/// A link of another part: where it leads, and its delay.
fn bare(link: &Link) -> Link {
    Link {
        name: String::new(),
        capacity: None,
        access: None,
        wire: Default::default(),
        queue: Queue::One { aqm: AnyAqm::DropTail(DropTail::default()), limit: Backlog::Packets(2.0) },
        reported: false,
        pause: None,
        ack_filter: false,
        ..*link
    }
}

/// A flow without its marker.
fn unmarked(flow: &Flow) -> Flow {
    Flow {
        name: flow.name.clone(),
        path: flow.path.clone(),
        back: flow.back.clone(),
        marker: None,
        transport: flow.transport.clone(),
        ..*flow
    }
}

/// The marker of an edge in another part.
struct Elsewhere;

impl Mechanism for Elsewhere {}

impl Marker for Elsewhere {
    fn mark<W: Why + ?Sized>(&mut self, _: Time, _: &Packet, _: &mut Rng, _: &mut W) -> Mark {
        unreachable!("packets arrive at a node in its own part")
    }
}

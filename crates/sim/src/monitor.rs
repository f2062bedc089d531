//! Samples queues, flows and edges at regular times: by events, or, of a queue that may run ahead of the present, as the queue passes
//! their times.

use std::collections::BTreeMap;

use inprofile_core::units::Time;

use crate::clock::Clock;
use crate::network::{Monitor, Network, NodeId, Target};
use crate::outcome::{MarkerCounts, Series};
use crate::record::{QueueRecord, Record, rates};
use crate::route::Service;
use crate::senders::Senders;
use crate::world::World;

/// The monitors that sample by events, and the series of links that may run ahead of the present, by link; of what is `here`.
pub(crate) fn watches(
    network: &Network,
    services: &[Service],
    here: impl Fn(NodeId) -> bool,
) -> (Vec<Watch>, BTreeMap<u32, Vec<QueueRecord>>) {
    let (mut by_events, mut ahead) = (Vec::new(), BTreeMap::<u32, Vec<QueueRecord>>::new());
    for (i, m) in (0..).zip(&network.monitors) {
        let receives = match m.target {
            Target::Flow(f) => here(network.flows[f as usize].to),
            _ => true,
        };
        let node = match m.target {
            Target::Queue(l) | Target::Class(l, _) => network.links[l as usize].from,
            Target::Edge(e) => network.edges[e as usize].node,
            Target::Flow(f) if receives => network.flows[f as usize].to,
            Target::Flow(f) => network.flows[f as usize].from,
        };
        if !here(node) {
            continue;
        }
        match m.target {
            Target::Queue(l) if services[l as usize] == Service::CutThrough => {
                ahead.entry(l).or_default().push(QueueRecord::new(i, m));
            }
            _ => by_events.push(Watch::new(i, m, receives)),
        }
    }
    (by_events, ahead)
}

/// A monitor that samples by events.
#[derive(Debug)]
pub enum Watch {
    /// Of a queue, or of one of its classes: by link.
    Queue(u32, Option<usize>, QueueRecord),
    /// Of a flow, with the bytes it had received by the last sample, by colour; in a part of a run that has its sender alone, without them.
    Flow(u32, Record, Option<[u64; 3]>),
    /// Of an edge, with its counts at the last sample.
    Edge(u32, Record, Box<MarkerCounts>),
}

impl Watch {
    /// Before its first sample; `receives`: a flow's receiver is in the same part of the run.
    #[must_use]
    pub fn new(index: u32, monitor: &Monitor, receives: bool) -> Watch {
        let record = || Record::new(index, monitor);
        match monitor.target {
            Target::Queue(l) => Watch::Queue(l, None, QueueRecord::new(index, monitor)),
            Target::Class(l, c) => Watch::Queue(l, Some(c as usize), QueueRecord::new(index, monitor)),
            Target::Flow(f) => Watch::Flow(f, record(), receives.then_some([0; 3])),
            Target::Edge(e) => Watch::Edge(e, record(), Box::default()),
        }
    }

    /// When the next sample is due.
    #[must_use]
    pub fn next(&self) -> Time {
        match self {
            Watch::Queue(_, _, record) => record.next(),
            Watch::Flow(_, record, _) | Watch::Edge(_, record, _) => record.next(),
        }
    }

    /// Takes a sample now. No part of the function that handles every event.
    #[inline(never)]
    pub fn sample<C: Clock, const TRACE: bool>(&mut self, world: &mut World<C, TRACE>, senders: &Senders<C>) {
        match self {
            Watch::Queue(l, class, record) => {
                world.bring_up_to_date(*l);
                record.sample(&world.links[*l as usize].read(*class));
            }
            Watch::Flow(f, record, before) => {
                let monitor = record.monitor();
                let (now, per_byte, mut row) = record.begin();
                if let Some((cwnd, ssthresh)) = senders.window(*f) {
                    let ssthresh = if ssthresh.is_finite() { ssthresh } else { f64::NAN };
                    row.push("cwnd", cwnd);
                    row.push("ssthresh", ssthresh);
                }
                if let Some(m) = &world.flows[*f as usize].marker {
                    m.marker.gauges(now, &mut |name, value| row.push(name, value));
                }
                if let Some(before) = before {
                    let received_bytes = world.flows[*f as usize].sampled_bytes(monitor, world.window);
                    let received = rates(received_bytes, *before, per_byte);
                    row.push("received", received.0 + received.1);
                    row.push("received_in", received.0);
                    row.push("received_out", received.1);
                    *before = received_bytes;
                }
            }
            Watch::Edge(e, record, before) => {
                let edge = &world.edges[*e as usize];
                let (now, per_byte, mut row) = record.begin();
                edge.marker.gauges(now, &mut |name, value| row.push(name, value));
                let counts = edge.counts;
                let arrived = rates(counts.arrived_bytes, before.arrived_bytes, per_byte);
                let left = rates(counts.left_bytes, before.left_bytes, per_byte);
                row.push("arrived_in", arrived.0);
                row.push("arrived_out", arrived.1);
                row.push("left_in", left.0);
                row.push("left_out", left.1);
                let lost = |c: &MarkerCounts| c.dropped.iter().sum::<u64>();
                row.push("dropped", (lost(&counts) - lost(before)) as f64);
                **before = counts;
            }
        }
    }

    /// Whether it samples a flow's sender alone, as the receiver is in another part of the run.
    pub(crate) fn sees_sender_alone(&self) -> bool {
        matches!(self, Watch::Flow(_, _, None))
    }

    /// Its samples.
    #[must_use]
    pub fn into_series(self) -> Series {
        match self {
            Watch::Queue(_, _, record) => record.into_series(),
            Watch::Flow(_, record, _) | Watch::Edge(_, record, _) => record.into_series(),
        }
    }
}

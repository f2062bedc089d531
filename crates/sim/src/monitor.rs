//! Samples queues, flows and edges at regular times.

use inprofile_core::units::{Duration, Time};

use crate::clock::Clock;
use crate::network::{Monitor, Target};
use crate::outcome::{MarkerCounts, Series};
use crate::traffic::Origin;
use crate::view::Reading;
use crate::world::World;

/// A monitor in a run.
#[derive(Debug)]
pub struct Watch {
    target: Target,
    every: Duration,
    taken: u64,
    before: Before,
    series: Series,
    /// The memory of a row.
    row: Row,
}

/// What had been counted by the last sample.
#[derive(Debug)]
enum Before {
    Queue(Passed),
    /// Bytes received, by colour.
    Flow([u64; 3]),
    Edge(Box<MarkerCounts>),
}

/// What has passed a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    arrived_bytes: [u64; 3],
    sent_bytes: [u64; 3],
    dropped: u64,
}

/// One sample's figures, by name.
type Row = Vec<(&'static str, f64)>;

impl Watch {
    /// Before its first sample.
    pub fn new(index: u32, monitor: &Monitor) -> Watch {
        let before = match monitor.target {
            Target::Queue(_) | Target::Class(..) => Before::Queue(Passed::default()),
            Target::Flow(_) => Before::Flow([0; 3]),
            Target::Edge(_) => Before::Edge(Box::default()),
        };
        let series = Series { monitor: index, ..Series::default() };
        Watch { target: monitor.target, every: monitor.every, taken: 0, before, series, row: Row::new() }
    }

    /// When the next sample is due.
    pub fn next(&self) -> Time {
        Time(self.every.0 * self.taken)
    }

    /// Takes a sample now.
    pub fn sample<C: Clock, const TRACE: bool>(
        &mut self,
        world: &mut World<C, TRACE>,
        senders: &[Origin<C>],
    ) {
        let now = self.next();
        self.taken += 1;
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        // The first sample is at the start of the run: no interval yet.
        let per_byte = if self.taken == 1 { 0.0 } else { 8.0 / self.every.secs() };
        match (self.target, &mut self.before) {
            (target @ (Target::Queue(l) | Target::Class(l, _)), Before::Queue(before)) => {
                world.bring_up_to_date(l);
                let class = if let Target::Class(_, c) = target { Some(c as usize) } else { None };
                let Reading { waiting, arrived_bytes, sent_bytes, dropped, gauges } =
                    world.links[l as usize].sample(self.series.monitor, class, now);
                row.push(("packets", f64::from(waiting.iter().sum::<u32>())));
                row.push(("packets_in", f64::from(waiting[0])));
                row.push(("packets_out", f64::from(waiting[1] + waiting[2])));
                row.extend(gauges);
                let passed = Passed { arrived_bytes, sent_bytes, dropped };
                let arrived = rates(passed.arrived_bytes, before.arrived_bytes, per_byte);
                let sent = rates(passed.sent_bytes, before.sent_bytes, per_byte);
                row.extend([("arrived_in", arrived.0), ("arrived_out", arrived.1)]);
                row.extend([("sent_in", sent.0), ("sent_out", sent.1)]);
                row.push(("dropped", (passed.dropped - before.dropped) as f64));
                *before = passed;
            }
            (Target::Flow(f), Before::Flow(before)) => {
                let received_bytes = world.flows[f as usize].sampled_bytes(self.series.monitor, world.window);
                let flow = &world.flows[f as usize];
                if let Some((cwnd, ssthresh)) = senders[f as usize].source.window() {
                    let ssthresh = if ssthresh.is_finite() { ssthresh } else { f64::NAN };
                    row.extend([("cwnd", cwnd), ("ssthresh", ssthresh)]);
                }
                if let Some(m) = &flow.marker {
                    m.marker.gauges(now, &mut |name, value| row.push((name, value)));
                }
                let received = rates(received_bytes, *before, per_byte);
                row.push(("received", received.0 + received.1));
                row.extend([("received_in", received.0), ("received_out", received.1)]);
                *before = received_bytes;
            }
            (Target::Edge(e), Before::Edge(before)) => {
                let edge = &world.edges[e as usize];
                edge.marker.gauges(now, &mut |name, value| row.push((name, value)));
                let counts = edge.counts;
                let arrived = rates(counts.arrived_bytes, before.arrived_bytes, per_byte);
                let left = rates(counts.left_bytes, before.left_bytes, per_byte);
                row.extend([("arrived_in", arrived.0), ("arrived_out", arrived.1)]);
                row.extend([("left_in", left.0), ("left_out", left.1)]);
                let lost = |c: &MarkerCounts| c.dropped.iter().sum::<u64>();
                row.push(("dropped", (lost(&counts) - lost(before)) as f64));
                **before = counts;
            }
            _ => unreachable!("a monitor keeps the counts of its own kind of target"),
        }
        self.append(now, &row);
        self.row = row;
    }

    /// Its samples.
    pub fn into_series(self) -> Series {
        self.series
    }

    fn append(&mut self, now: Time, row: &[(&'static str, f64)]) {
        if self.series.columns.is_empty() {
            self.series.columns = row.iter().map(|&(name, _)| (name, Vec::new())).collect();
        }
        self.series.times.push(now);
        for ((_, column), (_, value)) in self.series.columns.iter_mut().zip(row) {
            column.push(*value);
        }
    }
}

/// Bits per second between two counts of bytes: IN, and the rest.
fn rates(after: [u64; 3], before: [u64; 3], per_byte: f64) -> (f64, f64) {
    let rate = |bytes: u64| bytes as f64 * per_byte;
    (rate(after[0] - before[0]), rate(after[1] + after[2] - before[1] - before[2]))
}

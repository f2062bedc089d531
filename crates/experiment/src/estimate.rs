//! An estimate, before a run, of how many packets it will send: rates times duration.
//!
//! A flow is taken to send as fast as the slowest link on its route, one window per round trip, or its source allows.
//! Where the flows of a link want more than its rate, TCP flows are scaled down in proportion; datagrams are not.
//! Acknowledgements and retransmissions are not counted. It serves to predict how long a run takes, not as a result.
//! The memory it states is the least that a run needs: that of flows and their access links, without packets and losses, in one
//! piece and in parts.

use inprofile_core::units::{Backlog, Duration, Time};

use crate::model::{Group, Model, PerFlow, Source, Start, packet};
use crate::traffic::Traffic;

/// Bytes of a flow in a run: its sender, receiver and names. Measured, with 300,000 of them.
const FLOW: f64 = 1000.0;
/// Bytes of a host with both directions of its access link.
const HOST: f64 = 600.0;
/// Bytes of a flow in the result of a run that is over.
const RESULT: f64 = 800.0;
/// Bytes of a flow, with its host, in each part of a run but its own, by what its structures take there.
const ELSEWHERE: f64 = 1000.0;

/// The least memory in bytes of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// In one piece.
    pub run: f64,
    /// In each part more.
    pub part: f64,
    /// Of its result.
    pub result: f64,
}

pub(crate) fn memory(model: &Model) -> Memory {
    let hosts = model.groups.iter().filter(|g| matches!(g.source, Source::Hosts(_)));
    let (flows, hosts) = (model.flows() as f64, hosts.map(|g| g.count as f64).sum::<f64>());
    Memory { run: flows * FLOW + hosts * HOST, part: flows * ELSEWHERE, result: flows * RESULT }
}

/// The rate of a group without congestion.
struct Demand {
    /// Bits a second of all its flows together.
    rate: f64,
    /// Whether it slows down at a full link.
    is_elastic: bool,
    /// Seconds for which each flow sends, on average.
    time: f64,
    /// Bits of a packet.
    packet: f64,
    /// The most packets of all its flows together.
    most: f64,
    /// The fewest: every connection sends its initial window, however full the links are.
    least: f64,
}

/// Data packets of one run, estimated as the module says.
pub(crate) fn packets(model: &Model) -> f64 {
    let demands: Vec<Demand> = model.groups.iter().map(|g| demand(model, g)).collect();
    let mut load = vec![0.0; 2 * model.links.len()];
    for (group, demand) in model.groups.iter().zip(&demands) {
        for &direction in &group.route.path {
            load[direction as usize] += demand.rate;
        }
    }
    let sent = |(group, demand): (&Group, &Demand)| {
        let over = |&direction: &u32| load[direction as usize] / mean_rate(model, direction);
        let crowd = group.route.path.iter().map(over).fold(1.0, f64::max);
        let rate = if demand.is_elastic { demand.rate / crowd } else { demand.rate };
        (rate * demand.time / demand.packet).min(demand.most).max(demand.least)
    };
    model.groups.iter().zip(&demands).map(sent).sum()
}

fn demand(model: &Model, group: &Group) -> Demand {
    let n = group.count as f64;
    let packet = 8.0 * group.packet().0 as f64;
    let time = active(model, group);
    let links = group.route.path.iter().map(|&direction| mean_rate(model, direction));
    let join = match &group.source {
        Source::Hosts(join) => join.rate.0 as f64,
        Source::Node(_) => f64::INFINITY,
    };
    let slowest = links.fold(join, f64::min);
    let tcp = || {
        let rtt = if group.count == 0 { 0.0 } else { mean_rtt(group).secs() };
        let window = f64::from(group.tcp.window) * packet / rtt;
        if rtt > 0.0 { slowest.min(window) } else { slowest }
    };
    let first = n * f64::from(group.tcp.initial_window.min(group.tcp.window));
    match group.sends() {
        Traffic::Bulk => {
            Demand { rate: n * tcp(), is_elastic: true, time, packet, most: f64::INFINITY, least: first }
        }
        Traffic::Transfer(size, _) => {
            let most = n * segments(size, group);
            // A transfer may end long before the run does.
            let rate = (n * tcp()).min(most * packet / time.max(1e-12));
            Demand { rate, is_elastic: true, time, packet, most, least: first.min(most) }
        }
        Traffic::Web(web) => {
            let pages = n / f64::from(web.connections);
            let most = pages * f64::from(web.objects) * segments(web.object, group);
            let rate = (n * tcp()).min(most * packet / time.max(1e-12));
            Demand { rate, is_elastic: true, time, packet, most, least: 0.0 }
        }
        Traffic::Video(video) => {
            let rate = n * tcp().min(video.highest.0 as f64);
            Demand { rate, is_elastic: true, time, packet, most: f64::INFINITY, least: first }
        }
        Traffic::Udp(udp) => {
            let on = udp.periods.map_or(1.0, |p| {
                let (on, off) = (p.on.secs(), p.off.secs());
                if on + off > 0.0 { on / (on + off) } else { 1.0 }
            });
            let rate = n * udp.rate.0 as f64 * on;
            let packet = 8.0 * udp.mean();
            Demand { rate, is_elastic: false, time, packet, most: f64::INFINITY, least: n }
        }
    }
}

/// How many segments of the group's TCP carry so much.
fn segments(size: Backlog, group: &Group) -> f64 {
    let segments = match size {
        Backlog::Packets(n) => n,
        Backlog::Bytes(n) => n / f64::from(group.tcp.segment),
    };
    segments.max(1.0).ceil()
}

/// The mean rate of one direction of a link over the run, in bit/s.
fn mean_rate(model: &Model, direction: u32) -> f64 {
    let d = model.direction(direction as usize);
    match &d.capacity {
        Some(capacity) => capacity.mean(model.duration),
        None => d.usable(packet(&model.tcp)).0 as f64,
    }
}

/// Seconds from a flow's start to its stop or the run's end, on average.
fn active(model: &Model, group: &Group) -> f64 {
    let last = group.count.saturating_sub(1) as f64;
    let start = match &group.start {
        Start::At(times) => mean(times, |t: Time| t.secs()),
        Start::Uniform(low, high) => (low.secs() + high.secs()) / 2.0,
        Start::Arrivals(first, every, _) => first.secs() + every.secs() * last / 2.0,
    };
    let end = model.duration.secs();
    let stop = group.stop.as_ref().map_or(end, |s| mean(s, |t: Time| t.secs()).min(end));
    (stop - start).max(0.0)
}

fn mean_rtt(group: &Group) -> Duration {
    match &group.source {
        Source::Node(_) => group.rtt(0),
        Source::Hosts(join) => Duration::from_secs(mean(&join.rtt, |d: Duration| d.secs())),
    }
}

fn mean<T: Copy + PartialEq>(values: &PerFlow<T>, number: impl Fn(T) -> f64) -> f64 {
    match values {
        PerFlow::All(one) => number(*one),
        PerFlow::Each(all) => all.iter().map(|v| number(*v)).sum::<f64>() / all.len().max(1) as f64,
    }
}

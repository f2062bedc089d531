//! How many packets a run will send, estimated before it runs: rates times duration.
//!
//! A flow sends as fast as the slowest link on its way, its window in a round trip or its source allows. Where the flows of a
//! link want more than it carries, those of TCP are taken to share what there is in proportion; datagrams are sent whatever
//! comes of them. Acknowledgements are not counted, nor what is sent again. An estimate for patience, not a result.

use inprofile_core::units::{Backlog, Duration, Time};

use crate::model::{Group, Model, PerFlow, Source, Start};
use crate::traffic::Traffic;

/// What a group wants to send.
struct Wish {
    /// Bits a second of all its flows together.
    rate: f64,
    /// Whether it yields where a link is full.
    yields: bool,
    /// Seconds for which each flow sends, on average.
    time: f64,
    /// Bits of a packet.
    packet: f64,
    /// The most packets of all its flows together.
    most: f64,
    /// The least: every connection sends its first packets, however full the links are.
    least: f64,
}

/// Data packets of one run; see the module's note.
pub(crate) fn packets(model: &Model) -> f64 {
    let wishes: Vec<Wish> = model.groups.iter().map(|g| wish(model, g)).collect();
    let mut load = vec![0.0; 2 * model.links.len()];
    for (group, wish) in model.groups.iter().zip(&wishes) {
        for &way in &group.route.path {
            load[way as usize] += wish.rate;
        }
    }
    let sent = |(group, wish): (&Group, &Wish)| {
        let over = |&way: &u32| load[way as usize] / model.way(way as usize).rate.0 as f64;
        let crowd = group.route.path.iter().map(over).fold(1.0, f64::max);
        let rate = if wish.yields { wish.rate / crowd } else { wish.rate };
        (rate * wish.time / wish.packet).min(wish.most).max(wish.least)
    };
    model.groups.iter().zip(&wishes).map(sent).sum()
}

fn wish(model: &Model, group: &Group) -> Wish {
    let n = group.count as f64;
    let packet = 8.0 * group.packet().0 as f64;
    let time = active(model, group);
    let links = group.route.path.iter().map(|&way| model.way(way as usize).rate.0 as f64);
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
            Wish { rate: n * tcp(), yields: true, time, packet, most: f64::INFINITY, least: first }
        }
        Traffic::Transfer(size, _) => {
            let each = match size {
                Backlog::Packets(p) => p,
                Backlog::Bytes(b) => b / f64::from(group.tcp.segment),
            };
            let most = n * each.max(1.0).ceil();
            // What it has to send may be sent long before the run ends.
            let rate = (n * tcp()).min(most * packet / time.max(1e-12));
            Wish { rate, yields: true, time, packet, most, least: first.min(most) }
        }
        Traffic::Udp(udp) => {
            let on = udp.periods.map_or(1.0, |p| {
                let (on, off) = (p.on.secs(), p.off.secs());
                if on + off > 0.0 { on / (on + off) } else { 1.0 }
            });
            let rate = n * udp.rate.0 as f64 * on;
            Wish { rate, yields: false, time, packet, most: f64::INFINITY, least: n }
        }
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

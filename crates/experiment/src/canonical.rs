//! The experiment as one text that is the same for equal experiments, however they are written: the identity of its
//! results.
//!
//! Base units (ps, bit/s, B), every default filled in, keys in alphabetical order; lists in the order of the file,
//! which numbers flows and links. The number of seeds is not part of it.

use crate::text::show;
use inprofile_core::params::{Params, Values};
use inprofile_sim::tcp::{self, Settings};
use inprofile_sim::traffic::distribution::Distribution;
use serde_json::{Value as Json, json};

use crate::access;
use crate::model::{
    Class, Delay, Direction, Group, Mechanism, Model, PerFlow, Queue, Queues, Source, Start, Target, Turn,
    Way,
};

/// Changes whenever the same file would mean another experiment.
const FORMAT: u32 = 1;

/// See [`Scenario::canonical`](crate::Scenario::canonical).
pub(crate) fn canonical(model: &Model) -> String {
    let mut whole = json!({
        "format": FORMAT,
        "title": model.title,
        "duration": model.duration.0,
        "measure": { "from": model.window.0.0, "to": model.window.1.0, "at": model.at },
        "engine": model.profile.word(),
        "tcp": tcp_table(&model.tcp),
        "nodes": model.nodes,
        "links": model.links.iter().map(|l| json!({
            "name": l.name,
            "from": l.ends.0,
            "to": l.ends.1,
            "ways": l.directions.iter().map(direction).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "flows": model.groups.iter().map(group).collect::<Vec<_>>(),
        "edges": model.edges.iter().map(|e| json!({ "node": e.node, "marker": mechanism(&e.marker) }))
            .collect::<Vec<_>>(),
        "signals": model.signals.iter().map(|s| json!({
            "from": target(s.from),
            "to": target(s.to),
            "loss": s.loss,
            "delay": match s.delay { Delay::Set(d) => json!(d.0), Delay::Route(_) => json!("route") },
        })).collect::<Vec<_>>(),
        "monitors": model.monitors.iter().map(|m| json!({ "of": target(m.target), "every": m.every.0 }))
            .collect::<Vec<_>>(),
    });
    if let Some(distributions) = model.distributions {
        whole["measure"]["distributions"] = json!({ "every": distributions.every.map(|d| d.0) });
    }
    show::canonical(&whole)
}

/// TCP. Keys that came later than others are in it where they are not at their default: files without them keep their form.
fn tcp_table(tcp: &tcp::Config) -> Json {
    let mut table = json!({
        "profile": tcp.profile.word(),
        "congestion": tcp.congestion.name(),
        "sack": tcp.congestion.uses_sack(),
        "ecn": tcp.ecn,
        "segment": tcp.segment,
        "header": tcp.header(),
        "window": tcp.window,
        "jitter": tcp.settings.jitter.0,
        "delayed_ack": tcp.delayed_ack.map_or(0, |d| d.0),
        "min_rto": tcp.min_rto.0,
        "initial_window": tcp.initial_window,
        "limited_transmit": tcp.settings.limited_transmit,
    });
    let default = Settings::default().values();
    for (key, value) in tcp.settings.values().0 {
        let differs = default.get(key) != Some(&value);
        match key {
            "header" | "jitter" | "limited_transmit" => {}
            "target" | "gain" if tcp.congestion.measures_delay() => table[key] = show::base(&value),
            "rtt_virt" | "ect1" if differs => {
                table["l4s"] = json!({ "ect1": tcp.settings.ect1, "rtt_virt": tcp.settings.rtt_virt.0 });
            }
            _ if differs => table[key] = show::base(&value),
            _ => {}
        }
    }
    if tcp.slow_start != tcp::SlowStart::of(tcp.profile, tcp.congestion) {
        table["slow_start"] = json!(tcp.slow_start.word());
    }
    if tcp.pacing {
        table["pacing"] = json!(true);
    }
    if tcp.accurate_ecn {
        table["accurate_ecn"] = json!(tcp.accurate_ecn);
    }
    let receiver = tcp.receiver_speaks();
    if receiver != tcp.speaks() {
        table["receiver_ecn"] = json!(receiver.map_or("none", tcp::Feedback::name));
    }
    table
}

fn class(c: &Class) -> Json {
    let mut out = json!({
        "name": c.name,
        "queue": queue(&c.queue),
        "rate": c.rate.map(|r| r.0),
        "with": show::all(&c.values, show::base),
    });
    if c.burst.0 > 0 {
        out["burst"] = json!(c.burst.0);
    }
    out
}

fn direction(direction: &Direction) -> Json {
    let queues = match &direction.queue {
        Queues::One(one) => queue(one),
        Queues::Scheduled(s) => json!({
            "scheduler": s.name,
            "classes": s.classes.iter().map(class).collect::<Vec<_>>(),
        }),
    };
    let mut out = json!({ "rate": direction.rate.0, "delay": direction.delay.0, "queue": queues });
    if let Some(capacity) = &direction.capacity {
        let (steps, repeat) = capacity.changes();
        let steps: Vec<_> = steps.iter().map(|(at, rate)| json!([at.0, rate.0])).collect();
        out["capacity"] = json!({ "steps": steps, "repeat": repeat.map(|r| r.0) });
    }
    match &direction.access {
        Some(Turn::Access(access)) => out["access"] = mechanism(access),
        Some(Turn::Trace(trace)) => out["trace"] = json!(access::write_trace(trace)),
        None => {}
    }
    if let Some(pause) = &direction.pause {
        out["pause"] = json!({ "xoff": pause.xoff.0, "xon": pause.xon.0 });
        if pause.alpha > 0.0 {
            out["pause"]["alpha"] = json!(pause.alpha);
            out["pause"]["pool"] = json!(pause.pool.0);
        }
    }
    if direction.ack_filter {
        out["ack_filter"] = json!(true);
    }
    let Way { jitter, delays, loss } = &direction.way;
    if let Some(jitter) = jitter {
        out["jitter"] = mechanism(jitter);
    }
    if let Some((steps, repeat)) = delays {
        let steps: Vec<_> = steps.iter().map(|(at, delay)| json!([at.0, delay.0])).collect();
        out["delays"] = json!({ "steps": steps, "repeat": repeat.map(|r| r.0) });
    }
    if let Some(loss) = loss {
        out["loss"] = mechanism(loss);
    }
    out
}

fn queue(queue: &Queue) -> Json {
    json!({ "aqm": mechanism(&queue.aqm), "limit": show::backlog(queue.limit) })
}

fn mechanism<M>(mechanism: &Mechanism<M>) -> Json {
    let values: &Values = &mechanism.values;
    json!({ "is": mechanism.name, "with": show::all(values, show::base) })
}

fn group(g: &Group) -> Json {
    let mut out = json!({
        "name": g.name,
        "count": g.count,
        "from": match &g.source {
            Source::Node(node) => json!({ "node": node }),
            Source::Hosts(join) => json!({
                "node": join.node,
                "rate": join.rate.0,
                "queue": queue(&join.queue),
                "rtt": per_flow(&join.rtt, |d| d.0),
            }),
        },
        "to": g.to,
        "start": match &g.start {
            Start::At(times) => per_flow(times, |t| t.0),
            Start::Arrivals(first, every, law) => json!({
                "first": first.0, "every": every.0, "poisson": *law != Distribution::Fixed
            }),
            Start::Uniform(low, high) => json!({ "uniform": [low.0, high.0] }),
        },
        "contract": g.contract.as_ref().map(|c| per_flow(c, |r| r.0)),
        "marker": g.marker.as_ref().map(mechanism),
        "stop": g.stop.as_ref().map(|s| per_flow(s, |t| t.0)),
        "traffic": mechanism(&g.traffic),
        "tcp": tcp_table(&g.tcp),
    });
    if let Some(class) = &g.class {
        out["class"] = json!(class);
    }
    out
}

/// One number where all flows have the same, else one each.
fn per_flow<T: Copy + PartialEq>(values: &PerFlow<T>, number: impl Fn(&T) -> u64) -> Json {
    match values.distinct() {
        [one] => json!(number(one)),
        many => many.iter().map(number).collect(),
    }
}

fn target(target: Target) -> Json {
    match target {
        Target::Queue(direction) => json!({ "queue": direction }),
        Target::Class(direction, class) => json!({ "queue": direction, "class": class }),
        Target::Group(group) => json!({ "group": group }),
        Target::Flow(group, i) => json!({ "group": group, "flow": i }),
        Target::Edge(edge) => json!({ "edge": edge }),
    }
}

//! Every value in effect, for people: with units, and queue lengths in packets, bytes and milliseconds.

use crate::text::show::{amount, json, values};
use inprofile_core::params::Params;
use inprofile_core::units::{Bytes, Duration, Rate, Time};
use inprofile_sim::tcp;
use inprofile_sim::traffic::distribution::Distribution;
use serde_json::{Value as Json, json};

use crate::model::{
    Delay, Group, Model, PerFlow, PlanGoal, Queue, Queues, Source, Start, Target, Tree, Turn, Way, packet,
};

/// The whole experiment. Lists of as many values as there are flows are shortened to one where all are equal.
pub(crate) fn describe(model: &Model) -> Json {
    let (from, to) = model.window;
    let joined = |t: Target| match t {
        Target::Group(g) | Target::Flow(g, _) => matches!(model.groups[g].source, Source::Hosts(_)),
        Target::Queue(_) | Target::Class(..) | Target::Edge(_) => false,
    };
    let mut whole = json!({
        "title": model.title,
        "duration": model.duration.to_string(),
        "measure": { "from": from.to_string(), "to": to.to_string(), "at": model.direction_name(model.at) },
        "seeds": model.seeds,
        "engine": { "profile": model.profile.word() },
        "tcp": tcp_table(&model.tcp),
        "packet": packet(&model.tcp).to_string(),
        "nodes": model.nodes,
        "links": (0..2 * model.links.len()).map(|i| link(model, i)).collect::<Vec<_>>(),
        "flows": model.groups.iter().map(|g| group(model, g)).collect::<Vec<_>>(),
        "flows_in_all": model.flows(),
        "edges": model.edges.iter().map(|e| json!({
            "node": model.nodes[e.node as usize],
            "marker": e.marker.show("kind", model.edge_context(e).packet, None),
        })).collect::<Vec<_>>(),
        "signals": model.signals.iter().map(|s| json!({
            "from": model.target_name(s.from),
            "to": model.target_name(s.to),
            "loss": s.loss,
            "delay": match s.delay {
                Delay::Set(delay) => delay.to_string(),
                Delay::Route(delay) if joined(s.from) || joined(s.to) => format!("{delay} plus the access links'"),
                Delay::Route(delay) => delay.to_string(),
            },
        })).collect::<Vec<_>>(),
        "monitors": model.monitors.iter().map(|m| {
            let kind = match m.target {
                Target::Queue(_) | Target::Class(..) => "queue",
                Target::Group(_) | Target::Flow(..) => "flows",
                Target::Edge(_) => "edge",
            };
            json!({ kind: model.target_name(m.target), "every": m.every.to_string() })
        }).collect::<Vec<_>>(),
    });
    if !model.trees.is_empty() {
        whole["trees"] = model.trees.iter().map(tree).collect();
    }
    if let Some(distributions) = model.distributions {
        whole["measure"]["distributions"] = json!(true);
        if let Some(every) = distributions.every {
            whole["measure"]["every"] = json!(every.to_string());
        }
    }
    if let Some(plan) = &model.plan {
        whole["plan"] = goal(model, plan);
    }
    whole
}

/// The goals of `inprofile plan`.
fn goal(model: &Model, plan: &PlanGoal) -> Json {
    let router = &plan.router;
    json!({
        "kept": plan.kept,
        "delay": plan.delay.map(|d| d.to_string()),
        "best_effort": plan.best_effort.of(model.direction(model.at).rate).to_string(),
        "schemes": plan.schemes,
        "router": {
            "inside": router.inside,
            "outside": router.outside,
            "direction": router.direction,
            "customers": router.customers,
            "first": router.first,
        },
    })
}

/// TCP as `[tcp]` would say it in full, without the keys that have no effect.
fn tcp_table(tcp: &tcp::Config) -> Json {
    let own = [
        ("profile", json!(tcp.profile.word())),
        ("congestion", json!(tcp.congestion.name())),
        ("sack", json!(tcp.congestion.uses_sack())),
        ("ecn", json!(tcp.ecn)),
        ("segment", json!(format!("{} B", tcp.segment))),
        ("window", json!(format!("{} packets", tcp.window))),
        ("delayed_ack", json!(tcp.delayed_ack.unwrap_or(Duration::ZERO).to_string())),
        ("min_rto", json!(tcp.min_rto.to_string())),
        ("initial_window", json!(format!("{} packets", tcp.initial_window))),
        ("pacing", json!(tcp.pacing)),
        ("slow_start", json!(tcp.slow_start.word())),
        ("accurate_ecn", json!(tcp.accurate_ecn)),
        ("receiver_ecn", json!(tcp.receiver_speaks().map_or("none", tcp::Feedback::name))),
    ];
    let settings = tcp.settings.values();
    let settings = settings.0.iter().map(|(key, value)| (*key, json(value)));
    let shown = own.into_iter().chain(settings).filter(|(key, _)| tcp.concerns(key));
    shown.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// A tree; `links` are the numbers of its links among all (of each the forward direction), from the first on.
fn tree(tree: &Tree) -> Json {
    let said =
        |bits: u128| u64::try_from(bits).map_or_else(|_| format!("{bits} bit/s"), |r| Rate(r).to_string());
    let levels = tree.levels.iter().map(|level| {
        let has = level.contracts.as_ref().unwrap_or(&level.rates);
        let sold =
            level.promised.iter().zip(has).map(|(p, has)| *p as f64 / has.0 as f64).fold(0.0, f64::max);
        let rates = |all: &[Rate]| json!(all.iter().map(ToString::to_string).collect::<Vec<_>>());
        json!({
            "name": level.name,
            "links": { "first": 2 * level.links.0, "nodes": level.links.1 },
            "rates": rates(&level.rates),
            "contracts": level.contracts.as_deref().map(rates),
            "promised": level.promised.iter().map(|p| said(*p)).collect::<Vec<_>>(),
            "sold": sold,
            "oversubscription": level.oversubscription,
        })
    });
    let (first, each, leaves) = tree.groups;
    json!({
        "name": tree.name,
        "root": tree.root,
        "direction": if tree.down { "down" } else { "up" },
        "levels": levels.collect::<Vec<_>>(),
        "flows": { "first": first, "groups": each, "leaves": leaves },
    })
}

/// One direction of a link.
fn link(model: &Model, index: usize) -> Json {
    let direction = model.direction(index);
    let link = &model.links[index / 2];
    let (a, b) = link.ends;
    let (from, to) = if index.is_multiple_of(2) { (a, b) } else { (b, a) };
    let mut out = json!({
        "name": model.direction_name(index),
        "from": model.nodes[from as usize],
        "to": model.nodes[to as usize],
        "rate": direction.rate.to_string(),
        "delay": direction.delay.to_string(),
        "queue": queues(&direction.queue, direction.rate, packet(&model.tcp)),
    });
    if let Some(capacity) = &direction.capacity {
        let (steps, repeat) = capacity.changes();
        let step = |(at, rate): &(Time, Rate)| json!({ "at": at.to_string(), "rate": rate.to_string() });
        out["capacity"] = json!({ "steps": steps.iter().map(step).collect::<Vec<_>>() });
        if let Some(repeat) = repeat {
            out["capacity"]["repeat"] = json!(repeat.to_string());
        }
    }
    match &direction.access {
        Some(Turn::Access(access)) => out["access"] = access.show("kind", packet(&model.tcp), None),
        Some(Turn::Trace(trace)) => {
            out["trace"] = json!({
                "opportunities": trace.times().len(),
                "lasts": trace.lasts().to_string(),
                "mean_rate": trace.mean().to_string(),
                "longest_gap": trace.longest_gap().to_string(),
            });
        }
        None => {}
    }
    if let Some(pause) = &direction.pause {
        out["pause"] = json!({ "xoff": pause.xoff.to_string(), "xon": pause.xon.to_string() });
        if pause.alpha > 0.0 {
            out["pause"]["alpha"] = json!(pause.alpha);
            out["pause"]["pool"] = json!(pause.pool.to_string());
        }
    }
    if direction.ack_filter {
        out["ack_filter"] = json!(true);
    }
    let Way { jitter, delays, loss } = &direction.way;
    if let Some(jitter) = jitter {
        out["jitter"] = jitter.show("kind", packet(&model.tcp), None);
    }
    if let Some((steps, repeat)) = delays {
        let step =
            |(at, delay): &(Time, Duration)| json!({ "at": at.to_string(), "delay": delay.to_string() });
        out["delays"] = json!({ "steps": steps.iter().map(step).collect::<Vec<_>>() });
        if let Some(repeat) = repeat {
            out["delays"]["repeat"] = json!(repeat.to_string());
        }
    }
    if let Some(loss) = loss {
        out["loss"] = loss.show("kind", packet(&model.tcp), None);
    }
    if index % 2 == 1 {
        out["reverse_of"] = json!(link.name);
    }
    out
}

fn queues(queues: &Queues, rate: Rate, packet: Bytes) -> Json {
    let scheduled = match queues {
        Queues::One(one) => return queue(one, rate, packet),
        Queues::Scheduled(scheduled) => scheduled,
    };
    let classes = scheduled.classes.iter().map(|c| {
        let mut out = queue(&c.queue, c.rate_before(rate), packet);
        out["name"] = json!(c.name);
        if let Some(rate) = c.rate {
            out["rate"] = json!(rate.to_string());
        }
        if c.burst.0 > 0 {
            out["burst"] = json!(c.burst.to_string());
        }
        if let (Json::Object(out), Json::Object(of_scheduler)) =
            (&mut out, values(&c.values, packet, Some(rate)))
        {
            out.extend(of_scheduler);
        }
        out
    });
    json!({ "scheduler": scheduled.name, "classes": classes.collect::<Vec<_>>() })
}

fn queue(queue: &Queue, rate: Rate, packet: Bytes) -> Json {
    let mut out = queue.aqm.show("aqm", packet, Some(rate));
    out["limit"] = amount(queue.limit, packet, Some(rate));
    if queue.follows_tcp {
        out["limit_rule_from"] = json!("tcp.profile");
    }
    out
}

fn group(model: &Model, g: &Group) -> Json {
    let name = |direction: &u32| model.direction_name(*direction as usize);
    let mut out = json!({
        "name": g.name,
        "count": g.count,
        "to": model.nodes[g.to as usize],
        "start": start(&g.start),
        "contract": g.contract.as_ref().map(per_flow),
        "marker": g.marker.as_ref().map(|m| m.show("kind", g.packet(), None)),
        "stop": g.stop.as_ref().map(per_flow),
        "traffic": g.traffic.show("kind", g.packet(), None),
        "tcp": tcp_table(&g.tcp),
        "route": g.route.path.iter().map(name).collect::<Vec<_>>(),
        "back": g.route.back.iter().map(name).collect::<Vec<_>>(),
    });
    if let Some(class) = &g.class {
        out["class"] = json!(class);
    }
    match &g.source {
        Source::Node(node) => {
            out["from"] = json!(model.nodes[*node as usize]);
            out["rtt"] = json!(g.rtt(0).to_string());
        }
        Source::Hosts(join) => {
            out["from"] = json!("H*");
            out["rtt"] = per_flow(&join.rtt);
            let delays: Vec<(Duration, Duration)> =
                join.rtt.distinct().iter().filter_map(|rtt| g.route.joining(*rtt)).collect();
            let each = |pick: fn(&(Duration, Duration)) -> Duration| {
                per_flow(&PerFlow::Each(delays.iter().map(pick).collect()))
            };
            out["join"] = json!({
                "node": model.nodes[join.node as usize],
                "rate": join.rate.to_string(),
                "delay": each(|d| d.0),
                "reverse_delay": each(|d| d.1),
                "queue": queue(&join.queue, join.rate, g.packet()),
            });
        }
    }
    out
}

fn start(start: &Start) -> Json {
    match start {
        Start::At(times) => per_flow(times),
        Start::Arrivals(first, every, Distribution::Fixed) => json!(format!("every {every} from {first}")),
        Start::Arrivals(first, every, _) => json!(format!("every {every} on average (Poisson) from {first}")),
        Start::Uniform(low, high) => json!(format!("uniform {low}..{high}")),
    }
}

fn per_flow<T: Copy + PartialEq + ToString>(values: &PerFlow<T>) -> Json {
    match values.distinct() {
        [one] => json!(one.to_string()),
        many => many.iter().map(ToString::to_string).collect(),
    }
}

pub(super) mod catalogue {
    //! Every mechanism there is, with what an operator sets of each.

    use crate::text::{mechanism, schema, show};
    use inprofile_core::params::{Default, Field, Kind};
    use inprofile_core::registry::Registry;
    use serde_json::{Value as Json, json};

    /// A list of mechanisms: `name`, `kind` (`marker`, `aqm`, or `scheduler`, whose parameters are each class's),
    /// `summary`, `source` and `parameters`. A parameter has `name` (that of a nested one with its table: `in.min_th`),
    /// `kind`, `unit`, `bounds`, `default` (as it would be written, or in words what it follows from; null where it must be
    /// given), and `doc`.
    #[must_use]
    pub fn catalogue(registry: &Registry) -> Json {
        let markers = registry.markers.iter().map(|e| entry("marker", e.name, e.summary, e.source, e.fields));
        let aqms = registry.aqms.iter().map(|e| entry("aqm", e.name, e.summary, e.source, e.fields));
        let schedulers =
            registry.schedulers.iter().map(|e| entry("scheduler", e.name, e.summary, e.source, e.fields));
        markers.chain(aqms).chain(schedulers).collect()
    }

    fn entry(kind: &str, name: &str, summary: &str, source: &str, fields: &[Field]) -> Json {
        let mut parameters = Vec::new();
        for field in fields {
            parameter("", field, &mut parameters);
        }
        json!({ "name": name, "kind": kind, "summary": summary, "source": source, "parameters": parameters })
    }

    fn parameter(prefix: &str, field: &Field, out: &mut Vec<Json>) {
        let name = format!("{prefix}{}", field.name);
        if let Kind::Group(inner) = field.kind {
            for f in inner {
                parameter(&format!("{name}."), f, out);
            }
            return;
        }
        out.push(json!({
            "name": name,
            "kind": schema::kind(field.kind),
            "unit": schema::units(field.kind),
            "bounds": mechanism::bounds(field),
            "default": match field.default {
                Default::Required => None,
                Default::Value(default) => Some(show::toml(&default())),
                Default::Derived => Some(show::derived(field)),
            },
            "doc": field.summary(),
        }));
    }
}

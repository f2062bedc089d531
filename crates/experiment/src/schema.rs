//! JSON Schema (draft 2020-12) of the experiment file, for editors: the same declarations the parser reads by.

use crate::text::quantity::Unit;
use crate::text::schema::{object, quantity};
use inprofile_core::params::Params;
use inprofile_core::registry::{Entry, Registry, SchedulerEntry};
use inprofile_sim::tcp::config::Keys;
use serde_json::{Map, Value as Json, json};

use crate::access::ACCESSES;
use crate::model::MAX_FLOWS;
use crate::traffic::KINDS;
use crate::wire::{JITTERS, LOSSES};

/// What several tables have in common, at `$defs`; [`IN_PART`] is added to the name where nothing of it is required.
const QUEUE: &str = "queue";
const MARKER: &str = "marker";
const IN_PART: &str = "_in_part";

/// The schema of an experiment that may name the mechanisms of this registry. What a file that extends another lacks, the
/// other may have: only without `extends` is anything required.
#[must_use]
pub fn schema(registry: &Registry) -> Json {
    let whole = whole();
    let mut schema = without_required(&whole);
    let parts = [(QUEUE, queue(registry)), (MARKER, marker(registry))];
    let defs: Map<String, Json> = (parts.iter())
        .flat_map(|(name, part)| {
            [((*name).to_owned(), part.clone()), (format!("{name}{IN_PART}"), without_required(part))]
        })
        .collect();
    schema["$defs"] = Json::Object(defs);
    schema["if"] = json!({ "not": { "required": ["extends"] } });
    schema["then"] = whole;
    schema
}

/// The same schema with nothing required, so that more than one of several mechanisms may fit.
fn without_required(schema: &Json) -> Json {
    match schema {
        Json::Object(keys) => {
            let kept = keys.iter().filter(|(key, value)| *key != "required" || !value.is_array());
            let renamed = |key: &String| if key == "oneOf" { "anyOf".to_owned() } else { key.clone() };
            let changed = |(key, value): (&String, &Json)| match value {
                Json::String(place) if key == "$ref" => (key.clone(), json!(format!("{place}{IN_PART}"))),
                _ => (renamed(key), without_required(value)),
            };
            kept.map(changed).collect()
        }
        Json::Array(each) => each.iter().map(without_required).collect(),
        other => other.clone(),
    }
}

/// What is at `$defs` under this name.
fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn queue(registry: &Registry) -> Json {
    let limit = quantity(Unit::Backlog, "The queue's hard limit.");
    let mut queue = one_of(
        "aqm",
        &[("limit", limit)],
        &registry.aqms,
        "The queue's discipline and limit, or a scheduler and classes.",
    );
    let scheduled = registry.schedulers.iter().map(|s| scheduler(s, registry));
    if let Some(Json::Array(each)) = queue.get_mut("oneOf") {
        each.extend(scheduled);
    }
    queue
}

fn marker(registry: &Registry) -> Json {
    one_of("kind", &[], &registry.markers, "A marker and its parameters.")
}

fn whole() -> Json {
    let traffic = one_of("kind", &[], KINDS, "What the flows send. Default: bulk.");
    let mut tcp = object(&Map::new(), &[], Keys::FIELDS);
    tcp["description"] = json!("TCP: defaults of every flow, or what a group of flows changes of them.");
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Inprofile experiment",
        "type": "object",
        "required": ["title", "duration"],
        "anyOf": [{ "required": ["links", "flows"] }, { "required": ["trees"] }],
        "additionalProperties": false,
        "properties": {
            "extends": { "type": "string", "minLength": 1,
                "description": "An experiment file, by its path from this one's folder: what this one does not say is as there." },
            "title": { "type": "string", "minLength": 1, "description": "What the experiment is about." },
            "duration": time("How long it runs."),
            "measure": table(&[], json!({
                "from": time("Start of the window of every metric. Default: 0 s."),
                "to": time("End of the window. Default: the end of the run."),
                "at": name("The link measured. Default: the slowest, of equals the first."),
                "distributions": { "type": "boolean", "default": false,
                    "description": "Whether the distributions of delays and losses are measured. Default: only where every is given." },
                "every": time("The length of the periods by which goodput and queueing delay are told (RFC 7928 §2.7: ten times the least round trip)."),
            }), "Where and when metrics are measured."),
            "seeds": { "type": "integer", "minimum": 1, "maximum": 100_000, "default": 10,
                "description": "How many runs, with seeds from 1." },
            "engine": table(&[], json!({
                "profile": { "enum": ["exact", "exact_ns2_random", "ns2"], "default": "exact",
                    "description": "Integer picoseconds; the same with ns-2's random numbers; or ns-2's order of events and clock, too." },
            }), "The simulator."),
            "tcp": tcp,
            "links": list(link(), 1, "Links, each in both directions."),
            "flows": list(flow(&traffic, &tcp), 1, "Groups of flows."),
            "trees": list(tree(&traffic, &tcp), 0, "Access networks, each said level by level."),
            "edges": list(table(&["node", "marker"], json!({
                "node": name("The node at whose ingress data is marked."),
                "marker": reference(MARKER),
            }), "An aggregate marker."), 0, "Aggregate markers."),
            "signals": list(signals(), 0, "Which mechanisms send signals to which."),
            "monitors": list(monitor(), 0, "What is sampled over time."),
            "plan": crate::read::plan::schema(),
        },
    })
}

/// A scheduler and its classes, each a queue of its own.
fn scheduler(entry: &SchedulerEntry, registry: &Registry) -> Json {
    let own = object(&Map::new(), &[], entry.fields);
    let fields = own["properties"].as_object().cloned().unwrap_or_default();
    let mut others = vec![
        ("limit", quantity(Unit::Backlog, "The class's hard limit.")),
        ("name", name("Its name: what flows say as class, and in results after the link's and a slash.")),
    ];
    others.extend(fields.iter().map(|(name, schema)| (name.as_str(), schema.clone())));
    let mut class =
        one_of("aqm", &others, &registry.aqms, "A class: a queue, and its parameters of the scheduler.");
    let rate =
        quantity(Unit::Rate, "Served at this rate and no faster. Default: whatever the scheduler gives it.");
    let burst =
        quantity(Unit::Size, "What it may send ahead of its rate after an idle period. Default: nothing.");
    if let Some(Json::Array(each)) = class.get_mut("oneOf") {
        for schema in each {
            schema["properties"]["rate"] = rate.clone();
            schema["properties"]["burst"] = burst.clone();
        }
    }
    let mut schema = table(
        &["scheduler", "classes"],
        json!({ "scheduler": { "const": entry.name }, "classes": list(class, 1, "The classes, in order.") }),
        &format!("{} ({})", entry.summary, entry.source),
    );
    schema["title"] = json!(entry.name);
    schema
}

/// A tree: its levels are links, its flows those of each leaf.
fn tree(traffic: &Json, tcp: &Json) -> Json {
    let each = |one: Json, doc: &str| or_list(one, doc);
    let text = |doc: &str| json!({ "type": "string", "description": doc });
    let mut level = link();
    let keys = &mut level["properties"];
    for (key, value) in [
        (
            "fan_out",
            json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "array", "items": { "type": "integer", "minimum": 1 } },
            { "type": "string", "pattern": r"^\s*uniform\s+\d+\s*\.\.\s*\d+\s*$" },
        ], "description": "How many nodes each node above has: one number, one each, or drawn." }),
        ),
        (
            "rate",
            each(
                quantity(Unit::Rate, "Of each link."),
                "Bits per second on the wire: one for all, or one each.",
            ),
        ),
        (
            "delay",
            each(
                text("A time, a range that is spread evenly, or uniform and a range."),
                "Propagation: one for all, or one each.",
            ),
        ),
        (
            "contract",
            each(
                quantity(Unit::Rate, "Of each node."),
                "What each node has bought. Default: the rate of its link.",
            ),
        ),
        (
            "oversubscription",
            json!({ "type": "number", "minimum": 1, "default": 1,
            "description": "How much more may be sold below a node than it has." }),
        ),
        ("marker", reference(MARKER)),
    ] {
        keys[key] = value;
    }
    if let Some(keys) = keys.as_object_mut() {
        keys.remove("from");
        keys.remove("to");
    }
    level["required"] = json!(["name", "fan_out", "rate", "delay", "queue"]);
    level["description"] = json!("A level, from the top: nodes, each with a link to the one above.");
    if let Some(level) = level.as_object_mut() {
        level.remove("anyOf");
    }
    let mut flows = flow(traffic, tcp);
    flows["required"] = json!(["name"]);
    flows["properties"]["join"]["required"] = json!(["rate"]);
    // Where they begin and end is the tree's to say.
    for (table, keys) in
        [("/properties", &["from", "to"] as &[&str]), ("/properties/join/properties", &["node"])]
    {
        if let Some(Json::Object(table)) = flows.pointer_mut(table) {
            table.retain(|key, _| !keys.contains(&key.as_str()));
        }
    }
    table(
        &["name", "root", "levels"],
        json!({
            "name": name("Its name."),
            "root": name("The node at its top."),
            "direction": { "enum": ["down", "up"], "default": "down", "description": "Whether data goes to the leaves or comes from them." },
            "draw": { "type": "integer", "minimum": 0, "default": 1, "description": "The number by which what is drawn is drawn: the same for every seed." },
            "levels": list(level, 1, "Its levels, from the top."),
            "flows": list(flows, 0, "Groups of flows that each leaf has."),
        }),
        "An access network.",
    )
}

fn link() -> Json {
    let direction = |doc: &str| {
        json!({
            "rate": quantity(Unit::Rate, &format!("Bits per second on the wire{doc}")),
            "capacity": changes("rate", &quantity(Unit::Rate, "The rate from then on.")),
            "access": one_of("kind", &[], ACCESSES, "When it may send, if not whenever a packet waits."),
            "trace": { "type": "string", "description": "When it may send: a line for each opportunity to send 1,500 bytes, with its time in ms (mahimahi's format). Starts over at its end." },
            "delays": changes("delay", &time("The delay from then on, not below the link's.")),
            "jitter": one_of("kind", &[], JITTERS, "Delays beyond the propagation delay. Default: none."),
            "loss": one_of("kind", &[], LOSSES, "Loss on the way. Default: none."),
            "delay": time(&format!("Propagation{doc}")),
            "queue": reference(QUEUE),
            "pause": table(&["xoff", "xon"], json!({
                "xoff": quantity(Unit::Size, "Above so many bytes of a link's packets in the queue that link is paused."),
                "xon": quantity(Unit::Size, "At so many or fewer it goes on."),
                "alpha": { "type": "number", "minimum": 0, "maximum": 1024, "description": "Both lie higher by this times what is free of the pool. Default: they are fixed." },
                "pool": quantity(Unit::Size, "What all links together may have waiting before nothing is free of it. Required with alpha."),
            }), "When the queue pauses the links that bring packets to it (PFC). Default: never."),
            "ack_filter": { "type": "boolean", "description": "Whether an acknowledgement that waits is dropped as a newer one of its flow joins the queue (CAKE's ack-filter, conservative). Default: false." },
        })
    };
    let mut properties = direction(".");
    properties["name"] = name("Its name in results.");
    properties["from"] = name("The node it starts at.");
    properties["to"] = name("The node it ends at.");
    properties["reverse"] = table(
        &[],
        direction(" on the way back. Default: as forward."),
        "The other direction; without a queue of its own, drop-tail with room for 10000 packets.",
    );
    let mut link = table(&["name", "from", "to", "delay", "queue"], properties, "A link.");
    link["anyOf"] = json!([{ "required": ["rate"] }, { "required": ["trace"] }]);
    link
}

/// Steps in time of a link's rate or delay.
fn changes(key: &str, value: &Json) -> Json {
    let mut properties = json!({ "at": time("When.") });
    properties[key] = value.clone();
    let step = table(&["at", key], properties, &format!("A change of the {key}."));
    table(
        &["steps"],
        json!({
            "steps": list(step, 1, &format!("Changes of the {key}, in the order of their times.")),
            "repeat": time(&format!("After how long it starts over with the link's {key}. Default: never.")),
        }),
        &format!("How the link's {key} changes over time."),
    )
}

fn flow(traffic: &Json, tcp: &Json) -> Json {
    let rate = |doc: &str| quantity(Unit::Rate, doc);
    let range = r"^\s*[0-9.eE+-]+\s*[a-zµμ]*\s*\.\.\s*[0-9.eE+-]+\s*[mnpuµμ]?s\s*$";
    let rtt = json!({ "anyOf": [time("One for all."), { "type": "string", "pattern": range }] });
    let arrivals = table(
        &["every"],
        json!({
            "first": time("From when on. Default: 0 s."),
            "every": time("Time between two, on average."),
            "arrivals": { "enum": ["fixed", "poisson"], "default": "fixed", "description": "How it is drawn." },
        }),
        "One after the other.",
    );
    let uniform = range.replacen('^', r"^\s*uniform", 1);
    table(
        &["name", "from", "to"],
        json!({
            "name": name("Its name; flows are name.0, name.1, …"),
            "count": { "type": "integer", "minimum": 0, "maximum": MAX_FLOWS, "default": 1, "description": "How many flows." },
            "from": { "type": "string", "description": "\"H*\": one host per flow, joined by join; or the name of a node." },
            "join": table(&["node", "rate"], json!({
                "node": name("The node the hosts are joined to."),
                "rate": rate("Rate of each access link, both ways."),
                "limit": quantity(Unit::Backlog, "Limit of its queues. Default: 10000 packets."),
            }), "The access links; their delay follows from rtt."),
            "to": name("The node the data goes to."),
            "rtt": or_list(rtt, "Propagation there and back: one, one each, or a range evenly spread."),
            "start": or_list(
                json!({ "anyOf": [time("A time."), { "type": "string", "pattern": uniform }, arrivals] }),
                "When they start. Default: 0 s.",
            ),
            "stop": or_list(time("A time."), "When they stop sending new data. Default: they do not stop."),
            "traffic": traffic,
            "contract": or_list(rate("A rate."), "The assured rate of each."),
            "marker": reference(MARKER),
            "class": name("The class of their packets and acknowledgements where a scheduler serves classes."),
            "tcp": tcp,
        }),
        "A group of flows.",
    )
}

fn signals() -> Json {
    let loss = json!({ "type": "number", "minimum": 0, "maximum": 1, "default": 0,
        "description": "Probability that a signal is lost, independently." });
    table(
        &["from", "to"],
        json!({
            "from": name("The sender: an edge by its node, a group of flows or one (tcp.0) by its marker, a queue by its link."),
            "to": name("The receiver: likewise."),
            "loss": loss,
            "delay": time("How long a signal takes. Default: the propagation of the links between the two."),
        }),
        "What one mechanism sends in its ticks goes to another.",
    )
}

fn monitor() -> Json {
    let mut schema = table(
        &["every"],
        json!({
            "queue": { "type": "string", "description": "A link; with .reverse its other direction, with /NAME one of its classes." },
            "flows": { "type": "string", "description": "A group of flows, or one: tcp.0." },
            "edge": name("An edge, by its node."),
            "every": time("How often."),
        }),
        "One thing, sampled at regular times.",
    );
    schema["oneOf"] = json!([{ "required": ["queue"] }, { "required": ["flows"] }, { "required": ["edge"] }]);
    schema
}

/// A table that is one of several mechanisms; the word under `key` selects which.
fn one_of<M>(key: &str, others: &[(&str, Json)], entries: &[Entry<M>], doc: &str) -> Json {
    let each = entries.iter().map(|e| {
        let mut properties: Map<String, Json> =
            others.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
        properties.insert(key.to_owned(), json!({ "const": e.name }));
        let needed: Vec<&str> = std::iter::once(key).chain(others.iter().map(|(name, _)| *name)).collect();
        let mut schema = object(&properties, &needed, e.fields);
        schema["title"] = json!(e.name);
        schema["description"] = json!(format!("{} ({})", e.summary, e.source));
        schema
    });
    json!({ "description": doc, "oneOf": each.collect::<Vec<_>>() })
}

fn table(required: &[&str], properties: Json, doc: &str) -> Json {
    json!({
        "type": "object",
        "description": doc,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn list(items: Json, least: u32, doc: &str) -> Json {
    json!({ "type": "array", "items": items, "minItems": least, "description": doc })
}

fn or_list(one: Json, doc: &str) -> Json {
    json!({ "description": doc, "anyOf": [one.clone(), { "type": "array", "items": one }] })
}

fn name(doc: &str) -> Json {
    json!({ "type": "string", "description": doc })
}

fn time(doc: &str) -> Json {
    quantity(Unit::Time, doc)
}

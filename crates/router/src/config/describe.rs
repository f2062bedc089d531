//! Every effective value: as JSON, and as text in packets, bytes, and milliseconds at the set rate.

use inprofile_core::packet::Colour;
use inprofile_core::units::{Bytes, Rate};
use inprofile_experiment::text::show;
use inprofile_live::code_points::Dscp;
use inprofile_live::packet::Control;
use serde_json::{Value as Json, json};

use super::datapath::{self, Datapath};
use super::frames::Policing;
use super::role::{Role, Unsold};
use super::services::Service;
use super::{Class, Config, Customer, DIRECTIONS, Direction, Own, advice};

/// The whole file.
#[must_use]
pub fn json(config: &Config) -> Json {
    let colour = |c: Colour| config.points.of(c).to_string();
    let mut out = json!({
        "inside": config.ports[0],
        "outside": config.ports[1],
        "datapath": config.datapath.name(),
        "pins": (config.datapath == Datapath::Kernel).then_some(&config.pins),
        "attach": (config.datapath == Datapath::Kernel).then_some(config.attach.name()),
        "fail": config.fail.name(),
        "link_loss": config.link_loss.name(),
        "packet": config.packet.to_string(),
        "overhead": format!("{} B", config.overhead),
        "mpu": format!("{} B", config.mpu),
        "frames": {
            "length_mismatch": if config.frames.drop_length_mismatch { "drop" } else { "charge" },
            "age_limit": config.frames.age_limit.to_string(),
        },
        "flows": config.flows,
        "fix_offloads": config.fix_offloads,
        "user": config.user,
        "code_points": { "in": colour(Colour::Green), "out": colour(Colour::Yellow), "red": colour(Colour::Red) },
        "control": { "socket": config.socket, "group": config.group },
        "metrics": config.metrics.map(|a| json!({ "listen": a.to_string(), "customers": config.most_customer_series })),
        "log": { "level": config.log.level.name(), "file": config.log.file },
    });
    for (direction, key) in config.directions.iter().zip(DIRECTIONS) {
        out[key] = direction.as_ref().map_or(Json::Null, |d| one(d, config));
        if let (Datapath::Kernel, Json::Object(of)) = (config.datapath, &mut out[key]) {
            // Nothing waits: what is said of queues stands for none.
            ["rate", "shared"].into_iter().for_each(|key| drop(of.remove(key)));
            for class in of.get_mut("classes").and_then(Json::as_array_mut).into_iter().flatten() {
                let Json::Object(of) = class else { continue };
                let has_queue = of.get("aqm").is_some_and(|aqm| aqm == "virtual_queue");
                of.retain(|key, _| ["name", "dscp"].contains(&key.as_str()) || has_queue && key != "limit");
            }
        }
    }
    out
}

fn one(direction: &Direction, config: &Config) -> Json {
    let packet = config.full_packet();
    json!({
        "rate": direction.rate.to_string(),
        "role": direction.role.name(),
        "dscp": if direction.unsold.bleach { "bleach" } else { "keep" },
        "remap": remap(&direction.unsold),
        "unreadable": if direction.drops_unreadable(&config.frames) { "drop" } else { "best_effort" },
        "control": policing(&direction.control),
        "control_sender": policing(&direction.control_sender),
        "control_of_addresses": policing(&direction.control_of_addresses()),
        "classes": direction.classes.iter().map(|c| class(c, direction, packet)).collect::<Vec<_>>(),
        "assured": direction.classes[direction.assured].name,
        "promised": direction.promised().map(|r| r.to_string()),
        "aggregate": direction.aggregate.as_ref().map(|m| m.show("kind", packet, None)),
        "shared": {
            "priority": direction.shared.priority,
            "quantum": format!("{} B", direction.shared.quantum),
        },
        "groups": direction.groups,
        "customers": direction.customers.iter().map(|c| customer(c, direction, packet)).collect::<Vec<_>>(),
    })
}

/// The treatment of traffic that nobody has bought, a sentence for each direction, to be read by whoever starts or reloads the router.
#[must_use]
pub fn roles(config: &Config) -> Vec<String> {
    let directions = config.directions.iter().zip(DIRECTIONS);
    let rest_of = |d: &Direction| {
        let unreadable = match d.drops_unreadable(&config.frames) {
            true => "frames that are not IP or cannot be read are dropped",
            false => "frames that are not IP or cannot be read pass as they are",
        };
        format!("{unreadable}; {}", control(d))
    };
    directions
        .map(|(direction, name)| match direction {
            None => format!("{name}: everything passes as it is, unmetered and unshaped"),
            Some(d @ Direction { role: Role::Core, unsold, .. }) => {
                let rest =
                    if unsold.bleach { "other code points are bleached" } else { "all code points are kept" };
                let more = rest_of(d);
                format!("{name}: core, the code points of what comes in are believed; {rest}; {more}")
            }
            Some(d @ Direction { role: Role::Edge, unsold, .. }) => {
                let rest =
                    if unsold.bleach { "its code point is bleached" } else { "its code point is kept" };
                let more = rest_of(d);
                format!("{name}: edge, what nobody has bought is best effort; {rest}; {more}")
            }
        })
        .collect()
}

/// The rate that control frames, which are served first, can take beside all contracts.
fn control(direction: &Direction) -> String {
    let kinds = Control::ALL.len() as u64;
    let all = direction.control_of_addresses().rate;
    if !direction.has_circuits() {
        return format!("control frames get {all} at most, of all kinds together");
    }
    let his = Rate(direction.control_sender.rate.0 * kinds);
    format!("control frames get {his} at most in each customer's circuits, and {all} in all outside them")
}

fn remap(unsold: &Unsold) -> Json {
    let each = (0..64).filter_map(Dscp::new).filter_map(|from| {
        let to = unsold.remap[usize::from(from.value())]?;
        Some((from.to_string(), json!(to.to_string())))
    });
    Json::Object(each.collect())
}

fn policing(police: &Policing) -> Json {
    json!({ "rate": police.rate.to_string(), "burst": police.burst.to_string() })
}

fn class(class: &Class, direction: &Direction, packet: Bytes) -> Json {
    let counted = datapath::virtual_queue(class, packet).map(|queue| Rate(queue.rate));
    let rate = class.rate.or(counted).unwrap_or(direction.rate);
    let mut out = class.aqm.show("aqm", packet, Some(rate));
    out["name"] = json!(class.name);
    out["dscp"] = json!(class.dscp.iter().map(ToString::to_string).collect::<Vec<_>>());
    out["limit"] = show::amount(class.limit, packet, Some(rate));
    out["rate"] = json!(class.rate.map(|r| r.to_string()));
    if let Some(w_q) = advice::weight(&class.aqm.values) {
        let packets = advice::constant(w_q);
        let ms = packets * packet.0 as f64 * 8e3 / rate.0 as f64;
        let min_th = advice::lowest_threshold(&class.aqm.values, packet);
        out["average"] = json!({
            "packets": packets,
            "ms": ms,
            "burst": min_th.and_then(|th| advice::burst(w_q, th)),
        });
    }
    out
}

/// One customer of a direction.
#[must_use]
pub fn customer(customer: &Customer, direction: &Direction, packet: Bytes) -> Json {
    let service = |s: &Service| {
        let mut out = policing(&s.police);
        out["name"] = json!(direction.classes[s.class].name);
        out
    };
    json!({
        "name": customer.name,
        "services": customer.services.iter().map(service).collect::<Vec<_>>(),
        "prefix": customer.prefixes.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "port": customer.ports,
        "dscp": customer.dscp.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "circuits": customer.circuits.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "group": customer.group.and_then(|g| direction.groups.get(g)),
        "contract": customer.contract.map(|r| r.to_string()),
        "marker": customer.marker.show("kind", packet, None),
        "rate": customer.own.as_ref().and_then(|own| own.rate).map(|r| r.to_string()),
        "burst": customer.own.as_ref().filter(|own| own.rate.is_some()).map(|own| own.burst.to_string()),
        "priority": customer.own.as_ref().map(|own| own.share.priority),
        "quantum": customer.own.as_ref().map(|own| format!("{} B", own.share.quantum)),
        "queues": customer.own.iter().flat_map(|own| own_queues(own, direction, packet)).collect::<Vec<_>>(),
    })
}

/// A customer's own queues, each at the rate it is served at.
fn own_queues(own: &Own, direction: &Direction, packet: Bytes) -> Vec<Json> {
    let served = |c: &Class| Class { rate: c.rate.or(own.rate), ..c.clone() };
    own.classes.iter().map(|(_, c)| class(&served(c), direction, packet)).collect()
}

/// For a person: a line a value, tables indented.
#[must_use]
pub fn text(config: &Config) -> String {
    let mut out = String::new();
    write(&json(config), 0, &mut out);
    out
}

fn write(value: &Json, depth: usize, out: &mut String) {
    let Json::Object(map) = value else { return };
    let indent = "  ".repeat(depth);
    for (key, value) in map {
        match value {
            Json::Null => {}
            Json::Array(list) if list.is_empty() => {}
            Json::Array(list) if list.iter().all(Json::is_object) => {
                for item in list {
                    let name = item.get("name").and_then(Json::as_str).unwrap_or("");
                    out.push_str(&format!("{indent}{key} {name}\n"));
                    write(item, depth + 1, out);
                }
            }
            Json::Object(amount) if amount.contains_key("is") => {
                out.push_str(&format!("{indent}{key} = {}\n", quantity(value)));
            }
            Json::Object(average) if key == "average" => {
                out.push_str(&format!("{indent}{key} = {}\n", followed(average)));
            }
            Json::Object(_) => {
                out.push_str(&format!("{indent}{key}\n"));
                write(value, depth + 1, out);
            }
            _ if depth > 0 && key == "name" => {}
            plain => out.push_str(&format!("{indent}{key} = {}\n", words(plain))),
        }
    }
}

fn words(value: &Json) -> String {
    match value {
        Json::String(s) => s.clone(),
        Json::Array(list) => list.iter().map(words).collect::<Vec<_>>().join(", "),
        // As the file has it, to the last digit.
        Json::Number(n) if n.is_f64() => n.as_f64().unwrap_or(f64::NAN).to_string(),
        other => other.to_string(),
    }
}

/// `over 499.5 packets, 119.88 ms; from empty, 148 packets at once bring it to min_th`.
fn followed(average: &serde_json::Map<String, Json>) -> String {
    let number = |key: &str| average.get(key).and_then(Json::as_f64).map(rounded);
    let over =
        [("packets", "packets"), ("ms", "ms")].map(|(key, unit)| number(key).map(|n| format!("{n} {unit}")));
    let burst = number("burst").map(|n| format!("; from empty, {n} packets at once bring it to min_th"));
    format!("over {}{}", over.into_iter().flatten().collect::<Vec<_>>().join(", "), burst.unwrap_or_default())
}

/// `45 packets (67500 B, 54 ms)`.
fn quantity(value: &Json) -> String {
    let number = |key: &str| value.get(key).and_then(Json::as_f64).map(rounded);
    let is = value.get("is").and_then(Json::as_str).unwrap_or("");
    let parts = [
        number("packets").filter(|_| !is.ends_with("packets")).map(|n| format!("{n} packets")),
        number("bytes").filter(|_| !is.ends_with(" B")).map(|n| format!("{n} B")),
        number("ms").map(|n| format!("{n} ms")),
    ];
    format!("{is} ({})", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// To four digits after the point at most; of what is less than 1, four that count.
fn rounded(x: f64) -> String {
    let zeros = if x > 0.0 && x < 1.0 { -x.log10().floor() as usize - 1 } else { 0 };
    let text = format!("{x:.0$}", zeros + 4);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

//! `[plan]`: what `inprofile plan` is to keep. No run depends on it.

use std::ops::RangeInclusive;

use crate::text::problem::Wrong;
use crate::text::quantity::Unit;
use crate::text::schema::quantity;
use crate::text::{Entry, Location, Section};
use inprofile_core::units::Rate;
use serde_json::{Value as Json, json};

use crate::model::{Group, Model, Part, PlanGoal, Queues, Router};

const KEYS: [&str; 5] = ["kept", "delay", "best_effort", "schemes", "router"];
const ROUTER_KEYS: [&str; 5] = ["inside", "outside", "direction", "customers", "first"];

/// How customers are told apart, with the numbers there are: 10.0.0.0/24 to 10.255.255.0/24, VLANs (IEEE 802.1Q), PPPoE
/// sessions (RFC 2516; 0 is discovery's, 65535 reserved).
const NUMBERS: [(&str, RangeInclusive<u64>); 3] =
    [("prefix", 0..=65_535), ("vlan", 1..=4094), ("session", 1..=65_534)];

/// Its schema.
pub(crate) fn schema() -> Json {
    let share = |doc: &str| {
        let percent = r"^\s*(\d+\.?\d*|\.\d+)\s*%\s*$";
        json!({ "description": doc, "anyOf": [
            { "type": "string", "pattern": percent, "examples": ["99 %"] }, { "type": "number" },
        ] })
    };
    let mut best_effort =
        share("What flows without a contract get together, at least: a share of the link, or a rate.");
    if let Some(Json::Array(each)) = best_effort.get_mut("anyOf") {
        each.push(quantity(Unit::Rate, "A rate."));
    }
    let port = |default: &str, doc: &str| json!({ "type": "string", "default": default, "description": doc });
    json!({
        "type": "object",
        "description": "The goal of inprofile plan. No run depends on it.",
        "additionalProperties": false,
        "properties": {
            "kept": share("Every contract is kept in at least this share of the runs. Default: 99 %."),
            "delay": quantity(Unit::Time, "Mean queueing delay at the measured link, at most. Default: any."),
            "best_effort": best_effort,
            "schemes": { "type": "array", "minItems": 1, "items": { "type": "string" },
                "description": "Schemes to choose from, and files of schemes. Default: all." },
            "router": { "type": "object", "additionalProperties": false,
                "description": "How the router's file tells customers apart.",
                "properties": {
                    "inside": port("lan0", "The port on the customers' side."),
                    "outside": port("wan0", "The other port."),
                    "direction": { "enum": ["upstream", "downstream"], "default": "upstream",
                        "description": "Which way the contracts are for." },
                    "customers": { "enum": NUMBERS.map(|(kind, _)| kind), "default": "prefix",
                        "description": "What a customer is known by." },
                    "first": { "type": "integer", "minimum": 0, "default": 1,
                        "description": "The first customer's number; the others follow." },
                } },
        },
    })
}

/// Reads it; an empty table asks for nothing.
pub(crate) fn plan(root: &Section<'_, '_>) -> Option<Option<PlanGoal>> {
    let Some(entry) = root.get("plan") else { return Some(None) };
    let section = entry.section(&KEYS)?;
    if section.entries().next().is_none() {
        return Some(None);
    }
    let kept = section.get("kept").map_or(Some(0.99), |e| kept(&e));
    let delay = match section.get("delay") {
        Some(e) => e.positive_duration().map(Some),
        None => Some(None),
    };
    let best_effort = section.get("best_effort").map_or(Some(Part::Rate(Rate(0))), |e| part(&e));
    let schemes = match section.get("schemes") {
        Some(e) => schemes(&e).map(Some),
        None => Some(None),
    };
    let router = router(&section);
    Some(Some(PlanGoal {
        kept: kept?,
        delay: delay?,
        best_effort: best_effort?,
        schemes: schemes?,
        router: router?,
    }))
}

fn kept(entry: &Entry<'_, '_>) -> Option<f64> {
    let kept = share(entry, "write a share of the runs, such as \"99 %\" or 0.99")?;
    if (0.5..1.0).contains(&kept) {
        return Some(kept);
    }
    let problem = match kept {
        1.0 => "no number of runs shows that something always holds",
        _ => "a promise is kept in at least half of the runs, and not in more than all",
    };
    entry.wrong(Wrong::new(problem, "write a share of the runs from \"50 %\" to below \"100 %\""))
}

/// `99 %`, or a number from 0 to 1.
fn share(entry: &Entry<'_, '_>, remedy: &str) -> Option<f64> {
    let Some(text) = entry.as_text() else { return entry.number() };
    let percent = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    match percent.filter(|p| p.is_finite() && *p >= 0.0) {
        Some(percent) => Some(percent / 100.0),
        None => entry.wrong(Wrong::new("this is not a share", remedy)),
    }
}

/// A share of the link, or a rate.
fn part(entry: &Entry<'_, '_>) -> Option<Part> {
    if entry.as_text().is_some_and(|text| !text.trim().ends_with('%')) {
        return entry.rate().map(Part::Rate);
    }
    share(entry, "write a rate, \"1 Mbit/s\", or a share of the link, \"5 %\"").map(Part::Share)
}

fn schemes(entry: &Entry<'_, '_>) -> Option<Vec<String>> {
    let example = "a list of names, such as [\"rio\", \"srtcm-wred\"]";
    let names = entry.elements(example)?;
    if names.is_empty() {
        return entry.wrong(Wrong::new("the list is empty", format!("write {example}")));
    }
    names.iter().map(|e| e.text("a scheme's name in quotes").map(str::to_owned)).collect()
}

fn router(section: &Section<'_, '_>) -> Option<Router> {
    let mut router = Router {
        inside: "lan0".to_owned(),
        outside: "wan0".to_owned(),
        direction: "upstream",
        customers: "prefix",
        first: 1,
    };
    let Some(entry) = section.get("router") else { return Some(router) };
    let section = entry.section(&ROUTER_KEYS)?;
    for (key, port) in [("inside", &mut router.inside), ("outside", &mut router.outside)] {
        if let Some(e) = section.get(key) {
            e.text("a port's name in quotes")?.clone_into(port);
        }
    }
    if let Some(e) = section.get("direction") {
        router.direction = e.word(&["upstream", "downstream"], "direction")?;
    }
    if let Some(e) = section.get("customers") {
        router.customers = e.word(&NUMBERS.map(|(kind, _)| kind), "kind of customer")?;
    }
    if let Some(e) = section.get("first") {
        router.first = e.count_in(0..=65_535)?;
    }
    Some(router)
}

/// Whether the network is one that the plan can be made of.
pub(crate) fn check(root: &Section<'_, '_>, model: &Model) {
    let Some(plan) = &model.plan else { return };
    let report = root.report();
    let crossing = || model.groups.iter().filter(|g| g.route.path.contains(&(model.at as u32)));
    let sold = |g: &&Group| g.count > 0 && g.contract(0).is_some();
    let link = model.direction_name(model.at);
    let direction = model.direction(model.at);
    if matches!(direction.queue, Queues::Scheduled(_)) {
        let problem = format!("{link} has classes: schemes are of one queue");
        report.error(&place(root, "plan"), problem, "plan the assured class alone, as a link of its rate");
    }
    let customers: usize = crossing().filter(sold).map(|g| g.count).sum();
    if customers == 0 {
        let problem = format!("no flow that crosses {link} has a contract: there is nothing to keep");
        report.error(&place(root, "flows"), problem, "write contract = \"2 Mbit/s\" at a group of flows");
    }
    if plan.best_effort.of(direction.rate).0 > 0 {
        let at = root.locate("plan.best_effort");
        if crossing().all(|g| g.count == 0 || sold(&g)) {
            report.error(&at, "every flow has a contract", "remove it");
        } else if plan.best_effort.of(direction.rate) >= direction.rate {
            let problem = format!("is not less than the rate of {link}, {}", direction.rate);
            report.error(&at, problem, "write a rate, \"1 Mbit/s\", or a share of the link, \"5 %\"");
        }
    }
    numbers(root, &plan.router, customers as u64);
}

/// Whether every customer has a number.
fn numbers(root: &Section<'_, '_>, router: &Router, customers: u64) {
    let Some((kind, range)) = NUMBERS.iter().find(|(kind, _)| *kind == router.customers) else { return };
    let (least, most) = (*range.start(), *range.end());
    let last = (router.first + customers).saturating_sub(1);
    if range.contains(&router.first) && last <= most {
        return;
    }
    let problem = format!(
        "with {customers} customers the last number is {last}, and {kind} numbers go from {least} to {most}"
    );
    let remedy = if customers <= most - least + 1 {
        format!("write a number from {least} to {}", most + 1 - customers)
    } else {
        "tell customers apart by another kind, such as customers = \"session\"".to_owned()
    };
    root.report().error(&root.locate("plan.router.first"), problem, remedy);
}

fn place(root: &Section<'_, '_>, path: &str) -> Location {
    Location { quoted: false, ..root.locate(path) }
}

//! `[upstream]` and `[downstream]`: a rate, the assured queue, classes before and after it, customers, the aggregate.

use inprofile_config::named::{self, Found, Mechanism};
use inprofile_config::problem::Wrong;
use inprofile_config::quantity;
use inprofile_config::{Entry, Section};
use inprofile_core::params::Context;
use inprofile_core::registry::{AnyMarker, Registry};
use inprofile_core::units::{Backlog, Bytes, Rate};
use inprofile_live::code_points::{CodePoints, Dscp};

use super::frames::Frames;
use super::role::{self, Said};
use super::{Class, Direction, MOST_CLASSES, customers, queues, values};

/// The name of the class of control frames.
const CONTROL: &str = "control";
/// Its queue, in packets: policed, little ever waits there.
const CONTROL_LIMIT: f64 = 100.0;
/// The most a queue holds, in bytes.
const LARGEST_LIMIT: f64 = 1e9;
/// The name of the class of the three colours.
pub(super) const ASSURED: &str = "assured";
/// The name of the class of what is left.
pub(super) const BEST_EFFORT: &str = "best_effort";

/// What the file says for all directions.
pub(super) struct Above<'a> {
    pub(super) registry: &'a Registry,
    /// Size of a full packet on the link.
    pub(super) packet: Bytes,
    pub(super) points: CodePoints,
    pub(super) role: Said,
    pub(super) frames: Frames,
}

/// Reads one direction.
pub(super) fn read(entry: &Entry<'_, '_>, above: &Above<'_>) -> Option<Direction> {
    let Above { registry, packet, points, frames, .. } = *above;
    let own = [
        "rate",
        "queue",
        "classes",
        BEST_EFFORT,
        "aggregate",
        "customers",
        "templates",
        "groups",
        "shared",
        role::OLD_KEY,
    ];
    let section = entry.section(&[&own[..], &role::KEYS].concat())?;
    let rate = section.need("rate", "\"10 Mbit/s\"").and_then(|e| e.positive_rate());
    let said = Said::read(&section).and_then(|said| said.with_old_key(&section));
    let link = Link { rate, packet, registry };
    let before = classes(&section, &link, points);
    let example = "{ aqm = \"rio\", limit = \"100 packets\", … }";
    let queue = section.need("queue", example).and_then(|e| class(&e.open(example)?, ASSURED, &[], &link));
    let last = match section.get(BEST_EFFORT) {
        Some(e) => {
            class(&e.open("{ aqm = \"drop_tail\", limit = \"100 packets\" }")?, BEST_EFFORT, &[], &link)
                .map(Some)
        }
        None => Some(None),
    };
    let mut classes = vec![control_class(registry)?];
    let before = before.map(|before| classes.extend(before));
    let found = customers::read(&section, &link, points, &classes);
    let shared = queues::shared(&section, packet);
    before?;
    let (role, unsold) = said?.or(above.role).in_force();
    let nothing_given_away = role::gives_nothing_away(&section, &unsold, &classes, points);
    let assured = classes.len();
    classes.push(queue?);
    classes.extend(last?);
    let (rate, (customers, groups), shared) = (rate?, found?, shared?);
    let (control, control_sender) = frames.control(rate, customers.len(), packet);
    let aggregate = None;
    let mut direction = Direction {
        rate,
        role,
        unsold,
        control,
        control_sender,
        classes,
        assured,
        customers,
        groups,
        shared,
        aggregate,
    };
    if direction.most_markers() > usize::from(u16::MAX) {
        let problem = format!("{} markers and policers in one direction", direction.most_markers());
        return section.get("customers")?.wrong(Wrong::new(problem, "give fewer customers services"));
    }
    nothing_given_away.then_some(())?;
    if let Some(entry) = section.get("aggregate") {
        let place = direction.place_of_aggregate(packet);
        direction.aggregate = Some(marker(&entry, registry, &place)?);
    }
    Some(direction)
}

/// That of control frames: nobody else's, and first served.
fn control_class(registry: &Registry) -> Option<Class> {
    let entry = registry.aqms.iter().find(|e| e.name == "drop_tail")?;
    let values = inprofile_config::mechanism::defaults(entry.fields)?;
    let aqm = Mechanism { name: entry.name, values, fields: entry.fields, build: entry.build };
    let limit = Backlog::Packets(CONTROL_LIMIT);
    Some(Class { name: CONTROL.to_owned(), dscp: Vec::new(), aqm, limit, rate: None })
}

/// What a class is told of its link.
#[derive(Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) rate: Option<Rate>,
    pub(super) packet: Bytes,
    pub(super) registry: &'a Registry,
}

/// The classes that are served before the assured one.
fn classes(section: &Section<'_, '_>, link: &Link<'_>, points: CodePoints) -> Option<Vec<Class>> {
    let Some(entry) = section.get("classes") else { return Some(Vec::new()) };
    let tables = entry.tables("[[…classes]]")?;
    if tables.len() > MOST_CLASSES {
        let problem = format!("{} classes; the most is {MOST_CLASSES}", tables.len());
        return entry.wrong(Wrong::new(problem, "give one class several code points"));
    }
    let mut seen: Vec<Class> = Vec::new();
    let mut whole = true;
    for table in &tables {
        match one(table, link, points, &seen) {
            Some(class) => seen.push(class),
            None => whole = false,
        }
    }
    whole.then_some(seen)
}

fn one(table: &Section<'_, '_>, link: &Link<'_>, points: CodePoints, seen: &[Class]) -> Option<Class> {
    let entry = table.need("name", "\"voice\"");
    let name = entry.as_ref().and_then(|e| values::name(e, "\"voice\""));
    let list = table.need("dscp", "[\"EF\"]").and_then(|e| code_points(&e, points, seen));
    let class = class(table, name.as_deref().unwrap_or(""), &["name", "dscp"], link);
    let (entry, name) = (entry?, name?);
    if [CONTROL, ASSURED, BEST_EFFORT].contains(&name.as_str()) || seen.iter().any(|c| c.name == name) {
        return entry.wrong(Wrong::new("another class has this name", "give each its own"));
    }
    Some(Class { dscp: list?, ..class? })
}

/// The code points of a class: none that another has.
fn code_points(entry: &Entry<'_, '_>, points: CodePoints, seen: &[Class]) -> Option<Vec<Dscp>> {
    let mut found = Vec::new();
    for element in entry.elements("a list such as [\"EF\"]")? {
        let dscp = values::dscp(&element)?;
        if points.colour(dscp).is_some() {
            let wrong =
                Wrong::new("this is a colour of the assured class", "leave it out, or change code_points");
            return element.wrong(wrong);
        }
        if let Some(other) = seen.iter().find(|c| c.dscp.contains(&dscp)) {
            let problem = format!("the class {} has it already", other.name);
            return element.wrong(Wrong::new(problem, "give each code point to one class"));
        }
        if !found.contains(&dscp) {
            found.push(dscp);
        }
    }
    if found.is_empty() {
        return entry
            .wrong(Wrong::new("a class without code points gets no packet", "write dscp = [\"EF\"]"));
    }
    Some(found)
}

/// Discipline, limit and set rate of a class.
pub(super) fn class(
    section: &Section<'_, '_>,
    name: &str,
    own: &[&'static str],
    link: &Link<'_>,
) -> Option<Class> {
    let others: Vec<&'static str> = own.iter().copied().chain(["limit", "rate"]).collect();
    let found = named::read(section, ("aqm", "queue discipline"), &others, &link.registry.aqms);
    let rate = match section.get("rate") {
        Some(e) => e.positive_rate().and_then(|rate| match link.rate {
            Some(whole) if rate > whole => {
                let problem = format!("a class can't be served faster than its direction, at {whole}");
                e.wrong(Wrong::new(problem, format!("write at most \"{whole}\", or leave rate out")))
            }
            _ => Some(Some(rate)),
        }),
        None => Some(None),
    };
    let served_at = rate.and_then(|r| r.or(link.rate));
    let limit = section.need("limit", "\"100 packets\"").and_then(|e| limit(&e, served_at, link.packet));
    let (found, rate, limit) = (found?, rate?, limit?);
    let place = Context { link_rate: served_at, contract: None, packet: link.packet, limit: Some(limit) };
    if !found.fits(&place, true) {
        return None;
    }
    let aqm = found.mechanism;
    if (aqm.build)(&aqm.values, &place).oracle().is_some() {
        no_oracle(section);
        return None;
    }
    Some(Class { name: name.to_owned(), dscp: Vec::new(), aqm, limit, rate })
}

/// A queue's limit: packets, bytes, or what drains in so long a time at the rate it is served at.
fn limit(entry: &Entry<'_, '_>, served_at: Option<Rate>, packet: Bytes) -> Option<Backlog> {
    if entry.as_text().is_none_or(|text| quantity::duration(text).is_err()) {
        return named::limit(entry, served_at, Some(packet));
    }
    let (time, rate) = (entry.positive_duration()?, served_at?);
    let bytes = (rate.0 as f64 * time.secs() / 8.0).floor();
    if bytes < packet.0 as f64 {
        let ms = (packet.0 as f64 * 8e3 / rate.0 as f64).ceil();
        let problem = format!("{bytes} B at {rate}: less than a full packet of {packet}");
        return entry.wrong(Wrong::new(problem, format!("write at least \"{ms} ms\"")));
    }
    if bytes > LARGEST_LIMIT {
        let problem = format!("{bytes} B at {rate}: more than a queue can hold");
        return entry.wrong(Wrong::new(problem, "write a shorter time"));
    }
    Some(Backlog::Bytes(bytes))
}

/// A marker of the registry.
pub(super) fn marker(
    entry: &Entry<'_, '_>,
    registry: &Registry,
    place: &Context,
) -> Option<Mechanism<AnyMarker>> {
    let section = named::open(entry, "kind", &registry.markers)?;
    let found: Found<'_, '_, AnyMarker> = named::read(&section, ("kind", "marker"), &[], &registry.markers)?;
    if !found.fits(place, true) {
        return None;
    }
    let marker = found.mechanism;
    if (marker.build)(&marker.values, place).oracle().is_some() {
        no_oracle(&section);
        return None;
    }
    Some(marker)
}

fn no_oracle(section: &Section<'_, '_>) {
    let problem = "it wants to be told what only a simulator knows";
    section.report().error(section.place(), problem, "choose the setting that estimates it from packets");
}

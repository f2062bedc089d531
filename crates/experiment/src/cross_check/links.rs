//! Cross-checks of what links are given beyond a rate, a delay and a queue: rates that change, turns, pauses.

use std::collections::BTreeSet;

use crate::text::{Location, Section};
use inprofile_core::params::Value;
use inprofile_core::units::{Bytes, Duration, Rate};
use inprofile_sim::access::Access;
use inprofile_sim::capacity::Capacity;
use inprofile_sim::network::Profile;

use crate::model::{Direction, Group, Model, Queue, Queues, Source, Turn, packet};
use crate::traffic::Traffic;

/// Rates that change under ns-2's clock, or before a discipline that compares its input with the first one (REM).
pub(super) fn changing_rates(root: &Section<'_, '_>, model: &Model) {
    let tables = root.get("links").and_then(|e| e.tables("[[links]]")).unwrap_or_default();
    for (link, table) in model.links.iter().zip(&tables) {
        for (direction, key) in link.directions.iter().zip(["capacity", "reverse.capacity"]) {
            let rem = |(queue, rate): &(&Queue, Rate)| {
                let by_rate = queue.aqm.values.get("mismatch") == Some(&Value::Choice("rate"));
                queue.aqm.name == "rem" && by_rate && *rate == direction.rate
            };
            if direction.capacity.is_some() && direction.queue.each(direction.rate).any(|each| rem(&each)) {
                let problem = format!(
                    "the rate changes, and rem with mismatch = \"rate\" compares its input with {} all the time: the queue comes to rest away from b_star",
                    direction.rate
                );
                let place = Location { quoted: false, ..table.locate(key) };
                root.report().warning(&place, problem, "write mismatch = \"backlog\"");
            }
        }
    }
    if model.profile != Profile::Ns2 {
        return;
    }
    let either = |has: fn(&Direction) -> bool| {
        model.links.iter().find(|link| link.directions.iter().any(has)).map(|link| link.name.as_str())
    };
    let changes = either(|d| d.capacity.is_some())
        .map(|name| (format!("that of {name} does"), "whose rate changes", "capacity"));
    let turns = either(|d| d.access.is_some())
        .map(|name| (format!("that of {name} does"), "that wait for their turn", "access and trace"));
    let varies = either(|d| !d.way.is_plain()).map(|name| {
        (format!("on {name}"), "on which delays vary or packets are lost", "jitter, delays and loss")
    });
    let paused = either(|d| d.pause.is_some())
        .map(|name| (format!("those to {name} are"), "that are paused", "pause"));
    let filtered =
        either(|d| d.ack_filter).map(|name| (format!("{name} has"), "with an ACK filter", "ack_filter"));
    for (how, which, keys) in changes.into_iter().chain(turns).chain(varies).chain(paused).chain(filtered) {
        let problem = format!("the ns2 engine profile has no links {which}, as {how}");
        let remedy = format!("write profile = \"exact\", or remove {keys}");
        root.report().error(&root.locate("engine.profile"), problem, remedy);
    }
}

/// Slots too short for the packets that cross the link: these would never be sent.
pub(super) fn short_slots(root: &Section<'_, '_>, model: &Model) {
    let tables = root.get("links").and_then(|e| e.tables("[[links]]")).unwrap_or_default();
    for at in 0..2 * model.links.len() {
        let direction = model.direction(at);
        let Some(Access::Slots(slots)) = direction.access.as_ref().map(Turn::access) else { continue };
        let at_link = at as u32;
        let data = model.groups.iter().filter(|g| g.route.path.contains(&at_link)).map(Group::packet);
        // An acknowledgement with all its options has 80 B.
        let answers = |g: &&Group| g.route.back.contains(&at_link) && !matches!(g.sends(), Traffic::Udp(_));
        let acks = model.groups.iter().filter(answers).map(|_| Bytes(80));
        let Some(largest) = data.chain(acks).max() else { continue };
        let takes = direction.rate.serialise(largest);
        let key = if at % 2 == 0 { "access.length" } else { "reverse.access.length" };
        if let Some(table) = tables.get(at / 2).filter(|_| takes > slots.length) {
            let problem = format!(
                "a packet of {largest} takes {takes} at {}: longer than a slot, so that it would never be sent",
                direction.rate
            );
            // Whole microseconds, which are not rounded away.
            let least = Duration(takes.0.div_ceil(1_000_000) * 1_000_000);
            root.report().error(&table.locate(key), problem, format!("write at least \"{least}\""));
        }
    }
}

/// Queues that pause links: too little room for what comes before these heed it, and classes, of which a pause knows nothing.
pub(super) fn headroom(root: &Section<'_, '_>, model: &Model) {
    let tables = root.get("links").and_then(|e| e.tables("[[links]]")).unwrap_or_default();
    for at in 0..2 * model.links.len() {
        let direction = model.direction(at);
        let (Some(pause), Some(table)) = (direction.pause, tables.get(at / 2)) else { continue };
        let key = if at % 2 == 0 { "pause" } else { "reverse.pause" };
        let place = Location { quoted: false, ..table.locate(key) };
        let Queues::One(queue) = &direction.queue else {
            let problem =
                "a link with classes pauses nobody: all packets of a paused link are of one priority";
            let remedy = "give the class that must lose nothing a link of its own, of its class's rate and with this pause; or remove pause";
            root.report().error(&place, problem, remedy);
            continue;
        };
        let largest = model.groups.iter().map(Group::packet).max().unwrap_or(packet(&model.tcp));
        let needed = pause.most(&ingress(model, at as u32), largest).0;
        if begins_here(model, at as u32) {
            let problem = "no pause reaches what begins at the node before it (acknowledgements, too): it takes room beyond that of the links";
            root.report().warning(
                &place,
                problem,
                "leave room for it, or let it come from a node of its own, over a link",
            );
        }
        if let Some(before) = varying_before(model, at as u32) {
            let problem = format!(
                "delays vary on {before}, so that more may be on the way when it is paused than its rate and delay tell"
            );
            root.report().warning(
                &place,
                problem,
                "leave room for it: look at ingress_most in the result's stats",
            );
        }
        let limit = queue.limit.bytes(largest);
        if limit < needed as f64 {
            let problem = format!(
                "the queue holds {} and loses what comes before all links have paused: {} for xoff and headroom of each (what is on the way \
                 there and back, and two packets)",
                Bytes(limit as u64),
                Bytes(needed)
            );
            root.report().warning(
                &place,
                problem,
                format!("write limit = \"{}\" or more, or a smaller xoff", Bytes(needed)),
            );
        }
    }
}

/// Whether packets begin at the start of a link, and not at a host that joins it there.
fn begins_here(model: &Model, link: u32) -> bool {
    model.groups.iter().any(|g| {
        let joins = matches!(g.source, Source::Hosts(_));
        let answers = !matches!(g.sends(), Traffic::Udp(_));
        g.route.path.first() == Some(&link) && !joins || answers && g.route.back.first() == Some(&link)
    })
}

/// A link over which packets come to a link and on which delays vary.
fn varying_before(model: &Model, link: u32) -> Option<String> {
    let routes = model.groups.iter().flat_map(|g| [&g.route.path, &g.route.back]);
    let mut before = routes.flat_map(|route| route.windows(2).filter(|two| two[1] == link).map(|two| two[0]));
    let varies = |l: &u32| {
        let way = &model.direction(*l as usize).way;
        way.jitter.is_some() || way.delays.is_some()
    };
    before.find(varies).map(|l| model.direction_name(l as usize))
}

/// The links over which packets come to a link: rate and delay of each.
fn ingress(model: &Model, link: u32) -> Vec<(Rate, Duration)> {
    let mut links = Vec::new();
    let mut known = BTreeSet::new();
    for group in &model.groups {
        for route in [&group.route.path, &group.route.back] {
            let Some(place) = route.iter().position(|l| *l == link) else { continue };
            if let Some(before) = place.checked_sub(1).map(|before| route[before]) {
                let direction = model.direction(before as usize);
                if known.insert(before) {
                    let highest =
                        direction.capacity.iter().flat_map(Capacity::rates).fold(direction.rate, Rate::max);
                    links.push((highest, direction.delay));
                }
            } else if let (Source::Hosts(join), true) = (&group.source, route == &group.route.path) {
                let up = |i| group.route.joining(join.rtt.get(i)).unwrap_or_default().0;
                links.extend((0..group.count).map(|i| (join.rate, up(i))));
            }
        }
    }
    links
}

//! Cross-checks on the complete experiment: warnings of what can be run but may not be meant, and errors for what
//! cannot be run.

mod links;

use std::collections::BTreeSet;

use crate::text::{Location, Section};
use inprofile_core::params::{Context, Value};
use inprofile_core::units::{Bytes, Duration, Rate};
use inprofile_sim::capacity::Capacity;
use inprofile_sim::network::Profile;
use inprofile_sim::tcp;

use crate::model::{
    Direction, Group, MAX_CLASSES, MAX_MEASURED, MAX_OBJECTS, MAX_SAMPLES, Model, Queue, Signals, Source,
    Target, packet,
};
use crate::traffic::Traffic;

/// Segments that a connection can number: the ns-2 profile counts in signed 32 bits.
const MAX_SEGMENTS: u128 = 1 << 31;

/// Reports an error or a warning for each.
pub(crate) fn check(root: &Section<'_, '_>, model: &Model) {
    unnumberable_segments(root, model);
    oversold(root, model);
    idle_edges(root, model);
    unconnected_signals(root, model);
    classes(root, model);
    l4s_without_l4s(root, model);
    measured(root, model);
    requests(root, model);
    links::changing_rates(root, model);
    links::short_slots(root, model);
    links::headroom(root, model);
    line_rates(root, model);
    never_there(root, model);
    crate::lockstep::check(root, model);
    crate::read::plan::check(root, model);
}

/// Pages of the web whose connections do not come out even, and applications that have to be told when a transfer is done, which ns-2's TCP does not.
fn requests(root: &Section<'_, '_>, model: &Model) {
    let tables = root.get("flows").and_then(|e| e.tables("[[flows]]")).unwrap_or_default();
    for (group, table) in model.groups.iter().zip(&tables) {
        let sends = group.sends();
        if let Traffic::Web(web) = sends
            && !group.count.is_multiple_of(web.connections as usize)
        {
            let (n, each) = (group.count, web.connections as usize);
            let place =
                if table.get("count").is_some() { table.locate("count") } else { table.place().clone() };
            let problem = format!("{n} connections are no whole number of pages of {each} connections");
            root.report().error(&place, problem, format!("count = {}", n.next_multiple_of(each).max(each)));
        }
        if let Traffic::Web(web) = sends {
            let objects = (group.count / web.connections as usize) as u64 * u64::from(web.objects);
            if objects > MAX_OBJECTS {
                let problem = format!("{objects} objects on all pages; the maximum is {MAX_OBJECTS}");
                root.report().error(
                    &table.locate("traffic"),
                    problem,
                    "write fewer objects, or a smaller count",
                );
            }
        }
        if matches!(sends, Traffic::Web(_) | Traffic::Video(_)) && group.tcp.profile == tcp::Profile::Ns2 {
            let problem = format!("{} needs TCP by the RFCs, or as Linux has it", group.traffic.name);
            let remedy = "write tcp = { profile = \"rfc\" } or \"linux\" in this group, and no ns2 profile for the engine";
            root.report().error(&table.locate("traffic"), problem, remedy);
        }
    }
}

/// DCQCN senders that begin at a rate which their port does not have, and wait in its queue.
fn line_rates(root: &Section<'_, '_>, model: &Model) {
    let tables = root.get("flows").and_then(|e| e.tables("[[flows]]")).unwrap_or_default();
    for (group, table) in model.groups.iter().zip(&tables) {
        let port = match (&group.source, group.route.path.first()) {
            (Source::Hosts(join), _) => join.rate,
            (_, Some(first)) => model.direction(*first as usize).rate,
            _ => continue,
        };
        let Some(line) = group.tcp.settings.line_rate else { continue };
        let dcqcn = group.tcp.congestion == tcp::Congestion::Linux(tcp::control::Kind::Dcqcn);
        if !dcqcn || matches!(group.sends(), Traffic::Udp(_)) || line <= port {
            continue;
        }
        let problem = format!(
            "{} has a port of {port}, but DCQCN's line_rate is {line}: its packets wait in its own queue",
            group.name
        );
        let place = if table.get("tcp").is_some() { table.locate("tcp") } else { table.place().clone() };
        root.report().warning(
            &Location { quoted: false, ..place },
            problem,
            format!("write line_rate = \"{port}\""),
        );
    }
}

/// L4S traffic in queues that know nothing of it: where they mark, they mark it as seldom as they would drop (RFC 3168 §5), and its
/// senders, which answer a mark by far less than Classic ones do, take the link (RFC 9331 §5.1); where the slowest link on the way
/// doesn't mark, their code point means nothing.
fn l4s_without_l4s(root: &Section<'_, '_>, model: &Model) {
    let tables = root.get("flows").and_then(|e| e.tables("[[flows]]")).unwrap_or_default();
    for (group, table) in model.groups.iter().zip(&tables).filter(|(g, _)| g.sends_ect1()) {
        let path = || group.route.path.iter().map(|w| *w as usize);
        let slowest = path().min_by_key(|w| model.direction(*w).rate);
        for at in path() {
            let direction = model.direction(at);
            let own = direction.queue.classes().iter().position(|c| Some(&c.name) == group.class.as_ref());
            let Some((queue, rate)) = direction.queue.each(direction.rate).nth(own.unwrap_or(0)) else {
                continue;
            };
            let context = Context { link_rate: Some(rate), limit: Some(queue.limit), ..model.context() };
            let mechanism = (queue.aqm.build)(&queue.aqm.values, &context);
            if mechanism.l4s() {
                continue;
            }
            let (name, link, aqm) = (&group.name, model.direction_name(at), queue.aqm.name);
            let off = queue.aqm.values.get("l4s") == Some(&Value::Flag(false));
            let problem = if off {
                format!(
                    "{name} sends ECT(1), but {aqm} at {link} has l4s = false: it treats ECT(1) as Not-ECT and drops where it would mark"
                )
            } else if mechanism.marks() {
                format!(
                    "{name} sends ECT(1), but {aqm} at {link} marks it like ECT(0): L4S flows would take far more than their share there"
                )
            } else if slowest == Some(at) {
                format!(
                    "{name} sends ECT(1), but {aqm} at {link} does not mark: its packets are dropped as if they were not ECN-capable"
                )
            } else {
                continue;
            };
            let udp = matches!(group.sends(), Traffic::Udp(_));
            let other = if udp {
                "ecn = \"ect0\" in the traffic"
            } else {
                "congestion = \"cubic\" in the group's tcp"
            };
            let l4s = if off { "l4s = true" } else { "aqm = \"dualpi2\" there, which has a queue for L4S" };
            let remedy = format!("write {l4s}, or {other}");
            let key = if udp { "traffic" } else { "tcp" };
            let place = if table.get(key).is_some() { table.locate(key) } else { table.place().clone() };
            root.report().warning(&Location { quoted: false, ..place }, problem, remedy);
        }
    }
}

/// Distributions of more flows than memory may hold, and more periods than samples may be taken.
fn measured(root: &Section<'_, '_>, model: &Model) {
    let Some(distributions) = model.distributions else { return };
    let flows = model.flows();
    if flows > MAX_MEASURED {
        let problem = format!("{flows} flows; delays of at most {MAX_MEASURED} are measured");
        let remedy = "remove distributions and every, or write smaller counts";
        root.report().error(&root.locate("measure.distributions"), problem, remedy);
    }
    let rows = (model.groups.len() + 2 * model.links.len()) as u64;
    if let Some(every) = distributions.every {
        let samples = ((model.window.1 - model.window.0).0 / every.0).saturating_mul(rows);
        if samples > MAX_SAMPLES {
            let problem = format!("groups and links get {samples} figures; the maximum is {MAX_SAMPLES}");
            root.report().error(&root.locate("measure.every"), problem, "write a longer time");
        }
    }
}

/// Schedulers under ns-2's order of events, more classes than a packet can carry, and classes that no scheduler serves.
fn classes(root: &Section<'_, '_>, model: &Model) {
    let report = root.report();
    let directions = || model.links.iter().flat_map(|l| &l.directions);
    let names: BTreeSet<&str> =
        directions().flat_map(|w| w.queue.classes()).map(|c| c.name.as_str()).collect();
    if !names.is_empty() && model.profile == Profile::Ns2 {
        let problem = "the ns2 engine profile has no schedulers";
        report.error(
            &root.locate("engine.profile"),
            problem,
            "write profile = \"exact\", or queues without classes",
        );
    }
    if names.len() > MAX_CLASSES {
        let place = Location { quoted: false, ..root.locate("links") };
        let problem = format!("{} classes in total; the maximum is {MAX_CLASSES}", names.len());
        report.error(&place, problem, "give classes that are served alike the same name at each link");
    }
    let tables = root.get("flows").and_then(|e| e.tables("[[flows]]")).unwrap_or_default();
    for (group, table) in model.groups.iter().zip(&tables).filter(|(g, _)| g.class.is_some()) {
        let mut crossed = group.route.path.iter().chain(&group.route.back);
        if !crossed.any(|w| !model.direction(*w as usize).queue.classes().is_empty()) {
            let problem = format!("no link on the route of {} has classes: class has no effect", group.name);
            report.warning(&table.locate("class"), problem, "remove class, or give a link a scheduler");
        }
    }
}

/// A connection that could send more segments than can be numbered, at the rate of the slowest link on its route.
fn unnumberable_segments(root: &Section<'_, '_>, model: &Model) {
    for group in model.groups.iter().filter(|g| !matches!(g.sends(), Traffic::Udp(_))) {
        let links = group.route.path.iter().map(|&direction| model.direction(direction as usize).rate.0);
        let join = match &group.source {
            Source::Hosts(join) => Some(join.rate.0),
            Source::Node(_) => None,
        };
        let slowest = links.chain(join).min().unwrap_or(0);
        let packet = u128::from(group.tcp.packet());
        // Bits times picoseconds.
        let sent = u128::from(slowest) * u128::from(model.duration.0) / (8 * packet * 1_000_000_000_000);
        if sent >= MAX_SEGMENTS {
            let problem = format!(
                "a flow of {} could send {sent} segments; at most {MAX_SEGMENTS} can be numbered",
                group.name
            );
            root.report().error(
                &root.locate("duration"),
                problem,
                "write a shorter duration or larger segments",
            );
            return;
        }
    }
}

/// Packets that are still on their way when the run ends, however early they leave.
fn never_there(root: &Section<'_, '_>, model: &Model) {
    let tables = root.get("flows").and_then(|e| e.tables("[[flows]]")).unwrap_or_default();
    let fastest = |d: &Direction| d.capacity.iter().flat_map(Capacity::rates).max().unwrap_or(d.rate);
    for (group, table) in model.groups.iter().zip(&tables).filter(|(g, _)| g.count > 0) {
        let packet = match group.sends() {
            Traffic::Udp(udp) => Bytes(u64::from(udp.smallest())),
            _ => group.packet(),
        };
        let step = |at: &u32| {
            let (at, d) = (*at as usize, model.direction(*at as usize));
            (model.direction_name(at), fastest(d), d.delay + fastest(d).serialise(packet))
        };
        let mut steps: Vec<(String, Rate, Duration)> = group.route.path.iter().map(step).collect();
        if let Source::Hosts(join) = &group.source {
            steps.push(("its access link".to_owned(), join.rate, join.rate.serialise(packet)));
        }
        let takes: Duration = steps.iter().map(|step| step.2).sum();
        let Some((name, rate, longest)) = steps.into_iter().max_by_key(|step| step.2) else { continue };
        if takes < model.duration {
            continue;
        }
        let problem = format!(
            "a packet of {packet} takes {takes}, {longest} of it at {name} ({rate}), and the run ends at {}: none arrives",
            model.duration
        );
        let remedy = "write a longer duration, a higher rate or smaller packets";
        root.report().warning(&Location { quoted: false, ..table.place().clone() }, problem, remedy);
    }
}

/// Contracts that the measured link cannot keep all at once, and a measured link that no flow crosses.
fn oversold(root: &Section<'_, '_>, model: &Model) {
    let crosses = |g: &&Group| g.route.path.contains(&(model.at as u32));
    let direction = model.direction(model.at);
    // Where the rate changes, contracts have to be kept at the lowest, too.
    let rate = direction.usable(packet(&model.tcp));
    let link = model.direction_name(model.at);
    let report = root.report();
    if !model.groups.iter().any(|g| crosses(&g)) {
        let place = root.locate("measure.at");
        let problem = format!("no flow's data crosses the measured link {link}");
        report.warning(&place, problem, "name a link on the route of the flows: at = \"…\"");
        return;
    }
    let promised: u128 = model
        .groups
        .iter()
        .filter(crosses)
        .flat_map(|g| (0..g.count).filter_map(|i| g.contract(i)))
        .map(|r| u128::from(r.0))
        .sum();
    if promised > u128::from(rate.0) {
        let place = Location { quoted: false, ..root.locate("flows") };
        let sum =
            u64::try_from(promised).map_or_else(|_| format!("{promised} bit/s"), |r| Rate(r).to_string());
        let problem =
            format!("contracts add up to {sum}, more than the {rate} of {link}: not all can be kept");
        report.warning(
            &place,
            problem,
            "lower the contracts or raise the rate, unless this is what is studied",
        );
    }
}

/// Mechanisms whose signals go nowhere, and signal paths whose sender sends none.
fn unconnected_signals(root: &Section<'_, '_>, model: &Model) {
    let context = model.context();
    let mut senders: Vec<(Target, &str, bool)> = Vec::new();
    for (i, edge) in model.edges.iter().enumerate() {
        let m = &edge.marker;
        senders.push((Target::Edge(i), m.name, (m.build)(&m.values, &model.edge_context(edge)).sends()));
    }
    for (i, group) in model.groups.iter().enumerate() {
        if let Some(m) = &group.marker {
            let context = Context {
                contract: (group.count > 0).then(|| group.contract(0)).flatten(),
                packet: group.packet(),
                ..context
            };
            senders.push((Target::Group(i), m.name, (m.build)(&m.values, &context).sends()));
        }
    }
    for i in 0..2 * model.links.len() {
        let direction = model.direction(i);
        let each = direction.queue.each(direction.rate).map(|(Queue { aqm, limit, .. }, rate)| {
            let context = Context { link_rate: Some(rate), limit: Some(*limit), ..context };
            (aqm.name, (aqm.build)(&aqm.values, &context).sends())
        });
        // The classes of a link are connected together: it is enough that one sends.
        if let Some((name, sends)) = each.max_by_key(|(_, sends)| *sends) {
            senders.push((Target::Queue(i), name, sends));
        }
    }
    let place = Location { quoted: false, ..root.locate("signals") };
    for (target, kind, sends) in senders {
        let own = |s: &&Signals| match (s.from, target) {
            (Target::Flow(g, _), Target::Group(group)) => g == group,
            (from, target) => from == target,
        };
        let name = model.target_name(target);
        match (sends, model.signals.iter().any(|s| own(&s))) {
            (true, false) => {
                let problem = format!("the {kind} at {name} sends signals, but no [[signals]] says to whom");
                root.report().warning(&place, problem, format!("add [[signals]] with from = \"{name}\""));
            }
            (false, true) => {
                let problem = format!("the {kind} at {name} sends no signals");
                root.report().warning(&place, problem, "name a mechanism that sends signals");
            }
            _ => {}
        }
    }
}

/// Edges that no data passes.
fn idle_edges(root: &Section<'_, '_>, model: &Model) {
    let entered: BTreeSet<u32> = model.groups.iter().flat_map(|g| g.passes(&model.links)).collect();
    let tables = root.get("edges").and_then(|e| e.tables("[[edges]]")).unwrap_or_default();
    for (edge, table) in model.edges.iter().zip(&tables).filter(|(e, _)| !entered.contains(&e.node)) {
        let node = &model.nodes[edge.node as usize];
        let problem = format!("no data enters {node} from a link and goes on: its marker has nothing to do");
        root.report().warning(table.place(), problem, "name a node on the route of the flows");
    }
}

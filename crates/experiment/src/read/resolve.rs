//! Puts the parts together: resolves names to numbers, finds the routes of flows, computes the delays of access links.

use std::collections::BTreeMap;

use crate::text::{Location, Report, Section};
use inprofile_core::params::Context;
use inprofile_core::registry::AnyMarker;
use inprofile_core::units::{Bytes, Duration, Time};

use crate::model::{
    Direction, Distributions, Edge, Group, Join, Link, Monitor, Queues, Route, Signals, Source, marked_at,
    packet,
};
use crate::read::Scope;
use crate::read::flows;
use crate::read::links;
use crate::read::names::Names;
use crate::read::points::{EdgeDraft, Measure, MonitorDraft};
use crate::read::topology::Topology;
use crate::read::{classes, monitors, signals};
use crate::routes::{RouteSearch, Tree, reversed};
use crate::traffic::{Traffic, no_context};

/// All parts, complete.
pub(crate) struct Resolved {
    pub window: Option<(Time, Time)>,
    pub at: Option<usize>,
    pub distributions: Option<Option<Distributions>>,
    pub nodes: Vec<String>,
    pub links: Vec<Link>,
    pub groups: Vec<Group>,
    pub edges: Vec<Edge>,
    pub signals: Vec<Signals>,
    pub monitors: Vec<Monitor>,
}

/// All parts as read; `None`: the list could not be read.
pub(crate) struct Drafts<'d, 'r> {
    pub links: Vec<links::Draft>,
    pub groups: Option<Vec<flows::Draft<'d, 'r>>>,
    pub edges: Option<Vec<EdgeDraft<'d, 'r>>>,
    pub signals: Option<Vec<signals::Draft<'d, 'r>>>,
    pub monitors: Option<Vec<MonitorDraft>>,
    pub measure: Measure,
    pub duration: Option<Duration>,
}

/// Puts everything together; `None` if anything was reported on the way.
pub(crate) fn all<'d, 'r>(
    root: &Section<'d, 'r>,
    scope: Scope<'_>,
    drafts: Drafts<'d, 'r>,
) -> Option<Resolved> {
    let Drafts { links, groups, edges, signals, monitors, measure, duration } = drafts;
    let topology = Topology::new(root.report(), &links);
    let directions: Vec<Option<&[Direction; 2]>> = links.iter().map(|l| l.directions.as_ref()).collect();
    let group_names = groups.as_ref().map(|g| claim_groups(root, g));
    let counts: Option<Vec<Option<usize>>> = groups.as_ref().map(|g| g.iter().map(|d| d.count).collect());
    let edges = edges.map(|e| place_edges(&topology, e));
    let monitors = monitors.zip(counts).zip(group_names.as_ref()).map(|((drafts, counts), groups)| {
        let seen = monitors::Seen {
            topology: &topology,
            groups,
            counts: &counts,
            edges: edges.as_ref().map(|e| &e.names),
        };
        monitors::monitors(&seen, &directions, drafts, duration)
    });
    let at = monitors::measured(&topology, &directions, measure.at);
    let groups = groups.and_then(|drafts| place_groups(&topology, &directions, drafts));
    let links = links
        .into_iter()
        .zip(&topology.ends)
        .map(|(draft, ends)| {
            Some(Link { name: draft.name?.value, ends: (*ends)?, directions: draft.directions? })
        })
        .collect::<Option<Vec<Link>>>()?;
    let groups = groups?;
    let Edges { names: edge_names, edges } = edges?;
    let edges = edge_markers(scope, &groups, &links, edges?)?;
    let edge_nodes: Vec<u32> = edges.iter().map(|e| e.node).collect();
    let ends = signals::Ends {
        topology: &topology,
        links: &links,
        groups: &groups,
        group_names: &group_names?,
        edges: &edge_names,
        edge_nodes: &edge_nodes,
    };
    let signals = signals::resolve(&ends, &topology.graph(), signals?)?;
    Some(Resolved {
        window: measure.window,
        at,
        distributions: measure.distributions,
        nodes: topology.node_names,
        links,
        groups,
        edges,
        signals,
        monitors: monitors??,
    })
}

/// Claims each group's name, and counts the flows.
fn claim_groups(root: &Section<'_, '_>, drafts: &[flows::Draft<'_, '_>]) -> Names {
    let mut names = Names::default();
    for (i, draft) in drafts.iter().enumerate() {
        match &draft.name {
            Some(name) => names.claim(root.report(), name, i, "a group of flows"),
            None => names.incomplete(),
        }
    }
    let total: u64 = drafts.iter().filter_map(|d| d.count).map(|n| n as u64).sum();
    if total == 0 && drafts.iter().all(|d| d.count.is_some()) {
        let place = Location { quoted: false, ..root.locate("flows") };
        root.report().error(&place, "there are no flows at all", "give one group a count above 0");
    }
    names
}

/// Edges, and their numbers by node.
struct Edges<'d, 'r> {
    names: Names,
    edges: Option<Vec<(u32, ParsedMarker<'d, 'r>)>>,
}

/// A marker as read.
type ParsedMarker<'d, 'r> = crate::text::named::ParsedMechanism<'d, 'r, AnyMarker>;

fn place_edges<'d, 'r>(topology: &Topology<'_, '_>, drafts: Vec<EdgeDraft<'d, 'r>>) -> Edges<'d, 'r> {
    let mut names = Names::default();
    let mut edges = Some(Vec::with_capacity(drafts.len()));
    for (i, draft) in drafts.into_iter().enumerate() {
        if draft.node.is_none() {
            names.incomplete();
        }
        let node = draft.node.as_ref().and_then(|name| {
            names.claim(topology.report, name, i, "an edge");
            topology.node(name)
        });
        match (node.zip(draft.marker), &mut edges) {
            (Some(edge), Some(all)) => all.push(edge),
            _ => edges = None,
        }
    }
    Edges { names, edges }
}

/// Checks the marker of each edge for the packets that it marks. What keeps only the packets of some flows from ever being IN is a
/// warning.
fn edge_markers(
    scope: Scope<'_>,
    groups: &[Group],
    links: &[Link],
    edges: Vec<(u32, ParsedMarker<'_, '_>)>,
) -> Option<Vec<Edge>> {
    let mut good = Some(Vec::with_capacity(edges.len()));
    for (node, found) in edges {
        let at = |packet| Context { link_rate: None, contract: None, packet, limit: None };
        let marked = || marked_at(groups, links, node);
        let largest = marked().map(Group::packet).max().or(scope.tcp.map(packet))?;
        let faulty = |g: &&Group| found.check(&at(g.packet())).is_err();
        let fits = match found.check(&at(largest)) {
            Err(fault) if !marked().all(|g| faulty(&g)) => {
                let whose: Vec<&str> = marked().filter(faulty).map(|g| g.name.as_str()).take(20).collect();
                found.warn_of(fault, &whose.join(", "));
                true
            }
            _ => found.fits(&at(largest), true),
        };
        match (fits, &mut good) {
            (true, Some(all)) => all.push(Edge { node, marker: found.mechanism }),
            _ => good = None,
        }
    }
    good
}

/// Gives each group its route, checks its round trips and its marker.
fn place_groups(
    topology: &Topology<'_, '_>,
    directions: &[Option<&[Direction; 2]>],
    drafts: Vec<flows::Draft<'_, '_>>,
) -> Option<Vec<Group>> {
    let graph = topology.graph();
    // One search per source, whatever the number of groups.
    let mut by_source: BTreeMap<u32, Vec<(usize, u32)>> = BTreeMap::new();
    for (i, draft) in drafts.iter().enumerate() {
        let entry = match &draft.source {
            Some(flows::Source::Node(name)) => topology.node(name),
            Some(flows::Source::Hosts(join)) => join.node.as_ref().and_then(|n| topology.node(n)),
            None => None,
        };
        let to = draft.to.as_ref().and_then(|name| topology.node(name));
        if let (Some(entry), Some(to)) = (entry, to) {
            by_source.entry(entry).or_default().push((i, to));
        }
    }
    let mut paths: Vec<Option<(u32, u32, Vec<u32>)>> = drafts.iter().map(|_| None).collect();
    for (source, wanted) in by_source {
        let tree = graph.from(source);
        for (i, to) in wanted {
            paths[i] = path(topology, &tree, source, to, &drafts[i]).map(|p| (source, to, p));
        }
    }
    let mut groups = Some(Vec::with_capacity(drafts.len()));
    for (draft, path) in drafts.into_iter().zip(paths) {
        match (group(topology, directions, draft, path), &mut groups) {
            (Some(group), Some(all)) => all.push(group),
            _ => groups = None,
        }
    }
    groups
}

/// The one shortest path, or a report.
fn path(
    topology: &Topology<'_, '_>,
    tree: &Tree,
    from: u32,
    to: u32,
    draft: &flows::Draft<'_, '_>,
) -> Option<Vec<u32>> {
    let place = draft.to.as_ref().map_or(draft.section.place(), |t| &t.place);
    let name = |node: u32| topology.node_names[node as usize].as_str();
    match tree.to(to) {
        RouteSearch::Route(path) => {
            if path.is_empty() && matches!(draft.source, Some(flows::Source::Node(_))) {
                topology.report.error(place, "the flow ends where it starts", "name another node");
                return None;
            }
            Some(path)
        }
        RouteSearch::Tie(one, other) => {
            let problem = format!(
                "two routes from {} to {} are equally short: {}; and {}",
                name(from),
                name(to),
                topology.spell(&one),
                topology.spell(&other)
            );
            let remedy = "remove one of the links, or put another node into one of the routes; \
                          for a link's own reverse direction write reverse = { … }";
            topology.report.error(place, problem, remedy);
            None
        }
        RouteSearch::Nothing if !topology.is_complete() => None,
        RouteSearch::Nothing => {
            let near: Vec<&str> = tree.reached().filter(|n| *n != from).take(20).map(name).collect();
            let problem = format!("no links lead from {} to {}", name(from), name(to));
            let remedy = format!("add a link; links from {} lead to: {}", name(from), near.join(", "));
            topology.report.error(place, problem, remedy);
            None
        }
    }
}

fn group(
    topology: &Topology<'_, '_>,
    directions: &[Option<&[Direction; 2]>],
    draft: flows::Draft<'_, '_>,
    path: Option<(u32, u32, Vec<u32>)>,
) -> Option<Group> {
    let marker_good = marker_fits(&draft);
    let (entry, to, path) = path?;
    let route = route(directions, path)?;
    let crossed = route.path.iter().chain(&route.back);
    let crossed = crossed.filter_map(|w| {
        Some((topology.direction_name(*w), &directions[*w as usize / 2]?[*w as usize % 2].queue))
    });
    let class = class_of(topology.report, &draft, crossed);
    let source = match draft.source? {
        flows::Source::Node(_) => Source::Node(entry),
        flows::Source::Hosts(join) => {
            let (rtt, place) = join.rtt?;
            let count = draft.count?;
            long_enough(topology.report, &route, &rtt, count, &place)?;
            Source::Hosts(Join { node: entry, rate: join.rate?, queue: join.queue?, rtt })
        }
    };
    if !marker_good {
        return None;
    }
    Some(Group {
        class: class?,
        name: draft.name?.value,
        count: draft.count?,
        source,
        to,
        start: draft.start?,
        contract: draft.contract?,
        marker: draft.marker?.map(|m| m.mechanism),
        stop: draft.stop?,
        traffic: draft.traffic?,
        tcp: draft.tcp?,
        route,
    })
}

/// The class of a group of flows, given the queues they cross in both directions: every scheduler must have it. `None` if
/// something was reported.
fn class_of<'q>(
    report: &Report<'_>,
    draft: &flows::Draft<'_, '_>,
    crossed: impl Iterator<Item = (String, &'q Queues)>,
) -> Option<Option<String>> {
    let given = draft.class.as_ref()?;
    for (link, queues) in crossed.filter(|(_, q)| !q.classes().is_empty()) {
        match given {
            Some(name) => {
                classes::find(report, &name.place, &link, queues.classes(), &name.value)?;
            }
            None => {
                let all: Vec<String> =
                    queues.classes().iter().take(20).map(|c| format!("class = \"{}\"", c.name)).collect();
                let problem = format!("the flows cross {link}, which has classes, but have no class");
                let place = Location { quoted: false, ..draft.section.place().clone() };
                report.error(&place, problem, format!("write {}", all.join(" or ")));
                return None;
            }
        }
    }
    Some(given.as_ref().map(|name| name.value.clone()))
}

/// Sums the delays of a path and of the same links backwards.
fn route(directions: &[Option<&[Direction; 2]>], path: Vec<u32>) -> Option<Route> {
    let back = reversed(&path);
    let sum = |path: &[u32]| -> Option<Duration> {
        path.iter().map(|w| directions[*w as usize / 2].map(|pair| pair[*w as usize % 2].delay)).sum()
    };
    Some(Route { delay: sum(&path)?, back_delay: sum(&back)?, path, back })
}

/// Half of each round-trip time must cover the delays of the links in that direction; the access link gets the rest.
fn long_enough(
    report: &Report<'_>,
    route: &Route,
    rtt: &crate::model::PerFlow<Duration>,
    count: usize,
    entry: &crate::text::Entry<'_, '_>,
) -> Option<()> {
    let least = Duration(2 * route.delay.0.max(route.back_delay.0));
    let Some(short) = (0..count).find(|i| route.joining(rtt.get(*i)).is_none()) else { return Some(()) };
    let elements = if entry.is_list() { entry.elements("")? } else { Vec::new() };
    let place = elements.get(short).map_or(entry.place(), |e| e.place());
    let problem = format!(
        "a round-trip time of {} is too short: the links of the route alone take {} there and {} back",
        rtt.get(short),
        route.delay,
        route.back_delay
    );
    report.error(place, problem, format!("write at least \"{least}\", or shorter delays"));
    None
}

/// Checks the marker for each flow; reports the first fault, and the warnings for the first flow.
fn marker_fits(draft: &flows::Draft<'_, '_>) -> bool {
    let (Some(Some(found)), Some(contract), Some(tcp), Some(count), Some(traffic)) =
        (&draft.marker, &draft.contract, &draft.tcp, draft.count, &draft.traffic)
    else {
        return true;
    };
    let packet = match (traffic.build)(&traffic.values, &no_context()) {
        Traffic::Udp(udp) => Bytes(u64::from(udp.largest())),
        Traffic::Bulk | Traffic::Transfer(..) | Traffic::Web(_) | Traffic::Video(_) => packet(tcp),
    };
    let different = contract.as_ref().map_or(1, |c| c.distinct().len());
    (0..different.min(count)).all(|i| {
        let contract = contract.as_ref().map(|c| c.get(i));
        let context = Context { link_rate: None, contract, packet, limit: None };
        found.fits(&context, i == 0)
    })
}

//! `[[signals]]`: which mechanism sends its signals to which, with what delay and what loss.

use crate::text::nearest::suggest;
use crate::text::problem::Wrong;
use crate::text::{Location, Section};
use inprofile_core::units::Duration;

use crate::model::{At, Delay, Group, Link, MAX_FLOWS, Signals, Target};
use crate::read::classes;
use crate::read::names::Names;
use crate::read::topology::Topology;
use crate::routes::{Graph, RouteSearch};

/// A connection as read; a field is `None` if it was invalid, which has been reported.
pub(crate) struct Draft<'d, 'r> {
    section: Section<'d, 'r>,
    from: Option<At<String>>,
    to: Option<At<String>>,
    loss: Option<f64>,
    /// The delay that was set; `Some(None)`: none was, and the route decides.
    delay: Option<Option<Duration>>,
}

/// Reads one connection.
pub(crate) fn read<'d, 'r>(section: &Section<'d, 'r>) -> Draft<'d, 'r> {
    section.refuse_unknown(&["from", "to", "loss", "delay"]);
    let end = |key: &str, example: &str| {
        let entry = section.need(key, example)?;
        let text = entry.text("a name in quotes")?;
        Some(At { value: text.to_owned(), place: entry.place().clone() })
    };
    let loss = match section.get("loss") {
        Some(entry) => entry.number().and_then(|p| {
            if (0.0..=1.0).contains(&p) {
                return Some(p);
            }
            entry.wrong(Wrong::new("a probability is from 0 to 1", "write loss = 0.1"))
        }),
        None => Some(0.0),
    };
    let delay = match section.get("delay") {
        Some(entry) => entry.duration().map(Some),
        None => Some(None),
    };
    Draft {
        from: end("from", "\"ER\", an edge's node; or a group of flows; or a link"),
        to: end("to", "\"bottleneck\", a link; or an edge's node; or a group of flows"),
        section: section.clone(),
        loss,
        delay,
    }
}

/// Everything that a connection may name.
pub(crate) struct Ends<'a, 'd, 'r> {
    pub topology: &'a Topology<'d, 'r>,
    pub links: &'a [Link],
    pub groups: &'a [Group],
    pub group_names: &'a Names,
    pub edges: &'a Names,
    /// Nodes of the edges.
    pub edge_nodes: &'a [u32],
}

/// Finds every connection's ends and delay; `None` if anything was reported.
pub(crate) fn resolve(
    ends: &Ends<'_, '_, '_>,
    graph: &Graph,
    drafts: Vec<Draft<'_, '_>>,
) -> Option<Vec<Signals>> {
    let report = ends.topology.report;
    let mut paths: u64 = 0;
    let mut all = Some(Vec::with_capacity(drafts.len()));
    for draft in drafts {
        let from = draft.from.as_ref().and_then(|name| ends.find(name));
        let to = draft.to.as_ref().and_then(|name| ends.find(name));
        let joined = from.zip(to).and_then(|(from, to)| {
            if let Target::Class(link, _) = from {
                let place = draft.from.as_ref().map_or(draft.section.place(), |name| &name.place);
                report.error(
                    place,
                    "the classes of a link send their signals together",
                    format!("write \"{}\"", ends.topology.direction_name(link as u32)),
                );
                return None;
            }
            if from == to {
                let remedy = "name two mechanisms";
                report.error(draft.section.place(), "the signals end where they start", remedy);
                return None;
            }
            let before = paths;
            paths = paths.saturating_add(ends.count(from).saturating_mul(ends.count(to)));
            if paths > MAX_FLOWS && before <= MAX_FLOWS {
                let problem =
                    format!("{paths} pairs of mechanisms are connected; the maximum is {MAX_FLOWS}");
                report.error(draft.section.place(), problem, "connect single flows, such as \"tcp.0\"");
                return None;
            }
            let delay = match draft.delay? {
                Some(set) => Delay::Set(set),
                None => Delay::Route(ends.delay(graph, from, to, draft.section.place())?),
            };
            Some(Signals { from, to, loss: draft.loss?, delay })
        });
        match (joined, &mut all) {
            (Some(signals), Some(all)) => all.push(signals),
            _ => all = None,
        }
    }
    all
}

impl Ends<'_, '_, '_> {
    /// Finds a mechanism by its name: an edge's marker by the node, a flow's by its group or number, a discipline by the link.
    fn find(&self, name: &At<String>) -> Option<Target> {
        let report = self.topology.report;
        let edge = self.edges.get(&name.value).map(Target::Edge);
        let group = self.group_names.get(&name.value).map(Target::Group);
        let flow = name.value.split_once('.').and_then(|(group, i)| {
            let g = self.group_names.get(group)?;
            let number =
                i.parse::<usize>().ok().filter(|n| *n < self.groups[g].count && n.to_string() == i)?;
            Some(Target::Flow(g, number))
        });
        let (link, reverse) = match name.value.strip_suffix(".reverse") {
            Some(link) => (link, 1),
            None => (name.value.as_str(), 0),
        };
        let queue = self.topology.links.get(link).map(|k| Target::Queue(2 * k + reverse));
        if let Some((link, class)) = name.value.split_once('/') {
            let link = self.topology.direction(&At { value: link.to_owned(), place: name.place.clone() })?;
            let classes = self.links[link / 2].directions[link % 2].queue.classes();
            let found = classes::find(
                report,
                &name.place,
                &self.topology.direction_name(link as u32),
                classes,
                class,
            )?;
            return Some(Target::Class(link, found));
        }
        let found: Vec<Target> = [edge, group.or(flow), queue].into_iter().flatten().collect();
        match found.as_slice() {
            [one] => {
                if let Target::Group(g) | Target::Flow(g, _) = *one
                    && self.groups[g].marker.is_none()
                {
                    let problem = format!("the flows of {} have no marker", self.groups[g].name);
                    report.error(&name.place, problem, "give them a marker, or name an edge or a link");
                    return None;
                }
                Some(*one)
            }
            [] => {
                let known = [self.edges.some(), self.group_names.some(), self.topology.links.some()].concat();
                let problem = "there is no edge at a node, group of flows, flow or link with this name";
                report.error(&name.place, problem, suggest(&name.value, &known));
                None
            }
            _ => {
                let problem = "more than one mechanism has this name";
                report.error(&name.place, problem, "give the link or the group of flows another name");
                None
            }
        }
    }

    /// How many mechanisms a target stands for.
    fn count(&self, target: Target) -> u64 {
        if let Target::Group(g) = target { self.groups[g].count as u64 } else { 1 }
    }

    /// The node that a target is at; for a host, the node at the other end of its access link.
    fn node(&self, target: Target) -> u32 {
        match target {
            Target::Edge(e) => self.edge_nodes[e],
            Target::Group(g) | Target::Flow(g, _) => self.groups[g].entry(),
            Target::Queue(direction) | Target::Class(direction, _) => {
                let (from, to) = self.links[direction / 2].ends;
                if direction.is_multiple_of(2) { from } else { to }
            }
        }
    }

    /// The propagation delay from one target's node to the other's; `None` if there is no one route, which has been reported.
    fn delay(&self, graph: &Graph, from: Target, to: Target, place: &Location) -> Option<Duration> {
        let (from, to) = (self.node(from), self.node(to));
        let problem = match graph.from(from).to(to) {
            RouteSearch::Route(path) => {
                return Some(
                    path.iter().map(|&w| self.links[w as usize / 2].directions[w as usize % 2].delay).sum(),
                );
            }
            RouteSearch::Tie(..) => "two routes from sender to receiver are equally short",
            RouteSearch::Nothing => "no links lead from sender to receiver",
        };
        self.topology.report.error(place, problem, "say how long a signal takes: delay = \"10 ms\"");
        None
    }
}

//! Nodes and links by name, and the graph that the links span.

use crate::text::Report;
use crate::text::nearest::suggest;

use crate::model::At;
use crate::read::links;
use crate::read::names::Names;
use crate::routes::Graph;

/// Nodes and links, numbered in the order of the file.
pub(crate) struct Topology<'d, 'r> {
    pub report: &'r Report<'d>,
    /// Whether the ends of every link could be read. If not, an unknown node may be one of those.
    complete: bool,
    pub nodes: Names,
    pub node_names: Vec<String>,
    pub links: Names,
    link_names: Vec<String>,
    /// The ends of each link, where they could be read.
    pub ends: Vec<Option<(u32, u32)>>,
}

impl<'d, 'r> Topology<'d, 'r> {
    /// Of these links; a name that is given twice is reported.
    pub fn new(report: &'r Report<'d>, drafts: &[links::Draft]) -> Topology<'d, 'r> {
        let mut topology = Topology {
            report,
            complete: true,
            nodes: Names::default(),
            node_names: Vec::new(),
            links: Names::default(),
            link_names: Vec::new(),
            ends: Vec::with_capacity(drafts.len()),
        };
        for (k, draft) in drafts.iter().enumerate() {
            match &draft.name {
                Some(name) => {
                    topology.links.claim(report, name, k, "a link");
                    topology.link_names.push(name.value.clone());
                }
                None => {
                    topology.links.incomplete();
                    topology.link_names.push(format!("links.{k}"));
                }
            }
            let (from, to) = (topology.end(draft.from.as_ref()), topology.end(draft.to.as_ref()));
            topology.complete &= from != to;
            topology.ends.push(from.zip(to));
        }
        topology
    }

    /// The number of the node at one end of a link; a new name is a new node.
    fn end(&mut self, name: Option<&At<String>>) -> Option<u32> {
        let Some(name) = name else {
            self.complete = false;
            return None;
        };
        let index = self.nodes.get(&name.value).unwrap_or_else(|| {
            self.nodes.claim(self.report, name, self.node_names.len(), "a node");
            self.node_names.push(name.value.clone());
            self.node_names.len() - 1
        });
        Some(index as u32)
    }

    /// Whether the ends of every link could be read.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The number of a node; an unknown one is reported, unless it may be the end of a link that could not be read.
    pub fn node(&self, name: &At<String>) -> Option<u32> {
        let found = self.nodes.get(&name.value);
        if found.is_none() && self.complete {
            let remedy = suggest(&name.value, &self.nodes.some());
            self.report.error(&name.place, "no link starts or ends at this node", remedy);
        }
        found.map(|i| i as u32)
    }

    /// The name of one direction of a link.
    pub fn direction_name(&self, direction: u32) -> String {
        let name = &self.link_names[direction as usize / 2];
        if direction.is_multiple_of(2) { name.clone() } else { format!("{name}.reverse") }
    }

    /// One direction of a link by its name, with `.reverse` for the way back; an unknown one is reported.
    pub fn direction(&self, name: &At<String>) -> Option<usize> {
        let (link, reverse) = match name.value.strip_suffix(".reverse") {
            Some(link) => (link, 1),
            None => (name.value.as_str(), 0),
        };
        let found = self.links.get(link);
        if found.is_none() && self.links.is_complete() {
            let remedy = suggest(link, &self.links.some());
            self.report.error(&name.place, "there is no link with this name", remedy);
        }
        found.map(|k| 2 * k + reverse)
    }

    /// Nodes and links for finding routes.
    pub fn graph(&self) -> Graph {
        let mut graph = Graph::new(self.node_names.len());
        for (k, ends) in self.ends.iter().enumerate() {
            if let Some((from, to)) = ends {
                graph.join(k as u32, *from, *to);
            }
        }
        graph
    }

    /// A route in words.
    pub fn spell(&self, path: &[u32]) -> String {
        path.iter().map(|w| self.direction_name(*w)).collect::<Vec<_>>().join(", ")
    }
}

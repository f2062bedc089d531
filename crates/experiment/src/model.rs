//! A checked experiment with every default filled in. What remains is to draw random values and to build the network.

mod links;

use crate::text::Location;
pub use crate::text::named::Mechanism;
use inprofile_core::packet::Ecn;
use inprofile_core::params::Context;
use inprofile_core::units::{Backlog, Bytes, Duration, Rate, Time};
use inprofile_sim::network::Profile;
use inprofile_sim::tcp;
use inprofile_sim::traffic::distribution::Distribution;
use links::plan;
use links::queues;

use crate::traffic::{Traffic, no_context};
pub use links::{Direction, Link, Steps, Tree, TreeLevel, Turn, Way};
pub use plan::{Part, PlanGoal, Router};
pub use queues::{Class, Queue, Queues, Scheduled};

/// The most flows an experiment may have.
pub const MAX_FLOWS: u64 = 1_000_000;
/// The most `[[links]]`, `[[flows]]`, `[[edges]]` or `[[monitors]]` an experiment may have.
pub const MAX_TABLES: usize = 10_000;
/// The most samples all monitors together may take: each is a row of several numbers in memory.
pub const MAX_SAMPLES: u64 = 20_000_000;
/// The most objects that all pages of a group may have.
pub const MAX_OBJECTS: u64 = 10_000_000;
/// The most steps that a link's capacity may have.
pub const MAX_STEPS: usize = 10_000;
/// The most flows whose delays may be measured: each may take 80 kB.
pub const MAX_MEASURED: usize = 10_000;
/// The most classes that all schedulers of an experiment may name: a packet carries its class in a byte.
pub const MAX_CLASSES: usize = 255;
/// The default limit of queues on reverse directions and on access links.
pub const AMPLE: Backlog = Backlog::Packets(10_000.0);

/// The experiment.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its title.
    pub title: String,
    /// How long it runs.
    pub duration: Duration,
    /// The window of every metric.
    pub window: (Time, Time),
    /// The link that is measured: an index into the directions of [`Model::links`], forward 2k, reverse 2k + 1.
    pub at: usize,
    /// The measurements beyond counts, if any.
    pub distributions: Option<Distributions>,
    /// How many seeds, from 1, unless the command says otherwise.
    pub seeds: u32,
    /// The engine's clock and order of events.
    pub profile: Profile,
    /// The defaults of every flow's TCP.
    pub tcp: tcp::Config,
    /// The trees among the links and flows.
    pub trees: Vec<Tree>,
    /// Names of nodes, in the order in which links name them; hosts are not among them.
    pub nodes: Vec<String>,
    /// Links in the order of the file.
    pub links: Vec<Link>,
    /// Flows in the order of the file.
    pub groups: Vec<Group>,
    /// Aggregate markers.
    pub edges: Vec<Edge>,
    /// Which mechanisms send signals to which.
    pub signals: Vec<Signals>,
    /// The quantities to sample.
    pub monitors: Vec<Monitor>,
    /// The goals of `inprofile plan`, if the file has any.
    pub plan: Option<PlanGoal>,
}

/// The measurements beyond counts that `measure` asks for: distributions of delays, and with periods the figures of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distributions {
    /// The length of the periods of goodput and queueing delay over time, if they are asked for.
    pub every: Option<Duration>,
}

/// A flow's own marker or an edge's.
pub type Marker = Mechanism<inprofile_core::registry::AnyMarker>;

/// One value for all flows of a group, or one each.
#[derive(Clone, Debug, PartialEq)]
pub enum PerFlow<T> {
    /// The same.
    All(T),
    /// By number within the group.
    Each(Vec<T>),
}

impl<T: Copy + PartialEq> PerFlow<T> {
    /// That of the i-th flow of the group.
    #[must_use]
    pub fn get(&self, i: usize) -> T {
        match self {
            PerFlow::All(value) => *value,
            PerFlow::Each(values) => values[i],
        }
    }

    /// One value where all are the same, so that equal experiments give equal texts.
    #[must_use]
    pub fn distinct(&self) -> &[T] {
        match self {
            PerFlow::All(value) => std::slice::from_ref(value),
            PerFlow::Each(values) if values.windows(2).all(|w| w[0] == w[1]) => {
                &values[..values.len().min(1)]
            }
            PerFlow::Each(values) => values,
        }
    }
}

/// When the flows of a group start.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// At set times.
    At(PerFlow<Time>),
    /// Each at a random time, uniform between two.
    Uniform(Time, Time),
    /// One after the other: the first time, the mean interval, and how intervals are drawn.
    Arrivals(Time, Duration, Distribution),
}

/// The access links of the hosts of a group.
#[derive(Clone, Debug)]
pub struct Join {
    /// The node they lead to.
    pub node: u32,
    /// Their rate, both ways.
    pub rate: Rate,
    /// Their queue, both ways.
    pub queue: Queue,
    /// Propagation round trip from host to receiver and back.
    pub rtt: PerFlow<Duration>,
}

/// Where the data of a group comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A node of the network.
    Node(u32),
    /// One host per flow.
    Hosts(Join),
}

/// Flows that share all but their round-trip time, contract and start.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its name; its flows are `name.0`, `name.1`, …
    pub name: String,
    /// How many flows.
    pub count: usize,
    /// Where data comes from.
    pub source: Source,
    /// Where data goes.
    pub to: u32,
    /// When they start.
    pub start: Start,
    /// Their contracts.
    pub contract: Option<PerFlow<Rate>>,
    /// Marks each flow's data at its source.
    pub marker: Option<Marker>,
    /// The class its packets have at schedulers; every scheduled link on its way has it.
    pub class: Option<String>,
    /// When they stop sending new data.
    pub stop: Option<PerFlow<Time>>,
    /// Their traffic.
    pub traffic: Mechanism<Traffic>,
    /// Their TCP, if that is what they use.
    pub tcp: tcp::Config,
    /// The route through the network, without the access link.
    pub route: Route,
}

impl Group {
    /// The name of its i-th flow: `tcp.0`.
    #[must_use]
    pub fn flow_name(&self, i: usize) -> String {
        format!("{}.{i}", self.name)
    }

    /// The traffic of its flows.
    #[must_use]
    pub fn sends(&self) -> Traffic {
        (self.traffic.build)(&self.traffic.values, &no_context())
    }

    /// A full packet on the wire.
    #[must_use]
    pub fn packet(&self) -> Bytes {
        match self.sends() {
            Traffic::Udp(udp) => Bytes(u64::from(udp.largest())),
            Traffic::Bulk | Traffic::Transfer(..) | Traffic::Web(_) | Traffic::Video(_) => packet(&self.tcp),
        }
    }

    /// Whether its data leaves as L4S traffic, ECT(1).
    #[must_use]
    pub fn sends_ect1(&self) -> bool {
        match self.sends() {
            Traffic::Udp(udp) => udp.ecn == Ecn::Ect1,
            Traffic::Bulk | Traffic::Transfer(..) | Traffic::Web(_) | Traffic::Video(_) => {
                self.tcp.code_point() == Ecn::Ect1
            }
        }
    }

    /// The node at which its data enters the network proper.
    #[must_use]
    pub fn entry(&self) -> u32 {
        match &self.source {
            Source::Node(node) => *node,
            Source::Hosts(join) => join.node,
        }
    }

    /// The nodes at which its data arrives by a link and goes on: where an edge would mark it.
    pub fn passes<'m>(&'m self, links: &'m [Link]) -> impl Iterator<Item = u32> + 'm {
        let by_host = matches!(self.source, Source::Hosts(_)).then(|| self.entry());
        let between = self.route.path.split_last().map_or(&[][..], |(_, before)| before);
        let end = |direction: &u32| {
            let ends = links[*direction as usize / 2].ends;
            if direction.is_multiple_of(2) { ends.1 } else { ends.0 }
        };
        by_host.filter(|_| !self.route.path.is_empty()).into_iter().chain(between.iter().map(end))
    }

    /// The propagation round trip of its i-th flow.
    #[must_use]
    pub fn rtt(&self, i: usize) -> Duration {
        match &self.source {
            Source::Node(_) => self.route.delay + self.route.back_delay,
            Source::Hosts(join) => join.rtt.get(i),
        }
    }

    /// The contract of its i-th flow.
    #[must_use]
    pub fn contract(&self, i: usize) -> Option<Rate> {
        self.contract.as_ref().map(|c| c.get(i))
    }
}

/// Directions of links, by index as in [`Model::at`], and their delays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// Those of the data.
    pub path: Vec<u32>,
    /// Those of the acknowledgements.
    pub back: Vec<u32>,
    /// Sum of delays along `path`.
    pub delay: Duration,
    /// Sum of delays along `back`.
    pub back_delay: Duration,
}

impl Route {
    /// The delays of the access link, to the network and from it, that make the whole round-trip time `rtt`: each
    /// direction takes half. `None` if the links of the route alone take longer.
    #[must_use]
    pub fn joining(&self, rtt: Duration) -> Option<(Duration, Duration)> {
        let there = rtt.0 / 2;
        let up = there.checked_sub(self.delay.0)?;
        let down = (rtt.0 - there).checked_sub(self.back_delay.0)?;
        Some((Duration(up), Duration(down)))
    }
}

/// An aggregate marker at a node's ingress.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Where.
    pub node: u32,
    /// What.
    pub marker: Marker,
}

/// One mechanism's signals go to another; for a group of flows, those of each flow's own marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signals {
    /// The sender.
    pub from: Target,
    /// The receiver.
    pub to: Target,
    /// Probability that a signal is lost, independently.
    pub loss: f64,
    /// How long a signal takes.
    pub delay: Delay,
}

/// How long a signal takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// As set.
    Set(Duration),
    /// The propagation delay of the links between the two nodes; that of hosts' access links is added.
    Route(Duration),
}

/// Something sampled at regular times.
#[derive(Clone, Debug, PartialEq)]
pub struct Monitor {
    /// The quantities to sample.
    pub target: Target,
    /// How often.
    pub every: Duration,
}

/// The point that a monitor samples, or the mechanism at one end of a signal path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// One direction of a link, as in [`Model::at`].
    Queue(usize),
    /// One class of it, by its place in the scheduler's order.
    Class(usize, usize),
    /// All flows of a group.
    Group(usize),
    /// One flow of a group.
    Flow(usize, usize),
    /// An edge.
    Edge(usize),
}

/// A value and the place it was read from, for messages about combinations of values.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub place: Location,
}

impl Model {
    /// One direction of a link, by index as in [`Model::at`].
    #[must_use]
    pub fn direction(&self, index: usize) -> &Direction {
        &self.links[index / 2].directions[index % 2]
    }

    /// The name of one direction of a link in results: the link's own, or with `.reverse`.
    #[must_use]
    pub fn direction_name(&self, index: usize) -> String {
        let name = &self.links[index / 2].name;
        if index.is_multiple_of(2) { name.clone() } else { format!("{name}.reverse") }
    }

    /// The name of what is sampled, or of the place of a mechanism.
    #[must_use]
    pub fn target_name(&self, target: Target) -> String {
        match target {
            Target::Queue(direction) => self.direction_name(direction),
            Target::Class(direction, class) => {
                format!(
                    "{}/{}",
                    self.direction_name(direction),
                    self.direction(direction).queue.classes()[class].name
                )
            }
            Target::Group(g) => self.groups[g].name.clone(),
            Target::Flow(g, i) => self.groups[g].flow_name(i),
            Target::Edge(e) => self.nodes[self.edges[e].node as usize].clone(),
        }
    }

    /// Delays of the access link of a target's host, the `i`-th of its group: to the network, and from it. Zero where
    /// there is no host.
    #[must_use]
    pub fn joining_delays(&self, target: Target, i: usize) -> [Duration; 2] {
        let (Target::Group(g) | Target::Flow(g, _)) = target else { return [Duration::ZERO; 2] };
        let Source::Hosts(join) = &self.groups[g].source else { return [Duration::ZERO; 2] };
        // Checked when the experiment was read: every round-trip time leaves room for the links.
        self.groups[g].route.joining(join.rtt.get(i)).map_or([Duration::ZERO; 2], |(up, down)| [up, down])
    }

    /// The classes of all links, each once, in the order in which links name them.
    #[must_use]
    pub fn class_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for class in self.links.iter().flat_map(|l| &l.directions).flat_map(|w| w.queue.classes()) {
            if !names.contains(&class.name.as_str()) {
                names.push(&class.name);
            }
        }
        names
    }

    /// The number of a class that packets carry: from 1, in the order in which links name them; 0 where no link does.
    #[must_use]
    pub fn class_number(&self, name: &str) -> u8 {
        let place = self.class_names().iter().position(|n| *n == name);
        place.and_then(|i| u8::try_from(i + 1).ok()).unwrap_or(0)
    }

    /// How many flows there are.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.groups.iter().map(|g| g.count).sum()
    }

    /// The context of a link's queue or an edge's marker: the size of a full packet, from the experiment's own
    /// segment and header.
    #[must_use]
    pub fn context(&self) -> Context {
        Context { link_rate: None, contract: None, packet: packet(&self.tcp), limit: None }
    }

    /// The context of a marker at an edge: a packet is the largest that it marks, or if it marks none one of `[tcp]`.
    #[must_use]
    pub fn edge_context(&self, edge: &Edge) -> Context {
        let largest = marked_at(&self.groups, &self.links, edge.node).map(Group::packet).max();
        Context { packet: largest.unwrap_or(packet(&self.tcp)), ..self.context() }
    }
}

/// The groups whose data an edge at this node marks.
pub fn marked_at<'m>(groups: &'m [Group], links: &'m [Link], node: u32) -> impl Iterator<Item = &'m Group> {
    groups.iter().filter(move |g| g.count > 0 && g.passes(links).any(|at| at == node))
}

/// A full packet on the wire.
#[must_use]
pub fn packet(tcp: &tcp::Config) -> Bytes {
    Bytes(u64::from(tcp.packet()))
}

//! The input of the simulator: nodes, links with their queues, flows with their routes, edges, monitors.
//!
//! Everything is resolved: names are numbers, routes are found, start times are drawn, mechanisms are built. The
//! `experiment` crate builds it from an experiment file and a seed.

use std::ops::Range;
use std::sync::Arc;

use inprofile_core::queue::scheduled::Setup;
use inprofile_core::registry::{AnyAqm, AnyMarker, AnyScheduler};
use inprofile_core::units::{Backlog, Duration, Rate, Time};

use crate::access::Access;
use crate::capacity::Capacity;
use crate::flow_control::Pause;
use crate::tcp;
use crate::traffic::{udp, video};
use crate::wire::Wire;

/// Index into [`Network::nodes`].
pub type NodeId = u32;
/// Index into [`Network::links`].
pub type LinkId = u32;

/// A network, its traffic, and what to measure.
#[derive(Debug)]
pub struct Network {
    /// Names of nodes.
    pub nodes: Vec<String>,
    /// Links, each in one direction.
    pub links: Vec<Link>,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Pages of the web, by the numbers that their connections' [`Transport::Web`] has.
    pub pages: Vec<Page>,
    /// Aggregate markers, each at a node's ingress: it sees data from every link into the node.
    pub edges: Vec<Edge>,
    /// Which mechanisms send signals to which.
    pub signals: Vec<SignalPath>,
    /// The subject of the samples.
    pub monitors: Vec<Monitor>,
    /// The measurements beyond counts, if anything is.
    pub measure: Option<Measure>,
    /// How long it runs.
    pub duration: Duration,
    /// The window of every metric: from (included) to (excluded).
    pub window: (Time, Time),
    /// The seed of every random stream.
    pub seed: u64,
    /// Clock and order of events.
    pub profile: Profile,
    /// Whether every verdict is recorded.
    pub trace: bool,
}

impl Network {
    /// Whether a queue may pause links.
    #[must_use]
    pub fn pauses(&self) -> bool {
        self.links.iter().any(|l| l.pause.is_some())
    }
}

/// The measurements beyond counts, in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The number of each flow's group.
    pub groups: Arc<[u32]>,
    /// The link whose losses are told apart by time.
    pub link: LinkId,
    /// The length of the periods by which goodput and queueing delay are told, if they are.
    pub every: Option<Duration>,
}

/// A page, and the connections that fetch it.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its number among its client's, from 0.
    pub number: u32,
    /// Its connections, by the numbers of their flows.
    pub connections: Range<u32>,
    /// Full segments of each object.
    pub objects: Vec<u32>,
    /// From its end to the start of the next page.
    pub think: Duration,
    /// The client's next page.
    pub next: Option<u32>,
}

/// The engine's clock, order of events and random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Integer picoseconds; the order at equal times depends only on the kinds of events.
    #[default]
    Exact,
    /// As [`Profile::Exact`], but with ns-2's one stream of random numbers: only clock and order still differ from ns-2.
    ExactNs2Random,
    /// ns-2 2.35's: seconds in double precision, ties by insertion, one MRG32k3a stream for all.
    Ns2,
}

impl Profile {
    /// The word in a file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Profile::Exact => "exact",
            Profile::ExactNs2Random => "exact_ns2_random",
            Profile::Ns2 => "ns2",
        }
    }
}

/// One direction of a link, with its queue.
#[derive(Debug)]
pub struct Link {
    /// Its name in results.
    pub name: String,
    /// Where it starts.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Bits per second on the wire.
    pub rate: Rate,
    /// How its rate changes, if it does; `rate` is the first.
    pub capacity: Option<Capacity>,
    /// How it comes to send, unless it may whenever a packet waits. Its rate is then the same all the time.
    pub access: Option<Access>,
    /// Propagation.
    pub delay: Duration,
    /// What happens to packets on their way, beyond that.
    pub wire: Wire,
    /// Its queue or queues.
    pub queue: Queue,
    /// When its queue pauses the links that bring packets to it, if ever.
    pub pause: Option<Pause>,
    /// Whether an acknowledgement that waits goes as a newer one joins its queue, which is drop-tail ([`ack_filter`]).
    ///
    /// [`ack_filter`]: inprofile_core::queue::ack_filter
    pub ack_filter: bool,
    /// Whether results have a row for it. (Access links have none unless packets were dropped there.)
    pub reported: bool,
}

impl Link {
    /// The highest rate it ever has.
    #[must_use]
    pub fn fastest(&self) -> Rate {
        self.capacity.iter().flat_map(Capacity::rates).fold(self.rate, Rate::max)
    }

    /// Whether every departure has to be an event.
    #[must_use]
    pub fn serves(&self) -> bool {
        self.ack_filter || self.queue.serves()
    }
}

/// The queue or queues of a link.
#[derive(Debug)]
pub enum Queue {
    /// One queue for all packets, whatever their class.
    One {
        /// Its discipline.
        aqm: AnyAqm,
        /// Its hard limit.
        limit: Backlog,
    },
    /// A queue for each class.
    Scheduled(Scheduled),
}

/// The queues of classes, and the scheduler that decides which of them sends next. Not for the ns-2 profile.
#[derive(Debug)]
pub struct Scheduled {
    /// The scheduler.
    pub scheduler: AnyScheduler,
    /// The classes in the scheduler's order; there is at least one.
    pub classes: Vec<Class>,
}

/// One class of a link.
#[derive(Debug)]
pub struct Class {
    /// Its name: in results it is the link's and this, `bottleneck/ef`.
    pub name: String,
    /// Its packets, discipline, limit and rate.
    pub setup: Setup,
}

impl Queue {
    /// Its discipline, or that of each class.
    pub fn aqms(&self) -> impl Iterator<Item = &AnyAqm> {
        let (one, classes) = match self {
            Queue::One { aqm, .. } => (Some(aqm), [].as_slice()),
            Queue::Scheduled(s) => (None, s.classes.as_slice()),
        };
        one.into_iter().chain(classes.iter().map(|c| &c.setup.aqm))
    }

    /// Whether a discipline or a scheduler asks for that.
    fn serves(&self) -> bool {
        matches!(self, Queue::Scheduled(_)) || self.aqms().any(|aqm| aqm.serves())
    }

    /// Whether a discipline depends on time and not only on the order of arrivals.
    #[must_use]
    pub fn keeps_time(&self) -> bool {
        self.aqms().any(|aqm| aqm.keeps_time())
    }

    /// Whether a discipline observes the acknowledgements of what it queues.
    #[must_use]
    pub fn sees_reverse(&self) -> bool {
        self.aqms().any(|aqm| aqm.sees_reverse())
    }

    /// Its classes, if it has several.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        match self {
            Queue::One { .. } => &[],
            Queue::Scheduled(s) => &s.classes,
        }
    }
}

/// A sender, its receiver, and the route between them.
#[derive(Debug)]
pub struct Flow {
    /// Its name in results: `tcp.0`.
    pub name: String,
    /// Where the data comes from.
    pub from: NodeId,
    /// Where the data goes.
    pub to: NodeId,
    /// Links of the data, in order.
    pub path: Vec<LinkId>,
    /// Links of the acknowledgements, in order.
    pub back: Vec<LinkId>,
    /// When it starts.
    pub start: Time,
    /// Its assured rate.
    pub contract: Option<Rate>,
    /// Marks its data before the first link.
    pub marker: Option<AnyMarker>,
    /// The class of its packets and of their acknowledgements, where a scheduler serves classes.
    pub class: u8,
    /// When it stops sending new data, if ever. If that is before its start, it sends nothing at all.
    pub stop: Option<Time>,
    /// The traffic and the transport.
    pub transport: Transport,
}

/// How data is carried.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A TCP connection with unlimited data.
    Tcp(tcp::Config),
    /// A TCP connection that sends this many full segments.
    Transfer(tcp::Config, u32),
    /// A TCP connection that fetches objects of the page of this number.
    Web(tcp::Config, u32),
    /// A TCP connection that fetches chunks of video.
    Video(tcp::Config, video::Config),
    /// Datagrams on a schedule.
    Udp(udp::Config),
}

impl Transport {
    /// The TCP it speaks, if it does.
    #[must_use]
    pub fn tcp(&self) -> Option<&tcp::Config> {
        match self {
            Transport::Tcp(config)
            | Transport::Transfer(config, _)
            | Transport::Web(config, _)
            | Transport::Video(config, _) => Some(config),
            Transport::Udp(_) => None,
        }
    }

    /// A full packet on the wire, in bytes.
    #[must_use]
    pub fn packet(&self) -> u32 {
        match self {
            Transport::Tcp(config)
            | Transport::Transfer(config, _)
            | Transport::Web(config, _)
            | Transport::Video(config, _) => config.packet(),
            Transport::Udp(config) => config.largest(),
        }
    }
}

/// An aggregate marker at a node's ingress.
#[derive(Debug)]
pub struct Edge {
    /// Its name in results: the node's.
    pub name: String,
    /// Where.
    pub node: NodeId,
    /// The marker.
    pub marker: AnyMarker,
}

/// A path on which one mechanism sends signals to another.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalPath {
    /// Its name: what its random stream is keyed by.
    pub name: String,
    /// The sender.
    pub from: Target,
    /// The receiver.
    pub to: Target,
    /// How long a signal takes.
    pub delay: Duration,
    /// Probability that a signal is lost, independently.
    pub loss: f64,
}

/// Something sampled at regular times: at 0, `every`, 2·`every`, … up to the end.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// Its name in results.
    pub name: String,
    /// The subject of the samples.
    pub target: Target,
    /// How often.
    pub every: Duration,
}

/// The subject of a monitor, or the mechanism at one end of a signal path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A link's queue: `packets`, `packets_in`, `packets_out`, the discipline's gauges (`avg`, …), and
    /// over the last interval `arrived_in`, `arrived_out`, `sent_in`, `sent_out` in bit/s and `dropped` in packets.
    /// Of a link with classes: all of them together, without gauges.
    Queue(LinkId),
    /// One class of a link, by its place in the scheduler's order: as a queue.
    Class(LinkId, u32),
    /// A flow: TCP's `cwnd` and `ssthresh` in segments, the marker's gauges (`tokens`), and over the last
    /// interval `received`, `received_in`, `received_out` in bit/s on the wire.
    Flow(u32),
    /// An edge: the marker's gauges (`tokens`, `tpr`), and over the last interval `arrived_in`,
    /// `arrived_out`, `left_in`, `left_out` in bit/s and `dropped` in packets.
    Edge(u32),
}

//! Links: their rate, when they may send, what happens on the way, and the trees that some of them are of.

use inprofile_core::units::{Bytes, Duration, Rate, Time};
use inprofile_sim::access::Access;
use inprofile_sim::capacity::Capacity;
use inprofile_sim::flow_control::Pause;
use inprofile_sim::trace::Trace;
use inprofile_sim::wire::{Jitter, Loss};

use super::{Mechanism, Queues};
use crate::access;
use crate::traffic::no_context;

/// A tree that was written out as links and groups of flows, so that it can be shown as one.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Its name.
    pub name: String,
    /// The node that everything goes through.
    pub root: String,
    /// Whether data goes from the root to the leaves.
    pub down: bool,
    /// From the top.
    pub levels: Vec<TreeLevel>,
    /// The first group of flows at its leaves, how many groups a leaf has, and how many leaves there are.
    pub groups: (usize, usize, usize),
}

/// A level of a tree: a node and a link for each.
#[derive(Clone, Debug)]
pub struct TreeLevel {
    /// Its name.
    pub name: String,
    /// The first of its links, and how many there are.
    pub links: (usize, usize),
    /// The rate of each.
    pub rates: Vec<Rate>,
    /// What each has bought, if that is said.
    pub contracts: Option<Vec<Rate>>,
    /// What was sold below each, in bit/s.
    pub promised: Vec<u128>,
    /// How much more may be sold below a node than it has.
    pub oversubscription: f64,
}

/// A link, both ways.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The ends of its forward direction, as indices into [`Model::nodes`](super::Model::nodes).
    pub ends: (u32, u32),
    /// From the first end to the second, and back.
    pub directions: [Direction; 2],
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Direction {
    /// Bits per second on the wire; the first, where it changes.
    pub rate: Rate,
    /// How the rate changes, if it does.
    pub capacity: Option<Capacity>,
    /// How it comes to send, unless it may whenever a packet waits.
    pub access: Option<Turn>,
    /// Propagation; the shortest, where it varies.
    pub delay: Duration,
    /// How packets are delayed and lost on the way beyond that.
    pub way: Way,
    /// The queue or queues in front of it.
    pub queue: Queues,
    /// When its queue pauses the links that bring packets to it, if ever.
    pub pause: Option<Pause>,
    /// Whether an acknowledgement that waits goes as a newer one joins its queue.
    pub ack_filter: bool,
}

/// How a link comes to send.
#[derive(Clone, Debug)]
pub enum Turn {
    /// In slots or bursts.
    Access(Mechanism<Access>),
    /// At the opportunities of a trace.
    Trace(Trace),
}

impl Turn {
    /// As a run has it.
    #[must_use]
    pub fn access(&self) -> Access {
        match self {
            Turn::Access(a) => (a.build)(&a.values, &no_context()),
            Turn::Trace(trace) => Access::Trace(trace.clone()),
        }
    }
}

impl Direction {
    /// The rate that it sends full packets at on average, if it does so all the time; the lowest where its rate changes.
    #[must_use]
    pub fn usable(&self, packet: Bytes) -> Rate {
        let lowest = self.capacity.as_ref().and_then(|c| c.rates().min()).unwrap_or(self.rate);
        self.access.as_ref().map_or(lowest, |turn| access::mean(&turn.access(), self.rate, packet))
    }
}

/// Values from times on, in order, and after how long they start over.
pub type Steps<T> = (Vec<(Time, T)>, Option<Duration>);

/// What happens to packets on their way over a link, beyond its propagation delay.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Delays that are drawn.
    pub jitter: Option<Mechanism<Jitter>>,
    /// The propagation delay from these times on, none shorter than the link's, and after how long that starts over.
    pub delays: Option<Steps<Duration>>,
    /// Loss.
    pub loss: Option<Mechanism<Loss>>,
}

impl Way {
    /// Whether there is no more than the delay.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.jitter.is_none() && self.delays.is_none() && self.loss.is_none()
    }
}

pub(super) mod queues {
    //! The queue or queues in front of a link.

    use crate::text::named::Mechanism;
    use inprofile_core::params::{Context, Field, Values};
    use inprofile_core::registry::AnyScheduler;
    use inprofile_core::units::{Backlog, Bytes, Rate};

    /// One queue.
    #[derive(Clone, Debug)]
    pub struct Queue {
        /// Its discipline.
        pub aqm: Mechanism<inprofile_core::registry::AnyAqm>,
        /// Its hard limit.
        pub limit: Backlog,
        /// Whether `limit_rule` is ns-2's because `[tcp] profile` is, and not because the file says so.
        pub follows_tcp: bool,
    }

    /// The queue or queues in front of a link.
    #[derive(Clone, Debug)]
    pub enum Queues {
        /// One queue for all.
        One(Queue),
        /// A queue for each class.
        Scheduled(Scheduled),
    }

    /// Classes, and who decides which of them sends next.
    #[derive(Clone, Debug)]
    pub struct Scheduled {
        /// The scheduler's name in the registry.
        pub name: &'static str,
        /// Its parameters, which each class sets.
        pub fields: &'static [Field],
        /// Makes one for classes with these values.
        pub build: fn(&[Values], &Context) -> AnyScheduler,
        /// The classes in its order; there is at least one.
        pub classes: Vec<Class>,
    }

    /// One class of a link.
    #[derive(Clone, Debug)]
    pub struct Class {
        /// Its name.
        pub name: String,
        /// Its queue.
        pub queue: Queue,
        /// The rate it is served at, if one is set.
        pub rate: Option<Rate>,
        /// What it may send ahead of that rate after an idle period.
        pub burst: Bytes,
        /// Its values of the scheduler's parameters.
        pub values: Values,
    }

    impl Class {
        /// The service rate that its discipline is built with, at a link of this rate.
        #[must_use]
        pub fn rate_before(&self, link: Rate) -> Rate {
            self.rate.unwrap_or(link)
        }
    }

    impl Queues {
        /// The queue; none where there are classes.
        #[must_use]
        pub fn one(&self) -> Option<&Queue> {
            if let Queues::One(queue) = self { Some(queue) } else { None }
        }

        /// Each queue, and the service rate that its discipline is built with, at a link of this rate.
        pub fn each(&self, link: Rate) -> impl Iterator<Item = (&Queue, Rate)> {
            let one = self.one().map(|queue| (queue, link));
            one.into_iter().chain(self.classes().iter().map(move |c| (&c.queue, c.rate_before(link))))
        }

        /// The classes; none where there is one queue for all.
        #[must_use]
        pub fn classes(&self) -> &[Class] {
            match self {
                Queues::One(_) => &[],
                Queues::Scheduled(s) => &s.classes,
            }
        }
    }
}

pub(super) mod plan {
    //! The goals of a plan.

    use inprofile_core::units::{Duration, Rate};

    /// The goal of `inprofile plan`; no run depends on it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PlanGoal {
        /// Every contract is kept in at least this share of the runs.
        pub kept: f64,
        /// Mean queueing delay at the measured link, at most.
        pub delay: Option<Duration>,
        /// The least rate of all flows without a contract together.
        pub best_effort: Part,
        /// Schemes to choose from, and files of schemes; `None`: all.
        pub schemes: Option<Vec<String>>,
        /// How the router's file tells customers apart.
        pub router: Router,
    }

    /// A part of a link.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Part {
        /// A rate.
        Rate(Rate),
        /// A share of the link's.
        Share(f64),
    }

    impl Part {
        /// As a rate, of a link with this one.
        #[must_use]
        pub fn of(self, link: Rate) -> Rate {
            match self {
                Part::Rate(rate) => rate,
                Part::Share(share) => Rate((share * link.0 as f64).round() as u64),
            }
        }
    }

    /// How a router tells customers apart.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Router {
        /// The port on the customers' side.
        pub inside: String,
        /// The other port.
        pub outside: String,
        /// `upstream` or `downstream`.
        pub direction: &'static str,
        /// `prefix`, `vlan` or `session`.
        pub customers: &'static str,
        /// The first customer's number; the others follow.
        pub first: u64,
    }
}

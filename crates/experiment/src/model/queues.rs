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

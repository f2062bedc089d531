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

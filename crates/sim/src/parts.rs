//! One run in several parts, each on a thread of its own: conservative parallel simulation.
//!
//! The network is cut along links with a propagation delay ([`cut`]); a node, the queues of the links that begin there, and the ends
//! of flows there are in one part. Nothing that happens in a part is seen in another sooner than the shortest delay of the links and
//! signals between parts, the lookahead (Chandy and Misra 1979). So all parts simulate the same window of time at once, which ends that
//! long after the earliest event of any of them, and then exchange what has left them ([`windows`]).
//!
//! The result is that of a run in one piece, to the last bit: events at the same moment are ordered by what they are and not by who
//! scheduled them, every component has random numbers of its own, and how a link is served changes no verdict
//! ([0002](../../../docs/decisions/0002-order-of-events-and-service-of-links.md)). Each part has room for all links and flows under
//! the network's numbers, and fills in its own.

pub mod balance;
pub(crate) mod border;
pub mod cut;
mod merge;
mod split;
mod windows;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};

use crate::clock::Exact;
use crate::engine::{Failure, Hosts, Run, run_seen};
use crate::network::{Network, NodeId};
use crate::outcome::Outcome;
use crate::parts::cut::Cut;
use crate::plan::Plan;

/// One part of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    /// The parts that there are.
    pub cut: &'a Cut,
    /// Which of them.
    pub number: u32,
}

impl Part<'_> {
    /// Whether a node is in this part.
    pub fn has(&self, node: NodeId) -> bool {
        self.cut.part_of(node) == self.number
    }
}

/// The run of each part, made ready on as many threads: each has room for all flows.
fn made_ready(networks: Vec<Network>, plan: &Plan, cut: &Cut, threads: usize) -> Vec<Run<Exact, false>> {
    let helpers = threads.min(networks.len()).saturating_sub(1);
    let (to_do, made) = (Mutex::new((0..).zip(networks).collect::<Vec<_>>()), Mutex::new(BTreeMap::new()));
    let next = || to_do.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = || {
        while let Some((number, network)) = next() {
            let run = Run::part(network, plan, None, Hosts::Simulated, Some(Part { cut, number }));
            made.lock().unwrap_or_else(PoisonError::into_inner).insert(number, run);
        }
    };
    std::thread::scope(|scope| {
        // Where the system has no more threads, those that there are do it all.
        (0..helpers).map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok()).for_each(drop);
        work();
    });
    made.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// Runs a network to its end in these parts on up to so many threads. The outcome is that of [`run_seen`], but for
/// [`Outcome::events`]: each part has its own for what ends windows and the run, and links catch up at other times.
///
/// # Errors
/// See [`run_seen`].
pub fn run(
    network: Network,
    cut: &Cut,
    threads: usize,
    stop: &AtomicBool,
    reached: &AtomicU64,
) -> Result<Outcome, Failure> {
    run_counted(network, cut, threads, stop, reached, &|| 0).map(|(outcome, _)| outcome)
}

/// The windows of a run in parts. Times are in the unit of the clock that was handed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// How many there were.
    pub count: u64,
    /// The time that the part took which took longest, added up over all windows, with what it took in and laid out for others: what is
    /// done one after the other, however many threads there are.
    pub critical: u64,
    /// The time that the part took which took longest in all windows together: what would be left if parts never waited for each other.
    pub largest: u64,
    /// How many packets went from one part to another.
    pub crossed: u64,
}

/// The same with a count of the windows, of which there are none in one piece. `clock` tells the time that the calling thread has worked.
///
/// # Errors
/// See [`run_seen`].
pub fn run_counted(
    network: Network,
    cut: &Cut,
    threads: usize,
    stop: &AtomicBool,
    reached: &AtomicU64,
    clock: &(dyn Fn() -> u64 + Sync),
) -> Result<(Outcome, Windows), Failure> {
    if cut.parts() < 2 {
        return run_seen(network, stop, None, reached).map(|outcome| (outcome, Windows::default()));
    }
    let plan = Plan::of(&network, false, Some(cut));
    let homes = merge::Homes::of(&network, cut);
    let mut parts = made_ready(split::split(network, cut), &plan, cut, threads);
    let windows = windows::run(&mut parts, cut.lookahead(), threads, stop, reached, clock)?;
    let outcome = merge::merge(parts, &homes).map_or(Err(Failure::Stopped), Run::close)?;
    Ok((outcome, windows))
}

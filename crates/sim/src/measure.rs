//! Measurements made only where the experiment asks for them: distributions of delays, loss events, goodput over time.
//!
//! Nothing here is created, and no packet's path is longer than by a test for its absence, where it is not asked for.

pub mod arrivals;
pub mod losses;
pub mod sketch;
pub mod waits;

use inprofile_core::units::{Duration, Time};

use crate::measure::arrivals::{Arrivals, Delays};
use crate::measure::losses::Losses;
use crate::measure::waits::Waits;
use crate::network::Network;
use crate::outcome::{Measured, VerdictPoint};
use crate::packet::InFlight;
use crate::plan::longest_delay;

/// The measurements of a run, apart from those that links keep themselves.
#[derive(Debug)]
pub struct Measures {
    arrivals: Arrivals,
    losses: Losses,
    groups: std::sync::Arc<[u32]>,
}

impl Measures {
    /// The request of a network, if it has one.
    pub fn of(network: &Network) -> Option<Box<Measures>> {
        let asked = network.measure.as_ref()?;
        let crosses = network.flows.iter().map(|f| f.path.contains(&asked.link)).collect();
        let groups = asked.groups.clone();
        Some(Box::new(Measures {
            arrivals: Arrivals::new(network, groups.clone(), periods(network)),
            losses: Losses::new(network.window, asked.link, longest_delay(network), crosses),
            groups,
        }))
    }

    /// A flow's packet is sent now; segment 0 opens a connection.
    #[inline(never)]
    pub fn sent(&mut self, slot: u32, flow: u32, segment: u32, now: Time) {
        self.arrivals.sent(slot, flow, segment, now);
    }

    /// The packet in a slot reaches its receiver, whose application could then have read so many bytes of payload.
    #[inline(never)]
    pub fn received(&mut self, slot: u32, packet: &InFlight, at: Time, readable: u64) {
        self.arrivals.received(slot, &packet.packet, at, readable);
    }

    /// A packet is lost.
    pub fn lost(&mut self, place: VerdictPoint, packet: &InFlight, at: Time) {
        if let VerdictPoint::Queue(link) = place {
            let p = &packet.packet;
            let of = (p.flow, self.groups[p.flow.0 as usize], p.colour);
            self.losses.lost(link, of, at, |since, asked| self.arrivals.active(since, asked));
        }
    }

    /// The measurements beyond counts, at the end of the run; with the queueing delays of links by number, which these keep.
    pub fn close(self, queueing: Vec<(u32, Waits)>) -> Measured {
        let Measures { arrivals, losses, .. } = self;
        let (Delays { one_way, excess, variation }, first_data, goodput) = arrivals.close();
        Measured { queueing, one_way, excess, variation, first_data, goodput, losses: losses.close() }
    }
}

/// The periods that a network asks for.
fn periods(network: &Network) -> Option<Periods> {
    Some(Periods::new(network.window, network.measure.as_ref()?.every?))
}

/// The queueing delays of a reported link, where a network asks for them.
pub(crate) fn waits(network: &Network) -> Option<Waits> {
    let groups = network.measure.as_ref()?.groups.clone();
    Some(Waits::new(network.window, groups, periods(network)))
}

/// Sums over periods of equal length within the measured window (RFC 7928 §2.7: every K · minRTT), one row a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Periods {
    from: Time,
    every: Duration,
    /// How many whole periods the window has.
    count: usize,
    /// By group.
    sums: Vec<Vec<u64>>,
}

impl Periods {
    /// Zero, for the whole periods of a window.
    #[must_use]
    pub fn new(window: (Time, Time), every: Duration) -> Periods {
        let count = (window.1 - window.0).0 / every.0.max(1);
        Periods { from: window.0, every, count: count as usize, sums: Vec::new() }
    }

    /// Adds to the period that a moment of the window is in.
    pub fn add(&mut self, group: u32, at: Time, amount: u64) {
        let (group, period) = (group as usize, (at.since(self.from).0 / self.every.0) as usize);
        if self.sums.len() <= group {
            self.sums.resize(group + 1, Vec::new());
        }
        let sums = &mut self.sums[group];
        // What is left of the window after its last whole period is not measured.
        if period < self.count {
            if sums.is_empty() {
                sums.resize(self.count, 0);
            }
            sums[period] += amount;
        }
    }

    /// Their length.
    #[must_use]
    pub fn every(&self) -> Duration {
        self.every
    }

    /// The end of each period and the sum over it; of a group of which nothing was added, zeros.
    pub fn of(&self, group: u32) -> impl Iterator<Item = (Time, u64)> {
        let sums = self.sums.get(group as usize);
        let end = |i: usize| self.from + Duration(self.every.0 * (i as u64 + 1));
        (0..self.count).map(move |i| (end(i), sums.and_then(|s| s.get(i)).copied().unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_is_in_one_period_and_the_rest_of_the_window_in_none() {
        // From 10 to 35, every 10: two whole periods.
        let mut p = Periods::new((Time(10), Time(35)), Duration(10));
        for (at, amount) in [(10, 1), (19, 2), (20, 4), (29, 8), (30, 16), (34, 32)] {
            p.add(1, Time(at), amount);
        }
        assert_eq!(p.of(1).collect::<Vec<_>>(), [(Time(20), 3), (Time(30), 12)]);
        assert_eq!(p.of(0).collect::<Vec<_>>(), [(Time(20), 0), (Time(30), 0)]);
        assert_eq!(p.of(7).collect::<Vec<_>>(), [(Time(20), 0), (Time(30), 0)]);
    }
}

//! Measurements made only where the experiment asks for them: distributions of delays, loss events, goodput over time.
//!
//! Nothing here is created, and no packet's path is longer than by a test for its absence, where it is not asked for.

pub mod arrivals;
pub mod losses;
pub mod periods;
pub mod sketch;
pub mod waits;

use inprofile_core::units::Time;

use crate::measure::arrivals::{Arrivals, Delays};
use crate::measure::losses::Losses;
use crate::measure::periods::Periods;
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

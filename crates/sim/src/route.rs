//! Routes as packets follow them: link by link, with what happens at the far end of each.

use std::collections::BTreeMap;

use crate::plan::Plan;

/// The limit on the hops of all routes together: positions are below it.
pub const MOST_HOPS: u32 = 1 << 27;

/// How a link is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// Packets pass it, or, with stepped service, join its queue, as soon as they enter the link before it: no event.
    CutThrough,
    /// When it is looked at; with the link over which all packets come, if there is only one: see [`crate::path::on_demand`].
    OnDemand(Option<u32>),
    /// By events: each packet's arrival, and each departure if service is stepped.
    ByEvents,
}

impl Service {
    /// Whether all its packets come over `link` and it is served on demand.
    pub fn is_fed_by(self, link: u32) -> bool {
        self == Service::OnDemand(Some(link))
    }
}

/// The events at the far end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextStep {
    /// The packet's arrival is an event.
    Arrive,
    /// The next link is cut through: what happens there is computed as soon as the packet enters the link before it.
    CutThrough,
    /// The next link is fed by this one alone and served on demand: the packet joins its list of arrivals at once.
    OnDemand,
    /// The receiver is cut through likewise: it takes the packet and acknowledges it.
    Receive,
    /// The far end is in another part of the run, which goes on with [`Hop::there`].
    Leave,
}

/// A link on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The link.
    pub link: u32,
    /// The events at its far end.
    pub next: NextStep,
    /// The same if all is in one part.
    pub there: NextStep,
    /// Whether the route ends with it.
    pub last: bool,
}

/// The first hop of a route in the list of all hops, and how many it has.
pub type Route = (u32, u16);

/// The routes of all flows. Flows between the same nodes share a route and the cache lines that it occupies.
#[derive(Debug, Default)]
pub struct Routes {
    hops: Vec<Hop>,
}

/// The routes added so far, by their hops.
pub type RouteIndex = BTreeMap<Vec<Hop>, Route>;

impl Routes {
    /// The route over these links; `plan` says how each link is served, `received` whether the receiver is cut through.
    pub(crate) fn add(
        &mut self,
        links: &[u32],
        plan: &Plan,
        received: bool,
        index: &mut RouteIndex,
    ) -> Route {
        let hop = |(i, &link): (usize, &u32)| {
            let services = &plan.services;
            let there = match links.get(i + 1) {
                Some(&after) if services[after as usize] == Service::CutThrough => NextStep::CutThrough,
                Some(&after) if services[after as usize].is_fed_by(link) => NextStep::OnDemand,
                None if received => NextStep::Receive,
                _ => NextStep::Arrive,
            };
            let next = if plan.crosses(link) { NextStep::Leave } else { there };
            Hop { link, next, there, last: i + 1 == links.len() }
        };
        *index.entry(links.iter().enumerate().map(hop).collect()).or_insert_with_key(|hops| {
            self.hops.extend(hops);
            assert!(self.hops.len() < MOST_HOPS as usize, "the experiment file's limits keep routes shorter");
            ((self.hops.len() - hops.len()) as u32, hops.len() as u16)
        })
    }

    /// All hops, one route after another.
    #[inline]
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// The hop at this position.
    #[inline]
    pub fn hop(&self, at: u32) -> Hop {
        self.hops[at as usize]
    }

    /// Whether a route passes a link.
    pub fn passes(&self, (first, hops): Route, link: u32) -> bool {
        self.hops[first as usize..][..usize::from(hops)].iter().any(|hop| hop.link == link)
    }
}

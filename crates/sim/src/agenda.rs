//! The coming events of a link that is [served on demand](crate::path::on_demand), and when.

use std::collections::VecDeque;

use crate::clock::Clock;
use crate::event::EventKind;
use crate::route::Service;

/// A moment and the order of an event then: what comes before what.
pub(crate) type Moment<C> = (C, u32);

/// The coming events of a link that is served on demand.
#[derive(Debug)]
pub(crate) struct Agenda<C: Clock> {
    /// Packets on their way over the link before, if all packets come over that one: when they arrive, and their slots.
    pub arrivals: VecDeque<(C, u32)>,
    /// The order of these arrivals among events at the same time.
    arrival_rank: u32,
    /// Stepped service: when the packet being sent will have been sent, or when a class may send again.
    pub departs_at: C,
    /// When its disciplines tick next, if the link is cut through and these ticks are no events.
    pub ticks_at: C,
    /// Whether it is cut through.
    ahead: bool,
    /// How long after the beginning of a transmission anybody else can see something of it, at the earliest.
    pub lookahead: C::Span,
    /// When the link catches up at the latest: the time of its event. [`Clock::NEVER`]: there is nothing to catch up with.
    pub due: C,
}

/// The next event at a link.
pub(crate) enum Next<C> {
    /// A packet comes: when, and its slot.
    Arrival(C, u32),
    /// The link acts by itself.
    Act(Act<C>),
}

/// An action of a link of its own.
pub(crate) enum Act<C> {
    /// It may send.
    Departure(C),
    /// Its disciplines tick.
    Tick(C),
}

impl<C: Clock> Agenda<C> {
    /// Nothing to happen yet, at a link that is served like this; `lookahead`: see the field.
    pub fn new(service: Service, lookahead: C::Span) -> Agenda<C> {
        let fed_by = if let Service::OnDemand(fed_by) = service { fed_by } else { None };
        Agenda {
            arrivals: VecDeque::new(),
            arrival_rank: fed_by.map_or(0, EventKind::arrival_rank),
            departs_at: C::NEVER,
            ticks_at: C::NEVER,
            ahead: service == Service::CutThrough,
            lookahead,
            due: C::NEVER,
        }
    }

    /// The next event, if it comes before `until`; an arrival is taken. A departure has the first of these ranks, a tick the second,
    /// and both come before an arrival at the same time.
    #[inline(always)]
    pub fn next_before(&mut self, until: Moment<C>, ranks: (u32, u32)) -> Option<Next<C>> {
        match self.arrivals.front() {
            Some(&(at, slot)) if at < self.departs_at && (at, self.arrival_rank) < until => {
                self.arrivals.pop_front();
                Some(Next::Arrival(at, slot))
            }
            _ => self.acts_before(until, ranks).map(Next::Act),
        }
    }

    /// The link's next action of its own, if it comes before `until`.
    #[inline(always)]
    fn acts_before(&self, until: Moment<C>, (departure_rank, tick_rank): (u32, u32)) -> Option<Act<C>> {
        if self.ticks_at < self.departs_at {
            return ((self.ticks_at, tick_rank) <= until).then_some(Act::Tick(self.ticks_at));
        }
        ((self.departs_at, departure_rank) <= until).then_some(Act::Departure(self.departs_at))
    }

    /// The same where it may come at `until`, whatever else comes then.
    #[inline(always)]
    pub fn acts_by(&self, until: C) -> Option<Act<C>> {
        if self.ticks_at < self.departs_at {
            return (self.ticks_at <= until).then_some(Act::Tick(self.ticks_at));
        }
        (self.departs_at <= until).then_some(Act::Departure(self.departs_at))
    }

    /// The next tick of a link that is cut through is planned here. False: it has to be an event.
    pub fn plan_tick(&mut self, at: C) -> bool {
        if self.ahead {
            self.ticks_at = at;
        }
        self.ahead
    }

    /// When something happens next.
    #[inline]
    pub fn next(&self) -> C {
        let arrives = self.arrivals.front().map_or(C::NEVER, |first| first.0);
        if arrives < self.departs_at { arrives } else { self.departs_at }
    }
}

pub(super) mod ahead {
    //! Reading ahead: what the next packets' events need is read before their turn, so that cache misses overlap.
    //!
    //! Of many flows, the next packet's is in no near cache: without this, its packet, its flow and its sender would be waited for one after
    //! the other.

    use std::hint::black_box;

    use crate::clock::Clock;
    use crate::engine::Run;
    use crate::event::EventKind;

    impl<C: Clock, const TRACE: bool> Run<C, TRACE> {
        /// Reads what the events up to the next time need, as far as they are arrivals over the busiest link.
        #[inline(never)]
        pub(crate) fn read_ahead(&self) {
            let (world, batch) = (&self.world, self.interval as usize);
            let flow = |kind| Some(world.packets.get(EventKind::arriving(kind)?).packet.flow.0);
            // One value of all that is read: none of the reads is left out, and none waits for another.
            let mut read = 0;
            let sender = |flow: u32| self.senders.touch(flow);
            // Where flows come by turns, what is sent waits, and reaches its receiver at another time.
            if self.by_turns {
                for flow in world.calendar.next_in_order(0..batch).filter_map(flow) {
                    read ^= u64::from(world.flows[flow as usize].touch_sender()) ^ sender(flow);
                }
            } else {
                for flow in world.calendar.next_in_order(0..batch).filter_map(flow) {
                    let f = &world.flows[flow as usize];
                    read ^= u64::from(f.touch_sender() ^ f.touch_receiver()) ^ sender(flow);
                }
            }
            // Whose a packet is, is known once it has been read: next time.
            for flow in world.calendar.next_in_order(batch..2 * batch).filter_map(flow) {
                read ^= u64::from(flow);
            }
            black_box(read);
        }
    }
}

//! Links served on demand: their arrivals and departures are no events, but happen when somebody looks.
//!
//! Where packets come to a link over one other link alone, they come in order, and each one's time is known before it comes.
//! Such packets wait in a list, and the calendar need not hold them. What a link has sent can be seen elsewhere only
//! after a delay, its own and that of links that are cut through behind it. So a stepped link need not act when a packet departs, but
//! that much later at the latest (in parallel simulation: its lookahead), or when somebody looks at it: a packet
//! that arrives by an event, a tick, a signal, a monitor, a boundary of the measured window. Then it catches up with all that
//! has come before, in the order in which events would have come: the verdicts are the same, at a fraction of the events.

use std::collections::VecDeque;

use crate::clock::Clock;
use crate::event::EventKind;
use crate::world::World;

/// A moment and the order of an event then: what comes before what.
pub(crate) type Moment<C> = (C, u32);

/// What is to happen at a link that is served on demand.
#[derive(Debug)]
pub(crate) struct OnDemand<C: Clock> {
    /// Packets on their way over the link before, if all packets come over that one: when they arrive, and their slots.
    arrivals: VecDeque<(C, u32)>,
    /// The order of these arrivals among events at the same time.
    arrival_rank: u32,
    /// Stepped service: when the packet being sent will have been sent, or when a class may send again.
    departs_at: C,
    /// How long after the beginning of a transmission anybody else can see something of it, at the earliest.
    pub lookahead: C::Span,
    /// When the link catches up at the latest: the time of its event. [`Clock::NEVER`]: there is nothing to catch up with.
    due: C,
}

/// What happens next at a link.
enum Next<C> {
    /// A packet comes: when, and its slot.
    Arrival(C, u32),
    /// The link may send.
    Departure(C),
}

impl<C: Clock> OnDemand<C> {
    /// Nothing to happen yet. `fed_by`: the link over which all packets come, if it is one; `lookahead`: see the field.
    pub fn new(fed_by: Option<u32>, lookahead: C::Span) -> OnDemand<C> {
        OnDemand {
            arrivals: VecDeque::new(),
            arrival_rank: fed_by.map_or(0, EventKind::arrival_rank),
            departs_at: C::NEVER,
            lookahead,
            due: C::NEVER,
        }
    }

    /// What happens next, if it comes before `until`; an arrival is taken. A departure has this rank, and comes before an
    /// arrival at the same time.
    #[inline(always)]
    fn next_before(&mut self, until: Moment<C>, departure_rank: u32) -> Option<Next<C>> {
        match self.arrivals.front() {
            Some(&(at, slot)) if at < self.departs_at && (at, self.arrival_rank) < until => {
                self.arrivals.pop_front();
                Some(Next::Arrival(at, slot))
            }
            _ if (self.departs_at, departure_rank) <= until => Some(Next::Departure(self.departs_at)),
            _ => None,
        }
    }

    /// When something happens next.
    #[inline]
    fn next(&self) -> C {
        let arrives = self.arrivals.front().map_or(C::NEVER, |first| first.0);
        if arrives < self.departs_at { arrives } else { self.departs_at }
    }
}

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// A packet will arrive at `at` at a link that only the one before it feeds.
    #[inline]
    pub(crate) fn expect_arrival(&mut self, link: u32, slot: u32, at: C) {
        let Some(o) = self.links[link as usize].on_demand.as_deref_mut() else { return };
        o.arrivals.push_back((at, slot));
        if at.after(o.lookahead) < o.due {
            self.set_due(link);
        }
    }

    /// Stepped service: the link has to act again at `at`, when it has sent a packet.
    #[inline]
    pub(crate) fn plan_departure(&mut self, link: u32, at: C) {
        if let Some(o) = &mut self.links[link as usize].on_demand {
            o.departs_at = at;
            return;
        }
        let due = (at, self.tie(EventKind::Departure(link)));
        let l = &mut self.links[link as usize];
        if l.waiting() == 0 {
            l.rests_at = due;
        } else {
            self.requeue(due, EventKind::Departure(link));
        }
    }

    /// Service by events: a packet has joined the queue behind one that is being sent; that one's departure is an event now.
    #[inline]
    pub(crate) fn await_departure(&mut self, link: u32) {
        let rests_at = &mut self.links[link as usize].rests_at;
        if rests_at.0 < C::NEVER {
            let due = std::mem::replace(rests_at, (C::NEVER, 0));
            self.requeue(due, EventKind::Departure(link));
        }
    }

    /// Service by events: a link whose last packet was sent before the current event has been idle since then.
    #[inline(never)]
    fn rest(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if l.has_rested((self.now, self.order)) {
            let (at, _) = std::mem::replace(&mut l.rests_at, (C::NEVER, 0));
            if !l.rest(at) {
                self.start_next(link, at);
            }
        }
    }

    /// Stepped service: the link has nothing that it may send now. It acts again when the next packet arrives, or when one of its
    /// classes may send.
    pub(crate) fn plan_rest(&mut self, link: u32, now: C) {
        let l = &mut self.links[link as usize];
        let ready = l.ready_after(now);
        match &mut l.on_demand {
            Some(o) => o.departs_at = ready.unwrap_or(C::NEVER),
            None => {
                if let Some(at) = ready.filter(|at| l.wake(now, *at)) {
                    self.schedule(at, EventKind::Departure(link));
                }
            }
        }
    }

    /// Schedules the event by which a link catches up at the latest, unless it has one that is as soon.
    #[inline]
    pub(crate) fn plan_catching_up(&mut self, link: u32) {
        let l = &self.links[link as usize];
        let Some(o) = l.on_demand.as_deref() else { return };
        let next = o.next();
        if next < C::NEVER && next.after(o.lookahead) < o.due {
            self.set_due(link);
        }
    }

    #[inline(never)]
    fn set_due(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        let waiting = l.waiting() > 0;
        let Some(o) = l.on_demand.as_deref_mut() else { return };
        // A link that only finishes its last packet shows nothing new to anybody.
        let next = if waiting { o.next() } else { o.arrivals.front().map_or(C::NEVER, |first| first.0) };
        if next < C::NEVER && next.after(o.lookahead) < o.due {
            o.due = next.after(o.lookahead);
            let due = o.due;
            self.schedule(due, EventKind::Departure(link));
        }
    }

    /// A link's event, if it is served on demand: it catches up. An event that an earlier one has overtaken is void.
    pub(crate) fn catch_up_by_event(&mut self, link: u32) {
        let now = self.now;
        if self.links[link as usize].on_demand.as_ref().is_none_or(|o| o.due != now) {
            return;
        }
        self.catch_up(link);
        if let Some(o) = &mut self.links[link as usize].on_demand {
            o.due = C::NEVER;
        }
        self.plan_catching_up(link);
    }

    /// What comes before the current event at a link and is no event has happened after this. Nothing has to be planned meanwhile: a
    /// link that expects arrivals has an event that is soon enough for all that follows them.
    pub(crate) fn catch_up(&mut self, link: u32) {
        let (until, rank) = ((self.now, self.order), EventKind::Departure(link).rank());
        loop {
            let l = &mut self.links[link as usize];
            let stepped = l.stepped;
            let Some(o) = l.on_demand.as_deref_mut() else { return self.rest(link) };
            match o.next_before(until, rank) {
                Some(Next::Arrival(at, slot)) if stepped => self.join_queue_stepped(slot, link, at),
                Some(Next::Arrival(at, slot)) => self.enter(slot, at),
                Some(Next::Departure(at)) => self.start_next(link, at),
                None => return,
            }
        }
    }

    /// The same at all links.
    pub(crate) fn catch_up_everywhere(&mut self) {
        for link in 0..self.links.len() as u32 {
            self.catch_up(link);
        }
    }

    /// Stepped service: departures that come before `until`, if they are no events.
    #[inline(always)]
    pub(crate) fn depart_before(&mut self, link: u32, until: Moment<C>) {
        if self.links[link as usize].on_demand.is_none() {
            return self.rest(link);
        }
        let rank = EventKind::Departure(link).rank();
        while let Some(o) = &self.links[link as usize].on_demand {
            let at = o.departs_at;
            if (at, rank) > until {
                break;
            }
            self.start_next(link, at);
        }
    }

    /// Brings a link up to now, for whoever looks at it.
    pub(crate) fn bring_up_to_date(&mut self, link: u32) {
        self.catch_up(link);
        self.links[link as usize].settle(self.now);
    }
}

//! Links served on demand: their arrivals and departures are no events, but happen when somebody looks.
//!
//! Where packets come to a link over one other link alone, they come in order, and each one's time is known before it comes.
//! Such packets wait in a list, and the calendar need not hold them. What a link has sent can be seen elsewhere only
//! after a delay, its own and that of links that are cut through behind it. So a stepped link need not act when a packet departs, but
//! that much later at the latest (in parallel simulation: its lookahead), or when somebody looks at it: a packet
//! that arrives by an event, a tick, a signal, a monitor, a boundary of the measured window. Then it catches up with all that
//! has come before, in the order in which events would have come: the verdicts are the same, at a fraction of the events.
//!
//! A link that nobody looks at, and whose disciplines hear of nothing but packets and their own ticks, need not wait for the present. It
//! is cut through: a packet joins its queue as soon as its arrival is known, after all departures and ticks that come before.

use inprofile_core::signal::Outbox;

use crate::agenda::{Act, Next};
use crate::clock::Clock;
use crate::event::EventKind;
use crate::world::World;

/// The order of a link's departures and of its ticks among events at the same time.
#[inline]
fn ranks(link: u32) -> (u32, u32) {
    (EventKind::Departure(link).rank(), EventKind::QueueTick(link).rank())
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
        if l.queue.waiting() == 0 {
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
        let waiting = l.queue.waiting() > 0;
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

    /// Brings a link up to the current event: all that comes before it there and is no event of its own has then happened. Nothing has to
    /// be planned meanwhile: a link that expects arrivals has an event that is soon enough for all that follows them.
    pub(crate) fn catch_up(&mut self, link: u32) {
        let (until, ranks) = ((self.now, self.order), ranks(link));
        loop {
            let l = &mut self.links[link as usize];
            let stepped = l.stepped;
            let Some(o) = l.on_demand.as_deref_mut() else { return self.rest(link) };
            match o.next_before(until, ranks) {
                Some(Next::Arrival(at, slot)) if stepped => self.join_queue_stepped(slot, link, at),
                Some(Next::Arrival(at, slot)) => self.enter(slot, at),
                Some(Next::Act(act)) => self.act(link, act),
                None => return,
            }
        }
    }

    #[inline(always)]
    fn act(&mut self, link: u32, act: Act<C>) {
        match act {
            Act::Departure(at) => self.start_next(link, at),
            Act::Tick(at) => self.tick_ahead(link, at),
        }
    }

    /// The disciplines of a link that is cut through tick. Nobody hears of it.
    #[inline(never)]
    fn tick_ahead(&mut self, link: u32, at: C) {
        let l = &mut self.links[link as usize];
        let next = l.queue.tick(at.time(), &mut Outbox::default());
        if let Some(o) = &mut l.on_demand {
            o.ticks_at = next.map_or(C::NEVER, C::at);
        }
    }

    /// The same at all links.
    pub(crate) fn catch_up_everywhere(&mut self) {
        for link in 0..self.links.len() as u32 {
            self.catch_up(link);
        }
    }

    /// Stepped service: departures, and ticks of a link that is cut through, that come before an arrival at this time, if they are no
    /// events. Both come before arrivals at the same time.
    #[inline(always)]
    pub(crate) fn depart_before(&mut self, link: u32, arrival: C) {
        while let Some(o) = &self.links[link as usize].on_demand {
            let Some(act) = o.acts_by(arrival) else { return };
            self.act(link, act);
        }
        self.rest(link);
    }

    /// Brings a link up to now, so that its state can be read.
    pub(crate) fn bring_up_to_date(&mut self, link: u32) {
        self.catch_up(link);
        self.links[link as usize].settle(self.now);
    }
}

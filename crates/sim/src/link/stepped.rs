//! Stepped service: every departure is an event, or happens when something looks at the link ([`on_demand`](crate::path::on_demand)).

use std::cmp::Ordering;

use inprofile_core::ns2::Moment;
use inprofile_core::packet::{Kind, Packet};
use inprofile_core::queue::Queue;
use inprofile_core::queue::ack_filter::{self, Acknowledgement};
use inprofile_core::queue::fifo::Item;
use inprofile_core::rng::Rng;
use inprofile_core::verdict::{Admission, Cause, Why};

use super::Link;
use crate::clock::Clock;
use crate::link_queue::QueueState;
use crate::link_queue::QueuedPacket;
use crate::packet::{InFlight, Slab};
use crate::tcp::Flags;

/// What the filter goes by. A packet that is longer than its header has options: SACK blocks, AccECN's counters.
fn seen(t: &InFlight, header: u32) -> Acknowledgement {
    let (packet, flags) = (&t.packet, t.flags());
    let flagged = flags.has(Flags::SYN) || flags.has(Flags::AE);
    let plain = packet.kind == Kind::Ack && packet.size <= header && !flagged;
    Acknowledgement { number: packet.ack, ecn: flags.ace(), plain }
}

impl<C: Clock> Link<C> {
    /// Stepped service: a packet arrives; the queue admits or drops it.
    pub fn arrive<W: Why>(
        &mut self,
        now: C,
        slot: u32,
        packet: &Packet,
        shared: Option<&mut Rng>,
        why: &mut W,
    ) -> Admission {
        let time = now.time();
        let item = QueuedPacket::new(now, slot, packet);
        let idle_since = self.free_at;
        let q = self.settle_stepped(now);
        if C::NS2 {
            q.aqm.tell_moment(Moment { secs: now.secs(), idle: C::secs_of(now.since(idle_since)) });
        }
        let rng = shared.unwrap_or(&mut q.rng);
        match &mut q.classes {
            Some(classes) => classes.queue.arrive(time, packet, item, rng, why),
            None => q.fifo.arrive(time, packet, item, &mut q.aqm, rng, why),
        }
    }

    /// Whether it has an [`ack_filter`].
    #[inline(always)]
    pub fn filters_acks(&self) -> bool {
        self.filters
    }

    /// An acknowledgement in this slot has joined: one that it supersedes is evicted. `header`: the size of its flow's acknowledgements
    /// without options.
    #[inline(never)]
    pub fn filter_acks(&mut self, slot: u32, packets: &Slab, header: u32) {
        let Some(q) = self.queue.get_mut() else { return };
        let newest = packets.get(slot);
        let flow = newest.packet.flow;
        let waiting = (0..).zip(q.fifo.iter()).filter(|(_, item)| item.flow() == flow && item.slot != slot);
        let waiting = waiting.map(|(place, item)| (place, seen(packets.get(item.slot), header)));
        if let Some(place) = ack_filter::superseded(waiting, seen(newest, header)) {
            q.fifo.evict(place);
        }
    }

    /// Stepped service: the link sends nothing for now, even if packets wait.
    pub fn hold(&mut self, now: C) -> bool {
        self.busy = false;
        self.free_at = now;
        true
    }

    /// Stepped service: whether a packet is being sent.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Stepped service by events: whether a packet that arrives now, at an event of this order, finds the link idle, and need not join
    /// its queue.
    #[inline(always)]
    pub fn sends_at_once(&self, (now, order): (C, u32)) -> bool {
        self.sends_at_once && now < self.next_boundary && (!self.busy || self.has_rested((now, order)))
    }

    /// Service by events: whether the last packet, behind which none waits, was sent before an event of this order.
    #[inline]
    pub fn has_rested(&self, (now, order): (C, u32)) -> bool {
        let (at, place) = self.rests_at;
        at < now || (at == now && C::tie(place, order) == Ordering::Less)
    }

    /// Stepped service: the next packet, the time it takes, and when it will be at the far end: [`Clock::NEVER`] where it is lost on
    /// the way. `None`: nothing to send.
    pub fn start_next<W: Why>(
        &mut self,
        now: C,
        packets: &Slab,
        mut shared: Option<&mut Rng>,
        why: &mut W,
        mut dropped: impl FnMut(QueuedPacket<C>, Cause),
    ) -> Option<(QueuedPacket<C>, C::Span, C)> {
        let time = now.time();
        let q = self.settle_stepped(now);
        if C::NS2 {
            q.aqm.tell_moment(Moment { secs: now.secs(), idle: 0.0 });
        }
        let packet = |w: &QueuedPacket<C>| w.as_packet(&packets.get(w.slot).packet);
        let next = if q.classes.is_some() {
            q.depart_class(time, packet, shared, why, dropped)
        } else {
            let mut cause = None;
            loop {
                let rng = shared.as_deref_mut().unwrap_or(&mut q.rng);
                let next = q.fifo.decide_next(time, &packet, &mut q.aqm, rng, why, &mut cause);
                let (Some(head), Some(cause)) = (next, cause.take()) else { break next };
                q.drop_head(head.at.time(), time);
                dropped(head, cause);
                why.next_packet();
            }
        };
        let Some(next) = next else {
            q.fifo.went_idle(time);
            self.busy = false;
            self.free_at = now;
            return None;
        };
        if let Some(waits) = &mut q.waits {
            waits.record(next.at.time(), time, next.flow(), next.colour());
        }
        self.busy = true;
        let takes = self.serialise(next.at, now, next.size);
        let until = now.after(takes);
        self.sends_until = until;
        if self.reported {
            // The times as mechanisms see them: whole picoseconds do not add up to more than has passed.
            let takes = until.time().since(time).0;
            self.sending += takes;
            let q = self.queue.get_or_create();
            match &mut q.classes {
                Some(classes) => classes.sends(next.waited(time), takes),
                None => q.area += next.waited(time),
            }
        }
        let mut there = now.after(C::add(takes, self.delay));
        if self.more.is_some() {
            there = self.arrival(now, there).unwrap_or(C::NEVER);
        }
        Some((next, takes, there))
    }

    /// The slot and the flow of the packet that is expected to leave next, if the discipline, which serves flows in turn, has just
    /// named it.
    #[inline(always)]
    pub fn take_expected(&mut self) -> Option<(u32, u32)> {
        let packet = self.queue.get_mut()?.fifo.take_expected()?;
        Some((packet.slot, packet.flow().0))
    }

    /// Stepped service: the last packet was sent at `at`, and none waits. False: call [`Link::start_next`], as there is a scheduler
    /// or a discipline with several queues to ask.
    pub fn rest(&mut self, at: C) -> bool {
        let q = self.queue.get_or_create();
        if q.classes.is_some() || q.fifo.has_flow_queues() {
            return false;
        }
        let time = at.time();
        self.settle_stepped(at).fifo.went_idle(time);
        self.busy = false;
        self.free_at = at;
        true
    }

    /// Stepped service of classes: whether a packet is still being sent, so that a departure scheduled for `now` is void.
    pub fn is_sending(&self, now: C) -> bool {
        self.busy && self.sends_until > now && self.queue.get().is_some_and(|q| q.classes.is_some())
    }

    /// Stepped service of classes, none of which may send now: when the first may, if a packet waits.
    pub fn ready_after(&self, now: C) -> Option<C> {
        let ready = self.queue.get()?.classes.as_ref()?.queue.next_ready()?;
        Some(C::at(ready)).filter(|at| *at > now)
    }

    /// Whether an event has to be scheduled at `at`, when a class may send: no, if one is scheduled by then.
    pub fn wake(&mut self, now: C, at: C) -> bool {
        self.queue.get_mut().and_then(|q| q.classes.as_mut()).is_some_and(|classes| classes.wake(now, at))
    }

    /// [`Link::settle`] with stepped service: crosses boundaries of the window. Returns the queue.
    #[inline(always)]
    pub(super) fn settle_stepped(&mut self, now: C) -> &mut QueueState<C> {
        while self.next_boundary <= now {
            self.cross_boundary();
        }
        self.queue.get_or_create()
    }
}

mod boundaries {
    //! The boundaries that a link crosses before anything that comes at the same time or later: the boundaries of the measured window, and of samples.
    //!
    //! A link that is cut through may run ahead of the present. So its monitors' series are kept with it: it takes each sample
    //! as it passes the sample's time, and no sample is an event.

    use super::super::Link;
    use crate::clock::Clock;
    use crate::link_queue::Snapshot;
    use crate::record::QueueRecord;

    impl<C: Clock> Link<C> {
        /// The link may run ahead of the present: these are its monitors' series.
        pub fn record_ahead(&mut self, records: Box<[QueueRecord]>) {
            self.queue.get_or_create().records = records;
            self.next_boundary = self.first_boundary();
            self.allow_bypass();
        }

        /// The series with all their samples, at the end of the run.
        pub fn take_records(&mut self, end: C) -> Box<[QueueRecord]> {
            if self.queue.get().is_none_or(|q| q.records.is_empty()) {
                return Box::default();
            }
            self.settle(end);
            let mut records = std::mem::take(&mut self.queue.get_or_create().records);
            // What is sampled at the end itself has not been passed.
            for record in records.iter_mut().filter(|record| record.next() <= end.time()) {
                record.sample(&self.read(None));
            }
            records
        }

        /// Crosses a boundary of the window, or of samples, before anything else that happens at that time.
        #[cold]
        pub(crate) fn cross_boundary(&mut self) {
            let here = self.next_boundary;
            if self.window_boundary() == here {
                self.take_snapshot(here);
            }
            self.pass_samples(here);
            self.next_boundary = self.first_boundary();
            self.allow_bypass();
        }

        /// The first of the boundaries of the window and of samples that has not been crossed.
        fn first_boundary(&self) -> C {
            let window = self.window_boundary();
            let samples = self.queue.get().into_iter().flat_map(|q| &q.records).map(QueueRecord::boundary);
            samples.fold(window, |first, here| if here < first { here } else { first })
        }

        /// The first boundary of the window that has not been crossed.
        fn window_boundary(&self) -> C {
            match self.queue.get().filter(|_| self.reported) {
                Some(q) if q.snapshots.is_empty() => C::at(q.window.0),
                Some(q) if q.snapshots.len() == 1 => C::at(q.window.1),
                _ => C::NEVER,
            }
        }

        /// Keeps what samples see whose boundary is here.
        fn pass_samples(&mut self, here: C) {
            let Some(q) = self.queue.get_mut() else { return };
            if q.records.iter().all(|record| record.boundary::<C>() != here) {
                return;
            }
            q.fifo.release(|head| head.at < here);
            let mut records = std::mem::take(&mut q.records);
            for record in records.iter_mut().filter(|record| record.boundary::<C>() == here) {
                record.sample(&self.read(None));
            }
            self.queue.get_or_create().records = records;
        }

        /// Takes a snapshot at a boundary of the window.
        fn take_snapshot(&mut self, turn: C) {
            let mut sending = self.busy_time();
            let q = self.queue.get_or_create();
            let mut area = q.area;
            if self.stepped {
                area += q.fifo.iter().map(|w| w.waited(turn.time())).sum::<u128>();
                sending -= self.sends_until.time().since(turn.time()).0;
            } else {
                q.fifo.release(|head| head.at < turn);
                // What those in the queue will have waited after the boundary.
                area -= q.fifo.iter().map(|w| u128::from(w.at.time().since(turn.time()).0)).sum::<u128>();
                // They are sent back to back, so what is left to be sent takes until the link is idle.
                sending -= self.free_at.time().since(turn.time()).0;
            }
            if let Some(classes) = &mut q.classes {
                area = classes.cross_boundary(turn.time(), self.sends_until.time());
            }
            let counts = self.view(None).counts;
            let q = self.queue.get_or_create();
            q.snapshots.push(Snapshot { counts, area, sending });
        }
    }
}

//! A link and its queue.
//!
//! At a FIFO link whose discipline decides on arrival, a packet's departure time is known when it arrives: service is
//! *computed*, and the only event is the arrival at the far end. Disciplines that remove packets from the queue or
//! decide at departure, schedulers, and ns-2's order of events need every departure as an event: service is *stepped*.
//! Both give the same verdicts.

mod stepped;

use inprofile_core::aqm::drop_tail::DropTail;
use inprofile_core::packet::{Colour, Ecn, Packet};
use inprofile_core::queue::Queue;
use inprofile_core::registry::AnyAqm;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Duration, Rate, Time};
use inprofile_core::verdict::{Admission, Cause, Silent};

use crate::access::{Access, AccessState};
use crate::agenda::Agenda;
use crate::capacity::Capacity;
use crate::classes::Classes;
use crate::clock::Clock;
use crate::link_queue::QueuedPacket;
use crate::link_queue::{LinkQueue, QueueState};
use crate::measure::waits::Waits;
use crate::network;
use crate::route::Service;
use crate::tcp::Sack;
use crate::timer::Due;
use crate::wire::{Wire, WireState};

/// The properties of a packet that bypasses a link's queue: size and colour, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(u64);

impl Shape {
    /// Of this size and colour.
    #[inline]
    pub fn new(size: u32, colour: Colour) -> Shape {
        Shape(u64::from(size) << 8 | colour as u64)
    }

    fn size(self) -> u32 {
        (self.0 >> 8) as u32
    }

    /// The colour as an index.
    fn colour(self) -> usize {
        (self.0 & 0xff) as usize
    }
}

/// How many transmission times are kept, and from how many packets on: a flow's own links, of which there may be very many, see few.
const TX_TIMES: usize = 8;
const TX_TIMES_FROM: u64 = 64;

/// Sizes and their transmission times.
type TxTimes<C> = [(u32, <C as Clock>::Span); TX_TIMES];

/// Where that of a size is kept: acknowledgements with so many SACK blocks each have a place of their own.
#[inline(always)]
fn place_of(size: u32) -> usize {
    (size / Sack::BLOCK_BYTES) as usize % TX_TIMES
}

/// What a link in the field has beyond a rate and a delay.
#[derive(Debug)]
struct More<C: Clock> {
    /// How its rate changes, if it does. Then `last` has no size: every packet's time is computed anew.
    capacity: Option<Capacity>,
    /// How it comes to send, if not at once. Likewise.
    access: Option<AccessState>,
    /// What happens on the way, if anything.
    wire: Option<WireState<C>>,
    /// When the last packet that was lost on the way was sent.
    lost_at: C,
}

impl<C: Clock> More<C> {
    fn none() -> Box<More<C>> {
        Box::new(More { capacity: None, access: None, wire: None, lost_at: C::ZERO })
    }

    /// How long a packet takes that came at `arrived` and whose turn it is at `begins`, if that is not as at any time.
    fn serialise(&mut self, arrived: Time, begins: Time, size: u32, rate: Rate) -> Option<Duration> {
        let size = Bytes(u64::from(size));
        match (&mut self.access, &self.capacity) {
            (Some(access), _) => Some(access.serialise(arrived, begins, size, rate)),
            (None, Some(capacity)) => Some(capacity.serialise(begins, size)),
            (None, None) => None,
        }
    }
}

/// A link in a run. What a packet that bypasses the queue touches comes first.
#[derive(Debug)]
#[repr(C)]
pub struct Link<C: Clock> {
    /// Computed service: when the last packet admitted will have been sent. Stepped: since when it is idle.
    free_at: C,
    /// Until when packets that find the link idle bypass the queue: the next boundary, or the end of the run. Where none may
    /// bypass it: the start.
    bypass_until: C,
    /// The shape of the last packet.
    last: Shape,
    /// The transmission time of its size.
    tx_time: C::Span,
    /// Packets of that shape that have bypassed the queue since the shape last changed.
    bypassed_alike: u64,
    delay: C::Span,
    /// Packets that had bypassed the queue before that, by colour, and their bytes.
    bypassed: [(u64, u64); 3],
    /// The next boundary of the measured window (its beginning, then its end, then never), or that of a sample that comes before it.
    next_boundary: C,
    /// When the run ends.
    end: C,
    /// Whether a packet that finds the link idle bypasses the queue: computed service, drop-tail, room for two.
    can_bypass: bool,
    /// Whether a packet that finds the link idle is sent without joining the queue: stepped service, otherwise the same.
    sends_at_once: bool,
    /// Whether every departure is an event.
    pub stepped: bool,
    /// Whether results report it: counters over time and over the window are kept.
    pub reported: bool,
    /// Stepped service: whether an acknowledgement that waits goes as a newer one joins.
    filters: bool,
    /// Stepped service: whether a packet is being sent.
    busy: bool,
    /// Stepped service: when the packet being sent will have been sent.
    sends_until: C,
    rate: Rate,
    /// The transmission times of some sizes: acknowledgements with and without SACK blocks come by turns.
    tx_times: Option<Box<TxTimes<C>>>,
    /// What it has beyond a rate and a delay, if anything: then no packet bypasses the queue.
    more: Option<Box<More<C>>>,
    /// Time taken by the packets whose transmission has begun (computed service: by those admitted), in picoseconds. Only a
    /// reported link counts it.
    sending: u64,
    /// The queue and its counters.
    pub(crate) queue: LinkQueue<C>,
    /// The coming events here, if the link is served on demand.
    pub(crate) on_demand: Option<Box<Agenda<C>>>,
    /// Service by events: when the packet being sent, behind which nothing waits, will have been sent. That is no event unless
    /// another packet comes before. [`Clock::NEVER`]: there is none, or it is an event.
    pub(crate) rests_at: Due<C>,
}

impl<C: Clock> Link<C> {
    /// Idle and empty.
    pub fn new(link: network::Link, rng: Rng, traced: bool, window: (Time, Time), end: C) -> Link<C> {
        let stepped = C::NS2 || traced || link.serves();
        let (aqm, limit, classes) = match link.queue {
            network::Queue::One { aqm, limit } => (aqm, limit, None),
            network::Queue::Scheduled(s) => {
                let none = AnyAqm::DropTail(DropTail::default());
                (none, Backlog::Packets(0.0), Some(Box::new(Classes::new(s))))
            }
        };
        let roomy = matches!(limit, Backlog::Packets(n) if n >= 2.0);
        let admits_all = roomy && matches!(aqm, AnyAqm::DropTail(_)) && link.capacity.is_none();
        let can_bypass = !stepped && admits_all;
        let queue = match aqm {
            AnyAqm::DropTail(aqm) if can_bypass && !link.reported => LinkQueue::Unused(aqm, limit),
            aqm => LinkQueue::Used(Box::new(QueueState::new(limit, aqm, classes, rng, window))),
        };
        let mut link = Link {
            free_at: C::ZERO,
            bypass_until: C::ZERO,
            last: Shape::new(0, Colour::IN),
            tx_time: C::NO_TIME,
            bypassed_alike: 0,
            delay: C::span(link.delay),
            bypassed: [(0, 0); 3],
            next_boundary: if link.reported { C::at(window.0) } else { C::NEVER },
            end,
            can_bypass,
            sends_at_once: stepped && admits_all && !link.ack_filter,
            stepped,
            reported: link.reported,
            filters: link.ack_filter,
            busy: false,
            sends_until: C::ZERO,
            rate: link.rate,
            tx_times: None,
            more: link.capacity.map(|c| Box::new(More { capacity: Some(c), ..*More::none() })),
            sending: 0,
            queue,
            on_demand: None,
            rests_at: (C::NEVER, 0),
        };
        link.allow_bypass();
        link
    }

    /// Serves it on demand, or, if it is cut through and served packet by packet, as soon as arrivals are known.
    pub(crate) fn serve_on_demand(&mut self, service: Service, lookahead: Duration) {
        self.on_demand = Some(Box::new(Agenda::new(service, C::span(lookahead))));
    }

    /// Its propagation delay.
    pub fn delay(&self) -> C::Span {
        self.delay
    }

    /// No packet bypasses the queue.
    pub(crate) fn refuse_bypass(&mut self) {
        self.can_bypass = false;
        self.sends_at_once = false;
        self.bypass_until = C::ZERO;
    }

    /// Delays or loses packets on their way from now on.
    pub fn set_wire(&mut self, wire: Wire, rng: Rng) {
        self.refuse_bypass();
        self.more.get_or_insert_with(More::none).wire = Some(WireState::new(wire, rng));
    }

    /// Sends only when it may from now on.
    pub fn set_access(&mut self, access: Access, rng: Rng) {
        self.refuse_bypass();
        self.more.get_or_insert_with(More::none).access = Some(AccessState::new(access, rng));
    }

    /// A packet is sent whose transmission begins now. When it will be at the far end; `None`: it is lost on the way.
    #[inline(never)]
    fn arrival(&mut self, now: C, there: C) -> Option<C> {
        let Some(More { wire: Some(wire), lost_at, .. }) = self.more.as_deref_mut() else {
            return Some(there);
        };
        let at = wire.arrival(now, there);
        if at.is_none() {
            *lost_at = now;
        }
        at
    }

    /// When the last packet that was lost on the way was sent.
    pub fn lost_at(&self) -> C {
        self.more.as_ref().map_or(C::NEVER, |more| more.lost_at)
    }

    /// Measures every packet's queueing delay from now on: none bypasses the queue.
    pub fn measure_delays(&mut self, waits: Waits) {
        self.refuse_bypass();
        self.queue.get_or_create().waits = Some(Box::new(waits));
    }

    /// The queueing delays that were measured.
    pub fn take_delays(&mut self) -> Option<Waits> {
        self.queue.get_mut()?.waits.take().map(|waits| *waits)
    }

    /// Lets packets bypass the queue up to the next boundary or the end.
    fn allow_bypass(&mut self) {
        if self.can_bypass {
            self.bypass_until = if self.next_boundary < self.end { self.next_boundary } else { self.end };
        }
    }

    /// A packet arrives. If the link is idle and its queue can be bypassed: when the packet will be at the far end.
    /// `None`: the queue has to take it.
    #[inline]
    pub fn bypass(&mut self, now: C, shape: Shape) -> Option<C> {
        if now < self.free_at || now >= self.bypass_until {
            return None;
        }
        if shape != self.last {
            self.change_shape(shape);
        }
        self.bypassed_alike += 1;
        self.free_at = now.after(self.tx_time);
        Some(self.free_at.after(self.delay))
    }

    /// Stepped service: the same at a link that [sends at once](Link::sends_at_once): when the packet will have been sent, and when it
    /// will be at the far end.
    #[inline(always)]
    pub fn send_at_once(&mut self, now: C, shape: Shape) -> (C, C) {
        if shape != self.last {
            self.change_shape(shape);
        }
        self.bypassed_alike += 1;
        self.busy = true;
        let until = now.after(self.tx_time);
        if self.reported {
            self.sends_until = until;
            self.sending += until.time().since(now.time()).0;
        }
        (until, now.after(C::add(self.tx_time, self.delay)))
    }

    /// The transmission time of all packets whose transmission has begun or, with computed service, is known, in
    /// picoseconds.
    fn busy_time(&self) -> u64 {
        let bypassed = if self.stepped { 0 } else { self.bypassed_alike };
        self.sending + bypassed * C::span_ps(self.tx_time)
    }

    /// Packets that have bypassed the queue, by colour, and their bytes.
    pub fn bypassed(&self) -> [(u64, u64); 3] {
        let mut bypassed = self.bypassed;
        let (packets, bytes) = &mut bypassed[self.last.colour()];
        *packets += self.bypassed_alike;
        *bytes += self.bypassed_alike * u64::from(self.last.size());
        bypassed
    }

    /// Computed service: a packet arrives at the queue. When it will be at the far end, or why it is dropped: by the queue, or on its way
    /// ([`Cause::LINK_ERROR`]).
    #[inline(always)]
    pub fn admit(&mut self, now: C, slot: u32, packet: &mut Packet) -> Result<C, Cause> {
        while self.next_boundary <= now {
            self.cross_boundary();
        }
        // Nearly every packet that comes here finds the link busy: it is not idle, and nobody bypasses its queue.
        let busy = now < self.free_at;
        if !busy {
            self.release(now);
            if let Some(there) = self.bypass(now, Shape::new(packet.size, packet.colour)) {
                return Ok(there);
            }
        }
        let starts = now.max(self.free_at);
        let item = QueuedPacket::new(starts, slot, packet);
        let q = self.queue.get_or_create();
        if busy {
            q.make_room(now);
        }
        match q.fifo.arrive(now.time(), packet, item, &mut q.aqm, &mut q.rng, &mut Silent) {
            Admission::Drop(cause) => return Err(cause),
            Admission::Mark => packet.ecn = Ecn::Experienced,
            Admission::Admit => {}
        }
        if self.reported {
            q.area += u128::from(starts.time().since(now.time()).0);
        }
        if let Some(waits) = &mut q.waits {
            waits.record(now.time(), starts.time(), packet.flow, packet.colour);
        }
        self.free_at = starts.after(self.serialise(now, starts, packet.size));
        if self.reported {
            self.sending += self.free_at.time().since(starts.time()).0;
        }
        let there = self.free_at.after(self.delay);
        if self.more.is_some() {
            return self.arrival(starts, there).ok_or(Cause::LINK_ERROR);
        }
        Ok(there)
    }

    /// Brings the link up to `now`: crosses boundaries of the window and, with computed service, removes packets whose
    /// transmission has started.
    pub fn settle(&mut self, now: C) {
        if self.stepped {
            self.settle_stepped(now);
            return;
        }
        while self.next_boundary <= now {
            self.cross_boundary();
        }
        self.release(now);
    }

    /// Computed service: removes packets whose transmission has started by `now`.
    #[inline(always)]
    fn release(&mut self, now: C) {
        let Some(q) = self.queue.get_mut() else { return };
        q.fifo.release(|head| head.at <= now);
        if self.free_at <= now && q.fifo.idle_since().is_none() {
            q.fifo.went_idle(self.free_at.time());
        }
    }

    #[inline]
    fn serialise(&mut self, arrived: C, begins: C, size: u32) -> C::Span {
        if size != self.last.size() {
            self.change_shape(Shape::new(size, Colour::ALL[self.last.colour()]));
            let rate = self.rate;
            let more = self.more.as_deref_mut();
            if let Some(takes) = more.and_then(|m| m.serialise(arrived.time(), begins.time(), size, rate)) {
                self.tx_time = C::span(takes);
                self.last = Shape::new(0, Colour::ALL[self.last.colour()]);
            }
        }
        self.tx_time
    }

    /// The shape differs from that of the last packet.
    #[cold]
    #[inline(never)]
    fn change_shape(&mut self, shape: Shape) {
        self.sending = self.busy_time();
        let (packets, bytes) = &mut self.bypassed[self.last.colour()];
        *packets += self.bypassed_alike;
        *bytes += self.bypassed_alike * u64::from(self.last.size());
        self.bypassed_alike = 0;
        let keep = *packets >= TX_TIMES_FROM;
        let size = shape.size();
        let before = std::mem::replace(&mut self.last, shape).size();
        if size == before {
            return;
        }
        match self.tx_times.as_deref().map(|known| known[place_of(size)]) {
            Some((of, tx_time)) if of == size => self.tx_time = tx_time,
            _ => self.compute_tx_time(size, keep),
        }
    }

    /// The transmission time of a size that is not known; `keep`: which will be asked for again.
    #[inline(never)]
    fn compute_tx_time(&mut self, size: u32, keep: bool) {
        self.tx_time = C::serialise(self.rate, Bytes(u64::from(size)));
        if keep || self.tx_times.is_some() {
            let known = self.tx_times.get_or_insert_with(|| Box::new([(0, C::NO_TIME); TX_TIMES]));
            known[place_of(size)] = (size, self.tx_time);
        }
    }
}

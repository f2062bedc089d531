//! A link and the queue before it.
//!
//! A first-in-first-out link whose discipline decides on arrival knows at once when a packet will
//! leave: its service is *computed*, and needs no event but the packet's arrival at the far end. A
//! discipline that takes packets out of the queue or decides at departure, and ns-2's order of
//! events, need every departure as an event: *stepped* service. Both give the same verdicts. Classes that a scheduler
//! shares the link out to are stepped, too.

use inprofile_core::aqm::drop_tail::DropTail;
use inprofile_core::packet::{Colour, Direction, Ecn, FlowId, Packet};
use inprofile_core::queue::Queue;
use inprofile_core::queue::fifo::{Fifo, Item};
use inprofile_core::registry::AnyAqm;
use inprofile_core::rng::Rng;
use inprofile_core::signal::{Outbox, Signal};
use inprofile_core::units::{Backlog, Bytes, Rate, Time};
use inprofile_core::verdict::{Admission, Cause, Silent, Why};

use crate::classes::Classes;
use crate::clock::Clock;
use crate::network;
use crate::packet::Slab;
use crate::seen::Book;

/// A packet waiting at a link: where it is kept, and what the queue has to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<C> {
    /// Computed service: when its transmission starts.
    starts: C,
    /// Where the packet is kept.
    pub slot: u32,
    size: u32,
    flow: FlowId,
    colour: Colour,
    /// Its ECN bits, perhaps changed while it waited.
    pub ecn: Ecn,
}

impl<C> Waiting<C> {
    #[inline]
    fn new(starts: C, slot: u32, packet: &Packet) -> Waiting<C> {
        let &Packet { size, flow, colour, ecn, .. } = packet;
        Waiting { starts, slot, size, flow, colour, ecn }
    }
}

impl<C> Item for Waiting<C> {
    #[inline]
    fn size(&self) -> u32 {
        self.size
    }
    #[inline]
    fn colour(&self) -> Colour {
        self.colour
    }
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn mark(&mut self) -> bool {
        self.ecn.mark()
    }
}

/// What a link has to know of a packet that finds it free: size and colour, in one word.
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

    /// The colour's place among all.
    fn colour(self) -> usize {
        (self.0 & 0xff) as usize
    }
}

/// A link in the middle of a run. What a packet that finds it free touches comes first.
#[derive(Debug)]
#[repr(C)]
pub struct Link<C: Clock> {
    /// Computed service: when the last packet admitted will have been sent. Stepped: since when it is idle.
    free_at: C,
    /// From when on even a packet that finds the link free has to be looked at: when the window turns or the run ends. Where
    /// packets are always looked at: the start.
    open_until: C,
    /// The shape seen last.
    last: Shape,
    /// Time to send its size.
    takes: C::Span,
    /// Packets of that shape that found the link free and passed, since it was another's turn.
    alike: u64,
    delay: C::Span,
    /// Packets that found the link free and passed before, by colour, and their bytes.
    passed: [(u64, u64); 3],
    /// When the measured window next turns: at its beginning, then at its end, then never.
    turns_at: C,
    /// When the run ends.
    end: C,
    /// Whether a packet that finds the link free simply passes: computed service, drop-tail, room for two.
    plain: bool,
    /// Whether every departure is an event.
    pub stepped: bool,
    /// Whether it is counted over time and over the window.
    pub listed: bool,
    /// Stepped service: whether a packet is being sent.
    busy: bool,
    /// The queue, unless there are classes.
    pub(crate) fifo: Fifo<Waiting<C>>,
    /// The queues of classes, if a scheduler shares the link out.
    pub(crate) classes: Option<Box<Classes<C>>>,
    rate: Rate,
    /// The discipline, unless there are classes.
    pub aqm: AnyAqm,
    /// The random numbers of the discipline, or of those of all classes.
    pub rng: Rng,
    /// Packets waiting, integrated over time in packet-picoseconds. Computed service: each packet's waiting is added when it
    /// is admitted. Stepped: up to `counted_to`.
    area: u128,
    counted_to: Time,
    window: (Time, Time),
    /// Time taken by the packets whose transmission has begun (computed service: by those admitted), in picoseconds. Only a
    /// listed link counts it.
    sending: u64,
    /// Stepped service: when the packet being sent will have been sent.
    sends_until: C,
    /// The books at the turns that have passed.
    pub(crate) books: Vec<Book>,
}

impl<C: Clock> Link<C> {
    /// Idle and empty.
    pub fn new(link: network::Link, rng: Rng, traced: bool, window: (Time, Time), end: C) -> Link<C> {
        let stepped = C::NS2 || traced || link.queue.serves();
        let (aqm, limit, classes) = match link.queue {
            network::Queue::One { aqm, limit } => (aqm, limit, None),
            network::Queue::Scheduled(s) => {
                let none = AnyAqm::DropTail(DropTail::default());
                (none, Backlog::Packets(0.0), Some(Box::new(Classes::new(s))))
            }
        };
        let roomy = matches!(limit, Backlog::Packets(n) if n >= 2.0);
        let mut link = Link {
            free_at: C::ZERO,
            open_until: C::ZERO,
            last: Shape::new(0, Colour::IN),
            takes: C::NO_TIME,
            alike: 0,
            delay: C::span(link.delay),
            passed: [(0, 0); 3],
            turns_at: if link.listed { C::at(window.0) } else { C::NEVER },
            end,
            plain: !stepped && roomy && matches!(aqm, AnyAqm::DropTail(_)),
            stepped,
            listed: link.listed,
            busy: false,
            fifo: Fifo::before(limit, &aqm),
            classes,
            rate: link.rate,
            aqm,
            rng,
            area: 0,
            counted_to: Time::ZERO,
            window,
            sending: 0,
            sends_until: C::ZERO,
            books: Vec::new(),
        };
        link.open();
        link
    }

    /// Until when nobody has anything to say about packets that find the link free.
    fn open(&mut self) {
        if self.plain {
            self.open_until = if self.turns_at < self.end { self.turns_at } else { self.end };
        }
    }

    /// A packet arrives. If it finds the link free and nobody has anything to say about it, it passes: when it will be at
    /// the far end. `None`: [`Link::arrive`] has to look at it.
    #[inline]
    pub fn pass(&mut self, now: C, shape: Shape) -> Option<C> {
        if now < self.free_at || now >= self.open_until {
            return None;
        }
        if shape != self.last {
            self.turn_to(shape);
        }
        self.alike += 1;
        self.free_at = now.after(self.takes);
        Some(self.free_at.after(self.delay))
    }

    /// Time taken by all packets whose transmission has begun, or, with computed service, is known, in picoseconds.
    fn sent_for(&self) -> u64 {
        self.sending + self.alike * C::span_ps(self.takes)
    }

    /// Packets that found the link free and passed, by colour, and their bytes.
    pub fn passed(&self) -> [(u64, u64); 3] {
        let mut passed = self.passed;
        let (packets, bytes) = &mut passed[self.last.colour()];
        *packets += self.alike;
        *bytes += self.alike * u64::from(self.last.size());
        passed
    }

    /// Computed service: a packet arrives. When it will be at the far end, or why it is dropped.
    #[inline(always)]
    pub fn admit(&mut self, now: C, slot: u32, packet: &mut Packet) -> Result<C, Cause> {
        while self.turns_at <= now {
            self.turn();
        }
        self.release(now);
        if let Some(there) = self.pass(now, Shape::new(packet.size, packet.colour)) {
            return Ok(there);
        }
        let starts = now.max(self.free_at);
        let item = Waiting::new(starts, slot, packet);
        match self.fifo.arrive(now.time(), packet, item, &mut self.aqm, &mut self.rng, &mut Silent) {
            Admission::Drop(cause) => return Err(cause),
            Admission::Mark => packet.ecn = Ecn::Experienced,
            Admission::Admit => {}
        }
        if self.listed {
            self.area += u128::from(starts.time().since(now.time()).0);
        }
        self.free_at = starts.after(self.serialise(packet.size));
        if self.listed {
            self.sending += self.free_at.time().since(starts.time()).0;
        }
        Ok(self.free_at.after(self.delay))
    }

    /// Stepped service: a packet arrives, and joins the queue or is dropped.
    pub fn arrive<W: Why>(
        &mut self,
        now: C,
        slot: u32,
        packet: &Packet,
        shared: Option<&mut Rng>,
        why: &mut W,
    ) -> Admission {
        self.settle(now);
        let item = Waiting::new(now, slot, packet);
        if C::NS2 {
            self.fifo.tell_idle_secs(C::secs_of(now.since(self.free_at)));
            self.aqm.tell_secs(now.secs());
        }
        let rng = shared.unwrap_or(&mut self.rng);
        match &mut self.classes {
            Some(classes) => classes.queue.arrive(now.time(), packet, item, rng, why),
            None => self.fifo.arrive(now.time(), packet, item, &mut self.aqm, rng, why),
        }
    }

    /// Stepped service: whether a packet is being sent.
    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Stepped service: the next packet, the time it takes, and when it will be at the far end.
    /// `None`: nothing to send.
    pub fn start_next<W: Why>(
        &mut self,
        now: C,
        packets: &Slab,
        shared: Option<&mut Rng>,
        why: &mut W,
        dropped: impl FnMut(Waiting<C>, Cause),
    ) -> Option<(Waiting<C>, C::Span, C)> {
        self.settle(now);
        if C::NS2 {
            self.aqm.tell_secs(now.secs());
        }
        let rng = shared.unwrap_or(&mut self.rng);
        let packet = |w: &Waiting<C>| Packet { ecn: w.ecn, ..packets.get(w.slot).packet };
        let next = match &mut self.classes {
            Some(classes) => classes.queue.depart(now.time(), packet, rng, why, dropped),
            None => self.fifo.depart(now.time(), packet, &mut self.aqm, rng, why, dropped),
        };
        self.busy = next.is_some();
        let Some(next) = next else {
            self.free_at = now;
            self.fifo.went_idle(now.time());
            return None;
        };
        let takes = self.serialise(next.size);
        self.sends_until = now.after(takes);
        // The times as mechanisms see them: whole picoseconds do not add up to more than has passed.
        let time = self.sends_until.time().since(now.time()).0;
        self.sending += time;
        if let Some(classes) = &mut self.classes {
            classes.sends(time);
        }
        let there = now.after(C::join(takes, self.delay));
        Some((next, takes, there))
    }

    /// Stepped service of classes: whether a packet is still being sent, so that a departure planned for `now` is not one.
    pub fn is_sending(&self, now: C) -> bool {
        self.busy && self.classes.is_some() && self.sends_until > now
    }

    /// Stepped service of classes, of which none may send now: when to try again, if that is not planned already.
    pub fn wake(&mut self, now: C) -> Option<C> {
        self.classes.as_mut()?.wake(now)
    }

    /// The discipline is due, or that of some class.
    pub fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        match &mut self.classes {
            Some(classes) => classes.queue.tick(now, outbox),
            None => self.aqm.tick(now, outbox),
        }
    }

    /// A signal has arrived for the discipline; or, where there are classes, for that of one of them or for all.
    pub fn signal(&mut self, now: Time, class: Option<usize>, signal: &Signal) {
        match &mut self.classes {
            Some(classes) => classes.queue.signal(now, class, signal),
            None => self.aqm.signal(now, signal),
        }
    }

    /// A packet passes in front of the discipline, or of that of its class.
    pub fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        match &mut self.classes {
            Some(classes) => classes.queue.observe(now, packet, direction),
            None => self.aqm.observe(now, packet, direction),
        }
    }

    /// A packet that the discipline struck out of the queue.
    pub fn take_struck(&mut self) -> Option<Waiting<C>> {
        match &mut self.classes {
            Some(classes) => classes.queue.take_struck(),
            None => self.fifo.take_struck(),
        }
    }

    /// Brings the link up to `now`: the window turns if it is time, and with computed service everything
    /// leaves whose transmission has started.
    pub fn settle(&mut self, now: C) {
        while self.turns_at <= now {
            self.turn();
        }
        if self.stepped {
            match &mut self.classes {
                Some(classes) => classes.count_to(now.time()),
                None if self.listed => self.count_to(now.time()),
                None => {}
            }
            return;
        }
        self.release(now);
    }

    /// Computed service: everything leaves whose transmission has started by `now`.
    #[inline(always)]
    fn release(&mut self, now: C) {
        self.fifo.release(|head| head.starts <= now);
        if self.free_at <= now && self.fifo.idle_since().is_none() {
            self.fifo.went_idle(self.free_at.time());
        }
    }

    /// The window turns, before anything else that happens at that moment.
    #[cold]
    fn turn(&mut self) {
        let turn = self.turns_at;
        let mut area = self.area;
        let mut sending = self.sent_for();
        if self.stepped {
            self.count_to(turn.time());
            area = self.area;
            sending -= self.sends_until.time().since(turn.time()).0;
        } else {
            self.fifo.release(|head| head.starts < turn);
            // What those in the queue will have waited after the turn.
            area -= self.fifo.iter().map(|w| u128::from(w.starts.time().since(turn.time()).0)).sum::<u128>();
            // They follow each other without a pause, so all that is left to be sent takes until the link is free.
            sending -= self.free_at.time().since(turn.time()).0;
        }
        if let Some(classes) = &mut self.classes {
            area = classes.turn(turn.time(), self.sends_until.time());
        }
        self.books.push(Book { counts: self.seen(None).counts, area, sending });
        self.turns_at = if self.books.len() < 2 { C::at(self.window.1) } else { C::NEVER };
        self.open();
    }

    fn count_to(&mut self, now: Time) {
        let waiting = self.fifo.packets();
        if waiting > 0 {
            self.area += u128::from(waiting) * u128::from(now.since(self.counted_to).0);
        }
        self.counted_to = self.counted_to.max(now);
    }

    #[inline]
    fn serialise(&mut self, size: u32) -> C::Span {
        if size != self.last.size() {
            self.turn_to(Shape::new(size, Colour::ALL[self.last.colour()]));
        }
        self.takes
    }

    /// A packet of another shape than the last one.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, shape: Shape) {
        self.sending = self.sent_for();
        self.passed = self.passed();
        self.alike = 0;
        if shape.size() != self.last.size() {
            self.takes = C::serialise(self.rate, Bytes(u64::from(shape.size())));
        }
        self.last = shape;
    }
}

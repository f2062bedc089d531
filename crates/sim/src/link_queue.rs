//! The queue of a link. Most hosts' links never need one, so it is created on first use.

use inprofile_core::aqm::drop_tail::DropTail;
use inprofile_core::packet::{Colour, Direction, Ecn, FlowId, Packet};
use inprofile_core::queue::fifo::{Fifo, Item};
use inprofile_core::queue::{Counts, Queue};
use inprofile_core::registry::AnyAqm;
use inprofile_core::rng::Rng;
use inprofile_core::signal::{Outbox, Signal};
use inprofile_core::units::{Backlog, Time};
use inprofile_core::verdict::{Cause, Why};

use crate::classes::Classes;
use crate::clock::Clock;
use crate::measure::waits::Waits;
use crate::record::QueueRecord;

/// The queue of a link, created on first use.
#[derive(Debug)]
pub(crate) enum LinkQueue<C: Clock> {
    /// No packet has waited yet, at a drop-tail link that is not reported: its discipline and limit. Every host has two
    /// such links.
    Unused(DropTail, Backlog),
    /// The queue, which may be empty.
    Used(Box<QueueState<C>>),
}

impl<C: Clock> LinkQueue<C> {
    /// The queue, if it has been needed.
    #[inline]
    pub fn get(&self) -> Option<&QueueState<C>> {
        match self {
            LinkQueue::Used(queue) => Some(queue),
            LinkQueue::Unused(..) => None,
        }
    }

    /// The queue, if it has been needed.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut QueueState<C>> {
        match self {
            LinkQueue::Used(queue) => Some(queue),
            LinkQueue::Unused(..) => None,
        }
    }

    /// The queue, created if need be.
    #[inline(always)]
    pub fn get_or_create(&mut self) -> &mut QueueState<C> {
        if let LinkQueue::Unused(..) = self {
            self.create();
        }
        match self {
            LinkQueue::Used(queue) => queue,
            LinkQueue::Unused(..) => unreachable!("it has just been made"),
        }
    }

    #[cold]
    #[inline(never)]
    fn create(&mut self) {
        if let LinkQueue::Unused(aqm, limit) = self {
            let aqm = AnyAqm::DropTail(*aqm);
            // Drop-tail draws no random numbers, and a link that is not reported has no window.
            let rng = Rng::for_component(0, "drop-tail");
            let window = (Time::ZERO, Time::ZERO);
            *self = LinkQueue::Used(Box::new(QueueState::new(*limit, aqm, None, rng, window)));
        }
    }

    // With a scheduler, these go to the queues of its classes.

    /// Whether the discipline, or that of a class, keeps flows apart.
    pub fn has_flow_queues(&self) -> bool {
        self.get().is_some_and(|q| match &q.classes {
            Some(classes) => classes.queue.has_flow_queues(),
            None => q.fifo.has_flow_queues(),
        })
    }

    /// Packets waiting.
    pub fn waiting(&self) -> u32 {
        self.get().map_or(0, |q| match &q.classes {
            Some(classes) => classes.queue.packets(),
            None => q.fifo.packets(),
        })
    }

    /// The tick of the discipline, or of those of all classes.
    pub fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        let q = self.get_mut()?;
        match &mut q.classes {
            Some(classes) => classes.queue.tick(now, outbox),
            None => q.aqm.tick(now, outbox),
        }
    }

    /// Seconds between ticks of a discipline that has ns-2's own timer.
    pub fn timer_secs(&self) -> Option<f64> {
        self.get()?.aqm.timer_secs()
    }

    /// A signal arrives for the discipline; with classes, for that of one class or of all.
    pub fn signal(&mut self, now: Time, class: Option<usize>, signal: &Signal) {
        let Some(q) = self.get_mut() else { return };
        match &mut q.classes {
            Some(classes) => classes.queue.signal(now, class, signal),
            None => q.aqm.signal(now, signal),
        }
    }

    /// The discipline, or that of the packet's class, observes a packet.
    pub fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        let Some(q) = self.get_mut() else { return };
        match &mut q.classes {
            Some(classes) => classes.queue.observe(now, packet, direction),
            None => q.aqm.observe(now, packet, direction),
        }
    }

    /// Whether the discipline has evicted a packet that nobody has taken yet.
    #[inline]
    pub fn has_evicted(&self) -> bool {
        self.get().is_some_and(|q| match &q.classes {
            Some(classes) => classes.queue.has_evicted(),
            None => q.fifo.has_evicted(),
        })
    }

    /// A packet that the discipline has evicted from the queue, which it leaves at `now`.
    pub fn take_evicted(&mut self, now: Time) -> Option<QueuedPacket<C>> {
        let q = self.get_mut()?;
        let victim = if let Some(classes) = &mut q.classes {
            classes.take_evicted(now)?
        } else {
            let victim = q.fifo.take_evicted()?;
            q.area += victim.waited(now);
            victim
        };
        q.dropped(&victim, now);
        Some(victim)
    }
}

/// The most packets that join a queue before those whose transmission has begun are taken out.
const MOST_UNSEEN: u32 = 16;

/// A queue in a run, and its counters.
#[derive(Debug)]
pub(crate) struct QueueState<C: Clock> {
    /// The queue, unless there are classes.
    pub fifo: Fifo<QueuedPacket<C>>,
    /// Computed service: the number of packets that may join before those in transmission are next taken out.
    unseen: u32,
    /// With fewer packets waiting, the discipline admits the next one without looking at anything; 0: it may look.
    admits_below: u32,
    /// The discipline, unless there are classes.
    pub aqm: AnyAqm,
    /// The random numbers of the discipline, or of those of all classes.
    pub rng: Rng,
    /// The queues of classes, if the link has a scheduler.
    pub classes: Option<Box<Classes<C>>>,
    /// Packets waiting, integrated over time in packet-picoseconds: each packet's waiting is added when it is admitted (computed
    /// service) or leaves (stepped).
    pub area: u128,
    /// The part of it, within the window, that is due to packets that were then dropped.
    pub dropped_area: u128,
    /// The measured window.
    pub window: (Time, Time),
    /// The snapshots at the boundaries of the window that have passed.
    pub snapshots: Vec<Snapshot>,
    /// The queueing delays, where they are measured.
    pub waits: Option<Box<Waits>>,
    /// The series of a queue that may run ahead of the present.
    pub records: Box<[QueueRecord]>,
}

impl<C: Clock> QueueState<C> {
    /// Empty.
    pub fn new(
        limit: Backlog,
        aqm: AnyAqm,
        classes: Option<Box<Classes<C>>>,
        rng: Rng,
        window: (Time, Time),
    ) -> QueueState<C> {
        let admits_below = match (&aqm, limit) {
            // Drop-tail may count the packet in transmission, too.
            (AnyAqm::DropTail(_), Backlog::Packets(most)) => (most as u32).saturating_sub(1),
            _ => 0,
        };
        QueueState {
            fifo: Fifo::before(limit, &aqm),
            unseen: 0,
            admits_below,
            aqm,
            rng,
            classes,
            area: 0,
            dropped_area: 0,
            window,
            snapshots: Vec::new(),
            waits: None,
            records: Box::default(),
        }
    }

    /// Computed service: a packet arrives at a busy link. Takes out packets whose transmission has begun by `now` if the discipline may
    /// see them; their number per arrival is unpredictable, so where the discipline only asks for room they go in batches.
    #[inline(always)]
    pub fn make_room(&mut self, now: C) {
        if self.unseen > 0 {
            self.unseen -= 1;
        } else {
            self.fifo.release(|head| head.at <= now);
            self.unseen = self.admits_below.saturating_sub(self.fifo.packets() + 1).min(MOST_UNSEEN);
        }
    }

    /// Stepped service of classes: the next packet. A separate function: inlined beside a single queue's, it would take its registers.
    #[inline(never)]
    pub fn depart_class<W: Why>(
        &mut self,
        now: Time,
        as_packet: impl Fn(&QueuedPacket<C>) -> Packet,
        shared: Option<&mut Rng>,
        why: &mut W,
        mut dropped: impl FnMut(QueuedPacket<C>, Cause),
    ) -> Option<QueuedPacket<C>> {
        let (area, dropped_area, window) = (&mut self.area, &mut self.dropped_area, self.window);
        let rng = shared.unwrap_or(&mut self.rng);
        self.classes.as_mut()?.depart(now, as_packet, rng, why, |w, cause| {
            *area += w.waited(now);
            *dropped_area += w.waited_within(window, now);
            dropped(w, cause);
        })
    }

    /// Stepped service: a packet that came at `since` is dropped at the head of the queue. It is passed its time alone: if the packet's
    /// address were taken, one that is sent would be copied in pieces other than those just written, which stalls the processor.
    #[cold]
    #[inline(never)]
    pub fn drop_head(&mut self, since: Time, now: Time) {
        self.area += u128::from(now.since(since).0);
        self.dropped_area += u128::from(now.min(self.window.1).since(since.max(self.window.0)).0);
    }

    /// A packet leaves the queue at `now` without being sent.
    pub fn dropped(&mut self, packet: &QueuedPacket<C>, now: Time) {
        self.dropped_area += packet.waited_within(self.window, now);
    }
}

// A packet waiting in a queue, and the counters of a queue at one time.

/// A waiting packet: its slot, and what the queue needs to know of it.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket<C> {
    /// Computed service: when its transmission starts. Stepped: when it came.
    pub(crate) at: C,
    /// Where the packet is kept.
    pub slot: u32,
    pub(crate) size: u32,
    flow: FlowId,
    colour: Colour,
    /// Its ECN bits, perhaps changed while it waited.
    pub ecn: Ecn,
}

impl<C> QueuedPacket<C> {
    #[inline]
    pub(crate) fn new(at: C, slot: u32, packet: &Packet) -> QueuedPacket<C> {
        let &Packet { size, flow, colour, ecn, .. } = packet;
        QueuedPacket { at, slot, size, flow, colour, ecn }
    }

    /// As mechanisms see it: what the queue knows of it, and the rest from where it is kept, which the nearest cache rarely holds.
    #[inline]
    pub(crate) fn as_packet(&self, kept: &Packet) -> Packet {
        let &QueuedPacket { size, flow, colour, ecn, .. } = self;
        Packet { size, flow, colour, ecn, ..*kept }
    }
}

impl<C: Clock> QueuedPacket<C> {
    /// Stepped service: how long it has waited by now, in picoseconds.
    #[inline]
    pub(crate) fn waited(&self, now: Time) -> u128 {
        u128::from(now.since(self.at.time()).0)
    }

    /// Stepped service: how long of that it has waited within a window, in picoseconds.
    #[inline]
    pub(crate) fn waited_within(&self, window: (Time, Time), now: Time) -> u128 {
        u128::from(now.min(window.1).since(self.at.time().max(window.0)).0)
    }
}

impl<C: Clock> Item for QueuedPacket<C> {
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
    /// With stepped service, where a discipline decides at departure.
    fn since(&self) -> Time {
        self.at.time()
    }
    fn mark(&mut self) -> bool {
        self.ecn.mark()
    }
}

/// A queue's counters at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Counts since the start of the run.
    pub counts: Counts,
    /// Packets waiting, integrated over time since the start of the run, in packet-picoseconds.
    pub area: u128,
    /// How long it has been sending since the start of the run, in picoseconds; of a packet being sent, the part
    /// already sent.
    pub sending: u64,
}

//! The classes of a scheduled link in a run: their queues and scheduler, which are the core's, and each class's
//! counters over time.

use inprofile_core::packet::Packet;
use inprofile_core::queue::Counts;
use inprofile_core::queue::scheduled::Scheduled;
use inprofile_core::rng::Rng;
use inprofile_core::units::Time;
use inprofile_core::verdict::{Cause, Why};

use crate::clock::Clock;
use crate::link_queue::{QueuedPacket, Snapshot};
use crate::network;

/// The classes of one link.
#[derive(Debug)]
pub struct Classes<C> {
    /// Packets, disciplines and scheduler.
    pub queue: Scheduled<QueuedPacket<C>>,
    /// Packets waiting in each class, integrated over time in packet-picoseconds: each packet's waiting is added when it leaves.
    areas: Vec<u128>,
    /// Each class's snapshots at the boundaries of the window that have passed.
    snapshots: Vec<Vec<Snapshot>>,
    /// How long each class has been sending, the packet being sent counted whole, in picoseconds.
    sending: Vec<u64>,
    /// When a departure is scheduled because no packet may leave before.
    wakes_at: Option<C>,
    /// Room for what disciplines drop as a packet departs, and how long it has waited.
    gone: Vec<(Packet, u128)>,
}

impl<C: Clock> Classes<C> {
    /// Empty.
    pub fn new(scheduled: network::Scheduled) -> Classes<C> {
        let n = scheduled.classes.len();
        let classes = scheduled.classes.into_iter().map(|c| c.setup).collect();
        Classes {
            queue: Scheduled::new(scheduled.scheduler, classes),
            areas: vec![0; n],
            snapshots: vec![Vec::new(); n],
            sending: vec![0; n],
            wakes_at: None,
            gone: Vec::new(),
        }
    }

    /// No packet may leave before `at`: whether a departure has to be scheduled then, or one is scheduled as soon.
    pub fn wake(&mut self, now: C, at: C) -> bool {
        self.wakes_at = self.wakes_at.filter(|planned| *planned > now);
        let sooner = self.wakes_at.is_none_or(|planned| at < planned);
        if sooner {
            self.wakes_at = Some(at);
        }
        sooner
    }

    /// [`Scheduled::depart`].
    #[inline]
    pub fn depart<W: Why>(
        &mut self,
        now: Time,
        as_packet: impl Fn(&QueuedPacket<C>) -> Packet,
        rng: &mut Rng,
        why: &mut W,
        mut dropped: impl FnMut(QueuedPacket<C>, Cause),
    ) -> Option<QueuedPacket<C>> {
        let Classes { queue, areas, gone, .. } = self;
        let next = queue.depart(now, &as_packet, rng, why, |w, cause| {
            gone.push((as_packet(&w), w.waited(now)));
            dropped(w, cause);
        });
        for (packet, waited) in gone.drain(..) {
            areas[queue.class_of(&packet)] += waited;
        }
        next
    }

    /// A packet that a discipline has evicted, which leaves at `now`.
    pub fn take_evicted(&mut self, now: Time) -> Option<QueuedPacket<C>> {
        let class = self.queue.classes().iter().position(|class| class.queue.has_evicted())?;
        let victim = self.queue.take_evicted()?;
        self.areas[class] += victim.waited(now);
        Some(victim)
    }

    /// The class that the scheduler has chosen sends a packet that has waited so many picoseconds, and takes so many.
    #[inline]
    pub fn sends(&mut self, waited: u128, takes: u64) {
        if let Some(class) = self.queue.sending() {
            self.areas[class] += waited;
            self.sending[class] += takes;
        }
    }

    /// A boundary of the measured window: takes a snapshot of each class. Returns the waiting time of all classes
    /// together. `until`: when the packet being sent, if any, will have been sent.
    pub fn cross_boundary(&mut self, at: Time, until: Time) -> u128 {
        let under_way = self.queue.sending();
        let mut areas = 0;
        for (i, class) in self.queue.classes().iter().enumerate() {
            let rest = if under_way == Some(i) { until.since(at).0 } else { 0 };
            let sending = self.sending[i] - rest;
            let area = self.areas[i] + class.queue.iter().map(|w| w.waited(at)).sum::<u128>();
            self.snapshots[i].push(Snapshot { counts: *class.queue.counts(), area, sending });
            areas += area;
        }
        areas
    }

    /// The snapshots of one class: see [`Link::snapshots`](crate::link::Link::snapshots).
    pub fn snapshots(&self, class: usize) -> &[Snapshot] {
        &self.snapshots[class]
    }

    /// Counts of all classes together since the start of the run.
    pub fn counts(&self) -> Counts {
        self.queue.classes().iter().fold(Counts::default(), |sum, c| sum.and(c.queue.counts()))
    }

    /// Packets waiting in all classes together, by colour.
    pub fn waiting(&self) -> [u32; 3] {
        let waiting = self.queue.classes().iter().map(|c| c.queue.waiting());
        waiting.fold([0; 3], |sum, w| std::array::from_fn(|i| sum[i] + w[i]))
    }
}

//! The classes of a scheduled link in a run: their queues and scheduler, which are the core's, and each class's
//! counters over time.

use inprofile_core::packet::Packet;
use inprofile_core::queue::Queue;
use inprofile_core::queue::counts::Counts;
use inprofile_core::queue::scheduled::Scheduled;
use inprofile_core::rng::Rng;
use inprofile_core::units::Time;
use inprofile_core::verdict::{Cause, Why};

use crate::clock::Clock;
use crate::network;
use crate::waiting::{Snapshot, Waiting};

/// The classes of one link.
#[derive(Debug)]
pub struct Classes<C> {
    /// Packets, disciplines and scheduler.
    pub queue: Scheduled<Waiting<C>>,
    /// Packets waiting in each class, integrated over time up to `counted_to`, in packet-picoseconds.
    areas: Vec<u128>,
    counted_to: Time,
    /// Each class's snapshots at the boundaries of the window that have passed.
    snapshots: Vec<Vec<Snapshot>>,
    /// How long each class has been sending, the packet being sent counted whole, in picoseconds.
    sending: Vec<u64>,
    /// When a departure is scheduled because no packet may leave before.
    wakes_at: Option<C>,
}

impl<C: Clock> Classes<C> {
    /// Empty.
    pub fn new(scheduled: network::Scheduled) -> Classes<C> {
        let n = scheduled.classes.len();
        let classes = scheduled.classes.into_iter().map(|c| c.setup).collect();
        Classes {
            queue: Scheduled::new(scheduled.scheduler, classes),
            areas: vec![0; n],
            counted_to: Time::ZERO,
            snapshots: vec![Vec::new(); n],
            sending: vec![0; n],
            wakes_at: None,
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

    /// [`Scheduled::depart`], as a function of its own: beside a single queue's it would take that one's registers.
    #[inline(never)]
    pub fn depart<W: Why>(
        &mut self,
        now: Time,
        as_packet: impl Fn(&Waiting<C>) -> Packet,
        rng: &mut Rng,
        why: &mut W,
        dropped: impl FnMut(Waiting<C>, Cause),
    ) -> Option<Waiting<C>> {
        self.queue.depart(now, as_packet, rng, why, dropped)
    }

    /// Counts what waits up to `now`.
    #[inline]
    pub fn count_to(&mut self, now: Time) {
        let time = u128::from(now.since(self.counted_to).0);
        for (area, class) in self.areas.iter_mut().zip(self.queue.classes()) {
            *area += u128::from(class.queue.packets()) * time;
        }
        self.counted_to = self.counted_to.max(now);
    }

    /// The class that the scheduler has chosen sends a packet that takes so many picoseconds.
    pub fn sends(&mut self, takes: u64) {
        if let Some(class) = self.queue.sending() {
            self.sending[class] += takes;
        }
    }

    /// A boundary of the measured window: takes a snapshot of each class. Returns the waiting time of all classes
    /// together. `until`: when the packet being sent, if any, will have been sent.
    pub fn cross_boundary(&mut self, at: Time, until: Time) -> u128 {
        self.count_to(at);
        let under_way = self.queue.sending();
        for (i, class) in self.queue.classes().iter().enumerate() {
            let rest = if under_way == Some(i) { until.since(at).0 } else { 0 };
            let sending = self.sending[i] - rest;
            self.snapshots[i].push(Snapshot { counts: *class.queue.counts(), area: self.areas[i], sending });
        }
        self.areas.iter().sum()
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

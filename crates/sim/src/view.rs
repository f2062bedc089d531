//! A link's queue as monitors and results see it.

use inprofile_core::queue::Counts;
use inprofile_core::registry::AnyAqm;

use crate::clock::Clock;
use crate::link::Link;
use crate::link_queue::Snapshot;
use crate::record::{Passed, QueueSample};

/// A queue as monitors and results see it: a link's only one, one of its classes, or all of them together.
#[derive(Debug)]
pub struct QueueView<'a> {
    /// Its discipline; none for all classes together, or where no packet has waited yet.
    pub aqm: Option<&'a AnyAqm>,
    /// Counts since the start of the run.
    pub counts: Counts,
    /// Packets waiting by colour.
    pub waiting: [u32; 3],
    /// The snapshots at the beginning and at the end of the measured window, as far as these have passed; of a reported
    /// link.
    pub snapshots: &'a [Snapshot],
}

impl<C: Clock> Link<C> {
    /// How many classes it has; 0 if there is one queue for all.
    pub fn classes(&self) -> usize {
        let classes = self.queue.get().and_then(|q| q.classes.as_ref());
        classes.map_or(0, |c| c.queue.classes().len())
    }

    /// Counts of the queue since the start of the run.
    fn counts(&self) -> Counts {
        let mut counts = self.queue.get().map_or_else(Counts::default, |q| *q.fifo.counts());
        for (i, (packets, bytes)) in self.bypassed().into_iter().enumerate() {
            counts.arrived[i] += packets;
            counts.arrived_bytes[i] += bytes;
            counts.sent[i] += packets;
            counts.sent_bytes[i] += bytes;
        }
        counts
    }

    /// Packets that waited within the window and were then dropped, integrated over time, in packet-picoseconds.
    pub fn dropped_area(&self) -> u128 {
        self.queue.get().map_or(0, |q| q.dropped_area)
    }

    /// The queue as a sample sees it, or of one of its classes.
    pub fn read(&self, class: Option<usize>) -> QueueSample<'_> {
        match self.queue.get() {
            Some(q) if q.classes.is_none() => {
                let mut passed = Passed::of(q.fifo.counts());
                for (i, (_, bytes)) in self.bypassed().into_iter().enumerate() {
                    passed.arrived_bytes[i] += bytes;
                    passed.sent_bytes[i] += bytes;
                }
                QueueSample { aqm: Some(&q.aqm), waiting: q.fifo.waiting(), passed }
            }
            _ => {
                let QueueView { aqm, counts, waiting, .. } = self.view(class);
                QueueSample { aqm, waiting, passed: Passed::of(&counts) }
            }
        }
    }

    /// How many packets have been marked, in all classes.
    pub fn marked(&self) -> u64 {
        self.view(None).counts.marked.iter().sum()
    }

    /// The queue, or all classes together; with a number, that class.
    pub fn view(&self, class: Option<usize>) -> QueueView<'_> {
        let Some(q) = self.queue.get() else {
            return QueueView { aqm: None, counts: self.counts(), waiting: [0; 3], snapshots: &[] };
        };
        let snapshots = &q.snapshots;
        match (&q.classes, class) {
            (Some(classes), Some(i)) => {
                let c = &classes.queue.classes()[i];
                let (counts, waiting) = (*c.queue.counts(), c.queue.waiting());
                QueueView { aqm: Some(&c.aqm), counts, waiting, snapshots: classes.snapshots(i) }
            }
            (Some(all), None) => {
                QueueView { aqm: None, counts: all.counts(), waiting: all.waiting(), snapshots }
            }
            (None, _) => {
                QueueView { aqm: Some(&q.aqm), counts: self.counts(), waiting: q.fifo.waiting(), snapshots }
            }
        }
    }
}

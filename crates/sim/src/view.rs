//! A link's queue as monitors and results see it.

use inprofile_core::queue::counts::Counts;
use inprofile_core::registry::AnyAqm;
use inprofile_core::units::Time;

use crate::clock::Clock;
use crate::link::Link;
use crate::waiting::Snapshot;

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

/// What a monitor's sample sees of a queue.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Packets waiting by colour.
    pub waiting: [u32; 3],
    /// Bytes offered since the start of the run, by colour.
    pub arrived_bytes: [u64; 3],
    /// Bytes that left for the link, by colour.
    pub sent_bytes: [u64; 3],
    /// Packets dropped.
    pub dropped: u64,
    /// What its discipline shows.
    pub gauges: Vec<(&'static str, f64)>,
}

impl QueueView<'_> {
    /// What a sample at this time sees.
    pub fn read(&self, now: Time) -> Reading {
        let mut gauges = Vec::new();
        if let Some(aqm) = self.aqm {
            aqm.gauges(now, &mut |name, value| gauges.push((name, value)));
        }
        let Counts { arrived_bytes, sent_bytes, dropped, .. } = self.counts;
        let dropped = dropped.iter().flatten().sum();
        Reading { waiting: self.waiting, arrived_bytes, sent_bytes, dropped, gauges }
    }
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

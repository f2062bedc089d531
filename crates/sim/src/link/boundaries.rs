//! The boundaries that a link crosses before anything that comes at the same time or later: the boundaries of the measured window, and of samples.
//!
//! A link that is cut through may run ahead of the present. So its monitors' series are kept with it: it takes each sample
//! as it passes the sample's time, and no sample is an event.

use super::Link;
use crate::clock::Clock;
use crate::queued_packet::Snapshot;
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
    pub(super) fn cross_boundary(&mut self) {
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

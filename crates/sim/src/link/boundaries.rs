//! What a link crosses before anything that comes at the same time or later: the boundaries of the measured window, and of samples.
//!
//! A link that is cut through may run ahead of the present. So it keeps what a sample sees when it passes the sample's time, until the
//! monitor takes it.

use inprofile_core::units::Time;

use super::Link;
use crate::clock::Clock;
use crate::samples::Samples;
use crate::view::Reading;
use crate::waiting::Snapshot;

impl<C: Clock> Link<C> {
    /// The link may run ahead of the present: monitors take these samples of what has been by their time.
    pub fn sample_ahead(&mut self, samples: Box<[Samples<Reading>]>) {
        self.queue.get_or_create().samples = samples;
        self.next_boundary = self.first_boundary();
        self.allow_bypass();
    }

    /// What a monitor that takes its next sample now sees of the queue, or of one of its classes.
    pub fn sample(&mut self, monitor: u32, class: Option<usize>, now: Time) -> Reading {
        let own = self.queue.get_mut().and_then(|q| q.samples.iter_mut().find(|s| s.are_of(monitor)));
        if let Some(samples) = own {
            let then = samples.take();
            self.next_boundary = self.first_boundary();
            self.allow_bypass();
            if let Some(then) = then {
                return then;
            }
        }
        self.view(class).read(now)
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
        self.queue.get().map_or(window, |q| Samples::first_boundary(&q.samples, window))
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
        if q.samples.iter().all(|s| s.boundary::<C>() != here) {
            return;
        }
        q.fifo.release(|head| head.at < here);
        let reading = self.view(None).read(Time(here.time().0 - 1));
        let Some(q) = self.queue.get_mut() else { return };
        for samples in q.samples.iter_mut().filter(|s| s.boundary::<C>() == here) {
            samples.pass(reading.clone());
        }
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

//! What monitors sample of a receiver, or of a queue, that may run ahead of the present: as it was at the time of each sample.

use std::collections::VecDeque;

use inprofile_core::units::{Duration, Time};

use crate::clock::Clock;

/// One monitor's samples. `V`: what a sample sees.
#[derive(Debug)]
pub struct Samples<V> {
    /// The monitor's number.
    monitor: u32,
    every: Duration,
    /// The next one that is neither passed nor taken.
    next: Time,
    /// Those that have been passed and that the monitor has not taken yet.
    passed: VecDeque<V>,
}

impl<V> Samples<V> {
    /// Before the first, at the start of the run.
    #[must_use]
    pub fn new(monitor: u32, every: Duration) -> Samples<V> {
        Samples { monitor, every, next: Time::ZERO, passed: VecDeque::new() }
    }

    /// Whether they are this monitor's.
    pub(crate) fn are_of(&self, monitor: u32) -> bool {
        self.monitor == monitor
    }

    /// The first moment that the next sample does not see: it is taken after all that happens at its time.
    pub(crate) fn boundary<C: Clock>(&self) -> C {
        C::at(self.next + Duration(1))
    }

    /// The first of a boundary and of those of these samples.
    pub(crate) fn first_boundary<C: Clock>(of: &[Samples<V>], or: C) -> C {
        of.iter().map(Samples::boundary).fold(or, |first, here| if here < first { here } else { first })
    }

    /// What is sampled passes the next sample.
    pub(crate) fn pass(&mut self, seen: V) {
        self.passed.push_back(seen);
        self.next += self.every;
    }

    /// Takes the next sample; `None`: it has not been passed, and sees the present.
    pub(crate) fn take(&mut self) -> Option<V> {
        let then = self.passed.pop_front();
        if then.is_none() {
            self.next += self.every;
        }
        then
    }
}

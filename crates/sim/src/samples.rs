//! Samples of a receiver that may run ahead of the present: the bytes that it had received at the time of each sample.

use std::collections::VecDeque;

use inprofile_core::units::{Duration, Time};

use crate::clock::Clock;

/// One monitor's samples.
#[derive(Debug)]
pub struct Samples {
    /// The monitor's number.
    monitor: u32,
    every: Duration,
    /// The next one that is neither passed nor taken.
    next: Time,
    /// By colour: those that have been passed and that the monitor has not taken yet.
    passed: VecDeque<[u64; 3]>,
}

impl Samples {
    /// Before the first, at the start of the run.
    #[must_use]
    pub fn new(monitor: u32, every: Duration) -> Samples {
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
    pub(crate) fn first_boundary<C: Clock>(of: &[Samples], or: C) -> C {
        of.iter().map(Samples::boundary).fold(or, |first, here| if here < first { here } else { first })
    }

    /// The receiver passes the next sample.
    pub(crate) fn pass(&mut self, received: [u64; 3]) {
        self.passed.push_back(received);
        self.next += self.every;
    }

    /// Takes the next sample; `None`: it has not been passed, and sees the present.
    pub(crate) fn take(&mut self) -> Option<[u64; 3]> {
        let then = self.passed.pop_front();
        if then.is_none() {
            self.next += self.every;
        }
        then
    }
}

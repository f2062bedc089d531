//! What a receiver that may run ahead of the present had received by the times at which a monitor samples it.

use std::collections::VecDeque;

use inprofile_core::units::{Duration, Time};

use crate::clock::Clock;

/// One monitor's samples of a receiver.
#[derive(Debug)]
pub struct Samples {
    /// The monitor's number.
    monitor: u32,
    every: Duration,
    /// The next one that is neither passed nor taken.
    next: Time,
    /// What had been received by those that the receiver has passed and the monitor has not taken yet: bytes by colour.
    passed: VecDeque<[u64; 3]>,
}

impl Samples {
    /// Before the first, at the start of the run.
    #[must_use]
    pub fn new(monitor: u32, every: Duration) -> Samples {
        Samples { monitor, every, next: Time::ZERO, passed: VecDeque::new() }
    }

    /// The first moment that the next sample does not see: it is taken after all that happens at its time.
    pub(crate) fn boundary<C: Clock>(&self) -> C {
        C::at(self.next + Duration(1))
    }

    /// The receiver passes the next sample.
    pub(crate) fn pass(&mut self, received_bytes: [u64; 3]) {
        self.passed.push_back(received_bytes);
        self.next += self.every;
    }

    /// Takes the next sample of the monitor, if these are its own; `now`: what has been received so far.
    pub(crate) fn take(&mut self, monitor: u32, now: [u64; 3]) -> Option<[u64; 3]> {
        if monitor != self.monitor {
            return None;
        }
        let then = self.passed.pop_front();
        if then.is_none() {
            self.next += self.every;
        }
        then.or(Some(now))
    }
}

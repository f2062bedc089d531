//! A timer that can be reset without touching the calendar each time.
//!
//! A retransmission timer is restarted by nearly every acknowledgement and almost never expires. So the calendar keeps
//! one event for it; if that comes up before the deadline, it is scheduled again at the deadline.

use crate::clock::Clock;

/// When a timer is due, with its order at equal times.
pub type Due<C> = (C, u32);

/// One timer: its deadline, and its event in the calendar. [`Clock::NEVER`]: not set, no event.
#[derive(Clone, Copy, Debug)]
pub struct Timer<C> {
    deadline: C,
    queued: C,
    deadline_tie: u32,
    queued_tie: u32,
}

/// A sender's timers, by [`TimerKind`](crate::tcp::TimerKind).
pub type Timers<C> = [Timer<C>; 2];

/// The way to treat an event of a timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expiry<C> {
    /// The timer has expired.
    Due,
    /// Too soon: schedule its event again at this time.
    Rearm(Due<C>),
    /// It was cancelled, or set to an earlier time: nothing to do.
    Stale,
}

impl<C: Clock> Default for Timer<C> {
    fn default() -> Timer<C> {
        Timer { deadline: C::NEVER, queued: C::NEVER, deadline_tie: 0, queued_tie: 0 }
    }
}

impl<C: Clock> Timer<C> {
    /// Sets it, replacing whatever it was set to. True: its event has to be scheduled.
    #[must_use]
    #[inline]
    pub fn set(&mut self, due: Due<C>) -> bool {
        (self.deadline, self.deadline_tie) = due;
        let queue = due.0 < self.queued;
        if queue {
            (self.queued, self.queued_tie) = due;
        }
        queue
    }

    /// Stops it.
    pub fn cancel(&mut self) {
        self.deadline = C::NEVER;
    }

    /// Whether it is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.deadline != C::NEVER
    }

    /// One of its events is due.
    #[inline(always)]
    pub fn on_event(&mut self, now: Due<C>) -> Expiry<C> {
        if (self.queued, self.queued_tie) != now {
            return Expiry::Stale;
        }
        self.queued = C::NEVER;
        let due = (self.deadline, self.deadline_tie);
        if due == now {
            self.deadline = C::NEVER;
            Expiry::Due
        } else if self.is_set() {
            (self.queued, self.queued_tie) = due;
            Expiry::Rearm(due)
        } else {
            Expiry::Stale
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;

    #[test]
    fn expires_once_at_the_last_deadline() {
        let mut t = Timer::default();
        assert!(t.set((Exact(10), 1)));
        assert!(!t.set((Exact(20), 2)));
        assert_eq!(t.on_event((Exact(10), 1)), Expiry::Rearm((Exact(20), 2)));
        assert_eq!(t.on_event((Exact(20), 2)), Expiry::Due);
        assert!(!t.is_set());
    }

    #[test]
    fn an_earlier_deadline_overtakes() {
        let mut t = Timer::default();
        assert!(t.set((Exact(20), 1)));
        assert!(t.set((Exact(10), 2)));
        assert_eq!(t.on_event((Exact(10), 2)), Expiry::Due);
        assert_eq!(t.on_event((Exact(20), 1)), Expiry::Stale);
    }

    #[test]
    fn a_cancelled_timer_stays_silent() {
        let mut t = Timer::default();
        assert!(t.set((Exact(10), 1)));
        t.cancel();
        assert_eq!(t.on_event((Exact(10), 1)), Expiry::Stale);
    }
}

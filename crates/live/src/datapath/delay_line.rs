//! Propagation delay: packets come out a fixed time after they went in, in order.

use std::collections::VecDeque;

use inprofile_core::units::{Duration, Time};

/// A wire of a set length. It holds what fits into its delay at the rate of who feeds it.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    delay: Duration,
    inside: VecDeque<(Time, T)>,
}

impl<T> DelayLine<T> {
    /// An empty wire.
    #[must_use]
    pub fn new(delay: Duration) -> DelayLine<T> {
        DelayLine { delay, inside: VecDeque::new() }
    }

    /// Something goes in at `at`; times never run back.
    pub fn push(&mut self, at: Time, item: T) {
        debug_assert!(self.inside.back().is_none_or(|(last, _)| *last <= at + self.delay), "time ran back");
        self.inside.push_back((at + self.delay, item));
    }

    /// When something next comes out.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.inside.front().map(|(at, _)| *at)
    }

    /// The frames that have come out by `now`, and when.
    pub fn pop(&mut self, now: Time) -> Option<(Time, T)> {
        if self.due()? <= now { self.inside.pop_front() } else { None }
    }

    /// How much is inside.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inside.len()
    }

    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_later_and_in_order() {
        let mut line = DelayLine::new(Duration(100));
        line.push(Time(1), 'a');
        line.push(Time(1), 'b');
        line.push(Time(7), 'c');
        assert_eq!((line.due(), line.pop(Time(100)), line.len()), (Some(Time(101)), None, 3));
        assert_eq!(line.pop(Time(101)), Some((Time(101), 'a')));
        assert_eq!(line.pop(Time(200)), Some((Time(101), 'b')));
        assert_eq!(line.pop(Time(200)), Some((Time(107), 'c')));
        assert!(line.is_empty() && line.pop(Time(u64::MAX)).is_none());
    }
}

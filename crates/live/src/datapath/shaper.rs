//! A shaper with absolute deadlines: a packet may leave when the one before it has been sent at the set rate, counted from when
//! that one *should* have left. So a caller that wakes late sends at once what is due, and no rate is lost.
//!
//! Non-goal: a burst after an idle period. An idle link starts afresh at the next arrival, like a wire.

use inprofile_core::units::{Bytes, Rate, Time};

/// A link of a set rate.
#[derive(Clone, Copy, Debug)]
pub struct Shaper {
    rate: Rate,
    /// When the packet on the link will have been sent; `None`: idle.
    until: Option<Time>,
}

impl Shaper {
    /// An idle link. The rate must not be zero.
    #[must_use]
    pub fn new(rate: Rate) -> Shaper {
        Shaper { rate, until: None }
    }

    /// When the link is next free; `None` if it is now.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.until
    }

    /// A packet goes onto the link, at `at`: an arrival at an idle link, or the deadline of the one before.
    pub fn start(&mut self, at: Time, size: Bytes) {
        self.until = Some(at + self.rate.serialise(size));
    }

    /// Nothing follows: the link goes idle.
    pub fn rest(&mut self) {
        self.until = None;
    }

    /// The set rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Another rate, from the next packet on. It must not be zero.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inprofile_core::units::Duration;

    #[test]
    fn deadlines_follow_each_other_however_late_somebody_looks() {
        let mut s = Shaper::new(Rate(8_000_000));
        assert_eq!(s.due(), None);
        s.start(Time(5), Bytes(1000));
        let ms = Duration::from_millis(1);
        assert_eq!(s.due(), Some(Time(5) + ms));
        // A shaper that wakes 10 ms late still starts the next packet at its own deadline.
        let due = s.due().unwrap();
        s.start(due, Bytes(1000));
        assert_eq!(s.due(), Some(Time(5) + ms * 2));
        s.set_rate(Rate(4_000_000));
        assert_eq!(s.due(), Some(Time(5) + ms * 2));
        s.start(Time(5) + ms * 2, Bytes(1000));
        assert_eq!(s.due(), Some(Time(5) + ms * 4));
        s.rest();
        assert_eq!(s.due(), None);
    }
}

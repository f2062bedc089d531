//! What a mechanism decides, and why.

use crate::packet::Colour;

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// By chance, before it was necessary: the average lay between the thresholds.
    Early = 0,
    /// The average lay above the upper threshold.
    Forced = 1,
    /// The queue was at its limit.
    Overflow = 2,
    /// By a marker, at the edge.
    Edge = 3,
    /// Already queued, taken out in favour of another.
    Evicted = 4,
    /// By a policer: out of profile.
    Policed = 5,
}

impl Cause {
    /// How many causes there are.
    pub const COUNT: usize = 6;
    /// In the order of their numbers.
    pub const ALL: [Cause; Cause::COUNT] =
        [Cause::Early, Cause::Forced, Cause::Overflow, Cause::Edge, Cause::Evicted, Cause::Policed];

    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["early", "forced", "overflow", "edge", "evicted", "policed"][self as usize]
    }
}

/// A marker's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Goes on with this colour.
    Pass(Colour),
    /// Is dropped.
    Drop(Cause),
}

/// A queue discipline's verdict on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Joins the queue.
    Admit,
    /// Joins the queue with congestion experienced (RFC 3168).
    Mark,
    /// Is dropped.
    Drop(Cause),
}

/// A queue discipline's verdict on a packet at the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Goes out.
    Send,
    /// Goes out with congestion experienced.
    Mark,
    /// Is dropped; the next one is asked.
    Drop(Cause),
}

/// Takes down the figures behind a verdict: average, threshold, probability, tokens, random number.
/// Generic, so that [`Silent`] costs nothing.
pub trait Why {
    /// One figure, by its name in the field.
    fn note(&mut self, what: &'static str, value: f64);

    /// Whether anybody reads them: if not, a mechanism needn't compute what only they would show.
    #[inline]
    fn asks(&self) -> bool {
        true
    }
}

/// Nobody asks why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Why for Silent {
    #[inline(always)]
    fn note(&mut self, _: &'static str, _: f64) {}

    #[inline(always)]
    fn asks(&self) -> bool {
        false
    }
}

/// The figures behind one verdict, in the order they were noted; the first sixteen are kept.
#[derive(Clone, Copy, Debug)]
pub struct Notes {
    items: [(&'static str, f64); Notes::ROOM],
    len: usize,
}

impl Notes {
    /// How many figures one verdict can have.
    pub const ROOM: usize = 16;

    /// What was noted.
    #[must_use]
    pub fn items(&self) -> &[(&'static str, f64)] {
        &self.items[..self.len]
    }

    /// Forgets everything, before the next verdict.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl Default for Notes {
    fn default() -> Notes {
        Notes { items: [("", 0.0); Notes::ROOM], len: 0 }
    }
}

impl Why for Notes {
    fn note(&mut self, what: &'static str, value: f64) {
        debug_assert!(self.len < Notes::ROOM, "more figures than a verdict has room for");
        if self.len < Notes::ROOM {
            self.items[self.len] = (what, value);
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_keep_their_order_until_cleared() {
        let mut n = Notes::default();
        n.note("avg", 5.5);
        n.note("u", 0.25);
        assert_eq!(n.items(), [("avg", 5.5), ("u", 0.25)]);
        n.clear();
        assert!(n.items().is_empty());
    }

    #[test]
    fn every_cause_has_its_own_name_and_place() {
        for (i, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, i);
            assert!(Cause::ALL[..i].iter().all(|c| c.name() != cause.name()));
        }
    }
}

//! A mechanism's decision and its reasons.

use crate::packet::Colour;
use crate::params::same;

/// Why a packet was dropped, in the law's own word. A law declares its causes beside itself, with what they mean:
/// `pub const EARLY: Cause = Cause::named("early")`. Those of every queue are here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cause(u8);

/// Every cause there is, in the order of the columns of results: a new law's is one word more at the end.
macro_rules! causes {
    ($($name:literal),+ $(,)?) => {
        const NAMES: &[&str] = &[$($name),+];
        const COLUMNS: &[&str] = &[$(concat!("dropped_", $name)),+];
    };
}
causes![
    "early",
    "forced",
    "overflow",
    "edge",
    "evicted",
    "policed",
    "unmarkable",
    "above_target",
    "overload",
    "matched",
    "penalty",
    "bin_full",
    "blue",
    "link_error",
];

impl Cause {
    /// The queue was at its limit.
    pub const OVERFLOW: Cause = Cause::named("overflow");
    /// Already queued, and dropped in favour of another packet.
    pub const EVICTED: Cause = Cause::named("evicted");
    /// A discipline would have marked it without asking whether its transport understands marks, which it does not.
    pub const UNMARKABLE: Cause = Cause::named("unmarkable");
    /// Lost on a link, after it was sent: no mechanism's verdict, and so not among [`Cause::ALL`].
    pub const LINK_ERROR: Cause = Cause::named("link_error");

    /// How many causes a mechanism or a queue may have.
    pub const COUNT: usize = NAMES.len() - 1;
    /// These, in the order of their columns.
    pub const ALL: [Cause; Cause::COUNT] = {
        let mut all = [Cause(0); Cause::COUNT];
        let mut i = 0;
        while i < Cause::COUNT {
            all[i] = Cause(i as u8);
            i += 1;
        }
        all
    };

    /// The cause of this name; a constant whose name is not in the list does not compile.
    ///
    /// # Panics
    /// If there is no such cause.
    #[must_use]
    pub const fn named(name: &str) -> Cause {
        let mut i = 0;
        while i < NAMES.len() {
            if same(NAMES[i], name) {
                return Cause(i as u8);
            }
            i += 1;
        }
        panic!("no cause of drops has this name")
    }

    /// Its place in arrays of [`Cause::COUNT`]; [`Cause::LINK_ERROR`] comes behind them.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self.index()]
    }

    /// The name of its column in tables of counts.
    #[must_use]
    pub fn column(self) -> &'static str {
        COLUMNS[self.index()]
    }
}

impl std::fmt::Debug for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
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

    /// The packet at the head was dropped: what is noted from now on is about the next one.
    #[inline]
    fn next_packet(&mut self) {}
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

    /// The notes.
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
        for (i, cause) in Cause::ALL.into_iter().chain([Cause::LINK_ERROR]).enumerate() {
            assert_eq!((cause.index(), Cause::named(cause.name())), (i, cause));
            assert_eq!(cause.column(), format!("dropped_{}", cause.name()));
            assert!(Cause::ALL.iter().take(i).all(|c| c.name() != cause.name()));
        }
    }
}

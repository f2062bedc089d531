//! The causes for which a RED drops, and its counts for one colour: packets dropped, by cause, and packets marked.

use crate::verdict::{Admission, Cause};

/// At random, with the average between the thresholds.
pub const EARLY: Cause = Cause::named("early");
/// With certainty, as the average had reached the end of the curve.
pub const FORCED: Cause = Cause::named("forced");

/// Shows counts by name.
type Show<'a> = &'a mut dyn FnMut(&'static str, u64);

/// Packets dropped by chance, dropped because the average had reached the curve's end, dropped because the queue was full,
/// and marked congestion experienced; the rest joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally([u64; 4]);

impl Tally {
    /// Counts a verdict, without a branch on it: it is random.
    #[inline]
    pub fn count(&mut self, verdict: Admission) {
        let place = match verdict {
            Admission::Drop(EARLY) | Admission::Admit => 0,
            Admission::Drop(FORCED) => 1,
            Admission::Drop(_) => 2,
            Admission::Mark => 3,
        };
        self.0[place] += u64::from(verdict != Admission::Admit);
    }

    /// Counts packets dropped because the queue was full.
    pub fn count_overflows(&mut self, packets: u64) {
        self.0[2] += packets;
    }

    /// Dropped by chance.
    #[must_use]
    pub fn early(&self) -> u64 {
        self.0[0]
    }

    /// Marked congestion experienced.
    #[must_use]
    pub fn marked(&self) -> u64 {
        self.0[3]
    }

    /// Dropped, for whatever cause.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0[..3].iter().sum()
    }

    /// Shows the four counts under these names: early, forced, overflow, marked.
    pub fn show(&self, names: [&'static str; 4], show: Show<'_>) {
        for (name, count) in names.into_iter().zip(self.0) {
            show(name, count);
        }
    }

    /// Shows the counts of two colours, cause by cause.
    pub fn show_both(r#in: &Tally, out: &Tally, show: Show<'_>) {
        const NAMES: [(&str, &str); 4] = [
            ("early_in", "early_out"),
            ("forced_in", "forced_out"),
            ("overflow_in", "overflow_out"),
            ("marked_in", "marked_out"),
        ];
        for ((name_in, name_out), (n_in, n_out)) in NAMES.into_iter().zip(r#in.0.into_iter().zip(out.0)) {
            show(name_in, n_in);
            show(name_out, n_out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Cause;

    #[test]
    fn every_verdict_but_admit_is_counted_under_its_cause() {
        let mut tally = Tally::default();
        let verdicts = [
            Admission::Admit,
            Admission::Drop(EARLY),
            Admission::Drop(FORCED),
            Admission::Drop(FORCED),
            Admission::Drop(Cause::OVERFLOW),
            Admission::Mark,
        ];
        for v in verdicts {
            tally.count(v);
        }
        assert_eq!((tally.early(), tally.marked(), tally.dropped()), (1, 1, 4));
        let mut shown = Vec::new();
        tally.show(["a", "b", "c", "d"], &mut |name, n| shown.push((name, n)));
        assert_eq!(shown, [("a", 1), ("b", 2), ("c", 1), ("d", 1)]);
    }
}

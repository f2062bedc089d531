//! How RED and its descendants space their drops.
//!
//! A [`Countdown`] turns p_b, the chance of a drop at this average, into p_a, which rises with every packet let by, so that
//! drops come evenly spaced rather than in clusters (Floyd and Jacobson 1993, §7). One [`Countdown::test`] is one arrival
//! against one [`Curve`]; [`admission`] makes a verdict of it.
//! Non-goal: the curve.

use std::hint::select_unpredictable;

use crate::aqm::curve::{Curve, Law, Rule};
use crate::rng::Rng;
use crate::verdict::{Admission, Cause, Why};

/// By chance, before it was necessary: the average lay between the thresholds.
pub const EARLY: Cause = Cause::named("early");
/// The average lay above the upper threshold.
pub const FORCED: Cause = Cause::named("forced");

/// ns-2's `mark_p_`: above this p_b its RED drops even what it could mark.
const NS2_MARK_P: f64 = 0.1;
/// The countdown while the average is below min_th.
const BELOW: i32 = -1;
/// Comparisons of products stand for those of quotients where they are clearer than this. Rounding moves either side by less
/// than a hundredth of it.
const CLEAR: f64 = 1e-12;

/// p_a: the chance of a drop after `count` packets have been let by.
///
/// So gaps between drops are uniform, up to 1/p_b without `wait` (Floyd and Jacobson 1993, §7, method 2),
/// and from 1/p_b to 2/p_b with it.
#[must_use]
#[inline]
pub fn spaced(p_b: f64, count: f64, wait: bool) -> f64 {
    let due = count * p_b;
    let p_a = match wait {
        true if due < 1.0 => 0.0,
        true if due < 2.0 => p_b / (2.0 - due),
        false if due < 1.0 => p_b / (1.0 - due),
        _ => 1.0,
    };
    p_a.min(1.0)
}

/// [`spaced`] between the thresholds.
#[cold]
#[inline(never)]
fn p_a(curve: &Curve, avg: f64, count: i32, wait: bool) -> f64 {
    spaced(curve.p_b(avg, false), f64::from(count), wait)
}

/// An arrival, and the average it finds.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The average its colour goes by.
    pub avg: f64,
    /// The packet's size on the wire.
    pub size: u32,
}

/// What becomes of an arrival, were the queue without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Joins.
    Pass,
    /// Chosen by chance; `markable` if a mark may stand in for the drop.
    Early {
        /// Whether the average is low enough for a mark to do.
        markable: bool,
    },
    /// The average is at or above the curve's end.
    Forced,
}

/// Packets let by since the last drop (bytes, in ns-2's reading of [`Rule::mean`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Countdown(i32);

impl Default for Countdown {
    fn default() -> Countdown {
        Countdown(BELOW)
    }
}

impl Countdown {
    /// The count; −1 while the average is below min_th.
    #[must_use]
    pub fn get(self) -> i32 {
        self.0
    }

    /// A packet was dropped.
    #[inline]
    pub fn restart(&mut self) {
        if self.0 != BELOW {
            self.0 = 0;
        }
    }

    /// One arrival. Draws at most one random number. `queued`: the length now of the queue averaged, in the average's unit,
    /// which only ns-2's laws ask for.
    #[inline(always)]
    pub fn test<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        rule: &Rule,
        found: Found,
        queued: impl FnOnce() -> f64,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        match rule.law {
            Law::Floyd93 if rule.mean.is_none() && !why.asks() => {
                self.test_plain(curve, rule, found, rng, why)
            }
            Law::Floyd93 => self.test_floyd93(curve, rule, found, rng, why),
            Law::Ns2Red | Law::Ns2Rio => self.test_ns2(curve, rule, found, queued(), rng, why),
        }
    }

    /// [`Countdown::test_floyd93`] without a division: u < p_b / (1 − count·p_b) is u·(1 − count·p_b) < p_b, with 2 for 1 where
    /// it waits. What is within rounding of a tie, or on the way up from max_p, is left to quotients, so that verdict and draws
    /// are always theirs.
    #[inline(always)]
    fn test_plain<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        rule: &Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        let avg = found.avg;
        let count = self.0.saturating_add(1);
        if avg >= curve.max_th && !rule.gentle {
            self.0 = 0;
            return Fate::Forced;
        }
        if avg <= curve.min_th && avg < curve.max_th {
            self.0 = if avg < curve.min_th { BELOW } else { count };
            return Fate::Pass;
        }
        let p_b = curve.slope * (avg - curve.min_th);
        let due = f64::from(count) * p_b;
        let below = avg < curve.max_th;
        if rule.wait & below & (due < 1.0 - CLEAR) {
            self.0 = count;
            return Fate::Pass;
        }
        let room = if rule.wait { 2.0 } else { 1.0 } - due;
        let clear = (room - p_b > CLEAR) & !(rule.wait & (due < 1.0 + CLEAR));
        if !(below && clear) {
            return self.test_floyd93(curve, rule, found, rng, why);
        }
        let u = rng.uniform();
        let over = p_b - u * room;
        let struck = if over.abs() > CLEAR { over > 0.0 } else { u < p_a(curve, avg, count, rule.wait) };
        // Chance: a processor's guess would be wrong more often than worth it.
        self.0 = select_unpredictable(struck, 0, count);
        select_unpredictable(struck, Fate::Early { markable: true }, Fate::Pass)
    }

    /// Fig. 2 of Floyd and Jacobson 1993. A number is drawn only where it decides.
    #[cold]
    #[inline(never)]
    fn test_floyd93<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        rule: &Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        let avg = found.avg;
        if avg < curve.min_th {
            self.0 = BELOW;
            return Fate::Pass;
        }
        if avg >= curve.end(rule.gentle) {
            self.0 = 0;
            return Fate::Forced;
        }
        self.0 = self.0.saturating_add(1);
        let mut p_b = curve.p_b(avg, rule.gentle);
        if let Some(mean) = rule.mean {
            p_b = (p_b * f64::from(found.size) / f64::from(mean)).min(1.0);
        }
        let p_a = spaced(p_b, f64::from(self.0), rule.wait);
        self.note(p_b, p_a, why);
        if rng.chance("u", p_a, why) {
            self.0 = 0;
            return Fate::Early { markable: true };
        }
        Fate::Pass
    }

    /// ns-2's early test: nothing is dropped while at most one packet (or byte) waits; the first packet
    /// over min_th is let by without a draw; after that each costs one, whatever p is.
    #[cold]
    #[inline(never)]
    fn test_ns2<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        rule: &Rule,
        found: Found,
        queued: f64,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        if found.avg < curve.min_th || queued <= 1.0 {
            self.0 = BELOW;
            return Fate::Pass;
        }
        let above = found.avg >= curve.end(rule.gentle);
        let step = rule.mean.map_or(1, |_| i32::try_from(found.size).unwrap_or(i32::MAX));
        if self.0 != BELOW {
            self.0 = self.0.saturating_add(step);
        }
        if above && rule.law == Law::Ns2Rio {
            return Fate::Forced;
        }
        if self.0 == BELOW {
            self.0 = step;
            return Fate::Pass;
        }
        let p_b = curve.p_b_ns2(found.avg, rule.gentle);
        let p_a = match rule.mean {
            None => spaced(p_b, f64::from(self.0), rule.wait),
            Some(mean) => {
                let count = f64::from(self.0 as u32 / mean);
                let p = spaced(p_b, count, rule.wait);
                if p < 1.0 { (p * f64::from(found.size) / f64::from(mean)).min(1.0) } else { p }
            }
        };
        self.note(p_b, p_a, why);
        let u = rng.uniform();
        why.note("u", u);
        if u > p_a {
            return Fate::Pass;
        }
        self.0 = 0;
        match rule.law {
            _ if above => Fate::Forced,
            Law::Ns2Rio => Fate::Early { markable: found.avg < curve.max_th },
            _ => Fate::Early { markable: p_b <= NS2_MARK_P },
        }
    }

    fn note<W: Why + ?Sized>(self, p_b: f64, p_a: f64, why: &mut W) {
        why.note("count", f64::from(self.0));
        why.note("p_b", p_b);
        why.note("p_a", p_a);
    }
}

/// The verdict, given whether the packet `fits` the hard limit and `can_mark` (ECN is on and its
/// transport understands it). Floyd and Jacobson's queue has no limit: what they drop they drop first. ns-2
/// counts whatever finds the queue full as overflow. A forced drop is never a mark (RFC 3168 §7).
#[must_use]
#[inline]
pub fn admission(fate: Fate, law: Law, can_mark: bool, fits: bool) -> Admission {
    match fate {
        _ if !fits && law.is_ns2() => Admission::Drop(Cause::OVERFLOW),
        Fate::Forced => Admission::Drop(FORCED),
        Fate::Early { markable } if !(markable && can_mark) => Admission::Drop(EARLY),
        _ if !fits => Admission::Drop(Cause::OVERFLOW),
        Fate::Early { .. } => Admission::Mark,
        Fate::Pass => Admission::Admit,
    }
}

#[cfg(test)]
mod tests;

//! What RED and its descendants share: how an average becomes a probability, and how drops are spaced.
//!
//! A [`Curve`] gives p_b, the chance of a drop at this average; a [`Countdown`] turns it into p_a, which
//! rises with every packet let by, so that drops come evenly spaced rather than in clusters (Floyd and
//! Jacobson 1993, §7). One [`Countdown::test`] is one arrival against one curve.
//! Non-goal: the average itself, which is [`QueueAverage`](crate::estimate::ewma::QueueAverage)'s.

use crate::rng::Rng;
use crate::units::Bytes;
use crate::verdict::{Admission, Cause, Why};

/// ns-2's `mark_p_`: above this p_b its RED drops even what it could mark.
const NS2_MARK_P: f64 = 0.1;
/// The countdown while the average is below min_th.
const BELOW: i32 = -1;

crate::choice! {
    /// Whose reading of the algorithm.
    pub enum Variant {
        /// Floyd and Jacobson 1993, Fig. 2.
        Floyd93 = "floyd93",
        /// ns-2 2.35, to the last bit and random number.
        Ns2 = "ns2",
    }
}

/// A [`Variant`] at work: ns-2's RED and RIO differ above the upper threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Floyd and Jacobson 1993.
    Floyd93,
    /// ns-2's RED: draws a number even where p = 0 or 1.
    Ns2Red,
    /// ns-2's RIO: drops above the upper threshold without a draw.
    Ns2Rio,
}

/// How one queue reads its curves. Four bytes, beside a four-byte [`Countdown`].
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Whose algorithm.
    pub law: Law,
    /// Between max_th and 2·max_th the probability rises to 1 (Floyd 2000), rather than at once.
    pub gentle: bool,
    /// No drop before 1/p_b packets have been let by.
    pub wait: bool,
    /// Whether averages and thresholds are in bytes rather than packets.
    pub in_bytes: bool,
}

/// Thresholds in packets or bytes, and the probability at the upper one.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    /// Below it nothing is dropped.
    pub min_th: f64,
    /// Where the probability has risen to `max_p`.
    pub max_th: f64,
    /// The probability just below `max_th`.
    pub max_p: f64,
}

impl Curve {
    /// The average from which on everything is dropped.
    #[must_use]
    #[inline]
    pub fn end(&self, gentle: bool) -> f64 {
        if gentle { 2.0 * self.max_th } else { self.max_th }
    }

    /// p_b at this average: 0 up to and including min_th, rising in a line towards max_p at max_th; from
    /// max_th on 1, or if `gentle` a second line from max_p to 1 at 2·max_th.
    #[must_use]
    #[inline]
    pub fn p_b(&self, avg: f64, gentle: bool) -> f64 {
        if avg < self.min_th {
            0.0
        } else if avg < self.max_th {
            self.max_p * (avg - self.min_th) / (self.max_th - self.min_th)
        } else if gentle {
            (self.max_p + (1.0 - self.max_p) * (avg - self.max_th) / self.max_th).min(1.0)
        } else {
            1.0
        }
    }

    /// p_b as ns-2 computes it: the same lines, in slope and intercept. Only for averages ≥ min_th.
    #[must_use]
    #[inline]
    pub fn p_b_ns2(&self, avg: f64, gentle: bool) -> f64 {
        let p = if avg < self.max_th {
            let v_a = 1.0 / (self.max_th - self.min_th);
            let v_b = -self.min_th / (self.max_th - self.min_th);
            (v_a * avg + v_b) * self.max_p
        } else if gentle {
            let v_c = (1.0 - self.max_p) / self.max_th;
            let v_d = 2.0 * self.max_p - 1.0;
            v_c * avg + v_d
        } else {
            1.0
        };
        p.min(1.0)
    }
}

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

/// Sizes, where the probability is to grow with a packet's.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// This packet's, on the wire.
    pub size: u32,
    /// A typical packet's; not 0.
    pub mean: u32,
}

/// What an arrival found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The average its colour goes by.
    pub avg: f64,
    /// The length of that queue now, in the average's unit.
    pub queued: f64,
    /// Set where bytes rather than packets are dropped at the curve's rate.
    pub scale: Option<Scale>,
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

/// Packets let by since the last drop (bytes, in ns-2's reading of a [`Scale`]).
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

    /// One arrival. Draws at most one random number.
    #[inline]
    pub fn test<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        rule: Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        match rule.law {
            Law::Floyd93 => self.test_floyd93(curve, rule, found, rng, why),
            Law::Ns2Red | Law::Ns2Rio => self.test_ns2(curve, rule, found, rng, why),
        }
    }

    /// Fig. 2 of Floyd and Jacobson 1993. A number is drawn only where it decides.
    #[inline]
    fn test_floyd93<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        rule: Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        if found.avg < curve.min_th {
            self.0 = BELOW;
            return Fate::Pass;
        }
        if found.avg >= curve.end(rule.gentle) {
            self.0 = 0;
            return Fate::Forced;
        }
        self.0 = self.0.saturating_add(1);
        let mut p_b = curve.p_b(found.avg, rule.gentle);
        if let Some(Scale { size, mean }) = found.scale {
            p_b = (p_b * f64::from(size) / f64::from(mean)).min(1.0);
        }
        let p_a = spaced(p_b, f64::from(self.0), rule.wait);
        self.note(p_b, p_a, why);
        if chance("u", p_a, rng, why) {
            self.0 = 0;
            return Fate::Early { markable: true };
        }
        Fate::Pass
    }

    /// ns-2's early test: nothing is dropped while at most one packet (or byte) waits; the first packet
    /// over min_th is let by without a draw; after that each costs one, whatever p is.
    fn test_ns2<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        rule: Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        if found.avg < curve.min_th || found.queued <= 1.0 {
            self.0 = BELOW;
            return Fate::Pass;
        }
        let above = found.avg >= curve.end(rule.gentle);
        let step = found.scale.map_or(1, |s| i32::try_from(s.size).unwrap_or(i32::MAX));
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
        let p_a = match found.scale {
            None => spaced(p_b, f64::from(self.0), rule.wait),
            Some(Scale { size, mean }) => {
                let count = f64::from(self.0 as u32 / mean);
                let p = spaced(p_b, count, rule.wait);
                if p < 1.0 { (p * f64::from(size) / f64::from(mean)).min(1.0) } else { p }
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

/// True with probability `p`; draws a number, noted as `what`, only if that is open.
#[inline]
pub fn chance<W: Why + ?Sized>(what: &'static str, p: f64, rng: &mut Rng, why: &mut W) -> bool {
    if p <= 0.0 {
        return false;
    }
    if p >= 1.0 {
        return true;
    }
    let u = rng.uniform();
    why.note(what, u);
    u < p
}

/// The verdict, given whether the packet `fits` the hard limit and `can_mark` (ECN is on and its
/// transport understands it). Floyd and Jacobson's queue has no limit: what they drop they drop first. ns-2
/// counts whatever finds the queue full as overflow. A forced drop is never a mark (RFC 3168 §7).
#[must_use]
#[inline]
pub fn admission(fate: Fate, law: Law, can_mark: bool, fits: bool) -> Admission {
    match fate {
        _ if !fits && law != Law::Floyd93 => Admission::Drop(Cause::Overflow),
        Fate::Forced => Admission::Drop(Cause::Forced),
        Fate::Early { markable } if !(markable && can_mark) => Admission::Drop(Cause::Early),
        _ if !fits => Admission::Drop(Cause::Overflow),
        Fate::Early { .. } => Admission::Mark,
        Fate::Pass => Admission::Admit,
    }
}

/// A packet size as [`Scale`] takes it: at least 1, so that it divides.
#[must_use]
pub fn size_of(packet: Bytes) -> u32 {
    u32::try_from(packet.0).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::verdict::Silent;
    use proptest::prelude::*;

    const RULE: Rule = Rule { law: Law::Floyd93, gentle: false, wait: false, in_bytes: false };

    fn curves() -> impl Strategy<Value = Curve> {
        (0f64..100.0, 0.1f64..100.0, 0.001f64..=1.0).prop_map(|(min_th, width, max_p)| Curve {
            min_th,
            max_th: min_th + width,
            max_p,
        })
    }

    #[test]
    fn on_the_thresholds() {
        let c = Curve { min_th: 5.0, max_th: 15.0, max_p: 0.1 };
        assert_eq!((c.p_b(5.0, false), c.p_b(10.0, false), c.p_b(15.0, false)), (0.0, 0.05, 1.0));
        assert_eq!((c.p_b(15.0, true), c.p_b(22.5, true), c.p_b(30.0, true)), (0.1, 0.55, 1.0));
    }

    #[test]
    fn spacing_by_hand() {
        assert_eq!([0.0, 2.0, 3.0, 4.0].map(|n| spaced(0.25, n, false)), [0.25, 0.5, 1.0, 1.0]);
        assert_eq!([0.0, 3.0, 4.0, 6.0, 8.0].map(|n| spaced(0.25, n, true)), [0.0, 0.0, 0.25, 0.5, 1.0]);
    }

    /// §7: at a constant average the gaps after a drop are uniform, on 1 … 1/p_b − 1 as Fig. 2 counts;
    /// with `wait`, on 1/p_b … 2/p_b − 1.
    #[test]
    fn gaps_are_uniform() {
        for (wait, from, values) in [(false, 1, 9), (true, 10, 10)] {
            let curve = Curve { min_th: 0.0, max_th: 10.0, max_p: 0.2 };
            let found = Found { avg: 5.0, queued: 5.0, scale: None };
            let mut rng = Rng::for_component(5, "gaps");
            let mut count = Countdown::default();
            let mut gaps = [0u32; 40];
            let mut gap = 0;
            for _ in 0..200_000 {
                gap += 1;
                if count.test(&curve, Rule { wait, ..RULE }, found, &mut rng, &mut Silent) != Fate::Pass {
                    gaps[gap] += 1;
                    gap = 0;
                }
            }
            let drops: u32 = gaps.iter().sum();
            let each = f64::from(drops) / values as f64;
            let seen: u32 = gaps[from..from + values].iter().sum();
            // The very first gap starts from −1, not 0, and may be one longer.
            assert!(drops - seen <= 1, "gaps outside the range: {gaps:?}");
            for n in &gaps[from..from + values] {
                assert!((f64::from(*n) - each).abs() < 5.0 * each.sqrt(), "{gaps:?}");
            }
        }
    }

    /// Counts after one arrival each at these averages.
    fn counts(law: Law, averages: &[f64]) -> Vec<i32> {
        let curve = Curve { min_th: 5.0, max_th: 15.0, max_p: 0.001 };
        let mut rng = Rng::for_component(1, "counts");
        let mut count = Countdown::default();
        averages
            .iter()
            .map(|&avg| {
                let found = Found { avg, queued: 9.0, scale: None };
                count.test(&curve, Rule { law, ..RULE }, found, &mut rng, &mut Silent);
                count.get()
            })
            .collect()
    }

    #[test]
    fn the_count_starts_at_min_th() {
        let averages = [4.9, 5.0, 6.0, 6.0, 4.9, 6.0, 15.0, 6.0];
        assert_eq!(counts(Law::Floyd93, &averages), [-1, 0, 1, 2, -1, 0, 0, 1]);
        assert_eq!(counts(Law::Ns2Red, &averages), [-1, 1, 2, 3, -1, 1, 0, 1]);
        // Here the caller restarts: ns-2's RIO does so for IN only.
        assert_eq!(counts(Law::Ns2Rio, &averages), [-1, 1, 2, 3, -1, 1, 2, 3]);
    }

    /// ns-2 draws even where p = 0 or 1, but not for the first packet over min_th, nor while one packet waits.
    #[test]
    fn ns2_draws_as_ns2_does() {
        let curve = Curve { min_th: 5.0, max_th: 15.0, max_p: 0.1 };
        let mut count = Countdown::default();
        let draws = |count: &mut Countdown, law, avg, queued| {
            let (mut rng, mut idle) = (Rng::ns2(1), Rng::ns2(1));
            let found = Found { avg, queued, scale: None };
            count.test(&curve, Rule { law, ..RULE }, found, &mut rng, &mut Silent);
            rng.uniform() != idle.uniform()
        };
        assert!(!draws(&mut count, Law::Ns2Red, 5.0, 1.0));
        assert!(!draws(&mut count, Law::Ns2Red, 5.0, 2.0));
        assert!(draws(&mut count, Law::Ns2Red, 5.0, 2.0));
        assert!(draws(&mut count, Law::Ns2Red, 15.0, 2.0));
        assert!(!draws(&mut count, Law::Ns2Rio, 15.0, 2.0));
        assert!(!draws(&mut count, Law::Ns2Red, 15.0, 1.0));
        assert!(!draws(&mut count, Law::Ns2Red, 15.0, 2.0), "first over min_th again");
    }

    /// ns-2 marks below p_b = 0.1 (RED), or below max_th (RIO); above that it drops.
    #[test]
    fn ns2_marks_only_low_down() {
        let curve = Curve { min_th: 5.0, max_th: 15.0, max_p: 0.2 };
        let fate = |law, avg| {
            let mut rng = Rng::for_component(1, "marks");
            let mut count = Countdown(1000);
            let rule = Rule { law, gentle: true, ..RULE };
            count.test(&curve, rule, Found { avg, queued: 9.0, scale: None }, &mut rng, &mut Silent)
        };
        let early = |markable| Fate::Early { markable };
        assert_eq!([9.0, 11.0].map(|avg| fate(Law::Ns2Red, avg)), [early(true), early(false)]);
        assert_eq!([11.0, 16.0].map(|avg| fate(Law::Ns2Rio, avg)), [early(true), early(false)]);
        assert_eq!(fate(Law::Floyd93, 16.0), early(true));
        assert_eq!([Law::Ns2Red, Law::Ns2Rio, Law::Floyd93].map(|l| fate(l, 30.0)), [Fate::Forced; 3]);
    }

    /// ns-2 counts whole typical packets among the bytes let by, and scales p last.
    #[test]
    fn ns2_counts_bytes_where_sizes_matter() {
        let curve = Curve { min_th: 0.0, max_th: 10.0, max_p: 0.4 };
        let mut notes = crate::verdict::Notes::default();
        let mut count = Countdown(700);
        let found = Found { avg: 5.0, queued: 9.0, scale: Some(Scale { size: 500, mean: 1000 }) };
        let mut rng = Rng::for_component(1, "bytes");
        count.test(&curve, Rule { law: Law::Ns2Red, ..RULE }, found, &mut rng, &mut notes);
        // 1,200 bytes are one packet: 0.2 / (1 − 0.2), halved for half a packet.
        assert_eq!(notes.items()[..3], [("count", 1200.0), ("p_b", 0.2), ("p_a", 0.125)]);
    }

    #[test]
    fn a_number_is_drawn_only_where_it_decides() {
        let untouched = Rng::for_component(1, "draws");
        let mut rng = untouched.clone();
        for p in [-0.1, 0.0, 1.0, 2.0] {
            assert_eq!(chance("u", p, &mut rng, &mut Silent), p >= 1.0);
        }
        assert_eq!(rng.uniform(), untouched.clone().uniform());
    }

    proptest! {
        /// A longer queue is never safer, and a probability is one.
        #[test]
        fn curve_is_monotone(c in curves(), a in 0f64..500.0, b in 0f64..500.0, gentle: bool) {
            let (lo, hi) = if a < b { (a, b) } else { (b, a) };
            let (p, q) = (c.p_b(lo, gentle), c.p_b(hi, gentle));
            prop_assert!((0.0..=1.0).contains(&p) && p <= q && q <= 1.0);
            prop_assert_eq!(c.p_b(c.end(gentle) + a, gentle), 1.0);
        }

        /// Slope and intercept draw the same line.
        #[test]
        fn both_ways_to_compute_it_agree(c in curves(), above in 0f64..300.0, gentle: bool) {
            let avg = c.min_th + above;
            let condition = 1.0 + c.max_th / (c.max_th - c.min_th);
            prop_assert!((c.p_b(avg, gentle) - c.p_b_ns2(avg, gentle)).abs() < 1e-14 * condition);
        }

        /// The longer since the last drop, the likelier the next.
        #[test]
        fn spacing_is_monotone(p_b in 0f64..=1.0, count in 0u32..1000, wait: bool) {
            let (now, next) = (f64::from(count), f64::from(count + 1));
            let (p, q) = (spaced(p_b, now, wait), spaced(p_b, next, wait));
            prop_assert!((0.0..=1.0).contains(&p) && p <= q && q <= 1.0);
        }
    }
}

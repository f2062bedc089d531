//! The test of RED by products: u < p_b / (1 − count·p_b) is u·(1 − count·p_b) < p_b, with 2 for 1 where it waits. What is within rounding of
//! a tie, on the gentle slope, scaled by size or asked for its figures is left to [`Count::test`], so that verdicts and draws are always
//! the same. Non-goal: any law of its own.

use std::hint::select_unpredictable;

use super::{BELOW, Count, Curve, DropTest, EarlyTest, Floyd93, Variant, spaced};
use crate::rng::Rng;
use crate::verdict::Why;

/// Comparisons of products stand for those of quotients where they are clearer than this. Rounding moves either side by less
/// than a hundredth of it.
const CLEAR: f64 = 1e-12;

impl Variant for Floyd93 {
    #[inline(always)]
    fn test<W: Why + ?Sized>(count: &mut Count, t: DropTest<'_>, rng: &mut Rng, why: &mut W) -> EarlyTest {
        if t.rule.mean.is_none() && !why.asks() {
            count.test_without_division(t, rng, why)
        } else {
            count.test(t, rng, why)
        }
    }
}

impl Count {
    /// [`Count::test`], where nobody asks for its figures.
    #[inline(always)]
    fn test_without_division<W: Why + ?Sized>(
        &mut self,
        t: DropTest<'_>,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        let avg = t.avg;
        let count = self.0.saturating_add(1);
        if avg >= t.curve.max_th && !t.rule.gentle {
            self.0 = 0;
            return EarlyTest::Forced;
        }
        if avg <= t.curve.min_th && avg < t.curve.max_th {
            self.0 = if avg < t.curve.min_th { BELOW } else { count };
            return EarlyTest::Pass;
        }
        let p_b = t.curve.slope * (avg - t.curve.min_th);
        let due = f64::from(count) * p_b;
        let below = avg < t.curve.max_th;
        if t.rule.wait & below & (due < 1.0 - CLEAR) {
            self.0 = count;
            return EarlyTest::Pass;
        }
        let room = if t.rule.wait { 2.0 } else { 1.0 } - due;
        let clear = (room - p_b > CLEAR) & !(t.rule.wait & (due < 1.0 + CLEAR));
        if !(below && clear) {
            return self.test(t, rng, why);
        }
        let u = rng.uniform();
        let over = p_b - u * room;
        let drop = if over.abs() > CLEAR { over > 0.0 } else { u < p_a(t.curve, avg, count, t.rule.wait) };
        // Chance: a processor's guess would be wrong more often than worth it.
        self.0 = select_unpredictable(drop, 0, count);
        select_unpredictable(drop, EarlyTest::Early { markable: true }, EarlyTest::Pass)
    }
}

/// [`spaced`] between the thresholds.
#[cold]
#[inline(never)]
fn p_a(curve: &Curve, avg: f64, count: i32, wait: bool) -> f64 {
    spaced(curve.p_b(avg, false), f64::from(count), wait)
}

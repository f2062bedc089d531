//! The law of RED for any number of colours: update the averages, look up the curve, space the drops, decide.
//!
//! Every arrival updates some of the averages (a matrix says which: [`Config::weights`]). It is tested with its own colour's
//! average against its own colour's [`Curve`], and a count for each colour spaces the drops. [RED](super) has one colour,
//! [RIO](super::rio) two, [WRED](super::wred) three; they differ in what is averaged, the matrix and the curves.
//! Source: Floyd and Jacobson 1993, Fig. 2, §7 and §11; Clark and Fang 1998 (colours); Floyd 2000 (`gentle`); RFC 3168 §7
//! (marks). A discipline calls [`Law::sample`], [`Law::test`] and [`Law::conclude`], in this order; the methods of [`Variant`] are the
//! algorithm as published, and another implementation overrides what it computes differently.
//! Non-goal: measuring the queue, and what happens when it is full.

mod average;

use std::fmt::Debug;
use std::hint::select_unpredictable;
use std::sync::Arc;

use crate::aqm::red::common::{Config, DropAt};
use crate::prelude::*;

pub use average::Weight;

/// At random, with the average between the thresholds.
pub const EARLY: Cause = Cause::named("early");
/// With certainty, as the average had reached the end of the curve.
pub const FORCED: Cause = Cause::named("forced");
/// The count while the average is below min_th.
const BELOW: i32 = -1;

/// Thresholds in packets or bytes, and the probability at the upper one.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    /// Below it nothing is dropped.
    pub min_th: f64,
    /// Where the probability has risen to `max_p`.
    pub max_th: f64,
    /// The probability just below `max_th`.
    pub max_p: f64,
    /// How steeply it rises between the thresholds.
    pub(super) slope: f64,
}

impl Curve {
    /// From `min_th` to `max_th`, where the probability is `max_p`.
    #[must_use]
    #[inline]
    pub fn new(min_th: f64, max_th: f64, max_p: f64) -> Curve {
        Curve { min_th, max_th, max_p, slope: max_p / (max_th - min_th) }
    }

    /// The average at and above which everything is dropped.
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
}

/// How one queue reads its curves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rule {
    /// Between max_th and 2·max_th the probability rises to 1 (Floyd 2000), rather than at once.
    pub gentle: bool,
    /// No drop before 1/p_b packets have been let by.
    pub wait: bool,
    /// A packet picked by chance is marked rather than dropped, where its transport understands that.
    pub ecn: bool,
    /// Whether averages and thresholds are in bytes rather than packets.
    pub in_bytes: bool,
    /// A typical packet's size on the wire, not 0, where the probability is to grow with a packet's: so bytes rather than
    /// packets are dropped at the curve's rate.
    pub mean: Option<u32>,
}

/// An arrival, and the queue that it finds.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<const N: usize> {
    /// When.
    pub now: Time,
    /// Its colour, best first.
    pub colour: usize,
    /// Its size on the wire.
    pub size: u32,
    /// For each average, the present length of what it averages.
    pub lengths: [f64; N],
    /// Since when the link is idle, if it is.
    pub idle: Option<Time>,
}

/// State between packets.
#[derive(Clone, Debug)]
pub struct Vars<const N: usize> {
    /// The averages: each colour is tested against its own.
    pub avg: [f64; N],
    /// The time up to which idle time has aged them.
    aged: Time,
    /// By colour.
    pub count: [Count; N],
}

/// The law at work on one queue. For one or two colours, everything that an arrival writes is in one cache line (hence C's layout).
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Law<const N: usize, R = Floyd93> {
    /// State between packets.
    pub vars: Vars<N>,
    /// The part that no arrival changes.
    pub config: Arc<Config<N>>,
    /// State of the variant.
    pub variant: R,
}

impl<R: Variant> Law<1, R> {
    /// Brings the one average up to date with an arrival; returns the arrival and the new average.
    #[inline(always)]
    pub fn look<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &Q,
        why: &mut W,
    ) -> (Arrival<1>, f64) {
        let queued = queue.length(self.config.rule.in_bytes);
        let arrival =
            Arrival { now, colour: 0, size: packet.size, lengths: [queued], idle: queue.idle_since() };
        let avg = self.sample(&arrival);
        why.note("queued", queued);
        why.note("avg", avg);
        (arrival, avg)
    }
}

impl<const N: usize, R: Variant> Law<N, R> {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new(mut config: Config<N>) -> Law<N, R> {
        config.curves = config.curves.map(R::curve);
        let vars = Vars { avg: [0.0; N], aged: Time::ZERO, count: [Count::default(); N] };
        Law { vars, config: Arc::new(config), variant: R::default() }
    }

    /// Brings the averages up to date with an arrival; returns its own colour's.
    #[inline(always)]
    pub fn sample(&mut self, a: &Arrival<N>) -> f64 {
        self.variant.sample(&mut self.vars, &self.config, a);
        self.vars.avg[a.colour]
    }

    /// Tests an arrival against its colour's curve, after [`Law::sample`].
    #[inline(always)]
    pub fn test<W: Why + ?Sized>(&mut self, a: &Arrival<N>, rng: &mut Rng, why: &mut W) -> EarlyTest {
        let tested = DropTest::of(&self.vars, &self.config.curves[a.colour], &self.config.rule, a);
        R::test(&mut self.vars.count[a.colour], tested, rng, why)
    }

    /// [`Law::test`] against a curve that moves.
    #[inline(always)]
    pub fn test_by<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        a: &Arrival<N>,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        let tested = DropTest::of(&self.vars, curve, &self.config.rule, a);
        R::test(&mut self.vars.count[a.colour], tested, rng, why)
    }

    /// Turns the test's outcome into a verdict, which the queue counts.
    #[inline(always)]
    pub fn conclude(&mut self, packet: &Packet, colour: usize, test: EarlyTest, fits: bool) -> Admission {
        let can_mark = self.config.rule.ecn && packet.ecn.can_mark();
        let verdict = R::admission(test, can_mark, fits);
        if let Admission::Drop(cause) = verdict
            && R::restarts(cause, colour)
        {
            self.vars.count[colour].restart();
        }
        verdict
    }

    /// p_b of a colour at its average.
    #[must_use]
    pub fn p_b(&self, colour: usize) -> f64 {
        self.config.curves[colour].p_b(self.vars.avg[colour], self.config.rule.gentle)
    }
}

/// The algorithm as Floyd and Jacobson have it (1993), with marks (RFC 3168 §7). Another implementation is a variant that overrides what it
/// computes differently.
pub trait Variant: Clone + Debug + Default + Send + 'static {
    /// A curve as this variant keeps it.
    fn curve(curve: Curve) -> Curve {
        curve
    }

    /// Brings the averages up to date with an arrival.
    #[inline(always)]
    fn sample<const N: usize>(&mut self, vars: &mut Vars<N>, c: &Config<N>, a: &Arrival<N>) {
        vars.sample(c, a);
    }

    /// One arrival against one curve; draws at most one random number.
    #[inline(always)]
    fn test<W: Why + ?Sized>(count: &mut Count, t: DropTest<'_>, rng: &mut Rng, why: &mut W) -> EarlyTest {
        count.test(t, rng, why)
    }

    /// The verdict, given whether the packet `fits` the hard limit and `can_mark` (ECN is on and its transport understands it). The
    /// paper's queue has no limit: what it drops is dropped before a limit could.
    #[inline(always)]
    fn admission(test: EarlyTest, can_mark: bool, fits: bool) -> Admission {
        match test {
            EarlyTest::Forced => Admission::Drop(FORCED),
            EarlyTest::Early { markable } if !(markable && can_mark) => Admission::Drop(EARLY),
            _ if !fits => Admission::Drop(Cause::OVERFLOW),
            EarlyTest::Early { .. } => Admission::Mark,
            EarlyTest::Pass => Admission::Admit,
        }
    }

    /// Whether a test that finds an arrival forced restarts the count.
    const FORCED_RESTARTS: bool = true;

    /// Whether a packet dropped for this cause restarts its colour's count, where the test has not done so: an overflow does, as any
    /// drop.
    #[inline(always)]
    fn restarts(cause: Cause, colour: usize) -> bool {
        let _ = colour;
        cause == Cause::OVERFLOW
    }

    /// Which packet is dropped from a full queue: its position among those `waiting`, the arrival being last.
    fn victim(drop: DropAt, waiting: u32, rng: &mut Rng) -> u32 {
        match drop {
            DropAt::Tail => waiting,
            DropAt::Front => 0,
            DropAt::Random => rng.below(waiting + 1),
        }
    }

    /// Where a limit is not read as packets or bytes, the arrival included: how many bytes waiting are too many.
    fn joins_below(limit: Backlog, rule: &Rule, mean_packet: u64) -> Option<u64> {
        let _ = (limit, rule, mean_packet);
        None
    }
}

/// Floyd and Jacobson 1993: the [test](Count::test), without a division wherever nobody asks for its figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct Floyd93;

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

/// The outcome of the test of an arrival, before the queue's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyTest {
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

/// What an arrival is tested by, and its figures.
#[derive(Clone, Copy, Debug)]
pub struct DropTest<'a> {
    /// The curve.
    pub curve: &'a Curve,
    /// What all curves share.
    pub rule: &'a Rule,
    /// The average of its colour.
    pub avg: f64,
    /// In bytes.
    pub size: u32,
    /// The present length of what is averaged, in its unit.
    pub queued: f64,
}

impl<'a> DropTest<'a> {
    /// Of an arrival that is in the averages.
    #[inline(always)]
    fn of<const N: usize>(vars: &Vars<N>, curve: &'a Curve, rule: &'a Rule, a: &Arrival<N>) -> Self {
        DropTest { curve, rule, avg: vars.avg[a.colour], size: a.size, queued: a.lengths[a.colour] }
    }
}

/// p_a: the chance of a drop after `count` packets have been let by. So gaps between drops are uniform, up to 1/p_b without `wait`
/// (Floyd and Jacobson 1993, §7, method 2), and from 1/p_b to 2/p_b with it.
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

/// Packets let by since the last drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub(crate) i32);

impl Default for Count {
    fn default() -> Count {
        Count(BELOW)
    }
}

impl Count {
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

    /// Counts a packet that is not tested here: one more let by, or none while the average is below min_th.
    #[inline]
    pub(crate) fn let_by(&mut self, avg: f64, curve: &Curve) {
        self.0 = if avg < curve.min_th { BELOW } else { self.0.saturating_add(1) };
    }

    /// Fig. 2. A number is drawn only where it decides.
    #[cold]
    #[inline(never)]
    fn test<W: Why + ?Sized>(&mut self, t: DropTest<'_>, rng: &mut Rng, why: &mut W) -> EarlyTest {
        let avg = t.avg;
        if avg < t.curve.min_th {
            self.0 = BELOW;
            return EarlyTest::Pass;
        }
        if avg >= t.curve.end(t.rule.gentle) {
            self.0 = 0;
            return EarlyTest::Forced;
        }
        self.0 = self.0.saturating_add(1);
        let mut p_b = t.curve.p_b(avg, t.rule.gentle);
        if let Some(mean) = t.rule.mean {
            p_b = (p_b * f64::from(t.size) / f64::from(mean)).min(1.0);
        }
        let p_a = spaced(p_b, f64::from(self.0), t.rule.wait);
        self.note(p_b, p_a, why);
        if rng.chance("u", p_a, why) {
            self.0 = 0;
            // RFC 3168 §7: above the upper threshold packets are dropped rather than marked. On the gentle line, from max_p to
            // 1, marks would be as frequent as that section's "reasonably low" rate is not.
            return EarlyTest::Early { markable: avg < t.curve.max_th };
        }
        EarlyTest::Pass
    }

    /// [`Count::test`] by products, with the same verdict and draws: u < p_b / (1 − count·p_b) is u·(1 − count·p_b) < p_b, with 2
    /// for 1 where it waits. What is within rounding of a tie, or on the gentle slope, is left to the quotients.
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

    /// Records the figures of a test.
    pub(crate) fn note<W: Why + ?Sized>(self, p_b: f64, p_a: f64, why: &mut W) {
        why.note("count", f64::from(self.0));
        why.note("p_b", p_b);
        why.note("p_a", p_a);
    }
}

/// Products that differ by more decide as quotients do: rounding moves either side by less than a hundredth of it.
const CLEAR: f64 = 1e-12;

/// [`spaced`] between the thresholds.
#[cold]
#[inline(never)]
fn p_a(curve: &Curve, avg: f64, count: i32, wait: bool) -> f64 {
    spaced(curve.p_b(avg, false), f64::from(count), wait)
}

#[cfg(test)]
pub(crate) mod tests;

//! The law of RED for any number of colours: update the averages, look up the curve, space the drops, decide.
//!
//! Every arrival updates some of the averages (a matrix says which: [`Config::weights`]). It is tested with its own colour's
//! average against its own colour's curve, and a count for each colour spaces the drops. [RED](super) has one colour,
//! [RIO](super::rio) two, [WRED](super::wred) three; they differ in what is averaged, the matrix and the curves.
//! Source: Floyd and Jacobson 1993, Fig. 2, §7 and §11; Clark and Fang 1998 (colours); Floyd 2000 (`gentle`); RFC 3168 §7
//! (marks). A [`Reading`] is what another implementation computes differently. Non-goal: measuring the queue, and what
//! happens when it is full.

use std::fmt::Debug;
use std::hint::select_unpredictable;
use std::sync::Arc;

use crate::aqm::red::curve::{Config, Curve, DropAt, Rule};
use crate::aqm::red::tally::Tally;
pub use crate::aqm::red::tally::{EARLY, FORCED};
use crate::packet::Packet;
use crate::queue::Queue;
use crate::rng::Rng;
use crate::units::{Backlog, Time};
use crate::verdict::{Admission, Cause, Why};

/// The count while the average is below min_th.
const BELOW: i32 = -1;
/// Comparisons of products stand for those of quotients where they are clearer than this. Rounding moves either side by less
/// than a hundredth of it.
const CLEAR: f64 = 1e-12;

/// State between packets.
#[derive(Clone, Debug)]
pub struct Vars<const N: usize> {
    /// Averages, each with the colour that goes by it.
    pub avg: [f64; N],
    /// Until when idle time has aged them.
    aged: Time,
    /// By colour.
    pub count: [Count; N],
}

/// An arrival, and what it finds.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<const N: usize> {
    /// When.
    pub now: Time,
    /// Its colour, best first.
    pub colour: usize,
    /// Its size on the wire.
    pub size: u32,
    /// Of each average the length that it is an average of.
    pub lengths: [f64; N],
    /// Since when the link is idle, if it is.
    pub idle: Option<Time>,
}

impl<const N: usize> Vars<N> {
    /// Fig. 2, for each average: avg ← (1 − w)·avg + w·q; where the arrival finds the link idle, the averages age instead.
    /// No branch asks for the colour, which a processor would guess wrong every second time.
    #[inline]
    pub fn sample(&mut self, c: &Config<N>, a: &Arrival<N>) {
        match a.idle {
            Some(since) if c.weight.ptc > 0.0 => self.age(c, a.now, since),
            _ => {
                let weights = &c.weights[a.colour];
                for ((avg, w), q) in self.avg.iter_mut().zip(weights).zip(a.lengths) {
                    *avg += w * (q - *avg);
                }
            }
        }
    }

    /// Fig. 2: avg ← (1 − w)^m·avg, as if m packets had been finding an empty queue all the while; m = idle time · packets a
    /// second, a real number (§11), so that however often an idle stretch is looked at, it ages the same.
    #[cold]
    #[inline(never)]
    pub fn age(&mut self, c: &Config<N>, now: Time, idle: Time) {
        let left = self.left(c, now, idle);
        self.avg.iter_mut().for_each(|avg| *avg *= left);
    }

    /// What the idle time that nothing has accounted for yet leaves of an average; it has, then.
    pub(crate) fn left(&mut self, c: &Config<N>, now: Time, idle: Time) -> f64 {
        let idle = now.since(idle.max(self.aged)).picos();
        self.aged = now;
        if idle > 0.0 { libm::exp2(c.weight.fade * idle) } else { 1.0 }
    }
}

/// What becomes of an arrival by its average, were the queue without limit.
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

/// Packets let by since the last drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub(crate) i32);

impl Default for Count {
    fn default() -> Count {
        Count(BELOW)
    }
}

/// What is tested: the average that the arrival's colour goes by, its size, and the length averaged as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The average.
    pub avg: f64,
    /// In bytes.
    pub size: u32,
    /// In the average's unit.
    pub queued: f64,
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

    /// Fig. 2. A number is drawn only where it decides.
    #[cold]
    #[inline(never)]
    fn test<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        rule: &Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        let avg = found.avg;
        if avg < curve.min_th {
            self.0 = BELOW;
            return EarlyTest::Pass;
        }
        if avg >= curve.end(rule.gentle) {
            self.0 = 0;
            return EarlyTest::Forced;
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
            // RFC 3168 §7: above the upper threshold packets are dropped rather than marked. On the gentle line, from max_p to
            // 1, marks would be as frequent as that section's "reasonably low" rate is not.
            return EarlyTest::Early { markable: avg < curve.max_th };
        }
        EarlyTest::Pass
    }

    /// [`Count::test`] by a product: u < p_b / (1 − count·p_b) is u·(1 − count·p_b) < p_b, with 2 for 1 where
    /// it waits. What is within rounding of a tie, or on the gentle slope, is left to [`Count::test`], so that
    /// verdicts and draws are always the same.
    #[inline(always)]
    fn test_without_division<W: Why + ?Sized>(
        &mut self,
        curve: &Curve,
        rule: &Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        let avg = found.avg;
        let count = self.0.saturating_add(1);
        if avg >= curve.max_th && !rule.gentle {
            self.0 = 0;
            return EarlyTest::Forced;
        }
        if avg <= curve.min_th && avg < curve.max_th {
            self.0 = if avg < curve.min_th { BELOW } else { count };
            return EarlyTest::Pass;
        }
        let p_b = curve.slope * (avg - curve.min_th);
        let due = f64::from(count) * p_b;
        let below = avg < curve.max_th;
        if rule.wait & below & (due < 1.0 - CLEAR) {
            self.0 = count;
            return EarlyTest::Pass;
        }
        let room = if rule.wait { 2.0 } else { 1.0 } - due;
        let clear = (room - p_b > CLEAR) & !(rule.wait & (due < 1.0 + CLEAR));
        if !(below && clear) {
            return self.test(curve, rule, found, rng, why);
        }
        let u = rng.uniform();
        let over = p_b - u * room;
        let drop = if over.abs() > CLEAR { over > 0.0 } else { u < p_a(curve, avg, count, rule.wait) };
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

/// [`spaced`] between the thresholds.
#[cold]
#[inline(never)]
fn p_a(curve: &Curve, avg: f64, count: i32, wait: bool) -> f64 {
    spaced(curve.p_b(avg, false), f64::from(count), wait)
}

/// What a reading of the algorithm may compute otherwise than [`Floyd93`].
pub trait Reading: Clone + Debug + Default + Send + 'static {
    /// A curve as this reading keeps it.
    fn curve(curve: Curve) -> Curve {
        curve
    }

    /// Brings the averages up to date with an arrival.
    fn sample<const N: usize>(&mut self, vars: &mut Vars<N>, c: &Config<N>, a: &Arrival<N>);

    /// One arrival against one curve; draws at most one random number.
    fn test<W: Why + ?Sized>(
        count: &mut Count,
        curve: &Curve,
        rule: &Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest;

    /// The verdict, given whether the packet `fits` the hard limit and `can_mark` (ECN is on and its transport understands it).
    fn admission(test: EarlyTest, can_mark: bool, fits: bool) -> Admission;

    /// Whether a test that finds an arrival forced restarts the count.
    const FORCED_RESTARTS: bool = true;

    /// Whether a packet dropped for this cause restarts its colour's count, where the test has not done so.
    fn restarts(cause: Cause, colour: usize) -> bool;

    /// Which packet is dropped from a full queue: its position among those `waiting`, the arrival being last.
    fn victim(drop: DropAt, waiting: u32, rng: &mut Rng) -> u32;

    /// Where a limit is not read as packets or bytes, the arrival included: how many bytes waiting are too many.
    fn joins_below(limit: Backlog, rule: &Rule, mean_packet: u64) -> Option<u64>;
}

/// Floyd and Jacobson 1993. Their queue has no limit: what they drop they drop first. From max_th on, gentle or not, no drop is
/// a mark (RFC 3168 §7).
#[derive(Clone, Copy, Debug, Default)]
pub struct Floyd93;

impl Reading for Floyd93 {
    #[inline(always)]
    fn sample<const N: usize>(&mut self, vars: &mut Vars<N>, c: &Config<N>, a: &Arrival<N>) {
        vars.sample(c, a);
    }

    #[inline(always)]
    fn test<W: Why + ?Sized>(
        count: &mut Count,
        curve: &Curve,
        rule: &Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        if rule.mean.is_none() && !why.asks() {
            count.test_without_division(curve, rule, found, rng, why)
        } else {
            count.test(curve, rule, found, rng, why)
        }
    }

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

    /// An overflow restarts it as any drop does.
    #[inline(always)]
    fn restarts(cause: Cause, _: usize) -> bool {
        cause == Cause::OVERFLOW
    }

    fn victim(drop: DropAt, waiting: u32, rng: &mut Rng) -> u32 {
        match drop {
            DropAt::Tail => waiting,
            DropAt::Front => 0,
            DropAt::Random => rng.below(waiting + 1),
        }
    }

    fn joins_below(_: Backlog, _: &Rule, _: u64) -> Option<u64> {
        None
    }
}

/// The law at work on one queue. All that an arrival of one colour writes, its counts too, is one cache line; in C's order, so
/// that of two colours the first line holds all but the counts.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Law<const N: usize, R = Floyd93> {
    /// State between packets.
    pub vars: Vars<N>,
    /// What no arrival changes.
    pub config: Arc<Config<N>>,
    /// State of the reading.
    pub reading: R,
    /// What became of the arrivals, by colour.
    pub tally: [Tally; N],
}

impl<R: Reading> Law<1, R> {
    /// An arrival at a queue with one average, which is brought up to date; with what it is now.
    #[inline(always)]
    pub fn look<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &Q,
        why: &mut W,
    ) -> (Arrival<1>, f64) {
        let in_bytes = self.config.rule.in_bytes;
        let queued = if in_bytes { queue.bytes() as f64 } else { f64::from(queue.packets()) };
        let arrival =
            Arrival { now, colour: 0, size: packet.size, lengths: [queued], idle: queue.idle_since() };
        let avg = self.sample(&arrival);
        why.note("queued", queued);
        why.note("avg", avg);
        (arrival, avg)
    }
}

impl<const N: usize, R: Reading> Law<N, R> {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new(mut config: Config<N>) -> Law<N, R> {
        config.curves = config.curves.map(R::curve);
        let vars = Vars { avg: [0.0; N], aged: Time::ZERO, count: [Count::default(); N] };
        Law { vars, config: Arc::new(config), reading: R::default(), tally: [Tally::default(); N] }
    }

    /// Brings the averages up to date with an arrival; the one that its colour goes by.
    #[inline(always)]
    pub fn sample(&mut self, a: &Arrival<N>) -> f64 {
        self.reading.sample(&mut self.vars, &self.config, a);
        self.vars.avg[a.colour]
    }

    /// Tests an arrival, of which the averages know, against its colour's curve.
    #[inline(always)]
    pub fn test<W: Why + ?Sized>(&mut self, a: &Arrival<N>, rng: &mut Rng, why: &mut W) -> EarlyTest {
        let found = self.found(a);
        let curve = &self.config.curves[a.colour];
        R::test(&mut self.vars.count[a.colour], curve, &self.config.rule, found, rng, why)
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
        let found = self.found(a);
        R::test(&mut self.vars.count[a.colour], curve, &self.config.rule, found, rng, why)
    }

    #[inline(always)]
    fn found(&self, a: &Arrival<N>) -> Found {
        Found { avg: self.vars.avg[a.colour], size: a.size, queued: a.lengths[a.colour] }
    }

    /// Turns what the test said into a verdict, and counts it.
    #[inline(always)]
    pub fn conclude(&mut self, packet: &Packet, colour: usize, test: EarlyTest, fits: bool) -> Admission {
        let can_mark = self.config.rule.ecn && packet.ecn.can_mark();
        let verdict = R::admission(test, can_mark, fits);
        if verdict != Admission::Admit {
            self.tally[colour].count(verdict);
            if let Admission::Drop(cause) = verdict
                && R::restarts(cause, colour)
            {
                self.vars.count[colour].restart();
            }
        }
        verdict
    }

    /// p_b of a colour at its average.
    #[must_use]
    pub fn p_b(&self, colour: usize) -> f64 {
        self.config.curves[colour].p_b(self.vars.avg[colour], self.config.rule.gentle)
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! RI+O: RIO with a third RED, on the average number of OUT packets alone.
//!
//! RIO controls the length of the whole queue, not what it consists of: while flows with large profiles send IN packets, the
//! OUT packets of others fill the rest. Here an OUT packet that has passed RIO's test on the average of all packets is tested
//! again on avg_out = avg_total − avg_in, so OUT packets have a share of the queue of their own.
//! Source: Kim 1999 (paper B), §4 and Fig. 4. `strictness` is one reading of the paper's future work: the OUT thresholds
//! decrease linearly as avg_in falls from IN's min_th to 0.
//! The paper updates both averages at every arrival, so that their difference is the average of OUT packets: hence
//! `avg_update = every_arrival`. If IN's average is updated at IN arrivals only, a negative difference counts as 0.
//! Each RED spaces its own drops by its own count; with `counts = joint` an OUT packet lost to either test restarts both. With
//! `count = shared` RIO's test of OUT packets counts IN packets too; the third RED, which is told of OUT packets only, does not.
//! Non-goal: more than two drop precedences.

use crate::aqm::red::common::{Common, Paths, Thresholds, check_thresholds};
use crate::aqm::red::law::{Count, Curve, DropTest, EARLY, EarlyTest, FORCED, Floyd93, Variant};
use crate::aqm::red::rio::{self, AvgUpdate, Counted, Names, OUT, Rio};
use crate::mechanism::FlowGauge;
use crate::prelude::*;
use crate::queue::Counts as QueueCounts;

crate::choice! {
    /// How the two tests of an OUT packet count the packets let by since the last drop: the paper does not say.
    pub enum Counts {
        /// Each since its own last drop: each is a RED by itself.
        Each = "each",
        /// Both since an OUT packet was last dropped by either.
        Joint = "joint",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// For IN packets, on the average of IN packets waiting.
        r#in: Thresholds;
        /// For OUT packets, on the average of all packets waiting (the paper's IN+OUT).
        total: Thresholds;
        /// For OUT packets that have passed `total`, on the average of OUT packets waiting.
        out: Thresholds;
        /// By how much of themselves the OUT thresholds shrink as the average of IN packets falls from in.min_th to 0.
        strictness: f64 [UNIT] = 0.0;
        /// At which arrivals the averages take a sample.
        avg_update: AvgUpdate = AvgUpdate::EveryArrival;
        /// Which packets space the drops of OUT packets by the second RED: OUT packets alone, or IN packets too.
        count: Counted = Counted::Own;
        /// The probability is multiplied by the packet's size / mean_packet.
        byte_scaled: bool = false;
        /// Whether an OUT packet's two tests count packets each since its own last drop, or both since the last of either.
        counts: Counts = Counts::Each;
        /// Keeps, by flow, the mean of avg_out over the flow's IN packets as they join.
        watch: bool = false;
        ..common: Common;
    }
}

/// OUT packets that passed the second RED and failed the third. All verdicts are counted as RIO's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Chosen by chance.
    pub picked: u64,
    /// avg_out was above the curve's end.
    pub forced: u64,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct RioPlusOut<R = Floyd93> {
    pub(crate) rio: Rio<R>,
    curve: Curve,
    count: Count,
    counts: Counts,
    strictness: f64,
    /// Where strictness ends.
    in_min_th: f64,
    stats: Stats,
}

/// avg_out: what of the average of all packets is not IN.
#[must_use]
#[inline]
pub fn avg_out(avg_total: f64, avg_in: f64) -> f64 {
    (avg_total - avg_in).max(0.0)
}

/// The curve as strict as this average of IN packets asks: thresholds times 1 at `in_min_th` and above, times
/// 1 − `strictness` at 0.
#[must_use]
#[inline]
pub fn strict(curve: &Curve, strictness: f64, avg_in: f64, in_min_th: f64) -> Curve {
    if strictness <= 0.0 || avg_in >= in_min_th {
        return *curve;
    }
    let scale = 1.0 - strictness * (1.0 - avg_in / in_min_th);
    Curve::new(curve.min_th * scale, curve.max_th * scale, curve.max_p)
}

impl Params {
    /// The RIO that this is without its third RED.
    fn as_rio(&self) -> rio::Params {
        rio::Params {
            r#in: self.r#in.clone(),
            out: self.total.clone(),
            avg_update: self.avg_update,
            count: self.count,
            byte_scaled: self.byte_scaled,
            watch: self.watch,
            common: self.common.clone(),
        }
    }

    /// The discipline as a variant computes it.
    pub(crate) fn discipline<R: Variant>(&self, context: &Context) -> RioPlusOut<R> {
        RioPlusOut {
            rio: self.as_rio().discipline(context),
            curve: self.out.curve(),
            count: Count::default(),
            counts: self.counts,
            strictness: self.strictness,
            in_min_th: self.r#in.min_th.amount(),
            stats: Stats::default(),
        }
    }
}

impl Build for Params {
    type Mechanism = RioPlusOut;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let names = Names { out: ["total.min_th", "total.max_th"], all: "all six thresholds" };
        let mut warnings = self.as_rio().check_named(&names, context)?;
        let paths = Paths { min_th: "out.min_th", max_th: "out.max_th" };
        check_thresholds(self.out.min_th, self.out.max_th, paths, context, &mut warnings)?;
        if !self.out.min_th.same_unit(self.total.min_th) {
            return Err(Fault {
                field: "out.min_th",
                problem: format!(
                    "total.min_th is {} and out.min_th is {}: the averages have one unit",
                    self.total.min_th, self.out.min_th
                ),
                remedy: "all six thresholds in packets, or all in bytes".into(),
            });
        }
        if self.strictness >= 1.0 {
            return Err(Fault {
                field: "strictness",
                problem: "at 1 the OUT thresholds would shrink to 0, where no curve is left".into(),
                remedy: "less than 1, such as 0.9".into(),
            });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> RioPlusOut {
        self.discipline(context)
    }
}

/// The third RED's figures, told apart from the second's.
struct OfOut<'a, W: ?Sized>(&'a mut W);

impl<W: Why + ?Sized> Why for OfOut<'_, W> {
    #[inline]
    fn note(&mut self, what: &'static str, value: f64) {
        let what = match what {
            "count" => "count_of_out",
            "p_b" => "p_b_of_out",
            "p_a" => "p_a_of_out",
            "u" => "u_of_out",
            what => what,
        };
        self.0.note(what, value);
    }

    #[inline]
    fn asks(&self) -> bool {
        self.0.asks()
    }
}

impl<R: Variant> RioPlusOut<R> {
    /// An OUT packet failed either test, and the counts are one.
    fn restart_both(&mut self, cause: Cause) {
        if cause == EARLY || R::FORCED_RESTARTS {
            self.rio.law.vars.count[OUT].restart();
            self.count.restart();
        }
    }

    /// The third RED: an OUT packet that has passed the second.
    #[inline]
    fn test_out<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        packet: &Packet,
        queue: &Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        let rule = self.rio.law.config.rule;
        let [ins, total] = self.rio.law.vars.avg;
        let avg = avg_out(total, ins);
        why.note("avg_out", avg);
        let curve = strict(&self.curve, self.strictness, ins, self.in_min_th);
        let queued = queue.length(rule.in_bytes) - queue.length_of(Colour::IN, rule.in_bytes);
        let tested = DropTest { curve: &curve, rule: &rule, avg, size: packet.size, queued };
        let test = R::test(&mut self.count, tested, rng, &mut OfOut(why));
        match test {
            EarlyTest::Pass => {}
            EarlyTest::Early { .. } => self.stats.picked += 1,
            EarlyTest::Forced => self.stats.forced += 1,
        }
        test
    }
}

impl<R: Variant> Mechanism for RioPlusOut<R> {
    fn signal(&mut self, now: Time, signal: &Signal) {
        self.rio.signal(now, signal);
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        self.rio.gauges(now, show);
        let [ins, total] = self.rio.law.vars.avg;
        let avg = avg_out(total, ins);
        show("avg_out", avg);
        let curve = strict(&self.curve, self.strictness, ins, self.in_min_th);
        show("p_b_of_out", curve.p_b(avg, self.rio.law.config.rule.gentle));
    }

    fn flow_gauges(&self, now: Time, show: FlowGauge<'_>) {
        self.rio.flow_gauges(now, show);
    }
}

impl<R: Variant> Aqm for RioPlusOut<R> {
    fn marks(&self) -> bool {
        self.rio.marks()
    }

    #[inline]
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let arrival = self.rio.sample(at.now, packet, at.queue, at.why);
        let mut test = self.rio.law.test(&arrival, at.rng, at.why);
        let third = test == EarlyTest::Pass && !packet.colour.is_in();
        if third {
            test = self.test_out(packet, at.queue, at.rng, at.why);
        }
        let verdict = self.rio.law.conclude(packet, arrival.colour, test, at.queue.fits(packet.size));
        self.rio.share(arrival.colour, verdict);
        self.rio.watch(packet, verdict);
        let failed = match test {
            EarlyTest::Pass => None,
            EarlyTest::Early { .. } => Some(EARLY),
            EarlyTest::Forced => Some(FORCED),
        };
        match failed {
            Some(cause) if self.counts == Counts::Joint && !packet.colour.is_in() => self.restart_both(cause),
            // What found the queue full passed all tests, and restarts the counts as any dropped packet does.
            None if third && verdict != Admission::Admit && R::restarts(Cause::OVERFLOW, OUT) => {
                self.count.restart();
            }
            _ => {}
        }
        verdict
    }

    fn show_counts(&self, queue: &QueueCounts, show: &mut dyn FnMut(&'static str, u64)) {
        self.rio.show_counts(queue, show);
        show("picked_of_out", self.stats.picked);
        show("forced_of_out", self.stats.forced);
    }
}

#[cfg(test)]
mod tests;

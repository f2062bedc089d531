//! CHOKe, "choose and keep for responsive flows, choose and kill for unresponsive flows": RED that first compares the arrival with a
//! packet drawn from the queue.
//!
//! While the average is above min_th, a waiting packet is drawn at random. Is it of the arrival's flow, both are dropped: a flow is
//! struck in proportion to the square of its share, without anything being kept of any flow. Otherwise RED decides.
//! Source: Pan, Prabhakar and Psounis 2000, Fig. 1, with several `candidates` as an option. As Linux's `sch_choke` does it, a
//! match neither counts as an arrival let by nor restarts RED's count; the paper says nothing of it. RED is [RED](super).
//! Non-goal: fairness among responsive flows.

use crate::aqm::red::common::{Common, Config, Paths, causes, check_thresholds, show_causes};
use crate::aqm::red::law::{Curve, Law};
use crate::prelude::*;

/// Dropped together with a waiting packet of its flow.
pub const MATCHED: Cause = Cause::named("matched");

/// The most candidates: each costs a draw and a look into the queue.
const MOST_CANDIDATES: u64 = 64;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Average up to which nothing is dropped. Its unit, packets or bytes, is the average's.
        min_th: Backlog [NON_NEGATIVE];
        /// Average from which everything is dropped. In min_th's unit.
        max_th: Backlog [POSITIVE];
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE];
        /// Waiting packets that each arrival is compared with; those of its flow are dropped with it.
        candidates: u64 [POSITIVE] = 1;
        ..common: Common;
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Choke {
    law: Law<1>,
    candidates: u64,
}

impl Build for Params {
    type Mechanism = Choke;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = Vec::new();
        let paths = Paths { min_th: "min_th", max_th: "max_th" };
        check_thresholds(self.min_th, self.max_th, paths, context, &mut warnings)?;
        if self.candidates > MOST_CANDIDATES {
            return Err(Fault {
                field: "candidates",
                problem: format!("{} packets would be drawn at each arrival", self.candidates),
                remedy: format!("at most {MOST_CANDIDATES}; the paper uses 1 to 5"),
            });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Choke {
        let curve = Curve::new(self.min_th.amount(), self.max_th.amount(), self.max_p);
        let rule = self.common.rule(self.min_th, false, context);
        let config = Config::new(self.common.weight(context), [curve], [[true]], rule);
        Choke { law: Law::new(config), candidates: self.candidates }
    }
}

impl Mechanism for Choke {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("avg", self.law.vars.avg[0]);
        show("p_b", self.law.p_b(0));
    }
}

impl Choke {
    /// Fig. 1: draws candidates, and drops those of the arrival's flow; whether there were any.
    fn draw<Q: Queue + ?Sized, W: Why + ?Sized>(
        &self,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> bool {
        let mut matched = false;
        for candidate in 0..self.candidates {
            if queue.packets() == 0 {
                break;
            }
            let position = rng.below(queue.packets());
            if candidate == 0 {
                // A verdict has room for sixteen figures; there may be more candidates.
                why.note("drawn", f64::from(position));
            }
            if queue.flow_at(position) == Some(packet.flow) {
                matched |= queue.evict(position);
            }
        }
        matched
    }
}

impl Aqm for Choke {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.law.config.rule.ecn
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let (arrival, avg) = self.law.look(at.now, packet, at.queue, at.why);
        if avg > self.law.config.curves[0].min_th && self.draw(packet, at.queue, at.rng, at.why) {
            return Admission::Drop(MATCHED);
        }
        let test = self.law.test(&arrival, at.rng, at.why);
        self.law.conclude(packet, 0, test, at.queue.fits(packet.size))
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        show_causes(causes(queue, &Colour::ALL), ["early", "forced", "overflow", "marked"], show);
        show("matched", queue.dropped_by(MATCHED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::red::{EARLY, FORCED};
    use crate::testing::*;

    fn params(candidates: u64, w_q: f64) -> Params {
        Params {
            min_th: Backlog::Packets(5.0),
            max_th: Backlog::Packets(15.0),
            max_p: 0.1,
            candidates,
            common: Common { w_q, ..crate::params::defaults() },
        }
    }

    fn bench(p: &Params, seed: u64) -> Bench {
        let aqm = AnyAqm::Choke(Box::new(p.build(&CONTEXT)));
        let mut b = Bench::new(aqm, Backlog::Packets(100.0)).drawing(seed, "choke");
        b.queue.went_busy();
        b
    }

    /// The verdict, and whose packets were evicted.
    fn arrive(b: &mut Bench, flow: u32, ecn: Ecn) -> (Admission, Vec<u32>) {
        let said = b.arrive_at(0, flow, 1000, ecn);
        (said, std::mem::take(&mut b.evicted_flows))
    }

    /// Fig. 1: up to min_th nothing is drawn, so a flow alone fills the queue that far; above, each of its arrivals meets itself, and takes
    /// a waiting packet with it.
    #[test]
    fn a_flow_alone_meets_itself() {
        let mut b = bench(&params(1, 1.0), 1);
        for waiting in 0..=5 {
            assert_eq!(b.queue.packets(), waiting);
            assert_eq!(arrive(&mut b, 7, Ecn::NotCapable), (Admission::Admit, vec![]));
        }
        assert_eq!(arrive(&mut b, 7, Ecn::NotCapable), (Admission::Drop(MATCHED), vec![7]));
        assert_eq!((b.queue.packets(), b.stat("matched")), (5, 1));
        // Marks are no way out: a match is always a drop.
        arrive(&mut b, 7, Ecn::Ect0);
        assert_eq!(arrive(&mut b, 7, Ecn::Ect0), (Admission::Drop(MATCHED), vec![7]));
    }

    /// A flow's chance to be struck is its share of the queue; several candidates strike more often, 1 − (1 − share)^m.
    #[test]
    fn a_match_is_as_likely_as_the_flows_share() {
        for (candidates, expected) in [(1, 0.25), (3, 1.0 - 0.75 * 0.75 * 0.75)] {
            let mut hits = 0;
            let tries = 4000;
            for seed in 0..tries {
                let mut b = bench(&params(candidates, 1e-9), seed);
                (0..8).for_each(|n| drop(arrive(&mut b, n % 4, Ecn::NotCapable)));
                let AnyAqm::Choke(choke) = &mut b.aqm else { unreachable!() };
                // Above min_th, and below where RED drops with any likelihood.
                choke.law.vars.avg[0] = 5.000_001;
                hits += u64::from(arrive(&mut b, 2, Ecn::NotCapable).0 == Admission::Drop(MATCHED));
            }
            let share = hits as f64 / tries as f64;
            // Four standard deviations.
            assert!((share - expected).abs() < 4.0 * (0.25 / tries as f64).sqrt(), "{candidates}: {share}");
        }
    }

    /// A flow of which nothing waits is RED's alone: never matched, however long the queue.
    #[test]
    fn a_flow_of_which_nothing_waits_is_reds() {
        let p = params(5, 1.0);
        let mut b = bench(&p, 3);
        (0..6).for_each(|n| assert_eq!(arrive(&mut b, n, Ecn::NotCapable).0, Admission::Admit));
        for n in 100..400 {
            let (said, gone) = arrive(&mut b, n, Ecn::NotCapable);
            assert!(gone.is_empty());
            assert!(matches!(said, Admission::Admit | Admission::Drop(EARLY | FORCED)), "{said:?}");
        }
        assert_eq!(b.stat("matched"), 0);
        assert_eq!(arrive(&mut b, 1000, Ecn::NotCapable).0, Admission::Drop(FORCED));
    }

    #[test]
    fn odd_parameters_are_refused() {
        let check = |p: Params| p.check(&CONTEXT).map(|w| w.len()).map_err(|f| f.field);
        assert_eq!(check(params(1, 0.002)), Ok(0));
        assert_eq!(check(params(65, 0.002)), Err("candidates"));
        assert_eq!(check(Params { max_th: Backlog::Packets(5.0), ..params(1, 0.002) }), Err("min_th"));
    }

    /// The paper's Fig. 1 with lists and fractions: the average, the draw, RED's spacing.
    struct Oracle {
        waiting: Vec<u32>,
        avg: f64,
        count: i64,
    }

    impl Oracle {
        fn arrive(&mut self, p: &Params, flow: u32, rng: &mut Rng) -> (Admission, Vec<u32>) {
            self.avg = (1.0 - p.common.w_q) * self.avg + p.common.w_q * self.waiting.len() as f64;
            let (min_th, max_th) = (p.min_th.amount(), p.max_th.amount());
            if self.avg > min_th {
                let mut gone = Vec::new();
                for _ in 0..p.candidates {
                    if !self.waiting.is_empty() {
                        let n = self.waiting.len();
                        let at = ((rng.uniform() * n as f64) as usize).min(n - 1);
                        if self.waiting[at] == flow {
                            gone.push(self.waiting.remove(at));
                        }
                    }
                }
                if !gone.is_empty() {
                    return (Admission::Drop(MATCHED), gone);
                }
            }
            if self.avg < min_th {
                self.count = -1;
            } else if self.avg >= max_th {
                self.count = 0;
                return (Admission::Drop(FORCED), vec![]);
            } else {
                self.count += 1;
                let p_b = p.max_p * (self.avg - min_th) / (max_th - min_th);
                let left = 1.0 - self.count as f64 * p_b;
                let p_a = if left > 0.0 { (p_b / left).min(1.0) } else { 1.0 };
                if p_a >= 1.0 || (p_a > 0.0 && rng.uniform() < p_a) {
                    self.count = 0;
                    return (Admission::Drop(EARLY), vec![]);
                }
            }
            self.waiting.push(flow);
            (Admission::Admit, vec![])
        }
    }

    proptest! {
        /// Whatever comes and leaves: verdicts and evictions are those of Fig. 1.
        #[test]
        fn agrees_with_the_figure(seed: u64, candidates in 1u64..4, w_q in prop::sample::select(vec![0.02, 0.2, 1.0]),
            steps in prop::collection::vec((0u32..4, prop::bool::weighted(0.4)), 1..300)) {
            let p = params(candidates, w_q);
            let mut b = bench(&p, seed);
            let mut oracle = Oracle { waiting: Vec::new(), avg: 0.0, count: -1 };
            let mut rng = Rng::for_component(seed, "choke");
            for (flow, leaves) in steps {
                if leaves {
                    let packet = b.queue.pop();
                    prop_assert_eq!(packet.map(|p| p.flow.0), (!oracle.waiting.is_empty()).then(|| oracle.waiting.remove(0)));
                }
                let (said, gone) = arrive(&mut b, flow, Ecn::NotCapable);
                let expected = oracle.arrive(&p, flow, &mut rng);
                prop_assert_eq!((said, gone), expected);
                prop_assert_eq!(b.queue.iter().map(|p| p.flow.0).collect::<Vec<_>>(), oracle.waiting.clone());
            }
        }
    }

    /// Golden: two flows, one with three of four arrivals; what became of forty arrivals with seed 1.
    #[test]
    fn golden_sequence() {
        let mut b = bench(&params(1, 0.5), 1);
        let said: String = (0..60)
            .map(|n| {
                if n % 3 == 2 {
                    b.queue.pop();
                }
                match arrive(&mut b, u32::from(n % 4 == 0), Ecn::NotCapable).0 {
                    Admission::Admit => '.',
                    Admission::Drop(MATCHED) => 'm',
                    Admission::Drop(EARLY) => 'e',
                    _ => '?',
                }
            })
            .collect();
        assert_eq!(said, ".........mm....mm....m.....mmmm......mm...mm....mm....mm....");
    }
}

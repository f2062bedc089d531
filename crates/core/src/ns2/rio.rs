//! The fault in the averages of ns-2's RIO (`avg_update = "ns2"`): both are samples of IN arrivals only.
//!
//! An OUT packet is tested against an average that was last updated by an IN packet; and an idle period that an OUT packet
//! ended ages IN's average at the next IN packet, by the time from the start of the period until then.
//! Either arithmetic, ours or ns-2's, can have the fault, so that its effect can be measured alone.
//! Source: ns-2.35, `queue/rio.cc`. Non-goal: use in new experiments.

use std::marker::PhantomData;

use crate::aqm::red::DropAt;
use crate::aqm::red::common::Config;
use crate::aqm::red::law::{Arrival, Count, Curve, DropTest, EarlyTest, Floyd93, Rule, Variant, Vars};
use crate::aqm::red::rio::{IN, OUT};
use crate::ns2::red::{ArrivalClock, Ns2Rio, aged, sampled};
use crate::rng::Rng;
use crate::units::{Backlog, Time};
use crate::verdict::{Admission, Cause, Why};

/// How a variant updates both averages when only IN arrivals do.
pub trait UpdateAtIn: Variant {
    /// An IN packet arrives; `unseen` is the start of an idle period that an OUT packet ended.
    fn update<const N: usize>(
        vars: &mut Vars<N>,
        c: &Config<N>,
        a: &Arrival<N>,
        now: (f64, Option<f64>),
        unseen: Option<f64>,
    );
}

impl UpdateAtIn for Ns2Rio {
    fn update<const N: usize>(
        vars: &mut Vars<N>,
        c: &Config<N>,
        a: &Arrival<N>,
        (secs, idle): (f64, Option<f64>),
        unseen: Option<f64>,
    ) {
        for (i, idle) in [(OUT, idle), (IN, idle.or(unseen.map(|since| secs - since)))] {
            if let Some(idle) = idle {
                vars.avg[i] = aged(vars.avg[i], &c.weight, idle);
            }
            vars.avg[i] = sampled(vars.avg[i], &c.weight, a.lengths[i]);
        }
    }
}

impl UpdateAtIn for Floyd93 {
    fn update<const N: usize>(
        vars: &mut Vars<N>,
        c: &Config<N>,
        a: &Arrival<N>,
        _: (f64, Option<f64>),
        unseen: Option<f64>,
    ) {
        let Some(since) = unseen.filter(|_| a.idle.is_none() && c.weight.ptc > 0.0) else {
            vars.sample(c, a);
            return;
        };
        let ins = vars.avg[IN] * vars.left(c, a.now, Time::from_secs(since));
        vars.sample(c, a);
        vars.avg[IN] = ins;
    }
}

/// A variant with the fault.
#[derive(Clone, Debug, Default)]
pub struct AtInOnly<R> {
    /// ns-2's clock at the arrival under way.
    pub told: ArrivalClock,
    /// Start, in seconds, of an idle period that an OUT packet ended and no IN packet has seen yet.
    unseen: Option<f64>,
    variant: PhantomData<R>,
}

impl<R: UpdateAtIn> Variant for AtInOnly<R> {
    const FORCED_RESTARTS: bool = R::FORCED_RESTARTS;

    fn curve(c: Curve) -> Curve {
        R::curve(c)
    }

    #[inline(never)]
    fn sample<const N: usize>(&mut self, vars: &mut Vars<N>, c: &Config<N>, a: &Arrival<N>) {
        let (secs, idle) = self.told.take(a);
        if a.colour == IN {
            R::update(vars, c, a, (secs, idle), self.unseen.take());
        } else {
            self.unseen = idle.map(|idle| secs - idle).or(self.unseen);
        }
    }

    fn test<W: Why + ?Sized>(
        count: &mut Count,
        curve: &Curve,
        rule: &Rule,
        tested: DropTest,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        R::test(count, curve, rule, tested, rng, why)
    }

    fn admission(test: EarlyTest, can_mark: bool, fits: bool) -> Admission {
        R::admission(test, can_mark, fits)
    }

    fn restarts(cause: Cause, colour: usize) -> bool {
        R::restarts(cause, colour)
    }

    fn victim(drop: DropAt, waiting: u32, rng: &mut Rng) -> u32 {
        R::victim(drop, waiting, rng)
    }

    fn joins_below(limit: Backlog, rule: &Rule, mean_packet: u64) -> Option<u64> {
        R::joins_below(limit, rule, mean_packet)
    }
}

#[cfg(test)]
mod tests;

//! The fault in the averages of ns-2's RIO (`avg_update = "ns2"`): both are samples of IN arrivals only.
//!
//! An OUT packet is tested by an average that has slept since the last IN packet; and an idle stretch that an OUT packet
//! ended ages IN's average at the next IN packet, from where the stretch began until then.
//! It is here in either arithmetic, for telling the fault's part from the rest's. Source: ns-2.35, `queue/rio.cc`.

use std::marker::PhantomData;

use crate::aqm::red::DropAt;
use crate::aqm::red::curve::{Config, Curve, Rule};
use crate::aqm::red::law::{Arrival, Count, EarlyTest, Floyd93, Found, Reading, Vars};
use crate::aqm::red::rio::{IN, OUT};
use crate::ns2::red::{Ns2Rio, Told, aged, sampled};
use crate::rng::Rng;
use crate::units::{Backlog, Time};
use crate::verdict::{Admission, Cause, Why};

/// Averages that sleep through OUT arrivals, in the arithmetic of `R`.
pub trait Sleeping: Reading {
    /// An IN packet arrives; `unseen` is where an idle stretch began that an OUT packet ended.
    fn wake<const N: usize>(
        vars: &mut Vars<N>,
        c: &Config<N>,
        a: &Arrival<N>,
        now: (f64, Option<f64>),
        unseen: Option<f64>,
    );
}

impl Sleeping for Ns2Rio {
    fn wake<const N: usize>(
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

impl Sleeping for Floyd93 {
    fn wake<const N: usize>(
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

/// A reading with the fault.
#[derive(Clone, Debug, Default)]
pub struct AtInOnly<R> {
    /// Of the arrival under way.
    pub told: Told,
    /// Start of an idle stretch that an OUT packet ended and no IN packet has seen yet, in seconds.
    unseen: Option<f64>,
    reading: PhantomData<R>,
}

impl<R: Sleeping> Reading for AtInOnly<R> {
    const FORCED_RESTARTS: bool = R::FORCED_RESTARTS;

    fn curve(c: Curve) -> Curve {
        R::curve(c)
    }

    #[inline(never)]
    fn sample<const N: usize>(&mut self, vars: &mut Vars<N>, c: &Config<N>, a: &Arrival<N>) {
        let (secs, idle) = self.told.take(a);
        if a.colour == IN {
            R::wake(vars, c, a, (secs, idle), self.unseen.take());
        } else {
            self.unseen = idle.map(|idle| secs - idle).or(self.unseen);
        }
    }

    fn test<W: Why + ?Sized>(
        count: &mut Count,
        curve: &Curve,
        rule: &Rule,
        found: Found,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        R::test(count, curve, rule, found, rng, why)
    }

    fn admission(test: EarlyTest, can_mark: bool, fits: bool) -> Admission {
        R::admission(test, can_mark, fits)
    }

    fn restarts(cause: Cause, colour: usize) -> bool {
        R::restarts(cause, colour)
    }

    fn place(drop: DropAt, waiting: u32, rng: &mut Rng) -> u32 {
        R::place(drop, waiting, rng)
    }

    fn joins_below(limit: Backlog, rule: &Rule, mean_packet: u64) -> Option<u64> {
        R::joins_below(limit, rule, mean_packet)
    }
}

#[cfg(test)]
mod tests;

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

    fn test<W: Why + ?Sized>(count: &mut Count, t: DropTest<'_>, rng: &mut Rng, why: &mut W) -> EarlyTest {
        R::test(count, t, rng, why)
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
mod tests {
    use Colour::{Green as I, Yellow as O};

    use super::*;
    use crate::aqm::red::common::{Common, Thresholds};
    use crate::aqm::red::rio::{AvgUpdate, Params, Rio};
    use crate::testing::*;

    /// RIO with the fault at 1,000 packets a second, w_q = ½.
    fn rio<R: UpdateAtIn>() -> Rio<AtInOnly<R>> {
        let packets = |min, max| Thresholds {
            min_th: Backlog::Packets(min),
            max_th: Backlog::Packets(max),
            max_p: 0.05,
        };
        let p = Params {
            r#in: packets(45.0, 60.0),
            out: packets(20.0, 40.0),
            avg_update: AvgUpdate::ClarkFang,
            byte_scaled: false,
            count: crate::aqm::rio::Counted::Own,
            watch: false,
            common: Common { w_q: 0.5, ..crate::params::defaults() },
        };
        let context =
            Context { link_rate: Some(Rate(8_000_000)), contract: None, packet: Bytes(1000), limit: None };
        p.discipline(&context)
    }

    /// avg_in and avg_total after an arrival.
    fn after<R: UpdateAtIn>(
        rio: &mut Rio<AtInOnly<R>>,
        at: u64,
        colour: Colour,
        mut queue: Fake,
    ) -> [f64; 2] {
        let packet = Packet { size: 1000, colour, ..Packet::default() };
        rio.arrive(&packet, At::silent(Time(at), &mut queue, &mut Rng::for_component(1, "rio")));
        rio.law.vars.avg
    }

    #[test]
    fn averages_sleep_through_out_arrivals() {
        fn both<R: UpdateAtIn>() {
            let mut rio = rio::<R>();
            assert_eq!(after(&mut rio, 0, O, Fake::of(8, 4)), [0.0, 0.0]);
            assert_eq!(after(&mut rio, 0, I, Fake::of(8, 4)), [4.0, 6.0]);
        }
        both::<Ns2Rio>();
        both::<Floyd93>();
    }

    /// IN's average ages from where the idle stretch began to the IN packet.
    #[test]
    fn an_idle_stretch_that_an_out_packet_ended_ages_the_average_of_in() {
        let mut rio = rio::<Ns2Rio>();
        assert_eq!(after(&mut rio, 0, I, Fake::of(16, 16)), [8.0, 16.0]);
        let idle = Fake { idle: Some(Time(10 * MS)), ..Fake::of(0, 0) };
        assert_eq!(after(&mut rio, 12 * MS, O, idle), [8.0, 16.0]);
        // 3.5 ms since the stretch began: three packets and this one for IN, this one alone for the total.
        assert_eq!(after(&mut rio, 13 * MS + MS / 2, I, Fake::of(0, 0)), [0.5, 8.0]);
        // Seen once.
        assert_eq!(after(&mut rio, 20 * MS, I, Fake::of(0, 0))[IN], 0.25);
    }

    /// In Floyd and Jacobson's arithmetic the same stretch is 3.5 packets, and no sample of IN's average.
    #[test]
    fn in_doubles_it_ages_by_parts_of_packets() {
        let mut rio = rio::<Floyd93>();
        assert_eq!(after(&mut rio, 0, I, Fake::of(16, 16)), [8.0, 16.0]);
        let idle = Fake { idle: Some(Time(10 * MS)), ..Fake::of(0, 0) };
        assert_eq!(after(&mut rio, 12 * MS, O, idle), [8.0, 16.0]);
        let [ins, total] = after(&mut rio, 13 * MS + MS / 2, I, Fake::of(0, 0));
        assert!((ins - 8.0 * libm::pow(0.5, 3.5)).abs() < 1e-9 && total == 8.0, "{ins} {total}");
    }
}

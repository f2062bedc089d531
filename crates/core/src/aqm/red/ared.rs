//! Adaptive RED: RED that adapts max_p until the average queue settles halfway between the thresholds.
//!
//! Once per interval max_p is increased by a small step if the average is above its target range, and decreased by a factor
//! if it is below. So the average queue, and with it the delay, depends little on the load, and an operator sets a delay
//! instead of thresholds: the thresholds and w_q follow from the delay and the link's rate.
//! Source: Floyd, Gummadi and Shenker 2001, Fig. 1 (max_p), §4.2 (w_q), §4.3 and §6 (thresholds). RED is [RED](super), as in
//! Floyd and Jacobson 1993. Without arrivals the average is not updated, and max_p keeps decreasing to its minimum.
//! Non-goal: adapting w_q or the thresholds during a run.

use crate::aqm::red::common::Common;
use crate::aqm::red::{self, DropAt, Red};
use crate::prelude::*;

/// The range that max_p never leaves by its own steps (Fig. 1).
const MAX_P: (f64, f64) = (0.01, 0.5);
/// The least min_th in packets (§4.3).
const LEAST_MIN_TH: f64 = 5.0;
/// The target range of the average, as fractions of the way from min_th to max_th (Fig. 1).
const TARGET: (f64, f64) = (0.4, 0.6);

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// The average queueing delay to aim at: the default thresholds follow from it.
        target_delay: Duration [POSITIVE] = Duration::from_millis(5);
        /// Default: half of target_delay at the link's rate, and 5 packets at least.
        min_th: Option<Backlog> [NON_NEGATIVE];
        /// Default: 3 min_th.
        max_th: Option<Backlog> [POSITIVE];
        /// Weight of the newest sample in the average. Default: a memory of a second, 1 − e^(−1/C) at C packets a second.
        w_q: Option<f64> [UNIT_POSITIVE];
        /// Drop probability just below max_th, at first.
        max_p: f64 [UNIT_POSITIVE] = 0.1;
        /// How often max_p moves.
        interval: Duration [POSITIVE] = Duration::from_millis(500);
        /// The step by which max_p grows; never more than a quarter of max_p.
        alpha: f64 [UNIT_POSITIVE] = 0.01;
        /// The factor by which max_p shrinks.
        beta: f64 [UNIT_POSITIVE] = 0.9;
        /// The probability is multiplied by the packet's size / mean_packet.
        byte_scaled: bool = false;
        ..common: Common { gentle = true };
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Ared {
    red: Red,
    /// The target range of the average: from, to.
    target: (f64, f64),
    max_p: f64,
    interval: Duration,
    alpha: f64,
    beta: f64,
    /// Whether an interval has begun.
    begun: bool,
    stats: Stats,
}

/// Steps of max_p.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Upwards.
    pub raised: u64,
    /// Downwards.
    pub lowered: u64,
}

/// Packets a second that the link can send.
fn capacity(link: Rate, packet: Bytes) -> f64 {
    link.0 as f64 / packet.bits() as f64
}

/// §4.2: the weight whose memory is a second.
#[must_use]
pub fn auto_w_q(link: Rate, packet: Bytes) -> f64 {
    -libm::expm1(-1.0 / capacity(link, packet))
}

/// §4.3: half of what the link sends in the target delay, and 5 packets at least.
#[must_use]
pub fn auto_min_th(link: Rate, packet: Bytes, target_delay: Duration) -> f64 {
    LEAST_MIN_TH.max(target_delay.secs() * capacity(link, packet) / 2.0)
}

/// Fig. 1: the next max_p.
#[must_use]
pub fn next_max_p(max_p: f64, avg: f64, target: (f64, f64), alpha: f64, beta: f64) -> f64 {
    if avg > target.1 && max_p <= MAX_P.1 {
        max_p + alpha.min(max_p / 4.0)
    } else if avg < target.0 && max_p >= MAX_P.0 {
        max_p * beta
    } else {
        max_p
    }
}

impl Params {
    /// The RED that it starts as. Defaults that follow from the link's rate need one; [`Build::check`] makes sure of it.
    fn as_red(&self, context: &Context) -> red::Params {
        let packet = self.common.packet(context);
        let link = context.link_rate.unwrap_or(Rate(packet.bits()));
        let in_unit = |packets: f64| match self.max_th {
            Some(Backlog::Bytes(_)) => Backlog::Bytes(packets * packet.0 as f64),
            _ => Backlog::Packets(packets),
        };
        let min_th = self.min_th.unwrap_or_else(|| in_unit(auto_min_th(link, packet, self.target_delay)));
        let max_th = self.max_th.unwrap_or(match min_th {
            Backlog::Packets(n) => Backlog::Packets(3.0 * n),
            Backlog::Bytes(n) => Backlog::Bytes(3.0 * n),
        });
        red::Params {
            min_th,
            max_th,
            max_p: self.max_p,
            byte_scaled: self.byte_scaled,
            drop: DropAt::Tail,
            common: Common { w_q: self.w_q.unwrap_or_else(|| auto_w_q(link, packet)), ..self.common.clone() },
        }
    }
}

impl Build for Params {
    type Mechanism = Ared;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let follows = [("w_q", self.w_q.is_none()), ("min_th", self.min_th.is_none())];
        if let Some((field, _)) = follows.into_iter().find(|(_, left_out)| *left_out)
            && context.link_rate.is_none()
        {
            return Err(Fault {
                field,
                problem: format!(
                    "the default of {field} follows from the link's rate, and this queue has no link"
                ),
                remedy: format!("a {field} of its own"),
            });
        }
        self.as_red(context).check(context)
    }

    fn build(&self, context: &Context) -> Ared {
        let p = self.as_red(context);
        let (min_th, range) = (p.min_th.amount(), p.max_th.amount() - p.min_th.amount());
        Ared {
            target: (min_th + TARGET.0 * range, min_th + TARGET.1 * range),
            red: p.discipline(context),
            max_p: self.max_p,
            interval: self.interval,
            alpha: self.alpha,
            beta: self.beta,
            begun: false,
            stats: Stats::default(),
        }
    }
}

impl Mechanism for Ared {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        if self.begun {
            let next = next_max_p(self.max_p, self.red.avg(), self.target, self.alpha, self.beta);
            self.stats.raised += u64::from(next > self.max_p);
            self.stats.lowered += u64::from(next < self.max_p);
            self.max_p = next;
            self.red.set_max_p(next);
        }
        self.begun = true;
        Some(now + self.interval)
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        self.red.gauges(now, show);
        show("max_p", self.max_p);
    }
}

impl Aqm for Ared {
    fn marks(&self) -> bool {
        self.red.marks()
    }

    #[inline]
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        at.why.note("max_p", self.max_p);
        self.red.arrive(packet, at)
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        self.red.show_counts(queue, show);
        show("raised", self.stats.raised);
        show("lowered", self.stats.lowered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    /// 1,250 packets of 1,000 B a second.
    const CONTEXT: Context =
        Context { link_rate: Some(Rate(10_000_000)), contract: None, packet: Bytes(1000), limit: None };

    fn params() -> Params {
        Params {
            target_delay: Duration::from_millis(5),
            min_th: Some(Backlog::Packets(5.0)),
            max_th: Some(Backlog::Packets(15.0)),
            w_q: Some(1.0),
            max_p: 0.1,
            interval: Duration::from_millis(500),
            alpha: 0.01,
            beta: 0.9,
            byte_scaled: false,
            common: Common { gentle: true, ..crate::params::defaults() },
        }
    }

    /// One arrival that finds this length, then the tick half a second later: max_p by interval.
    fn run(p: &Params, lengths: &[u32]) -> Vec<f64> {
        let mut ared = p.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "ared");
        let mut now = Time::ZERO;
        assert_eq!(ared.tick(now, &mut Outbox::default()), Some(now + p.interval));
        let each = lengths.iter().map(|q| {
            let packet = Packet { size: 1000, ..Packet::default() };
            ared.arrive(&packet, At::silent(now, &mut Fake::of(*q, 0), &mut rng));
            now += p.interval;
            ared.tick(now, &mut Outbox::default());
            ared.red.law.config.curves[0].max_p
        });
        each.collect()
    }

    /// Thresholds 5 and 15: the target is 9 to 11. By hand from Fig. 1.
    #[test]
    fn max_p_by_hand() {
        let near =
            |a: &[f64], b: &[f64]| assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{a:?}");
        near(&run(&params(), &[12, 12, 11, 9, 8, 8]), &[0.11, 0.12, 0.12, 0.12, 0.108, 0.0972]);
        // A small max_p grows by a quarter of itself.
        near(&run(&Params { max_p: 0.02, ..params() }, &[12, 12]), &[0.025, 0.03125]);
        // Beyond its bounds it takes no further step in that direction.
        near(&run(&Params { max_p: 0.5, ..params() }, &[20, 20, 8]), &[0.51, 0.51, 0.459]);
        near(&run(&Params { max_p: 0.0105, ..params() }, &[0, 0, 0]), &[0.009_45, 0.009_45, 0.009_45]);
        near(&run(&Params { alpha: 0.005, beta: 0.5, ..params() }, &[12, 8]), &[0.105, 0.0525]);
    }

    /// Gummadi and Shenker 2001, §4.2 (w_q), §4.3 and §6 (thresholds). 1,250 packets/s: 5 ms are 6.25 packets, so min_th is at its least; 40 ms are 50.
    #[test]
    fn what_is_left_out_follows_from_the_link() {
        let p = Params { min_th: None, max_th: None, w_q: None, ..params() };
        let red = p.as_red(&CONTEXT);
        assert_eq!((red.min_th, red.max_th), (Backlog::Packets(5.0), Backlog::Packets(15.0)));
        assert!((red.common.w_q - 0.000_799_68).abs() < 1e-8, "{}", red.common.w_q);
        let slow = Params { target_delay: Duration::from_millis(40), ..p.clone() };
        assert_eq!(slow.as_red(&CONTEXT).max_th, Backlog::Packets(75.0));
        let small = Params { common: Common { mean_packet: Some(Bytes(500)), ..slow.common }, ..slow };
        assert_eq!(small.as_red(&CONTEXT).min_th, Backlog::Packets(50.0));
        let in_bytes = Params { max_th: Some(Backlog::Bytes(20_000.0)), ..p.clone() };
        assert_eq!(in_bytes.as_red(&CONTEXT).min_th, Backlog::Bytes(5000.0));
        let nowhere = Context { link_rate: None, ..CONTEXT };
        assert_eq!(p.check(&nowhere).map_err(|f| f.field), Err("w_q"));
        assert_eq!(Params { min_th: None, ..params() }.check(&nowhere).map_err(|f| f.field), Err("min_th"));
        assert_eq!(params().check(&nowhere), Ok(vec![]));
        let crossed = Params { max_th: Some(Backlog::Packets(4.0)), ..p };
        assert_eq!(crossed.check(&CONTEXT).map_err(|f| f.field), Err("min_th"));
    }

    /// Between ticks it is RED with the max_p of the moment.
    #[test]
    fn between_ticks_it_is_red() {
        let p = params();
        let (mut ared, mut red) = (p.build(&CONTEXT), p.as_red(&CONTEXT).build(&CONTEXT));
        let (mut a, mut b) = (Rng::for_component(7, "red"), Rng::for_component(7, "red"));
        let mut drops = 0;
        for i in 0..2000u32 {
            let packet = Packet { size: 1000, ..Packet::default() };
            let q = 5 + i * 7 % 20;
            let ours = ared.arrive(&packet, At::silent(Time::ZERO, &mut Fake::of(q, 0), &mut a));
            assert_eq!(ours, red.arrive(&packet, At::silent(Time::ZERO, &mut Fake::of(q, 0), &mut b)));
            drops += u32::from(ours != Admission::Admit);
        }
        assert!(drops > 100);
    }

    proptest! {
        /// From anywhere max_p comes between its bounds, give or take a step, and stays there; the longer the queue, the higher.
        #[test]
        fn max_p_stays_within_its_bounds(max_p in 0.001f64..=1.0, lengths in prop::collection::vec(0u32..40, 200..300)) {
            let seen = run(&Params { max_p, ..params() }, &lengths);
            for (i, p) in seen.iter().enumerate() {
                let (low, high) = (MAX_P.0 * 0.9, MAX_P.1 + 0.01);
                prop_assert!(*p >= low.min(max_p) && *p <= high.max(max_p), "{p} after {i}");
            }
            let target = (9.0, 11.0);
            let next = |avg| next_max_p(max_p, avg, target, 0.01, 0.9);
            prop_assert!(next(0.0) <= next(10.0) && next(10.0) <= next(20.0));
        }
    }
}

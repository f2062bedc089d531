//! ns-2's RED and RIO: how they compute Floyd and Jacobson's algorithm.
//!
//! - Idle time ages an average by whole packets, one multiplication each, and the arrival is a sample as well.
//! - Nothing is dropped while at most one packet (or byte) waits, and the first packet over min_th passes without a random
//!   number; after that each packet draws one, even where p = 0 or 1.
//! - p_b is computed by slope and intercept, and max_p is kept as 1 / max_p (`linterm_`).
//! - A packet that finds the queue full is an overflow, whatever the average. In RIO only a forced drop or an overflow
//!   of an IN packet restarts a count, that of IN.
//! - With thresholds in bytes RED reads its limit as that many mean packets in bytes, whatever the packet's size.
//!
//! Source: ns-2.35, `queue/red.cc` and `queue/rio.cc`, by their behaviour. Non-goal: marking as in RFC 3168.

use crate::aqm::red::DropAt;
use crate::aqm::red::common::Config;
use crate::aqm::red::law::{
    Arrival, Count, Curve, DropTest, EARLY, EarlyTest, FORCED, Rule, Variant, Vars, Weight, spaced,
};
use crate::aqm::red::rio::IN;
use crate::ns2::Moment;
use crate::ns2::integer;
use crate::prelude::*;

/// ns-2's `mark_p_`: above this p_b its RED drops even what it could mark.
const MARK_P: f64 = 0.1;
/// The count while the average is below min_th.
const BELOW: i32 = -1;

/// An average after `secs` of idle time: a multiplication for each whole packet that could have been sent.
#[must_use]
pub(super) fn aged(mut avg: f64, w: &Weight, secs: f64) -> f64 {
    for _ in 0..(w.ptc * secs) as u64 {
        let next = avg * (1.0 - w.w_q);
        if next == avg {
            break; // 0, or the smallest number there is: more factors change nothing
        }
        avg = next;
    }
    avg
}

/// An average after a sample.
#[must_use]
pub(super) fn sampled(avg: f64, w: &Weight, q: f64) -> f64 {
    avg * (1.0 - w.w_q) + w.w_q * q
}

/// ns-2's clock, set for one arrival.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArrivalClock(Option<Moment>);

impl ArrivalClock {
    /// For the call that follows.
    pub fn tell(&mut self, moment: Moment) {
        self.0 = Some(moment);
    }

    /// The time in seconds, and how long the link has been idle, if it is: as told, or from picoseconds.
    pub(super) fn take<const N: usize>(&mut self, a: &Arrival<N>) -> (f64, Option<f64>) {
        let told = self.0.take();
        let secs = told.map_or_else(|| a.now.secs(), |m| m.secs);
        (secs, a.idle.map(|since| told.map_or_else(|| a.now.secs() - since.secs(), |m| m.idle)))
    }
}

/// Ages all averages by the time for which the link has been idle. Out of line, as most arrivals find it busy.
#[cold]
#[inline(never)]
fn age<const N: usize>(vars: &mut Vars<N>, c: &Config<N>, a: &Arrival<N>, told: &mut ArrivalClock) {
    if let (_, Some(secs)) = told.take(a) {
        vars.avg.iter_mut().for_each(|avg| *avg = aged(*avg, &c.weight, secs));
    }
}

/// p_b: the same lines as [`Curve::p_b`], in slope and intercept. Only for averages ≥ min_th.
#[must_use]
pub fn p_b(c: &Curve, avg: f64, gentle: bool) -> f64 {
    let p = if avg < c.max_th {
        let v_a = 1.0 / (c.max_th - c.min_th);
        let v_b = -c.min_th / (c.max_th - c.min_th);
        (v_a * avg + v_b) * c.max_p
    } else if gentle {
        let v_c = (1.0 - c.max_p) / c.max_th;
        let v_d = 2.0 * c.max_p - 1.0;
        v_c * avg + v_d
    } else {
        1.0
    };
    p.min(1.0)
}

/// ns-2's variant of RED (`queue/red.cc`), or with `RIO` of RIO (`queue/rio.cc`), whose averages `avg_update` moves; see
/// [`rio`](super::rio) for the fault in them.
#[derive(Clone, Debug, Default)]
pub struct Ns2Variant<const RIO: bool> {
    /// ns-2's clock at the arrival under way.
    pub told: ArrivalClock,
}

/// ns-2's RED.
pub type Ns2Red = Ns2Variant<false>;
/// ns-2's RIO.
pub type Ns2Rio = Ns2Variant<true>;

impl<const RIO: bool> Variant for Ns2Variant<RIO> {
    const FORCED_RESTARTS: bool = !RIO;

    /// ns-2 keeps 1 / max_p.
    fn curve(c: Curve) -> Curve {
        Curve::new(c.min_th, c.max_th, 1.0 / (1.0 / c.max_p))
    }

    #[inline]
    fn sample<const N: usize>(&mut self, vars: &mut Vars<N>, c: &Config<N>, a: &Arrival<N>) {
        if a.idle.is_some() {
            age(vars, c, a, &mut self.told);
        }
        self.told = ArrivalClock::default();
        // Those that the arrival is a sample of.
        for i in (0..N).filter(|i| c.weights[a.colour][*i] > 0.0) {
            vars.avg[i] = sampled(vars.avg[i], &c.weight, a.lengths[i]);
        }
    }

    #[inline]
    fn test<W: Why + ?Sized>(count: &mut Count, t: DropTest<'_>, rng: &mut Rng, why: &mut W) -> EarlyTest {
        if t.avg < t.curve.min_th || t.queued <= 1.0 {
            count.0 = BELOW;
            return EarlyTest::Pass;
        }
        let above = t.avg >= t.curve.end(t.rule.gentle);
        // With `byte_scaled` the count is of bytes, not packets.
        let step = t.rule.mean.map_or(1, |_| i32::try_from(t.size).unwrap_or(i32::MAX));
        if count.0 != BELOW {
            count.0 = count.0.saturating_add(step);
        }
        // rio.cc drops above the curve's end without a draw and without a restart.
        if above && RIO {
            return EarlyTest::Forced;
        }
        if count.0 == BELOW {
            count.0 = step;
            return EarlyTest::Pass;
        }
        let p_b = p_b(t.curve, t.avg, t.rule.gentle);
        let p_a = match t.rule.mean {
            None => spaced(p_b, f64::from(count.0), t.rule.wait),
            Some(mean) => {
                let p = spaced(p_b, f64::from(count.0 as u32 / mean), t.rule.wait);
                if p < 1.0 { (p * f64::from(t.size) / f64::from(mean)).min(1.0) } else { p }
            }
        };
        count.note(p_b, p_a, why);
        let u = rng.uniform();
        why.note("u", u);
        if u > p_a {
            return EarlyTest::Pass;
        }
        count.0 = 0;
        if above {
            return EarlyTest::Forced;
        }
        EarlyTest::Early { markable: if RIO { t.avg < t.curve.max_th } else { p_b <= MARK_P } }
    }

    fn admission(test: EarlyTest, can_mark: bool, fits: bool) -> Admission {
        match test {
            _ if !fits => Admission::Drop(Cause::OVERFLOW),
            EarlyTest::Forced => Admission::Drop(FORCED),
            EarlyTest::Early { markable } if !(markable && can_mark) => Admission::Drop(EARLY),
            EarlyTest::Early { .. } => Admission::Mark,
            EarlyTest::Pass => Admission::Admit,
        }
    }

    /// RIO: only an IN packet's drop restarts a count, its own.
    fn restarts(cause: Cause, colour: usize) -> bool {
        match RIO {
            true => colour == IN && (cause == Cause::OVERFLOW || cause == FORCED),
            false => cause == Cause::OVERFLOW,
        }
    }

    /// `red.cc`, pickPacketToDrop: the arrival is in the queue already, as its last.
    fn victim(drop: DropAt, waiting: u32, rng: &mut Rng) -> u32 {
        match drop {
            DropAt::Tail => waiting,
            DropAt::Front => 1.min(waiting),
            DropAt::Random => integer(rng, waiting + 1),
        }
    }

    /// RED with `queue_in_bytes_` drops what finds `limit_` · `mean_pktsize_` bytes or more, whatever their number and its own
    /// size.
    fn joins_below(limit: Backlog, rule: &Rule, mean_packet: u64) -> Option<u64> {
        (rule.in_bytes && !RIO).then(|| match limit {
            Backlog::Packets(n) => (n as u64).saturating_mul(mean_packet),
            Backlog::Bytes(n) => n as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::red::Params;
    use crate::aqm::red::law::tests::{counts, tested};
    use crate::aqm::red::tests::{any_packet_may_go, at_a_full_queue, holds, in_bytes, params};
    use crate::ns2::stream;
    use crate::testing::*;

    const RULE: Rule = Rule { gentle: false, wait: false, ecn: false, in_bytes: false, mean: None };

    /// The early test of ns-2's RIO or RED.
    fn early(count: &mut Count, t: DropTest<'_>, rio: bool, rng: &mut Rng, why: &mut impl Why) -> EarlyTest {
        let of = if rio { Ns2Rio::test } else { Ns2Red::test };
        of(count, t, rng, why)
    }

    fn ns2(p: &Params) -> AnyAqm {
        AnyAqm::Ns2Red(Box::new(p.discipline::<Ns2Red>(&CONTEXT)))
    }

    /// 1,000 packets a second.
    fn weight(w_q: f64) -> Weight {
        Weight::new(w_q, Some(Rate(8_000_000)), Bytes(1000))
    }

    /// ns-2.35, red.cc: the arrival is enqueued, then the packet in place min(1, length − 1) goes (`drop_front_`), or any of them
    /// (`drop_rand_`), or the last (`drop_tail_`).
    #[test]
    fn which_packet_goes_when_the_queue_is_full() {
        let of = |drop| at_a_full_queue(ns2, drop, 1);
        assert_eq!(of(DropAt::Tail), (Admission::Drop(Cause::OVERFLOW), vec![0, 1, 2, 3], [1, 0]));
        assert_eq!(of(DropAt::Front), (Admission::Admit, vec![0, 2, 3, 9], [1, 1]));
        any_packet_may_go(ns2);
    }

    /// ns-2's `qlen >= qlim` with `queue_in_bytes_`: bytes that wait against `limit_` · `mean_pktsize_`, before the packet joins.
    #[test]
    fn in_bytes_the_limit_is_in_bytes() {
        // 1500 B: 38 packets of 40 B are the first 1500 B or more, two of 1000 B, and one of 1500 B that finds none.
        for limit in [Backlog::Packets(3.0), Backlog::Packets(3.9), Backlog::Bytes(1500.0)] {
            let ours = |size| holds(limit, ns2(&in_bytes()), size);
            assert_eq!([40, 500, 1000, 1499, 1500, 9000].map(ours), [38, 3, 2, 2, 1, 1]);
        }
        // In packets it is a limit in packets.
        assert_eq!(holds(Backlog::Packets(3.0), ns2(&params(0.002, false)), 40), 3);
    }

    /// Whole packets only, and then the arrival's own sample.
    #[test]
    fn an_average_ages_by_whole_packets() {
        let slow = (0..7).fold(10.0, |avg, _| avg * (1.0 - 0.25));
        assert_eq!(sampled(aged(10.0, &weight(0.25), 0.0079), &weight(0.25), 0.0), slow * 0.75);
        assert_eq!(sampled(10.0, &weight(0.25), 20.0), 12.5);
        // Without a rate not at all.
        assert_eq!(aged(10.0, &Weight::new(0.25, None, Bytes(1000)), 1e6), 10.0);
    }

    #[test]
    fn an_endless_idle_time_ends() {
        assert!(aged(10.0, &weight(0.002), u64::MAX as f64 * 1e-12) < 1e-300);
    }

    #[test]
    fn the_count_starts_at_min_th() {
        let averages = [4.9, 5.0, 6.0, 6.0, 4.9, 6.0, 15.0, 6.0];
        assert_eq!(counts::<Ns2Red>(&averages), [-1, 1, 2, 3, -1, 1, 0, 1]);
        // Here the caller restarts: RIO does so for IN only.
        assert_eq!(counts::<Ns2Rio>(&averages), [-1, 1, 2, 3, -1, 1, 2, 3]);
        assert_eq!([0, 1].map(|colour| Ns2Rio::restarts(FORCED, colour)), [true, false]);
        assert_eq!([0, 1].map(|colour| Ns2Rio::restarts(Cause::OVERFLOW, colour)), [true, false]);
    }

    /// ns-2 draws even where p = 0 or 1, but not for the first packet over min_th, nor while one packet waits.
    #[test]
    fn it_draws_as_ns2_does() {
        let curve = Curve::new(5.0, 15.0, 0.1);
        let mut count = Count::default();
        let draws = |count: &mut Count, rio, avg, queued| {
            let (mut rng, mut idle) = (stream(1), stream(1));
            let found = DropTest { queued, ..tested(&curve, &RULE, avg) };
            early(count, found, rio, &mut rng, &mut Silent);
            rng.uniform() != idle.uniform()
        };
        assert!(!draws(&mut count, false, 5.0, 1.0));
        assert!(!draws(&mut count, false, 5.0, 2.0));
        assert!(draws(&mut count, false, 5.0, 2.0));
        assert!(draws(&mut count, false, 15.0, 2.0));
        assert!(!draws(&mut count, true, 15.0, 2.0));
        assert!(!draws(&mut count, false, 15.0, 1.0));
        assert!(!draws(&mut count, false, 15.0, 2.0), "first over min_th again");
    }

    /// ns-2 marks below p_b = 0.1 (RED), or below max_th (RIO); above that it drops.
    #[test]
    fn it_marks_only_low_down() {
        let curve = Curve::new(5.0, 15.0, 0.2);
        let verdict = |rio, avg| {
            let mut rng = Rng::for_component(1, "marks");
            let rule = Rule { gentle: true, ..RULE };
            early(&mut Count(1000), tested(&curve, &rule, avg), rio, &mut rng, &mut Silent)
        };
        let drop = |markable| EarlyTest::Early { markable };
        assert_eq!([9.0, 11.0].map(|avg| verdict(false, avg)), [drop(true), drop(false)]);
        assert_eq!([11.0, 16.0].map(|avg| verdict(true, avg)), [drop(true), drop(false)]);
        assert_eq!([false, true].map(|rio| verdict(rio, 30.0)), [EarlyTest::Forced; 2]);
    }

    /// ns-2 counts whole typical packets among the bytes let by, and scales p last.
    #[test]
    fn it_counts_bytes_where_sizes_matter() {
        let curve = Curve::new(0.0, 10.0, 0.4);
        let mut notes = Notes::default();
        let mut rng = Rng::for_component(1, "bytes");
        let rule = Rule { mean: Some(1000), ..RULE };
        let found = DropTest { size: 500, ..tested(&curve, &rule, 5.0) };
        early(&mut Count(700), found, false, &mut rng, &mut notes);
        // 1,200 bytes are one packet: 0.2 / (1 − 0.2), halved for half a packet.
        assert_eq!(notes.items()[..3], [("count", 1200.0), ("p_b", 0.2), ("p_a", 0.125)]);
    }

    proptest! {
        /// Slope and intercept draw the same line.
        #[test]
        fn both_ways_to_compute_p_b_agree(min_th in 0f64..100.0, width in 0.1f64..100.0, max_p in 0.001f64..=1.0,
                                          above in 0f64..300.0, gentle: bool) {
            let c = Curve::new(min_th, min_th + width, max_p);
            let avg = c.min_th + above;
            let condition = 1.0 + c.max_th / (c.max_th - c.min_th);
            prop_assert!((c.p_b(avg, gentle) - p_b(&c, avg, gentle)).abs() < 1e-14 * condition);
        }

        /// Equal seeds, equal decisions.
        #[test]
        fn equal_seeds_decide_alike(steps in prop::collection::vec((0u64..20_000, 0u32..40), 1..300), seed: u64) {
            let run = || {
                let (mut red, mut rng) = (params(0.1, true).discipline::<Ns2Red>(&CONTEXT), Rng::for_component(seed, "red"));
                let mut now = 0;
                steps.iter().map(|&(gap, q)| {
                    now += gap;
                    let mut queue = Fake::of(q, 0);
                    let packet = crate::packet::Packet { size: 1000, ..Default::default() };
                    crate::aqm::Aqm::arrive(&mut red, &packet, crate::aqm::At::silent(crate::units::Time(now), &mut queue, &mut rng))
                }).collect::<Vec<_>>()
            };
            prop_assert_eq!(run(), run());
        }
    }
}

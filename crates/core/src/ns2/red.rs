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
use crate::aqm::red::common::{Config, Weight};
use crate::aqm::red::law::{
    Arrival, Count, Curve, DropTest, EARLY, EarlyTest, FORCED, Rule, Variant, Vars, spaced,
};
use crate::aqm::red::rio::IN;
use crate::ns2::moment::Moment;
use crate::ns2::rng::integer;
use crate::rng::Rng;
use crate::units::Backlog;
use crate::verdict::{Admission, Cause, Why};

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
    fn test<W: Why + ?Sized>(
        count: &mut Count,
        curve: &Curve,
        rule: &Rule,
        tested: DropTest,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        if tested.avg < curve.min_th || tested.queued <= 1.0 {
            count.0 = BELOW;
            return EarlyTest::Pass;
        }
        let above = tested.avg >= curve.end(rule.gentle);
        // With `byte_scaled` the count is of bytes, not packets.
        let step = rule.mean.map_or(1, |_| i32::try_from(tested.size).unwrap_or(i32::MAX));
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
        let p_b = p_b(curve, tested.avg, rule.gentle);
        let p_a = match rule.mean {
            None => spaced(p_b, f64::from(count.0), rule.wait),
            Some(mean) => {
                let p = spaced(p_b, f64::from(count.0 as u32 / mean), rule.wait);
                if p < 1.0 { (p * f64::from(tested.size) / f64::from(mean)).min(1.0) } else { p }
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
        EarlyTest::Early { markable: if RIO { tested.avg < curve.max_th } else { p_b <= MARK_P } }
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
mod tests;

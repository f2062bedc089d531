//! How RED and its descendants turn an average into a probability, and in whose reading.
//!
//! A [`Curve`] gives p_b, the chance of a drop at this average; a [`Rule`] says how a queue reads its curves.
//! Non-goals: the average itself, which is [`QueueAverage`](crate::estimate::ewma::QueueAverage)'s; the spacing of drops,
//! which is [`Countdown`](crate::aqm::spacing::Countdown)'s.

use crate::units::Bytes;

crate::choice! {
    /// Whose reading of the algorithm.
    pub enum Variant {
        /// Floyd and Jacobson 1993, Fig. 2: a random number at every arrival that it decides.
        Floyd93 = "floyd93",
        /// ns-2 2.35, to the last bit and random number.
        Ns2 = "ns2",
    }
}

/// A [`Variant`] at work in doubles: ns-2's RED and RIO differ above the upper threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Floyd and Jacobson 1993, Fig. 2.
    Floyd93,
    /// ns-2's RED: draws a number even where p = 0 or 1.
    Ns2Red,
    /// ns-2's RIO: drops above the upper threshold without a draw.
    Ns2Rio,
}

impl Law {
    /// Whether a queue has no limit in its source, and overflow restarts the count as any drop does.
    #[must_use]
    #[inline]
    pub fn is_ns2(self) -> bool {
        matches!(self, Law::Ns2Red | Law::Ns2Rio)
    }
}

/// How one queue reads its curves.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Whose algorithm.
    pub law: Law,
    /// Between max_th and 2·max_th the probability rises to 1 (Floyd 2000), rather than at once.
    pub gentle: bool,
    /// No drop before 1/p_b packets have been let by.
    pub wait: bool,
    /// Whether averages and thresholds are in bytes rather than packets.
    pub in_bytes: bool,
    /// A typical packet's size on the wire, not 0, where the probability is to grow with a packet's: so bytes rather than
    /// packets are dropped at the curve's rate.
    pub mean: Option<u32>,
}

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

    /// The average from which on everything is dropped.
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

    /// p_b as ns-2 computes it: the same lines, in slope and intercept. Only for averages ≥ min_th.
    #[must_use]
    #[inline]
    pub fn p_b_ns2(&self, avg: f64, gentle: bool) -> f64 {
        let p = if avg < self.max_th {
            let v_a = 1.0 / (self.max_th - self.min_th);
            let v_b = -self.min_th / (self.max_th - self.min_th);
            (v_a * avg + v_b) * self.max_p
        } else if gentle {
            let v_c = (1.0 - self.max_p) / self.max_th;
            let v_d = 2.0 * self.max_p - 1.0;
            v_c * avg + v_d
        } else {
            1.0
        };
        p.min(1.0)
    }
}

/// A packet size as [`Rule::mean`] takes it: at least 1, so that it divides.
#[must_use]
pub fn size_of(packet: Bytes) -> u32 {
    u32::try_from(packet.0).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curves() -> impl Strategy<Value = Curve> {
        (0f64..100.0, 0.1f64..100.0, 0.001f64..=1.0)
            .prop_map(|(min_th, width, max_p)| Curve::new(min_th, min_th + width, max_p))
    }

    #[test]
    fn on_the_thresholds() {
        let c = Curve::new(5.0, 15.0, 0.1);
        assert_eq!((c.p_b(5.0, false), c.p_b(10.0, false), c.p_b(15.0, false)), (0.0, 0.05, 1.0));
        assert_eq!((c.p_b(15.0, true), c.p_b(22.5, true), c.p_b(30.0, true)), (0.1, 0.55, 1.0));
    }

    proptest! {
        /// A longer queue is never safer, and a probability is one.
        #[test]
        fn curve_is_monotone(c in curves(), a in 0f64..500.0, b in 0f64..500.0, gentle: bool) {
            let (lo, hi) = if a < b { (a, b) } else { (b, a) };
            let (p, q) = (c.p_b(lo, gentle), c.p_b(hi, gentle));
            prop_assert!((0.0..=1.0).contains(&p) && p <= q && q <= 1.0);
            prop_assert_eq!(c.p_b(c.end(gentle) + a, gentle), 1.0);
        }

        /// Slope and intercept draw the same line.
        #[test]
        fn both_ways_to_compute_it_agree(c in curves(), above in 0f64..300.0, gentle: bool) {
            let avg = c.min_th + above;
            let condition = 1.0 + c.max_th / (c.max_th - c.min_th);
            prop_assert!((c.p_b(avg, gentle) - c.p_b_ns2(avg, gentle)).abs() < 1e-14 * condition);
        }
    }
}

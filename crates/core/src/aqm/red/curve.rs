//! The configuration of a RED, which no arrival changes: its curves, and which arrivals update which average.
//!
//! A [`Curve`] gives p_b, the drop probability at an average; a [`Rule`] has the options of the law; a [`Weight`] says how fast
//! an average follows the queue. Non-goals: the averages themselves and the spacing of drops, which belong to the
//! [law](super::law).

use crate::units::{Bytes, Rate};

/// How fast the averages of one queue move.
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    /// Weight of the newest sample.
    pub w_q: f64,
    /// Typical packets a second that the link can send; 0: unknown, and idle time does not age.
    pub ptc: f64,
    /// Binary logarithm of what a picosecond of idle time leaves of an average: log2(1 − w_q) · ptc / 10¹².
    pub(super) fade: f64,
}

impl Weight {
    /// `packet` is the typical size on a link of this rate; without a rate idle time does not age.
    #[must_use]
    pub fn new(w_q: f64, link: Option<Rate>, packet: Bytes) -> Weight {
        let ptc = link.map_or(0.0, |rate| rate.0 as f64 / (8.0 * packet.0 as f64));
        let fade = libm::log1p(-w_q) * std::f64::consts::LOG2_E * ptc / 1e12;
        Weight { w_q, ptc, fade }
    }
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
}

/// How one queue reads its curves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rule {
    /// Between max_th and 2·max_th the probability rises to 1 (Floyd 2000), rather than at once.
    pub gentle: bool,
    /// No drop before 1/p_b packets have been let by.
    pub wait: bool,
    /// What chance picks is marked rather than dropped, where its transport understands that.
    pub ecn: bool,
    /// Whether averages and thresholds are in bytes rather than packets.
    pub in_bytes: bool,
    /// A typical packet's size on the wire, not 0, where the probability is to grow with a packet's: so bytes rather than
    /// packets are dropped at the curve's rate.
    pub mean: Option<u32>,
}

/// What no arrival changes. Copies of a queue share it: of a million queues alike each keeps one cache line, and this is
/// read from the nearest cache.
#[derive(Clone, Debug)]
pub struct Config<const N: usize> {
    /// Of the averages.
    pub weight: Weight,
    /// By colour, best first.
    pub curves: [Curve; N],
    /// `[colour][average]`: w_q where an arrival of this colour is a sample of this average, else 0.
    pub weights: [[f64; N]; N],
    /// How the curves are read.
    pub rule: Rule,
    /// What is done at a full queue.
    pub full: Full,
}

crate::choice! {
    /// Which packet goes when an arrival finds the queue full. What chance picks is always the arrival.
    pub enum DropAt {
        /// The arrival.
        Tail = "tail",
        /// The next to leave.
        Front = "front",
        /// Any, with equal chances, the arrival included.
        Random = "random",
    }
}

/// What is done at a full queue.
#[derive(Clone, Copy, Debug)]
pub struct Full {
    /// Which packet goes.
    pub drop: DropAt,
    /// Typical size on the wire in bytes, for a limit that is read in such packets.
    pub mean_packet: u32,
}

impl<const N: usize> Config<N> {
    /// `takes[colour][average]`: whether an arrival of this colour is a sample of this average.
    #[must_use]
    pub fn new(weight: Weight, curves: [Curve; N], takes: [[bool; N]; N], rule: Rule) -> Config<N> {
        let weights = takes.map(|of| of.map(|takes| if takes { weight.w_q } else { 0.0 }));
        Config { weight, curves, weights, rule, full: Full { drop: DropAt::Tail, mean_packet: 0 } }
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
    }
}

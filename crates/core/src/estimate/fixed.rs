//! The average of [`ewma`](crate::estimate::ewma) in fixed point: for tables of many queues, and where whole numbers are quicker.
//!
//! An average is a whole number of grains: 2²⁹ to a packet, 2¹⁶ to a byte; so queues of 2³² packets or 2⁴⁵ B can be averaged.
//! The weight is a whole number of 2⁻⁶², whatever its value: powers of two are exact, others within 2⁻⁶³.
//! Each sample's step is rounded down to a whole grain. An average is therefore never above the one in real numbers, and less
//! than 1/w_q grains below it: with w_q = 1/512 a millionth of a packet, with the least weight allowed a five-hundredth.
//! Idle time: 2^(−x) from a table of 64 steps and three terms of the series between them, within 2·10⁻⁹ of the average.
//! Non-goal: ns-2's arithmetic.

use crate::estimate::ewma::Weight;
use crate::units::Duration;

/// The least w_q: rounding keeps an average less than 1/w_q grains too low.
pub const LEAST_WEIGHT: f64 = 1.0 / (1 << 20) as f64;

/// 2^(−i/64), in 2⁻³².
const POWERS: [u64; 64] = powers();

/// Every power from square roots of square roots of ½.
const fn powers() -> [u64; 64] {
    // 2^(−1/2), 2^(−1/4) … 2^(−1/64), in 2⁻³², each the root of the one before.
    let mut roots = [0u64; 6];
    let mut square = 1u128 << 127;
    let mut i = 0;
    while i < 6 {
        // The root of a number in 2⁻¹²⁸ is one in 2⁻⁶⁴.
        let root = square.isqrt();
        roots[i] = root as u64;
        square = root << 64;
        i += 1;
    }
    let mut table = [0u64; 64];
    let mut i = 0;
    while i < 64 {
        let mut product = u64::MAX;
        let mut bit = 0;
        while bit < 6 {
            if (i >> (5 - bit)) & 1 == 1 {
                product = ((product as u128 * roots[bit] as u128) >> 64) as u64;
            }
            bit += 1;
        }
        table[i] = (product >> 32) + ((product >> 31) & 1);
        i += 1;
    }
    table
}

/// 2^(−x), in 2⁻³², for x in 2⁻³².
#[must_use]
pub fn power_of_half(x: u64) -> u64 {
    /// ln 2 in 2⁻³².
    const LN_2: u64 = 2_977_044_472;
    let halvings = x >> 32;
    if halvings > 64 {
        return 0;
    }
    let step = ((x >> 26) & 63) as usize;
    // What is left is less than 1/64: e^(−y) = 1 − y + y²/2 − y³/6, and the next term is below 6·10⁻¹⁰.
    let y = ((x & ((1 << 26) - 1)) * LN_2) >> 32;
    let square = (y * y) >> 32;
    let part = (1u64 << 32) - y + square / 2 - ((square * y) >> 32) / 6;
    ((u128::from(POWERS[step]) * u128::from(part)) >> (32 + halvings)) as u64
}

/// How averages of one queue are kept and moved.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Grains to a packet or byte, as a power of two.
    grains: u32,
    /// Weight of the newest sample, in 2⁻⁶².
    weight: Step,
    /// How often a picosecond of idle time halves an average, times 2³².
    fade: f64,
}

/// The weight of a sample, in 2⁻⁶².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(i64);

impl Step {
    /// A sample that moves nothing.
    pub const NONE: Step = Step(0);
}

impl Scale {
    /// For averages in bytes or in packets.
    #[must_use]
    pub fn new(weight: &Weight, in_bytes: bool) -> Scale {
        let grains = if in_bytes { 16 } else { 29 };
        // Nothing is left of an average with the weight 1: a number that is large enough for any idle time.
        let fade = (-weight.fade() * (1u64 << 32) as f64).min(1e19);
        Scale { grains, weight: Step((weight.w_q() * (1i64 << 62) as f64) as i64), fade }
    }

    /// The longest queue that can be averaged, in packets or bytes.
    #[must_use]
    #[inline]
    pub fn longest(&self) -> u64 {
        (1 << (61 - self.grains)) - 1
    }

    /// The weight of every sample taken.
    #[must_use]
    pub fn weight(&self) -> Step {
        self.weight
    }

    /// An amount in grains, to the nearest.
    #[must_use]
    pub fn grains(&self, amount: f64) -> i64 {
        libm::round(amount * (1i64 << self.grains) as f64) as i64
    }

    /// Grains as an amount.
    #[must_use]
    pub fn amount(&self, grains: i64) -> f64 {
        grains as f64 / (1i64 << self.grains) as f64
    }

    /// An average after a sample: avg + w·(q − avg), rounded down. `q` is at most [`Scale::longest`].
    #[must_use]
    #[inline]
    pub fn sample(&self, avg: i64, weight: Step, q: u64) -> i64 {
        let off = ((q << self.grains) as i64 - avg) << 2;
        avg + ((i128::from(off) * i128::from(weight.0)) >> 64) as i64
    }

    /// What idle time leaves of averages, in 2⁻³²: (1 − w_q)^(packets that could have been sent).
    #[must_use]
    pub fn left_after(&self, idle: Duration) -> u64 {
        power_of_half((self.fade * idle.picos()) as u64)
    }

    /// An average of which this much is left.
    #[must_use]
    pub fn fade(avg: i64, left: u64) -> i64 {
        ((i128::from(avg) * i128::from(left)) >> 32) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::ewma::QueueAverage;
    use crate::units::{Bytes, Rate, Time};
    use proptest::prelude::*;

    /// 1,000 packets a second.
    fn weight(w_q: f64) -> Weight {
        Weight::new(w_q, Some(Rate(8_000_000)), Bytes(1000))
    }

    #[test]
    fn powers_by_hand() {
        const ONE: u64 = 1 << 32;
        assert_eq!([0, 1, 2, 31].map(|x| power_of_half(x * ONE)), [ONE, ONE / 2, ONE / 4, 2]);
        // 2³² / √2 = 3,037,000,499.98.
        assert!(power_of_half(ONE / 2).abs_diff(3_037_000_500) <= 1);
        assert_eq!(power_of_half(u64::MAX), 0);
    }

    #[test]
    fn a_sample_moves_it_by_its_weight() {
        for in_bytes in [false, true] {
            let s = Scale::new(&weight(0.25), in_bytes);
            assert_eq!(s.amount(s.sample(s.grains(10.0), s.weight(), 20)), 12.5);
            assert_eq!(s.amount(s.sample(s.grains(10.0), s.weight(), 0)), 7.5);
            assert_eq!(s.amount(s.sample(s.grains(10.0), Step::NONE, 20)), 10.0);
            // The longest queue there is does not overflow, and w_q = 1 keeps nothing of the past.
            let last = Scale::new(&weight(1.0), in_bytes);
            assert_eq!(last.sample(0, last.weight(), last.longest()), last.grains(last.longest() as f64));
            assert_eq!(last.sample(last.grains(last.longest() as f64), last.weight(), 0), 0);
        }
    }

    #[test]
    fn a_weight_of_one_forgets_idle_time_at_once() {
        let s = Scale::new(&weight(1.0), false);
        assert_eq!((s.left_after(Duration(0)), s.left_after(Duration(1))), (1 << 32, 0));
    }

    proptest! {
        #[test]
        fn powers_are_within_2e_9(x in 0f64..20.0) {
            let exact = libm::exp2(-x);
            let got = power_of_half((x * (1u64 << 32) as f64) as u64) as f64 / (1u64 << 32) as f64;
            prop_assert!((got - exact).abs() < 2e-9 * exact + 1.0 / (1u64 << 31) as f64, "{got} {exact}");
        }

        /// Less than 1/w_q grains below the average in doubles, and not above it, whatever the weight.
        #[test]
        fn never_far_below_the_average_in_doubles(lengths in prop::collection::vec(0u32..2000, 1..500),
                                                  power in 0u32..=20, any in LEAST_WEIGHT..=1.0, exact: bool) {
            let w_q = if exact { 1.0 / f64::from(1u32 << power) } else { any };
            for in_bytes in [false, true] {
                let scale = Scale::new(&weight(w_q), in_bytes);
                let (mut fixed, mut double) = (0, QueueAverage::default());
                for q in &lengths {
                    fixed = scale.sample(fixed, scale.weight(), u64::from(*q));
                    double.step(w_q, f64::from(*q));
                    let below = double.get() - scale.amount(fixed);
                    prop_assert!(below > -1e-9 && below < scale.amount(1) / w_q + 1e-9, "{below}");
                }
            }
        }

        #[test]
        fn idle_time_leaves_what_it_leaves_in_doubles(avg in 0f64..1000.0, ms in 0f64..5000.0,
                                                      w_q in LEAST_WEIGHT..0.9) {
            let w = weight(w_q);
            let scale = Scale::new(&w, false);
            let mut double = QueueAverage::default();
            double.step(1.0, avg);
            let now = Time::from_secs(ms * 1e-3);
            double.age(&w, now, Time::ZERO);
            let left = scale.left_after(now.since(Time::ZERO));
            let got = scale.amount(Scale::fade(scale.grains(avg), left));
            prop_assert!((got - double.get()).abs() < 2e-9 * double.get() + 1e-6, "{got} {}", double.get());
        }
    }
}

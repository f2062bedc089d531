//! How lengths are drawn around a mean: periods of on/off sources, sizes of transfers, times between arrivals.

use inprofile_core::rng::Rng;

/// A distribution with a mean that is given apart from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the mean.
    Fixed,
    /// Exponential: times between events of a Poisson process.
    Exponential,
    /// Pareto with this shape, above 1: few are very long (below 2 the variance is infinite).
    Pareto(f64),
}

impl Distribution {
    /// A random value with this mean; `Fixed` uses no random number.
    #[must_use]
    pub fn draw(self, mean: f64, rng: &mut Rng) -> f64 {
        match self {
            Distribution::Fixed => mean,
            // Inverses of the distribution functions, with 1 − u in (0, 1].
            Distribution::Exponential => -mean * libm::log(1.0 - rng.uniform()),
            Distribution::Pareto(shape) => {
                let least = mean * (shape - 1.0) / shape;
                least * libm::pow(1.0 - rng.uniform(), -1.0 / shape)
            }
        }
    }

    /// The mean of such a value when what is below `least` becomes that and what is above `most` becomes that: the integral of
    /// P(X > x) from `least` to `most`, above `least`.
    #[must_use]
    pub fn mean_within(self, mean: f64, least: f64, most: f64) -> f64 {
        match self {
            Distribution::Fixed => mean.clamp(least, most),
            Distribution::Exponential => least + mean * (libm::exp(-least / mean) - libm::exp(-most / mean)),
            Distribution::Pareto(shape) => {
                let scale = mean * (shape - 1.0) / shape;
                let from = scale.clamp(least, most);
                let tail = |x: f64| libm::pow(scale / x, shape - 1.0) * scale / (shape - 1.0);
                from + if most > scale { tail(from) - tail(most) } else { 0.0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(law: Distribution, n: u32) -> Vec<f64> {
        let mut rng = Rng::for_component(5, "law");
        let mut all: Vec<f64> = (0..n).map(|_| law.draw(2.0, &mut rng)).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// Mean and median by hand: 2 and 2 ln 2; Pareto of shape 3: 2, and least 4/3 times the cube root of 2.
    #[test]
    fn means_and_medians() {
        let n = 100_000;
        for (law, median, sigma) in [
            (Distribution::Exponential, 2.0 * std::f64::consts::LN_2, 2.0),
            (Distribution::Pareto(3.0), 4.0 / 3.0 * 2f64.cbrt(), 4.0 / 3.0 * 0.75f64.sqrt()),
        ] {
            let all = drawn(law, n);
            let mean = all.iter().sum::<f64>() / f64::from(n);
            // Five standard errors.
            assert!((mean - 2.0).abs() < 5.0 * sigma / f64::from(n).sqrt(), "{law:?}: mean {mean}");
            assert!((all[n as usize / 2] / median - 1.0).abs() < 0.02, "{law:?}: {}", all[n as usize / 2]);
        }
        for law in [Distribution::Exponential, Distribution::Pareto(3.0), Distribution::Pareto(1.5)] {
            for (least, most) in [(0.1, 100.0), (1.0, 3.0), (1.7, 1.9), (3.0, 5.0)] {
                let all = drawn(law, n);
                let bounded = all.iter().map(|x| x.clamp(least, most)).sum::<f64>() / f64::from(n);
                let mean = law.mean_within(2.0, least, most);
                assert!((bounded / mean - 1.0).abs() < 0.02, "{law:?} {least} {most}: {bounded} {mean}");
            }
        }
        assert_eq!(drawn(Distribution::Fixed, 3), [2.0; 3]);
        assert!(drawn(Distribution::Pareto(3.0), n)[0] >= 4.0 / 3.0);
    }
}

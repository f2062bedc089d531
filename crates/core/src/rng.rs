//! Random numbers as an argument: one stream per component, keyed by the run's seed and the component's name.
//!
//! The generator is PCG-64 (O'Neill 2014); a [`Source`] can replace it where another program's numbers are needed.

use std::fmt::Debug;

use rand_core::RngCore;
use rand_pcg::Pcg64;

use crate::verdict::Why;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(Stream);

#[derive(Debug)]
enum Stream {
    Pcg(Pcg64),
    Given(Box<dyn Source>),
}

impl Clone for Stream {
    fn clone(&self) -> Stream {
        match self {
            Stream::Pcg(r) => Stream::Pcg(r.clone()),
            Stream::Given(source) => Stream::Given(source.copy()),
        }
    }
}

/// Random numbers from elsewhere.
pub trait Source: Debug + Send + Sync {
    /// Uniform in [0, 1], where it may leave out either end.
    fn uniform(&mut self) -> f64;
    /// Another one in the same state.
    fn copy(&self) -> Box<dyn Source>;
}

impl Rng {
    /// The stream of the component called `name` in the run with this seed.
    #[must_use]
    pub fn for_component(seed: u64, name: &str) -> Rng {
        let key = fnv1a(name.as_bytes());
        let state = u128::from(mix(seed)) << 64 | u128::from(mix(seed ^ key));
        Rng(Stream::Pcg(Pcg64::new(state, u128::from(key) << 64 | u128::from(mix(key)))))
    }

    /// The numbers of this source.
    #[must_use]
    pub fn from_source(source: Box<dyn Source>) -> Rng {
        Rng(Stream::Given(source))
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        match &mut self.0 {
            Stream::Pcg(r) => unit(r.next_u64()),
            Stream::Given(source) => source.uniform(),
        }
    }

    /// So many random bits as a uniform number has: 53.
    pub fn bits(&mut self) -> u64 {
        (self.uniform() * (1u64 << 53) as f64) as u64
    }

    /// True with probability `p`; draws a number, noted as `what`, only if that is open.
    #[inline]
    pub fn chance<W: Why + ?Sized>(&mut self, what: &'static str, p: f64, why: &mut W) -> bool {
        if p <= 0.0 {
            return false;
        }
        if p >= 1.0 {
            return true;
        }
        let u = self.uniform();
        why.note(what, u);
        u < p
    }

    /// Uniform among 0 … n − 1; n must not be 0.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        debug_assert!(n > 0);
        ((self.uniform() * f64::from(n)) as u32).min(n - 1)
    }
}

/// The upper 53 bits, as a fraction.
#[inline]
fn unit(x: u64) -> f64 {
    (x >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): neighbouring seeds become unrelated.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Silent;

    #[test]
    fn streams_differ_by_seed_and_by_name() {
        let draw = |seed, name| Rng::for_component(seed, name).uniform();
        let all = [draw(1, "a"), draw(1, "b"), draw(2, "a"), draw(2, "b")];
        for i in 0..4 {
            for j in 0..i {
                assert_ne!(all[i], all[j]);
            }
        }
        assert_eq!(draw(1, "a"), draw(1, "a"));
    }

    #[test]
    fn a_number_is_drawn_only_where_it_decides() {
        let untouched = Rng::for_component(1, "draws");
        let mut rng = untouched.clone();
        for p in [-0.1, 0.0, 1.0, 2.0] {
            assert_eq!(rng.chance("u", p, &mut Silent), p >= 1.0);
        }
        assert_eq!(rng.uniform(), untouched.clone().uniform());
    }

    #[test]
    fn uniform_is_uniform() {
        let mut r = Rng::for_component(7, "test");
        let mut cells = [0u32; 10];
        for _ in 0..100_000 {
            cells[r.below(10) as usize] += 1;
        }
        // χ² with 9 degrees of freedom: 99.9 % below 27.9.
        let chi: f64 = cells.iter().map(|&c| (f64::from(c) - 1e4) * (f64::from(c) - 1e4) / 1e4).sum();
        assert!(chi < 27.9, "chi-square {chi}");
    }
}

//! Randomness as an argument: one stream a component, keyed by the run's seed and the component's name.
//!
//! The default generator is PCG-64 (O'Neill 2014). [`Rng::ns2`] is MRG32k3a (L'Ecuyer 1999), seeded
//! as ns-2 seeds it, so that random drops can be compared with ns-2's packet by packet.

use rand_core::RngCore;
use rand_pcg::Pcg64;

use crate::verdict::Why;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(Stream);

#[derive(Clone, Debug)]
enum Stream {
    Pcg(Pcg64),
    Mrg(Mrg32k3a),
}

impl Rng {
    /// The stream of the component called `name` in the run with this seed.
    #[must_use]
    pub fn for_component(seed: u64, name: &str) -> Rng {
        let key = fnv1a(name.as_bytes());
        let state = u128::from(mix(seed)) << 64 | u128::from(mix(seed ^ key));
        Rng(Stream::Pcg(Pcg64::new(state, u128::from(key) << 64 | u128::from(mix(key)))))
    }

    /// ns-2's default stream after `$defaultRNG seed N`: all six words of the state are the seed.
    #[must_use]
    pub fn ns2(seed: u32) -> Rng {
        Rng(Stream::Mrg(Mrg32k3a::new([seed.max(1); 6])))
    }

    /// Uniform in [0, 1) (ns-2's stream: in (0, 1)).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        match &mut self.0 {
            Stream::Pcg(r) => unit(r.next_u64()),
            Stream::Mrg(r) => r.next(),
        }
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

    /// Uniform among 0 … n − 1 as ns-2's `Random::integer` draws it: 31 bits, of which the remainder is taken; n must not be 0.
    #[inline]
    pub fn below_ns2(&mut self, n: u32) -> u32 {
        debug_assert!(n > 0);
        (self.uniform() * f64::from(1u32 << 31)) as u32 % n
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
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// MRG32k3a: two recurrences of order three, combined (L'Ecuyer 1999, Fig. 1).
#[derive(Clone, Debug)]
struct Mrg32k3a {
    s1: [i64; 3],
    s2: [i64; 3],
}

impl Mrg32k3a {
    const M1: i64 = 4_294_967_087;
    const M2: i64 = 4_294_944_443;

    fn new(state: [u32; 6]) -> Mrg32k3a {
        let w = state.map(i64::from);
        Mrg32k3a { s1: [w[0], w[1], w[2]], s2: [w[3], w[4], w[5]] }
    }

    #[inline(never)]
    fn next(&mut self) -> f64 {
        let p1 = (1_403_580 * self.s1[1] - 810_728 * self.s1[0]).rem_euclid(Self::M1);
        self.s1 = [self.s1[1], self.s1[2], p1];
        let p2 = (527_612 * self.s2[2] - 1_370_589 * self.s2[0]).rem_euclid(Self::M2);
        self.s2 = [self.s2[1], self.s2[2], p2];
        let z = if p1 > p2 { p1 - p2 } else { p1 - p2 + Self::M1 };
        z as f64 * 2.328_306_549_295_728e-10
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Silent;

    #[test]
    fn ns2_stream_starts_as_in_ns2() {
        let mut r = Rng::ns2(1);
        // What a Tcl script sees has passed through a whole number of 31 bits; what ns-2's own code draws has not.
        let tcl = |u: f64| (u * 2_147_483_648.0).floor() / 2_147_483_647.0;
        let first: Vec<f64> = (0..8).map(|_| tcl(r.uniform())).collect();
        // `$defaultRNG uniform 0 1` in ns-2.35, to 17 digits.
        let printed = [
            0.0003395769746692744,
            0.5558807158637237,
            0.014204660437165137,
            0.08812267104542007,
            0.44117338184321925,
            0.7991554535921456,
            0.31296177176430906,
            0.8164760516101849,
        ];
        assert_eq!(first, printed);
        assert_eq!((8..200).map(|_| tcl(r.uniform())).last(), Some(0.2697555004943886));
        assert_eq!(tcl(Rng::ns2(2).uniform()), 0.000_673_882_197_902_483);
        assert_eq!(tcl(Rng::ns2(12345).uniform()), 0.127_011_121_775_494_48);
    }

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

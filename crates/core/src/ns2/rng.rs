//! ns-2's random numbers: MRG32k3a (L'Ecuyer 1999), seeded like ns-2's default stream.
//!
//! With them random drops can be compared with ns-2's packet by packet. Non-goal: a stream for each component; ns-2's
//! mechanisms all draw from this one.

use crate::rng::{Rng, Source};

/// ns-2's default stream after `$defaultRNG seed N`: all six words of the state are the seed.
#[must_use]
pub fn stream(seed: u32) -> Rng {
    Rng::from_source(Box::new(Mrg32k3a::new([seed.max(1); 6])))
}

/// Uniform among 0 … n − 1 as `Random::integer` draws it: 31 bits, of which the remainder is taken; n must not be 0.
#[inline]
pub fn integer(rng: &mut Rng, n: u32) -> u32 {
    debug_assert!(n > 0);
    (rng.uniform() * f64::from(1u32 << 31)) as u32 % n
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
}

impl Source for Mrg32k3a {
    /// Uniform in (0, 1).
    fn uniform(&mut self) -> f64 {
        let p1 = (1_403_580 * self.s1[1] - 810_728 * self.s1[0]).rem_euclid(Self::M1);
        self.s1 = [self.s1[1], self.s1[2], p1];
        let p2 = (527_612 * self.s2[2] - 1_370_589 * self.s2[0]).rem_euclid(Self::M2);
        self.s2 = [self.s2[1], self.s2[2], p2];
        let z = if p1 > p2 { p1 - p2 } else { p1 - p2 + Self::M1 };
        z as f64 * 2.328_306_549_295_728e-10
    }

    fn copy(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ns2_stream_starts_as_in_ns2() {
        let mut r = stream(1);
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
        assert_eq!(tcl(stream(2).uniform()), 0.000_673_882_197_902_483);
        assert_eq!(tcl(stream(12345).uniform()), 0.127_011_121_775_494_48);
    }
}

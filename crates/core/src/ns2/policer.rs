//! ns-2's policers (at dsRED's edge): how they turn a rate above its target into a colour.
//!
//! TSW2CM draws a number only above the target, TSW3CM for every packet: a random point on the rate.
//! Source: ns-2.35, `diffserv/dsPolicy.cc`, by its behaviour; the estimator is RFC 2859's. Non-goal: its token buckets, which
//! work like ours.

use crate::marker::tsw2cm::Chance;
use crate::packet::Colour;
use crate::rng::Rng;
use crate::verdict::Why;

/// ns-2's chances.
#[derive(Clone, Copy, Debug)]
pub struct Policer;

impl Chance for Policer {
    fn out<W: Why + ?Sized>(rate: f64, ctr: f64, rng: &mut Rng, why: &mut W) -> bool {
        if rate <= ctr {
            return false;
        }
        let u = rng.uniform();
        why.note("u", u);
        u <= 1.0 - ctr / rate
    }

    /// Red if the point lies above the peak, yellow above the committed rate.
    fn colour<W: Why + ?Sized>(rate: f64, ctr: f64, ptr: f64, rng: &mut Rng, why: &mut W) -> Colour {
        let u = rng.uniform();
        why.note("u", u);
        match rate * (1.0 - u) {
            point if point > ptr => Colour::Red,
            point if point > ctr => Colour::Yellow,
            _ => Colour::Green,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::{tsw2cm, tsw3cm};
    use proptest::prelude::*;

    #[test]
    fn two_colours_draw_above_the_target_only() {
        tsw2cm::tests::within_the_target::<Policer>();
        tsw2cm::tests::all_of_the_excess::<Policer>();
    }

    #[test]
    fn three_colours_draw_for_every_packet() {
        tsw3cm::tests::within_its_rate::<Policer>(50);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// The shares of IN, yellow and red are those of RFC 2859's probabilities.
        #[test]
        fn shares_are_those_of_the_rfc(ctr in 100_000u64..1_000_000, times in 1.1f64..6.0, peak in 1.0f64..4.0,
                                       seed in 0u64..1000) {
            tsw2cm::tests::in_keeps_to_the_target::<Policer>(ctr, times, seed);
            tsw3cm::tests::shares::<Policer>(times, peak, seed);
        }
    }
}

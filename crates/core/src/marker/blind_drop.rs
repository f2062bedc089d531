//! Blind dropper: drops each packet with one fixed probability, whatever the traffic does.
//!
//! A placebo. A scheme that drops at the edge has to do better than the same number of drops at random; if it does not, it was
//! the randomness that helped (Floyd and Jacobson 1992 on phase effects).
//! Non-goal: anything else. It has no state and changes no colour.

use crate::marker::EDGE;
use crate::prelude::*;

crate::choice! {
    /// Which packets it may drop.
    pub enum Of {
        /// All.
        Any = "any",
        /// IN packets only.
        In = "in",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Probability of each drop.
        p: f64 [UNIT];
        /// Which packets it may drop: any, or only those that are IN.
        of: Of = Of::Any;
    }
}

/// Packets by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Dropped.
    pub dropped: u64,
    /// Let by.
    pub passed: u64,
}

/// The marker.
#[derive(Clone, Debug)]
pub struct BlindDrop {
    p: f64,
    of: Of,
    stats: Stats,
}

impl Build for Params {
    type Mechanism = BlindDrop;

    fn check(&self, _: &Context) -> Result<Vec<Warning>, Fault> {
        let text = match self.p {
            p if p >= 1.0 => "every packet it may drop is dropped: nothing of the kind gets through",
            p if p <= 0.0 => "nothing is ever dropped",
            _ => return Ok(Vec::new()),
        };
        Ok(vec![Warning { field: "p", text: text.into() }])
    }

    fn build(&self, _: &Context) -> BlindDrop {
        BlindDrop { p: self.p, of: self.of, stats: Stats::default() }
    }
}

impl Mechanism for BlindDrop {
    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        show("dropped", self.stats.dropped);
        show("passed", self.stats.passed);
    }
}

impl Marker for BlindDrop {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, _: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark {
        let eligible = self.of == Of::Any || packet.colour.is_in();
        if eligible && rng.chance("u", self.p, why) {
            self.stats.dropped += 1;
            Mark::Drop(EDGE)
        } else {
            self.stats.passed += 1;
            Mark::Pass(packet.colour)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };

    fn verdicts(p: f64, of: Of, colours: &[Colour], seed: u64) -> (Vec<Mark>, Stats) {
        let mut marker = Params { p, of }.build(&CONTEXT);
        let mut rng = Rng::for_component(seed, "blind");
        let packet = |colour| Packet { size: 1000, colour, ..Packet::default() };
        let marks =
            colours.iter().map(|c| marker.mark(Time::ZERO, &packet(*c), &mut rng, &mut Silent)).collect();
        (marks, marker.stats)
    }

    #[test]
    fn drops_at_its_rate_and_only_what_it_may() {
        let colours: Vec<Colour> = (0..30_000).map(|i| Colour::ALL[i % 3]).collect();
        // Binomial: 5 standard deviations of 30,000 · 0.02 · 0.98 and of 10,000 · 0.02 · 0.98.
        let (_, any) = verdicts(0.02, Of::Any, &colours, 1);
        assert!(any.dropped.abs_diff(600) < 122, "{any:?}");
        let (marks, ins) = verdicts(0.02, Of::In, &colours, 1);
        assert!(ins.dropped.abs_diff(200) < 70, "{ins:?}");
        for (mark, colour) in marks.iter().zip(&colours) {
            assert!(*mark == Mark::Pass(*colour) || colour.is_in() && *mark == Mark::Drop(EDGE));
        }
    }

    #[test]
    fn golden_sequence() {
        let (marks, _) = verdicts(0.3, Of::Any, &[Colour::IN; 30], 1);
        let text: String = marks.iter().map(|m| if *m == Mark::Drop(EDGE) { 'x' } else { '.' }).collect();
        assert_eq!(text, ".....x...x....xx.xx....xxx...x");
    }

    #[test]
    fn certainties_draw_no_number_and_are_remarked_on() {
        assert_eq!(verdicts(0.0, Of::Any, &[Colour::IN; 9], 1).1, Stats { dropped: 0, passed: 9 });
        assert_eq!(verdicts(1.0, Of::Any, &[Colour::IN; 9], 1).1, Stats { dropped: 9, passed: 0 });
        let warned = |p| Params { p, of: Of::Any }.check(&CONTEXT).map(|w| w.len());
        assert_eq!([0.0, 0.5, 1.0].map(warned), [Ok(1), Ok(0), Ok(1)]);
    }

    proptest! {
        /// Every packet is dropped or let by as it came, and equal seeds decide alike.
        #[test]
        fn conserves(p in 0f64..=1.0, ins in prop::collection::vec(any::<bool>(), 0..200), seed: u64) {
            let colours: Vec<_> = ins.iter().map(|i| if *i { Colour::IN } else { Colour::OUT }).collect();
            let (marks, stats) = verdicts(p, Of::Any, &colours, seed);
            prop_assert_eq!(stats.dropped + stats.passed, colours.len() as u64);
            prop_assert_eq!(marks, verdicts(p, Of::Any, &colours, seed).0);
        }
    }
}

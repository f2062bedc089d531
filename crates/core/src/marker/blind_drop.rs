//! Blind dropper: drops each packet with one set probability, whatever the traffic does.
//!
//! A placebo. A scheme that drops at the edge has to do better than equal drops without its wits;
//! if it doesn't, it was the randomness that helped (Floyd and Jacobson 1992 on phase effects).
//! Non-goal: anything else. It keeps no state and changes no colour.

use crate::aqm::curve::chance;
use crate::marker::Marker;
use crate::packet::Packet;
use crate::params::{Build, Context, Fault, Warning};
use crate::rng::Rng;
use crate::units::Time;
use crate::verdict::{Cause, Mark, Why};

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
    /// What an operator sets.
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

impl Marker for BlindDrop {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, _: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark {
        let eligible = self.of == Of::Any || packet.colour.is_in();
        if eligible && chance(self.p, rng, why) {
            self.stats.dropped += 1;
            Mark::Drop(Cause::Edge)
        } else {
            self.stats.passed += 1;
            Mark::Pass(packet.colour)
        }
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        show("dropped", self.stats.dropped);
        show("passed", self.stats.passed);
    }
}

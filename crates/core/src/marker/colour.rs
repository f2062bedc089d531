//! One colour for all packets, whatever colour they had.
//!
//! For traffic that is not metered: best effort that is OUT beside flows with contracts, or a class that is always IN.
//! Non-goal: anything else.

use crate::marker::Marker;
use crate::mechanism::Mechanism;
use crate::packet::{Colour, Packet};
use crate::params::{Build, Context};
use crate::rng::Rng;
use crate::units::Time;
use crate::verdict::{Mark, Why};

crate::choice! {
    /// A drop precedence by name.
    pub enum Name {
        /// In profile.
        In = "in",
        /// Out of profile.
        Out = "out",
        /// The highest drop precedence.
        Red = "red",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// The colour every packet gets.
        colour: Name;
    }
}

/// The marker.
#[derive(Clone, Debug)]
pub struct Constant {
    colour: Colour,
}

impl Build for Params {
    type Mechanism = Constant;

    fn build(&self, _: &Context) -> Constant {
        let colour = match self.colour {
            Name::In => Colour::Green,
            Name::Out => Colour::Yellow,
            Name::Red => Colour::Red,
        };
        Constant { colour }
    }
}

impl Mechanism for Constant {}

impl Marker for Constant {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, _: Time, _: &Packet, _: &mut Rng, _: &mut W) -> Mark {
        Mark::Pass(self.colour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;
    use crate::verdict::Silent;

    #[test]
    fn every_colour_becomes_the_one() {
        let context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };
        let mut rng = Rng::for_component(1, "colour");
        for (name, colour) in
            [(Name::In, Colour::Green), (Name::Out, Colour::Yellow), (Name::Red, Colour::Red)]
        {
            let mut marker = Params { colour: name }.build(&context);
            for came in Colour::ALL {
                let packet = Packet { size: 1000, colour: came, ..Packet::default() };
                assert_eq!(marker.mark(Time::ZERO, &packet, &mut rng, &mut Silent), Mark::Pass(colour));
            }
            assert_eq!(name.word(), colour.name());
        }
    }
}

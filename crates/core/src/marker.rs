//! Markers (traffic conditioners): they set a packet's colour at the edge, and some of them drop packets there.

pub mod ard;
pub mod blind_drop;
pub mod every_nth;
pub mod fair_policer;
pub mod meter;
pub mod probe;
pub mod token_bucket;
pub mod tsw2cm;
pub mod tsw3cm;
pub mod tsw_whole;
pub mod twam;

use crate::prelude::*;

/// By a marker, at the edge.
pub const EDGE: Cause = Cause::named("edge");

/// The interface of every marker.
pub trait Marker: Mechanism {
    /// Decides on a packet. Nothing else about the packet may change.
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut W) -> Mark
    where
        Self: Sized;
}

/// A [`Marker`] as [`AnyMarker::Custom`](crate::registry::AnyMarker) holds it. Every `Marker` is one.
pub trait DynMarker: Marker {
    /// [`Marker::mark`].
    fn mark_dyn(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut dyn Why) -> Mark;
    /// For all that is no decision.
    fn object(&self) -> &(dyn Marker + 'static);
    /// For all that is no decision.
    fn object_mut(&mut self) -> &mut (dyn Marker + 'static);
}

impl<M: Marker + 'static> DynMarker for M {
    fn mark_dyn(&mut self, now: Time, packet: &Packet, rng: &mut Rng, why: &mut dyn Why) -> Mark {
        self.mark(now, packet, rng, why)
    }
    fn object(&self) -> &(dyn Marker + 'static) {
        self
    }
    fn object_mut(&mut self) -> &mut (dyn Marker + 'static) {
        self
    }
}

/// By a policer: out of profile.
pub const POLICED: Cause = Cause::named("policed");

crate::choice! {
    /// The treatment of packets out of profile.
    pub enum Action {
        /// It goes on with its colour.
        Mark = "mark",
        /// It is dropped: the meter is a policer.
        Drop = "drop",
    }
}

impl Action {
    /// The verdict on a packet of which the meter says this; out of profile is this colour and whatever is worse.
    #[inline]
    #[must_use]
    pub fn on(self, metered: Colour, out: Colour) -> Mark {
        if self == Action::Drop && metered >= out { Mark::Drop(POLICED) } else { Mark::Pass(metered) }
    }
}

/// Packets and bytes at a marker, by colour. `arrived` = `left` + `dropped`, over all colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkerCounts {
    /// Arrived, by the colour they had.
    pub arrived: [u64; 3],
    /// Wire bytes that arrived.
    pub arrived_bytes: [u64; 3],
    /// Passed on, by the colour they were given.
    pub left: [u64; 3],
    /// Wire bytes that were passed on.
    pub left_bytes: [u64; 3],
    /// Dropped, by the colour they had.
    pub dropped: [u64; 3],
}

impl MarkerCounts {
    /// The packets counted since `before`.
    #[must_use]
    pub fn since(&self, before: &MarkerCounts) -> MarkerCounts {
        let less = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|i| a[i] - b[i]);
        MarkerCounts {
            arrived: less(self.arrived, before.arrived),
            arrived_bytes: less(self.arrived_bytes, before.arrived_bytes),
            left: less(self.left, before.left),
            left_bytes: less(self.left_bytes, before.left_bytes),
            dropped: less(self.dropped, before.dropped),
        }
    }
}

pub mod colour {
    //! One colour for all packets, whatever colour they had.
    //!
    //! For traffic that is not metered: best effort that is OUT beside flows with contracts, or a class that is always IN.
    //! Non-goal: anything else.

    use crate::prelude::*;

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
}

//! The treatment of packets out of profile by a meter: it marks them or, as a policer, drops them (RFC 2475 §2.3.3.3).
//!
//! The meter decides and counts the same in either case: a policer drops exactly what would have been marked out of profile.

use crate::packet::Colour;
use crate::verdict::{Cause, Mark};

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

//! Decision by decision, from the states that Linux's own verdicts have led to. Laws without chance only.
//!
//! The guest knows when it was about to send and when that was over, not when the law was asked. So where a verdict of ours differs,
//! the law is asked again as if earlier or later: the least shift with which it agrees is what that decision takes.
//! Whether the stamps leave room for it is known by what they bound: for CoDel, COBALT and SFQ all states that the law can be in are kept,
//! for a token bucket the most and the fewest tokens that it can hold.

use std::io::{self, Write};

use inprofile_core::units::{Duration, Time};

use crate::events::NANO;

/// The first shift that is tried, and the last, in picoseconds.
const SHIFTS: (u64, u64) = (256 * NANO, 50_000_000 * NANO);

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It left.
    Sent,
    /// It left with congestion experienced.
    Marked,
    /// It did not leave.
    Dropped,
    /// Another left in its place.
    Waiting,
}

impl Fate {
    /// As the answer has it.
    pub fn word(self) -> &'static str {
        ["sent", "marked", "dropped", "waiting"][self as usize]
    }
}

/// What a law said, and its state afterwards.
pub type Said<L> = (Fate, L);

/// The least shift with which `ask` says `linux`, and the law as it is then. Where none does: the law as it was asked first.
pub fn agree<L>(linux: Fate, at: Time, mut ask: impl FnMut(Time) -> Said<L>) -> (Fate, Option<Duration>, L) {
    let (ours, law) = ask(at);
    if ours == linux {
        return (ours, Some(Duration(0)), law);
    }
    let later = |shift| at + Duration(shift);
    let earlier = |shift| Time(at.0.saturating_sub(shift));
    let (mut short, mut long) = (0, SHIFTS.0);
    while long <= SHIFTS.1 {
        for moved in [&later as &dyn Fn(u64) -> Time, &earlier] {
            let (other, mut law) = ask(moved(long));
            if other != linux {
                continue;
            }
            // Between one that is too short and one that does.
            while long - short > SHIFTS.0 {
                let middle = (short + long) / 2;
                let (other, then) = ask(moved(middle));
                if other == linux {
                    (long, law) = (middle, then);
                } else {
                    short = middle;
                }
            }
            return (ours, Some(Duration(long)), law);
        }
        (short, long) = (long, 2 * long);
    }
    (ours, None, law)
}

/// A line of the answer.
pub fn tell(
    out: &mut impl Write,
    number: u32,
    (linux, ours): (Fate, Fate),
    shift: Option<Duration>,
    possible: bool,
) -> io::Result<()> {
    let shift = shift.map_or(-1, |s| s.0.div_ceil(NANO) as i64);
    writeln!(out, "{number} {} {} {shift} {}", linux.word(), ours.word(), u8::from(possible))
}

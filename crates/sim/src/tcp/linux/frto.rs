//! F-RTO (RFC 5682): after a retransmission timeout two acknowledgements tell whether it was needless, as Linux has it.
//!
//! The first that advances is answered by new data instead of what counts as lost. What then arrives without having been sent again was on
//! its way all the time: the timeout was spurious, and its reduction is undone. Linux asks at the first acknowledgement already, as SACK tells
//! which segments it is of (RFC 5682 §3).

use crate::tcp::control::Window;

/// A retransmission timeout whose cause is not yet known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frto {
    /// Window and threshold before it.
    pub prior: Window,
    /// One past the highest segment sent when it expired ("recover").
    pub point: u32,
}

/// What an acknowledgement tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// A segment below [`Frto::point`] has arrived that was sent only once.
    pub original: bool,
    /// SND.UNA moved on.
    pub advanced: bool,
    /// Something above SND.UNA was selected, or nothing is new.
    pub duplicate: bool,
    /// SND.UNA.
    pub una: u32,
    /// SND.NXT.
    pub next: u32,
    /// There is data that was never sent, and room for it at the receiver.
    pub more: bool,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// §2.1, step 3b: the timeout was needless.
    Spurious,
    /// Step 2b: new data, and not yet what counts as lost.
    SendNew,
    /// Steps 2a and 3a: it was not; recovery as usual.
    Lost,
    /// Nothing is known yet.
    Wait,
}

impl Frto {
    /// RFC 5682 §2.1, steps 2 and 3.
    pub fn judge(&self, told: &Evidence) -> Step {
        if told.original {
            return Step::Spurious;
        }
        if told.next > self.point {
            // New data has been sent: step 3.
            return if told.duplicate { Step::Lost } else { Step::Wait };
        }
        match (told.advanced, told.una < self.point && told.more) {
            (true, true) => Step::SendNew,
            (true, false) => Step::Lost,
            _ if told.duplicate => Step::Lost,
            _ => Step::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5682 §2.1: each branch of steps 2 and 3; §3: with SACK the first acknowledgement may tell already.
    #[test]
    fn each_branch() {
        let frto = Frto { prior: Window { cwnd: 10.0, ssthresh: 20.0 }, point: 11 };
        let none =
            Evidence { original: false, advanced: false, duplicate: false, una: 1, next: 11, more: true };
        let first = Evidence { advanced: true, una: 2, ..none };
        let second = Evidence { next: 13, ..first };
        for (told, step) in [
            (Evidence { duplicate: true, ..none }, Step::Lost),
            (Evidence { una: 11, ..first }, Step::Lost),
            (first, Step::SendNew),
            (Evidence { more: false, ..first }, Step::Lost),
            (Evidence { duplicate: true, ..second }, Step::Lost),
            (Evidence { original: true, una: 3, ..second }, Step::Spurious),
            (Evidence { original: true, ..none }, Step::Spurious),
            (none, Step::Wait),
        ] {
            assert_eq!(frto.judge(&told), step, "{told:?}");
        }
    }
}

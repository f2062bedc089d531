//! F-RTO (RFC 5682): after a retransmission timeout two acknowledgements tell whether it was needless, as Linux has it.
//!
//! The first that advances is answered by new data instead of what counts as lost. What then arrives without having been sent again was on
//! its way all the time: the timeout was spurious, and its reduction is undone. Linux asks at the first acknowledgement already, as SACK tells
//! which segments it is of (RFC 5682 §3.1). As in Linux, not where losses were being recovered from when the timer expired, unless by an earlier
//! timeout of the same segment.

/// A retransmission timeout whose cause is not yet known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frto {
    /// One past the highest segment sent when it expired ("RecoveryPoint").
    pub point: u32,
}

/// The content of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// A segment below [`Frto::point`] has arrived that was sent only once.
    pub original: bool,
    /// SND.UNA moved on.
    pub advanced: bool,
    /// Something above SND.UNA was selected for the first time, or nothing is new.
    pub news_above: bool,
    /// SND.UNA.
    pub una: u32,
    /// SND.NXT.
    pub next: u32,
    /// There is data that was never sent, and room for it at the receiver.
    pub more: bool,
}

/// The rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// §3.1, step 3b: the timeout was needless.
    Spurious,
    /// Step 2b: new data, and not yet what counts as lost.
    SendNew,
    /// Steps 2a and 3a: it was not; recovery as usual.
    Lost,
    /// Nothing is known yet.
    Wait,
}

impl Frto {
    /// RFC 5682 §3.1, steps 2 and 3.
    pub fn judge(&self, told: &Evidence) -> Step {
        if told.original {
            return Step::Spurious;
        }
        if told.next > self.point {
            // New data has been sent: step 3.
            return if told.news_above { Step::Lost } else { Step::Wait };
        }
        match (told.advanced, told.una < self.point && told.more) {
            (true, true) => Step::SendNew,
            (true, false) => Step::Lost,
            // Step 2: duplicates before the first that advances tell nothing.
            _ => Step::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5682 §3.1: each branch of steps 2 and 3; with SACK the first acknowledgement may tell already.
    #[test]
    fn each_branch() {
        let frto = Frto { point: 11 };
        let none =
            Evidence { original: false, advanced: false, news_above: false, una: 1, next: 11, more: true };
        let first = Evidence { advanced: true, una: 2, ..none };
        let second = Evidence { next: 13, ..first };
        for (told, step) in [
            (Evidence { news_above: true, ..none }, Step::Wait),
            (Evidence { una: 11, ..first }, Step::Lost),
            (first, Step::SendNew),
            (Evidence { more: false, ..first }, Step::Lost),
            (second, Step::Wait),
            (Evidence { news_above: true, ..second }, Step::Lost),
            (Evidence { original: true, una: 3, ..second }, Step::Spurious),
            (Evidence { original: true, ..none }, Step::Spurious),
            (none, Step::Wait),
        ] {
            assert_eq!(frto.judge(&told), step, "{told:?}");
        }
    }
}

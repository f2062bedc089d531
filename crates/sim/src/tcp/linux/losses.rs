//! Losses: a recovery begins and ends (RFC 8985 §6.2, RFC 9937), and a timeout that proves needless is undone (RFC 5682).

use super::acknowledgement::AckOutcome;
use super::{Sender, State};
use crate::clock::Clock;
use crate::tcp::control::{Cause, Window};
use crate::tcp::rfc::Ecn;

impl<C: Clock> Sender<C> {
    /// RFC 5682 §3.1, after the timer expired.
    pub(super) fn judge_timeout(&mut self, outcome: &AckOutcome) {
        self.new_first = false;
        let Some(frto) = self.frto else { return };
        let evidence = Evidence {
            original: outcome.original.is_some_and(|number| number < frto.point),
            advanced: outcome.advanced,
            // As in Linux, what repeats a number only to tell of a duplicate is none.
            news_above: outcome.selected || !outcome.advanced && outcome.duplicate.is_none(),
            una: self.board.una(),
            next: self.board.max(),
            more: self.board.max() < self.limit(),
        };
        match frto.judge(&evidence) {
            Step::Wait => {}
            Step::SendNew => self.new_first = true,
            Step::Lost => self.frto = None,
            Step::Spurious => self.undo_reduction(),
        }
    }

    /// RFC 2883 §5: a segment has arrived twice, so one of its transmissions was for nothing.
    #[inline(never)]
    pub(super) fn arrived_twice(&mut self, segment: u32) {
        match self.probe {
            // RFC 8985 §7.4.2, case 1: the probe and what it repeated have arrived, and nothing was lost. As in Linux, that says
            // nothing of reordering.
            Some((end, true)) if segment + 1 == end => {
                if self.board.una() >= end {
                    self.probe = None;
                }
            }
            _ => self.rack.sent_in_vain(self.board.una(), self.board.max()),
        }
        if self.undo.as_mut().is_some_and(|undo| undo.arrived_twice(segment)) {
            self.undo_reduction();
        }
    }

    /// Nothing was lost: recovery is over, and window and threshold are at least what they were, unless a mark has asked for their reduction.
    fn undo_reduction(&mut self) {
        if matches!(self.state, State::Loss) {
            self.board.unmark_lost();
            self.una_timed_out = false;
        }
        self.state = State::Open;
        self.frto = None;
        let Some(prior) = self.undo.take().and_then(|undo| undo.prior()) else { return };
        if !self.control.owns_window() {
            self.cwnd = self.cwnd.max(prior.cwnd);
            if prior.ssthresh > self.ssthresh {
                self.ssthresh = prior.ssthresh;
                if let Some(ecn) = &mut self.ecn {
                    ecn.withdraw();
                }
            }
        }
        let mut window = self.window();
        self.control.undone(&mut window);
        (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
    }

    /// RFC 8985 §6.2, step 5.
    #[inline(always)]
    pub(super) fn detect(&mut self, now: C) -> (u32, Option<f64>) {
        if self.rack.has_overtaken_nothing(&self.board) { (0, None) } else { self.look_for_losses(now) }
    }

    #[inline(never)]
    fn look_for_losses(&mut self, now: C) -> (u32, Option<f64>) {
        let found = self.rack.detect(&mut self.board, now, self.timeout.srtt(), self.state.recovers());
        if found.0 > 0 {
            self.note_lost(now);
        }
        found
    }

    /// Tells the control of the segments that were found lost.
    pub(super) fn note_lost(&mut self, now: C) {
        let window = self.window();
        let Some(delivery) = &mut self.delivery else { return };
        while let Some(segment) = self.board.next_found() {
            if let Some(lost) = delivery.lost(segment, now) {
                self.control.lost(&lost, &window);
            }
        }
    }

    /// A loss that is not being recovered from begins a recovery; `echo`: by an acknowledgement that also tells of marks; `delivered`: of so many
    /// segments. True: it does.
    pub(super) fn recover_if_lost(&mut self, echo: bool, delivered: u32) -> bool {
        let begins = self.board.lost() > 0 && !self.state.recovers();
        if begins {
            self.tally.fast_retransmits += 1;
            self.enter_recovery(echo, delivered);
        }
        begins
    }

    /// The window is reduced, and recovery begins.
    #[inline(never)]
    fn enter_recovery(&mut self, echo: bool, delivered: u32) {
        let again = self.board.again_in_flight();
        let undo = Undo::new(self.board.una(), again);
        if let State::Reduction(prr) = &self.state {
            // As in Linux, the reduction for a mark goes on to where it would have ended. It stands for the one that the loss asks for
            // (RFC 3168 §6.1.2), but not where marks are answered by less than a loss is (RFC 8257 §3.5).
            self.state = State::Recovery(prr.clone());
            self.undo = Some(undo);
            if self.ecn.as_ref().is_some_and(Ecn::is_scalable) {
                self.ssthresh = self.control.reduce(Cause::Loss, self.cwnd, self.cwnd).max(2.0);
            }
            return;
        }
        self.undo = Some(if echo { undo } else { undo.to(self.window()) });
        self.reduce_for_loss();
        self.state = State::Recovery(self.begin_reduction(delivered));
        self.recovery_point = self.board.max();
        self.probe = None;
    }

    /// As Linux does, from the window and not from what is in flight.
    fn reduce_for_loss(&mut self) {
        self.ssthresh = self.control.reduce(Cause::Loss, self.cwnd, self.cwnd).max(2.0);
        if let Some(ecn) = &mut self.ecn {
            ecn.on_reduction(self.board.max(), false);
        }
    }

    /// RFC 8985 §7.4.2: a probe has made good a loss. As in Linux the window is reduced at once and finally, without a recovery.
    /// A control that is told of losses is told of this one, too (draft-ietf-ccwg-bbr §5.5.10: also in TLP recovery).
    pub(super) fn answer_repaired_loss(&mut self, segment: u32, now: C) {
        self.undo = None;
        let window = self.window();
        if let Some(lost) = self.delivery.as_deref_mut().and_then(|d| d.probe_repaired(segment, now)) {
            self.control.lost(&lost, &window);
        }
        self.reduce_for_loss();
        self.state = State::Open;
        self.end_reduction();
    }

    /// Whether everything outstanding at the start of recovery is acknowledged. As in Linux, a reduction for a mark lasts until something
    /// is that was sent after it, with CWR.
    pub(super) fn has_recovered(&self) -> bool {
        let una = self.board.una();
        if matches!(self.state, State::Reduction(_)) {
            una > self.recovery_point
        } else {
            una >= self.recovery_point
        }
    }

    /// [What it takes](Sender::has_recovered) is acknowledged.
    pub(super) fn leave_recovery(&mut self) {
        let was = std::mem::replace(&mut self.state, State::Open);
        self.frto = None;
        if was.recovers() {
            self.rack.recovered();
        }
        if self.control.owns_window() || !matches!(was, State::Loss) {
            self.end_reduction();
        }
    }

    /// RFC 9937 §6.4: the window is what the reduction aimed at; or what its owner makes it.
    fn end_reduction(&mut self) {
        if self.control.owns_window() {
            let mut window = self.window();
            self.control.recovered(&mut window);
            self.cwnd = window.cwnd;
        } else {
            self.cwnd = self.ssthresh;
        }
    }
}

// F-RTO (RFC 5682): after a retransmission timeout two acknowledgements tell whether it was needless, as Linux has it.
//
// The first that advances is answered by new data instead of what counts as lost. What then arrives without having been sent again was on
// its way all the time: the timeout was spurious, and its reduction is undone. Linux asks at the first acknowledgement already, as SACK tells
// which segments it is of (RFC 5682 §3.1). As in Linux, not where losses were being recovered from when the timer expired, unless by an earlier
// timeout of the same segment.

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
    /// RFC 5682 §3.1, step 3b: the timeout was needless.
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

// Undoing a reduction of the window that was for nothing: once every segment that was sent again has arrived twice, as duplicate SACKs
// (RFC 2883 §5) tell, as Linux does it. RFC 3708 has the same test, with a slow start back to the old window.
//
// Linux also compares timestamps (RFC 3522), which no profile carries.

/// Linux's `tcp_current_ssthresh` (RFC 2861 §3): three quarters of a window that was in use, of whole segments.
pub fn current_ssthresh(window: Window) -> f64 {
    let cwnd = window.cwnd as u32;
    window.ssthresh.max(f64::from(cwnd / 2 + cwnd / 4))
}

/// A reduction for a loss.
#[derive(Clone, Debug)]
pub struct Undo {
    /// The values before the reduction; none if a mark asked for a reduction, too (`prior_ssthresh` is 0).
    prior: Option<Window>,
    /// SND.UNA at that time (`undo_marker`): segments below it are another recovery's.
    marker: u32,
    /// Retransmissions that have not arrived twice (`undo_retrans`); none before the first.
    in_doubt: Option<u32>,
}

impl Undo {
    /// A recovery begins with all before `una` acknowledged, and so many retransmissions in flight.
    pub fn new(una: u32, again: u32) -> Undo {
        Undo { prior: None, marker: una, in_doubt: (again > 0).then_some(again) }
    }

    /// It restores this window, which is about to be reduced.
    pub fn to(self, prior: Window) -> Undo {
        let ssthresh = current_ssthresh(prior);
        Undo { prior: Some(Window { ssthresh, ..prior }), ..self }
    }

    /// An ECN-Echo arrived: the reduction is due, whatever becomes of the loss (RFC 3168 §6.1.2).
    pub fn forbid(&mut self) {
        self.prior = None;
    }

    /// The values before the reduction, if they may be restored.
    pub fn prior(&self) -> Option<Window> {
        self.prior
    }

    /// A segment was sent again.
    pub fn sent_again(&mut self) {
        *self.in_doubt.get_or_insert(0) += 1;
    }

    /// A segment has arrived twice. True: so have all; nothing was lost.
    pub fn arrived_twice(&mut self, segment: u32) -> bool {
        if let Some(in_doubt) = self.in_doubt.as_mut().filter(|_| segment >= self.marker) {
            *in_doubt = in_doubt.saturating_sub(1);
        }
        self.in_doubt == Some(0)
    }
}

#[cfg(test)]
mod undo_tests {
    use super::*;

    /// RFC 2883 §5: only when each of them has arrived twice, and only those of this recovery count. RFC 2861 §3: the threshold is no less than
    /// three quarters of the window.
    #[test]
    fn all_have_to_arrive_twice() {
        let mut undo = Undo::new(7, 0).to(Window { cwnd: 40.0, ssthresh: 10.0 });
        assert!(!undo.arrived_twice(9), "nothing was sent again");
        undo.sent_again();
        undo.sent_again();
        assert!(!undo.arrived_twice(3), "of an earlier recovery");
        assert!(!undo.arrived_twice(7));
        assert!(undo.arrived_twice(8));
        assert_eq!(undo.prior(), Some(Window { cwnd: 40.0, ssthresh: 30.0 }));
        let mut undo = Undo::new(7, 1).to(Window { cwnd: 40.0, ssthresh: 50.0 });
        undo.sent_again();
        assert!(!undo.arrived_twice(7), "one was in flight before");
        assert_eq!(undo.prior().map(|window| window.ssthresh), Some(50.0));
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

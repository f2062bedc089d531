//! Losses: a recovery begins and ends (RFC 8985 §6.2, RFC 9937), and a timeout that proves needless is undone (RFC 5682).

use crate::clock::Clock;
use crate::tcp::control::Cause;
use crate::tcp::rfc::Ecn;

use super::acknowledgement::AckOutcome;
use super::frto::{Evidence, Step};
use super::undo::Undo;
use super::{Sender, State};

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

//! What is lost: a recovery begins and ends (RFC 8985 §6.2, RFC 9937), and a timeout that proves needless is undone (RFC 5682).

use crate::clock::Clock;
use crate::tcp::Ack;
use crate::tcp::control::Cause;

use super::acknowledgement::News;
use super::frto::{Evidence, Step};
use super::prr::Prr;
use super::undo::Undo;
use super::{Sender, State};

impl<C: Clock> Sender<C> {
    /// RFC 5682 §2.1, after the timer expired.
    pub(super) fn judge_timeout(&mut self, ack: &Ack<'_>, news: &News) {
        self.new_first = false;
        let Some(frto) = self.frto else { return };
        let told = Evidence {
            original: news.original.is_some_and(|number| number < frto.point),
            advanced: news.advanced,
            duplicate: !news.advanced || self.board.sacked() > 0 && !ack.sack.blocks().is_empty(),
            una: self.board.una(),
            next: self.board.max(),
            more: self.board.max() < self.limit(),
        };
        match frto.judge(&told) {
            Step::Wait => {}
            Step::SendNew => self.new_first = true,
            Step::Lost => self.frto = None,
            Step::Spurious => {
                // As Linux: nothing is lost, and the window is what it was.
                self.board.unmark_lost();
                self.cwnd = self.cwnd.max(frto.prior.cwnd);
                self.ssthresh = self.ssthresh.max(frto.prior.ssthresh);
                self.tell_undone();
                self.state = State::Open;
                self.frto = None;
                self.undo = None;
                self.una_timed_out = false;
            }
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

    /// Nothing was lost: window and threshold are at least what they were, and recovery is over.
    fn undo_reduction(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        if !self.control.owns_window() {
            self.cwnd = self.cwnd.max(undo.prior().cwnd);
            self.ssthresh = self.ssthresh.max(undo.prior().ssthresh);
        }
        if matches!(self.state, State::Loss) {
            self.board.unmark_lost();
            self.una_timed_out = false;
        }
        self.state = State::Open;
        self.frto = None;
        self.tell_undone();
    }

    fn tell_undone(&mut self) {
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
        let recovering = !matches!(self.state, State::Open);
        let found = self.rack.detect(&mut self.board, now, self.rto.srtt(), recovering);
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

    /// A loss that is not being recovered from begins a recovery.
    pub(super) fn recover_if_lost(&mut self) {
        if matches!(self.state, State::Open) && self.board.lost() > 0 {
            self.tally.fast_retransmits += 1;
            self.enter_recovery();
        }
    }

    /// The window is reduced, and recovery begins.
    pub(super) fn enter_recovery(&mut self) {
        let reacted = self.ecn.as_ref().is_some_and(|e| e.has_reacted_to_loss_of(self.board.una()));
        self.undo = None;
        if !reacted {
            self.undo = Some(Undo::new(self.window(), self.board.una(), self.board.again_in_flight()));
            // As Linux does, from the window and not from what is in flight.
            self.ssthresh = self.control.reduce(Cause::Loss, self.cwnd, self.cwnd).max(2.0);
            if let Some(ecn) = &mut self.ecn {
                ecn.on_reduction(self.board.max(), false);
            }
        }
        self.state = State::Recovery(Prr::new(self.cwnd));
        self.recovery_point = self.board.max();
        self.probe = None;
    }

    /// Everything outstanding at the start of recovery is acknowledged.
    pub(super) fn leave_recovery(&mut self) {
        if matches!(self.state, State::Recovery(_)) && !self.control.owns_window() {
            self.cwnd = self.ssthresh;
        }
        self.state = State::Open;
        self.frto = None;
        self.rack.recovered();
    }
}

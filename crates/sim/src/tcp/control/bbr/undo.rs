//! The state that a spurious loss recovery restores (§5.5.11): the model as it was when the recovery began, and the state that losses have ended.
//!
//! The sender marks losses before it begins to recover from them. The state is saved before the first of them is taken in, as the draft's text
//! has it ("when a loss recovery episode starts"); its pseudocode would save once more as recovery begins, and so what those losses have made of
//! the model.

use super::{Bbr, Law, Phase, State, Window};

/// BBR.undo_… (§2.15).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// BBR.undo_state: Startup or ProbeBW_UP, if losses have ended it.
    pub(super) state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
    /// A loss was noted, and the recovery from it has not begun.
    noted: bool,
}

impl Bbr {
    /// SaveStateUponLoss() (§5.5.11.1).
    fn save_state_upon_loss(&mut self, cwnd: f64) {
        self.save_cwnd(cwnd);
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
            noted: false,
        };
    }

    /// A segment is lost: the first from which no recovery is under way begins an episode.
    pub(super) fn note_first_loss(&mut self, cwnd: f64) {
        if self.phase == Phase::Open && !self.undo.noted {
            self.save_state_upon_loss(cwnd);
            self.undo.noted = true;
        }
    }

    /// OnEnterRTO(), OnEnterFastRecovery() (§5.6.4).
    pub(super) fn begin_episode(&mut self, cwnd: f64) {
        if std::mem::take(&mut self.undo.noted) {
            return self.save_cwnd(cwnd);
        }
        self.save_state_upon_loss(cwnd);
    }

    /// HandleSpuriousLossDetection() (§5.5.11.2).
    pub(super) fn handle_spurious_loss_detection(&mut self, window: &mut Window) {
        self.recovered(window);
        self.rounds.is_loss_in_round = false;
        self.reset_full_bw(0.0);
        let undo = std::mem::take(&mut self.undo);
        self.bw_shortterm = self.bw_shortterm.max(undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(undo.inflight_longterm);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    // EnterStartup() (§5.3.1).
                    self.state = State::Startup;
                }
            }
            Some(State::ProbeBwUp) if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => {
                self.start_probe_bw_refill(self.rounds.delivered);
            }
            _ => {}
        }
    }
}

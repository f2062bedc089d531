//! The shortest round-trip time, and ProbeRTT (§5.3.4): once in five seconds with half of the path's volume in flight, so that queues drain
//! and the time without them can be seen.

use super::{Acked, Bbr, Law, MIN_PIPE_CWND, Phase, State, Window, most};

/// BBR.MinRTTFilterLen, BBR.ProbeRTTDuration, BBR.ProbeRTTInterval (§2.16), in seconds.
const FILTER_LEN: f64 = 10.0;
const DURATION: f64 = 0.2;
const INTERVAL: f64 = 5.0;

/// The state of §2.16.
#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    /// BBR.min_rtt, and when it was measured.
    pub(super) value: f64,
    stamp: f64,
    /// BBR.probe_rtt_min_delay: the shortest of the last interval.
    recent: f64,
    recent_stamp: f64,
    /// BBR.probe_rtt_done_stamp.
    pub(super) done_at: Option<f64>,
    expired: bool,
    round_done: bool,
}

impl Default for MinRtt {
    fn default() -> MinRtt {
        MinRtt {
            value: f64::INFINITY,
            stamp: 0.0,
            recent: f64::INFINITY,
            recent_stamp: 0.0,
            expired: false,
            done_at: None,
            round_done: false,
        }
    }
}

impl MinRtt {
    /// The connection begins.
    pub(super) fn begin(&mut self, now: f64) {
        self.stamp = now;
        self.recent_stamp = now;
    }
}

impl Bbr {
    /// UpdateMinRTT() (§5.3.4).
    pub(super) fn update_min_rtt(&mut self, a: Acked) {
        let m = &mut self.min_rtt;
        m.expired = a.now > m.recent_stamp + INTERVAL;
        if let Some(rtt) = a.rtt
            && (rtt < m.recent || m.expired)
        {
            (m.recent, m.recent_stamp) = (rtt, a.now);
        }
        if m.recent < m.value || a.now > m.stamp + FILTER_LEN {
            (m.value, m.stamp) = (m.recent, m.recent_stamp);
        }
    }

    /// CheckProbeRTT() (§5.3.4): the window, which it may restore.
    #[inline(always)]
    pub(super) fn check_probe_rtt(&mut self, a: Acked) -> f64 {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd(a.cwnd);
            self.min_rtt.done_at = None;
            self.stop_probe(a.rs.total);
        }
        self.idle_restart &= a.rs.delivered == 0;
        if self.state != State::ProbeRtt {
            return a.cwnd;
        }
        self.handle_probe_rtt(a.now, a.rs.total, a.inflight, a.cwnd)
    }

    /// HandleProbeRTT() (§5.3.4): the window that follows.
    #[inline(never)]
    fn handle_probe_rtt(&mut self, now: f64, delivered: u32, inflight: f64, cwnd: f64) -> f64 {
        if self.min_rtt.done_at.is_some() {
            self.min_rtt.round_done |= self.rounds.start;
            if self.min_rtt.round_done {
                return self.check_probe_rtt_done(now, delivered, cwnd);
            }
        } else if inflight <= self.probe_rtt_cwnd() {
            self.min_rtt.done_at = Some(now + DURATION);
            self.min_rtt.round_done = false;
            self.rounds.begin(delivered);
        }
        cwnd
    }

    /// CheckProbeRTTDone() (§5.3.4): the window that follows.
    #[inline(never)]
    pub(super) fn check_probe_rtt_done(&mut self, now: f64, delivered: u32, cwnd: f64) -> f64 {
        if self.min_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return cwnd;
        }
        self.min_rtt.recent_stamp = now;
        // ExitProbeRTT().
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down(now, delivered);
            self.state = State::ProbeBwCruise;
        } else {
            self.state = State::Startup;
        }
        cwnd.max(self.prior_cwnd)
    }

    /// ProbeRTTCwnd() (§5.6.4).
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        most(self.bdp(State::ProbeRtt.gains().1), MIN_PIPE_CWND)
    }
}

// The state that a spurious loss recovery restores (§5.5.11): the model as it was when the recovery began, and the state that losses have ended.
//
// The sender marks losses before it begins to recover from them. The state is saved before the first of them is taken in, as the draft's text
// has it ("when a loss recovery episode starts"); its pseudocode would save once more as recovery begins, and so what those losses have made of
// the model.

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

#[cfg(test)]
mod tests {
    use super::super::{Phase, RateSample};
    use super::*;

    /// §5.3.4: SaveCwnd() follows EnterProbeRTT(), and so keeps a larger window that was saved before (§5.6.4).
    #[test]
    fn entering_forgets_no_larger_window() {
        let rs = RateSample {
            delivered: 1,
            interval: 0.1,
            app_limited: false,
            lost: 0,
            tx_in_flight: 50,
            total: 1000,
            total_lost: 0,
            round_start: false,
        };
        for (saved, then) in [(80.0, 80.0), (20.0, 50.0)] {
            let mut bbr = Bbr { prior_cwnd: saved, ..Bbr::default() };
            bbr.min_rtt.expired = true;
            bbr.check_probe_rtt(Acked {
                now: 9.0,
                rs,
                rate: 10.0,
                rtt: Some(0.1),
                newly_acked: 1.0,
                inflight: 50.0,
                cwnd: 50.0,
                phase: Phase::Open,
            });
            assert_eq!((bbr.state, bbr.prior_cwnd), (State::ProbeRtt, then));
        }
    }
}

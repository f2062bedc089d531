//! BBR, version 3 (draft-ietf-ccwg-bbr, after its revision 06): a model of the path, made of the delivery rate, the shortest round-trip time and
//! the losses that come with probing, decides how fast segments leave and how many are in flight.
//!
//! The draft's names are kept (BBR.…, C.… for the connection, RS.… for the rate sample); volumes are in segments where it has bytes, so
//! C.SMSS is 1. Where its text and its pseudocode differ the pseudocode counts, but for when the state is saved that a spurious recovery
//! restores ([`undo`]). Not implemented: a response to ECN, which the draft does not specify.

#[cfg(test)]
mod appendix_tests;
mod model;
mod probe_bw;
mod probe_rtt;
#[cfg(test)]
mod tests;

use inprofile_core::rng::Rng;

use super::{Cause, Law, Lost, Phase, RateSample, Sample, Start, Window, least, most};
use model::{EarlierAhead, LongestAhead, Rounds};
use probe_bw::Probing;
use probe_rtt::MinRtt;
use probe_rtt::Undo;

/// BBR.StartupPacingGain, BBR.DrainPacingGain, BBR.DefaultCwndGain (§2.5, §2.6).
const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const CWND_GAIN: f64 = 2.0;
/// 1 − BBR.PacingMarginPercent (§2.5).
const PACING_MARGIN: f64 = 0.99;
/// BBR.LossThresh, BBR.Beta, BBR.Headroom, BBR.MinPipeCwnd (§2.8).
const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const MIN_PIPE_CWND: f64 = 4.0;
/// BBRStartupFullLossCnt (§5.3.1): so many ranges of segments are lost in a round trip.
const FULL_LOSS_COUNT: u32 = 6;
/// §5.6.3: the largest C.send_quantum, in bytes.
const LARGEST_QUANTUM: f64 = 65_536.0;

/// BBR.state (§5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

impl State {
    /// §5.6.1, the table: BBR.pacing_gain and BBR.cwnd_gain.
    fn gains(self) -> (f64, f64) {
        match self {
            State::Startup => (STARTUP_PACING_GAIN, CWND_GAIN),
            State::Drain => (DRAIN_PACING_GAIN, CWND_GAIN),
            State::ProbeBwDown => (0.9, CWND_GAIN),
            State::ProbeBwCruise | State::ProbeBwRefill => (1.0, CWND_GAIN),
            State::ProbeBwUp => (1.25, 2.25),
            State::ProbeRtt => (1.0, 0.5),
        }
    }

    /// IsInAProbeBWState() (§5.3.3).
    fn probes_bw(self) -> bool {
        matches!(self, State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp)
    }

    /// IsProbingBW() (§5.3.3).
    fn accelerates(self) -> bool {
        matches!(self, State::Startup | State::ProbeBwRefill | State::ProbeBwUp)
    }
}

/// The values that every step of one acknowledgement works with. Steps that are rarely taken are given those that they need instead: none has to be
/// kept in memory for them.
#[derive(Clone, Copy, Debug)]
struct Acked {
    now: f64,
    rs: RateSample,
    /// RS.delivery_rate, in segments a second; 0 where none could be told.
    rate: f64,
    rtt: Option<f64>,
    newly_acked: f64,
    inflight: f64,
    cwnd: f64,
    phase: Phase,
}

/// The state of one connection; volumes in segments, times in seconds. What every acknowledgement asks comes first, in four cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Bbr {
    state: State,
    /// As of the last acknowledgement.
    phase: Phase,
    full_bw_reached: bool,
    full_bw_now: bool,
    idle_restart: bool,
    max_bw: f64,
    bw: f64,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    /// C.pacing_rate; 0 before one is set.
    pacing_rate: f64,
    /// BBR.max_bw_filter: of the previous cycle of ProbeBW, and of this one.
    max_bw_filter: [f64; 2],
    inflight_longterm: f64,
    /// The most segments of a quantum.
    largest_quantum: f64,
    /// BBR.bw_latest, BBR.inflight_latest.
    latest: (f64, f64),
    rounds: Rounds,
    min_rtt: MinRtt,
    ahead: LongestAhead,
    probing: Probing,
    initial_cwnd: f64,
    prior_cwnd: f64,
    undo: Undo,
    earlier_ahead: EarlierAhead,
    full_bw: f64,
    full_bw_count: u32,
    drain_start_round: u32,
    rng: Rng,
}

impl Default for Bbr {
    /// OnInit() (§5.2.1).
    fn default() -> Bbr {
        Bbr {
            state: State::Startup,
            drain_start_round: 0,
            initial_cwnd: 10.0,
            largest_quantum: LARGEST_QUANTUM,
            rng: Rng::for_component(0, "bbr"),
            rounds: Rounds::default(),
            max_bw_filter: [0.0; 2],
            max_bw: 0.0,
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            latest: (0.0, 0.0),
            full_bw_reached: false,
            full_bw_now: false,
            full_bw: 0.0,
            full_bw_count: 0,
            ahead: LongestAhead::default(),
            earlier_ahead: EarlierAhead::default(),
            min_rtt: MinRtt::default(),
            probing: Probing::default(),
            idle_restart: false,
            prior_cwnd: 0.0,
            undo: Undo::default(),
            phase: Phase::Open,
            pacing_rate: 0.0,
        }
    }
}

impl Bbr {
    /// CheckStartupDone() (§5.3.1).
    #[inline(always)]
    fn check_startup_done(&mut self, a: Acked) {
        if self.state != State::Startup {
            return;
        }
        self.check_startup_high_loss(a.phase, a.rs.lost, a.rs.tx_in_flight);
        if self.full_bw_reached {
            // EnterDrain() (§5.3.2).
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count;
        }
    }

    /// CheckStartupHighLoss() (§5.3.1): a round trip in fast recovery, with more than 2 % lost, in six ranges.
    #[inline(never)]
    fn check_startup_high_loss(&mut self, phase: Phase, lost: u32, tx_in_flight: u32) {
        if self.rounds.loss_round_start
            && phase == Phase::Recovery
            && self.rounds.lost_ranges >= FULL_LOSS_COUNT
            && inflight_too_high(f64::from(lost), f64::from(tx_in_flight))
        {
            self.undo.state = Some(State::Startup);
            self.full_bw_now = true;
            self.full_bw_reached = true;
            self.inflight_longterm = most(self.bdp(1.0), self.latest.1);
        }
    }

    /// ResetFullBW() (§5.3.1).
    fn reset_full_bw(&mut self, full_bw: f64) {
        self.full_bw = full_bw;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// CheckFullBWReached() (§5.3.1): three round trips in which the rate grows by less than a quarter.
    #[inline(always)]
    fn check_full_bw_reached(&mut self, a: Acked) {
        if self.full_bw_now || !self.rounds.start || a.rs.app_limited {
            return;
        }
        if a.rate >= self.full_bw * 1.25 {
            return self.reset_full_bw(a.rate);
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= 3;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// CheckDrainDone() (§5.3.2).
    #[inline(always)]
    fn check_drain_done(&mut self, a: Acked) {
        if self.state != State::Drain {
            return;
        }
        let drained = a.inflight <= self.inflight(self.bw, 1.0);
        if drained || self.rounds.count > self.drain_start_round + 3 {
            self.start_probe_bw_down(a.now, a.rs.total);
        }
    }

    /// BDPMultiple() (§5.6.4).
    fn bdp(&self, gain: f64) -> f64 {
        self.bdp_at(self.bw, gain)
    }

    fn bdp_at(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt.value.is_finite() { gain * bw * self.min_rtt.value } else { self.initial_cwnd }
    }

    /// C.send_quantum (§5.6.3).
    fn quantum(&self) -> f64 {
        most(least(self.pacing_rate * 1e-3, self.largest_quantum), 2.0)
    }

    /// QuantizationBudget() (§5.6.4), with the budget of TCP's offloading (§5.5.8).
    fn quantization_budget(&self, cap: f64) -> f64 {
        let budget = most(most(cap, 3.0 * self.quantum()), MIN_PIPE_CWND);
        if self.state == State::ProbeBwUp { budget + 2.0 } else { budget }
    }

    /// Inflight() (§5.6.4).
    fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_at(bw, gain))
    }

    /// SetPacingRateWithGain() (§5.6.2).
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * PACING_MARGIN;
        if self.full_bw_reached && rate > 0.0 || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// SetCwnd() (§5.6.4): what C.cwnd becomes.
    #[inline(always)]
    fn cwnd(&self, a: Acked) -> f64 {
        let gain = self.state.gains().1;
        let max_inflight = self.quantization_budget(self.bdp(gain) + self.ahead.extra_acked());
        let mut cwnd = a.cwnd;
        if self.full_bw_reached {
            cwnd = least(cwnd + a.newly_acked, max_inflight);
        } else if cwnd < max_inflight || f64::from(a.rs.total) < self.initial_cwnd {
            cwnd += a.newly_acked;
        }
        cwnd = most(cwnd, MIN_PIPE_CWND);
        if self.state == State::ProbeRtt {
            // BoundCwndForProbeRTT() (§5.6.4).
            cwnd = least(cwnd, self.probe_rtt_cwnd());
        }
        self.bound_for_model(cwnd)
    }

    /// BoundCwndForModel() (§5.6.4).
    fn bound_for_model(&self, cwnd: f64) -> f64 {
        let cap = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        least(cwnd, most(least(cap, self.inflight_shortterm), MIN_PIPE_CWND))
    }

    /// SaveCwnd() (§5.6.4).
    fn save_cwnd(&mut self, cwnd: f64) {
        let unmodulated = self.phase == Phase::Open && self.state != State::ProbeRtt;
        self.prior_cwnd = if unmodulated { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// OnInit() (§5.2.1): the handshake is over. A SYN that was sent twice leaves its round-trip time unknown.
    #[cold]
    fn connected(&mut self, now: f64, srtt: f64) {
        self.min_rtt.begin(now);
        self.ahead.restart(now);
        if srtt > 0.0 {
            self.min_rtt.value = srtt;
        }
        self.pacing_rate = self.initial_pacing_rate(srtt);
    }

    /// InitPacingRate() (§5.6.2).
    fn initial_pacing_rate(&self, srtt: f64) -> f64 {
        STARTUP_PACING_GAIN * self.initial_cwnd / if srtt > 0.0 { srtt } else { 1e-3 }
    }
}

/// IsInflightTooHigh() (§5.5.10).
fn inflight_too_high(lost: f64, tx_in_flight: f64) -> bool {
    lost > tx_in_flight * LOSS_THRESH
}

impl Law for Bbr {
    fn begin(&mut self, start: &Start) {
        self.initial_cwnd = f64::from(start.initial_window);
        self.largest_quantum = LARGEST_QUANTUM / f64::from(start.segment);
        self.rng = Rng::for_component(start.random.to_bits(), "bbr");
    }

    /// UpdateOnACK() (§5.2.3).
    #[inline(always)]
    fn acknowledged(&mut self, sample: &Sample, window: &mut Window) -> bool {
        self.phase = sample.phase;
        let Some(rs) = sample.rate else { return true };
        if rs.total <= 1 {
            // The handshake says nothing of the rate.
            self.connected(sample.now, sample.srtt);
            return true;
        }
        let mut a = Acked {
            now: sample.now,
            rs,
            rate: if rs.interval > 0.0 { f64::from(rs.delivered) / rs.interval } else { 0.0 },
            rtt: sample.rtt,
            newly_acked: f64::from(sample.delivered),
            inflight: f64::from(sample.in_flight),
            cwnd: window.cwnd,
            phase: sample.phase,
        };
        // UpdateModelAndState() (§5.2.3).
        self.update_latest_delivery_signals(a);
        self.update_congestion_signals(a, sample.limited);
        self.update_ack_aggregation(a);
        self.check_full_bw_reached(a);
        self.check_startup_done(a);
        self.check_drain_done(a);
        self.update_probe_bw_cycle_phase(a);
        self.update_min_rtt(a);
        a.cwnd = self.check_probe_rtt(a);
        self.advance_latest_delivery_signals(a);
        // BoundBWForModel() (§5.5.10).
        self.bw = least(self.max_bw, self.bw_shortterm);
        // UpdateControlParameters() (§5.2.3).
        self.set_pacing_rate(self.state.gains().0);
        window.cwnd = self.cwnd(a);
        true
    }

    fn lost(&mut self, lost: &Lost, window: &Window) {
        self.handle_lost_packet(lost, window.cwnd);
    }

    /// OnEnterRTO(), OnEnterFastRecovery() (§5.6.4). There is no slow-start threshold.
    fn reduce(&mut self, cause: Cause, cwnd: f64, _: f64) -> f64 {
        self.begin_episode(cwnd);
        self.phase = if cause == Cause::Timeout { Phase::Loss } else { Phase::Recovery };
        f64::INFINITY
    }

    /// OnEnterRTO() (§5.6.4), in a recovery that goes on.
    fn timed_out_again(&mut self, cwnd: f64) {
        self.save_cwnd(cwnd);
        self.phase = Phase::Loss;
    }

    /// RestoreCwnd() (§5.6.4), on leaving recovery of either kind.
    fn recovered(&mut self, window: &mut Window) {
        window.cwnd = most(window.cwnd, self.prior_cwnd);
        self.phase = Phase::Open;
    }

    fn undone(&mut self, window: &mut Window) {
        self.handle_spurious_loss_detection(window);
    }

    fn avoid(&mut self, cwnd: f64, _: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        cwnd
    }

    /// HandleRestartFromIdle() (§5.4.1).
    fn restarts_from_idle(&mut self, now: f64, window: &mut Window) {
        self.idle_restart = true;
        self.ahead.restart(now);
        if self.state.probes_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            window.cwnd = self.check_probe_rtt_done(now, self.rounds.delivered, window.cwnd);
        }
    }

    fn restarts_slowly(&self) -> bool {
        false
    }

    fn pacing_rate(&self, _: &Window, _: u32, srtt: f64) -> Option<f64> {
        Some(if self.pacing_rate > 0.0 { self.pacing_rate } else { self.initial_pacing_rate(srtt) })
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn wants_rate(&self) -> bool {
        true
    }

    /// HandleProbeRTT() (§5.3.4): low rates in ProbeRTT say nothing of the path.
    fn limits_itself(&self) -> bool {
        self.state == State::ProbeRtt
    }
}

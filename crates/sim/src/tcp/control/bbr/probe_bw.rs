//! ProbeBW (§5.3.3): in turn slower than the path delivers, as fast, and faster, to see whether there is more.

use super::{Acked, Bbr, HEADROOM, MIN_PIPE_CWND, State, inflight_too_high, least, most};

/// IsRenoCoexistenceProbeTime() (§5.3.3): the most round trips between two probes.
const MOST_ROUNDS: f64 = 63.0;

/// BBR.ack_phase (§2.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The state of §2.14.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Probing {
    ack_phase: AckPhase,
    pub(super) is_bw_probe_sample: bool,
    pub(super) prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    pub(super) rounds_since_probe_up: u32,
    wait: f64,
    /// BBR.cycle_stamp.
    cycle_began: f64,
    up_acked: f64,
    /// BBR.probe_up_acked_per_inc.
    acked_per_increase: f64,
    up_rounds: u32,
}

impl Default for Probing {
    fn default() -> Probing {
        Probing {
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            up_acked: 0.0,
            acked_per_increase: f64::INFINITY,
            up_rounds: 0,
            rounds_since_probe_up: 0,
            wait: 0.0,
            cycle_began: 0.0,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
        }
    }
}

impl Bbr {
    /// UpdateProbeBWCyclePhase() (§5.3.3).
    #[inline(always)]
    pub(super) fn update_probe_bw_cycle_phase(&mut self, a: Acked) {
        if !self.full_bw_reached || self.adapt_long_term_model(a) {
            return;
        }
        let state = self.state;
        match state {
            State::ProbeBwDown if self.is_time_to_probe_bw(a) => self.start_probe_bw_refill(a.rs.total),
            State::ProbeBwDown if self.is_time_to_cruise(a) => self.state = State::ProbeBwCruise,
            State::ProbeBwCruise if self.is_time_to_probe_bw(a) => self.start_probe_bw_refill(a.rs.total),
            State::ProbeBwRefill if self.rounds.start => {
                self.probing.is_bw_probe_sample = true;
                self.start_probe_bw_up(a.rs.total, a.rate, a.cwnd);
            }
            State::ProbeBwUp if self.is_time_to_go_down(a.inflight, a.cwnd, a.rate) => {
                self.probing.prev_probe_too_high = false;
                self.start_probe_bw_down(a.now, a.rs.total);
            }
            _ => {}
        }
    }

    /// StartProbeBW_DOWN() (§5.3.3), with PickProbeWait().
    #[inline(never)]
    pub(super) fn start_probe_bw_down(&mut self, now: f64, delivered: u32) {
        self.reset_congestion_signals();
        let p = &mut self.probing;
        p.acked_per_increase = f64::INFINITY;
        p.rounds_since_probe_up = u32::from(self.rng.uniform() < 0.5);
        p.wait = 2.0 + self.rng.uniform();
        p.cycle_began = now;
        p.ack_phase = AckPhase::ProbeStopping;
        self.rounds.begin(delivered);
        self.state = State::ProbeBwDown;
    }

    /// StartProbeBW_REFILL() (§5.3.3).
    #[inline(never)]
    pub(super) fn start_probe_bw_refill(&mut self, delivered: u32) {
        self.reset_short_term_model();
        let p = &mut self.probing;
        p.up_rounds = 0;
        p.up_acked = 0.0;
        p.prev_probe_precautionary = false;
        p.ack_phase = AckPhase::Refilling;
        self.rounds.begin(delivered);
        self.state = State::ProbeBwRefill;
    }

    /// StartProbeBW_UP() (§5.3.3).
    #[inline(never)]
    fn start_probe_bw_up(&mut self, delivered: u32, rate: f64, cwnd: f64) {
        self.probing.ack_phase = AckPhase::ProbeStarting;
        self.rounds.begin(delivered);
        self.reset_full_bw(rate);
        self.state = State::ProbeBwUp;
        self.raise_inflight_longterm_slope(cwnd);
    }

    /// CheckProbeRTT() (§5.3.4): the acknowledgements of a probe end with it.
    pub(super) fn stop_probe(&mut self, delivered: u32) {
        self.probing.ack_phase = AckPhase::ProbeStopping;
        self.rounds.begin(delivered);
    }

    /// IsTimeToProbeBW() (§5.3.3): two to three seconds have passed, or as many round trips as Reno needs to recover.
    #[inline(always)]
    fn is_time_to_probe_bw(&self, a: Acked) -> bool {
        let rounds = least(self.target_inflight(a.cwnd), MOST_ROUNDS);
        a.now > self.probing.cycle_began + self.probing.wait
            || f64::from(self.probing.rounds_since_probe_up) >= rounds
    }

    /// TargetInflight() (§5.3.3).
    pub(super) fn target_inflight(&self, cwnd: f64) -> f64 {
        least(self.bdp(1.0), cwnd)
    }

    /// IsTimeToCruise() (§5.3.3).
    #[inline(always)]
    fn is_time_to_cruise(&self, a: Acked) -> bool {
        a.inflight <= self.inflight_with_headroom() && a.inflight <= self.inflight(self.max_bw, 1.0)
    }

    /// IsTimeToGoDown() (§5.3.3).
    fn is_time_to_go_down(&mut self, inflight: f64, cwnd: f64, rate: f64) -> bool {
        if self.probing.prev_probe_too_high && inflight >= self.inflight_longterm {
            // Precautionary probing: the last probe went too high.
            self.probing.prev_probe_precautionary = true;
            return true;
        }
        if self.rounds.cwnd_limited && cwnd >= self.inflight_longterm {
            // The limit is our own, and says nothing of the path.
            self.reset_full_bw(rate);
            return false;
        }
        self.full_bw_now
    }

    /// InflightWithHeadroom() (§5.3.3).
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = most(HEADROOM * self.inflight_longterm, 1.0);
        most(self.inflight_longterm - headroom, MIN_PIPE_CWND)
    }

    /// RaiseInflightLongtermSlope() (§5.3.3).
    fn raise_inflight_longterm_slope(&mut self, cwnd: f64) {
        let p = &mut self.probing;
        let growth_this_round = f64::from(1u32 << p.up_rounds);
        p.up_rounds = (p.up_rounds + 1).min(30);
        p.acked_per_increase = (cwnd / growth_this_round).max(1.0);
    }

    /// ProbeInflightLongtermUpward() (§5.3.3).
    fn probe_inflight_longterm_upward(&mut self, cwnd: f64, newly_acked: f64) {
        if !self.rounds.cwnd_limited || cwnd < self.inflight_longterm {
            return;
        }
        let p = &mut self.probing;
        p.up_acked += newly_acked;
        if p.up_acked >= p.acked_per_increase {
            let delta = (p.up_acked / p.acked_per_increase).floor();
            p.up_acked -= delta * p.acked_per_increase;
            self.inflight_longterm += delta;
        }
        if self.rounds.start {
            self.raise_inflight_longterm_slope(cwnd);
        }
    }

    /// AdaptLongTermModel() (§5.3.3). True: it has decided on the next state.
    #[inline(always)]
    fn adapt_long_term_model(&mut self, a: Acked) -> bool {
        let p = &mut self.probing;
        if p.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            p.ack_phase = AckPhase::ProbeFeedback;
        }
        if p.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            p.is_bw_probe_sample = false;
            p.ack_phase = AckPhase::Init;
            let again = p.prev_probe_precautionary && !p.prev_probe_too_high;
            if self.state.probes_bw() {
                if !a.rs.app_limited {
                    self.advance_max_bw_filter();
                }
                if again {
                    // Precautionary probing went well: at once again, and this time further.
                    self.start_probe_bw_refill(a.rs.total);
                    return true;
                }
            }
        }
        let tx_in_flight = f64::from(a.rs.tx_in_flight);
        if !inflight_too_high(f64::from(a.rs.lost), tx_in_flight) && self.inflight_longterm.is_finite() {
            self.inflight_longterm = most(self.inflight_longterm, tx_in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward(a.cwnd, a.newly_acked);
            }
        }
        false
    }
}

//! The model of the path (§5.5): round trips, bandwidth, what comes ahead of its time, and what losses say.

use super::{Acked, BETA, Bbr, LOSS_THRESH, Lost, State, inflight_too_high, least, most};

/// BBR.ExtraAckedFilterLen (§2.12).
const EXTRA_ACKED_ROUNDS: usize = 10;

/// Round trips, timed by packets (§5.5.1), and those that losses are judged by (§5.5.10).
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// BBR.round_count.
    pub(super) count: u32,
    /// BBR.round_start.
    pub(super) start: bool,
    /// C.delivered.
    pub(super) delivered: u32,
    next_round_delivered: u32,
    pub(super) loss_round_start: bool,
    loss_round_delivered: u32,
    pub(super) is_loss_in_round: bool,
    /// Ranges of segments lost in this round trip, and one past the last such segment.
    pub(super) lost_ranges: u32,
    lost_end: u32,
    /// C.is_cwnd_limited: the window was full at some point of the last round trip.
    pub(super) cwnd_limited: bool,
}

impl Rounds {
    /// StartRound() (§5.5.1).
    pub(super) fn begin(&mut self, delivered: u32) {
        self.next_round_delivered = delivered;
    }
}

/// The estimate of aggregation (§5.5.9): by how much acknowledgements come ahead of the bandwidth.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct LongestAhead {
    interval_start: f64,
    delivered: f64,
    /// BBR.extra_acked_filter: the most of this round trip, and of the earlier ones that count.
    current: f64,
    earlier: f64,
}

/// The most of each of the last round trips but the current one, the last one at `at`.
#[derive(Clone, Debug, Default)]
pub(super) struct EarlierAhead {
    by_round: [f64; EXTRA_ACKED_ROUNDS - 1],
    at: usize,
}

impl LongestAhead {
    /// The interval begins now.
    pub(super) fn restart(&mut self, now: f64) {
        self.interval_start = now;
        self.delivered = 0.0;
    }

    /// So much came ahead of its time.
    #[inline(always)]
    pub(super) fn note(&mut self, extra: f64) {
        self.current = most(self.current, extra);
    }

    /// BBR.extra_acked.
    pub(super) fn extra_acked(&self) -> f64 {
        most(self.current, self.earlier)
    }

    /// A round trip begins; `earlier`: the filter reaches back beyond it (BBR.ExtraAckedFilterLen), otherwise not.
    #[inline(never)]
    pub(super) fn next_round(&mut self, past: &mut EarlierAhead, earlier: bool) {
        if earlier {
            past.at = (past.at + 1) % past.by_round.len();
            past.by_round[past.at] = self.current;
        } else {
            // What Startup does not remember, nothing later does.
            *past = EarlierAhead::default();
        }
        self.current = 0.0;
        self.earlier = past.by_round.iter().copied().fold(0.0, f64::max);
    }
}

impl Bbr {
    /// UpdateLatestDeliverySignals() (§5.5.10).
    pub(super) fn update_latest_delivery_signals(&mut self, a: Acked) {
        let r = &mut self.rounds;
        r.delivered = a.rs.total;
        self.latest = (most(self.latest.0, a.rate), most(self.latest.1, f64::from(a.rs.delivered)));
        r.loss_round_start = a.rs.total - a.rs.delivered >= r.loss_round_delivered;
        if r.loss_round_start {
            r.loss_round_delivered = a.rs.total;
        }
    }

    /// AdvanceLatestDeliverySignals() (§5.5.10).
    pub(super) fn advance_latest_delivery_signals(&mut self, a: Acked) {
        if self.rounds.loss_round_start {
            self.latest = (a.rate, f64::from(a.rs.delivered));
            self.rounds.lost_ranges = 0;
        }
    }

    /// ResetCongestionSignals() (§5.5.10).
    pub(super) fn reset_congestion_signals(&mut self) {
        self.rounds.is_loss_in_round = false;
        self.latest = (0.0, 0.0);
    }

    /// ResetShortTermModel() (§5.5.10).
    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// UpdateCongestionSignals() (§5.5.10).
    #[inline(always)]
    pub(super) fn update_congestion_signals(&mut self, a: Acked, limited: bool) {
        self.update_max_bw(a, limited);
        if !self.rounds.loss_round_start {
            return;
        }
        // AdaptLowerBoundsFromCongestion(), with InitLowerBounds() and LossLowerBounds().
        if !self.state.accelerates() && self.rounds.is_loss_in_round {
            let bw = if self.bw_shortterm.is_finite() { self.bw_shortterm } else { self.max_bw };
            let inflight = if self.inflight_shortterm.is_finite() { self.inflight_shortterm } else { a.cwnd };
            self.bw_shortterm = self.latest.0.max(BETA * bw);
            self.inflight_shortterm = self.latest.1.max(BETA * inflight);
        }
        self.rounds.is_loss_in_round = false;
    }

    /// UpdateMaxBw() (§5.5.5), with UpdateRound() (§5.5.1).
    #[inline(always)]
    fn update_max_bw(&mut self, a: Acked, limited: bool) {
        let r = &mut self.rounds;
        r.start = a.rs.total - a.rs.delivered >= r.next_round_delivered;
        if r.start {
            r.begin(a.rs.total);
            r.count += 1;
            self.probing.rounds_since_probe_up += 1;
            self.ahead.next_round(&mut self.earlier_ahead, self.full_bw_reached);
        }
        r.cwnd_limited = limited;
        // §5.5.4: what the application has limited counts only where it is more.
        if a.rate > 0.0 && (a.rate >= self.max_bw || !a.rs.app_limited) {
            self.max_bw_filter[1] = most(self.max_bw_filter[1], a.rate);
            self.max_bw = most(self.max_bw_filter[0], self.max_bw_filter[1]);
        }
    }

    /// AdvanceMaxBwFilter() (§5.5.6): two cycles are remembered, this one and the one before. One without a sample is none.
    pub(super) fn advance_max_bw_filter(&mut self) {
        if self.max_bw_filter[1] > 0.0 {
            self.max_bw_filter = [self.max_bw_filter[1], 0.0];
        }
    }

    /// UpdateACKAggregation() (§5.5.9).
    pub(super) fn update_ack_aggregation(&mut self, a: Acked) {
        let ahead = &mut self.ahead;
        let mut expected = self.bw * (a.now - ahead.interval_start);
        if ahead.delivered <= expected {
            ahead.restart(a.now);
            expected = 0.0;
        }
        ahead.delivered += a.newly_acked;
        ahead.note(least(ahead.delivered - expected, a.cwnd));
    }

    /// HandleLostPacket() (§5.5.10).
    pub(super) fn handle_lost_packet(&mut self, lost: &Lost, cwnd: f64) {
        // NoteLoss().
        self.note_first_loss(cwnd);
        let r = &mut self.rounds;
        if !r.is_loss_in_round {
            r.loss_round_delivered = lost.delivered;
            r.lost_ranges = 0;
            self.save_cwnd(cwnd);
        }
        let r = &mut self.rounds;
        r.is_loss_in_round = true;
        r.lost_ranges += u32::from(lost.segment != r.lost_end || r.lost_ranges == 0);
        r.lost_end = lost.segment + 1;
        if !self.probing.is_bw_probe_sample {
            return;
        }
        let (since, tx_in_flight) = (f64::from(lost.since), f64::from(lost.tx_in_flight));
        if inflight_too_high(since, tx_in_flight) {
            self.handle_inflight_too_high(lost, inflight_at_loss(since, tx_in_flight), cwnd);
        }
    }

    /// HandleInflightTooHigh() (§5.5.10).
    fn handle_inflight_too_high(&mut self, lost: &Lost, at_loss: f64, cwnd: f64) {
        self.probing.prev_probe_too_high = true;
        // One reaction to each probe.
        self.probing.is_bw_probe_sample = false;
        if !lost.app_limited {
            self.inflight_longterm = at_loss.max(self.target_inflight(cwnd) * BETA);
        }
        if self.state == State::ProbeBwUp {
            self.undo.state = Some(State::ProbeBwUp);
            self.start_probe_bw_down(lost.now, lost.delivered);
        }
    }
}

/// InflightAtLoss() (§5.5.10): what was in flight when losses reached the threshold, with segments as packets of size 1.
fn inflight_at_loss(lost: f64, tx_in_flight: f64) -> f64 {
    let (inflight_prev, lost_prev) = (tx_in_flight - 1.0, lost - 1.0);
    inflight_prev + (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH)
}

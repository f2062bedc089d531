//! Where Linux's `sch_pie` departs from RFC 8033 (as of 6.1; `variant = "linux"`).
//!
//! - The current delay decides whether an arrival is safe; in the RFC it is that of the last update (§4.1). An arrival that finds
//!   exactly two packets' bytes waiting may be dropped; in the RFC it may not.
//! - The burst allowance is reduced by the time between departures, not by updates (§4.4). The update that finds congestion over
//!   renews it and restarts all measurements. While it lasts, nothing is accumulated for §5.4.
//! - A mark at an accumulated probability of 8.5 does not reset the sum (§5.4). At a drop probability of exactly 10 % packets are
//!   still marked (§5.1).
//! - Above a delay of 250 ms each step is larger by 2 %. The probability may exceed 1: only the width of its integer bounds it, at
//!   256. A delay of 0 means an idle queue only if no packet is waiting.
//! - With `delay_from = "dequeue_rate"` the rate, not its inverse, is smoothed, by 1/8, in whole 1/256 B for each tick of 64 ns.
//!
//! Not part of the law: the kernel's timer, whose period is rounded up to whole ticks of its clock, and one tick longer.

use super::{CAP, Control, DelayFrom, EARLY, NOT_TOO_HIGH, Params, QueueState, Vars, step};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::units::{Duration, Time};
use crate::verdict::{Admission, Why};

/// Linux's unit of time in picoseconds, and in seconds.
const TICK: (u64, f64) = (64_000, 64e-9);
/// Above this delay, in seconds, the probability grows by the second more at each update.
const SURGE: (f64, f64) = (0.25, 0.02);
/// The share of the probability that remains after an update of an idle queue.
const DECAY: f64 = 1.0 - 1.0 / 64.0;
/// Where the integer of the probability is full: then it is 1.
const FULL: f64 = 256.0;
/// Fractions of a byte in which the dequeue rate is kept, and the weight of a new sample, as powers of 2.
const RATE: (u32, u32) = (8, 3);

/// Whole ticks between two times.
fn ticks(from: Time, to: Time) -> u64 {
    to.0 / TICK.0 - from.0 / TICK.0
}

impl Vars {
    fn drop_early_linux<W: Why + ?Sized>(
        &mut self,
        c: &Control,
        waiting: u64,
        rng: &mut Rng,
        why: &mut W,
    ) -> bool {
        let p = &c.params;
        let low = self.qdelay < p.target.secs() / 2.0 && self.drop_prob < NOT_TOO_HIGH;
        if self.burst_allowance > Duration(0) || low || waiting < c.safe_bytes {
            return false;
        }
        if p.derandomise
            && let Some(drops) = self.spaced(why)
        {
            return drops;
        }
        let strikes = rng.chance("u", self.drop_prob, why);
        if strikes {
            self.accu_prob = 0.0;
        }
        strikes
    }

    /// An arrival that is within the limit.
    pub(super) fn arrive_linux<W: Why + ?Sized>(
        &mut self,
        c: &Control,
        packet: &Packet,
        state: QueueState,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let early = self.drop_early_linux(c, state.bytes, rng, why);
        let marks = c.params.ecn && packet.ecn.can_mark() && self.drop_prob <= c.params.mark_ecnth;
        if early && !marks {
            self.accu_prob = 0.0;
            return Admission::Drop(EARLY);
        }
        self.backlog = state.bytes + u64::from(packet.size);
        if early { Admission::Mark } else { Admission::Admit }
    }

    /// A packet leaves; `backlog` is what waits behind it.
    pub(super) fn depart_linux(&mut self, p: &Params, now: Time, size: u32, since: Time) {
        let spent = match p.delay_from {
            DelayFrom::Timestamp => {
                self.qdelay = if self.backlog == 0 { 0.0 } else { ticks(since, now) as f64 * TICK.1 };
                // With timestamps, this is when the last packet left.
                self.rate.measuring.replace(now).map_or(0, |last| ticks(last, now))
            }
            DelayFrom::DequeueRate => self.measure_linux(p, now, size),
        };
        self.burst_allowance = Duration(self.burst_allowance.0.saturating_sub(spent * TICK.0));
    }

    /// If a measurement ends with this packet: how many ticks `dq_threshold` bytes took to leave; otherwise 0.
    fn measure_linux(&mut self, p: &Params, now: Time, size: u32) -> u64 {
        let (rate, enough) = (&mut self.rate, self.backlog >= p.dq_threshold.0);
        if rate.measuring.is_none() && enough {
            (rate.measuring, rate.dq_count) = (Some(now), 0);
        }
        let Some(start) = rate.measuring else { return 0 };
        rate.dq_count += u64::from(size);
        let took = ticks(start, now);
        if rate.dq_count < p.dq_threshold.0 || took == 0 {
            return 0;
        }
        let sample = (rate.dq_count << RATE.0) / took;
        rate.avg_dq_rate = match rate.avg_dq_rate {
            0 => sample,
            avg => avg - (avg >> RATE.1) + (sample >> RATE.1),
        };
        (rate.measuring, rate.dq_count) = (enough.then_some(now), 0);
        took
    }

    /// The update, every `t_update`.
    pub(super) fn update_linux(&mut self, p: &Params) {
        let v = self;
        if p.delay_from == DelayFrom::DequeueRate {
            let waits = (v.backlog << RATE.0).checked_div(v.rate.avg_dq_rate).unwrap_or(0);
            v.qdelay = waits as f64 * TICK.1;
        }
        let mut step = step(v.drop_prob, p.alpha, p.beta, v.qdelay, v.qdelay_old, p.target.secs());
        if p.cap_step && v.drop_prob >= CAP.0 {
            step = step.min(CAP.1);
        }
        if v.qdelay > SURGE.0 {
            step += SURGE.1;
        }
        v.drop_prob = (v.drop_prob + step).max(0.0);
        if v.drop_prob >= FULL {
            v.drop_prob = 1.0;
        } else if v.qdelay == 0.0 && v.qdelay_old == 0.0 && v.backlog == 0 {
            v.drop_prob *= DECAY;
        }
        let half = p.target.secs() / 2.0;
        let measured = p.delay_from == DelayFrom::Timestamp || v.rate.avg_dq_rate > 0;
        if v.qdelay < half && v.qdelay_old < half && v.drop_prob == 0.0 && measured {
            (v.burst_allowance, v.accu_prob) = (p.max_burst, 0.0);
            v.rate = super::DequeueRate::default();
        }
        v.qdelay_old = v.qdelay;
    }

    /// Whether starting over, as an update does that finds congestion over, would change nothing.
    pub(super) fn started_over(&self, p: &Params) -> bool {
        let fresh = super::DequeueRate::default();
        self.burst_allowance == p.max_burst && self.accu_prob == 0.0 && self.rate == fresh
    }
}

#[cfg(test)]
mod tests;

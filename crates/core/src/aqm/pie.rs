//! PIE, Proportional Integral controller Enhanced: drops arrivals with a probability that holds the queueing delay at a target.
//!
//! Every `t_update` the probability `drop_prob` changes in proportion to the distance of the delay from its target (the
//! integral part) and to the change of the delay since the last update (the proportional part); the smaller the probability,
//! the smaller its steps. Nothing is dropped in the first `max_burst` of a busy period.
//! Source: RFC 8033. §4 is always on. Of the options in §5, derandomisation, the capped step and ECN can each be set; the
//! delay is measured by timestamps or by the dequeue rate; `active_above` is §5.3's.
//! An empty queue has no delay: with timestamps it is 0 as soon as the last packet has left (the RFC's pseudocode would keep
//! that packet's delay until the next one leaves). `variant = "linux"`: `sch_pie` of Linux 6.1, in [`linux`].
//! Non-goal: DOCSIS-PIE (RFC 8034).

mod linux;
mod params;

use crate::prelude::*;

pub use params::{DelayFrom, Params, Variant};

/// Dropped on arrival by the drop probability (the RFC's `drop_early()`).
pub const EARLY: Cause = Cause::named("early");

/// §5.4: below it accu_prob lets every packet by, from the second on it drops every one.
const ACCU_PROB: (f64, f64) = (0.85, 8.5);
/// §4.1: the drop probability from which a delay below half the target no longer lets every packet by.
const NOT_TOO_HIGH: f64 = 0.2;
/// §5.5: from this drop probability on, no step is above the second.
const CAP: (f64, f64) = (0.1, 0.02);
/// §4.2: what the probability shrinks to at each update of an uncongested queue.
const DECAY: f64 = 0.98;
/// §5.2: the bytes of departures from which a new sample of their duration is all that counts.
const WHOLE_WEIGHT: f64 = 65_536.0;

/// The law's settings.
#[derive(Clone, Debug)]
pub struct Control {
    /// As set by the operator.
    pub params: Params,
    /// §4.1: while no more than this waits, nothing is dropped early.
    safe_bytes: u64,
    /// The backlog that activates it, where one is set.
    active_from: Option<Backlog>,
}

impl Control {
    /// §5.1: whether there is a drop probability at which ECN-capable packets are marked.
    #[must_use]
    pub fn marks(&self) -> bool {
        self.params.ecn && self.params.mark_ecnth > 0.0
    }

    /// The state of an empty queue.
    #[must_use]
    pub fn vars(&self) -> Vars {
        Vars::new(self.active_from.is_none(), self.params.max_burst)
    }
}

/// The state of the queue that an arrival finds.
#[derive(Clone, Copy, Debug)]
pub struct QueueState {
    /// Packets that wait.
    pub packets: u32,
    /// Bytes that wait.
    pub bytes: u64,
    /// Whether one more is within the limit.
    pub fits: bool,
}

/// State of one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Vars {
    /// Whether it is at work (§5.3).
    active: bool,
    /// Whether the probability has moved since it is: only then can congestion be over.
    updated: bool,
    /// The chance of a drop, 0 to 1.
    drop_prob: f64,
    /// Its sum since the last drop (§5.4).
    accu_prob: f64,
    /// The delay now, in seconds.
    qdelay: f64,
    /// The delay at the last update, in seconds.
    qdelay_old: f64,
    /// The rest of the burst that is let by.
    burst_allowance: Duration,
    /// Bytes that wait.
    backlog: u64,
    rate: DequeueRate,
}

/// §5.2: how long it takes until `dq_threshold` bytes have left.
#[derive(Clone, Debug, PartialEq, Default)]
struct DequeueRate {
    /// Since when, if a measurement is under way.
    measuring: Option<Time>,
    /// Bytes that have left since.
    dq_count: u64,
    /// Seconds, smoothed; 0 before the first sample.
    avg_dq_time: f64,
    /// Linux's in its place: 1/256 B a tick, smoothed; 0 before the first sample.
    avg_dq_rate: u64,
}

impl Vars {
    fn new(active: bool, max_burst: Duration) -> Vars {
        Vars {
            active,
            updated: false,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay: 0.0,
            qdelay_old: 0.0,
            burst_allowance: max_burst,
            backlog: 0,
            rate: DequeueRate::default(),
        }
    }
}

/// §4.2: the step of the drop probability, auto-tuned: `alpha` and `beta` in 1/s, delays in seconds.
#[must_use]
pub fn step(p: f64, alpha: f64, beta: f64, qdelay: f64, qdelay_old: f64, target: f64) -> f64 {
    let step = alpha * (qdelay - target) + beta * (qdelay - qdelay_old);
    let scale = match p {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    };
    step / scale
}

impl Vars {
    /// Whether the arrival is to be dropped, or marked, early.
    fn drop_early<W: Why + ?Sized>(&mut self, c: &Control, waiting: u64, rng: &mut Rng, why: &mut W) -> bool {
        let (v, p) = (self, &c.params);
        // §4.1: work conserving.
        let low = v.qdelay_old < p.target.secs() / 2.0 && v.drop_prob < NOT_TOO_HIGH;
        if low || waiting <= c.safe_bytes {
            return false;
        }
        if p.derandomise
            && let Some(drops) = v.spaced(why)
        {
            return drops;
        }
        rng.chance("u", v.drop_prob, why)
    }

    /// §5.4: whether the sum of probabilities alone decides that this packet is dropped, or that it is not.
    fn spaced<W: Why + ?Sized>(&mut self, why: &mut W) -> Option<bool> {
        self.accu_prob = if self.drop_prob == 0.0 { 0.0 } else { self.accu_prob + self.drop_prob };
        why.note("accu_prob", self.accu_prob);
        if self.accu_prob < ACCU_PROB.0 {
            return Some(false);
        }
        (self.accu_prob >= ACCU_PROB.1).then_some(true)
    }

    /// Whether congestion is over (§4.4, §5.3).
    fn uncongested(&self, p: &Params) -> bool {
        let half = p.target.secs() / 2.0;
        self.drop_prob == 0.0 && self.qdelay < half && self.qdelay_old < half
    }

    /// Whether updates would change nothing of it until something comes.
    #[must_use]
    pub fn at_rest(&self, p: &Params) -> bool {
        let still =
            self.backlog == 0 && self.drop_prob == 0.0 && self.qdelay == 0.0 && self.qdelay_old == 0.0;
        match p.variant {
            Variant::Rfc8033 => !self.active || still,
            Variant::Linux => still && self.started_over(p),
        }
    }

    /// The chance of a drop, and the delay in seconds.
    #[must_use]
    pub fn shown(&self) -> (f64, f64) {
        (self.drop_prob, self.qdelay)
    }

    /// An arrival.
    pub fn arrive<W: Why + ?Sized>(
        &mut self,
        c: &Control,
        packet: &Packet,
        state: QueueState,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let p = &c.params;
        why.note("qdelay", self.qdelay);
        why.note("drop_prob", self.drop_prob);
        if !state.fits {
            self.accu_prob = 0.0;
            return Admission::Drop(Cause::OVERFLOW);
        }
        if p.variant == Variant::Linux {
            return self.arrive_linux(c, packet, state, rng, why);
        }
        if let Some(from) = c.active_from {
            // §5.3
            let over = match from {
                Backlog::Packets(n) => f64::from(state.packets) >= n,
                Backlog::Bytes(n) => state.bytes as f64 >= n,
            };
            if !self.active && over {
                // What was measured meanwhile holds on.
                let Vars { backlog, qdelay, .. } = *self;
                let rate = self.rate.clone();
                *self = Vars { backlog, qdelay, rate, ..Vars::new(true, p.max_burst) };
            } else if self.active && self.updated && self.uncongested(p) {
                self.active = false;
            }
        }
        if self.uncongested(p) {
            // §4.4
            self.burst_allowance = p.max_burst;
        }
        let burst = self.burst_allowance > Duration(0);
        if self.active && !burst && self.drop_early(c, state.bytes, rng, why) {
            self.accu_prob = 0.0;
            let can_mark = p.ecn && packet.ecn.can_mark();
            // §5.1
            if !(can_mark && self.drop_prob < p.mark_ecnth) {
                return Admission::Drop(EARLY);
            }
            self.backlog = state.bytes + u64::from(packet.size);
            return Admission::Mark;
        }
        self.backlog = state.bytes + u64::from(packet.size);
        Admission::Admit
    }

    /// §4.3: a packet of this size leaves, having waited since then; so many bytes wait behind it.
    pub fn depart(&mut self, p: &Params, now: Time, size: u32, since: Time, backlog: u64) {
        self.backlog = backlog;
        if p.variant == Variant::Linux {
            return self.depart_linux(p, now, size, since);
        }
        match p.delay_from {
            DelayFrom::Timestamp if backlog == 0 => self.qdelay = 0.0,
            DelayFrom::Timestamp => self.qdelay = (now - since).secs(),
            DelayFrom::DequeueRate => self.rate.departs(now, size, backlog, p.dq_threshold.0),
        }
    }

    /// §4.2, every T_UPDATE.
    pub fn update(&mut self, p: &Params) {
        if p.variant == Variant::Linux {
            return self.update_linux(p);
        }
        let v = self;
        if !v.active {
            return;
        }
        let target = p.target.secs();
        if p.delay_from == DelayFrom::DequeueRate {
            // §5.2
            v.qdelay = v.backlog as f64 * v.rate.avg_dq_time / p.dq_threshold.0 as f64;
        }
        let mut step = step(v.drop_prob, p.alpha, p.beta, v.qdelay, v.qdelay_old, target);
        if p.cap_step && v.drop_prob >= CAP.0 {
            // §5.5
            step = step.min(CAP.1);
        }
        v.drop_prob += step;
        if v.qdelay == 0.0 && v.qdelay_old == 0.0 {
            v.drop_prob *= DECAY;
        }
        v.drop_prob = v.drop_prob.clamp(0.0, 1.0);
        v.qdelay_old = v.qdelay;
        v.updated = true;
        // §4.4
        v.burst_allowance = Duration(v.burst_allowance.0.saturating_sub(p.t_update.0));
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Pie {
    vars: Vars,
    control: Box<Control>,
    /// Whether an interval has begun.
    begun: bool,
}

impl DequeueRate {
    /// A packet of this size leaves at `now`; `backlog` bytes wait behind it.
    fn departs(&mut self, now: Time, size: u32, backlog: u64, dq_threshold: u64) {
        if let Some(start) = self.measuring {
            self.dq_count += u64::from(size);
            if self.dq_count >= dq_threshold {
                let sample = (now - start).secs();
                let weight = dq_threshold as f64 / WHOLE_WEIGHT;
                self.avg_dq_time = match self.avg_dq_time {
                    0.0 => sample,
                    avg => sample * weight + avg * (1.0 - weight),
                };
                self.measuring = None;
            }
        }
        if self.measuring.is_none() && backlog >= dq_threshold {
            self.measuring = Some(now);
            self.dq_count = 0;
        }
    }
}

impl Mechanism for Pie {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        if self.begun {
            self.vars.update(&self.control.params);
        }
        self.begun = true;
        Some(now + self.control.params.t_update)
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("drop_prob", self.vars.drop_prob);
        show("qdelay", self.vars.qdelay);
        show("burst_allowance", self.vars.burst_allowance.secs());
    }
}

impl Aqm for Pie {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.control.marks()
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let (packets, bytes, fits) = (at.queue.packets(), at.queue.bytes(), at.queue.fits(packet.size));
        self.vars.arrive(&self.control, packet, QueueState { packets, bytes, fits }, at.rng, at.why)
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        self.vars.depart(&self.control.params, at.now, packet.size, at.since, at.queue.bytes());
        at.why.note("sojourn", (at.now - at.since).secs());
        Departure::Send
    }
}

#[cfg(test)]
mod tests;

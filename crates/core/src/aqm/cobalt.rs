//! COBALT, CoDel and BLUE alternate: CoDel for flows that respond, BLUE for those that do not.
//!
//! CoDel's signals follow each other ever faster while packets wait too long; when they no longer do, the rate of signals falls along the
//! same curve by which it rose, rather than all at once. BLUE raises a probability while the queue is full, lowers it while
//! it is empty, and drops with it whatever CoDel does: marks are CoDel's alone.
//! Source: Høiland-Jørgensen, Täht and Morton 2018 (CAKE); tc-cake(8); its author's description (J. Morton, cake mailing list,
//! 24 October 2018): signals at the head; an inverse square root law while the sojourn time is above target; its reversal
//! below; the last packet of a queue is never dropped. Figures as CAKE has them: BLUE's steps of 1/256 and 1/4096 at most once a
//! target, and no signal while a packet waits for less than four transmissions.
//! A queue turns empty when its last packet leaves; the law is told with the next arrival.
//! `variant = "linux"`: Linux's `sch_cake` (as of 6.1) has 1/√count up to 15 from a table, of which the value for 2 is 0.06 % too small, and
//! from there improves it by one step of Newton's method a signal, up and down the curve. Before a queue's first signal it takes 1/√count for 0, so that the first dropping state of a queue
//! begins without waiting for an interval; and a state that is entered an interval or more after the last packet left signals at once, too. Its clock is
//! in nanoseconds.
//! Non-goal: CAKE's queues, shaper and ACK filter.

use crate::aqm::codel::{ABOVE_TARGET, control_law};
use crate::aqm::{beyond_full_queue, target_below_interval};
use crate::prelude::*;

/// Dropped with BLUE's probability.
pub const BLUE: Cause = Cause::named("blue");

/// Transmissions that a packet may wait for, whatever the target.
const TRANSMISSIONS: u64 = 4;

/// Linux: inverse square roots of counts up to 15, in 2^-32ths: four steps of Newton's method from that of the count before, too few
/// from 1 to 2.
const LINUX_TABLE: [u32; 16] = {
    let mut table = [u32::MAX; 16];
    let mut count = 1;
    while count < table.len() {
        let before = table[count - 1];
        table[count] =
            newton(newton(newton(newton(before, count as u32), count as u32), count as u32), count as u32);
        count += 1;
    }
    table
};
/// Linux: picoseconds in its unit of time, a nanosecond.
const LINUX_UNIT: u64 = 1000;

crate::choice! {
    /// Whose reading.
    pub enum Variant {
        /// The inverse square root as it is.
        Exact = "exact",
        /// Linux's `sch_cake`.
        Linux = "linux",
    }
}

impl Variant {
    /// The time on the law's clock: Linux's is in nanoseconds.
    fn clock(self, t: Time) -> Time {
        match self {
            Variant::Exact => t,
            Variant::Linux => Time(t.0 / LINUX_UNIT * LINUX_UNIT),
        }
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// The sojourn time that a standing queue may have.
        target: Duration [POSITIVE] = Duration::from_millis(5);
        /// About the longest usual round-trip time: the first signal comes so long after packets began to wait for too long.
        interval: Duration [POSITIVE] = Duration::from_millis(100);
        /// CoDel's signals mark packets of ECN-capable transports; BLUE drops them all the same.
        ecn: bool = false;
        /// What BLUE's probability rises by while the queue is full, once a target at most.
        increment: f64 [UNIT_POSITIVE] = 1.0 / 256.0;
        /// What it falls by while the queue is empty, once a target at most.
        decrement: f64 [UNIT_POSITIVE] = 1.0 / 4096.0;
        /// Time a full packet takes on the link: nothing that waits for less than four of them is too late. Default: by the link's
        /// rate.
        mtu_time: Option<Duration> [NON_NEGATIVE];
        /// The exact control law, or Linux's.
        variant: Variant = Variant::Exact;
    }
}

impl Params {
    /// The law's settings in this place.
    #[must_use]
    pub fn control(&self, context: &Context) -> Control {
        let by_rate = context.link_rate.map_or(Duration(0), |rate| rate.serialise(context.packet));
        Control {
            target: self.target,
            interval: self.interval,
            least: Duration(self.mtu_time.unwrap_or(by_rate).0.saturating_mul(TRANSMISSIONS)),
            steps: (self.increment, self.decrement),
            variant: self.variant,
        }
    }
}

impl Build for Params {
    type Mechanism = Cobalt;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        target_below_interval(self.target, self.interval)?;
        Ok(beyond_full_queue(self.target, context, "COBALT").into_iter().collect())
    }

    fn build(&self, context: &Context) -> Cobalt {
        let (vars, control) = (Vars::default(), self.control(context));
        Cobalt { vars, control, ecn: self.ecn, emptied: None }
    }
}

/// The law's settings.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// CoDel's.
    pub target: Duration,
    /// CoDel's.
    pub interval: Duration,
    /// The time that a packet may wait whatever the target.
    pub least: Duration,
    /// Of BLUE's probability, up and down.
    pub steps: (f64, f64),
    /// Whose control law.
    pub variant: Variant,
}

/// State of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vars {
    /// How far up the curve the rate of signals is.
    count: u32,
    /// When the next signal is due; where there is none, from when on the curve is gone back down.
    drop_next: Time,
    /// Whether packets wait for too long.
    dropping: bool,
    /// BLUE's probability.
    p_drop: f64,
    /// When it moved last.
    moved: Time,
    /// Linux: what it takes for 1/√count, in 2^-32ths.
    inverse_root: u32,
    /// Whether the packet that leaves finds `drop_next` in the past.
    behind: bool,
}

/// The signal of CoDel's part for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Nothing.
    None,
    /// It is to be marked or dropped.
    Due,
}

/// Linux: a better estimate of 1/√count than `x`, both in 2^-32ths: x·(3 − count·x²)/2.
const fn newton(x: u32, count: u32) -> u32 {
    let square = (x as u64 * x as u64) >> 32;
    let rest = (3 << 32) - count as u64 * square;
    // A quarter of it is less than 32 bits.
    (((rest >> 2) * x as u64) >> 31) as u32
}

/// Linux: from an estimate of 1/√(count ± 1), in 2^-32ths, that of 1/√count.
#[must_use]
pub fn inverse_root(x: u32, count: u32) -> u32 {
    LINUX_TABLE.get(count as usize).copied().unwrap_or_else(|| newton(x, count))
}

impl Vars {
    /// The time of the signal after one at `t`.
    fn after(&self, t: Time, c: &Control) -> Time {
        match c.variant {
            Variant::Exact => control_law(t, c.interval, self.count.max(1)),
            Variant::Linux => {
                let units = (u128::from(c.interval.0 / LINUX_UNIT) * u128::from(self.inverse_root)) >> 32;
                t + Duration(units as u64 * LINUX_UNIT)
            }
        }
    }

    fn is_due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    /// So far up the curve now: the next signal is planned from the last.
    fn step(&mut self, count: u32, c: &Control) {
        self.count = count;
        self.inverse_root = inverse_root(self.inverse_root, count);
        self.drop_next = self.after(self.drop_next, c);
    }

    /// A packet is about to leave, having waited for `sojourn`.
    pub fn leaves(&mut self, now: Time, sojourn: Duration, c: &Control) -> Signal {
        let late = sojourn > c.target && sojourn > c.least;
        let due = self.is_due(now);
        // Linux: as it is before a state is entered.
        self.behind = now > self.drop_next;
        if late && !self.dropping {
            self.drop_next = self.after(now, c);
            self.behind &= c.variant == Variant::Linux;
        }
        self.dropping = late;
        if late {
            self.count = self.count.max(1);
        }
        if due && late {
            self.step(self.count.saturating_add(1), c);
            self.behind = now > self.drop_next;
            return Signal::Due;
        }
        // Down the curve again, by as many signals as would have been sent.
        if due {
            while self.is_due(now) {
                self.step(self.count - 1, c);
            }
            self.behind = now > self.drop_next;
        }
        Signal::None
    }

    /// After the verdict: a signal is never made up for, and the first one comes an interval after it is needed.
    pub fn left(&mut self, now: Time, dropped: bool, c: &Control) {
        if self.count == 0 {
            self.drop_next = now + c.interval;
        } else if self.behind && !dropped {
            self.drop_next = now;
        }
    }

    /// Whether packets wait for too long.
    #[must_use]
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Whether the law's clock was set as the last packet left, rather than by the signal before.
    #[must_use]
    pub fn was_set(&self) -> bool {
        self.count == 0 || self.behind
    }

    /// The queue has turned away an arrival.
    pub fn full(&mut self, now: Time, c: &Control) {
        if now.since(self.moved) > c.target {
            self.p_drop = (self.p_drop + c.steps.0).min(1.0);
            self.moved = now;
        }
        (self.dropping, self.drop_next) = (true, now);
        self.count = self.count.max(1);
    }

    /// Nothing waits any more.
    pub fn empty(&mut self, now: Time, c: &Control) {
        if self.p_drop > 0.0 && now.since(self.moved) > c.target {
            self.p_drop = (self.p_drop - c.steps.1).max(0.0);
            self.moved = now;
        }
        self.dropping = false;
        if self.is_due(now) {
            self.step(self.count - 1, c);
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Cobalt {
    vars: Vars,
    control: Control,
    ecn: bool,
    /// Since when the queue was empty, the last time that the law was told.
    emptied: Option<Time>,
}

impl Mechanism for Cobalt {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("dropping", f64::from(u8::from(self.vars.dropping)));
        show("count", f64::from(self.vars.count));
        show("drop_prob", self.vars.p_drop);
    }
}

impl Aqm for Cobalt {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let idle = at.queue.idle_since();
        if let Some(since) = idle.filter(|_| idle != self.emptied) {
            self.vars.empty(self.control.variant.clock(since), &self.control);
            self.emptied = idle;
        }
        if at.queue.fits(packet.size) {
            return Admission::Admit;
        }
        self.vars.full(self.control.variant.clock(at.now), &self.control);
        Admission::Drop(Cause::OVERFLOW)
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        at.why.note("sojourn", at.now.since(at.since).secs());
        let clock = self.control.variant;
        let (now, since) = (clock.clock(at.now), clock.clock(at.since));
        let signal = self.vars.leaves(now, now.since(since), &self.control);
        at.why.note("count", f64::from(self.vars.count));
        at.why.note("drop_prob", self.vars.p_drop);
        let marks = signal == Signal::Due && self.ecn && packet.ecn.can_mark();
        let codel = signal == Signal::Due && !marks;
        let blue = at.rng.chance("u", self.vars.p_drop, at.why);
        self.vars.left(now, codel || blue, &self.control);
        if (codel || blue) && at.queue.packets() > 0 {
            return Departure::Drop(if codel { ABOVE_TARGET } else { BLUE });
        }
        if marks { Departure::Mark } else { Departure::Send }
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        show("above_target", queue.dropped_by(ABOVE_TARGET));
        show("marked", queue.marked());
        show("blue", queue.dropped_by(BLUE));
        show("overflow", queue.dropped_by(Cause::OVERFLOW));
    }
}

#[cfg(test)]
mod tests;

//! CoDel, controlled delay: drops at the head of the queue while packets have waited longer than a target for an interval.
//!
//! A good queue drains within a round-trip time; a standing queue does not. So the minimum sojourn time over an interval
//! counts: once every packet has waited `target` or longer for `interval`, the head is dropped, then another packet after
//! interval/√2, interval/√3, … until one has waited less. The law knows no rates and needs no tuning to them.
//! Source: RFC 8289, §5.5 and §5.6; `ecn`: a packet of an ECN-capable transport is marked in place of each drop (RFC 3168 §5), and
//! is sent. The queue asks about one packet at a time: after a drop it asks about the next one at once, which is the RFC's loop;
//! `Pending` is what remains of it.
//! `variant = "linux"`: Linux's `sch_codel` (`codel.h` and `codel_impl.h`, as of 6.1) reads a clock of 32 bits in units of 1,024 ns as a packet
//! arrives and as it leaves, and drops only once it is later, not as late, as an interval above target. It takes the next interval
//! from the last one's by a step of Newton's method, of which the first come out short: interval/2, 0.56·interval, 0.49·interval, …
//! from the second drop on.
//! Non-goal: fairness among flows (RFC 8290).

use std::cmp::Ordering;

use crate::aqm::{beyond_full_queue, target_below_interval};
use crate::prelude::*;

/// Every packet had waited `target` or longer for an interval.
pub const ABOVE_TARGET: Cause = Cause::named("above_target");

/// §5.5: after a pause of so many intervals the drop rate of the last dropping state is no longer a good start.
const REMEMBERED: u64 = 16;

/// Linux: picoseconds in its unit of time.
const LINUX_UNIT: u64 = 1_024_000;

crate::choice! {
    /// Whose reading.
    pub enum Variant {
        /// RFC 8289.
        Rfc8289 = "rfc8289",
        /// Linux's `sch_codel`: time in units of 1,024 ns; drops follow each other sooner at first, by an inverse square root that is not yet exact.
        Linux = "linux",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// The sojourn time that a standing queue may have (TARGET): 5 to 10 % of interval.
        target: Duration [POSITIVE] = Duration::from_millis(5);
        /// How long every packet must have waited longer before one is dropped (INTERVAL): about the longest usual round-trip time.
        interval: Duration [POSITIVE] = Duration::from_millis(100);
        /// Packets of ECN-capable transports are marked rather than dropped.
        ecn: bool = false;
        /// Nothing is dropped while no more than this waits behind a packet, of several queues in all of them (maxpacket). Default: a full
        /// packet.
        mtu: Option<Bytes> [POSITIVE];
        /// RFC 8289's control law, or Linux's.
        variant: Variant = Variant::Rfc8289;
    }
}

impl Build for Params {
    type Mechanism = Codel;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        target_below_interval(self.target, self.interval)?;
        Ok(beyond_full_queue(self.target, context, "CoDel").into_iter().collect())
    }

    fn build(&self, context: &Context) -> Codel {
        let control = self.control(self.variant, context);
        Codel { vars: Vars::default(), control, ecn: self.ecn, entered: 0 }
    }
}

impl Params {
    /// The law's settings in this place, for any discipline that has CoDel within.
    #[must_use]
    pub fn control(&self, variant: Variant, context: &Context) -> Control {
        variant.control(self.target, self.interval, self.mtu.unwrap_or(context.packet).0)
    }
}

/// The law's settings; times in ticks of its clock.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// TARGET.
    target: u64,
    /// INTERVAL.
    interval: u64,
    /// In bytes.
    maxpacket: u64,
    /// Whose control law.
    variant: Variant,
}

impl Control {
    /// TARGET as the clock has it, and the bytes behind a packet up to which it is let go.
    #[must_use]
    pub fn bounds(&self) -> (Duration, u64) {
        (Duration(self.target * self.variant.tick()), self.maxpacket)
    }

    /// Whether a packet that came at `since` has waited longer than this.
    #[must_use]
    pub fn waited_longer(&self, now: Time, since: Time, than: Duration) -> bool {
        let clock = self.variant;
        let sojourn = clock.since(clock.ticks(now.0), clock.ticks(since.0));
        clock.compare(sojourn, clock.ticks(than.0)).is_gt()
    }
}

/// The clock: RFC 8289's has no unit, and is in picoseconds here. Linux's (`codel.h`) has 32 bits, in units of 1,024 ns, and compares
/// as serial numbers do (RFC 1982), so that it may start anew.
impl Variant {
    /// The law's settings.
    #[must_use]
    pub fn control(self, target: Duration, interval: Duration, maxpacket: u64) -> Control {
        Control { target: self.ticks(target.0), interval: self.ticks(interval.0), maxpacket, variant: self }
    }

    /// Picoseconds in its unit.
    fn tick(self) -> u64 {
        match self {
            Variant::Rfc8289 => 1,
            Variant::Linux => LINUX_UNIT,
        }
    }

    /// The clock's time.
    fn ticks(self, ps: u64) -> u64 {
        match self {
            Variant::Rfc8289 => ps,
            Variant::Linux => u64::from((ps / LINUX_UNIT) as u32),
        }
    }

    /// A time later by so much.
    fn later(self, t: u64, by: u64) -> u64 {
        match self {
            Variant::Rfc8289 => (Time(t) + Duration(by)).0,
            Variant::Linux => u64::from((t as u32).wrapping_add(by as u32)),
        }
    }

    /// How long after `then` it is; Linux: also by how much before, modulo 2^32.
    fn since(self, now: u64, then: u64) -> u64 {
        match self {
            Variant::Rfc8289 => now.saturating_sub(then),
            Variant::Linux => u64::from((now as u32).wrapping_sub(then as u32)),
        }
    }

    /// Which of two times, or of two lengths of time, is greater.
    fn compare(self, a: u64, b: u64) -> Ordering {
        match self {
            Variant::Rfc8289 => a.cmp(&b),
            Variant::Linux => ((a as u32).wrapping_sub(b as u32) as i32).cmp(&0),
        }
    }
}

/// §5.2: state of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vars {
    /// When the sojourn time will have been above target for an interval; 0: it is not above.
    first_above_time: u64,
    /// When the next packet is dropped, in the dropping state; when it would have been, after it.
    drop_next: u64,
    /// Packets dropped in this dropping state, or a start from the last one.
    count: u32,
    /// `count` as the dropping state was entered.
    lastcount: u32,
    /// Linux: what it takes for 1/√count, in 65,536ths.
    inverse_root: u16,
    /// Whether it is in the dropping state.
    dropping: bool,
    /// The rest of a drop's work, for the packet behind it.
    pending: Option<Pending>,
}

/// Where in §5.5 the packet behind a dropped one is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    /// In the loop: it may be dropped too.
    Loop,
    /// After the first drop of a dropping state: it goes out, whatever it has waited.
    Entered,
}

/// §5.6: the time of the drop after one at `t`.
#[must_use]
pub fn control_law(t: Time, interval: Duration, count: u32) -> Time {
    t + Duration((interval.0 as f64 / libm::sqrt(f64::from(count))) as u64)
}

/// Linux: from an estimate of 1/√count, in 65,536ths, the next one: x·(3 − count·x²)/2, in 64 bits whatever becomes of them.
#[must_use]
pub fn newton_step(x: u16, count: u32) -> u16 {
    let square = u64::from(x) * u64::from(x);
    let rest = (3u64 << 32).wrapping_sub(u64::from(count) * square);
    // A quarter of it, so that the product has room.
    (((rest >> 2).wrapping_mul(u64::from(x) << 16) >> 31) as u32 >> 16) as u16
}

impl Vars {
    /// The time of the drop after one at `t`.
    fn after(&self, c: &Control, t: u64) -> u64 {
        match c.variant {
            Variant::Rfc8289 => control_law(Time(t), Duration(c.interval), self.count).0,
            Variant::Linux => c.variant.later(t, (c.interval * u64::from(self.inverse_root)) >> 16),
        }
    }

    /// Whether it is in the dropping state.
    #[must_use]
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// One drop more in this dropping state.
    fn another(&mut self) {
        self.count = self.count.saturating_add(1);
        self.inverse_root = newton_step(self.inverse_root, self.count);
    }

    /// §5.6, dodequeue: whether a packet that has waited for `sojourn` may be dropped, `bytes` waiting behind it. The RFC's
    /// case of an empty queue is in it: of the last packet nothing waits behind.
    fn ok_to_drop(&mut self, c: &Control, now: u64, sojourn: u64, bytes: u64) -> bool {
        if c.variant.compare(sojourn, c.target).is_lt() || bytes <= c.maxpacket {
            // Went below: stays below for an interval at least.
            self.first_above_time = 0;
            return false;
        }
        if self.first_above_time == 0 {
            self.first_above_time = c.variant.later(now, c.interval);
            return false;
        }
        match (c.variant, c.variant.compare(now, self.first_above_time)) {
            (Variant::Rfc8289, order) => order.is_ge(),
            (Variant::Linux, order) => order.is_gt(),
        }
    }

    /// §5.5: whether a packet about to leave, which came at `since`, is dropped, or marked if it `can` be.
    pub fn decide(&mut self, c: &Control, now: Time, since: Time, bytes: u64, can_mark: bool) -> Departure {
        let now = c.variant.ticks(now.0);
        let sojourn = c.variant.since(now, c.variant.ticks(since.0));
        let ok_to_drop = self.ok_to_drop(c, now, sojourn, bytes);
        match self.pending.take() {
            Some(Pending::Entered) => return Departure::Send,
            // The loop goes on: out of the dropping state, or the next drop is planned.
            Some(Pending::Loop) if ok_to_drop => {
                self.drop_next = self.after(c, self.drop_next);
            }
            _ => {}
        }
        if self.dropping {
            self.dropping = ok_to_drop;
            if !ok_to_drop || c.variant.compare(now, self.drop_next).is_lt() {
                return Departure::Send;
            }
            self.another();
            if can_mark {
                self.drop_next = self.after(c, self.drop_next);
                return Departure::Mark;
            }
            self.pending = Some(Pending::Loop);
            return Departure::Drop(ABOVE_TARGET);
        }
        if !ok_to_drop {
            return Departure::Send;
        }
        self.enter(c, now);
        if can_mark {
            return Departure::Mark;
        }
        self.pending = Some(Pending::Entered);
        Departure::Drop(ABOVE_TARGET)
    }

    /// §5.5, where a queue among others is looked at and found empty: no packet has waited too long.
    pub fn found_empty(&mut self) {
        self.first_above_time = 0;
        // The packet behind the first drop of a dropping state goes out; that there is none doesn't end the state.
        self.dropping &= self.pending.take() == Some(Pending::Entered);
    }

    /// So many packets were dropped in another's favour, and count as drops of this state.
    pub fn count_drops(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// §5.5: enters the dropping state. If it was in one not long ago, what it dropped by then controlled the queue, and
    /// is where it starts from now.
    fn enter(&mut self, c: &Control, now: u64) {
        let delta = self.count - self.lastcount;
        let pause = c.variant.since(now, self.drop_next);
        let recent = c.variant.compare(pause, c.interval.saturating_mul(REMEMBERED)).is_lt();
        self.dropping = true;
        if delta > 1 && recent {
            self.count = delta;
            self.inverse_root = newton_step(self.inverse_root, delta);
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.drop_next = self.after(c, now);
        self.lastcount = self.count;
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Codel {
    vars: Vars,
    control: Control,
    ecn: bool,
    /// How often the dropping state was entered.
    entered: u64,
}

impl Mechanism for Codel {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("dropping", f64::from(u8::from(self.vars.dropping)));
        show("count", f64::from(self.vars.count));
    }
}

impl Aqm for Codel {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        if at.queue.fits(packet.size) {
            return Admission::Admit;
        }
        Admission::Drop(Cause::OVERFLOW)
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        at.why.note("sojourn", at.now.since(at.since).secs());
        at.why.note("backlog", at.queue.bytes() as f64);
        let was = self.vars.dropping;
        let can_mark = self.ecn && packet.ecn.can_mark();
        let verdict = self.vars.decide(&self.control, at.now, at.since, at.queue.bytes(), can_mark);
        at.why.note("count", f64::from(self.vars.count));
        self.entered += u64::from(self.vars.dropping && !was);
        verdict
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        show("above_target", queue.dropped_by(ABOVE_TARGET));
        show("marked", queue.marked());
        show("overflow", queue.dropped_by(Cause::OVERFLOW));
        show("entered", self.entered);
    }
}

#[cfg(test)]
pub mod oracle;
#[cfg(test)]
mod tests;

//! dsRED: ns-2's core queue for Differentiated Services (by Nortel), with its peculiarities.
//!
//! RIO-C, RIO-D and WRED with three drop precedences in ns-2 2.35's arithmetic, so that a published experiment can be repeated.
//! It differs from [WRED](crate::aqm::wred) in the following:
//! - thresholds are truncated to integers; an average is rounded to single precision at each step;
//! - the limit is tested first, and a packet that finds the queue full changes neither average nor count;
//! - a random number is drawn for each packet between the thresholds, including the upper one and excluding the lower;
//! - p_a = p_b / (1 − count·p_b) has no guard: once count·p_b has jumped past 1 it is negative and nothing is dropped until the
//!   average falls below min_th or rises above max_th; at exactly 1 ns-2 divides by zero and stops, here the packet is dropped;
//! - idle time counts from the start of the last transmission, not from its end; for WRED it begins whenever the last packet
//!   of any colour leaves, though others wait; and it is counted again at every packet that is dropped before one joins.
//!
//! Source: ns-2 2.35's behaviour. Non-goal: correctness; ECN.

use crate::aqm::red::common::Thresholds;
use crate::aqm::red::wred::{Averages, check_colours};
use crate::aqm::red::{EARLY, FORCED};
use crate::marker::tsw2cm::Chance;
use crate::prelude::*;

/// The count before the first packet: a colour whose first one finds the average above min_th has counted one then, not none.
const UNSEEN: i32 = 0;
/// The count while the average is at or below min_th.
const BELOW: i32 = -1;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// For green packets (IN), in packets; ns-2 cuts off fractions.
        green: Thresholds;
        /// For yellow packets (OUT).
        yellow: Thresholds;
        /// For red packets. Default: as for yellow ones.
        red: Option<Thresholds>;
        /// ns-2's MRED mode: shared (WRED), coupled (RIO-C) or decoupled averages (RIO-D).
        averages: Averages = Averages::Coupled;
        /// Weight of the newest sample in every average.
        w_q: f64 [UNIT_POSITIVE] = 0.002;
        /// Typical size on the wire: how fast an idle link ages the averages. Default: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
    }
}

/// One drop precedence.
#[derive(Clone, Copy, Debug)]
struct Level {
    min_th: f64,
    max_th: f64,
    /// 1 / max_p, as ns-2 keeps it.
    max_p_inv: f64,
    avg: f64,
    count: i32,
    /// Since when, in seconds, ns-2 takes it to be idle, if it does.
    idle: Option<f64>,
}

/// State between packets.
#[derive(Clone, Debug)]
pub struct Vars {
    level: [Level; 3],
    /// The moment of the call under way, where it was told.
    told: Option<f64>,
}

/// Packets of one colour by what happened to them; the rest joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Dropped by chance.
    pub early: u64,
    /// Dropped because the average was above max_th.
    pub forced: u64,
    /// Dropped because the queue was full.
    pub overflow: u64,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct DsRed {
    vars: Vars,
    averages: Averages,
    w_q: f64,
    /// Typical packets a second that the link can send.
    ptc: f64,
    stats: [Stats; 3],
    /// How often ns-2 would have divided by zero.
    division_by_zero: u64,
}

/// ns-2's average: faded once and then once for each packet of the idle time, each step and the sum in single precision.
fn faded(avg: f64, w_q: f64, idle_packets: i64, samples: impl Iterator<Item = f64>) -> f64 {
    let mut f = avg as f32;
    for _ in 0..=idle_packets {
        let next = (f64::from(f) * (1.0 - w_q)) as f32;
        if next == f {
            break; // 0, or too small to fall further
        }
        f = next;
    }
    for q in samples {
        f = (f64::from(f) + w_q * q) as f32;
    }
    f64::from(f)
}

/// Which averages an arrival of `colour` is a sample of; where there is one for all colours, the first is kept for them.
fn sampled(averages: Averages, colour: usize) -> std::ops::RangeInclusive<usize> {
    match averages {
        Averages::Shared => 0..=0,
        Averages::Coupled => colour..=2,
        Averages::Decoupled => colour..=colour,
    }
}

impl Level {
    /// p_a as ns-2 has it, of any sign; infinite where ns-2 divides by zero.
    fn p_a(&self) -> (f64, f64) {
        let p_b = (1.0 / self.max_p_inv) * (self.avg - self.min_th) / (self.max_th - self.min_th);
        (p_b, p_b / (1.0 - f64::from(self.count) * p_b))
    }
}

impl Build for Params {
    type Mechanism = DsRed;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = check_colours(&self.green, &self.yellow, self.red.as_ref(), context)?;
        let packets = |th: Backlog| matches!(th, Backlog::Packets(_));
        if !packets(self.green.min_th) {
            return Err(Fault {
                field: "green.min_th",
                problem: format!("{}: dsRED counts packets", self.green.min_th),
                remedy: "all thresholds in packets".into(),
            });
        }
        for warning in &mut warnings {
            if warning.text.contains("not a whole number") {
                warning.text = "not a whole number of packets: as in ns-2 the fraction is cut off".into();
            }
        }
        let named = [("green.min_th", &self.green), ("yellow.min_th", &self.yellow)];
        let red = self.red.iter().map(|t| ("red.min_th", t));
        for (field, t) in named.into_iter().chain(red) {
            if t.min_th.amount().trunc() >= t.max_th.amount().trunc() {
                return Err(Fault {
                    field,
                    problem: format!(
                        "{} and {} are the same whole number, which is all ns-2 reads: it divides by their difference",
                        t.min_th, t.max_th
                    ),
                    remedy: "thresholds at least a packet apart".into(),
                });
            }
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> DsRed {
        let mean = self.mean_packet.unwrap_or(context.packet);
        let colours = [&self.green, &self.yellow, self.red.as_ref().unwrap_or(&self.yellow)];
        let level = colours.map(|t| Level {
            min_th: t.min_th.amount().trunc(),
            max_th: t.max_th.amount().trunc(),
            max_p_inv: 1.0 / t.max_p,
            avg: 0.0,
            count: UNSEEN,
            idle: Some(0.0),
        });
        DsRed {
            vars: Vars { level, told: None },
            averages: self.averages,
            w_q: self.w_q,
            ptc: context.link_rate.map_or(0.0, |r| r.0 as f64 / (8.0 * mean.0 as f64)),
            stats: [Stats::default(); 3],
            division_by_zero: 0,
        }
    }
}

impl DsRed {
    /// The time in seconds: as told, or from picoseconds.
    fn secs(&mut self, now: Time) -> f64 {
        self.vars.told.take().unwrap_or_else(|| now.secs())
    }

    /// An arrival of `colour` at `secs`, with these lengths.
    fn update(&mut self, secs: f64, colour: usize, lengths: [f64; 3]) {
        for i in sampled(self.averages, colour) {
            let l = self.vars.level[i];
            let idle_packets = l.idle.map_or(0, |since| (self.ptc * (secs - since)) as i64);
            // RIO-C adds colour by colour, rounding each time.
            let avg = match self.averages {
                Averages::Coupled => faded(l.avg, self.w_q, idle_packets, lengths[..=i].iter().copied()),
                other => faded(l.avg, self.w_q, idle_packets, std::iter::once(other.lengths(lengths)[i])),
            };
            self.vars.level[i].avg = avg;
        }
        if self.averages == Averages::Shared {
            let avg = self.vars.level[0].avg;
            self.vars.level.iter_mut().for_each(|l| l.avg = avg);
        }
    }
}

impl DsRed {
    pub(crate) fn tell_secs(&mut self, secs: f64) {
        self.vars.told = Some(secs);
    }
}

impl Mechanism for DsRed {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        let [green, yellow, red] = self.vars.level;
        show("avg_green", green.avg);
        show("avg_yellow", yellow.avg);
        show("avg_red", red.avg);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        const NAMES: [[&str; 3]; 3] = [
            ["early_green", "forced_green", "overflow_green"],
            ["early_yellow", "forced_yellow", "overflow_yellow"],
            ["early_red", "forced_red", "overflow_red"],
        ];
        for (names, s) in NAMES.iter().zip(&self.stats) {
            for (name, count) in names.iter().zip([s.early, s.forced, s.overflow]) {
                show(name, count);
            }
        }
        show("division_by_zero", self.division_by_zero);
    }
}

impl Aqm for DsRed {
    /// It looks at departures: idle time begins with them.
    fn serves(&self) -> bool {
        true
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let secs = self.secs(at.now);
        let colour = packet.colour as usize;
        if !at.queue.fits(packet.size) {
            self.stats[colour].overflow += 1;
            return Admission::Drop(Cause::OVERFLOW);
        }
        let lengths = Colour::ALL.map(|c| f64::from(at.queue.packets_of(c)));
        self.update(secs, colour, lengths);
        let l = &mut self.vars.level[colour];
        at.why.note("queued", self.averages.lengths(lengths)[colour]);
        at.why.note("avg", l.avg);
        if l.avg <= l.min_th {
            l.count = BELOW;
        } else if l.avg <= l.max_th {
            l.count = l.count.saturating_add(1);
            let (p_b, p_a) = l.p_a();
            self.division_by_zero += u64::from(p_a.is_infinite());
            let u = at.rng.uniform();
            at.why.note("count", f64::from(l.count));
            at.why.note("p_b", p_b);
            at.why.note("p_a", p_a);
            at.why.note("u", u);
            if u <= p_a {
                l.count = 0;
                self.stats[colour].early += 1;
                return Admission::Drop(EARLY);
            }
        } else {
            l.count = 0;
            self.stats[colour].forced += 1;
            return Admission::Drop(FORCED);
        }
        for i in sampled(self.averages, colour) {
            self.vars.level[i].idle = None;
        }
        Admission::Admit
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        let secs = self.secs(at.now);
        let waits = Colour::ALL.map(|c| at.queue.packets_of(c) > 0);
        let colour = packet.colour as usize;
        if !waits[colour] {
            let level = &mut self.vars.level;
            match self.averages {
                Averages::Shared => level[0].idle = Some(secs),
                Averages::Decoupled => level[colour].idle = Some(secs),
                Averages::Coupled if waits[..colour].contains(&true) => {}
                Averages::Coupled => {
                    let empty = (colour..3).take_while(|i| !waits[*i]);
                    empty.for_each(|i| level[i].idle = Some(secs));
                }
            }
        }
        Departure::Send
    }
}

// ns-2's policers (at dsRED's edge): how they turn a rate above its target into a colour.
//
// TSW2CM draws a number only above the target, TSW3CM for every packet: a random point on the rate.
// Source: ns-2.35, `diffserv/dsPolicy.cc`, by its behaviour; the estimator is RFC 2859's. Non-goal: its token buckets, which
// work like ours.

/// ns-2's chances.
#[derive(Clone, Copy, Debug)]
pub struct Policer;

impl Chance for Policer {
    fn out<W: Why + ?Sized>(rate: f64, ctr: f64, rng: &mut Rng, why: &mut W) -> bool {
        if rate <= ctr {
            return false;
        }
        let u = rng.uniform();
        why.note("u", u);
        u <= 1.0 - ctr / rate
    }

    /// Red if the point lies above the peak, yellow above the committed rate.
    fn colour<W: Why + ?Sized>(rate: f64, ctr: f64, ptr: f64, rng: &mut Rng, why: &mut W) -> Colour {
        let u = rng.uniform();
        why.note("u", u);
        match rate * (1.0 - u) {
            point if point > ptr => Colour::Red,
            point if point > ctr => Colour::Yellow,
            _ => Colour::Green,
        }
    }
}

#[cfg(test)]
mod policer_tests {
    use super::*;
    use crate::marker::{tsw2cm, tsw3cm};
    use proptest::prelude::*;

    #[test]
    fn two_colours_draw_above_the_target_only() {
        tsw2cm::tests::within_the_target::<Policer>();
        tsw2cm::tests::all_of_the_excess::<Policer>();
    }

    #[test]
    fn three_colours_draw_for_every_packet() {
        tsw3cm::tests::within_its_rate::<Policer>(50);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// The shares of IN, yellow and red are those of RFC 2859's probabilities.
        #[test]
        fn shares_are_those_of_the_rfc(ctr in 100_000u64..1_000_000, times in 1.1f64..6.0, peak in 1.0f64..4.0,
                                       seed in 0u64..1000) {
            tsw2cm::tests::in_keeps_to_the_target::<Policer>(ctr, times, seed);
            tsw3cm::tests::shares::<Policer>(times, peak, seed);
        }
    }
}

#[cfg(test)]
mod tests;

//! DWRED, dynamic WRED: thresholds that follow the windows of the flows, as the edge reports them.
//!
//! The edge knows the congestion windows of the flows that it lets in; every interval it tells the core their sum. What
//! the flows may have on the way at once is what the queue should take at most: max_th = ΣW, min_th = 0.15·max_th, and
//! max_p = 0.1. One average, of all packets, decides about all of them.
//! Source: Bouras and Sevasti 2004 (paper E), §4, Eq. (4) and (5). Signals: topic `"sum_window"`, packets, about no one flow.
//! The paper has its thresholds act on OUT packets, if we read it rightly, or on both colours: `colours`.
//! Before the first signal, and once the last is older than `stale_after`, the thresholds are those of `fallback_max_th`. A
//! figure that is no number, or not above 0, is not taken; one below a packet counts as one packet.
//! Non-goal: where the sum comes from (the `twam` marker at the edge).

use crate::aqm::Aqm;
use crate::aqm::curve::{Curve, Law, Rule};
use crate::aqm::spacing::{Countdown, Found, admission};
use crate::aqm::tally::Tally;
use crate::estimate::ewma::{QueueAverage, Weight};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::{Ecn, Packet};
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Signal;
use crate::units::{Backlog, Bytes, Duration, Time};
use crate::verdict::{Admission, Cause, Why};

/// What the edge's signals are about.
pub const TOPIC: &str = "sum_window";
/// The least that max_th can be, in packets.
const LEAST_MAX_TH: f64 = 1.0;

crate::choice! {
    /// Which packets the thresholds act on.
    pub enum Colours {
        /// Those out of profile; IN packets are dropped for want of room only.
        Out = "out",
        /// All.
        Both = "both",
    }
}

crate::params! {
    /// What an operator sets.
    pub struct Params {
        /// min_th as a part of max_th (the paper's b).
        min_share: f64 [UNIT] = 0.15;
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE] = 0.1;
        /// Which packets the thresholds act on.
        colours: Colours = Colours::Out;
        /// Where they act on both colours: the thresholds of IN packets as a multiple of those of OUT packets. The paper
        /// gives one set of thresholds.
        in_factor: f64 [POSITIVE] = 1.0;
        /// max_th where no signal says otherwise. Left out: the queue's limit.
        fallback_max_th: Option<Backlog> [POSITIVE];
        /// How old the last signal may be. Left out: any age.
        stale_after: Option<Duration> [POSITIVE];
        /// Weight of the newest sample in the average.
        w_q: f64 [UNIT_POSITIVE] = 0.002;
        /// From max_th to 2 max_th the probability rises from max_p to 1, rather than to 1 at once.
        gentle: bool = false;
        /// After a drop, at least 1/p packets of the colour are let by before the next.
        wait: bool = false;
        /// Packets of ECN-capable transports are marked rather than dropped early; forced drops remain.
        ecn: bool = false;
        /// Typical size on the wire: how fast an idle link ages the average, and what turns a limit in bytes into packets.
        /// Left out: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
    }
}

/// State between packets.
#[derive(Clone, Debug)]
pub struct Vars {
    average: QueueAverage,
    /// Of OUT and of IN packets.
    counts: [Countdown; 2],
    /// The sum told last, in packets, and when; [`Time::NEVER`]: never.
    told: (f64, Time),
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Dwred {
    vars: Vars,
    /// OUT, IN.
    stats: [Tally; 2],
    /// Signals taken, and signals refused.
    signals: (u64, u64),
    /// Arrivals that found nothing fresher than the fallback.
    unguided: u64,
    weight: Weight,
    rule: Rule,
    min_share: f64,
    max_p: f64,
    fallback: f64,
    stale_after: Option<Duration>,
    /// Thresholds of IN packets as a multiple of those of OUT packets; infinite where none act on them.
    in_factor: f64,
    ecn: bool,
}

/// Eq. (4) and (5).
#[must_use]
pub fn curve_of(sum_window: f64, min_share: f64, max_p: f64) -> Curve {
    let max_th = sum_window.max(LEAST_MAX_TH);
    Curve::new(min_share * max_th, max_th, max_p)
}

impl Build for Params {
    type Mechanism = Dwred;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if self.min_share >= 1.0 {
            return Err(Fault {
                field: "min_share",
                problem: "min_th would not be below max_th".into(),
                remedy: "less than 1, such as the paper's 0.15".into(),
            });
        }
        if self.fallback_max_th.or(context.limit).is_none() {
            return Err(Fault {
                field: "fallback_max_th",
                problem: "the queue has no limit for max_th to start from".into(),
                remedy: "a fallback_max_th, such as \"160 packets\"".into(),
            });
        }
        if self.colours == Colours::Out && self.in_factor != 1.0 {
            let text =
                "no thresholds act on IN packets, so there is nothing to multiply: write colours = \"both\""
                    .into();
            return Ok(vec![Warning { field: "in_factor", text }]);
        }
        Ok(Vec::new())
    }

    fn build(&self, context: &Context) -> Dwred {
        let packet = self.mean_packet.unwrap_or(context.packet);
        let fallback = self.fallback_max_th.or(context.limit);
        Dwred {
            vars: Vars {
                average: QueueAverage::default(),
                counts: [Countdown::default(); 2],
                told: (0.0, Time::NEVER),
            },
            stats: [Tally::default(); 2],
            signals: (0, 0),
            unguided: 0,
            weight: Weight::new(self.w_q, context.link_rate, packet),
            rule: Rule {
                law: Law::Floyd93,
                gentle: self.gentle,
                wait: self.wait,
                in_bytes: false,
                mean: None,
            },
            min_share: self.min_share,
            max_p: self.max_p,
            fallback: fallback.map_or(f64::INFINITY, |b| b.packets(packet)),
            stale_after: self.stale_after,
            in_factor: if self.colours == Colours::Out { f64::INFINITY } else { self.in_factor },
            ecn: self.ecn,
        }
    }
}

impl Dwred {
    /// Whether the last signal still counts.
    fn guided(&self, now: Time) -> bool {
        let at = self.vars.told.1;
        at != Time::NEVER && self.stale_after.is_none_or(|most| now.since(at) <= most)
    }

    /// The curve in force.
    fn curve(&self, now: Time) -> Curve {
        let sum = if self.guided(now) { self.vars.told.0 } else { self.fallback };
        curve_of(sum, self.min_share, self.max_p)
    }
}

impl Mechanism for Dwred {
    fn sees_reverse(&self) -> bool {
        false
    }

    fn signal(&mut self, now: Time, signal: &Signal) {
        if signal.topic != TOPIC || signal.flow.is_some() {
            return;
        }
        if signal.value.is_finite() && signal.value > 0.0 {
            self.vars.told = (signal.value, now);
            self.signals.0 += 1;
        } else {
            self.signals.1 += 1;
        }
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let (avg, curve) = (self.vars.average.get(), self.curve(now));
        show("avg", avg);
        show("min_th", curve.min_th);
        show("max_th", curve.max_th);
        show("p_b", curve.p_b(avg, self.rule.gentle));
        show("guided", f64::from(u8::from(self.guided(now))));
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let [out, r#in] = &self.stats;
        Tally::show_both(r#in, out, show);
        show("signals", self.signals.0);
        show("signals_refused", self.signals.1);
        show("unguided", self.unguided);
    }
}

impl Aqm for Dwred {
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let queued = f64::from(queue.packets());
        let avg = self.vars.average.sample(&self.weight, now, queued, queue.idle_since());
        self.unguided += u64::from(!self.guided(now));
        let mut curve = self.curve(now);
        why.note("queued", queued);
        why.note("avg", avg);
        why.note("max_th", curve.max_th);
        let is_in = packet.colour.is_in();
        if is_in {
            let scaled = |threshold| {
                if self.in_factor.is_finite() { self.in_factor * threshold } else { f64::INFINITY }
            };
            curve = Curve::new(scaled(curve.min_th), scaled(curve.max_th), curve.max_p);
        }
        let count = &mut self.vars.counts[usize::from(is_in)];
        let fate = count.test(&curve, &self.rule, Found { avg, size: packet.size }, || queued, rng, why);
        let can_mark = self.ecn && packet.ecn != Ecn::NotCapable;
        let verdict = admission(fate, self.rule.law, can_mark, queue.fits(packet.size));
        self.stats[usize::from(is_in)].count(verdict);
        if verdict == Admission::Drop(Cause::OVERFLOW) {
            count.restart();
        }
        verdict
    }
}

#[cfg(test)]
mod tests;

//! DWRED, dynamic WRED: its thresholds follow the sum of the flows' windows, as reported by the edge.
//!
//! The edge knows the congestion windows of the flows that enter there; once per interval it sends their sum to the core. The
//! queue should hold no more than the flows may have in flight: max_th = ΣW, min_th = 0.15·max_th, and max_p = 0.1. One
//! average, of all packets, decides about all of them.
//! Source: Bouras and Sevasti 2004 (paper E), §4, Eq. (4) and (5). Signal: topic `"sum_window"`, in packets, for no single
//! flow. In the paper the thresholds apply to OUT packets, as we read it, or to both colours: `colours`.
//! Before the first signal, and once the last one is older than `stale_after`, the thresholds are those of
//! `fallback_max_th`. A value that is not a number, or not above 0, is ignored; a value below one packet counts as one.
//! Non-goal: computing the sum (the `twam` marker does, at the edge).

use crate::aqm::red::common::{Common, Config, show_in_and_out};
use crate::aqm::red::law::{Curve, Law};
use crate::aqm::red::rio::{self, IN, OUT};
use crate::prelude::*;

/// The topic of the edge's signals.
pub const TOPIC: &str = "sum_window";
/// The least that max_th can be, in packets.
const LEAST_MAX_TH: f64 = 1.0;

crate::choice! {
    /// Which packets the thresholds act on.
    pub enum Colours {
        /// Those out of profile; IN packets are dropped on overflow only.
        Out = "out",
        /// All.
        Both = "both",
    }
}

crate::params! {
    /// The operator's settings.
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
        /// max_th where no signal says otherwise. Default: the queue's limit.
        fallback_max_th: Option<Backlog> [POSITIVE];
        /// How old the last signal may be. Default: any age.
        stale_after: Option<Duration> [POSITIVE];
        ..common: Common;
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Dwred {
    /// One average, of all packets, for both colours, and a count for each. The law's own curves are not used: DWRED's move.
    law: Law<2>,
    /// The last sum signalled, in packets, and when it came; [`Time::NEVER`] before the first.
    told: (f64, Time),
    /// Signals accepted, and signals refused.
    signals: (u64, u64),
    /// Arrivals decided by the fallback thresholds, as no signal was fresh.
    unguided: u64,
    min_share: f64,
    max_p: f64,
    fallback: f64,
    stale_after: Option<Duration>,
    /// Thresholds of IN packets as a multiple of those of OUT packets; infinite where none act on them.
    in_factor: f64,
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
        let fallback = self.fallback_max_th.or(context.limit);
        let fallback = fallback.map_or(f64::INFINITY, |b| b.packets(self.common.packet(context)));
        let rule = self.common.rule(Backlog::Packets(0.0), false, context);
        let curve = curve_of(fallback, self.min_share, self.max_p);
        let config = Config::new(self.common.weight(context), [curve; 2], [[true; 2]; 2], rule);
        Dwred {
            law: Law::new(config),
            told: (0.0, Time::NEVER),
            signals: (0, 0),
            unguided: 0,
            min_share: self.min_share,
            max_p: self.max_p,
            fallback,
            stale_after: self.stale_after,
            in_factor: if self.colours == Colours::Out { f64::INFINITY } else { self.in_factor },
        }
    }
}

impl Dwred {
    /// Whether the last signal still counts.
    fn guided(&self, now: Time) -> bool {
        let at = self.told.1;
        at != Time::NEVER && self.stale_after.is_none_or(|most| now.since(at) <= most)
    }

    /// The curve in force.
    fn curve(&self, now: Time) -> Curve {
        let sum = if self.guided(now) { self.told.0 } else { self.fallback };
        curve_of(sum, self.min_share, self.max_p)
    }
}

impl Mechanism for Dwred {
    fn keeps_time(&self) -> bool {
        true
    }

    fn signal(&mut self, now: Time, signal: &Signal) {
        if signal.topic != TOPIC || signal.flow.is_some() {
            return;
        }
        if signal.value.is_finite() && signal.value > 0.0 {
            self.told = (signal.value, now);
            self.signals.0 += 1;
        } else {
            self.signals.1 += 1;
        }
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let (avg, curve) = (self.law.vars.avg[OUT], self.curve(now));
        show("avg", avg);
        show("min_th", curve.min_th);
        show("max_th", curve.max_th);
        show("p_b", curve.p_b(avg, self.law.config.rule.gentle));
        show("guided", f64::from(u8::from(self.guided(now))));
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        show("signals", self.signals.0);
        show("signals_refused", self.signals.1);
        show("unguided", self.unguided);
    }
}

impl Aqm for Dwred {
    fn marks(&self) -> bool {
        self.law.config.rule.ecn
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let mut arrival = rio::arrival(at.now, packet, at.queue, false);
        let queued = arrival.lengths[OUT];
        arrival.lengths[IN] = queued;
        let avg = self.law.sample(&arrival);
        self.unguided += u64::from(!self.guided(at.now));
        let mut curve = self.curve(at.now);
        at.why.note("queued", queued);
        at.why.note("avg", avg);
        at.why.note("max_th", curve.max_th);
        if arrival.colour == IN {
            let scaled = |threshold| {
                if self.in_factor.is_finite() { self.in_factor * threshold } else { f64::INFINITY }
            };
            curve = Curve::new(scaled(curve.min_th), scaled(curve.max_th), curve.max_p);
        }
        let test = self.law.test_by(&curve, &arrival, at.rng, at.why);
        self.law.conclude(packet, arrival.colour, test, at.queue.fits(packet.size))
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        show_in_and_out(queue, show);
        self.stats(show);
    }
}

#[cfg(test)]
mod tests;

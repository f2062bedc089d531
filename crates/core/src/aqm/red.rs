//! RED, random early detection: drops at random before the queue is full, and more often the longer it is on average.
//!
//! Each arrival updates the average queue length. Below min_th every packet joins; between the thresholds some are dropped,
//! evenly spaced, so that flows lose packets in proportion to their share of the traffic and not in bursts; above max_th all
//! are dropped.
//! Source: Floyd and Jacobson 1993, Fig. 2; gentle: Floyd 2000; marking: RFC 3168 §7; the algorithm is the [law] for one
//! colour. At min_th itself p = 0, at max_th (with gentle, 2·max_th) p = 1. A packet that finds the queue full has updated the
//! average first, and restarts the count like any dropped packet.
//! Non-goal: choosing its own parameters ([adaptive RED](ared)).
//!
//! The family is in this folder: [RIO](rio) and [WRED](wred) have more colours, [RI+O](rio_plus_out) a third curve, and the
//! curves of [adaptive RED](ared) and [DWRED](dwred) move.

pub mod ared;
pub mod choke;
pub mod common;
pub mod dwred;
pub mod law;
pub mod rio;
pub mod rio_plus_out;
pub mod wred;

use common::{Common, Config, Full, Paths, causes, check_thresholds, packet_size, show_causes};
use law::{Curve, EarlyTest, Floyd93, Law, Variant};

use crate::prelude::*;

pub use common::DropAt;

pub use law::{EARLY, FORCED};

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Average below which nothing is dropped. Its unit, packets or bytes, is the average's.
        min_th: Backlog [NON_NEGATIVE];
        /// Average at which the drop probability has risen to max_p. In min_th's unit.
        max_th: Backlog [POSITIVE];
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE];
        /// The probability is multiplied by the packet's size / mean_packet.
        byte_scaled: bool = false;
        /// Which packet goes when the queue is full: the arrival, one at the front, or any. Early drops are of the arrival.
        drop: DropAt = DropAt::Tail;
        ..common: Common { gentle = true };
    }
}

/// The discipline, generic over the variant of the law.
#[derive(Clone, Debug)]
pub struct Red<R = Floyd93> {
    pub(crate) law: Law<1, R>,
}

impl Build for Params {
    type Mechanism = Red;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = Vec::new();
        let paths = Paths { min_th: "min_th", max_th: "max_th" };
        check_thresholds(self.min_th, self.max_th, paths, context, &mut warnings)?;
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Red {
        self.discipline(context)
    }
}

impl Params {
    /// The discipline as a variant computes it.
    pub(crate) fn discipline<R: Variant>(&self, context: &Context) -> Red<R> {
        let curve = Curve::new(self.min_th.amount(), self.max_th.amount(), self.max_p);
        let rule = self.common.rule(self.min_th, self.byte_scaled, context);
        let mut config = Config::new(self.common.weight(context), [curve], [[true]], rule);
        config.full = Full { drop: self.drop, mean_packet: packet_size(self.common.packet(context)) };
        Red { law: Law::new(config) }
    }
}

impl<R: Variant> Red<R> {
    /// Brings the average up to date with an arrival and tests it.
    #[inline(always)]
    pub(crate) fn test<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> EarlyTest {
        let (arrival, _) = self.law.look(now, packet, queue, why);
        self.law.test(&arrival, rng, why)
    }

    /// The queue is full: takes waiting packets out of it in place of the arrival, as `drop` says: one, or where the limit is in
    /// bytes as many as give it room. Either they go or the arrival does, never both. The verdict on the arrival.
    #[cold]
    fn make_room<Q: Queue + ?Sized>(&mut self, packet: &Packet, queue: &mut Q, rng: &mut Rng) -> Admission {
        let drop = self.law.config.full.drop;
        let mut victim = R::victim(drop, queue.packets(), rng);
        if victim >= queue.packets() || !self.can_have_room(packet, queue) {
            return Admission::Drop(Cause::OVERFLOW);
        }
        while queue.evict(victim) {
            if queue.fits(packet.size) {
                return Admission::Admit;
            }
            victim = R::victim(drop, queue.packets().saturating_sub(1), rng);
        }
        Admission::Drop(Cause::OVERFLOW)
    }

    /// Whether an arrival would fit with others out of its way: not where it alone is above the limit, and not where the queue
    /// is, because the limit was lowered while they waited.
    fn can_have_room<Q: Queue + ?Sized>(&self, packet: &Packet, queue: &Q) -> bool {
        let limit = queue.limit();
        let fits_alone = !matches!(limit, Backlog::Bytes(most) if f64::from(packet.size) > most);
        self.joins_below(limit).is_some() || fits_alone && queue.backlog() <= limit.amount()
    }

    /// The average as of the last arrival.
    pub(crate) fn avg(&self) -> f64 {
        self.law.vars.avg[0]
    }

    /// A packet was dropped that the test had let by.
    pub(crate) fn restart(&mut self) {
        self.law.vars.count[0].restart();
    }

    /// For a variant that moves it, for this queue alone.
    pub(crate) fn set_max_p(&mut self, max_p: f64) {
        let curve = &mut std::sync::Arc::make_mut(&mut self.law.config).curves[0];
        *curve = Curve::new(curve.min_th, curve.max_th, max_p);
    }
}

impl<R: Variant> Mechanism for Red<R> {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("avg", self.avg());
        show("p_b", self.law.p_b(0));
    }
}

impl<R: Variant> Aqm for Red<R> {
    fn serves(&self) -> bool {
        self.law.config.full.drop != DropAt::Tail
    }

    fn marks(&self) -> bool {
        self.law.config.rule.ecn
    }

    #[inline]
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let test = self.test(at.now, packet, at.queue, at.rng, at.why);
        match self.law.conclude(packet, 0, test, at.queue.fits(packet.size)) {
            Admission::Drop(Cause::OVERFLOW) => self.make_room(packet, at.queue, at.rng),
            verdict => verdict,
        }
    }

    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        R::joins_below(limit, &self.law.config.rule, u64::from(self.law.config.full.mean_packet))
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        let [early, forced, overflow, marked] = causes(queue, &Colour::ALL);
        // What goes in place of an arrival goes because the queue is full.
        let overflow = overflow + queue.dropped_by(Cause::EVICTED);
        show_causes([early, forced, overflow, marked], ["early", "forced", "overflow", "marked"], show);
    }
}

#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
pub(crate) mod oracle {
    //! The slow, obvious RED that tests compare with: everything recomputed at each arrival from the whole past.
    //!
    //! Written from Floyd and Jacobson 1993, Fig. 2 and §4, and sharing nothing with the fast code but types.

    use crate::aqm::red::law::Curve;

    /// The contribution of one arrival to an average.
    #[derive(Clone, Copy, Debug)]
    pub enum Sample {
        /// It found the link busy and this length.
        Length(f64),
        /// It ended so many packet times of idleness.
        Idle(f64),
    }

    /// The average after these, from first principles: each length weighs w, faded by everything after it.
    pub fn average(samples: &[Sample], w_q: f64) -> f64 {
        let mut avg = 0.0;
        let mut fade = 1.0;
        for s in samples.iter().rev() {
            match *s {
                Sample::Length(q) => {
                    avg += fade * w_q * q;
                    fade *= 1.0 - w_q;
                }
                Sample::Idle(m) => fade *= libm::pow(1.0 - w_q, m),
            }
        }
        avg
    }

    /// One arrival that is over: the average it was tested with, and whether it was dropped.
    #[derive(Clone, Copy, Debug)]
    pub struct Past {
        /// The average it was tested with.
        pub avg: f64,
        /// For whatever cause.
        pub dropped: bool,
    }

    /// The chance that an arrival with this average is dropped, given all earlier arrivals of its colour.
    pub fn p_a(past: &[Past], avg: f64, curve: &Curve, gentle: bool, wait: bool) -> f64 {
        let Curve { min_th, max_th, max_p, .. } = *curve;
        if avg < min_th {
            return 0.0;
        }
        let p_b = if avg < max_th {
            max_p * (avg - min_th) / (max_th - min_th)
        } else if gentle && avg < 2.0 * max_th {
            let share = (avg - max_th) / max_th;
            max_p * (1.0 - share) + share
        } else {
            return 1.0;
        };
        // Fig. 2: count starts at −1 below min_th and at 0 after a drop; this arrival adds 1.
        let mut count = 1.0;
        let below = |p: &Past| p.avg < min_th;
        match past.iter().rev().take_while(|p| !below(p) && !p.dropped).count() {
            n if n == past.len() || below(&past[past.len() - 1 - n]) => count += n as f64 - 1.0,
            n => count += n as f64,
        }
        let spread = count * p_b;
        if wait {
            return if spread < 1.0 { 0.0 } else { (p_b / (2.0 - spread).max(0.0)).min(1.0) };
        }
        if spread >= 1.0 { 1.0 } else { (p_b / (1.0 - spread)).min(1.0) }
    }
}

//! RED, random early detection: drops at random before the queue is full, the more the longer it is on average.
//!
//! Each arrival updates the average. Below min_th all join; between the thresholds some are dropped, evenly
//! spaced, so that flows are hit in proportion to their share and not in lockstep; above, all are dropped.
//! Source: Floyd and Jacobson 1993, Fig. 2; gentle: Floyd 2000; marking: RFC 3168 §7; `drop`: ns-2.35, red.cc. On the thresholds
//! themselves: at min_th p = 0, at max_th (gentle: 2·max_th) p = 1. A packet that finds the queue full
//! has updated the average first, and restarts the count as any dropped packet does.
//! Non-goal: choosing its own parameters ([adaptive RED](super::ared)).

use std::sync::Arc;

use crate::aqm::Aqm;
use crate::aqm::curve::{self, Curve, Law, Rule, Variant};
use crate::aqm::spacing::{Countdown, Fate, Found, admission};
use crate::aqm::tally::Tally;
use crate::aqm::thresholds::{Paths, check_thresholds};
use crate::estimate::ewma::{QueueAverage, Weight};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::{Ecn, Packet};
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::{Queue, Strike};
use crate::rng::Rng;
use crate::units::{Backlog, Bytes, Time};
use crate::verdict::{Admission, Cause, Why};

/// What is counted, by name.
const NAMES: [&str; 4] = ["early", "forced", "overflow", "marked"];

crate::choice! {
    /// Which packet goes when an arrival finds the queue full. What chance picks is always the arrival.
    pub enum DropAt {
        /// The arrival: ns-2's `drop_tail_`.
        Tail = "tail",
        /// The next to leave; `variant = "ns2"`: the one behind it, as ns-2's `drop_front_` has it.
        Front = "front",
        /// Any, with equal chances, the arrival included: ns-2's `drop_rand_`.
        Random = "random",
    }
}

crate::params! {
    /// What an operator sets.
    pub struct Params {
        /// Average below which nothing is dropped. Its unit, packets or bytes, is the average's.
        min_th: Backlog [NON_NEGATIVE];
        /// Average at which the drop probability has risen to max_p. In min_th's unit.
        max_th: Backlog [POSITIVE];
        /// Drop probability just below max_th.
        max_p: f64 [UNIT_POSITIVE];
        /// Weight of the newest sample in the average.
        w_q: f64 [UNIT_POSITIVE] = 0.002;
        /// From max_th to 2 max_th the probability rises from max_p to 1, rather than to 1 at once.
        gentle: bool = true;
        /// After a drop, at least 1/p packets are let by before the next.
        wait: bool = false;
        /// Packets of ECN-capable transports are marked rather than dropped early; forced drops remain.
        ecn: bool = false;
        /// The probability is multiplied by the packet's size / mean_packet.
        byte_scaled: bool = false;
        /// Typical size on the wire: how fast an idle link ages the average, and what byte_scaled divides
        /// by. Left out: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
        /// Floyd and Jacobson's algorithm, or ns-2's, random number by random number: with thresholds in bytes that counts the limit in bytes, too, a packet for mean_packet, and lets a packet join while fewer wait.
        variant: Variant = Variant::Floyd93;
        /// Which packet goes when the queue is full: the arrival, one at the front, or any. Early drops are of the arrival.
        drop: DropAt = DropAt::Tail;
    }
}

/// What no arrival changes in [`Red`]. Copies of a queue share it: of a million queues alike each keeps one cache line, and this is
/// read from the nearest cache.
#[derive(Clone, Debug)]
struct Config {
    weight: Weight,
    curve: Curve,
    rule: Rule,
    ecn: bool,
    /// Typical size on the wire, in bytes.
    mean: u64,
    drop: DropAt,
}

/// State of [`Red`] between packets.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    average: QueueAverage,
    count: Countdown,
}

/// The discipline: all that an arrival writes, its counts too, is one cache line.
#[derive(Clone, Debug)]
pub struct Red {
    vars: Vars,
    config: Arc<Config>,
    stats: Tally,
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
    fn weight(&self, context: &Context) -> Weight {
        Weight::new(self.w_q, context.link_rate, self.mean_packet.unwrap_or(context.packet))
    }

    fn rule(&self, law: Law, context: &Context) -> Rule {
        let mean = self.mean_packet.unwrap_or(context.packet);
        Rule {
            law,
            gentle: self.gentle,
            wait: self.wait,
            in_bytes: matches!(self.min_th, Backlog::Bytes(_)),
            mean: self.byte_scaled.then(|| curve::size_of(mean)),
        }
    }

    pub(super) fn discipline(&self, context: &Context) -> Red {
        let law = if self.variant == Variant::Ns2 { Law::Ns2Red } else { Law::Floyd93 };
        // ns-2 is told 1 / max_p (`linterm_`).
        let max_p = if law == Law::Ns2Red { 1.0 / (1.0 / self.max_p) } else { self.max_p };
        let config = Config {
            weight: self.weight(context),
            curve: Curve::new(self.min_th.amount(), self.max_th.amount(), max_p),
            rule: self.rule(law, context),
            ecn: self.ecn,
            mean: self.mean_packet.unwrap_or(context.packet).0,
            drop: self.drop,
        };
        Red { vars: Vars::default(), config: Arc::new(config), stats: Tally::default() }
    }
}

impl Red {
    /// Brings the average up to date with an arrival and tests it.
    #[inline(always)]
    pub(super) fn test<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Fate {
        let (v, c) = (&mut self.vars, &*self.config);
        let queued = if c.rule.in_bytes { queue.bytes() as f64 } else { f64::from(queue.packets()) };
        let idle = queue.idle_since();
        let avg = match c.rule.law {
            Law::Floyd93 => v.average.sample(&c.weight, now, queued, idle),
            Law::Ns2Red | Law::Ns2Rio => {
                if let Some(secs) = queue.idle_secs(now) {
                    v.average.age_ns2_for(&c.weight, now, secs);
                }
                v.average.sample_ns2(&c.weight, now, queued, None)
            }
        };
        why.note("queued", queued);
        why.note("avg", avg);
        v.count.test(&c.curve, &c.rule, Found { avg, size: packet.size }, || queued, rng, why)
    }

    /// The queue is full: takes a waiting packet out of it in place of the arrival, as `drop` says. The verdict on the
    /// arrival.
    #[cold]
    fn make_room<Q: Queue + ?Sized>(&self, packet: &Packet, queue: &mut Q, rng: &mut Rng) -> Admission {
        let waiting = queue.packets();
        let ns2 = self.config.rule.law.is_ns2();
        // red.cc, pickPacketToDrop: the arrival is in the queue already, as its last.
        let place = match self.config.drop {
            DropAt::Tail => waiting,
            DropAt::Front => u32::from(ns2).min(waiting),
            DropAt::Random if ns2 => rng.below_ns2(waiting + 1),
            DropAt::Random => rng.below(waiting + 1),
        };
        if queue.strike_at(place, Strike::Drop) && queue.fits(packet.size) {
            return Admission::Admit;
        }
        Admission::Drop(Cause::OVERFLOW)
    }

    /// Whose algorithm.
    pub(super) fn law(&self) -> Law {
        self.config.rule.law
    }

    /// A packet was dropped that the test had let by.
    pub(super) fn restart(&mut self) {
        self.vars.count.restart();
    }

    /// The average as of the last arrival.
    pub(super) fn avg(&self) -> f64 {
        self.vars.average.get()
    }

    /// The curve as it stands.
    #[cfg(test)]
    pub(super) fn curve(&self) -> Curve {
        self.config.curve
    }

    /// For a variant that moves it, for this queue alone.
    pub(super) fn set_max_p(&mut self, max_p: f64) {
        let curve = &mut Arc::make_mut(&mut self.config).curve;
        *curve = Curve::new(curve.min_th, curve.max_th, max_p);
    }
}

impl Mechanism for Red {
    fn keeps_time(&self) -> bool {
        false
    }

    fn sees_reverse(&self) -> bool {
        false
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        let (avg, c) = (self.avg(), &self.config);
        show("avg", avg);
        show("p_b", c.curve.p_b(avg, c.rule.gentle));
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.stats.show(NAMES, show);
    }
}

impl Aqm for Red {
    fn serves(&self) -> bool {
        self.config.drop != DropAt::Tail
    }

    #[inline]
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let fate = self.test(now, packet, queue, rng, why);
        let can_mark = self.config.ecn && packet.ecn != Ecn::NotCapable;
        let verdict = admission(fate, self.config.rule.law, can_mark, queue.fits(packet.size));
        self.stats.count(verdict);
        if verdict == Admission::Drop(Cause::OVERFLOW) {
            self.vars.count.restart();
            return self.make_room(packet, queue, rng);
        }
        verdict
    }

    /// ns-2's RED in bytes (`queue_in_bytes_`) drops what finds `limit_` · `mean_pktsize_` bytes or more, whatever their
    /// number and its own size.
    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        let c = &*self.config;
        (c.rule.law == Law::Ns2Red && c.rule.in_bytes).then(|| match limit {
            Backlog::Packets(n) => (n as u64).saturating_mul(c.mean),
            Backlog::Bytes(n) => n as u64,
        })
    }
}

#[cfg(test)]
mod tests;

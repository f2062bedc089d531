//! PI: a proportional–integral controller that holds the queue at a length, by the probability with which arrivals are dropped.
//!
//! The probability moves `w` times a second, in proportion to the queue's distance from `q_ref` and to its change since the last
//! sample; it comes to rest only at `q_ref`, whatever the load (the integral part).
//! Source: Hollot, Misra, Towsley and Gong 2001. Not in the paper: a queue counted in bytes, probabilities scaled by a
//! packet's size, and a choice between drops and marks, which the paper treats alike.
//! Non-goal: a target in time ([`pie`](crate::aqm::pie), [`pi2`](crate::aqm::l4s)).

use std::fmt::Debug;
use std::marker::PhantomData;

use crate::aqm::Unit;
use crate::aqm::{Aqm, beyond_limit, by_chance};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::Packet;
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Outbox;
use crate::units::{Backlog, Bytes, Duration, Time};
use crate::verdict::{Admission, Departure, Why};

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// The queue length to aim at; in bytes, it counts as so many packets of mean_packet.
        q_ref: Backlog [POSITIVE] = Backlog::Packets(200.0);
        /// Weight of the length's distance from q_ref now, per packet; above b.
        a: f64 [GAIN] = 1.822e-5;
        /// Weight of that distance at the last sample, per packet.
        b: f64 [NON_NEGATIVE] = 1.816e-5;
        /// Samples a second.
        w: f64 [PER_SECOND] = 160.0;
        /// A packet's drop probability is scaled by its size.
        byte_scaled: bool = false;
        /// Packets of ECN-capable transports are marked rather than dropped early.
        ecn: bool = false;
        /// Typical size on the wire. Default: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
    }
}

impl Params {
    /// The law with these settings, at an empty queue.
    #[must_use]
    pub fn law(&self, context: &Context) -> Law {
        let mean = self.mean_packet.unwrap_or(context.packet).0 as f64;
        let (unit, q_ref) = Unit::of(self.q_ref, mean);
        let scaled_by = self.byte_scaled.then_some(mean);
        Law { a: self.a, b: self.b, w: self.w, q_ref, unit, scaled_by, p: 0.0, q_old: 0.0 }
    }

    /// The discipline as a variant computes it.
    pub(crate) fn discipline<R: Variant>(&self, context: &Context) -> Pi<R> {
        Pi { law: self.law(context), ecn: self.ecn, waiting: 0, begun: false, variant: PhantomData }
    }
}

impl Build for Params {
    type Mechanism = Pi;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if self.a <= self.b {
            // The probability would move the wrong way, or not at all.
            return Err(Fault {
                field: "a",
                problem: format!(
                    "a = {} is not above b = {}: nothing would hold the queue at q_ref",
                    self.a, self.b
                ),
                remedy: "a above b, such as a = 1.822e-5 and b = 1.816e-5".into(),
            });
        }
        let mean = self.mean_packet.unwrap_or(context.packet);
        Ok(beyond_limit(("q_ref", self.q_ref), mean, context, "PI").into_iter().collect())
    }

    fn build(&self, context: &Context) -> Pi {
        self.discipline(context)
    }
}

/// The controller: its settings and state.
#[derive(Clone, Debug)]
pub struct Law {
    a: f64,
    b: f64,
    w: f64,
    /// In packets.
    q_ref: f64,
    /// The unit of lengths.
    unit: Unit,
    /// Where probabilities are scaled by size: the size of a packet whose probability is p.
    scaled_by: Option<f64>,
    p: f64,
    /// The length at the last sample, in packets or bytes.
    q_old: f64,
}

impl Law {
    /// Seconds between samples.
    #[must_use]
    pub fn interval(&self) -> f64 {
        1.0 / self.w
    }

    /// Hollot et al. 2001 §5: p(kT) = a (q(kT) − q_ref) − b (q((k − 1)T) − q_ref) + p((k − 1)T), within 0 and 1.
    pub fn sample(&mut self, length: u64) {
        let q = length as f64;
        let [now, old] = [q, self.q_old].map(|q| self.unit.packets(q));
        let p = self.a * (now - self.q_ref) - self.b * (old - self.q_ref) + self.p;
        self.p = p.clamp(0.0, 1.0);
        self.q_old = q;
    }

    /// The drop probability of a packet of this size.
    #[must_use]
    pub fn chance(&self, size: u32) -> f64 {
        self.scaled_by.map_or(self.p, |mean| (self.p * f64::from(size) / mean).min(1.0))
    }
}

/// The parts of the algorithm in which a variant may differ from [`Hollot01`].
pub trait Variant: Clone + Debug + Send + 'static {
    /// Whether an arrival is picked with probability `p`.
    fn picks<W: Why + ?Sized>(p: f64, rng: &mut Rng, why: &mut W) -> bool;

    /// See [`Aqm::joins_below`].
    fn joins_below(limit: Backlog, unit: Unit) -> Option<u64>;
}

/// Hollot, Misra, Towsley and Gong 2001.
#[derive(Clone, Copy, Debug)]
pub struct Hollot01;

impl Variant for Hollot01 {
    fn picks<W: Why + ?Sized>(p: f64, rng: &mut Rng, why: &mut W) -> bool {
        rng.chance("u", p, why)
    }

    fn joins_below(_: Backlog, _: Unit) -> Option<u64> {
        None
    }
}

/// The discipline, generic over the variant of the law.
#[derive(Clone, Debug)]
pub struct Pi<R = Hollot01> {
    pub(crate) law: Law,
    ecn: bool,
    /// The backlog, in packets or bytes.
    waiting: u64,
    /// Whether an interval has begun.
    begun: bool,
    variant: PhantomData<R>,
}

impl<R: Variant> Mechanism for Pi<R> {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        if self.begun {
            self.law.sample(self.waiting);
        }
        self.begun = true;
        Some(now + Duration::from_secs(self.law.interval()))
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("drop_prob", self.law.p);
    }
}

impl<R: Variant> Aqm for Pi<R> {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        _: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let p = self.law.chance(packet.size);
        let verdict = by_chance(packet, queue, (p, self.ecn), why, |why| R::picks(p, rng, why));
        if !matches!(verdict, Admission::Drop(_)) {
            self.waiting = self.law.unit.length(queue) + self.law.unit.added_by(packet.size);
        }
        verdict
    }

    fn depart<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        _: Time,
        _: &Packet,
        _: Time,
        queue: &mut Q,
        _: &mut Rng,
        _: &mut W,
    ) -> Departure {
        self.waiting = self.law.unit.length(queue);
        Departure::Send
    }

    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        R::joins_below(limit, self.law.unit)
    }
}

#[cfg(test)]
mod tests;

//! PI2: one queue whose delay a PI controller holds at a target, with its probability squared for Classic traffic.
//!
//! ECT(1) packets are marked with k·p′, others are dropped, or with ECT(0) marked, with p′²: flows with scalable and with Classic
//! congestion control get about the same rate, but wait in the same queue, for as long.
//! Source: RFC 9332 §2.4 (the base AQM of DualPI2 "with just the squared output and no L4S queue") and §2.5.1.1 (ECT(1) in a Classic
//! queue); De Schepper et al., PI2, CoNEXT 2016. The decision is taken as a packet leaves, as in the RFC's pseudocode.
//! Non-goal: low delay for L4S ([`dualpi2`](super::dualpi2) has a queue for it).

use crate::aqm::Aqm;
use crate::aqm::l4s::coupling::Coupling;
use crate::aqm::l4s::pi::Pi;
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::Packet;
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Outbox;
use crate::units::Time;
use crate::verdict::{Admission, Cause, Departure, Why};

/// The operator's settings.
pub use crate::aqm::l4s::pi::Params;

impl Build for Params {
    type Mechanism = Pi2;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        self.fit(context)
    }

    fn build(&self, _: &Context) -> Pi2 {
        Pi2 {
            pi: Pi::new(self.gains()),
            coupling: Coupling::new(self.coupling.config()),
            head: None,
            overflow: 0,
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Pi2 {
    pi: Pi,
    coupling: Coupling,
    /// When the packet at the head came, if one waits.
    head: Option<Time>,
    /// Packets dropped because the queue was full.
    overflow: u64,
}

impl Pi2 {
    /// How long the packet at the head has waited, in seconds.
    fn delay(&self, now: Time) -> f64 {
        self.head.map_or(0.0, |came| now.since(came).secs())
    }
}

impl Mechanism for Pi2 {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        Some(self.pi.update(now, self.delay(now)))
    }

    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let (p, config) = (self.pi.p_prime(), self.coupling.config());
        show("p_prime", p);
        show("p_c", config.p_c(p));
        show("p_cl", config.p_cl(p));
        show("delay", self.delay(now));
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        self.coupling.stats(show);
        show("overflow", self.overflow);
    }
}

impl Aqm for Pi2 {
    fn serves(&self) -> bool {
        true
    }

    fn l4s(&self) -> bool {
        self.coupling.config().l4s
    }

    fn marks(&self) -> bool {
        self.coupling.config().marks()
    }

    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        _: &mut Rng,
        _: &mut W,
    ) -> Admission {
        if !queue.fits(packet.size) {
            self.overflow += 1;
            return Admission::Drop(Cause::OVERFLOW);
        }
        if queue.packets() == 0 {
            self.head = Some(now);
        }
        Admission::Admit
    }

    fn depart<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        since: Time,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Departure {
        self.head = queue.head_since(0);
        why.note("sojourn", now.since(since).secs());
        let p_prime = self.pi.p_prime();
        why.note("p_prime", p_prime);
        let waiting = queue.bytes() + u64::from(packet.size);
        self.coupling.decide(packet, (p_prime, 0.0), waiting, rng, why)
    }
}

#[cfg(test)]
mod tests;

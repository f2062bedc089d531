//! ns-2's `Queue/PI`: how it computes Hollot et al.'s controller.
//!
//! - Every arrival that finds room draws a random number, also where the probability is 0 or 1, and goes if that is not above it.
//! - Samples are sums of doubles apart, and the first is one interval after the start.
//! - With `q_ref` in bytes (`queue_in_bytes_`) the limit is so many mean packets in bytes, and a packet joins while fewer wait, whatever
//!   its own size.
//!
//! Source: ns-2.35, queue/pi.cc, by its behaviour. Its counts since the last drop, which nothing reads, are left out.

use crate::aqm::pi::{Law, Params};
use crate::aqm::{Aqm, by_chance};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::Packet;
use crate::params::Context;
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Outbox;
use crate::units::{Backlog, Duration, Time};
use crate::verdict::{Admission, Departure, Why};

/// The discipline.
#[derive(Clone, Debug)]
pub struct Pi {
    law: Law,
    /// Packets or bytes that wait.
    waiting: u64,
    /// Whether an interval has begun.
    begun: bool,
}

impl Pi {
    /// As set.
    #[must_use]
    pub fn new(params: &Params, context: &Context) -> Pi {
        Pi { law: params.law(context), waiting: 0, begun: false }
    }

    /// Seconds between samples.
    #[must_use]
    pub fn interval(&self) -> f64 {
        self.law.interval()
    }
}

/// With the queue in bytes: `limit_` · `mean_pktsize_`.
pub(super) fn bytes(limit: Backlog, unit: Option<f64>) -> Option<u64> {
    unit.map(|mean| match limit {
        Backlog::Packets(n) => (n.floor() * mean) as u64,
        Backlog::Bytes(n) => n as u64,
    })
}

impl Mechanism for Pi {
    fn sees_reverse(&self) -> bool {
        false
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        if self.begun {
            self.law.sample(self.waiting);
        }
        self.begun = true;
        Some(now + Duration::from_secs(self.law.interval()))
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        self.law.show(show);
    }
}

impl Aqm for Pi {
    fn serves(&self) -> bool {
        true
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
        let verdict = by_chance(packet, queue, (p, self.law.ecn), why, |why| {
            let u = rng.uniform();
            why.note("u", u);
            u <= p
        });
        if !matches!(verdict, Admission::Drop(_)) {
            self.waiting = self.law.length(queue) + self.law.counted(packet.size);
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
        self.waiting = self.law.length(queue);
        Departure::Send
    }

    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        bytes(limit, self.law.unit())
    }
}

#[cfg(test)]
mod tests;

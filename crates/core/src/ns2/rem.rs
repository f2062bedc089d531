//! ns-2's `Queue/REM`: how it computes Athuraliya et al.'s price and what it does with it.
//!
//! - A packet that would fill the queue is dropped, so of a limit of n packets n − 1 wait; with `b_star` in bytes (`qib_`) the limit is so
//!   many mean packets in bytes.
//! - Every arrival that finds room draws a random number, also where the probability is 0, and goes if that is not above it. With bytes
//!   counted its chance is scaled by its size.
//! - With marks (`markpkts_`) no arrival draws and none is dropped early: each departure draws, and what can't be marked leaves as it came.
//!
//! Source: ns-2.35, queue/rem.cc, by its behaviour. There a departure with marks also draws where nothing waits; not here.

use crate::aqm::rem::{Law, Mismatch, Params};
use crate::aqm::{Aqm, EARLY};
use crate::mechanism::{Gauge, Mechanism};
use crate::ns2::pi::bytes;
use crate::packet::Packet;
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Outbox;
use crate::units::{Backlog, Duration, Time};
use crate::verdict::{Admission, Cause, Departure, Why};

/// The size as which ns-2 counts a waiting packet too many.
pub const ALPHA: f64 = 0.1;

/// Whether ns-2 has a word for these settings.
///
/// # Errors
/// If not, or if everything would be dropped.
pub fn check(params: &Params, context: &Context) -> Result<Vec<Warning>, Fault> {
    let fault = |field, problem: String, remedy: &str| Err(Fault { field, problem, remedy: remedy.into() });
    if params.alpha != ALPHA {
        return fault("alpha", format!("alpha is {ALPHA} in ns-2, not {}", params.alpha), "no alpha");
    }
    if params.mismatch != Mismatch::Rate {
        return fault("mismatch", "ns-2 compares rates".into(), "mismatch = \"rate\"");
    }
    match (params.b_star, context.limit) {
        (Backlog::Packets(_), Some(Backlog::Packets(n))) if n < 2.0 => fault(
            "variant",
            format!("with a limit of {n} packets ns-2's REM drops everything"),
            "a limit of at least 2 packets",
        ),
        (Backlog::Packets(_), Some(limit @ Backlog::Bytes(_))) => fault(
            "b_star",
            format!("ns-2's REM counts packets where b_star is in packets, and the limit is {limit}"),
            "a limit in packets, or b_star in bytes",
        ),
        _ => params.check(context),
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Rem {
    law: Law,
    every: Duration,
    /// `markpkts_`.
    marks: bool,
    /// Packets or bytes that wait.
    waiting: u64,
    /// Whether an interval has begun.
    begun: bool,
}

impl Rem {
    /// As set.
    #[must_use]
    pub fn new(params: &Params, context: &Context) -> Rem {
        let Params { t_update, ecn, .. } = *params;
        Rem { law: params.law(context), every: t_update, marks: ecn, waiting: 0, begun: false }
    }

    /// Seconds between updates.
    #[must_use]
    pub fn interval(&self) -> f64 {
        self.every.secs()
    }

    /// Whether a packet of this size is chosen.
    fn chooses<W: Why + ?Sized>(&self, size: u32, rng: &mut Rng, why: &mut W) -> bool {
        let p = self.law.unit.packet.map_or(self.law.p(), |mean| self.law.p() * f64::from(size) / mean);
        let u = rng.uniform();
        why.note("drop_prob", p);
        why.note("u", u);
        u <= p
    }
}

impl Mechanism for Rem {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        if self.begun {
            self.law.update(self.waiting);
        }
        self.begun = true;
        Some(now + self.every)
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        self.law.show(show);
    }
}

impl Aqm for Rem {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.marks
    }

    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        _: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        self.law.count(packet.size);
        let with_it = self.law.unit.length(queue) + self.law.unit.added_by(packet.size);
        let full = match (bytes(queue.limit(), self.law.unit), queue.limit()) {
            (Some(limit), _) => with_it >= limit,
            (None, Backlog::Packets(n)) => with_it as f64 >= n.floor(),
            (None, Backlog::Bytes(_)) => !queue.fits(packet.size),
        };
        if full {
            return Admission::Drop(Cause::OVERFLOW);
        }
        if !self.marks && self.chooses(packet.size, rng, why) {
            return Admission::Drop(EARLY);
        }
        self.waiting = with_it;
        Admission::Admit
    }

    fn depart<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        _: Time,
        packet: &Packet,
        _: Time,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Departure {
        self.waiting = self.law.unit.length(queue);
        if self.marks && self.chooses(packet.size, rng, why) && packet.ecn.can_mark() {
            return Departure::Mark;
        }
        Departure::Send
    }

    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        bytes(limit, self.law.unit)
    }
}

#[cfg(test)]
mod tests;

//! REM, random exponential marking: a price that rises while more comes than leaves or more waits than is wanted, and a probability that
//! is exponential in it.
//!
//! The chance that a packet passes several such links unmarked is exponential in the sum of their prices, and the price settles where
//! input equals capacity and the backlog is `b_star`, whatever the number of flows.
//! Source: Athuraliya, Li, Low and Yin 2001. Not in the paper: a smoothed input (`in_weight`), a queue counted in bytes.
//! Non-goal: sources that estimate the sum of prices from their marks.

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

crate::choice! {
    /// The measure of the difference between input and capacity.
    pub enum Mismatch {
        /// What came, less what the link could have sent.
        Rate = "rate",
        /// The change of the backlog, which needs neither to be measured.
        Backlog = "backlog",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// The backlog to aim at (b*); in bytes, it counts as so many packets of mean_packet.
        b_star: Backlog [NON_NEGATIVE] = Backlog::Packets(20.0);
        /// Step of the price, per packet.
        gamma: f64 [GAIN] = 0.001;
        /// What a waiting packet too many counts, beside one that comes and cannot leave.
        alpha: f64 [GAIN] = 0.1;
        /// Base of the exponential.
        phi: f64 [BASE] = 1.001;
        /// How often the price moves.
        t_update: Duration [POSITIVE] = Duration::from_millis(2);
        /// What is taken for the difference of input and capacity.
        mismatch: Mismatch = Mismatch::Rate;
        /// With mismatch = "rate": weight of the last interval's input in its average.
        in_weight: f64 [UNIT_POSITIVE] = 1.0;
        /// Packets of ECN-capable transports are marked rather than dropped early.
        ecn: bool = false;
        /// Typical size on the wire. Default: a full packet.
        mean_packet: Option<Bytes> [POSITIVE];
    }
}

impl Params {
    /// The law as set, of an empty queue.
    #[must_use]
    pub fn law(&self, context: &Context) -> Law {
        let mean = self.mean_packet.unwrap_or(context.packet).0 as f64;
        let (unit, b_star) = Unit::of(self.b_star, mean);
        let a_second = context.link_rate.map_or(0.0, |rate| rate.0 as f64 / (8.0 * mean));
        Law {
            gamma: self.gamma,
            alpha: self.alpha,
            phi: self.phi,
            in_weight: self.in_weight,
            by_rate: self.mismatch == Mismatch::Rate,
            b_star,
            unit,
            capacity: self.t_update.secs() * a_second,
            came: 0.0,
            input: 0.0,
            b_old: 0.0,
            price: 0.0,
            p: 0.0,
        }
    }
}

impl Build for Params {
    type Mechanism = Rem;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if self.mismatch == Mismatch::Rate && context.link_rate.is_none() {
            return Err(Fault {
                field: "mismatch",
                problem: "the capacity that the input is compared with is not known here".into(),
                remedy: "mismatch = \"backlog\"".into(),
            });
        }
        let mean = self.mean_packet.unwrap_or(context.packet);
        Ok(beyond_limit(("b_star", self.b_star), mean, context, "REM").into_iter().collect())
    }

    fn build(&self, context: &Context) -> Rem {
        Rem { law: self.law(context), every: self.t_update, ecn: self.ecn, waiting: 0, begun: false }
    }
}

/// The price and its probability: settings and state.
#[derive(Clone, Debug)]
pub struct Law {
    gamma: f64,
    alpha: f64,
    phi: f64,
    in_weight: f64,
    by_rate: bool,
    /// In packets.
    b_star: f64,
    /// The unit of the backlog.
    pub(crate) unit: Unit,
    /// Packets that the link can send in an interval.
    capacity: f64,
    /// Packets or bytes since the last update.
    came: f64,
    /// Packets in an interval, smoothed.
    input: f64,
    /// The backlog at the last update, in packets.
    b_old: f64,
    price: f64,
    p: f64,
}

impl Law {
    /// An arrival, whatever becomes of it.
    pub fn count(&mut self, size: u32) {
        self.came += self.unit.added_by(size) as f64;
    }

    /// Moves price and probability: so much waits.
    pub fn update(&mut self, waiting: u64) {
        let b = self.unit.packets(waiting as f64);
        let came = self.unit.packets(self.in_weight * self.came);
        self.input = self.input * (1.0 - self.in_weight) + came;
        let excess = if self.by_rate {
            // Athuraliya et al. 2001, Eq. (1): α (b − b*) + x − c
            self.input + self.alpha * (b - self.b_star) - self.capacity
        } else {
            // Athuraliya et al. 2001, Eq. (3): the change of the backlog for x − c
            b - (1.0 - self.alpha) * self.b_old - self.alpha * self.b_star
        };
        // Athuraliya et al. 2001, Eq. (1): never below 0.
        self.price = (self.price + self.gamma * excess).max(0.0);
        // Athuraliya et al. 2001, Eq. (2): 1 − φ^−price
        self.p = 1.0 - libm::pow(self.phi, -self.price);
        self.came = 0.0;
        self.b_old = b;
    }

    /// The probability, as it is for a packet of any size.
    #[must_use]
    pub fn p(&self) -> f64 {
        self.p
    }

    /// For monitors.
    pub(crate) fn show(&self, show: Gauge<'_>) {
        show("price", self.price);
        show("drop_prob", self.p);
        show("input", self.input);
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Rem {
    law: Law,
    every: Duration,
    ecn: bool,
    /// Packets or bytes that wait.
    waiting: u64,
    /// Whether an interval has begun.
    begun: bool,
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
        self.law.count(packet.size);
        let p = self.law.p;
        let verdict = by_chance(packet, queue, (p, self.ecn), why, |why| rng.chance("u", p, why));
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
}

#[cfg(test)]
pub mod oracle;
#[cfg(test)]
mod tests;

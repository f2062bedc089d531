//! What happens to packets between the end of their transmission and the far end of a link, beyond its propagation delay:
//! delays that vary from packet to packet (RFC 5481 §4.2), order that is not kept (RFC 4737), and loss (Gilbert 1960, Elliott 1963).
//!
//! All of it is drawn when a packet's transmission begins, in the order of transmissions, so it is the same whether service is
//! computed or stepped. A link without any of it has nothing of this. Non-goal: what bits are wrong in a packet that is not lost.

use std::collections::BTreeSet;

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Time};

use crate::clock::Clock;
use crate::traffic::distribution::Distribution;

/// No delay is longer: a million seconds, in picoseconds.
const LONGEST: f64 = 1e18;

/// What a link does with packets on their way. The default: it delivers all of them, after its propagation delay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wire {
    /// Delays beyond the propagation delay.
    pub jitter: Option<Jitter>,
    /// Loss on the way.
    pub loss: Option<Loss>,
}

impl Wire {
    /// Whether it only delays all packets alike.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Wire::default()
    }

    /// Whether packets may arrive in another order than they were sent in.
    #[must_use]
    pub fn reorders(&self) -> bool {
        self.jitter.as_ref().is_some_and(|j| j.reorder)
    }
}

/// A delay beyond the propagation delay, which is the shortest: RFC 5481's packet delay variation.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// How it is drawn.
    pub law: Law,
    /// What is longer becomes this.
    pub most: Option<Duration>,
    /// For how long a delay that was drawn holds for all packets. At zero each packet has its own.
    pub hold: Duration,
    /// Whether a packet may pass one that was sent before. If not, it arrives a picosecond after that one at the earliest.
    pub reorder: bool,
}

/// How a delay is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Uniform between two bounds.
    Uniform(Duration, Duration),
    /// Around a mean: exponential or Pareto.
    Mean(Duration, Distribution),
    /// Normal, of this mean and standard deviation; what is below zero is drawn again.
    Normal(Duration, Duration),
    /// This share of packets is delayed by so much, the others are not.
    Share(f64, Duration),
    /// No chance: so much from each of these times on, after `repeat` from the start again. The first is at 0.
    Steps(Vec<(Time, Duration)>, Option<Duration>),
}

impl Law {
    /// A delay in picoseconds, for a packet whose transmission begins at `now`.
    fn draw(&self, now: Time, rng: &mut Rng) -> f64 {
        match self {
            Law::Uniform(from, to) => from.0 as f64 + rng.uniform() * (to.0 - from.0) as f64,
            Law::Mean(mean, law) => law.draw(mean.0 as f64, rng),
            Law::Normal(mean, deviation) => loop {
                // Box and Muller 1958; the second number of the pair is not used.
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.uniform()));
                let normal = radius * libm::cos(std::f64::consts::TAU * rng.uniform());
                let delay = mean.0 as f64 + deviation.0 as f64 * normal;
                if delay >= 0.0 {
                    return delay;
                }
            },
            Law::Share(share, delay) => {
                if rng.uniform() < *share {
                    delay.0 as f64
                } else {
                    0.0
                }
            }
            Law::Steps(steps, repeat) => {
                let since = repeat.map_or(now.0, |r| now.0 % r.0);
                steps[steps.partition_point(|(at, _)| at.0 <= since) - 1].1.0 as f64
            }
        }
    }
}

/// Loss that comes in bursts: a chain of two states, a step before each packet. With equal probabilities in both, losses are
/// independent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Probability of going from the good state to the bad one.
    pub to_bad: f64,
    /// Probability of going from the bad state to the good one.
    pub to_good: f64,
    /// Probability that a packet is lost in the good state.
    pub in_good: f64,
    /// The same in the bad state.
    pub in_bad: f64,
}

impl Loss {
    /// Each packet is lost with this probability, whatever happens to the others.
    #[must_use]
    pub fn independent(share: f64) -> Loss {
        Loss { to_bad: 0.0, to_good: 0.0, in_good: share, in_bad: share }
    }

    /// The share of time in the bad state; without any change of state: none.
    #[must_use]
    pub fn bad(&self) -> f64 {
        let both = self.to_bad + self.to_good;
        if both > 0.0 { self.to_bad / both } else { 0.0 }
    }

    /// The share of packets that is lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let bad = self.bad();
        bad * self.in_bad + (1.0 - bad) * self.in_good
    }
}

/// A [`Wire`] in a run.
#[derive(Debug)]
pub(crate) struct WireState<C: Clock> {
    wire: Wire,
    rng: Rng,
    /// Whether loss is in its bad state.
    bad: bool,
    /// The delay that holds, in picoseconds, and until when.
    held: (f64, Time),
    /// The latest arrival so far.
    last: C,
    /// Where packets may pass one another: the arrivals to come. No two are at the same time.
    to_come: BTreeSet<u64>,
}

impl<C: Clock> WireState<C> {
    /// At the start of a run; loss is in one of its states as often as in the long run.
    pub fn new(wire: Wire, mut rng: Rng) -> WireState<C> {
        let bad = wire.loss.is_some_and(|loss| rng.uniform() < loss.bad());
        WireState { wire, rng, bad, held: (0.0, Time::ZERO), last: C::ZERO, to_come: BTreeSet::new() }
    }

    /// A packet's transmission begins now, and without jitter it would be at the far end at `there`. When it will be; `None`: it is lost.
    pub fn arrival(&mut self, now: C, there: C) -> Option<C> {
        if let Some(loss) = self.wire.loss {
            let turns = if self.bad { loss.to_good } else { loss.to_bad };
            self.bad ^= self.rng.uniform() < turns;
            if self.rng.uniform() < if self.bad { loss.in_bad } else { loss.in_good } {
                return None;
            }
        }
        let Some(jitter) = &self.wire.jitter else { return Some(there) };
        let time = now.time();
        if time >= self.held.1 {
            let most = jitter.most.map_or(LONGEST, |most| most.0 as f64);
            self.held = (jitter.law.draw(time, &mut self.rng).min(most), time + jitter.hold);
        }
        let picosecond = C::span(Duration(1));
        let mut there = there.after(C::span(Duration(self.held.0 as u64)));
        if jitter.reorder {
            self.to_come = self.to_come.split_off(&now.bits());
            while !self.to_come.insert(there.bits()) {
                there = there.after(picosecond);
            }
        } else {
            there = there.max(self.last.after(picosecond));
            self.last = there;
        }
        Some(there)
    }
}

#[cfg(test)]
mod tests;

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
mod tests {
    use super::*;
    use crate::clock::Exact;

    const MS: u64 = 1_000_000_000;
    const DELAY: u64 = 20 * MS;

    fn jitter(law: Law) -> Jitter {
        Jitter { law, most: None, hold: Duration::ZERO, reorder: true }
    }

    /// When packets arrive that are sent every `gap` picoseconds, one picosecond after they begin.
    fn arrivals(wire: Wire, n: u64, gap: u64) -> Vec<Option<u64>> {
        let mut state = WireState::<Exact>::new(wire, Rng::for_component(7, "wire"));
        (0..n).map(|i| state.arrival(Exact(i * gap), Exact(i * gap + DELAY)).map(|at| at.0)).collect()
    }

    /// The delays beyond the propagation delay, in ms, where nothing is lost.
    fn extras(jitter: Jitter, n: u64, gap: u64) -> Vec<f64> {
        let all = arrivals(Wire { jitter: Some(jitter), loss: None }, n, gap);
        (0..).zip(all).map(|(i, at)| (at.expect("no loss") - DELAY - i * gap) as f64 / MS as f64).collect()
    }

    fn moments(all: &[f64]) -> (f64, f64) {
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        (mean, all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
    }

    /// Means and variances from the laws' own formulas; Pareto's of shape 5: σ² = μ²/15.
    #[test]
    fn delays_have_the_moments_of_their_law() {
        let ms = Duration::from_millis;
        let n = 200_000;
        for (law, mean, variance) in [
            (Law::Uniform(ms(2), ms(8)), 5.0, 3.0),
            (Law::Mean(ms(4), Distribution::Exponential), 4.0, 16.0),
            (Law::Mean(ms(6), Distribution::Pareto(5.0)), 6.0, 36.0 / 15.0),
            (Law::Normal(ms(10), ms(2)), 10.0, 4.0),
            (Law::Share(0.1, ms(10)), 1.0, 9.0),
        ] {
            let (m, v) = moments(&extras(jitter(law.clone()), n, 100 * MS));
            // Five standard errors of the mean; of the variance a few percent.
            assert!((m - mean).abs() < 5.0 * (variance / n as f64).sqrt(), "{law:?}: mean {m}");
            assert!((v / variance - 1.0).abs() < 0.05, "{law:?}: variance {v}");
        }
        // A normal law near zero is one cut off there: mean μ + σ φ(μ/σ)/Φ(μ/σ), for μ = σ 1.2876 σ.
        let cut = extras(jitter(Law::Normal(ms(1), ms(1))), n, 100 * MS);
        assert!(cut.iter().all(|x| *x >= 0.0));
        assert!((moments(&cut).0 - 1.2876).abs() < 0.01, "{}", moments(&cut).0);
        let most = Jitter { most: Some(ms(3)), ..jitter(Law::Mean(ms(4), Distribution::Exponential)) };
        let capped = extras(most, n, 100 * MS);
        assert!(capped.iter().all(|x| *x <= 3.0));
        // The mean of min(X, c) is μ (1 − e^(−c/μ)).
        assert!((moments(&capped).0 - 4.0 * (1.0 - libm::exp(-0.75))).abs() < 0.01);
    }

    #[test]
    fn order_is_kept_unless_packets_may_pass() {
        let law = Law::Uniform(Duration::ZERO, Duration::from_millis(10));
        let run = |reorder| {
            let jitter = Jitter { reorder, ..jitter(law.clone()) };
            arrivals(Wire { jitter: Some(jitter), loss: None }, 10_000, MS)
        };
        let (kept, passed) = (run(false), run(true));
        assert!(kept.is_sorted_by(|a, b| a < b));
        // The same draws: a packet in order arrives when it would, or just after the one before.
        let mut last = 0;
        for (own, at) in passed.iter().flatten().zip(kept.iter().flatten()) {
            last = (*own).max(last + 1);
            assert_eq!(last, *at);
        }
        // RFC 4737 §4.1.1: a packet is late when a later one was there before. Of neighbours 1 ms apart with uniform delays over
        // 10 ms the second overtakes with 0.9²/2.
        let overtaken = passed.windows(2).filter(|w| w[0] > w[1]).count() as f64 / 9_999.0;
        assert!((overtaken - 0.405).abs() < 0.02, "{overtaken}");
    }

    /// Delays of two values only, at spacings that divide their difference: without care two packets would arrive at the same time.
    #[test]
    fn no_two_packets_arrive_at_the_same_time() {
        let law = Law::Share(0.5, Duration::from_millis(10));
        let mut all: Vec<u64> = arrivals(Wire { jitter: Some(jitter(law)), loss: None }, 10_000, MS)
            .into_iter()
            .flatten()
            .collect();
        all.sort_unstable();
        assert!(all.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_delay_holds_and_steps_repeat() {
        let ms = Duration::from_millis;
        let hold = Jitter { hold: ms(10), ..jitter(Law::Uniform(ms(0), ms(100))) };
        let held = extras(hold, 1000, MS);
        assert!(held.chunks(10).all(|ten| ten.iter().all(|x| (x - ten[0]).abs() < 1e-6)));
        assert_ne!(held[0], held[10]);
        let steps = vec![(Time(0), ms(0)), (Time(3 * MS), ms(5)), (Time(4 * MS), ms(1))];
        let seen = extras(jitter(Law::Steps(steps, Some(ms(5)))), 10, MS);
        let whole: Vec<f64> = seen.iter().map(|x| x.round()).collect();
        assert_eq!(whole, [0.0, 0.0, 0.0, 5.0, 1.0, 0.0, 0.0, 0.0, 5.0, 1.0]);
    }

    /// Gilbert 1960: the share of the bad state is p/(p + r); a stay in it lasts 1/r packets on average, and its length is geometric.
    #[test]
    fn losses_come_in_bursts() {
        let n = 400_000;
        let loss = Loss { to_bad: 0.01, to_good: 0.25, in_good: 0.0, in_bad: 1.0 };
        let lost: Vec<bool> =
            arrivals(Wire { jitter: None, loss: Some(loss) }, n, MS).iter().map(Option::is_none).collect();
        let share = lost.iter().filter(|l| **l).count() as f64 / n as f64;
        assert!((share / (0.01 / 0.26) - 1.0).abs() < 0.05, "{share}");
        assert!((share / loss.mean() - 1.0).abs() < 0.05);
        let bursts: Vec<usize> =
            lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
        let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        assert!((mean - 4.0).abs() < 0.2, "{mean}");
        let single = bursts.iter().filter(|b| **b == 1).count() as f64 / bursts.len() as f64;
        assert!((single - 0.25).abs() < 0.02, "{single}");
        // Independent: after a loss as often as otherwise.
        let one = Wire { jitter: None, loss: Some(Loss::independent(0.1)) };
        let lost: Vec<bool> = arrivals(one, n, MS).iter().map(Option::is_none).collect();
        let after = lost.windows(2).filter(|w| w[0]).map(|w| f64::from(u8::from(w[1])));
        let (k, both) = after.fold((0.0, 0.0), |(k, s), x| (k + 1.0, s + x));
        assert!((k / n as f64 - 0.1f64).abs() < 0.003 && (both / k - 0.1f64).abs() < 0.01);
        // Nothing is lost where nothing can be.
        let never = Wire { jitter: None, loss: Some(Loss { in_bad: 0.0, ..loss }) };
        assert!(arrivals(never, 1000, MS).iter().all(Option::is_some));
    }
}

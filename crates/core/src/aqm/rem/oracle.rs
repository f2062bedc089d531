//! REM in a slow and obvious form, to compare with: everything that came and waited is kept, and a price is a sum over it.
//!
//! Athuraliya et al. 2001, Eq. (1), adds γ (α (b − b*) + x − c) to the price in each interval and never lets it fall below 0. That comes to γ
//! times the largest sum of the latest intervals' excesses, or 0 where every such sum is negative.

use proptest::prelude::{Strategy, prop, prop_oneof};

use super::{Mismatch, Params};
use crate::packet::{Ecn, Packet};
use crate::queue::fifo::{Fifo, Stamped};
use crate::registry::AnyAqm;
use crate::rng::Rng;
use crate::signal::Outbox;
use crate::units::{Backlog, Bytes, Duration, Rate, Time};
use crate::verdict::{Admission, Silent};

/// Packets that wait at most.
pub(crate) const LIMIT: u32 = 12;
/// Bytes that are counted as a packet.
pub(crate) const MEAN: u32 = 1024;
/// An interval, in milliseconds, and the packets that the link can send in it.
const INTERVAL: u64 = 16;
const CAPACITY: u64 = 4;

/// The link of drawn settings.
pub(crate) const CONTEXT: crate::params::Context = crate::params::Context {
    link_rate: Some(Rate(CAPACITY * MEAN as u64 * 8 * 1000 / INTERVAL)),
    contract: None,
    packet: Bytes(1500),
    limit: Some(Backlog::Packets(LIMIT as f64)),
};

/// An event at a queue.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Comes(u32, Ecn),
    Leaves,
    /// An interval ends.
    Ends,
}

/// A life of some thirty intervals, more of whose packets come than leave.
pub(crate) fn life() -> impl Strategy<Value = Vec<Step>> {
    let ecn = prop_oneof![proptest::strategy::Just(Ecn::Ect0), proptest::strategy::Just(Ecn::NotCapable)];
    let step = prop_oneof![
        6 => (1u32..24, ecn).prop_map(|(n, ecn)| Step::Comes(64 * n, ecn)),
        4 => proptest::strategy::Just(Step::Leaves),
        1 => proptest::strategy::Just(Step::Ends),
    ];
    prop::collection::vec(step, 1..330)
}

/// Settings of a REM, all binary fractions: a price is then 0 in any order of its sums, or in none, and numbers are drawn in step.
pub(crate) fn settings() -> impl Strategy<Value = Params> {
    let of = |values: &'static [f64]| prop::sample::select(values);
    let steps = (of(&[0.015_625, 0.125, 1.0]), of(&[0.125, 0.5, 1.0]), of(&[1.001, 1.125, 2.0]));
    let flags = (proptest::bool::ANY, proptest::bool::ANY, proptest::bool::ANY);
    (of(&[0.0, 2.0, 5.0]), steps, of(&[1.0, 0.5]), flags).prop_map(
        |(b_star, (gamma, alpha, phi), in_weight, (in_bytes, by_rate, ecn))| Params {
            b_star: if in_bytes {
                Backlog::Bytes(b_star * f64::from(MEAN))
            } else {
                Backlog::Packets(b_star)
            },
            gamma,
            alpha,
            phi,
            t_update: Duration::from_millis(INTERVAL),
            mismatch: if by_rate { Mismatch::Rate } else { Mismatch::Backlog },
            in_weight,
            ecn,
            mean_packet: Some(Bytes(MEAN.into())),
        },
    )
}

/// A queue under a discipline, fed and drained by hand.
pub(crate) struct Bench {
    queue: Fifo<Stamped>,
    aqm: AnyAqm,
    rng: Rng,
}

impl Bench {
    pub fn new(mut aqm: AnyAqm, rng: Rng) -> Bench {
        // The first tick only begins an interval.
        aqm.tick(Time::ZERO, &mut Outbox::default());
        Bench { queue: Fifo::before(Backlog::Packets(LIMIT.into()), &aqm), aqm, rng }
    }

    pub fn arrive(&mut self, size: u32, ecn: Ecn) -> Admission {
        let packet = Packet { size, ecn, ..Packet::default() };
        let item = Stamped { packet, since: Time::ZERO };
        self.queue.arrive(Time::ZERO, &packet, item, &mut self.aqm, &mut self.rng, &mut Silent)
    }

    /// The packet that leaves: its size and whether it is marked.
    pub fn depart(&mut self) -> Option<(u32, Ecn)> {
        let (aqm, rng) = (&mut self.aqm, &mut self.rng);
        let sent = self.queue.depart(Time::ZERO, |p| p.packet, aqm, rng, &mut Silent, |_, _| {});
        sent.map(|p| (p.size, p.ecn))
    }

    pub fn tick(&mut self) {
        self.aqm.tick(Time::ZERO, &mut Outbox::default());
    }

    pub fn gauge(&self, what: &str) -> f64 {
        let mut found = f64::NAN;
        self.aqm.gauges(Time::ZERO, &mut |name, value| found = if name == what { value } else { found });
        found
    }
}

/// The packets that came and those that wait.
pub(crate) struct Oracle {
    p: Params,
    pub waiting: Vec<(u32, Ecn)>,
    came: Vec<u32>,
    /// Packets that came in each interval, and those that waited at its end.
    intervals: Vec<(f64, f64)>,
}

impl Oracle {
    pub fn new(p: &Params) -> Oracle {
        Oracle { p: p.clone(), waiting: Vec::new(), came: Vec::new(), intervals: Vec::new() }
    }

    pub fn in_bytes(&self) -> bool {
        matches!(self.p.b_star, Backlog::Bytes(_))
    }

    /// How many packets these are.
    fn packets(&self, sizes: impl Iterator<Item = u32>) -> f64 {
        if self.in_bytes() { f64::from(sizes.sum::<u32>()) / f64::from(MEAN) } else { sizes.count() as f64 }
    }

    /// A packet comes, whatever becomes of it.
    pub fn comes(&mut self, size: u32) {
        self.came.push(size);
    }

    /// An interval ends.
    pub fn ends(&mut self) {
        let came = std::mem::take(&mut self.came);
        self.intervals
            .push((self.packets(came.into_iter()), self.packets(self.waiting.iter().map(|(size, _)| *size))));
    }

    /// The increase of the price by interval k, but for γ.
    fn excess(&self, k: usize) -> f64 {
        let (p, b) = (&self.p, |k: usize| self.intervals[k].1);
        let b_star = match p.b_star {
            Backlog::Packets(n) => n,
            Backlog::Bytes(n) => n / f64::from(MEAN),
        };
        if p.mismatch == Mismatch::Backlog {
            // Eq. (3): the backlog's change is x − c, and α weighs the backlog before it.
            let before = if k == 0 { 0.0 } else { b(k - 1) };
            return p.alpha * (before - b_star) + (b(k) - before);
        }
        // An interval's input counts in_weight, and in each later one (1 − in_weight) of what it did before.
        let weight = |i: usize| p.in_weight * libm::pow(1.0 - p.in_weight, (k - i) as f64);
        let x: f64 = (0..=k).map(|i| weight(i) * self.intervals[i].0).sum();
        p.alpha * (b(k) - b_star) + (x - CAPACITY as f64)
    }

    pub fn price(&self) -> f64 {
        let excesses: Vec<f64> = (0..self.intervals.len()).map(|k| self.excess(k)).collect();
        let sums = (0..excesses.len()).map(|from| excesses[from..].iter().sum::<f64>());
        self.p.gamma * sums.fold(0.0, f64::max)
    }

    /// Eq. (2), as 1 − e^(−price ln φ).
    pub fn probability(&self) -> f64 {
        1.0 - libm::exp(-self.price() * libm::log(self.p.phi))
    }
}

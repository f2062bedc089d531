//! REM, random exponential marking: a price that rises while more comes than leaves or more waits than is wanted, and a probability that
//! is exponential in it.
//!
//! The chance that a packet passes several such links unmarked is exponential in the sum of their prices, and the price settles where
//! input equals capacity and the backlog is `b_star`, whatever the number of flows.
//! Source: Athuraliya, Li, Low and Yin 2001. Not in the paper: a smoothed input (`in_weight`), a queue counted in bytes.
//! Non-goal: sources that estimate the sum of prices from their marks.

use crate::aqm::{Unit, beyond_limit, by_chance};
use crate::prelude::*;

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
    /// Price and probability as set, of an empty queue.
    #[must_use]
    pub fn link_price(&self, context: &Context) -> LinkPrice {
        let mean = self.mean_packet.unwrap_or(context.packet).0 as f64;
        let (unit, b_star) = Unit::of(self.b_star, mean);
        let a_second = context.link_rate.map_or(0.0, |rate| rate.0 as f64 / (8.0 * mean));
        LinkPrice {
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
        Rem { link: self.link_price(context), every: self.t_update, ecn: self.ecn, waiting: 0, begun: false }
    }
}

/// The price and its probability: settings and state.
#[derive(Clone, Debug)]
pub struct LinkPrice {
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

impl LinkPrice {
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
    link: LinkPrice,
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
            self.link.update(self.waiting);
        }
        self.begun = true;
        Some(now + self.every)
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        self.link.show(show);
    }
}

impl Aqm for Rem {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        self.link.count(packet.size);
        let p = self.link.p;
        let verdict = by_chance(packet, at.queue, (p, self.ecn), at.why, |why| at.rng.chance("u", p, why));
        if !matches!(verdict, Admission::Drop(_)) {
            self.waiting = self.link.unit.length(at.queue) + self.link.unit.added_by(packet.size);
        }
        verdict
    }

    fn depart(&mut self, _: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        self.waiting = self.link.unit.length(at.queue);
        Departure::Send
    }
}

#[cfg(test)]
pub mod oracle {
    //! REM in a slow and obvious form, to compare with: everything that came and waited is kept, and a price is a sum over it.
    //!
    //! Athuraliya et al. 2001, Eq. (1), adds γ (α (b − b*) + x − c) to the price in each interval and never lets it fall below 0. That comes to γ
    //! times the largest sum of the latest intervals' excesses, or 0 where every such sum is negative.

    use super::{Mismatch, Params};
    use crate::testing::*;

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
            if self.in_bytes() {
                f64::from(sizes.sum::<u32>()) / f64::from(MEAN)
            } else {
                sizes.count() as f64
            }
        }

        /// A packet comes, whatever becomes of it.
        pub fn comes(&mut self, size: u32) {
            self.came.push(size);
        }

        /// An interval ends.
        pub fn ends(&mut self) {
            let came = std::mem::take(&mut self.came);
            self.intervals.push((
                self.packets(came.into_iter()),
                self.packets(self.waiting.iter().map(|(size, _)| *size)),
            ));
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
}

#[cfg(test)]
mod tests;

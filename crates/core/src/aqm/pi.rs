//! PI: a proportional–integral controller that holds the queue at a length, by the probability with which arrivals are dropped.
//!
//! The probability moves `w` times a second, in proportion to the queue's distance from `q_ref` and to its change since the last
//! sample; it comes to rest only at `q_ref`, whatever the load (the integral part).
//! Source: Hollot, Misra, Towsley and Gong 2001. Not in the paper: a queue counted in bytes, probabilities scaled by a
//! packet's size, and a choice between drops and marks, which the paper treats alike.
//! Non-goal: a target in time ([`pie`](crate::aqm::pie), [`pi2`](crate::aqm::l4s)).

use std::fmt::Debug;
use std::marker::PhantomData;

use crate::aqm::{Unit, beyond_limit, by_chance};
use crate::prelude::*;

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
    /// The controller with these settings, at an empty queue.
    #[must_use]
    pub fn controller(&self, context: &Context) -> Controller {
        let mean = self.mean_packet.unwrap_or(context.packet).0 as f64;
        let (unit, q_ref) = Unit::of(self.q_ref, mean);
        let scaled_by = self.byte_scaled.then_some(mean);
        Controller { a: self.a, b: self.b, w: self.w, q_ref, unit, scaled_by, p: 0.0, q_old: 0.0 }
    }

    /// The discipline as a variant computes it.
    pub(crate) fn discipline<R: Variant>(&self, context: &Context) -> Pi<R> {
        Pi {
            controller: self.controller(context),
            ecn: self.ecn,
            waiting: 0,
            begun: false,
            variant: PhantomData,
        }
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
pub struct Controller {
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

impl Controller {
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
    pub(crate) controller: Controller,
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
            self.controller.sample(self.waiting);
        }
        self.begun = true;
        Some(now + Duration::from_secs(self.controller.interval()))
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("drop_prob", self.controller.p);
    }
}

impl<R: Variant> Aqm for Pi<R> {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let p = self.controller.chance(packet.size);
        let verdict = by_chance(packet, at.queue, (p, self.ecn), at.why, |why| R::picks(p, at.rng, why));
        if !matches!(verdict, Admission::Drop(_)) {
            self.waiting = self.controller.unit.length(at.queue) + self.controller.unit.added_by(packet.size);
        }
        verdict
    }

    fn depart(&mut self, _: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        self.waiting = self.controller.unit.length(at.queue);
        Departure::Send
    }

    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        R::joins_below(limit, self.controller.unit)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! PI's law, by hand, from the controller of the paper, and in the form of a sum.

    use super::*;
    use crate::aqm::EARLY;
    use crate::testing::*;

    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };

    pub fn params() -> Params {
        Params {
            q_ref: Backlog::Packets(20.0),
            a: 0.002,
            b: 0.001,
            w: 100.0,
            byte_scaled: false,
            ecn: false,
            mean_packet: None,
        }
    }

    /// A PI after a sample of each of these lengths.
    fn after(p: &Params, lengths: &[u64]) -> Controller {
        let mut controller = p.controller(&CONTEXT);
        lengths.iter().for_each(|n| controller.sample(*n));
        controller
    }

    /// Hollot et al. 2001 §5: C(s) = K (s/z + 1)/s with K = 9.64e-6 and z = 0.53, sampled 160 times a second by Tustin's rule
    /// (K/z ± K T/2), has the coefficients that are the defaults.
    #[test]
    fn the_defaults_are_the_papers_controller() {
        let field = |name| {
            crate::registry::Registry::default()
                .aqms
                .iter()
                .find(|e| e.name == "pi")
                .unwrap()
                .fields
                .iter()
                .find_map(|f| match f.default {
                    crate::params::Default::Value(v) if f.name == name => Some(v()),
                    _ => None,
                })
        };
        let number = |name| match field(name) {
            Some(crate::params::Value::Number(x)) => x,
            other => panic!("{name}: {other:?}"),
        };
        let (k, z, t) = (9.64e-6, 0.53, 1.0 / number("w"));
        assert!((number("a") - (k / z + k * t / 2.0)).abs() < 5e-9);
        assert!((number("b") - (k / z - k * t / 2.0)).abs() < 5e-9);
    }

    /// Hollot et al. 2001 §5, by hand.
    #[test]
    fn the_probability_moves_with_distance_and_change() {
        let p = params();
        // 0.002 · 10 − 0.001 · (−20), then 0.002 · 10 − 0.001 · 10, then 0.002 · (−15) − 0.001 · 10.
        let controller = after(&p, &[30]);
        assert!((controller.p - 0.04).abs() < 1e-15, "{}", controller.p);
        let controller = after(&p, &[30, 30]);
        assert!((controller.p - 0.05).abs() < 1e-15, "{}", controller.p);
        let controller = after(&p, &[30, 30, 5]);
        assert!((controller.p - 0.01).abs() < 1e-15, "{}", controller.p);
    }

    /// At q_ref, and only there, it rests, whatever it has become.
    #[test]
    fn it_rests_at_the_target_only() {
        let p = params();
        for settled in [3usize, 9] {
            let mut controller = after(&p, &vec![30; settled]);
            controller.sample(20);
            let rest = controller.p;
            controller.sample(20);
            assert!(rest > 0.0 && controller.p == rest);
            controller.sample(21);
            assert!(controller.p > rest);
        }
    }

    #[test]
    fn it_stays_within_0_and_1() {
        assert_eq!(after(&params(), &[0, 0, 3]).p, 0.0);
        assert_eq!(after(&params(), &[2000, 2000]).p, 1.0);
    }

    /// In bytes every length counts as so many packets of mean_packet.
    #[test]
    fn bytes_are_packets_of_the_mean_size() {
        let in_bytes = Params { q_ref: Backlog::Bytes(10_000.0), mean_packet: Some(Bytes(500)), ..params() };
        assert!((after(&in_bytes, &[15_000, 15_000]).p - after(&params(), &[30, 30]).p).abs() < 1e-15);
        let controller = in_bytes.controller(&CONTEXT);
        assert_eq!((controller.unit.length(&Fake::of(3, 0)), controller.unit.added_by(40)), (3000, 40));
        let controller = params().controller(&CONTEXT);
        assert_eq!((controller.unit.length(&Fake::of(3, 0)), controller.unit.added_by(40)), (3, 1));
    }

    #[test]
    fn chances_scale_with_size_up_to_1() {
        let scaled = Params { byte_scaled: true, mean_packet: Some(Bytes(500)), ..params() };
        let controller = after(&scaled, &[30, 30]);
        assert!((controller.chance(250) - 0.025).abs() < 1e-15);
        assert_eq!(controller.chance(20_000), 1.0);
        assert_eq!(after(&params(), &[30, 30]).chance(20_000), controller.p);
    }

    /// A PI that drops everything, at a queue of this length.
    fn certain(ecn: bool) -> Pi {
        let mut pi = Params { ecn, ..params() }.build(&CONTEXT);
        pi.controller = after(&Params { ecn, ..params() }, &[2000]);
        pi
    }

    fn arrive(pi: &mut Pi, queue: &mut Fake, ecn: Ecn) -> Admission {
        let packet = Packet { size: 1000, ecn, ..Packet::default() };
        pi.arrive(&packet, At::silent(Time::ZERO, queue, &mut Rng::for_component(1, "pi")))
    }

    #[test]
    fn what_can_be_marked_is() {
        let mut queue = Fake::of(5, 0);
        assert_eq!(arrive(&mut certain(false), &mut queue, Ecn::Ect0), Admission::Drop(EARLY));
        assert_eq!(arrive(&mut certain(true), &mut queue, Ecn::Ect0), Admission::Mark);
        assert_eq!(arrive(&mut certain(true), &mut queue, Ecn::NotCapable), Admission::Drop(EARLY));
        let mut full = Fake { limit: 5.0, ..Fake::of(5, 0) };
        assert_eq!(arrive(&mut certain(true), &mut full, Ecn::Ect0), Admission::Drop(Cause::OVERFLOW));
    }

    /// The length at a tick is the one left after the last arrival or departure; the first tick only starts the first interval.
    #[test]
    fn ticks_sample_what_waits() {
        let mut pi = params().build(&CONTEXT);
        let tick = |pi: &mut Pi| pi.tick(Time::ZERO, &mut Outbox::default());
        assert_eq!(tick(&mut pi), Some(Time::ZERO + Duration::from_millis(10)));
        assert_eq!(arrive(&mut pi, &mut Fake::of(29, 0), Ecn::NotCapable), Admission::Admit);
        tick(&mut pi);
        assert!((pi.controller.p - 0.04).abs() < 1e-15);
        let (now, packet) = (Time::ZERO, Packet::default());
        let mut rng = Rng::for_component(1, "pi");
        pi.depart(&packet, At::silent(now, &mut Fake::of(20, 0), &mut rng).since(now));
        tick(&mut pi);
        assert!((pi.controller.p - 0.03).abs() < 1e-15, "0.04 + 0.002 · 0 − 0.001 · 10");
    }

    #[test]
    fn settings_that_hold_nothing_are_refused() {
        for (a, b) in [(0.001, 0.001), (0.001, 0.002)] {
            assert_eq!(Params { a, b, ..params() }.check(&CONTEXT).unwrap_err().field, "a");
        }
        let short = Context { limit: Some(Backlog::Packets(20.0)), ..CONTEXT };
        assert_eq!(params().check(&short).unwrap()[0].field, "q_ref");
        let long = Context { limit: Some(Backlog::Packets(21.0)), ..CONTEXT };
        assert_eq!(params().check(&long), Ok(Vec::new()));
    }

    proptest! {
        /// Within 0 and 1 the recursion of Hollot et al. 2001 §5 is proportional and integral: (a − b) of all distances but the last, and a
        /// of that.
        #[test]
        fn is_a_sum_of_distances(above in prop::collection::vec(1u64..40, 1..20)) {
            let p = Params { a: 2e-4, b: 1.5e-4, ..params() };
            let lengths: Vec<u64> = above.iter().map(|n| n + 20).collect();
            let (last, before) = above.split_last().unwrap();
            let sum: u64 = before.iter().sum();
            // Before the first sample nothing waited.
            let expected = 2e-4 * *last as f64 + 0.5e-4 * sum as f64 + 1.5e-4 * 20.0;
            let controller = after(&p, &lengths);
            prop_assert!((controller.p - expected).abs() < 1e-12, "{} {expected}", controller.p);
        }
    }

    #[test]
    fn golden_sequence() {
        let mut pi = Params { a: 0.05, b: 0.04, q_ref: Backlog::Packets(4.0), ..params() }.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "pi");
        let mut queue = Fake { limit: 15.0, ..Fake::of(0, 0) };
        let said: String = (0..80u32)
            .map(|n| {
                if n % 3 != 0 && queue.packets[0] > 0 {
                    queue.packets[0] -= 1;
                }
                if n % 5 == 0 {
                    pi.tick(Time::ZERO, &mut Outbox::default());
                }
                match pi.arrive(&Packet::default(), At::silent(Time::ZERO, &mut queue, &mut rng)) {
                    Admission::Admit => {
                        queue.packets[0] += 1;
                        '.'
                    }
                    Admission::Drop(EARLY) => 'e',
                    Admission::Drop(Cause::OVERFLOW) => 'o',
                    _ => '?',
                }
            })
            .collect();
        assert_eq!(said, "........e............e.e..e....e...e.....ee..e.ee.e.ee.ee.e...e........ee.e...e.");
    }
}

//! PI's law, by hand, from the controller of the paper, and in the form of a sum.

use proptest::prelude::{prop, prop_assert, proptest};

use super::*;
use crate::aqm::EARLY;
use crate::packet::Ecn;
use crate::queue::fake::Fake;
use crate::verdict::Cause;
use crate::verdict::Silent;

const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };

fn params() -> Params {
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
fn after(p: &Params, lengths: &[u64]) -> Law {
    let mut law = p.law(&CONTEXT);
    lengths.iter().for_each(|n| law.sample(*n));
    law
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
    let law = after(&p, &[30]);
    assert!((law.p - 0.04).abs() < 1e-15, "{}", law.p);
    let law = after(&p, &[30, 30]);
    assert!((law.p - 0.05).abs() < 1e-15, "{}", law.p);
    let law = after(&p, &[30, 30, 5]);
    assert!((law.p - 0.01).abs() < 1e-15, "{}", law.p);
}

/// At q_ref, and only there, it rests, whatever it has become.
#[test]
fn it_rests_at_the_target_only() {
    let p = params();
    for settled in [3usize, 9] {
        let mut law = after(&p, &vec![30; settled]);
        law.sample(20);
        let rest = law.p;
        law.sample(20);
        assert!(rest > 0.0 && law.p == rest);
        law.sample(21);
        assert!(law.p > rest);
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
    let law = in_bytes.law(&CONTEXT);
    assert_eq!((law.unit.length(&Fake::of(3, 0)), law.unit.added_by(40)), (3000, 40));
    let law = params().law(&CONTEXT);
    assert_eq!((law.unit.length(&Fake::of(3, 0)), law.unit.added_by(40)), (3, 1));
}

#[test]
fn chances_scale_with_size_up_to_1() {
    let scaled = Params { byte_scaled: true, mean_packet: Some(Bytes(500)), ..params() };
    let law = after(&scaled, &[30, 30]);
    assert!((law.chance(250) - 0.025).abs() < 1e-15);
    assert_eq!(law.chance(20_000), 1.0);
    assert_eq!(after(&params(), &[30, 30]).chance(20_000), law.p);
}

/// A PI that drops everything, at a queue of this length.
fn certain(ecn: bool) -> Pi {
    let mut pi = Params { ecn, ..params() }.build(&CONTEXT);
    pi.law = after(&Params { ecn, ..params() }, &[2000]);
    pi
}

fn arrive(pi: &mut Pi, queue: &mut Fake, ecn: Ecn) -> Admission {
    let packet = Packet { size: 1000, ecn, ..Packet::default() };
    pi.arrive(Time::ZERO, &packet, queue, &mut Rng::for_component(1, "pi"), &mut Silent)
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
    assert!((pi.law.p - 0.04).abs() < 1e-15);
    let (now, packet) = (Time::ZERO, Packet::default());
    let mut rng = Rng::for_component(1, "pi");
    pi.depart(now, &packet, now, &mut Fake::of(20, 0), &mut rng, &mut Silent);
    tick(&mut pi);
    assert!((pi.law.p - 0.03).abs() < 1e-15, "0.04 + 0.002 · 0 − 0.001 · 10");
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
        let law = after(&p, &lengths);
        prop_assert!((law.p - expected).abs() < 1e-12, "{} {expected}", law.p);
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
            match pi.arrive(Time::ZERO, &Packet::default(), &mut queue, &mut rng, &mut Silent) {
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

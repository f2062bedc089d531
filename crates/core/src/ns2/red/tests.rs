use super::*;
use crate::aqm::red::law::tests::counts;
use crate::aqm::red::tests::{any_packet_may_go, at_a_full_queue, holds, in_bytes, params};
use crate::aqm::red::{DropAt, Params, tests::CONTEXT};
use crate::ns2::rng::stream;
use crate::registry::AnyAqm;
use crate::units::{Bytes, Rate};
use crate::verdict::{Notes, Silent};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

const RULE: Rule = Rule { gentle: false, wait: false, ecn: false, in_bytes: false, mean: None };

/// The early test of ns-2's RIO or RED.
fn early<W: Why>(
    count: &mut Count,
    curve: &Curve,
    rule: &Rule,
    f: DropTest,
    rio: bool,
    rng: &mut Rng,
    why: &mut W,
) -> EarlyTest {
    let of = if rio { Ns2Rio::test } else { Ns2Red::test };
    of(count, curve, rule, f, rng, why)
}

fn found(avg: f64) -> DropTest {
    DropTest { avg, size: 1000, queued: 9.0 }
}

fn ns2(p: &Params) -> AnyAqm {
    AnyAqm::Ns2Red(Box::new(p.discipline::<Ns2Red>(&CONTEXT)))
}

/// 1,000 packets a second.
fn weight(w_q: f64) -> Weight {
    Weight::new(w_q, Some(Rate(8_000_000)), Bytes(1000))
}

/// ns-2.35, red.cc: the arrival is enqueued, then the packet in place min(1, length − 1) goes (`drop_front_`), or any of them
/// (`drop_rand_`), or the last (`drop_tail_`).
#[test]
fn which_packet_goes_when_the_queue_is_full() {
    let of = |drop| at_a_full_queue(ns2, drop, 1);
    assert_eq!(of(DropAt::Tail), (Admission::Drop(Cause::OVERFLOW), vec![0, 1, 2, 3], [1, 0]));
    assert_eq!(of(DropAt::Front), (Admission::Admit, vec![0, 2, 3, 9], [1, 1]));
    any_packet_may_go(ns2);
}

/// ns-2's `qlen >= qlim` with `queue_in_bytes_`: bytes that wait against `limit_` · `mean_pktsize_`, before the packet joins.
#[test]
fn in_bytes_the_limit_is_in_bytes() {
    // 1500 B: 38 packets of 40 B are the first 1500 B or more, two of 1000 B, and one of 1500 B that finds none.
    for limit in [Backlog::Packets(3.0), Backlog::Packets(3.9), Backlog::Bytes(1500.0)] {
        let ours = |size| holds(limit, ns2(&in_bytes()), size);
        assert_eq!([40, 500, 1000, 1499, 1500, 9000].map(ours), [38, 3, 2, 2, 1, 1]);
    }
    // In packets it is a limit in packets.
    assert_eq!(holds(Backlog::Packets(3.0), ns2(&params(0.002, false)), 40), 3);
}

/// Whole packets only, and then the arrival's own sample.
#[test]
fn an_average_ages_by_whole_packets() {
    let slow = (0..7).fold(10.0, |avg, _| avg * (1.0 - 0.25));
    assert_eq!(sampled(aged(10.0, &weight(0.25), 0.0079), &weight(0.25), 0.0), slow * 0.75);
    assert_eq!(sampled(10.0, &weight(0.25), 20.0), 12.5);
    // Without a rate not at all.
    assert_eq!(aged(10.0, &Weight::new(0.25, None, Bytes(1000)), 1e6), 10.0);
}

#[test]
fn an_endless_idle_time_ends() {
    assert!(aged(10.0, &weight(0.002), u64::MAX as f64 * 1e-12) < 1e-300);
}

#[test]
fn the_count_starts_at_min_th() {
    let averages = [4.9, 5.0, 6.0, 6.0, 4.9, 6.0, 15.0, 6.0];
    assert_eq!(counts::<Ns2Red>(&averages), [-1, 1, 2, 3, -1, 1, 0, 1]);
    // Here the caller restarts: RIO does so for IN only.
    assert_eq!(counts::<Ns2Rio>(&averages), [-1, 1, 2, 3, -1, 1, 2, 3]);
    assert_eq!([0, 1].map(|colour| Ns2Rio::restarts(FORCED, colour)), [true, false]);
    assert_eq!([0, 1].map(|colour| Ns2Rio::restarts(Cause::OVERFLOW, colour)), [true, false]);
}

/// ns-2 draws even where p = 0 or 1, but not for the first packet over min_th, nor while one packet waits.
#[test]
fn it_draws_as_ns2_does() {
    let curve = Curve::new(5.0, 15.0, 0.1);
    let mut count = Count::default();
    let draws = |count: &mut Count, rio, avg, queued| {
        let (mut rng, mut idle) = (stream(1), stream(1));
        let found = DropTest { avg, size: 1000, queued };
        early(count, &curve, &RULE, found, rio, &mut rng, &mut Silent);
        rng.uniform() != idle.uniform()
    };
    assert!(!draws(&mut count, false, 5.0, 1.0));
    assert!(!draws(&mut count, false, 5.0, 2.0));
    assert!(draws(&mut count, false, 5.0, 2.0));
    assert!(draws(&mut count, false, 15.0, 2.0));
    assert!(!draws(&mut count, true, 15.0, 2.0));
    assert!(!draws(&mut count, false, 15.0, 1.0));
    assert!(!draws(&mut count, false, 15.0, 2.0), "first over min_th again");
}

/// ns-2 marks below p_b = 0.1 (RED), or below max_th (RIO); above that it drops.
#[test]
fn it_marks_only_low_down() {
    let curve = Curve::new(5.0, 15.0, 0.2);
    let tested = |rio, avg| {
        let mut rng = Rng::for_component(1, "marks");
        let rule = Rule { gentle: true, ..RULE };
        early(&mut Count(1000), &curve, &rule, found(avg), rio, &mut rng, &mut Silent)
    };
    let drop = |markable| EarlyTest::Early { markable };
    assert_eq!([9.0, 11.0].map(|avg| tested(false, avg)), [drop(true), drop(false)]);
    assert_eq!([11.0, 16.0].map(|avg| tested(true, avg)), [drop(true), drop(false)]);
    assert_eq!([false, true].map(|rio| tested(rio, 30.0)), [EarlyTest::Forced; 2]);
}

/// ns-2 counts whole typical packets among the bytes let by, and scales p last.
#[test]
fn it_counts_bytes_where_sizes_matter() {
    let curve = Curve::new(0.0, 10.0, 0.4);
    let mut notes = Notes::default();
    let found = DropTest { avg: 5.0, size: 500, queued: 9.0 };
    let mut rng = Rng::for_component(1, "bytes");
    let rule = Rule { mean: Some(1000), ..RULE };
    early(&mut Count(700), &curve, &rule, found, false, &mut rng, &mut notes);
    // 1,200 bytes are one packet: 0.2 / (1 − 0.2), halved for half a packet.
    assert_eq!(notes.items()[..3], [("count", 1200.0), ("p_b", 0.2), ("p_a", 0.125)]);
}

proptest! {
    /// Slope and intercept draw the same line.
    #[test]
    fn both_ways_to_compute_p_b_agree(min_th in 0f64..100.0, width in 0.1f64..100.0, max_p in 0.001f64..=1.0,
                                      above in 0f64..300.0, gentle: bool) {
        let c = Curve::new(min_th, min_th + width, max_p);
        let avg = c.min_th + above;
        let condition = 1.0 + c.max_th / (c.max_th - c.min_th);
        prop_assert!((c.p_b(avg, gentle) - p_b(&c, avg, gentle)).abs() < 1e-14 * condition);
    }

    /// Equal seeds, equal decisions.
    #[test]
    fn equal_seeds_decide_alike(steps in prop::collection::vec((0u64..20_000, 0u32..40), 1..300), seed: u64) {
        let run = || {
            let (mut red, mut rng) = (params(0.1, true).discipline::<Ns2Red>(&CONTEXT), Rng::for_component(seed, "red"));
            let mut now = 0;
            steps.iter().map(|&(gap, q)| {
                now += gap;
                let mut queue = crate::queue::fake::Fake::of(q, 0);
                let packet = crate::packet::Packet { size: 1000, ..Default::default() };
                crate::aqm::Aqm::arrive(&mut red, crate::units::Time(now), &packet, &mut queue, &mut rng, &mut Silent)
            }).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }
}

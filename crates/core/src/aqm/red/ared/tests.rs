use super::*;
use crate::queue::fake::Fake;
use crate::rng::Rng;
use crate::verdict::Silent;
use proptest::prelude::*;

/// 1,250 packets of 1,000 B a second.
const CONTEXT: Context =
    Context { link_rate: Some(Rate(10_000_000)), contract: None, packet: Bytes(1000), limit: None };

fn params() -> Params {
    Params {
        target_delay: Duration::from_millis(5),
        min_th: Some(Backlog::Packets(5.0)),
        max_th: Some(Backlog::Packets(15.0)),
        w_q: Some(1.0),
        max_p: 0.1,
        interval: Duration::from_millis(500),
        alpha: 0.01,
        beta: 0.9,
        byte_scaled: false,
        common: Common { gentle: true, ..crate::params::defaults() },
    }
}

/// One arrival that finds this length, then the tick half a second later: max_p by interval.
fn run(p: &Params, lengths: &[u32]) -> Vec<f64> {
    let mut ared = p.build(&CONTEXT);
    let mut rng = Rng::for_component(1, "ared");
    let mut now = Time::ZERO;
    assert_eq!(ared.tick(now, &mut Outbox::default()), Some(now + p.interval));
    let each = lengths.iter().map(|q| {
        let packet = Packet { size: 1000, ..Packet::default() };
        ared.arrive(now, &packet, &mut Fake::of(*q, 0), &mut rng, &mut Silent);
        now += p.interval;
        ared.tick(now, &mut Outbox::default());
        ared.red.law.config.curves[0].max_p
    });
    each.collect()
}

/// Thresholds 5 and 15: the target is 9 to 11. By hand from Fig. 1.
#[test]
fn max_p_by_hand() {
    let near = |a: &[f64], b: &[f64]| assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{a:?}");
    near(&run(&params(), &[12, 12, 11, 9, 8, 8]), &[0.11, 0.12, 0.12, 0.12, 0.108, 0.0972]);
    // A small max_p grows by a quarter of itself.
    near(&run(&Params { max_p: 0.02, ..params() }, &[12, 12]), &[0.025, 0.03125]);
    // Beyond its bounds it takes no further step in that direction.
    near(&run(&Params { max_p: 0.5, ..params() }, &[20, 20, 8]), &[0.51, 0.51, 0.459]);
    near(&run(&Params { max_p: 0.0105, ..params() }, &[0, 0, 0]), &[0.009_45, 0.009_45, 0.009_45]);
    near(&run(&Params { alpha: 0.005, beta: 0.5, ..params() }, &[12, 8]), &[0.105, 0.0525]);
}

/// Gummadi and Shenker 2001, §4.2 (w_q), §4.3 and §6 (thresholds). 1,250 packets/s: 5 ms are 6.25 packets, so min_th is at its least; 40 ms are 50.
#[test]
fn what_is_left_out_follows_from_the_link() {
    let p = Params { min_th: None, max_th: None, w_q: None, ..params() };
    let red = p.as_red(&CONTEXT);
    assert_eq!((red.min_th, red.max_th), (Backlog::Packets(5.0), Backlog::Packets(15.0)));
    assert!((red.common.w_q - 0.000_799_68).abs() < 1e-8, "{}", red.common.w_q);
    let slow = Params { target_delay: Duration::from_millis(40), ..p.clone() };
    assert_eq!(slow.as_red(&CONTEXT).max_th, Backlog::Packets(75.0));
    let small = Params { common: Common { mean_packet: Some(Bytes(500)), ..slow.common }, ..slow };
    assert_eq!(small.as_red(&CONTEXT).min_th, Backlog::Packets(50.0));
    let in_bytes = Params { max_th: Some(Backlog::Bytes(20_000.0)), ..p.clone() };
    assert_eq!(in_bytes.as_red(&CONTEXT).min_th, Backlog::Bytes(5000.0));
    let nowhere = Context { link_rate: None, ..CONTEXT };
    assert_eq!(p.check(&nowhere).map_err(|f| f.field), Err("w_q"));
    assert_eq!(Params { min_th: None, ..params() }.check(&nowhere).map_err(|f| f.field), Err("min_th"));
    assert_eq!(params().check(&nowhere), Ok(vec![]));
    let crossed = Params { max_th: Some(Backlog::Packets(4.0)), ..p };
    assert_eq!(crossed.check(&CONTEXT).map_err(|f| f.field), Err("min_th"));
}

/// Between ticks it is RED with the max_p of the moment.
#[test]
fn between_ticks_it_is_red() {
    let p = params();
    let (mut ared, mut red) = (p.build(&CONTEXT), p.as_red(&CONTEXT).build(&CONTEXT));
    let (mut a, mut b) = (Rng::for_component(7, "red"), Rng::for_component(7, "red"));
    let mut drops = 0;
    for i in 0..2000u32 {
        let packet = Packet { size: 1000, ..Packet::default() };
        let q = 5 + i * 7 % 20;
        let ours = ared.arrive(Time::ZERO, &packet, &mut Fake::of(q, 0), &mut a, &mut Silent);
        assert_eq!(ours, red.arrive(Time::ZERO, &packet, &mut Fake::of(q, 0), &mut b, &mut Silent));
        drops += u32::from(ours != Admission::Admit);
    }
    assert!(drops > 100);
}

proptest! {
    /// From anywhere max_p comes between its bounds, give or take a step, and stays there; the longer the queue, the higher.
    #[test]
    fn max_p_stays_within_its_bounds(max_p in 0.001f64..=1.0, lengths in prop::collection::vec(0u32..40, 200..300)) {
        let seen = run(&Params { max_p, ..params() }, &lengths);
        for (i, p) in seen.iter().enumerate() {
            let (low, high) = (MAX_P.0 * 0.9, MAX_P.1 + 0.01);
            prop_assert!(*p >= low.min(max_p) && *p <= high.max(max_p), "{p} after {i}");
        }
        let target = (9.0, 11.0);
        let next = |avg| next_max_p(max_p, avg, target, 0.01, 0.9);
        prop_assert!(next(0.0) <= next(10.0) && next(10.0) <= next(20.0));
    }
}

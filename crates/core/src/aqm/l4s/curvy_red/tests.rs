//! Curvy RED's base, against RFC 9332, Figure 10.

use proptest::prelude::{prop_assert, proptest};

use super::*;
use crate::aqm::l4s::bench::{Bench, CONTEXT, MS};
use crate::packet::Ecn;
use crate::params::defaults;
use crate::registry::AnyAqm;
use crate::units::{Backlog, Rate};

fn curve(params: &Params) -> Curve {
    Curve {
        min_th: params.min_th.secs(),
        range: params.range.secs(),
        w_q: params.w_q,
        curviness: params.curviness as f64,
        q_c: 0.0,
    }
}

fn bench(params: &Params) -> Bench {
    params.check(&CONTEXT).expect("it fits");
    Bench::new(AnyAqm::CurvyRed(Box::new(params.build(&CONTEXT))), Backlog::Packets(1000.0))
}

proptest! {
    /// Lines 5a, 9a and 10a, Classic packets waiting longer than L4S ones: of L4S packets nothing is learnt.
    #[test]
    fn as_the_pseudocode(waits in proptest::collection::vec((0u32..200, 0u32..5, proptest::bool::ANY), 1..200)) {
        let params: Params = defaults();
        let config = params.coupling.config();
        let mut curve = curve(&params);
        let gamma = 1.0 / 32.0;
        let mut q_c = 0.0;
        for (classic, l4s, of_l4s) in waits {
            let (classic, l4s) = (f64::from(classic + 5) * 1e-3, f64::from(l4s) * 1e-3);
            if of_l4s {
                curve.departs(1 - CLASSIC, l4s, classic);
            } else {
                curve.departs(CLASSIC, classic, l4s);
                q_c = gamma * classic + (1.0 - gamma) * q_c;
            }
            let sqrt_p_c = ((q_c - 0.0005) / 0.5f64).max(0.0);
            let p_cl = ((q_c - 0.0005) / 0.25f64).clamp(0.0, 1.0);
            prop_assert!((curve.q_c - q_c).abs() < 1e-12);
            prop_assert!((config.p_c(curve.p_prime()) - sqrt_p_c * sqrt_p_c).abs() < 1e-12);
            prop_assert!((config.p_cl(curve.p_prime()) - p_cl).abs() < 1e-12);
        }
    }
}

/// §B.2: with U = 2 L4S has a square, Classic the fourth power; Eq. (1) holds for neither more nor less.
#[test]
fn curviness_raises_both() {
    let params = Params { curviness: 2, ..defaults() };
    let mut of_two = curve(&params);
    of_two.q_c = 0.1005;
    // √p_C = 0.2 with U = 1.
    assert!((of_two.p_prime() - 0.04).abs() < 1e-12);
    let k = 4.0;
    let config = Common { k, ..params.coupling }.config();
    assert!((config.p_cl(0.04) - 0.4f64 * 0.4).abs() < 1e-12 && (config.p_c(0.04) - 0.0016).abs() < 1e-12);
}

/// §A.2: L4S marking saturates at 1/k² raised to the curviness; overload can't be set to begin later.
#[test]
fn overload_follows_the_curviness() {
    for (curviness, p_cmax, fits) in
        [(1, 0.25, true), (2, 0.25, false), (2, 0.0625, true), (3, 0.0625, false)]
    {
        let mut params = Params { curviness, ..defaults() };
        params.coupling.p_cmax = Some(p_cmax);
        let checked = params.check(&CONTEXT).map_err(|fault| fault.field);
        assert_eq!(checked.map(|_| ()), if fits { Ok(()) } else { Err("p_cmax") }, "{curviness}, {p_cmax}");
    }
}

/// A Classic flood finds the delay at which its excess is dropped. Under WRR L4S packets do not wait for it; under TS-FIFO, what is
/// beyond the time-shift "leaks across" (§4.2.2).
#[test]
fn delay_grows_with_the_load() {
    let [by_weight, by_shift] = [Bound::Wrr, Bound::TsFifo].map(flooded);
    assert!(by_weight <= MS, "{by_weight}");
    assert!(by_shift > MS * 100, "{by_shift}");
}

/// The longest that an L4S packet waits beside such a flood.
fn flooded(l4s_priority: Bound) -> Duration {
    let mut b = bench(&Params { l4s_priority, ..defaults() });
    let mut waits = Vec::new();
    for t in 0..40_000u64 {
        b.to(crate::units::Time::ZERO + MS * t);
        if t % 10 == 0 {
            b.arrive(Ecn::Ect1);
        }
        if t % 10 != 3 {
            b.arrive(Ecn::NotCapable);
        }
        if t % 4 == 1 {
            b.arrive(Ecn::NotCapable);
        }
        if let Some(p) = b.depart().filter(|p| p.ecn.is_l4s()) {
            waits.push(p.waited);
        }
    }
    assert!(b.conserves());
    let q_c = b.gauge("q_c");
    let p_c = b.gauge("p_c");
    // 1.15 arrive for the 0.9 that are left.
    assert!((p_c - (1.15 - 0.9) / 1.15).abs() < 0.03, "{p_c}");
    assert!((q_c - (0.0005 + 0.5 * libm::sqrt(p_c))).abs() < 1e-9, "{q_c}");
    waits.into_iter().max().expect("some left")
}

/// Overload by L4S alone: Q_C follows the queue there is, and L4S packets are dropped with the Classic probability (§A.2).
#[test]
fn an_l4s_flood_is_dropped() {
    let mut b = bench(&defaults());
    for t in 0..40_000u64 {
        b.to(crate::units::Time::ZERO + MS * t);
        b.arrive(Ecn::Ect1);
        b.arrive(Ecn::Ect1);
        b.depart();
    }
    let dropped = b.stat("l4s_dropped") as f64 / b.stat("l4s") as f64;
    assert!((dropped - 0.5).abs() < 0.02, "{dropped}");
    assert_eq!(b.stat("overflow"), 0);
}

/// Once Classic traffic has ended, its last average does not mark L4S packets for ever.
#[test]
fn a_stale_average_is_forgotten() {
    let mut curve = curve(&defaults());
    curve.q_c = 0.2;
    assert!(curve.p_prime() > 0.3);
    for _ in 0..500 {
        curve.departs(1 - CLASSIC, 0.0002, 0.0);
    }
    assert_eq!(curve.p_prime(), 0.0);
}

#[test]
fn what_can_not_work_is_refused_or_told() {
    let told = |p: &Params, c: &Context| {
        p.check(c).map(|w| w.into_iter().map(|w| w.field).collect::<Vec<_>>()).map_err(|f| f.field)
    };
    assert_eq!(told(&defaults(), &CONTEXT), Ok(vec![]));
    // Figure 9's own 500 ms, in Figure 9's own buffer.
    let figure9 = Params { min_th: MS * 500, ..defaults() };
    let buffer =
        Context { limit: Some(Backlog::Bytes(250_000.0)), link_rate: Some(Rate(8_000_000)), ..CONTEXT };
    assert_eq!(told(&figure9, &buffer), Ok(vec!["min_th"]));
    assert_eq!(told(&Params { curviness: 9, ..defaults() }, &CONTEXT), Err("curviness"));
    assert_eq!(told(&Params { classic_weight: 0.7, ..defaults() }, &CONTEXT), Err("classic_weight"));
}

/// A golden sequence: a link of a packet a millisecond, to which an ECT(1) packet comes every third millisecond, an ECT(0) one every other,
/// and from 100 ms on a Not-ECT one every other. What leaves (1, 0, n; m: marked), x for each packet dropped before it; a line is 50 ms.
#[test]
fn golden_sequence() {
    let (mut b, mut text) = (bench(&defaults()), String::new());
    for t in 0..400u64 {
        b.to(crate::units::Time::ZERO + MS * t);
        for (ecn, every, from) in [(Ecn::Ect1, 3, 0), (Ecn::Ect0, 2, 0), (Ecn::NotCapable, 2, 100)] {
            if t >= from && t % every == 0 {
                b.arrive(ecn);
            }
        }
        let before = b.dropped.len();
        let sent = b.depart();
        text.push_str(&"x".repeat(b.dropped.len() - before));
        text.push(sent.map_or('-', |p| ['n', '1', '0', 'm'][usize::from(p.ecn.bits())]));
        if t % 50 == 49 {
            text.push('\n');
        }
    }
    assert_eq!(text, include_str!("golden.txt"), "\n{text}");
}

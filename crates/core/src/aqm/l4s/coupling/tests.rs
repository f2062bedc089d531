//! The coupling's laws at a constant base probability.

use super::*;
use crate::testing::*;

const NOWHERE: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };

fn law(common: Common) -> (Coupling, Rng) {
    common.check(&NOWHERE).expect("it fits");
    (Coupling::new(common.config()), Rng::for_component(1, "coupling"))
}

fn square(x: f64) -> f64 {
    x * x
}

fn packet(ecn: Ecn) -> Packet {
    Packet { size: 1000, ecn, ..Packet::default() }
}

/// Shares of marks and drops among so many packets of this code point.
fn shares((law, rng): &mut (Coupling, Rng), ecn: Ecn, p_prime: f64, native: f64, n: u32) -> (f64, f64) {
    let (mut marked, mut dropped) = (0u32, 0u32);
    for _ in 0..n {
        match law.decide(&packet(ecn), (p_prime, native), 100_000, rng, &mut Silent) {
            Departure::Send => {}
            Departure::Mark => marked += 1,
            Departure::Drop(_) => dropped += 1,
        }
    }
    (f64::from(marked) / f64::from(n), f64::from(dropped) / f64::from(n))
}

/// RFC 9332 §2.1, Eq. (1): p_C = (p_CL/k)², whether counted out or drawn.
#[test]
fn classic_packets_have_the_square() {
    for derandomise in [true, false] {
        for (k, p) in [(2.0, 0.1), (2.0, 0.45), (1.0, 0.7), (8.0, 0.05)] {
            let common = Common { k, derandomise, ..defaults() };
            let n = 100_000;
            let (p_cl, none) = shares(&mut law(common.clone()), Ecn::Ect1, p, 0.0, n);
            let (p_mark, no_drop) = shares(&mut law(common.clone()), Ecn::Ect0, p, 0.0, n);
            let (no_mark, p_drop) = shares(&mut law(common), Ecn::NotCapable, p, 0.0, n);
            assert_eq!((none, no_drop, no_mark), (0.0, 0.0, 0.0));
            let within = if derandomise { 2.0 / f64::from(n) } else { 0.01 };
            assert!((p_cl - k * p).abs() <= within, "k {k}, p' {p}: marked {p_cl}");
            assert!((p_mark - square(p_cl / k)).abs() <= within, "k {k}, p' {p}: ECT(0) marked {p_mark}");
            assert!((p_drop - square(p_cl / k)).abs() <= within, "k {k}, p' {p}: dropped {p_drop}");
        }
    }
}

/// Eq. (4): p_L = max(p′_L, p_CL).
#[test]
fn the_native_probability_counts_where_it_is_higher() {
    for (p, native, want) in [(0.1, 0.5, 0.5), (0.3, 0.5, 0.6), (0.0, 0.0, 0.0), (0.0, 1.0, 1.0)] {
        let (marked, dropped) = shares(&mut law(defaults()), Ecn::Ect1, p, native, 10_000);
        assert!((marked - want).abs() <= 2e-4 && dropped == 0.0, "{p}, {native}: {marked}, {dropped}");
        // Classic packets know nothing of it.
        let (marked, _) = shares(&mut law(defaults()), Ecn::Ect0, p, native, 10_000);
        assert!((marked - p * p).abs() <= 2e-4);
    }
}

/// §A.2: from p_C = 1/k² on, all are dropped with p'², ECN-capable or not, and L4S packets that are not dropped are marked.
#[test]
fn under_overload_everybody_is_dropped_alike() {
    for derandomise in [true, false] {
        for p in [0.5, 0.6, 0.8, 1.0] {
            let within = if derandomise { 2e-4 } else { 0.02 };
            for ecn in [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1, Ecn::Experienced] {
                let (marked, dropped) =
                    shares(&mut law(Common { derandomise, ..defaults() }), ecn, p, 1.0, 20_000);
                assert!((dropped - p * p).abs() <= within, "{ecn:?} at {p}: {dropped}");
                let rest = if ecn.is_l4s() { 1.0 - p * p } else { 0.0 };
                assert!((marked - rest).abs() <= within, "{ecn:?} at {p}: {marked} marked");
            }
        }
    }
    // Just below it L4S packets are all but all marked, and none is dropped.
    assert_eq!(shares(&mut law(defaults()), Ecn::Ect1, 0.4999, 0.0, 10_000).1, 0.0);
}

/// §4.2.3, delay on saturation: probabilities stop at p_Cmax, and no mark becomes a drop.
#[test]
fn delay_on_saturation_caps_both() {
    let capped = || law(Common { saturation: Saturation::Delay, ..defaults() });
    assert_eq!(shares(&mut capped(), Ecn::Ect1, 0.9, 0.0, 10_000), (0.9999, 0.0));
    let (marked, dropped) = shares(&mut capped(), Ecn::Ect0, 0.9, 0.0, 10_000);
    assert!((marked - 0.25).abs() < 2e-4 && dropped == 0.0);
    let (_, dropped) = shares(&mut capped(), Ecn::NotCapable, 0.9, 0.0, 10_000);
    assert!((dropped - 0.25).abs() < 2e-4);
}

/// Causes: what could have been marked but for overload says so.
#[test]
fn causes_and_counts() {
    let (mut l, mut rng) = law(defaults());
    let mut causes = |ecn, p| {
        let verdicts: Vec<_> = (0..40)
            .map(|_| l.decide(&packet(ecn), (p, 0.0), 100_000, &mut rng, &mut Silent))
            .filter_map(|v| if let Departure::Drop(cause) = v { Some(cause) } else { None })
            .collect();
        (verdicts.first().copied(), verdicts.len())
    };
    assert_eq!(causes(Ecn::NotCapable, 0.4).0, Some(EARLY));
    assert_eq!(causes(Ecn::NotCapable, 0.9).0, Some(EARLY));
    assert_eq!(causes(Ecn::Ect0, 0.4), (None, 0));
    assert_eq!(causes(Ecn::Ect0, 0.9).0, Some(OVERLOAD));
    assert_eq!(causes(Ecn::Ect1, 0.4), (None, 0));
    assert_eq!(causes(Ecn::Ect1, 0.9).0, Some(OVERLOAD));
    let mut stats = Vec::new();
    l.stats(&mut |name, n| stats.push((name, n)));
    let n = |what: &str| stats.iter().find(|(name, _)| *name == what).expect("it is counted").1;
    assert_eq!((n("l4s"), n("classic")), (80, 160));
    assert!(
        n("l4s_dropped") > 0 && n("l4s_marked") > 0 && n("classic_marked") > 0 && n("classic_dropped") > 0
    );
    // §2.5.2.2: what was forwarded, marked or not.
    let size = u64::from(packet(Ecn::Ect1).size);
    assert_eq!(n("l4s_sent_bytes"), (80 - n("l4s_dropped")) * size);
    assert_eq!(n("classic_sent_bytes"), (160 - n("classic_dropped")) * size);
}

/// RFC 9331 §5.1: "Once disabled, ECT(1) packets MUST be treated as if they were Not-ECT"; CE is what a Classic mark left behind.
#[test]
fn without_l4s_ect1_is_not_ect() {
    let off = || law(Common { l4s: false, ..defaults() });
    for p in [0.3, 0.45, 0.9] {
        let overload = p * p >= 0.25;
        let want = |marks: bool| if marks && !overload { (p * p, 0.0) } else { (0.0, p * p) };
        for (ecn, marks) in
            [(Ecn::NotCapable, false), (Ecn::Ect0, true), (Ecn::Ect1, false), (Ecn::Experienced, true)]
        {
            let mut off = off();
            let (marked, dropped) = shares(&mut off, ecn, p, 1.0, 10_000);
            let (m, d) = want(marks);
            assert!((marked - m).abs() < 2e-4 && (dropped - d).abs() < 2e-4, "{ecn:?}: {marked}, {dropped}");
            assert_eq!(off.0.tallies.map(|t| t.seen), [0, 10_000]);
        }
    }
    let verdict = |ecn| (0..20).map(|_| off().0.config().kind_of(ecn)).all(|kind| kind == CLASSIC);
    assert!(verdict(Ecn::Ect1) && verdict(Ecn::Experienced));
}

/// §A.2: an earlier overload drops both kinds; of the L4S packets that are left, the native AQM still marks its own.
#[test]
fn overload_may_begin_earlier() {
    let early = || law(Common { p_cmax: Some(0.04), derandomise: false, ..defaults() });
    let p = 0.3;
    for (native, rest) in [(0.0, 0.6), (1.0, 1.0)] {
        let (marked, dropped) = shares(&mut early(), Ecn::Ect1, p, native, 50_000);
        assert!((dropped - 0.09).abs() < 5e-3, "{dropped}");
        assert!((marked - rest * (1.0 - 0.09)).abs() < 1e-2, "{native}: {marked}");
    }
    assert_eq!(shares(&mut early(), Ecn::Ect0, p, 0.0, 10_000).0, 0.0);
}

/// §A.2: p_Cmax is 1/k², where L4S marking saturates. With more, L4S packets would be spared what Classic ones are not.
#[test]
fn overload_begins_no_later_than_saturation() {
    for (k, p_cmax, fits) in
        [(2.0, 0.25, true), (2.0, 0.2500001, false), (2.0, 0.1, true), (1.0, 1.0, true), (4.0, 0.25, false)]
    {
        for saturation in [Saturation::Drop, Saturation::Delay] {
            let checked = Common { k, p_cmax: Some(p_cmax), saturation, ..defaults() }.check(&NOWHERE);
            assert_eq!(checked.is_ok(), fits, "{k}, {p_cmax}");
            if let Err(fault) = checked {
                assert_eq!(fault.field, "p_cmax");
                assert!(fault.remedy.contains(&format!("p_cmax = {}", 1.0 / (k * k))), "{}", fault.remedy);
            }
        }
    }
}

/// Without ECN for Classic traffic ECT(0) is dropped; the L4S mark is not the operator's to take away.
#[test]
fn ecn_off_drops_ect0() {
    let off = || law(Common { ecn: false, ..defaults() });
    let (marked, dropped) = shares(&mut off(), Ecn::Ect0, 0.3, 0.0, 10_000);
    assert!(marked == 0.0 && (dropped - 0.09).abs() < 2e-4);
    let (marked, dropped) = shares(&mut off(), Ecn::Ect1, 0.3, 0.0, 10_000);
    assert!((marked - 0.6).abs() < 2e-4 && dropped == 0.0);
}

/// §A.1, Linux's detail: while little waits the base probability is not applied; the native one is.
#[test]
fn a_short_queue_is_spared() {
    let (mut l, mut rng) = law(Common { min_backlog: Bytes(3000), ..defaults() });
    let mut struck = |waiting, ecn, native| {
        let mut decide = || l.decide(&packet(ecn), (0.9, native), waiting, &mut rng, &mut Silent);
        (0..100).filter(|_| decide() != Departure::Send).count()
    };
    assert_eq!((struck(2999, Ecn::NotCapable, 0.0), struck(2999, Ecn::Ect1, 0.0)), (0, 0));
    assert!(struck(3000, Ecn::NotCapable, 0.0) > 50 && struck(2999, Ecn::Ect1, 1.0) >= 99);
}

#[test]
fn what_can_not_work_is_refused_or_told() {
    for k in [0.5, 255.5, 1e200] {
        let fault = Common { k, ..defaults() }.check(&NOWHERE).expect_err("starvation");
        assert_eq!(fault.field, "k");
        assert!(fault.problem.contains(&k.to_string()) && fault.remedy.contains("k = 2"));
    }
    let short = Context { limit: Some(Backlog::Packets(3.0)), ..NOWHERE };
    let told = Common { min_backlog: Bytes(3000), ..defaults() }.check(&short).expect("it is allowed");
    assert_eq!(told.iter().map(|w| w.field).collect::<Vec<_>>(), ["min_backlog"]);
}

proptest! {
    /// recur(): after any sequence of likelihoods, strikes are their sum, to within one.
    #[test]
    fn strikes_are_the_sum_of_likelihoods(likelihoods in proptest::collection::vec(0.0f64..=1.0, 1..300)) {
        let (mut l, mut rng) = law(defaults());
        let (mut strikes, mut sum) = (0u32, 0.0);
        for p in likelihoods {
            sum += p;
            strikes += u32::from(l.recur(L4S, p, &mut rng, &mut Silent));
            prop_assert!((sum - f64::from(strikes)) >= -1e-9 && (sum - f64::from(strikes)) <= 1.0 + 1e-9);
        }
    }

    /// The more congestion, the more is done about it; L4S packets are struck no less often than Classic ones (§2.5.1).
    #[test]
    fn probabilities_are_monotone(p in 0.0f64..1.0, more in 0.0f64..1.0, k in 1.0f64..10.0) {
        let config = Common { k, ..defaults() }.config();
        let q = (p + more).min(1.0);
        prop_assert!(config.p_c(p) <= config.p_c(q) && config.p_cl(p) <= config.p_cl(q));
        prop_assert!(config.p_cl(p) >= config.p_c(p) && config.p_cl(p) <= 1.0);
        prop_assert_eq!(config.overloaded(p), config.p_c(p) >= config.p_cmax);
        // Eq. (1), while it can hold.
        if k * p < 1.0 {
            prop_assert!((config.p_c(p) - square(config.p_cl(p) / k)).abs() < 1e-12);
        }
    }
}

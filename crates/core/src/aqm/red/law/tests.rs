use super::*;
use crate::rng::Rng;
use crate::verdict::Silent;
use proptest::prelude::*;

const RULE: Rule = Rule { law: Law::Floyd93, gentle: false, wait: false, in_bytes: false, mean: None };

fn curves() -> impl Strategy<Value = Curve> {
    (0f64..100.0, 0.1f64..100.0, 0.001f64..=1.0)
        .prop_map(|(min_th, width, max_p)| Curve::new(min_th, min_th + width, max_p))
}

#[test]
fn spacing_by_hand() {
    assert_eq!([0.0, 2.0, 3.0, 4.0].map(|n| spaced(0.25, n, false)), [0.25, 0.5, 1.0, 1.0]);
    assert_eq!([0.0, 3.0, 4.0, 6.0, 8.0].map(|n| spaced(0.25, n, true)), [0.0, 0.0, 0.25, 0.5, 1.0]);
}

/// §7: at a constant average the gaps after a drop are uniform, on 1 … 1/p_b − 1 as Fig. 2 counts; with `wait`, on
/// 1/p_b … 2/p_b − 1.
#[test]
fn gaps_are_uniform() {
    let cases = [(Law::Floyd93, false, 1, 9), (Law::Floyd93, true, 10, 10)];
    for (law, wait, from, values) in cases {
        let curve = Curve::new(0.0, 10.0, 0.2);
        let found = Found { avg: 5.0, size: 1000 };
        let mut rng = Rng::for_component(5, "gaps");
        let mut count = Countdown::default();
        let mut gaps = [0u32; 40];
        let mut gap = 0;
        for _ in 0..200_000 {
            gap += 1;
            if count.test(&curve, &Rule { law, wait, ..RULE }, found, || 5.0, &mut rng, &mut Silent)
                != Fate::Pass
            {
                gaps[gap] += 1;
                gap = 0;
            }
        }
        let drops: u32 = gaps.iter().sum();
        let each = f64::from(drops) / values as f64;
        let seen: u32 = gaps[from..from + values].iter().sum();
        // The very first gap starts from −1, not 0, and may be one longer.
        assert!(drops - seen <= 1, "gaps outside the range: {gaps:?}");
        for n in &gaps[from..from + values] {
            assert!((f64::from(*n) - each).abs() < 5.0 * each.sqrt(), "{gaps:?}");
        }
    }
}

/// Counts after one arrival each at these averages.
fn counts(law: Law, averages: &[f64]) -> Vec<i32> {
    let curve = Curve::new(5.0, 15.0, 0.001);
    let mut rng = Rng::for_component(1, "counts");
    let mut count = Countdown::default();
    averages
        .iter()
        .map(|&avg| {
            let found = Found { avg, size: 1000 };
            count.test(&curve, &Rule { law, ..RULE }, found, || 9.0, &mut rng, &mut Silent);
            count.get()
        })
        .collect()
}

#[test]
fn the_count_starts_at_min_th() {
    let averages = [4.9, 5.0, 6.0, 6.0, 4.9, 6.0, 15.0, 6.0];
    assert_eq!(counts(Law::Floyd93, &averages), [-1, 0, 1, 2, -1, 0, 0, 1]);
    assert_eq!(counts(Law::Ns2Red, &averages), [-1, 1, 2, 3, -1, 1, 0, 1]);
    // Here the caller restarts: ns-2's RIO does so for IN only.
    assert_eq!(counts(Law::Ns2Rio, &averages), [-1, 1, 2, 3, -1, 1, 2, 3]);
}

/// ns-2 draws even where p = 0 or 1, but not for the first packet over min_th, nor while one packet waits.
#[test]
fn ns2_draws_as_ns2_does() {
    let curve = Curve::new(5.0, 15.0, 0.1);
    let mut count = Countdown::default();
    let draws = |count: &mut Countdown, law, avg, queued| {
        let (mut rng, mut idle) = (Rng::ns2(1), Rng::ns2(1));
        let found = Found { avg, size: 1000 };
        count.test(&curve, &Rule { law, ..RULE }, found, || queued, &mut rng, &mut Silent);
        rng.uniform() != idle.uniform()
    };
    assert!(!draws(&mut count, Law::Ns2Red, 5.0, 1.0));
    assert!(!draws(&mut count, Law::Ns2Red, 5.0, 2.0));
    assert!(draws(&mut count, Law::Ns2Red, 5.0, 2.0));
    assert!(draws(&mut count, Law::Ns2Red, 15.0, 2.0));
    assert!(!draws(&mut count, Law::Ns2Rio, 15.0, 2.0));
    assert!(!draws(&mut count, Law::Ns2Red, 15.0, 1.0));
    assert!(!draws(&mut count, Law::Ns2Red, 15.0, 2.0), "first over min_th again");
}

/// ns-2 marks below p_b = 0.1 (RED), or below max_th (RIO); above that it drops.
#[test]
fn ns2_marks_only_low_down() {
    let curve = Curve::new(5.0, 15.0, 0.2);
    let fate = |law, avg| {
        let mut rng = Rng::for_component(1, "marks");
        let mut count = Countdown(1000);
        let rule = Rule { law, gentle: true, ..RULE };
        count.test(&curve, &rule, Found { avg, size: 1000 }, || 9.0, &mut rng, &mut Silent)
    };
    let early = |markable| Fate::Early { markable };
    assert_eq!([9.0, 11.0].map(|avg| fate(Law::Ns2Red, avg)), [early(true), early(false)]);
    assert_eq!([11.0, 16.0].map(|avg| fate(Law::Ns2Rio, avg)), [early(true), early(false)]);
    assert_eq!(fate(Law::Floyd93, 16.0), early(true));
    assert_eq!([Law::Ns2Red, Law::Ns2Rio, Law::Floyd93].map(|l| fate(l, 30.0)), [Fate::Forced; 3]);
}

/// ns-2 counts whole typical packets among the bytes let by, and scales p last.
#[test]
fn ns2_counts_bytes_where_sizes_matter() {
    let curve = Curve::new(0.0, 10.0, 0.4);
    let mut notes = crate::verdict::Notes::default();
    let mut count = Countdown(700);
    let found = Found { avg: 5.0, size: 500 };
    let mut rng = Rng::for_component(1, "bytes");
    count.test(
        &curve,
        &Rule { law: Law::Ns2Red, mean: Some(1000), ..RULE },
        found,
        || 9.0,
        &mut rng,
        &mut notes,
    );
    // 1,200 bytes are one packet: 0.2 / (1 − 0.2), halved for half a packet.
    assert_eq!(notes.items()[..3], [("count", 1200.0), ("p_b", 0.2), ("p_a", 0.125)]);
}

proptest! {
    /// Without a division as with: the same verdict, count and next random number, on the thresholds too.
    #[test]
    fn products_decide_as_quotients_do(c in curves(), gentle: bool, wait: bool, seed: u64,
                                       averages in prop::collection::vec((0u8..8, 0f64..1.0), 1..300)) {
        let rule = Rule { gentle, wait, ..RULE };
        let mut rngs = [Rng::for_component(seed, "spacing"), Rng::for_component(seed, "spacing")];
        let mut counts = [Countdown::default(); 2];
        for (place, x) in averages {
            let avg = match place {
                0 => c.min_th,
                1 => c.max_th,
                2 => c.min_th * x,
                3 => c.max_th * (1.0 + 1.5 * x),
                4 => c.min_th * (1.0 + 1e-15 * x),
                _ => c.min_th + (c.max_th - c.min_th) * x,
            };
            let found = Found { avg, size: 1000 };
            let fast = counts[0].test(&c, &rule, found, || avg, &mut rngs[0], &mut Silent);
            let slow = counts[1].test_floyd93(&c, &rule, found, &mut rngs[1], &mut Silent);
            prop_assert_eq!(fast, slow);
            prop_assert_eq!(counts[0], counts[1]);
            let [a, b] = rngs.each_ref().map(|r| r.clone().uniform());
            prop_assert_eq!(a, b);
        }
    }

    /// The longer since the last drop, the likelier the next.
    #[test]
    fn spacing_is_monotone(p_b in 0f64..=1.0, count in 0u32..1000, wait: bool) {
        let (now, next) = (f64::from(count), f64::from(count + 1));
        let (p, q) = (spaced(p_b, now, wait), spaced(p_b, next, wait));
        prop_assert!((0.0..=1.0).contains(&p) && p <= q && q <= 1.0);
    }
}

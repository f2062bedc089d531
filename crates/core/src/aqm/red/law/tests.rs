use super::*;
use crate::testing::*;

const RULE: Rule = Rule { gentle: false, wait: false, ecn: false, in_bytes: false, mean: None };

fn curves() -> impl Strategy<Value = Curve> {
    (0f64..100.0, 0.1f64..100.0, 0.001f64..=1.0)
        .prop_map(|(min_th, width, max_p)| Curve::new(min_th, min_th + width, max_p))
}

pub(crate) fn tested<'a>(curve: &'a Curve, rule: &'a Rule, avg: f64) -> DropTest<'a> {
    DropTest { curve, rule, avg, size: 1000, queued: 9.0 }
}

/// A law for one colour at 1,000 packets a second, its average at `avg`.
fn of(w_q: f64, avg: f64) -> Law<1> {
    let weight = Weight::new(w_q, Some(Rate(8_000_000)), Bytes(1000));
    let mut law = Law::new(Config::new(weight, [Curve::new(5.0, 15.0, 0.1)], [[true]], RULE));
    law.vars.avg = [avg];
    law
}

fn at(ms: f64) -> Time {
    Time::from_secs(ms * 1e-3)
}

/// An arrival that finds this length, or the link idle since then.
fn finds(ms: f64, q: f64, idle: Option<f64>) -> Arrival<1> {
    Arrival { now: at(ms), colour: 0, size: 1000, lengths: [q], idle: idle.map(at) }
}

#[test]
fn on_the_thresholds() {
    let c = Curve::new(5.0, 15.0, 0.1);
    assert_eq!((c.p_b(5.0, false), c.p_b(10.0, false), c.p_b(15.0, false)), (0.0, 0.05, 1.0));
    assert_eq!((c.p_b(15.0, true), c.p_b(22.5, true), c.p_b(30.0, true)), (0.1, 0.55, 1.0));
}

#[test]
fn a_sample_moves_an_average_by_its_weight() {
    assert_eq!(of(0.25, 10.0).sample(&finds(1.0, 20.0, None)), 12.5);
}

/// Floyd and Jacobson 1993, §11.
#[test]
fn idle_time_ages_an_average_as_so_many_empty_queues_would() {
    let slow = (0..7).fold(10.0, |avg, _| avg * (1.0 - 0.25));
    assert!((of(0.25, 10.0).sample(&finds(10.0, 0.0, Some(3.0))) - slow).abs() < 1e-12);
}

#[test]
fn without_a_rate_idle_time_does_not_age_an_average() {
    let mut law = of(0.25, 10.0);
    let weight = Weight::new(0.25, None, Bytes(1000));
    law.config = Arc::new(Config::new(weight, law.config.curves, [[true]], RULE));
    assert_eq!(law.sample(&finds(1e6, 0.0, Some(0.0))), 7.5);
}

/// Only the last sample counts: any idle time empties the average.
#[test]
fn a_weight_of_one_forgets_at_once() {
    assert_eq!(of(1.0, 10.0).sample(&finds(1.0, 0.0, Some(0.5))), 0.0);
}

/// Which arrivals move which averages is a matrix: here the first colour's move both, the second's the second.
#[test]
fn the_matrix_says_which_averages_an_arrival_moves() {
    let weight = Weight::new(0.5, None, Bytes(1000));
    let curves = [Curve::new(5.0, 15.0, 0.1); 2];
    let mut law: Law<2> = Law::new(Config::new(weight, curves, [[true, true], [false, true]], RULE));
    let mut sample = |colour| {
        law.sample(&Arrival { now: Time::ZERO, colour, size: 1000, lengths: [8.0, 12.0], idle: None });
        law.vars.avg
    };
    assert_eq!(sample(1), [0.0, 6.0]);
    assert_eq!(sample(0), [4.0, 9.0]);
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
    for (wait, from, values) in [(false, 1, 9), (true, 10, 10)] {
        let curve = Curve::new(0.0, 10.0, 0.2);
        let mut rng = Rng::for_component(5, "gaps");
        let mut count = Count::default();
        let mut gaps = [0u32; 40];
        let mut gap = 0;
        for _ in 0..200_000 {
            gap += 1;
            let rule = Rule { wait, ..RULE };
            if Floyd93::test(&mut count, tested(&curve, &rule, 5.0), &mut rng, &mut Silent) != EarlyTest::Pass
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

/// Counts after one arrival each at these averages, thresholds 5 and 15.
pub(crate) fn counts<R: Variant>(averages: &[f64]) -> Vec<i32> {
    let curve = Curve::new(5.0, 15.0, 0.001);
    let mut rng = Rng::for_component(1, "counts");
    let mut count = Count::default();
    let each = averages.iter().map(|&avg| {
        R::test(&mut count, tested(&curve, &RULE, avg), &mut rng, &mut Silent);
        count.get()
    });
    each.collect()
}

#[test]
fn the_count_starts_at_min_th() {
    let averages = [4.9, 5.0, 6.0, 6.0, 4.9, 6.0, 15.0, 6.0];
    assert_eq!(counts::<Floyd93>(&averages), [-1, 0, 1, 2, -1, 0, 0, 1]);
}

/// RFC 3168 §7: what chance picks may be marked below max_th, and is dropped "where the average queue size exceeds an upper
/// threshold", though `gentle` still leaves it to chance.
#[test]
fn what_chance_picks_may_be_marked_below_max_th() {
    let curve = Curve::new(5.0, 15.0, 0.2);
    let test = |avg| {
        let mut rng = Rng::for_component(1, "marks");
        let rule = Rule { gentle: true, ..RULE };
        Floyd93::test(&mut Count(1000), tested(&curve, &rule, avg), &mut rng, &mut Silent)
    };
    assert_eq!(test(14.9), EarlyTest::Early { markable: true });
    assert_eq!(test(15.0), EarlyTest::Early { markable: false });
    assert_eq!(test(29.9), EarlyTest::Early { markable: false });
    assert_eq!(test(30.0), EarlyTest::Forced);
}

proptest! {
    /// A longer queue is never safer, and a probability is one.
    #[test]
    fn curve_is_monotone(c in curves(), a in 0f64..500.0, b in 0f64..500.0, gentle: bool) {
        let (lo, hi) = if a < b { (a, b) } else { (b, a) };
        let (p, q) = (c.p_b(lo, gentle), c.p_b(hi, gentle));
        prop_assert!((0.0..=1.0).contains(&p) && p <= q && q <= 1.0);
        prop_assert_eq!(c.p_b(c.end(gentle) + a, gentle), 1.0);
    }

    /// Arrivals that are dropped leave the link idle: however often the average is looked at, each moment ages it once.
    #[test]
    fn idle_time_counts_once(w_q in 0.001f64..0.5, looks in prop::collection::vec(0f64..50.0, 1..10)) {
        let mut looks = looks;
        looks.sort_by(f64::total_cmp);
        let mut often = of(w_q, 100.0);
        for ms in &looks {
            often.sample(&finds(10.0 + ms, 0.0, Some(10.0)));
        }
        let mut once = of(w_q, 100.0);
        once.sample(&finds(10.0 + looks[looks.len() - 1], 0.0, Some(10.0)));
        prop_assert!((often.vars.avg[0] - once.vars.avg[0]).abs() <= 1e-9 * (1.0 + once.vars.avg[0]));
    }

    /// Without a division as with: the same verdict, count and next random number, on the thresholds too.
    #[test]
    fn products_decide_as_quotients_do(c in curves(), gentle: bool, wait: bool, seed: u64,
                                       averages in prop::collection::vec((0u8..8, 0f64..1.0), 1..300)) {
        let rule = Rule { gentle, wait, ..RULE };
        let mut rngs = [Rng::for_component(seed, "spacing"), Rng::for_component(seed, "spacing")];
        let mut counts = [Count::default(); 2];
        for (place, x) in averages {
            let avg = match place {
                0 => c.min_th,
                1 => c.max_th,
                2 => c.min_th * x,
                3 => c.max_th * (1.0 + 1.5 * x),
                4 => c.min_th * (1.0 + 1e-15 * x),
                _ => c.min_th + (c.max_th - c.min_th) * x,
            };
            let tested = tested(&c, &rule, avg);
            let fast = Floyd93::test(&mut counts[0], tested, &mut rngs[0], &mut Silent);
            let slow = counts[1].test(tested, &mut rngs[1], &mut Silent);
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

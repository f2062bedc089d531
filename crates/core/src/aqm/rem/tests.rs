//! REM's price and probability, by hand, by what the paper derives from them, and as a sum over all that came and waited.

use super::oracle::{Bench, Oracle, Step};
use super::*;
use crate::aqm::EARLY;
use crate::testing::*;

fn params() -> Params {
    Params {
        b_star: Backlog::Packets(20.0),
        gamma: 0.5,
        alpha: 0.1,
        phi: 1.5,
        t_update: Duration::from_millis(10),
        mismatch: Mismatch::Rate,
        in_weight: 1.0,
        ecn: false,
        mean_packet: None,
    }
}

/// After intervals in which so many packets came and so many wait.
fn after(p: &Params, intervals: &[(u64, u64)]) -> LinkPrice {
    let mut link = p.link_price(&CONTEXT);
    for (came, waiting) in intervals {
        (0..*came).for_each(|_| link.count(1000));
        link.update(*waiting);
    }
    link
}

/// Athuraliya et al. 2001, Eq. (1) and Eq. (2), by hand.
#[test]
fn the_price_follows_excess_and_backlog() {
    // 0.5 (0.1 (30 − 20) + 14 − 10), then 0.5 (0.1 (25 − 20) + 9 − 10)
    let link = after(&params(), &[(14, 30)]);
    assert!((link.price - 2.5).abs() < 1e-12);
    assert!((link.p - (1.0 - libm::pow(1.5, -2.5))).abs() < 1e-15);
    let link = after(&params(), &[(14, 30), (9, 25)]);
    assert!((link.price - 2.25).abs() < 1e-12);
}

/// Athuraliya et al. 2001, Eq. (1): a price is never negative, and rests where input is capacity and the backlog the target.
#[test]
fn the_price_is_not_negative_and_rests_at_the_target() {
    let link = after(&params(), &[(0, 0); 5]);
    assert_eq!((link.price, link.p), (0.0, 0.0));
    let link = after(&params(), &[(14, 30), (10, 20), (10, 20)]);
    assert!((link.price - 2.5).abs() < 1e-12);
}

/// Athuraliya et al. 2001, Eq. (3): the change of the backlog in place of x − c, by hand.
#[test]
fn the_backlogs_change_may_stand_for_the_excess() {
    let by_backlog = Params { mismatch: Mismatch::Backlog, ..params() };
    // 0.5 (30 − 0.9 · 0 − 2), then 0.5 (25 − 0.9 · 30 − 2)
    let link = after(&by_backlog, &[(3, 30)]);
    assert!((link.price - 14.0).abs() < 1e-12);
    let link = after(&by_backlog, &[(3, 30), (77, 25)]);
    assert!((link.price - 12.0).abs() < 1e-12);
}

#[test]
fn the_input_may_be_smoothed() {
    let link = after(&Params { in_weight: 0.25, ..params() }, &[(40, 0), (8, 0)]);
    assert!((link.input - 9.5).abs() < 1e-12, "0.75 · 10 + 0.25 · 8");
}

/// Bytes count as packets of mean_packet, in the queue, in the input and in what the link can send.
#[test]
fn bytes_are_packets_of_the_mean_size() {
    let p = Params { b_star: Backlog::Bytes(10_000.0), mean_packet: Some(Bytes(500)), ..params() };
    let mut link = p.link_price(&CONTEXT);
    (0..24).for_each(|_| link.count(500));
    link.update(15_000);
    // 20 packets of 500 B in 10 ms: 0.5 (0.1 (30 − 20) + 24 − 20)
    assert!((link.price - 2.5).abs() < 1e-12);
    assert_eq!((link.unit.length(&Fake::of(3, 0)), link.unit.added_by(40)), (3000, 40));
}

fn arrive(rem: &mut Rem, queue: &mut Fake, ecn: Ecn) -> Admission {
    let packet = Packet { size: 1000, ecn, ..Packet::default() };
    rem.arrive(&packet, At::silent(Time::ZERO, queue, &mut Rng::for_component(1, "rem")))
}

/// Every arrival counts, whatever becomes of it.
#[test]
fn drops_are_input_too() {
    let mut rem = params().build(&CONTEXT);
    rem.link.p = 1.0;
    assert_eq!(arrive(&mut rem, &mut Fake::of(5, 0), Ecn::NotCapable), Admission::Drop(EARLY));
    let mut full = Fake { limit: 5.0, ..Fake::of(5, 0) };
    assert_eq!(arrive(&mut rem, &mut full, Ecn::NotCapable), Admission::Drop(Cause::OVERFLOW));
    assert_eq!(rem.link.came, 2.0);
}

#[test]
fn what_can_be_marked_is() {
    let mut rem = Params { ecn: true, ..params() }.build(&CONTEXT);
    rem.link.p = 1.0;
    assert_eq!(arrive(&mut rem, &mut Fake::of(5, 0), Ecn::Ect0), Admission::Mark);
    assert_eq!(arrive(&mut rem, &mut Fake::of(5, 0), Ecn::NotCapable), Admission::Drop(EARLY));
}

/// The first tick only starts the first interval.
#[test]
fn ticks_take_what_waits() {
    let mut rem = params().build(&CONTEXT);
    let tick = |rem: &mut Rem| rem.tick(Time::ZERO, &mut Outbox::default());
    assert_eq!(arrive(&mut rem, &mut Fake::of(29, 0), Ecn::NotCapable), Admission::Admit);
    assert_eq!(tick(&mut rem), Some(Time::ZERO + Duration::from_millis(10)));
    assert_eq!(rem.link.came, 1.0);
    rem.link.came = 14.0;
    tick(&mut rem);
    assert!((rem.link.price - 2.5).abs() < 1e-12);
    let (now, packet) = (Time::ZERO, Packet::default());
    rem.depart(&packet, At::silent(now, &mut Fake::of(25, 0), &mut Rng::for_component(1, "rem")).since(now));
    rem.link.came = 9.0;
    tick(&mut rem);
    assert!((rem.link.price - 2.25).abs() < 1e-12);
}

#[test]
fn where_no_rate_is_known_only_the_backlog_can_tell() {
    let nowhere = Context { link_rate: None, ..CONTEXT };
    assert_eq!(params().check(&nowhere).unwrap_err().field, "mismatch");
    assert_eq!(Params { mismatch: Mismatch::Backlog, ..params() }.check(&nowhere), Ok(Vec::new()));
    let short = Context { limit: Some(Backlog::Packets(20.0)), ..CONTEXT };
    assert_eq!(params().check(&short).unwrap()[0].field, "b_star");
}

proptest! {
    /// Athuraliya et al. 2001: what passes several links unmarked is exponential in the sum of their prices.
    #[test]
    fn marks_of_a_path_tell_the_sum_of_prices(came in prop::collection::vec(0u64..60, 1..6)) {
        let links: Vec<LinkPrice> = came.iter().map(|n| after(&Params { gamma: 0.01, ..params() }, &[(*n, 25)])).collect();
        let unmarked: f64 = links.iter().map(|l| 1.0 - l.p).product();
        let prices: f64 = links.iter().map(|l| l.price).sum();
        prop_assert!((unmarked - libm::pow(1.5, -prices)).abs() < 1e-12);
    }

    /// While something waits, the backlog changes by x − c, so that Eq. (1) and Eq. (3) differ only by which backlog α weighs: in all by
    /// γ α of its change.
    #[test]
    fn both_mismatches_tell_the_same(came in prop::collection::vec(10u64..30, 1..20)) {
        let (mut waiting, mut intervals) = (0, Vec::new());
        for n in &came {
            waiting += n - 10;
            intervals.push((*n, waiting + 40));
        }
        // It began with 40 packets: the first change is known to neither.
        intervals.insert(0, (10, 40));
        let by_backlog = Params { mismatch: Mismatch::Backlog, ..params() };
        let rest = |p: &Params| after(p, &intervals).price - after(p, &intervals[..1]).price;
        let (rate, backlog) = (rest(&params()), rest(&by_backlog));
        prop_assert!((rate - backlog - 0.5 * 0.1 * waiting as f64).abs() < 1e-9, "{rate} {backlog}");
    }
}

proptest! {
    /// Verdict by verdict and price by price.
    #[test]
    fn as_a_sum_over_what_came_and_waited(p in oracle::settings(), steps in oracle::life(), seed: u64) {
        let rng = || Rng::for_component(seed, "rem");
        let mut b = Bench::new(AnyAqm::Rem(Box::new(p.build(&oracle::CONTEXT))), rng());
        let (mut oracle, mut theirs) = (Oracle::new(&p), rng());
        for step in steps {
            match step {
                Step::Comes(size, ecn) => {
                    oracle.comes(size);
                    let chance = oracle.probability();
                    let expected = if oracle.waiting.len() as u32 >= oracle::LIMIT {
                        Admission::Drop(Cause::OVERFLOW)
                    } else if chance == 0.0 || (chance < 1.0 && theirs.uniform() >= chance) {
                        // No number is drawn where none decides.
                        Admission::Admit
                    } else if p.ecn && ecn == Ecn::Ect0 {
                        Admission::Mark
                    } else {
                        Admission::Drop(EARLY)
                    };
                    prop_assert_eq!(b.arrive(size, ecn), expected);
                    match expected {
                        Admission::Admit => oracle.waiting.push((size, ecn)),
                        Admission::Mark => oracle.waiting.push((size, Ecn::Experienced)),
                        Admission::Drop(_) => {}
                    }
                }
                Step::Leaves => {
                    let expected = (!oracle.waiting.is_empty()).then(|| oracle.waiting.remove(0));
                    prop_assert_eq!(b.depart(), expected);
                }
                Step::Ends => {
                    b.tick();
                    oracle.ends();
                    prop_assert!((b.gauge("price") - oracle.price()).abs() < 1e-9);
                    prop_assert!((b.gauge("drop_prob") - oracle.probability()).abs() < 1e-12);
                }
            }
        }
    }
}

#[test]
fn golden_sequence() {
    let p = Params { gamma: 0.05, b_star: Backlog::Packets(3.0), ..params() };
    let mut rem = p.build(&CONTEXT);
    let mut rng = Rng::for_component(1, "rem");
    let mut queue = Fake { limit: 15.0, ..Fake::of(0, 0) };
    let said: String = (0..80u32)
        .map(|n| {
            if n % 3 != 0 && queue.packets[0] > 0 {
                queue.packets[0] -= 1;
            }
            if n % 13 == 0 {
                rem.tick(Time::ZERO, &mut Outbox::default());
            }
            match rem.arrive(&Packet::default(), At::silent(Time::ZERO, &mut queue, &mut rng)) {
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
    assert_eq!(said, ".................e..............e.e........e........e..ee.....ee..ee...e..eee...");
}

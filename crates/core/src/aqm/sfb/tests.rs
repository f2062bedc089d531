use std::collections::BTreeMap;

use super::*;
use crate::testing::*;

fn params() -> Params {
    crate::params::defaults()
}

fn bench(p: &Params, seed: u64) -> Bench {
    Bench::new(AnyAqm::Sfb(Box::new(p.build(&CONTEXT))), Backlog::Packets(1000.0)).drawing(seed, "sfb")
}

fn sfb(b: &mut Bench) -> &mut Sfb {
    let AnyAqm::Sfb(sfb) = &mut b.aqm else { unreachable!() };
    sfb
}

fn p_min(b: &mut Bench, flow: u32) -> f64 {
    sfb(b).now_used.bins(FlowId(flow)).map(|bin| bin.p).fold(1.0, f64::min)
}

/// Puts all of a flow's bins at a probability.
fn set(b: &mut Bench, flow: u32, p: f64) {
    sfb(b).now_used.bins(FlowId(flow)).for_each(|bin| bin.p = p);
}

/// A bin at bin_size raises its probability at each arrival, a shorter one leaves it, an empty one lowers it.
#[test]
fn a_full_bin_raises_and_an_empty_one_lowers() {
    let mut b = bench(&params(), 1);
    for n in 0..20 {
        assert!(b.admits(n, 1, 1000));
        assert_eq!(p_min(&mut b, 1), 0.0);
    }
    for n in 1..=4 {
        // Of 0.15 % none drops with this seed.
        assert!(b.admits(20 + n, 1, 1000));
        assert!((p_min(&mut b, 1) - n as f64 * 0.0005).abs() < 1e-12);
    }
    while b.depart_at(100).is_some() {}
    let risen = p_min(&mut b, 1);
    b.arrive_at(200, 1, 1000, Ecn::NotCapable);
    assert!((p_min(&mut b, 1) - (risen - 0.00005)).abs() < 1e-12);
    b.arrive_at(201, 1, 1000, Ecn::NotCapable);
    assert!((p_min(&mut b, 1) - (risen - 0.00005)).abs() < 1e-12, "one waits: neither");
}

/// A flow whose bins all hold bin_max packets loses what comes, whatever the probability; others go on.
#[test]
fn bins_have_a_limit() {
    let mut b = bench(&Params { increment: 1e-9, ..params() }, 1);
    (0..25).for_each(|n| assert_eq!(b.arrive_at(n, 1, 1000, Ecn::Ect0), Admission::Admit));
    assert_eq!(b.arrive_at(26, 1, 1000, Ecn::Ect0), Admission::Drop(BIN_FULL));
    assert_eq!(b.arrive_at(27, 2, 1000, Ecn::Ect0), Admission::Admit);
    assert_eq!(b.stat("bin_full"), 1);
}

/// At 1 in all bins a flow gets penalty_rate, after penalty_burst; a flow that shares some of its bins does not notice.
#[test]
fn the_penalty_box_is_a_rate() {
    let mut b = bench(&Params { penalty_rate: 10.0, penalty_burst: 3, ..params() }, 1);
    b.arrive_at(0, 1, 1000, Ecn::NotCapable);
    b.depart_at(0);
    let mut passed = Vec::new();
    for ms in 0..1000 {
        set(&mut b, 1, 1.0);
        sfb(&mut b).now_used.bins(FlowId(1)).for_each(|bin| bin.packets = 1);
        match b.arrive_at(ms * MS, 1, 1000, Ecn::Ect0) {
            Admission::Admit => passed.push(ms),
            verdict => assert_eq!(verdict, Admission::Drop(PENALTY)),
        }
        b.depart_at(ms * MS);
    }
    assert_eq!(passed, [0, 1, 2, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
    assert_eq!(b.stat("penalty"), 1000 - 12);
    // Another flow is in one of 16 of its bins at a level, in all eight once in four billion times.
    assert!((2..200).all(|flow| p_min(&mut b, flow) < 1.0));
}

/// p is the share that is dropped, or marked where that is allowed and understood; above 1/2 a part of 2 (p − 1/2) is dropped all the
/// same.
#[test]
fn marks_and_drops_by_the_least_probability() {
    for (p, ecn, marks, drops) in [
        (0.3, Ecn::NotCapable, 0.0, 0.3),
        (0.3, Ecn::Ect0, 0.3, 0.0),
        (0.75, Ecn::Ect0, 0.25, 0.5),
        (0.75, Ecn::NotCapable, 0.0, 0.75),
    ] {
        let mut b = bench(&Params { ecn: true, ..params() }, 7);
        let mut seen = [0.0, 0.0];
        let tries = 4000;
        b.arrive_at(0, 1, 1000, ecn);
        b.depart_at(0);
        for n in 0..tries {
            set(&mut b, 1, p);
            sfb(&mut b).now_used.bins(FlowId(1)).for_each(|bin| bin.packets = 1);
            match b.arrive_at(n, 1, 1000, ecn) {
                Admission::Mark => seen[0] += 1.0,
                Admission::Drop(cause) => {
                    assert_eq!(cause, EARLY);
                    seen[1] += 1.0;
                }
                Admission::Admit => {}
            }
            while b.depart_at(n).is_some() {}
        }
        for (share, expected) in seen.map(|n| n / tries as f64).into_iter().zip([marks, drops]) {
            assert!((share - expected).abs() < 0.032, "{p} {ecn:?}: {seen:?}");
        }
    }
}

/// Hashes change every rehash; what a flow in the box has taught the next bins by then holds on, and what waits is counted there. A
/// flow that was not in the box begins at 0.
#[test]
fn a_change_of_hashes_sets_nobody_free() {
    let p = Params {
        rehash: Duration::from_millis(1000),
        warmup: Duration::from_millis(500),
        increment: 0.01,
        bin_max: 30,
        penalty_rate: 1000.0,
        penalty_burst: 1000,
        ..params()
    };
    let mut b = bench(&p, 3);
    (0..22).for_each(|_| assert!(b.admits(0, 1, 1000)));
    b.arrive_at(0, 2, 1000, Ecn::NotCapable);
    let keys = (sfb(&mut b).now_used.key, sfb(&mut b).next.key);
    set(&mut b, 1, 1.0);
    set(&mut b, 2, 0.9);
    for n in 0..150 {
        b.arrive_at((600 + n) * MS, 1, 1000, Ecn::NotCapable);
        b.arrive_at((600 + n) * MS, 2, 1000, Ecn::NotCapable);
        while b.queue.packets() > 24 {
            b.depart_at((600 + n) * MS);
        }
        set(&mut b, 1, 1.0);
    }
    assert!(sfb(&mut b).warming);
    b.arrive_at(1000 * MS, 3, 1000, Ecn::NotCapable);
    assert_eq!((sfb(&mut b).now_used.key, b.stat("rehashed"), sfb(&mut b).warming), (keys.1, 1, false));
    assert_ne!(sfb(&mut b).next.key, keys.0);
    assert_eq!((p_min(&mut b, 1), p_min(&mut b, 2)), (1.0, 0.0));
    counts_what_waits(&mut b);
}

/// Every bin in use holds as many packets as wait of its flows.
fn counts_what_waits(b: &mut Bench) {
    let key = sfb(b).now_used.key;
    let waiting: Vec<FlowId> = b.queue.iter().map(|p| p.flow).collect();
    for level in 0..8 {
        let mut expected: BTreeMap<usize, u32> = BTreeMap::new();
        waiting.iter().for_each(|flow| *expected.entry(place(key, level, *flow, 16)).or_default() += 1);
        for (at, bin) in sfb(b).now_used.levels[level].iter().enumerate() {
            assert_eq!(bin.packets, expected.get(&at).copied().unwrap_or(0), "level {level}, bin {at}");
        }
    }
}

/// The hash spreads flows evenly, and each level's and key's otherwise.
#[test]
fn hashes_spread_and_differ() {
    let mut cells = [0u32; 16];
    (0..16_000).for_each(|flow| cells[place(9, 0, FlowId(flow), 16)] += 1);
    let chi: f64 = cells.iter().map(|&n| (f64::from(n) - 1000.0) * (f64::from(n) - 1000.0) / 1000.0).sum();
    // 15 degrees of freedom: 99.9 % below 37.7.
    assert!(chi < 37.7, "{chi}");
    for (key, level) in [(9, 1), (10, 0)] {
        let same =
            (0..16_000).filter(|f| place(9, 0, FlowId(*f), 16) == place(key, level, FlowId(*f), 16)).count();
        assert!((850..1150).contains(&same), "{same}");
    }
}

#[test]
fn odd_parameters_are_refused_or_remarked_on() {
    let check = |p: Params| crate::params::fields(p.check(&CONTEXT));
    assert_eq!(check(params()), Ok(vec![]));
    assert_eq!(check(Params { levels: 17, ..params() }), Err("levels"));
    assert_eq!(check(Params { bins: 70_000, ..params() }), Err("bins"));
    assert_eq!(check(Params { bin_max: 19, ..params() }), Err("bin_max"));
    assert_eq!(check(Params { warmup: params().rehash, ..params() }), Err("warmup"));
    assert_eq!(check(Params { bin_size: 1000, bin_max: 1000, ..params() }), Ok(vec!["bin_size"]));
}

/// The paper's algorithm with a dictionary of bins; the hash is the only thing shared.
#[derive(Default)]
struct Oracle {
    p: BTreeMap<(usize, usize), f64>,
    waiting: Vec<u32>,
    tokens: f64,
    at: u64,
}

impl Oracle {
    fn arrive(&mut self, p: &Params, key: u64, at: u64, flow: u32, rng: &mut Rng) -> Admission {
        let place = |f: u32, level| place(key, level, FlowId(f), p.bins as usize);
        let mut least = (1.0f64, usize::MAX);
        for level in 0..p.levels as usize {
            let mine = place(flow, level);
            let packets = self.waiting.iter().filter(|f| place(**f, level) == mine).count();
            let bin = self.p.entry((level, mine)).or_insert(0.0);
            if packets == 0 {
                *bin = (*bin - p.decrement).max(0.0);
            } else if packets as u64 >= p.bin_size {
                *bin = (*bin + p.increment).min(1.0);
            }
            least = (least.0.min(*bin), least.1.min(packets));
        }
        let verdict = if least.1 as u64 >= p.bin_max {
            Admission::Drop(BIN_FULL)
        } else if least.0 >= 1.0 {
            let more = p.penalty_rate * (at - self.at) as f64 / 1e12;
            self.tokens = (self.tokens + more).min(p.penalty_burst as f64);
            self.at = at;
            if self.tokens >= 1.0 {
                self.tokens -= 1.0;
                Admission::Admit
            } else {
                Admission::Drop(PENALTY)
            }
        } else if least.0 > 0.0 && rng.uniform() < least.0 {
            Admission::Drop(EARLY)
        } else {
            Admission::Admit
        };
        if verdict == Admission::Admit {
            self.waiting.push(flow);
        }
        verdict
    }
}

proptest! {
    /// Whatever comes and leaves between two changes of hashes: the verdicts are the algorithm's.
    #[test]
    fn agrees_with_the_algorithm(seed: u64, levels in 1u64..4, bins in 1u64..6,
        steps in prop::collection::vec((0u64..20, 0u32..6, 0usize..3), 1..400)) {
        let p = Params { levels, bins, bin_size: 3, bin_max: 8, increment: 0.2, decrement: 0.05, penalty_rate: 50.0,
            penalty_burst: 4, ..params() };
        let mut b = bench(&p, seed);
        let mut rng = Rng::for_component(seed, "sfb");
        let keys = (rng.uniform().to_bits(), rng.uniform());
        let mut oracle = Oracle { tokens: 4.0, ..Oracle::default() };
        let mut at = 0;
        for (pause, flow, leave) in steps {
            // Off the grid on which a token comes: no tie that rounding would decide.
            at += pause * MS + 12_345;
            for _ in 0..leave {
                let expected = (!oracle.waiting.is_empty()).then(|| oracle.waiting.remove(0));
                prop_assert_eq!(b.depart_at(at).map(|p| p.flow), expected);
            }
            prop_assert_eq!(b.arrive_at(at, flow, 1000, Ecn::NotCapable), oracle.arrive(&p, keys.0, at, flow, &mut rng));
        }
    }
}

/// Golden: a flow that sends three of four packets into a queue of which two in three leave.
#[test]
fn golden_sequence() {
    let p = Params { bin_size: 4, bin_max: 6, increment: 0.05, ..params() };
    let mut b = bench(&p, 1);
    let said: String = (0..80u64)
        .map(|n| {
            if n % 3 != 0 {
                b.depart_at(n * MS);
            }
            match b.arrive_at(n * MS, u32::from(n % 4 == 0), 1000, Ecn::NotCapable) {
                Admission::Admit => '.',
                Admission::Drop(EARLY) => 'e',
                Admission::Drop(BIN_FULL) => 'f',
                Admission::Drop(PENALTY) => 'p',
                _ => '?',
            }
        })
        .collect();
    assert_eq!(said, "...............e.....e.e..e......ee..e....ee.e....e...e..eee.eee.eee.eee.eee.eee");
}

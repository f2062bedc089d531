use super::*;
use crate::aqm::red::law::Vars;
use crate::aqm::red::rio::AvgUpdate;
use crate::aqm::red::wred::Averages;
use crate::aqm::virtual_queue::tests::{CONTEXT, packet, params, red, rio, wred};
use crate::aqm::virtual_queue::{AnyLaw, Law, Params, VirtualQueue};
use crate::rng::{Rng, Source};
use crate::testing::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The random number that both laws are given.
#[derive(Clone, Debug, Default)]
struct Given(Arc<AtomicU32>);

impl Source for Given {
    fn uniform(&mut self) -> f64 {
        f64::from(self.0.load(Ordering::Relaxed)) / 4_294_967_296.0
    }
    fn copy(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

/// Both laws side by side: after each arrival the one in whole numbers goes on from the other's verdict.
struct Lockstep {
    settings: Settings,
    bound: Bound,
    state: State,
    law: VirtualQueue,
    given: Given,
    rng: Rng,
    /// How far each average may be off by now.
    off: [f64; 3],
    /// Drains since the queue was empty.
    drains: f64,
    /// The most that an average was off, and the most as a share of what is allowed.
    worst: (f64, f64),
    /// Verdicts that differed.
    differ: u32,
}

fn vars<const N: usize>(vars: &Vars<N>) -> ([f64; 3], [i32; 3]) {
    let at = |i: usize| i.min(N - 1);
    (std::array::from_fn(|i| vars.avg[at(i)] * 1000.0), std::array::from_fn(|i| vars.count[at(i)].get()))
}

/// The other law's averages in bytes, and its counts.
fn inside(law: &VirtualQueue) -> ([f64; 3], [i32; 3]) {
    match &law.law {
        AnyLaw::Red(red) => vars(&red.law.vars),
        AnyLaw::Rio(rio) => vars(&rio.law.vars),
        AnyLaw::Wred(wred) => vars(&wred.law.vars),
        _ => ([0.0; 3], [BELOW; 3]),
    }
}

impl Lockstep {
    fn new(params: &Params) -> Lockstep {
        let settings = Settings::of(params, &CONTEXT).expect("it has a form in whole numbers");
        let given = Given::default();
        Lockstep {
            bound: Bound::of(&settings),
            settings,
            state: State::default(),
            law: params.build(&CONTEXT),
            rng: Rng::from_source(Box::new(given.clone())),
            given,
            off: [0.0; 3],
            drains: 0.0,
            worst: (0.0, 0.0),
            differ: 0,
        }
    }

    /// What an average may be off once this arrival, of which the level knows, has been a sample of it.
    fn follow(&mut self, a: &Arrival, idle: u64, before: &[u64; 3]) {
        let (s, b) = (self.settings, self.bound);
        for (i, before) in before.iter().enumerate().take(s.curves as usize) {
            if self.state.level > 0 {
                let parts = f64::from(s.of[i].count_ones());
                let length = if s.of[i] == 0b111 { b.total } else { parts * self.drains * b.part };
                if s.takes[a.colour] >> i & 1 == 1 {
                    let w = s.w as f64 / 4_294_967_296.0;
                    self.off[i] = (1.0 - w) * self.off[i] + w * length + b.sample;
                }
            } else if idle > 0 {
                let kept = libm::exp2(-(s.fade as f64) * idle as f64 / libm::exp2(56.0));
                let kept = if idle >= s.forgets_in { 0.0 } else { kept };
                let avg = kept * *before as f64 / 65_536.0;
                self.off[i] = kept * self.off[i] + avg * (b.idle + idle as f64 * b.idle_ns) + 1.0 / 65_536.0;
            }
        }
    }

    /// Whether an average lies so near a threshold that it may be on either side.
    fn near(&self, avg: f64, row: usize) -> bool {
        let (curve, off) = (&self.settings.curve[row], self.off[row] + 2.0 / 65_536.0);
        [curve.min_th, curve.max_th, curve.end].iter().any(|th| (avg - *th as f64 / 65_536.0).abs() <= off)
    }

    /// Whether that, or the draw is so near the probability, that the verdict may be either.
    fn open(&self, a: &Arrival, avg: f64, count: i32) -> bool {
        let (s, row) = (&self.settings, usize::from(self.settings.row[a.colour]));
        let (curve, off) = (&s.curve[row], self.off[row]);
        let p = curve.p((avg * 65_536.0) as u64) as f64 / 4_294_967_296.0;
        let off = self.bound.p(curve, off);
        let (u, n) = (f64::from(a.random) / 4_294_967_296.0, f64::from(count.saturating_add(1).max(0)));
        let room = if s.wait { 2.0 } else { 1.0 };
        let drawn = (u * (room - n * p) - p).abs() <= off * (1.0 + n * u) + 1e-9;
        let waits = s.wait && (n * p - 1.0).abs() <= n * off + 1e-9;
        self.near(avg, row) || drawn || waits
    }

    /// One arrival at both: the verdict of the floating-point law, which both go on from.
    fn arrive(&mut self, a: &Arrival) -> Admission {
        let (level, aged, avg) = (self.state.level, self.state.aged, self.state.avg);
        let counts = inside(&self.law).1;
        self.given.0.store(a.random, Ordering::Relaxed);
        look(&self.settings, &mut self.state, a);
        let empty = self.state.level == 0;
        self.drains = if empty { 0.0 } else { self.drains + f64::from(u8::from(level > 0)) };
        let idle = if empty { a.now.saturating_sub(self.state.empty_since.max(aged)) } else { 0 };
        self.follow(a, idle, &avg);

        let packet = packet(a.size, Colour::ALL[a.colour], a.ecn);
        let now = Time(a.now * 1000);
        let expected = self.law.arrive(&packet, At::silent(now, &mut Fake::of(0, 0), &mut self.rng));
        let (averages, counted) = inside(&self.law);
        for (i, real) in averages.iter().enumerate().take(self.settings.curves as usize) {
            let off = (self.state.avg[i] as f64 / 65_536.0 - real).abs();
            assert!(off <= self.off[i] + 1e-6, "average {i} is off by {off} B of {}", self.off[i]);
            self.worst = (self.worst.0.max(off), self.worst.1.max(off / self.off[i].max(1e-6)));
        }

        let row = usize::from(self.settings.row[a.colour]);
        let verdict = test(&self.settings, &mut self.state, a);
        if verdict != expected {
            self.differ += 1;
            assert!(
                self.open(a, averages[row], counts[row]),
                "{verdict:?} for {expected:?}, and nothing is near"
            );
        }
        if verdict == expected && self.settings.curves > 0 {
            let same = self.state.count[row] == counted[row];
            assert!(same || self.near(averages[row], row), "{} for {}", self.state.count[row], counted[row]);
        }
        self.state.count = counted;
        if !matches!(expected, Admission::Drop(_)) {
            accept(&mut self.state, a);
        }
        assert_eq!(self.law.backlog.level(), u128::from(self.state.level) * 1000, "the level is never off");
        expected
    }
}

/// Every law in a whole form, with each option.
fn all() -> Vec<Params> {
    let mut all: Vec<Params> = [Law::DropTail, Law::Red, Law::Rio, Law::Wred].map(params).to_vec();
    for (w_q, gentle, wait) in [(0.002, true, false), (1.0, false, true), (0.2, true, true)] {
        let mut of_red = red(w_q);
        (of_red.common.gentle, of_red.common.wait) = (gentle, wait);
        all.push(Params { red: Some(of_red), ..params(Law::Red) });
    }
    for avg_update in [AvgUpdate::EveryArrival, AvgUpdate::OwnColour] {
        all.push(Params { rio: Some(crate::aqm::rio::Params { avg_update, ..rio() }), ..params(Law::Rio) });
    }
    for averages in [Averages::Coupled, Averages::Decoupled] {
        all.push(Params { wred: Some(wred(averages)), ..params(Law::Wred) });
    }
    all
}

/// Gaps about a packet time, now and then idle ones, in ns; sizes; colours; ECN; random numbers.
fn arrivals(n: usize) -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![8 => 0..1_300_000u64, 1 => 0..60_000_000u64];
    let one = (gap, 40..1500u32, 0..3usize, any::<bool>(), any::<u32>());
    prop::collection::vec(one, n).prop_map(|drawn| {
        let mut now = 0;
        let arrival = |(gap, size, colour, ecn, random)| {
            now += gap;
            Arrival { now, size, colour, ecn, random }
        };
        drawn.into_iter().map(arrival).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With the same arrivals, numbers drawn and earlier verdicts, levels are equal, averages within the bound, and a verdict differs only
    /// where a figure is within it of the point that decides.
    #[test]
    fn differs_within_the_bound_only(arrivals in arrivals(400), which in 0..11usize) {
        let mut both = Lockstep::new(&all()[which]);
        for a in &arrivals {
            both.arrive(a);
        }
    }

    /// Never more than rate and limit allow, whatever is drawn, also left to itself.
    #[test]
    fn no_more_is_accepted_than_rate_and_limit_allow(arrivals in arrivals(400), which in 0..11usize) {
        let s = Settings::of(&all()[which], &CONTEXT).expect("it has a form in whole numbers");
        let (mut state, mut accepted) = (State::default(), 0);
        for a in &arrivals {
            if !matches!(arrive(&s, &mut state, a), Admission::Drop(_)) {
                accepted += u128::from(a.size) * u128::from(BYTE);
            }
            prop_assert!(state.level <= s.most);
            prop_assert!(accepted <= u128::from(s.rate) * u128::from(a.now) + u128::from(s.most));
        }
    }

    /// Exact to 10⁻⁹ at any idle time.
    #[test]
    fn powers_of_two(x in 0..(1u64 << 56)) {
        let exact = libm::exp2(-(x as f64) / libm::exp2(56.0));
        let off = exp2_neg(x) as f64 / 4_294_967_296.0 - exact;
        prop_assert!(off.abs() < 2e-9, "{} off by {}", x, off);
    }
}

/// A hundred thousand arrivals of each law, three colours in waves: how far it is off, and how many verdicts differ.
#[test]
fn how_far_off_it_is() {
    for params in all() {
        let mut both = Lockstep::new(&params);
        let mut rng = Rng::for_component(5, "arrivals");
        let (mut now, mut dropped) = (0, 0);
        for i in 0..100_000u32 {
            // From .7 to 1.7 times the rate and back, with a pause now and then.
            let times = 1.2 + 0.5 * libm::sin(f64::from(i) / 3000.0);
            let pause = if rng.below(2000) == 0 { 40e6 } else { 0.0 };
            let size = if rng.below(4) == 0 { 40 + rng.below(1000) } else { 1000 };
            now += (rng.uniform() * 2.0 * 875_000.0 / times + pause) as u64;
            let (colour, ecn) = ((rng.below(5) / 2) as usize, rng.below(3) == 0);
            let random = (rng.uniform() * 4_294_967_296.0) as u32;
            let verdict = both.arrive(&Arrival { now, size, colour, ecn, random });
            dropped += u32::from(matches!(verdict, Admission::Drop(_)));
        }
        let (off, share) = both.worst;
        println!(
            "{:?}: {off:.4} B off, {share:.2} of what is allowed, {} verdicts of 100,000 differ, {dropped} drops",
            params.law, both.differ
        );
        assert!(dropped > 5_000 && dropped < 60_000, "{dropped}");
        assert!(both.differ <= 3, "{} differ", both.differ);
        assert!(params.law == Law::DropTail || off > 0.0, "it is never off: is it compared?");
    }
}

/// A colour's parts at 100 Gbit/s, where a level has digits to lose.
#[test]
fn fast_and_large() {
    let mut p = params(Law::Rio);
    (p.virtual_rate, p.virtual_limit) = (Rate(100_000_000_000), Backlog::Packets(200_000.0));
    let context = crate::params::Context { link_rate: Some(p.virtual_rate), ..CONTEXT };
    let s = Settings::of(&p, &context).expect("it has a form in whole numbers");
    assert!(s.most >> s.shift < ONE && s.most >> (s.shift - 1) >= ONE, "{s:?}");
    let mut state = State::default();
    let arrival = |now, colour| Arrival { now, size: 1500, colour, ecn: false, random: u32::MAX };
    for i in 0..100_000 {
        accept(&mut state, &arrival(0, i % 2));
    }
    look(&s, &mut state, &arrival(1_000_000, 0));
    assert_eq!(state.level, (150_000_000 - 12_500_000) * BYTE);
    let half = 137_500_000 << 15;
    assert!(state.parts[..2].iter().all(|part| part.abs_diff(half) < 1 << 14), "{:?}", state.parts);
}

#[test]
fn what_has_no_whole_form() {
    let of = |change: &dyn Fn(&mut Params), law| {
        let mut p = params(law);
        change(&mut p);
        Settings::of(&p, &CONTEXT).map(|_| ()).map_err(|fault| fault.field)
    };
    assert_eq!(of(&|_| {}, Law::Rio), Ok(()));
    assert_eq!(of(&|_| {}, Law::Ared), Err("law"));
    assert_eq!(of(&|p| p.virtual_limit = Backlog::Bytes(268_435_457.0), Law::Red), Err("virtual_limit"));
    assert_eq!(of(&|p| p.red.as_mut().expect("set").byte_scaled = true, Law::Red), Err("red.byte_scaled"));
    assert_eq!(of(&|p| p.red.as_mut().expect("set").common.w_q = 1e-7, Law::Red), Err("red.w_q"));
    let shared = |p: &mut Params| p.rio.as_mut().expect("set").count = crate::aqm::rio::Counted::Shared;
    assert_eq!(of(&shared, Law::Rio), Err("rio.count"));
    let marks = |p: &mut Params| {
        let wred = p.wred.as_mut().expect("set");
        wred.green_ecn = Some(wred.green.clone());
    };
    assert_eq!(of(&marks, Law::Wred), Err("wred"));
    assert_eq!(fields(params(Law::Wred).check(&CONTEXT)), Ok(vec![]));
}

/// As drawn from the stream of seed 1: a third of the packets IN, at 1.6 times the rate.
#[test]
fn golden_draws() {
    let drawn = |law| {
        let s = Settings::of(&params(law), &CONTEXT).expect("it has a form in whole numbers");
        let (mut state, mut rng) = (State::default(), Rng::for_component(1, "law"));
        let verdict = |i: u64| {
            let colour = usize::from(!i.is_multiple_of(3));
            let random = (rng.bits() >> 21) as u32;
            match arrive(
                &s,
                &mut state,
                &Arrival { now: i * 625_000, size: 1000, colour, ecn: i.is_multiple_of(4), random },
            ) {
                Admission::Admit => '.',
                Admission::Mark => 'm',
                Admission::Drop(EARLY) => 'e',
                Admission::Drop(FORCED) => 'f',
                Admission::Drop(_) => 'p',
            }
        };
        (0..240).map(verdict).collect::<String>()[140..].to_owned()
    };
    let known = [
        ".eee.ee.m..e..e..e..me...ee.m.e....e....m...meee.....e.e..ee...e....me.em..e..ee.e...e...e...e..m..e",
        "..ee.ee.m..e.....e..me....e...e.......e.....me.e.....e...e.e...e....me.em..e..e..e....e..e..me.ff.ff",
        "f.ff.ee.m..e...e.e..me....e...e....e..e.....me.e...e..e..e.e...e....me.em..e..e..e....e..e...e..m..e",
    ];
    assert_eq!([Law::Red, Law::Rio, Law::Wred].map(drawn), known);
}

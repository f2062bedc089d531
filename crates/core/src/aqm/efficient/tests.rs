use super::*;
use crate::aqm::curve::Law;
use crate::aqm::thresholds::Paths;
use crate::estimate::ewma::QueueAverage;
use crate::rng::Rng;
use crate::units::{Backlog, Bytes, Duration, Rate};
use crate::verdict::{Notes, Silent};
use proptest::prelude::*;

const RULE: Rule = Rule { law: Law::Floyd93, gentle: false, wait: false, in_bytes: false, mean: None };

/// 1,000 packets a second.
fn weight(w_q: f64) -> Weight {
    Weight::new(w_q, Some(Rate(8_000_000)), Bytes(1000))
}

/// A RED whose average is the queue's length.
fn red(curve: Curve, rule: Rule) -> Config<1> {
    Config::new(weight(1.0), [curve], [[true]], rule, false)
}

/// While the link is busy and there is room.
fn finds<const N: usize>(colour: usize, lengths: [u64; N]) -> Arrival<N> {
    Arrival { now: Time::ZERO, colour, lengths, idle: None, size: 1000, markable: false, fits: true }
}

#[test]
fn a_red_is_half_a_cache_line_and_a_rio_one() {
    assert_eq!(size_of::<State<1>>(), 32);
    assert!(size_of::<State<2>>() <= 64, "{} bytes", size_of::<State<2>>());
}

/// Fig. 17: at a constant average the gaps after a drop are uniform, on 1 … 1/p_b, with `wait` on 1/p_b … 2/p_b.
#[test]
fn gaps_are_uniform() {
    for (wait, from) in [(false, 1), (true, 11)] {
        let c = red(Curve::new(0.0, 10.0, 0.2), Rule { wait, ..RULE });
        let (mut state, mut rng) = (State::default(), Rng::for_component(5, "gaps"));
        let (mut gaps, mut gap) = ([0u32; 40], 0);
        for _ in 0..200_000 {
            gap += 1;
            if state.decide(&c, finds(0, [5]), &mut rng, &mut Silent) != Admission::Admit {
                gaps[gap] += 1;
                gap = 0;
            }
        }
        let drops: u32 = gaps.iter().sum();
        let each = f64::from(drops) / 10.0;
        let seen: u32 = gaps[from..from + 10].iter().sum();
        // The very first gap starts one packet earlier.
        assert!(drops - seen <= 1, "gaps outside the range: {gaps:?}");
        for n in &gaps[from..from + 10] {
            assert!((f64::from(*n) - each).abs() < 5.0 * each.sqrt(), "{gaps:?}");
        }
    }
}

/// One number a drop, and one for the first; none below min_th and above the curve's end.
#[test]
fn a_number_is_drawn_once_a_drop() {
    let c = red(Curve::new(5.0, 15.0, 0.1), RULE);
    let mut rng = Rng::for_component(2, "draws");
    let mut other = rng.clone();
    let mut state = State::default();
    let lengths = [4, 15].into_iter().chain([12; 1000]);
    let verdicts = lengths.map(|q| state.decide(&c, finds(0, [q]), &mut rng, &mut Silent));
    let drops = verdicts.filter(|v| *v != Admission::Admit).count();
    // One of them forced; p_b = 0.07, so a drop every 7.6 packets.
    assert!((110..155).contains(&drops), "{drops}");
    assert_eq!(state.tally(0), Tally::of([drops as u64 - 1, 1, 0, 0]));
    for _ in 0..drops {
        other.uniform();
    }
    assert_eq!(rng.uniform(), other.uniform());
}

/// The chance of a drop on the thresholds and between them, as the curve in doubles has it.
#[test]
fn probabilities_are_the_curves() {
    for gentle in [false, true] {
        let curve = Curve::new(5.0, 15.0, 0.1);
        let mut whole = Whole::new(red(curve, Rule { gentle, ..RULE }));
        for q in 0..40 {
            let arrival = finds(0, [q]);
            whole.state.decide(&whole.config, arrival, &mut Rng::for_component(1, "curve"), &mut Silent);
            let exact = curve.p_b(q as f64, gentle);
            assert!((whole.p_b(0) - exact).abs() < 1e-8, "{q}: {} {exact}", whole.p_b(0));
        }
    }
}

/// Idle time ages the average as so many empty queues would, and the packet that ends it joins.
#[test]
fn what_finds_the_link_idle_joins() {
    let c = Config::new(weight(0.5), [Curve::new(1.0, 2.0, 0.1)], [[true]], RULE, false);
    let (mut state, mut rng) = (State::default(), Rng::for_component(1, "idle"));
    let at = |ms: u64| Time(ms * 1_000_000_000);
    assert_eq!(state.decide(&c, finds(0, [32]), &mut rng, &mut Silent), Admission::Drop(Cause::Forced));
    let arrival = Arrival { now: at(13), idle: Some(at(10)), ..finds(0, [0]) };
    assert_eq!(state.decide(&c, arrival, &mut rng, &mut Silent), Admission::Admit);
    assert_eq!(state.averages(&c), [2.0]);
    let too_long = Arrival { now: at(15), idle: Some(at(14)), fits: false, ..finds(0, [0]) };
    assert_eq!(state.decide(&c, too_long, &mut rng, &mut Silent), Admission::Drop(Cause::Overflow));
    assert_eq!((state.averages(&c), state.tally(0)), ([1.0], Tally::of([0, 1, 1, 0])));
}

/// Counts of 32 bits run over into ones of 64.
#[test]
fn no_drop_is_lost() {
    let c = red(Curve::new(5.0, 15.0, 0.1), RULE);
    let mut rng = Rng::for_component(1, "counts");
    let full = u64::from(u32::MAX);
    let mut state = State { dropped: [[u32::MAX; 2]], ..State::default() };
    assert_eq!(state.decide(&c, finds(0, [20]), &mut rng, &mut Silent), Admission::Drop(Cause::Forced));
    assert_eq!(state.tally(0), Tally::of([full, full + 1, 0, 0]));
    while state.decide(&c, finds(0, [14]), &mut rng, &mut Silent) == Admission::Admit {}
    assert_eq!(state.tally(0), Tally::of([full + 1, full + 1, 0, 0]));
}

#[test]
fn what_whole_numbers_cannot_hold_is_refused() {
    let paths = Paths { min_th: "min_th", max_th: "max_th" };
    let field = |w_q, max_th, max_p| {
        check(w_q, Backlog::Packets(5.0), Backlog::Packets(max_th), max_p, paths).map_err(|f| f.field)
    };
    assert_eq!(field(1.0 / 512.0, 15.0, 0.1), Ok(()));
    assert_eq!(field(1e-7, 15.0, 0.1), Err("w_q"));
    assert_eq!(field(0.002, 3e9, 0.1), Err("max_th"));
    assert_eq!(field(0.002, 15.0, 1e-12), Err("max_th"));
}

/// What arrivals find: microseconds since the last, IN and OUT packets waiting, IN or OUT, size, share of the time idle,
/// whether there is room, and whether marks are understood.
type Step = (u64, u64, u64, usize, u32, Option<f64>, bool, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let idle = prop::option::weighted(0.1, 0f64..=1.0);
    let fits = prop::bool::weighted(0.95);
    let step = (0u64..20_000, 0u64..40, 0u64..40, 0usize..2, 40u32..1500, idle, fits, any::<bool>());
    prop::collection::vec(step, 1..300)
}

/// The arrivals of a script.
fn arrivals(steps: &[Step]) -> impl Iterator<Item = Arrival<2>> {
    let mut now = Time::ZERO;
    steps.iter().map(move |&(gap, ins, outs, colour, size, idle, fits, markable)| {
        now += Duration::from_micros(gap);
        let idle = idle.map(|share| Time(now.0 - (share * gap as f64 * 1e6) as u64));
        let (ins, outs) = if idle.is_some() { (0, 0) } else { (ins, outs) };
        Arrival { now, colour, lengths: [ins + outs, ins], idle, size, markable, fits }
    })
}

prop_compose! {
    fn rules()(gentle: bool, wait: bool, in_bytes: bool, scaled: bool) -> Rule {
        Rule { gentle, wait, in_bytes, mean: scaled.then_some(1000), ..RULE }
    }
}

proptest! {
    /// The short way decides as the long one does, and leaves the same behind.
    #[test]
    fn what_is_common_is_decided_as_everything_is(steps in steps(), rule in rules(), ecn: bool, every: bool,
                                                  w_q in 0.001f64..=1.0, seed: u64) {
        let curves = [Curve::new(3.0, 20.0, 0.3), Curve::new(5.0, 15.0, 0.2)];
        let c = Config::new(weight(w_q), curves, [[true, every], [true, true]], rule, ecn);
        let mut rngs = [Rng::for_component(seed, "rio"), Rng::for_component(seed, "rio")];
        let mut states = [State::default(), State::default()];
        for a in arrivals(&steps) {
            let short = states[0].decide(&c, a, &mut rngs[0], &mut Silent);
            let long = states[1].decide(&c, a, &mut rngs[1], &mut Notes::default());
            prop_assert_eq!(short, long);
            prop_assert_eq!(states[0].avg, states[1].avg);
            prop_assert_eq!(states[0].place, states[1].place);
            prop_assert_eq!([0, 1].map(|i| states[0].tally(i)), [0, 1].map(|i| states[1].tally(i)));
            let [x, y] = rngs.each_ref().map(|r| r.clone().uniform());
            prop_assert_eq!(x, y);
        }
    }

    /// Fig. 17 in doubles, from the paper's text: the same verdicts but within a millionth of a tie.
    #[test]
    fn agrees_with_the_oracle(steps in steps(), rule in rules(), w_q in 0.001f64..=1.0, seed: u64) {
        let rule = Rule { in_bytes: false, ..rule };
        let curve = Curve::new(3.0, 20.0, 0.3);
        let w = weight(w_q);
        let c = Config::new(w, [curve], [[true]], rule, false);
        let (mut state, mut rng) = (State::default(), Rng::for_component(seed, "red"));
        let (mut average, mut count, mut number) = (QueueAverage::default(), -1i64, None);
        for a in arrivals(&steps) {
            let Arrival { now, lengths: [queued, _], idle, size, fits, .. } = a;
            let a = Arrival { now, idle, size, fits, ..finds(0, [queued]) };
            let mut twin = rng.clone();
            const TWO_32: f64 = (1u64 << 32) as f64;
            let mut draw = || (twin.uniform() * f64::from(u32::MAX)).floor() / TWO_32 + 1.0 / TWO_32;
            let got = state.decide(&c, a, &mut rng, &mut Silent);
            let avg = average.sample(&w, a.now, a.lengths[0] as f64, a.idle);
            prop_assert!((state.averages(&c)[0] - avg).abs() < 1e-5);
            let near = |x: f64, y: f64| (x - y).abs() < 1e-4 * y.abs().max(1.0);
            if near(avg, curve.min_th) || near(avg, curve.end(rule.gentle)) {
                // Either answer is right; what follows depends on it.
                return Ok(());
            }
            let dropped = |cause| Admission::Drop(cause);
            let mut slow = if a.fits { Admission::Admit } else { dropped(Cause::Overflow) };
            if avg < curve.min_th {
                (count, number) = (-1, None);
            } else if a.idle.is_some() {
                (count, number) = if a.fits { (count + 1, number) } else { (0, None) };
            } else if avg >= curve.end(rule.gentle) {
                (count, number) = (0, None);
                slow = dropped(Cause::Forced);
            } else {
                count += 1;
                let scale = rule.mean.map_or(1.0, |mean| f64::from(a.size) / f64::from(mean));
                let due = count as f64 * curve.p_b(avg, rule.gentle) * scale - f64::from(u8::from(rule.wait));
                if near(due, 0.0) || near(due, number.unwrap_or(0.0)) {
                    return Ok(());
                }
                if due > 0.0 && number.is_none() {
                    number = Some(draw());
                }
                if number.is_some_and(|u| near(due, u)) {
                    return Ok(());
                }
                if number.is_some_and(|u| due > u) {
                    (count, number) = (0, Some(draw()));
                    slow = dropped(Cause::Early);
                } else if !a.fits {
                    (count, number) = (0, None);
                }
            }
            prop_assert_eq!(got, slow);
        }
    }
}

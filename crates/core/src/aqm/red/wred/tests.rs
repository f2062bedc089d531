use super::*;
use crate::aqm::red::oracle::{Past, Sample, average, p_a};
use crate::aqm::red::{self, Red};
use crate::aqm::red::{EARLY, FORCED};
use crate::aqm::rio::{self, Rio};
use crate::packet::Ecn;
use crate::queue::fake::Fake;
use crate::rng::Rng;
use crate::units::{Backlog, Bytes, Duration, Rate};
use crate::verdict::{Notes, Silent};
use Admission::{Admit, Drop};
use Colour::{Green as G, Red as R, Yellow as Y};
use proptest::prelude::*;

/// 1,000 packets a second.
const CONTEXT: Context =
    Context { link_rate: Some(Rate(8_000_000)), contract: None, packet: Bytes(1000), limit: None };

fn thresholds(min_th: f64, max_th: f64, max_p: f64) -> Thresholds {
    Thresholds { min_th: Backlog::Packets(min_th), max_th: Backlog::Packets(max_th), max_p }
}

fn params(averages: Averages, w_q: f64) -> Params {
    Params {
        green: thresholds(20.0, 30.0, 0.02),
        yellow: thresholds(10.0, 20.0, 0.1),
        red: Some(thresholds(5.0, 10.0, 0.2)),
        averages,
        common: Common { w_q, gentle: false, wait: false, ecn: false, mean_packet: None },
    }
}

fn noted(notes: &Notes, what: &str) -> Option<f64> {
    notes.items().iter().find(|(name, _)| *name == what).map(|(_, x)| *x)
}

fn of(colours: [u32; 3]) -> Fake {
    Fake { packets: colours, ..Fake::of(0, 0) }
}

fn arrive(wred: &mut Wred, at: u64, colour: Colour, queue: &mut Fake, rng: &mut Rng) -> Admission {
    let packet = Packet { size: 1000, colour, ..Packet::default() };
    wred.arrive(Time(at), &packet, queue, rng, &mut Silent)
}

/// RFC 2597 §4: levels of drop precedence. (colour, green, yellow and red waiting) → verdict; with w_q = 1 the averages are the lengths.
#[test]
fn golden_sequence() {
    let forced = Drop(FORCED);
    let script = [
        (Averages::Shared, R, [9, 0, 1], forced), // 10 in all, however few of them red
        (Averages::Shared, Y, [9, 0, 1], Admit),
        (Averages::Shared, Y, [10, 5, 5], forced),
        (Averages::Shared, G, [10, 5, 5], Admit), // at min_th p = 0
        (Averages::Shared, G, [10, 10, 10], forced),
        (Averages::Coupled, R, [9, 0, 1], forced),
        (Averages::Coupled, Y, [9, 0, 50], Admit), // red doesn't count for yellow
        (Averages::Coupled, Y, [10, 10, 0], forced),
        (Averages::Coupled, G, [19, 50, 50], Admit), // nor either for green
        (Averages::Coupled, G, [30, 0, 0], forced),
        (Averages::Decoupled, R, [90, 90, 5], Admit),
        (Averages::Decoupled, R, [0, 0, 10], forced),
        (Averages::Decoupled, Y, [90, 9, 90], Admit),
        (Averages::Decoupled, Y, [0, 20, 0], forced),
        (Averages::Decoupled, G, [30, 0, 0], forced),
    ];
    for (averages, colour, waiting, verdict) in script {
        let mut wred = params(averages, 1.0).build(&CONTEXT);
        let mut rng = Rng::for_component(1, "wred");
        let got = arrive(&mut wred, 0, colour, &mut of(waiting), &mut rng);
        assert_eq!(got, verdict, "{averages:?} {colour:?} at {waiting:?}");
    }
}

#[test]
fn red_is_as_yellow_where_nothing_is_said() {
    let verdict = |colour| {
        let mut wred = Params { red: None, ..params(Averages::Shared, 1.0) }.build(&CONTEXT);
        arrive(&mut wred, 0, colour, &mut of([0, 15, 0]), &mut Rng::for_component(1, "wred"))
    };
    assert_eq!(verdict(R), verdict(Y));
    assert_eq!(verdict(R), Admit);
}

#[test]
fn idle_time_ages_every_average() {
    for averages in [Averages::Shared, Averages::Coupled, Averages::Decoupled] {
        let mut wred = params(averages, 0.5).build(&CONTEXT);
        let mut rng = Rng::for_component(1, "wred");
        for colour in Colour::ALL {
            arrive(&mut wred, 0, colour, &mut of([2, 2, 2]), &mut rng);
        }
        let before = wred.law.vars.avg;
        let ms = 1_000_000_000;
        let mut idle = Fake { idle: Some(Time(10 * ms)), ..of([0, 0, 0]) };
        arrive(&mut wred, 13 * ms, R, &mut idle, &mut rng);
        for (a, b) in wred.law.vars.avg.iter().zip(before) {
            assert!((a - b / 8.0).abs() < 1e-12, "{averages:?}");
        }
    }
}

#[test]
fn thresholds_are_checked_colour_by_colour() {
    let of = |red| Params { red: Some(red), ..params(Averages::Shared, 0.002) }.check(&CONTEXT);
    assert_eq!(of(thresholds(8.0, 8.0, 0.1)).expect_err("equal").field, "red.min_th");
    let bytes = Thresholds { min_th: Backlog::Bytes(5e3), max_th: Backlog::Bytes(9e3), max_p: 0.1 };
    let fault = of(bytes).expect_err("two units");
    assert_eq!(fault.field, "red.min_th");
    assert!(fault.problem.contains("one unit"));
}

#[test]
fn marks_where_ecn_is_on() {
    let mut wred = Params {
        common: Common { ecn: true, ..params(Averages::Shared, 1.0).common },
        ..params(Averages::Shared, 1.0)
    }
    .build(&CONTEXT);
    let mut rng = Rng::for_component(1, "wred");
    let packet = Packet { size: 1000, colour: R, ecn: Ecn::Ect0, ..Packet::default() };
    let verdicts: Vec<_> = (0..200)
        .map(|_| wred.arrive(Time::ZERO, &packet, &mut of([0, 9, 0]), &mut rng, &mut Silent))
        .collect();
    assert!(verdicts.contains(&Admission::Mark));
    assert!(!verdicts.contains(&Drop(EARLY)));
    assert_eq!(wred.arrive(Time::ZERO, &packet, &mut of([0, 10, 0]), &mut rng, &mut Silent), Drop(FORCED));
}

/// One arrival: colour, what waits by colour, the gap to the one before in ms, and whether the link was idle before.
fn arrivals() -> impl Strategy<Value = Vec<(usize, [u32; 3], u64, bool)>> {
    let one = (0..3usize, [0..40u32, 0..30u32, 0..20u32], 0..20u64, prop::bool::weighted(0.1));
    prop::collection::vec(one, 1..120)
}

fn which() -> impl Strategy<Value = Averages> {
    prop::sample::select(vec![Averages::Shared, Averages::Coupled, Averages::Decoupled])
}

/// A hundred thousand arrivals, idle stretches and overflows among them: RIO and a WRED of two coupled colours are one law.
#[test]
fn rio_and_wred_agree_on_many_arrivals() {
    let common = Common { w_q: 0.02, ..crate::params::defaults() };
    let (green, yellow) = (thresholds(15.0, 30.0, 0.05), thresholds(5.0, 20.0, 0.2));
    let mut rio = rio::Params {
        r#in: green.clone(),
        out: yellow.clone(),
        avg_update: rio::AvgUpdate::ClarkFang,
        byte_scaled: false,
        watch: false,
        common: common.clone(),
    }
    .build(&CONTEXT);
    let mut wred = Params { green, yellow, red: None, averages: Averages::Coupled, common }.build(&CONTEXT);
    let (mut one, mut other) = (Rng::for_component(3, "x"), Rng::for_component(3, "x"));
    let mut world = Rng::for_component(4, "arrivals");
    let (mut now, mut dropped) = (Time::ZERO, 0);
    for _ in 0..100_000 {
        now += Duration::from_micros(u64::from(world.below(2_000)));
        let idle = (world.below(50) == 0).then(|| now - Duration::from_micros(u64::from(world.below(9_000))));
        let waiting = if idle.is_some() { [0; 3] } else { [world.below(24), world.below(16), 0] };
        let mut queue = Fake { idle, limit: 32.0, ..of(waiting) };
        let colour = if world.below(2) == 0 { G } else { Y };
        let packet = Packet { size: 1000, colour, ..Packet::default() };
        let a = rio.arrive(now, &packet, &mut queue, &mut one, &mut Silent);
        assert_eq!(a, wred.arrive(now, &packet, &mut queue, &mut other, &mut Silent));
        dropped += u32::from(a != Admit);
    }
    assert!((10_000..60_000).contains(&dropped), "{dropped} dropped");
    assert_eq!(one.uniform(), other.uniform());
}

proptest! {
    /// Every verdict against the slow RED: averages and probabilities recomputed from the whole past.
    #[test]
    fn agrees_with_the_oracle(past in arrivals(), averages in which(), gentle: bool, wait: bool) {
        let p = Params { common: Common { gentle, wait, ..params(averages, 0.1).common }, ..params(averages, 0.1) };
        let mut wred = p.build(&CONTEXT);
        let mut rng = Rng::for_component(7, "wred");
        let mut samples: [Vec<Sample>; 3] = Default::default();
        let mut pasts: [Vec<Past>; 3] = Default::default();
        let mut now = Time::ZERO;
        for (colour, waiting, gap, idle) in past {
            let since = now;
            now += Duration::from_millis(gap);
            let mut queue = of(if idle { [0; 3] } else { waiting });
            queue.idle = idle.then_some(since);
            // Whose length an average is: written out, colour by colour.
            let [g, y, r] = queue.packets.map(f64::from);
            for (i, s) in samples.iter_mut().enumerate() {
                if idle {
                    s.push(Sample::Idle(gap as f64));
                    continue;
                }
                match (averages, i) {
                    (Averages::Shared, _) => s.push(Sample::Length(g + y + r)),
                    (Averages::Coupled, 0) if colour == 0 => s.push(Sample::Length(g)),
                    (Averages::Coupled, 1) if colour <= 1 => s.push(Sample::Length(g + y)),
                    (Averages::Coupled, 2) => s.push(Sample::Length(g + y + r)),
                    (Averages::Decoupled, _) if i == colour => s.push(Sample::Length([g, y, r][i])),
                    _ => {}
                }
            }
            let avg = average(&samples[colour], 0.1);
            let curve = wred.law.config.curves[colour];
            let chance = p_a(&pasts[colour], avg, &curve, gentle, wait);
            let mut notes = Notes::default();
            let packet = Packet { size: 1000, colour: Colour::ALL[colour], ..Packet::default() };
            let verdict = wred.arrive(now, &packet, &mut queue, &mut rng, &mut notes);
            let u = noted(&notes, "u");
            // Within rounding of a threshold or of the drawn number either answer is right.
            let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
            let edge = close(avg, curve.min_th) || close(avg, curve.max_th) || close(avg, 2.0 * curve.max_th);
            if edge || u.is_some_and(|u| close(u, chance)) { return Ok(()); }
            let dropped = verdict != Admit;
            prop_assert_eq!(dropped, chance >= 1.0 || u.is_some_and(|u| u < chance), "avg {} p {}", avg, chance);
            pasts[colour].push(Past { avg, dropped });
        }
    }

    /// With one colour all three are RED, draw by draw.
    #[test]
    fn one_colour_is_red(lengths in prop::collection::vec(0..40u32, 1..200), averages in which()) {
        let mut wred = params(averages, 0.2).build(&CONTEXT);
        let mut red: Red = red::Params { min_th: Backlog::Packets(20.0), max_th: Backlog::Packets(30.0), max_p: 0.02, byte_scaled: false, drop: crate::aqm::red::DropAt::Tail, common: Common { w_q: 0.2, gentle: false, wait: false, ecn: false, mean_packet: None } }.build(&CONTEXT);
        let (mut one, mut other) = (Rng::for_component(3, "x"), Rng::for_component(3, "x"));
        let packet = Packet { size: 1000, ..Packet::default() };
        for q in lengths {
            let a = wred.arrive(Time::ZERO, &packet, &mut of([q, 0, 0]), &mut one, &mut Silent);
            let b = red.arrive(Time::ZERO, &packet, &mut of([q, 0, 0]), &mut other, &mut Silent);
            prop_assert_eq!(a, b);
        }
    }

    /// With two colours coupled averages are RIO's, draw by draw, whatever the options.
    #[test]
    fn two_coupled_colours_are_rio(
        arrivals in prop::collection::vec((prop::bool::ANY, 0..40u32, 0..30u32), 1..200)
    ) {
        let p = params(Averages::Coupled, 0.2);
        let mut rio: Rio = rio::Params { r#in: p.green.clone(), out: p.yellow.clone(), avg_update: rio::AvgUpdate::ClarkFang, byte_scaled: false, watch: false, common: Common { w_q: 0.2, gentle: false, wait: false, ecn: false, mean_packet: None } }.build(&CONTEXT);
        let mut wred = p.build(&CONTEXT);
        let (mut one, mut other) = (Rng::for_component(3, "x"), Rng::for_component(3, "x"));
        for (is_in, g, y) in arrivals {
            let packet = Packet { size: 1000, colour: if is_in { G } else { Y }, ..Packet::default() };
            let a = wred.arrive(Time::ZERO, &packet, &mut of([g, y, 0]), &mut one, &mut Silent);
            let b = rio.arrive(Time::ZERO, &packet, &mut of([g, y, 0]), &mut other, &mut Silent);
            prop_assert_eq!(a, b);
        }
    }
}

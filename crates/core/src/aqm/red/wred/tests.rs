use Admission::{Admit, Drop};
use Colour::{Green as G, Red as R, Yellow as Y};

use super::*;
use crate::aqm::red::oracle::{Past, Sample, average, p_a};
use crate::aqm::red::{self, EARLY, FORCED, Red};
use crate::aqm::rio::{self, Rio};
use crate::testing::*;

fn thresholds(min_th: f64, max_th: f64, max_p: f64) -> Thresholds {
    Thresholds { min_th: Backlog::Packets(min_th), max_th: Backlog::Packets(max_th), max_p }
}

fn params(averages: Averages, w_q: f64) -> Params {
    Params {
        green: thresholds(20.0, 30.0, 0.02),
        yellow: thresholds(10.0, 20.0, 0.1),
        red: Some(thresholds(5.0, 10.0, 0.2)),
        green_ecn: None,
        yellow_ecn: None,
        red_ecn: None,
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
    wred.arrive(&packet, At::silent(Time(at), queue, rng))
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
        .map(|_| wred.arrive(&packet, At::silent(Time::ZERO, &mut of([0, 9, 0]), &mut rng)))
        .collect();
    assert!(verdicts.contains(&Admission::Mark));
    assert!(!verdicts.contains(&Drop(EARLY)));
    assert_eq!(wred.arrive(&packet, At::silent(Time::ZERO, &mut of([0, 10, 0]), &mut rng)), Drop(FORCED));
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
        count: rio::Counted::Own,
        watch: false,
        common: common.clone(),
    }
    .build(&CONTEXT);
    let mut wred =
        Params { green, yellow, red: None, common, ..params(Averages::Coupled, 1.0) }.build(&CONTEXT);
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
        let a = rio.arrive(&packet, At::silent(now, &mut queue, &mut one));
        assert_eq!(a, wred.arrive(&packet, At::silent(now, &mut queue, &mut other)));
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
            let verdict = wred.arrive(&packet, At::new(now, &mut queue, &mut rng, &mut notes));
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
            let a = wred.arrive(&packet, At::silent(Time::ZERO, &mut of([q, 0, 0]), &mut one));
            let b = red.arrive(&packet, At::silent(Time::ZERO, &mut of([q, 0, 0]), &mut other));
            prop_assert_eq!(a, b);
        }
    }

    /// With two colours coupled averages are RIO's, draw by draw, whatever the options.
    #[test]
    fn two_coupled_colours_are_rio(
        arrivals in prop::collection::vec((prop::bool::ANY, 0..40u32, 0..30u32), 1..200)
    ) {
        let p = params(Averages::Coupled, 0.2);
        let mut rio: Rio = rio::Params { r#in: p.green.clone(), out: p.yellow.clone(), avg_update: rio::AvgUpdate::ClarkFang, byte_scaled: false, count: rio::Counted::Own, watch: false, common: Common { w_q: 0.2, gentle: false, wait: false, ecn: false, mean_packet: None } }.build(&CONTEXT);
        let mut wred = p.build(&CONTEXT);
        let (mut one, mut other) = (Rng::for_component(3, "x"), Rng::for_component(3, "x"));
        for (is_in, g, y) in arrivals {
            let packet = Packet { size: 1000, colour: if is_in { G } else { Y }, ..Packet::default() };
            let a = wred.arrive(&packet, At::silent(Time::ZERO, &mut of([g, y, 0]), &mut one));
            let b = rio.arrive(&packet, At::silent(Time::ZERO, &mut of([g, y, 0]), &mut other));
            prop_assert_eq!(a, b);
        }
    }
}

fn with_ecn() -> Params {
    let curve = |min_th, max_th, max_p| Some(thresholds(min_th, max_th, max_p));
    Params {
        green_ecn: curve(12.0, 16.0, 0.5),
        yellow_ecn: curve(4.0, 8.0, 1.0),
        ..params(Averages::Shared, 1.0)
    }
}

fn arrive_as(wred: &mut Wred, colour: Colour, ecn: Ecn, waiting: u32, rng: &mut Rng) -> Admission {
    let packet = Packet { size: 1000, colour, ecn, ..Packet::default() };
    wred.arrive(&packet, At::silent(Time::ZERO, &mut of([waiting, 0, 0]), rng))
}

/// RFC 3168 §7: an ECN-capable packet goes by the colour's curve for marks, from its end on always; at the end of the first curve it is
/// dropped. Others go by the first curve alone.
#[test]
fn ecn_capable_packets_have_a_curve_of_their_own() {
    let mark = Admission::Mark;
    let (capable, other) = (Ecn::Ect0, Ecn::NotCapable);
    for (colour, ecn, waiting, verdict) in [
        (G, capable, 12, Admit), // on min_th p is 0
        (G, capable, 16, mark),
        (G, capable, 29, mark),
        (G, capable, 30, Drop(FORCED)),
        (G, other, 20, Admit),
        (G, other, 30, Drop(FORCED)),
        (Y, capable, 8, mark),
        (Y, other, 10, Admit),
        (Y, capable, 20, Drop(FORCED)),
        (R, capable, 8, mark), // as yellow's, where nothing is said
        (R, Ecn::Ect1, 9, mark),
        (R, capable, 10, Drop(FORCED)),
    ] {
        let mut wred = with_ecn().build(&CONTEXT);
        let got = arrive_as(&mut wred, colour, ecn, waiting, &mut Rng::for_component(1, "wred"));
        assert_eq!(got, verdict, "{colour:?} {ecn:?} at {waiting}");
    }
}

/// Between the thresholds the shares marked and dropped are those of the two curves, 2p: gaps are even up to 1/p (Floyd and
/// Jacobson 1993, Fig. 2: the count is 1 at the first arrival after a drop). Neither curve's count knows of the other's packets.
#[test]
fn both_curves_hold_at_once() {
    let mut wred = with_ecn().build(&CONTEXT);
    let mut rng = Rng::for_component(5, "wred");
    let (mut seen, mut counts) = ([[0u32; 3]; 2], Counts::default());
    let tries = 20_000;
    for n in 0..2 * tries {
        let ecn = if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotCapable };
        // Green: marked with 0.25 at 14, dropped with 0.01 at 25: each by its own average, w_q being 1.
        let waiting = if n % 2 == 0 { 14 } else { 25 };
        let verdict = arrive_as(&mut wred, G, ecn, waiting, &mut rng);
        count(&mut counts, G, verdict);
        let place = match verdict {
            Admit => 0,
            Admission::Mark => 1,
            Drop(_) => 2,
        };
        seen[(n % 2) as usize][place] += 1;
    }
    assert_eq!((seen[0][2], seen[1][1]), (0, 0));
    for (n, p) in [(seen[0][1], 0.25), (seen[1][2], 0.01)] {
        let got = f64::from(n) / f64::from(tries);
        assert!((got / (2.0 * p) - 1.0).abs() < 0.08, "{got}, p {p}");
    }
    let counted = shown(&wred, &counts);
    assert_eq!(
        ["marked_green", "early_green"].map(|name| counted[name]),
        [u64::from(seen[0][1]), u64::from(seen[1][2])]
    );
}

proptest! {
    /// Every verdict against two slow REDs for each colour: marks by one, drops by the other, each with a past of its own.
    #[test]
    fn curves_for_marks_agree_with_the_oracle(
        past in prop::collection::vec((0usize..3, 0u32..34, any::<bool>()), 1..300),
        gentle: bool, wait: bool, w_q in prop::sample::select(vec![0.1, 1.0]), seed: u64,
    ) {
        let base = with_ecn();
        let p = Params { common: Common { gentle, wait, w_q, ..base.common.clone() }, ..base };
        let mut wred = p.build(&CONTEXT);
        let drops = wred.law.config.curves;
        let marks = wred.marks.as_ref().expect("there are curves for marks").law.config.curves;
        let mut rng = Rng::for_component(seed, "wred");
        let (mut samples, mut dropped, mut marked): (Vec<Sample>, [Vec<Past>; 3], [Vec<Past>; 3]) = Default::default();
        for (colour, waiting, capable) in past {
            samples.push(Sample::Length(f64::from(waiting)));
            let avg = average(&samples, w_q);
            let end = drops[colour].max_th * if gentle { 2.0 } else { 1.0 };
            let by_marks = capable && avg < end;
            let (curve, past) =
                if by_marks { (&marks[colour], &mut marked[colour]) } else { (&drops[colour], &mut dropped[colour]) };
            // The curve for marks has no gentle line: it ends in marks for all.
            let chance = p_a(past, avg, curve, gentle && !by_marks, wait);
            let packet = Packet {
                size: 1000,
                colour: Colour::ALL[colour],
                ecn: if capable { Ecn::Ect0 } else { Ecn::NotCapable },
                ..Packet::default()
            };
            let mut notes = Notes::default();
            let verdict = wred.arrive(&packet, At::new(Time::ZERO, &mut of([waiting, 0, 0]), &mut rng, &mut notes));
            let u = noted(&notes, "u");
            let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
            let edges = [drops[colour].min_th, drops[colour].max_th, end, marks[colour].min_th, marks[colour].max_th];
            if w_q < 1.0 && edges.into_iter().any(|edge| close(avg, edge)) || u.is_some_and(|u| close(u, chance)) {
                return Ok(());
            }
            let struck = chance >= 1.0 || u.is_some_and(|u| u < chance);
            let expected = match (struck, by_marks) {
                (false, _) => "admitted",
                (true, true) => "marked",
                (true, false) => "dropped",
            };
            let got = match verdict {
                Admit => "admitted",
                Admission::Mark => "marked",
                Drop(_) => "dropped",
            };
            prop_assert_eq!(got, expected, "{:?} avg {} p {}", Colour::ALL[colour], avg, chance);
            past.push(Past { avg, dropped: struck });
            if capable && !by_marks {
                // A drop ends the gap between marks, too.
                marked[colour].push(Past { avg, dropped: true });
            }
        }
    }

    /// Curves for marks that equal the others are what `ecn` says.
    #[test]
    fn equal_curves_are_ecn(seed: u64, lengths in prop::collection::vec((0u32..29, 0usize..3), 1..200)) {
        let base = params(Averages::Shared, 0.02);
        let (green, yellow, red) = (base.green.clone(), base.yellow.clone(), base.red.clone());
        let curves = Params { green_ecn: Some(green), yellow_ecn: Some(yellow), red_ecn: red, ..base.clone() };
        let flag = Params { common: Common { ecn: true, ..base.common.clone() }, ..base };
        let run = |p: &Params| {
            let (mut wred, mut rng) = (p.build(&CONTEXT), Rng::for_component(seed, "wred"));
            let arrive = |(n, colour): &(u32, usize)| {
                arrive_as(&mut wred, Colour::ALL[*colour], Ecn::Ect0, *n, &mut rng)
            };
            lengths.iter().map(arrive).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(&curves), run(&flag));
    }
}

#[test]
fn curves_for_marks_are_checked() {
    let check = |curve: Thresholds| {
        Params { green_ecn: Some(curve), ..params(Averages::Shared, 0.002) }
            .check(&CONTEXT)
            .map_err(|f| f.field)
    };
    assert!(check(thresholds(5.0, 10.0, 1.0)).is_ok());
    assert_eq!(check(thresholds(9.0, 8.0, 1.0)).expect_err("upside down"), "green_ecn.min_th");
    // Green is dropped altogether from 30 on.
    assert_eq!(check(thresholds(30.0, 40.0, 1.0)).expect_err("too late"), "green_ecn.min_th");
    let bytes = Thresholds { min_th: Backlog::Bytes(5e3), max_th: Backlog::Bytes(9e3), max_p: 0.1 };
    assert_eq!(check(bytes).expect_err("two units"), "green_ecn.min_th");
}

/// Red packets go by yellow's curve for marks where they have none, and theirs is held against red's own curve for drops, which may end before.
#[test]
fn an_inherited_curve_for_marks_is_checked() {
    let with_red = |red| Params { red: Some(red), ..with_ecn() }.check(&CONTEXT).map_err(|f| f.field);
    assert!(with_red(thresholds(1.0, 5.0, 0.5)).is_ok());
    // Yellow's marks begin at 4, where every red packet is dropped.
    assert_eq!(with_red(thresholds(1.0, 4.0, 0.5)).expect_err("nothing to mark"), "red_ecn");
    let own = Params {
        red: Some(thresholds(1.0, 4.0, 0.5)),
        red_ecn: Some(thresholds(1.0, 2.0, 1.0)),
        ..with_ecn()
    };
    assert!(own.check(&CONTEXT).is_ok());
}

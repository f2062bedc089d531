use Admission::{Admit, Drop};
use Colour::{Green as I, Red as R, Yellow as O};

use super::*;
use crate::aqm::red::oracle::{Past, Sample, average, p_a};
use crate::aqm::red::{self, EARLY, FORCED, Red};
use crate::testing::*;

fn thresholds(min_th: f64, max_th: f64, max_p: f64) -> Thresholds {
    Thresholds { min_th: Backlog::Packets(min_th), max_th: Backlog::Packets(max_th), max_p }
}

/// Thresholds of paper A, Fig. 3(a).
fn params(w_q: f64) -> Params {
    Params {
        r#in: thresholds(45.0, 60.0, 0.02),
        out: thresholds(20.0, 40.0, 0.05),
        avg_update: AvgUpdate::ClarkFang,
        byte_scaled: false,
        count: Counted::Own,
        watch: false,
        common: Common { w_q, gentle: false, wait: false, ecn: false, mean_packet: None },
    }
}

fn arrive(rio: &mut impl Aqm, at: u64, colour: Colour, queue: &mut Fake, rng: &mut Rng) -> Admission {
    let packet = Packet { size: 1000, colour, ..Packet::default() };
    rio.arrive(&packet, At::silent(Time(at), queue, rng))
}

/// (colour, IN waiting, OUT waiting) → verdict; with w_q = 1 the averages are the lengths.
#[test]
fn golden_sequence() {
    let forced = Drop(FORCED);
    let script = [
        (O, 0, 19, Admit),   // below min_OUT
        (O, 10, 30, forced), // 40 in all: max_OUT, however few of them are OUT
        (R, 40, 0, forced),  // red is out of profile too
        (I, 44, 50, Admit),  // IN looks at IN packets alone
        (I, 60, 0, forced),
        (O, 0, 20, Admit), // at min_OUT p = 0
        (I, 45, 0, Admit), // at min_IN p = 0
    ];
    for (colour, ins, outs, verdict) in script {
        let mut rio = params(1.0).build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio");
        let got = arrive(&mut rio, 0, colour, &mut Fake::of(ins, outs), &mut rng);
        assert_eq!(got, verdict, "{colour:?} at {ins} + {outs}");
    }
}

/// OUT and IN in turn find 14 IN and 6 OUT packets: p_b = 0.3 and 0.12. As drawn from the stream of seed 1; small letters are drops.
fn drawn(count: Counted) -> String {
    let (r#in, out) = (thresholds(10.0, 20.0, 0.3), thresholds(5.0, 25.0, 0.4));
    let mut rio = Params { r#in, out, count, ..params(1.0) }.build(&CONTEXT);
    let mut rng = Rng::for_component(1, "rio");
    (0..100)
        .map(|i| {
            let (colour, joined, dropped) = if i % 2 == 0 { (O, 'O', 'o') } else { (I, 'I', 'i') };
            let admitted = arrive(&mut rio, i, colour, &mut Fake::of(14, 6), &mut rng) == Admit;
            if admitted { joined } else { dropped }
        })
        .collect()
}

#[test]
fn golden_draws() {
    let first = "oIOIoiOIoIOIOIoIOioIoIOIoIoIOioIoIOIoIoIOiOIoIOIoI";
    let second = "OioIoIoiOIOioIoiOIoIoIOIoIoIOIoiOIoIOIoiOIoIOIoiOI";
    assert_eq!(drawn(Counted::Own), [first, second].concat());
}

/// The same packets where OUT's test counts IN packets too: 34 OUT drops for 28.
#[test]
fn golden_draws_of_a_shared_count() {
    let first = "oIoIoiOIoIoIoIoIoioIoIOIoIOiOIoiOIoIoIoIOiOIoIOIoI";
    let second = "OioIoIoioIoiOIoIoIoiOIoiOioIOIoIoIOIoiOIoioIoIoIOI";
    assert_eq!(drawn(Counted::Shared), [first, second].concat());
}

/// (colour, IN waiting, OUT waiting) → OUT's count after it, at w_q = 1 where out.min_th is 20 and out.max_th 40.
#[test]
fn what_a_shared_count_counts() {
    let after = |count| {
        let mut rio = Params { count, ..params(1.0) }.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio");
        [
            (I, 10, 9),  // below out.min_th: none
            (I, 10, 10), // the first from there on
            (O, 10, 10),
            (I, 20, 0), // few of them OUT: it is the average of all that counts
            (R, 19, 1),
            (O, 10, 30), // dropped
            (I, 10, 30),
            (I, 60, 0), // dropped
            (I, 19, 0),
        ]
        .map(|(colour, ins, outs)| {
            arrive(&mut rio, 0, colour, &mut Fake::of(ins, outs), &mut rng);
            rio.law.vars.count[OUT].get()
        })
    };
    assert_eq!(after(Counted::Shared), [-1, 0, 1, 2, 3, 0, 1, 0, -1]);
    assert_eq!(after(Counted::Own), [-1, -1, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn a_queue_is_one_cache_line() {
    assert!(size_of::<Rio>() <= 64, "{} bytes", size_of::<Rio>());
}

/// avg_total and avg_in after one OUT and then one IN arrival that find 8 IN and 4 OUT packets, w_q = ½.
#[test]
fn averages_by_option() {
    let after = |avg_update| {
        let mut rio = Params { avg_update, ..params(0.5) }.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio");
        [O, I].map(|colour| {
            arrive(&mut rio, 0, colour, &mut Fake::of(8, 4), &mut rng);
            (rio.law.vars.avg[OUT], rio.law.vars.avg[IN])
        })
    };
    assert_eq!(after(AvgUpdate::ClarkFang), [(6.0, 0.0), (9.0, 4.0)]);
    assert_eq!(after(AvgUpdate::EveryArrival), [(6.0, 4.0), (9.0, 6.0)]);
    assert_eq!(after(AvgUpdate::OwnColour), [(6.0, 0.0), (6.0, 4.0)]);
}

/// An idle stretch that an OUT packet ends ages IN's average all the same.
#[test]
fn idle_time_ages_both_averages() {
    for avg_update in [AvgUpdate::ClarkFang, AvgUpdate::EveryArrival, AvgUpdate::OwnColour] {
        let mut rio = Params { avg_update, ..params(0.5) }.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio");
        arrive(&mut rio, 0, I, &mut Fake::of(8, 4), &mut rng);
        if avg_update == AvgUpdate::OwnColour {
            arrive(&mut rio, 0, O, &mut Fake::of(8, 4), &mut rng);
        }
        let ms = 1_000_000_000;
        let mut idle = Fake { idle: Some(Time(10 * ms)), ..Fake::of(0, 0) };
        arrive(&mut rio, 12 * ms, O, &mut idle, &mut rng);
        assert_eq!((rio.law.vars.avg[OUT], rio.law.vars.avg[IN]), (1.5, 1.0));
    }
}

#[test]
fn thresholds_in_bytes_count_bytes_of_each_colour() {
    let bytes =
        |min, max| Thresholds { min_th: Backlog::Bytes(min), max_th: Backlog::Bytes(max), max_p: 0.02 };
    let p = Params { r#in: bytes(45_000.0, 60_000.0), out: bytes(20_000.0, 40_000.0), ..params(1.0) };
    let mut rng = Rng::for_component(1, "rio");
    let mut rio = p.build(&CONTEXT);
    assert_eq!(arrive(&mut rio, 0, I, &mut Fake::of(44, 50), &mut rng), Admit);
    assert_eq!((rio.law.vars.avg[OUT], rio.law.vars.avg[IN]), (94_000.0, 44_000.0));
    assert_eq!(arrive(&mut rio, 0, I, &mut Fake::of(60, 0), &mut rng), Drop(FORCED));
}

#[test]
fn ecn_marks_what_chance_picks_if_it_is_on() {
    let run = |ecn, capable| {
        let mut rio = Params { common: Common { ecn, ..params(1.0).common }, ..params(1.0) }.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio");
        let packet = Packet { size: 1000, colour: O, ecn: capable, ..Packet::default() };
        let mut counts = Counts::default();
        for _ in 0..1000 {
            let verdict = rio.arrive(&packet, At::silent(Time::ZERO, &mut Fake::of(0, 30), &mut rng));
            count(&mut counts, O, verdict);
        }
        let counted = shown(&rio, &counts);
        (counted["marked_out"], counted["early_out"])
    };
    let (marked, dropped) = run(true, Ecn::Ect0);
    assert!(marked > 0 && dropped == 0);
    assert_eq!(run(true, Ecn::NotCapable), (0, marked));
    assert_eq!(run(false, Ecn::Ect0), (0, marked));
}

#[test]
fn odd_parameters_are_refused_or_remarked_on() {
    let fields = |p: &Params| {
        let limit = Some(Backlog::Packets(100.0));
        crate::params::fields(p.check(&Context { limit, ..CONTEXT }))
    };
    assert_eq!(fields(&params(0.002)), Ok(vec![]));
    let overlap = Params { r#in: thresholds(30.0, 60.0, 0.02), ..params(0.002) };
    assert_eq!(fields(&overlap), Ok(vec!["in.min_th"]));
    let high = Params { r#in: thresholds(170.5, 300.0, 0.02), ..params(0.002) };
    assert_eq!(fields(&high), Ok(vec!["in.min_th", "in.min_th", "in.max_th"]));
    let crossed = Params { out: thresholds(40.0, 20.0, 0.02), ..params(0.002) };
    assert_eq!(fields(&crossed), Err("out.min_th"));
    let bytes = Thresholds {
        min_th: Backlog::Bytes(20_000.0),
        max_th: Backlog::Bytes(40_000.0),
        ..thresholds(0.0, 0.0, 0.05)
    };
    assert_eq!(fields(&Params { out: bytes, ..params(0.002) }), Err("out.min_th"));
}

/// A RED with the thresholds of one colour.
fn red_of(t: &Thresholds, p: &Params) -> Red {
    let Thresholds { min_th, max_th, max_p } = t.clone();
    let Params { byte_scaled, common, .. } = p.clone();
    red::Params { min_th, max_th, max_p, byte_scaled, drop: red::DropAt::Tail, common }.build(&CONTEXT)
}

/// Microseconds since the last arrival, colour, IN and OUT packets waiting, share of the time idle.
type Step = (u64, Colour, u32, u32, Option<f64>);

fn arrivals() -> impl Strategy<Value = Vec<Step>> {
    let colour = prop::sample::select(vec![I, O, R]);
    let step = (0u64..20_000, colour, 0u32..80, 0u32..60, prop::option::weighted(0.1, 0f64..=1.0));
    prop::collection::vec(step, 1..300)
}

fn queue_of(now: u64, gap: u64, ins: u32, outs: u32, idle: Option<f64>) -> (Fake, Option<u64>) {
    let ps = idle.map(|share| (share * gap as f64 * 1e6) as u64);
    let queue = match ps {
        Some(ps) => Fake { idle: Some(Time(now) - Duration(ps)), ..Fake::of(0, 0) },
        None => Fake::of(ins, outs),
    };
    (queue, ps)
}

fn counted(shared: bool) -> Counted {
    if shared { Counted::Shared } else { Counted::Own }
}

fn by_option() -> impl Strategy<Value = AvgUpdate> {
    prop::sample::select(vec![AvgUpdate::ClarkFang, AvgUpdate::EveryArrival, AvgUpdate::OwnColour])
}

proptest! {
    /// Where all packets are of one colour, RIO is a RED with that colour's thresholds.
    #[test]
    fn one_colour_alone_is_red(steps in arrivals(), out: bool, gentle: bool, wait: bool, shared: bool,
                               avg_update in by_option(), w_q in 0.01f64..=1.0, seed: u64) {
        let p = Params { avg_update, count: counted(shared), common: Common { gentle, wait, ..params(w_q).common }, ..params(w_q) };
        let (mut rio, mut red) = (p.build(&CONTEXT), red_of(if out { &p.out } else { &p.r#in }, &p));
        let colour = if out { O } else { I };
        let (mut a, mut b) = (Rng::for_component(seed, "rio"), Rng::for_component(seed, "rio"));
        let mut now = 0;
        for (gap, _, ins, outs, idle) in steps {
            now += gap * 1_000_000;
            let (ins, outs) = if out { (0, outs) } else { (ins, 0) };
            let (mut queue, _) = queue_of(now, gap, ins, outs, idle);
            let packet = Packet { size: 1000, colour, ..Packet::default() };
            let one = rio.arrive(&packet, At::silent(Time(now), &mut queue, &mut a));
            let other = red.arrive(&packet, At::silent(Time(now), &mut queue, &mut b));
            prop_assert_eq!(one, other);
        }
    }

    /// Everything recomputed from the whole past, at every arrival.
    #[test]
    fn agrees_with_the_oracle(steps in arrivals(), gentle: bool, wait: bool, shared: bool,
                              avg_update in by_option(), w_q in 0.01f64..=1.0, seed: u64) {
        let p = Params { avg_update, count: counted(shared), common: Common { gentle, wait, ..params(w_q).common }, ..params(w_q) };
        let mut rio = p.build(&CONTEXT);
        let mut rng = Rng::for_component(seed, "rio");
        let (mut all, mut ins_only) = (Vec::new(), Vec::new());
        let (mut past_in, mut past_out) = (Vec::<Past>::new(), Vec::<Past>::new());
        let (mut now, mut counts) = (0, Counts::default());
        for (gap, colour, ins, outs, idle) in steps {
            now += gap * 1_000_000;
            let (mut queue, idle) = queue_of(now, gap, ins, outs, idle);
            let mut slow_rng = rng.clone();
            let mut notes = Notes::default();
            let packet = Packet { size: 1000, colour, ..Packet::default() };
            let fast = rio.arrive(&packet, At::new(Time(now), &mut queue, &mut rng, &mut notes));

            let sample = |q: u32| idle.map_or(Sample::Length(f64::from(q)), |ps| Sample::Idle(ps as f64 * 1e-9));
            // Kim 1999, §2.2: "if it is an IN packet, the router calculates avg_in; if it is an OUT packet, … avg_total".
            let own = avg_update == AvgUpdate::OwnColour;
            let every = avg_update == AvgUpdate::EveryArrival;
            if colour != I || !own || idle.is_some() { all.push(sample(ins + outs)); }
            if colour == I || every || idle.is_some() { ins_only.push(sample(ins)); }
            let (own, samples) = if colour == I { (IN, &ins_only) } else { (OUT, &all) };
            let (curve, avg) = (&rio.law.config.curves[own], rio.law.vars.avg[own]);
            prop_assert!((average(samples, w_q) - avg).abs() < 1e-9);
            let past = if colour == I { &mut past_in } else { &mut past_out };
            let p = p_a(past, avg, curve, gentle, wait);
            let noted = notes.items().iter().find(|(n, _)| *n == "p_a").map(|(_, v)| *v);
            if let Some(noted) = noted { prop_assert!((noted - p).abs() < 1e-9); }
            let p = noted.unwrap_or(p);
            let picked = p >= 1.0 || p > 0.0 && slow_rng.uniform() < p;
            let end = curve.max_th * if gentle { 2.0 } else { 1.0 };
            let slow = match picked {
                true if avg >= end => Drop(FORCED),
                true => Drop(EARLY),
                false => Admit,
            };
            prop_assert_eq!(fast, slow);
            count(&mut counts, colour, fast);
            past.push(Past { avg, dropped: fast != Admit });
            if shared && colour == I {
                past_out.push(Past { avg: rio.law.vars.avg[OUT], dropped: fast != Admit });
            }
        }
        let counted: u64 = shown(&rio, &counts).values().sum();
        let of_in = past_in.iter().filter(|p| p.dropped).count();
        // In a shared count each IN packet is there twice.
        let dropped = past_out.iter().filter(|p| p.dropped).count() + if shared { 0 } else { of_in };
        prop_assert_eq!(counted, dropped as u64);
    }

    /// With `wait` from 1/p_b to 2/p_b packets lie between two OUT drops (Floyd and Jacobson 1993, §7): of OUT packets alone, or of both
    /// colours where they share the count. So an OUT packet behind a train of IN packets is more likely to go.
    #[test]
    fn gaps_between_out_drops_are_of_what_is_counted(colours in prop::collection::vec(any::<bool>(), 200..600), shared: bool,
                                                     outs in 10u32..19, seed: u64) {
        let p = Params { out: thresholds(0.0, 40.0, 0.2), r#in: thresholds(1e6, 2e6, 0.1), count: counted(shared),
                         common: Common { wait: true, ..params(1.0).common }, ..params(1.0) };
        let mut rio = p.build(&CONTEXT);
        let mut rng = Rng::for_component(seed, "rio");
        let p_b = 0.2 * f64::from(outs + 10) / 40.0;
        let (mut gap, mut behind) = (0, None);
        for out in colours {
            let colour = if out { O } else { I };
            let verdict = arrive(&mut rio, 0, colour, &mut Fake::of(10, outs), &mut rng);
            if out || shared { gap += 1; }
            if !out { continue; }
            let due = f64::from(gap) * p_b;
            if verdict == Admit {
                prop_assert!(due < 2.0 || behind.is_none(), "{gap} let by at {p_b}");
            } else {
                prop_assert!(due >= 1.0 - 1e-9 || behind.is_none(), "{gap} at {p_b}");
                (gap, behind) = (0, Some(()));
            }
        }
    }
}

#[test]
fn each_flow_has_its_own_mean() {
    let mut seen = OutSeen::default();
    seen.note(FlowId(1), 100.0);
    seen.forget(FlowId(1));
    for (flow, avg_out) in [(1, 4.0), (2, 10.0), (1, 8.0)] {
        seen.note(FlowId(flow), avg_out);
    }
    let mut rows = Vec::new();
    seen.show(&mut |flow, what, value| rows.push((flow.0, what, value)));
    assert_eq!(rows, [(1, "avg_out_seen", 6.0), (2, "avg_out_seen", 10.0)]);
}

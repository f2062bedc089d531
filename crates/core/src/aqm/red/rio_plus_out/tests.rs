use Admission::{Admit, Drop};
use Colour::{Green as I, Red as R, Yellow as O};

use super::{Counts, *};
use crate::aqm::red::oracle::{Past, Sample, average, p_a};
use crate::aqm::red::{self, EARLY, FORCED};
use crate::testing::*;

fn thresholds(min_th: f64, max_th: f64, max_p: f64) -> Thresholds {
    Thresholds { min_th: Backlog::Packets(min_th), max_th: Backlog::Packets(max_th), max_p }
}

/// Thresholds of paper B, §4.
fn params(w_q: f64) -> Params {
    Params {
        r#in: thresholds(60.0, 180.0, 0.02),
        total: thresholds(30.0, 90.0, 0.05),
        out: thresholds(10.0, 30.0, 0.1),
        strictness: 0.0,
        avg_update: AvgUpdate::EveryArrival,
        byte_scaled: false,
        count: rio::Counted::Own,
        counts: Counts::Each,
        watch: false,
        common: Common { w_q, gentle: false, wait: false, ecn: false, mean_packet: None },
    }
}

fn offer(
    aqm: &mut impl Aqm,
    colour: Colour,
    queue: &mut Fake,
    rng: &mut Rng,
    why: &mut impl Why,
) -> Admission {
    let packet = Packet { size: 1000, colour, ..Packet::default() };
    aqm.arrive(&packet, At::new(Time::ZERO, queue, rng, why))
}

/// (colour, IN waiting, OUT waiting) → verdict; with w_q = 1 the averages are the lengths.
#[test]
fn golden_sequence() {
    let forced = Drop(FORCED);
    let script = [
        (O, 0, 9, Admit),    // below min_OUT
        (O, 0, 10, Admit),   // at min_OUT p = 0
        (O, 0, 30, forced),  // max_OUT, where RIO would still let all by
        (R, 59, 30, forced), // red is out of profile too
        (O, 82, 8, forced),  // 90 in all: the second RED, however few are OUT
        (O, 21, 9, Admit),   // 30 in all, 9 OUT: p = 0 in both
        (I, 0, 500, Admit),  // IN looks at IN packets alone
        (I, 180, 0, forced),
    ];
    for (colour, ins, outs, verdict) in script {
        let mut rng = Rng::for_component(1, "rio_plus_out");
        let got =
            offer(&mut params(1.0).build(&CONTEXT), colour, &mut Fake::of(ins, outs), &mut rng, &mut Silent);
        assert_eq!(got, verdict, "{colour:?} at {ins} + {outs}");
    }
}

/// Drops at random: 20 OUT packets waiting and none IN, p_b = 0.05 of the third RED alone.
#[test]
fn golden_draws() {
    let mut rng = Rng::for_component(1, "rio_plus_out");
    let mut aqm = params(1.0).build(&CONTEXT);
    let dropped: Vec<u32> = (0..100)
        .filter(|_| offer(&mut aqm, O, &mut Fake::of(0, 20), &mut rng, &mut Silent) != Admit)
        .collect();
    assert_eq!(dropped, [10, 25, 31, 44, 55, 68, 75, 87, 94, 99]);
    assert_eq!(aqm.stats.picked, dropped.len() as u64);
}

/// One OUT packet that finds 40 IN and 20 OUT: both REDs are asked, at p_b = 0.025 and 0.05.
#[test]
fn the_figures_of_both_tests_are_noted() {
    let mut notes = Notes::default();
    let mut rng = Rng::for_component(1, "rio_plus_out");
    offer(&mut params(1.0).build(&CONTEXT), O, &mut Fake::of(40, 20), &mut rng, &mut notes);
    let of = |what| notes.items().iter().find(|n| n.0 == what).map(|n| n.1);
    assert_eq!((of("avg"), of("avg_in"), of("avg_out")), (Some(60.0), Some(40.0), Some(20.0)));
    assert!((of("p_b").unwrap() - 0.025).abs() < 1e-12 && (of("p_b_of_out").unwrap() - 0.05).abs() < 1e-12);
    assert!(of("u").is_some() && of("u_of_out").is_some());
}

/// With IN's average updated at IN arrivals only, it may lie above the total: avg_out is 0 then.
#[test]
fn averages_by_option() {
    let after = |avg_update| {
        let mut aqm = Params { avg_update, ..params(0.5) }.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio_plus_out");
        [(I, 8, 0), (O, 0, 4), (O, 0, 0)].map(|(colour, ins, outs)| {
            offer(&mut aqm, colour, &mut Fake::of(ins, outs), &mut rng, &mut Silent);
            let [ins, total] = aqm.rio.law.vars.avg;
            avg_out(total, ins)
        })
    };
    assert_eq!(after(AvgUpdate::EveryArrival), [0.0, 2.0, 1.0]);
    assert_eq!(after(AvgUpdate::ClarkFang), [0.0, 0.0, 0.0]);
    assert_eq!(after(AvgUpdate::OwnColour), [0.0, 0.0, 0.0]);
}

/// §4: OUT is tested on avg_total, and "if the packet is not dropped" on avg_out. The first packet above the thresholds meets both at
/// p_b, independently: 1 − (1 − p_total)(1 − p_out), at avg_total = 45 and avg_out = 20 0.061875.
#[test]
fn both_tests_drop_as_independent_ones() {
    let joint = 1.0 - (1.0 - 0.05 * 15.0 / 60.0) * (1.0 - 0.1 * 10.0 / 20.0);
    assert!((joint - 0.061875_f64).abs() < 1e-12);
    let n = 200_000;
    let dropped = (0..n)
        .filter(|&seed| {
            let mut rng = Rng::for_component(seed, "rio_plus_out");
            let mut aqm = params(1.0).build(&CONTEXT);
            // RED's count starts below min_th at −1: the first packet above has count 0, where p_a = p_b.
            offer(&mut aqm, O, &mut Fake::of(25, 20), &mut rng, &mut Silent) != Admit
        })
        .count() as f64;
    let sigma = (joint * (1.0 - joint) / n as f64).sqrt();
    assert!((dropped / n as f64 - joint).abs() < 4.0 * sigma, "{}", dropped / n as f64);
}

/// With `wait` nothing is dropped for 1/p_b packets after a drop: after a drop by either test, where they count together; after its own,
/// where each counts by itself.
#[test]
fn joint_counts_restart_with_either_drop() {
    // 50 IN and 20 OUT wait: p_b is 0.0333 for the total and 0.05 for OUT, so 30 and 20 packets without a drop.
    let closest = |counts| {
        let mut aqm = Params { counts, common: Common { wait: true, ..params(1.0).common }, ..params(1.0) }
            .build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio_plus_out");
        let dropped: Vec<u32> = (0..20_000)
            .filter(|_| offer(&mut aqm, O, &mut Fake::of(50, 20), &mut rng, &mut Silent) != Admit)
            .collect();
        dropped.windows(2).map(|w| w[1] - w[0]).min().unwrap()
    };
    assert!(closest(Counts::Joint) >= 20, "{}", closest(Counts::Joint));
    assert!(closest(Counts::Each) < 10, "{}", closest(Counts::Each));
}

#[test]
fn out_thresholds_are_stricter_while_little_is_in() {
    let curve = Curve::new(10.0, 30.0, 0.1);
    let max_th = |strictness, avg_in| strict(&curve, strictness, avg_in, 60.0).max_th;
    assert_eq!(
        [max_th(0.0, 0.0), max_th(0.5, 0.0), max_th(0.5, 30.0), max_th(0.5, 60.0)],
        [30.0, 15.0, 22.5, 30.0]
    );
    assert_eq!(strict(&curve, 0.5, 0.0, 60.0).min_th, 5.0);
    // 16 OUT packets and none IN: beyond the end of a curve half as long.
    let verdict = |strictness, ins| {
        let mut rng = Rng::for_component(1, "rio_plus_out");
        let mut aqm = Params { strictness, ..params(1.0) }.build(&CONTEXT);
        offer(&mut aqm, O, &mut Fake::of(ins, 16), &mut rng, &mut Silent)
    };
    assert_eq!([verdict(0.0, 0), verdict(0.5, 0), verdict(0.5, 60)], [Admit, Drop(FORCED), Admit]);
}

#[test]
fn what_it_marks_is_counted_with_rios() {
    let run = |ecn| {
        let mut aqm =
            Params { common: Common { ecn: true, ..params(1.0).common }, ..params(1.0) }.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio_plus_out");
        let packet = Packet { size: 1000, colour: O, ecn, ..Packet::default() };
        let mut counts = QueueCounts::default();
        let verdicts = (0..500).filter(|_| {
            let verdict = aqm.arrive(&packet, At::silent(Time::ZERO, &mut Fake::of(0, 20), &mut rng));
            count(&mut counts, O, verdict);
            verdict == Admission::Mark
        });
        let marked = verdicts.count() as u64;
        let all = shown(&aqm, &counts);
        (marked, all["marked_out"], all["early_out"], all["picked_of_out"])
    };
    let (marked, counted, early, picked) = run(Ecn::Ect0);
    assert!(marked > 20);
    assert_eq!((counted, early, picked), (marked, 0, marked));
    assert_eq!(run(Ecn::NotCapable), (0, 0, marked, marked));
}

#[test]
fn a_full_queue_is_overflow() {
    let mut rng = Rng::for_component(1, "rio_plus_out");
    let mut queue = Fake { limit: 5.0, ..Fake::of(0, 5) };
    let verdict = offer(&mut params(1.0).build(&CONTEXT), O, &mut queue, &mut rng, &mut Silent);
    assert_eq!(verdict, Drop(Cause::OVERFLOW));
}

/// Fig. 2: what flows see as their IN packets join, under RI+O and under RIO.
#[test]
fn what_each_flow_sees_of_out_packets_can_be_watched() {
    let mut aqm = Params { watch: true, ..params(1.0) }.build(&CONTEXT);
    let mut rng = Rng::for_component(1, "rio_plus_out");
    // The last of flow 1 is OUT, and that of flow 2 is dropped: neither counts.
    for (flow, colour, ins, outs) in [(1, I, 3, 4), (1, I, 3, 8), (2, I, 9, 20), (1, O, 0, 9), (2, I, 180, 1)]
    {
        let packet = Packet { flow: FlowId(flow), size: 1000, colour, ..Packet::default() };
        aqm.arrive(&packet, At::silent(Time::ZERO, &mut Fake::of(ins, outs), &mut rng));
    }
    let mut rows = Vec::new();
    aqm.flow_gauges(Time::ZERO, &mut |flow, what, mean| rows.push((flow.0, what, mean)));
    assert_eq!(rows, [(2, "avg_out_seen", 20.0), (1, "avg_out_seen", 6.0)]);
}

#[test]
fn odd_parameters_are_refused_or_remarked_on() {
    let fields = |p: &Params| {
        let limit = Some(Backlog::Packets(200.0));
        crate::params::fields(p.check(&Context { limit, ..CONTEXT }))
    };
    // The paper's own overlap: IN's min_th lies below max_th of IN+OUT.
    assert_eq!(fields(&params(0.002)), Ok(vec!["in.min_th"]));
    assert_eq!(fields(&Params { strictness: 1.0, ..params(0.002) }), Err("strictness"));
    assert_eq!(fields(&Params { out: thresholds(30.0, 10.0, 0.1), ..params(0.002) }), Err("out.min_th"));
    assert_eq!(fields(&Params { total: thresholds(90.0, 30.0, 0.1), ..params(0.002) }), Err("total.min_th"));
    let bytes = Thresholds { min_th: Backlog::Bytes(1e4), max_th: Backlog::Bytes(3e4), max_p: 0.1 };
    assert_eq!(fields(&Params { out: bytes, ..params(0.002) }), Err("out.min_th"));
    let texts = params(0.002).check(&CONTEXT).unwrap();
    assert!(texts[0].text.contains("total.max_th"), "{}", texts[0].text);
}

fn counted(shared: bool) -> Counted {
    if shared { Counted::Shared } else { Counted::Own }
}

fn arrivals() -> impl Strategy<Value = Vec<(Colour, u32, u32)>> {
    let colour = prop::sample::select(vec![I, O, R]);
    prop::collection::vec((colour, 0u32..120, 0u32..40), 1..300)
}

proptest! {
    /// The third RED with thresholds no queue reaches changes nothing: RI+O is RIO.
    #[test]
    fn without_its_third_red_it_is_rio(steps in arrivals(), gentle: bool, wait: bool, shared: bool,
                                       w_q in 0.01f64..=1.0, seed: u64) {
        let p = Params { count: counted(shared), out: thresholds(1e6, 2e6, 0.1), common: Common { gentle, wait, ..params(w_q).common }, ..params(w_q) };
        let (mut one, mut other) = (p.build(&CONTEXT), p.as_rio().build(&CONTEXT));
        let (mut a, mut b) = (Rng::for_component(seed, "rio"), Rng::for_component(seed, "rio"));
        for (colour, ins, outs) in steps {
            let ours = offer(&mut one, colour, &mut Fake::of(ins, outs), &mut a, &mut Silent);
            prop_assert_eq!(ours, offer(&mut other, colour, &mut Fake::of(ins, outs), &mut b, &mut Silent));
        }
    }

    /// §4: "with a single subtraction, obtains avg_out": it is the average that a RED on the OUT packets alone would keep, whatever
    /// arrives, an idle link included; and so never negative.
    #[test]
    fn avg_out_is_the_average_of_the_out_queue(steps in arrivals(), idle in prop::collection::vec(prop::option::weighted(0.1, 1u64..50), 300),
                                               w_q in 0.01f64..=1.0) {
        let mut aqm = params(w_q).build(&CONTEXT);
        let mut rng = Rng::for_component(1, "rio_plus_out");
        // A RED on the OUT packets alone.
        let common = Common { w_q, ..params(w_q).common };
        let mut alone = red::Params {
            min_th: Backlog::Packets(1e6), max_th: Backlog::Packets(2e6), max_p: 0.1, byte_scaled: false,
            drop: red::DropAt::Tail, common,
        }.build(&CONTEXT);
        let ms = 1_000_000_000;
        let mut now = Time::ZERO;
        for ((colour, ins, outs), idle) in steps.into_iter().zip(idle) {
            let since = now;
            now = Time(now.0 + idle.unwrap_or(1) * ms);
            let mut queue = match idle {
                Some(_) => Fake { idle: Some(since), ..Fake::of(0, 0) },
                None => Fake::of(ins, outs),
            };
            let outs = if idle.is_some() { 0 } else { outs };
            let mut of_out = Fake { idle: idle.map(|_| since), ..Fake::of(0, outs) };
            alone.arrive(&Packet::default(), At::silent(now, &mut of_out, &mut rng));
            let slow = alone.avg();
            let packet = Packet { size: 1000, colour, ..Packet::default() };
            aqm.arrive(&packet, At::silent(now, &mut queue, &mut rng));
            let [ins, total] = aqm.rio.law.vars.avg;
            prop_assert!((total - ins - slow).abs() < 1e-9, "{} and {slow}", total - ins);
        }
    }

    /// §4: from max_out on every OUT packet is dropped, whatever the other averages are, and no IN packet for that.
    #[test]
    fn beyond_max_out_every_out_packet_is_dropped(ins in 0u32..60, outs in 30u32..500, wait: bool, joint: bool, seed: u64) {
        let counts = if joint { Counts::Joint } else { Counts::Each };
        let mut aqm = Params { counts, common: Common { wait, ..params(1.0).common }, ..params(1.0) }.build(&CONTEXT);
        let mut rng = Rng::for_component(seed, "rio_plus_out");
        for colour in [O, R, O] {
            let got = offer(&mut aqm, colour, &mut Fake::of(ins, outs), &mut rng, &mut Silent);
            prop_assert!(matches!(got, Drop(_)), "{got:?}");
        }
        prop_assert_eq!(offer(&mut aqm, I, &mut Fake::of(ins, outs), &mut rng, &mut Silent), Admit);
    }

    /// It drops no packet less than the rules allow: everything recomputed from the whole past, by the paper's Fig. 4.
    #[test]
    fn agrees_with_the_oracle(steps in arrivals(), gentle: bool, wait: bool, shared: bool, strictness in 0.0f64..0.9,
                              w_q in 0.01f64..=1.0, seed: u64) {
        let p = Params { strictness, count: counted(shared), common: Common { gentle, wait, ..params(w_q).common }, ..params(w_q) };
        let mut aqm = p.build(&CONTEXT);
        let mut rng = Rng::for_component(seed, "rio_plus_out");
        let (mut totals, mut ins_all) = (Vec::new(), Vec::new());
        let (mut past_in, mut past_total) = (Vec::<Past>::new(), Vec::<Past>::new());
        // The third RED's curve moves: its count is kept as a plain number.
        let mut count = -1.0;
        for (colour, ins, outs) in steps {
            let mut slow = rng.clone();
            let fast = offer(&mut aqm, colour, &mut Fake::of(ins, outs), &mut rng, &mut Silent);

            totals.push(Sample::Length(f64::from(ins + outs)));
            ins_all.push(Sample::Length(f64::from(ins)));
            let (avg_total, avg_in) = (average(&totals, w_q), average(&ins_all, w_q));
            let [fast_in, fast_total] = aqm.rio.law.vars.avg;
            prop_assert!((avg_total - fast_total).abs() < 1e-9 && (avg_in - fast_in).abs() < 1e-9);
            // From here on with its own averages, so that rounding decides nothing.
            let (avg_total, avg_in) = (fast_total, fast_in);
            let mut ask = |p: f64| p >= 1.0 || p > 0.0 && slow.uniform() < p;
            let of = |t: &Thresholds| Curve::new(t.min_th.amount(), t.max_th.amount(), t.max_p);
            let end = |c: &Curve| c.max_th * if gentle { 2.0 } else { 1.0 };
            let cause = |avg: f64, c: &Curve| if avg >= end(c) { FORCED } else { EARLY };
            let mut verdict = Admit;
            if colour == I {
                let c = of(&p.r#in);
                if ask(p_a(&past_in, avg_in, &c, gentle, wait)) { verdict = Drop(cause(avg_in, &c)); }
                past_in.push(Past { avg: avg_in, dropped: verdict != Admit });
                // ALTQ's count: IN packets, and their drops, are also the second RED's.
                if shared { past_total.push(Past { avg: avg_total, dropped: verdict != Admit }); }
            } else {
                let c = of(&p.total);
                if ask(p_a(&past_total, avg_total, &c, gentle, wait)) { verdict = Drop(cause(avg_total, &c)); }
                past_total.push(Past { avg: avg_total, dropped: verdict != Admit });
                if verdict == Admit {
                    let scale = 1.0 - strictness * (1.0 - (avg_in / 60.0).min(1.0));
                    let c = Curve::new(10.0 * scale, 30.0 * scale, 0.1);
                    let avg = (avg_total - avg_in).max(0.0);
                    if avg < c.min_th {
                        count = -1.0;
                    } else {
                        count += 1.0;
                        let p_b = if avg < c.max_th {
                            0.1 * (avg - c.min_th) / (c.max_th - c.min_th)
                        } else if gentle {
                            (0.1 + 0.9 * (avg - c.max_th) / c.max_th).min(1.0)
                        } else { 1.0 };
                        let p = match (wait, count * p_b) {
                            (_, due) if avg >= end(&c) || !wait && due >= 1.0 || due >= 2.0 => 1.0,
                            (true, due) if due < 1.0 => 0.0,
                            (true, due) => p_b / (2.0 - due),
                            (false, due) => p_b / (1.0 - due),
                        };
                        if ask(p) {
                            verdict = Drop(cause(avg, &c));
                            count = 0.0;
                        }
                    }
                }
            }
            prop_assert_eq!(fast, verdict);
            prop_assert_eq!(rng.clone().uniform(), slow.uniform());
        }
    }
}

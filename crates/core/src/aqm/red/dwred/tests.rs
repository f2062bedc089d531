use Admission::{Admit, Drop};
use Colour::{Green as I, Red as R, Yellow as O};

use super::*;
use crate::aqm::red::oracle::{Past, Sample, average, p_a};
use crate::aqm::red::{EARLY, FORCED};
use crate::testing::*;

/// 1,000 packets a second, 100 of them waiting at most.
const CONTEXT: Context = Context {
    link_rate: Some(Rate(8_000_000)),
    contract: None,
    packet: Bytes(1000),
    limit: Some(Backlog::Packets(100.0)),
};

fn params() -> Params {
    Params {
        min_share: 0.15,
        max_p: 0.1,
        colours: Colours::Out,
        in_factor: 1.0,
        fallback_max_th: None,
        stale_after: None,
        common: Common { w_q: 1.0, gentle: false, wait: false, ecn: false, mean_packet: None },
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn tell(aqm: &mut Dwred, ms: u64, value: f64) {
    aqm.signal(at(ms), &Signal { topic: TOPIC, flow: None, value });
}

fn offer(aqm: &mut Dwred, ms: u64, colour: Colour, waiting: u32, rng: &mut Rng) -> Admission {
    let packet = Packet { size: 1000, colour, ..Packet::default() };
    let mut queue = Fake { limit: 100.0, ..Fake::of(0, waiting) };
    aqm.arrive(&packet, At::silent(at(ms), &mut queue, rng))
}

fn gauge(aqm: &Dwred, ms: u64, name: &str) -> f64 {
    let mut found = f64::NAN;
    aqm.gauges(at(ms), &mut |n, v| {
        if n == name {
            found = v
        }
    });
    found
}

/// Bouras and Sevasti 2004, §4, Eq. (4) and (5) of ΣW = 40: thresholds of 6 and 40 packets.
#[test]
fn thresholds_follow_the_sum_of_windows() {
    assert_eq!((curve_of(40.0, 0.15, 0.1).min_th, curve_of(40.0, 0.15, 0.1).max_th), (6.0, 40.0));
    let mut aqm = params().build(&CONTEXT);
    tell(&mut aqm, 0, 40.0);
    assert_eq!(
        (gauge(&aqm, 0, "min_th"), gauge(&aqm, 0, "max_th"), gauge(&aqm, 0, "guided")),
        (6.0, 40.0, 1.0)
    );
    tell(&mut aqm, 100, 80.0);
    assert_eq!(gauge(&aqm, 100, "max_th"), 80.0);
    // p = max_p halfway up from 12 to 80.
    let mut rng = Rng::for_component(1, "dwred");
    offer(&mut aqm, 100, O, 46, &mut rng);
    assert!((gauge(&aqm, 100, "p_b") - 0.05).abs() < 1e-12);
}

/// Bouras and Sevasti 2004, §4, Eq. (4), (5), with what is in flight on a wire and in the queue as ΣW: the queue is below max_th
/// whatever it is, drops begin at 0.15/0.85 = 0.176 of the wire, and p is 0.1·(1 − wire/(0.85·ΣW)), always below 0.1.
#[test]
fn with_true_windows_the_queue_stays_below_max_th() {
    for wire in [50.0, 216.3, 1000.0] {
        for part in [0.0, 0.1, 0.17, 0.176, 0.177, 0.2, 0.25, 0.5, 1.0, 10.0, 1000.0] {
            let queue = part * wire;
            let curve = curve_of(wire + queue, 0.15, 0.1);
            assert!(queue < curve.max_th);
            let expected = (0.1 * (1.0 - wire / (0.85 * curve.max_th))).max(0.0);
            let found = curve.p_b(queue, false);
            assert!((found - expected).abs() < 1e-12 && found < 0.1, "{part}: {found} {expected}");
            assert_eq!(found > 0.0, part > 0.15 / 0.85, "{part}");
        }
    }
}

/// (ms, told before, colour, waiting) → verdict.
#[test]
fn golden_sequence() {
    let forced = Drop(FORCED);
    let script = [
        (0, None, O, 99, Admit),      // no signal yet: thresholds of the limit of 100
        (1, Some(40.0), O, 5, Admit), // below min_th
        (2, None, O, 6, Admit),       // at min_th p = 0
        (3, None, O, 40, forced),     // at max_th
        (4, None, R, 40, forced),     // red is out of profile too
        (5, None, I, 99, Admit),      // IN has no thresholds
        (6, None, I, 100, Drop(Cause::OVERFLOW)),
        (7, Some(90.0), O, 13, Admit), // the queue may grow now
        (8, Some(0.01), O, 1, forced), // a single packet is the least max_th
    ];
    let mut aqm = params().build(&CONTEXT);
    let mut counts = Counts::default();
    for (ms, told, colour, waiting, verdict) in script {
        if let Some(sum) = told {
            tell(&mut aqm, ms, sum);
        }
        let got = offer(&mut aqm, ms, colour, waiting, &mut Rng::for_component(1, "dwred"));
        count(&mut counts, colour, got);
        assert_eq!(got, verdict, "at {ms} ms");
    }
    let counted = shown(&aqm, &counts);
    assert_eq!(
        (counted["forced_out"], counted["overflow_in"], counted["signals"], counted["unguided"]),
        (3, 1, 3, 1)
    );
}

#[test]
fn both_colours_or_one() {
    let verdict = |colours, colour| {
        let mut aqm = Params { colours, ..params() }.build(&CONTEXT);
        tell(&mut aqm, 0, 40.0);
        offer(&mut aqm, 0, colour, 50, &mut Rng::for_component(1, "dwred"))
    };
    let forced = Drop(FORCED);
    assert_eq!([verdict(Colours::Out, O), verdict(Colours::Out, I)], [forced, Admit]);
    assert_eq!([verdict(Colours::Both, O), verdict(Colours::Both, I)], [forced, forced]);
}

#[test]
fn thresholds_of_in_packets_may_be_a_multiple() {
    let verdict = |in_factor, colour, waiting| {
        let mut aqm = Params { colours: Colours::Both, in_factor, ..params() }.build(&CONTEXT);
        tell(&mut aqm, 0, 40.0);
        offer(&mut aqm, 0, colour, waiting, &mut Rng::for_component(1, "dwred"))
    };
    let forced = Drop(FORCED);
    // OUT from 6 to 40, IN from 12 to 80.
    assert_eq!([verdict(2.0, O, 40), verdict(2.0, I, 11)], [forced, Admit]);
    assert_eq!([verdict(2.0, I, 80), verdict(1.0, I, 40)], [forced, forced]);
    assert_ne!(verdict(2.0, I, 79), forced);
    let only_out = Params { in_factor: 2.0, ..params() };
    assert_eq!(only_out.check(&CONTEXT).map(|warned| warned[0].field), Ok("in_factor"));
}

#[test]
fn signals_late_lost_or_foolish() {
    let stale_after = Some(Duration::from_millis(100));
    let p = Params { stale_after, fallback_max_th: Some(Backlog::Packets(60.0)), ..params() };
    let mut aqm = p.build(&CONTEXT);
    assert_eq!(gauge(&aqm, 0, "max_th"), 60.0);
    tell(&mut aqm, 10, 40.0);
    assert_eq!([gauge(&aqm, 110, "max_th"), gauge(&aqm, 111, "max_th")], [40.0, 60.0]);
    assert_eq!([gauge(&aqm, 110, "guided"), gauge(&aqm, 111, "guided")], [1.0, 0.0]);
    // The next one counts again, however late.
    tell(&mut aqm, 5000, 30.0);
    assert_eq!(gauge(&aqm, 5000, "max_th"), 30.0);
    // What says nothing does not refresh the last.
    for value in [f64::NAN, f64::INFINITY, 0.0, -4.0] {
        tell(&mut aqm, 5090, value);
    }
    aqm.signal(at(5090), &Signal { topic: "rtt", flow: None, value: 7.0 });
    aqm.signal(at(5090), &Signal { topic: TOPIC, flow: Some(FlowId(1)), value: 7.0 });
    assert_eq!([gauge(&aqm, 5100, "max_th"), gauge(&aqm, 5101, "max_th")], [30.0, 60.0]);
    assert_eq!(aqm.signals, (2, 4));
    // By default, a signal never gets too old.
    let mut aqm = params().build(&CONTEXT);
    tell(&mut aqm, 0, 40.0);
    assert_eq!(gauge(&aqm, 10_000_000, "max_th"), 40.0);
}

#[test]
fn ecn_marks_what_chance_picks_if_it_is_on() {
    let run = |ecn, capable| {
        let mut aqm = Params { common: Common { ecn, ..params().common }, ..params() }.build(&CONTEXT);
        tell(&mut aqm, 0, 40.0);
        let mut rng = Rng::for_component(1, "dwred");
        let packet = Packet { size: 1000, colour: O, ecn: capable, ..Packet::default() };
        let mut counts = Counts::default();
        for _ in 0..1000 {
            let verdict = aqm.arrive(&packet, At::silent(Time::ZERO, &mut Fake::of(0, 30), &mut rng));
            count(&mut counts, O, verdict);
        }
        let counted = shown(&aqm, &counts);
        (counted["marked_out"], counted["early_out"])
    };
    let (marked, dropped) = run(true, Ecn::Ect0);
    assert!(marked > 0 && dropped == 0);
    assert_eq!([run(true, Ecn::NotCapable), run(false, Ecn::Ect0)], [(0, marked), (0, marked)]);
}

#[test]
fn what_makes_no_curve_is_refused() {
    let field = |p: &Params, context: &Context| p.check(context).map_err(|f| f.field);
    assert_eq!(field(&params(), &CONTEXT), Ok(vec![]));
    assert_eq!(field(&Params { min_share: 1.0, ..params() }, &CONTEXT), Err("min_share"));
    assert_eq!(field(&params(), &Context { limit: None, ..CONTEXT }), Err("fallback_max_th"));
}

/// Milliseconds since the last, what is told (0: nothing), colour, packets waiting.
fn lives() -> impl Strategy<Value = Vec<(u64, f64, Colour, u32)>> {
    let told = prop_oneof![3 => Just(0.0), 1 => 1f64..120.0];
    let colour = prop::sample::select(vec![I, O, R]);
    prop::collection::vec((0u64..50, told, colour, 0u32..100), 1..200)
}

proptest! {
    /// With a sum that never changes, and for each colour that the thresholds act on: RED from first principles.
    #[test]
    fn agrees_with_the_oracle(steps in lives(), sum in 2f64..120.0, w_q in 0.01f64..=1.0, gentle: bool,
                              wait: bool, both: bool, seed: u64) {
        let colours = if both { Colours::Both } else { Colours::Out };
        let mut aqm = Params { colours, common: Common { w_q, gentle, wait, ..params().common }, ..params() }.build(&CONTEXT);
        tell(&mut aqm, 0, sum);
        let curve = Curve::new(0.15 * sum, sum, 0.1);
        let mut rng = Rng::for_component(seed, "dwred");
        let (mut samples, mut past) = (Vec::new(), [Vec::<Past>::new(), Vec::new()]);
        let mut now = 0;
        for (gap, _, colour, waiting) in steps {
            now += gap;
            let mut slow = rng.clone();
            let fast = offer(&mut aqm, now, colour, waiting, &mut rng);
            samples.push(Sample::Length(f64::from(waiting)));
            let avg = aqm.law.vars.avg[OUT];
            prop_assert!((average(&samples, w_q) - avg).abs() < 1e-9);
            if colour == I && !both {
                prop_assert_eq!(fast, Admit);
                continue;
            }
            let past = &mut past[usize::from(colour == I)];
            let p = p_a(past, avg, &curve, gentle, wait);
            let picked = p >= 1.0 || p > 0.0 && slow.uniform() < p;
            let end = if gentle { 2.0 * sum } else { sum };
            let expect = match picked {
                true if avg >= end => Drop(FORCED),
                true => Drop(EARLY),
                false => Admit,
            };
            prop_assert_eq!(fast, expect);
            past.push(Past { avg, dropped: fast != Admit });
        }
    }

    /// Whatever is told, and whenever: every figure is a number, thresholds stand in their order, and equal seeds decide alike.
    #[test]
    fn nothing_told_makes_nonsense(steps in lives(), stale in prop::option::of(1u64..200), seed: u64,
                                   odd in prop::sample::select(vec![f64::NAN, f64::INFINITY, -1.0, 1e-300, 1e300])) {
        let stale_after = stale.map(Duration::from_millis);
        let run = || {
            let mut aqm = Params { stale_after, colours: Colours::Both, ..params() }.build(&CONTEXT);
            let mut rng = Rng::for_component(seed, "dwred");
            let mut now = 0;
            let mut verdicts = Vec::new();
            for &(gap, told, colour, waiting) in &steps {
                now += gap;
                if told > 0.0 { tell(&mut aqm, now, if waiting % 9 == 0 { odd } else { told }); }
                verdicts.push(offer(&mut aqm, now, colour, waiting, &mut rng));
                aqm.gauges(at(now), &mut |name, v| assert!(v.is_finite(), "{name} is {v}"));
                assert!(gauge(&aqm, now, "min_th") < gauge(&aqm, now, "max_th"));
            }
            verdicts
        };
        prop_assert_eq!(run(), run());
    }
}

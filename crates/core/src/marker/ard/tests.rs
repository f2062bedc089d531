use Colour::{Green as I, Yellow as O};

use super::*;
use crate::testing::*;

const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };
const SECOND: u64 = PS_PER_S;

/// Paper A, §3, its first topology.
fn params() -> Params {
    Params {
        tpr_max: Rate(1_200_000),
        bucket: Backlog::Packets(60.0),
        t_rd: Backlog::Packets(15.0),
        max_rem: 0.5,
        p_drop: 0.02,
        interval: Duration(100 * SECOND),
        drop: DropOrder::BeforeRemark,
        token: Token::Packet,
        empty: Empty::BelowOne,
        tpr_floor: TprFloor::None,
        unmetered: Bytes(0),
        act: true,
    }
}

fn packet(colour: Colour, size: u32) -> Packet {
    Packet { size, colour, ..Packet::default() }
}

fn gauge(ard: &Ard, now: Time, name: &str) -> f64 {
    let mut found = f64::NAN;
    Mechanism::gauges(ard, now, &mut |n, v| {
        if n == name {
            found = v;
        }
    });
    found
}

/// Offers `bits` of each colour, evenly, over the interval that starts at `from`.
fn offer(ard: &mut Ard, from: Time, bits: [u64; 2]) {
    let mut rng = Rng::for_component(1, "ard");
    for (colour, bits) in [I, O].into_iter().zip(bits) {
        for i in 0..bits / 8000 {
            let at = Time(from.0 + i * (100 * SECOND / (bits / 8000)));
            ard.mark(at, &packet(colour, 1000), &mut rng, &mut Silent);
        }
    }
}

/// Hur 2006, Eq. (2) and the figures the paper gives for it.
#[test]
fn tpr_of_the_papers_two_topologies() {
    let kbit = |max, i, o| (next_tpr(0.0, max * 1e3, i * 1e3, o * 1e3, TprFloor::None) / 1e3).round();
    assert_eq!(kbit(1200.0, 494.0, 546.0), 570.0);
    assert_eq!(kbit(6000.0, 1658.0, 4102.0), 1727.0);
}

/// 40 of 1,040 bytes left out: meters read 1000/1040 of the wire's rates, a share of arrivals, and so the TPR, stays what it is, and a
/// token is a packet of 1,000 bytes. So a link that is full on the wire leaves TPR = 1.04 λ_IN, as 5760 of 6000 kbit/s have it (§3).
#[test]
fn meters_that_leave_headers_out() {
    let context = Context { packet: Bytes(1040), ..CONTEXT };
    let after = |unmetered, token| {
        let mut ard = Params { unmetered: Bytes(unmetered), token, act: false, ..params() }.build(&context);
        ard.tick(Time::ZERO, &mut Outbox::default());
        let mut rng = Rng::for_component(1, "ard");
        // 500 kbit/s of IN and 700 of OUT on the wire: 1.2 Mbit/s.
        for (colour, bits) in [(I, 500_000u64), (O, 700_000)] {
            for i in 0..bits * 100 / 8320 {
                let at = Time(i * (100 * SECOND / (bits * 100 / 8320)));
                ard.mark(at, &packet(colour, 1040), &mut rng, &mut Silent);
            }
        }
        let now = Time(100 * SECOND);
        ard.tick(now, &mut Outbox::default());
        let [tpr, lambda_in] = ["tpr", "lambda_in"].map(|name| gauge(&ard, now, name));
        (
            tpr / lambda_in,
            ard.vars.fill * PS_PER_S as f64 / (tpr * ard.tokens_per_bit),
            1.0 / ard.tokens_per_bit,
        )
    };
    let near = |(a, b, c): (f64, f64, f64), (x, y, z): (f64, f64, f64)| {
        assert!((a - x).abs() < 1e-3 && (b - y).abs() < 1e-9 && c == z, "{a} {b} {c}");
    };
    near(after(0, Token::Packet), (1.0, 1.0, 8320.0));
    near(after(40, Token::Packet), (1.04, 1.0, 8000.0));
    near(after(40, Token::Byte), (1.04, 1.0, 8.0));
    let all = Params { unmetered: Bytes(1040), ..params() };
    assert_eq!(all.check(&context).map_err(|f| f.field), Err("unmetered"));
}

/// Hur 2006, Eq. (2); with a floor, Eq. (4).
#[test]
fn tpr_keeps_without_traffic_and_has_a_floor() {
    assert_eq!(next_tpr(5e5, 1.2e6, 0.0, 0.0, TprFloor::None), 5e5);
    // 0.9 + 0.9 Mbit/s arrive for 1.2: Eq. (2) gives 0.6, less than the IN packets' own rate.
    assert_eq!(next_tpr(0.0, 1.2e6, 9e5, 9e5, TprFloor::None), 6e5);
    assert_eq!(next_tpr(0.0, 1.2e6, 9e5, 9e5, TprFloor::LambdaIn), 9e5);
    assert_eq!(next_tpr(0.0, 1.2e6, 2e6, 2e6, TprFloor::LambdaIn), 1.2e6);
}

#[test]
fn ticks_measure_the_interval_before_the_marker() {
    let mut ard = params().build(&CONTEXT);
    let mut outbox = Outbox::default();
    assert_eq!(gauge(&ard, Time::ZERO, "tpr"), 1.2e6);
    assert_eq!(ard.tick(Time::ZERO, &mut outbox), Some(Time(100 * SECOND)));
    assert_eq!(gauge(&ard, Time::ZERO, "tpr"), 1.2e6);
    offer(&mut ard, Time::ZERO, [49_400_000, 54_600_000]);
    let end = Time(100 * SECOND);
    assert_eq!(ard.tick(end, &mut outbox), Some(Time(200 * SECOND)));
    assert_eq!(gauge(&ard, end, "lambda_in"), 494_000.0);
    assert_eq!(gauge(&ard, end, "lambda_out"), 546_000.0);
    assert_eq!(gauge(&ard, end, "tpr"), 570_000.0);
    // An interval without traffic keeps the TPR.
    ard.tick(Time(200 * SECOND), &mut outbox);
    assert_eq!(gauge(&ard, end, "lambda_in"), 0.0);
    assert_eq!(gauge(&ard, end, "tpr"), 570_000.0);
    assert!(outbox.signals.is_empty());
}

#[test]
fn a_new_tpr_does_not_fill_the_past() {
    let mut ard = Params { p_drop: 0.0, max_rem: 0.0, ..params() }.build(&CONTEXT);
    let mut rng = Rng::for_component(1, "ard");
    ard.tick(Time::ZERO, &mut Outbox::default());
    let t = Time(100 * SECOND - SECOND / 10);
    for _ in 0..60 {
        ard.mark(t, &packet(I, 1000), &mut rng, &mut Silent);
    }
    // A tenth of a second at 1.2 Mbit/s, and only from here on at the new rate: 15 packets.
    ard.tick(Time(100 * SECOND), &mut Outbox::default());
    assert!((gauge(&ard, Time(100 * SECOND), "tokens") - 15.0).abs() < 1e-9);
}

/// Hur 2006, Eq. (1).
#[test]
fn equation_1() {
    assert_eq!([15.0, 7.5, 0.0].map(|tk| p_rem(tk, 15.0, 0.5)), [0.0, 0.25, 0.5]);
}

/// A burst into a full bucket, all at once: 45 packets down to T_rd, then chance, then nothing left.
#[test]
fn golden_burst() {
    let mut ard = params().build(&CONTEXT);
    let mut rng = Rng::for_component(1, "ard");
    let text: String = (0..110)
        .map(|_| match ard.mark(Time::ZERO, &packet(I, 1000), &mut rng, &mut Silent) {
            Mark::Pass(I) => '.',
            Mark::Pass(_) => 'o',
            Mark::Drop(_) => 'x',
        })
        .collect();
    let low = "o..oo.o..o.....";
    let empty = "ooooooooooooooooooooooooooooooooooooooooxooxo";
    assert_eq!(text, [&".".repeat(50), low, empty].concat());
    let counted = Stats {
        remarked_early: 5,
        remarked_empty: 43,
        dropped_low: 0,
        dropped_empty: 2,
        passed_in: 60,
        passed_out: 0,
    };
    assert_eq!(ard.stats, counted);
}

#[test]
fn each_cause_has_its_count() {
    let run = |p: Params| {
        let mut ard = p.build(&CONTEXT);
        let mut rng = Rng::for_component(1, "ard");
        for _ in 0..100 {
            ard.mark(Time::ZERO, &packet(I, 1000), &mut rng, &mut Silent);
        }
        ard.stats
    };
    // Certain drops spend no token: the level stays low and never runs out.
    let certain = run(Params { p_drop: 1.0, ..params() });
    assert_eq!(certain, Stats { passed_in: 46, dropped_low: 54, ..Stats::default() });
    let shallow = run(Params { p_drop: 1.0, t_rd: Backlog::Packets(0.0), ..params() });
    assert_eq!(shallow, Stats { passed_in: 60, dropped_empty: 40, ..Stats::default() });
}

#[test]
fn out_packets_pass_and_take_nothing() {
    let mut ard = params().build(&CONTEXT);
    let mut rng = Rng::for_component(1, "ard");
    for colour in [O, Colour::Red] {
        for _ in 0..100 {
            let mark = ard.mark(Time::ZERO, &packet(colour, 1000), &mut rng, &mut Silent);
            assert_eq!(mark, Mark::Pass(colour));
        }
    }
    assert_eq!(gauge(&ard, Time::ZERO, "tokens"), 60.0);
}

#[test]
fn a_passive_bucket_only_counts() {
    let mut ard = Params { act: false, ..params() }.build(&CONTEXT);
    let mut rng = Rng::for_component(1, "ard");
    for _ in 0..100 {
        assert_eq!(ard.mark(Time::ZERO, &packet(I, 1000), &mut rng, &mut Silent), Mark::Pass(I));
    }
    assert_eq!(gauge(&ard, Time::ZERO, "tokens"), 0.0);
    assert_eq!(ard.stats, Stats { passed_in: 100, ..Stats::default() });
}

#[test]
fn tokens_in_bytes_let_small_packets_by_cheaply() {
    let mut ard = Params { token: Token::Byte, ..params() }.build(&CONTEXT);
    let mut rng = Rng::for_component(1, "ard");
    ard.mark(Time::ZERO, &packet(I, 40), &mut rng, &mut Silent);
    assert_eq!(gauge(&ard, Time::ZERO, "tokens"), 59_960.0);
    // Both fill at the TPR: 150 packets or 150,000 bytes a second.
    assert_eq!(ard.vars.fill * SECOND as f64, 150_000.0);
    assert_eq!(params().build(&CONTEXT).vars.fill * SECOND as f64, 150.0);
}

#[test]
fn odd_parameters_are_refused_or_remarked_on() {
    let small = Params { bucket: Backlog::Bytes(999.0), t_rd: Backlog::Packets(0.5), ..params() };
    assert_eq!(small.check(&CONTEXT).map_err(|f| f.field), Err("bucket"));
    let low = Params { t_rd: Backlog::Bytes(60_001.0), ..params() };
    assert_eq!(low.check(&CONTEXT).map(|w| w[0].field), Ok("t_rd"));
    assert_eq!(params().check(&CONTEXT), Ok(Vec::new()));
}

/// Microseconds since the last arrival, IN or OUT, size.
fn arrivals() -> impl Strategy<Value = Vec<(u64, bool, u32)>> {
    prop::collection::vec((0u64..15_000, any::<bool>(), 40u32..1500), 1..400)
}

fn options() -> impl Strategy<Value = Params> {
    (0.0f64..=1.0, 0.0f64..=1.0, any::<[bool; 4]>(), 1u64..20, 5.0f64..70.0).prop_map(
        |(max_rem, p_drop, [of_remarked, byte, floor, zero], tenths, t_rd)| Params {
            max_rem,
            p_drop,
            t_rd: Backlog::Packets(t_rd),
            drop: if of_remarked { DropOrder::OfRemarked } else { DropOrder::BeforeRemark },
            token: if byte { Token::Byte } else { Token::Packet },
            empty: if zero { Empty::Zero } else { Empty::BelowOne },
            tpr_floor: if floor { TprFloor::LambdaIn } else { TprFloor::None },
            interval: Duration(tenths * SECOND / 10),
            ..params()
        },
    )
}

/// The memory of the slow marker: everything.
#[derive(Default)]
struct Diary {
    /// (second, tokens) of each packet that left as IN after coming as IN.
    spent: Vec<(f64, f64)>,
    /// (second, IN, bits) of each arrival.
    came: Vec<(f64, bool, f64)>,
    /// (second, bit/s) of each TPR, the first at 0.
    tpr: Vec<(f64, f64)>,
}

/// The level at `now`: the whole past poured in and taken out again, in order.
fn level(diary: &Diary, p: &Params, now: f64) -> f64 {
    let unit = if p.token == Token::Byte { 8.0 } else { 8000.0 };
    let depth = if p.token == Token::Byte { 60_000.0 } else { 60.0 };
    let mut changes: Vec<(f64, Option<f64>, f64)> = Vec::new();
    changes.extend(diary.tpr.iter().map(|(t, rate)| (*t, Some(*rate), 0.0)));
    changes.extend(diary.spent.iter().map(|(t, n)| (*t, None, *n)));
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut tokens, mut last, mut rate) = (depth, 0.0, 1.2e6);
    for (t, new_rate, spent) in changes.into_iter().chain([(now, None, 0.0)]) {
        tokens = f64::min(tokens + rate / unit * (t - last), depth) - spent;
        last = t;
        rate = new_rate.unwrap_or(rate);
    }
    tokens
}

proptest! {
    /// Hur 2006, §2.1, recomputed from the whole past at every arrival.
    #[test]
    fn agrees_with_the_oracle(p in options(), steps in arrivals(), seed: u64) {
        let mut ard = p.build(&CONTEXT);
        let mut rng = Rng::for_component(seed, "ard");
        let mut diary = Diary { tpr: vec![(0.0, 1.2e6)], ..Diary::default() };
        let mut due = ard.tick(Time::ZERO, &mut Outbox::default()).unwrap();
        let mut now = Time::ZERO;
        for (gap, is_in, size) in steps {
            now += Duration(gap * 1_000_000);
            while due <= now {
                let (end, start) = (due.secs(), due.secs() - p.interval.secs());
                let rate = |of: bool| diary.came.iter()
                    .filter(|(t, i, _)| *i == of && *t >= start - 1e-9 && *t < end - 1e-9)
                    .map(|(_, _, bits)| bits).sum::<f64>() / p.interval.secs();
                let (i, o) = (rate(true), rate(false));
                let mut tpr = if i + o > 0.0 { 1.2e6 * i / (i + o) } else { diary.tpr[diary.tpr.len() - 1].1 };
                if i + o > 0.0 && p.tpr_floor == TprFloor::LambdaIn { tpr = tpr.max(i.min(1.2e6)); }
                diary.tpr.push((end, tpr));
                due = ard.tick(due, &mut Outbox::default()).unwrap();
                prop_assert!((gauge(&ard, now, "tpr") - tpr).abs() < 1e-3);
            }
            diary.came.push((now.secs(), is_in, f64::from(size) * 8.0));
            let tokens = level(&diary, &p, now.secs());
            let mut slow_rng = rng.clone();
            let mut notes = Notes::default();
            let colour = if is_in { I } else { O };
            let fast = ard.mark(now, &packet(colour, size), &mut rng, &mut notes);
            let noted = notes.items()[0].1;
            prop_assert!((noted - tokens).abs() < 1e-6 * (1.0 + tokens), "{noted} {tokens}");

            // From here by the noted level: within a millionth of a boundary either answer is right.
            let bytes = p.token == Token::Byte;
            let (need, t_rd) = if bytes { (f64::from(size), p.t_rd.bytes(Bytes(1000))) } else { (1.0, p.t_rd.amount()) };
            let mut falls = |p: f64| p >= 1.0 || p > 0.0 && slow_rng.uniform() < p;
            let remark = (t_rd - noted) * p.max_rem / t_rd;
            let slow = if !is_in {
                Mark::Pass(O)
            } else if if p.empty == Empty::Zero { noted <= 0.0 } else { noted < need } {
                if falls(p.p_drop) { Mark::Drop(EDGE) } else { Mark::Pass(O) }
            } else if noted >= t_rd {
                Mark::Pass(I)
            } else if p.drop == DropOrder::BeforeRemark {
                if falls(p.p_drop) { Mark::Drop(EDGE) } else if falls(remark) { Mark::Pass(O) } else { Mark::Pass(I) }
            } else if falls(remark) {
                if falls(p.p_drop) { Mark::Drop(EDGE) } else { Mark::Pass(O) }
            } else {
                Mark::Pass(I)
            };
            prop_assert_eq!(fast, slow);
            if is_in && fast == Mark::Pass(I) { diary.spent.push((now.secs(), need)); }
        }
    }

    /// The level stays between nothing and the bucket; no colour improves; every packet is counted once.
    #[test]
    fn keeps_its_bounds(p in options(), act: bool, steps in arrivals(), seed: u64) {
        let p = Params { act, ..p };
        let mut ard = p.build(&CONTEXT);
        let mut rng = Rng::for_component(seed, "ard");
        let mut due = ard.tick(Time::ZERO, &mut Outbox::default()).unwrap();
        let mut now = Time::ZERO;
        for (gap, is_in, size) in &steps {
            now += Duration(gap * 1_000_000);
            if due <= now { due = ard.tick(now, &mut Outbox::default()).unwrap(); }
            let colour = if *is_in { I } else { O };
            let mark = ard.mark(now, &packet(colour, *size), &mut rng, &mut Silent);
            prop_assert!(*is_in || mark == Mark::Pass(O));
            prop_assert!(act || mark == Mark::Pass(colour));
            let least = if p.empty == Empty::BelowOne { 0.0 } else if p.token == Token::Byte { -1500.0 } else { -1.0 };
            prop_assert!((least..=ard.depth).contains(&ard.vars.tokens));
        }
        let mut counted = 0;
        Mechanism::stats(&ard, &mut |_, n| counted += n);
        prop_assert_eq!(counted, steps.len() as u64);
    }

    /// ARM is ARD that never drops; equal seeds decide alike.
    #[test]
    fn arm_is_ard_without_drops(p in options(), steps in arrivals(), seed: u64) {
        let Params { tpr_max, bucket, t_rd, max_rem, interval, token, empty, tpr_floor, unmetered, act, .. } = p.clone();
        let arm = ArmParams { tpr_max, bucket, t_rd, max_rem, interval, token, empty, tpr_floor, unmetered, act };
        let run = |mut ard: Ard| {
            let mut rng = Rng::for_component(seed, "ard");
            let mut now = Time::ZERO;
            steps.iter().map(|(gap, is_in, size)| {
                now += Duration(gap * 1_000_000);
                ard.mark(now, &packet(if *is_in { I } else { O }, *size), &mut rng, &mut Silent)
            }).collect::<Vec<_>>()
        };
        let marks = run(arm.build(&CONTEXT));
        prop_assert!(marks.iter().all(|m| matches!(m, Mark::Pass(_))));
        prop_assert_eq!(marks, run(Params { p_drop: 0.0, ..p }.build(&CONTEXT)));
    }
}

use Admission::{Admit, Drop, Mark};

use super::*;
use crate::aqm::red::oracle::{Past, Sample, average, p_a};
use crate::aqm::red::{EARLY, FORCED};
use crate::testing::*;

pub(crate) fn params(w_q: f64, gentle: bool) -> Params {
    Params {
        min_th: Backlog::Packets(5.0),
        max_th: Backlog::Packets(15.0),
        max_p: 0.1,
        byte_scaled: false,
        drop: DropAt::Tail,
        common: Common { w_q, gentle, wait: false, ecn: false, mean_packet: None },
    }
}

fn arrive(red: &mut impl Aqm, at: u64, queue: &mut Fake, rng: &mut Rng, ecn: Ecn) -> Admission {
    let packet = Packet { size: 1000, ecn, ..Packet::default() };
    red.arrive(&packet, At::silent(Time(at), queue, rng))
}

/// With w_q = 1 the average is the queue: one verdict a length.
fn verdicts(p: &Params, ecn: Ecn, lengths: &[u32]) -> Vec<Admission> {
    let mut red = p.build(&CONTEXT);
    let mut rng = Rng::for_component(1, "red");
    lengths.iter().map(|q| arrive(&mut red, 0, &mut Fake::of(*q, 0), &mut rng, ecn)).collect()
}

/// A full queue of flows 0 … 3, at which flow 9 arrives: the verdict on it, who waits then, and overflows and evictions.
pub(crate) fn at_a_full_queue(
    build: impl Fn(&Params) -> AnyAqm,
    drop: DropAt,
    seed: u64,
) -> (Admission, Vec<u32>, [u64; 2]) {
    let p =
        Params { min_th: Backlog::Packets(50.0), max_th: Backlog::Packets(90.0), drop, ..params(0.5, true) };
    let mut aqm = build(&p);
    assert_eq!(aqm.serves(), drop != DropAt::Tail);
    let mut queue: Fifo<Stamped> = Fifo::new(Backlog::Packets(4.0));
    queue.went_busy();
    let mut rng = Rng::for_component(seed, "full");
    let mut last = Admit;
    for flow in [0, 1, 2, 3, 9] {
        let packet = Packet { flow: FlowId(flow), size: 1000, ..Packet::default() };
        let item = Stamped { packet, since: Time::ZERO };
        last = queue.arrive(Time::ZERO, &packet, item, &mut aqm, &mut rng, &mut Silent);
    }
    let evicted = std::iter::from_fn(|| queue.take_evicted()).count() as u64;
    let overflow = shown(&*aqm, queue.counts())["overflow"];
    (last, queue.iter().map(|p| p.flow.0).collect(), [overflow, evicted])
}

/// At a full queue any packet may go, each as often.
pub(crate) fn any_packet_may_go(build: impl Fn(&Params) -> AnyAqm) {
    let mut gone = [0; 10];
    for seed in 1..=2000 {
        let (_, waiting, _) = at_a_full_queue(&build, DropAt::Random, seed);
        assert_eq!(waiting.len(), 4);
        gone[[0, 1, 2, 3, 9].into_iter().find(|f| !waiting.contains(f)).unwrap() as usize] += 1;
    }
    assert!([0, 1, 2, 3, 9].iter().all(|f: &usize| (330..470).contains(&gone[*f])), "{gone:?}");
}

#[test]
fn which_packet_goes_when_the_queue_is_full() {
    let build = |p: &Params| AnyAqm::Red(Box::new(p.build(&CONTEXT)));
    let of = |drop| at_a_full_queue(build, drop, 1);
    assert_eq!(of(DropAt::Tail), (Drop(Cause::OVERFLOW), vec![0, 1, 2, 3], [1, 0]));
    assert_eq!(of(DropAt::Front), (Admit, vec![1, 2, 3, 9], [1, 1]));
    any_packet_may_go(build);
}

#[test]
fn a_queue_is_one_cache_line() {
    assert!(size_of::<Red>() <= 64, "{} bytes", size_of::<Red>());
}

/// (time in ms, queue) → verdict, as drawn from the stream of seed 1: p_b = 0.05 at 10, 0.09 at 14.
#[test]
fn golden_sequence() {
    let script = "0 4 admit, 1 5 admit, 2 10 admit, 3 10 admit, 4 14 admit, 5 14 admit, 6 14 admit, \
                  7 14 admit, 8 14 admit, 9 14 admit, 10 14 admit, 11 15 forced, 12 40 forced, 13 4 admit, \
                  14 10 admit, 15 10 early, 16 10 admit, 17 10 admit, 18 10 admit, 19 10 admit";
    let lengths: Vec<u32> =
        script.split(',').map(|e| e.split_whitespace().nth(1).unwrap().parse().unwrap()).collect();
    let p = Params { common: Common { w_q: 1.0, ..params(1.0, false).common }, ..params(1.0, false) };
    let got: Vec<String> = verdicts(&p, Ecn::NotCapable, &lengths)
        .iter()
        .zip(&lengths)
        .enumerate()
        .map(|(i, (v, q))| match v {
            Admit => format!("{i} {q} admit"),
            Mark => format!("{i} {q} mark"),
            Drop(cause) => format!("{i} {q} {}", cause.name()),
        })
        .collect();
    assert_eq!(got.join(", "), script.split_whitespace().collect::<Vec<_>>().join(" "));
}

#[test]
fn on_and_above_the_thresholds() {
    let forced = Drop(FORCED);
    assert_eq!(
        verdicts(&params(1.0, false), Ecn::NotCapable, &[4, 5, 15, 16]),
        [Admit, Admit, forced, forced]
    );
    // Gentle: chance up to twice max_th, certainty from there on.
    let seen = verdicts(&params(1.0, true), Ecn::NotCapable, &[29; 40]);
    assert!(seen.contains(&Drop(EARLY)) && !seen.contains(&forced));
    assert_eq!(verdicts(&params(1.0, true), Ecn::NotCapable, &[30]), [forced]);
}

/// Fig. 2 makes no exception for a packet that finds the link idle: its average has aged, and decides.
#[test]
fn what_finds_the_link_idle_goes_by_the_aged_average() {
    let mut red = params(0.5, false).build(&CONTEXT);
    let mut rng = Rng::for_component(1, "idle");
    let mut counts = Counts::default();
    let mut at = |ms: u64, mut queue: Fake| {
        let verdict = arrive(&mut red, ms * 1_000_000_000, &mut queue, &mut rng, Ecn::NotCapable);
        count(&mut counts, Colour::IN, verdict);
        verdict
    };
    let idle = |ms: u64, limit| Fake { idle: Some(Time(ms * 1_000_000_000)), limit, ..Fake::of(0, 0) };
    assert_eq!(at(0, Fake::of(64, 0)), Drop(FORCED));
    // 32 after one empty queue is 16, above max_th; 16 after three is 2.
    assert_eq!(at(1, idle(0, 1e9)), Drop(FORCED));
    assert_eq!(at(4, idle(0, 1e9)), Admit);
    assert_eq!(at(9, idle(8, 0.0)), Drop(Cause::OVERFLOW));
    assert_eq!(red.law.vars.avg, [1.0]);
    let counts = shown(&red, &counts);
    assert_eq!(["early", "forced", "overflow"].map(|name| counts[name]), [0, 2, 1]);
}

#[test]
fn at_least_one_in_every_1_over_p() {
    // p_b = 0.05: the 20th after a drop is certain to go.
    let seen = verdicts(&params(1.0, false), Ecn::NotCapable, &[10; 5000]);
    assert!(seen.windows(20).all(|w| w.contains(&Drop(EARLY))));
    let waits = Params { common: Common { wait: true, ..params(1.0, false).common }, ..params(1.0, false) };
    let seen = verdicts(&waits, Ecn::NotCapable, &[10; 5000]);
    assert!(seen.windows(20).all(|w| w.iter().filter(|v| **v != Admit).count() <= 1));
    assert!(seen.windows(40).all(|w| w.contains(&Drop(EARLY))));
}

/// RFC 3168 §7: below max_th what chance picks is marked, above it is dropped, whether by chance (`gentle`) or for sure.
#[test]
fn ecn_marks_what_chance_picks_below_max_th_and_nothing_else() {
    let p = Params { common: Common { ecn: true, ..params(1.0, true).common }, ..params(1.0, true) };
    let capable = verdicts(&p, Ecn::Ect0, &[12; 100]);
    let not = verdicts(&p, Ecn::NotCapable, &[12; 100]);
    assert!(capable.contains(&Mark));
    for (c, n) in capable.iter().zip(&not) {
        assert!(matches!((c, n), (Admit, Admit) | (Mark, Drop(EARLY))));
    }
    let above = verdicts(&p, Ecn::Ect0, &[20; 100]);
    assert!(above.contains(&Drop(EARLY)) && !above.contains(&Mark));
    assert_eq!(above, verdicts(&p, Ecn::NotCapable, &[20; 100]));
    assert_eq!(verdicts(&p, Ecn::Ect0, &[31]), [Drop(FORCED)]);
    let off = Params { common: Common { ecn: false, ..p.common }, ..p };
    assert_eq!(verdicts(&off, Ecn::Ect0, &[12; 100]), not);
}

proptest! {
    /// With a limit in bytes and packets of all sizes: either the arrival goes or others do, only as many as it takes; none goes
    /// for one that can never wait; and every packet is counted once, as an overflow by the discipline too.
    #[test]
    fn a_full_queue_in_bytes_loses_the_arrival_or_others(
        sizes in prop::collection::vec((40u32..3000, any::<bool>()), 1..200),
        drop in prop::sample::select(vec![DropAt::Tail, DropAt::Front, DropAt::Random]),
        lowered: bool, seed: u64,
    ) {
        let far = Params { min_th: Backlog::Packets(1e6), max_th: Backlog::Packets(2e6), drop, ..params(0.002, true) };
        let mut aqm = AnyAqm::Red(Box::new(far.build(&CONTEXT)));
        let (wide, limit) = (Backlog::Bytes(9000.0), 2500u32);
        let mut queue: Fifo<Stamped> = Fifo::new(if lowered { wide } else { Backlog::Bytes(f64::from(limit)) });
        let mut rng = Rng::for_component(seed, "full");
        let (mut lost, mut sent, mut arrived) = (0u64, 0u64, 0u64);
        for (i, (size, leaves)) in sizes.iter().enumerate() {
            if lowered && i == sizes.len() / 2 {
                let old = std::mem::replace(&mut queue, Fifo::new(Backlog::Bytes(f64::from(limit))));
                queue.take_over(old, false);
            }
            let packet = Packet { size: *size, ..Packet::default() };
            let item = Stamped { packet, since: Time::ZERO };
            let (before, bytes) = (queue.packets(), queue.bytes());
            let verdict = queue.arrive(Time::ZERO, &packet, item, &mut aqm, &mut rng, &mut Silent);
            arrived += 1;
            let evicted: Vec<u64> = std::iter::from_fn(|| queue.take_evicted()).map(|p| u64::from(p.size)).collect();
            lost += evicted.len() as u64 + u64::from(verdict != Admit);
            if verdict == Admit {
                prop_assert_eq!(queue.packets() as usize + evicted.len(), before as usize + 1);
                prop_assert!(queue.fits(0), "{} bytes wait", queue.bytes());
                // Without the last of them it would not have fitted.
                let but_last: u64 = evicted.iter().sum::<u64>() - evicted.last().unwrap_or(&0);
                let bound = if lowered && i < sizes.len() / 2 { 9000 } else { u64::from(limit) };
                prop_assert!(evicted.is_empty() || bytes - but_last + u64::from(*size) > bound);
            } else {
                prop_assert_eq!((evicted.len(), queue.packets()), (0, before));
            }
            if *leaves && queue.pop().is_some() { sent += 1; }
        }
        let counts = queue.counts();
        let dropped: u64 = crate::packet::Colour::ALL.iter().map(|c| counts.dropped_of(*c)).sum();
        prop_assert_eq!((dropped, arrived), (lost, sent + lost + u64::from(queue.packets())));
        prop_assert_eq!(shown(&*aqm, queue.counts())["overflow"], lost);
    }
}

#[test]
fn a_full_queue_updates_the_average_and_overflows() {
    let mut red = params(0.5, true).build(&CONTEXT);
    let mut rng = Rng::for_component(1, "red");
    let mut full = Fake { limit: 4.0, ..Fake::of(4, 0) };
    assert_eq!(arrive(&mut red, 0, &mut full, &mut rng, Ecn::NotCapable), Drop(Cause::OVERFLOW));
    assert_eq!(red.avg(), 2.0);
}

/// How many packets of this size a queue takes until one is dropped.
pub(crate) fn holds(limit: Backlog, mut aqm: AnyAqm, size: u32) -> usize {
    let mut queue: Fifo<Stamped> = Fifo::before(limit, &aqm);
    let mut rng = Rng::for_component(1, "holds");
    let packet = Packet { size, ..Packet::default() };
    let item = Stamped { packet, since: Time(0) };
    let mut join = || queue.arrive(Time(0), &packet, item, &mut aqm, &mut rng, &mut Silent);
    (0..1000).take_while(|_| join() == Admit).count()
}

/// Thresholds in bytes that no queue comes near, a mean packet of 500 B.
pub(crate) fn in_bytes() -> Params {
    let common = Common { mean_packet: Some(Bytes(500)), ..params(0.002, false).common };
    let (min_th, max_th) = (Backlog::Bytes(1e6), Backlog::Bytes(2e6));
    Params { min_th, max_th, common, ..params(0.002, false) }
}

#[test]
fn a_limit_is_in_its_own_unit_whatever_the_thresholds() {
    let plain = |limit, size| holds(limit, AnyAqm::Red(Box::new(in_bytes().build(&CONTEXT))), size);
    assert_eq!([40, 500, 1000].map(|size| plain(Backlog::Packets(3.0), size)), [3, 3, 3]);
    assert_eq!([40, 500, 1000].map(|size| plain(Backlog::Bytes(1500.0), size)), [37, 3, 1]);
}

#[test]
fn bytes_count_bytes_and_large_packets_go_first() {
    let p = Params {
        min_th: Backlog::Bytes(5000.0),
        max_th: Backlog::Bytes(15_000.0),
        byte_scaled: true,
        ..params(1.0, false)
    };
    let mut rng = Rng::for_component(1, "red");
    let rate = |size: u32, rng: &mut Rng| {
        let mut red = p.build(&CONTEXT);
        let packet = Packet { size, ..Packet::default() };
        let early = (0..20_000).filter(|_| {
            red.arrive(&packet, At::silent(Time::ZERO, &mut Fake::of(10, 0), rng)) == Drop(EARLY)
        });
        let early = early.count();
        assert_eq!(red.avg(), 10_000.0);
        early as f64 / 20_000.0
    };
    // p_b = 0.05 and 0.005: a drop every 10 and every 100 packets (half of 1/p_b, spaced evenly).
    let (large, small) = (rate(1000, &mut rng), rate(100, &mut rng));
    assert!((large - 0.1).abs() < 0.01 && (small - 0.01).abs() < 0.002, "{large} {small}");
}

#[test]
fn odd_parameters_are_refused_or_remarked_on() {
    let limit = Some(Backlog::Packets(10.0));
    let warned = params(0.002, true).check(&Context { limit, ..CONTEXT });
    assert_eq!(warned.map(|w| w.iter().map(|w| w.field).collect::<Vec<_>>()), Ok(vec!["max_th"]));
    let crossed = Params { min_th: Backlog::Packets(15.0), ..params(0.002, true) };
    assert_eq!(crossed.check(&CONTEXT).map_err(|f| f.field), Err("min_th"));
    let mixed = Params { min_th: Backlog::Bytes(5000.0), ..params(0.002, true) };
    assert_eq!(mixed.check(&CONTEXT).map_err(|f| f.field), Err("max_th"));
}

/// Microseconds since the last arrival, packets waiting, share of the time idle.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32, Option<f64>)>> {
    let step = (0u64..20_000, 0u32..40, prop::option::weighted(0.1, 0f64..=1.0));
    prop::collection::vec(step, 1..300)
}

proptest! {
    /// Floyd and Jacobson 1993, §4: everything recomputed from the whole past, at every arrival.
    #[test]
    fn agrees_with_the_oracle(steps in arrivals(), w_q in 0.01f64..=1.0, max_p in 0.01f64..=1.0,
                              gentle: bool, wait: bool, limit in 10u32..60, seed: u64) {
        let p = Params { max_p, common: Common { wait, ..params(w_q, gentle).common }, ..params(w_q, gentle) };
        let mut red = p.build(&CONTEXT);
        let curve = red.law.config.curves[0];
        let mut rng = Rng::for_component(seed, "red");
        let (mut now, mut samples, mut past) = (0u64, Vec::new(), Vec::<Past>::new());
        let mut counts = Counts::default();
        for (gap, q, idle) in steps {
            now += gap * 1_000_000;
            let idle_ps = idle.map(|share| (share * gap as f64 * 1e6) as u64);
            let packets = if idle.is_some() { 0 } else { q.min(limit) };
            let idle = idle_ps.map(|ps| Time(now) - Duration(ps));
            let mut queue = Fake { limit: f64::from(limit), idle, ..Fake::of(packets, 0) };
            let mut slow_rng = rng.clone();
            let mut notes = Notes::default();
            let packet = Packet { size: 1000, ..Packet::default() };
            let fast = red.arrive(&packet, At::new(Time(now), &mut queue, &mut rng, &mut notes));

            samples.push(idle_ps.map_or(Sample::Length(f64::from(packets)), |ps| Sample::Idle(ps as f64 * 1e-9)));
            let avg = red.avg();
            prop_assert!((average(&samples, w_q) - avg).abs() < 1e-9);
            let p = p_a(&past, avg, &curve, gentle, wait);
            let noted = notes.items().iter().find(|(n, _)| *n == "p_a").map(|(_, v)| *v);
            if let Some(noted) = noted { prop_assert!((noted - p).abs() < 1e-9); }
            let p = noted.unwrap_or(p);
            let picked = p >= 1.0 || p > 0.0 && slow_rng.uniform() < p;
            let slow = match picked {
                true if avg >= if gentle { 30.0 } else { 15.0 } => Drop(FORCED),
                true => Drop(EARLY),
                false if packets >= limit => Drop(Cause::OVERFLOW),
                false => Admit,
            };
            prop_assert_eq!(fast, slow);
            prop_assert_eq!(rng.clone().uniform(), slow_rng.uniform());
            count(&mut counts, Colour::IN, fast);
            past.push(Past { avg, dropped: fast != Admit });
        }
        let dropped = past.iter().filter(|p| p.dropped).count() as u64;
        prop_assert_eq!(dropped, shown(&red, &counts).values().sum::<u64>());
    }

    /// Equal seeds, equal decisions.
    #[test]
    fn equal_seeds_decide_alike(steps in arrivals(), seed: u64) {
        let p = params(0.1, true);
        let run = || {
            let (mut red, mut rng) = (p.build(&CONTEXT), Rng::for_component(seed, "red"));
            let mut now = 0;
            steps.iter().map(|&(gap, q, _)| {
                now += gap;
                arrive(&mut red, now, &mut Fake::of(q, 0), &mut rng, Ecn::NotCapable)
            }).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }
}

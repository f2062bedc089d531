use super::oracle::{Linux, Rfc};
use super::*;
use crate::testing::*;

const CONTEXT: Context = Context {
    link_rate: Some(Rate(10_000_000)),
    contract: None,
    packet: Bytes(1000),
    limit: Some(Backlog::Packets(1000.0)),
};

fn params(ecn: bool) -> Params {
    Params { ecn, ..crate::params::defaults() }
}

fn bench(p: &Params) -> Bench {
    Bench::new(AnyAqm::Codel(Box::new(p.build(&CONTEXT))), Backlog::Packets(1000.0))
}

/// Packets of 1,000 B that wait for 50 ms each, one leaving each millisecond: at what times packets are dropped, and which.
fn standing(p: &Params, ecn: Ecn, ms: u64) -> (Vec<(u64, u32)>, Bench) {
    let mut b = bench(p);
    let mut drops = Vec::new();
    let mut next = 0;
    for t in 0..ms {
        b.arrive_at(t * MS, next, 1000, ecn);
        next += 1;
        if t >= 50 {
            b.depart_at(t * MS);
            // What was dropped is replaced, so that the queue persists.
            for number in std::mem::take(&mut b.dropped) {
                drops.push((t, number));
                b.arrive_at(t * MS, next, 1000, ecn);
                next += 1;
            }
        }
    }
    (drops, b)
}

/// §5.5, §5.6: the first packet leaves at 50 ms, having waited longer than target; an interval later the first is dropped, then
/// after 100 ms, 100/√2, 100/√3, … more.
#[test]
fn drops_come_at_the_times_of_the_control_law() {
    let (drops, b) = standing(&params(false), Ecn::NotCapable, 600);
    let mut at = 150.0f64;
    let mut expected = vec![at];
    for count in 1..20 {
        at += 100.0 / f64::from(count).sqrt();
        if at < 600.0 {
            expected.push(at);
        }
    }
    let times: Vec<f64> = drops.iter().map(|(t, _)| *t as f64).collect();
    assert_eq!(times, expected.iter().map(|t| (t - 1e-6).ceil()).collect::<Vec<_>>());
    assert!(b.causes.iter().all(|cause| *cause == ABOVE_TARGET));
    assert_eq!((b.stat("entered"), b.stat("above_target")), (1, drops.len() as u64));
}

/// A golden sequence: two packets come each millisecond and one leaves, from 400 ms to 500 ms none comes; every third packet is
/// ECN-capable. When which packet was dropped (x) or marked (m).
#[test]
fn golden_sequence() {
    let (mut b, mut said) = (bench(&params(true)), Vec::new());
    let mut number = 0;
    for t in 0..700 {
        for _ in 0..if (400..500).contains(&t) { 0 } else { 2 } {
            let ecn = if number % 3 == 0 { Ecn::Ect0 } else { Ecn::NotCapable };
            b.arrive_at(t * MS, number, 1000, ecn);
            number += 1;
        }
        if let Some((number, true)) = b.depart_at(t * MS).map(Left::marked) {
            said.push(format!("{t}m{number}"));
        }
        said.extend(b.dropped.drain(..).map(|number| format!("{t}x{number}")));
    }
    assert_eq!(
        said.join(" "),
        "109x109 209m210 280x281 338x340 388x391 433x437 473x478 511x517 547x554 580m588 612x620 642m651 671x680 698m708"
    );
    assert_eq!((b.stat("entered"), b.stat("above_target"), b.stat("marked")), (1, 10, 4));
}

/// Linux: Newton's x·(3 − n·x²)/2 from the last estimate, in exact fractions 1/2, 9/16, 0.48779…: short of 1/√2, 1/√3, 1/√4, and
/// never above 1/√n but for what 16 bits round.
#[test]
fn linuxs_first_intervals_are_short() {
    let mut x = u16::MAX;
    let mut roots = Vec::new();
    for n in 2..=400 {
        x = newton_step(x, n);
        let exact = 1.0 / f64::from(n).sqrt();
        assert!(f64::from(x) / 65_536.0 < exact + 1e-4, "{n}");
        roots.push(f64::from(x) / 65_536.0 / exact);
    }
    let expected = [0.5, 0.5625, 0.487_793].into_iter().zip([2.0f64, 3.0, 4.0]).map(|(x, n)| x * n.sqrt());
    for (root, expected) in roots.iter().zip(expected) {
        assert!((root - expected).abs() < 2e-4, "{root} {expected}");
    }
    assert!(roots[20..].iter().all(|r| (0.99..1.001).contains(r)));

    let linux = Params { variant: Variant::Linux, ..params(false) };
    let (drops, _) = standing(&linux, Ecn::NotCapable, 460);
    let times: Vec<u64> = drops.iter().map(|(t, _)| *t).collect();
    // At 150 ms the clock shows what it did at 50, and 100 ms more: not later. Then at 250.998, 300.998, 357.247, 406.03 and 450.2 ms;
    // one packet a millisecond leaves.
    assert_eq!(times, [151, 251, 301, 358, 407, 451]);
    let (rfc, _) = standing(&params(false), Ecn::NotCapable, 460);
    assert!(rfc.len() < drops.len());
}

/// The head is what is dropped, and the packet behind it is what leaves: none is skipped, none comes twice.
#[test]
fn the_head_is_dropped_and_the_next_one_leaves() {
    let mut b = bench(&params(false));
    (0..10).for_each(|n| assert_eq!(b.arrive_at(0, n, 1000, Ecn::NotCapable), Admission::Admit));
    assert_eq!(b.depart_at(10 * MS).map(Left::marked), Some((0, false)));
    assert_eq!(b.depart_at(109 * MS).map(Left::marked), Some((1, false)));
    assert_eq!(b.depart_at(110 * MS).map(Left::marked), Some((3, false)));
    assert_eq!(b.dropped, [2]);
    assert_eq!(b.depart_at(111 * MS).map(Left::marked), Some((4, false)));
}

/// §5.6: a packet that has waited less than target, or that leaves no more than a packet behind, ends it all.
#[test]
fn one_short_wait_or_a_short_queue_ends_the_dropping_state() {
    for short in [true, false] {
        let (_, mut b) = standing(&params(false), Ecn::NotCapable, 300);
        while b.queue.packets() > 3 {
            b.depart_at(300 * MS);
        }
        b.dropped.clear();
        if short {
            // Everything else leaves, then one that has waited for 4 ms before others.
            while b.queue.packets() > 0 {
                b.depart_at(301 * MS);
            }
            (0..9)
                .for_each(|n| assert_eq!(b.arrive_at(302 * MS, n, 1000, Ecn::NotCapable), Admission::Admit));
            b.depart_at(306 * MS);
        } else {
            // Old as they are: one full packet waits behind the first of these.
            b.depart_at(400 * MS);
            b.depart_at(500 * MS);
        }
        b.dropped.clear();
        (0..20).for_each(|n| assert_eq!(b.arrive_at(510 * MS, n, 1000, Ecn::NotCapable), Admission::Admit));
        b.depart_at(520 * MS);
        assert!(b.dropped.is_empty(), "above target again, but not for an interval");
    }
}

/// At 64 kbit/s a packet takes 125 ms, far above target: with no more than one behind it none is dropped.
#[test]
fn a_slow_link_is_kept_busy() {
    let mut b = bench(&params(false));
    for n in 0..100 {
        b.arrive_at(u64::from(n) * 125 * MS, n, 1000, Ecn::NotCapable);
        if n >= 1 {
            b.depart_at(u64::from(n) * 125 * MS + 100 * MS);
        }
    }
    assert_eq!(b.stat("above_target"), 0);
}

/// §5.5: within 16 intervals of the last dropping state it starts from what that one dropped, later from 1. Linux's reading.
#[test]
fn the_count_is_remembered_for_a_while() {
    let c = Variant::Rfc8289.control(Duration(5 * MS), Duration(100 * MS), 1000);
    let entered = |pause: u64, before: (u32, u32)| {
        let drop_next = 1000 * MS;
        let mut v = Vars { count: before.0, lastcount: before.1, drop_next, ..Vars::default() };
        v.enter(&c, drop_next + pause * MS);
        (v.count, v.lastcount)
    };
    assert_eq!(entered(1599, (9, 3)), (6, 6));
    assert_eq!(entered(1600, (9, 3)), (1, 1));
    // A single drop is no rate to start from.
    assert_eq!(entered(10, (4, 3)), (1, 1));
    // Entered before the next drop was due: recent, too.
    let mut v = Vars { count: 5, lastcount: 1, drop_next: 500 * MS, ..Vars::default() };
    v.enter(&c, 490 * MS);
    assert_eq!((v.count, v.drop_next), (4, 540 * MS));
}

/// With ECN each drop is a mark, of the packet that leaves, at the same times; a transport that doesn't understand it loses packets.
#[test]
fn ecn_marks_where_it_would_drop() {
    let (drops, b) = standing(&params(true), Ecn::Ect0, 600);
    let (would, _) = standing(&params(false), Ecn::NotCapable, 600);
    assert!(drops.is_empty());
    assert_eq!((b.stat("marked"), b.stat("above_target")), (would.len() as u64, 0));
    let (lost, b) = standing(&params(true), Ecn::NotCapable, 600);
    assert_eq!((lost, b.stat("marked")), (would, 0));
    let mut b = bench(&params(true));
    (0..10).for_each(|n| assert_eq!(b.arrive_at(0, n, 1000, Ecn::Ect0), Admission::Admit));
    b.depart_at(10 * MS);
    assert_eq!(
        (b.depart_at(110 * MS).map(Left::marked), b.depart_at(111 * MS).map(Left::marked)),
        (Some((1, true)), Some((2, false)))
    );
}

#[test]
fn what_finds_the_queue_full_is_overflow() {
    let mut b = bench(&params(false));
    (0..1000).for_each(|n| assert_eq!(b.arrive_at(0, n, 100, Ecn::NotCapable), Admission::Admit));
    assert_eq!(b.arrive_at(0, 1000, 100, Ecn::NotCapable), Admission::Drop(Cause::OVERFLOW));
    assert_eq!(b.stat("overflow"), 1);
}

#[test]
fn odd_parameters_are_refused_or_remarked_on() {
    let check = |target, limit| {
        let p = Params { target: Duration::from_millis(target), ..params(false) };
        crate::params::fields(p.check(&Context { limit: Some(Backlog::Packets(limit)), ..CONTEXT }))
    };
    assert_eq!(check(5, 100.0), Ok(vec![]));
    assert_eq!(check(100, 100.0), Err("target"));
    // 6 packets of 1,000 B at 10 Mbit/s: 4.8 ms.
    assert_eq!(check(5, 6.0), Ok(vec!["target"]));
}

/// Minutes of a link of 10 Mbit/s, in which Linux's clock of 32 bits starts anew (after 73 minutes): packets at random picoseconds,
/// bursts and pauses. Every packet that leaves, every mark and every drop is that of Linux's arithmetic.
#[test]
fn linuxs_drops_are_those_of_its_clock() {
    for ecn in [false, true] {
        let mut b = bench(&Params { variant: Variant::Linux, ..params(ecn) });
        let mut linux = Linux::default();
        let mut rng = Rng::for_component(3, "arrivals");
        let (mut free, mut at, mut ours) = (0, 4_350_000 * MS, Vec::new());
        for number in 0..100_000 {
            // Ten seconds of 1.3 times the link, ten of a tenth of it; a pause now and then.
            let mean = if (at / (10_000 * MS)).is_multiple_of(2) { 615_384_615.0 } else { 8_000_000_000.0 };
            let pause = if rng.uniform() < 0.0002 { 40_000 * MS } else { 0 };
            at += pause + (-mean * libm::log(1.0 - rng.uniform())) as u64;
            while free <= at && b.queue.packets() > 0 {
                assert_eq!(b.depart_at(free).map(Left::marked), linux.dequeue(free, ecn), "at {free} ps");
                free += 800_000_000;
            }
            ours.append(&mut b.dropped);
            free = free.max(at);
            let kind = if number % 3 == 0 { Ecn::Ect0 } else { Ecn::NotCapable };
            if b.arrive_at(at, number, 1000, kind) == Admission::Admit {
                linux.enqueue(at, number, 1000, number % 3 == 0);
            }
        }
        assert!(at > 4_450_000 * MS && ours.len() > 3_000, "{at} {}", ours.len());
        assert_eq!(ours, linux.dropped);
    }
}

proptest! {
    /// Whatever comes and goes: the packets that leave, the marks and the drops are those of the RFC's pseudocode. Bursts and
    /// pauses long enough for every branch.
    #[test]
    fn agrees_with_the_pseudocode(ecn: bool, steps in prop::collection::vec(
        (1u64..40, 0u32..12, 1u32..10, prop::sample::select(vec![60u32, 500, 1000, 1500]), any::<bool>(), prop::bool::weighted(0.01)), 1..400))
    {
        let mut b = bench(&params(ecn));
        let mut rfc = Rfc::default();
        let (mut now, mut number) = (MS, 0);
        for (gap, arrivals, departures, size, capable, pause) in steps {
            now += if pause { 1000 * MS } else { gap * MS };
            for _ in 0..arrivals {
                let kind = if capable { Ecn::Ect0 } else { Ecn::NotCapable };
                if b.arrive_at(now, number, size, kind) == Admission::Admit {
                    rfc.queue.push_back((number, size, i128::from(now), capable));
                }
                number += 1;
            }
            for _ in 0..departures {
                now += MS / 2;
                prop_assert_eq!(b.depart_at(now).map(Left::marked), rfc.deque(i128::from(now), ecn));
            }
            prop_assert_eq!(&b.dropped, &rfc.dropped);
        }
    }

    /// Packets that wait less than target are never touched, however long and however many.
    #[test]
    fn below_target_nothing_is_dropped(sizes in prop::collection::vec(40u32..1500, 1..500)) {
        let mut b = bench(&params(false));
        for (n, size) in (0..).zip(&sizes) {
            b.arrive_at(u64::from(n) * MS, n, *size, Ecn::NotCapable);
            if n >= 4 {
                prop_assert_eq!(b.depart_at(u64::from(n) * MS + MS / 2).map(Left::marked), Some((n - 4, false)));
            }
        }
    }
}

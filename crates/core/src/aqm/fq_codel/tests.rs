//! FQ-CoDel's laws by hand, and against RFC 8290's text as a program of its own.

use super::oracle::Rfc;
use super::*;
use crate::testing::{self, *};

fn context(limit: Backlog) -> Context {
    testing::context(Some(Rate(10_000_000)), limit)
}

fn params() -> Params {
    crate::params::defaults()
}

fn bench(p: &Params, limit: Backlog) -> Bench {
    Bench::new(AnyAqm::FqCodel(Box::new(p.build(&context(limit)))), limit).drawing(1, "fq_codel")
}

/// `n` flows with a queue each.
fn apart(n: usize, queues: u64) -> Vec<u32> {
    let (mut hash, mut rng) = (Hash::new(queues), Rng::for_component(1, "fq_codel"));
    let mut taken = Vec::new();
    let mut fresh = |flow: &u32| {
        let queue = hash.queue(FlowId(*flow), &mut rng);
        let fresh = !taken.contains(&queue);
        taken.push(queue);
        fresh
    };
    (0..).filter(|flow| fresh(flow)).take(n).collect()
}

/// §1.3: a flow that builds no queue goes before those that do.
#[test]
fn a_sparse_flow_gets_in_first() {
    let mut b = bench(&params(), Backlog::Packets(1000.0));
    let f = apart(3, 1024);
    for _ in 0..9 {
        b.admits(0, f[0], 1000);
        b.admits(0, f[1], 1000);
    }
    assert_eq!(b.flows(4), [f[0], f[1], f[0], f[1]]);
    b.admits(0, f[2], 100);
    assert_eq!(b.flows(3), [f[2], f[0], f[1]]);
}

/// §5.1: CoDel's state is each queue's own: the flow with a standing queue loses packets, the one beside it none.
#[test]
fn codel_drops_of_the_queue_that_stands() {
    let mut b = bench(&params(), Backlog::Packets(1000.0));
    let f = apart(2, 1024);
    (0..60).for_each(|_| assert!(b.admits(0, f[0], 1000)));
    let mut of_the_other = 0;
    for t in 1..500 {
        b.admits(t * MS, f[0], 1000);
        if t % 5 == 0 {
            b.admits(t * MS, f[1], 100);
            // It leaves before the others: nothing has been sent since.
            assert_eq!(b.depart_at(t * MS).map(|p| p.flow), Some(f[1]));
            of_the_other += 1;
        }
        b.depart_at(t * MS);
    }
    assert_eq!(of_the_other, 99);
    assert!(b.stat("above_target") > 3, "{}", b.stat("above_target"));
    let own = |n: &u32| *n >= 60 && (n - 60) % 6 == 5;
    assert!(!b.dropped.iter().any(own), "none of the other's");
}

/// §1.3: "with only one queue, FQ-CoDel behaves essentially the same as CoDel by itself": packet by packet.
#[test]
fn with_one_queue_it_is_codel() {
    let p = Params { flows: 1, ..params() };
    let limit = Backlog::Packets(1000.0);
    let mut b = bench(&p, limit);
    let mut alone = bench(&p, limit);
    alone.aqm = AnyAqm::Codel(Box::new(p.codel.build(&context(limit))));
    alone.queue = Fifo::before(limit, &alone.aqm);
    for t in 0..2000 {
        let busy = t % 500 < 300;
        for flow in 0..if busy { 2 } else { 0 } {
            let ecn = if t % 3 == 0 { Ecn::Ect0 } else { Ecn::NotCapable };
            assert_eq!(b.arrive_at(t * MS, flow, 1000, ecn), alone.arrive_at(t * MS, flow, 1000, ecn));
        }
        assert_eq!(b.depart_at(t * MS), alone.depart_at(t * MS));
    }
    assert_eq!(b.dropped, alone.dropped);
    assert!(b.dropped.len() > 20 && b.stat("marked") > 5);
}

/// §4.1: over the limit half of the packets of the queue with most bytes go, from its head; nobody else loses any.
#[test]
fn the_fattest_loses() {
    let mut b = bench(&params(), Backlog::Packets(100.0));
    let f = apart(3, 1024);
    (0..40).for_each(|_| assert!(b.admits(0, f[0], 1000)));
    (0..60).for_each(|_| assert!(b.admits(0, f[1], 100)));
    assert!(b.admits(0, f[2], 1000));
    // The 40 packets hold most bytes; the other queue's 60 are more, but small.
    assert_eq!(b.evicted, (0..20).collect::<Vec<_>>());
    assert_eq!((b.queue.packets(), b.stat("evicted"), b.stat("overflow")), (81, 20, 0));
    assert_eq!(b.queue.counts().dropped[Cause::EVICTED.index()], [20, 0, 0]);
}

/// §4.1: "up to a maximum of 64 packets"; `drop_batch` is another maximum.
#[test]
fn no_more_than_a_batch_is_dropped_at_once() {
    for (batch, dropped) in [(64, 64), (1, 1), (1000, 501)] {
        let p = Params { drop_batch: batch, ..params() };
        let mut b = bench(&p, Backlog::Packets(1000.0));
        (0..=1000).for_each(|_| assert!(b.admits(0, 1, 1000)));
        assert_eq!(b.evicted.len(), dropped);
    }
}

/// Linux: half the bytes, and CoDel counts them.
#[test]
fn linux_drops_half_the_bytes() {
    let p = Params { variant: Variant::Linux, ..params() };
    let mut b = bench(&p, Backlog::Packets(10.0));
    b.admits(0, 1, 1500);
    (0..9).for_each(|_| assert!(b.admits(0, 1, 100)));
    assert!(b.admits(0, 1, 100));
    assert_eq!(b.evicted, [0], "1,500 of 2,500 B");
    let AnyAqm::FqCodel(aqm) = &b.aqm else { panic!("it is") };
    let counted = aqm.scheduler.all_within().map(|v| format!("{v:?}")).filter(|v| v.contains("count: 1,"));
    assert_eq!(counted.count(), 1);
    // The RFC: half the packets.
    let mut b = bench(&params(), Backlog::Packets(10.0));
    b.admits(0, 1, 1500);
    (0..10).for_each(|_| assert!(b.admits(0, 1, 100)));
    assert_eq!(b.evicted, [0, 1, 2, 3, 4, 5]);
}

/// RFC 8289 §4.4: CoDel rests while no more than a packet waits in all queues together, not while each has one of its own.
#[test]
fn whose_backlog_lets_codel_rest() {
    for variant in [Variant::Rfc8289, Variant::Linux] {
        let p = Params { variant, ..params() };
        let mut b = bench(&p, Backlog::Packets(1000.0));
        let f = apart(20, 1024);
        // Twenty flows with one packet in their queues each, again and again.
        for t in 0..40 {
            f.iter().for_each(|flow| assert!(b.admits(t * 20 * MS, *flow, 1000)));
            (0..20).for_each(|i| {
                b.depart_at((t * 20 + 10 + i / 2) * MS);
            });
        }
        assert!(b.stat("above_target") > 0, "{variant:?}");
        // One flow alone with no more than a packet behind the one that leaves.
        let mut b = bench(&p, Backlog::Packets(1000.0));
        b.admits(0, f[0], 1000);
        for t in 1..400 {
            b.admits(t * 10 * MS, f[0], 1000);
            b.depart_at((t * 10 + 9) * MS);
        }
        assert_eq!(b.stat("above_target"), 0, "{variant:?}");
    }
}

/// If only the arrival is over the limit, it is dropped; nothing else is dropped for one that can't fit.
#[test]
fn an_arrival_over_the_limit_is_dropped() {
    let mut b = bench(&params(), Backlog::Packets(1.0));
    let f = apart(2, 1024);
    assert!(b.admits(0, f[0], 100));
    assert_eq!(b.arrive_at(0, f[1], 1000, Ecn::NotCapable), Admission::Drop(Cause::OVERFLOW));
    assert_eq!((b.queue.packets(), b.stat("overflow")), (1, 1));
    let mut b = bench(&params(), Backlog::Bytes(5000.0));
    (0..5).for_each(|_| assert!(b.admits(0, 1, 1000)));
    assert_eq!(b.arrive_at(0, 2, 9000, Ecn::NotCapable), Admission::Drop(Cause::OVERFLOW));
    assert_eq!((b.queue.packets(), b.evicted.len()), (5, 0));
}

/// A queue whose only packet was dropped on arrival is in the lists all the same, and does no harm there.
#[test]
fn a_queue_without_a_packet_in_the_lists() {
    let mut b = bench(&params(), Backlog::Packets(1.0));
    let f = apart(2, 1024);
    b.admits(0, f[0], 100);
    assert_eq!(b.arrive_at(0, f[1], 1000, Ecn::NotCapable), Admission::Drop(Cause::OVERFLOW));
    assert_eq!((b.flows(9), b.queue.packets()), (vec![f[0]], 0));
    assert!(b.admits(0, f[1], 1000));
    assert_eq!(b.flows(9), [f[1]]);
}

#[test]
fn memory_is_a_limit_of_its_own() {
    let p = Params { memory_limit: Some(Bytes(10_000)), ..params() };
    let mut b = bench(&p, Backlog::Packets(1000.0));
    for _ in 0..40 {
        assert!(b.admits(0, 1, 1000));
        assert!(b.queue.bytes() <= 10_000);
    }
    assert_eq!(b.arrive_at(0, 1, 10_001, Ecn::NotCapable), Admission::Drop(Cause::OVERFLOW));
    let full = b.queue.packets();
    assert_eq!(u64::from(full) + b.stat("evicted"), 40);
}

/// §5.2.7: marks what has waited longer than `ce_threshold`, with or without `ecn`.
#[test]
fn ce_threshold_marks_early() {
    for ecn in [true, false] {
        let mut p = Params { ce_threshold: Some(Duration(MS)), ..params() };
        p.codel.ecn = ecn;
        let mut b = bench(&p, Backlog::Packets(1000.0));
        b.arrive_at(0, 1, 1000, Ecn::Ect0);
        b.arrive_at(0, 1, 1000, Ecn::Ect0);
        b.arrive_at(0, 1, 1000, Ecn::NotCapable);
        let marks: Vec<bool> =
            [MS, MS + 1, 9 * MS].map(|t| b.depart_at(t).expect("it waits").marked().1).into();
        assert_eq!(marks, [false, true, false]);
        assert_eq!((b.stat("ce_marked"), b.stat("marked")), (1, 0));
    }
}

/// A fixed sequence of decisions: two flows at twice the link's rate between them, one that sends now and then, 20 packets of room.
#[test]
fn golden_sequence() {
    let mut b = bench(&params(), Backlog::Packets(20.0));
    let f = apart(3, 1024);
    let mut order = String::new();
    for t in 0..400 {
        b.admits(t * MS, f[0], 1000);
        if t % 2 == 0 {
            b.admits(t * MS, f[1], 500);
        }
        if t % 40 == 7 {
            b.admits(t * MS, f[2], 100);
        }
        let name = b
            .depart_at(t * MS)
            .map_or('-', |p| ['a', 'b', 'c'][f.iter().position(|x| *x == p.flow).expect("known")]);
        if t >= 340 {
            order.push(name);
        }
    }
    assert_eq!(order, "babababababababababababababcbabababababababababababababababa");
    assert_eq!((b.dropped, b.evicted.len()), (vec![140, 304, 405, 493, 577], 190));
}

#[test]
fn odd_parameters_are_refused_or_remarked_on() {
    let check = |p: &Params, limit, rate| {
        let context = Context { link_rate: Some(Rate(rate)), ..context(limit) };
        crate::params::fields(p.check(&context))
    };
    let long = Backlog::Packets(1000.0);
    assert_eq!(check(&params(), long, 10_000_000), Ok(vec![]));
    // §5.2.2: at 1 Mbit/s 1,000 B take 8 ms.
    assert_eq!(check(&params(), long, 1_000_000), Ok(vec!["target"]));
    let small = Params { flow_quantum: Some(Bytes(10)), ..params() };
    assert_eq!(check(&small, long, 10_000_000), Err("flow_quantum"));
    let large = Params { flow_quantum: Some(Bytes(9000)), ..params() };
    assert_eq!(check(&large, Backlog::Packets(8.0), 10_000_000), Err("flow_quantum"));
    let tight = Params { memory_limit: Some(Bytes(999)), ..params() };
    assert_eq!(check(&tight, long, 10_000_000), Err("memory_limit"));
    let mut p = params();
    p.codel.target = Duration(100 * MS);
    assert_eq!(check(&p, long, 10_000_000), Err("target"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// For any traffic, departures, marks, CoDel's drops and those over the limit are those of the RFC's text.
    /// Four queues for eight flows: some collide.
    #[test]
    fn agrees_with_the_text(linux: bool, limit in 4usize..80, quantum in prop::sample::select(vec![100u64, 1000, 3000]),
        steps in prop::collection::vec(
        (1u64..40, 0u32..12, 0u32..9, prop::sample::select(vec![60u32, 500, 1000, 1500]), any::<bool>(), prop::bool::weighted(0.01)), 1..200))
    {
        let variant = if linux { Variant::Linux } else { Variant::Rfc8289 };
        let p = Params { flows: 4, flow_quantum: Some(Bytes(quantum)), variant, ..params() };
        let mut b = bench(&p, Backlog::Packets(limit as f64));
        let AnyAqm::FqCodel(aqm) = &mut b.aqm else { panic!("it is") };
        // Linux's control law is tried with CoDel.
        aqm.control = p.codel.control(Variant::Rfc8289, &context(Backlog::Packets(limit as f64)));
        let mut hash = Hash::new(4);
        let mut same = Rng::for_component(1, "fq_codel");
        let mut rfc = Rfc::new(linux, limit, quantum as i64, 4);
        let (mut now, mut flow) = (MS, 0);
        for (gap, arrivals, departures, size, capable, pause) in steps {
            now += if pause { 1000 * MS } else { gap * MS };
            for i in 0..arrivals {
                flow = (flow * 5 + i + 1) % 8;
                let kind = if capable { Ecn::Ect0 } else { Ecn::NotCapable };
                let number = b.arrived;
                let verdict = b.arrive_at(now, flow, size, kind);
                let queue = hash.queue(FlowId(flow), &mut same) as usize;
                rfc.enqueue(queue, (number, size, i128::from(now), capable));
                prop_assert_eq!(verdict == Admission::Admit, !rfc.refused);
                prop_assert_eq!(&b.evicted, &rfc.evicted);
            }
            for _ in 0..departures {
                now += MS / 2;
                let left = b.depart_at(now).map(Left::marked);
                prop_assert_eq!(left, rfc.dequeue(i128::from(now), true));
            }
            let mut dropped = std::mem::take(&mut b.dropped);
            dropped.sort_unstable();
            prop_assert_eq!(dropped, rfc.take_dropped());
        }
    }

    /// Every packet is sent, dropped or waits; each flow's leave in the order in which they came; no limit is ever exceeded.
    #[test]
    fn conserves(linux: bool, bytes: bool, limit in 2u32..60, memory in 4000u64..40_000, batch in 1u64..9,
        steps in prop::collection::vec((0u32..6, 40u32..1500, 0u32..3, 0u64..30), 1..400))
    {
        let variant = if linux { Variant::Linux } else { Variant::Rfc8289 };
        let p = Params { flows: 4, drop_batch: batch, memory_limit: Some(Bytes(memory)), variant, ..params() };
        let limit = if bytes { Backlog::Bytes(f64::from(limit) * 1000.0) } else { Backlog::Packets(f64::from(limit)) };
        let mut b = bench(&p, limit);
        let (mut now, mut last, mut sent, mut refused) = (0, [0; 6], 0, 0);
        for (flow, size, departures, gap) in steps {
            now += gap * MS;
            refused += u64::from(!b.admits(now, flow, size));
            for _ in 0..departures {
                if let Some(Left { number, flow, .. }) = b.depart_at(now) {
                    prop_assert!(number >= last[flow as usize]);
                    last[flow as usize] = number + 1;
                    sent += 1;
                }
            }
            let within = match limit {
                Backlog::Packets(n) => f64::from(b.queue.packets()) <= n,
                Backlog::Bytes(n) => b.queue.bytes() as f64 <= n,
            };
            prop_assert!(within && b.queue.bytes() <= memory);
            let gone = b.dropped.len() + b.evicted.len() + b.queue.packets() as usize;
            prop_assert_eq!(u64::from(b.arrived), sent + refused + gone as u64);
            prop_assert_eq!((b.stat("above_target"), b.stat("evicted"), b.stat("overflow")),
                (b.dropped.len() as u64, b.evicted.len() as u64, refused));
        }
        // Nothing is left behind in a queue that nobody visits.
        while b.depart_at(now).is_some() {}
        prop_assert_eq!(b.queue.packets(), 0);
    }
}

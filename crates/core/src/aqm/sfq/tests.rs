//! SFQ's laws by hand, and against a slow one that looks through all queues.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::testing::{self, *};

fn context(limit: Backlog) -> Context {
    testing::context(Some(Rate(10_000_000)), limit)
}

fn params() -> Params {
    crate::params::defaults()
}

fn bench(p: &Params, limit: Backlog) -> Bench {
    Bench::new(AnyAqm::Sfq(Box::new(p.build(&context(limit)))), limit).drawing(1, "sfq")
}

/// The flow whose first packet came first sends first, then they take turns of bytes.
#[test]
fn queues_take_turns_of_bytes() {
    let mut b = bench(&params(), Backlog::Packets(100.0));
    for _ in 0..9 {
        b.admits(0, 2, 500);
        b.admits(0, 1, 1000);
    }
    assert_eq!(b.flows(7), [2, 2, 1, 2, 2, 1, 2]);
    // A new flow waits for its turn, unlike in FQ-CoDel.
    b.admits(0, 3, 100);
    assert_eq!(b.flows(3), [2, 1, 3]);
}

/// Over the limit the longest queue in packets loses its tail; the arrival, if that is where it went.
#[test]
fn the_longest_queue_loses_its_tail() {
    let mut b = bench(&params(), Backlog::Packets(10.0));
    (0..6).for_each(|_| assert!(b.admits(0, 1, 100)));
    (0..4).for_each(|_| assert!(b.admits(0, 2, 1500)));
    assert!(b.admits(0, 3, 1000));
    assert_eq!((b.evicted.clone(), b.queue.packets()), (vec![5], 10));
    assert!(!b.admits(0, 1, 100));
    assert_eq!((b.stat("evicted"), b.stat("overflow")), (1, 1));
    // 5 and 5: the one that came to it last loses.
    assert!(b.admits(0, 4, 100));
    assert_eq!(b.evicted, [5, 4]);
    assert!(!b.admits(0, 2, 100) || b.evicted.len() == 3);
}

#[test]
fn or_its_head() {
    let mut b = bench(&Params { headdrop: true, ..params() }, Backlog::Packets(10.0));
    (0..10).for_each(|_| assert!(b.admits(0, 1, 100)));
    assert!(b.admits(0, 1, 100) && b.admits(0, 2, 100));
    assert_eq!((b.evicted.clone(), b.stat("overflow")), (vec![0, 1], 0));
    assert_eq!(b.depart_at(0).map(Left::of_flow), Some((2, 1)));
}

/// Where every queue has one packet, the one whose turn it is loses.
#[test]
fn among_single_packets_the_turn_decides() {
    let mut b = bench(&params(), Backlog::Packets(3.0));
    (0..3).for_each(|flow| assert!(b.admits(0, flow, 100)));
    assert!(b.admits(0, 3, 100));
    assert_eq!(b.evicted, [0]);
    assert_eq!(b.flows(9), [1, 2, 3]);
}

#[test]
fn a_queue_has_a_depth() {
    for headdrop in [false, true] {
        let p = Params { depth: 3, headdrop, ..params() };
        let mut b = bench(&p, Backlog::Packets(100.0));
        (0..3).for_each(|_| assert!(b.admits(0, 1, 100)));
        assert_eq!(b.admits(0, 1, 100), headdrop);
        assert!(b.admits(0, 2, 100), "another flow's has room");
        assert_eq!((b.evicted.len(), b.stat("too_deep")), if headdrop { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn a_flow_without_a_queue_is_dropped() {
    let mut b = bench(&Params { flows: 2, ..params() }, Backlog::Packets(100.0));
    assert_eq!([1, 2, 3, 1].map(|flow| b.admits(0, flow, 100)), [true, true, false, true]);
    assert_eq!(b.flows(3), [1, 1, 2]);
    assert!(b.admits(0, 3, 100), "the second's queue is free");
}

/// McKenney: flows that collide do not do so for ever. What waits goes with its flow, in order.
#[test]
fn a_new_salt_separates_flows() {
    let p = Params { divisor: 2, perturb: Some(Duration(10 * MS)), ..params() };
    let mut b = bench(&p, Backlog::Packets(100.0));
    // Three flows in two queues; an order by turns shows who shares one.
    let mut shared = std::collections::BTreeSet::new();
    for round in 0..40 {
        (0..4).for_each(|_| (0..3).for_each(|flow| assert!(b.admits(round * 10 * MS, flow, 1000))));
        let order: Vec<(u32, u32)> =
            (0..12).filter_map(|_| b.depart_at(round * 10 * MS).map(Left::of_flow)).collect();
        for flow in 0..3 {
            let own: Vec<u32> = order.iter().filter(|p| p.1 == flow).map(|p| p.0).collect();
            assert!(own.is_sorted() && own.len() == 4);
        }
        shared.insert(order[..4].iter().map(|p| p.1).collect::<Vec<_>>());
    }
    assert!(shared.len() >= 3, "{shared:?}");
    // Waiting over a change of salt: nothing is lost, and each flow's order is kept.
    (0..9).for_each(|_| (0..3).for_each(|flow| assert!(b.admits(400 * MS, flow, 1000))));
    let order: Vec<(u32, u32)> =
        (0..27).filter_map(|i| b.depart_at((400 + 7 * i) * MS).map(Left::of_flow)).collect();
    assert_eq!((order.len(), b.evicted.len()), (27, 0));
    for flow in 0..3 {
        assert!(order.iter().filter(|p| p.1 == flow).map(|p| p.0).is_sorted());
    }
}

#[test]
fn odd_parameters_are_refused_or_remarked_on() {
    let check = |p: &Params| p.check(&context(Backlog::Packets(100.0))).map(|w| w.len()).map_err(|f| f.field);
    assert_eq!(check(&params()), Ok(0));
    assert_eq!(check(&Params { divisor: 100, ..params() }), Ok(1));
    assert_eq!(check(&Params { flow_quantum: Some(Bytes(9)), ..params() }), Err("flow_quantum"));
}

/// A fixed sequence of decisions: three flows of unlike sizes at twice the link's rate, 12 packets of room.
#[test]
fn golden_sequence() {
    let mut b = bench(&params(), Backlog::Packets(12.0));
    let mut order = String::new();
    for t in 0..60 {
        b.admits(t * MS, 0, 1000);
        if t % 2 == 0 {
            b.admits(t * MS, 1, 500);
            b.admits(t * MS, 2, 1500);
        }
        order.push(b.depart_at(t * MS).map_or('-', |p| ['a', 'b', 'c'][p.flow as usize]));
    }
    assert_eq!(order, "abcabbcabbabcabbcabbabcabbcabbabcabbcabbabcabbcabbabcabbcabb");
    let (evicted, refused) = (&b.evicted, b.stat("overflow"));
    assert_eq!((&evicted[..9], evicted.len(), refused), (&[20, 24, 23, 28, 27, 32, 36, 35, 40][..], 36, 13));
}

/// Everything is looked for in all queues, each time.
struct Slow {
    p: Params,
    limit: usize,
    queues: Vec<VecDeque<(u32, u32, u32)>>,
    /// Of each queue: what it may still send, the hash, and when its length last changed.
    allot: Vec<i64>,
    hash: BTreeMap<u32, usize>,
    changed: Vec<i64>,
    clock: i64,
    round: VecDeque<usize>,
    evicted: Vec<u32>,
    hasher: Hash,
    rng: Rng,
    due: u64,
}

impl Slow {
    fn new(p: &Params, limit: usize) -> Slow {
        let n = p.flows as usize;
        Slow {
            p: p.clone(),
            limit,
            queues: vec![VecDeque::new(); n],
            allot: vec![0; n],
            hash: BTreeMap::new(),
            changed: (0..n as i64).map(|i| -i).collect(),
            clock: 0,
            round: VecDeque::new(),
            evicted: Vec::new(),
            hasher: Hash::new(p.divisor),
            rng: Rng::for_component(1, "sfq"),
            due: p.perturb.map_or(u64::MAX, |t| t.0),
        }
    }

    fn touch(&mut self, q: usize) {
        self.clock += 1;
        self.changed[q] = self.clock;
        if self.queues[q].is_empty() {
            self.hash.retain(|_, of| *of != q);
            self.round.retain(|of| *of != q);
        }
    }

    fn find(&mut self, flow: u32) -> Option<usize> {
        let h = self.hasher.queue(FlowId(flow), &mut self.rng);
        if let Some(q) = self.hash.get(&h) {
            return Some(*q);
        }
        let free = (0..self.queues.len()).filter(|q| self.queues[*q].is_empty());
        let q = free.max_by_key(|q| self.changed[*q])?;
        self.hash.insert(h, q);
        Some(q)
    }

    fn put(&mut self, q: usize, packet: (u32, u32, u32)) {
        self.queues[q].push_back(packet);
        self.touch(q);
        if self.queues[q].len() == 1 {
            self.round.push_back(q);
            self.allot[q] = self.p.flow_quantum.map_or(1000, |b| b.0 as i64);
        }
    }

    fn perturb(&mut self, now: u64) {
        if now < self.due {
            return;
        }
        let period = self.p.perturb.expect("it is due").0;
        self.due = (now / period + 1) * period;
        self.hasher.forget();
        let mut all = Vec::new();
        for q in 0..self.queues.len() {
            while let Some(packet) = self.queues[q].pop_front() {
                all.push(packet);
                self.touch(q);
            }
        }
        for packet in all {
            match self.find(packet.1).filter(|q| self.queues[*q].len() < self.p.depth as usize) {
                Some(q) => self.put(q, packet),
                None => self.evicted.push(packet.0),
            }
        }
    }

    fn arrive(&mut self, now: u64, packet: (u32, u32, u32)) -> bool {
        self.perturb(now);
        let Some(q) = self.find(packet.1) else { return false };
        if self.queues[q].len() == self.p.depth as usize {
            if self.p.headdrop {
                self.evicted.push(self.queues[q].pop_front().expect("it is full").0);
                self.queues[q].push_back(packet);
            }
            return self.p.headdrop;
        }
        self.put(q, packet);
        if self.queues.iter().map(VecDeque::len).sum::<usize>() <= self.limit {
            return true;
        }
        let longest = self.queues.iter().map(VecDeque::len).max().expect("there are queues");
        let of_longest = (0..self.queues.len()).filter(|q| self.queues[*q].len() == longest);
        let latest = of_longest.max_by_key(|q| self.changed[*q]).expect("one is");
        let victim = if longest > 1 { latest } else { self.round[0] };
        let queue = &mut self.queues[victim];
        let gone = if self.p.headdrop { queue.pop_front() } else { queue.pop_back() }.expect("not empty").0;
        self.touch(victim);
        if gone != packet.0 {
            self.evicted.push(gone);
        }
        gone != packet.0
    }

    fn depart(&mut self, now: u64) -> Option<(u32, u32)> {
        self.perturb(now);
        loop {
            let q = *self.round.front()?;
            if self.allot[q] <= 0 {
                self.allot[q] += self.p.flow_quantum.map_or(1000, |b| b.0 as i64);
                self.round.rotate_left(1);
                continue;
            }
            let packet = self.queues[q].pop_front()?;
            self.allot[q] -= i64::from(packet.2);
            self.touch(q);
            return Some((packet.0, packet.1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Whatever comes and goes, and whenever the salt changes: who leaves, who is evicted and who is refused.
    #[test]
    fn agrees_with_one_that_looks_through_all(
        headdrop: bool, limit in 1usize..40, depth in 1u64..20, flows in 1u64..9, divisor in 1u64..16, quantum in 64u64..3000,
        perturb in prop::option::of(20u64..200),
        steps in prop::collection::vec((0u32..12, 40u32..1500, 0u32..3, 0u64..20), 1..300))
    {
        let p = Params { headdrop, depth, flows, divisor, flow_quantum: Some(Bytes(quantum)),
            perturb: perturb.map(|t| Duration(t * MS)) };
        let mut b = bench(&p, Backlog::Packets(limit as f64));
        let mut slow = Slow::new(&p, limit);
        let mut now = 0;
        for (flow, size, departures, gap) in steps {
            now += gap * MS;
            let number = b.arrived;
            prop_assert_eq!(b.admits(now, flow, size), slow.arrive(now, (number, flow, size)));
            for _ in 0..departures {
                prop_assert_eq!(b.depart_at(now).map(Left::of_flow), slow.depart(now));
            }
            prop_assert_eq!(&b.evicted, &slow.evicted);
            prop_assert_eq!(b.queue.packets() as usize, slow.queues.iter().map(VecDeque::len).sum::<usize>());
        }
    }

    /// With a limit in bytes: every packet is sent, dropped or waits, the limit holds, nothing is left behind.
    #[test]
    fn conserves(headdrop: bool, limit in 1000u32..20_000, depth in 1u64..9,
        steps in prop::collection::vec((0u32..6, 40u32..1500, 0u32..3), 1..300))
    {
        let p = Params { headdrop, depth, flows: 4, ..params() };
        let mut b = bench(&p, Backlog::Bytes(f64::from(limit)));
        let (mut sent, mut refused) = (0, 0);
        for (flow, size, departures) in steps {
            refused += usize::from(!b.admits(0, flow, size));
            sent += (0..departures).filter_map(|_| b.depart_at(0)).count();
            prop_assert!(b.queue.bytes() <= u64::from(limit));
            prop_assert_eq!(b.arrived as usize, sent + refused + b.evicted.len() + b.queue.packets() as usize);
        }
        while b.depart_at(0).is_some() {}
        prop_assert_eq!(b.queue.packets(), 0);
        prop_assert_eq!(b.stat("evicted") as usize, b.evicted.len());
        prop_assert_eq!((b.stat("overflow") + b.stat("too_deep")) as usize, refused);
    }
}

use super::*;
use crate::testing::*;

/// Queues of packet sizes under the scheduler.
struct Bench {
    scheduler: Scheduler<()>,
    queues: Vec<Vec<u32>>,
}

impl Bench {
    fn new(queues: usize, quantum: u64) -> Bench {
        let scheduler = Scheduler::new(queues as u64, Bytes(quantum), true, ());
        Bench { scheduler, queues: vec![Vec::new(); queues] }
    }

    fn arrive(&mut self, queue: u32, size: u32) {
        self.queues[queue as usize].push(size);
        self.scheduler.arrived(queue);
    }

    /// The queue and size of what leaves.
    fn depart(&mut self) -> Option<(u32, u32)> {
        let queues = &self.queues;
        let next = self.scheduler.next(|q| queues[q as usize].len() as u32, |_| ())?;
        let size = self.queues[next as usize].remove(0);
        self.scheduler.sent(next, size);
        Some((next, size))
    }

    fn order(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.depart().expect("something waits").0).collect()
    }
}

/// RFC 8290 §4.2: new flows go first; of several, the one that came first.
#[test]
fn a_sparse_flow_gets_in_first() {
    let mut b = Bench::new(4, 1000);
    for _ in 0..9 {
        (0..2).for_each(|q| b.arrive(q, 1000));
    }
    assert_eq!(b.order(5), [0, 1, 0, 1, 0]);
    b.arrive(3, 100);
    b.arrive(2, 100);
    assert_eq!(b.order(5), [3, 2, 1, 0, 1]);
}

/// §3: a queue with packets of a third of the quantum sends three of them for one of a full quantum.
#[test]
fn turns_are_of_bytes() {
    let mut b = Bench::new(2, 1500);
    for _ in 0..9 {
        b.arrive(0, 500);
        b.arrive(1, 1500);
    }
    assert_eq!(b.order(12), [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]);
}

/// §3: credits of zero or less end the turn; what was sent beyond the quantum is owed in the next.
#[test]
fn what_is_sent_beyond_the_quantum_is_owed() {
    let mut b = Bench::new(2, 1000);
    for _ in 0..9 {
        b.arrive(0, 1400);
        b.arrive(1, 1000);
    }
    // Queue 0 owes 400, 800, 1,200: there it misses a turn.
    assert_eq!(b.order(8), [0, 1, 0, 1, 0, 1, 1, 0]);
}

/// §4.2, §8: a new queue that empties goes to the end of the old ones, and is not new again until it has come up there.
#[test]
fn a_queue_that_empties_from_new_goes_to_old() {
    let mut b = Bench::new(3, 1000);
    (0..9).for_each(|_| b.arrive(0, 1000));
    (0..9).for_each(|_| b.arrive(1, 1000));
    b.arrive(2, 100);
    assert_eq!(b.order(3), [0, 1, 2]);
    // It still has credits, so it stays at the head of the new ones until it is found empty; then it waits behind 0 and 1.
    assert_eq!(b.scheduler.counts(), (1, 2, 3));
    assert_eq!(b.order(1), [0]);
    assert_eq!(b.scheduler.counts(), (0, 3, 3));
    b.arrive(2, 100);
    assert_eq!(b.order(2), [1, 2]);
    assert_eq!(b.scheduler.counts(), (0, 3, 3), "not new again");
    // Found empty as an old one, it leaves; then it is new.
    assert_eq!(b.order(3), [0, 1, 0]);
    assert_eq!(b.scheduler.counts(), (0, 2, 3));
    b.arrive(2, 100);
    assert_eq!((b.order(1), b.scheduler.counts().2), (vec![2], 4));
}

/// §4.2: even where it is alone. Linux: then it leaves at once.
#[test]
fn an_empty_new_queue_alone() {
    for (by_old, old) in [(true, 1), (false, 0)] {
        let mut b = Bench::new(3, 1000);
        b.scheduler.by_old = by_old;
        (0..2).for_each(|q| b.arrive(q, 100));
        assert_eq!(b.order(1), [0]);
        // Queue 0 is found empty before queue 1 is.
        assert_eq!(b.order(1), [1]);
        assert_eq!(b.scheduler.counts().1, old);
        assert_eq!((b.depart(), b.scheduler.counts()), (None, (0, 0, 2)));
    }
}

/// §8: a flow that always has its next packet there the moment its queue is empty gets its share and no more.
#[test]
fn nobody_is_starved() {
    let mut b = Bench::new(2, 1000);
    (0..2000).for_each(|_| b.arrive(0, 1000));
    let mut sent = [0u32; 2];
    for _ in 0..1000 {
        if b.queues[1].is_empty() {
            b.arrive(1, 1000);
        }
        let (queue, size) = b.depart().expect("something waits");
        sent[queue as usize] += size;
    }
    assert!(sent[0].abs_diff(sent[1]) <= 2000, "{sent:?}");
}

/// §5.3: "for 100 flows, the probability of no collision is 90.78%", of each of them, with 1,024 queues.
#[test]
fn flows_collide_as_often_as_by_chance() {
    let (seeds, flows) = (300, 100);
    let mut alone = 0;
    for seed in 0..seeds {
        let mut rng = Rng::for_component(seed, "salt");
        let mut hash = Hash::new(1024);
        let mut load = [0u32; 1024];
        let queues: Vec<u32> = (0..flows).map(|f| hash.queue(FlowId(f), &mut rng)).collect();
        queues.iter().for_each(|q| load[*q as usize] += 1);
        alone += queues.iter().filter(|q| load[**q as usize] == 1).count();
    }
    let share = alone as f64 / (seeds as f64 * f64::from(flows));
    assert!((share - 0.9078).abs() < 0.007, "{share}");
}

/// §4.1, §8: a flow keeps its queue; which one it is depends on the seed, and every queue is used.
#[test]
fn the_hash_is_salted() {
    let place = |seed, flow| {
        let mut hash = Hash::new(16);
        let mut rng = Rng::for_component(seed, "salt");
        let first = hash.queue(FlowId(flow), &mut rng);
        assert!((0..20).all(|_| hash.queue(FlowId(flow), &mut rng) == first));
        first
    };
    let used: std::collections::BTreeSet<u32> = (0..200).map(|flow| place(1, flow)).collect();
    assert_eq!(used, (0..16).collect());
    assert!((0..200).any(|flow| place(1, flow) != place(2, flow)));
}

#[test]
fn the_fattest_is_the_first_of_equals() {
    let mut b = Bench::new(5, 1000);
    assert_eq!(b.scheduler.fattest(|_| 9), None);
    [4, 3, 1].into_iter().for_each(|q| b.arrive(q, 1000));
    b.arrive(1, 1000);
    assert_eq!(b.order(3), [4, 3, 1]);
    assert_eq!(b.scheduler.fattest(|q| [9, 7, 9, 5, 5][q as usize]), Some(1), "0 and 2 are in no list");
    assert_eq!(b.scheduler.fattest(|_| 0), Some(1));
    assert_eq!(b.scheduler.fattest(|q| u64::from(q > 1)), Some(3));
}

#[test]
fn a_quantum_is_in_bounds_and_within_the_limit() {
    let check = |quantum, limit| {
        let limit = Some(limit);
        let rate = Some(Rate(1_000_000));
        let context = Context { link_rate: rate, contract: None, packet: Bytes(1500), limit };
        check_quantum(quantum, &context).is_ok()
    };
    assert!(check(None, Backlog::Packets(1.0)) && !check(None, Backlog::Packets(0.9)));
    assert!(!check(None, Backlog::Bytes(1499.0)) && check(Some(Bytes(300)), Backlog::Bytes(1499.0)));
    assert!(!check(Some(Bytes(63)), Backlog::Packets(9.0)));
    assert!(!check(Some(Bytes(2_000_000_000)), Backlog::Packets(1e9)));
}

proptest! {
    /// §3: while two queues always have something to send, what they have sent differs by less than a quantum and two packets,
    /// whatever the sizes, and whatever others do.
    #[test]
    fn shares_are_equal_in_bytes(
        quantum in 100u64..3000,
        sizes in prop::collection::vec((60u32..1500, 60u32..1500, 0u32..4, 60u32..1500), 20..300),
    ) {
        let mut b = Bench::new(4, quantum);
        for (one, two, ..) in &sizes {
            b.arrive(0, *one);
            b.arrive(1, *two);
        }
        let mut sent = [0i64; 2];
        for (.., other, size) in &sizes {
            if *other >= 2 {
                b.arrive(*other, *size);
            }
            let (queue, size) = b.depart().expect("something waits");
            if queue < 2 {
                sent[queue as usize] += i64::from(size);
            }
            if b.queues[..2].iter().any(Vec::is_empty) {
                break;
            }
            let bound = quantum as i64 + 2 * 1500;
            prop_assert!((sent[0] - sent[1]).abs() < bound, "{:?}", sent);
        }
    }
}

/// Where many queues take turns, those named as following are the next two; where few do, none is named.
#[test]
fn the_next_two_turns_are_known_where_many_wait() {
    for (queues, known) in [(MANY + 50, true), (MANY - 50, false)] {
        let mut b = Bench::new(queues as usize, 100);
        for queue in (0..queues).cycle().take(3 * queues as usize) {
            b.arrive(queue, 100);
        }
        for _ in 0..=queues {
            b.depart();
        }
        for _ in 0..20 {
            let (queue, _) = b.depart().expect("something waits");
            let following = b.scheduler.following(queue);
            assert_eq!(following, known.then_some([queue + 1, queue + 2]));
        }
    }
}

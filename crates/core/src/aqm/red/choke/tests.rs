use super::*;
use crate::aqm::red::tests::CONTEXT;
use crate::aqm::red::{EARLY, FORCED};
use crate::packet::{Ecn, FlowId};
use crate::queue::fake::shown;
use crate::queue::fifo::{Fifo, Stamped};
use crate::registry::AnyAqm;
use crate::rng::Rng;
use crate::verdict::Silent;
use proptest::prelude::*;

fn params(candidates: u64, w_q: f64) -> Params {
    Params {
        min_th: Backlog::Packets(5.0),
        max_th: Backlog::Packets(15.0),
        max_p: 0.1,
        candidates,
        common: Common { w_q, ..crate::params::defaults() },
    }
}

/// A queue under CHOKe, and a generator of the same numbers as its own.
struct Bench {
    queue: Fifo<Stamped>,
    aqm: AnyAqm,
    rng: Rng,
}

impl Bench {
    fn new(p: &Params, seed: u64) -> Bench {
        let mut queue = Fifo::new(Backlog::Packets(100.0));
        queue.went_busy();
        let aqm = AnyAqm::Choke(Box::new(p.build(&CONTEXT)));
        Bench { queue, aqm, rng: Rng::for_component(seed, "choke") }
    }

    /// The verdict, and whose packets were evicted.
    fn arrive(&mut self, flow: u32, ecn: Ecn) -> (Admission, Vec<u32>) {
        let packet = Packet { flow: FlowId(flow), size: 1000, ecn, ..Packet::default() };
        let item = Stamped { packet, since: Time::ZERO };
        let said = self.queue.arrive(Time::ZERO, &packet, item, &mut self.aqm, &mut self.rng, &mut Silent);
        let gone = std::iter::from_fn(|| self.queue.take_evicted()).map(|p| p.flow.0).collect();
        (said, gone)
    }

    fn matched(&self) -> u64 {
        shown(&*self.aqm, self.queue.counts())["matched"]
    }
}

/// Fig. 1: up to min_th nothing is drawn, so a flow alone fills the queue that far; above, each of its arrivals meets itself, and takes
/// a waiting packet with it.
#[test]
fn a_flow_alone_meets_itself() {
    let mut b = Bench::new(&params(1, 1.0), 1);
    for waiting in 0..=5 {
        assert_eq!(b.queue.packets(), waiting);
        assert_eq!(b.arrive(7, Ecn::NotCapable), (Admission::Admit, vec![]));
    }
    assert_eq!(b.arrive(7, Ecn::NotCapable), (Admission::Drop(MATCHED), vec![7]));
    assert_eq!((b.queue.packets(), b.matched()), (5, 1));
    // Marks are no way out: a match is always a drop.
    b.arrive(7, Ecn::Ect0);
    assert_eq!(b.arrive(7, Ecn::Ect0), (Admission::Drop(MATCHED), vec![7]));
}

/// A flow's chance to be struck is its share of the queue; several candidates strike more often, 1 − (1 − share)^m.
#[test]
fn a_match_is_as_likely_as_the_flows_share() {
    for (candidates, expected) in [(1, 0.25), (3, 1.0 - 0.75 * 0.75 * 0.75)] {
        let mut hits = 0;
        let tries = 4000;
        for seed in 0..tries {
            let mut b = Bench::new(&params(candidates, 1e-9), seed);
            (0..8).for_each(|n| drop(b.arrive(n % 4, Ecn::NotCapable)));
            let AnyAqm::Choke(choke) = &mut b.aqm else { unreachable!() };
            // Above min_th, and below where RED drops with any likelihood.
            choke.law.vars.avg[0] = 5.000_001;
            hits += u64::from(b.arrive(2, Ecn::NotCapable).0 == Admission::Drop(MATCHED));
        }
        let share = hits as f64 / tries as f64;
        // Four standard deviations.
        assert!((share - expected).abs() < 4.0 * (0.25 / tries as f64).sqrt(), "{candidates}: {share}");
    }
}

/// A flow of which nothing waits is RED's alone: never matched, however long the queue.
#[test]
fn a_flow_of_which_nothing_waits_is_reds() {
    let p = params(5, 1.0);
    let mut b = Bench::new(&p, 3);
    (0..6).for_each(|n| assert_eq!(b.arrive(n, Ecn::NotCapable).0, Admission::Admit));
    for n in 100..400 {
        let (said, gone) = b.arrive(n, Ecn::NotCapable);
        assert!(gone.is_empty());
        assert!(matches!(said, Admission::Admit | Admission::Drop(EARLY | FORCED)), "{said:?}");
    }
    assert_eq!(b.matched(), 0);
    assert_eq!(b.arrive(1000, Ecn::NotCapable).0, Admission::Drop(FORCED));
}

#[test]
fn odd_parameters_are_refused() {
    let check = |p: Params| p.check(&CONTEXT).map(|w| w.len()).map_err(|f| f.field);
    assert_eq!(check(params(1, 0.002)), Ok(0));
    assert_eq!(check(params(65, 0.002)), Err("candidates"));
    assert_eq!(check(Params { max_th: Backlog::Packets(5.0), ..params(1, 0.002) }), Err("min_th"));
}

/// The paper's Fig. 1 with lists and fractions: the average, the draw, RED's spacing.
struct Oracle {
    waiting: Vec<u32>,
    avg: f64,
    count: i64,
}

impl Oracle {
    fn arrive(&mut self, p: &Params, flow: u32, rng: &mut Rng) -> (Admission, Vec<u32>) {
        self.avg = (1.0 - p.common.w_q) * self.avg + p.common.w_q * self.waiting.len() as f64;
        let (min_th, max_th) = (p.min_th.amount(), p.max_th.amount());
        if self.avg > min_th {
            let mut gone = Vec::new();
            for _ in 0..p.candidates {
                if !self.waiting.is_empty() {
                    let n = self.waiting.len();
                    let at = ((rng.uniform() * n as f64) as usize).min(n - 1);
                    if self.waiting[at] == flow {
                        gone.push(self.waiting.remove(at));
                    }
                }
            }
            if !gone.is_empty() {
                return (Admission::Drop(MATCHED), gone);
            }
        }
        if self.avg < min_th {
            self.count = -1;
        } else if self.avg >= max_th {
            self.count = 0;
            return (Admission::Drop(FORCED), vec![]);
        } else {
            self.count += 1;
            let p_b = p.max_p * (self.avg - min_th) / (max_th - min_th);
            let left = 1.0 - self.count as f64 * p_b;
            let p_a = if left > 0.0 { (p_b / left).min(1.0) } else { 1.0 };
            if p_a >= 1.0 || (p_a > 0.0 && rng.uniform() < p_a) {
                self.count = 0;
                return (Admission::Drop(EARLY), vec![]);
            }
        }
        self.waiting.push(flow);
        (Admission::Admit, vec![])
    }
}

proptest! {
    /// Whatever comes and leaves: verdicts and evictions are those of Fig. 1.
    #[test]
    fn agrees_with_the_figure(seed: u64, candidates in 1u64..4, w_q in prop::sample::select(vec![0.02, 0.2, 1.0]),
        steps in prop::collection::vec((0u32..4, prop::bool::weighted(0.4)), 1..300)) {
        let p = params(candidates, w_q);
        let mut b = Bench::new(&p, seed);
        let mut oracle = Oracle { waiting: Vec::new(), avg: 0.0, count: -1 };
        let mut rng = Rng::for_component(seed, "choke");
        for (flow, leaves) in steps {
            if leaves {
                let packet = b.queue.pop();
                prop_assert_eq!(packet.map(|p| p.flow.0), (!oracle.waiting.is_empty()).then(|| oracle.waiting.remove(0)));
            }
            let (said, gone) = b.arrive(flow, Ecn::NotCapable);
            let expected = oracle.arrive(&p, flow, &mut rng);
            prop_assert_eq!((said, gone), expected);
            prop_assert_eq!(b.queue.iter().map(|p| p.flow.0).collect::<Vec<_>>(), oracle.waiting.clone());
        }
    }
}

/// Golden: two flows, one with three of four arrivals; what became of forty arrivals with seed 1.
#[test]
fn golden_sequence() {
    let mut b = Bench::new(&params(1, 0.5), 1);
    let said: String = (0..60)
        .map(|n| {
            if n % 3 == 2 {
                b.queue.pop();
            }
            match b.arrive(u32::from(n % 4 == 0), Ecn::NotCapable).0 {
                Admission::Admit => '.',
                Admission::Drop(MATCHED) => 'm',
                Admission::Drop(EARLY) => 'e',
                _ => '?',
            }
        })
        .collect();
    assert_eq!(said, ".........mm....mm....m.....mmmm......mm...mm....mm....mm....");
}

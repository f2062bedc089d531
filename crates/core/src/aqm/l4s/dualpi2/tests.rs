//! DualPI2 in a real queue: by hand, by its laws, and against the pseudocode of RFC 9332, Appendix A.

use std::collections::VecDeque;

use super::*;
use crate::aqm::l4s::coupling::OVERLOAD;
use crate::aqm::red::EARLY;
use crate::testing::*;

const MS: Duration = Duration::from_millis(1);

pub(super) fn bench(params: &Params) -> Bench {
    bench_with(params, Backlog::Packets(1000.0))
}

fn bench_with(params: &Params, limit: Backlog) -> Bench {
    let context = Context { limit: Some(limit), ..CONTEXT };
    params.check(&context).expect("it fits");
    Bench::new(AnyAqm::DualPi2(Box::new(params.build(&context))), limit)
}

/// §2.3, Figure 3: ECT(1) and CE wait in one queue, Not-ECT and ECT(0) in the other, and L4S goes first.
#[test]
fn code_points_choose_the_queue() {
    let mut b = bench(&defaults());
    for ecn in [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1, Ecn::Experienced, Ecn::Ect1] {
        assert_eq!(b.arrive(ecn), Admission::Admit);
    }
    let order: Vec<u32> = std::iter::from_fn(|| b.depart()).map(|p| p.number).collect();
    assert_eq!(order, [2, 3, 4, 0, 1]);
    assert!(b.conserves());
}

/// RFC 9331 §5.1: the L4S treatment can be turned off. Then all wait in one queue, whatever their code points.
#[test]
fn without_l4s_all_wait_in_one_queue() {
    let mut params: Params = defaults();
    params.controller.coupling.l4s = false;
    let mut b = bench(&params);
    assert!(!b.aqm.l4s() && bench(&defaults()).aqm.l4s());
    for ecn in [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1, Ecn::Experienced, Ecn::Ect1] {
        assert_eq!(b.arrive(ecn), Admission::Admit);
    }
    // Well above the ramp of the L4S queue.
    b.to(Time::ZERO + MS * 2);
    let left: Vec<(u32, Ecn)> = std::iter::from_fn(|| b.depart()).map(|p| (p.number, p.ecn)).collect();
    let same = [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1, Ecn::Experienced, Ecn::Ect1];
    assert_eq!(left, (0..).zip(same).collect::<Vec<_>>());
    assert_eq!((b.stat("l4s"), b.stat("classic")), (0, 5));
}

/// Figure 5, and Th_len.
#[test]
fn the_ramp_by_hand() {
    let ramp = Ramp { min_th: 800e-6, range: 400e-6, th_len: 1 };
    for (us, p) in [(0, 0.0), (800, 0.0), (900, 0.25), (1000, 0.5), (1199, 0.9975), (1200, 1.0), (9000, 1.0)]
    {
        assert!((ramp.at(f64::from(us) * 1e-6) - p).abs() < 1e-9, "{us} us");
    }
    // A step divides by nothing.
    let step = Ramp { range: 0.0, ..ramp };
    assert_eq!([799e-6, 800e-6, 801e-6].map(|d| step.at(d)), [0.0, 1.0, 1.0]);
    // 2 ms each, well above the ramp: the last of the queue is not marked.
    let mut b = bench(&defaults());
    (0..5).for_each(|_| {
        b.arrive(Ecn::Ect1);
    });
    b.to(Time::ZERO + MS * 2);
    let marked: Vec<bool> = std::iter::from_fn(|| b.depart()).map(|p| p.ecn == Ecn::Experienced).collect();
    // recur() lets the first certain one by: its count is not above 1 yet.
    assert_eq!(marked, [false, true, true, true, false]);
}

/// Figure 3, line 2: a packet joins while there is room for a full one, whatever its size.
#[test]
fn small_packets_have_no_advantage_at_the_limit() {
    let mut b = bench_with(&defaults(), Backlog::Bytes(3500.0));
    assert_eq!(b.arrive_with(Ecn::Ect1, 1000), Admission::Admit);
    assert_eq!(b.arrive_with(Ecn::NotCapable, 1000), Admission::Admit);
    assert_eq!(b.arrive_with(Ecn::Ect0, 500), Admission::Admit);
    // 2,500 B wait: room for 1,000 B more, exactly.
    assert_eq!(b.arrive_with(Ecn::Ect1, 100), Admission::Admit);
    for ecn in [Ecn::Ect1, Ecn::NotCapable] {
        assert_eq!(b.arrive_with(ecn, 40), Admission::Drop(Cause::OVERFLOW));
    }
    assert_eq!(b.stat("overflow"), 2);
}

/// A run over a link of a packet a millisecond.
struct Run {
    b: Bench,
    ms: u64,
    /// The packets that left, and when.
    left: Vec<(Left, u64)>,
    /// Counts at half time.
    half: Vec<(&'static str, u64)>,
}

impl Run {
    /// How many since half time.
    fn since_half(&self, what: &str) -> f64 {
        let before = self.half.iter().find(|(name, _)| *name == what).expect("it is counted").1;
        (self.b.stat(what) - before) as f64
    }

    /// That share of what came to the head since half time.
    fn share(&self, kind: &str, what: &str) -> f64 {
        self.since_half(&format!("{kind}_{what}")) / self.since_half(kind)
    }

    /// Mean wait in milliseconds since half time.
    fn mean_wait(&self, l4s: bool) -> f64 {
        let of = |(p, t): &&(Left, u64)| p.ecn.is_l4s() == l4s && *t >= self.ms / 2;
        let waits: Vec<f64> = self.left.iter().filter(of).map(|(p, _)| p.waited.secs() * 1e3).collect();
        waits.iter().sum::<f64>() / waits.len() as f64
    }
}

/// ECT(1) and Not-ECT senders of so many packets in ten milliseconds that never slow down.
fn unresponsive(params: &Params, l4s: u32, classic: u32, ms: u64) -> Run {
    let mut b = bench(params);
    let (mut kinds, mut left, mut half) = (Rng::for_component(1, "kinds"), Vec::new(), Vec::new());
    for t in 0..ms {
        b.to(Time::ZERO + MS * t);
        if t == ms / 2 {
            b.aqm.stats(&mut |name, n| half.push((name, n)));
        }
        // Whole packets now, the rest by chance; which comes first by chance, too.
        let count = |per_ten: u32, rng: &mut Rng| per_ten / 10 + u32::from(rng.below(10) < per_ten % 10);
        let mut now = vec![Ecn::Ect1; count(l4s, &mut kinds) as usize];
        now.resize(now.len() + count(classic, &mut kinds) as usize, Ecn::NotCapable);
        let len = now.len();
        now.rotate_left(if len > 1 { kinds.below(len as u32) as usize } else { 0 });
        for ecn in now {
            b.arrive(ecn);
        }
        left.extend(b.depart().map(|p| (p, t)));
    }
    assert!(b.conserves());
    Run { b, ms, left, half }
}

/// §2.2: below capacity L4S packets hardly wait, whatever fills the Classic queue, and the Classic delay comes to its target. Of 7
/// Classic packets 6 find room: a seventh is dropped, and p′ is the root of that.
#[test]
fn l4s_waits_for_packets_classic_for_the_target() {
    let run = unresponsive(&defaults(), 4, 7, 40_000);
    let (l4s, classic) = (run.mean_wait(true), run.mean_wait(false));
    assert!(l4s < 1.0, "{l4s} ms");
    assert!((classic - 15.0).abs() < 2.0, "{classic} ms");
    assert!((run.share("classic", "dropped") - 1.0 / 7.0).abs() < 0.02);
    // Eq. (1): p_C = (p_CL/2)², nearly all marks being coupled ones.
    let (marked, p_c) = (run.share("l4s", "marked"), run.share("classic", "dropped"));
    assert!((p_c - marked * marked / 4.0).abs() < 0.03, "{marked} and {p_c}");
    assert!(run.share("l4s", "dropped") < 0.01);
}

/// §4.2.3.1, §A.2: a flood of ECT(1) that answers no mark is dropped, alone or beside Classic traffic; its queue comes to the target.
#[test]
fn an_unresponsive_l4s_flood_is_no_priority() {
    let run = unresponsive(&defaults(), 20, 0, 20_000);
    let dropped = run.share("l4s", "dropped");
    assert!((dropped - 0.5).abs() < 0.02, "{dropped}");
    let wait = run.mean_wait(true);
    assert!((wait - 15.0).abs() < 2.0, "{wait} ms");
    assert!(run.b.causes.iter().all(|cause| *cause == OVERLOAD));
    assert_eq!((run.b.gauge("overloaded"), run.b.stat("overloads")), (1.0, 1));

    // Beside as much Classic traffic: both lose the same share, where priority would have left Classic a sixteenth of the link.
    let run = unresponsive(&defaults(), 10, 10, 40_000);
    let (l4s, classic) = (run.share("l4s", "dropped"), run.share("classic", "dropped"));
    assert!((l4s - classic).abs() < 0.03, "{l4s} of L4S, {classic} of Classic");
    let of_classic = run.left.iter().filter(|(p, t)| !p.ecn.is_l4s() && *t >= 20_000).count();
    assert!((9_000..11_000).contains(&of_classic), "{of_classic} of 20,000 packets are Classic");
    assert!(run.b.causes.contains(&EARLY));
}

/// The same flood from a Not-ECT sender: no more and no less of it comes through.
#[test]
fn a_flood_gains_nothing_by_its_code_point() {
    let through = |l4s, classic| unresponsive(&defaults(), l4s, classic, 20_000).left.len();
    assert_eq!(through(20, 0), through(0, 20));
}

/// §4.2.2: whatever L4S does, a lone Classic packet waits for no more than 15 full packets under WRR, and under TS-FIFO no longer than
/// an L4S packet does and the time-shift.
#[test]
fn classic_is_never_starved() {
    for (l4s_priority, shift) in [(Bound::Wrr, 0), (Bound::TsFifo, 30)] {
        let mut b = bench(&Params { l4s_priority, tshift: MS * 30, ..defaults() });
        // Twenty milliseconds of L4S ahead, and it keeps coming as fast as it is served.
        (0..20).for_each(|_| {
            b.arrive(Ecn::Ect1);
        });
        let (mut l4s, mut classic) = (0, Vec::new());
        for t in 0..2000u64 {
            b.to(Time::ZERO + MS * t);
            b.arrive(Ecn::Ect1);
            if t % 100 == 50 {
                b.arrive(Ecn::NotCapable);
            }
            let Some(p) = b.depart() else { continue };
            let waited = p.waited.0 / MS.0;
            if p.ecn.is_l4s() {
                l4s = waited;
            } else {
                classic.push(waited);
                let most = if shift == 0 { 16 } else { l4s + shift + 1 };
                assert!(waited <= most, "{waited} ms, L4S {l4s}");
            }
        }
        assert!(classic.len() >= 17, "{classic:?}");
    }
}

/// Delay on saturation: nothing but the limit drops L4S packets.
#[test]
fn delay_on_saturation_lets_the_queue_grow() {
    let mut params: Params = defaults();
    params.controller.coupling.saturation = crate::aqm::l4s::coupling::Saturation::Delay;
    let run = unresponsive(&params, 20, 0, 5_000);
    assert_eq!((run.b.stat("l4s_dropped"), run.b.stat("overloads")), (0, 0));
    assert!(run.b.stat("overflow") > 1000);
    assert!(run.mean_wait(true) > 900.0);
}

#[test]
fn what_can_not_work_is_refused_or_told() {
    let told = |p: &Params, c: &Context| {
        p.check(c).map(|w| w.into_iter().map(|w| w.field).collect::<Vec<_>>()).map_err(|f| f.field)
    };
    let with = |change: fn(&mut Params)| {
        let mut p = defaults::<Params>();
        change(&mut p);
        told(&p, &CONTEXT)
    };
    assert_eq!(told(&defaults(), &CONTEXT), Ok(vec![]));
    assert_eq!(with(|p| p.classic_weight = 0.5), Err("classic_weight"));
    assert_eq!(with(|p| p.controller.coupling.k = 0.5), Err("k"));
    assert_eq!(with(|p| p.min_th = MS * 15), Ok(vec!["min_th"]));
    assert_eq!(with(|p| p.controller.target = MS * 1500), Ok(vec!["target"]));
    let weight = Params::FIELDS.iter().find(|f| f.name == "classic_weight");
    assert_eq!(weight.map(|f| f.bounds.allow(0.0)), Some(false));
}

/// An ECT(1) and an ECT(0) packet each millisecond, from 200 ms on a Not-ECT one too.
#[test]
fn golden_sequence() {
    let left = bench(&defaults()).golden(300, |t| {
        [Ecn::Ect1, Ecn::Ect0, Ecn::NotCapable].into_iter().take(if t < 200 { 2 } else { 3 }).collect()
    });
    let expected = [
        "111111111111111011m1m1m1m1m1m1m0mmmmmmmmmmmmmmm0mm",
        "mmmmmmmmmmmmm0mmmmmmmmmmmmmmm0mmmmmmmmmmmmmmm0mmmm",
        "mmmmmmmmmmm0mmmmmmmmmmmmmmm0mmmmmmmmmmmmmmm0mmmmmm",
        "mxmmmxmmmxmm0mxmmxmmmxmmxmmxmmxmmxmx0mxmmx0mxx0mmxx0mxx0mx0mmxx0mxx0mmx0mxx0m",
        "x0xmxx0mxx0mmxx0mx0mxx0mxx0mxx0mxx0mxx0mxx0mxx0mxxx0mxx0mx0xxx0mxx0mxx0mxxx0mxx0mxx0xx0mxxx0mxx0mxx0mxx0",
        "xxx0mxx0mxx0mxxx0xx0mxx0mxxx0mx0xxx0mxxx0mxx0mxx0xxx0mxx0mxxx0xx0mxx0mxxx0mxx0xxx0mxx0mxxx0xx0mxx0mxxx0xx0mxxx0mxx0mxx0",
    ];
    assert_eq!(left, expected, "\n{left:#?}");
}

/// Appendix A once more: Figures 2 to 5, 7 and 8, line by line, in seconds and bytes. p_CL is held to 1, as p′ is: "clamping … omitted for
/// clarity". lq.len() counts the packet about to leave.
#[derive(Default)]
struct Oracle {
    alpha: f64,
    beta: f64,
    ts_fifo: bool,
    p_prime: f64,
    prevq: f64,
    credit: f64,
    lq: VecDeque<(u64, u8, u32)>,
    cq: VecDeque<(u64, u8, u32)>,
    lq_count: f64,
    cq_count: f64,
    limit: u32,
}

const MIN_TH: f64 = 800e-6;
const RANGE: f64 = 400e-6;
const TARGET: f64 = 0.015;
const WEIGHT: f64 = 0.0625;
const TSHIFT: f64 = 0.050;

impl Oracle {
    fn time(q: &VecDeque<(u64, u8, u32)>, ms: u64) -> f64 {
        q.front().map_or(0.0, |(came, ..)| (MS * (ms - came)).secs())
    }

    fn enqueue(&mut self, ms: u64, ecn: u8, size: u32) -> bool {
        let bytes: u32 = self.lq.iter().chain(&self.cq).map(|p| p.2).sum();
        if bytes + 1000 > self.limit {
            return false;
        }
        if ecn % 2 == 1 {
            self.lq.push_back((ms, ecn, size))
        } else {
            self.cq.push_back((ms, ecn, size))
        }
        true
    }

    fn update(&mut self, ms: u64) {
        let curq = Self::time(&self.cq, ms).max(Self::time(&self.lq, ms));
        self.p_prime += self.alpha * (curq - TARGET) + self.beta * (curq - self.prevq);
        self.p_prime = self.p_prime.clamp(0.0, 1.0);
        self.prevq = curq;
    }

    fn recur(count: &mut f64, likelihood: f64) -> bool {
        *count += likelihood;
        if *count > 1.0 {
            *count -= 1.0;
            return true;
        }
        false
    }

    fn laqm(qdelay: f64) -> f64 {
        if qdelay >= MIN_TH + RANGE {
            1.0
        } else if qdelay > MIN_TH {
            (qdelay - MIN_TH) / RANGE
        } else {
            0.0
        }
    }

    fn scheduler_says_lq(&self, ms: u64) -> bool {
        match (self.lq.is_empty(), self.cq.is_empty()) {
            (true, _) => false,
            (_, true) => true,
            _ if self.ts_fifo => Self::time(&self.lq, ms) + TSHIFT >= Self::time(&self.cq, ms),
            _ => self.credit <= 0.0,
        }
    }

    /// The packet that leaves: its bits and size; and how many are dropped before it.
    fn dequeue(&mut self, ms: u64) -> (Option<(u8, u32)>, u32) {
        let mut dropped = 0;
        while !self.lq.is_empty() || !self.cq.is_empty() {
            let p_c = self.p_prime * self.p_prime;
            let p_cl = (2.0 * self.p_prime).min(1.0);
            let contended = !self.lq.is_empty() && !self.cq.is_empty();
            if self.scheduler_says_lq(ms) {
                let qdelay = Self::time(&self.lq, ms);
                let len = self.lq.len();
                let (_, mut ecn, size) = self.lq.pop_front().expect("not empty");
                if p_cl < 1.0 {
                    let native = if len > 1 { Self::laqm(qdelay) } else { 0.0 };
                    if Self::recur(&mut self.lq_count, native.max(p_cl)) {
                        ecn = 3;
                    }
                } else {
                    if Self::recur(&mut self.lq_count, p_c) {
                        dropped += 1;
                        continue;
                    }
                    if Self::recur(&mut self.lq_count, p_cl) {
                        ecn = 3;
                    }
                }
                if contended {
                    self.credit += WEIGHT * f64::from(size);
                }
                return (Some((ecn, size)), dropped);
            }
            let (_, mut ecn, size) = self.cq.pop_front().expect("not empty");
            if Self::recur(&mut self.cq_count, p_c) {
                if ecn == 0 || p_c >= 0.25 {
                    dropped += 1;
                    continue;
                }
                ecn = 3;
            }
            if contended {
                self.credit -= (1.0 - WEIGHT) * f64::from(size);
            }
            return (Some((ecn, size)), dropped);
        }
        self.credit = -(1.0 - 2.0 * WEIGHT) * 1000.0;
        (None, dropped)
    }
}

proptest! {
    /// Packet by packet: who goes, marked or not, and how many are dropped before; every kind of load, overload among them.
    #[test]
    fn as_the_pseudocode(
        load in 0u8..5,
        steps in proptest::collection::vec((0u8..4, 0u8..5, 0u64..4, 1u32..=10), 50..500),
        ts_fifo in prop::bool::ANY,
    ) {
        let l4s_priority = if ts_fifo { Bound::TsFifo } else { Bound::Wrr };
        let params = Params { l4s_priority, ..defaults() };
        let limit = 60_000;
        let mut b = bench_with(&params, Backlog::Bytes(f64::from(limit)));
        let gains = params.controller.gains();
        let mut oracle = Oracle {
            alpha: gains.alpha,
            beta: gains.beta,
            ts_fifo,
            credit: -(1.0 - 2.0 * WEIGHT) * 1000.0,
            limit,
            ..Oracle::default()
        };
        let (mut ms, mut next_update) = (0, 0);
        for (ecn, arrivals, gap, size) in steps {
            ms += gap;
            while next_update <= ms {
                oracle.update(next_update);
                next_update += 15;
            }
            b.to(Time::ZERO + MS * ms);
            for _ in 0..arrivals.min(load) {
                let joined = oracle.enqueue(ms, ecn, size * 100);
                prop_assert_eq!(b.arrive_with(Ecn::of_octet(ecn), size * 100) == Admission::Admit, joined);
            }
            let before = b.dropped.len();
            let left = b.depart();
            let (sent, dropped) = oracle.dequeue(ms);
            prop_assert_eq!(left.map(|p| p.ecn.bits()), sent.map(|(ecn, _)| ecn));
            prop_assert_eq!((b.dropped.len() - before) as u32, dropped);
            prop_assert!((b.gauge("p_prime") - oracle.p_prime).abs() < 1e-9);
            prop_assert!(b.conserves());
        }
    }

    /// Packets in one queue leave in the order in which they came (no reordering within a queue).
    #[test]
    fn each_queue_is_first_in_first_out(steps in proptest::collection::vec((0u8..4, 0u8..4), 10..300)) {
        let mut b = bench(&defaults());
        let (mut last, mut came_as, mut t) = ([None; 2], Vec::new(), 0);
        for (ecn, arrivals) in steps {
            t += 1;
            b.to(Time::ZERO + MS * t);
            for _ in 0..arrivals {
                b.arrive(Ecn::of_octet(ecn));
                came_as.push(usize::from(ecn % 2));
            }
            if let Some(p) = b.depart() {
                let kind = came_as[p.number as usize];
                prop_assert!(last[kind].is_none_or(|n| n < p.number));
                last[kind] = Some(p.number);
            }
        }
    }
}

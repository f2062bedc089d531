//! FQ-PIE: a queue for each flow as in FQ-CoDel, and PIE within each.
//!
//! By the same scheduler, sparse flows go first and shares are equal in bytes; a flow's arrivals are dropped with a probability
//! that holds the delay of its own queue at a target. One hard limit covers all queues; packets that find it reached are dropped.
//! Source: Ramakrishnan et al. 2019, "FQ-PIE Queue Discipline in the Linux Kernel", with the scheduler of RFC 8290 §4 (in
//! [`fq`](super::fq)) and [PIE][super::pie] of RFC 8033, whose state is kept for each queue; `active_above` is the share of the
//! limit that has to be waiting in the queue.
//! `variant = "linux"`: PIE as in Linux, and an empty new queue goes behind the old ones if there are any (RFC 8290: in any case).
//! Non-goal: fairness on overflow, for which FQ-CoDel drops from the queue that holds most.

use crate::aqm::fq::{self, Hash, Scheduler};
use crate::aqm::pie::{self, Variant};
use crate::prelude::*;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Bytes that a flow's queue may send in one turn; a new one goes before others while it sends less. Default: a full packet.
        flow_quantum: Option<Bytes> [POSITIVE];
        /// Queues that flows are hashed into.
        flows: u64 [QUEUES] = 1024;
        /// A second limit, in bytes, beside the queue's.
        memory_limit: Option<Bytes> [POSITIVE];
        ..pie: pie::Params;
    }
}

impl Build for Params {
    type Mechanism = FqPie;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = self.pie.check(context)?;
        warnings.extend(fq::check_quantum(self.flow_quantum, context)?);
        fq::check_memory(self.memory_limit, context)?;
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> FqPie {
        let linux = self.pie.variant == Variant::Linux;
        let control = Box::new(self.pie.control(context));
        let none = Flow { pie: control.vars(), awake: false };
        FqPie {
            hash: Hash::new(self.flows),
            scheduler: Scheduler::new(self.flows, self.flow_quantum.unwrap_or(context.packet), !linux, none),
            awake: Vec::with_capacity(self.flows as usize),
            serving: 0,
            memory_limit: self.memory_limit.map_or(u64::MAX, |limit| limit.0),
            control,
            begun: false,
        }
    }
}

/// The state of a queue.
#[derive(Clone, Debug)]
struct Flow {
    pie: pie::Vars,
    /// Whether updates may change it.
    awake: bool,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct FqPie {
    hash: Hash,
    scheduler: Scheduler<Flow>,
    /// The queues whose state an update may change: the others cost nothing.
    awake: Vec<u32>,
    /// The queue that was chosen last.
    serving: u32,
    memory_limit: u64,
    control: Box<pie::Control>,
    /// Whether an interval has begun.
    begun: bool,
}

impl Mechanism for FqPie {
    fn keeps_time(&self) -> bool {
        true
    }

    /// RFC 8033 §4.2, of every queue.
    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        if self.begun {
            let (scheduler, params) = (&mut self.scheduler, &self.control.params);
            self.awake.retain(|queue| {
                let flow = scheduler.within(*queue);
                flow.pie.update(params);
                flow.awake = !flow.pie.at_rest(params);
                flow.awake
            });
        }
        self.begun = true;
        Some(now + self.control.params.t_update)
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        self.scheduler.show(show);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        show("new_flows", self.scheduler.counts().2);
    }
}

impl Aqm for FqPie {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.control.marks()
    }

    fn flow_queues(&self) -> u32 {
        self.scheduler.queues()
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let joins = self.hash.queue(packet.flow, at.rng);
        at.queue.join(joins);
        if at.queue.packets() == 0 && at.queue.idle_since().is_some() {
            // There was nothing to send, whether or not the link asked for the next queue.
            self.next_queue(at.now, at.queue, at.rng);
        }
        let fits =
            at.queue.fits(packet.size) && at.queue.bytes() + u64::from(packet.size) <= self.memory_limit;
        let flow = self.scheduler.within(joins);
        let (packets, bytes) = (at.queue.packets_in(joins), at.queue.bytes_in(joins));
        at.why.note("flow_queue", f64::from(joins));
        at.why.note("flow_backlog", bytes as f64);
        let state = pie::QueueState { packets, bytes, fits };
        let verdict = flow.pie.arrive(&self.control, packet, state, at.rng, at.why);
        if !matches!(verdict, Admission::Drop(_)) {
            if !flow.awake {
                flow.awake = true;
                self.awake.push(joins);
            }
            self.scheduler.arrived(joins);
        }
        verdict
    }

    fn next_queue<Q: Queue + ?Sized>(&mut self, _: Time, queue: &mut Q, _: &mut Rng) -> Option<u32> {
        self.serving = self.scheduler.next(|q| queue.packets_in(q), |_| ())?;
        Some(self.serving)
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        let queue = self.serving;
        at.why.note("flow_queue", f64::from(queue));
        at.why.note("credits", self.scheduler.credits(queue) as f64);
        at.why.note("sojourn", at.now.since(at.since).secs());
        let pie = &mut self.scheduler.within(queue).pie;
        pie.depart(&self.control.params, at.now, packet.size, at.since, at.queue.bytes_in(queue));
        self.scheduler.sent(queue, packet.size);
        Departure::Send
    }
}

#[cfg(test)]
mod tests {
    //! FQ-PIE's laws by hand, and against lists and PIEs of its own; PIE and the scheduler have their own tests.

    use std::collections::VecDeque;

    use pie::EARLY;

    use super::*;
    use crate::testing::{self, *};

    fn context(limit: Backlog) -> Context {
        testing::context(Some(Rate(10_000_000)), limit)
    }

    fn params() -> Params {
        crate::params::defaults()
    }

    fn bench(p: &Params, limit: Backlog) -> Bench {
        Bench::new(AnyAqm::FqPie(Box::new(p.build(&context(limit)))), limit).drawing(1, "fq_pie")
    }

    fn probability(b: &Bench, flow: u32) -> f64 {
        let AnyAqm::FqPie(aqm) = &b.aqm else { panic!("it is") };
        let queue = aqm.hash.clone().queue(FlowId(flow), &mut b.rng.clone()) as usize;
        aqm.scheduler.all_within().nth(queue).expect("it has that queue").pie.shown().0
    }

    /// Two flows that each have a queue of their own.
    const FLOWS: [u32; 2] = [0, 1];

    #[test]
    fn each_queue_has_a_probability_of_its_own() {
        let mut b = bench(&params(), Backlog::Packets(1000.0));
        let mut dropped = [0; 2];
        for t in 0..3000 {
            for (i, times) in [(0, 2), (1, u64::from(t % 5 == 0))] {
                for _ in 0..times {
                    dropped[i] += u32::from(
                        b.arrive_at(t * MS, FLOWS[i], 1000, Ecn::NotCapable) == Admission::Drop(EARLY),
                    );
                }
            }
            b.depart_at(t * MS);
        }
        assert!(dropped[0] > 300 && dropped[1] == 0, "{dropped:?}");
        assert!(probability(&b, FLOWS[0]) > 0.1 && probability(&b, FLOWS[1]) == 0.0);
    }

    /// With one queue it is PIE, packet by packet.
    #[test]
    fn with_one_queue_it_is_pie() {
        let mut p = Params { flows: 1, ..params() };
        p.pie.ecn = true;
        let limit = Backlog::Packets(300.0);
        let mut b = bench(&p, limit);
        let mut alone =
            Bench::new(AnyAqm::Pie(Box::new(p.pie.build(&context(limit)))), limit).drawing(1, "fq_pie");
        // FQ-PIE has drawn its salt.
        alone.rng.bits();
        let (mut early, mut marked) = (0, 0);
        for t in 0..4000 {
            for flow in 0..if t % 1500 < 900 { 2 } else { 0 } {
                let ecn = if t % 3 == 0 { Ecn::Ect0 } else { Ecn::NotCapable };
                let verdict = b.arrive_at(t * MS, flow, 1000, ecn);
                assert_eq!(verdict, alone.arrive_at(t * MS, flow, 1000, ecn));
                early += u32::from(verdict == Admission::Drop(EARLY));
                marked += u32::from(verdict == Admission::Mark);
            }
            assert_eq!(b.depart_at(t * MS), alone.depart_at(t * MS));
        }
        assert!(early > 1000 && marked > 2, "{early} {marked}");
    }

    /// The limit is one for all queues and drops the arrival, no matter which flow fills it.
    #[test]
    fn what_finds_the_limit_reached_is_dropped() {
        let mut b = bench(&params(), Backlog::Packets(20.0));
        (0..20).for_each(|_| assert!(b.admits(0, FLOWS[0], 1000)));
        assert_eq!(b.arrive_at(0, FLOWS[1], 100, Ecn::NotCapable), Admission::Drop(Cause::OVERFLOW));
        let p = Params { memory_limit: Some(Bytes(5000)), ..params() };
        let mut b = bench(&p, Backlog::Packets(20.0));
        (0..5).for_each(|_| assert!(b.admits(0, FLOWS[0], 1000)));
        assert_eq!(b.arrive_at(0, FLOWS[1], 100, Ecn::NotCapable), Admission::Drop(Cause::OVERFLOW));
    }

    #[test]
    fn odd_parameters_are_refused() {
        let check = |p: &Params, limit| p.check(&context(limit)).map(|w| w.len()).map_err(|f| f.field);
        let long = Backlog::Packets(1000.0);
        assert_eq!(check(&params(), long), Ok(0));
        assert_eq!(check(&Params { flow_quantum: Some(Bytes(9)), ..params() }, long), Err("flow_quantum"));
        assert_eq!(check(&Params { memory_limit: Some(Bytes(9)), ..params() }, long), Err("memory_limit"));
    }

    /// A fixed sequence of decisions: one flow at one and a half times the link's rate, another at a quarter of it.
    #[test]
    fn golden_sequence() {
        let mut b = bench(&params(), Backlog::Packets(1000.0));
        let mut dropped = Vec::new();
        let mut order = String::new();
        for t in 0..900 {
            for (flow, every) in [(0, 2), (0, 1), (1, 4)] {
                if t % every == 0 && !b.admits(t * MS, FLOWS[flow], 1000) {
                    dropped.push(t);
                }
            }
            let left = b.depart_at(t * MS).map_or('-', |p| ['a', 'b'][usize::from(p.flow == FLOWS[1])]);
            if t >= 860 {
                order.push(left);
            }
        }
        assert_eq!(order, "baaabaaabaaabaaabaaabaaabaaabaaabaaabaaa");
        assert_eq!((&dropped[..9], dropped.len()), (&[228, 257, 267, 288, 295, 301, 314, 322, 327][..], 282));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Against lists of its own and a PIE for every queue that is updated at every tick, at rest or not: the same verdicts and order.
        #[test]
        fn queues_at_rest_are_not_missed(linux: bool, resting: bool, steps in prop::collection::vec(
            (1u64..12, 0u32..9, 0u32..9, prop::sample::select(vec![60u32, 500, 1000, 1500]), prop::bool::weighted(0.02)), 1..250))
        {
            let mut p = Params { flows: 4, ..params() };
            p.pie.max_burst = Duration(30 * MS);
            if linux {
                p.pie.variant = Variant::Linux;
            }
            p.pie.active_above = resting.then_some(0.005);
            let mut b = bench(&p, Backlog::Packets(1000.0));
            let (mut hash, mut rng) = (Hash::new(4), Rng::for_component(1, "fq_pie"));
            let control = p.pie.control(&context(Backlog::Packets(1000.0)));
            let mut pies = vec![control.vars(); 4];
            let mut queues: Vec<VecDeque<(u32, u32, u64)>> = vec![VecDeque::new(); 4];
            let (mut credits, mut new, mut old) = ([0i64; 4], VecDeque::new(), VecDeque::new());
            let (mut now, mut tick, mut flow) = (0, 15 * MS, 0);
            for (gap, arrivals, departures, size, pause) in steps {
                now += if pause { 2000 * MS } else { gap * MS };
                while tick <= now {
                    pies.iter_mut().for_each(|pie| pie.update(&p.pie));
                    tick += 15 * MS;
                }
                for i in 0..arrivals {
                    flow = (flow * 5 + i + 1) % 8;
                    let q = hash.queue(FlowId(flow), &mut rng) as usize;
                    let (packets, bytes) = (queues[q].len() as u32, queues[q].iter().map(|p| u64::from(p.1)).sum());
                    let packet = Packet { size, ..Packet::default() };
                    let fits = queues.iter().map(VecDeque::len).sum::<usize>() < 1000;
                    let expected = pies[q].arrive(&control, &packet, pie::QueueState { packets, bytes, fits }, &mut rng, &mut Silent);
                    let number = b.arrived;
                    prop_assert_eq!(b.arrive_at(now, flow, size, Ecn::NotCapable), expected);
                    if expected == Admission::Admit {
                        queues[q].push_back((number, size, now));
                        if !new.contains(&q) && !old.contains(&q) {
                            new.push_back(q);
                            credits[q] = 1000;
                        }
                    }
                }
                for _ in 0..departures {
                    let expected = loop {
                        let from_new = !new.is_empty();
                        let list = if from_new { &mut new } else { &mut old };
                        let Some(&q) = list.front() else { break None };
                        if credits[q] <= 0 {
                            credits[q] += 1000;
                            list.pop_front();
                            old.push_back(q);
                        } else if let Some((number, size, since)) = queues[q].pop_front() {
                            credits[q] -= i64::from(size);
                            let backlog = queues[q].iter().map(|p| u64::from(p.1)).sum();
                            pies[q].depart(&p.pie, Time(now), size, Time(since), backlog);
                            break Some(number);
                        } else {
                            list.pop_front();
                            if from_new && (!linux || !old.is_empty()) {
                                old.push_back(q);
                            }
                        }
                    };
                    prop_assert_eq!(b.depart_at(now).map(|p| p.number), expected);
                }
            }
        }

        /// Every packet is sent, dropped or waits; each flow's leave in the order in which they came; nothing is left behind.
        #[test]
        fn conserves(limit in 1u32..60, steps in prop::collection::vec((0u32..6, 40u32..1500, 0u32..3, 0u64..30), 1..300)) {
            let p = Params { flows: 4, ..params() };
            let mut b = bench(&p, Backlog::Packets(f64::from(limit)));
            let (mut now, mut last, mut sent, mut refused) = (0, [0; 6], 0, 0);
            for (flow, size, departures, gap) in steps {
                now += gap * MS;
                refused += u32::from(!b.admits(now, flow, size));
                for _ in 0..departures {
                    if let Some(Left { number, flow, .. }) = b.depart_at(now) {
                        prop_assert!(number >= last[flow as usize]);
                        last[flow as usize] = number + 1;
                        sent += 1;
                    }
                }
                prop_assert!(b.queue.packets() <= limit);
                prop_assert_eq!(b.arrived, sent + refused + b.queue.packets());
            }
            while b.depart_at(now).is_some() {}
            prop_assert_eq!(b.queue.packets(), 0);
        }
    }
}

//! Fair policer: an aggregate has one rate and one burst, and each of its flows gets an equal share of both.
//!
//! Each flow has a counter of the bytes that were let by and are not paid for: a phantom queue. The rate pays flows in turn, byte by byte, so that active ones
//! are paid alike and what one does not need goes to the others (max-min). A packet passes if its flow's counter stays within the burst's equal share
//! among active flows, and all counters together within the burst: in any time t at most rate·t + burst bytes pass.
//! Source: Shan et al. 2021 (FairPolicer): tokens go to active flows in a round-robin manner out of one bucket, of which the residual space is kept; Tahir et al.
//! 2024 (BC-PQP): phantom queues, in counters, served by a policy. Of both only the abstracts were at hand: that a flow may hold an equal
//! share of the burst, and one packet in any case, is ours. Turns are infinitely short, and flows are told apart by a hash, as fair queues do.
//! Non-goal: BC-PQP's burst control, other policies than equal shares, and FairPolicer's sketch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::marker::{Action, Marker};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::{Colour, FlowId, Packet};
use crate::params::{Bounds, Build, Context, Fault, Warning};
use crate::rng::Rng;
use crate::units::{Backlog, PS_PER_S, Rate, Time};
use crate::verdict::{Mark, Why};

/// Units of the counters in a byte: bits times picoseconds a second, in which every payment is a whole number.
const BYTE: u128 = 8 * PS_PER_S as u128;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Rate of all flows together, counted on the wire. Default: the flow's contract.
        rate: Option<Rate> [POSITIVE];
        /// The most that may pass beyond the rate, all flows together. Packets are full packets.
        burst: Backlog [POSITIVE];
        /// Counters that flows are hashed into; each takes 16 B.
        queues: u64 [QUEUES] = 1024;
        /// What happens to packets beyond their flow's share: a policer drops them, or they are marked OUT.
        action: Action = Action::Drop;
    }
}

/// State between packets. Counters are kept as what has to be paid, all alike, until one is empty: none changes as time passes.
#[derive(Clone, Debug)]
struct Vars {
    /// What each flow that was active all along has been paid.
    paid: u128,
    /// By flow: what `paid` will be when its counter is empty.
    empty_at: Vec<u128>,
    /// Flows with something in their counter, by a value that was once theirs in `empty_at`, the least first.
    active: BinaryHeap<Reverse<(u128, u32)>>,
    /// All counters together.
    level: u128,
    at: Time,
    /// What could not be divided among the active flows, and is paid with the next: less than one unit each.
    rest: u128,
}

/// The marker.
#[derive(Clone, Debug)]
pub struct FairPolicer {
    rate: Rate,
    burst: u128,
    action: Action,
    vars: Vars,
    /// Packets within their share, and beyond it.
    counts: [u64; 2],
}

impl Build for Params {
    type Mechanism = FairPolicer;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if self.rate.or(context.contract).is_none() {
            return Err(Fault {
                field: "rate",
                problem: "the policer has no rate, and its flow has no contract to take it from".into(),
                remedy: "rate = \"10 Mbit/s\", that of all flows together".into(),
            });
        }
        if self.burst.bytes(context.packet) < context.packet.0 as f64 {
            return Err(Fault {
                field: "burst",
                problem: format!(
                    "a burst of {} is less than a packet of {}: none passes",
                    self.burst, context.packet
                ),
                remedy: format!("at least \"{}\" or \"1 packets\"", context.packet),
            });
        }
        Ok(Vec::new())
    }

    fn build(&self, context: &Context) -> FairPolicer {
        let queues = self.queues.clamp(1, Bounds::QUEUES.max as u64) as usize;
        FairPolicer {
            rate: self.rate.or(context.contract).unwrap_or(Rate(0)),
            burst: self.burst.bytes(context.packet) as u128 * BYTE,
            action: self.action,
            vars: Vars {
                paid: 0,
                empty_at: vec![0; queues],
                active: BinaryHeap::with_capacity(queues),
                level: 0,
                at: Time::ZERO,
                rest: 0,
            },
            counts: [0; 2],
        }
    }
}

impl Vars {
    /// Pays the active flows in equal parts for the time until `now`; those whose counter is empty are active no more.
    fn pay(&mut self, rate: Rate, now: Time) {
        let mut left = u128::from(rate.0) * u128::from(now.since(self.at).0) + self.rest;
        self.at = self.at.max(now);
        self.rest = 0;
        while let Some(&Reverse((was, flow))) = self.active.peek() {
            let (n, empty_at) = (self.active.len() as u128, self.empty_at[flow as usize]);
            if was < empty_at {
                // It has let packets by since.
                self.active.pop();
                self.active.push(Reverse((empty_at, flow)));
                continue;
            }
            let needed = (empty_at - self.paid) * n;
            if needed > left {
                self.paid += left / n;
                self.level -= left - left % n;
                self.rest = left % n;
                return;
            }
            (self.paid, self.level, left) = (empty_at, self.level - needed, left - needed);
            self.active.pop();
        }
    }

    /// Whether so much more passes, of this flow.
    fn passes(&mut self, flow: u32, size: u128, burst: u128) -> bool {
        let of_flow = self.empty_at[flow as usize].saturating_sub(self.paid);
        let active = self.active.len() as u128 + u128::from(of_flow == 0);
        if self.level + size > burst || (of_flow > 0 && (of_flow + size) * active > burst) {
            return false;
        }
        if of_flow == 0 {
            self.active.push(Reverse((self.paid + size, flow)));
        }
        self.empty_at[flow as usize] = self.paid + of_flow + size;
        self.level += size;
        true
    }
}

impl FairPolicer {
    /// Multiplication by 2³²/φ spreads neighbouring numbers (Knuth, vol. 3, §6.4).
    fn counter(&self, flow: FlowId) -> u32 {
        let queues = self.vars.empty_at.len() as u64;
        ((u64::from(flow.0.wrapping_mul(0x9e37_79b9)) * queues) >> 32) as u32
    }
}

impl Mechanism for FairPolicer {
    fn gauges(&self, now: Time, show: Gauge<'_>) {
        let mut vars = self.vars.clone();
        vars.pay(self.rate, now);
        show("tokens", (self.burst - vars.level) as f64 / BYTE as f64);
        show("active_flows", vars.active.len() as f64);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let [within, beyond] = self.counts;
        show("marked_in", within);
        show(if self.action == Action::Drop { "policed" } else { "marked_out" }, beyond);
    }
}

impl Marker for FairPolicer {
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, _: &mut Rng, why: &mut W) -> Mark {
        let flow = self.counter(packet.flow);
        self.vars.pay(self.rate, now);
        why.note("tokens", (self.burst - self.vars.level) as f64 / BYTE as f64);
        why.note("active_flows", self.vars.active.len() as f64);
        let passes = self.vars.passes(flow, u128::from(packet.size) * BYTE, self.burst);
        self.counts[usize::from(!passes)] += 1;
        self.action.on(if passes { Colour::IN } else { Colour::OUT }, Colour::OUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::POLICED;
    use crate::params::fields;
    use crate::rng::Rng;
    use crate::units::{Bytes, Duration};
    use crate::verdict::Silent;
    use proptest::prelude::*;

    const CONTEXT: Context =
        Context { link_rate: None, contract: Some(Rate(6_000_000)), packet: Bytes(1500), limit: None };

    fn params(burst: f64) -> Params {
        Params { rate: None, burst: Backlog::Packets(burst), queues: 1024, action: Action::Drop }
    }

    fn mark(m: &mut FairPolicer, now: Time, flow: u32, size: u32) -> bool {
        let packet = Packet { flow: FlowId(flow), size, ..Packet::default() };
        match m.mark(now, &packet, &mut Rng::for_component(1, "unused"), &mut Silent) {
            Mark::Pass(colour) => {
                assert_eq!(colour, Colour::IN);
                true
            }
            Mark::Drop(cause) => {
                assert_eq!(cause, POLICED);
                false
            }
        }
    }

    /// What flows get that send at these rates, in Mbit/s of 1,500 B packets, over a minute of which the first ten seconds are left out.
    fn shares(offered: &[f64]) -> Vec<f64> {
        let mut m = params(40.0).build(&CONTEXT);
        let mut all: Vec<(u64, u32)> = Vec::new();
        for (flow, mbit) in (0..).zip(offered) {
            let gap = 12_000.0 / (mbit * 1e6) * 1e12;
            all.extend(
                (0..(60e12 / gap) as u64).map(|i| (((i as f64 + 0.37 * f64::from(flow)) * gap) as u64, flow)),
            );
        }
        all.sort_unstable();
        let mut got = vec![0.0; offered.len()];
        for (at, flow) in all {
            if mark(&mut m, Time(at), flow, 1500) && at > 10_000_000_000_000 {
                got[flow as usize] += 12_000.0 / 50e6;
            }
        }
        got
    }

    /// Max-min: the level of water that fills the rate.
    fn water(offered: &[f64], rate: f64) -> Vec<f64> {
        let (mut low, mut high) = (0.0, rate);
        for _ in 0..60 {
            let level = (low + high) / 2.0;
            let sum: f64 = offered.iter().map(|x| f64::min(*x, level)).sum();
            (low, high) = if sum < rate { (level, high) } else { (low, level) };
        }
        offered.iter().map(|x| x.min(high)).collect()
    }

    /// Flows that do not respond get their max-min shares of the rate, to 2 %.
    #[test]
    fn shares_are_max_min() {
        for offered in
            [&[1.0, 2.0, 8.0][..], &[10.0, 10.0], &[0.5, 1.0, 1.5, 2.5], &[0.2, 0.4, 30.0, 4.0, 4.0]]
        {
            let (got, want) = (shares(offered), water(offered, 6.0));
            for (got, want) in got.iter().zip(&want) {
                assert!((got - want).abs() < 0.02 * want, "{offered:?}: {got:?} for {want:?}");
            }
        }
    }

    proptest! {
        /// Never more than rate · t + burst in any stretch; the counters add up; what is paid in equal parts is paid whole.
        #[test]
        fn no_more_than_rate_and_burst(
            arrivals in prop::collection::vec((0..4_000_000_000u64, 0..6u32, 40..1500u32), 300),
            burst in 1..20u32, from in 0..300usize,
        ) {
            let mut m = params(f64::from(burst)).build(&CONTEXT);
            let (mut now, mut since, mut passed) = (Time::ZERO, None, 0u128);
            for (i, (gap, flow, size)) in arrivals.into_iter().enumerate() {
                now += Duration(gap);
                let passes = mark(&mut m, now, flow, size);
                let vars = &m.vars;
                let sum: u128 = vars.empty_at.iter().map(|e| e.saturating_sub(vars.paid)).sum();
                prop_assert_eq!(sum, vars.level);
                let active = vars.empty_at.iter().filter(|e| **e > vars.paid).count();
                prop_assert_eq!(active, vars.active.len());
                if i >= from {
                    let begun = *since.get_or_insert(now);
                    passed += if passes { u128::from(size) * BYTE } else { 0 };
                    let allowed = 6_000_000 * u128::from(now.since(begun).0) + m.burst;
                    prop_assert!(passed <= allowed, "{} of {}", passed, allowed);
                }
            }
        }

        /// One flow alone is policed as by a token bucket of the rate and burst, packet by packet.
        #[test]
        fn one_flow_is_a_token_bucket(arrivals in prop::collection::vec((0..6_000_000_000u64, 40..1500u32), 200)) {
            let mut m = params(8.0).build(&CONTEXT);
            let (mut now, mut tokens) = (Time::ZERO, m.burst);
            for (gap, size) in arrivals {
                now += Duration(gap);
                tokens = (tokens + 6_000_000 * u128::from(gap)).min(m.burst);
                let enough = tokens >= u128::from(size) * BYTE;
                tokens -= if enough { u128::from(size) * BYTE } else { 0 };
                prop_assert_eq!(mark(&mut m, now, 7, size), enough);
            }
        }
    }

    /// Three flows, of which the first sends four packets to the others' one, at twice the rate: capitals pass.
    #[test]
    fn golden_sequence() {
        let mut m = params(4.0).build(&CONTEXT);
        let verdict = |i: u64| {
            let flow = [0, 0, 1, 0, 0, 2][i as usize % 6];
            let passes = mark(&mut m, Time(i * 1_000_000_000), flow, 1500);
            let (yes, no) = [('A', 'a'), ('B', 'b'), ('C', 'c')][flow as usize];
            if passes { yes } else { no }
        };
        assert_eq!(
            (0..60).map(verdict).collect::<String>(),
            "AABAaCaABaaCaaBaACaaBaACaaBaACaaBaACaaBaACaaBaACaaBaACaaBaAC"
        );
    }

    #[test]
    fn what_is_refused() {
        assert_eq!(fields(params(4.0).check(&CONTEXT)), Ok(vec![]));
        assert_eq!(fields(params(0.9).check(&CONTEXT)), Err("burst"));
        assert_eq!(fields(params(4.0).check(&Context { contract: None, ..CONTEXT })), Err("rate"));
        let marks = Params { action: Action::Mark, ..params(1.0) };
        let mut m = marks.build(&CONTEXT);
        let packet = Packet { size: 1500, ..Packet::default() };
        let mut rng = Rng::for_component(1, "unused");
        let colours = [0, 0].map(|t| m.mark(Time(t), &packet, &mut rng, &mut Silent));
        assert_eq!(colours, [Mark::Pass(Colour::IN), Mark::Pass(Colour::OUT)]);
    }
}

//! Properties of the probe marker in every reading of its text, and an oracle that keeps no state.

use crate::rng::Rng;
use proptest::prelude::*;

use super::tests::walk;
use super::*;

const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1500), limit: None };

/// The paper's own run: α = ½, A₀ = 10, 2A + 1.
fn paper() -> Params {
    Params {
        alpha: 0.5,
        a_init: 10.0,
        increase: Increase::Double,
        boundary: Boundary::NotLonger,
        loss: Loss::EachReplica,
        a_min: 0.0,
        first_in: 0,
        flows: 1,
    }
}

/// A flow of segments numbered from 1, its marks and states one by one.
struct Flow {
    probe: Probe,
    isn: u32,
}

impl Flow {
    fn new(p: &Params, isn: u32) -> Flow {
        let mut flow = Flow { probe: p.build(&CONTEXT), isn };
        let syn = Packet { flow: FlowId(0), size: 40, seq: isn, kind: Kind::Syn, ..Packet::default() };
        assert_eq!(flow.mark(&syn), Colour::IN);
        flow
    }

    fn mark(&mut self, packet: &Packet) -> Colour {
        let mut rng = Rng::for_component(0, "unused");
        match self.probe.mark(Time::ZERO, packet, &mut rng, &mut Silent) {
            Mark::Pass(colour) => colour,
            Mark::Drop(_) => unreachable!("it drops nothing"),
        }
    }

    /// Whether segment `n` is OUT.
    fn is_out(&mut self, n: u32) -> bool {
        let seq = self.isn.wrapping_add(1).wrapping_add((n - 1).wrapping_mul(1460));
        let segment = Packet { flow: FlowId(0), size: 1500, payload: 1460, seq, ..Packet::default() };
        self.mark(&segment) != Colour::IN
    }

    fn permitted(&self) -> f64 {
        self.probe.last.permitted
    }

    /// New data from `next` on up to its OUT packet, whose number it gives.
    fn burst(&mut self, next: u32) -> u32 {
        (next..).find(|&n| self.is_out(n)).expect("every burst ends")
    }
}

/// New packets that are OUT if none is lost, and A after each.
fn without_loss(boundary: Boundary) -> (Vec<u32>, Vec<f64>) {
    let mut flow = Flow::new(&Params { boundary, ..paper() }, 0);
    let mut a = vec![flow.permitted()];
    let mut outs = Vec::new();
    for n in 1..=165 {
        if flow.is_out(n) {
            outs.push(n);
            a.push(flow.permitted());
        }
    }
    (outs, a)
}

/// Neglia et al. 2003 §2: A₀ = 10 and 2A + 1 without loss.
#[test]
fn without_loss_a_doubles_and_one_more() {
    let (outs, a) = without_loss(Boundary::NotLonger);
    assert_eq!(
        (outs.as_slice(), a.as_slice()),
        ([11, 33, 77, 165].as_slice(), [10.0, 21.0, 43.0, 87.0, 175.0].as_slice())
    );
    let (outs, a) = without_loss(Boundary::Shorter);
    assert_eq!(
        (outs.as_slice(), a.as_slice()),
        ([10, 31, 74, 161].as_slice(), [10.0, 21.0, 43.0, 87.0, 175.0].as_slice())
    );
}

/// Neglia et al. 2003 §2: "an OUT packet should be marked every A IN packets". So many, by the default.
#[test]
fn a_burst_is_as_many_in_packets_as_a_says() {
    for a_init in [1u32, 2, 7, 10, 64] {
        let mut flow = Flow::new(&Params { a_init: f64::from(a_init), ..paper() }, 0);
        assert_eq!(flow.burst(1), a_init + 1);
    }
}

/// A cycle of stop and wait with every OUT packet lost and no other: a burst, its OUT packet, that packet again.
fn cycle(flow: &mut Flow, next: u32) -> u32 {
    let lost = flow.burst(next);
    assert!(!flow.is_out(lost), "what is repeated is IN");
    assert_eq!(flow.probe.last.length, 0);
    lost + 1
}

/// Neglia et al. 2003 §2: A/(1 − α) keeps A, whatever α, so that it's α that weighs the burst.
#[test]
fn under_stop_and_wait_the_inverse_rule_keeps_a() {
    for boundary in [Boundary::NotLonger, Boundary::Shorter] {
        for alpha in [0.125, 0.25, 0.5, 0.75, 0.875] {
            let p = Params { alpha, a_init: 8.0, boundary, increase: Increase::Inverse, ..paper() };
            let mut flow = Flow::new(&p, 0);
            let mut next = 1;
            for _ in 0..40 {
                next = cycle(&mut flow, next);
                assert!((flow.permitted() - 8.0).abs() < 1e-12, "alpha {alpha}: {}", flow.permitted());
            }
        }
    }
}

/// Neglia et al. 2003 §2: (2A + 1)/2 = A + ½, exactly, at any A.
#[test]
fn under_stop_and_wait_the_papers_rule_gains_half_a_packet_a_cycle() {
    for a_init in [0.0, 1.0, 10.0, 33.25] {
        let mut flow = Flow::new(&Params { a_init, ..paper() }, 0);
        let mut next = 1;
        for k in 1..=60u32 {
            next = cycle(&mut flow, next);
            assert_eq!(flow.permitted(), a_init + 0.5 * f64::from(k));
        }
    }
}

/// Neglia et al. 2003 §4: (A + 1)/2 halves the distance to 1 each cycle.
#[test]
fn under_stop_and_wait_one_more_takes_a_to_one() {
    for a_init in [0.0, 0.5, 10.0, 200.0] {
        let mut flow = Flow::new(&Params { a_init, increase: Increase::One, ..paper() }, 0);
        let (mut next, mut far) = (1, a_init - 1.0);
        for _ in 0..20 {
            next = cycle(&mut flow, next);
            far /= 2.0;
            assert!((flow.permitted() - 1.0 - far).abs() < 1e-12);
        }
        assert!((flow.permitted() - 1.0).abs() < 1e-3);
    }
}

/// Neglia et al. 2003 §2: at A = 0 the next new packet is OUT, and 2A + 1 and A + 1 are 1: neither needs a bound from below.
#[test]
fn a_leaves_zero_by_itself() {
    for increase in [Increase::Double, Increase::One] {
        for boundary in [Boundary::NotLonger, Boundary::Shorter] {
            let mut flow = Flow::new(&Params { a_init: 0.0, increase, boundary, ..paper() }, 0);
            assert!(flow.is_out(1));
            assert_eq!(flow.permitted(), 1.0);
        }
    }
}

/// The record of a flow: its segments' numbers and whether each was marked OUT.
type History = Vec<(u32, bool)>;

/// Neglia et al. 2003 §2: the state is reserved by a SYN and updated by non-empty packets. An acknowledgement that comes first (the other
/// end's data is all that flows yet) opens no record: it takes no other flow's place, and the data after it starts from its own number.
#[test]
fn an_acknowledgement_that_comes_first_opens_no_record() {
    let ack =
        |flow| Packet { flow: FlowId(flow), size: 40, seq: 9_000_000, kind: Kind::Ack, ..Packet::default() };
    let mut first = Flow { probe: paper().build(&CONTEXT), isn: 0 };
    assert_eq!(first.mark(&ack(0)), Colour::IN);
    assert_eq!(first.probe.flows.len(), 0);
    let out: Vec<u32> = (1..=12).filter(|&n| first.is_out(n)).collect();
    assert_eq!(
        (out, first.probe.stats.repeated),
        (vec![11], 0),
        "none of them is a replica of what the acknowledgement named"
    );

    // A table with room for one: a flow that only acknowledges must not push out a flow that sends.
    let mut sender = Flow::new(&paper(), 0);
    sender.burst(1);
    let before = sender.permitted();
    assert_eq!(sender.mark(&ack(1)), Colour::IN);
    assert!(sender.probe.flows.get(FlowId(0)).is_some());
    assert_eq!(sender.probe.stats.forgotten, 0);
    sender.is_out(12);
    assert_eq!(sender.permitted(), before);
}

/// L as the history has it: new packets since the last OUT packet or the last replica.
fn burst_so_far(history: &History) -> u32 {
    let mut seen = 0;
    let mut length = 0;
    for &(n, out) in history {
        let replica = n <= seen;
        seen = seen.max(n);
        length = if replica || out { 0 } else { length + 1 };
    }
    length
}

/// A as the history has it: what every OUT packet and every replica in it did, from A₀ on.
fn permitted_so_far(history: &History, p: &Params) -> f64 {
    let mut seen = 0;
    let mut a = p.a_init;
    for (i, &(n, out)) in history.iter().enumerate() {
        if n <= seen {
            let l = f64::from(burst_so_far(&history[..i].to_vec()));
            a = a + p.alpha * (l - a);
        } else if out {
            a = if p.increase == Increase::Double { a + a + 1.0 } else { a + 1.0 };
        }
        seen = seen.max(n);
    }
    a
}

proptest! {
    /// Neglia et al. 2003 §2: each mark follows from the packets before it alone; L and A are read off the whole history for every packet.
    #[test]
    fn every_mark_follows_from_the_history(
        segments in walk(10, 90), isn: u32, alpha in 0.0f64..1.0, a_init in 0.0f64..20.0, one: bool, shorter: bool,
    ) {
        let p = Params {
            alpha, a_init,
            increase: if one { Increase::One } else { Increase::Double },
            boundary: if shorter { Boundary::Shorter } else { Boundary::NotLonger },
            ..paper()
        };
        let mut flow = Flow::new(&p, isn);
        let mut history = History::new();
        for n in segments {
            let is_new = history.iter().all(|&(m, _)| m < n);
            let (l, a) = (f64::from(burst_so_far(&history) + 1), permitted_so_far(&history, &p));
            // After a replica A is rounded, one way or another, where L and A meet.
            let tie = (l - a).abs() < 1e-9 && flow.probe.stats.repeated > 0;
            let out = flow.is_out(n);
            if !tie {
                prop_assert_eq!(out, is_new && (l > a || shorter && l >= a), "segment {}", n);
            }
            history.push((n, out));
            prop_assert_eq!(flow.probe.last.length, burst_so_far(&history));
            let a = permitted_so_far(&history, &p);
            prop_assert!((flow.permitted() - a).abs() <= 1e-9 * (1.0 + a));
        }
    }

    /// Neglia et al. 2003 §2: replicas are IN and never move SN_h, and A goes to a weighted mean of A and L.
    #[test]
    fn a_replica_is_in_and_moves_only_a(segments in walk(10, 90), isn: u32, alpha in 0.0f64..1.0) {
        let mut flow = Flow::new(&Params { alpha, ..paper() }, isn);
        let mut seen = 0;
        for n in segments {
            let before = flow.probe.last;
            let out = flow.is_out(n);
            let after = flow.probe.last;
            if n <= seen {
                prop_assert!(!out);
                prop_assert_eq!((after.highest, after.length), (before.highest, 0));
                let (l, a) = (f64::from(before.length), before.permitted);
                prop_assert!(after.permitted >= l.min(a) - 1e-9 && after.permitted <= l.max(a) + 1e-9);
            } else {
                prop_assert_eq!(after.highest, isn.wrapping_add(1).wrapping_add((n - 1).wrapping_mul(1460)));
                prop_assert!(after.permitted == before.permitted || out);
            }
            seen = seen.max(n);
        }
    }
}

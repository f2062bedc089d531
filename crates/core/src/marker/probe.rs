//! Probe marker: nearly every packet is IN; now and then one is OUT, to detect congestion early.
//!
//! A flow sends bursts of IN packets, each followed by one OUT packet. The permitted burst length A follows the bursts that
//! were cut short by losses: a loss moves A towards the length L that the current burst has reached; each OUT packet increases
//! A. So the more losses a flow has, the more often it probes, and the packets it loses are OUT.
//! A loss is detected by a sequence number that does not exceed the highest one so far.
//! Source: Neglia et al. 2003 (paper C), §2 and Fig. 1. They keep state per flow in the ingress router; here a flow's own
//! marker has one record, and an edge's marker as many as `flows` says.
//! Pure acknowledgements and SYNs are IN and change nothing; packets that are not TCP keep their colour.
//! Non-goal: an assured rate. All flows share the capacity.

use crate::flow_table::FlowTable;
use crate::packet::Kind;
use crate::prelude::*;
use crate::signal::FORGET;

crate::choice! {
    /// How A grows after an OUT packet.
    pub enum Increase {
        /// Doubles, and one more: the paper's runs.
        Double = "2A+1",
        /// By one: the paper's less aggressive variant, better where OUT packets are not dropped hard.
        One = "A+1",
        /// By 1/(1−α): constant if every OUT packet is lost and no other, one round trip at a time (§2).
        Inverse = "A/(1-alpha)",
        /// By one and by the share of OUT packets that are lost: from A+1 where none is to 2A+1 where all are. What the
        /// paper suggests as future work (§4), spelt out.
        ByOutLoss = "A+1+A*out_loss",
    }
}

crate::choice! {
    /// Which packets of a burst are IN, L being the packet's place in it.
    pub enum Boundary {
        /// A of them: an OUT packet once the burst "has become longer than" A, so that one follows A IN packets, as §2's
        /// stationary case has it.
        NotLonger = "L<=A",
        /// A − 1 of them: IN only while the burst is "shorter than" A.
        Shorter = "L<A",
    }
}

crate::choice! {
    /// The definition of a loss.
    pub enum Loss {
        /// Every repeated packet.
        EachReplica = "each_replica",
        /// The first repeated packet of a window: others sent before that one was seen are of the same loss, so that a
        /// timeout, which repeats a whole window, counts once.
        OncePerWindow = "once_per_window",
    }
}

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Weight of the burst that a loss has cut short (α).
        alpha: f64 [UNIT] = 0.5;
        /// Permitted length of a new flow's bursts, in packets (A₀).
        a_init: f64 [NON_NEGATIVE] = 10.0;
        /// How A grows after an OUT packet.
        increase: Increase = Increase::Double;
        /// Whether a burst of A packets is still IN.
        boundary: Boundary = Boundary::NotLonger;
        /// Whether every repeated packet counts as a loss, or one in a window.
        loss: Loss = Loss::EachReplica;
        /// What A never falls below, in packets. The paper has no such bound.
        a_min: f64 [NON_NEGATIVE] = 0.0;
        /// So many packets at the start of a flow are IN whatever A is: a short transfer loses nothing to its probes.
        first_in: u64 = 0;
        /// How many flows it keeps apart; the one that was silent longest makes room for another.
        flows: u64 [FLOWS] = 256;
    }
}

/// How far behind the last loss may fall: a quarter of the numbers, so that it never comes to look as if it lay ahead.
const FARTHEST: u32 = 1 << 30;

/// The state of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vars {
    /// SN_h: the highest sequence number so far.
    highest: u32,
    /// L: packets of the present burst.
    length: u32,
    /// A: the permitted length, filtered.
    permitted: f64,
    /// The highest number when the last loss was counted, or [`FARTHEST`] behind `highest`.
    recover: u32,
    /// Packets with data so far, repeated ones not counted.
    sent: u64,
    /// The last OUT packet, while nothing has said that it was lost.
    probe: Option<u32>,
    /// Share of OUT packets lost, filtered with α.
    out_loss: f64,
}

/// Packets by what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// New data within its burst: IN.
    pub marked_in: u64,
    /// New data that ended a burst: OUT.
    pub marked_out: u64,
    /// Repeated data: IN.
    pub repeated: u64,
    /// Repeated packets that were counted as a loss.
    pub losses: u64,
    /// OUT packets that were repeated.
    pub probes_lost: u64,
    /// Flows that had to make room.
    pub forgotten: u64,
}

/// The marker.
#[derive(Clone, Debug)]
pub struct Probe {
    params: Params,
    flows: FlowTable<Vars>,
    /// The flow that was marked last, for monitors.
    last: Vars,
    stats: Stats,
}

/// Whether `a` does not come after `b`, modulo 2³² (§2, note 2).
#[inline]
fn up_to(a: u32, b: u32) -> bool {
    b.wrapping_sub(a) as i32 >= 0
}

/// §2, Fig. 1, left: A after a loss that ended a burst of `length`. That α weighs the burst, and 1 − α what A was, follows
/// from §2's stationary case: A/(1 − α) undoes a loss at L = 0.
#[must_use]
#[inline]
pub fn after_loss(permitted: f64, length: u32, alpha: f64, a_min: f64) -> f64 {
    ((1.0 - alpha) * permitted + alpha * f64::from(length)).max(a_min)
}

/// Fig. 1, right: A after an OUT packet.
#[must_use]
#[inline]
pub fn increase(rule: Increase, permitted: f64, alpha: f64, out_loss: f64) -> f64 {
    match rule {
        Increase::Double => 2.0 * permitted + 1.0,
        Increase::One => permitted + 1.0,
        Increase::Inverse => permitted / (1.0 - alpha),
        Increase::ByOutLoss => permitted + 1.0 + permitted * out_loss,
    }
}

impl Vars {
    /// Of a flow whose first number is `isn`.
    fn new(isn: u32, p: &Params) -> Vars {
        // Until a probe's fate is known they count as lost, as in the paper's own rule.
        Vars {
            highest: isn,
            recover: isn,
            permitted: p.a_init.max(p.a_min),
            out_loss: 1.0,
            ..Vars::default()
        }
    }

    /// Fig. 1, for a packet that carries data.
    fn data(&mut self, seq: u32, p: &Params, stats: &mut Stats) -> Colour {
        if up_to(seq, self.highest) {
            stats.repeated += 1;
            if self.probe == Some(seq) {
                self.probe = None;
                stats.probes_lost += 1;
                self.out_loss += p.alpha * (1.0 - self.out_loss);
            }
            if p.loss == Loss::EachReplica || !up_to(seq, self.recover) {
                stats.losses += 1;
                self.permitted = after_loss(self.permitted, self.length, p.alpha, p.a_min);
                self.length = 0;
                self.recover = self.highest;
            }
            return Colour::IN;
        }
        self.highest = seq;
        if up_to(self.recover, seq.wrapping_sub(FARTHEST)) {
            self.recover = seq.wrapping_sub(FARTHEST);
        }
        self.sent += 1;
        self.length = self.length.saturating_add(1);
        let length = f64::from(self.length);
        let within = match p.boundary {
            Boundary::Shorter => length < self.permitted,
            Boundary::NotLonger => length <= self.permitted,
        };
        if within || self.sent <= p.first_in {
            stats.marked_in += 1;
            return Colour::IN;
        }
        if self.probe.replace(seq).is_some() {
            // Nobody has repeated the one before: it got through.
            self.out_loss -= p.alpha * self.out_loss;
        }
        self.length = 0;
        self.permitted = increase(p.increase, self.permitted, p.alpha, self.out_loss);
        stats.marked_out += 1;
        Colour::OUT
    }
}

impl Build for Params {
    type Mechanism = Probe;

    fn check(&self, _: &Context) -> Result<Vec<Warning>, Fault> {
        if self.increase == Increase::Inverse && self.alpha >= 1.0 {
            return Err(Fault {
                field: "alpha",
                problem: "increase = \"A/(1-alpha)\" divides by 0 where alpha is 1".into(),
                remedy: "an alpha below 1, or increase = \"2A+1\"".into(),
            });
        }
        let mut warnings = Vec::new();
        let mut warn = |field, text: &str| warnings.push(Warning { field, text: text.into() });
        if self.alpha <= 0.0 {
            warn("alpha", "losses change nothing: bursts only grow, and OUT packets become ever rarer");
        }
        if self.increase == Increase::Inverse && self.a_min <= 0.0 {
            warn(
                "a_min",
                "once losses have taken A to 0, A/(1-alpha) never leaves it: every new packet is OUT",
            );
        }
        Ok(warnings)
    }

    fn build(&self, _: &Context) -> Probe {
        let flows = FlowTable::new(usize::try_from(self.flows).unwrap_or(usize::MAX));
        Probe { params: self.clone(), flows, last: Vars::new(0, self), stats: Stats::default() }
    }
}

impl Mechanism for Probe {
    /// [`FORGET`] drops the state of the flow that had the number before.
    fn signal(&mut self, _: Time, signal: &Signal) {
        if let Some(flow) = signal.flow.filter(|_| signal.topic == FORGET) {
            self.flows.remove(flow);
        }
    }

    /// Of the flow that was marked last: `permitted` (A) and `length` (L) in packets, `out_loss`.
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("permitted", self.last.permitted);
        show("length", f64::from(self.last.length));
        show("out_loss", self.last.out_loss);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let s = &self.stats;
        show("marked_in", s.marked_in);
        show("marked_out", s.marked_out);
        show("repeated", s.repeated);
        show("losses", s.losses);
        show("probes_lost", s.probes_lost);
        show("forgotten", s.forgotten);
    }
}

impl Marker for Probe {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, _: &mut Rng, why: &mut W) -> Mark {
        let opens = packet.kind == Kind::Syn;
        if packet.kind == Kind::Datagram {
            return Mark::Pass(packet.colour);
        }
        if !opens && packet.payload == 0 {
            return Mark::Pass(Colour::IN);
        }
        let known = self.flows.touch(now, packet.flow);
        self.stats.forgotten += u64::from(known.evicted.is_some());
        if known.new || opens {
            // Without a SYN the first data that passes is new data.
            let isn = if opens { packet.seq } else { packet.seq.wrapping_sub(1) };
            *known.state = Vars::new(isn, &self.params);
        }
        if packet.payload == 0 {
            return Mark::Pass(Colour::IN);
        }
        let colour = known.state.data(packet.seq, &self.params, &mut self.stats);
        self.last = *known.state;
        why.note("length", f64::from(self.last.length));
        why.note("permitted", self.last.permitted);
        Mark::Pass(colour)
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

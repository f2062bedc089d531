//! Every n-th packet OUT, whatever the traffic does: the placebo for the probe marker.
//!
//! Paper C (footnote 1) compares its marker with one like this, "very similar" to that of Azeem, Rao and Kalyanaraman 2000,
//! which also marks IN the packets that a small window and a loss can least afford to lose. Both protections are options here.
//! Pure acknowledgements and SYNs are IN and do not count; packets that are not TCP count like data.
//! Non-goal: adapting to anything.

use crate::flow_table::FlowTable;
use crate::packet::{Direction, Kind};
use crate::prelude::*;
use crate::signal::FORGET;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// One packet in so many is OUT; 1: all of them.
        n: u64 [POSITIVE];
        /// Whether repeated packets are IN, and do not count.
        repeated_in: bool = false;
        /// Packets are IN, and do not count, while fewer than so many full segments are on their way.
        small_window: u64 = 0;
        /// How many flows it keeps apart; the one that was silent longest makes room for another.
        flows: u64 [FLOWS] = 256;
    }
}

/// The state of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vars {
    /// The highest sequence number so far.
    highest: u32,
    /// The next byte the receiver expects.
    acked: u32,
    /// Packets since the last OUT.
    count: u64,
}

/// Packets by what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Left as IN.
    pub marked_in: u64,
    /// Left as OUT.
    pub marked_out: u64,
    /// Left as IN because they were repeated, or because the window was small.
    pub protected: u64,
}

/// The marker.
#[derive(Clone, Debug)]
pub struct EveryNth {
    params: Params,
    flows: FlowTable<Vars>,
    /// The count of the flow that was marked last, for monitors.
    count: u64,
    stats: Stats,
}

impl Build for Params {
    type Mechanism = EveryNth;

    fn check(&self, _: &Context) -> Result<Vec<Warning>, Fault> {
        if self.n > 1 {
            return Ok(Vec::new());
        }
        Ok(vec![Warning { field: "n", text: "every packet that is not protected is OUT".into() }])
    }

    fn build(&self, _: &Context) -> EveryNth {
        let flows = FlowTable::new(usize::try_from(self.flows).unwrap_or(usize::MAX));
        EveryNth { params: self.clone(), flows, count: 0, stats: Stats::default() }
    }
}

impl Mechanism for EveryNth {
    fn sees_reverse(&self) -> bool {
        true
    }

    fn observe(&mut self, _: Time, packet: &Packet, direction: Direction) {
        if direction == Direction::Reverse
            && packet.kind == Kind::Ack
            && let Some(flow) = self.flows.get_mut(packet.flow)
            && packet.ack.wrapping_sub(flow.acked) as i32 > 0
        {
            flow.acked = packet.ack;
        }
    }

    /// [`FORGET`] drops the state of the flow that had the number before.
    fn signal(&mut self, _: Time, signal: &Signal) {
        if let Some(flow) = signal.flow.filter(|_| signal.topic == FORGET) {
            self.flows.remove(flow);
        }
    }

    /// Of the flow that was marked last: packets since its last OUT.
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("count", self.count as f64);
    }

    fn stats(&self, show: &mut dyn FnMut(&'static str, u64)) {
        show("marked_in", self.stats.marked_in);
        show("marked_out", self.stats.marked_out);
        show("protected", self.stats.protected);
    }
}

impl Marker for EveryNth {
    #[inline]
    fn mark<W: Why + ?Sized>(&mut self, now: Time, packet: &Packet, _: &mut Rng, why: &mut W) -> Mark {
        if packet.kind == Kind::Ack && packet.payload == 0 {
            return Mark::Pass(Colour::IN);
        }
        let known = self.flows.touch(now, packet.flow);
        let flow = known.state;
        if known.new || packet.kind == Kind::Syn {
            let first = if packet.kind == Kind::Syn { packet.seq } else { packet.seq.wrapping_sub(1) };
            *flow = Vars { highest: first, acked: first.wrapping_add(1), count: 0 };
        }
        if packet.kind == Kind::Syn {
            return Mark::Pass(Colour::IN);
        }
        let tcp = packet.kind != Kind::Datagram;
        let repeated = tcp && flow.highest.wrapping_sub(packet.seq) as i32 >= 0;
        if !repeated {
            flow.highest = packet.seq;
        }
        // Full segments on their way once this one is: its end beyond what is acknowledged.
        let end = packet.seq.wrapping_add(packet.payload);
        let window = u64::from(end.wrapping_sub(flow.acked)).div_ceil(u64::from(packet.payload.max(1)));
        let small = tcp && window < self.params.small_window;
        why.note("window", window as f64);
        if small || repeated && self.params.repeated_in {
            self.stats.protected += 1;
            return Mark::Pass(Colour::IN);
        }
        flow.count += 1;
        let out = flow.count >= self.params.n;
        if out {
            flow.count = 0;
        }
        self.count = flow.count;
        why.note("count", flow.count as f64);
        *(if out { &mut self.stats.marked_out } else { &mut self.stats.marked_in }) += 1;
        Mark::Pass(if out { Colour::OUT } else { Colour::IN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };

    fn every(n: u64) -> Params {
        Params { n, repeated_in: false, small_window: 0, flows: 4 }
    }

    fn segment(flow: u32, n: u32) -> Packet {
        let payload = 1000;
        // Numbers that wrap after the second segment.
        let seq = u32::MAX - 1999 + (n - 1) % 2 * payload;
        let seq = if n > 2 { (n - 3) * payload } else { seq };
        Packet { flow: FlowId(flow), size: 1040, payload, seq, ..Packet::default() }
    }

    fn mark(m: &mut EveryNth, p: &Packet) -> char {
        match m.mark(Time::ZERO, p, &mut Rng::for_component(0, "unused"), &mut Silent) {
            Mark::Pass(Colour::Green) => 'i',
            _ => 'O',
        }
    }

    fn marks(m: &mut EveryNth, segments: impl IntoIterator<Item = u32>) -> String {
        segments.into_iter().map(|n| mark(m, &segment(0, n))).collect()
    }

    #[test]
    fn golden_sequences() {
        assert_eq!(marks(&mut every(3).build(&CONTEXT), 1..=10), "iiOiiOiiOi");
        // The fifth and sixth are repeated: they count, or they are spared.
        let order = || (1..=6).chain([5, 6]).chain(7..=9);
        assert_eq!(marks(&mut every(3).build(&CONTEXT), order()), "iiOiiOiiOii");
        let spared = Params { repeated_in: true, ..every(3) };
        assert_eq!(marks(&mut spared.build(&CONTEXT), order()), "iiOiiOiiiiO");
        assert_eq!(marks(&mut every(1).build(&CONTEXT), 1..=3), "OOO");
    }

    #[test]
    fn a_small_window_is_spared() {
        let mut m = Params { small_window: 3, ..every(2) }.build(&CONTEXT);
        // Two on their way are few; from the third on every second one that counts is OUT.
        assert_eq!(marks(&mut m, 1..=6), "iiiOiO");
        // All but the last are acknowledged: the seventh makes two.
        let ack = Packet { kind: Kind::Ack, size: 40, ack: segment(0, 6).seq, ..Packet::default() };
        m.observe(Time::ZERO, &ack, Direction::Reverse);
        assert_eq!(marks(&mut m, 7..=9), "iiO");
        assert_eq!(m.stats, Stats { marked_in: 3, marked_out: 3, protected: 3 });
    }

    #[test]
    fn acknowledgements_and_syns_do_not_count() {
        let mut m = every(2).build(&CONTEXT);
        let ack = Packet { kind: Kind::Ack, size: 40, ..Packet::default() };
        let syn = Packet { kind: Kind::Syn, seq: u32::MAX - 2000, ..ack };
        assert_eq!([mark(&mut m, &syn), mark(&mut m, &ack), mark(&mut m, &segment(0, 1))], ['i'; 3]);
        assert_eq!([mark(&mut m, &ack), mark(&mut m, &segment(0, 2))], ['i', 'O']);
        assert_eq!(every(1).check(&CONTEXT).map(|w| w[0].field), Ok("n"));
    }

    proptest! {
        /// Of k packets of a flow, the whole part of k/n are OUT, flow by flow.
        #[test]
        fn one_in_n(n in 1u64..20, order in prop::collection::vec(0u32..4, 0..300)) {
            let mut m = every(n).build(&CONTEXT);
            let (mut sent, mut out) = ([0u64; 4], [0u64; 4]);
            for flow in order {
                sent[flow as usize] += 1;
                let p = Packet { kind: Kind::Datagram, ..segment(flow, 1) };
                out[flow as usize] += u64::from(mark(&mut m, &p) == 'O');
            }
            prop_assert_eq!(out, sent.map(|k| k / n));
        }
    }
}

//! ns-2 2.35: how it computes disciplines and markers that others define, to the last bit and random number.
//!
//! Papers were run on ns-2, and a run of ours that agrees with ns-2's event by event shows that the rest of the simulator is
//! right. So this folder has what ns-2 computes differently from the sources that it names: averages and counts of
//! [RED and RIO](red), the order of steps in [dsRED](dsred), rounding of limits, [policers](dsred), its
//! [random numbers](stream), the timers and draws of [PI](pi) and [REM](rem), its fair queues ([SFQ](sfq), [DRR](drr), [FQ](fq)), and its clock.
//!
//! The rest of this crate does not refer to it. A mechanism that ns-2 computes differently is generic over its variant
//! ([RED's](crate::aqm::red::law::Variant), [PI's](crate::aqm::pi::Variant), [the TSW markers'](crate::marker::tsw2cm::Chance)) or, where
//! it decides elsewhere, as [REM](rem) does, is here whole; and one block of the [registry](crate::registry) names what is in this
//! folder. Without both there is no `variant = "ns2"`.
//! Non-goal: ns-2's TCP and order of events, which belong to the simulator.

use std::sync::Arc;

use crate::packet::{Kind, Packet};
use crate::registry::mechanisms::{AnyAqm, AnyMarker};
use crate::rng::{Rng, Source};
use crate::units::Time;

pub mod drr;
pub mod dsred;
pub mod fq;
pub mod offer;
pub mod pi;
pub mod red;
pub mod rem;
pub mod rio;
pub mod sfq;

// The common part of ns-2's fair queues: flows are told apart by their nodes' addresses, and queues stand in a ring.

/// No queue.
const NONE: u32 = u32::MAX;

/// The addresses of each flow's source and destination: in ns-2 the numbers of their nodes.
#[derive(Clone, Debug, Default)]
pub struct Addresses(Option<Arc<[(u32, u32)]>>);

impl Addresses {
    /// Of flows 0, 1, …
    #[must_use]
    pub fn told(of: Arc<[(u32, u32)]>) -> Addresses {
        Addresses(Some(of))
    }

    /// Where a packet comes from and goes: acknowledgements go from a flow's destination to its source. Where nothing was told,
    /// a flow's number stands for its source.
    #[must_use]
    pub fn of(&self, packet: &Packet) -> (u32, u32) {
        let flow = packet.flow.0;
        let (from, to) = match &self.0 {
            Some(all) => all.get(flow as usize).copied().unwrap_or((flow, 0)),
            None => (flow, 0),
        };
        if packet.kind == Kind::Ack { (to, from) } else { (from, to) }
    }
}

/// Queues that hold something, in a ring; a new one comes last.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Who is after and before each.
    links: Box<[(u32, u32)]>,
    current: u32,
}

impl Ring {
    /// Of so many queues, all outside.
    #[must_use]
    pub fn new(queues: u32) -> Ring {
        Ring { links: vec![(NONE, NONE); queues as usize].into(), current: NONE }
    }

    /// How many queues there are, in the ring or not.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.links.len() as u32
    }

    /// Whether none is in the ring.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current == NONE
    }

    /// Whose turn it is.
    #[must_use]
    pub fn current(&self) -> Option<u32> {
        Some(self.current).filter(|queue| *queue != NONE)
    }

    /// The turn passes on.
    pub fn turn(&mut self) {
        if let Some(current) = self.current() {
            self.current = self.links[current as usize].0;
        }
    }

    /// A queue comes before the one whose turn it is.
    pub fn activate(&mut self, queue: u32) {
        let Some(head) = self.current() else {
            self.links[queue as usize] = (queue, queue);
            self.current = queue;
            return;
        };
        let last = self.links[head as usize].1;
        self.links[queue as usize] = (head, last);
        self.links[last as usize].0 = queue;
        self.links[head as usize].1 = queue;
    }

    /// A queue leaves the ring; if it was its turn, it is that of the next.
    pub fn leave(&mut self, queue: u32) {
        let (next, previous) = self.links[queue as usize];
        if next == queue {
            self.current = NONE;
            return;
        }
        self.links[previous as usize].0 = next;
        self.links[next as usize].1 = previous;
        if self.current == queue {
            self.current = next;
        }
    }

    /// The queue of which `amount` says most, the first of equals from the one whose turn it is.
    pub fn first_most(&self, amount: impl Fn(u32) -> u64) -> Option<u32> {
        let first = self.current()?;
        let (mut most, mut at) = (first, self.links[first as usize].0);
        while at != first {
            if amount(at) > amount(most) {
                most = at;
            }
            at = self.links[at as usize].0;
        }
        Some(most)
    }
}

// The context that only ns-2's disciplines and markers have: moments of its clock, addresses, and the intervals of its timers.

/// A moment on ns-2's clock, in its own seconds: sums of doubles, which whole picoseconds can't hold. Traffic in step leaves a
/// link idle for exactly whole packets and a bucket with exactly a packet's tokens, and then the last bit counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Since the start of the run.
    pub secs: f64,
    /// How long the link before which a packet arrives has been idle, if it is: ns-2's own difference.
    pub idle: f64,
}

impl AnyAqm {
    /// Of the call that follows, on ns-2's clock only.
    pub fn tell_moment(&mut self, moment: Moment) {
        match self {
            AnyAqm::Ns2Red(m) => m.law.variant.told.tell(moment),
            AnyAqm::Ns2Rio(m) => m.law.variant.told.tell(moment),
            AnyAqm::RioAtIn(m) => m.law.variant.told.tell(moment),
            AnyAqm::Ns2RioAtIn(m) => m.law.variant.told.tell(moment),
            AnyAqm::Ns2RioPlusOut(m) => m.rio.law.variant.told.tell(moment),
            AnyAqm::RioPlusOutAtIn(m) => m.rio.law.variant.told.tell(moment),
            AnyAqm::Ns2RioPlusOutAtIn(m) => m.rio.law.variant.told.tell(moment),
            AnyAqm::Ns2FddRed(m) => m.red.law.variant.told.tell(moment),
            AnyAqm::DsRed(m) => m.tell_secs(moment.secs),
            AnyAqm::Ns2Fq(m) => m.tell(moment),
            _ => {}
        }
    }

    /// Seconds between its ticks, where ns-2 has a timer for them: ns-2 adds them up in doubles, which picoseconds can't.
    #[must_use]
    pub fn timer_secs(&self) -> Option<f64> {
        match self {
            AnyAqm::Ns2Pi(m) => Some(m.controller.interval()),
            AnyAqm::Ns2Rem(m) => Some(m.interval()),
            _ => None,
        }
    }

    /// The addresses of each flow's source and destination, of which ns-2's fair queues take their hash.
    pub fn tell_addresses(&mut self, of: &std::sync::Arc<[(u32, u32)]>) {
        match self {
            AnyAqm::Ns2Sfq(m) => m.addresses = Addresses::told(of.clone()),
            AnyAqm::Ns2Drr(m) => m.addresses = Addresses::told(of.clone()),
            _ => {}
        }
    }
}

impl AnyMarker {
    /// Of the call that follows, on ns-2's clock only.
    pub fn tell_moment(&mut self, now: Time, moment: Moment) {
        match self {
            AnyMarker::TokenBucket(m) => m.tell_secs(now, moment.secs),
            AnyMarker::Tsw2cm(m) => m.rate.tell_secs(moment.secs),
            AnyMarker::Tsw3cm(m) => m.rate.tell_secs(moment.secs),
            AnyMarker::Ns2Tsw2cm(m) => m.rate.tell_secs(moment.secs),
            AnyMarker::Ns2Tsw3cm(m) => m.rate.tell_secs(moment.secs),
            _ => {}
        }
    }
}

// ns-2's random numbers: MRG32k3a (L'Ecuyer 1999), seeded like ns-2's default stream.
//
// With them random drops can be compared with ns-2's packet by packet. Non-goal: a stream for each component; ns-2's
// mechanisms all draw from this one.

/// ns-2's default stream after `$defaultRNG seed N`: all six words of the state are the seed.
#[must_use]
pub fn stream(seed: u32) -> Rng {
    Rng::from_source(Box::new(Mrg32k3a::new([seed.max(1); 6])))
}

/// Uniform among 0 … n − 1 as `Random::integer` draws it: 31 bits, of which the remainder is taken; n must not be 0.
#[inline]
pub fn integer(rng: &mut Rng, n: u32) -> u32 {
    debug_assert!(n > 0);
    (rng.uniform() * f64::from(1u32 << 31)) as u32 % n
}

/// MRG32k3a: two recurrences of order three, combined (L'Ecuyer 1999, Fig. 1).
#[derive(Clone, Debug)]
struct Mrg32k3a {
    s1: [i64; 3],
    s2: [i64; 3],
}

impl Mrg32k3a {
    const M1: i64 = 4_294_967_087;
    const M2: i64 = 4_294_944_443;

    fn new(state: [u32; 6]) -> Mrg32k3a {
        let w = state.map(i64::from);
        Mrg32k3a { s1: [w[0], w[1], w[2]], s2: [w[3], w[4], w[5]] }
    }
}

impl Source for Mrg32k3a {
    /// Uniform in (0, 1).
    fn uniform(&mut self) -> f64 {
        let p1 = (1_403_580 * self.s1[1] - 810_728 * self.s1[0]).rem_euclid(Self::M1);
        self.s1 = [self.s1[1], self.s1[2], p1];
        let p2 = (527_612 * self.s2[2] - 1_370_589 * self.s2[0]).rem_euclid(Self::M2);
        self.s2 = [self.s2[1], self.s2[2], p2];
        let z = if p1 > p2 { p1 - p2 } else { p1 - p2 + Self::M1 };
        z as f64 * 2.328_306_549_295_728e-10
    }

    fn copy(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ns2_stream_starts_as_in_ns2() {
        let mut r = stream(1);
        // What a Tcl script sees has passed through a whole number of 31 bits; what ns-2's own code draws has not.
        let tcl = |u: f64| (u * 2_147_483_648.0).floor() / 2_147_483_647.0;
        let first: Vec<f64> = (0..8).map(|_| tcl(r.uniform())).collect();
        // `$defaultRNG uniform 0 1` in ns-2.35, to 17 digits.
        let printed = [
            0.0003395769746692744,
            0.5558807158637237,
            0.014204660437165137,
            0.08812267104542007,
            0.44117338184321925,
            0.7991554535921456,
            0.31296177176430906,
            0.8164760516101849,
        ];
        assert_eq!(first, printed);
        assert_eq!((8..200).map(|_| tcl(r.uniform())).last(), Some(0.2697555004943886));
        assert_eq!(tcl(stream(2).uniform()), 0.000_673_882_197_902_483);
        assert_eq!(tcl(stream(12345).uniform()), 0.127_011_121_775_494_48);
    }
}

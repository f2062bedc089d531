//! ns-2's `Queue/DRR`: queues by the source's address, deficit round robin, and a limit in bytes at which the fattest loses its head.
//!
//! Source: ns-2.35, queue/drr.cc, after Shreedhar and Varghese 1996. What it does otherwise is kept: a queue that overflow has emptied in
//! the middle of its turn gets no quantum when it first comes up again.
//! Non-goal: sharing a link among classes, for which there is the scheduler [`drr`](crate::queue::drr).

use crate::ns2::{Addresses, Ring};
use crate::prelude::*;
use crate::queue::End;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Queues that flows are hashed into (`buckets_`).
        buckets: u64 [QUEUES] = 10;
        /// Bytes a turn (`quantum_`).
        flow_quantum: Bytes [POSITIVE] = Bytes(250);
    }
}

impl Build for Params {
    type Mechanism = Drr;

    fn check(&self, _: &Context) -> Result<Vec<Warning>, Fault> {
        if self.flow_quantum.0 > 1_000_000_000 {
            return Err(Fault {
                field: "flow_quantum",
                problem: format!("{} is beyond counting", self.flow_quantum),
                remedy: "at most \"1000 MB\"".into(),
            });
        }
        Ok(Vec::new())
    }

    fn build(&self, _: &Context) -> Drr {
        let buckets = self.buckets as u32;
        Drr {
            addresses: Addresses::default(),
            ring: Ring::new(buckets),
            turns: vec![Turn::default(); buckets as usize].into(),
            quantum: self.flow_quantum.0 as i64,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// `deficitCounter`.
    deficit: i64,
    /// `turn`: it has been given this turn's quantum.
    granted: bool,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Drr {
    /// Of each flow, where the experiment has told them.
    pub addresses: Addresses,
    ring: Ring,
    turns: Box<[Turn]>,
    quantum: i64,
}

/// `DRR::hash`, in ns-2's 32 bits, without a mask.
#[must_use]
pub fn hash(from: u32) -> u32 {
    let i = from as i32;
    (i.wrapping_add(i >> 8).wrapping_add(!(i >> 4)) % ((2 << 23) - 1) + 1).unsigned_abs()
}

impl Mechanism for Drr {
    fn sees_reverse(&self) -> bool {
        false
    }
}

impl Aqm for Drr {
    fn serves(&self) -> bool {
        true
    }

    fn flow_queues(&self) -> u32 {
        self.ring.len()
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let bucket = hash(self.addresses.of(packet).0) % self.ring.len();
        at.queue.join(bucket);
        if at.queue.packets_in(bucket) == 0 {
            self.ring.activate(bucket);
            self.turns[bucket as usize].deficit = 0;
        }
        while !at.queue.fits(packet.size) {
            let own = |q: u32| if q == bucket { u64::from(packet.size) } else { 0 };
            let Some(fat) = self.ring.first_most(|q| at.queue.bytes_in(q) + own(q)) else { break };
            let evicted = at.queue.evict_from(fat, End::Head).is_some();
            if at.queue.packets_in(fat) == 0 && (fat != bucket || !evicted) {
                self.ring.leave(fat);
            }
            if !evicted {
                return Admission::Drop(Cause::OVERFLOW);
            }
        }
        Admission::Admit
    }

    fn next_queue<Q: Queue + ?Sized>(&mut self, _: Time, queue: &mut Q, _: &mut Rng) -> Option<u32> {
        loop {
            let bucket = self.ring.current()?;
            let turn = &mut self.turns[bucket as usize];
            if !turn.granted {
                turn.deficit += self.quantum;
                turn.granted = true;
            }
            if turn.deficit >= i64::from(queue.head_size(bucket)?) {
                return Some(bucket);
            }
            turn.granted = false;
            self.ring.turn();
        }
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        if let Some(bucket) = self.ring.current() {
            let turn = &mut self.turns[bucket as usize];
            at.why.note("credits", turn.deficit as f64);
            turn.deficit -= i64::from(packet.size);
            if at.queue.packets_in(bucket) == 0 {
                *turn = Turn::default();
                self.ring.leave(bucket);
            }
        }
        Departure::Send
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn bench(limit: f64, quantum: u64) -> Bench {
        let limit = Backlog::Bytes(limit);
        let mut drr = Params { buckets: 10, flow_quantum: Bytes(quantum) }.build(&context(None, limit));
        drr.addresses = Addresses::told((0..9).map(|flow| (flow, 0)).collect());
        Bench::new(AnyAqm::Ns2Drr(Box::new(drr)), limit)
    }

    /// A packet of four quanta waits for four turns, as in Shreedhar and Varghese 1996.
    #[test]
    fn deficits_are_saved_up() {
        let mut b = bench(1e6, 250);
        (0..3).for_each(|_| assert!(b.admits(0, 1, 1000)));
        (0..9).for_each(|_| assert!(b.admits(0, 2, 250)));
        assert_eq!(b.flows(99), [2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, 1]);
    }

    /// The fattest loses its head, the first from the one whose turn it is among equals; the arrival too, if it is its queue's head.
    #[test]
    fn the_fattest_loses_its_head() {
        let mut b = bench(5000.0, 250);
        (0..3).for_each(|_| assert!(b.admits(0, 1, 1000)));
        (0..2).for_each(|_| assert!(b.admits(0, 2, 1000)));
        assert!(b.admits(0, 3, 500));
        assert_eq!(b.evicted, [0]);
        assert!(!b.admits(0, 4, 5001), "alone it is the fattest, and too much for itself");
        // 4,500 B waited; the 5,001 B were the fattest's head.
        assert_eq!((b.queue.bytes(), b.evicted.len()), (4500, 1));
        let order: Vec<u32> = std::iter::from_fn(|| b.depart()).map(|p| p.number).collect();
        assert_eq!(order, [5, 1, 3, 2, 4]);
    }

    #[test]
    fn hashes_by_hand() {
        assert_eq!([hash(0), hash(1), hash(17), hash(300)], [0, 1, 16, 283]);
    }
}

//! ns-2's `Queue/SFQ`: queues by the sum of two addresses, a packet a turn, and a limit on each that shrinks as the whole fills up.
//!
//! An arrival is dropped where its queue holds half of what is left of the limit or more; also where fewer places are left than there are
//! buckets and its queue has more than an equal share of them. Nothing that waits is ever dropped.
//! Source: ns-2.35, queue/sfq.cc. Non-goal: McKenney's or Linux's, which is [`sfq`](crate::aqm::sfq).

use crate::ns2::{Addresses, Ring};
use crate::prelude::*;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Queues that flows are hashed into (`buckets_`).
        buckets: u64 [QUEUES] = 16;
    }
}

impl Build for Params {
    type Mechanism = Sfq;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        match context.limit {
            Some(limit @ Backlog::Bytes(_)) => Err(Fault {
                field: "buckets",
                problem: format!("ns-2's SFQ counts packets, and the limit is {limit}"),
                remedy: "a limit in packets".into(),
            }),
            Some(Backlog::Packets(n)) if n < 2.0 => Err(Fault {
                field: "buckets",
                problem: format!("with a limit of {n} packets ns-2's SFQ drops everything"),
                remedy: "a limit of at least 2 packets".into(),
            }),
            _ => Ok(Vec::new()),
        }
    }

    fn build(&self, context: &Context) -> Sfq {
        let most = match context.limit {
            Some(Backlog::Packets(n)) => n as u32,
            Some(Backlog::Bytes(_)) | None => u32::MAX,
        };
        let buckets = self.buckets as u32;
        Sfq { addresses: Addresses::default(), ring: Ring::new(buckets), most, fair_share: most / buckets }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Sfq {
    /// Of each flow, where the experiment has told them.
    pub addresses: Addresses,
    ring: Ring,
    /// `maxqueue_`.
    most: u32,
    fair_share: u32,
}

/// `SFQ::hash`, in ns-2's 32 bits.
#[must_use]
pub fn hash(from: u32, to: u32) -> u32 {
    let k = from.wrapping_add(to) as i32;
    (k.wrapping_add(k >> 8).wrapping_add(!(k >> 4)) % ((2 << 19) - 1)).unsigned_abs()
}

impl Mechanism for Sfq {
    fn sees_reverse(&self) -> bool {
        false
    }
}

impl Aqm for Sfq {
    fn serves(&self) -> bool {
        true
    }

    fn flow_queues(&self) -> u32 {
        self.ring.len()
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let (from, to) = self.addresses.of(packet);
        let bucket = hash(from, to) % self.ring.len();
        let (used, left) = (at.queue.packets_in(bucket), self.most.saturating_sub(at.queue.packets()));
        if used >= left >> 1 || (left < self.ring.len() && used > self.fair_share) || left == 0 {
            return Admission::Drop(Cause::OVERFLOW);
        }
        at.queue.join(bucket);
        if used == 0 {
            self.ring.activate(bucket);
        }
        Admission::Admit
    }

    fn next_queue<Q: Queue + ?Sized>(&mut self, _: Time, _: &mut Q, _: &mut Rng) -> Option<u32> {
        self.ring.current()
    }

    fn depart(&mut self, _: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        if let Some(bucket) = self.ring.current() {
            if at.queue.packets_in(bucket) == 0 {
                self.ring.leave(bucket);
            } else {
                self.ring.turn();
            }
        }
        Departure::Send
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn bench(limit: f64, buckets: u64) -> Bench {
        let limit = Backlog::Packets(limit);
        let mut sfq = Params { buckets }.build(&context(None, limit));
        sfq.addresses = Addresses::told((0..9).map(|flow| (flow + 1, 0)).collect());
        Bench::new(AnyAqm::Ns2Sfq(Box::new(sfq)), limit)
    }

    /// A packet joins while fewer wait in its queue than half of the places left.
    #[test]
    fn a_queue_may_hold_half_of_what_is_left() {
        let mut b = bench(12.0, 4);
        let mut held = |flow| (0..9).filter(|_| b.admits(0, flow, 1000)).count();
        assert_eq!(held(1), 4, "4 wait, 8 places are left");
        assert_eq!(held(2), 3);
        assert_eq!(held(3), 2);
    }

    /// With fewer places than buckets, while no more than an equal share waits in it.
    #[test]
    fn where_places_are_few_shares_count() {
        let mut b = bench(8.0, 8);
        assert_eq!([true, true, false].map(|_| b.admits(0, 1, 1000)), [true, true, false]);
        assert!(b.admits(0, 2, 1000));
    }

    #[test]
    fn a_packet_a_turn() {
        let mut b = bench(40.0, 4);
        for flow in [1, 1, 1, 2, 3, 3] {
            assert!(b.admits(0, flow, 1000));
        }
        assert_eq!(b.flows(99), [1, 2, 3, 1, 3, 1]);
    }

    #[test]
    fn hashes_by_hand() {
        assert_eq!([hash(0, 1), hash(1, 2), hash(10, 20), hash(300, 0)], [0, 2, 28, 282]);
    }
}

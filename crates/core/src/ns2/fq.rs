//! ns-2's `Queue/FQ` with its `FQLink`: a drop-tail queue for each flow, and the packet that would finish first is sent first.
//!
//! A flow's head is due its flow's last finish, or the time at which it came to the head if that is later, plus its own bytes'
//! transmission time as often as there are flows with something to send at the moment at which they are compared. Of equals
//! the flow with the lower number goes first.
//! Source: ns-2.35, queue/fq.cc and `FQLink` in tcl/lib/ns-queue.tcl, after Demers, Keshav and Shenker 1989, whose round number it does not
//! have: real time stands for it, so a flow that was idle is not owed anything.
//! Non-goal: more flows than queues; ns-2 ends there, here those whose numbers differ by `buckets` share one.

use crate::ns2::Moment;
use crate::prelude::*;

/// `MAXFLOW`.
pub const MAX_FLOWS: u32 = 32;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Queues, by the flow's number; 32 in ns-2.
        buckets: u64 [QUEUES] = 32;
        /// Packets of a flow, the one that is next to be sent included (`limit_` of its drop-tail queue); the limit of all is ours.
        flow_limit: u64 [TWO_OR_MORE] = 50;
    }
}

impl Build for Params {
    type Mechanism = Fq;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        if context.link_rate.is_none() {
            return Err(Fault {
                field: "buckets",
                problem: "ns-2's FQ goes by the time a packet takes, and the rate is not known here".into(),
                remedy: "a rate, or aqm = \"ns2_drr\"".into(),
            });
        }
        Ok(Vec::new())
    }

    fn build(&self, context: &Context) -> Fq {
        Fq {
            flows: vec![0.0; self.buckets as usize].into(),
            flow_limit: self.flow_limit,
            // `check` has seen that there is one.
            secs_per_byte: context.link_rate.map_or(0.0, |rate| 8.0 / rate.0 as f64),
            told: None,
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Fq {
    /// `finishTime_` of each flow, in seconds.
    flows: Box<[f64]>,
    flow_limit: u64,
    secs_per_byte: f64,
    told: Option<f64>,
}

impl Fq {
    /// ns-2's clock, for the call that follows.
    pub fn tell(&mut self, moment: Moment) {
        self.told = Some(moment.secs);
    }

    /// A packet of this flow is next to be sent from now on.
    fn heads(&mut self, flow: u32, now: Time) {
        let secs = self.told.unwrap_or_else(|| now.secs());
        let finish = &mut self.flows[flow as usize];
        *finish = finish.max(secs);
    }
}

impl Mechanism for Fq {
    fn sees_reverse(&self) -> bool {
        false
    }
}

impl Aqm for Fq {
    fn serves(&self) -> bool {
        true
    }

    fn flow_queues(&self) -> u32 {
        self.flows.len() as u32
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let flow = packet.flow.0 % self.flow_queues();
        let waiting = at.queue.packets_in(flow);
        if u64::from(waiting) >= self.flow_limit || !at.queue.fits(packet.size) {
            return Admission::Drop(Cause::OVERFLOW);
        }
        at.queue.join(flow);
        if waiting == 0 {
            self.heads(flow, at.now);
        }
        Admission::Admit
    }

    fn next_queue<Q: Queue + ?Sized>(&mut self, _: Time, queue: &mut Q, _: &mut Rng) -> Option<u32> {
        let heads = (0..self.flow_queues()).filter_map(|flow| Some((flow, queue.head_size(flow)?)));
        let active = heads.clone().count() as f64;
        let due = heads.map(|(flow, size)| {
            let takes = f64::from(size) * self.secs_per_byte;
            (flow, self.flows[flow as usize] + takes * active)
        });
        let (flow, finish) = due.reduce(|best, one| if one.1 < best.1 { one } else { best })?;
        self.flows[flow as usize] = finish;
        Some(flow)
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        let flow = packet.flow.0 % self.flow_queues();
        if at.queue.packets_in(flow) > 0 {
            self.heads(flow, at.now);
        }
        Departure::Send
    }
}

#[cfg(test)]
mod tests {
    //! ns-2's FQ by hand, and what it shares out; the life of a queue in ns-2 itself is in `tests/main.rs`, whole runs are in `make validate`.
    use super::*;
    use crate::testing::*;

    fn bench(limit: f64, flow_limit: u64) -> Bench {
        let aqm = AnyAqm::Ns2Fq(Box::new(Params { buckets: 4, flow_limit }.build(&CONTEXT)));
        Bench::new(aqm, Backlog::Packets(limit))
    }

    fn admits(b: &mut Bench, flow: u32, size: u32) -> bool {
        b.admits(b.now.0, flow, size)
    }

    /// The next packet's flow; time passes as it is sent.
    fn depart(b: &mut Bench) -> Option<u32> {
        let before = b.queue.bytes();
        let sent = b.depart()?;
        b.to(b.now + Duration::from_micros(before - b.queue.bytes()));
        Some(sent.flow)
    }

    fn all(b: &mut Bench) -> Vec<u32> {
        std::iter::from_fn(|| depart(b)).collect()
    }

    /// Finishes by hand, in ms, two flows of which one has packets of 1,000 B (1 ms) and the other of 250 B (0.25 ms), both there at 0:
    /// flow 1 at 2, then 4 …; flow 2 at 0.5, 1, 1.5, then at 2 as flow 1, whose number is lower. Alone, the order is that of arrival.
    #[test]
    fn what_would_finish_first_is_sent() {
        let mut b = bench(1e6, 100);
        (0..2).for_each(|_| assert!(admits(&mut b, 1, 1000)));
        (0..6).for_each(|_| assert!(admits(&mut b, 2, 250)));
        assert_eq!(all(&mut b), [2, 2, 2, 1, 2, 2, 2, 1]);
    }

    /// A flow that was idle begins at the present, with no credit for the past.
    #[test]
    fn an_idle_flow_is_owed_nothing() {
        let mut b = bench(1e6, 100);
        (0..8).for_each(|_| assert!(admits(&mut b, 1, 1000)));
        (0..4).for_each(|_| assert_eq!(depart(&mut b), Some(1)));
        (0..4).for_each(|_| assert!(admits(&mut b, 2, 1000)));
        // At 4 ms flow 1 has finished 4, and both are due at 6 first.
        assert_eq!(all(&mut b), [1, 2, 1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn limits_are_the_flows_own() {
        let mut b = bench(7.0, 3);
        assert_eq!([1, 1, 1, 1].map(|flow| admits(&mut b, flow, 1000)), [true, true, true, false]);
        assert_eq!([2, 2, 3, 3].map(|flow| admits(&mut b, flow, 1000)), [true; 4]);
        assert!(!admits(&mut b, 3, 1000), "the limit of all");
        assert!(depart(&mut b).is_some());
        assert!(admits(&mut b, 7, 1000), "flow 7 has flow 3's queue");
        assert_eq!(b.queue.packets(), 7);
    }

    #[test]
    fn a_rate_is_needed() {
        let p = Params { buckets: 32, flow_limit: 50 };
        assert!(p.check(&CONTEXT).is_ok());
        assert_eq!(p.check(&Context { link_rate: None, ..CONTEXT }).unwrap_err().field, "buckets");
    }

    proptest! {
        /// Flows that always have something to send, with packets of one size each, get equal bytes: within a few packets, whatever the
        /// sizes.
        #[test]
        fn busy_flows_get_equal_bytes(sizes in prop::collection::vec(50u32..1500, 3)) {
            let mut b = bench(1e6, 1000);
            let mut sent = [0u64; 3];
            for _ in 0..600 {
                for (flow, size) in (0..).zip(&sizes) {
                    while b.queue.packets_in(flow) < 2 {
                        admits(&mut b, flow, *size);
                    }
                }
                let flow = depart(&mut b).expect("all have packets") as usize;
                sent[flow] += u64::from(sizes[flow]);
            }
            let (most, least) = (sent.iter().max().unwrap(), sent.iter().min().unwrap());
            prop_assert!(most - least <= 3 * 1500, "{sent:?}");
        }
    }
}

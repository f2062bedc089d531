//! ns-2's `Queue/FQ` with its `FQLink`: a drop-tail queue for each flow, and the packet that would finish first is sent first.
//!
//! A flow's head is due its flow's last finish, or the time at which it came to the head if that is later, plus its own bytes'
//! transmission time as often as there are flows with something to send at the moment at which they are compared. Of equals
//! the flow with the lower number goes first.
//! Source: ns-2.35, queue/fq.cc and `FQLink` in tcl/lib/ns-queue.tcl, after Demers, Keshav and Shenker 1989, whose round number it does not
//! have: real time stands for it, so a flow that was idle is not owed anything.
//! Non-goal: more flows than queues; ns-2 ends there, here those whose numbers differ by `buckets` share one.

use crate::aqm::Aqm;
use crate::mechanism::Mechanism;
use crate::ns2::moment::Moment;
use crate::packet::Packet;
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::units::Time;
use crate::verdict::{Admission, Cause, Departure, Why};

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

    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        _: &mut Rng,
        _: &mut W,
    ) -> Admission {
        let flow = packet.flow.0 % self.flow_queues();
        let waiting = queue.packets_in(flow);
        if u64::from(waiting) >= self.flow_limit || !queue.fits(packet.size) {
            return Admission::Drop(Cause::OVERFLOW);
        }
        queue.join(flow);
        if waiting == 0 {
            self.heads(flow, now);
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

    fn depart<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        _: Time,
        queue: &mut Q,
        _: &mut Rng,
        _: &mut W,
    ) -> Departure {
        let flow = packet.flow.0 % self.flow_queues();
        if queue.packets_in(flow) > 0 {
            self.heads(flow, now);
        }
        Departure::Send
    }
}

#[cfg(test)]
mod tests;

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
use crate::aqm::pie::Variant;
use crate::aqm::{Aqm, pie};
use crate::mechanism::{Gauge, Mechanism};
use crate::packet::Packet;
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::signal::Outbox;
use crate::units::{Bytes, Time};
use crate::verdict::{Admission, Departure, Why};

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

    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        queue: &mut Q,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let joins = self.hash.queue(packet.flow, rng);
        queue.join(joins);
        if queue.packets() == 0 && queue.idle_since().is_some() {
            // There was nothing to send, whether or not the link asked for the next queue.
            self.next_queue(now, queue, rng);
        }
        let fits = queue.fits(packet.size) && queue.bytes() + u64::from(packet.size) <= self.memory_limit;
        let flow = self.scheduler.within(joins);
        let (packets, bytes) = (queue.packets_in(joins), queue.bytes_in(joins));
        why.note("flow_queue", f64::from(joins));
        why.note("flow_backlog", bytes as f64);
        let state = pie::QueueState { packets, bytes, fits };
        let verdict = flow.pie.arrive(&self.control, packet, state, rng, why);
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

    fn depart<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        now: Time,
        packet: &Packet,
        since: Time,
        queue: &mut Q,
        _: &mut Rng,
        why: &mut W,
    ) -> Departure {
        let at = self.serving;
        why.note("flow_queue", f64::from(at));
        why.note("credits", self.scheduler.credits(at) as f64);
        why.note("sojourn", now.since(since).secs());
        let pie = &mut self.scheduler.within(at).pie;
        pie.depart(&self.control.params, now, packet.size, since, queue.bytes_in(at));
        self.scheduler.sent(at, packet.size);
        Departure::Send
    }
}

#[cfg(test)]
mod tests;

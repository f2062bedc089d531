//! A queue under a discipline that a test feeds and drains by hand: packets of 1,000 B.

use crate::prelude::*;
use crate::queue::fifo::{Fifo, Stamped};
use crate::registry::AnyAqm;

pub const MS: Duration = Duration::from_millis(1);
/// A packet takes 1 ms.
pub const CONTEXT: Context = Context {
    link_rate: Some(Rate(8_000_000)),
    contract: None,
    packet: Bytes(1000),
    limit: Some(Backlog::Packets(1000.0)),
};

/// A packet that left the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    /// Which one, counted from 0.
    pub number: u32,
    /// Its code point now.
    pub ecn: Ecn,
    /// How long it waited.
    pub waited: Duration,
}

pub struct Bench {
    pub queue: Fifo<Stamped>,
    pub aqm: AnyAqm,
    pub rng: Rng,
    pub now: Time,
    due: Option<Time>,
    arrived: u32,
    /// Which packets were dropped at the head, and why.
    pub dropped: Vec<(u32, Cause)>,
}

impl Bench {
    pub fn new(aqm: AnyAqm, limit: Backlog) -> Bench {
        let queue = Fifo::before(limit, &aqm);
        let rng = Rng::for_component(1, "bench");
        Bench { queue, aqm, rng, now: Time::ZERO, due: Some(Time::ZERO), arrived: 0, dropped: Vec::new() }
    }

    /// Lets time pass, and updates that are due happen.
    pub fn to(&mut self, at: Time) {
        while let Some(due) = self.due.filter(|due| *due <= at) {
            self.now = due;
            self.due = self.aqm.tick(due, &mut Outbox::default());
        }
        self.now = at;
    }

    pub fn arrive(&mut self, ecn: Ecn) -> Admission {
        self.arrive_with(ecn, 1000)
    }

    pub fn arrive_with(&mut self, ecn: Ecn, size: u32) -> Admission {
        let packet = Packet { flow: FlowId(self.arrived), size, ecn, ..Packet::default() };
        self.arrived += 1;
        let item = Stamped { packet, since: self.now };
        let verdict = self.queue.arrive(self.now, &packet, item, &mut self.aqm, &mut self.rng, &mut Silent);
        self.queue.went_busy();
        verdict
    }

    /// The packet that the link takes.
    pub fn depart(&mut self) -> Option<Left> {
        let dropped = &mut self.dropped;
        let lost = |p: Stamped, cause| dropped.push((p.flow.0, cause));
        let sent = self.queue.depart(self.now, |p| p.packet, &mut self.aqm, &mut self.rng, &mut Silent, lost);
        if sent.is_none() {
            self.queue.went_idle(self.now);
        }
        sent.map(|p| Left { number: p.flow.0, ecn: p.packet.ecn, waited: self.now.since(p.since) })
    }

    pub fn gauge(&self, what: &str) -> f64 {
        let mut found = None;
        self.aqm.gauges(self.now, &mut |name, x| {
            if name == what {
                found = Some(x);
            }
        });
        found.expect("it is shown")
    }

    pub fn stat(&self, what: &str) -> u64 {
        let mut found = None;
        self.aqm.stats(&mut |name, n| {
            if name == what {
                found = Some(n);
            }
        });
        found.expect("it is counted")
    }

    /// Arrived = sent + dropped + waiting.
    pub fn conserves(&self) -> bool {
        let c = self.queue.counts();
        let dropped: u64 = c.dropped.iter().flatten().sum();
        c.arrived.iter().sum::<u64>()
            == c.sent.iter().sum::<u64>() + dropped + u64::from(self.queue.packets())
    }
}

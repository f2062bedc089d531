//! FQ-CoDel: a queue for each flow, deficit round robin among them with those first that build no backlog, and CoDel within each.
//!
//! A flow that sends little finds its queue empty and goes before the others; one that sends much waits for its turn behind its
//! own packets, and CoDel drops of those. So nobody's delay is of another's making, and shares are equal in bytes. The hard limit
//! is one for all queues: what is too much is taken from the head of the queue that holds most.
//! Source: RFC 8290 (its scheduler is in [`fq`](super::fq)), with [CoDel](super::codel) of RFC 8289 in each queue: its state is the
//! queue's own; whether no more than a packet waits is asked of all queues together, as RFC 8289 §4.4 wants it, and as it is in Linux.
//! `variant = "linux"`: CoDel's [control law](super::codel) is Linux's; over the limit half the bytes of a queue go, not half its
//! packets, and count as CoDel's drops; an empty new queue goes behind old ones, if there are any (RFC: in any case).
//! Non-goal: a queue for each flow for certain. Flows are hashed, and those that collide share a queue (RFC 8290 §5.3).

use crate::aqm::codel::{self, Variant};
use crate::aqm::fq::{self, Hash, Scheduler};
use crate::prelude::*;
use crate::queue::End;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Bytes that a flow's queue may send in one turn; a new one goes before others while it sends less. Default: a full packet.
        flow_quantum: Option<Bytes> [POSITIVE];
        /// Queues that flows are hashed into.
        flows: u64 [QUEUES] = 1024;
        /// Packets of ECN-capable transports are marked once they have waited longer than this, whatever CoDel says (§5.2.7).
        ce_threshold: Option<Duration> [POSITIVE];
        /// Where the limit is exceeded, half of the queue that holds most goes, but no more packets than this at once.
        drop_batch: u64 [POSITIVE] = 64;
        /// A second limit, in bytes, beside the queue's.
        memory_limit: Option<Bytes> [POSITIVE];
        /// RFC 8290's algorithm with CoDel as in RFC 8289, or Linux's `sch_fq_codel`.
        variant: Variant = Variant::Rfc8289;
        ..codel: codel::Params { ecn = true };
    }
}

impl Build for Params {
    type Mechanism = FqCodel;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = self.codel.check(context)?;
        warnings.extend(fq::check_quantum(self.flow_quantum, context)?);
        fq::check_memory(self.memory_limit, context)?;
        if let Some(rate) = context.link_rate
            && rate.serialise(context.packet) > self.codel.target
        {
            // §5.2.2
            let text = format!(
                "a full packet takes {}, longer than target ({}): every flow that sends two in a row is above it",
                rate.serialise(context.packet),
                self.codel.target
            );
            warnings.push(Warning { field: "target", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> FqCodel {
        let linux = self.variant == Variant::Linux;
        FqCodel {
            hash: Hash::new(self.flows),
            scheduler: Scheduler::new(
                self.flows,
                self.flow_quantum.unwrap_or(context.packet),
                !linux,
                codel::Vars::default(),
            ),
            serving: 0,
            control: self.codel.control(self.variant, context),
            ecn: self.codel.ecn,
            ce_threshold: self.ce_threshold,
            drop_batch: u32::try_from(self.drop_batch).unwrap_or(u32::MAX),
            memory_limit: self.memory_limit.map_or(u64::MAX, |limit| limit.0),
            linux,
            ce_marked: 0,
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct FqCodel {
    hash: Hash,
    /// With CoDel's state of each queue.
    scheduler: Scheduler<codel::Vars>,
    /// The queue that was named last.
    serving: u32,
    control: codel::Control,
    ecn: bool,
    ce_threshold: Option<Duration>,
    drop_batch: u32,
    memory_limit: u64,
    linux: bool,
    /// Marked because of `ce_threshold`; other marks are CoDel's.
    ce_marked: u64,
}

impl FqCodel {
    /// Whether one more packet of this size is within both limits.
    fn fits<Q: Queue + ?Sized>(&self, queue: &Q, size: u32) -> bool {
        queue.fits(size) && queue.bytes() + u64::from(size) <= self.memory_limit
    }

    /// All queues are empty, and leave the lists. Few arrivals find a link idle: no part of the function of others.
    #[cold]
    #[inline(never)]
    fn find_nothing<Q: Queue + ?Sized>(&mut self, queue: &Q) {
        if let Some(next) = self.scheduler.next(|q| queue.packets_in(q), codel::Vars::found_empty) {
            self.serving = next;
        }
    }

    /// §4.1: a packet of this size has joined `queue` in thought, and the limit is exceeded. Drops from the head of the queue that holds
    /// most until it isn't; false if the packet itself went.
    fn make_room<Q: Queue + ?Sized>(&mut self, queue: &mut Q, joined: u32, size: u32) -> bool {
        let alone = match queue.limit() {
            Backlog::Packets(n) => n >= 1.0,
            Backlog::Bytes(n) => n >= f64::from(size),
        };
        if !alone || u64::from(size) > self.memory_limit {
            return false;
        }
        while !self.fits(queue, size) {
            let own = |q: u32| if q == joined { u64::from(size) } else { 0 };
            let Some(fat) = self.scheduler.fattest(|q| queue.bytes_in(q) + own(q)) else { return false };
            // Linux: half the bytes. At least one packet either way.
            let half_bytes = (queue.bytes_in(fat) + own(fat)) / 2;
            let half_packets = (queue.packets_in(fat) + u32::from(fat == joined)).div_ceil(2);
            let (mut dropped, mut dropped_bytes) = (0, 0);
            let room = loop {
                let victim = queue.evict_from(fat, End::Head);
                dropped += 1;
                dropped_bytes += u64::from(victim.unwrap_or(size));
                let done = if self.linux { dropped_bytes >= half_bytes } else { dropped >= half_packets };
                // With nothing left of it but the arrival, that is what goes.
                if victim.is_none() || done || dropped >= self.drop_batch {
                    break victim.is_some();
                }
            };
            if self.linux {
                self.scheduler.within(fat).count_drops(dropped);
            }
            if !room {
                return false;
            }
        }
        true
    }
}

impl Mechanism for FqCodel {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        self.scheduler.show(show);
    }
}

impl Aqm for FqCodel {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.ecn || self.ce_threshold.is_some()
    }

    fn flow_queues(&self) -> u32 {
        self.scheduler.queues()
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        let joins = self.hash.queue(packet.flow, at.rng);
        at.why.note("flow_queue", f64::from(joins));
        at.why.note("flow_backlog", at.queue.bytes_in(joins) as f64);
        at.queue.join(joins);
        if at.queue.idle_since().is_some() && at.queue.packets() == 0 {
            // The link found nothing to send, whether or not it asked.
            self.find_nothing(at.queue);
        }
        self.scheduler.arrived(joins);
        if self.fits(at.queue, packet.size) || self.make_room(at.queue, joins, packet.size) {
            return Admission::Admit;
        }
        Admission::Drop(Cause::OVERFLOW)
    }

    #[inline(always)]
    fn next_queue<Q: Queue + ?Sized>(&mut self, _: Time, queue: &mut Q, _: &mut Rng) -> Option<u32> {
        let next = self.scheduler.next(|q| queue.packets_in(q), codel::Vars::found_empty)?;
        self.serving = next;
        if let Some(turns) = self.scheduler.following(next) {
            queue.expect(turns);
        }
        Some(next)
    }

    #[inline(always)]
    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        let queue = self.serving;
        // RFC 8289 §4.4: "the total occupancy of all queues sharing the same output link SHOULD be used".
        let backlog = at.queue.bytes();
        at.why.note("flow_queue", f64::from(queue));
        at.why.note("credits", self.scheduler.credits(queue) as f64);
        at.why.note("sojourn", at.now.since(at.since).secs());
        at.why.note("backlog", backlog as f64);
        let capable = packet.ecn.can_mark();
        let codel = self.scheduler.within(queue);
        let mut verdict = codel.decide(&self.control, at.now, at.since, backlog, self.ecn && capable);
        let too_long = |most| self.control.waited_longer(at.now, at.since, most);
        if verdict == Departure::Send && capable && self.ce_threshold.is_some_and(too_long) {
            // §5.2.7
            self.ce_marked += 1;
            verdict = Departure::Mark;
        }
        // §4.2: what CoDel dropped costs no credits.
        if !matches!(verdict, Departure::Drop(_)) {
            self.scheduler.sent(queue, packet.size);
        }
        verdict
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        show("above_target", queue.dropped_by(codel::ABOVE_TARGET));
        show("marked", queue.marked().saturating_sub(self.ce_marked));
        show("ce_marked", self.ce_marked);
        show("overflow", queue.dropped_by(Cause::OVERFLOW));
        show("evicted", queue.dropped_by(Cause::EVICTED));
        show("new_flows", self.scheduler.counts().2);
    }
}

#[cfg(test)]
mod oracle {
    //! FQ-CoDel written down once more from the text of RFC 8290, slow and obvious, to compare with.

    use std::collections::VecDeque;

    use crate::aqm::codel::oracle::Rfc as RfcCodel;

    /// RFC 8290 §4.1 and §4.2 (`linux`: as `Variant::Linux` departs from them), on lists and counters of its own.
    pub(super) struct Rfc {
        linux: bool,
        limit: usize,
        quantum: i64,
        queues: Vec<RfcCodel>,
        credits: Vec<i64>,
        new: VecDeque<usize>,
        old: VecDeque<usize>,
        /// Packets dropped because the limit was exceeded, in order.
        pub evicted: Vec<u32>,
        /// The last arrival was dropped on the spot.
        pub refused: bool,
    }

    impl Rfc {
        /// So many empty queues.
        pub fn new(linux: bool, limit: usize, quantum: i64, queues: usize) -> Rfc {
            Rfc {
                linux,
                limit,
                quantum,
                queues: (0..queues).map(|_| RfcCodel::default()).collect(),
                credits: vec![0; queues],
                new: VecDeque::new(),
                old: VecDeque::new(),
                evicted: Vec::new(),
                refused: false,
            }
        }

        /// A packet: number, size, when it came, and whether its transport understands marks.
        pub fn enqueue(&mut self, queue: usize, p: (u32, u32, i128, bool)) {
            self.queues[queue].queue.push_back(p);
            if !self.new.contains(&queue) && !self.old.contains(&queue) {
                self.new.push_back(queue);
                self.credits[queue] = self.quantum;
            }
            self.refused = false;
            if self.queues.iter().map(|q| q.queue.len()).sum::<usize>() <= self.limit {
                return;
            }
            let bytes = |q: &RfcCodel| q.queue.iter().map(|p| u64::from(p.1)).sum::<u64>();
            let most = self.queues.iter().map(bytes).max().expect("there are queues");
            let fat = self.queues.iter_mut().position(|q| bytes(q) == most).expect("one has most");
            let fat = &mut self.queues[fat];
            let half = fat.queue.len().div_ceil(2);
            let (mut n, mut gone) = (0, 0);
            loop {
                let victim = fat.queue.pop_front().expect("half of it");
                n += 1;
                gone += u64::from(victim.1);
                if victim.0 == p.0 {
                    self.refused = true;
                } else {
                    self.evicted.push(victim.0);
                }
                let enough = if self.linux { gone >= most / 2 } else { n >= half };
                if n == 64 || enough {
                    break;
                }
            }
            if self.linux {
                fat.count += n as i64;
            }
        }

        /// The number of the packet that leaves, and whether it is marked.
        pub fn dequeue(&mut self, now: i128, ecn: bool) -> Option<(u32, bool)> {
            loop {
                let from_new = !self.new.is_empty();
                let list = if from_new { &mut self.new } else { &mut self.old };
                let queue = *list.front()?;
                if self.credits[queue] <= 0 {
                    self.credits[queue] += self.quantum;
                    list.pop_front();
                    self.old.push_back(queue);
                    continue;
                }
                let sizes: Vec<(u32, u32)> = self.queues[queue].queue.iter().map(|p| (p.0, p.1)).collect();
                let others = self.queues.iter().enumerate().filter(|(i, _)| *i != queue);
                let elsewhere = others.flat_map(|(_, q)| &q.queue).map(|p| u64::from(p.1)).sum();
                self.queues[queue].elsewhere = elsewhere;
                match self.queues[queue].deque(now, ecn) {
                    Some((number, marked)) => {
                        let size = sizes.iter().find(|p| p.0 == number).expect("it was there").1;
                        self.credits[queue] -= i64::from(size);
                        return Some((number, marked));
                    }
                    None if from_new => {
                        self.new.pop_front();
                        if !self.linux || !self.old.is_empty() {
                            self.old.push_back(queue);
                        }
                    }
                    None => {
                        self.old.pop_front();
                    }
                }
            }
        }

        /// Packets dropped by CoDel since they were last asked for, by number.
        pub fn take_dropped(&mut self) -> Vec<u32> {
            let mut all: Vec<u32> =
                self.queues.iter_mut().flat_map(|q| std::mem::take(&mut q.dropped)).collect();
            all.sort_unstable();
            all
        }
    }
}

#[cfg(test)]
mod tests;

//! SFQ, stochastic fairness queueing: flows are hashed into queues that take turns, and overflow hits the longest.
//!
//! The hash approximates a queue per flow at a fixed cost. Its salt may change every `perturb`, so that flows do not collide for ever.
//! Queues take turns in the order in which they got their first packet, each sending a quantum of bytes. They are listed by their
//! length in packets, so that the longest is found at once, however many there are.
//! Source: McKenney 1990, "Stochastic Fairness Queueing", as Linux's `sch_sfq` has it: turns in bytes, and at most `flows` queues of at
//! most `depth` packets each. When the salt changes, waiting packets are rehashed, and those whose new queue is at its depth are
//! dropped. Of equally long queues the one that reached this length last loses a packet; if all have one, the queue whose turn it is.
//! Non-goal: any control of delay (RFC 8290), and Linux's RED within queues.

use crate::aqm::fq::{self, Hash};
use crate::prelude::*;
use crate::queue::End;

/// No slot.
const NONE: u32 = u32::MAX;

crate::params! {
    /// The operator's settings.
    pub struct Params {
        /// Bytes that a flow's queue may send in one turn. Default: a full packet.
        flow_quantum: Option<Bytes> [POSITIVE];
        /// Queues that can be in use at a time; a packet that would need one more is dropped.
        flows: u64 [QUEUES] = 128;
        /// The most packets in one queue.
        depth: u64 [QUEUES] = 127;
        /// Number of hash values; flows with the same value share a queue.
        divisor: u64 [QUEUES] = 1024;
        /// How often the salt of the hash changes. Default: never.
        perturb: Option<Duration> [POSITIVE];
        /// A queue that is too long loses its head rather than its tail, so that the sender learns of it sooner.
        headdrop: bool = false;
    }
}

impl Build for Params {
    type Mechanism = Sfq;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        let mut warnings = fq::check_quantum(self.flow_quantum, context)?;
        if self.divisor < self.flows {
            let (divisor, flows) = (self.divisor, self.flows);
            let text = format!("a hash of {divisor} values can use no more than {divisor} of {flows} queues");
            warnings.push(Warning { field: "divisor", text });
        }
        Ok(warnings)
    }

    fn build(&self, context: &Context) -> Sfq {
        let (flows, depth) = (self.flows as u32, self.depth as u32);
        Sfq {
            hash: Hash::new(self.divisor),
            slot_of: vec![NONE; self.divisor as usize].into(),
            slots: Slots::new(flows, depth),
            half: 0,
            head: NONE,
            tail: NONE,
            serving: 0,
            quantum: self.flow_quantum.unwrap_or(context.packet).0 as i64,
            depth,
            headdrop: self.headdrop,
            perturb: self.perturb,
            due: self.perturb.map_or(Time::NEVER, |period| Time::ZERO + period),
            too_deep: 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The value of the hash.
    hash: u32,
    /// Bytes it may still send in this turn.
    allot: i64,
    /// Whose turn it is after this one.
    next: u32,
    length: u32,
    /// Neighbours among slots of this length.
    longer: u32,
    shorter: u32,
}

/// Slots by their length in packets, those that came to it last first.
#[derive(Clone, Debug)]
struct Slots {
    all: Box<[Slot]>,
    /// The first slot of each length.
    of_length: Box<[u32]>,
    longest: u32,
}

impl Slots {
    fn new(flows: u32, depth: u32) -> Slots {
        let none = Slot { hash: 0, allot: 0, next: NONE, length: 0, longer: NONE, shorter: NONE };
        // A queue is one over its depth at most while it is decided who loses.
        let of_length = vec![NONE; depth as usize + 2].into();
        let mut slots = Slots { all: vec![none; flows as usize].into(), of_length, longest: 0 };
        (0..flows).rev().for_each(|slot| slots.link(slot));
        slots
    }

    /// Enters a slot among those of its length, as the first.
    fn link(&mut self, slot: u32) {
        let length = self.all[slot as usize].length;
        let second = std::mem::replace(&mut self.of_length[length as usize], slot);
        let entry = &mut self.all[slot as usize];
        (entry.longer, entry.shorter) = (NONE, second);
        if let Some(second) = self.all.get_mut(second as usize) {
            second.longer = slot;
        }
        self.longest = self.longest.max(length);
    }

    /// A slot's length changes by a packet.
    fn change(&mut self, slot: u32, by: i32) {
        let Slot { length, longer, shorter, .. } = self.all[slot as usize];
        match self.all.get_mut(longer as usize) {
            Some(before) => before.shorter = shorter,
            None => self.of_length[length as usize] = shorter,
        }
        if let Some(after) = self.all.get_mut(shorter as usize) {
            after.longer = longer;
        }
        self.all[slot as usize].length = length.saturating_add_signed(by);
        self.link(slot);
        while self.longest > 0 && self.of_length[self.longest as usize] == NONE {
            self.longest -= 1;
        }
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Sfq {
    hash: Hash,
    /// The slot of each value of the hash.
    slot_of: Box<[u32]>,
    slots: Slots,
    /// The queue of slot i is number i, or, after every second change of salt, number `flows` + i.
    half: u32,
    /// Whose turn is now, and whose is last.
    head: u32,
    tail: u32,
    /// The slot that was named last.
    serving: u32,
    quantum: i64,
    depth: u32,
    headdrop: bool,
    perturb: Option<Duration>,
    /// When the salt changes.
    due: Time,
    /// Dropped on arrival as their queue was at its depth; the other overflows found no room, or no queue free.
    too_deep: u64,
}

impl Sfq {
    /// Whether the two will treat all further packets alike, given the same packets waiting in both; the numbers of slots do not matter.
    #[must_use]
    pub fn is_like<'a>(&'a self, other: &'a Sfq) -> bool {
        fn chain(law: &Sfq, first: u32, next: fn(&Slot) -> u32) -> impl Iterator<Item = &Slot> {
            let slots = &law.slots.all;
            std::iter::successors(slots.get(first as usize), move |slot| slots.get(next(slot) as usize))
        }
        let turns = |law: &'a Sfq| {
            chain(law, law.head, |slot| slot.next).map(|slot| (slot.hash, slot.allot, slot.length))
        };
        let lengths = |law: &'a Sfq| {
            let of = move |length: &u32| chain(law, *length, |slot| slot.shorter).map(|slot| slot.hash);
            law.slots.of_length[1..=law.slots.longest as usize].iter().flat_map(of)
        };
        turns(self).eq(turns(other)) && lengths(self).eq(lengths(other))
    }

    fn queue_of(&self, slot: u32) -> u32 {
        self.half * self.slots.all.len() as u32 + slot
    }

    /// The slot of this value of the hash, a free one if it has none.
    fn slot(&mut self, hash: u32) -> Option<u32> {
        let known = self.slot_of[hash as usize];
        if known != NONE {
            return Some(known);
        }
        let free = self.slots.of_length[0];
        (free != NONE).then(|| {
            self.slot_of[hash as usize] = free;
            self.slots.all[free as usize].hash = hash;
            free
        })
    }

    /// A packet has joined a slot's queue.
    fn joined(&mut self, slot: u32) {
        self.slots.change(slot, 1);
        if self.slots.all[slot as usize].length == 1 {
            self.slots.all[slot as usize].allot = self.quantum;
            self.append(slot);
        }
    }

    /// A slot joins the end of the round.
    fn append(&mut self, slot: u32) {
        self.slots.all[slot as usize].next = NONE;
        match self.slots.all.get_mut(self.tail as usize) {
            Some(last) => last.next = slot,
            None => self.head = slot,
        }
        self.tail = slot;
    }

    /// The slot whose turn it is leaves the round.
    fn leave(&mut self) -> u32 {
        let slot = self.head;
        self.head = self.slots.all[slot as usize].next;
        if self.head == NONE {
            self.tail = NONE;
        }
        slot
    }

    /// A packet has left a slot's queue: an empty one is free for other flows.
    fn lost_one(&mut self, slot: u32) {
        self.slots.change(slot, -1);
        let Slot { length, hash, .. } = self.slots.all[slot as usize];
        if length == 0 {
            self.slot_of[hash as usize] = NONE;
        }
    }

    /// `slot` already counts an arrival of `size` bytes, with which the limit is exceeded. The longest queue loses packets until it
    /// isn't; false if the arrival itself has to go.
    fn make_room<Q: Queue + ?Sized>(&mut self, queue: &mut Q, slot: u32, size: u32) -> bool {
        while !queue.fits(size) {
            let longest = self.slots.longest;
            let victim = if longest > 1 { self.slots.of_length[longest as usize] } else { self.head };
            let end = if self.headdrop { End::Head } else { End::Tail };
            // The arrival is the last of its queue.
            let arrival = victim == slot && (!self.headdrop || queue.packets_in(self.queue_of(slot)) == 0);
            if arrival {
                self.lost_one(slot);
                if self.slots.all[slot as usize].length == 0 {
                    // Nobody else has anything: what was taken over from another discipline fills the queue.
                    self.leave();
                }
                return false;
            }
            queue.evict_from(self.queue_of(victim), end);
            if longest <= 1 {
                self.leave();
            }
            self.lost_one(victim);
        }
        true
    }

    /// Changes the salt if that is due: all that waits is rehashed, slot after slot, into queues of the other half.
    fn perturb<Q: Queue + ?Sized>(&mut self, now: Time, queue: &mut Q, rng: &mut Rng) {
        let Some(period) = self.perturb.filter(|_| now >= self.due) else { return };
        self.due = now + Duration(period.0 - (now.0 - self.due.0) % period.0);
        self.hash.forget();
        if self.head == NONE {
            return;
        }
        let flows = self.slots.all.len() as u32;
        for slot in 0..flows {
            while self.slots.all[slot as usize].length > 0 {
                self.lost_one(slot);
            }
        }
        (self.head, self.tail) = (NONE, NONE);
        let old = self.half * flows;
        self.half = 1 - self.half;
        for from in old..old + flows {
            while let Some(flow) = queue.head_flow(from) {
                let hash = self.hash.queue(flow, rng);
                let slot = self.slot(hash).filter(|s| self.slots.all[*s as usize].length < self.depth);
                match slot {
                    Some(slot) => {
                        queue.move_head(from, self.queue_of(slot));
                        self.joined(slot);
                    }
                    None => {
                        queue.evict_from(from, End::Head);
                    }
                }
            }
        }
    }
}

impl Mechanism for Sfq {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("longest", f64::from(self.slots.longest));
    }
}

impl Aqm for Sfq {
    fn serves(&self) -> bool {
        true
    }

    fn flow_queues(&self) -> u32 {
        // Two halves, for what is rehashed.
        self.slots.all.len() as u32 * if self.perturb.is_some() { 2 } else { 1 }
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        self.perturb(at.now, at.queue, at.rng);
        let hash = self.hash.queue(packet.flow, at.rng);
        at.why.note("longest", f64::from(self.slots.longest));
        let alone = match at.queue.limit() {
            Backlog::Packets(n) => n >= 1.0,
            Backlog::Bytes(n) => n >= f64::from(packet.size),
        };
        let Some(slot) = Some(hash).filter(|_| alone).and_then(|hash| self.slot(hash)) else {
            return Admission::Drop(Cause::OVERFLOW);
        };
        let joins = self.queue_of(slot);
        at.why.note("flow_queue", f64::from(joins));
        at.why.note("flow_backlog", at.queue.bytes_in(joins) as f64);
        if self.slots.all[slot as usize].length >= self.depth {
            if !self.headdrop {
                self.too_deep += 1;
                return Admission::Drop(Cause::OVERFLOW);
            }
            // The head goes in its favour: the length stays.
            at.queue.evict_from(joins, End::Head);
        } else {
            self.joined(slot);
        }
        at.queue.join(joins);
        if at.queue.fits(packet.size) || self.make_room(at.queue, slot, packet.size) {
            return Admission::Admit;
        }
        Admission::Drop(Cause::OVERFLOW)
    }

    fn next_queue<Q: Queue + ?Sized>(&mut self, now: Time, queue: &mut Q, rng: &mut Rng) -> Option<u32> {
        self.perturb(now, queue, rng);
        loop {
            let slot = self.slots.all.get_mut(self.head as usize)?;
            if slot.allot > 0 {
                self.serving = self.head;
                return Some(self.queue_of(self.head));
            }
            slot.allot += self.quantum;
            let slot = self.leave();
            self.append(slot);
        }
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        let slot = self.serving;
        at.why.note("credits", self.slots.all[slot as usize].allot as f64);
        self.lost_one(slot);
        if self.slots.all[slot as usize].length == 0 {
            self.leave();
        } else {
            self.slots.all[slot as usize].allot -= i64::from(packet.size);
        }
        Departure::Send
    }

    fn show_counts(&self, queue: &Counts, show: &mut dyn FnMut(&'static str, u64)) {
        show("overflow", queue.dropped_by(Cause::OVERFLOW).saturating_sub(self.too_deep));
        show("too_deep", self.too_deep);
        show("evicted", queue.dropped_by(Cause::EVICTED));
    }
}

#[cfg(test)]
mod tests;

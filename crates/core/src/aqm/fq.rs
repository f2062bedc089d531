//! Flow queueing: flows are hashed into queues, which take turns, those that have built no backlog first.
//!
//! A queue that gets its first packet joins the end of the list of new queues with a quantum of credits, in bytes. Once it has used
//! them up, or is empty, it goes to the end of the list of old queues, with another quantum; there it leaves the list if it is found
//! empty. So who sends less than a quantum a round goes before everybody, and nobody is starved. The lists are threaded through the
//! queues: a decision costs the same with one flow as with thousands.
//! Source: RFC 8290 §3, §4, the discipline that decides within a queue aside ([FQ-CoDel][super::fq_codel], [FQ-PIE][super::fq_pie]).
//! Two flows may have the same hash, and then share a queue and its part of the link: with 1,024 queues and 100 flows a flow has a
//! queue of its own with 90.8 % (§5.3).
//! Non-goal: set-associative hashing (CAKE).

use crate::prelude::*;
use crate::rng::mix;

/// No queue.
const NONE: u32 = u32::MAX;
/// Where so many queues take turns, nothing of one is in a near cache when its turn comes; with fewer, reading ahead costs more than it saves.
const MANY: u32 = 256;
/// Quanta in bytes: with less, one packet could take thousands of turns; with more, turns would last for minutes.
const QUANTUM: (u64, u64) = (64, 1_000_000_000);

/// §4.1: which queue a flow's packets join.
#[derive(Clone, Debug)]
pub struct Hash {
    /// Drawn before the first packet, so that nobody can choose flows that collide (§8).
    salt: Option<u64>,
    queues: u64,
}

impl Hash {
    /// Into so many queues.
    #[must_use]
    pub fn new(queues: u64) -> Hash {
        Hash { salt: None, queues }
    }

    /// The queue of this flow, which stands for its five-tuple.
    #[inline]
    pub fn queue(&mut self, flow: FlowId, rng: &mut Rng) -> u32 {
        let salt = *self.salt.get_or_insert_with(|| rng.bits());
        // The upper half of the hash as a fraction of the queues.
        (((mix(salt ^ u64::from(flow.0)) >> 32) * self.queues) >> 32) as u32
    }

    /// Another salt at the next packet.
    pub fn forget(&mut self) {
        self.salt = None;
    }
}

/// Queues one behind the other: joined at the end, left at the head.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
}

const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };

/// The state of a queue, from the beginning of a cache line on: flows come by turns, and nothing of one is near when its turn comes.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Turn<S> {
    /// Bytes it may send in this turn; below zero what it owes.
    credits: i64,
    /// Who is behind it in its list.
    next: u32,
    /// Whether it is in a list.
    active: bool,
    /// The state of the discipline within the queue.
    within: S,
}

/// Who sends next. `S`: what the discipline within keeps of each queue.
#[derive(Clone, Debug)]
pub struct Scheduler<S> {
    quantum: i64,
    new: List,
    old: List,
    turns: Box<[Turn<S>]>,
    /// Whether an empty new queue goes to the old ones even where there are none (RFC 8290 §4.2; Linux: no).
    by_old: bool,
    /// How often a queue joined the new ones.
    joined: u64,
    /// The value read ahead, which means nothing: kept so that it is read.
    read: i64,
}

impl<S: Clone> Scheduler<S> {
    /// Of so many queues, all empty, with a quantum in bytes. `by_old`: an empty new queue goes to the old ones even where there
    /// are none, as the RFC says; otherwise only to go behind others, as in Linux. `within`: the state of an empty queue.
    #[must_use]
    pub fn new(queues: u64, quantum: Bytes, by_old: bool, within: S) -> Scheduler<S> {
        let none = Turn { credits: 0, next: NONE, active: false, within };
        Scheduler {
            quantum: quantum.0.clamp(QUANTUM.0, QUANTUM.1) as i64,
            new: EMPTY,
            old: EMPTY,
            turns: vec![none; queues as usize].into(),
            by_old,
            joined: 0,
            read: 0,
        }
    }

    /// How many queues there are.
    #[must_use]
    pub fn queues(&self) -> u32 {
        self.turns.len() as u32
    }

    /// The state of the discipline within for this queue.
    #[inline]
    pub fn within(&mut self, queue: u32) -> &mut S {
        &mut self.turns[queue as usize].within
    }

    /// The state of the discipline within, queue by queue.
    #[cfg(test)]
    pub fn all_within(&self) -> impl Iterator<Item = &S> {
        self.turns.iter().map(|turn| &turn.within)
    }

    /// §4.1: a packet has joined this queue.
    #[inline]
    pub fn arrived(&mut self, queue: u32) {
        let turn = &mut self.turns[queue as usize];
        if !turn.active {
            turn.active = true;
            turn.credits = self.quantum;
            self.joined += 1;
            self.append(true, queue);
        }
    }

    /// §4.2: the queue that sends next, as long as it is not empty; `None` once all are. The state within one that is found empty is
    /// shown to `found_empty`.
    #[inline(always)]
    pub fn next(&mut self, packets: impl Fn(u32) -> u32, mut found_empty: impl FnMut(&mut S)) -> Option<u32> {
        loop {
            let new = self.new.head != NONE;
            let queue = if new { self.new.head } else { self.old.head };
            let turn = self.turns.get_mut(queue as usize)?;
            // §3: "zero or less", which "at least a quantum" in §4.2 is, too.
            if turn.credits <= 0 {
                turn.credits += self.quantum;
                if new {
                    self.leave(true);
                    self.append(false, queue);
                } else {
                    self.rotate();
                }
            } else if packets(queue) > 0 {
                return Some(queue);
            } else {
                found_empty(&mut turn.within);
                self.leave(new);
                if new && (self.by_old || self.old.head != NONE) {
                    self.append(false, queue);
                } else {
                    self.turns[queue as usize].active = false;
                }
            }
        }
    }

    /// Whose turns follow that of this queue, if many take turns; the second one's state is read ahead. Who joins meanwhile may go before them.
    #[inline(always)]
    pub fn following(&mut self, queue: u32) -> Option<[u32; 2]> {
        if self.old.len < MANY {
            return None;
        }
        let first = self.turns[queue as usize].next;
        let second = self.turns.get(first as usize)?.next;
        self.read = self.turns.get(second as usize)?.credits;
        Some([first, second])
    }

    /// A packet of this queue is sent.
    #[inline]
    pub fn sent(&mut self, queue: u32, size: u32) {
        self.turns[queue as usize].credits -= i64::from(size);
    }

    /// Bytes that this queue may still send in its turn.
    #[must_use]
    pub fn credits(&self, queue: u32) -> i64 {
        self.turns[queue as usize].credits
    }

    /// How many queues are new, and how many old, for monitors.
    pub fn show(&self, show: Gauge<'_>) {
        show("new_queues", f64::from(self.new.len));
        show("old_queues", f64::from(self.old.len));
    }

    /// How many queues are new, how many old, and how often one has become new.
    #[must_use]
    pub fn counts(&self) -> (u32, u32, u64) {
        (self.new.len, self.old.len, self.joined)
    }

    /// Of the queues that may hold something, the one of which `bytes` says most; of equals the first by number.
    #[must_use]
    pub fn fattest(&self, bytes: impl Fn(u32) -> u64) -> Option<u32> {
        let mut found = None;
        for mut queue in [self.new.head, self.old.head] {
            while let Some(turn) = self.turns.get(queue as usize) {
                let rank = (bytes(queue), u32::MAX - queue);
                found = found.max(Some(rank));
                queue = turn.next;
            }
        }
        found.map(|(_, from_end)| u32::MAX - from_end)
    }

    /// A queue joins the end of a list.
    #[inline]
    fn append(&mut self, new: bool, queue: u32) {
        self.turns[queue as usize].next = NONE;
        let list = if new { &mut self.new } else { &mut self.old };
        match list.tail {
            NONE => list.head = queue,
            tail => self.turns[tail as usize].next = queue,
        }
        list.tail = queue;
        list.len += 1;
    }

    /// The head of the list of old queues goes to its end.
    #[inline]
    fn rotate(&mut self) {
        let List { head, tail, .. } = self.old;
        let next = std::mem::replace(&mut self.turns[head as usize].next, NONE);
        // Alone in the list, it stays where it is.
        if next != NONE {
            self.turns[tail as usize].next = head;
            (self.old.head, self.old.tail) = (next, head);
        }
    }

    /// The head of a list leaves it.
    #[inline]
    fn leave(&mut self, new: bool) {
        let list = if new { &mut self.new } else { &mut self.old };
        list.head = self.turns[list.head as usize].next;
        list.len -= 1;
        if list.head == NONE {
            list.tail = NONE;
        }
    }
}

/// Whether a quantum, a full packet where none is set, makes sense before this queue.
///
/// # Errors
/// If it is out of bounds, or more than the queue holds.
pub fn check_quantum(quantum: Option<Bytes>, context: &Context) -> Result<Vec<Warning>, Fault> {
    let bytes = quantum.unwrap_or(context.packet).0;
    let field = "flow_quantum";
    if !(QUANTUM.0..=QUANTUM.1).contains(&bytes) {
        return Err(Fault {
            field,
            problem: format!("a quantum of {bytes} B is out of bounds"),
            remedy: format!("{} B to {} B, such as \"{} B\"", QUANTUM.0, QUANTUM.1, context.packet.0),
        });
    }
    if let Some(limit) = context.limit
        && limit.bytes(context.packet) < bytes as f64
    {
        return Err(Fault {
            field,
            problem: format!("a quantum of {bytes} B is more than the queue's limit ({limit}) lets wait"),
            remedy: "a longer limit, or a smaller flow_quantum".into(),
        });
    }
    Ok(Vec::new())
}

/// Whether a second limit, in bytes, makes sense.
///
/// # Errors
/// If it has no room for a packet.
pub fn check_memory(memory: Option<Bytes>, context: &Context) -> Result<(), Fault> {
    match memory {
        Some(memory) if memory < context.packet => Err(Fault {
            field: "memory_limit",
            problem: format!("{memory} has no room for a full packet of {}", context.packet),
            remedy: "a few packets for each flow at least, such as \"4 MB\"".into(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

//! A queue, first in, first out, with a hard limit. It holds the packets, carries out its discipline's decisions and counts.
//! How packets join it, and what it shows its discipline, is here; how they leave it, in `fifo/departure.rs`.
//!
//! A discipline that keeps flows apart has [several queues](FlowQueues) within that limit, and says which one is next.

mod departure;

use std::collections::VecDeque;

use crate::prelude::*;
use crate::queue::End;
use crate::queue::flow_queues::FlowQueues;
use crate::registry::AnyAqm;

pub use crate::queue::{Item, Stamped};

/// A queue that a discipline decides on.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    /// All that waits; where there are flow queues, only what was taken over from other queues, which leaves first.
    ring: VecDeque<T>,
    /// The queues of a discipline that keeps flows apart.
    flows: Option<Box<FlowQueues<T>>>,
    packets: [u32; 3],
    bytes: [u64; 3],
    limit: Backlog,
    /// The limit in whole packets, and in bytes: one of them is the most there is.
    most: (u32, u64),
    /// Whether its discipline is asked about departures: see [`Aqm::serves`].
    serves: bool,
    /// How much of a packet that is to join counts towards the limit in bytes: all of it, or, where it is [only
    /// that](crate::aqm::Aqm::joins_below) less than the limit waits, one byte.
    counted: u32,
    idle_since: Option<Time>,
    evicted: VecDeque<T>,
    counts: Counts,
}

impl<T: Item> Fifo<T> {
    /// Empty, idle since the start of the run.
    #[must_use]
    pub fn new(limit: Backlog) -> Fifo<T> {
        Fifo {
            ring: VecDeque::new(),
            flows: None,
            packets: [0; 3],
            bytes: [0; 3],
            limit,
            most: match limit {
                // A length is a whole number, so a limit's fraction admits nothing more.
                Backlog::Packets(n) => (n as u32, u64::MAX),
                Backlog::Bytes(n) => (u32::MAX, n as u64),
            },
            serves: true,
            counted: u32::MAX,
            idle_since: Some(Time::ZERO),
            evicted: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Empty, with the queues that this discipline keeps, and the limit as it reads it.
    #[must_use]
    pub fn before(limit: Backlog, aqm: &AnyAqm) -> Fifo<T> {
        let flows = Some(aqm.flow_queues()).filter(|n| *n > 0).map(|n| Box::new(FlowQueues::new(n)));
        let queue = Fifo { serves: flows.is_some() || aqm.serves(), flows, ..Fifo::new(limit) };
        match aqm.joins_below(limit) {
            Some(bytes) => Fifo { most: (u32::MAX, bytes), counted: 1, ..queue },
            None => queue,
        }
    }

    /// Asks the discipline about an arrival, and holds and counts it accordingly.
    /// Packets that the discipline evicted meanwhile are found by [`Fifo::take_evicted`]. Inlined, so that an item is built where it is
    /// kept: to copy what was just written in smaller pieces stalls the processor.
    #[inline(always)]
    pub fn arrive<W: Why>(
        &mut self,
        now: Time,
        packet: &Packet,
        mut item: T,
        aqm: &mut AnyAqm,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let colour = packet.colour as usize;
        self.counts.arrived[colour] += 1;
        self.counts.arrived_bytes[colour] += u64::from(packet.size);
        let mut verdict = aqm.arrive(packet, At::new(now, self, rng, why));
        if !matches!(verdict, Admission::Drop(_)) && !self.fits(packet.size) {
            verdict = Admission::Drop(Cause::OVERFLOW);
        }
        if verdict == Admission::Mark && !item.mark() {
            verdict = Admission::Drop(Cause::UNMARKABLE);
        }
        match verdict {
            Admission::Drop(cause) => {
                self.counts.dropped[cause.index()][colour] += 1;
                return verdict;
            }
            Admission::Mark => self.counts.marked[colour] += 1,
            Admission::Admit => {}
        }
        self.packets[colour] += 1;
        self.bytes[colour] += u64::from(packet.size);
        match &mut self.flows {
            None => self.ring.push_back(item),
            Some(flows) => flows.push(item),
        }
        verdict
    }

    /// The packet next in line, where all wait in one.
    #[must_use]
    pub fn head(&self) -> Option<&T> {
        self.ring.front()
    }

    /// Size of the packet next in line; 1 where the discipline has yet to say which of several queues is next. A scheduler that
    /// was shown less than what then leaves has it owed.
    #[must_use]
    #[inline]
    pub fn next_size(&self) -> Option<u32> {
        match self.ring.front() {
            Some(item) => Some(item.size()),
            None => (self.flows.is_some() && self.packets() > 0).then_some(1),
        }
    }

    /// Takes the packet next in line to the link, without asking anybody. Where there are flow queues: one that was taken over.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let item = self.ring.pop_front()?;
        self.forget(&item);
        self.count_sent(&item);
        Some(item)
    }

    /// Takes packets to the link from the head, as long as they `leave`, without asking anybody. Those of one colour are counted together.
    #[inline(always)]
    pub fn release(&mut self, leave: impl Fn(&T) -> bool) {
        let (mut colour, mut packets, mut bytes) = (Colour::IN, 0, 0);
        while let Some(item) = self.ring.front().filter(|item| leave(item)) {
            let (next, size) = (item.colour(), item.size());
            self.ring.pop_front();
            if next != colour {
                self.count_released(colour, packets, bytes);
                (colour, packets, bytes) = (next, 0, 0);
            }
            packets += 1;
            bytes += u64::from(size);
        }
        self.count_released(colour, packets, bytes);
    }

    /// So many packets of one colour have been taken to the link.
    #[inline(always)]
    fn count_released(&mut self, colour: Colour, packets: u32, bytes: u64) {
        if packets > 0 {
            let colour = colour as usize;
            self.packets[colour] -= packets;
            self.bytes[colour] -= bytes;
            self.counts.sent[colour] += u64::from(packets);
            self.counts.sent_bytes[colour] += bytes;
            self.idle_since = None;
        }
    }

    /// The packet at the head of the queue whose turn is next, if the discipline has just said which one [that is](Queue::expect).
    #[inline(always)]
    pub fn take_expected(&mut self) -> Option<&T> {
        self.flows.as_mut()?.take_expected()
    }

    /// Whether there are several queues, of which the discipline says which one is next, even if all are empty.
    #[must_use]
    #[inline]
    pub fn has_flow_queues(&self) -> bool {
        self.flows.is_some()
    }

    /// The link has finished its last packet and finds nothing to send.
    pub fn went_idle(&mut self, at: Time) {
        self.idle_since = Some(at);
    }

    /// Something waits while the link serves others: the queue is not idle, though it sends nothing.
    pub fn went_busy(&mut self) {
        self.idle_since = None;
    }

    /// Whether the discipline has evicted a packet that nobody has taken yet.
    #[must_use]
    #[inline]
    pub fn has_evicted(&self) -> bool {
        !self.evicted.is_empty()
    }

    /// The first packet that the discipline has evicted and that nobody has taken yet.
    pub fn take_evicted(&mut self) -> Option<T> {
        self.evicted.pop_front()
    }

    /// Takes over the packets of another queue, behind its own, and its counts, without asking anybody: for a queue that
    /// is reconfigured while packets wait. It may be over its limit until they have left. Where flows were kept apart and the
    /// discipline is the `same`, they stay in their queues; otherwise what waits goes in the order in which it came, and,
    /// where flows are kept apart from now on, leaves before all that comes.
    pub fn take_over(&mut self, mut other: Fifo<T>, same: bool) {
        for colour in 0..3 {
            self.packets[colour] += other.packets[colour];
            self.bytes[colour] += other.bytes[colour];
        }
        self.counts = self.counts.and(&other.counts);
        self.ring.extend(other.ring);
        match (other.flows.take(), &self.flows) {
            (Some(theirs), Some(ours)) if same && ours.is_empty() => self.flows = Some(theirs),
            (Some(mut theirs), _) => self.ring.extend(theirs.drain()),
            (None, _) => {}
        }
        self.evicted.extend(other.evicted);
        self.idle_since = self.idle_since.zip(other.idle_since).map(|(a, b)| a.max(b));
    }

    /// Everything waiting, head first; of several queues one after the other.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.ring.iter().chain(self.flows.iter().flat_map(|flows| flows.iter()))
    }

    /// Counts since the start of the run.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Packets waiting, by colour.
    #[must_use]
    pub fn waiting(&self) -> [u32; 3] {
        self.packets
    }

    #[inline(always)]
    fn count_sent(&mut self, item: &T) {
        let colour = item.colour() as usize;
        self.counts.sent[colour] += 1;
        self.counts.sent_bytes[colour] += u64::from(item.size());
        self.idle_since = None;
    }

    /// A packet has been taken out in favour of another.
    fn count_evicted(&mut self, victim: T) {
        self.forget(&victim);
        self.counts.dropped[Cause::EVICTED.index()][victim.colour() as usize] += 1;
        self.evicted.push_back(victim);
    }

    #[inline]
    fn forget(&mut self, item: &T) {
        let colour = item.colour() as usize;
        self.packets[colour] -= 1;
        self.bytes[colour] -= u64::from(item.size());
    }
}

impl<T: Item> Queue for Fifo<T> {
    #[inline]
    fn packets(&self) -> u32 {
        self.packets[0] + self.packets[1] + self.packets[2]
    }
    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes[0] + self.bytes[1] + self.bytes[2]
    }
    #[inline]
    fn packets_of(&self, colour: Colour) -> u32 {
        self.packets[colour as usize]
    }
    #[inline]
    fn bytes_of(&self, colour: Colour) -> u64 {
        self.bytes[colour as usize]
    }
    fn limit(&self) -> Backlog {
        self.limit
    }
    #[inline]
    fn fits(&self, size: u32) -> bool {
        let (packets, bytes) = self.most;
        self.packets() < packets
            && (bytes == u64::MAX || self.bytes().saturating_add(u64::from(size.min(self.counted))) <= bytes)
    }
    #[inline]
    fn idle_since(&self) -> Option<Time> {
        self.idle_since
    }
    #[inline]
    fn head_since(&self, queue: u32) -> Option<Time> {
        match &self.flows {
            None => self.ring.front().map(Item::since),
            Some(flows) => flows.get(queue, End::Head).map(Item::since),
        }
    }
    fn has(&self, flow: FlowId) -> bool {
        self.iter().any(|item| item.flow() == flow)
    }
    fn packets_of_flow(&self, flow: FlowId) -> u32 {
        self.iter().filter(|item| item.flow() == flow).count() as u32
    }
    fn position(&self, flow: FlowId, end: End) -> Option<u32> {
        let mut of_flow = self.ring.iter().enumerate().filter(|(_, item)| item.flow() == flow);
        let found = match end {
            End::Head => of_flow.next(),
            End::Nth(n) => of_flow.nth(n as usize),
            End::Tail => of_flow.next_back(),
        };
        found.map(|(position, _)| position as u32)
    }
    fn flow_at(&self, position: u32) -> Option<FlowId> {
        self.ring.get(position as usize).map(Item::flow)
    }
    fn evict(&mut self, position: u32) -> bool {
        let Some(victim) = self.ring.remove(position as usize) else { return false };
        self.count_evicted(victim);
        true
    }
    fn mark(&mut self, position: u32) -> bool {
        let Some(item) = self.ring.get_mut(position as usize) else { return false };
        let marked = item.mark();
        self.counts.marked[item.colour() as usize] += u64::from(marked);
        marked
    }
    #[inline]
    fn join(&mut self, queue: u32) {
        if let Some(flows) = &mut self.flows {
            flows.join(queue);
        }
    }
    #[inline]
    fn packets_in(&self, queue: u32) -> u32 {
        self.flows.as_ref().map_or(0, |flows| flows.packets(queue))
    }
    #[inline]
    fn bytes_in(&self, queue: u32) -> u64 {
        self.flows.as_ref().map_or(0, |flows| flows.bytes(queue))
    }
    fn head_size(&self, queue: u32) -> Option<u32> {
        Some(self.flows.as_ref()?.get(queue, End::Head)?.size())
    }
    fn head_flow(&self, queue: u32) -> Option<FlowId> {
        Some(self.flows.as_ref()?.get(queue, End::Head)?.flow())
    }
    fn move_head(&mut self, from: u32, to: u32) -> bool {
        let Some(flows) = &mut self.flows else { return false };
        let Some(item) = flows.take_head(from) else { return false };
        flows.join(to);
        flows.push(item);
        true
    }
    #[inline(always)]
    fn expect(&mut self, turns: [u32; 2]) {
        if let Some(flows) = &mut self.flows {
            flows.expect(turns);
        }
    }
    fn evict_from(&mut self, queue: u32, end: End) -> Option<u32> {
        let victim = self.flows.as_mut()?.take(queue, end)?;
        let size = victim.size();
        self.count_evicted(victim);
        Some(size)
    }
}

#[cfg(test)]
mod tests;

//! Packets of one container in several queues, first in, first out each: for disciplines that keep flows apart.
//!
//! The discipline says which queue a packet joins, and which one sends. All queues share one pool of slots, as RFC 8290
//! §5.1 has it, so that an empty queue costs 32 bytes and a packet that joins or leaves one touches its neighbours alone. The pool
//! grows to the most packets that have waited at once, as a ring would, and is allocated from no further.

use crate::queue::End;
use crate::queue::Item;

/// No slot.
const NONE: u32 = u32::MAX;

/// Half a cache line where an item has 24 bytes, and never over the edge of one: flows come by turns, and nothing of one is near.
#[derive(Clone, Debug)]
#[repr(align(32))]
struct Slot<T> {
    item: Option<T>,
    next: u32,
    /// Means nothing at the head: that of the next packet need not be touched when a head leaves.
    previous: u32,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Line {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

const EMPTY: Line = Line { head: NONE, tail: NONE, packets: 0, bytes: 0 };

/// Queues over one pool.
#[derive(Clone, Debug)]
pub struct FlowQueues<T> {
    slots: Vec<Slot<T>>,
    /// The first slot that is free; each leads to the next.
    free: u32,
    lines: Vec<Line>,
    /// Which queue the packet in question joins.
    joins: u32,
    /// The slot of the packet that is expected next.
    expected: u32,
    /// The value read ahead, which means nothing: kept so that it is read.
    read: u32,
}

impl<T: Item> FlowQueues<T> {
    /// So many, all empty.
    #[must_use]
    pub fn new(queues: u32) -> FlowQueues<T> {
        let lines = vec![EMPTY; queues as usize];
        FlowQueues { slots: Vec::new(), free: NONE, lines, joins: 0, expected: NONE, read: 0 }
    }

    /// The next packet joins this queue.
    ///
    /// # Panics
    /// As it joins, if there is no such queue.
    #[inline]
    pub fn join(&mut self, queue: u32) {
        self.joins = queue;
    }

    /// These take turns next, in order. The first one's head was read at the turn before, as that of the second is now: what it leads to can be
    /// [read](FlowQueues::take_expected) without waiting for it.
    #[inline(always)]
    pub fn expect(&mut self, [first, second]: [u32; 2]) {
        let head = |queue: u32| self.lines.get(queue as usize).map_or(NONE, |line| line.head);
        let slot = self.slots.get(head(second) as usize);
        (self.expected, self.read) = (head(first), slot.map_or(0, |slot| slot.next));
    }

    /// The packet that is expected next, if one is.
    #[inline(always)]
    pub fn take_expected(&mut self) -> Option<&T> {
        let at = std::mem::replace(&mut self.expected, NONE);
        self.slots.get(at as usize)?.item.as_ref()
    }

    /// How many queues there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no packet waits in any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.packets == 0)
    }

    /// Packets in this queue; none where there is no such queue.
    #[must_use]
    #[inline]
    pub fn packets(&self, queue: u32) -> u32 {
        self.lines.get(queue as usize).map_or(0, |line| line.packets)
    }

    /// Bytes in this queue; none where there is no such queue.
    #[must_use]
    #[inline]
    pub fn bytes(&self, queue: u32) -> u64 {
        self.lines.get(queue as usize).map_or(0, |line| line.bytes)
    }

    /// The packet at an end of this queue, or in the middle.
    #[must_use]
    pub fn get(&self, queue: u32, end: End) -> Option<&T> {
        self.slots[self.find(queue, end)? as usize].item.as_ref()
    }

    /// A packet joins the tail of the queue that was [told](FlowQueues::join).
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        let line = &mut self.lines[self.joins as usize];
        let size = item.size();
        let slot = Slot { item: Some(item), next: NONE, previous: line.tail };
        let at = self.free;
        let at = if at == NONE {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        } else {
            self.free = self.slots[at as usize].next;
            self.slots[at as usize] = slot;
            at
        };
        match line.tail {
            NONE => line.head = at,
            tail => self.slots[tail as usize].next = at,
        }
        line.tail = at;
        line.packets += 1;
        line.bytes += u64::from(size);
    }

    /// Takes the packet at the head of this queue out of it.
    #[inline]
    pub fn take_head(&mut self, queue: u32) -> Option<T> {
        let line = self.lines.get_mut(queue as usize)?;
        let slot = self.slots.get_mut(line.head as usize)?;
        let item = slot.item.take()?;
        let next = std::mem::replace(&mut slot.next, self.free);
        self.free = std::mem::replace(&mut line.head, next);
        if next == NONE {
            line.tail = NONE;
        }
        line.packets -= 1;
        line.bytes -= u64::from(item.size());
        Some(item)
    }

    /// Takes a packet out of this queue: its head in no time, another in proportion to how far it is from its end.
    pub fn take(&mut self, queue: u32, end: End) -> Option<T> {
        let at = self.find(queue, end)?;
        if self.lines[queue as usize].head == at {
            return self.take_head(queue);
        }
        let slot = &mut self.slots[at as usize];
        let item = slot.item.take()?;
        let (next, previous) = (slot.next, slot.previous);
        slot.next = self.free;
        self.free = at;
        let line = &mut self.lines[queue as usize];
        self.slots[previous as usize].next = next;
        match next {
            NONE => line.tail = previous,
            after => self.slots[after as usize].previous = previous,
        }
        line.packets -= 1;
        line.bytes -= u64::from(item.size());
        Some(item)
    }

    /// Everything, queue after queue, head first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.lines.iter().flat_map(|line| {
            let first = self.slots.get(line.head as usize);
            let chain = std::iter::successors(first, |slot| self.slots.get(slot.next as usize));
            chain.filter_map(|slot| slot.item.as_ref())
        })
    }

    /// Takes everything out, in the order in which it came.
    pub fn drain(&mut self) -> Vec<T> {
        let mut all: Vec<T> = (0..self.lines.len() as u32)
            .flat_map(|queue| std::iter::from_fn(|| self.take_head(queue)).collect::<Vec<_>>())
            .collect();
        all.sort_by_key(Item::since);
        all
    }

    #[inline]
    fn find(&self, queue: u32, end: End) -> Option<u32> {
        let line = self.lines.get(queue as usize)?;
        let at = match end {
            End::Head => line.head,
            End::Tail => line.tail,
            End::Nth(n) => {
                let mut at = line.head;
                for _ in 0..n {
                    at = self.slots.get(at as usize)?.next;
                }
                at
            }
        };
        (at != NONE).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use std::collections::VecDeque;

    fn item(number: u32, size: u32) -> Stamped {
        let packet = Packet { flow: FlowId(number), size, ..Packet::default() };
        Stamped { packet, since: Time(u64::from(number)) }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u32, u32),
        Take(u32, End),
    }

    fn step() -> impl Strategy<Value = Step> {
        let end = prop_oneof![Just(End::Head), Just(End::Tail), (0u32..4).prop_map(End::Nth)];
        prop_oneof![
            (0u32..5, 40u32..1500).prop_map(|(queue, size)| Step::Push(queue, size)),
            (0u32..6, end).prop_map(|(queue, end)| Step::Take(queue, end)),
        ]
    }

    proptest! {
        /// As if each queue were a ring of its own; no more places than packets have waited at once.
        #[test]
        fn each_is_a_queue_of_its_own(steps in prop::collection::vec(step(), 1..300)) {
            let mut queues: FlowQueues<Stamped> = FlowQueues::new(5);
            let mut rings = vec![VecDeque::new(); 6];
            let (mut number, mut most) = (0, 0);
            for step in steps {
                match step {
                    Step::Push(queue, size) => {
                        queues.join(queue);
                        queues.push(item(number, size));
                        rings[queue as usize].push_back((number, size));
                        number += 1;
                    }
                    Step::Take(queue, end) => {
                        let ring = &mut rings[queue as usize];
                        let at = match end {
                            End::Head => 0,
                            End::Tail => ring.len().saturating_sub(1),
                            End::Nth(n) => n as usize,
                        };
                        let shown = queues.get(queue, end).map(|p| p.flow.0);
                        prop_assert_eq!(shown, ring.get(at).map(|p| p.0));
                        let taken = queues.take(queue, end).map(|p| (p.flow.0, p.size));
                        prop_assert_eq!(taken, ring.remove(at));
                    }
                }
                for (queue, ring) in (0..).zip(&rings) {
                    prop_assert_eq!(queues.packets(queue) as usize, ring.len());
                    prop_assert_eq!(queues.bytes(queue), ring.iter().map(|p| u64::from(p.1)).sum::<u64>());
                }
                let waiting: Vec<u32> = rings.iter().flatten().map(|p| p.0).collect();
                prop_assert_eq!(queues.iter().map(|p| p.flow.0).collect::<Vec<_>>(), &waiting[..]);
                most = most.max(waiting.len());
                prop_assert_eq!(queues.slots.len(), most);
                prop_assert_eq!(queues.is_empty(), waiting.is_empty());
            }
            let mut left: Vec<u32> = rings.iter().flatten().map(|p| p.0).collect();
            left.sort_unstable();
            prop_assert_eq!(queues.drain().iter().map(|p| p.flow.0).collect::<Vec<_>>(), left);
            prop_assert!(queues.is_empty());
        }
    }

    /// The expected packet is the head of the first of the two queues, once; none where that is empty.
    #[test]
    fn the_head_of_the_queue_whose_turn_is_next_is_expected() {
        let mut queues: FlowQueues<Stamped> = FlowQueues::new(3);
        for (number, queue) in (0..).zip([1, 1, 2]) {
            queues.join(queue);
            queues.push(item(number, 100));
        }
        let mut expected = |turns| {
            queues.expect(turns);
            [queues.take_expected().map(|p| p.flow.0), queues.take_expected().map(|p| p.flow.0)]
        };
        assert_eq!(expected([1, 2]), [Some(0), None]);
        assert_eq!(expected([2, 0]), [Some(2), None]);
        assert_eq!(expected([0, 1]), [None, None]);
        assert_eq!(expected([9, 9]), [None, None], "no such queues");
    }
}

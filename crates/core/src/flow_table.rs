//! State per flow for a bounded number of flows: a new flow replaces the one not seen for the longest time.
//!
//! All memory is allocated at the start, so a flood of new flows costs no more than ten old ones, and no packet allocates.
//! Flows are found by a hash without a secret and listed in the order in which they were last seen, newest first: the same
//! packets give the same order on every machine. An attacker who chooses flow numbers can make lookups slower, never the table
//! larger. Non-goal: state that must not be lost.

use crate::packet::FlowId;
use crate::units::Time;

/// No slot.
const NONE: u32 = u32::MAX;

/// State of the flows seen last.
#[derive(Clone, Debug)]
pub struct FlowTable<T> {
    /// Slot by hash, linear probing; never more than half full.
    index: Vec<u32>,
    slots: Vec<Slot<T>>,
    /// Slots that were emptied.
    free: Vec<u32>,
    capacity: usize,
    newest: u32,
    oldest: u32,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    flow: FlowId,
    newer: u32,
    older: u32,
    seen: Time,
    state: T,
}

/// The outcome of [`FlowTable::touch`].
#[derive(Debug)]
pub struct Touched<'a, T> {
    /// The flow's state; a new flow's is the default.
    pub state: &'a mut T,
    /// Whether the table did not know it.
    pub new: bool,
    /// The flow that was replaced, and its state.
    pub evicted: Option<(FlowId, T)>,
}

impl<T: Copy + Default> FlowTable<T> {
    /// Empty, with room for `capacity` flows (at least 1).
    #[must_use]
    pub fn new(capacity: usize) -> FlowTable<T> {
        let capacity = capacity.clamp(1, 1 << 30);
        FlowTable {
            index: vec![NONE; (2 * capacity).next_power_of_two()],
            slots: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            capacity,
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Flows in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether it has no flow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.newest == NONE
    }

    /// The flow's state, if it is known.
    #[must_use]
    pub fn get(&self, flow: FlowId) -> Option<&T> {
        self.find(flow).map(|(_, slot)| &self.slots[slot as usize].state)
    }

    /// The flow's state, if it is known. Does not count as seeing it.
    #[must_use]
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut T> {
        self.find(flow).map(|(_, slot)| &mut self.slots[slot as usize].state)
    }

    /// The flow was seen: it becomes the newest, and enters the table if it wasn't there.
    #[inline]
    pub fn touch(&mut self, now: Time, flow: FlowId) -> Touched<'_, T> {
        let mut evicted = None;
        let known = self.find(flow);
        let slot = if let Some((_, slot)) = known {
            self.unlink(slot);
            slot
        } else {
            if self.len() == self.capacity {
                evicted = self.remove_oldest();
            }
            self.insert(flow)
        };
        self.link_newest(slot);
        let s = &mut self.slots[slot as usize];
        s.seen = now;
        Touched { state: &mut s.state, new: known.is_none(), evicted }
    }

    /// The flow not seen for the longest time, and when it was seen.
    #[must_use]
    pub fn oldest(&self) -> Option<(FlowId, Time)> {
        self.slots.get(self.oldest as usize).map(|s| (s.flow, s.seen))
    }

    /// Removes the flow not seen for the longest time.
    pub fn remove_oldest(&mut self) -> Option<(FlowId, T)> {
        let flow = self.slots.get(self.oldest as usize)?.flow;
        self.remove(flow).map(|state| (flow, state))
    }

    /// Forgets a flow; its state, if it was known.
    pub fn remove(&mut self, flow: FlowId) -> Option<T> {
        let (at, slot) = self.find(flow)?;
        self.unlink(slot);
        self.close_gap(at);
        self.free.push(slot);
        Some(self.slots[slot as usize].state)
    }

    /// Everybody, who was seen last first.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &T)> {
        let mut next = self.newest;
        std::iter::from_fn(move || {
            let s = self.slots.get(next as usize)?;
            next = s.older;
            Some((s.flow, &s.state))
        })
    }

    fn insert(&mut self, flow: FlowId) -> u32 {
        let new = Slot { flow, newer: NONE, older: NONE, seen: Time::ZERO, state: T::default() };
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = new;
            slot
        } else {
            self.slots.push(new);
            (self.slots.len() - 1) as u32
        };
        let mut at = self.home(flow);
        while self.index[at] != NONE {
            at = self.after(at);
        }
        self.index[at] = slot;
        slot
    }

    /// Where the index has the flow, and its slot.
    #[inline]
    fn find(&self, flow: FlowId) -> Option<(usize, u32)> {
        let mut at = self.home(flow);
        loop {
            let slot = self.index[at];
            if slot == NONE {
                return None;
            }
            if self.slots[slot as usize].flow == flow {
                return Some((at, slot));
            }
            at = self.after(at);
        }
    }

    /// Multiplication by 2³²/φ spreads neighbouring numbers (Knuth, vol. 3, §6.4).
    #[inline]
    fn home(&self, flow: FlowId) -> usize {
        ((u64::from(flow.0.wrapping_mul(0x9e37_79b9)) * self.index.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.index.len() - 1)
    }

    /// Empties a place of the index and moves up what was pushed beyond it (Knuth, vol. 3, algorithm 6.4R).
    fn close_gap(&mut self, mut gap: usize) {
        let mut at = self.after(gap);
        while self.index[at] != NONE {
            let home = self.home(self.slots[self.index[at] as usize].flow);
            let mask = self.index.len() - 1;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.index[gap] = self.index[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.index[gap] = NONE;
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match self.slots.get_mut(newer as usize) {
            Some(s) => s.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(s) => s.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let before = self.newest;
        match self.slots.get_mut(before as usize) {
            Some(s) => s.newer = slot,
            None => self.oldest = slot,
        }
        let s = &mut self.slots[slot as usize];
        (s.newer, s.older) = (NONE, before);
        self.newest = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn flows(t: &FlowTable<u32>) -> Vec<u32> {
        t.iter().map(|(f, _)| f.0).collect()
    }

    #[test]
    fn who_was_seen_longest_ago_makes_room() {
        let mut t = FlowTable::<u32>::new(2);
        for (at, flow) in [(1, 7), (2, 8), (3, 7)] {
            *t.touch(Time(at), FlowId(flow)).state += flow;
        }
        let third = t.touch(Time(4), FlowId(9));
        assert_eq!((third.new, *third.state, third.evicted), (true, 0, Some((FlowId(8), 8))));
        assert_eq!((flows(&t), t.oldest(), t.len()), (vec![9, 7], Some((FlowId(7), Time(3))), 2));
        assert_eq!((t.get(FlowId(7)), t.get(FlowId(8))), (Some(&14), None));
        assert_eq!(t.remove_oldest(), Some((FlowId(7), 14)));
        assert_eq!(t.remove_oldest(), Some((FlowId(9), 0)));
        assert_eq!((t.remove_oldest(), t.is_empty(), t.oldest()), (None, true, None));
    }

    #[test]
    fn a_flood_of_flows_takes_no_more_memory() {
        let mut t = FlowTable::<u64>::new(100);
        let (slots, index) = (t.slots.capacity(), t.index.len());
        for flow in 0..100_000 {
            t.touch(Time(u64::from(flow)), FlowId(flow));
        }
        assert_eq!((t.slots.capacity(), t.index.len(), t.len()), (slots, index, 100));
        assert!(t.iter().map(|(f, _)| f.0).eq((99_900..100_000).rev()));
    }

    proptest! {
        /// A list that is searched from end to end says the same, hashes that collide included.
        #[test]
        fn agrees_with_a_plain_list(
            capacity in 1usize..9,
            steps in prop::collection::vec((0u32..12, 0u8..8), 0..200),
            stride in prop::sample::select(vec![1u32, 1 << 28, 0x9e37_79b9]),
        ) {
            let mut fast = FlowTable::<u32>::new(capacity);
            let mut slow: Vec<(u32, u32)> = Vec::new();
            for (i, (n, what)) in steps.into_iter().enumerate() {
                let flow = n.wrapping_mul(stride);
                if what == 0 {
                    let gone = fast.remove_oldest().map(|(f, s)| (f.0, s));
                    prop_assert_eq!(gone, slow.pop());
                    continue;
                }
                if what == 1 {
                    let known = slow.iter().position(|e| e.0 == flow).map(|at| slow.remove(at).1);
                    prop_assert_eq!(fast.remove(FlowId(flow)), known);
                    continue;
                }
                let known = slow.iter().position(|e| e.0 == flow).map(|at| slow.remove(at));
                let evicted = (known.is_none() && slow.len() == capacity).then(|| slow.pop()).flatten();
                slow.insert(0, (flow, known.map_or(0, |e| e.1) + n));
                let t = fast.touch(Time(i as u64), FlowId(flow));
                prop_assert_eq!((t.new, t.evicted.map(|(f, s)| (f.0, s))), (known.is_none(), evicted));
                *t.state += n;
                prop_assert!(fast.iter().map(|(f, s)| (f.0, *s)).eq(slow.iter().copied()));
                prop_assert_eq!(fast.len(), slow.len());
                for n in 0..12u32 {
                    let flow = n.wrapping_mul(stride);
                    let found = slow.iter().find(|e| e.0 == flow).map(|e| e.1);
                    prop_assert_eq!(fast.get(FlowId(flow)).copied(), found);
                }
            }
        }
    }
}

//! The common part of ns-2's fair queues: flows are told apart by their nodes' addresses, and queues stand in a ring.

use std::sync::Arc;

use crate::packet::{Kind, Packet};

/// No queue.
const NONE: u32 = u32::MAX;

/// The addresses of each flow's source and destination: in ns-2 the numbers of their nodes.
#[derive(Clone, Debug, Default)]
pub struct Addresses(Option<Arc<[(u32, u32)]>>);

impl Addresses {
    /// Of flows 0, 1, …
    #[must_use]
    pub fn told(of: Arc<[(u32, u32)]>) -> Addresses {
        Addresses(Some(of))
    }

    /// Where a packet comes from and goes: acknowledgements go from a flow's destination to its source. Where nothing was told,
    /// a flow's number stands for its source.
    #[must_use]
    pub fn of(&self, packet: &Packet) -> (u32, u32) {
        let flow = packet.flow.0;
        let (from, to) = match &self.0 {
            Some(all) => all.get(flow as usize).copied().unwrap_or((flow, 0)),
            None => (flow, 0),
        };
        if packet.kind == Kind::Ack { (to, from) } else { (from, to) }
    }
}

/// Queues that hold something, in a ring; a new one comes last.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Who is after and before each.
    links: Box<[(u32, u32)]>,
    current: u32,
}

impl Ring {
    /// Of so many queues, all outside.
    #[must_use]
    pub fn new(queues: u32) -> Ring {
        Ring { links: vec![(NONE, NONE); queues as usize].into(), current: NONE }
    }

    /// How many queues there are, in the ring or not.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.links.len() as u32
    }

    /// Whether none is in the ring.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current == NONE
    }

    /// Whose turn it is.
    #[must_use]
    pub fn current(&self) -> Option<u32> {
        Some(self.current).filter(|queue| *queue != NONE)
    }

    /// The turn passes on.
    pub fn turn(&mut self) {
        if let Some(current) = self.current() {
            self.current = self.links[current as usize].0;
        }
    }

    /// A queue comes before the one whose turn it is.
    pub fn activate(&mut self, queue: u32) {
        let Some(head) = self.current() else {
            self.links[queue as usize] = (queue, queue);
            self.current = queue;
            return;
        };
        let last = self.links[head as usize].1;
        self.links[queue as usize] = (head, last);
        self.links[last as usize].0 = queue;
        self.links[head as usize].1 = queue;
    }

    /// A queue leaves the ring; if it was its turn, it is that of the next.
    pub fn leave(&mut self, queue: u32) {
        let (next, previous) = self.links[queue as usize];
        if next == queue {
            self.current = NONE;
            return;
        }
        self.links[previous as usize].0 = next;
        self.links[next as usize].1 = previous;
        if self.current == queue {
            self.current = next;
        }
    }

    /// The queue of which `amount` says most, the first of equals from the one whose turn it is.
    pub fn first_most(&self, amount: impl Fn(u32) -> u64) -> Option<u32> {
        let first = self.current()?;
        let (mut most, mut at) = (first, self.links[first as usize].0);
        while at != first {
            if amount(at) > amount(most) {
                most = at;
            }
            at = self.links[at as usize].0;
        }
        Some(most)
    }
}

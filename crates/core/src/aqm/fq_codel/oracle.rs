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
        let mut all: Vec<u32> = self.queues.iter_mut().flat_map(|q| std::mem::take(&mut q.dropped)).collect();
        all.sort_unstable();
        all
    }
}

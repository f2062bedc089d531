//! RFC 8289's pseudocode, for tests of CoDel and of what has it within.

use std::collections::VecDeque;

/// RFC 8289 §5, on a queue of its own: the pseudocode's routines and variables, time as signed picoseconds.
#[derive(Default)]
pub struct Rfc {
    /// Number, size, time of arrival, whether ECN-capable.
    pub queue: VecDeque<(u32, u32, i128, bool)>,
    /// Bytes in other queues that count, too.
    pub elsewhere: u64,
    first_above_time: i128,
    drop_next: i128,
    /// The pseudocode's.
    pub count: i64,
    lastcount: i64,
    dropping: bool,
    /// The numbers of what was dropped.
    pub dropped: Vec<u32>,
}

impl Rfc {
    const TARGET: i128 = 5_000_000_000;
    const INTERVAL: i128 = 100_000_000_000;
    const MAXPACKET: u64 = 1000;

    fn control_law(t: i128, count: i64) -> i128 {
        t + (Rfc::INTERVAL as f64 / (count as f64).sqrt()) as i128
    }

    fn dodequeue(&mut self, now: i128) -> (Option<(u32, u32, i128, bool)>, bool) {
        let Some(p) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        let bytes: u64 = self.elsewhere + self.queue.iter().map(|p| u64::from(p.1)).sum::<u64>();
        if now - p.2 < Rfc::TARGET || bytes <= Rfc::MAXPACKET {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + Rfc::INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    /// The number of the packet that leaves, and whether it is marked.
    pub fn deque(&mut self, now: i128, ecn: bool) -> Option<(u32, bool)> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                let head = p.expect("ok to drop");
                if ecn && head.3 {
                    self.drop_next = Rfc::control_law(self.drop_next, self.count);
                    return Some((head.0, true));
                }
                self.dropped.push(head.0);
                (p, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = Rfc::control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            let head = p.expect("ok to drop");
            let marked = ecn && head.3;
            if !marked {
                self.dropped.push(head.0);
                (p, _) = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * Rfc::INTERVAL {
                self.count = delta;
            }
            self.drop_next = Rfc::control_law(now, self.count);
            self.lastcount = self.count;
            return p.map(|p| (p.0, marked));
        }
        p.map(|p| (p.0, false))
    }
}

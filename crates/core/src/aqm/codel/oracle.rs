//! RFC 8289's pseudocode, for tests of CoDel and of what has it within; and Linux's arithmetic in place of the RFC's.

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

/// Linux's `sch_codel` on a queue of its own, as `codel.h` and `codel_impl.h` define it: a clock of 32 bits in units of 1,024 ns,
/// read anew for arrival and departure and compared as serial numbers (RFC 1982); a drop only strictly after an interval above
/// target; 1/√count in 16 bits by Newton's method.
#[derive(Default)]
pub struct Linux {
    /// Number, size, time of arrival in its units, whether ECN-capable.
    queue: VecDeque<(u32, u32, u32, bool)>,
    above_until: u32,
    drop_next: u32,
    count: u32,
    lastcount: u32,
    root: u16,
    dropping: bool,
    /// The numbers of what was dropped.
    pub dropped: Vec<u32>,
}

/// A packet as [`Linux`] has it, and whether it may be dropped.
type Looked = (Option<(u32, u32, u32, bool)>, bool);

impl Linux {
    /// 5 ms and 100 ms in units of 1,024 ns, cut off.
    const TARGET: u32 = 4_882;
    const INTERVAL: u32 = 97_656;
    const MTU: u64 = 1000;

    fn clock(ps: u64) -> u32 {
        ((ps / 1000) >> 10) as u32
    }

    /// How far `a` is after `b`, less than 2^31 either way.
    fn after(a: u32, b: u32) -> i32 {
        a.wrapping_sub(b) as i32
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, ps: u64, number: u32, size: u32, capable: bool) {
        self.queue.push_back((number, size, Linux::clock(ps), capable));
    }

    fn look(&mut self, now: u32) -> Looked {
        let Some(p) = self.queue.pop_front() else {
            self.above_until = 0;
            return (None, false);
        };
        let backlog: u64 = self.queue.iter().map(|p| u64::from(p.1)).sum();
        let sojourn = now.wrapping_sub(p.2);
        if Linux::after(sojourn, Linux::TARGET) < 0 || backlog <= Linux::MTU {
            self.above_until = 0;
            return (Some(p), false);
        }
        if self.above_until == 0 {
            self.above_until = now.wrapping_add(Linux::INTERVAL);
            return (Some(p), false);
        }
        (Some(p), Linux::after(now, self.above_until) > 0)
    }

    /// x·(3 − count·x²)/2 in fractions of 32 bits, of which 16 are kept; the bracket loses two bits before it is multiplied.
    fn better_root(&mut self) {
        let x = u64::from(self.root) * 65_536;
        let square = (u128::from(x) * u128::from(x) / (1 << 32)) as u64;
        let bracket = (3u64 * (1 << 32)).wrapping_sub(u64::from(self.count) * square);
        let product = (bracket / 4).wrapping_mul(x) / (1 << 31);
        self.root = (product as u32 / 65_536) as u16;
    }

    fn plan(&mut self, from: u32) {
        let wait = u64::from(Linux::INTERVAL) * (u64::from(self.root) * 65_536) / (1 << 32);
        self.drop_next = from.wrapping_add(wait as u32);
    }

    /// The number of the packet that leaves, and whether it is marked.
    pub fn dequeue(&mut self, ps: u64, ecn: bool) -> Option<(u32, bool)> {
        let now = Linux::clock(ps);
        let (mut head, mut drop) = self.look(now);
        if head.is_none() {
            self.dropping = false;
            return None;
        }
        if !self.dropping && drop {
            let first = head?;
            let marked = ecn && first.3;
            if !marked {
                self.dropped.push(first.0);
                (head, _) = self.look(now);
            }
            let before = self.count.wrapping_sub(self.lastcount);
            let pause = now.wrapping_sub(self.drop_next);
            if before > 1 && Linux::after(pause, 16 * Linux::INTERVAL) < 0 {
                self.count = before;
                self.better_root();
            } else {
                (self.count, self.root) = (1, u16::MAX);
            }
            (self.dropping, self.lastcount) = (true, self.count);
            self.plan(now);
            return head.map(|p| (p.0, marked));
        }
        self.dropping &= drop;
        while self.dropping && Linux::after(now, self.drop_next) >= 0 {
            let doomed = head?;
            self.count += 1;
            self.better_root();
            if ecn && doomed.3 {
                self.plan(self.drop_next);
                return Some((doomed.0, true));
            }
            self.dropped.push(doomed.0);
            (head, drop) = self.look(now);
            self.dropping = drop;
            if drop {
                self.plan(self.drop_next);
            }
        }
        head.map(|p| (p.0, false))
    }
}

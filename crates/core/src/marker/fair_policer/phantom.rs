//! Phantom queues: a counter of bytes for each flow, all served at one rate in equal parts, and BC-PQP's burst control over them.
//!
//! A flow's queue holds what it let by and is not paid for. With burst control it may also hold padding, which fills the queue and stands for no packet:
//! a flow that within a period has let by half as much again as its share of the rate has its queue filled up to the burst, so that from then on no
//! more of it passes than is paid. One that within a period let by less than half its share is relieved of the padding. What a flow let by is
//! paid before its padding, so that padding never adds to what may pass: in any time t at most rate·t + burst.
//! Source: Tahir et al. 2024 (BC-PQP), whose abstract has "a novel burst-control mechanism"; how it works is read from the authors'
//! artefact (`testbed`, commit 7641140), which has periods of 200 ms, and half as much again and half as thresholds. There a queue's periods are its own and it has a
//! limit of its own; here periods are common to all, and padding fills up to the one burst.
//! Non-goal: other policies than equal shares.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::{Duration, Rate, Time};

/// Flows by a moment of theirs, the least first, on a scale that only grows: it may be one that they had before.
type Ends = BinaryHeap<Reverse<(u128, u32)>>;

/// Amounts are bits times picoseconds a second, in which every payment is a whole number. Counters are kept as what has to be paid, all alike, until
/// one is empty: none changes as time passes.
#[derive(Clone, Debug)]
pub(super) struct Phantom {
    rate: Rate,
    burst: u128,
    /// What each queue that held something all along has been paid.
    paid: u128,
    /// By flow: what `paid` will be when all that it let by is paid for. The last is no flow's: see [`Phantom::keep_at_most`].
    settled: Vec<u128>,
    /// Flows that let by what is not paid for.
    owing: Ends,
    /// All that was let by and is not paid for.
    level: u128,
    at: Time,
    /// What could not be divided among the queues, and is paid with the next: less than one unit each.
    rest: u128,
    control: Option<Control>,
}

/// Burst control.
#[derive(Clone, Debug)]
struct Control {
    period: Duration,
    ends: Time,
    /// By flow: what `paid` will be when its queue is empty, padding included.
    empty_at: Vec<u128>,
    /// Flows whose queue holds something.
    queued: Ends,
    /// By flow: what it let by in this period.
    passed: Vec<u128>,
    /// Flows that let something by in this period, or have padding; and whether a flow is among them.
    seen: Vec<u32>,
    is_seen: Vec<bool>,
}

/// The least of them, of which one that has grown meanwhile is put in its place.
fn next(ends: &mut Ends, now: &[u128]) -> Option<u128> {
    loop {
        let mut least = ends.peek_mut()?;
        let Reverse((was, flow)) = *least;
        let end = now[flow as usize];
        if was == end {
            return Some(end);
        }
        *least = Reverse((end, flow));
    }
}

impl Phantom {
    pub fn new(rate: Rate, burst: u128, queues: usize, period: Option<Duration>) -> Phantom {
        let control = period.map(|period| Control {
            period,
            ends: Time::ZERO + period,
            empty_at: vec![0; queues + 1],
            queued: BinaryHeap::with_capacity(queues),
            passed: vec![0; queues],
            seen: Vec::new(),
            is_seen: vec![false; queues],
        });
        Phantom {
            rate,
            burst,
            paid: 0,
            settled: vec![0; queues + 1],
            owing: BinaryHeap::with_capacity(queues),
            level: 0,
            at: Time::ZERO,
            rest: 0,
            control,
        }
    }

    pub fn queues(&self) -> usize {
        self.settled.len() - 1
    }

    /// How much more may pass, of all flows.
    pub fn room(&self) -> u128 {
        self.burst - self.level
    }

    /// How many flows share the rate.
    pub fn active(&self) -> usize {
        self.control.as_ref().map_or(self.owing.len(), |control| control.queued.len())
    }

    /// Serves the queues until `now`.
    pub fn pay(&mut self, now: Time) {
        while let Some(ends) = self.control.as_ref().map(|control| control.ends).filter(|ends| *ends <= now) {
            self.serve(ends);
            self.end_period(now);
        }
        self.serve(now);
    }

    /// Pays queues in equal parts for the time until `now`; those that are empty share it no more.
    fn serve(&mut self, now: Time) {
        let mut left = u128::from(self.rate.0) * u128::from(now.since(self.at).0) + self.rest;
        self.at = self.at.max(now);
        self.rest = 0;
        loop {
            let n = self.active() as u128;
            let settled = next(&mut self.owing, &self.settled);
            let empty =
                self.control.as_mut().and_then(|control| next(&mut control.queued, &control.empty_at));
            // A queue is empty no sooner than what its flow let by is paid for.
            let Some(end) = settled.into_iter().chain(empty).min() else { return };
            let (owing, needed) = (self.owing.len() as u128, (end - self.paid) * n);
            if needed > left {
                let each = left / n;
                self.paid += each;
                self.level -= each * owing;
                self.rest = left - each * n;
                return;
            }
            self.level -= (end - self.paid) * owing;
            (self.paid, left) = (end, left - needed);
            if settled == Some(end) {
                self.owing.pop();
            }
            if let Some(control) = self.control.as_mut().filter(|_| empty == Some(end)) {
                control.queued.pop();
            }
        }
    }

    /// Relieves flows of their padding that let by less than half their share, and begins the period that `now` is before the end of.
    fn end_period(&mut self, now: Time) {
        let n = self.active().max(1) as u128;
        let Some(control) = &mut self.control else { return };
        let share = u128::from(self.rate.0) * u128::from(control.period.0);
        let mut relieved = false;
        control.seen.retain(|&flow| {
            let i = flow as usize;
            let owed_until = self.settled[i].max(self.paid);
            if control.passed[i] * n * 2 < share {
                relieved |= control.empty_at[i] > owed_until;
                control.empty_at[i] = control.empty_at[i].min(owed_until);
            }
            control.passed[i] = 0;
            control.is_seen[i] = control.empty_at[i] > owed_until;
            control.is_seen[i]
        });
        if relieved {
            let still =
                control.queued.drain().map(|Reverse((_, flow))| (control.empty_at[flow as usize], flow));
            control.queued = still.filter(|(empty_at, _)| *empty_at > self.paid).map(Reverse).collect();
        }
        // With nobody to look at the periods until now are all alike.
        let periods = if control.seen.is_empty() { now.since(control.ends).0 / control.period.0 } else { 0 };
        control.ends += Duration(control.period.0 * (periods + 1));
    }

    /// Whether so much more passes, of this flow: its queue stays within an equal share of the burst, and all of them within the burst.
    pub fn passes(&mut self, flow: u32, size: u128) -> bool {
        let i = flow as usize;
        let owed = self.settled[i].saturating_sub(self.paid);
        let held =
            self.control.as_ref().map_or(owed, |control| control.empty_at[i].saturating_sub(self.paid));
        let active = self.active() as u128 + u128::from(held == 0);
        if self.level + size > self.burst
            || held + size > self.burst
            || (owed > 0 && (owed + size) * active > self.burst)
        {
            return false;
        }
        self.owe(flow, size);
        if let Some(control) = &mut self.control {
            control.passed[i] += size;
            if !control.is_seen[i] {
                control.is_seen[i] = true;
                control.seen.push(flow);
            }
            let share = u128::from(self.rate.0) * u128::from(control.period.0);
            if control.passed[i] * active * 2 > share * 3 {
                control.empty_at[i] = self.paid + self.burst;
            }
        }
        true
    }

    /// No more than this may pass, of all flows: what is missing is paid for as if one more flow had let it by.
    pub fn keep_at_most(&mut self, room: u128) {
        let excess = self.room().saturating_sub(room);
        if excess > 0 {
            self.owe(self.queues() as u32, excess);
        }
    }

    /// So much more of this flow is to be paid for.
    fn owe(&mut self, flow: u32, size: u128) {
        let until = |ends: &mut [u128], queue: &mut Ends| {
            let end = &mut ends[flow as usize];
            if *end <= self.paid {
                queue.push(Reverse((self.paid + size, flow)));
            }
            *end = (*end).max(self.paid) + size;
        };
        until(&mut self.settled, &mut self.owing);
        if let Some(control) = &mut self.control {
            until(&mut control.empty_at, &mut control.queued);
        }
        self.level += size;
    }

    /// Whether the sums are those of the counters.
    #[cfg(test)]
    pub fn adds_up(&self) -> bool {
        let ahead = |ends: &[u128]| ends.iter().filter(|end| **end > self.paid).count();
        let level: u128 = self.settled.iter().map(|end| end.saturating_sub(self.paid)).sum();
        level == self.level
            && ahead(&self.settled) == self.owing.len()
            && self.control.as_ref().is_none_or(|control| {
                ahead(&control.empty_at) == control.queued.len()
                    && control.empty_at.iter().zip(&self.settled).all(|(empty, settled)| empty >= settled)
            })
    }
}

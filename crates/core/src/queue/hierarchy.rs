//! A hierarchy of queues before one link: link → member → class.
//!
//! A member is a customer, or what customers share. Its classes have a scheduler of their own ([`Scheduled`]), and it may be
//! shaped. The link serves members of a lower level first. Backlogged members of one level are in a list and take turns of a
//! quantum of bytes each, so that a decision costs the same with one member as with ten thousand.
//!
//! Turns are deficit round robin (Shreedhar and Varghese 1996) in the form of RFC 8290 §4.2: a member may send while its credit
//! is positive, and the excess of its last packet is deducted. Which packet leaves is decided by its classes, so no packet size
//! is needed in advance. Over any time in which two members are backlogged, the bytes they have sent, in units of their quanta,
//! differ by less than 3 + (2 · the largest packet) / (the smaller quantum).
//!
//! Non-goal: more levels; classes shared between members (a class with strict priority over all members is a member of its own,
//! at level 0).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::packet::Direction;
use crate::prelude::*;
use crate::queue::fifo::Item;
use crate::queue::scheduled::{Class, Migration, Scheduled, Setup};
use crate::registry::AnyScheduler;

/// How many levels there are: 0 is served first.
pub const LEVELS: usize = 8;

/// How a member is set up.
#[derive(Debug)]
pub struct MemberSetup {
    /// Shares the member's part of the link out among its classes.
    pub scheduler: AnyScheduler,
    /// Its classes; at least one.
    pub classes: Vec<Setup>,
    /// Below [`LEVELS`]; lower ones are served first.
    pub level: u8,
    /// Bytes a turn, above 0. One that is less than a packet makes turns of several rounds.
    pub quantum: u32,
    /// Its shaper, if it has one.
    pub shape: Option<Shape>,
}

/// A member's shaper: over any time t it passes at most rate·t + burst, and a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Above 0.
    pub rate: Rate,
    /// Bytes that it may send at once after it had to wait for others.
    pub burst: Bytes,
}

/// Where a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has nothing to send.
    Idle,
    /// It is in its level's list.
    Waiting,
    /// Its packets may not leave before this.
    Held(Time),
}

#[derive(Debug)]
struct Member<T> {
    queue: Scheduled<T>,
    level: usize,
    quantum: i64,
    /// Bytes that it may still send in this turn; below zero the bytes it owes.
    credit: i64,
    /// It has been given this turn's quantum.
    granted: bool,
    shape: Option<Shape>,
    /// When its shaper lets the next packet go.
    ready: Time,
    state: State,
    /// Its last entry among those who are held.
    entry: Option<Time>,
    /// When its disciplines tick.
    tick: Option<Time>,
    packets: u32,
    /// It goes as soon as it has nothing left.
    leaving: bool,
}

/// Queues of several members before one link.
#[derive(Debug)]
pub struct Hierarchy<T> {
    members: Vec<Option<Box<Member<T>>>>,
    /// Members with something to send, by level, first come first served.
    turns: [VecDeque<u32>; LEVELS],
    /// Who is held, and until when; entries of those that are no longer held are passed over.
    held: BinaryHeap<Reverse<(Time, u32)>>,
    /// When a member's discipline ticks.
    ticks: BinaryHeap<Reverse<(Time, u32)>>,
    /// Whose packet the link is sending.
    sending: Option<u32>,
    /// Whose queue was last asked: only there can packets have been evicted.
    asked: usize,
    /// Members that are leaving.
    leavers: u32,
    /// The counts of members that have gone.
    gone: Counts,
}

impl<T: Item> Default for Hierarchy<T> {
    fn default() -> Hierarchy<T> {
        Hierarchy {
            members: Vec::new(),
            turns: std::array::from_fn(|_| VecDeque::new()),
            held: BinaryHeap::new(),
            ticks: BinaryHeap::new(),
            sending: None,
            asked: 0,
            leavers: 0,
            gone: Counts::default(),
        }
    }
}

impl<T: Item> Member<T> {
    fn new(setup: MemberSetup) -> Member<T> {
        Member {
            queue: Scheduled::new(setup.scheduler, setup.classes),
            level: usize::from(setup.level).min(LEVELS - 1),
            quantum: i64::from(setup.quantum.max(1)),
            credit: 0,
            granted: false,
            shape: setup.shape,
            ready: Time::ZERO,
            state: State::Idle,
            entry: None,
            tick: None,
            packets: 0,
            leaving: false,
        }
    }

    /// A packet of this size leaves at `now`. What the shaper was late by is made up for, no more than its burst's worth.
    fn pay(&mut self, now: Time, size: u32) {
        self.credit -= i64::from(size);
        if let Some(Shape { rate, burst }) = self.shape {
            let behind = Time(now.0.saturating_sub(rate.serialise(burst).0));
            self.ready = self.ready.max(behind) + rate.serialise(Bytes(u64::from(size)));
        }
    }

    /// It has come to the end of its turn, or of what it has: credit isn't saved up, debt is kept (Shreedhar and Varghese 1996,
    /// Fig. 4).
    fn end_turn(&mut self) {
        self.granted = false;
        if self.packets == 0 {
            self.credit = self.credit.min(0);
        }
    }
}

impl<T: Item> Hierarchy<T> {
    /// Sets up a member under a number, which need not be the next. If there is one already, its packets and counts go to the
    /// new one's classes: by `migrations`, as in [`Scheduled::take_over`], or all to the last class if there are fewer of them
    /// than old classes. It keeps its turn, its credit and the debt of its shaper; nothing is dropped.
    pub fn put(&mut self, now: Time, number: usize, setup: MemberSetup, migrations: &[Migration]) {
        if self.members.len() <= number {
            self.members.resize_with(number + 1, || None);
        }
        let mut new = Box::new(Member::new(setup));
        if let Some(old) = self.members[number].take() {
            (new.credit, new.granted, new.ready) = (old.credit.min(new.quantum), old.granted, old.ready);
            (new.state, new.entry, new.packets) = (old.state, old.entry, old.packets);
            self.leavers -= u32::from(old.leaving);
            // A member that was leaving, and isn't the one now set up, leaves what it still holds to the last class.
            let count = old.queue.classes().len();
            let last = new.queue.classes().len() - 1;
            let all_to_last = vec![Migration { class: last, unchanged: false }; count];
            new.queue.take_over(
                old.queue,
                if migrations.len() < count { &all_to_last } else { migrations },
                now,
            );
            if old.state == State::Waiting && old.level != new.level {
                self.turns[old.level].retain(|m| *m as usize != number);
                self.turns[new.level].push_back(number as u32);
            }
        }
        new.tick = Some(now);
        self.members[number] = Some(new);
        self.ticks.push(Reverse((now, number as u32)));
        if let Some(Member { state: State::Held(_), .. }) = self.members[number].as_deref() {
            // What held it back may have changed.
            self.wake(number);
        }
    }

    /// A member is no longer wanted: what it holds leaves as it would have, then the member goes.
    pub fn leave(&mut self, number: usize) {
        let Some(member) = self.members.get_mut(number).and_then(Option::as_mut) else { return };
        if !member.leaving {
            member.leaving = true;
            self.leavers += 1;
        }
        self.remove_if_done(number);
    }

    fn remove_if_done(&mut self, number: usize) {
        let done = |m: &Member<T>| m.leaving && m.state == State::Idle && m.packets == 0;
        let sending = self.sending == Some(number as u32);
        if sending || !self.members[number].as_deref().is_some_and(done) {
            return;
        }
        if let Some(member) = self.members[number].take() {
            self.leavers -= 1;
            let of = member.queue.classes().iter().map(|c| c.queue.counts());
            self.gone = of.fold(self.gone, |all, c| all.and(c));
        }
    }

    /// A member's classes; `None` if there is none of this number.
    #[must_use]
    pub fn classes(&self, member: usize) -> Option<&[Class<T>]> {
        Some(self.members.get(member)?.as_ref()?.queue.classes())
    }

    /// Packets that wait in a member; none if there is none of this number.
    #[must_use]
    pub fn packets(&self, member: usize) -> u32 {
        self.members.get(member).and_then(Option::as_ref).map_or(0, |m| m.packets)
    }

    /// The numbers of the members there are, those that are leaving included.
    pub fn members(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.iter().enumerate().filter_map(|(i, m)| m.as_ref().map(|_| i))
    }

    /// The counts of members that have gone.
    #[must_use]
    pub fn gone(&self) -> &Counts {
        &self.gone
    }

    /// Asks the discipline of the packet's class about an arrival, as [`Scheduled::arrive`].
    ///
    /// # Panics
    /// If there is no member of this number.
    pub fn arrive<W: Why>(
        &mut self,
        now: Time,
        number: usize,
        packet: &Packet,
        item: T,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        self.asked = number;
        let Some(member) = self.members[number].as_mut() else {
            panic!("member {number} has packets and is not there");
        };
        let verdict = member.queue.arrive(now, packet, item, rng, why);
        member.packets = member.queue.packets();
        let may = member.shape.is_none() || member.ready <= now;
        match member.state {
            State::Idle if member.packets > 0 => self.wake(number),
            // One of its classes is held; the packet's may not be.
            State::Held(_) if may => self.wake(number),
            _ => {}
        }
        verdict
    }

    /// Puts a member at the end of its level's list.
    fn wake(&mut self, number: usize) {
        if let Some(member) = self.members[number].as_mut() {
            member.state = State::Waiting;
            self.turns[member.level].push_back(number as u32);
        }
    }

    /// The link is free: takes the packet that may leave next. Those that a discipline drops instead are shown to `dropped`.
    pub fn depart<W: Why>(
        &mut self,
        now: Time,
        as_packet: impl Fn(&T) -> Packet,
        rng: &mut Rng,
        why: &mut W,
        mut dropped: impl FnMut(T, Cause),
    ) -> Option<T> {
        if let Some(number) = self.sending.take() {
            let number = number as usize;
            if let Some(member) = self.members[number].as_mut() {
                member.queue.finish(now);
            }
            if self.leavers > 0 {
                self.remove_if_done(number);
            }
        }
        while let Some(Reverse((until, number))) =
            self.held.peek().copied().filter(|Reverse((t, _))| *t <= now)
        {
            self.held.pop();
            let number = number as usize;
            let Some(Some(member)) = self.members.get_mut(number) else { continue };
            member.entry = member.entry.filter(|entry| *entry != until);
            if member.state == State::Held(until) {
                self.wake(number);
            }
        }
        for level in 0..LEVELS {
            while let Some(number) = self.turns[level].front().copied() {
                let at = number as usize;
                let Some(member) = self.members[at].as_mut() else {
                    self.turns[level].pop_front();
                    continue;
                };
                if member.shape.is_some() && member.ready > now {
                    let until = member.ready;
                    self.hold(level, number, until);
                    continue;
                }
                if !member.granted {
                    member.credit += member.quantum;
                    member.granted = true;
                }
                if member.credit <= 0 {
                    member.end_turn();
                    self.turns[level].rotate_left(1);
                    continue;
                }
                self.asked = at;
                let item = member.queue.depart(now, &as_packet, rng, why, &mut dropped);
                member.packets = member.queue.packets();
                let Some(item) = item else {
                    match member.queue.next_ready() {
                        Some(until) => self.hold(level, number, until),
                        None => self.rest(level, at),
                    }
                    continue;
                };
                member.pay(now, item.size());
                self.sending = Some(number);
                if member.packets == 0 {
                    self.rest(level, at);
                } else if member.credit <= 0 {
                    member.end_turn();
                    self.turns[level].rotate_left(1);
                }
                return Some(item);
            }
        }
        None
    }

    /// The member at the front of a level has nothing more.
    fn rest(&mut self, level: usize, number: usize) {
        self.turns[level].pop_front();
        if let Some(member) = self.members[number].as_mut() {
            member.state = State::Idle;
            member.end_turn();
        }
        if self.leavers > 0 {
            self.remove_if_done(number);
        }
    }

    /// The member at the front of a level may send nothing before `until`. Its turn is over: what it may not send isn't saved up.
    fn hold(&mut self, level: usize, number: u32, until: Time) {
        self.turns[level].pop_front();
        if let Some(member) = self.members[number as usize].as_mut() {
            member.state = State::Held(until);
            member.granted = false;
            member.credit = member.credit.min(0);
            if member.entry != Some(until) {
                member.entry = Some(until);
                self.held.push(Reverse((until, number)));
            }
        }
    }

    /// When a packet that waits may leave at the earliest, as far as set rates go; `None` if none waits.
    #[must_use]
    pub fn next_ready(&self) -> Option<Time> {
        if self.turns.iter().any(|t| !t.is_empty()) {
            return Some(Time::ZERO);
        }
        self.held.peek().map(|Reverse((until, _))| *until)
    }

    /// A packet evicted from the queue that was last asked.
    pub fn take_evicted(&mut self) -> Option<T> {
        let member = self.members.get_mut(self.asked)?.as_mut()?;
        let evicted = member.queue.take_evicted();
        if evicted.is_some() {
            member.packets = member.queue.packets();
        }
        evicted
    }

    /// Ticks the disciplines that are due; when the next one is. Called at the start of the run and then at each time it returned.
    pub fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        while let Some(Reverse((due, number))) =
            self.ticks.peek().copied().filter(|Reverse((t, _))| *t <= now)
        {
            self.ticks.pop();
            let Some(Some(member)) = self.members.get_mut(number as usize) else { continue };
            if member.tick != Some(due) {
                continue;
            }
            // A mechanism that asked for a moment that has passed would tick for ever.
            member.tick = member.queue.tick(now, outbox).filter(|next| *next > now);
            self.ticks.extend(member.tick.map(|next| Reverse((next, number))));
        }
        self.ticks.peek().map(|Reverse((at, _))| *at)
    }

    /// When a discipline next ticks.
    #[must_use]
    pub fn next_tick(&self) -> Option<Time> {
        self.ticks.peek().map(|Reverse((at, _))| *at)
    }

    /// A signal has arrived, for the disciplines of one member, or of all.
    pub fn signal(&mut self, now: Time, member: Option<usize>, signal: &Signal) {
        match member {
            Some(number) => {
                if let Some(Some(m)) = self.members.get_mut(number) {
                    m.queue.signal(now, None, signal);
                }
            }
            None => self.members.iter_mut().flatten().for_each(|m| m.queue.signal(now, None, signal)),
        }
    }

    /// A packet passes: shown to the discipline of its class.
    pub fn observe(&mut self, now: Time, member: usize, packet: &Packet, direction: Direction) {
        if let Some(Some(m)) = self.members.get_mut(member) {
            m.queue.observe(now, packet, direction);
        }
    }
}

#[cfg(test)]
mod tests;

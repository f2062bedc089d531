//! The container for classes: a queue for each, with its own discipline and limit, before one link that a scheduler divides.
//!
//! It is used like a [`Fifo`]: [`arrive`](Scheduled::arrive), and [`depart`](Scheduled::depart) whenever the link is free. As a
//! class may have a set rate, the link can be free and packets wait although none may leave yet: then
//! [`next_ready`](Scheduled::next_ready) says when to ask again. Each class counts for itself.

use crate::packet::Direction;
use crate::prelude::*;
use crate::queue::Pace;
use crate::queue::Scheduler;
use crate::queue::fifo::{Fifo, Item};
use crate::registry::{AnyAqm, AnyScheduler};

/// How a class is set up.
#[derive(Debug)]
pub struct Setup {
    /// The [`Packet::class`] of those it holds.
    pub number: u8,
    /// Its queue's hard limit.
    pub limit: Backlog,
    /// Its queue's discipline.
    pub aqm: AnyAqm,
    /// The rate it is served at, above 0; `None`: whatever the scheduler gives it.
    pub rate: Option<Rate>,
    /// What it may send ahead of a set rate after an idle period.
    pub burst: Bytes,
}

/// A class in the middle of a run.
#[derive(Debug)]
pub struct Class<T> {
    /// Its packets, and their counts.
    pub queue: Fifo<T>,
    /// Its discipline.
    pub aqm: AnyAqm,
    pace: Option<Pace>,
    /// When its discipline is due.
    due: Option<Time>,
}

/// Where the packets of an old class go when classes are reconfigured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Index of the new class.
    pub class: usize,
    /// Whether discipline and set rate have not changed: then the new class takes over their state too.
    pub unchanged: bool,
}

/// Queues of several classes before one link.
#[derive(Debug)]
pub struct Scheduled<T> {
    classes: Vec<Class<T>>,
    scheduler: AnyScheduler,
    /// The class of each [`Packet::class`].
    of: Box<[u8; 256]>,
    /// Whose packet the link is sending.
    sending: Option<usize>,
    /// The queues as the scheduler sees them: of each class the size of the packet next in line, where it may be sent. Of classes with a set rate,
    /// as of the last departure.
    heads: Vec<Option<u32>>,
    /// Whether a class has a set rate: what may be sent then changes with time.
    paced: bool,
}

impl<T: Item> Scheduled<T> {
    /// Empty. The scheduler's classes are these, in this order.
    ///
    /// A packet of a class that isn't among them joins the last, as RFC 2474 §3 has it: what has an unknown codepoint is
    /// forwarded as if it had the default one.
    ///
    /// # Panics
    /// Without any class, or with more than 255.
    #[must_use]
    pub fn new(scheduler: AnyScheduler, classes: Vec<Setup>) -> Scheduled<T> {
        assert!(!classes.is_empty() && classes.len() < 256, "a scheduler has 1 to 255 classes");
        let mut of = Box::new([classes.len() as u8 - 1; 256]);
        for (i, class) in (0..).zip(&classes) {
            of[usize::from(class.number)] = i;
        }
        let class = |s: Setup| Class {
            queue: Fifo::before(s.limit, &s.aqm),
            aqm: s.aqm,
            pace: s.rate.map(|rate| Pace::new(rate, s.burst)),
            due: Some(Time::ZERO),
        };
        let paced = classes.iter().any(|c| c.rate.is_some());
        let heads = vec![None; classes.len()];
        let classes = classes.into_iter().map(class).collect();
        Scheduled { classes, scheduler, of, sending: None, heads, paced }
    }

    /// Takes over from the queues of another configuration: the packets and counts of old class `i` go where
    /// `migrations[i]` says; nothing is dropped, even where limits are lower now. New disciplines start at `now`.
    ///
    /// # Panics
    /// If there are fewer migrations than old classes, or one names a class that does not exist.
    pub fn take_over(&mut self, old: Scheduled<T>, migrations: &[Migration], now: Time) {
        self.classes.iter_mut().for_each(|c| c.due = Some(now));
        self.sending = old.sending.map(|i| migrations[i].class);
        for (class, migration) in old.classes.into_iter().zip(migrations) {
            let new = &mut self.classes[migration.class];
            if migration.unchanged {
                (new.aqm, new.pace, new.due) = (class.aqm, class.pace, class.due);
            }
            new.queue.take_over(class.queue, migration.unchanged);
        }
        self.see_heads(now);
    }

    /// The packets next in each class that may be sent at this time.
    fn see_heads(&mut self, now: Time) {
        for (head, class) in self.heads.iter_mut().zip(&self.classes) {
            *head = class.head(now);
        }
    }

    /// Which class a packet joins.
    #[must_use]
    pub fn class_of(&self, packet: &Packet) -> usize {
        usize::from(self.of[usize::from(packet.class)])
    }

    /// All classes, in order.
    #[must_use]
    pub fn classes(&self) -> &[Class<T>] {
        &self.classes
    }

    /// Asks the discipline of the packet's class about an arrival, as [`Fifo::arrive`].
    pub fn arrive<W: Why>(
        &mut self,
        now: Time,
        packet: &Packet,
        item: T,
        rng: &mut Rng,
        why: &mut W,
    ) -> Admission {
        let at = self.class_of(packet);
        let class = &mut self.classes[at];
        let alone = class.queue.packets() == 0;
        let verdict = class.queue.arrive(now, packet, item, &mut class.aqm, rng, why);
        if !matches!(verdict, Admission::Drop(_)) {
            class.queue.went_busy();
            if let (true, Some(pace)) = (alone, &mut class.pace) {
                pace.begin(now);
            }
        }
        self.heads[at] = class.queue.next_size();
        verdict
    }

    /// The link is free: takes the packet that the scheduler and the discipline of its class let go. Those that the
    /// discipline drops instead are shown to `dropped`.
    pub fn depart<W: Why>(
        &mut self,
        now: Time,
        as_packet: impl Fn(&T) -> Packet,
        rng: &mut Rng,
        why: &mut W,
        mut dropped: impl FnMut(T, Cause),
    ) -> Option<T> {
        self.finish(now);
        loop {
            if self.paced {
                self.see_heads(now);
            }
            let at = self.scheduler.next(&self.heads)?;
            let class = &mut self.classes[at];
            let item = class.queue.depart_showing(now, &as_packet, &mut class.aqm, rng, why, &mut dropped);
            self.heads[at] = class.queue.next_size();
            self.scheduler.sent(at, item.as_ref().map_or(0, Item::size));
            let Some(item) = item else {
                class.rest(now);
                continue;
            };
            if let Some(pace) = &mut class.pace {
                pace.sent(item.size());
            }
            self.sending = Some(at);
            return Some(item);
        }
    }

    /// The link has sent what was taken last.
    pub fn finish(&mut self, now: Time) {
        if let Some(done) = self.sending.take() {
            self.classes[done].rest(now);
            if self.classes[done].queue.packets() == 0 {
                self.scheduler.emptied(done);
            }
        }
    }

    /// Packets waiting, in all classes.
    #[must_use]
    pub fn packets(&self) -> u32 {
        self.classes.iter().map(|c| c.queue.packets()).sum()
    }

    /// The class whose packet was taken last, if the link has not asked for another one since.
    #[must_use]
    pub fn sending(&self) -> Option<usize> {
        self.sending
    }

    /// When a packet that waits may leave at the earliest, as far as its class's set rate goes; `None` if none waits.
    #[must_use]
    pub fn next_ready(&self) -> Option<Time> {
        let waiting = self.classes.iter().filter(|c| c.queue.packets() > 0);
        waiting.map(|c| c.pace.as_ref().map_or(Time::ZERO, Pace::ready_at)).min()
    }

    /// Whether the discipline of a class keeps flows apart.
    #[must_use]
    pub fn has_flow_queues(&self) -> bool {
        self.classes.iter().any(|c| c.queue.has_flow_queues())
    }

    /// Whether a discipline has evicted a packet that nobody has taken yet.
    #[must_use]
    #[inline]
    pub fn has_evicted(&self) -> bool {
        self.classes.iter().any(|c| c.queue.has_evicted())
    }

    /// A packet that a discipline has evicted and that nobody has taken yet.
    pub fn take_evicted(&mut self) -> Option<T> {
        self.classes.iter_mut().find_map(|c| c.queue.take_evicted())
    }

    /// Ticks the disciplines that are due; when the next one is. Called at the start of the run and then at each time it returned.
    pub fn tick(&mut self, now: Time, outbox: &mut Outbox) -> Option<Time> {
        for class in self.classes.iter_mut().filter(|c| c.due.is_some_and(|due| due <= now)) {
            class.due = class.aqm.tick(now, outbox);
        }
        self.classes.iter().filter_map(|c| c.due).min()
    }

    /// A signal has arrived, for the discipline of one class, or for every class's.
    pub fn signal(&mut self, now: Time, class: Option<usize>, signal: &Signal) {
        let told = self.classes.iter_mut().enumerate().filter(|(i, _)| class.is_none_or(|c| c == *i));
        told.for_each(|(_, c)| c.aqm.signal(now, signal));
    }

    /// A packet passes: shown to the discipline of its class.
    pub fn observe(&mut self, now: Time, packet: &Packet, direction: Direction) {
        let at = self.class_of(packet);
        self.classes[at].aqm.observe(now, packet, direction);
    }
}

impl<T: Item> Class<T> {
    /// Size of the first packet, if it may be sent now.
    fn head(&self, now: Time) -> Option<u32> {
        let ready = self.pace.as_ref().is_none_or(|p| p.ready_at() <= now);
        self.queue.next_size().filter(|_| ready)
    }

    /// The link has finished with this class; its queue is idle if nothing waits.
    fn rest(&mut self, now: Time) {
        if self.queue.packets() == 0 {
            self.queue.went_idle(now);
        }
    }
}

#[cfg(test)]
mod tests;

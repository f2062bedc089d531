//! How packets leave a [`Fifo`]: of several queues its discipline names the next one, and it decides on the packet at the head.

use super::Fifo;
use crate::prelude::*;
use crate::queue::Item;
use crate::registry::AnyAqm;
use crate::registry::mechanisms::each_aqm;

impl<T: Item> Fifo<T> {
    /// Takes packets from the head until the discipline lets one go; dropped ones are shown to `dropped`.
    #[inline]
    pub fn depart<W: Why>(
        &mut self,
        now: Time,
        as_packet: impl Fn(&T) -> Packet,
        aqm: &mut AnyAqm,
        rng: &mut Rng,
        why: &mut W,
        mut dropped: impl FnMut(T, Cause),
    ) -> Option<T> {
        self.depart_showing(now, &as_packet, aqm, rng, why, &mut dropped)
    }

    /// The same by reference: a queue of its own and one among classes ask by the same function.
    #[inline(always)]
    pub(crate) fn depart_showing<W: Why>(
        &mut self,
        now: Time,
        as_packet: &impl Fn(&T) -> Packet,
        aqm: &mut AnyAqm,
        rng: &mut Rng,
        why: &mut W,
        dropped: &mut impl FnMut(T, Cause),
    ) -> Option<T> {
        let mut cause = None;
        loop {
            let next = self.decide_next(now, as_packet, aqm, rng, why, &mut cause);
            let Some(cause) = cause.take() else { return next };
            dropped(next?, cause);
            why.next_packet();
        }
    }

    /// Takes the packet from the head, and asks the discipline about it. If it is not to go, `dropped` is why, and the next one has to be
    /// asked about, of which [`Why::next_packet`] is told first.
    #[inline(always)]
    pub fn decide_next<W: Why>(
        &mut self,
        now: Time,
        as_packet: &impl Fn(&T) -> Packet,
        aqm: &mut AnyAqm,
        rng: &mut Rng,
        why: &mut W,
        dropped: &mut Option<Cause>,
    ) -> Option<T> {
        if !self.serves || (self.flows.is_some() && !self.ring.is_empty()) {
            // The discipline has no say, or knows nothing of what came before it.
            return self.pop();
        }
        each_aqm!(aqm, law => law.serve(now, self, as_packet, rng, why, dropped), {
            let mut item = self.take_next(|queue| law.next_queue_dyn(now, queue, rng))?;
            let at = At { now, since: item.since(), queue: self as &mut dyn Queue, rng, why: why as &mut dyn Why };
            let verdict = law.depart_dyn(&as_packet(&item), at);
            *dropped = self.settle(&mut item, verdict);
            Some(item)
        })
    }

    /// Takes out the packet that is next, of several queues by the one that is `named`.
    #[inline(always)]
    fn take_next(&mut self, named: impl FnOnce(&mut Fifo<T>) -> Option<u32>) -> Option<T> {
        let item = if self.flows.is_none() {
            self.ring.pop_front()?
        } else {
            let queue = named(self)?;
            let item = self.flows.as_mut()?.take_head(queue);
            debug_assert!(item.is_some(), "the discipline named an empty queue");
            item?
        };
        self.forget(&item);
        Some(item)
    }

    /// Marks a packet that was taken out, where the verdict says so, and counts it as sent or dropped; the cause of a drop.
    #[inline(always)]
    fn settle(&mut self, item: &mut T, verdict: Departure) -> Option<Cause> {
        let colour = item.colour() as usize;
        let cause = match verdict {
            Departure::Drop(cause) => Some(cause),
            Departure::Mark if !item.mark() => Some(Cause::UNMARKABLE),
            Departure::Mark => {
                self.counts.marked[colour] += 1;
                None
            }
            Departure::Send => None,
        };
        match cause {
            Some(cause) => self.counts.dropped[cause.index()][colour] += 1,
            None => self.count_sent(item),
        }
        cause
    }
}

/// A discipline of ours decides on the next packet, which has left the queue. A function of its own for each, as in [`AnyAqm::arrive`]; what
/// becomes of dropped packets, which few are, is no part of it.
trait Serve: Aqm + Sized {
    #[inline(never)]
    fn serve<T: Item, W: Why>(
        &mut self,
        now: Time,
        queue: &mut Fifo<T>,
        as_packet: &impl Fn(&T) -> Packet,
        rng: &mut Rng,
        why: &mut W,
        dropped: &mut Option<Cause>,
    ) -> Option<T> {
        let mut item = queue.take_next(|queue| self.next_queue(now, queue, rng))?;
        let verdict = self.depart(&as_packet(&item), At::new(now, queue, rng, why).since(item.since()));
        *dropped = queue.settle(&mut item, verdict);
        Some(item)
    }
}

impl<A: Aqm> Serve for A {}

//! The event calendar, soonest first: a ring of coarse buckets, each sorted only when it becomes current, and wider ones,
//! which are never sorted, for what lies beyond the ring: retransmission timers of a hundred thousand flows in a heap would cost a
//! cache miss at every level.
//!
//! A bucket holds a few to a few hundred events, so that sorting one is cheap and stays in cache; a finer ring misses
//! the cache, and a plain heap misses it at every level. Where a bucket holds far more (a hundred thousand flows that
//! start at once), events added to it while it is current go into a heap of their own. A bucket that is to come is a list,
//! the one added last first: mostly timers of like lengths, which are then in order already.
//!
//! The deliveries of a link are in order already. Those of one link, the busiest, are kept in a queue of their own,
//! which needs no sorting and does not miss the cache.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::iter::successors;
use std::marker::PhantomData;
use std::ops::Range;

use inprofile_core::units::Duration;

use crate::clock::Clock;

/// Sixteen bytes, two words that stay in registers: the time; the order at equal times and the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The moment, as [`Clock::bits`].
    pub at: u64,
    rest: u64,
}

impl Event {
    /// `tie`: the order at equal times, as [`Clock::tie`] reads it; `kind`: a packed [`EventKind`](crate::event::EventKind).
    #[inline]
    #[must_use]
    pub fn new(at: u64, tie: u32, kind: u32) -> Event {
        Event { at, rest: u64::from(tie) << 32 | u64::from(kind) }
    }

    /// The order at equal times, as [`Clock::tie`] reads it.
    #[inline]
    #[must_use]
    pub fn tie(self) -> u32 {
        (self.rest >> 32) as u32
    }

    /// A packed [`EventKind`](crate::event::EventKind).
    #[inline]
    #[must_use]
    pub fn kind(self) -> u32 {
        self.rest as u32
    }

    /// Whether it is sooner than another.
    #[inline(always)]
    fn is_before<C: Clock>(self, other: Event) -> bool {
        self.at < other.at || self.at == other.at && C::tie(self.tie(), other.tie()) == Ordering::Less
    }
}

/// An event in the list of its bucket.
#[derive(Clone, Copy, Debug)]
struct Link {
    event: Event,
    /// The next one of the list: a place among the links, or [`NONE`].
    next: u32,
}

/// The end of a list.
const NONE: u32 = u32::MAX;

/// Buckets in the ring.
const RING_BUCKETS: u64 = 2048;
/// How many buckets a wider one beyond the ring stands for.
const WIDE: u64 = RING_BUCKETS / 8;
/// Events per bucket, roughly, unless the horizon asks for wider ones.
const EVENTS_PER_BUCKET: f64 = 16.0;
/// How many events of the ordered series there is room for at first.
const LEAST_ROOM: usize = 64;
/// How many events may be shifted to insert another one.
const MAX_SHIFT: usize = 64;
/// Up to how many events a bucket is sorted one by one.
const FEW: usize = 16;

/// The events to come.
#[derive(Debug)]
pub struct Calendar<C: Clock> {
    /// Events of a series that comes in order.
    in_order: VecDeque<Event>,
    /// When the last one of that series is.
    in_order_until: u64,
    /// No other event is sooner than this; 0: not known.
    sorted_not_before: u64,
    /// The current bucket, soonest last.
    current: Vec<Event>,
    /// Events added to the current bucket that belong far from its end.
    late: BinaryHeap<HeapEntry<C>>,
    /// The number of the current bucket.
    current_bucket: u64,
    /// The first link of each bucket.
    ring: Box<[u32]>,
    links: Vec<Link>,
    /// The first of the links that are free; the one freed last is still in cache.
    free: u32,
    /// One bit per bucket of the ring: whether it holds any events.
    nonempty: Vec<u64>,
    /// The first bucket that is not in the ring, where a wide one begins.
    ring_ends: u64,
    /// The first link of each wide bucket beyond the ring that holds events.
    beyond_ring: BTreeMap<u64, u32>,
    buckets: C::Buckets,
}

#[derive(Debug)]
struct HeapEntry<C>(Event, PhantomData<C>);

fn order<C: Clock>(a: &Event, b: &Event) -> Ordering {
    a.at.cmp(&b.at).then_with(|| C::tie(a.tie(), b.tie()))
}

impl<C: Clock> PartialEq for HeapEntry<C> {
    fn eq(&self, other: &HeapEntry<C>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<C: Clock> Eq for HeapEntry<C> {}
impl<C: Clock> PartialOrd for HeapEntry<C> {
    fn partial_cmp(&self, other: &HeapEntry<C>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<C: Clock> Ord for HeapEntry<C> {
    /// Soonest is greatest: what a max-heap needs.
    fn cmp(&self, other: &HeapEntry<C>) -> Ordering {
        order::<C>(&other.0, &self.0)
    }
}

impl<C: Clock> Calendar<C> {
    /// Empty. `events_per_second` and `horizon` (the longest usual time from scheduling to happening)
    /// only decide how fast it is.
    #[must_use]
    pub fn new(events_per_second: f64, horizon: Duration) -> Calendar<C> {
        let by_load = EVENTS_PER_BUCKET * 1e12 / events_per_second.max(1.0);
        let by_horizon = horizon.0 as f64 / (RING_BUCKETS / 2) as f64;
        let width = by_load.max(by_horizon).clamp(1e6, 1e12) as u64;
        Calendar {
            in_order: VecDeque::new(),
            in_order_until: 0,
            sorted_not_before: 0,
            current: Vec::new(),
            late: BinaryHeap::new(),
            current_bucket: 0,
            ring: vec![NONE; RING_BUCKETS as usize].into(),
            links: Vec::new(),
            free: NONE,
            nonempty: vec![0; (RING_BUCKETS / 64) as usize],
            ring_ends: RING_BUCKETS,
            beyond_ring: BTreeMap::new(),
            buckets: C::buckets(Duration(width.next_power_of_two())),
        }
    }

    /// Adds an event; it must not lie before the last one taken.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.sorted_not_before = self.sorted_not_before.min(event.at);
        let bucket = C::bucket(event.at, self.buckets);
        if bucket <= self.current_bucket {
            let at = self.current.partition_point(|e| order::<C>(e, &event) == Ordering::Greater);
            if self.current.len() - at > MAX_SHIFT {
                self.late.push(HeapEntry(event, PhantomData));
            } else {
                self.current.insert(at, event);
            }
        } else if bucket < self.ring_ends {
            self.put(bucket, event);
        } else {
            self.put_beyond(bucket, event);
        }
    }

    /// Adds an event of a series that mostly comes in order.
    #[inline]
    pub fn push_in_order(&mut self, event: Event) {
        if event.at > self.in_order_until {
            self.in_order_until = event.at;
            if self.in_order.len() == self.in_order.capacity() {
                self.widen();
            }
            self.in_order.push_back(event);
        } else {
            self.push(event);
        }
    }

    /// Makes room for the series. A ring touches all the memory that it has, so it is given a quarter more, not twice as much.
    #[cold]
    fn widen(&mut self) {
        self.in_order.reserve_exact(self.in_order.len() / 4 + LEAST_ROOM);
    }

    /// The kinds of these events of the ordered series, counted from its next, as far as there are so many.
    pub fn next_in_order(&self, events: Range<usize>) -> impl Iterator<Item = u32> {
        let len = self.in_order.len();
        self.in_order.range(events.start.min(len)..events.end.min(len)).map(|event| event.kind())
    }

    /// Takes the soonest event.
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        match self.in_order.front() {
            Some(&first) if first.at < self.sorted_not_before => {
                self.in_order.pop_front();
                Some(first)
            }
            Some(&first) => Some(self.pop_either(first)),
            None => self.pop_sorted(),
        }
    }

    /// Takes the sooner of the series' first event and of the soonest other one.
    #[inline(never)]
    fn pop_either(&mut self, first: Event) -> Event {
        let Some(&event) = self.current.last() else { return self.pop_from_next_bucket(first) };
        if !self.late.is_empty() {
            return self.pop_either_of_three(first);
        }
        if event.is_before::<C>(first) {
            self.current.pop();
            // Other buckets' events are later.
            self.sorted_not_before = self.current.last().map_or(0, |next| next.at);
            event
        } else {
            self.sorted_not_before = event.at;
            self.in_order.pop_front();
            first
        }
    }

    /// The same where the current bucket is used up.
    #[inline(never)]
    fn pop_from_next_bucket(&mut self, first: Event) -> Event {
        if self.late.is_empty() && self.next_bucket() {
            self.pop_either(first)
        } else {
            self.pop_either_of_three(first)
        }
    }

    /// The same where events were added late to the current bucket, or there are none but the series'.
    #[cold]
    #[inline(never)]
    fn pop_either_of_three(&mut self, first: Event) -> Event {
        match self.first_sorted() {
            Some(event) if event.is_before::<C>(first) => {
                self.pop_sorted();
                event
            }
            other => {
                self.sorted_not_before = other.map_or(u64::MAX, |event| event.at);
                self.in_order.pop_front();
                first
            }
        }
    }

    /// Returns the soonest event without taking it.
    pub fn peek(&mut self) -> Option<Event> {
        let first = self.in_order.front().copied();
        let sorted = self.first_sorted();
        first.into_iter().chain(sorted).min_by(order::<C>)
    }

    /// When the soonest event is. The current bucket stays current: what comes from other parts of the run may be sooner than the next.
    pub(crate) fn soonest(&self) -> Option<u64> {
        let sorted =
            self.current.last().into_iter().chain(self.late.peek().map(|l| &l.0)).map(|e| e.at).min();
        let first = self.in_order.front().map(|e| e.at);
        let to_come = || {
            let head = match (self.next_nonempty(), self.beyond_ring.values().next()) {
                (Some(bucket), _) => self.ring[(bucket % RING_BUCKETS) as usize],
                (None, beyond) => beyond.copied().unwrap_or(NONE),
            };
            let link = |place: u32| self.links.get(place as usize);
            successors(link(head), |l| link(l.next)).map(|l| l.event.at).min()
        };
        first.into_iter().chain(sorted.or_else(to_come)).min()
    }

    /// Takes the soonest event that is not in the ordered series.
    #[inline]
    fn pop_sorted(&mut self) -> Option<Event> {
        self.sorted_not_before = 0;
        loop {
            if !self.late.is_empty() {
                return self.pop_of_two();
            }
            if let Some(event) = self.current.pop() {
                return Some(event);
            }
            if !self.next_bucket() {
                return None;
            }
        }
    }

    /// Returns the soonest event that is not in the ordered series.
    #[inline]
    fn first_sorted(&mut self) -> Option<Event> {
        loop {
            if !self.late.is_empty() {
                let late = self.late.peek().map(|l| l.0);
                return self.current.last().copied().into_iter().chain(late).min_by(order::<C>);
            }
            if let Some(event) = self.current.last() {
                return Some(*event);
            }
            if !self.next_bucket() {
                return None;
            }
        }
    }

    /// Takes the sooner of the current bucket and of what was added to it late.
    #[cold]
    fn pop_of_two(&mut self) -> Option<Event> {
        match (self.current.last(), self.late.peek()) {
            (Some(event), Some(l)) if order::<C>(event, &l.0) != Ordering::Greater => self.current.pop(),
            _ => self.late.pop().map(|l| l.0),
        }
    }

    /// All events to come, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        let link = |place: u32| self.links.get(place as usize);
        let list = move |&head| successors(link(head), move |l: &&Link| link(l.next)).map(|l| &l.event);
        let buckets = self.ring.iter().chain(self.beyond_ring.values()).flat_map(list);
        self.in_order.iter().chain(&self.current).chain(buckets).chain(self.late.iter().map(|l| &l.0))
    }

    #[inline(always)]
    fn put(&mut self, bucket: u64, event: Event) {
        let at = (bucket % RING_BUCKETS) as usize;
        self.ring[at] = self.add(Link { event, next: self.ring[at] });
        self.nonempty[at / 64] |= 1 << (at % 64);
    }

    /// A bucket beyond the ring.
    #[inline(never)]
    fn put_beyond(&mut self, bucket: u64, event: Event) {
        let next = self.beyond_ring.get(&(bucket / WIDE)).copied().unwrap_or(NONE);
        let head = self.add(Link { event, next });
        self.beyond_ring.insert(bucket / WIDE, head);
    }

    /// The place of a new link.
    #[inline(always)]
    fn add(&mut self, link: Link) -> u32 {
        let place = self.free;
        if let Some(free) = self.links.get_mut(place as usize) {
            self.free = free.next;
            *free = link;
            return place;
        }
        self.links.push(link);
        self.links.len() as u32 - 1
    }

    /// Makes the next bucket that holds events the current one, and sorts it. False if there is none.
    fn next_bucket(&mut self) -> bool {
        self.current_bucket = match (self.next_nonempty(), self.beyond_ring.first_key_value()) {
            (Some(in_ring), _) => in_ring,
            (None, Some((wide, _))) => wide * WIDE,
            (None, None) => return false,
        };
        self.ring_ends = (self.current_bucket + RING_BUCKETS) / WIDE * WIDE;
        while let Some(wide) = self.beyond_ring.first_entry().filter(|w| *w.key() * WIDE < self.ring_ends) {
            let head = wide.remove();
            self.spread(head);
        }
        let at = (self.current_bucket % RING_BUCKETS) as usize;
        self.nonempty[at / 64] &= !(1 << (at % 64));
        let list = std::mem::replace(&mut self.ring[at], NONE);
        self.take_list(list);
        true
    }

    /// Links of a wide bucket join the ring, in the order in which they came, so that a list of the ring is in it, too.
    fn spread(&mut self, mut head: u32) {
        let mut reversed = NONE;
        while let Some(link) = self.links.get_mut(head as usize) {
            let next = std::mem::replace(&mut link.next, reversed);
            (reversed, head) = (head, next);
        }
        while let Some(link) = self.links.get_mut(reversed as usize) {
            let at = (C::bucket(link.event.at, self.buckets) % RING_BUCKETS) as usize;
            let next = std::mem::replace(&mut link.next, self.ring[at]);
            self.ring[at] = reversed;
            self.nonempty[at / 64] |= 1 << (at % 64);
            reversed = next;
        }
    }

    /// Makes the events of a list the current bucket, and frees its links.
    #[inline(always)]
    fn take_list(&mut self, head: u32) {
        let mut last = head;
        while let Some(link) = self.links.get(last as usize) {
            self.current.push(link.event);
            if link.next == NONE {
                break;
            }
            last = link.next;
        }
        if let Some(link) = self.links.get_mut(last as usize) {
            link.next = std::mem::replace(&mut self.free, head);
        }
        if self.current.len() > FEW {
            self.current.sort_unstable_by(|a, b| order::<C>(b, a));
            return;
        }
        for place in 1..self.current.len() {
            let event = self.current[place];
            let mut at = place;
            while at > 0 && self.current[at - 1].is_before::<C>(event) {
                self.current[at] = self.current[at - 1];
                at -= 1;
            }
            self.current[at] = event;
        }
    }

    /// The number of the next bucket of the ring that holds events.
    fn next_nonempty(&self) -> Option<u64> {
        let words = RING_BUCKETS / 64;
        let start = (self.current_bucket + 1) % RING_BUCKETS;
        for i in 0..=words {
            let word = (start / 64 + i) % words;
            let mut bits = self.nonempty[word as usize];
            if i == 0 {
                bits &= !0 << (start % 64);
            } else if i == words {
                bits &= !(!0 << (start % 64));
            }
            if bits != 0 {
                let at = word * 64 + u64::from(bits.trailing_zeros());
                return Some(self.current_bucket + 1 + (at + RING_BUCKETS - start) % RING_BUCKETS);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;
    use crate::ns2::Seconds;
    use proptest::prelude::*;

    /// Against a plain sorted list, with pushes relative to the last event taken.
    fn agrees<C: Clock>(steps: &[(u64, u32, bool)], scale: f64, in_order: fn(u32) -> bool) {
        let mut calendar = Calendar::<C>::new(1000.0, Duration::from_millis(50));
        let mut plain: Vec<Event> = Vec::new();
        let mut now = C::ZERO;
        for (n, &(ahead, tie, take)) in steps.iter().enumerate() {
            let at = now.after(C::span_secs(ahead as f64 * scale)).bits();
            let event = Event::new(at, tie, n as u32);
            if in_order(tie) {
                calendar.push_in_order(event);
            } else {
                calendar.push(event);
            }
            plain.push(event);
            if take {
                plain.sort_by(order::<C>);
                let want = plain.remove(0);
                assert_eq!(calendar.soonest(), Some(want.at));
                assert_eq!(calendar.peek().map(|e| (e.at, e.tie())), Some((want.at, want.tie())));
                let got = calendar.pop().expect("the calendar lost an event");
                assert_eq!((got.at, got.tie()), (want.at, want.tie()));
                plain.retain(|e| e.kind() != got.kind());
                if want.kind() != got.kind() {
                    plain.push(want);
                }
                now = C::from_bits(got.at);
            }
        }
        assert_eq!(calendar.iter().count(), plain.len());
        plain.sort_by(order::<C>);
        for want in plain {
            let got = calendar.pop().expect("the calendar lost an event");
            assert_eq!((got.at, got.tie()), (want.at, want.tie()));
        }
        assert!(calendar.pop().is_none());
    }

    proptest! {
        #[test]
        fn soonest_first(steps in prop::collection::vec((0u64..100_000, 0u32..8, any::<bool>()), 1..400),
                         scale in prop::sample::select(vec![1e-9, 1e-6, 1e-3, 1.0])) {
            for in_order in [|_| false, |tie| tie < 4, |_| true] {
                agrees::<Exact>(&steps, scale, in_order);
                agrees::<Seconds>(&steps, scale, in_order);
            }
        }
    }

    /// A bucket of very many: what joins it late still comes in its turn, and costs no more than in a heap.
    #[test]
    fn a_crowded_moment_keeps_its_order() {
        let mut c = Calendar::<Exact>::new(1000.0, Duration::from_millis(50));
        let many = 200_000;
        for tie in (0..many).map(|i| i * 7919 % many) {
            c.push(Event::new(0, tie, 0));
        }
        let mut seen = 0;
        let mut last = (0, 0);
        while let Some(e) = c.pop() {
            assert!((e.at, e.tie()) >= last, "{e:?} after {last:?}");
            last = (e.at, e.tie());
            if e.at < 2 {
                c.push(Event { at: e.at + 1, ..e });
            }
            seen += 1;
        }
        assert_eq!(seen, 3 * many);
    }

    #[test]
    fn equal_moments_keep_their_order_when_the_count_wraps() {
        let mut c = Calendar::<Seconds>::new(1.0, Duration::from_millis(1));
        for i in 0..10u32 {
            c.push(Event::new(Seconds(1.0).bits(), (u32::MAX - 4).wrapping_add(i), i));
        }
        let order: Vec<u32> = std::iter::from_fn(|| c.pop()).map(|e| e.kind()).collect();
        assert_eq!(order, (0..10).collect::<Vec<_>>());
    }
}

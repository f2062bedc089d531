//! The state of each segment that is outstanding: when it was last sent, and whether it has arrived, is lost, or was sent again
//! (RFC 8985 §5.2).

use std::collections::VecDeque;

use crate::clock::Clock;

/// One segment: twelve bytes, as a time at a multiple of four is read as fast. A flow has room for ten of them, and of a million flows
/// each does.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub struct Segment<C> {
    /// When it was last sent.
    pub sent_at: C,
    /// The receiver has it.
    pub sacked: bool,
    /// It counts as lost, and has not been sent again since.
    pub lost: bool,
    /// It was sent more than once.
    pub retransmitted: bool,
}

/// A retransmission: when, and of which segment. As small.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Again<C>(C, u32);

impl<C: Copy> Segment<C> {
    /// It has neither arrived nor been lost.
    fn in_flight(&self) -> bool {
        !self.sacked && !self.lost
    }
}

/// RACK_sent_after() (RFC 8985 §6.2, step 2): whether `a` was sent after `b`, by times and numbers.
pub fn sent_after<C: Clock>(a: (C, u32), b: (C, u32)) -> bool {
    a.0 > b.0 || a.0 == b.0 && a.1 > b.1
}

/// The segments from `snd_una` to `snd_max`. What is asked for where nothing is lost comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Scoreboard<C: Copy> {
    segments: VecDeque<Segment<C>>,
    /// The first segment not acknowledged.
    una: u32,
    sacked: u32,
    lost: u32,
    /// No segment below this is lost.
    no_lost_below: u32,
    /// Retransmissions in the order of time. One is stale once its segment has arrived, is lost or was sent again. First transmissions
    /// need no such list: their order is that of the numbers.
    again: VecDeque<Again<C>>,
    /// No first transmission of a segment below this is in flight.
    no_first_below: u32,
    /// Of a hundred thousand flows none takes room for it before something is selected.
    told: Option<Box<Told>>,
}

/// What acknowledgements have told beyond their numbers.
#[derive(Clone, Debug, Default)]
struct Told {
    /// The segments that have arrived above `una`, as blocks in order: what a SACK option repeats is found without looking at each segment.
    arrived: Vec<(u32, u32)>,
    /// Segments found lost, where somebody asks for their numbers.
    found: Option<VecDeque<u32>>,
}

impl<C: Clock> Scoreboard<C> {
    /// So many of its first bytes are what is asked for where nothing is lost.
    #[cfg(test)]
    pub const OFTEN: usize = std::mem::offset_of!(Scoreboard<C>, again);

    /// Nothing is outstanding.
    pub fn new() -> Scoreboard<C> {
        Scoreboard {
            una: 0,
            segments: VecDeque::new(),
            again: VecDeque::new(),
            sacked: 0,
            lost: 0,
            no_lost_below: 0,
            no_first_below: 0,
            told: None,
        }
    }

    /// Notes which segments are found lost.
    pub fn note_lost(&mut self) {
        self.told.get_or_insert_default().found = Some(VecDeque::new());
    }

    /// The next of those found lost since.
    pub fn next_found(&mut self) -> Option<u32> {
        self.told.as_mut()?.found.as_mut()?.pop_front()
    }

    /// SND.UNA.
    pub fn una(&self) -> u32 {
        self.una
    }

    /// One past the highest segment sent.
    pub fn max(&self) -> u32 {
        self.una + self.segments.len() as u32
    }

    /// Segments believed to be in the network: neither arrived nor lost.
    pub fn in_flight(&self) -> u32 {
        self.segments.len() as u32 - self.sacked - self.lost
    }

    /// Segments above `una` that have arrived.
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Segments that are lost and not sent again.
    pub fn lost(&self) -> u32 {
        self.lost
    }

    /// Whether all that is outstanding is in flight, and was sent once.
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        self.sacked == 0 && self.lost == 0 && self.again.is_empty()
    }

    /// A segment, if it is outstanding.
    pub fn get(&self, number: u32) -> Option<&Segment<C>> {
        self.segments.get(number.checked_sub(self.una)? as usize)
    }

    /// A segment is sent, for the first time or again.
    #[inline(always)]
    pub fn sent(&mut self, number: u32, now: C) {
        if number == self.max() {
            if self.segments.len() == self.segments.capacity() {
                self.make_room();
            }
            self.segments.push_back(Segment {
                sent_at: now,
                sacked: false,
                lost: false,
                retransmitted: false,
            });
            return;
        }
        self.sent_again(number, now);
    }

    #[inline(never)]
    fn sent_again(&mut self, number: u32, now: C) {
        if self.again.capacity() == 0 {
            self.again.reserve_exact(1);
        }
        self.again.push_back(Again(now, number));
        let segment = &mut self.segments[(number - self.una) as usize];
        self.lost -= u32::from(segment.lost);
        *segment = Segment { sent_at: now, sacked: segment.sacked, lost: false, retransmitted: true };
    }

    /// For the SYN, then for an initial window of ten segments, then for twice as many: of very many flows most have no more than that.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let there = self.segments.capacity();
        self.segments.reserve_exact(match there {
            0 => 1,
            1 => 10 - there,
            _ => there,
        });
    }

    /// All segments before `una` have arrived; those that were not known to have are shown to `arrived`.
    #[inline(always)]
    pub fn acknowledge(&mut self, una: u32, mut arrived: impl FnMut(u32, &Segment<C>)) {
        while self.una < una {
            let Some(segment) = self.segments.pop_front() else { return };
            self.lost -= u32::from(segment.lost);
            if segment.sacked {
                self.sacked -= 1;
            } else {
                arrived(self.una, &segment);
            }
            self.una += 1;
        }
        if let Some(told) = &mut self.told {
            told.arrived.retain_mut(|b| {
                b.0 = b.0.max(una);
                b.0 < b.1
            });
        }
    }

    /// All segments before `una` have arrived, and none was known to have: each is shown to `arrived`, with the time at which it was sent.
    #[inline(always)]
    pub fn acknowledge_in_order(&mut self, una: u32, mut arrived: impl FnMut(u32, C)) {
        while self.una < una {
            let Some(segment) = self.segments.pop_front() else { return };
            arrived(self.una, segment.sent_at);
            self.una += 1;
        }
    }

    /// Whether all that is in flight was sent after `latest`, where that is seen at once: nothing was sent again, and the first segment is
    /// in flight.
    #[inline(always)]
    pub fn is_all_later(&self, latest: (C, u32)) -> bool {
        let later =
            |s: &Segment<C>| s.in_flight() && !s.retransmitted && sent_after((s.sent_at, self.una), latest);
        self.again.is_empty() && self.segments.front().is_none_or(later)
    }

    /// The earliest transmission that is in flight: when, and of which segment.
    pub fn earliest(&mut self) -> Option<(C, u32)> {
        let first = self.earliest_first();
        if self.again.is_empty() {
            return first;
        }
        let again = self.earliest_again();
        match (first, again) {
            (Some(first), Some(again)) if sent_after(first, again) => Some(again),
            _ => first.or(again),
        }
    }

    /// The earliest first transmission in flight.
    fn earliest_first(&mut self) -> Option<(C, u32)> {
        let mut number = self.no_first_below.max(self.una);
        let found = loop {
            match self.get(number) {
                Some(s) if s.in_flight() && !s.retransmitted => break Some((s.sent_at, number)),
                Some(_) => number += 1,
                None => break None,
            }
        };
        self.no_first_below = number;
        found
    }

    /// The earliest retransmission in flight.
    fn earliest_again(&mut self) -> Option<(C, u32)> {
        while let Some(&Again(at, number)) = self.again.front() {
            let sent = (at, number);
            if self.is_current(sent) {
                return Some(sent);
            }
            self.again.pop_front();
        }
        None
    }

    /// Whether a retransmission is its segment's last transmission, and in flight.
    fn is_current(&self, (at, number): (C, u32)) -> bool {
        self.get(number).is_some_and(|s| s.in_flight() && s.retransmitted && { s.sent_at } == at)
    }

    /// How many retransmissions are in flight.
    pub fn again_in_flight(&self) -> u32 {
        self.again.iter().filter(|&&Again(at, number)| self.is_current((at, number))).count() as u32
    }

    /// When the last of those in flight was sent that were sent before `latest`.
    pub fn last_before(&self, latest: (C, u32)) -> Option<C> {
        let from = self.no_first_below.max(self.una);
        let firsts = (from..).zip(self.segments.range((from - self.una) as usize..));
        let firsts = firsts.filter(|(_, s)| s.in_flight() && !s.retransmitted).map(|(n, s)| (s.sent_at, n));
        let again = self.again.iter().map(|&Again(at, number)| (at, number));
        let again = again.filter(|sent| self.is_current(*sent));
        let last = firsts.take_while(|sent| sent_after(latest, *sent)).last();
        let last_again = again.take_while(|sent| sent_after(latest, *sent)).last();
        let at = |sent: Option<(C, u32)>| sent.map(|(at, _)| at);
        match (at(last), at(last_again)) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    /// The segments of a SACK block have arrived; those that were not known to have are shown to `arrived`.
    pub fn select(&mut self, (from, to): (u32, u32), mut arrived: impl FnMut(u32, &Segment<C>)) {
        let (from, to) = (from.max(self.una), to.min(self.max()));
        if from >= to {
            return;
        }
        let known = self.told.as_deref().map_or(&[][..], |told| &told.arrived);
        let first = known.partition_point(|b| b.1 < from);
        if known.get(first).is_some_and(|b| b.0 <= from && to <= b.1) {
            // Told before: an acknowledgement repeats its blocks.
            return;
        }
        let last = known.partition_point(|b| b.0 <= to);
        let mut number = from;
        let mut whole = (from, to);
        for block in first..last {
            let (known_from, known_to) = self.told.get_or_insert_default().arrived[block];
            whole = (whole.0.min(known_from), whole.1.max(known_to));
            self.select_new(number, known_from, &mut arrived);
            number = number.max(known_to);
        }
        self.select_new(number, to, &mut arrived);
        let known = &mut self.told.get_or_insert_default().arrived;
        if first == last {
            known.insert(first, whole);
        } else {
            known[first] = whole;
            known.drain(first + 1..last);
        }
    }

    /// Segments of which none was known to have arrived.
    fn select_new(&mut self, from: u32, to: u32, arrived: &mut impl FnMut(u32, &Segment<C>)) {
        for number in from..to {
            let segment = &mut self.segments[(number - self.una) as usize];
            segment.sacked = true;
            self.sacked += 1;
            self.lost -= u32::from(std::mem::take(&mut segment.lost));
            arrived(number, segment);
        }
    }

    /// A segment that is in flight counts as lost.
    pub fn lose(&mut self, number: u32) {
        let segment = &mut self.segments[(number - self.una) as usize];
        if !segment.sacked && !segment.lost {
            segment.lost = true;
            self.lost += 1;
            if let Some(found) = self.told.as_mut().and_then(|told| told.found.as_mut()) {
                found.push_back(number);
            }
            self.no_lost_below = self.no_lost_below.min(number);
        }
    }

    /// Segments that count as lost are in flight after all.
    pub fn unmark_lost(&mut self) {
        self.segments.iter_mut().for_each(|segment| segment.lost = false);
        self.lost = 0;
        self.no_first_below = self.una;
        // Retransmissions may have been forgotten as stale.
        let flying = (self.una..).zip(&self.segments).filter(|(_, s)| s.in_flight() && s.retransmitted);
        let mut again: Vec<_> = flying.map(|(number, s)| Again(s.sent_at, number)).collect();
        again.sort_by_key(|&Again(at, number)| (at.bits(), number));
        self.again = again.into();
    }

    /// The first segment that is lost.
    pub fn first_lost(&mut self) -> Option<u32> {
        if self.lost == 0 {
            return None;
        }
        let mut number = self.no_lost_below.max(self.una);
        while !self.get(number)?.lost {
            number += 1;
        }
        self.no_lost_below = number;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;
    use proptest::prelude::*;

    proptest! {
        /// Every count is what counting one by one gives, whatever happens in whatever order.
        #[test]
        fn counts_agree_with_the_segments(steps in prop::collection::vec((0u8..60, 0u32..40, 1u32..6), 1..120)) {
            let mut board = Scoreboard::<Exact>::new();
            for (time, (what, at, len)) in (0..).zip(steps) {
                let number = board.una() + at % (board.segments.len() as u32 + 1);
                match what % 5 {
                    _ if what == 59 => board.unmark_lost(),
                    0 | 1 if board.get(number).is_none_or(|s| !s.sacked) => board.sent(number, Exact(time)),
                    2 if number < board.max() => board.lose(number),
                    3 => board.select((number, number + len), |_, _| {}),
                    _ => board.acknowledge(number, |_, _| {}),
                }
                let count = |f: fn(&Segment<Exact>) -> bool| board.segments.iter().filter(|s| f(s)).count() as u32;
                prop_assert_eq!(board.sacked(), count(|s| s.sacked));
                prop_assert_eq!(board.lost(), count(|s| s.lost));
                prop_assert_eq!(board.in_flight(), count(|s| !s.lost && !s.sacked));
                let mut order: Vec<_> = board.segments.iter().enumerate().filter(|(_, s)| !s.sacked && !s.lost)
                    .map(|(i, s)| (s.sent_at, board.una() + i as u32)).collect();
                order.sort_by_key(|(at, number)| (at.0, *number));
                prop_assert_eq!(board.earliest(), order.first().copied());
                for latest in order.iter().copied().chain([(Exact(time), u32::MAX)]) {
                    let before = order.iter().take_while(|sent| sent_after(latest, **sent)).last();
                    prop_assert_eq!(board.last_before(latest), before.map(|sent| sent.0));
                }
                let first = board.segments.iter().position(|s| s.lost).map(|i| board.una() + i as u32);
                prop_assert_eq!(board.first_lost(), first);
            }
        }
    }
}

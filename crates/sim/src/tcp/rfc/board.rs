//! What the receiver has beyond the first hole (RFC 6675 §2 and §4), in whole segments.

use crate::tcp::Sack;

/// RFC 6675 §2: so many segments above a hole that the receiver has mean that the hole is lost.
const DUP_THRESH: u32 = 3;

/// The scoreboard.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// From, to (excluded); ascending, apart from each other.
    blocks: Vec<(u32, u32)>,
    /// One past the highest segment retransmitted in this recovery (HighRxt + 1).
    pub repeated: u32,
    /// One past the segment that has to be acknowledged before the next rescue retransmission (RescueRxt + 1).
    pub rescued: u32,
}

impl Board {
    /// Forgets everything (RFC 2018 §5, after a timeout).
    pub fn clear(&mut self) {
        *self = Board::default();
    }

    /// Takes in an acknowledgement (Update()); true if it says anything new beyond the hole.
    pub fn update(&mut self, una: u32, sack: &Sack) -> bool {
        self.blocks.retain_mut(|b| {
            b.0 = b.0.max(una);
            b.0 < b.1
        });
        let before = self.has(0, u32::MAX);
        for &(from, to) in sack.blocks().iter().filter(|b| b.1 > una) {
            let first = self.blocks.partition_point(|b| b.1 < from);
            let last = self.blocks.partition_point(|b| b.0 <= to);
            let merged = self.blocks[first..last]
                .iter()
                .fold((from.max(una), to), |m, b| (m.0.min(b.0), m.1.max(b.1)));
            self.blocks.splice(first..last, [merged]);
        }
        self.has(0, u32::MAX) > before
    }

    /// How many segments of `from..to` the receiver has said it has.
    pub fn has(&self, from: u32, to: u32) -> u32 {
        self.blocks.iter().map(|b| b.1.min(to).saturating_sub(b.0.max(from))).sum()
    }

    /// Unsacked segments below this are lost (IsLost(), by segments).
    pub fn lost_below(&self) -> u32 {
        let mut left = DUP_THRESH;
        for &(from, to) in self.blocks.iter().rev() {
            if to - from >= left {
                return to - left;
            }
            left -= to - from;
        }
        0
    }

    /// The first segment at or above this that the receiver has not.
    pub fn lacks(&self, at: u32) -> u32 {
        self.blocks.iter().find(|b| (b.0..b.1).contains(&at)).map_or(at, |b| b.1)
    }

    /// The last segment below `end` that the receiver has not; there is one, the segment it waits for.
    pub fn lacks_last(&self, end: u32) -> u32 {
        self.blocks.iter().rev().fold(end, |end, b| if b.1 == end { b.0 } else { end }) - 1
    }

    /// Segments believed to be on the way (SetPipe()): those neither sacked nor lost, and those repeated.
    pub fn pipe(&self, una: u32, end: u32) -> u32 {
        let unsacked = |from: u32, to: u32| to.saturating_sub(from) - self.has(from, to.max(from));
        unsacked(self.lost_below().clamp(una, end), end) + unsacked(una, self.repeated.clamp(una, end))
    }

    /// The first hole at or above what was repeated, with something above it; `lost`: only if it is lost
    /// (NextSeg() rules 1 and 3).
    pub fn hole(&self, una: u32, lost: bool) -> Option<u32> {
        let highest = self.blocks.last()?.1;
        let at = self.lacks(self.repeated.max(una));
        let below = if lost { self.lost_below() } else { highest };
        (at < below.min(highest)).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against sets of single segments and the RFC's definitions word by word.
        #[test]
        fn agrees_with_the_definitions(
            blocks in prop::collection::vec((1u32..60, 1u32..6), 1..12),
            una in 1u32..30, repeated in 0u32..70,
        ) {
            let end = 70;
            let mut board = Board { repeated, ..Board::default() };
            let mut set = BTreeSet::new();
            for (from, len) in blocks {
                let mut sack = Sack::default();
                sack.push((from, from + len));
                let before = set.len();
                set.extend((from..from + len).filter(|s| *s >= una));
                prop_assert_eq!(board.update(una, &sack), set.len() > before);
            }
            let lost = |s: u32| !set.contains(&s) && set.range(s + 1..).count() >= 3;
            let mut pipe = 0;
            for s in (una..end).filter(|s| !set.contains(s)) {
                pipe += u32::from(!lost(s)) + u32::from(s < repeated);
            }
            prop_assert_eq!(board.pipe(una, end), pipe);
            let highest = set.last().copied();
            let open = |s: &u32| *s >= repeated && !set.contains(s) && Some(*s) < highest;
            prop_assert_eq!(board.hole(una, true), (una..end).find(|s| open(s) && lost(*s)));
            prop_assert_eq!(board.hole(una, false), (una..end).find(open));
            let lacks = |s: &u32| !set.contains(s);
            prop_assert_eq!(board.lacks(repeated), (repeated..).find(lacks).unwrap());
            prop_assert_eq!(board.lacks_last(end), (0..end).rfind(lacks).unwrap());
        }
    }
}

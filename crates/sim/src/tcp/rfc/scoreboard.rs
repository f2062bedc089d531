//! RFC 6675's scoreboard: which segments the receiver has selectively acknowledged, which of the others are lost, how many
//! are still in the pipe, and which one to send next. In whole segments.

use crate::tcp::Sack;

/// RFC 6675 §2: a hole with this many SACKed segments above it is lost.
const DUP_THRESH: u32 = 3;

/// The scoreboard.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    /// Ranges of SACKed segments, from and to (excluded); ascending, with holes between them.
    sacked: Vec<(u32, u32)>,
    /// HighRxt + 1: one past the highest segment retransmitted in this recovery.
    pub high_rxt: u32,
    /// RescueRxt + 1: once SND.UNA is above this, there may be another rescue retransmission.
    pub rescue_rxt: u32,
}

impl Scoreboard {
    /// Forgets everything (RFC 2018 §5, after a timeout).
    pub fn clear(&mut self) {
        *self = Scoreboard::default();
    }

    /// Update() (RFC 6675 §4): takes in an acknowledgement. True if it SACKs a segment that was not SACKed before.
    pub fn update(&mut self, una: u32, sack: &Sack) -> bool {
        self.sacked.retain_mut(|b| {
            b.0 = b.0.max(una);
            b.0 < b.1
        });
        let before = self.sacked_in(0, u32::MAX);
        for &(from, to) in sack.blocks().iter().filter(|b| b.1 > una) {
            let first = self.sacked.partition_point(|b| b.1 < from);
            let last = self.sacked.partition_point(|b| b.0 <= to);
            let merged = self.sacked[first..last]
                .iter()
                .fold((from.max(una), to), |m, b| (m.0.min(b.0), m.1.max(b.1)));
            self.sacked.splice(first..last, [merged]);
        }
        self.sacked_in(0, u32::MAX) > before
    }

    /// How many segments of `from..to` are SACKed.
    pub fn sacked_in(&self, from: u32, to: u32) -> u32 {
        self.sacked.iter().map(|b| b.1.min(to).saturating_sub(b.0.max(from))).sum()
    }

    /// IsLost() (RFC 6675 §4): every segment below this that is not SACKed is lost, because DupThresh SACKed segments are
    /// above it.
    pub fn lost_below(&self) -> u32 {
        let mut left = DUP_THRESH;
        for &(from, to) in self.sacked.iter().rev() {
            if to - from >= left {
                return to - left;
            }
            left -= to - from;
        }
        0
    }

    /// SetPipe() (RFC 6675 §4): segments believed to be in the network. These are the ones neither SACKed nor lost, and the
    /// ones retransmitted.
    pub fn pipe(&self, una: u32, snd_max: u32) -> u32 {
        let unsacked = |from: u32, to: u32| to.saturating_sub(from) - self.sacked_in(from, to.max(from));
        unsacked(self.lost_below().clamp(una, snd_max), snd_max)
            + unsacked(una, self.high_rxt.clamp(una, snd_max))
    }

    /// NextSeg() (RFC 6675 §4): the segment to send next in a recovery that ends at `recovery_point`. `new`: the next
    /// segment never sent, if there is data and the receiver's window has room for it.
    pub fn next_seg(&mut self, una: u32, new: Option<u32>, snd_max: u32, recovery_point: u32) -> Option<u32> {
        // Rule 1: the first lost segment that has not been retransmitted.
        if let Some(hole) = self.next_hole(una, self.lost_below()) {
            return Some(self.retransmit(hole));
        }
        // Rule 2: a segment never sent.
        if new.is_some() {
            return new;
        }
        // Rule 3: the first hole that has not been retransmitted, whether or not it counts as lost.
        if let Some(hole) = self.next_hole(una, u32::MAX) {
            return Some(self.retransmit(hole));
        }
        // Rule 4, the rescue retransmission: once a recovery, the highest segment not SACKed, so that a lost tail needs
        // no timeout.
        if una <= self.rescue_rxt {
            return None;
        }
        self.rescue_rxt = recovery_point;
        Some(self.last_unsacked(snd_max))
    }

    /// The first hole below `below` that has not been retransmitted and has a SACKed segment above it.
    fn next_hole(&self, una: u32, below: u32) -> Option<u32> {
        let highest = self.sacked.last()?.1;
        let at = self.first_unsacked(self.high_rxt.max(una));
        (at < below.min(highest)).then_some(at)
    }

    fn retransmit(&mut self, hole: u32) -> u32 {
        self.high_rxt = hole + 1;
        hole
    }

    /// The first segment at or above this that is not SACKed.
    pub fn first_unsacked(&self, at: u32) -> u32 {
        self.sacked.iter().find(|b| (b.0..b.1).contains(&at)).map_or(at, |b| b.1)
    }

    /// The last segment below `end` that is not SACKed; there is one, the segment the receiver waits for.
    fn last_unsacked(&self, end: u32) -> u32 {
        self.sacked.iter().rev().fold(end, |end, b| if b.1 == end { b.0 } else { end }) - 1
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
            una in 1u32..30, high_rxt in 0u32..70, new: bool, rescued: bool,
        ) {
            let snd_max = 70;
            let rescue_rxt = if rescued { snd_max } else { 0 };
            let mut board = Scoreboard { high_rxt, rescue_rxt, ..Scoreboard::default() };
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
            for s in (una..snd_max).filter(|s| !set.contains(s)) {
                pipe += u32::from(!lost(s)) + u32::from(s < high_rxt);
            }
            prop_assert_eq!(board.pipe(una, snd_max), pipe);
            let highest = set.last().copied();
            let open = |s: &u32| *s >= high_rxt && !set.contains(s) && Some(*s) < highest;
            let first_lost = (una..snd_max).find(|s| open(s) && lost(*s));
            let first_hole = (una..snd_max).find(open);
            let unsacked = |s: &u32| !set.contains(s);
            prop_assert_eq!(board.first_unsacked(high_rxt), (high_rxt..).find(unsacked).unwrap());
            // NextSeg(), rule by rule; a rescue retransmission is the highest segment not SACKed, and there is one.
            let new = new.then_some(snd_max);
            let rescue = (0..snd_max).rfind(unsacked).filter(|_| !rescued);
            let by_rules = first_lost.or(new).or(first_hole).or(rescue);
            prop_assert_eq!(board.next_seg(una, new, snd_max, 65), by_rules);
            let retransmitted = first_lost.or(first_hole.filter(|_| new.is_none()));
            prop_assert_eq!(board.high_rxt, retransmitted.map_or(high_rxt, |s| s + 1));
            prop_assert_eq!(board.rescue_rxt == 65, by_rules == rescue && rescue.is_some() && by_rules != retransmitted);
        }
    }
}

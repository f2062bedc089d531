//! The receiver: puts segments in order, and acknowledges them at once or delayed (RFC 5681 §4.2), with SACK blocks
//! (RFC 2018, 2883) and feedback of marks (RFC 3168, 8257, 9768).

use crate::clock::Clock;
use crate::tcp::accurate_ecn::Counter;
use crate::tcp::byte_option::Reporter;
use crate::tcp::ns2;
use crate::tcp::{ByteOption, Config, Feedback, Flags, Profile, Sack, negotiation};
use inprofile_core::packet::Ecn;
use inprofile_core::units::Duration;

/// The response to an arriving segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Segments that the application can now read.
    pub delivered: u32,
    /// Whether to acknowledge now.
    pub acknowledge: bool,
    /// The action on the delayed-acknowledgement timer.
    pub timer: TimerAction,
}

/// The action on the delayed-acknowledgement timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerAction {
    /// Nothing.
    Leave,
    /// Set it.
    Set,
    /// Cancel it.
    Cancel,
}

/// The receiver of one flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// RCV.NXT: the segment it waits for.
    rcv_nxt: u32,
    /// Ranges of segments received above that, from and to (excluded); ascending, with gaps between them.
    out_of_order: Vec<(u32, u32)>,
    /// The longest time an acknowledgement may be delayed; zero: not at all.
    max_ack_delay: Duration,
    profile: Profile,
    /// RFC profile: an in-order segment waits for a second one to be acknowledged with.
    ack_delayed: bool,
    /// The segment that arrived last.
    last_arrived: u32,
    /// Whether acknowledgements select (SACK).
    selective: bool,
    /// With SACK, once there is something to select: the ranges of `out_of_order` as they were last reported; and counts of bytes, where they are
    /// told.
    reported: Option<Box<Reported>>,
    /// How it tells of marks, if it does: until the first SYN what it can, then what is agreed on.
    feedback: Option<Feedback>,
    /// The code point of the SYN that arrived last.
    syn: Ecn,
    /// Acknowledgements carry ECN-Echo: until the sender says that it has reduced its window, or (DCTCP.CE) as long as segments
    /// arrive marked.
    echoing: bool,
    /// Packets marked CE so far (RFC 9768).
    counter: Counter,
    /// A mark is to be told: no delay for the acknowledgement of this segment.
    at_once: bool,
    /// A segment that no acknowledgement covers yet was marked CE.
    ce_unacknowledged: bool,
    /// The segment that arrived last had arrived before, of which the linux profile tells (RFC 2883).
    arrived_again: bool,
}

/// The figures of options, which not every acknowledgement has.
#[derive(Clone, Debug, Default)]
struct Reported {
    /// Ranges of segments, from and to (excluded), the one reported last first.
    blocks: Vec<(u32, u32)>,
    /// The AccECN Option's.
    bytes: Option<Box<Reporter>>,
}

/// Puts a block before those of the others that are kept.
fn lead(blocks: &mut Vec<(u32, u32)>, first: (u32, u32), keep: impl Fn((u32, u32)) -> bool) {
    match blocks.as_mut_slice() {
        [old, others @ ..] if !keep(*old) => {
            // Mostly so: it covers what it grew from.
            *old = first;
            let mut kept = 0;
            for at in 0..others.len() {
                let other = others[at];
                others[kept] = other;
                kept += usize::from(keep(other));
            }
            blocks.truncate(1 + kept);
        }
        _ => {
            blocks.retain(|old| keep(*old));
            blocks.insert(0, first);
        }
    }
}

impl Receiver {
    /// Waits for the SYN.
    #[must_use]
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            max_ack_delay: config.delayed_ack.unwrap_or(Duration::ZERO),
            profile: config.profile,
            feedback: config.receiver_speaks(),
            selective: config.congestion.uses_sack(),
            reported: config.tells_bytes().then(|| {
                let bytes = Some(Box::new(Reporter::new(config.segment)));
                Box::new(Reported { blocks: Vec::new(), bytes })
            }),
            ..Receiver::idle()
        }
    }

    /// The receiver of a flow that is not TCP: no segment ever arrives.
    #[must_use]
    pub fn idle() -> Receiver {
        Receiver {
            rcv_nxt: 0,
            out_of_order: Vec::new(),
            max_ack_delay: Duration::ZERO,
            profile: Profile::Rfc,
            ack_delayed: false,
            last_arrived: 0,
            selective: false,
            reported: None,
            feedback: None,
            syn: Ecn::NotCapable,
            echoing: false,
            counter: Counter::default(),
            at_once: false,
            ce_unacknowledged: false,
            arrived_again: false,
        }
    }

    /// The segment it waits for.
    #[must_use]
    pub fn rcv_nxt(&self) -> u32 {
        self.rcv_nxt
    }

    /// Whether its acknowledgements carry SACK blocks.
    #[must_use]
    pub fn uses_sack(&self) -> bool {
        self.selective
    }

    /// Whether the acknowledgement sent now has a [SACK option](Receiver::sack); ns-2's are computed even where they are empty, as what
    /// they leave out is then forgotten.
    #[inline(always)]
    #[must_use]
    pub fn selects(&self) -> bool {
        self.selective
            && (!self.out_of_order.is_empty() || self.arrived_again || self.profile == Profile::Ns2)
    }

    /// The longest time an acknowledgement may be delayed.
    #[must_use]
    pub fn max_ack_delay<C: Clock>(&self) -> C::Span {
        C::span(self.max_ack_delay)
    }

    /// A segment arrived. `waiting`: whether the delayed-acknowledgement timer is set.
    #[inline]
    pub fn on_segment(&mut self, segment: u32, waiting: impl FnOnce() -> bool) -> Reply {
        self.last_arrived = segment;
        let had_gap = !self.out_of_order.is_empty();
        let delivered = if segment == self.rcv_nxt && !had_gap {
            self.rcv_nxt += 1;
            1
        } else {
            self.insert(segment)
        };
        if self.max_ack_delay == Duration::ZERO {
            return Reply { delivered, acknowledge: true, timer: TimerAction::Leave };
        }
        let waiting = waiting();
        if self.delays_ack(segment, delivered, had_gap, waiting) {
            return Reply { delivered, acknowledge: false, timer: TimerAction::Set };
        }
        let timer = if waiting { TimerAction::Cancel } else { TimerAction::Leave };
        Reply { delivered, acknowledge: true, timer }
    }

    /// With delayed acknowledgements: whether this segment's waits for another segment or the timer.
    fn delays_ack(&mut self, segment: u32, delivered: u32, had_gap: bool, waiting: bool) -> bool {
        match self.profile {
            Profile::Ns2 => ns2::delays_ack(segment, self.rcv_nxt, !self.out_of_order.is_empty(), waiting),
            Profile::Rfc | Profile::Linux => {
                // RFC 5681 §4.2: at least every second full segment; at once if out of order or filling a gap.
                let at_once = std::mem::take(&mut self.at_once);
                self.ack_delayed =
                    delivered == 1 && !had_gap && segment != 0 && !self.ack_delayed && !at_once;
                self.ack_delayed
            }
        }
    }

    /// RFC 8257 §3.2, Figure 1: whether, before a segment with or without CE is taken in, an acknowledgement has to be sent of those
    /// before it, whose marks were otherwise.
    #[must_use]
    #[inline]
    pub fn acknowledges_before(&self, ce: bool) -> bool {
        self.feedback == Some(Feedback::EachMark) && self.ack_delayed && ce != self.echoing
    }

    /// The delayed-acknowledgement timer expired; the acknowledgement is sent now.
    pub fn on_delayed_ack_timer(&mut self) {
        self.ack_delayed = false;
    }

    /// The ECN bits of an arriving segment of a flow with ECN: its code point, and its flags. To be called before
    /// [`Receiver::on_segment`].
    pub fn on_ecn_bits(&mut self, segment: u32, ip: Ecn, flags: Flags) {
        if segment == 0 {
            return self.on_syn(ip, flags);
        }
        let ce = ip == Ecn::Experienced;
        if self.feedback == Some(Feedback::Counter) {
            self.at_once |= self.counter.arrived(ce);
            return;
        }
        // RFC 3168 §6.1.5: the bits of segments outside the window are ignored.
        if segment < self.rcv_nxt || self.feedback.is_none() {
            return;
        }
        if self.feedback == Some(Feedback::EachMark) {
            // RFC 8257 §3.2: echoed as long as what arrives is marked, and no longer, whatever the sender says.
            self.at_once |= ce != self.echoing;
            self.echoing = ce;
            return;
        }
        // RFC 3168 §6.1.3: echo until CWR arrives, and again from the next CE on.
        self.echoing = ce || (self.echoing && !flags.has(Flags::CWR));
        self.ce_unacknowledged |= ce;
    }

    /// A SYN arrives. RFC 9768 §3.1.5: the first decides the mode, the latest is told of. RFC 3168 §6.1.1, RFC 8257 §3.6: ECN-Echo says
    /// nothing of its mark.
    #[cold]
    fn on_syn(&mut self, ip: Ecn, flags: Flags) {
        if self.rcv_nxt == 0 {
            self.feedback = negotiation::server(self.feedback, flags);
        }
        self.syn = ip;
        self.counter.syn_arrived(ip == Ecn::Experienced);
    }

    /// ECN's flags of the acknowledgement sent now, of a flow with ECN. RFC 9768 §3.2.2: the ACE field. RFC 3168 §6.1.3: ECN-Echo; a delayed
    /// one has it if any segment that it covers was marked.
    #[inline]
    pub fn flags(&mut self) -> Flags {
        if self.answers_syn() {
            return negotiation::syn_ack(self.feedback, self.syn);
        }
        match self.feedback {
            Some(Feedback::Counter) => self.counter.ace(),
            _ if std::mem::take(&mut self.ce_unacknowledged) || self.echoing => Flags::ECE,
            _ => Flags::NONE,
        }
    }

    /// A segment of data arrives, with this code point, of a flow whose acknowledgements [tell of bytes](Config::tells_bytes). To be called before
    /// [`Receiver::on_segment`].
    pub fn count_bytes(&mut self, segment: u32, ip: Ecn) {
        if let Some(bytes) = self.reported.as_deref_mut().and_then(|r| r.bytes.as_mut()) {
            match segment {
                0 => bytes.syn_arrived(),
                _ => bytes.arrived(ip),
            }
        }
    }

    /// The AccECN Option of the acknowledgement sent now.
    pub fn byte_option(&mut self) -> Option<ByteOption> {
        let answers_syn = self.answers_syn();
        let accurate = self.feedback == Some(Feedback::Counter);
        let bytes = self.reported.as_deref_mut()?.bytes.as_mut().filter(|_| accurate)?;
        if answers_syn { bytes.of_syn_ack() } else { bytes.of_ack() }
    }

    /// Whether the acknowledgement sent now is a SYN/ACK.
    #[inline(always)]
    fn answers_syn(&self) -> bool {
        self.last_arrived == 0 && self.rcv_nxt == 1
    }

    /// The SACK option of the acknowledgement sent now (RFC 2018 §4): first the block with the segment that arrived
    /// last, then the blocks reported most recently, as many as fit.
    pub fn sack(&mut self) -> Sack {
        let segment = self.last_arrived;
        let mut sack = Sack::default();
        if !self.selective {
            return sack;
        }
        let reported = &mut self.reported.get_or_insert_default().blocks;
        if std::mem::take(&mut self.arrived_again) {
            // RFC 2883 §4: in the first block, once; the block that it lies in, if it is above the acknowledgement's number, is second.
            sack.push((segment, segment + 1));
        }
        let newest = self.out_of_order.iter().copied().find(|&(from, to)| (from..to).contains(&segment));
        let covered = newest.unwrap_or((0, self.rcv_nxt));
        // Acknowledgements since may have had nothing to select.
        let acknowledged = if self.profile == Profile::Ns2 { 0 } else { self.rcv_nxt };
        let keep = |old: (u32, u32)| !(covered.0 <= old.0 && covered.1 >= old.1) && old.1 > acknowledged;
        match newest {
            Some(block) => lead(reported, block, keep),
            None => reported.retain(|old| keep(*old)),
        }
        if self.profile == Profile::Ns2 {
            // A block that no longer fits is forgotten.
            reported.truncate(ns2::MAX_SACK_BLOCKS);
        }
        for &block in reported.iter().take(Sack::MAX_BLOCKS) {
            sack.push(block);
        }
        sack
    }

    /// A segment has arrived again. The SYN is none of data.
    fn note_duplicate(&mut self, segment: u32) {
        self.arrived_again = self.profile == Profile::Linux && segment > 0;
    }

    /// Stores a segment; how many segments the application can now read because of it.
    #[inline(never)]
    fn insert(&mut self, segment: u32) -> u32 {
        if segment < self.rcv_nxt {
            self.note_duplicate(segment);
            return 0;
        }
        if segment == self.rcv_nxt {
            let before = self.rcv_nxt;
            self.rcv_nxt += 1;
            if self.out_of_order.first().is_some_and(|&(from, _)| from == self.rcv_nxt) {
                self.rcv_nxt = self.out_of_order.remove(0).1;
            }
            return self.rcv_nxt - before;
        }
        let at = self.out_of_order.partition_point(|&(_, to)| to < segment);
        match self.out_of_order.get_mut(at) {
            Some((from, to)) if *from <= segment && segment < *to => self.note_duplicate(segment),
            Some((_, to)) if *to == segment => {
                *to += 1;
                let end = *to;
                if self.out_of_order.get(at + 1).is_some_and(|&(from, _)| from == end) {
                    self.out_of_order[at].1 = self.out_of_order.remove(at + 1).1;
                }
            }
            Some((from, _)) if *from == segment + 1 => *from = segment,
            _ => self.out_of_order.insert(at, (segment, segment + 1)),
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn receiver(profile: Profile, delay_ms: Option<u64>) -> Receiver {
        Receiver::new(&Config {
            profile,
            window: 20,
            delayed_ack: delay_ms.map(Duration::from_millis),
            initial_window: 2,
            ..Config::plain()
        })
    }

    proptest! {
        /// Any order, with repetitions: exactly what a set of numbers says.
        #[test]
        fn puts_in_order(segments in prop::collection::vec(0u32..60, 1..200)) {
            let mut r = receiver(Profile::Ns2, None);
            let mut seen = BTreeSet::new();
            let mut next = 0;
            for s in segments {
                let before = next;
                seen.insert(s);
                while seen.contains(&next) { next += 1; }
                let reply = r.on_segment(s, || false);
                prop_assert_eq!(r.rcv_nxt(), next);
                prop_assert_eq!(reply.delivered, next - before);
                let beyond: Vec<u32> = r.out_of_order.iter().flat_map(|&(a, b)| a..b).collect();
                let want: Vec<u32> = seen.iter().copied().filter(|&s| s > next).collect();
                prop_assert_eq!(beyond, want);
                prop_assert!(r.out_of_order.windows(2).all(|w| w[0].1 < w[1].0));
            }
        }
    }

    /// ns-2's `DelAckSink` asks only whether a segment is the last in order, not whether it is new.
    #[test]
    fn ns2_delays_the_acknowledgement_of_a_repetition() {
        let mut r = receiver(Profile::Ns2, Some(100));
        assert!(r.on_segment(0, || false).acknowledge);
        assert_eq!(r.on_segment(1, || false).timer, TimerAction::Set);
        assert!(r.on_segment(2, || true).acknowledge);
        assert_eq!(
            r.on_segment(2, || false),
            Reply { delivered: 0, acknowledge: false, timer: TimerAction::Set }
        );
        // An older one, or one with a gap behind it, is acknowledged at once.
        assert!(r.on_segment(1, || false).acknowledge);
        assert!(r.on_segment(5, || false).acknowledge);
        assert!(r.on_segment(3, || false).acknowledge);
    }
}

//! The receiver: puts segments in order and says which it waits for.

use crate::clock::Clock;
use crate::tcp::{Alarm, Config, Profile, Sack};
use inprofile_core::units::Duration;

/// `max_sack_blocks_`
const NS2_MOST_BLOCKS: usize = 3;

/// What to do about an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Segments the application can now read.
    pub delivered: u32,
    /// Whether to acknowledge now.
    pub acknowledge: bool,
    /// What to do with the timer of delayed acknowledgements.
    pub timer: Delay,
}

/// What to do with the timer of delayed acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Nothing.
    Leave,
    /// Set it.
    Set,
    /// Stop it.
    Stop,
}

/// The receiver of one flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// The segment it waits for.
    next: u32,
    /// Segments that arrived beyond it: from, to (excluded); ascending, apart from each other.
    beyond: Vec<(u32, u32)>,
    delay: Option<Duration>,
    profile: Profile,
    /// RFC profile: an in-order segment waits for a second one.
    held_back: bool,
    /// The segment that came last.
    last: u32,
    /// The blocks of `beyond`, most recent first, as they were last reported; if the flow selects.
    reported: Option<Vec<(u32, u32)>>,
    /// Acknowledgements carry ECN-Echo until the sender says that it has reduced its window.
    echoes: bool,
    /// Congestion was experienced by a segment that no acknowledgement covers yet.
    marked: bool,
}

impl Receiver {
    /// Waits for the SYN.
    #[must_use]
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            next: 0,
            beyond: Vec::new(),
            delay: config.delayed_ack,
            profile: config.profile,
            held_back: false,
            last: 0,
            reported: config.congestion.selects().then(Vec::new),
            echoes: false,
            marked: false,
        }
    }

    /// That of a flow that isn't TCP: nothing ever arrives.
    #[must_use]
    pub fn idle() -> Receiver {
        Receiver {
            next: 0,
            beyond: Vec::new(),
            delay: None,
            profile: Profile::Rfc,
            held_back: false,
            last: 0,
            reported: None,
            echoes: false,
            marked: false,
        }
    }

    /// The segment it waits for.
    #[must_use]
    pub fn expects(&self) -> u32 {
        self.next
    }

    /// Whether its acknowledgements say what it has beyond the segment it waits for.
    #[must_use]
    pub fn selects(&self) -> bool {
        self.reported.is_some()
    }

    /// How long an acknowledgement may be held back.
    #[must_use]
    pub fn span<C: Clock>(&self) -> C::Span {
        C::span(self.delay.unwrap_or(Duration::ZERO))
    }

    /// A segment arrived. `waiting`: whether the timer of delayed acknowledgements is set.
    #[inline]
    pub fn arrived(&mut self, segment: u32, waiting: bool) -> Reply {
        self.last = segment;
        let had_gap = !self.beyond.is_empty();
        let delivered = if segment == self.next && !had_gap {
            self.next += 1;
            1
        } else {
            self.put(segment)
        };
        let now = Reply { delivered, acknowledge: true, timer: Delay::Leave };
        if self.delay.is_some() { self.delayed(segment, now, had_gap, waiting) } else { now }
    }

    /// The reply, which would be `now` had acknowledgements not to be held back.
    fn delayed(&mut self, segment: u32, now: Reply, had_gap: bool, waiting: bool) -> Reply {
        match self.profile {
            Profile::Ns2 => {
                // A delayed one waits for the next arrival or the timer; the SYN and what fills a gap don't. The
                // last segment in order may be there a second time.
                let in_order = self.next == segment + 1 && self.beyond.is_empty();
                if !waiting && in_order && segment != 0 {
                    Reply { acknowledge: false, timer: Delay::Set, ..now }
                } else {
                    Reply { timer: if waiting { Delay::Stop } else { Delay::Leave }, ..now }
                }
            }
            Profile::Rfc => {
                // RFC 5681 §4.2: at least every second full segment; at once out of order and in a gap.
                let delay = now.delivered == 1 && !had_gap && segment != 0 && !self.held_back;
                self.held_back = delay;
                if delay {
                    Reply { acknowledge: false, timer: Delay::Set, ..now }
                } else {
                    Reply { timer: if waiting { Delay::Stop } else { Delay::Leave }, ..now }
                }
            }
        }
    }

    /// The headers of an arriving segment of a flow that understands ECN: whether congestion was experienced on its
    /// way, and whether the sender has reduced its window. To be told before [`Receiver::arrived`].
    pub fn congestion(&mut self, segment: u32, experienced: bool, reduced: bool) {
        // RFC 3168 §6.1.5: nothing is heard from outside the window.
        if segment < self.next {
            return;
        }
        // RFC 3168 §6.1.3: echoed until CWR, and again from the next one that experienced congestion.
        self.echoes = experienced || (self.echoes && !reduced);
        self.marked |= experienced;
    }

    /// Whether the acknowledgement now sent carries ECN-Echo (RFC 3168 §6.1.3): so does one that was held back if
    /// any segment it covers experienced congestion.
    pub fn echo(&mut self) -> bool {
        std::mem::take(&mut self.marked) || self.echoes
    }

    /// What to say of segments beyond the one it waits for (RFC 2018 §4): first the block that holds the segment
    /// that came last, then the blocks said most recently, as many as fit.
    pub fn select(&mut self) -> Sack {
        let segment = self.last;
        let mut sack = Sack::default();
        let Some(reported) = &mut self.reported else { return sack };
        let newest = self.beyond.iter().copied().find(|&(from, to)| (from..to).contains(&segment));
        let covered = newest.unwrap_or((0, self.next));
        reported.retain(|old| !(covered.0 <= old.0 && covered.1 >= old.1));
        if let Some(block) = newest {
            reported.insert(0, block);
        }
        if self.profile == Profile::Ns2 {
            // ns-2 says three (`max_sack_blocks_`), and of what it once left out no more.
            reported.truncate(NS2_MOST_BLOCKS);
        }
        for &block in reported.iter() {
            sack.push(block);
        }
        sack
    }

    /// The timer of delayed acknowledgements expired; an acknowledgement is sent.
    pub fn alarm(&mut self, which: Alarm) {
        debug_assert_eq!(which, Alarm::Acknowledge);
        self.held_back = false;
    }

    /// Takes a segment in, and returns how many can be read on account of it.
    #[inline(never)]
    fn put(&mut self, segment: u32) -> u32 {
        if segment < self.next {
            return 0;
        }
        if segment == self.next {
            let before = self.next;
            self.next += 1;
            if self.beyond.first().is_some_and(|&(from, _)| from == self.next) {
                self.next = self.beyond.remove(0).1;
            }
            return self.next - before;
        }
        let at = self.beyond.partition_point(|&(_, to)| to < segment);
        match self.beyond.get_mut(at) {
            Some((from, to)) if *from <= segment && segment < *to => {}
            Some((_, to)) if *to == segment => {
                *to += 1;
                let end = *to;
                if self.beyond.get(at + 1).is_some_and(|&(from, _)| from == end) {
                    self.beyond[at].1 = self.beyond.remove(at + 1).1;
                }
            }
            Some((from, _)) if *from == segment + 1 => *from = segment,
            _ => self.beyond.insert(at, (segment, segment + 1)),
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Congestion;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn receiver(profile: Profile, delay_ms: Option<u64>) -> Receiver {
        Receiver::new(&Config {
            profile,
            congestion: Congestion::Reno,
            segment: 1000,
            header: 40,
            window: 20,
            jitter: Duration::ZERO,
            delayed_ack: delay_ms.map(Duration::from_millis),
            min_rto: Duration::from_millis(200),
            initial_window: 2,
            limited_transmit: true,
            ecn: false,
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
                let reply = r.arrived(s, false);
                prop_assert_eq!(r.expects(), next);
                prop_assert_eq!(reply.delivered, next - before);
                let beyond: Vec<u32> = r.beyond.iter().flat_map(|&(a, b)| a..b).collect();
                let want: Vec<u32> = seen.iter().copied().filter(|&s| s > next).collect();
                prop_assert_eq!(beyond, want);
                prop_assert!(r.beyond.windows(2).all(|w| w[0].1 < w[1].0));
            }
        }
    }

    /// ns-2's `DelAckSink` asks only whether a segment is the last in order, not whether it is new.
    #[test]
    fn ns2_delays_the_acknowledgement_of_a_repetition() {
        let mut r = receiver(Profile::Ns2, Some(100));
        assert!(r.arrived(0, false).acknowledge);
        assert_eq!(r.arrived(1, false).timer, Delay::Set);
        assert!(r.arrived(2, true).acknowledge);
        assert_eq!(r.arrived(2, false), Reply { delivered: 0, acknowledge: false, timer: Delay::Set });
        // An older one, or one with a gap behind it, is acknowledged at once.
        assert!(r.arrived(1, false).acknowledge);
        assert!(r.arrived(5, false).acknowledge);
        assert!(r.arrived(3, false).acknowledge);
    }
}

//! What can happen: packed into 32 bits in the calendar, and its order among events at the same moment.
//!
//! At the same moment the window turns first, then packets depart, mechanisms tick, signals and packets arrive, flows
//! start and timers expire, samples are taken, and last the run stops. Within a kind the lower number
//! is first. So the order doesn't depend on when an event was scheduled, and a run comes out the
//! same whether its links are computed or stepped.

use crate::tcp::TimerKind;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The measured window begins.
    WindowBegins,
    /// The measured window ends.
    WindowEnds,
    /// A link has sent a packet.
    Departure(u32),
    /// An edge marker is due.
    EdgeTick(u32),
    /// A queue's discipline is due.
    QueueTick(u32),
    /// A flow's own marker is due.
    HostTick(u32),
    /// Signals come to the end of a path.
    Signals(u32),
    /// The packet in a slot comes to the end of a link.
    Arrive(u32),
    /// A flow starts.
    Start(u32),
    /// A flow has no more data.
    Halt(u32),
    /// A flow's timer may have expired.
    Timer(u32, TimerKind),
    /// A monitor takes a sample.
    Sample(u32),
    /// The run ends.
    Stop,
}

/// Most things of a kind that can be numbered.
pub const MOST: u32 = 1 << 26;

impl What {
    /// In 32 bits.
    #[inline]
    #[must_use]
    pub fn pack(self) -> u32 {
        let (kind, index) = match self {
            What::WindowBegins => (0, 0),
            What::WindowEnds => (1, 0),
            What::Departure(l) => (2, l),
            What::EdgeTick(e) => (3, e),
            What::QueueTick(l) => (4, l),
            What::HostTick(f) => (5, f),
            What::Arrive(slot) => (6, slot),
            What::Start(f) => (7, f),
            What::Timer(f, which) => (8 + which as u32, f),
            What::Sample(m) => (11, m),
            What::Stop => (12, 0),
            What::Signals(path) => (13, path),
            What::Halt(f) => (14, f),
        };
        (kind << 28) | index
    }

    /// Out of 32 bits.
    #[inline]
    #[must_use]
    pub fn unpack(word: u32) -> What {
        let index = word & ((1 << 28) - 1);
        match word >> 28 {
            0 => What::WindowBegins,
            1 => What::WindowEnds,
            2 => What::Departure(index),
            3 => What::EdgeTick(index),
            4 => What::QueueTick(index),
            5 => What::HostTick(index),
            6 => What::Arrive(index),
            7 => What::Start(index),
            kind @ 8..=10 => What::Timer(index, TimerKind::ALL[kind as usize - 8]),
            11 => What::Sample(index),
            12 => What::Stop,
            13 => What::Signals(index),
            _ => What::Halt(index),
        }
    }

    /// Its place among events at the same moment. Arrivals are ranked by [`What::arrival_rank`].
    #[inline]
    #[must_use]
    pub fn rank(self) -> u32 {
        match self {
            What::WindowBegins | What::WindowEnds => self.pack() >> 28,
            What::Departure(l) => (1 << 29) | l,
            What::EdgeTick(i) => (2 << 29) | (i * 3),
            What::QueueTick(i) => (2 << 29) | (i * 3 + 1),
            What::HostTick(i) => (2 << 29) | (i * 3 + 2),
            What::Signals(path) => (2 << 29) | (1 << 28) | path,
            What::Arrive(_) => 3 << 29,
            What::Start(f) => (4 << 29) | (f * 4),
            What::Timer(f, which) => (4 << 29) | (f * 4 + 1 + which as u32),
            What::Halt(f) => (4 << 29) | (1 << 28) | f,
            What::Sample(m) => (5 << 29) | m,
            What::Stop => 6 << 29,
        }
    }

    /// The place of an arrival by this link: a link never delivers two packets at the same moment.
    #[inline]
    #[must_use]
    pub fn arrival_rank(link: u32) -> u32 {
        (3 << 29) | link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_packing_and_have_an_order() {
        let all = [
            What::WindowBegins,
            What::WindowEnds,
            What::Departure(5),
            What::EdgeTick(0),
            What::QueueTick(0),
            What::HostTick(MOST - 1),
            What::Signals(2),
            What::Arrive((1 << 28) - 1),
            What::Start(3),
            What::Timer(3, TimerKind::Retransmit),
            What::Timer(3, TimerKind::Send),
            What::Timer(3, TimerKind::DelayedAck),
            What::Start(MOST - 1),
            What::Halt(3),
            What::Sample(2),
            What::Stop,
        ];
        for (i, w) in all.iter().enumerate() {
            assert_eq!(What::unpack(w.pack()), *w);
            for later in &all[i + 1..] {
                assert!(w.rank() < later.rank(), "{w:?} before {later:?}");
            }
        }
    }
}

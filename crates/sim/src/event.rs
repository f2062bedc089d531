//! The kinds of events: packed into 32 bits in the calendar, and their order at equal times.
//!
//! At equal times the boundaries of the measured window come first; then packets depart, mechanisms tick, signals and
//! packets arrive, flows start and timers expire, samples are taken, and last the run ends. Within a kind the lower
//! number is first. So the order does not depend on when an event was scheduled, and the result of a run is the same
//! whether its links are computed or stepped.

use crate::tcp::TimerKind;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The measured window begins.
    WindowBegins,
    /// The measured window ends.
    WindowEnds,
    /// A link has finished sending a packet.
    Departure(u32),
    /// An edge marker's tick.
    EdgeTick(u32),
    /// A queue discipline's tick.
    QueueTick(u32),
    /// The tick of a flow's own marker.
    HostTick(u32),
    /// Signals arrive at the end of a path.
    Signals(u32),
    /// The packet in a slot arrives at the end of a link.
    Arrive(u32),
    /// A flow starts.
    FlowStarts(u32),
    /// A flow has no more data.
    FlowStops(u32),
    /// A flow's timer may have expired.
    Timer(u32, TimerKind),
    /// A monitor takes a sample.
    Sample(u32),
    /// The run ends.
    RunEnds,
    /// A pause frame arrives at the start of a link: to stop, or to go on.
    FlowControl(u32, bool),
    /// A part of a run waits for the others, before anything else at that time: what they send may arrive then.
    Pause,
}

/// Numbers of links, flows, … are below this.
pub const MAX_INDEX: u32 = 1 << 26;
/// Of a pause frame's index: that it is one, and that the link is to stop.
const CONTROL: u32 = 1 << 27;
const STOP: u32 = MAX_INDEX;

impl EventKind {
    /// In 32 bits.
    #[inline]
    #[must_use]
    pub fn pack(self) -> u32 {
        let (kind, index) = match self {
            EventKind::WindowBegins => (0, 0),
            EventKind::WindowEnds => (1, 0),
            EventKind::Departure(l) => (2, l),
            EventKind::EdgeTick(e) => (3, e),
            EventKind::QueueTick(l) => (4, l),
            EventKind::HostTick(f) => (5, f),
            EventKind::Arrive(slot) => (6, slot),
            EventKind::FlowStarts(f) => (7, f),
            EventKind::Timer(f, which) => (8 + which as u32, f),
            EventKind::Sample(m) => (11, m),
            EventKind::RunEnds => (12, 0),
            EventKind::Signals(path) => (13, path),
            EventKind::FlowStops(f) => (14, f),
            EventKind::Pause => (15, 0),
            EventKind::FlowControl(link, stop) => (15, CONTROL | if stop { STOP } else { 0 } | link),
        };
        (kind << 28) | index
    }

    /// Out of 32 bits.
    #[inline]
    #[must_use]
    pub fn unpack(word: u32) -> EventKind {
        let index = word & ((1 << 28) - 1);
        match word >> 28 {
            0 => EventKind::WindowBegins,
            1 => EventKind::WindowEnds,
            2 => EventKind::Departure(index),
            3 => EventKind::EdgeTick(index),
            4 => EventKind::QueueTick(index),
            5 => EventKind::HostTick(index),
            6 => EventKind::Arrive(index),
            7 => EventKind::FlowStarts(index),
            kind @ 8..=10 => EventKind::Timer(index, TimerKind::ALL[kind as usize - 8]),
            11 => EventKind::Sample(index),
            12 => EventKind::RunEnds,
            13 => EventKind::Signals(index),
            14 => EventKind::FlowStops(index),
            _ if index & CONTROL != 0 => EventKind::FlowControl(index & (MAX_INDEX - 1), index & STOP != 0),
            _ => EventKind::Pause,
        }
    }

    /// The slot of the packet that arrives, if this is such an event in 32 bits.
    #[inline(always)]
    #[must_use]
    pub fn arriving(word: u32) -> Option<u32> {
        (word >> 28 == 6).then_some(word & ((1 << 28) - 1))
    }

    /// The flow and the timer, if this is the event of a timer in 32 bits.
    #[inline(always)]
    #[must_use]
    pub fn timer(word: u32) -> Option<(u32, TimerKind)> {
        let which = (word >> 28).checked_sub(8)?;
        TimerKind::ALL.get(which as usize).map(|&which| (word & ((1 << 28) - 1), which))
    }

    /// Its order among events at the same time. Arrivals are ranked by [`EventKind::arrival_rank`].
    #[inline]
    #[must_use]
    pub fn rank(self) -> u32 {
        match self {
            EventKind::Pause => 0,
            EventKind::WindowBegins | EventKind::WindowEnds => 1 + (self.pack() >> 28),
            EventKind::Departure(l) => (1 << 29) | l,
            EventKind::EdgeTick(i) => (2 << 29) | (i * 3),
            EventKind::QueueTick(i) => (2 << 29) | (i * 3 + 1),
            EventKind::HostTick(i) => (2 << 29) | (i * 3 + 2),
            EventKind::Signals(path) => (2 << 29) | (1 << 28) | path,
            EventKind::FlowControl(link, stop) => {
                (2 << 29) | (1 << 28) | CONTROL | (link * 2 + u32::from(stop))
            }
            EventKind::Arrive(_) => 3 << 29,
            EventKind::FlowStarts(f) => (4 << 29) | (f * 4),
            EventKind::Timer(f, which) => (4 << 29) | (f * 4 + 1 + which as u32),
            EventKind::FlowStops(f) => (4 << 29) | (1 << 28) | f,
            EventKind::Sample(m) => (5 << 29) | m,
            EventKind::RunEnds => 6 << 29,
        }
    }

    /// The order of an arrival by this link. A link never delivers two packets at the same time.
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
            EventKind::Pause,
            EventKind::WindowBegins,
            EventKind::WindowEnds,
            EventKind::Departure(5),
            EventKind::EdgeTick(0),
            EventKind::QueueTick(0),
            EventKind::HostTick(MAX_INDEX - 1),
            EventKind::Signals(2),
            EventKind::FlowControl(MAX_INDEX - 1, false),
            EventKind::FlowControl(MAX_INDEX - 1, true),
            EventKind::Arrive((1 << 28) - 1),
            EventKind::FlowStarts(3),
            EventKind::Timer(3, TimerKind::Retransmit),
            EventKind::Timer(3, TimerKind::Send),
            EventKind::Timer(3, TimerKind::DelayedAck),
            EventKind::FlowStarts(MAX_INDEX - 1),
            EventKind::FlowStops(3),
            EventKind::Sample(2),
            EventKind::RunEnds,
        ];
        for (i, w) in all.iter().enumerate() {
            assert_eq!(EventKind::unpack(w.pack()), *w);
            let timer = if let EventKind::Timer(flow, which) = *w { Some((flow, which)) } else { None };
            assert_eq!(EventKind::timer(w.pack()), timer);
            for later in &all[i + 1..] {
                assert!(w.rank() < later.rank(), "{w:?} before {later:?}");
            }
        }
    }
}

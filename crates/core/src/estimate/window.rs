//! A TCP flow's congestion window, estimated at the edge from the packets that pass.
//!
//! Two methods. *Counted*: a sender sends one window per round trip, so the data packets counted over some time are that
//! many windows; this needs the round-trip time, and a sender limited by something else appears as small as it sends.
//! *Outstanding*: the highest byte seen minus the last byte acknowledged, at its maximum since the last look; this needs no
//! time, but misses what is in flight between the sender and the edge.
//! Both are in full segments, a full segment being the largest payload seen. Non-goal: the window of traffic that is not TCP
//! (it has none; its packets are counted alike).

use crate::packet::{Kind, Packet};

/// The traffic of one flow since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowEstimate {
    /// Packets with data.
    packets: u64,
    /// Largest payload so far.
    segment: u32,
    /// One beyond the highest byte that has come, once any has.
    highest: Option<u32>,
    /// The next byte the receiver expects, once it has said so.
    acked: Option<u32>,
    /// The most that was outstanding, in bytes.
    outstanding: u32,
}

/// Windows in full segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Windows {
    /// By the count: per round trip.
    pub counted: f64,
    /// By the numbers.
    pub outstanding: f64,
}

/// How far `a` is beyond `b`, modulo 2³².
#[inline]
fn beyond(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

impl WindowEstimate {
    /// A packet of the sender passes, and only the count is wanted.
    #[inline]
    pub fn count(&mut self, packet: &Packet) {
        self.packets += u64::from(packet.payload > 0);
    }

    /// A packet of the sender passes.
    #[inline]
    pub fn came(&mut self, packet: &Packet) {
        if packet.kind == Kind::Syn {
            // Another connection has numbers of its own.
            (self.highest, self.acked) = (None, None);
        }
        if packet.payload == 0 {
            return;
        }
        self.packets += 1;
        self.segment = self.segment.max(packet.payload);
        if packet.kind == Kind::Datagram {
            return;
        }
        let end = packet.seq.wrapping_add(packet.payload);
        let highest = *self.highest.get_or_insert(end);
        if beyond(end, highest) > 0 {
            self.highest = Some(end);
        }
        // Before the first acknowledgement the first byte that came is the oldest known to be on its way.
        let acked = *self.acked.get_or_insert(packet.seq);
        self.outstanding = self.outstanding.max(beyond(self.highest.unwrap_or(end), acked).max(0) as u32);
    }

    /// An acknowledgement of the receiver passes.
    #[inline]
    pub fn acknowledged(&mut self, packet: &Packet) {
        if packet.kind == Kind::Ack && self.acked.is_some_and(|a| beyond(packet.ack, a) > 0) {
            self.acked = Some(packet.ack);
        }
    }

    /// The windows since the last look, which was `rtts` round-trip times ago (above 0); then starts afresh.
    pub fn take(&mut self, rtts: f64) -> Windows {
        let segment = f64::from(self.segment.max(1));
        let windows = Windows {
            counted: self.packets as f64 / rtts,
            outstanding: f64::from(self.outstanding) / segment,
        };
        let on_the_way = match (self.highest, self.acked, self.packets) {
            // Nothing has come for a whole look: what was on its way then is so no more.
            (_, _, 0) => 0,
            (Some(highest), Some(acked), _) => beyond(highest, acked).max(0) as u32,
            _ => 0,
        };
        self.packets = 0;
        self.outstanding = on_the_way;
        windows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data(seq: u32) -> Packet {
        Packet { seq, payload: 1000, size: 1040, ..Packet::default() }
    }

    fn ack(ack: u32) -> Packet {
        Packet { ack, kind: Kind::Ack, size: 40, ..Packet::default() }
    }

    /// A window of 10 over two round trips: 20 packets counted, 10 at most on their way.
    #[test]
    fn both_ways_see_a_steady_window() {
        for first in [1, u32::MAX - 4_321] {
            let mut w = WindowEstimate::default();
            let seq = |n: u32| first.wrapping_add(n * 1000);
            (0..10).for_each(|n| w.came(&data(seq(n))));
            for n in 0..10 {
                w.acknowledged(&ack(seq(n + 1)));
                w.came(&data(seq(n + 10)));
            }
            assert_eq!(w.take(2.0), Windows { counted: 10.0, outstanding: 10.0 });
            // The last ten are still on their way, and nothing more comes.
            assert_eq!(w.take(1.0), Windows { counted: 0.0, outstanding: 10.0 });
            assert_eq!(w.take(1.0), Windows::default());
        }
    }

    #[test]
    fn what_is_repeated_counts_but_does_not_widen_the_window() {
        let mut w = WindowEstimate::default();
        (0..5).for_each(|n| w.came(&data(1 + n * 1000)));
        w.came(&data(1));
        assert_eq!(w.take(1.0), Windows { counted: 6.0, outstanding: 5.0 });
    }

    /// Five on their way of a connection, then four of one with lower numbers under the same flow number.
    #[test]
    fn another_connection_is_another_window() {
        let mut w = WindowEstimate::default();
        (0..5).for_each(|n| w.came(&data(1_000_001 + n * 1000)));
        assert_eq!(w.take(1.0).outstanding, 5.0);
        w.came(&Packet { kind: Kind::Syn, size: 40, ..Packet::default() });
        w.take(1.0);
        (0..4).for_each(|n| w.came(&data(1 + n * 1000)));
        assert_eq!(w.take(1.0).outstanding, 4.0);
    }

    #[test]
    fn nothing_is_nothing() {
        let mut w = WindowEstimate::default();
        w.acknowledged(&ack(5000));
        w.came(&ack(1));
        assert_eq!(w.take(3.0), Windows::default());
        let udp = Packet { kind: Kind::Datagram, ..data(0) };
        (0..4).for_each(|_| w.came(&udp));
        assert_eq!(w.take(2.0), Windows { counted: 2.0, outstanding: 0.0 });
    }

    proptest! {
        /// Numbers and order of any kind: finite, not negative.
        #[test]
        fn nonsense_is_survived(steps in prop::collection::vec((any::<u32>(), any::<bool>()), 0..50), rtts in 1e-6f64..1e3) {
            let mut w = WindowEstimate::default();
            for (n, data_came) in steps {
                if data_came { w.came(&data(n)) } else { w.acknowledged(&ack(n)) }
            }
            let found = w.take(rtts);
            prop_assert!(found.counted.is_finite() && found.counted >= 0.0);
            prop_assert!(found.outstanding.is_finite() && found.outstanding >= 0.0);
        }
    }
}

//! A TCP flow's round-trip time, estimated by a router in the middle of the path.
//!
//! ```text
//! sender ←──── upstream half ────→ router ←─── downstream half ───→ receiver
//!        from an acknowledgement          from a segment's departure
//!        to the data that it releases     to the acknowledgement that covers it
//! ```
//!
//! *Downstream*: one segment at a time is timed from its departure to the first acknowledgement that covers it; after a
//! retransmission the measurement is discarded (Karn and Partridge 1987). Timing from the departure excludes the delay in the
//! router's own queue.
//! *Upstream*: data that an acknowledgement releases can be told from data already in flight in two cases only. After the
//! acknowledgement of the SYN nothing is in flight, so the next segment was released by it. And duplicate acknowledgements
//! release the segment that they ask for, which is known by its number: the third one (RFC 5681 §3.2), or with SACK, after a
//! delayed acknowledgement, the second (RFC 6675 §5); so it is timed from the second. Only the first retransmission of a
//! recovery counts, as later ones have other causes.
//! Of each half the minimum is kept, as everything else that delays (delayed acknowledgements, other queues, a timeout in
//! place of a fast retransmit) only adds.
//!
//! So a flow whose SYN was not seen has no estimate until it has lost a segment, and a flow whose acknowledgements take
//! another path never has one. Non-goal: following a path that becomes longer; the minimum is not renewed.

use crate::packet::{Kind, Packet};
use crate::units::{Duration, Time};

/// The first duplicate that may make a sender repeat a segment.
const DUPLICATES: u8 = 2;

/// The findings from one flow's packets so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct RttEstimate {
    downstream: Option<Duration>,
    /// The last sample of the downstream half, not the least.
    recent: Option<Duration>,
    upstream: Option<Duration>,
    /// One beyond the highest byte that has come, once any has.
    highest: Option<u32>,
    timing: Timing,
    /// The highest acknowledgement, once there was one, and how often it has come again.
    acked: Option<u32>,
    duplicates: u8,
    awaiting: Awaiting,
    /// The highest number when something was last repeated: until it is acknowledged, the sender is in recovery.
    recover: Option<u32>,
    /// The number of the SYN, if one has come.
    syn: Option<u32>,
    /// Nothing but the SYN has come.
    opening: bool,
}

/// The segment being timed, by the number one beyond its last byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Timing {
    #[default]
    None,
    /// It has come, and has not left yet.
    Queued(u32),
    /// It left then.
    Left(u32, Time),
}

/// The segment that the sender is known to send as soon as it receives the acknowledgement that passed at this time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Awaiting {
    #[default]
    Nothing,
    /// Its first packet after the SYN.
    First(Time),
    /// The segment that begins with this byte, once more.
    Repair(u32, Time),
}

/// One beyond the last byte that a packet takes up in the stream; `None` if it takes up nothing.
#[inline]
fn end_of(packet: &Packet) -> Option<u32> {
    let length = packet.payload + u32::from(packet.kind == Kind::Syn);
    (length > 0).then(|| packet.seq.wrapping_add(length))
}

/// How far `a` is beyond `b`, modulo 2³².
fn beyond(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

fn least(kept: &mut Option<Duration>, sample: Duration) {
    *kept = Some(kept.map_or(sample, |d| d.min(sample)));
}

impl RttEstimate {
    /// The round-trip time without the router's own queue, once both halves are known.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        Some(self.downstream? + self.upstream?)
    }

    /// The round-trip time as it was for the segment timed last, queues beyond the router included; the upstream half is
    /// the least one, as no later segment's can be told.
    #[must_use]
    pub fn recent(&self) -> Option<Duration> {
        Some(self.recent? + self.upstream?)
    }

    /// A packet of the sender has come.
    #[inline]
    pub fn came(&mut self, now: Time, packet: &Packet) {
        if packet.kind == Kind::Datagram {
            return;
        }
        if packet.kind == Kind::Syn && self.syn != Some(packet.seq) {
            // Another connection: it has numbers, and maybe a path, of its own.
            *self = RttEstimate { syn: Some(packet.seq), ..RttEstimate::default() };
        }
        if let Awaiting::First(since) = self.awaiting
            && packet.kind != Kind::Syn
        {
            self.released(now, since);
        }
        let Some(end) = end_of(packet) else { return };
        self.opening = packet.kind == Kind::Syn && (self.opening || self.highest.is_none());
        if self.highest.is_none_or(|h| beyond(end, h) > 0) {
            self.highest = Some(end);
            if self.timing == Timing::None {
                self.timing = Timing::Queued(end);
            }
            return;
        }
        // Something is repeated.
        if let Awaiting::Repair(seq, since) = self.awaiting
            && packet.seq == seq
        {
            self.released(now, since);
        }
        self.timing = Timing::None;
        self.recover = self.highest;
        if packet.kind == Kind::Syn {
            self.awaiting = Awaiting::Nothing;
        }
    }

    /// The segment awaited since the acknowledgement at `since` has come.
    fn released(&mut self, now: Time, since: Time) {
        least(&mut self.upstream, now.since(since));
        self.awaiting = Awaiting::Nothing;
    }

    /// A packet of the sender leaves.
    #[inline]
    pub fn left(&mut self, now: Time, packet: &Packet) {
        if let Timing::Queued(end) = self.timing
            && end_of(packet) == Some(end)
        {
            self.timing = Timing::Left(end, now);
        }
    }

    /// An acknowledgement of the receiver passes.
    #[inline]
    pub fn acknowledged(&mut self, now: Time, packet: &Packet) {
        if packet.kind == Kind::Datagram {
            return;
        }
        let ack = packet.ack;
        if let Timing::Left(end, since) = self.timing
            && beyond(ack, end) >= 0
        {
            self.recent = Some(now.since(since));
            least(&mut self.downstream, now.since(since));
            self.timing = Timing::None;
        }
        let first = self.acked.is_none();
        if self.acked.is_none_or(|a| beyond(ack, a) > 0) {
            self.acked = Some(ack);
            self.duplicates = 0;
            // Over; and so far back that it would look ahead, it must not be kept.
            self.recover = self.recover.filter(|r| beyond(ack, *r) < 0);
            let opens = first && self.opening && self.highest == Some(ack);
            self.awaiting = if opens { Awaiting::First(now) } else { Awaiting::Nothing };
        } else if self.acked == Some(ack) && packet.payload == 0 {
            self.duplicates = self.duplicates.saturating_add(1);
            let recovers = self.recover.is_some_and(|r| beyond(ack, r) < 0);
            if self.duplicates == DUPLICATES && !recovers {
                self.awaiting = Awaiting::Repair(ack, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data(seq: u32) -> Packet {
        Packet { seq, payload: 500, size: 540, ..Packet::default() }
    }

    fn syn() -> Packet {
        Packet { kind: Kind::Syn, size: 40, ..Packet::default() }
    }

    fn ack(ack: u32) -> Packet {
        Packet { kind: Kind::Ack, ack, size: 40, ..Packet::default() }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The packets that pass, at which millisecond: `c`ame, `l`eft, `a`cknowledged.
    fn watch(events: &[(u64, char, Packet)]) -> RttEstimate {
        let mut e = RttEstimate::default();
        for (at, what, packet) in events {
            let now = Time::ZERO + ms(*at);
            match what {
                'c' => e.came(now, packet),
                'l' => e.left(now, packet),
                _ => e.acknowledged(now, packet),
            }
        }
        e
    }

    /// 70 ms beyond the router, 30 ms before it; the SYN waits 5 ms in the queue, the first segment 50 ms.
    #[test]
    fn the_handshake_tells_both_halves_without_the_routers_queue() {
        let events = [
            (10, 'c', syn()),
            (15, 'l', syn()),
            (85, 'a', ack(1)),
            (115, 'c', data(1)),
            (165, 'l', data(1)),
            (235, 'a', ack(501)),
        ];
        assert_eq!(watch(&events[..3]).get(), None);
        assert_eq!(watch(&events[..4]).get(), Some(ms(100)));
        let e = watch(&events);
        assert_eq!((e.downstream, e.upstream), (Some(ms(70)), Some(ms(30))));
    }

    /// A packet without payload that completes the handshake comes as fast as data would.
    #[test]
    fn the_handshakes_own_acknowledgement_counts_as_the_first_packet() {
        let e = watch(&[
            (0, 'c', syn()),
            (0, 'l', syn()),
            (70, 'a', ack(1)),
            (90, 'c', ack(1)),
            (400, 'c', data(1)),
        ]);
        assert_eq!(e.get(), Some(ms(90)));
    }

    #[test]
    fn without_a_handshake_a_fast_retransmission_tells_the_upstream_half() {
        let mut events = vec![(0, 'c', data(1)), (0, 'l', data(1)), (70, 'a', ack(501))];
        // 501 is lost; each later segment brings a duplicate.
        events.extend((0..6).map(|i| (80 + i, 'c', data(501 + 500 * i as u32))));
        events.extend((0..3).map(|i| (160 + i, 'a', ack(501))));
        assert_eq!(watch(&events).get(), None);
        // Limited transmit's new segment is not what the duplicates ask for.
        events.push((170, 'c', data(3501)));
        assert_eq!(watch(&events).upstream, None);
        // The third is answered after 30 ms; the second passed 1 ms before it.
        events.push((192, 'c', data(501)));
        assert_eq!(watch(&events).get(), Some(ms(101)));
        // Later duplicates of the same acknowledgement ask for nothing more.
        events.push((200, 'a', ack(501)));
        events.push((201, 'c', data(501)));
        assert_eq!(watch(&events).upstream, Some(ms(31)));
    }

    /// A partial acknowledgement makes the sender repeat the next hole; duplicates pass before that comes.
    #[test]
    fn in_recovery_a_repetition_answers_something_else() {
        let mut events: Vec<_> = (0..6).map(|i| (i, 'c', data(1 + 500 * i as u32))).collect();
        events.extend([(80, 'a', ack(1)), (81, 'a', ack(1)), (82, 'a', ack(1)), (112, 'c', data(1))]);
        assert_eq!(watch(&events).upstream, Some(ms(30)));
        events.extend([
            (190, 'a', ack(1001)),
            (210, 'a', ack(1001)),
            (211, 'a', ack(1001)),
            (220, 'c', data(1001)),
        ]);
        assert_eq!(watch(&events).upstream, Some(ms(30)));
    }

    /// Duplicates may come from needless repetitions: what then comes next is new, and nobody knows what released it.
    #[test]
    fn a_new_segment_answers_no_duplicates() {
        let e = watch(&[
            (0, 'c', data(1)),
            (60, 'a', ack(501)),
            (61, 'a', ack(501)),
            (62, 'a', ack(501)),
            (65, 'c', data(501)),
        ]);
        assert_eq!(e.upstream, None);
    }

    #[test]
    fn karns_rule_a_segment_is_not_timed_over_a_repetition() {
        let base = [
            (0, 'c', data(1)),
            (0, 'l', data(1)),
            (300, 'c', data(1)),
            (300, 'l', data(1)),
            (310, 'a', ack(501)),
        ];
        assert_eq!(watch(&base).downstream, None);
        // Nor one that was queued when another was repeated.
        let other = [
            (0, 'c', data(1)),
            (1, 'c', data(501)),
            (2, 'l', data(1)),
            (50, 'c', data(1)),
            (400, 'a', ack(1001)),
        ];
        assert_eq!(watch(&other).downstream, None);
    }

    #[test]
    fn a_syn_sent_twice_tells_nothing_of_the_upstream_half() {
        let e = watch(&[
            (0, 'c', syn()),
            (0, 'l', syn()),
            (900, 'a', ack(1)),
            (1000, 'c', syn()),
            (1010, 'c', data(1)),
        ]);
        assert_eq!(e.upstream, None);
    }

    /// The same flow number, a path of 40 ms in place of 100, and lower sequence numbers than those before.
    #[test]
    fn another_connection_is_another_path() {
        let high = |p: Packet| Packet { seq: p.seq + 50_000, ack: p.ack + 50_000, ..p };
        let mut events = vec![(0, 'c', high(syn())), (0, 'l', high(syn())), (70, 'a', high(ack(1)))];
        events.push((100, 'c', high(data(1))));
        assert_eq!(watch(&events).get(), Some(ms(100)));
        events.extend([(200, 'c', syn()), (200, 'l', syn()), (230, 'a', ack(1)), (240, 'c', data(1))]);
        assert_eq!(watch(&events).get(), Some(ms(40)));
    }

    /// A recovery that ended 3 GiB ago, more than half the numbers, is over all the same.
    #[test]
    fn a_recovery_ends() {
        let mut events = vec![(0, 'c', data(1)), (1, 'c', data(1))];
        for n in 0..=48 {
            events.extend([(2, 'c', data(1 + (n << 26))), (2, 'a', ack(501 + (n << 26)))]);
        }
        let hole = 501 + (48 << 26);
        events.extend([
            (3, 'c', data(hole)),
            (4, 'a', ack(hole)),
            (5, 'a', ack(hole)),
            (35, 'c', data(hole)),
        ]);
        assert_eq!(watch(&events).upstream, Some(ms(30)));
    }

    #[test]
    fn the_least_sample_stays() {
        let e = watch(&[
            (0, 'c', data(1)),
            (0, 'l', data(1)),
            (90, 'a', ack(501)),
            (100, 'c', data(501)),
            (100, 'l', data(501)),
            (170, 'a', ack(1001)),
            (180, 'c', data(1001)),
            (180, 'l', data(1001)),
            (400, 'a', ack(1501)),
        ]);
        assert_eq!((e.downstream, e.recent), (Some(ms(70)), Some(ms(220))));
    }

    #[test]
    fn datagrams_tell_nothing() {
        let udp = Packet { kind: Kind::Datagram, payload: 500, ..Packet::default() };
        let e = watch(&[(0, 'c', udp), (0, 'l', udp), (10, 'a', udp), (20, 'c', udp)]);
        assert_eq!((e.get(), e.highest, e.acked), (None, None, None));
    }

    proptest! {
        /// A window that is acknowledged in order across the end of the number space, at any distance.
        #[test]
        fn sequence_numbers_wrap(first in prop::sample::select(vec![0u32, u32::MAX - 600, u32::MAX - 499]),
                                 down in 0u64..500, up in 0u64..500) {
            let mut e = RttEstimate::default();
            let at = |t| Time::ZERO + ms(t);
            let syn = Packet { seq: first, ..syn() };
            e.came(at(0), &syn);
            e.left(at(0), &syn);
            let mut now = down;
            let mut seq = first.wrapping_add(1);
            for _ in 0..5 {
                e.acknowledged(at(now), &ack(seq));
                now += up;
                e.came(at(now), &data(seq));
                e.left(at(now), &data(seq));
                now += down;
                seq = seq.wrapping_add(500);
            }
            prop_assert_eq!(e.get(), Some(ms(down + up)));
        }

        /// Whatever passes, no half is longer than the time that has passed, and nothing panics.
        #[test]
        fn nonsense_is_survived(events in prop::collection::vec(
            (0u64..50, 0u8..3, any::<u32>(), any::<u32>(), 0u8..4, 0u32..3), 0..100)) {
            let mut e = RttEstimate::default();
            let mut now = 0;
            for (gap, what, seq, ack, kind, payload) in events {
                now += gap;
                let kind = [Kind::Data, Kind::Ack, Kind::Syn, Kind::Datagram][usize::from(kind)];
                // Few different numbers, so that they meet.
                let p = Packet { kind, seq: seq % 5, ack: ack % 5, payload, ..Packet::default() };
                let at = Time::ZERO + ms(now);
                match what {
                    0 => e.came(at, &p),
                    1 => e.left(at, &p),
                    _ => e.acknowledged(at, &p),
                }
                prop_assert!(e.get().is_none_or(|rtt| rtt <= ms(2 * now)));
            }
        }
    }
}

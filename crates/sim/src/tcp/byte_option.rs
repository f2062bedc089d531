//! The AccECN Option (RFC 9768 §3.2.3): how many bytes of payload have arrived with each code point, beside the ACE field's count of packets.
//! Counters of 24 bits tell what a field of three bits leaves open where acknowledgements are lost or thinned out.
//!
//! Data goes one way here, and all of a segment's size: only the receiver sends the option, and the sender reads of it what was marked.

use inprofile_core::packet::Ecn;

use super::Sack;

/// The divisor of a counter in the option (DIVOPT, Appendix A.1).
const MODULUS: u32 = 1 << 24;
/// The most that all of TCP's options take.
const MOST: u32 = 40;

/// Bytes of payload by the code point with which they arrived: r.e0b, r.ceb, r.e1b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts([u32; 3]);

/// ECT(0), CE, ECT(1) in [`Counts`].
const CE: usize = 1;

/// §3.2.1: so that zeros tell of a broken path.
const INITIAL: Counts = Counts([1, 0, 1]);

/// An option on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteOption {
    /// EE0B, ECEB, EE1B, or the other way round.
    fields: [u32; 3],
    len: u8,
    /// Order 1: EE1B is the first.
    order: u8,
}

impl ByteOption {
    /// These fields, at most three, in this order (Table 5).
    #[must_use]
    pub fn new(order: u8, fields: &[u32]) -> ByteOption {
        let mut all = [0; 3];
        for (to, from) in all.iter_mut().zip(fields) {
            *to = from % MODULUS;
        }
        ByteOption { fields: all, len: fields.len().min(3) as u8, order: order.min(1) }
    }

    /// 0: EE0B comes first; 1: EE1B does.
    #[must_use]
    pub fn order(&self) -> u8 {
        self.order
    }

    /// The fields that it has, in its order.
    #[must_use]
    pub fn fields(&self) -> &[u32] {
        &self.fields[..usize::from(self.len)]
    }

    /// How many bytes it takes, by itself.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        2 + 3 * u32::from(self.len)
    }

    /// How many bytes it takes beside these SACK blocks, in words of four.
    #[must_use]
    pub fn bytes_beside(&self, blocks: usize) -> u32 {
        let sack = if blocks == 0 { 0 } else { 2 + Sack::BLOCK_BYTES * blocks as u32 };
        (self.bytes() + sack).next_multiple_of(4)
    }

    /// How many SACK blocks there is room for (§3.2.3.3: congestion control comes first as long as two are left, and that many always are).
    #[must_use]
    pub fn blocks_beside(&self) -> usize {
        (0..=Sack::MAX_BLOCKS).rev().find(|blocks| self.bytes_beside(*blocks) <= MOST).unwrap_or(0)
    }
}

/// The receiver's end.
#[derive(Clone, Debug)]
pub struct Reporter {
    counts: Counts,
    /// As they were with the last acknowledgement.
    told: Counts,
    /// Bytes of a segment.
    segment: u32,
    /// SYNs that have arrived.
    syns: u32,
}

impl Reporter {
    /// Nothing has arrived; segments have this much payload.
    #[must_use]
    pub fn new(segment: u32) -> Reporter {
        Reporter { counts: INITIAL, told: INITIAL, segment, syns: 0 }
    }

    /// A SYN arrives, whose payload, if any, does not count (§3.2).
    pub fn syn_arrived(&mut self) {
        self.syns += 1;
    }

    /// A segment of data arrives; retransmissions count, too (§3.2).
    pub fn arrived(&mut self, ip: Ecn) {
        let which = match ip {
            Ecn::NotCapable => return,
            Ecn::Ect0 => 0,
            Ecn::Experienced => CE,
            Ecn::Ect1 => 2,
        };
        self.counts.0[which] = self.counts.0[which].wrapping_add(self.segment);
    }

    /// The option of the SYN/ACK: whole, so that it tells whether options get through (§3.2.3.2.1). What answers another SYN has none, as
    /// something on the way may drop what has one (§3.2.3.2.2).
    #[must_use]
    pub fn of_syn_ack(&self) -> Option<ByteOption> {
        (self.syns < 2).then(|| ByteOption::new(0, &INITIAL.0))
    }

    /// The option of the acknowledgement sent now (§3.2.3.3, the recommended scheme): one if a counter has changed since the last, with all
    /// that have ever changed; the fewest fields that have those.
    pub fn of_ack(&mut self) -> Option<ByteOption> {
        if self.counts == self.told {
            return None;
        }
        self.told = self.counts;
        let Counts(now) = self.counts;
        let ever: [bool; 3] = std::array::from_fn(|i| now[i] != INITIAL.0[i]);
        let fields = |ever: [bool; 3]| ever.iter().rposition(|e| *e).map_or(0, |last| last + 1);
        let (ahead, back) = (fields(ever), fields([ever[2], ever[CE], ever[0]]));
        Some(if back < ahead {
            ByteOption::new(1, &[now[2], now[CE], now[0]][..back])
        } else {
            ByteOption::new(0, &now[..ahead])
        })
    }
}

/// The sender's end: s.ceb, and what was taken for marked without being told so in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader {
    /// s.ceb.
    ce: u32,
    /// Packets told of by the ACE field alone since the last option.
    by_field: u32,
}

impl Reader {
    /// An acknowledgement without option has told of so many marks.
    pub fn told_by_field(&mut self, marks: u32) {
        self.by_field = self.by_field.wrapping_add(marks);
    }

    /// An acknowledgement with this option that is not superseded (Appendix A.1): how many more packets of so many bytes were marked, of which
    /// the ACE field tells at `least`, modulo 8. A counter that is left out has not changed (§3.2.3.3).
    ///
    /// Appendix A.2.2 asks whether the bytes fit what the field can mean. Segments are whole here, so they say which it does; §3.2.3.2.5: the
    /// two are reconciled, and a packet without payload is in the field alone.
    pub fn marks(&mut self, option: &ByteOption, segment: u32, least: u32, divace: u32) -> u32 {
        let new = match option.fields().get(CE) {
            Some(ceb) => (ceb + MODULUS - self.ce % MODULUS) % MODULUS,
            None => 0,
        };
        self.ce = self.ce.wrapping_add(new);
        let counted = std::mem::take(&mut self.by_field);
        let by_bytes = new.div_ceil(segment).saturating_sub(counted);
        by_bytes + (least + divace - by_bytes % divace) % divace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::accurate_ecn::{Counter, Tracker};
    use proptest::prelude::*;

    const POINTS: [Ecn; 4] = [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1, Ecn::Experienced];

    proptest! {
        /// RFC 9768 §3.2.3.1, Appendix A.1: whatever acknowledgements are lost and however much each covers, the sender counts each marked packet once, where
        /// every acknowledgement that reaches it has its option; and without the option no fewer (§3.2.2.5.2).
        #[test]
        fn every_mark_is_counted_once(
            packets in prop::collection::vec(0usize..4, 1..1500), lengths in prop::collection::vec(1usize..90, 1..60),
            heard in prop::collection::vec(any::<bool>(), 60), segment in prop::sample::select(vec![1u32, 536, 1460, 8960]),
        ) {
            let (mut counter, mut reporter) = (Counter::default(), Reporter::new(segment));
            let (mut tracker, mut reader, mut alone) = (Tracker::default(), Reader::default(), Tracker::default());
            let (mut marked, mut counted, mut safely, mut from, mut unheard) = (0, 0, 0, 0, 0);
            for (n, heard) in lengths.into_iter().zip(heard) {
                let of = &packets[from.min(packets.len())..(from + n).min(packets.len())];
                from += n;
                for ip in of.iter().map(|p| POINTS[*p]) {
                    counter.arrived(ip == Ecn::Experienced);
                    reporter.arrived(ip);
                    marked += u32::from(ip == Ecn::Experienced);
                }
                let option = reporter.of_ack();
                unheard += of.len() as u32;
                // One without an option tells of nothing that could be marked.
                let (true, Some(option)) = (heard, option) else { continue };
                let delivered = std::mem::take(&mut unheard);
                counted += tracker.marks_with(counter.ace().ace(), delivered, &option, segment, &mut reader);
                safely += alone.marks(counter.ace().ace(), delivered);
                prop_assert_eq!(counted, marked);
                prop_assert!(safely >= marked);
            }
        }

        /// RFC 9768 §3.2.3.3: no counter that has changed is left out, an unchanged one only from the tail, and two SACK blocks always fit.
        #[test]
        fn what_has_changed_is_there(packets in prop::collection::vec(0usize..4, 1..40)) {
            let mut reporter = Reporter::new(1000);
            let mut want = INITIAL.0;
            for ip in packets.into_iter().map(|p| POINTS[p]) {
                reporter.arrived(ip);
                match ip {
                    Ecn::NotCapable => {}
                    Ecn::Ect0 => want[0] += 1000,
                    Ecn::Experienced => want[1] += 1000,
                    Ecn::Ect1 => want[2] += 1000,
                }
                let Some(option) = reporter.of_ack() else {
                    prop_assert_eq!(ip, Ecn::NotCapable);
                    continue;
                };
                let mut read = INITIAL.0;
                let order = if option.order() == 0 { [0, 1, 2] } else { [2, 1, 0] };
                for (at, field) in order.into_iter().zip(option.fields()) {
                    read[at] = *field;
                }
                prop_assert_eq!(read, want);
                let blocks = option.blocks_beside();
                prop_assert!(blocks >= 2 && option.bytes_beside(blocks) <= MOST);
            }
        }
    }

    /// RFC 9768, Appendix A.1's example.
    #[test]
    fn a_counter_that_has_wrapped() {
        let mut reader = Reader { ce: 33_554_433, by_field: 0 };
        assert_eq!(reader.marks(&ByteOption::new(0, &[1, 1461]), 1460, 1, 8), 1);
        assert_eq!(reader.ce, 33_555_893);
    }

    /// RFC 9768 §3.2.3.3's examples: ECT(0) alone; a first mark; a mark before anything else, and then ECT(1) alone. Beside SACK blocks in 40 bytes
    /// four go with one field, three with more.
    #[test]
    fn the_examples() {
        let mut reporter = Reporter::new(1000);
        let told = |reporter: &mut Reporter, ip| {
            reporter.arrived(ip);
            reporter.of_ack().map(|o| (o.order(), o.fields().to_vec(), o.bytes(), o.blocks_beside()))
        };
        assert_eq!(told(&mut reporter, Ecn::Ect0), Some((0, vec![1001], 5, 4)));
        assert_eq!(told(&mut reporter, Ecn::Experienced), Some((0, vec![1001, 1000], 8, 3)));
        assert_eq!(told(&mut reporter, Ecn::NotCapable), None);
        assert_eq!(told(&mut reporter, Ecn::Ect1), Some((0, vec![1001, 1000, 1001], 11, 3)));
        let mut reporter = Reporter::new(1000);
        assert_eq!(told(&mut reporter, Ecn::Experienced), Some((0, vec![1, 1000], 8, 3)));
        assert_eq!(told(&mut reporter, Ecn::Ect1), Some((1, vec![1001, 1000], 8, 3)));
    }

    /// RFC 9768 §3.2.3.2.3, §3.2.3.2.5: where options were missing for a while, what the field has told of meanwhile is not told again.
    #[test]
    fn options_that_come_late() {
        let (mut tracker, mut reader) = (Tracker::default(), Reader::default());
        // Three of five, then nine of ten, of which the field alone says at least one.
        let three = tracker.marks(0, 5);
        reader.told_by_field(three);
        assert_eq!(three, 3);
        assert_eq!(tracker.marks_with(1, 10, &ByteOption::new(0, &[1, 12_000]), 1000, &mut reader), 9);
        assert_eq!(tracker.marks_with(1, 10, &ByteOption::new(0, &[10_001, 12_000]), 1000, &mut reader), 0);
    }
}

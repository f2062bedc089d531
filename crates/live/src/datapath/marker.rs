//! A marker on real packets: the mechanism, its random numbers, its counts, and when it ticks next.

pub use inprofile_core::marker::MarkerCounts;
use inprofile_core::packet::{Direction, Packet};
use inprofile_core::registry::AnyMarker;
use inprofile_core::rng::Rng;
use inprofile_core::signal::{EXCESS_TOKENS, Outbox, Signal, TOKENS};
use inprofile_core::units::Time;
use inprofile_core::verdict::{Mark, Silent};

use crate::prefetch::prefetch;

/// Packets of one colour: what each packet changes lies together.
#[derive(Clone, Copy, Debug, Default)]
struct ColourCounts {
    arrived: u64,
    arrived_bytes: u64,
    left: u64,
    left_bytes: u64,
    dropped: u64,
}

/// A marker at work. What a packet that stays IN reads and changes comes first: with ten thousand markers each cache line more is a
/// miss.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Marking {
    /// The mechanism.
    pub marker: AnyMarker,
    counts: [ColourCounts; 3],
    rng: Rng,
    next_tick: Option<Time>,
}

impl Marking {
    /// Before its first packet; it ticks first at time zero.
    #[must_use]
    pub fn new(marker: AnyMarker, rng: Rng) -> Marking {
        Marking { marker, counts: Default::default(), rng, next_tick: Some(Time::ZERO) }
    }

    /// Another mechanism in its place, from `now` on; random numbers and counts go on. Its buckets hold no more than the
    /// old ones did: nobody gains a burst by a change of settings.
    #[must_use]
    pub fn replaced(self, mut marker: AnyMarker, now: Time) -> Marking {
        let mut held = [0.0; 2];
        self.marker.gauges(now, &mut |name, value| match name {
            "tokens" | "tc" => held[0] = value,
            "te" | "tp" => held[1] = value,
            _ => {}
        });
        keep_at_most(&mut marker, held, now);
        Marking { marker, next_tick: Some(now), ..self }
    }

    /// Starts at `now` rather than at time zero, in the middle of a run: with empty buckets, or a customer who is renamed
    /// would begin with a burst.
    #[must_use]
    pub fn starting(mut self, now: Time) -> Marking {
        keep_at_most(&mut self.marker, [0.0; 2], now);
        Marking { next_tick: Some(now), ..self }
    }

    /// Prefetches what a packet that stays IN reads and changes.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&self.marker);
        prefetch(&self.counts[0]);
    }

    /// Decides on a packet.
    pub fn decide(&mut self, now: Time, packet: &Packet) -> Mark {
        let (came, size) = (packet.colour as usize, u64::from(packet.size));
        self.counts[came].arrived += 1;
        self.counts[came].arrived_bytes += size;
        let verdict = self.marker.mark(now, packet, &mut self.rng, &mut Silent);
        match verdict {
            Mark::Pass(colour) => {
                self.counts[colour as usize].left += 1;
                self.counts[colour as usize].left_bytes += size;
            }
            Mark::Drop(_) => self.counts[came].dropped += 1,
        }
        verdict
    }

    /// Sees a packet that goes the other way.
    pub fn observe_reverse(&mut self, now: Time, packet: &Packet) {
        self.marker.observe(now, packet, Direction::Reverse);
    }

    /// When it next ticks, if ever.
    #[must_use]
    pub fn next_tick(&self) -> Option<Time> {
        self.next_tick
    }

    /// Ticks, if it is time.
    pub fn tick(&mut self, now: Time, outbox: &mut Outbox) {
        if let Some(at) = self.next_tick.filter(|at| *at <= now) {
            // A mechanism that asked for a moment that has passed would tick for ever.
            self.next_tick = self.marker.tick(at, outbox).filter(|next| *next > at);
        }
    }

    /// Counts since the start.
    #[must_use]
    pub fn counts(&self) -> MarkerCounts {
        let by = |of: fn(&ColourCounts) -> u64| self.counts.each_ref().map(of);
        MarkerCounts {
            arrived: by(|c| c.arrived),
            arrived_bytes: by(|c| c.arrived_bytes),
            left: by(|c| c.left),
            left_bytes: by(|c| c.left_bytes),
            dropped: by(|c| c.dropped),
        }
    }

    /// Whether it may keep state of single flows: meters of one or two buckets don't, and need not be told of any.
    #[must_use]
    pub fn keeps_flows(&self) -> bool {
        let meters = matches!(
            self.marker,
            AnyMarker::TokenBucket(_) | AnyMarker::SrTcm(_) | AnyMarker::TrTcm(_) | AnyMarker::Rfc4115(_)
        );
        !meters
    }
}

/// Tells a marker how much its buckets hold at most.
fn keep_at_most(marker: &mut AnyMarker, held: [f64; 2], now: Time) {
    for (topic, value) in [TOKENS, EXCESS_TOKENS].into_iter().zip(held) {
        marker.signal(now, &Signal { topic, flow: None, value });
    }
}

pub(super) mod charge {
    //! How many bytes a frame counts for: to meters and queues, and to the link.

    use crate::packet::{Link, Seen, TAG};

    /// VLAN tags that meters leave out, as customers' frames have them on an access line.
    const USUAL_TAGS: u8 = 2;
    /// Bytes of a PPPoE session's header with the number of PPP's protocol, which they leave out as well.
    const SESSION: u32 = 8;

    /// The bytes that a packet counts for beside its own.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Charge {
        /// Bytes that each packet takes on the link in addition.
        pub overhead: u32,
        /// The fewest bytes that a packet counts for, overhead included: `tc`'s minimum packet unit.
        pub mpu: u32,
    }

    impl Charge {
        /// To meters, queues and counts: the packet, and any tags and labels beyond two tags and a session.
        #[must_use]
        pub fn packet(self, seen: &Seen) -> u32 {
            match seen {
                Ok(h) => (h.size + self.overhead).max(self.mpu) + beyond_usual(&h.link),
                Err(opaque) => (opaque.size + self.overhead).max(self.mpu),
            }
        }

        /// To the link: all that was received behind the Ethernet header but for padding. What is shorter than the minimum may be padded
        /// to it, its VLAN tags beside that.
        #[must_use]
        pub fn link(self, seen: &Seen) -> u32 {
            let all = match seen {
                Ok(h) => (h.size + h.link.bytes() + self.overhead).max(self.mpu_with_tags(&h.link)),
                Err(_) => 0,
            };
            all.max(self.packet(seen))
        }

        fn mpu_with_tags(self, link: &Link) -> u32 {
            if self.mpu == 0 { 0 } else { self.mpu + tag_bytes(link.tags) }
        }
    }

    /// Bytes of so many VLAN tags.
    fn tag_bytes(tags: u8) -> u32 {
        u32::from(tags) * TAG as u32
    }

    /// Bytes before the IP header that are neither of the first two tags nor of a session: third and fourth tags, and labels.
    fn beyond_usual(link: &Link) -> u32 {
        let session = if link.session.is_some() { SESSION } else { 0 };
        link.bytes().saturating_sub(tag_bytes(link.tags.min(USUAL_TAGS)) + session)
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::packet::{Layer, parse};

        fn behind(tags: usize, bytes: u16) -> Seen {
            let mut frame = vec![0; 12];
            (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 5]));
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend(bytes.to_be_bytes());
            frame.resize(frame.len() - 4 + usize::from(bytes), 0);
            parse(Layer::Ethernet, &frame)
        }

        #[test]
        fn a_meter_leaves_two_tags_out_and_the_link_none() {
            let wire = Charge { overhead: 38, mpu: 84 };
            for (tags, bytes, packet, link) in [
                (0, 20, 84, 84),
                (2, 20, 84, 92),
                (3, 20, 88, 96),
                (4, 46, 92, 100),
                (2, 1000, 1038, 1046),
                (4, 1000, 1046, 1054),
            ] {
                let seen = behind(tags, bytes);
                assert_eq!((wire.packet(&seen), wire.link(&seen)), (packet, link), "{tags} tags, {bytes} B");
            }
            let plain = Charge::default();
            assert_eq!((plain.packet(&behind(2, 1000)), plain.link(&behind(2, 1000))), (1000, 1008));
            // Too deep to be read: all of it, either way.
            assert_eq!((plain.packet(&behind(5, 1000)), plain.link(&behind(5, 1000))), (1020, 1020));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn what_a_packet_that_stays_in_touches_is_two_cache_lines() {
        assert!(offset_of!(Marking, counts) + size_of::<ColourCounts>() <= 2 * 64);
    }
}

//! Buffers for waiting packets: bounded, and allocated only as they are needed.

/// A packet's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

/// Places for packets.
#[derive(Debug)]
pub struct Buffers {
    places: Vec<Vec<u8>>,
    free: Vec<Slot>,
    /// Bytes that all places hold, used or not.
    held: usize,
    most: usize,
}

/// From so many bytes on a short packet doesn't keep a long one's room. Where a limit is in bytes many short packets may wait: long
/// ones by turns would make each of their places as large as a long one's.
const MUCH: usize = 16 << 20;
/// How much longer than its packet a place may then be.
const ROOMY: usize = 8;

impl Buffers {
    /// Room for at most so many.
    #[must_use]
    pub fn new(most: usize) -> Buffers {
        Buffers { places: Vec::new(), free: Vec::new(), held: 0, most: most.min(u32::MAX as usize) }
    }

    /// Another bound; what is kept above it stays until it is released. Free places' memory goes back to the system.
    pub fn set_most(&mut self, most: usize) {
        self.most = most.min(u32::MAX as usize);
        for slot in &self.free {
            self.held -= std::mem::take(&mut self.places[slot.0 as usize]).capacity();
        }
    }

    /// A place for a packet that may have to wait; `None` if there is no room left. What is there means nothing until it
    /// is [filled](Buffers::fill).
    pub fn take(&mut self) -> Option<Slot> {
        if self.used() >= self.most {
            return None;
        }
        self.free.pop().or_else(|| {
            self.places.push(Vec::new());
            Some(Slot(self.places.len() as u32 - 1))
        })
    }

    /// Keeps a copy there.
    pub fn fill(&mut self, slot: Slot, frame: &[u8]) {
        let place = &mut self.places[slot.0 as usize];
        let before = place.capacity();
        if self.held > MUCH && before > ROOMY * frame.len() {
            *place = Vec::with_capacity(frame.len());
        }
        place.clear();
        place.extend_from_slice(frame);
        self.held = self.held + place.capacity() - before;
    }

    /// Its content.
    pub fn get_mut(&mut self, slot: Slot) -> &mut [u8] {
        &mut self.places[slot.0 as usize]
    }

    /// Gives a place back.
    pub fn release(&mut self, slot: Slot) {
        debug_assert!(!self.free.contains(&slot), "a place given back twice");
        self.free.push(slot);
    }

    /// The bound.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many are kept.
    #[must_use]
    pub fn used(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

pub(super) mod queued_frame {
    //! A packet in the queue, and what is written into its frame when it leaves.

    use inprofile_core::packet::{Colour, Ecn, FlowId, Packet};
    use inprofile_core::queue::fifo::Item;
    use inprofile_core::units::Time;

    use crate::datapath::buffers::Slot;
    use crate::datapath::policy::Rewrite;
    use crate::packet::{self, Bits};

    /// A queued packet. Queues move it about several times, so it is kept small.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct QueuedFrame {
        pub packet: Packet,
        /// The bytes that it counts for on the link; see [`Charge::link`](crate::datapath::Charge::link).
        pub on_link: u32,
        /// Of an IP packet: where its DSCP and ECN are, and its ECN as it came.
        pub bits: Option<(Bits, Ecn)>,
        pub rewrite: Rewrite,
        /// It has tags or labels whose classes are taken off.
        pub clear_link: bool,
        pub slot: Slot,
        pub number: u64,
        pub since: Time,
        pub customer: Option<u32>,
    }

    impl QueuedFrame {
        /// Writes the DSCP that the frame leaves with, CE if a discipline has marked it, and clears its link's classes.
        pub fn write(&self, frame: &mut [u8]) {
            if self.clear_link {
                packet::clear_link_classes(frame);
            }
            let Some((bits, came)) = self.bits else { return };
            match self.rewrite {
                Rewrite::Keep => {}
                Rewrite::Colour(points) => {
                    packet::set_dscp(frame, bits, points.of(self.packet.colour));
                }
                Rewrite::To(dscp) => {
                    packet::set_dscp(frame, bits, dscp);
                }
            }
            if self.packet.ecn == Ecn::Experienced && came != Ecn::Experienced {
                packet::congestion_experienced(frame, bits);
            }
        }
    }

    impl Item for QueuedFrame {
        fn size(&self) -> u32 {
            self.packet.size
        }
        fn colour(&self) -> Colour {
            self.packet.colour
        }
        fn flow(&self) -> FlowId {
            self.packet.flow
        }
        fn since(&self) -> Time {
            self.since
        }
        fn mark(&mut self) -> bool {
            self.packet.ecn.mark()
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn it_is_small() {
            assert!(size_of::<QueuedFrame>() <= 80, "{} bytes", size_of::<QueuedFrame>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_never_exceed_the_bound() {
        let mut b = Buffers::new(2);
        let keep = |b: &mut Buffers, frame: &[u8]| b.take().inspect(|slot| b.fill(*slot, frame));
        let (x, y) = (keep(&mut b, b"one").unwrap(), keep(&mut b, b"two!").unwrap());
        assert_eq!((keep(&mut b, b"three"), b.used()), (None, 2));
        assert_eq!((b.get_mut(x).to_vec(), b.get_mut(y).to_vec()), (b"one".to_vec(), b"two!".to_vec()));
        b.release(x);
        let z = keep(&mut b, b"four and more").unwrap();
        assert_eq!((z, b.get_mut(z).to_vec(), b.used()), (x, b"four and more".to_vec(), 2));
    }

    /// Short packets fill all places, and a long one goes through each.
    #[test]
    fn short_packets_do_not_keep_room_for_long_ones() {
        let mut b = Buffers::new(50_000);
        let mut waiting: std::collections::VecDeque<Slot> = (0..50_000).map(|_| b.take().unwrap()).collect();
        waiting.iter().for_each(|slot| b.fill(*slot, &[0; 60]));
        for _ in 0..50_000 {
            for size in [1514, 60] {
                b.release(waiting.pop_front().unwrap());
                let slot = b.take().unwrap();
                b.fill(slot, &vec![0; size]);
                waiting.push_front(slot);
            }
            waiting.rotate_left(1);
        }
        let held: usize = b.places.iter().map(Vec::capacity).sum();
        assert_eq!((held, b.used()), (b.held, 50_000));
        assert!(held < MUCH + 50_000 * 60 * ROOMY, "{held} bytes for {} of packets", 50_000 * 60);
        b.set_most(1);
        assert_eq!(b.places.iter().map(Vec::capacity).sum::<usize>(), b.held);
    }

    #[test]
    fn a_lower_bound_holds_as_soon_as_places_are_released() {
        let mut b = Buffers::new(4);
        let slots: Vec<Slot> = (0..4).map(|_| b.take().unwrap()).collect();
        b.set_most(2);
        slots[..2].iter().for_each(|slot| b.release(*slot));
        assert_eq!((b.take(), b.used()), (None, 2));
        b.release(slots[2]);
        assert!(b.take().is_some());
        assert_eq!((b.take(), b.used()), (None, 2));
    }
}

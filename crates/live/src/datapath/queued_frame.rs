//! A packet in the queue, and what is written into its frame when it leaves.

use inprofile_core::packet::{Colour, Ecn, FlowId, Packet};
use inprofile_core::queue::fifo::Item;
use inprofile_core::units::Time;

use crate::datapath::buffers::Slot;
use crate::datapath::policy::Rewrite;
use crate::packet::{self, Bits};

/// A queued packet. Queues move it about several times, so it is kept small.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedFrame {
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

//! A packet in the queue, and what is written into its frame when it leaves.

use inprofile_core::packet::{Colour, Ecn, FlowId, Packet};
use inprofile_core::queue::fifo::Item;
use inprofile_core::units::Time;

use crate::datapath::buffers::Slot;
use crate::datapath::policy::Paint;
use crate::packet::{self, Headers};

/// A queued packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub packet: Packet,
    /// Of an IP packet: where its DSCP and ECN are.
    pub headers: Option<Headers>,
    pub paint: Paint,
    pub clear_link: bool,
    pub slot: Slot,
    pub number: u64,
    pub since: Time,
    pub customer: Option<u32>,
}

impl Held {
    /// Writes the DSCP that the frame leaves with, CE if a discipline has marked it, and clears its link's classes.
    pub fn write(&self, frame: &mut [u8]) {
        // Most frames have neither tags nor labels.
        if self.clear_link && self.headers.is_none_or(|h| h.link.tags > 0 || h.link.labels > 0) {
            packet::clear_link_classes(frame);
        }
        let Some(headers) = &self.headers else { return };
        match self.paint {
            Paint::Keep => {}
            Paint::Colour(points) => {
                packet::set_dscp(frame, headers, points.of(self.packet.colour));
            }
            Paint::As(dscp) => {
                packet::set_dscp(frame, headers, dscp);
            }
        }
        if self.packet.ecn == Ecn::Experienced && headers.ecn != Ecn::Experienced {
            packet::congestion_experienced(frame, headers);
        }
    }
}

impl Item for Held {
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

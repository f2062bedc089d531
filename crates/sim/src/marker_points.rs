//! Where on a packet's path markers decide: at its own host, and at an edge.

use inprofile_core::packet::Direction;
use inprofile_core::verdict::Mark;

use crate::clock::Clock;
use crate::outcome::VerdictPoint;
use crate::world::World;

impl<C: Clock, const TRACE: bool> World<C, TRACE> {
    /// The flow's own marker decides. False: it dropped the packet.
    #[inline]
    pub(crate) fn mark_at_host(&mut self, flow: u32, slot: u32) -> bool {
        let Some(m) = self.flows[flow as usize].marker.as_mut() else { return true };
        let packet = self.packets.get(slot).packet;
        let verdict = m.decide::<C, TRACE>(self.now, &packet, self.shared.as_mut(), &mut self.notes);
        let colour = match verdict {
            Mark::Pass(colour) => colour,
            Mark::Drop(_) => packet.colour,
        };
        self.flows[flow as usize].counts.leave(colour, packet.size);
        self.apply(verdict, slot, VerdictPoint::Host)
    }

    /// An edge's marker decides on data, and observes acknowledgements. False: it dropped the packet.
    #[inline]
    pub(crate) fn mark_at_edge(&mut self, edge: u32, slot: u32) -> bool {
        let t = self.packets.get(slot);
        let packet = t.packet;
        let m = &mut self.edges[edge as usize];
        if !t.forward() {
            m.marker.observe(self.now.time(), &packet, Direction::Reverse);
            return true;
        }
        let verdict = m.decide::<C, TRACE>(self.now, &packet, self.shared.as_mut(), &mut self.notes);
        self.apply(verdict, slot, VerdictPoint::Edge(edge))
    }

    /// Carries out a marker's verdict. False: the packet was dropped.
    #[inline]
    fn apply(&mut self, verdict: Mark, slot: u32, place: VerdictPoint) -> bool {
        if TRACE {
            let word = match verdict {
                Mark::Pass(colour) => (colour.name(), None),
                Mark::Drop(cause) => ("drop", Some(cause)),
            };
            self.record_verdict(self.now.time(), slot, place, word);
        }
        match verdict {
            Mark::Pass(colour) => {
                self.packets.get_mut(slot).packet.colour = colour;
                true
            }
            Mark::Drop(cause) => {
                self.drop_packet(slot, place, cause, self.now);
                false
            }
        }
    }
}

//! Markers in a run, and where on a packet's path they decide: at its own host, and at an edge.

use inprofile_core::ns2::Moment;
use inprofile_core::packet::{Direction, Packet};
use inprofile_core::registry::AnyMarker;
use inprofile_core::rng::Rng;
use inprofile_core::verdict::{Mark, Notes, Silent};

use crate::clock::Clock;
use crate::outcome::{MarkerCounts, VerdictPoint};
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

/// A marker in a run.
#[derive(Debug)]
pub struct MarkerState {
    /// The mechanism.
    pub marker: AnyMarker,
    /// Its random numbers.
    pub rng: Rng,
    /// Counts since the start of the run.
    pub counts: MarkerCounts,
}

impl MarkerState {
    /// The marker's verdict on a packet, counted. Random numbers are its own, or `shared`.
    #[inline]
    pub fn decide<C: Clock, const TRACE: bool>(
        &mut self,
        clock: C,
        packet: &Packet,
        shared: Option<&mut Rng>,
        notes: &mut Notes,
    ) -> Mark {
        let now = clock.time();
        if C::NS2 {
            self.marker.tell_moment(now, Moment { secs: clock.secs(), idle: 0.0 });
        }
        let (came, size) = (packet.colour as usize, u64::from(packet.size));
        self.counts.arrived[came] += 1;
        self.counts.arrived_bytes[came] += size;
        let rng = shared.unwrap_or(&mut self.rng);
        let verdict = if TRACE {
            notes.clear();
            self.marker.mark(now, packet, rng, notes)
        } else {
            self.marker.mark(now, packet, rng, &mut Silent)
        };
        match verdict {
            Mark::Pass(colour) => {
                self.counts.left[colour as usize] += 1;
                self.counts.left_bytes[colour as usize] += size;
            }
            Mark::Drop(_) => self.counts.dropped[came] += 1,
        }
        verdict
    }
}

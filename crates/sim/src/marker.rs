//! A marker in a run: the mechanism, its random numbers and its counters.

use inprofile_core::ns2::Moment;
use inprofile_core::packet::Packet;
use inprofile_core::registry::AnyMarker;
use inprofile_core::rng::Rng;
use inprofile_core::verdict::{Mark, Notes, Silent};

use crate::clock::Clock;
use crate::outcome::MarkerCounts;

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

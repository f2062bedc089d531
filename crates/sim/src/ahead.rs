//! Reading ahead: what the next packets' events need is read before their turn, so that cache misses overlap.
//!
//! Of many flows, the next packet's is in no near cache: without this, its packet, its flow and its sender would be waited for one after
//! the other.

use std::hint::black_box;

use crate::clock::Clock;
use crate::engine::Run;
use crate::event::EventKind;

impl<C: Clock, const TRACE: bool> Run<C, TRACE> {
    /// Reads what the events up to the next time need, as far as they are arrivals over the busiest link.
    #[inline(never)]
    pub(crate) fn read_ahead(&self) {
        let (world, batch) = (&self.world, self.interval as usize);
        let flow = |kind| Some(world.packets.get(EventKind::arriving(kind)?).packet.flow.0);
        // One value of all that is read: none of the reads is left out, and none waits for another.
        let mut read = 0;
        let sender = |flow: u32| self.senders.touch(flow);
        // Where flows come by turns, what is sent waits, and reaches its receiver at another time.
        if self.by_turns {
            for flow in world.calendar.next_in_order(0..batch).filter_map(flow) {
                read ^= u64::from(world.flows[flow as usize].touch_sender()) ^ sender(flow);
            }
        } else {
            for flow in world.calendar.next_in_order(0..batch).filter_map(flow) {
                let f = &world.flows[flow as usize];
                read ^= u64::from(f.touch_sender() ^ f.touch_receiver()) ^ sender(flow);
            }
        }
        // Whose a packet is, is known once it has been read: next time.
        for flow in world.calendar.next_in_order(batch..2 * batch).filter_map(flow) {
            read ^= u64::from(flow);
        }
        black_box(read);
    }
}

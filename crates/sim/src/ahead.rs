//! Reading ahead: what the next packets' events need is read before their turn, so that cache misses overlap.
//!
//! Of many flows, the next packet's is in no near cache: without this, its packet, its flow and its sender would be waited for one after
//! the other.

use std::hint::black_box;

use crate::clock::Clock;
use crate::engine::{BATCH, Run};
use crate::event::EventKind;
use crate::flow::FlowState;
use crate::traffic::Origin;

impl<C: Clock, const TRACE: bool> Run<C, TRACE> {
    /// Reads what the next [`BATCH`] events need, as far as they are arrivals over the busiest link.
    #[inline(never)]
    pub(crate) fn read_ahead(&self) {
        let world = &self.world;
        let packet = |kind| match EventKind::unpack(kind) {
            EventKind::Arrive(slot) => Some(world.packets.get(slot).packet),
            _ => None,
        };
        for packet in world.calendar.next_in_order(0..BATCH).filter_map(packet) {
            touch_flow(&world.flows[packet.flow.0 as usize]);
            touch_sender(&self.senders[packet.flow.0 as usize]);
        }
        // Whose a packet is, is known once it has been read: next time.
        for packet in world.calendar.next_in_order(BATCH..2 * BATCH).filter_map(packet) {
            black_box(packet.flow);
        }
    }
}

/// Reads from each cache line that every packet touches.
#[inline(always)]
fn touch_flow<C: Clock>(f: &FlowState<C>) {
    black_box(
        u64::from(f.segment)
            ^ u64::from(f.receiver.rcv_nxt())
            ^ f.counts.sent[0]
            ^ f.counts.received_bytes[0],
    );
}

/// Reads from each cache line that every acknowledgement touches.
#[inline(always)]
fn touch_sender<C: Clock>(origin: &Origin<C>) {
    black_box(origin.timers[0].is_set());
    origin.source.touch();
}

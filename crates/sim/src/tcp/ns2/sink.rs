//! The differences of ns-2's receivers (`Agent/TCPSink/DelAck`, `/Sack1`) from the RFCs.

/// SACK blocks an acknowledgement carries, and the receiver remembers (`max_sack_blocks_`).
pub const MAX_SACK_BLOCKS: usize = 3;

/// Whether the acknowledgement of `segment` waits for the next arrival or the timer. `DelAckSink` asks only whether the
/// segment is the last one in order, not whether it is new. `expects`: the next segment the receiver waits for; `gap`:
/// whether it has received any above that; `waiting`: whether an acknowledgement is being delayed already.
pub fn delays_ack(segment: u32, expects: u32, gap: bool, waiting: bool) -> bool {
    !waiting && expects == segment + 1 && !gap && segment != 0
}

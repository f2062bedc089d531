//! ns-2's `Queue/PI`: how it computes Hollot et al.'s controller.
//!
//! - Every arrival that finds room draws a random number, also where the probability is 0 or 1, and goes if that is not above it.
//! - Samples are sums of doubles apart, and the first is one interval after the start.
//! - With `q_ref` in bytes (`queue_in_bytes_`) the limit is so many mean packets in bytes, and a packet joins while fewer wait, whatever
//!   its own size.
//!
//! Source: ns-2.35, queue/pi.cc, by its behaviour. Non-goal: its counts since the last drop, which nothing reads.

use crate::aqm::Unit;
use crate::aqm::pi::Variant;
use crate::rng::Rng;
use crate::units::Backlog;
use crate::verdict::Why;

/// ns-2's variant of PI.
#[derive(Clone, Copy, Debug)]
pub struct QueuePi;

impl Variant for QueuePi {
    fn picks<W: Why + ?Sized>(p: f64, rng: &mut Rng, why: &mut W) -> bool {
        let u = rng.uniform();
        why.note("u", u);
        u <= p
    }

    fn joins_below(limit: Backlog, unit: Unit) -> Option<u64> {
        bytes(limit, unit)
    }
}

/// With the queue in bytes: `limit_` · `mean_pktsize_`.
pub(super) fn bytes(limit: Backlog, unit: Unit) -> Option<u64> {
    unit.packet.map(|mean| match limit {
        Backlog::Packets(n) => (n.floor() * mean) as u64,
        Backlog::Bytes(n) => n as u64,
    })
}

#[cfg(test)]
mod tests;

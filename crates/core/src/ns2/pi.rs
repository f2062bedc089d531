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
mod tests {
    //! The differences of ns-2's PI; the life of a queue in ns-2 itself is in `tests/main.rs`, whole runs in `make validate`.

    use super::*;
    use crate::aqm::pi::{Params, Pi};
    use crate::aqm::{Aqm, At, EARLY};
    use crate::testing::*;

    const CONTEXT: Context = Context { link_rate: None, contract: None, packet: Bytes(1000), limit: None };

    fn params() -> Params {
        Params { w: 170.0, ..crate::aqm::pi::tests::params() }
    }

    fn rng() -> Rng {
        Rng::for_component(1, "pi")
    }

    /// Whether an arrival at this queue takes a number.
    fn draws(pi: &mut Pi<QueuePi>, queue: &mut Fake) -> bool {
        let (mut used, mut fresh) = (rng(), rng());
        pi.arrive(&Packet::default(), At::silent(Time::ZERO, queue, &mut used));
        used.uniform() != fresh.uniform()
    }

    #[test]
    fn every_arrival_that_finds_room_draws() {
        let mut pi = params().discipline(&CONTEXT);
        assert!(draws(&mut pi, &mut Fake::of(0, 0)), "at probability 0, too");
        assert!(!draws(&mut pi, &mut Fake { limit: 5.0, ..Fake::of(5, 0) }));
        pi.controller.sample(10_000);
        assert!(draws(&mut pi, &mut Fake::of(0, 0)), "at probability 1, too");
        // PI itself draws only where that is open.
        let (mut used, mut fresh) = (rng(), rng());
        let packet = Packet::default();
        params().build(&CONTEXT).arrive(&packet, At::silent(Time::ZERO, &mut Fake::of(0, 0), &mut used));
        assert_eq!(used.uniform(), fresh.uniform());
    }

    /// Where PI marks, what can't be marked is dropped all the same.
    #[test]
    fn only_what_can_be_marked_is() {
        let mut pi: Pi<QueuePi> = Params { ecn: true, ..params() }.discipline(&CONTEXT);
        pi.controller.sample(10_000);
        let mut arrive = |ecn| {
            let packet = Packet { ecn, ..Packet::default() };
            pi.arrive(&packet, At::silent(Time::ZERO, &mut Fake::of(5, 0), &mut rng()))
        };
        assert_eq!(arrive(Ecn::NotCapable), Admission::Drop(EARLY));
        assert_eq!(arrive(Ecn::Ect0), Admission::Mark);
    }

    /// With bytes counted the limit is 5 · 500 B: a packet joins while fewer wait, whatever its size.
    #[test]
    fn a_limit_of_packets_counts_in_bytes() {
        let p = Params { q_ref: Backlog::Bytes(1e6), mean_packet: Some(Bytes(500)), ..params() };
        let mut aqm = AnyAqm::Ns2Pi(Box::new(p.discipline(&CONTEXT)));
        let mut queue = Fifo::before(Backlog::Packets(5.0), &aqm);
        let mut joins = |size| {
            let packet = Packet { size, ..Packet::default() };
            let item = Stamped { packet, since: Time::ZERO };
            queue.arrive(Time::ZERO, &packet, item, &mut aqm, &mut rng(), &mut Silent)
        };
        assert_eq!([40; 8].map(&mut joins), [Admission::Admit; 8], "more than five packets");
        assert_eq!(joins(2170), Admission::Admit, "beside 320 B");
        assert_eq!(joins(1500), Admission::Admit, "2,490 B are fewer than 2,500");
        assert_eq!(joins(40), Admission::Drop(Cause::OVERFLOW));
    }

    /// The timer's interval is `1 / w_`, as it comes out in doubles.
    #[test]
    fn the_timer_is_kept_in_doubles() {
        let aqm = AnyAqm::Ns2Pi(Box::new(params().discipline(&CONTEXT)));
        assert_eq!(aqm.timer_secs(), Some(1.0 / 170.0));
        assert_eq!(AnyAqm::Pi(Box::new(params().build(&CONTEXT))).timer_secs(), None);
    }
}

//! Drop-tail: a packet that finds the queue full is dropped; nothing else ever is.
//!
//! Non-goal: fairness. In lockstep with periodic sources it drops the same flows again and again
//! (Floyd and Jacobson 1992), which is what the active disciplines are for.

use crate::aqm::Aqm;
use crate::mechanism::Mechanism;
use crate::packet::Packet;
use crate::params::{Build, Context, Fault, Warning};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::units::{Backlog, Time};
use crate::verdict::{Admission, Cause, Why};

crate::choice! {
    /// How many packets a limit of n packets lets wait.
    pub enum LimitRule {
        /// n packets wait, and one more is in transmission.
        Waiting = "waiting",
        /// ns-2's DropTail: n − 1 packets wait, and one more is in transmission.
        Ns2 = "ns2",
    }
}

crate::params! {
    /// What an operator sets: beside the queue's limit, only how to read it.
    pub struct Params {
        /// Whether a limit of n packets holds n waiting packets (`waiting`), or n − 1 as in ns-2 (`ns2`). Left out under `[tcp] profile = "ns2"`, a limit in packets is read as `ns2`, in any engine.
        limit_rule: LimitRule = LimitRule::Waiting;
    }
}

/// The discipline. It has no state.
#[derive(Clone, Debug)]
pub struct DropTail {
    rule: LimitRule,
}

impl Default for DropTail {
    fn default() -> DropTail {
        DropTail { rule: LimitRule::Waiting }
    }
}

impl Build for Params {
    type Mechanism = DropTail;

    fn check(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        match (self.limit_rule, context.limit) {
            (LimitRule::Ns2, Some(Backlog::Packets(n))) if n < 2.0 => Err(Fault {
                field: "limit_rule",
                problem: format!("with limit_rule = \"ns2\" a limit of {n} packets drops everything"),
                remedy: "a limit of at least 2 packets".into(),
            }),
            (LimitRule::Ns2, Some(Backlog::Bytes(_))) => Err(Fault {
                field: "limit_rule",
                problem: "limit_rule = \"ns2\" is about packets, the limit is in bytes".into(),
                remedy: "a limit in packets, or limit_rule = \"waiting\"".into(),
            }),
            _ => Ok(Vec::new()),
        }
    }

    fn build(&self, _: &Context) -> DropTail {
        DropTail { rule: self.limit_rule }
    }
}

impl Mechanism for DropTail {
    fn keeps_time(&self) -> bool {
        false
    }

    fn sees_reverse(&self) -> bool {
        false
    }
}

impl Aqm for DropTail {
    #[inline]
    fn arrive<Q: Queue + ?Sized, W: Why + ?Sized>(
        &mut self,
        _: Time,
        packet: &Packet,
        queue: &mut Q,
        _: &mut Rng,
        why: &mut W,
    ) -> Admission {
        why.note("packets", f64::from(queue.packets()));
        let room = match (self.rule, queue.limit()) {
            (LimitRule::Ns2, Backlog::Packets(n)) => f64::from(queue.packets()) + 1.0 < n,
            _ => queue.fits(packet.size),
        };
        if room { Admission::Admit } else { Admission::Drop(Cause::OVERFLOW) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::fake::Fake;
    use crate::rng::Rng;
    use crate::units::Bytes;
    use crate::verdict::Silent;

    /// How many of ten packets find room in a queue of this limit.
    fn room(rule: LimitRule, limit: f64) -> u32 {
        let mut aqm = DropTail { rule };
        let mut rng = Rng::for_component(1, "unused");
        let admitted = |waiting| {
            let mut queue = Fake { limit, ..Fake::of(waiting, 0) };
            let verdict = aqm.arrive(Time::ZERO, &Packet::default(), &mut queue, &mut rng, &mut Silent);
            assert!(matches!(verdict, Admission::Admit | Admission::Drop(Cause::OVERFLOW)));
            verdict == Admission::Admit
        };
        (0..10).map(admitted).filter(|a| *a).count() as u32
    }

    #[test]
    fn a_limit_of_four_holds_four_and_ns2s_three() {
        assert_eq!(room(LimitRule::Waiting, 4.0), 4);
        assert_eq!(room(LimitRule::Ns2, 4.0), 3);
    }

    #[test]
    fn a_limit_that_drops_everything_is_refused() {
        let check = |limit_rule, limit| {
            let context =
                Context { link_rate: None, contract: None, packet: Bytes(1000), limit: Some(limit) };
            Params { limit_rule }.check(&context).map_err(|f| f.field)
        };
        assert_eq!(check(LimitRule::Ns2, Backlog::Packets(1.0)), Err("limit_rule"));
        assert_eq!(check(LimitRule::Ns2, Backlog::Bytes(9e9)), Err("limit_rule"));
        assert_eq!(check(LimitRule::Ns2, Backlog::Packets(2.0)), Ok(Vec::new()));
        assert_eq!(check(LimitRule::Waiting, Backlog::Bytes(9e9)), Ok(Vec::new()));
    }
}

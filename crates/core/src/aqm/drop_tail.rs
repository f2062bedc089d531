//! Drop-tail: a packet that finds the queue full is dropped; nothing else is.
//!
//! Non-goal: fairness. With periodic sources the same flows lose packets again and again (phase effects, Floyd and
//! Jacobson 1992), which active queue management avoids.

use crate::prelude::*;

crate::params! {
    /// The operator's settings beside the queue's limit: none.
    pub struct Params {}
}

/// The discipline. It has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropTail {
    /// Whether a limit in packets counts the one in transmission, too.
    with_sending: bool,
}

impl DropTail {
    /// One whose limit in packets counts the packet in transmission: of n packets n − 1 wait.
    #[must_use]
    pub fn with_the_one_in_transmission() -> DropTail {
        DropTail { with_sending: true }
    }
}

impl Build for Params {
    type Mechanism = DropTail;

    fn build(&self, _: &Context) -> DropTail {
        DropTail::default()
    }
}

impl Mechanism for DropTail {}

impl Aqm for DropTail {
    #[inline]
    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        at.why.note("packets", f64::from(at.queue.packets()));
        let room = match at.queue.limit() {
            Backlog::Packets(n) if self.with_sending => at.queue.backlog() + 1.0 < n,
            _ => at.queue.fits(packet.size),
        };
        if room { Admission::Admit } else { Admission::Drop(Cause::OVERFLOW) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    /// How many of ten packets find room in a queue of this limit.
    fn room(mut aqm: DropTail, limit: f64) -> u32 {
        let mut rng = Rng::for_component(1, "unused");
        let admitted = |waiting| {
            let mut queue = Fake { limit, ..Fake::of(waiting, 0) };
            let verdict = aqm.arrive(&Packet::default(), At::silent(Time::ZERO, &mut queue, &mut rng));
            assert!(matches!(verdict, Admission::Admit | Admission::Drop(Cause::OVERFLOW)));
            verdict == Admission::Admit
        };
        (0..10).map(admitted).filter(|a| *a).count() as u32
    }

    #[test]
    fn a_limit_of_four_holds_four_or_with_the_one_in_transmission_three() {
        assert_eq!(room(DropTail::default(), 4.0), 4);
        assert_eq!(room(DropTail::with_the_one_in_transmission(), 4.0), 3);
    }
}

//! ns-2's `Queue/REM`: how it computes Athuraliya et al.'s price and what it does with it.
//!
//! - A packet that would fill the queue is dropped, so of a limit of n packets n − 1 wait; with `b_star` in bytes (`qib_`) the limit is so
//!   many mean packets in bytes.
//! - Every arrival that finds room draws a random number, also where the probability is 0, and goes if that is not above it. With bytes
//!   counted its chance is scaled by its size.
//! - With marks (`markpkts_`) no arrival draws and none is dropped early: each departure draws, and what can't be marked leaves as it came.
//!
//! Source: ns-2.35, queue/rem.cc, by its behaviour. There a departure with marks also draws where nothing waits; not here.

use crate::aqm::EARLY;
use crate::aqm::rem::{LinkPrice, Mismatch, Params};
use crate::ns2::pi::bytes;
use crate::prelude::*;

/// The size as which ns-2 counts a waiting packet too many.
pub const ALPHA: f64 = 0.1;

/// Whether ns-2 has a word for these settings.
///
/// # Errors
/// If not, or if everything would be dropped.
pub fn check(params: &Params, context: &Context) -> Result<Vec<Warning>, Fault> {
    let fault = |field, problem: String, remedy: &str| Err(Fault { field, problem, remedy: remedy.into() });
    if params.alpha != ALPHA {
        return fault("alpha", format!("alpha is {ALPHA} in ns-2, not {}", params.alpha), "no alpha");
    }
    if params.mismatch != Mismatch::Rate {
        return fault("mismatch", "ns-2 compares rates".into(), "mismatch = \"rate\"");
    }
    match (params.b_star, context.limit) {
        (Backlog::Packets(_), Some(Backlog::Packets(n))) if n < 2.0 => fault(
            "variant",
            format!("with a limit of {n} packets ns-2's REM drops everything"),
            "a limit of at least 2 packets",
        ),
        (Backlog::Packets(_), Some(limit @ Backlog::Bytes(_))) => fault(
            "b_star",
            format!("ns-2's REM counts packets where b_star is in packets, and the limit is {limit}"),
            "a limit in packets, or b_star in bytes",
        ),
        _ => params.check(context),
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Rem {
    link: LinkPrice,
    every: Duration,
    /// `markpkts_`.
    marks: bool,
    /// Packets or bytes that wait.
    waiting: u64,
    /// Whether an interval has begun.
    begun: bool,
}

impl Rem {
    /// As set.
    #[must_use]
    pub fn new(params: &Params, context: &Context) -> Rem {
        let Params { t_update, ecn, .. } = *params;
        Rem { link: params.link_price(context), every: t_update, marks: ecn, waiting: 0, begun: false }
    }

    /// Seconds between updates.
    #[must_use]
    pub fn interval(&self) -> f64 {
        self.every.secs()
    }

    /// Whether a packet of this size is chosen.
    fn chooses<W: Why + ?Sized>(&self, size: u32, rng: &mut Rng, why: &mut W) -> bool {
        let p = self.link.unit.packet.map_or(self.link.p(), |mean| self.link.p() * f64::from(size) / mean);
        let u = rng.uniform();
        why.note("drop_prob", p);
        why.note("u", u);
        u <= p
    }
}

impl Mechanism for Rem {
    fn keeps_time(&self) -> bool {
        true
    }

    fn tick(&mut self, now: Time, _: &mut Outbox) -> Option<Time> {
        if self.begun {
            self.link.update(self.waiting);
        }
        self.begun = true;
        Some(now + self.every)
    }

    fn gauges(&self, _: Time, show: Gauge<'_>) {
        self.link.show(show);
    }
}

impl Aqm for Rem {
    fn serves(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.marks
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        self.link.count(packet.size);
        let with_it = self.link.unit.length(at.queue) + self.link.unit.added_by(packet.size);
        let full = match (bytes(at.queue.limit(), self.link.unit), at.queue.limit()) {
            (Some(limit), _) => with_it >= limit,
            (None, Backlog::Packets(n)) => with_it as f64 >= n.floor(),
            (None, Backlog::Bytes(_)) => !at.queue.fits(packet.size),
        };
        if full {
            return Admission::Drop(Cause::OVERFLOW);
        }
        if !self.marks && self.chooses(packet.size, at.rng, at.why) {
            return Admission::Drop(EARLY);
        }
        self.waiting = with_it;
        Admission::Admit
    }

    fn depart(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        self.waiting = self.link.unit.length(at.queue);
        if self.marks && self.chooses(packet.size, at.rng, at.why) && packet.ecn.can_mark() {
            return Departure::Mark;
        }
        Departure::Send
    }

    fn joins_below(&self, limit: Backlog) -> Option<u64> {
        bytes(limit, self.link.unit)
    }
}

#[cfg(test)]
mod tests {
    //! The differences of ns-2's REM, by hand and against a slow form of it; the life of a queue in ns-2 itself is in `tests/main.rs`, whole runs in `make validate`.
    use super::*;
    use crate::aqm::rem::oracle::{self, Bench, Oracle, Step};
    use crate::testing::*;

    fn params() -> Params {
        Params {
            b_star: Backlog::Packets(20.0),
            gamma: 0.5,
            alpha: ALPHA,
            phi: 1.5,
            t_update: Duration::from_millis(2),
            mismatch: Mismatch::Rate,
            in_weight: 1.0,
            ecn: false,
            mean_packet: None,
        }
    }

    fn rng() -> Rng {
        Rng::for_component(1, "rem")
    }

    /// One whose price is so high that nothing passes.
    fn certain(p: &Params) -> Rem {
        let mut rem = Rem::new(p, &CONTEXT);
        rem.link.update(1_000_000_000);
        assert_eq!(rem.link.p(), 1.0);
        rem
    }

    fn arrive(rem: &mut Rem, queue: &mut Fake, rng: &mut Rng) -> Admission {
        let packet = Packet { size: 1000, ..Packet::default() };
        rem.arrive(&packet, At::silent(Time::ZERO, queue, rng))
    }

    fn depart(rem: &mut Rem, ecn: Ecn, rng: &mut Rng) -> Departure {
        let packet = Packet { size: 1000, ecn, ..Packet::default() };
        rem.depart(&packet, At::silent(Time::ZERO, &mut Fake::of(1, 0), rng).since(Time::ZERO))
    }

    #[test]
    fn every_arrival_that_finds_room_draws() {
        let mut rem = Rem::new(&params(), &CONTEXT);
        let (mut used, mut fresh) = (rng(), rng());
        assert_eq!(arrive(&mut rem, &mut Fake::of(0, 0), &mut used), Admission::Admit);
        fresh.uniform();
        let mut full = Fake { limit: 5.0, ..Fake::of(4, 0) };
        assert_eq!(arrive(&mut rem, &mut full, &mut used), Admission::Drop(Cause::OVERFLOW), "of 5, 4 wait");
        assert_eq!(depart(&mut rem, Ecn::Ect0, &mut used), Departure::Send);
        assert_eq!(used.uniform(), fresh.uniform());
        assert_eq!(arrive(&mut certain(&params()), &mut Fake::of(3, 0), &mut used), Admission::Drop(EARLY));
    }

    /// `markpkts_`: departures draw, arrivals don't, and what can't be marked passes.
    #[test]
    fn marks_are_made_at_departure() {
        let mut rem = certain(&Params { ecn: true, ..params() });
        let (mut used, mut fresh) = (rng(), rng());
        assert_eq!(arrive(&mut rem, &mut Fake::of(3, 0), &mut used), Admission::Admit);
        assert_eq!(depart(&mut rem, Ecn::Ect0, &mut used), Departure::Mark);
        assert_eq!(depart(&mut rem, Ecn::NotCapable, &mut used), Departure::Send);
        fresh.uniform();
        fresh.uniform();
        assert_eq!(used.uniform(), fresh.uniform());
    }

    /// With bytes counted the limit is so many packets of the mean size, the arrival included, and chances scale with size.
    #[test]
    fn bytes_count_against_the_limit() {
        let p = Params { b_star: Backlog::Bytes(1e6), mean_packet: Some(Bytes(2000)), ..params() };
        let mut rem = Rem::new(&p, &CONTEXT);
        let mut queue = Fake { limit: 2.0, ..Fake::of(2, 0) };
        assert_eq!(rem.joins_below(Backlog::Packets(2.0)), Some(4000));
        assert_eq!(arrive(&mut rem, &mut queue, &mut rng()), Admission::Admit, "3,000 B with it");
        queue.packets[0] = 3;
        assert_eq!(arrive(&mut rem, &mut queue, &mut rng()), Admission::Drop(Cause::OVERFLOW), "4,000 B");
        // A thousand packets of half the mean size at probability 1: about half of them go.
        let (mut rem, mut rng) = (certain(&p), rng());
        let gone = (0..1000)
            .filter(|_| arrive(&mut rem, &mut Fake::of(0, 0), &mut rng) == Admission::Drop(EARLY))
            .count();
        assert!((450..550).contains(&gone), "{gone}");
    }

    /// Whether ns-2 chooses a packet: it always draws, and with bytes counted a chance is for a packet of the mean size.
    fn chosen(oracle: &Oracle, size: u32, rng: &mut Rng) -> bool {
        let packets = if oracle.in_bytes() { f64::from(size) / f64::from(oracle::MEAN) } else { 1.0 };
        rng.uniform() <= oracle.probability() * packets
    }

    proptest! {
        /// Verdict by verdict and price by price, with ns-2's limit, draws and marks.
        #[test]
        fn as_a_sum_over_what_came_and_waited(p in oracle::settings(), steps in oracle::life(), seed: u64) {
            let rng = || Rng::for_component(seed, "rem");
            let mut b = Bench::new(AnyAqm::Ns2Rem(Box::new(Rem::new(&p, &oracle::CONTEXT))), rng());
            let (mut oracle, mut theirs) = (Oracle::new(&p), rng());
            for step in steps {
                match step {
                    Step::Comes(size, ecn) => {
                        oracle.comes(size);
                        let (packets, limit) = (oracle.waiting.len() as u32, oracle::LIMIT);
                        let bytes: u32 = oracle.waiting.iter().map(|(size, _)| *size).sum();
                        let full = if oracle.in_bytes() {
                            bytes + size >= limit * oracle::MEAN
                        } else {
                            packets + 1 >= limit
                        };
                        let expected = if full {
                            Admission::Drop(Cause::OVERFLOW)
                        } else if !p.ecn && chosen(&oracle, size, &mut theirs) {
                            Admission::Drop(EARLY)
                        } else {
                            oracle.waiting.push((size, ecn));
                            Admission::Admit
                        };
                        prop_assert_eq!(b.arrive(size, ecn), expected);
                    }
                    Step::Leaves => {
                        let mut expected = (!oracle.waiting.is_empty()).then(|| oracle.waiting.remove(0));
                        if let Some((size, ecn)) = expected.as_mut().filter(|_| p.ecn)
                            && chosen(&oracle, *size, &mut theirs)
                            && *ecn == Ecn::Ect0
                        {
                            *ecn = Ecn::Experienced;
                        }
                        prop_assert_eq!(b.depart(), expected);
                    }
                    Step::Ends => {
                        b.tick();
                        oracle.ends();
                        prop_assert!((b.gauge("price") - oracle.price()).abs() < 1e-9);
                        prop_assert!((b.gauge("drop_prob") - oracle.probability()).abs() < 1e-12);
                    }
                }
            }
        }
    }

    #[test]
    fn what_ns2_has_no_word_for_is_refused() {
        let limit = |limit| Context { limit: Some(limit), ..CONTEXT };
        let field = |p: &Params, c: &Context| check(p, c).map_err(|fault| fault.field);
        assert_eq!(field(&Params { alpha: 0.2, ..params() }, &CONTEXT), Err("alpha"));
        assert_eq!(field(&Params { mismatch: Mismatch::Backlog, ..params() }, &CONTEXT), Err("mismatch"));
        assert_eq!(field(&params(), &limit(Backlog::Packets(1.0))), Err("variant"));
        assert_eq!(field(&params(), &limit(Backlog::Bytes(9e9))), Err("b_star"));
        let in_bytes = Params { b_star: Backlog::Bytes(3000.0), ..params() };
        assert_eq!(field(&in_bytes, &limit(Backlog::Bytes(9e9))), Ok(Vec::new()));
    }
}

//! The differences of ns-2's REM, by hand and against a slow form of it; the life of a queue in ns-2 itself is in `tests/ns2_queues.rs`, whole runs in `make validate`.

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::aqm::rem::oracle::{self, Bench, Oracle, Step};
use crate::packet::Ecn;
use crate::queue::fake::Fake;
use crate::registry::AnyAqm;
use crate::units::{Bytes, Rate};
use crate::verdict::Silent;

/// 1,000 packets of 1,000 B a second.
const CONTEXT: Context =
    Context { link_rate: Some(Rate(8_000_000)), contract: None, packet: Bytes(1000), limit: None };

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
    rem.law.update(1_000_000_000);
    assert_eq!(rem.law.p(), 1.0);
    rem
}

fn arrive(rem: &mut Rem, queue: &mut Fake, rng: &mut Rng) -> Admission {
    let packet = Packet { size: 1000, ..Packet::default() };
    rem.arrive(Time::ZERO, &packet, queue, rng, &mut Silent)
}

fn depart(rem: &mut Rem, ecn: Ecn, rng: &mut Rng) -> Departure {
    let packet = Packet { size: 1000, ecn, ..Packet::default() };
    rem.depart(Time::ZERO, &packet, Time::ZERO, &mut Fake::of(1, 0), rng, &mut Silent)
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

use super::*;
use crate::aqm::Aqm;
use crate::aqm::red::common::{Common, Thresholds};
use crate::aqm::red::rio::{AvgUpdate, Params, Rio};
use crate::packet::{Colour, Packet};
use crate::params::Context;
use crate::queue::fake::Fake;
use crate::units::{Backlog, Bytes, Rate};
use crate::verdict::Silent;
use Colour::{Green as I, Yellow as O};

const MS: u64 = 1_000_000_000;

/// RIO with the fault at 1,000 packets a second, w_q = ½.
fn rio<R: UpdateAtIn>() -> Rio<AtInOnly<R>> {
    let packets =
        |min, max| Thresholds { min_th: Backlog::Packets(min), max_th: Backlog::Packets(max), max_p: 0.05 };
    let p = Params {
        r#in: packets(45.0, 60.0),
        out: packets(20.0, 40.0),
        avg_update: AvgUpdate::ClarkFang,
        byte_scaled: false,
        count: crate::aqm::rio::Counted::Own,
        watch: false,
        common: Common { w_q: 0.5, ..crate::params::defaults() },
    };
    let context =
        Context { link_rate: Some(Rate(8_000_000)), contract: None, packet: Bytes(1000), limit: None };
    p.discipline(&context)
}

/// avg_in and avg_total after an arrival.
fn after<R: UpdateAtIn>(rio: &mut Rio<AtInOnly<R>>, at: u64, colour: Colour, mut queue: Fake) -> [f64; 2] {
    let packet = Packet { size: 1000, colour, ..Packet::default() };
    rio.arrive(Time(at), &packet, &mut queue, &mut Rng::for_component(1, "rio"), &mut Silent);
    rio.law.vars.avg
}

#[test]
fn averages_sleep_through_out_arrivals() {
    fn both<R: UpdateAtIn>() {
        let mut rio = rio::<R>();
        assert_eq!(after(&mut rio, 0, O, Fake::of(8, 4)), [0.0, 0.0]);
        assert_eq!(after(&mut rio, 0, I, Fake::of(8, 4)), [4.0, 6.0]);
    }
    both::<Ns2Rio>();
    both::<Floyd93>();
}

/// IN's average ages from where the idle stretch began to the IN packet.
#[test]
fn an_idle_stretch_that_an_out_packet_ended_ages_the_average_of_in() {
    let mut rio = rio::<Ns2Rio>();
    assert_eq!(after(&mut rio, 0, I, Fake::of(16, 16)), [8.0, 16.0]);
    let idle = Fake { idle: Some(Time(10 * MS)), ..Fake::of(0, 0) };
    assert_eq!(after(&mut rio, 12 * MS, O, idle), [8.0, 16.0]);
    // 3.5 ms since the stretch began: three packets and this one for IN, this one alone for the total.
    assert_eq!(after(&mut rio, 13 * MS + MS / 2, I, Fake::of(0, 0)), [0.5, 8.0]);
    // Seen once.
    assert_eq!(after(&mut rio, 20 * MS, I, Fake::of(0, 0))[IN], 0.25);
}

/// In Floyd and Jacobson's arithmetic the same stretch is 3.5 packets, and no sample of IN's average.
#[test]
fn in_doubles_it_ages_by_parts_of_packets() {
    let mut rio = rio::<Floyd93>();
    assert_eq!(after(&mut rio, 0, I, Fake::of(16, 16)), [8.0, 16.0]);
    let idle = Fake { idle: Some(Time(10 * MS)), ..Fake::of(0, 0) };
    assert_eq!(after(&mut rio, 12 * MS, O, idle), [8.0, 16.0]);
    let [ins, total] = after(&mut rio, 13 * MS + MS / 2, I, Fake::of(0, 0));
    assert!((ins - 8.0 * libm::pow(0.5, 3.5)).abs() < 1e-9 && total == 8.0, "{ins} {total}");
}

//! Meters alone. Token buckets against an oracle in whole numbers: what leaves as IN, packet by packet, in the long run and over every
//! stretch. TSW2CM and TSW3CM against the core's law. `parity.rs` compares token buckets with the core's, through the router.

use inprofile_core::rng::Rng;
use inprofile_core::units::Time;

use crate::frames::Ip;
use crate::oracle::Oracle;
use crate::tried::{Tried, config, permitted};
use inprofile_core::marker::tsw_whole::{self, State};
use inprofile_router::kernel::layout::ESTIMATE;
use inprofile_router::kernel::places;

/// Bits per second.
const CONTRACTS: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
const DEPTH: u64 = 9_000;
const FRAMES: u64 = 400;
/// Meters with one bucket for what is IN.
const METERS: [(&str, &str); 4] = [
    ("token_bucket", "kind = \"token_bucket\", depth = \"9000 B\""),
    ("srtcm", "kind = \"srtcm\", cbs = \"9000 B\", ebs = \"9000 B\""),
    ("trtcm", "kind = \"trtcm\", cbs = \"9000 B\", pbs = \"9000 B\", pir = \"5 Gbit/s\""),
    ("rfc4115", "kind = \"rfc4115\", cbs = \"9000 B\", ebs = \"9000 B\", eir = \"1 Mbit/s\""),
];

fn file(contract: u64, meter: &str) -> String {
    format!(
        "[upstream]\n[[upstream.customers]]\nname = \"alice\"\nprefix = \"10.0.0.1\"\ncontract = \"{contract} bit/s\"\nmarker = {{ {meter} }}\n"
    )
}

/// The decision on each packet is the oracle's, to the grain: what fits is IN, and nothing else.
#[test]
fn every_packet_that_fits_is_in_and_no_other() {
    if !permitted() {
        return;
    }
    for contract in CONTRACTS {
        for (name, meter) in METERS {
            let mut kernel = Tried::new(&config(&file(contract, meter)));
            let (mut oracle, mut rng) = (Oracle::new(contract), Rng::for_component(contract, name));
            let (mut now, mut inside, start) = (1_000u64, 0, 1_000);
            for n in 0..FRAMES {
                let bytes = [29, 64, 576, 1_499, 1_500, 3_000][(rng.uniform() * 6.0) as usize];
                let full = bytes as u64 * 8_000_000_000 / contract;
                now += match n % 50 {
                    // A burst, a day of silence, and else about twice the rate.
                    0..15 => 0,
                    49 => 86_400_000_000_000,
                    _ => (full as f64 * rng.uniform()) as u64,
                };
                let frame = Ip { bytes, ..Ip::default() }.frame();
                let out = kernel.arrive(Time(now * 1_000), 0, &frame.0).expect("marked, not dropped");
                let green = out[15] >> 2 == 10;
                let fits = oracle.fits(Time(now * 1_000), bytes as u64, DEPTH);
                assert_eq!(green, fits, "{name} at {contract} bit/s, packet {n} of {bytes} B");
                if green {
                    oracle.see(Time(now * 1_000), bytes as u64);
                    inside += bytes as u64;
                }
            }
            assert!(oracle.most() <= DEPTH as f64);
            println!(
                "{name:<13} {:>5} Mbit/s: {FRAMES} decisions as the oracle's, {inside} B IN in {} s",
                contract / 1_000_000,
                (now - start) / 1_000_000_000
            );
        }
    }
}

/// TSW2CM and TSW3CM against the core's law in whole numbers: colour and estimate, to the bit; how far that law may be from the one in
/// floating point, the core's own tests say. One after the other by reloads, with a bucket in between, which begins empty.
#[test]
fn estimated_rates_are_coloured_as_by_the_core() {
    if !permitted() {
        return;
    }
    let laws: [(&str, Option<u64>, u64, bool); 4] = [
        ("kind = \"tsw2cm\"", None, 1_000_000_000, false),
        ("kind = \"tsw2cm\", win_length = \"20 ms\", excess = \"all\"", None, 20_000_000, true),
        (
            "kind = \"tsw3cm\", ptr = \"10200 kbit/s\", win_length = \"10 s\"",
            Some(10_200_000),
            10_000_000_000,
            false,
        ),
        ("kind = \"tsw3cm\", ptr = \"15 Mbit/s\", win_length = \"1 ms\"", Some(15_000_000), 1_000_000, false),
    ];
    let ctr = 10_000_000;
    let mut kernel = Tried::new(&config(&file(ctr, METERS[0].1)));
    let place = kernel.maps.places(0).get(&places::of_customer("alice")).unwrap();
    let (mut rng, mut now) = (Rng::for_component(3, "tsw"), 1_000u64);
    for (meter, ptr, window, all) in laws {
        kernel.maps.apply(&config(&file(ctr, METERS[0].1)), now).unwrap();
        let frame = Ip { bytes: 1_500, ..Ip::default() }.frame().0;
        kernel.arrive(Time(now * 1_000), 0, &frame).unwrap();
        let bucket = kernel.maps.account(0, place).unwrap();
        assert!(bucket.rate[0] == ctr && bucket.tokens[0] <= DEPTH * 8_000_000_000, "{bucket:?}");
        kernel.maps.apply(&config(&file(ctr, meter)), now).unwrap();
        let settings = tsw_whole::Settings { ctr, ptr, window, all };
        let (mut state, mut colours) = (State::new(&settings, now), [0; 3]);
        for n in 0..1_500 {
            let bytes = [29, 64, 576, 1_499, 1_500, 3_000][(rng.uniform() * 6.0) as usize];
            // A long window is filled; a short one now and then.
            let load = if window >= 1_000_000_000 || n % 200 < 100 { 10.0 } else { 0.3 };
            now += match n {
                0..15 => 0,
                1_400 => 86_400_000_000_000,
                _ => (rng.uniform() * 2.0 * bytes as f64 * 8e9 / (load * ctr as f64)) as u64,
            };
            kernel.random = (rng.uniform() * 4_294_967_296.0) as u32;
            let frame = Ip { bytes, ..Ip::default() }.frame().0;
            let out = kernel.arrive(Time(now * 1_000), 0, &frame).expect("marked, not dropped");
            let rate = tsw_whole::packet(window, &mut state, now, bytes as u32);
            let colour = tsw_whole::colour(&settings, rate, kernel.random) as usize;
            assert_eq!(out[15] >> 2, [10, 12, 14][colour], "{meter}, packet {n} of {bytes} B");
            colours[colour] += 1;
            if n % 50 == 0 {
                let account = kernel.maps.account(0, place).unwrap();
                assert_eq!(
                    (account.tokens[0], account.at, account.rate[0]),
                    (rate, now, ESTIMATE),
                    "{meter}, packet {n}"
                );
            }
        }
        assert!(
            colours[..2].iter().all(|n| *n > 20) && (colours[2] > 0) == ptr.is_some(),
            "{meter}: {colours:?}"
        );
        println!("{meter}: 1500 colours as the core's, {colours:?}");
    }
}

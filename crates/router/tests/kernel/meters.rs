//! What leaves as IN against the oracle in whole numbers: in the long run and over every stretch.

use inprofile_core::rng::Rng;
use inprofile_core::units::Time;

use crate::frames::Ip;
use crate::oracle::Oracle;
use crate::tried::{Tried, config, permitted};

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

//! Any bytes as a router's file: no panic; every problem says where and what; what is accepted can be shown, written as
//! tc's lines, set up, and reconfigured while packets wait, and its accounts add up.

#![cfg_attr(fuzzing, no_main)]

use inprofile_core::registry::Registry;
use inprofile_core::units::Time;
use inprofile_live::packet::Layer;
use inprofile_router::config::{Config, describe, parse};
use inprofile_router::interchange::export;
use inprofile_router::router::Router;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| run(bytes, &Registry::default()));

/// The most flows that are told apart: tables of millions take longer than all the rest.
const FLOWS: u32 = 64;
/// Frames at each port, and the picoseconds between two.
const FRAMES: u64 = 20;
const APART: u64 = 10_000_000;

pub fn run(bytes: &[u8], registry: &Registry) {
    match parse(bytes, "x.toml", registry) {
        Ok((config, warnings)) => {
            assert!(warnings.iter().all(|w| w.line.is_some() && !w.problem.is_empty()), "{warnings:?}");
            assert!(!describe::text(&config).is_empty());
            let _ = export::tc(&config);
            forward(Config { flows: config.flows.min(FLOWS), ..config });
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            for p in problems {
                assert!(!p.problem.is_empty() && p.line.is_some(), "no reason or no line: {p}");
            }
        }
    }
}

/// Frames at both ports; in the midst of them the same file is read again.
fn forward(config: Config) {
    let again = config.clone();
    let mut router = Router::new(config, Layer::Ip, 1);
    for n in 0..2 * FRAMES {
        let now = Time(n / 2 * APART);
        if n == FRAMES {
            router = router.reconfigure(again.clone(), Layer::Ip, 1, now);
        }
        router.advance(now);
        router.arrive(now, (n & 1) as usize, Layer::Ip, &mut frame(n as u8));
    }
    router.advance(Time(2 * FRAMES * APART));
    router.check().expect("the accounts add up");
}

/// A datagram of IPv4 from 10.0.1.n to 10.0.1.255: every DSCP in turn, short and long ones.
fn frame(n: u8) -> Vec<u8> {
    let size = if n.is_multiple_of(3) { 1500u16 } else { 60 };
    let mut frame = vec![0; usize::from(size)];
    frame[..2].copy_from_slice(&[0x45, n << 2]);
    frame[2..4].copy_from_slice(&size.to_be_bytes());
    frame[8..10].copy_from_slice(&[64, 17]);
    frame[12..20].copy_from_slice(&[10, 0, 1, n, 10, 0, 1, 255]);
    frame
}

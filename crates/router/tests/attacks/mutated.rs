//! Random frames, and good ones of every encapsulation with some bytes changed, through both directions of a router with a bit
//! of everything: nothing panics, every frame is accounted for, and what leaves has a code point that was bought.

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Time};
use inprofile_live::packet::Layer;
use inprofile_router::router::Router;

use crate::bench;
use crate::frames::{good, mutate, random};

const FILE: &str = r#"
inside = "a"
outside = "b"
flows = 256
frames.unreadable = "best_effort"
overhead = "38 B"
mpu = "84 B"
[upstream]
rate = "20 Mbit/s"
queue = { aqm = "rio", limit = "100 packets", ecn = true, in = { min_th = "45 packets", max_th = "60 packets", max_p = 0.02 }, out = { min_th = "10 packets", max_th = "30 packets", max_p = 0.1 } }
best_effort = { aqm = "red", limit = "50 ms", min_th = "5 packets", max_th = "15 packets", max_p = 0.1, ecn = true }
aggregate = { kind = "ard", tpr_max = "9 Mbit/s", bucket = "60 packets", t_rd = "15 packets", max_rem = 0.5, p_drop = 0.02, interval = "10 s" }
[[upstream.classes]]
name = "voice"
dscp = ["EF"]
aqm = "drop_tail"
limit = "50 packets"
rate = "5 Mbit/s"
[[upstream.customers]]
name = "alice"
prefix = ["10.0.0.1", "2001:db8::1"]
contract = "2 Mbit/s"
marker = { kind = "srtcm", cbs = "15 kB", ebs = "15 kB" }
services = [{ class = "voice", rate = "1 Mbit/s", burst = "3 kB" }]
[[upstream.customers]]
name = "bob"
prefix = ["10.0.0.0/24", "2001:db8::/32"]
contract = "2 Mbit/s"
marker = { kind = "tsw3cm", ptr = "3 Mbit/s" }
[downstream]
role = "core"
rate = "20 Mbit/s"
queue = { aqm = "fdd_red", limit = "100 packets", min_th = "15 packets", max_th = "50 packets", max_p = 0.1 }
aggregate = { kind = "twam" }
[[downstream.customers]]
name = "all"
prefix = ["0.0.0.0/0", "::/0"]
contract = "10 Mbit/s"
marker = { kind = "token_bucket", depth = "30 kB" }
"#;

/// Frames of each kind: mutated and random.
fn cases() -> u64 {
    match std::env::var("PACKETS") {
        Ok(n) => n.parse().expect("PACKETS is a number"),
        Err(_) => 20_000,
    }
}

/// Runs so many through; the DSCP of each IP packet that leaves upstream, as a reader of the test's own finds it in plain frames.
fn flood(make: fn(&mut Rng) -> Vec<u8>, seed: u64) {
    let mut rng = Rng::for_component(seed, "mutated");
    let mut router = Router::new(bench::config(FILE), Layer::Ethernet, seed);
    let (mut now, mut left) = (Time::ZERO, [0u64; 2]);
    for n in 0..cases() {
        let mut frame = make(&mut rng);
        now += Duration((rng.uniform() * 1e8) as u64);
        router.set_present(now);
        router.arrive(now, (n % 2) as usize, Layer::Ethernet, &mut frame);
        for (lane, left) in router.lanes.iter_mut().zip(&mut left) {
            *left += lane.leaving.times().len() as u64;
        }
        for frame in router.lanes[0].leaving.iter() {
            if let Some([0x08, 0x00, 0x45, octet]) = frame.get(12..16).filter(|_| frame.len() >= 34) {
                assert!([0, 10, 12, 14, 46].contains(&(octet >> 2)), "{:02x?}", &frame[..34]);
            }
        }
        router.lanes.iter_mut().for_each(|l| l.leaving.clear());
        if n % 1_000 == 0 {
            router.check().unwrap();
        }
    }
    while router.waiting() > 0 {
        let Some(due) = router.due() else { break };
        router.advance(due);
    }
    for (lane, left) in router.lanes.iter_mut().zip(&mut left) {
        *left += lane.leaving.times().len() as u64;
    }
    router.check().unwrap();
    for (lane, left) in router.lanes.iter().zip(left) {
        let t = lane.path.totals();
        let census: u64 = lane.path.census().total();
        assert_eq!((t.came, t.passed, census), (cases() / 2, 0, cases() / 2));
        assert_eq!(t.sent, left);
        assert!(t.sent > cases() / 10, "{t:?}");
    }
    let census: Vec<_> = router.lanes[0].path.census().iter().collect();
    println!("{} frames: {:?}, {census:?}", cases(), router.lanes.map(|l| *l.path.totals()));
}

#[test]
fn mutated_frames_are_accounted_for() {
    flood(
        |rng| {
            let mut frame = good(rng);
            mutate(&mut frame, rng);
            frame
        },
        1,
    );
}

#[test]
fn random_frames_are_accounted_for() {
    flood(random, 2);
}

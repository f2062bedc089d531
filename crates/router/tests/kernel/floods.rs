//! Floods of new sources: each frame of another one. What is kept of them has its room, nobody's contract suffers, and a frame costs what
//! it costs from one source.

use aya::maps::{Array, HashMap, Map};
use inprofile_core::units::Time;

use crate::frames::{Frame, Ip, Wrap, control_frames};
use crate::tried::{Tried, config, permitted};

const FRAMES: u64 = 12_000;
/// Alice is among the prefixes; Bob has a VLAN; Carol a port, so that fragments are remembered.
const FILE: &str = r#"
frames.control = { rate = "64 kbit/s", burst = "9000 B" }
[upstream]
[[upstream.customers]]
name = "alice"
prefix = "10.0.0.1"
contract = "8 Mbit/s"
marker = { kind = "token_bucket", depth = "9000 B" }
[[upstream.customers]]
name = "bob"
vlan = 5
contract = "8 Mbit/s"
marker = { kind = "token_bucket", depth = "9000 B" }
[[upstream.customers]]
name = "carol"
prefix = "10.0.0.2"
port = 53
contract = "8 Mbit/s"
marker = { kind = "token_bucket", depth = "9000 B" }
[[upstream.customers]]
name = "dave"
prefix = "12.0.0.0/8"
port = 53
contract = "8 Mbit/s"
marker = { kind = "token_bucket", depth = "9000 B" }
"#;

/// A packet, a first fragment, one of a prefix that names ports, or an ARP request of the n-th source.
fn of_source(kind: usize, n: u64) -> Vec<u8> {
    let address = (n as u32).to_be_bytes();
    let mut frame = match kind {
        0 => Ip { bytes: 100, from: 77, ..Ip::default() }.frame(),
        1 | 2 => Ip { bytes: 100, from: 77, fragment: 0x2000, ..Ip::default() }.frame(),
        _ => control_frames(20)[0].clone(),
    };
    frame.0[8..12].copy_from_slice(&address);
    if kind < 3 {
        // Nobody has bought anything in 11.0.0.0/8; Dave's port is another.
        let of = [11, 11, 12][kind];
        frame.0[26..30].copy_from_slice(&(of << 24 | n as u32).to_be_bytes());
        frame.0[18..20].copy_from_slice(&address[2..]);
    }
    frame.0
}

/// How many addresses are remembered, and how many packets whose fragments are under way.
fn remembered(kernel: &mut Tried) -> (usize, usize) {
    let map = Map::LruHashMap(kernel.map("addresses"));
    let addresses: HashMap<_, [u8; 12], [u8; 144]> = (&map).try_into().unwrap();
    let map = Map::Array(kernel.map("fragments"));
    let sets: Array<_, [u64; 24]> = (&map).try_into().unwrap();
    let packets = sets.iter().flat_map(|set| set.unwrap()[8..16].to_vec()).filter(|hash| *hash != 0);
    (addresses.keys().map(Result::unwrap).count(), packets.count())
}

/// Nanoseconds a frame, and how many of the flood left; Alice and Bob are there too, and lose nothing.
fn flood(kernel: &mut Tried, kind: usize, many: bool, now: &mut u64) -> (f64, u64) {
    let alice = Ip { bytes: 1_000, ..Ip::default() }.frame().0;
    let Frame(bob) = Ip { bytes: 60, wraps: vec![Wrap::Tag(0x8100, 5)], ..Ip::default() }.frame();
    let mut bobs_arp = control_frames(20)[0].clone().0;
    bobs_arp.splice(12..12, bob[12..16].iter().copied());
    let (mut left, mut spent, mut seen) = (0, 0, 0);
    for n in 0..FRAMES {
        *now += 10_000;
        if n % 100 == 0 {
            let out = kernel.arrive(Time(*now * 1_000), 0, &alice).expect("hers is not dropped");
            assert_eq!(out[15] >> 2, 10, "she sends what she bought");
        }
        if n % (FRAMES / 2) == FRAMES / 4 {
            assert!(kernel.arrive(Time(*now * 1_000), 0, &bobs_arp).is_some(), "his VLAN tells who he is");
        }
        let frame = of_source(kind, if many { n } else { 0 });
        let before = kernel.spent(0);
        left += u64::from(kernel.arrive(Time(*now * 1_000), 0, &frame).is_some());
        let after = kernel.spent(0);
        (spent, seen) = (spent + after.0 - before.0, seen + after.1 - before.1);
    }
    assert_eq!(seen, FRAMES);
    (spent as f64 / seen as f64, left)
}

#[test]
fn a_flood_of_new_sources_costs_nobody_anything() {
    if !permitted() {
        return;
    }
    let _counted = aya::sys::enable_stats(aya::sys::Stats::RunTime).unwrap();
    let mut kernel = Tried::new(&config(FILE));
    let mut now = 10_000_000_000;
    let kinds = ["packets", "first fragments", "the same, by port", "ARP requests"];
    for (kind, what) in kinds.into_iter().enumerate() {
        let (one, _) = flood(&mut kernel, kind, false, &mut now);
        now += 10_000_000_000;
        let (many, left) = flood(&mut kernel, kind, true, &mut now);
        now += 10_000_000_000;
        println!("{what:<16} {one:.0} ns from one source, {many:.0} ns of new ones: {:.2}", many / one);
        // Not a measurement: a machine at work may interrupt it.
        assert!(many < 4.0 * one + 1_000.0, "{what}: {many} ns, and from one source {one} ns");
        if kind < 3 {
            assert_eq!(left, FRAMES);
        } else {
            // All addresses have one rate, half of it beside VLANs, and its burst twice for any kind and once for what each has kept.
            let frame = of_source(kind, 0).len() as u64 - 14;
            let bought = 4 * 9_000 + 32_000 * FRAMES * 10_000 / 8_000_000_000;
            assert!(left > 0 && left * frame <= bought, "{left} frames of {frame} B, of {bought} B");
        }
    }
    let (addresses, fragments) = remembered(&mut kernel);
    println!("{addresses} addresses and {fragments} packets of fragments remembered");
    // Those whose frames were let through, and those whose ports may tell whose they are.
    assert!(addresses > 10 && addresses < 400, "{addresses}");
    assert!(fragments > 7_500 && fragments <= 8_192, "{fragments}");
}

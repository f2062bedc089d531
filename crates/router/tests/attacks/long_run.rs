//! The long-run rate, and every stretch within it: an oracle in whole numbers looks at each packet that leaves as IN, and
//! knows the contract.

use inprofile_core::units::{Duration, PS_PER_S};

use crate::bench::Bench;
use crate::frames::{Frame, Ip, Wrap};
use crate::leaky_bucket::LeakyBucket;

/// Bits per second.
const CONTRACTS: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// How deep the bucket is, in bytes; the longest packet goes into it.
const DEPTH: u64 = 9_000;
/// The long-run rate is right to this.
const WITHIN: f64 = 0.001;
/// Frames of a run.
const FRAMES: u64 = 4_000;

/// Meters with one bucket for what is IN.
const METERS: [(&str, &str); 4] = [
    ("token_bucket", "kind = \"token_bucket\", depth = \"9000 B\""),
    ("srtcm", "kind = \"srtcm\", cbs = \"9000 B\", ebs = \"9000 B\""),
    ("trtcm", "kind = \"trtcm\", cbs = \"9000 B\", pbs = \"9000 B\", pir = \"5 Gbit/s\""),
    ("rfc4115", "kind = \"rfc4115\", cbs = \"9000 B\", ebs = \"9000 B\", eir = \"1 Mbit/s\""),
];

fn file(contract: u64, meter: &str, customer: &str) -> String {
    // Nothing is dropped and nothing waits long: what leaves is what was marked.
    format!(
        "inside = \"a\"\noutside = \"b\"\npacket = \"9000 B\"\nflows = 64\n[upstream]\nrate = \"100 Gbit/s\"\nqueue = {{ aqm = \"drop_tail\", limit = \"100000 packets\" }}\n[[upstream.customers]]\nname = \"{customer}\"\nprefix = [\"10.0.0.1\", \"2001:db8::1\"]\ncontract = \"{contract} bit/s\"\nmarker = {{ {meter} }}\n"
    )
}

/// The n-th frame, and how long after the one before, in picoseconds, where `full` is what its bytes take at the contract's rate.
type Make = fn(u64, &mut Bench) -> Frame;
type Gap = fn(u64, u64, &mut Bench) -> u64;

fn plain(bytes: usize) -> Frame {
    Ip { bytes, ..Ip::default() }.frame()
}

/// Anything that is the customer's, whatever it is wrapped in and says of itself.
fn any(n: u64, bench: &mut Bench) -> Frame {
    let below = |bench: &mut Bench, n: u64| (bench.rng.uniform() * n as f64) as u64;
    let v6 = below(bench, 2) == 0;
    let bytes = (if v6 { 60 } else { 48 }) + below(bench, 1_440) as usize;
    let tag = Wrap::Tag([0x8100, 0x88a8, 0x9100][below(bench, 3) as usize], below(bench, 65_536) as u16);
    let wraps = match below(bench, 6) {
        0 => vec![tag],
        1 => vec![tag; 1 + below(bench, 4) as usize],
        2 => vec![Wrap::Pppoe(3)],
        3 => vec![tag, Wrap::Pppoe(9)],
        4 => vec![Wrap::Mpls(1 + below(bench, 8) as u8, 7)],
        _ => vec![],
    };
    let labelled = wraps.iter().any(|w| matches!(w, Wrap::Mpls(..)));
    let octet = [0, 10 << 2, 12 << 2, 14 << 2][below(bench, 4) as usize] | below(bench, 4) as u8;
    // Behind labels nobody is who lies.
    let lies = !labelled && below(bench, 3) == 0;
    let says = lies.then(|| below(bench, 65_536) as u16);
    let fragment = if v6 { 0 } else { [0, 0, 0x2000, 0x0001][below(bench, 4) as usize] };
    let options = if v6 { 0 } else { below(bench, 6) as u8 };
    Ip { v6, bytes, wraps, octet, says, fragment, options, port: n as u16, ..Ip::default() }.frame()
}

const WAYS: &[(&str, Make, Gap)] = &[
    ("steadily, at twice the rate", |_, _| plain(1500), |_, full, _| full / 2),
    ("at random, at twice the rate", |_, _| plain(1500), |_, full, b| (full as f64 * b.rng.uniform()) as u64),
    (
        "a thousand at once, then nothing",
        |_, _| plain(1500),
        |n, full, _| {
            if n % 1000 == 0 { 500 * full } else { 0 }
        },
    ),
    ("a picosecond apart in pairs", |_, _| plain(1500), |n, full, _| if n % 2 == 0 { full } else { 1 }),
    ("a picosecond before the token", |_, _| plain(1499), |_, full, _| full - 1),
    ("small odd ones, a third of a byte early", |_, _| plain(29), |_, full, _| full - full / 87),
    ("sizes that change", |_, b| plain(28 + (b.rng.uniform() * 8_900.0) as usize), |_, full, _| full / 2),
    (
        "a day of silence each hundred",
        |_, _| plain(1500),
        |n, full, _| {
            if n % 100 == 99 { 86_400 * PS_PER_S } else { full / 2 }
        },
    ),
    (
        "a new flow each, of 64 numbers",
        |n, _| Ip { port: n as u16, ..Ip::default() }.frame(),
        |_, full, _| full / 2,
    ),
    ("every encapsulation, every lie", any, |_, full, b| (full as f64 * b.rng.uniform()) as u64),
];

/// A run of one way at one contract, reconfigured with what `reload` says before each frame, if anything: the share of the contract
/// that left as IN beyond the bucket, and the most over any stretch, in bytes.
fn run(
    contract: u64,
    meter: &str,
    make: Make,
    gap: Gap,
    reload: impl Fn(u64) -> Option<String>,
) -> (f64, f64) {
    let mut bench = Bench::new(&file(contract, meter, "alice"));
    let mut oracle = LeakyBucket::new(contract);
    for n in 0..FRAMES {
        if let Some(text) = reload(n) {
            bench.reload(&text);
        }
        let frame = make(n, &mut bench);
        let full = frame.bytes() * 8 * PS_PER_S / contract;
        let gap = Duration(gap(n, full, &mut bench));
        let before = bench.out.green;
        bench.send(gap, &frame);
        oracle.see(bench.now, bench.out.green - before);
    }
    let seconds = bench.now.secs();
    bench.drain();
    (bench.out.green.saturating_sub(DEPTH) as f64 * 8.0 / seconds / contract as f64, oracle.most())
}

/// As long as he sends enough, a customer gets his rate to within 0.1 %; and over no stretch of time more than the bucket
/// beyond it.
#[test]
fn the_long_run_rate_is_the_contract() {
    for (i, (name, make, gap)) in WAYS.iter().enumerate() {
        for (j, contract) in CONTRACTS.into_iter().enumerate() {
            // The bucket always; each other meter's turn comes at each rate.
            for (meter, settings) in [METERS[0], METERS[1 + (i + j) % 3]] {
                let (share, most) = run(contract, settings, *make, *gap, |_| None);
                println!(
                    "{name:<40} {meter:<13} {:>5} Mbit/s  IN {share:8.5}  burst {most:8.1} B",
                    contract / 1_000_000
                );
                assert!(share <= 1.0 + WITHIN, "{name}, {meter} at {contract}: {share}");
                // What leaves waits for its turn on the link of 100 Gbit/s, a few packets' time at most; and a rounding.
                let slack = 1.0 + 3.0 * contract as f64 * 9_000.0 / 100e9;
                assert!(most <= DEPTH as f64 + slack, "{name}, {meter} at {contract}: {most}");
                if name.ends_with("at twice the rate") {
                    assert!(share >= 1.0 - WITHIN, "{name}, {meter} at {contract}: {share}");
                }
            }
        }
    }
}

/// The file to reload, the n-th time.
type Reload = fn(u64) -> Option<String>;

/// A reload fills no bucket: not one of the same settings, not of others, not of another name, nor of another meter.
#[test]
fn a_reload_fills_no_bucket() {
    const CONTRACT: u64 = 10_000_000;
    let same = |_: u64| Some(file(CONTRACT, METERS[0].1, "alice"));
    let depth = |n: u64| {
        let depth = if n.is_multiple_of(2) { "9000 B" } else { "9100 B" };
        Some(file(CONTRACT, &format!("kind = \"token_bucket\", depth = \"{depth}\""), "alice"))
    };
    let name = |n: u64| Some(file(CONTRACT, METERS[0].1, if n.is_multiple_of(2) { "alice" } else { "bob" }));
    let meter = |n: u64| Some(file(CONTRACT, METERS[n as usize % METERS.len()].1, "alice"));
    let every: [(&str, Reload); 4] =
        [("the same", same), ("another depth", depth), ("another name", name), ("another meter", meter)];
    for (what, reload) in every {
        let (_, make, gap) = WAYS[1];
        let now_and_then = |n: u64| if n.is_multiple_of(20) { reload(n / 20) } else { None };
        let (share, most) = run(CONTRACT, METERS[0].1, make, gap, now_and_then);
        println!("reload to {what:<15} IN {share:8.5}  burst {most:8.1} B");
        assert!(share <= 1.0 + WITHIN && most <= DEPTH as f64 + 102.0, "{what}: {share}, {most}");
    }
}

//! A customer with a contract sends twice as much as he bought, in every way there is to hide it. What leaves as IN is
//! counted in bytes behind the link layer, by the test's own knowledge of where that ends.

use inprofile_core::units::Duration;

use crate::bench::Bench;
use crate::frames::{Frame, Ip, Wrap};

/// The customer's contract, in bits per second; he sends twice that, into a link of three times that.
const CONTRACTS: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// How deep his bucket is.
const DEPTH: u64 = 9_000;
/// The long-run rate is right to this.
const WITHIN: f64 = 0.001;

fn file(contract: u64) -> String {
    format!(
        "inside = \"a\"\noutside = \"b\"\npacket = \"9000 B\"\nframes.unreadable = \"best_effort\"\n[upstream]\nrate = \"{} bit/s\"\nqueue = {{ aqm = \"rio\", limit = \"500 packets\", in = {{ min_th = \"400 packets\", max_th = \"490 packets\", max_p = 0.01 }}, out = {{ min_th = \"20 packets\", max_th = \"60 packets\", max_p = 0.2 }} }}\n[[upstream.customers]]\nname = \"alice\"\nprefix = [\"10.0.0.1\", \"2001:db8::1\"]\ncontract = \"{contract} bit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"{DEPTH} B\" }}\n",
        contract * 3
    )
}

/// The n-th frame of an attack.
type Make = fn(u64) -> Frame;

fn ip(change: impl FnOnce(&mut Ip)) -> Frame {
    let mut ip = Ip::default();
    change(&mut ip);
    ip.frame()
}

/// Over IPv6, behind these extension headers of eight bytes each, by their numbers; then UDP.
fn extended(headers: &[u8]) -> Frame {
    let mut frame = Ip { v6: true, protocol: headers[0], ..Ip::default() }.frame();
    let mut at = frame.at() + 40;
    for next in headers[1..].iter().chain(&[17]) {
        // RFC 8200 §4.2: one option that pads. For an authentication header the same length is 0 words too few (RFC 4302 §2.2).
        frame.0[at..at + 8].copy_from_slice(&[*next, 0, 1, 4, 0, 0, 0, 0]);
        at += 8;
    }
    frame.0[at..at + 8].copy_from_slice(&[0x0f, 0xa0, 0, 9, 0, 8, 0, 0]);
    frame
}

/// A packet in another: the inner one, of the same protocol family, says AF11.
fn tunnelled(protocol: u8) -> Frame {
    let mut frame = ip(|p| p.protocol = protocol);
    let at = frame.at() + if protocol == 47 { 24 } else { 20 };
    let gre = frame.at() + 20;
    if protocol == 47 {
        frame.0[gre..gre + 4].copy_from_slice(&[0, 0, 8, 0]);
    }
    frame.0[at..at + 2].copy_from_slice(&[0x45, 10 << 2]);
    frame
}

/// Every way to look smaller, better or somebody else's than one is.
const ATTACKS: &[(&str, Make)] = &[
    ("honest", |_| ip(|_| {})),
    ("total length 28", |_| ip(|p| p.says = Some(28))),
    ("total length 20", |_| ip(|p| p.says = Some(20))),
    ("total length 0", |_| ip(|p| p.says = Some(0))),
    ("total length 65535", |_| ip(|p| p.says = Some(65_535))),
    ("IPv6 payload length 8", |_| ip(|p| (p.v6, p.says) = (true, Some(8)))),
    ("IPv6 payload length 0", |_| ip(|p| (p.v6, p.says) = (true, Some(0)))),
    ("IPv6 jumbogram", |_| ip(|p| (p.v6, p.says, p.protocol) = (true, Some(0), 0))),
    ("IPv6 payload length 65535", |_| ip(|p| (p.v6, p.says) = (true, Some(65_535)))),
    ("one VLAN tag", |_| ip(|p| p.wraps = vec![Wrap::Tag(0x8100, 0xe064)])),
    ("QinQ", |_| ip(|p| p.wraps = vec![Wrap::Tag(0x88a8, 5), Wrap::Tag(0x8100, 6)])),
    ("five VLAN tags", |_| ip(|p| p.wraps = vec![Wrap::Tag(0x8100, 0xe064); 5])),
    ("PPPoE session", |_| ip(|p| p.wraps = vec![Wrap::Pppoe(7)])),
    ("PPPoE session, total length 28", |_| ip(|p| (p.wraps, p.says) = (vec![Wrap::Pppoe(7)], Some(28)))),
    ("MPLS, three labels", |_| ip(|p| p.wraps = vec![Wrap::Mpls(3, 5)])),
    ("MPLS in QinQ, over IPv6", |_| {
        ip(|p| (p.v6, p.wraps) = (true, vec![Wrap::Tag(0x9100, 1), Wrap::Tag(0x8100, 2), Wrap::Mpls(2, 7)]))
    }),
    ("fragments", |n| ip(|p| p.fragment = if n.is_multiple_of(2) { 0x2000 } else { 0x00b9 })),
    ("first fragments alone", |n| ip(|p| (p.fragment, p.port) = (0x2000, n as u16))),
    ("later fragments alone", |_| ip(|p| p.fragment = 0x00b9)),
    ("IPv4 options", |_| ip(|p| p.options = 10)),
    ("IPv6, three extension headers", |_| extended(&[0, 43, 60])),
    ("IPv6, forty destination options", |_| extended(&[60; 40])),
    ("IPv6, fragment headers one in another", |_| extended(&[44; 4])),
    ("GRE", |_| tunnelled(47)),
    ("IP in IP", |_| tunnelled(4)),
    ("UDP that says it is empty", |_| {
        let mut frame = ip(|_| {});
        let length = frame.at() + 24;
        frame.0[length..length + 2].copy_from_slice(&[0, 8]);
        frame
    }),
    ("ECT(0), ECT(1) and CE in turn", |n| ip(|p| p.octet = (1 + n % 3) as u8)),
    ("a priority tag", |_| ip(|p| p.wraps = vec![Wrap::Tag(0x8100, 0xe000)])),
    ("comes as AF11", |_| ip(|p| p.octet = 10 << 2)),
    ("comes as EF", |_| ip(|p| p.octet = 46 << 2)),
    ("every code point in turn", |n| ip(|p| p.octet = ((n % 64) << 2) as u8)),
    ("a stranger's, as AF11", |_| ip(|p| (p.from, p.octet) = (77, 10 << 2))),
    ("jumbo frames", |_| ip(|p| p.bytes = 9000)),
    ("28 bytes", |_| ip(|p| p.bytes = 28)),
    ("28 bytes, padded to 60", |_| ip(|p| p.bytes = 28).padded()),
    ("28 bytes in 61, says nothing of the rest", |_| ip(|p| (p.bytes, p.says) = (47, Some(28)))),
    ("sizes that change", |n| ip(|p| p.bytes = 28 + (n * 977 % 1473) as usize)),
    ("a new flow each", |n| ip(|p| p.port = n as u16)),
    ("an ARP request of 1500 bytes", |_| crate::frames::other(0x0806, &[0x5a; 1500])),
    ("no IP", |_| crate::frames::other(0x88b5, &[0x5a; 1500])),
    ("SNAP", |_| {
        crate::frames::other(1500, &[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &[0x45; 1492][..]].concat())
    }),
];

/// The output, in multiples of the contract and of the link's rate.
#[derive(Clone, Copy, Debug)]
struct Shares {
    /// As IN, beyond what the bucket held at the start.
    green: f64,
    ef: f64,
    link: f64,
}

/// So many frames at `times` the contract, and then nothing until all have left.
fn attack(contract: u64, frames: u64, times: u64, make: Make) -> Shares {
    let mut bench = Bench::new(&file(contract));
    for n in 0..frames {
        let frame = make(n);
        let gap = frame.bytes() * 8 * 1_000_000_000_000 / (contract * times);
        // As often before as after: in step with the shaper all of a kind could be dropped.
        let gap = (gap as f64 * 2.0 * bench.rng.uniform()) as u64;
        bench.send(Duration(gap), &frame);
    }
    let metered = bench.now.secs();
    bench.drain();
    let rate = |bytes: u64, seconds: f64| bytes as f64 * 8.0 / seconds / contract as f64;
    Shares {
        green: rate(bench.out.green.saturating_sub(DEPTH), metered),
        ef: rate(bench.out.ef, metered),
        // The last one is still on its way when its turn has come.
        link: rate(bench.out.bytes.saturating_sub(9000), bench.last.secs()) / 3.0,
    }
}

/// Whatever a customer does, in the long run he gets what he bought as IN, and nothing as EF; and nobody gets more of the
/// link than its rate.
#[test]
fn nobody_gets_more_than_he_bought() {
    let mut won = Vec::new();
    for (name, make) in ATTACKS {
        // Six times the contract: twice the link.
        let s = attack(CONTRACTS[1], 4_000, 6, *make);
        println!("{name:<32} IN {:8.4}  EF {:8.4}  link {:8.4}", s.green, s.ef, s.link);
        if s.green > 1.0 + WITHIN || s.ef > 0.0 || s.link > 1.0 + WITHIN {
            won.push((name, s));
        }
    }
    assert!(won.is_empty(), "{won:#?}");
}

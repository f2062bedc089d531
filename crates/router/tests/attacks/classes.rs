//! Classes and code points: what was not bought is not had.

use inprofile_core::units::{Duration, PS_PER_S};

use crate::bench::Bench;
use crate::frames::{Frame, Ip, Wrap, other};

/// Alice has bought 1 Mbit/s of EF beside her 2 Mbit/s, bob nothing; strangers are best effort.
pub fn file(more: &str) -> String {
    format!(
        r#"
inside = "a"
outside = "b"
{more}
[upstream]
rate = "10 Mbit/s"
queue = {{ aqm = "rio", limit = "100 packets", in = {{ min_th = "45 packets", max_th = "60 packets", max_p = 0.02 }}, out = {{ min_th = "10 packets", max_th = "30 packets", max_p = 0.1 }} }}
best_effort = {{ aqm = "drop_tail", limit = "100 packets" }}
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
marker = {{ kind = "token_bucket", depth = "15 kB" }}
services = [{{ class = "voice", rate = "1 Mbit/s", burst = "3 kB" }}]
[[upstream.customers]]
name = "bob"
prefix = "10.0.0.2"
contract = "2 Mbit/s"
marker = {{ kind = "token_bucket", depth = "15 kB" }}
"#
    )
}

/// So many of these frames at this rate in bits per second, in turn.
pub fn send(bench: &mut Bench, frames: &[Frame], count: u64, rate: u64) {
    for n in 0..count {
        let frame = &frames[n as usize % frames.len()];
        bench.send(Duration(frame.bytes() * 8 * PS_PER_S / rate), frame);
    }
}

/// 10 Mbit/s of EF from her who bought one, from him who bought none, and from a stranger.
#[test]
fn expedited_forwarding_is_had_by_who_bought_it_and_no_more() {
    for (from, bought) in [(1, 1e6), (2, 0.0), (77, 0.0)] {
        let mut bench = Bench::new(&file(""));
        let ef = Ip { from, octet: 46 << 2, bytes: 200, ..Ip::default() }.frame();
        send(&mut bench, &[ef], 50_000, 10_000_000);
        let seconds = bench.now.secs();
        bench.drain();
        let rate = bench.out.ef.saturating_sub(3_000) as f64 * 8.0 / seconds;
        println!("EF from 10.0.0.{from:<3} {rate:10.0} bit/s of 10 Mbit/s sent");
        assert!(rate <= bought * 1.001 && rate >= bought * 0.999, "{from}: {rate}");
        let totals = bench.totals();
        // Hers beyond that is dropped; theirs is best effort, bleached.
        assert_eq!(totals.policed > 0, from == 1, "{totals:?}");
        assert_eq!(bench.out.dscps[0] > 0, from != 1);
    }
}

/// Whatever comes from whomever, in whatever wrapping: what leaves has a code point that was bought, or none.
#[test]
fn code_points_that_nobody_bought_do_not_leave() {
    let mut bench = Bench::new(&file(""));
    let wraps = [vec![], vec![Wrap::Tag(0x8100, 0xe005)], vec![Wrap::Pppoe(1)], vec![Wrap::Mpls(2, 7)]];
    let mut frames = Vec::new();
    for octet in 0..=255 {
        for from in [1, 2, 77] {
            for (v6, wraps) in wraps.iter().enumerate() {
                let (v6, wraps) = (v6 % 2 == 1, wraps.clone());
                frames.push(Ip { v6, from, octet, bytes: 100, wraps, ..Ip::default() }.frame());
            }
        }
    }
    send(&mut bench, &frames, frames.len() as u64 * 2, 6_000_000);
    bench.drain();
    let left: Vec<usize> = (0..64).filter(|dscp| bench.out.dscps[*dscp] > 0).collect();
    println!("code points that left: {left:?}");
    // What was metered kept to its contract: all of it is IN.
    assert_eq!(left, [0, 10, 46]);
    // EF: hers alone, one 64th of a third.
    assert_eq!((bench.out.dscps[46], bench.out.wrong_checksums), (frames.len() as u64 * 2 / 192, 0));
    // Nor did classes of tags and labels, but for hers.
    assert_eq!(
        bench.out.link_classes,
        2 * 4 * 2,
        "ECN's four values of EF, with a tag and with labels, twice"
    );
}

/// PAUSE frames would silence the neighbour of the other port: none goes on.
#[test]
fn pause_frames_go_no_further() {
    let mut bench = Bench::new(&file(""));
    let pause = other(0x8808, &[&[0, 1, 0xff, 0xff][..], &[0; 42]].concat());
    let mut tagged = pause.clone();
    tagged.0.splice(12..12, [0x81, 0, 0, 5]);
    send(&mut bench, &[pause, tagged], 100, 1_000_000);
    bench.drain();
    assert_eq!((bench.out.frames, bench.totals().refused), (0, 100));
}

/// Tags, a session and labels before a packet take room on the link that its own bytes don't tell: however short it is and whether
/// it is padded, the wire carries no more than the shaped rate.
#[test]
fn tags_and_labels_are_no_way_past_the_shaper() {
    let tags = |n: usize| vec![Wrap::Tag(0x8100, 5); n];
    let mut most: f64 = 0.0;
    for wraps in [
        tags(0),
        tags(2),
        [tags(2), vec![Wrap::Pppoe(1)]].concat(),
        tags(4),
        [tags(4), vec![Wrap::Mpls(8, 0)]].concat(),
        [tags(4), vec![Wrap::Pppoe(1)]].concat(),
    ] {
        for bytes in [20, 46, 100, 1480] {
            for padded_to in [0, 60, 60 + 4 * wraps.iter().filter(|w| matches!(w, Wrap::Tag(..))).count()] {
                let mut bench = Bench::new(&file("overhead = \"38 B\"\nmpu = \"84 B\""));
                let ip = Ip { from: 77, bytes, wraps: wraps.clone(), ..Ip::default() };
                let frame = ip.frame().padded_to(padded_to);
                send(&mut bench, std::slice::from_ref(&frame), 2_000, 15_000_000);
                bench.drain();
                // Preamble, gap and check sequence; the shortest frame has 64 bytes with the latter.
                let wire = (bench.out.frames - 1) * frame.on_ethernet() * 8;
                let times = wire as f64 / bench.last.secs() / 1e7;
                println!("{bytes} B behind {wraps:?}: {times:.3} of the wire");
                assert!(bench.out.frames > 300 && times > 0.7);
                most = most.max(times);
            }
        }
    }
    assert!(most <= 1.0001, "{most}");
}

/// `mpu`: as many bytes as the wire carries at least, so that the smallest frames fill no more than the link's rate of it.
#[test]
fn tiny_frames_count_as_the_wire_carries_them() {
    // Preamble, gap, header and check sequence: 84 bytes for each.
    for (more, counted) in
        [("", 28), ("overhead = \"38 B\"", 66), ("overhead = \"38 B\"\nmpu = \"84 B\"", 84)]
    {
        let mut bench = Bench::new(&file(more));
        let tiny = Ip { from: 77, bytes: 28, ..Ip::default() }.frame().padded();
        send(&mut bench, &[tiny], 60_000, 10_000_000);
        bench.drain();
        let wire = (bench.out.frames - 1) as f64 * 84.0 * 8.0 / bench.last.secs();
        println!("{counted} B counted: {:.3} Mbit/s of the wire", wire / 1e6);
        assert!((wire / 1e7 - 84.0 / f64::from(counted)).abs() < 0.01, "{more}: {wire}");
    }
}

/// IP packets where the router does not look for them: none leaves an edge with the code point that its sender wrote.
#[test]
fn what_cannot_be_bleached_does_not_leave() {
    let hidden = |wraps: Vec<Wrap>| Ip { octet: 10 << 2, bytes: 1000, wraps, ..Ip::default() };
    let frames = [
        hidden(vec![Wrap::Tag(0x8100, 1); 5]).frame(),
        hidden(vec![Wrap::Snap]).frame(),
        hidden(vec![Wrap::Tag(0x8100, 1), Wrap::Snap]).frame(),
        hidden(vec![Wrap::Mpls(9, 0)]).frame(),
        hidden(vec![Wrap::Tag(0x9200, 1)]).frame(),
        Ip { v6: true, says: Some(8), ..hidden(vec![Wrap::Mpls(1, 0)]) }.frame(),
    ];
    for (choice, bound) in [("", 0.0), ("frames.unreadable = \"best_effort\"", 100e6)] {
        let mut bench = Bench::new(&file(choice).replace("rate = \"10 Mbit/s\"", "rate = \"100 Mbit/s\""));
        send(&mut bench, &frames, 12_000, 50_000_000);
        bench.drain();
        let rate = bench.out.green as f64 * 8.0 / bench.now.secs();
        println!("{choice:<35} {:.1} Mbit/s leave with the AF11 that they brought", rate / 1e6);
        assert!(rate <= bound && (rate > 0.0) == (bound > 0.0), "{choice}: {rate}");
        // By the reason: SNAP, another tag and what labels hide are no IP, five tags and nine labels too deep.
        let refused = if bound == 0.0 { [8_000, 4_000] } else { [0, 0] };
        assert_eq!(bench.totals().refusals[..2], refused, "{:?}", bench.totals());
    }
}

/// Unreadable frames go no further unless configured so; those with a wrong length field by configuration.
#[test]
fn what_cannot_be_read_is_dropped_by_choice() {
    let frames = [
        other(0x88b5, &[0; 100]),
        other(1500, &[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &[0x45; 100]].concat()),
        Ip { wraps: vec![Wrap::Tag(0x8100, 1); 5], ..Ip::default() }.frame(),
        Ip { wraps: vec![Wrap::Mpls(9, 0)], ..Ip::default() }.frame(),
        other(0x0800, &[0x44; 100]),
        other(0x0800, &[0x45; 10]),
        Ip { says: Some(28), ..Ip::default() }.frame(),
        Ip { v6: true, says: Some(0), ..Ip::default() }.frame(),
    ];
    let six = frames.len() as u64 - 2;
    for (more, refused) in [
        ("", six),
        ("frames.unreadable = \"drop\"\nframes.length_mismatch = \"drop\"", six + 2),
        ("frames.unreadable = \"best_effort\"", 0),
        ("dscp = \"keep\"", 0),
    ] {
        let mut bench = Bench::new(&file(more));
        send(&mut bench, &frames, frames.len() as u64, 1_000_000);
        bench.drain();
        let totals = bench.totals();
        assert_eq!((totals.refused, totals.passed, totals.length_disagrees), (refused, 0, 2), "{totals:?}");
        assert_eq!(bench.out.frames, frames.len() as u64 - refused);
    }
}

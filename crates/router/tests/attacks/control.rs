//! Floods of control frames: what is policed leaves everybody else theirs.

use inprofile_core::units::{Duration, PS_PER_S};

use crate::bench::Bench;
use crate::classes::{file, send};
use crate::frames::{Frame, control_frames, other};

/// A flood of one kind of control frames has a small rate of its own, and the other kinds don't notice.
#[test]
fn a_flood_of_control_frames_is_policed_by_kind() {
    let kinds = control_frames(0);
    for (i, flood) in kinds.iter().enumerate() {
        let mut bench = Bench::new(&file("frames.control = { rate = \"64 kbit/s\", burst = \"3 kB\" }"));
        // One of each other kind every second, half of the times from the same address, in a flood of 20 Mbit/s.
        let many = 20_000_000 / 8 / flood.bytes();
        for n in 0..10 {
            send(&mut bench, std::slice::from_ref(flood), many, 20_000_000);
            for (_, frame) in kinds.iter().enumerate().filter(|(k, _)| *k != i) {
                let mut frame = frame.clone();
                // What a neighbour sends often is short.
                frame.0[11] += u8::from(n % 2 == 1 || frame.bytes() > 128);
                bench.send(Duration(0), &frame);
            }
        }
        let seconds = bench.now.secs();
        bench.drain();
        let others = 10 * (kinds.len() as u64 - 1);
        let totals = bench.totals();
        let flooded = (bench.out.frames - others) * (flood.bytes().max(46));
        let rate = (flooded.saturating_sub(3_000)) as f64 * 8.0 / seconds;
        println!("kind {i}: {rate:8.0} bit/s of 20 Mbit/s, policed {}", totals.policed);
        assert!(rate <= 64_000.0 * 1.001, "{i}: {rate}");
        assert_eq!(
            totals.policed + bench.out.frames,
            totals.came,
            "the other kinds are all let through: {totals:?}"
        );
    }
}

/// One sender's flood of control frames leaves the others theirs, whether their VLANs or their addresses tell them apart.
#[test]
fn a_flood_of_control_frames_is_policed_by_sender() {
    let kinds = [
        other(0x0806, &[1; 46]),
        other(0x8863, &[0x11; 46]),
        other(0x88cc, &[1; 120]),
        other(0x8864, &[&[0x11, 0, 0, 1, 0, 40, 0xc0, 0x21][..], &[0; 38]].concat()),
    ];
    let from = |frame: &Frame, sender: u8, vlan: Option<u16>| {
        let mut frame = frame.clone();
        frame.0[11] = sender;
        if let Some(vlan) = vlan {
            let tag = [[0x81, 0], vlan.to_be_bytes()].concat();
            frame.0.splice(12..12, tag);
            frame.0[7] += 4;
        }
        frame
    };
    let customers: String = (1..=20)
        .map(|n| format!("[[upstream.customers]]\nname = \"c{n}\"\nvlan = {n}\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n"))
        .collect();
    for kind in &kinds {
        for in_vlans in [true, false] {
            let text = if in_vlans { file("") + &customers } else { file("") };
            let vlan = |n: u16| in_vlans.then_some(n);
            let mut bench = Bench::new(&text);
            let (mut sent, flood) = (0, from(kind, 1, vlan(1)));
            // 2 Mbit/s from one of them for 5 s, and a frame from each of ten others every second.
            let many = 2_000_000 / 8 / flood.bytes();
            for _ in 0..5 {
                send(&mut bench, std::slice::from_ref(&flood), many, 2_000_000);
                for n in 2..12 {
                    bench.send(Duration(0), &from(kind, n, vlan(u16::from(n))));
                    sent += 1;
                }
            }
            let seconds = bench.now.secs();
            bench.drain();
            let totals = bench.totals();
            let lost_of_flood = many * 5 - (bench.out.frames - sent);
            assert_eq!(totals.policed, lost_of_flood, "the others lose nothing: {totals:?}");
            let rate = ((bench.out.frames - sent) * flood.bytes().max(46)) as f64 * 8.0 / seconds;
            println!(
                "one sender of control frames gets {rate:.0} bit/s of 2 Mbit/s sent; ten others lose none"
            );
            assert!(rate < 20_000.0, "{rate}");
        }
    }
    // Who forges an address with each frame takes no more than half of what there is from those whom VLANs tell.
    let mut bench = Bench::new(&(file("") + &customers));
    for n in 0..60_000u32 {
        let mut forged = kinds[0].clone();
        forged.0[8..12].copy_from_slice(&(n << 8 | 8).to_be_bytes());
        forged.0[8] = 0;
        bench.send(Duration(80_000_000), &forged);
        if n.is_multiple_of(6_000) {
            (2..12).for_each(|c| bench.send(Duration(0), &from(&kinds[0], c, Some(u16::from(c)))));
        }
    }
    bench.drain();
    assert_eq!(bench.out.tagged, 100, "{:?}", bench.totals());
}

/// Some senders spend every kind's burst at once, again and again: those of other senders still find room, of each kind.
#[test]
fn bursts_of_control_frames_do_not_fill_their_queue() {
    let kinds: [&dyn Fn(u8) -> Frame; 7] = [
        &|_| other(0x0806, &[1; 46]),
        &|_| other(0x88cc, &[1; 46]),
        &|_| other(0x0026, &[&[0x42, 0x42, 3][..], &[0; 43]].concat()),
        &|_| other(0x8809, &[1; 46]),
        &|_| other(0x888e, &[1; 46]),
        &|_| other(0x8863, &[0x11; 46]),
        &|_| other(0x8864, &[&[0x11, 0, 0, 1, 0, 40, 0xc0, 0x21][..], &[0; 38]].concat()),
    ];
    let mut bench = Bench::new(&file(""));
    let mut others = 0;
    let from = |sender: u8, mut frame: Frame| {
        frame.0[11] = sender;
        frame
    };
    for turn in 0..20 {
        for sender in 1..=3 {
            for kind in kinds {
                (0..100).for_each(|_| bench.send(Duration(0), &from(sender, kind(0))));
            }
        }
        let before = bench.totals();
        for kind in kinds {
            bench.send(Duration(0), &from(100 + turn, kind(0)));
            others += 1;
        }
        let after = bench.totals();
        assert_eq!(
            (before.policed, before.queue_dropped),
            (after.policed, after.queue_dropped),
            "turn {turn}"
        );
        bench.now += Duration::from_millis(1000);
    }
    bench.drain();
    println!("{others} control frames beside three senders' bursts, none lost: {:?}", bench.totals());
}

/// Data in frames of all kinds, each from an address of its own, at 100 Mbit/s: no more than one kind's rate in all, whoever they
/// seem to be from. Frames of each kind that come as often as neighbours send them are not lost beside a flood of the others.
#[test]
fn forged_addresses_get_no_more_of_all_kinds_than_of_one() {
    let tagged = |mut frame: Frame| {
        frame.0.splice(12..12, [0x81, 0, 0x0f, 0xff]);
        frame.0[7] += 4;
        frame
    };
    let vlan =
        "[[upstream.customers]]\nname = \"v\"\nvlan = 1\nmarker = { kind = \"colour\", colour = \"red\" }\n";
    for (circuits, promised) in [("", 500_000.0), (vlan, 250_000.0)] {
        let text = file("").replace("rate = \"10 Mbit/s\"", "rate = \"100 Mbit/s\"") + circuits;
        let mut bench = Bench::new(&text);
        let (mut sent, seconds) = (0u32, 10);
        for _ in 0..20_000 {
            for kind in control_frames(0) {
                let mut forged = if sent % 3 == 0 { tagged(kind) } else { kind };
                let own = sent.to_be_bytes();
                forged.0[9..12].copy_from_slice(&own[1..]);
                sent += 1;
                bench.send(Duration(seconds * PS_PER_S / 160_000), &forged);
            }
        }
        bench.drain();
        let rate = bench.out.control as f64 * 8.0 / seconds as f64;
        // Four of frames.control's bursts, 50 ms of its rate each, at 100 Mbit/s; half where circuits tell customers.
        let bursts = 4.0 * 6_000.0 * 8.0 / seconds as f64 * promised / 500_000.0;
        println!("forged addresses: {rate:.0} bit/s of control frames, {promised:.0} promised");
        assert!(rate <= promised + bursts, "{rate}");
        assert!(rate >= 0.9 * promised, "{rate}");
    }
    for flood in 0..8 {
        let mut bench = Bench::new(&file("").replace("rate = \"10 Mbit/s\"", "rate = \"100 Mbit/s\""));
        let mut others = 0;
        for n in 0..30_000u32 {
            let mut forged = control_frames(0)[flood].clone();
            forged.0[9..12].copy_from_slice(&n.to_be_bytes()[1..]);
            bench.send(Duration(10 * PS_PER_S / 30_000), &forged);
            if n % 3_000 == 0 {
                let before = bench.totals().policed;
                for (_, frame) in control_frames(0).iter().enumerate().filter(|(kind, _)| *kind != flood) {
                    bench.send(Duration(0), frame);
                    others += 1;
                }
                assert_eq!(bench.totals().policed, before, "beside kind {flood}, after {n}");
            }
        }
        println!("{others} frames of the other kinds beside a flood of kind {flood}, none lost");
    }
}

/// A thousand hosts without VLANs, of which each asks for its router twice a minute by ARP and by neighbour discovery, and then all
/// at once within five seconds: nobody goes without.
#[test]
fn a_thousand_hosts_keep_their_neighbours() {
    let mut bench = Bench::new(&file(""));
    let ask = |bench: &mut Bench, gap: Duration| {
        for host in 0..1_000u32 {
            for kind in [0, 1] {
                let mut frame = control_frames(0)[kind].clone();
                frame.0[9..12].copy_from_slice(&host.to_be_bytes()[1..]);
                bench.send(gap, &frame);
            }
        }
    };
    for _ in 0..4 {
        ask(&mut bench, Duration(30 * PS_PER_S / 2_000));
    }
    bench.drain();
    assert_eq!(bench.totals().policed, 0, "at 10 Mbit/s");
    let mut bench = Bench::new(&file("").replace("rate = \"10 Mbit/s\"", "rate = \"100 Mbit/s\""));
    ask(&mut bench, Duration(5 * PS_PER_S / 2_000));
    bench.drain();
    assert_eq!(bench.totals().policed, 0, "at 100 Mbit/s");
}

/// Whoever is renamed by a reload gets no bucket of control frames anew.
#[test]
fn a_new_name_fills_no_bucket_of_control_frames() {
    let named = |name: &str| {
        file("")
            + &format!(
                "[[upstream.customers]]\nname = \"{name}\"\nvlan = 1\nmarker = {{ kind = \"colour\", colour = \"red\" }}\n"
            )
    };
    let mut bench = Bench::new(&named("carol"));
    let mut frame = control_frames(0)[0].clone();
    frame.0.splice(12..12, [0x81, 0, 0, 1]);
    frame.0[7] += 4;
    for n in 0..2_000 {
        bench.send(Duration(PS_PER_S / 2_000), &frame);
        if n % 20 == 19 {
            bench.reload(&named(["dave", "carol"][n / 20 % 2]));
        }
    }
    bench.drain();
    let rate = bench.out.control.saturating_sub(1_500) as f64 * 8.0;
    println!("control frames of who is renamed every 10 ms: {rate:.0} bit/s of 16000");
    assert!(rate <= 16_000.0, "{rate}");
}

//! Meters and virtual queues decide as the core's do.

use inprofile_core::rng::Rng;
use inprofile_core::units::Time;

use crate::frames::Ip;
use crate::tried::{Tried, config, permitted};

mod meters {
    //! Meters alone. Token buckets against an oracle in whole numbers: what leaves as IN, packet by packet, in the long run and over every
    //! stretch. TSW2CM and TSW3CM against the core's law. `parity.rs` compares token buckets with the core's, through the router.

    use inprofile_core::marker::tsw_whole::{self, State};
    use inprofile_router::kernel::layout::ESTIMATE;
    use inprofile_router::kernel::places;

    use super::*;
    use crate::leaky_bucket::LeakyBucket;

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
                let (mut oracle, mut rng) = (LeakyBucket::new(contract), Rng::for_component(contract, name));
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
            (
                "kind = \"tsw3cm\", ptr = \"15 Mbit/s\", win_length = \"1 ms\"",
                Some(15_000_000),
                1_000_000,
                false,
            ),
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
}

mod queues {
    //! Virtual queues against the core's law in whole numbers: the same arrivals and random numbers, the same verdicts, marks and state, to the
    //! bit. How far that law may be from the one in floating point, the core's own tests say.

    use inprofile_core::aqm::virtual_queue::whole::{self, Arrival, State};
    use inprofile_core::verdict::Admission;
    use inprofile_router::config::datapath;

    use super::*;
    use crate::frames::below;

    const ARRIVALS: u64 = 4_000;
    /// At 8 Mbit/s.
    const LAWS: [(&str, &str); 6] = [
        ("limit", "law = \"drop_tail\""),
        (
            "red",
            "law = \"red\", red = { w_q = 0.02, min_th = \"5000 B\", max_th = \"15000 B\", max_p = 0.1, ecn = true, gentle = true }",
        ),
        (
            "red, waiting",
            "law = \"red\", red = { w_q = 0.25, min_th = \"3000 B\", max_th = \"20000 B\", max_p = 0.5, wait = true }",
        ),
        (
            "rio",
            "law = \"rio\", rio = { w_q = 0.02, in = { min_th = \"10000 B\", max_th = \"25000 B\", max_p = 0.02 }, out = { min_th = \"3000 B\", max_th = \"12000 B\", max_p = 0.2 } }",
        ),
        (
            "wred",
            "law = \"wred\", wred = { w_q = 0.05, averages = \"decoupled\", green = { min_th = \"10000 B\", max_th = \"25000 B\", max_p = 0.02 }, yellow = { min_th = \"3000 B\", max_th = \"12000 B\", max_p = 0.2 }, red = { min_th = \"1000 B\", max_th = \"5000 B\", max_p = 0.9 } }",
        ),
        (
            "wred, one average",
            "law = \"wred\", wred = { w_q = 0.05, ecn = true, averages = \"shared\", green = { min_th = \"10000 B\", max_th = \"25000 B\", max_p = 0.02 }, yellow = { min_th = \"3000 B\", max_th = \"12000 B\", max_p = 0.2 } }",
        ),
    ];

    fn file(law: &str) -> String {
        format!(
            "[upstream]\nrole = \"core\"\nqueue = {{ aqm = \"virtual_queue\", virtual_rate = \"8 Mbit/s\", virtual_limit = \"30000 B\", {law} }}\n[[upstream.customers]]\nname = \"alice\"\nprefix = \"10.9.0.0/16\"\ncontract = \"1 Mbit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"9000 B\" }}\n"
        )
    }

    /// One after the other, by reloads: what the queue holds stays.
    #[test]
    fn virtual_queues_decide_as_the_core_does() {
        if !permitted() {
            return;
        }
        let mut kernel = Tried::new(&config(&file(LAWS[0].1)));
        let (mut state, mut now) = (State::default(), 1_000u64);
        let (mut dropped, mut marked, mut lost) = (0u64, 0u64, 0u64);
        for (of, (name, law)) in (1..).zip(LAWS) {
            let config = config(&file(law));
            kernel.maps.apply(&config, now).unwrap();
            let direction = config.directions[0].as_ref().unwrap();
            let class = direction.assured;
            let settings = datapath::virtual_queue(&direction.classes[class], config.full_packet()).unwrap();
            let (mut rng, before) = (Rng::for_component(7, name), (dropped, marked));
            for n in 0..ARRIVALS {
                let bytes = [40, 576, 1_000][below(&mut rng, 3)];
                now += match n % 400 {
                    0 => 40_000_000,
                    1 => 2_000_000_000,
                    // About 1.5 times the rate.
                    _ => (rng.uniform() * 2.0 * 360_000.0) as u64,
                };
                let (colour, ecn) = (below(&mut rng, 3), below(&mut rng, 2) == 1);
                let octet = [10, 12, 14][colour] << 2 | if ecn { 1 + below(&mut rng, 3) as u8 } else { 0 };
                let random = (rng.uniform() * 4_294_967_296.0) as u32;
                let frame = Ip { bytes, octet, ..Ip::default() }.frame().0;
                kernel.random = random;
                let out = kernel.arrive(Time(now * 1_000), 0, &frame);
                let arrival = Arrival { now, size: bytes as u32, colour, ecn, random };
                let expected = whole::arrive(&settings, &mut state, &arrival);
                let octet = match expected {
                    Admission::Drop(_) => None,
                    Admission::Mark => Some(octet | 3),
                    Admission::Admit => Some(octet),
                };
                assert_eq!(out.as_ref().map(|f| f[15]), octet, "{name}, arrival {n}: {expected:?}");
                dropped += u64::from(out.is_none());
                lost += if out.is_none() { bytes as u64 } else { 0 };
                marked += u64::from(expected == Admission::Mark);
                assert_eq!(kernel.maps.backlog(0, class).unwrap().state(), state, "{name}, arrival {n}");
            }
            let (totals, backlog) = (kernel.maps.totals(0).unwrap(), kernel.maps.backlog(0, class).unwrap());
            assert_eq!((totals.dropped, totals.sent), (dropped, of * ARRIVALS - dropped));
            assert_eq!(backlog.dropped.iter().flatten().sum::<u64>(), dropped);
            assert_eq!(backlog.marked.iter().sum::<u64>(), marked);
            assert_eq!(backlog.lost.iter().sum::<u64>(), lost);
            let (drops, marks) = (dropped - before.0, marked - before.1);
            assert!(
                drops > ARRIVALS / 20 && (marks > 0) == settings.ecn,
                "{name}: {drops} dropped, {marks} marked"
            );
            println!(
                "{name:<16} {ARRIVALS} verdicts and states as the core's: {drops} dropped, {marks} marked"
            );
        }
    }

    /// Who is dropped behind his meter is counted with him, by cause.
    #[test]
    fn drops_are_counted_with_their_customer() {
        if !permitted() {
            return;
        }
        let text = file(LAWS[0].1).replace("10.9.0.0/16", "10.0.0.1").replace("role = \"core\"\n", "");
        let mut kernel = Tried::new(&config(&text));
        let frame = Ip { bytes: 1_000, octet: 0, ..Ip::default() }.frame().0;
        let left: Vec<_> = (0..50).filter_map(|_| kernel.arrive(Time(1_000_000), 0, &frame)).collect();
        // Nine have tokens, and the limit is of both colours.
        assert_eq!((left.len(), left.iter().filter(|f| f[15] >> 2 == 10).count()), (30, 9));
        let place = kernel.maps.places(0).get("customer alice").unwrap();
        let account = kernel.maps.account(0, place).unwrap();
        assert_eq!((account.came.packets, account.policed, account.early), (50, 20, 0));
        assert_eq!(account.sent.map(|c| c.packets), [9, 21, 0]);
        assert_eq!(account.left.map(|c| c.packets), [9, 41, 0]);
    }
}

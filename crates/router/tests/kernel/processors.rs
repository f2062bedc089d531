//! Several CPUs at once, and frames that stand for several.

use aya::TestRunOptions;
use aya::programs::TestRun;

use crate::frames::Ip;
use crate::tried::{Tried, config, permitted};

mod cpus {
    //! What a frame costs while another CPU works at the same: two customers on two CPUs hold each other up no more than two routers do.

    use std::sync::Barrier;
    use std::thread;

    use aya::programs::SchedClassifier;
    use rustix::time::{ClockId, clock_gettime};

    use super::*;
    use crate::pin::pin;

    /// Runs of a program at a time, and how often all are measured in turn: the median counts.
    const RUNS: u32 = 20_000;
    const ROUNDS: usize = 15;

    /// Customers 10.0.0.1 and 10.0.0.2, who send more than they bought.
    fn tried() -> Tried {
        let customer = |n: u32| {
            format!(
                "[[upstream.customers]]\nname = \"c{n}\"\nprefix = \"10.0.0.{n}\"\ncontract = \"1 Mbit/s\"\nmarker = {{ kind = \"srtcm\", cbs = \"15 kB\", ebs = \"15 kB\" }}\n"
            )
        };
        Tried::new(&config(&format!("[upstream]\n{}{}", customer(1), customer(2))))
    }

    /// CPU time of this thread so far, in nanoseconds.
    fn spent() -> u64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("no time before its start")
    }

    /// What runs at once in a measurement: on each CPU a program and whose frame, or nothing.
    type Set<'p> = [Option<(&'p SchedClassifier, u8)>; 2];

    /// CPU time of each frame in each set, in nanoseconds, by CPU and round; all in turn.
    fn measured<const N: usize>(sets: [Set<'_>; N]) -> [[[f64; ROUNDS]; N]; 2] {
        let together = Barrier::new(2);
        let run = &|cpu: usize| {
            pin(cpu);
            let mut context = [0; 192];
            context[152..160].copy_from_slice(&1_000_000u64.to_ne_bytes());
            let frames = [1, 2].map(|from| Ip { from, bytes: 64, ..Ip::default() }.frame().0);
            let mut times = [[0.0; ROUNDS]; N];
            for round in 0..ROUNDS {
                for (set, times) in sets.iter().zip(&mut times) {
                    together.wait();
                    let Some((program, from)) = set[cpu] else { continue };
                    let frame = &frames[usize::from(from) - 1];
                    let mut out = vec![0; frame.len() + 64];
                    let (data_in, data_out, ctx_in) =
                        (Some(&frame[..]), Some(&mut out[..]), Some(&context[..]));
                    let options =
                        TestRunOptions { data_in, data_out, ctx_in, repeat: RUNS, ..TestRunOptions::new() };
                    let before = spent();
                    program.test_run(options).expect("it runs");
                    times[round] = (spent() - before) as f64 / f64::from(RUNS);
                }
            }
            times
        };
        thread::scope(|scope| {
            [0, 1].map(|cpu| scope.spawn(move || run(cpu))).map(|t| t.join().expect("it ends"))
        })
    }

    fn median(mut of: [f64; ROUNDS]) -> f64 {
        of.sort_by(f64::total_cmp);
        of[ROUNDS / 2]
    }

    #[test]
    fn two_customers_on_two_cpus_do_not_wait_for_each_other() {
        if !permitted() {
            return;
        }
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            eprintln!("NOT TESTED: there is one CPU");
            return;
        }
        let (mut one, mut other) = (tried(), tried());
        let [one, other] = [&mut one, &mut other].map(|t| &*t.maps.program(0).unwrap());
        let [one, other] = [(one, 1), (other, 1)].map(Some);
        let second = one.map(|(program, _)| (program, 2));
        let times = measured([[one, None], [one, other], [one, second], [one, one]]);
        let [alone, routers, customers, same] = [0, 1, 2, 3]
            .map(|set| times.iter().map(|cpu| median(cpu[set])).filter(|time| *time > 0.0).sum::<f64>());
        let share = |pair: f64| 4.0 * alone / pair;
        println!(
            "{alone:.0} ns a frame; on two CPUs {:.2} × as many frames of two routers as of one, {:.2} × of two customers, {:.2} × of one customer",
            share(routers),
            share(customers),
            share(same)
        );
        // What two routers cannot do, whose CPUs share a core or a machine, nobody can.
        assert!(
            1.8 * routers > customers,
            "{customers} ns a frame of two customers, {routers} ns of two routers"
        );
    }
}

mod several {
    //! Packets of one customer on several CPUs at once have one bucket; super-packets are charged as the packets they will be cut into.

    use std::sync::atomic::{AtomicU64, Ordering};

    use inprofile_core::units::Time;
    use inprofile_router::kernel::places;

    use super::*;
    use crate::tried::User;

    const FILE: &str = "overhead = \"38 B\"\nmpu = \"84 B\"\n[upstream]\n[[upstream.customers]]\nname = \"alice\"\nprefix = \"10.0.0.1\"\ncontract = \"8 kbit/s\"\nmarker = { kind = \"srtcm\", cbs = \"1 MB\", ebs = \"500 kB\" }\n";

    /// At one moment, so that no token comes meanwhile: as many as fit are green, as many yellow, to the packet.
    #[test]
    fn a_bucket_is_one_on_several_cpus() {
        if !permitted() {
            return;
        }
        const THREADS: u64 = 4;
        const EACH: u64 = 1_000;
        let mut kernel = Tried::new(&config(FILE));
        let frame = Ip { bytes: 962, ..Ip::default() }.frame().0;
        let colours = [const { AtomicU64::new(0) }; 64];
        let mut context = [0; 192];
        context[152..160].copy_from_slice(&1_000u64.to_ne_bytes());
        let program = &*kernel.maps.program(0).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let mut out = vec![0; frame.len() + 64];
                        let (data_in, ctx_in) = (Some(&frame[..]), Some(&context[..]));
                        let options = TestRunOptions {
                            data_in,
                            ctx_in,
                            data_out: Some(&mut out),
                            ..TestRunOptions::new()
                        };
                        program.test_run(options).unwrap();
                        colours[usize::from(out[15] >> 2)].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        let of = |dscp: usize| colours[dscp].load(Ordering::Relaxed);
        // 1,000 bytes each: 962 and the overhead.
        assert_eq!((of(10), of(12), of(14)), (1_000, 500, THREADS * EACH - 1_500));
        let place = kernel.maps.places(0).get(&places::of_customer("alice")).unwrap();
        let account = kernel.maps.account(0, place).unwrap();
        assert_eq!(account.came.packets, THREADS * EACH);
        assert_eq!(account.sent.map(|c| c.packets), [1_000, 500, 2_500]);
        assert_eq!(account.tokens, [0, 0]);
    }

    /// A TCP segment of this payload, in a frame.
    fn segment(payload: usize) -> Vec<u8> {
        let mut frame = Ip { bytes: 40 + payload, protocol: 6, ..Ip::default() }.frame().0;
        frame[14 + 20 + 12] = 5 << 4;
        frame
    }

    #[test]
    fn a_super_packet_costs_what_its_packets_cost() {
        if !permitted() {
            return;
        }
        for (payload, part) in [
            (3_000_usize, 1_000),
            (2_999, 1_000),
            (2_001, 1_000),
            (1_001, 1_000),
            (1_000, 1_000),
            (100, 10),
            (3_000, 7),
        ] {
            let config = config(FILE);
            let (mut kernel, mut user) = (Tried::new(&config), User::new(&config));
            let parts = payload.div_ceil(part);
            let whole = [parts as u32, part as u32];
            assert!(kernel.arrive_as(Time(1_000_000), 0, &segment(payload), whole).is_some());
            for n in 0..parts {
                let frame = segment((payload - n * part).min(part));
                assert!(user.arrive(Time(1_000_000), 0, &frame).is_some());
            }
            let place = kernel.maps.places(0).get(&places::of_customer("alice")).unwrap();
            let (account, his) =
                (kernel.maps.account(0, place).unwrap(), &user.0.lanes[0].path.customers()[0]);
            assert_eq!(
                (account.came.packets, account.came.bytes),
                (his.arrived, his.arrived_bytes),
                "{payload} B in {parts}"
            );
            assert_eq!(kernel.maps.totals(0).unwrap().came, parts as u64);
        }
    }

    /// What all packets of a super-packet are charged for: how many, and bytes.
    fn charged(file: &str, frame: &[u8], parts: [u32; 2]) -> (u64, u64) {
        let mut kernel = Tried::new(&config(file));
        assert!(kernel.arrive_as(Time(1_000_000), 0, frame, parts).is_some());
        let totals = kernel.maps.totals(0).unwrap();
        let sent = totals.class.iter().flatten().fold((0, 0), |s, c| (s.0 + c.packets, s.1 + c.bytes));
        assert_eq!(totals.came, sent.0);
        sent
    }

    #[test]
    fn a_super_packet_whose_headers_are_not_read_costs_no_less_than_its_packets() {
        if !permitted() {
            return;
        }
        // IPv4 in IPv4 with TCP, 60 B of headers: each packet carries them again.
        for (payload, part) in [(3_000_usize, 1_000_usize), (1_001, 1_000), (200, 10), (190, 100), (100, 1)] {
            let frame = Ip { bytes: 60 + payload, protocol: 4, ..Ip::default() }.frame().0;
            let parts = payload.div_ceil(part);
            let leaves: usize = (0..parts).map(|n| (98 + (payload - n * part).min(part)).max(84)).sum();
            let (packets, bytes) = charged(FILE, &frame, [parts as u32, part as u32]);
            assert!(
                packets >= parts as u64 && bytes >= leaves as u64,
                "{packets}, {bytes} B of {parts}, {leaves} B"
            );
        }
        // No more than one packet fits into it: charged as it is.
        let frame = Ip { bytes: 1_020, protocol: 4, ..Ip::default() }.frame().0;
        assert_eq!(charged(FILE, &frame, [1, 1_000]), (1, 1_058));
    }

    #[test]
    fn an_sctp_super_packet_costs_a_header_for_each_packet() {
        if !permitted() {
            return;
        }
        // Of 3 packets with 32 B of headers and 968, 968 and 4 B, the last of which is charged for the least size.
        let frame = Ip { bytes: 32 + 1_940, protocol: 132, ..Ip::default() }.frame().0;
        let (packets, bytes) = charged(FILE, &frame, [3, 0xffff]);
        assert_eq!(packets, 3);
        assert_eq!(bytes, 3 * 84 + 1_940);
        assert!(bytes >= 2 * (38 + 1_000) + 84);
    }

    #[test]
    fn an_unreadable_super_packet_costs_no_less_than_its_packets() {
        if !permitted() {
            return;
        }
        let file = format!("frames.unreadable = \"best_effort\"\n{FILE}");
        // TCP in IPv4 behind an EtherType of nobody's: 40 B of headers that each packet carries again.
        let mut frame = segment(3_000);
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let (packets, bytes) = charged(&file, &frame, [30, 100]);
        assert!(packets >= 30 && bytes >= 30 * 178, "{packets}, {bytes} B");
    }
}

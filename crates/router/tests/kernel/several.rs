//! Packets of one customer on several CPUs at once have one bucket; super-packets are charged as the packets they will be cut into.

use std::sync::atomic::{AtomicU64, Ordering};

use aya::TestRunOptions;
use aya::programs::TestRun;
use inprofile_core::units::Time;
use inprofile_router::kernel::places;

use crate::frames::Ip;
use crate::tried::{Tried, User, config, permitted};

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
                    let options =
                        TestRunOptions { data_in, ctx_in, data_out: Some(&mut out), ..TestRunOptions::new() };
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
        let (account, his) = (kernel.maps.account(0, place).unwrap(), &user.0.lanes[0].path.customers()[0]);
        assert_eq!(
            (account.came.packets, account.came.bytes),
            (his.arrived, his.arrived_bytes),
            "{payload} B in {parts}"
        );
        assert_eq!(kernel.maps.totals(0).unwrap().came, parts as u64);
    }
}

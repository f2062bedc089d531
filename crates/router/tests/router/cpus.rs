//! One customer's packets on two CPUs at once, between namespaces: they have one rate.

use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use inprofile_live::io::Io;
use inprofile_live::io::afpacket::{AfPacket, PortOptions};
use inprofile_live::io::sys::Clock;

use crate::bench::{assert_adds_up, figure};
use crate::frames::Udp;
use crate::kernel::{bench, file};
use crate::pin::pin;

const RATE: u64 = 40_000_000;
/// Deep enough for a thread that waits for its turn.
const DEPTH: u64 = 2_000_000;
const SENT_FOR: Duration = Duration::from_secs(3);
/// Frames of 1,000 B: 64 every 4 ms, three times the rate by each thread.
const TRAIN: u64 = 64;
const GAP: Duration = Duration::from_millis(4);

/// Frames that each CPU has taken in, of all interfaces.
fn taken_in() -> Vec<u64> {
    let told = fs::read_to_string("/proc/net/softnet_stat").expect("the kernel tells");
    let first = |line: &str| line.split(' ').next().and_then(|n| u64::from_str_radix(n, 16).ok());
    told.lines().map(|line| first(line).expect("a count")).collect()
}

#[test]
fn a_customer_has_one_rate_on_two_cpus() {
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("NOT TESTED: there is one CPU");
        return;
    }
    let Some((mut bench, pins)) = bench("kernel-cpus") else { return };
    let tables = format!(
        "[upstream]\n[[upstream.customers]]\nname = \"alice\"\nprefix = \"10.0.0.1\"\ncontract = \"{RATE} bit/s\"\nmarker = {{ kind = \"token_bucket\", depth = \"{DEPTH} B\" }}\n"
    );
    bench.start(&file(&pins, &tables));
    let (namespace, before, together) = (&bench.namespace, taken_in(), Barrier::new(2));
    let send = |cpu: usize| {
        pin(cpu);
        namespace.within(|| {
            let ports = ["h0", "h1"].map(PortOptions::new);
            let mut host = AfPacket::open(&ports, Clock::start())?;
            let frame = Udp::numbered(cpu as u64).v4();
            let mut sent = 0;
            together.wait();
            let begin = Instant::now();
            let mut last = begin;
            while begin.elapsed() < SENT_FOR {
                for _ in 0..TRAIN {
                    host.send(0, &frame)?;
                }
                host.flush()?;
                last = Instant::now();
                sent += TRAIN;
                thread::sleep(GAP);
            }
            Ok((sent, begin, last))
        })
    };
    let [(one, began, ended), (other, begins, ends)] = thread::scope(|scope| {
        let send = &send;
        let threads = [0, 1].map(|cpu| scope.spawn(move || send(cpu).expect("it sends")));
        threads.map(|t| t.join().expect("it ends"))
    });
    let (sent, took) = ([one, other], ended.max(ends) - began.min(begins));
    let of_cpu: Vec<_> = taken_in().iter().zip(before).map(|(now, before)| now - before).collect();
    let stats = bench.stats();
    assert_adds_up(&stats);
    let of = |path: &str| figure(&stats, &format!("directions.0.{path}"));
    let (arrived, green) = (of("customers.0.arrived"), of("customers.0.sent_bytes.in"));
    assert!(of_cpu[0] >= sent[0] / 2 && of_cpu[1] >= sent[1] / 2, "{of_cpu:?} of {sent:?} on each CPU");
    let left = &stats["directions"][0]["markers"][0]["gauges"]["tokens"];
    let left = left.as_f64().expect("it has tokens");
    // It was full at the first packet.
    let bought = DEPTH as f64 + RATE as f64 / 8.0 * took.as_secs_f64();
    let share = green as f64 / (bought - left);
    println!("{arrived} packets of {sent:?} on two CPUs; IN {green} B, {share:.4} of what was bought");
    assert!(arrived * 1_000 > 3 * bought as u64 / 2, "{arrived} packets are too few to tell");
    assert!(green as f64 <= bought && share > 0.99, "{green} B of {bought} B, {left} B left");
}

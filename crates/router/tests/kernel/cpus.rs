//! What a frame costs while another CPU works at the same: two customers on two CPUs hold each other up no more than two routers do.

use std::fs;
use std::sync::Barrier;
use std::thread;

use aya::TestRunOptions;
use aya::programs::{SchedClassifier, TestRun};

use crate::frames::Ip;
use crate::pin::pin;
use crate::tried::{Tried, config, permitted};

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
    // Counted up to the last change of threads.
    thread::yield_now();
    let told = fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel tells");
    told.split(' ').next().and_then(|n| n.parse().ok()).expect("a count")
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
                let (data_in, data_out, ctx_in) = (Some(&frame[..]), Some(&mut out[..]), Some(&context[..]));
                let options =
                    TestRunOptions { data_in, data_out, ctx_in, repeat: RUNS, ..TestRunOptions::new() };
                let before = spent();
                program.test_run(options).expect("it runs");
                times[round] = (spent() - before) as f64 / f64::from(RUNS);
            }
        }
        times
    };
    thread::scope(|scope| [0, 1].map(|cpu| scope.spawn(move || run(cpu))).map(|t| t.join().expect("it ends")))
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

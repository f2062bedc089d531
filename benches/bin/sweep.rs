//! A sweep over seeds of the 100-flow dumbbell: `bench-sweep THREADS FIRST_SEED SEEDS SECONDS`.
//!
//! Threads take seeds from a common counter, as in the Python package's runner. Prints wall-clock and CPU time, neither
//! of which includes reading the experiment.

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use inprofile_benches::{Laws, cpu_time, dumbbell, run, through};

fn main() {
    let args: Vec<u64> = env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [threads, first, seeds, seconds] = args[..] else {
        eprintln!("bench-sweep THREADS FIRST_SEED SEEDS SECONDS");
        std::process::exit(2);
    };
    let scenario = dumbbell(100, seconds as f64, Laws::Own);
    let next = AtomicU64::new(first);
    let packets = AtomicU64::new(0);
    let (wall, cpu) = (Instant::now(), cpu_time());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        break;
                    }
                    packets.fetch_add(through(&scenario, &run(&scenario, seed).0), Ordering::Relaxed);
                }
            });
        }
    });
    println!(
        "packets={} wall_s={:.6} cpu_s={:.6}",
        packets.into_inner(),
        wall.elapsed().as_secs_f64(),
        (cpu_time() - cpu).as_secs_f64()
    );
}

//! One experiment in one piece and in parts, by turns: `bench-parts FILE PARTS THREADS [ROUNDS [KEY=VALUE…]]`.
//!
//! The best cut there is, whether it is expected to be faster or not, with what is expected of it: work in one piece and packets from part to part, each
//! second. Each line is a round: wall and CPU seconds of both, CPU seconds of the first thread in parts (with its waiting), events, windows, packets from part to part, and how many times as fast the parts would be if they waited for
//! each other at every window's end and did nothing else.

use std::env;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use inprofile_benches::{cpu_time, experiment_file, own_cpu_time};
use inprofile_sim::engine;
use inprofile_sim::parts::{self, balance::best};

fn main() {
    let args: Vec<String> = env::args().collect();
    let number = |i: usize| args.get(i).and_then(|a| a.parse::<u32>().ok());
    let (Some(file), Some(most), Some(threads)) = (args.get(1), number(2), number(3)) else {
        eprintln!("bench-parts FILE PARTS THREADS [ROUNDS [KEY=VALUE…]]");
        std::process::exit(2);
    };
    let set: Vec<(&str, &str)> = args.iter().skip(5).filter_map(|a| a.split_once('=')).collect();
    let scenario = experiment_file(file, &set);
    let stop = AtomicBool::new(false);
    let network = || scenario.network(1, false);
    let cut = best(&network(), most);
    println!(
        "parts={} lookahead={} expected={:.2} largest={:.3} work={:.3} crossing={:.0}",
        cut.cut.parts(),
        cut.cut.lookahead(),
        cut.speed_up,
        cut.largest,
        cut.work,
        cut.crossing
    );
    for _ in 0..number(4).unwrap_or(1) {
        let (one, many) = (network(), network());
        let (wall, used) = (Instant::now(), cpu_time());
        let whole = engine::run(one, &stop, None).expect("it runs");
        let (whole_wall, whole_cpu) = (wall.elapsed(), cpu_time() - used);
        let (wall, used, own) = (Instant::now(), cpu_time(), own_cpu_time());
        let (mut parts, windows) =
            parts::run_counted(many, &cut.cut, threads as usize, &stop, &AtomicU64::new(0)).expect("it runs");
        let (parts_wall, parts_cpu) = (wall.elapsed(), cpu_time() - used);
        let own = own_cpu_time() - own;
        println!(
            "wall={:.3}/{:.3} cpu={:.3}/{:.3} own={:.3} events={}/{} windows={} crossed={} most={:.3}",
            whole_wall.as_secs_f64(),
            parts_wall.as_secs_f64(),
            whole_cpu.as_secs_f64(),
            parts_cpu.as_secs_f64(),
            own.as_secs_f64(),
            whole.events,
            parts.events,
            windows.count,
            windows.crossed,
            parts.events as f64 / windows.critical as f64,
        );
        parts.events = whole.events;
        assert_eq!(whole, parts, "the outcome is not the same");
    }
}

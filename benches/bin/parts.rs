//! One experiment in one piece and in parts, by turns: `bench-parts FILE PARTS THREADS [ROUNDS [KEY=VALUE…]]`.
//!
//! The best cut there is, whether it is expected to be faster or not, with what is expected of it: work in one piece and packets from part to part, each
//! second. Each line is a round: wall and CPU seconds of both, CPU seconds of the first thread in parts (with its waiting), packets that the measured link has sent, its
//! utilisation and loss in the measured window, events, windows, and packets from part to part. Then two bounds, from the CPU time that each part took in each window with what it took in and laid out for
//! others: how many times as fast as in one piece the parts would be if meetings took no time (`most`), and if they never waited for each other (`unbound`).

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
        let clock = || own_cpu_time().as_nanos() as u64;
        let (mut parts, windows) =
            parts::run_counted(many, &cut.cut, threads as usize, &stop, &AtomicU64::new(0), &clock)
                .expect("it runs");
        let (parts_wall, parts_cpu) = (wall.elapsed(), cpu_time() - used);
        let own = own_cpu_time() - own;
        let bound = |took: u64| whole_cpu.as_secs_f64() * 1e9 / took.max(1) as f64;
        let at = &whole.links[scenario.model().at];
        let (came, lost) = (at.window.arrived, at.window.dropped);
        println!(
            "wall_s={:.3} parts_wall_s={:.3} cpu_s={:.3} parts_cpu_s={:.3} own_s={:.3} packets={} utilisation={:.4} loss={:.4} events={} \
             parts_events={} windows={} crossed={} most={:.3} unbound={:.3}",
            whole_wall.as_secs_f64(),
            parts_wall.as_secs_f64(),
            whole_cpu.as_secs_f64(),
            parts_cpu.as_secs_f64(),
            own.as_secs_f64(),
            at.total.sent.iter().sum::<u64>(),
            at.sending.secs() / (scenario.window().1 - scenario.window().0).secs(),
            lost.iter().flatten().sum::<u64>() as f64 / came.iter().sum::<u64>().max(1) as f64,
            whole.events,
            parts.events,
            windows.count,
            windows.crossed,
            bound(windows.critical),
            bound(windows.largest),
        );
        parts.events = whole.events;
        assert_eq!(whole, parts, "the outcome is not the same");
    }
}

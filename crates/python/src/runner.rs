//! Many runs on all cores. The interpreter lock is released while they run, and nothing depends on how
//! many threads there are: outcomes are put in order before anybody sees them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use inprofile_scenario as scenario;
use inprofile_sim::engine::{self, Failure};
use inprofile_sim::outcome::Outcome;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::Scenario;
use crate::results::{Names, Results};

/// How often Python is told of progress and asked for signals.
const GLANCE: Duration = Duration::from_millis(100);

/// One seed of one experiment.
struct Task {
    job: usize,
    place: usize,
    seed: u64,
}

/// Run every seed of every job on `threads` threads.
///
/// `done(index, results)` is called on this thread as soon as a job's last seed has finished,
/// `progress(finished, all)` a few times a second. Ctrl-C raises KeyboardInterrupt.
#[pyfunction]
#[pyo3(signature = (jobs, threads, trace, done, progress))]
pub fn run(
    py: Python<'_>,
    jobs: Vec<(Py<Scenario>, Vec<u64>)>,
    threads: usize,
    trace: bool,
    done: Py<PyAny>,
    progress: Py<PyAny>,
) -> PyResult<()> {
    if threads == 0 {
        return Err(PyValueError::new_err("threads: at least 1"));
    }
    let scenarios: Vec<scenario::Scenario> = jobs.iter().map(|(s, _)| s.get().inner.clone()).collect();
    let mut tasks = Vec::new();
    for (job, (_, seeds)) in jobs.iter().enumerate() {
        if seeds.is_empty() {
            return Err(PyValueError::new_err("every job needs at least one seed"));
        }
        tasks.extend(seeds.iter().enumerate().map(|(place, &seed)| Task { job, place, seed }));
    }
    let stop = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let (sender, mut receiver) = channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(tasks.len()) {
            let (sender, tasks, scenarios, stop, next) = (sender.clone(), &tasks, &scenarios, &stop, &next);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let network = scenarios[task.job].network(task.seed, trace);
                    let names = Names::of(&network);
                    let outcome = engine::run(network, stop, None);
                    if sender.send((task, names, outcome)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut collect = || -> PyResult<()> {
            let mut open: Vec<Vec<Option<(Names, Outcome)>>> =
                jobs.iter().map(|(_, seeds)| seeds.iter().map(|_| None).collect()).collect();
            let mut left: Vec<usize> = jobs.iter().map(|(_, seeds)| seeds.len()).collect();
            let mut finished = 0;
            progress.call1(py, (finished, tasks.len()))?;
            while finished < tasks.len() {
                // A shared receiver may not cross the release of the lock; a borrowed-for-change one may.
                let alone = &mut receiver;
                let message = py.detach(move || alone.recv_timeout(GLANCE));
                py.check_signals()?;
                match message {
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(PyRuntimeError::new_err("a simulation thread died"));
                    }
                    Ok((task, names, Ok(outcome))) => {
                        finished += 1;
                        open[task.job][task.place] = Some((names, outcome));
                        left[task.job] -= 1;
                        if left[task.job] == 0 {
                            let runs: Vec<_> = open[task.job].drain(..).flatten().collect();
                            let results = Results::new(&scenarios[task.job], &runs)?;
                            // The tables have it all.
                            drop(runs);
                            done.call1(py, (task.job, results))?;
                        }
                    }
                    Ok((_, _, Err(Failure::Stopped))) => {}
                    Ok((_, _, Err(failure))) => return Err(PyRuntimeError::new_err(failure.to_string())),
                }
                progress.call1(py, (finished, tasks.len()))?;
            }
            Ok(())
        };
        let ended = collect();
        stop.store(true, Ordering::Relaxed);
        ended
    })
}

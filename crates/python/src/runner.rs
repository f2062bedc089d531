//! Many runs on all cores. The interpreter lock is released while they run, and nothing depends on how
//! many threads there are: outcomes are put in order before anybody sees them. Where a mechanism is written in Python, a run
//! holds the lock, which the interpreter hands to other threads now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use inprofile_sim::engine::{self, Failure};
use inprofile_sim::outcome::Outcome;
use inprofile_sim::parts::{self, balance::balanced};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::experiment::Scenario;
use crate::names::Names;
use crate::own;
use crate::results::Results;

/// How often Python is told of progress and asked for signals.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// One seed of one experiment.
struct Task {
    job: usize,
    place: usize,
    seed: u64,
}

/// How far the run of a thread is, in picoseconds of simulated time.
#[derive(Default)]
struct Running {
    reached: AtomicU64,
    all: AtomicU64,
}

impl Running {
    /// As a share of the run, below 1: a run that is finished counts where its outcome is received.
    fn share(&self) -> f64 {
        let all = self.all.load(Ordering::Relaxed);
        if all == 0 { 0.0 } else { (self.reached.load(Ordering::Relaxed) as f64 / all as f64).min(0.999) }
    }
}

/// Experiments, each with its seeds.
type Jobs = [(Py<Scenario>, Vec<u64>)];

/// A run's names and outcome, or what a mechanism in Python raised.
type Ran = PyResult<(Names, Result<Outcome, Failure>)>;

/// Run every seed of every job, `side_by_side` of them at a time.
///
/// `done(index, results)` is called on this thread as soon as a job's last seed has finished,
/// `progress(finished, all, under_way)` a few times a second: runs finished, runs in all, and those under way, each
/// counted by the share of its time that is simulated. Each run is in up to `per_run` parts on as many threads, where that is expected to be
/// faster. Ctrl-C raises KeyboardInterrupt.
#[pyfunction]
#[pyo3(signature = (jobs, side_by_side, trace, done, progress, per_run = 1))]
pub fn run(
    py: Python<'_>,
    jobs: Vec<(Py<Scenario>, Vec<u64>)>,
    side_by_side: usize,
    trace: bool,
    done: Py<PyAny>,
    progress: Py<PyAny>,
    per_run: u32,
) -> PyResult<()> {
    if side_by_side == 0 || per_run == 0 {
        return Err(PyValueError::new_err("threads: at least 1"));
    }
    let mut tasks = Vec::new();
    for (job, (_, seeds)) in jobs.iter().enumerate() {
        if seeds.is_empty() {
            return Err(PyValueError::new_err("every job needs at least one seed"));
        }
        tasks.extend(seeds.iter().enumerate().map(|(place, &seed)| Task { job, place, seed }));
    }
    // Python code runs one call at a time: more threads would only pass the interpreter lock to and fro.
    let (side_by_side, per_run) = match jobs.iter().any(|(s, _)| !s.get().own.is_empty()) {
        true => (1, 1),
        false => (side_by_side, per_run),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let next = AtomicUsize::new(0);
    py.detach(|| {
        let (sender, receiver) = channel();
        let running: Vec<Running> = (0..side_by_side.min(tasks.len())).map(|_| Running::default()).collect();
        std::thread::scope(|scope| {
            for mine in &running {
                let (sender, tasks, jobs, stop, next) = (sender.clone(), &tasks, &jobs, &stop, &next);
                scope.spawn(move || work(jobs, tasks, next, (trace, per_run), stop, mine, &sender));
            }
            drop(sender);
            let ended = collect(&jobs, tasks.len(), &receiver, &running, &done, &progress);
            stop.store(true, Ordering::Relaxed);
            ended
        })
    })
}

/// One thread: runs the next task until there is none, or it is told to stop.
fn work<'t>(
    jobs: &Jobs,
    tasks: &'t [Task],
    next: &AtomicUsize,
    (trace, per_run): (bool, u32),
    stop: &Arc<AtomicBool>,
    running: &Running,
    sender: &Sender<(&'t Task, Ran)>,
) {
    while !stop.load(Ordering::Relaxed) {
        let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
        let scenario = jobs[task.job].0.get();
        running.reached.store(0, Ordering::Relaxed);
        running.all.store(scenario.inner.duration().0, Ordering::Relaxed);
        let simulate = || {
            let network = scenario.inner.network(task.seed, trace);
            let names = Names::of(&network);
            if per_run == 1 {
                return (names, engine::run_seen(network, stop, None, &running.reached));
            }
            let cut = balanced(&network, per_run).cut;
            (names, parts::run(network, &cut, per_run as usize, stop, &running.reached))
        };
        let ran = if scenario.own.is_empty() {
            Ok(simulate())
        } else {
            Python::attach(|_| own::guarded(stop, simulate))
        };
        if sender.send((task, ran)).is_err() {
            break;
        }
    }
    running.all.store(0, Ordering::Relaxed);
}

/// Receives `all` outcomes, puts them in order, and hands each job's on once they are complete.
fn collect(
    jobs: &Jobs,
    all: usize,
    receiver: &Receiver<(&Task, Ran)>,
    running: &[Running],
    done: &Py<PyAny>,
    progress: &Py<PyAny>,
) -> PyResult<()> {
    let mut open: Vec<Vec<Option<(Names, Outcome)>>> =
        jobs.iter().map(|(_, seeds)| seeds.iter().map(|_| None).collect()).collect();
    let mut left: Vec<usize> = jobs.iter().map(|(_, seeds)| seeds.len()).collect();
    let mut finished = 0;
    Python::attach(|py| progress.call1(py, (finished, all, 0.0)).map(drop))?;
    while finished < all {
        let message = receiver.recv_timeout(POLL_INTERVAL);
        Python::attach(|py| -> PyResult<()> {
            py.check_signals()?;
            match message {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("a simulation thread died"));
                }
                Ok((task, Err(error))) => {
                    let seed = format!("in the run of seed {}", task.seed);
                    error.value(py).call_method1("add_note", (seed,))?;
                    return Err(error);
                }
                Ok((task, Ok((names, Ok(outcome))))) => {
                    finished += 1;
                    open[task.job][task.place] = Some((names, outcome));
                    left[task.job] -= 1;
                    if left[task.job] == 0 {
                        let runs: Vec<_> = open[task.job].drain(..).flatten().collect();
                        let results = Results::new(jobs[task.job].0.clone_ref(py), runs);
                        done.call1(py, (task.job, results))?;
                    }
                }
                Ok((_, Ok((_, Err(Failure::Stopped))))) => {}
                Ok((_, Ok((_, Err(failure))))) => {
                    return Err(PyRuntimeError::new_err(failure.to_string()));
                }
            }
            let under_way: f64 = running.iter().map(Running::share).sum();
            progress.call1(py, (finished, all, under_way.min((all - finished) as f64))).map(drop)
        })?;
    }
    Ok(())
}

//! Runs with real hosts: one seed after the other, in wall time, with the interpreter lock released.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use inprofile_live::emulate::datagrams::Tally;
use inprofile_live::emulate::{self, Error, Report};
use inprofile_live::namespace::Namespace;
use inprofile_sim::engine::Failure;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyPermissionError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;

use crate::experiment::Scenario;
use crate::names::Names;
use crate::results::Results;
use crate::runner::POLL_INTERVAL;

create_exception!(_internal, NotLive, PyValueError, "An experiment that real hosts cannot run.");

/// Why this process can't make network namespaces, and what to do; None if it can.
#[pyfunction]
pub fn live_hindrance() -> Option<String> {
    Namespace::create().err().map(|e| e.to_string())
}

/// Run every seed of an experiment with real hosts: namespaces, and the kernel's TCP.
///
/// `progress(seconds done, seconds in all)` is called a few times a second. Gives the results, and JSON of how each run
/// kept time. Ctrl-C raises KeyboardInterrupt; NotLive is raised before anything is made.
#[pyfunction]
pub fn live(
    py: Python<'_>,
    scenario: Bound<'_, Scenario>,
    seeds: Vec<u64>,
    trace: bool,
    progress: Py<PyAny>,
) -> PyResult<(Results, String)> {
    let inner = &scenario.get().inner;
    let each = inner.duration().secs();
    let all = each * seeds.len() as f64;
    let (mut runs, mut reports) = (Vec::new(), Vec::new());
    for (i, &seed) in seeds.iter().enumerate() {
        let network = inner.network(seed, trace);
        let names = Names::of(&network);
        let stop = AtomicBool::new(false);
        let before = each * i as f64;
        let ran = std::thread::scope(|scope| {
            let run = scope.spawn(|| emulate::run(network, &stop));
            let began = Instant::now();
            while !run.is_finished() {
                py.detach(|| std::thread::sleep(POLL_INTERVAL));
                let done = before + began.elapsed().as_secs_f64().min(each);
                let told = progress.call1(py, (done, all));
                if let Err(e) = py.check_signals().and(told.map(|_| ())) {
                    stop.store(true, Ordering::Relaxed);
                    // It ends within a tenth of a second; what it found out till then is nobody's.
                    let _ = py.detach(|| run.join());
                    return Err(e);
                }
            }
            let ended = run.join().map_err(|_| PyRuntimeError::new_err("the emulation died"))?;
            ended.map_err(refusal)
        })?;
        reports.push(told(seed, &ran.report));
        runs.push((names, ran.outcome));
    }
    Ok((Results::new(scenario.unbind(), runs), json!(reports).to_string()))
}

/// An error as Python's own.
fn refusal(error: Error) -> PyErr {
    match error {
        Error::Refused(all) => {
            let all: Vec<_> = all.into_iter().map(|r| (r.flow, r.key, r.problem, r.remedy)).collect();
            NotLive::new_err((all,))
        }
        Error::System(_, ref e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            PyPermissionError::new_err(error.to_string())
        }
        Error::System(..) => PyOSError::new_err(error.to_string()),
        Error::Failure(Failure::Stopped | Failure::NotConserved(_)) => {
            PyRuntimeError::new_err(error.to_string())
        }
    }
}

/// How a run kept time.
fn told(seed: u64, report: &Report) -> serde_json::Value {
    let late = &report.lateness;
    json!({
        "seed": seed,
        "packets": late.count(),
        "late_p50": late.quantile(0.5).secs(),
        "late_p99": late.quantile(0.99).secs(),
        "late_most": late.most().secs(),
        "real_time": report.real_time,
        "strays": report.strays,
        "refused": report.refused,
        "datagrams": report.datagrams.iter().map(counted).collect::<Vec<_>>(),
        "notes": report.notes,
    })
}

/// The counts of the two ends of a flow of datagrams.
fn counted((flow, tally): &(String, Tally)) -> serde_json::Value {
    json!({
        "flow": flow,
        "sent": tally.sent,
        "received": tally.received,
        "lost": tally.lost(),
        "overtaken": tally.overtaken,
        "sent_late_p99": tally.lateness.quantile(0.99).secs(),
        "sent_late_most": tally.lateness.most().secs(),
    })
}

//! An experiment as ns-2 would run it: its script, and our own run's trace in ns-2's format.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use inprofile_sim::ns2::trace::{self, Incomplete};
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::experiment::Scenario;

create_exception!(_internal, Inexpressible, PyValueError, "An experiment that ns-2 has no words for.");

/// How often Python is asked for signals.
const GLANCE: Duration = Duration::from_millis(100);

/// The Tcl script by which ns-2 2.35 runs this seed of an experiment.
///
/// `Inexpressible` with a list of texts, one for each thing that ns-2 doesn't have.
#[pyfunction]
pub fn ns2_script(scenario: &Scenario, seed: u64) -> PyResult<String> {
    scenario.inner.ns2_script(seed).map_err(|missing| Inexpressible::new_err(missing.0))
}

/// The Tcl script by which ns-2 2.35 runs an experiment like this one and counts, whatever its engine's profile.
///
/// `Inexpressible` as [`ns2_script`].
#[pyfunction]
pub fn ns2_counting_script(scenario: &Scenario, seed: u64) -> PyResult<String> {
    scenario.inner.ns2_counting_script(seed).map_err(|missing| Inexpressible::new_err(missing.0))
}

/// Run this seed and write every event at every link to the file at `path`, in the format of ns-2's trace.
///
/// Gives the number of data packets that arrived at receivers. OSError with the path if the file can't be written.
#[pyfunction]
pub fn ns2_log(py: Python<'_>, scenario: &Scenario, seed: u64, path: &str) -> PyResult<u64> {
    let file = File::create(path).map_err(|error| os_error(&error, path))?;
    let network = scenario.inner.network(seed, false);
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, mut receiver) = channel();
    let stopper = Arc::clone(&stop);
    let worker = std::thread::spawn(move || {
        // Nobody listens any more where Python was interrupted.
        let _ = sender.send(trace::run(network, &stopper, file));
    });
    let ended = loop {
        // A shared receiver may not cross the release of the lock; a borrowed-for-change one may.
        let alone = &mut receiver;
        match py.detach(move || alone.recv_timeout(GLANCE)) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    stop.store(true, Ordering::Relaxed);
                    let _ = py.detach(|| worker.join());
                    return Err(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the simulation thread died"));
            }
        }
    };
    match ended {
        Ok(outcome) => Ok(outcome.flows.iter().flat_map(|f| f.total.received).sum()),
        Err(Incomplete::Write(error)) => Err(os_error(&error, path)),
        Err(Incomplete::Run(failure)) => Err(PyRuntimeError::new_err(failure.to_string())),
    }
}

/// As Python's own `open` and `write` would raise it: number, text and file.
fn os_error(error: &io::Error, path: &str) -> PyErr {
    match error.raw_os_error() {
        Some(number) => Python::attach(|py| {
            let text = py.import("os").and_then(|os| os.call_method1("strerror", (number,)));
            let text = text.and_then(|t| t.extract::<String>()).unwrap_or_else(|_| error.to_string());
            PyOSError::new_err((number, text, path.to_owned()))
        }),
        None => PyOSError::new_err(format!("{path}: {error}")),
    }
}

//! The packets of one run, in files that other programs read: ns-2's trace, a capture.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

use inprofile_live::capture;
use inprofile_sim::ns2::trace;
use inprofile_sim::run_log::Incomplete;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::experiment::Scenario;
use crate::runner::POLL_INTERVAL;

/// Run this seed and write every event at every link to the file at `path`, in the format of ns-2's trace.
///
/// Gives the number of data packets that arrived at receivers. OSError with the path if the file can't be written.
#[pyfunction]
pub fn ns2_log(py: Python<'_>, scenario: &Scenario, seed: u64, path: &str) -> PyResult<u64> {
    let file = File::create(path).map_err(|error| os_error(&error, path))?;
    let network = scenario.inner.network(seed, false);
    let outcome = aside(py, move |stop| trace::run(network, stop, file))?;
    let outcome = outcome.map_err(|error| incomplete(error, path))?;
    Ok(outcome.flows.iter().flat_map(|f| f.total.received).sum())
}

/// Run this seed and write what passes the links of these names, and what their queues drop, to the file at `path`, as pcapng.
///
/// At most `snaplen` bytes of a packet, 0 for all. Gives the numbers of packets passed and dropped. ValueError for what can't be
/// captured, OSError with the path if the file can't be written.
#[pyfunction]
pub fn capture_packets(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    path: &str,
    at: Vec<String>,
    snaplen: u32,
) -> PyResult<(u64, u64)> {
    let file = File::create(path).map_err(|error| os_error(&error, path))?;
    let network = scenario.inner.network(seed, false);
    let request = capture::Request {
        at,
        snaplen,
        program: format!("Inprofile {}", env!("CARGO_PKG_VERSION")),
        comment: format!("{}, seed {seed}", scenario.inner.title()),
    };
    let written = aside(py, move |stop| capture::run(network, &request, stop, file))?;
    match written {
        Ok(written) => Ok((written.passed, written.dropped)),
        Err(capture::Error::Refused(why)) => Err(PyValueError::new_err(why)),
        Err(capture::Error::Incomplete(error)) => Err(incomplete(error, path)),
    }
}

/// Does work on a thread of its own, so that Ctrl-C is heard; it is then told to stop.
fn aside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, mut receiver) = channel();
    let stopper = Arc::clone(&stop);
    let worker = std::thread::spawn(move || {
        // Nobody listens any more where Python was interrupted.
        let _ = sender.send(work(&stopper));
    });
    loop {
        // A shared receiver may not cross the release of the lock; a borrowed-for-change one may.
        let alone = &mut receiver;
        match py.detach(move || alone.recv_timeout(POLL_INTERVAL)) {
            Ok(done) => return Ok(done),
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
    }
}

fn incomplete(error: Incomplete, path: &str) -> PyErr {
    match error {
        Incomplete::Write(error) => os_error(&error, path),
        Incomplete::Run(failure) => PyRuntimeError::new_err(failure.to_string()),
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

//! The packets of one run, in files that other programs read: ns-2's trace, a capture.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};

use inprofile_live::capture;
use inprofile_sim::engine::{self, Failure};
use inprofile_sim::ns2;
use inprofile_sim::run_log::Incomplete;
use inprofile_sim::run_log::{Code, LogRow};
use pyo3::exceptions::{PyKeyError, PyOSError, PyRuntimeError, PyValueError};
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
    let outcome = aside(py, move |stop| ns2::run(network, stop, file))?;
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

/// When (ps), what, the packet's number, flow and colour, its bytes, and of a drop its cause.
type AtQueue = (u64, char, u64, u32, &'static str, u32, Option<&'static str>);

/// What happens to packets at the queue of this link from `start` to `end` (ps): `+` it arrives, `-` it leaves for the link, `d` it is dropped.
///
/// The arrivals of those that wait at `start` come first, at their own times. The run ends at `end`. KeyError for a link that is not there.
#[pyfunction]
pub fn queue_log(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    link: &str,
    start: u64,
    end: u64,
) -> PyResult<Vec<AtQueue>> {
    let network = scenario.inner.network(seed, false);
    let Some(link) = network.links.iter().position(|l| l.name == link) else {
        return Err(PyKeyError::new_err(link.to_owned()));
    };
    aside(py, move |stop| {
        let found = Arc::new(Mutex::new((BTreeMap::new(), Vec::new())));
        let (writer, stopper) = (Arc::clone(&found), Arc::clone(stop));
        let log = Box::new(move |row: &LogRow| {
            if row.time.0 > end {
                stopper.store(true, Ordering::Relaxed);
            } else if row.link as usize == link {
                let mut found = writer.lock().unwrap_or_else(PoisonError::into_inner);
                note(row, start, &mut found);
            }
        });
        let ended = engine::run(network, stop, Some(log));
        let (waiting, rows) = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
        match ended {
            Err(failure @ Failure::NotConserved(_)) => Err(PyRuntimeError::new_err(failure.to_string())),
            // Stopped: at `end`; where Ctrl-C did it, nobody listens.
            Ok(_) | Err(Failure::Stopped) => Ok(before(waiting, rows)),
        }
    })?
}

/// What waits at `from`, by number; and what happened since.
type Noted = (BTreeMap<u64, AtQueue>, Vec<AtQueue>);

fn note(row: &LogRow, from: u64, (waiting, rows): &mut Noted) {
    let (what, cause) = match row.code {
        Code::Enqueue => ('+', None),
        Code::Dequeue => ('-', None),
        Code::Drop(cause) => ('d', Some(cause.name())),
        Code::Receive => return,
    };
    let packet = &row.packet.packet;
    let seen = (row.time.0, what, row.number, packet.flow.0, packet.colour.name(), packet.size, cause);
    if row.time.0 >= from {
        rows.push(seen);
    } else if what == '+' {
        waiting.insert(row.number, seen);
    } else {
        waiting.remove(&row.number);
    }
}

fn before(waiting: BTreeMap<u64, AtQueue>, rows: Vec<AtQueue>) -> Vec<AtQueue> {
    let mut all: Vec<AtQueue> = waiting.into_values().collect();
    all.sort_by_key(|row| row.0);
    all.extend(rows);
    all
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

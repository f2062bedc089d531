//! Errors in a mechanism written in Python: the hooks that the engine calls cannot fail, so the error waits here,
//! on the thread of the run, which is told to stop.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use inprofile_core::units::Time;
use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

create_exception!(_internal, MechanismError, PyRuntimeError, "A mechanism written in Python has failed.");

#[derive(Default)]
struct Run {
    stop: Option<Arc<AtomicBool>>,
    error: Option<PyErr>,
}

thread_local! {
    static RUN: RefCell<Run> = RefCell::default();
}

/// Runs on this thread; the first error of a mechanism sets `stop` and is what comes out.
///
/// # Errors
/// That error, a [`MechanismError`].
pub fn guarded<T>(stop: &Arc<AtomicBool>, run: impl FnOnce() -> T) -> PyResult<T> {
    RUN.with_borrow_mut(|r| *r = Run { stop: Some(stop.clone()), error: None });
    let made = run();
    match RUN.take().error {
        Some(error) => Err(error),
        None => Ok(made),
    }
}

/// Keeps the error, if it is the run's first, and stops the run.
pub fn raise(py: Python<'_>, name: &str, hook: &str, now: Option<Time>, cause: PyErr) {
    RUN.with_borrow_mut(|run| {
        if run.error.is_none() {
            let at = now.map_or(String::new(), |t| format!(" at {:.6} s", t.secs()));
            let error = MechanismError::new_err(format!("{}{at}", told(py, name, hook, &cause)));
            error.set_cause(py, Some(cause));
            run.error = Some(error);
        }
        if let Some(stop) = &run.stop {
            stop.store(true, Ordering::Relaxed);
        }
    });
}

/// An exception in a sentence: whose, what, and the line it came from.
pub fn told(py: Python<'_>, name: &str, hook: &str, error: &PyErr) -> String {
    let kind = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |n| n.to_string());
    let line = error.traceback(py).and_then(|t| last_line(&t));
    let place = line.map_or(String::new(), |line| format!(" ({line})"));
    format!("{name}: {hook} raised {kind}: {}{place}", error.value(py))
}

/// `file.py, line 12`, of the innermost frame.
fn last_line(traceback: &Bound<'_, pyo3::types::PyTraceback>) -> Option<String> {
    let mut at = traceback.clone().into_any();
    while let Ok(next) = at.getattr("tb_next")
        && !next.is_none()
    {
        at = next;
    }
    let line: u32 = at.getattr("tb_lineno").ok()?.extract().ok()?;
    let file = at.getattr("tb_frame").ok()?.getattr("f_code").ok()?.getattr("co_filename").ok()?;
    Some(format!("{file}, line {line}"))
}

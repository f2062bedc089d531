//! A run whose log is written as it goes.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{self, Failure};
use crate::log::LogRow;
use crate::network::Network;
use crate::outcome::Outcome;

/// Why a run's log was not written whole.
#[derive(Debug)]
pub enum Incomplete {
    /// The run itself has no outcome.
    Run(Failure),
    /// The log could not be written; the run was stopped there.
    Write(io::Error),
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Incomplete::Run(failure) => failure.fmt(f),
            Incomplete::Write(error) => write!(f, "the packets could not be written: {error}"),
        }
    }
}

impl std::error::Error for Incomplete {}

/// The destination that the engine writes to while it runs.
struct Sink<W: Write> {
    to: BufWriter<W>,
    failed: Option<io::Error>,
}

/// Runs a network to its end, and has `write` put every event at every link into `to`.
///
/// `stop` ends the run early, as it does when `to` takes no more.
///
/// # Errors
/// [`Incomplete`].
pub fn run<W: Write + Send + 'static>(
    network: Network,
    stop: &Arc<AtomicBool>,
    to: W,
    mut write: impl FnMut(&LogRow, &mut BufWriter<W>) -> io::Result<()> + Send + 'static,
) -> Result<Outcome, Incomplete> {
    let sink = Arc::new(Mutex::new(Sink { to: BufWriter::with_capacity(1 << 16, to), failed: None }));
    let (writer, stopper) = (Arc::clone(&sink), Arc::clone(stop));
    let log = Box::new(move |row: &LogRow| {
        // Only this closure holds the lock while the run lasts.
        let mut sink = writer.lock().unwrap_or_else(PoisonError::into_inner);
        if sink.failed.is_none()
            && let Err(error) = write(row, &mut sink.to)
        {
            sink.failed = Some(error);
            stopper.store(true, Ordering::Relaxed);
        }
    });
    let ended = engine::run(network, stop, Some(log));
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = sink.failed.take() {
        return Err(Incomplete::Write(error));
    }
    let outcome = ended.map_err(Incomplete::Run)?;
    sink.to.flush().map_err(Incomplete::Write)?;
    Ok(outcome)
}

//! A log of every packet at every link, for traces, captures and comparison with ns-2; and a run whose log is written as it goes.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use inprofile_core::units::Time;
use inprofile_core::verdict::Cause;

use crate::engine::{self, Failure};
use crate::network::{LinkId, Network, NodeId};
use crate::outcome::Outcome;
use crate::packet::InFlight;
use crate::tcp::{ByteOption, Sack};

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

/// The event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// It arrived at the queue of a link.
    Enqueue,
    /// It left the queue for the link. Only with stepped service.
    Dequeue,
    /// It arrived at the end of the link.
    Receive,
    /// It was dropped at the queue, and why.
    Drop(Cause),
}

/// One line of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogRow {
    /// The event.
    pub code: Code,
    /// When, in seconds: with ns-2's clock the double itself.
    pub at: f64,
    /// When, in picoseconds.
    pub time: Time,
    /// The link.
    pub link: LinkId,
    /// The link's start.
    pub from: NodeId,
    /// The link's end.
    pub to: NodeId,
    /// The packet.
    pub packet: InFlight,
    /// The SACK option of an acknowledgement, of a flow that uses SACK.
    pub sack: Sack,
    /// The AccECN Option of an acknowledgement.
    pub bytes: Option<ByteOption>,
    /// Its number in the run.
    pub number: u64,
}

/// Receives the log.
pub type Log = Box<dyn FnMut(&LogRow) + Send>;

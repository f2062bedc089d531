//! Structured logs: one JSON object per line, written by a thread of its own, so that a slow or full disk never delays a
//! packet. Lines that cannot be written are counted. For log rotation the file can be reopened between two lines.

use std::fs::File;
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value as Json, json};

use crate::config::Level;

/// Lines that may wait to be written.
const WAITING: usize = 1024;

/// Where lines go to; clones share it.
#[derive(Clone, Debug)]
pub struct Log {
    lines: SyncSender<Order>,
    shared: Arc<Shared>,
}

/// The requests to the writing thread.
#[derive(Debug)]
enum Order {
    Line(Vec<u8>),
    /// From now on into this one.
    Into(File),
}

#[derive(Debug)]
struct Shared {
    level: AtomicU8,
    written: AtomicU64,
    lost: AtomicU64,
}

/// Opens a file to append to, or makes it.
///
/// # Errors
/// As [`crate::files::append`].
#[cfg(target_os = "linux")]
pub fn open(path: &Path) -> io::Result<File> {
    crate::files::append(path).map_err(|e| io::Error::new(e.kind(), format!("log.file {e}")))
}

impl Log {
    /// Starts the thread that writes. It ends when every clone is gone.
    ///
    /// # Errors
    /// If there can't be another thread.
    pub fn start(level: Level, to: Option<File>) -> io::Result<(Log, JoinHandle<()>)> {
        let (lines, queue) = sync_channel(WAITING);
        let shared = Arc::new(Shared {
            level: AtomicU8::new(level as u8),
            written: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let counts = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("log".into()).spawn(move || match to {
            Some(file) => write_all(&queue, Box::new(file), &counts, true),
            None => write_all(&queue, Box::new(io::stderr()), &counts, false),
        })?;
        Ok((Log { lines, shared }, thread))
    }

    /// Lines of less importance are omitted from now on.
    pub fn set_level(&self, level: Level) {
        self.shared.level.store(level as u8, Ordering::Relaxed);
    }

    /// Switches to this log file; the previous one is closed.
    ///
    /// # Errors
    /// If too many lines wait to be written.
    pub fn change_to(&self, file: File) -> io::Result<()> {
        let full = |_| io::Error::new(io::ErrorKind::WouldBlock, "too many lines wait to be written");
        self.lines.try_send(Order::Into(file)).map_err(full)
    }

    /// Something failed.
    pub fn error(&self, event: &str, text: &str, fields: &[(&str, Json)]) {
        self.line(Level::Error, event, text, fields);
    }

    /// Something is odd.
    pub fn warn(&self, event: &str, text: &str, fields: &[(&str, Json)]) {
        self.line(Level::Warn, event, text, fields);
    }

    /// Something was done.
    pub fn info(&self, event: &str, text: &str, fields: &[(&str, Json)]) {
        self.line(Level::Info, event, text, fields);
    }

    /// Lines written, and lines lost.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.shared.written.load(Ordering::Relaxed), self.shared.lost.load(Ordering::Relaxed))
    }

    fn line(&self, level: Level, event: &str, text: &str, fields: &[(&str, Json)]) {
        if level as u8 > self.shared.level.load(Ordering::Relaxed) {
            return;
        }
        let mut object = Map::new();
        object.insert("time".into(), json!(stamp(now_ms())));
        object.insert("level".into(), json!(level.name()));
        object.insert("event".into(), json!(event));
        object.insert("text".into(), json!(text));
        object.extend(fields.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
        let mut line = Json::Object(object).to_string().into_bytes();
        line.push(b'\n');
        if self.lines.try_send(Order::Line(line)).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes until nobody can send any more. The first failure of a row is told on standard error.
fn write_all(queue: &Receiver<Order>, mut to: Box<dyn Write>, shared: &Shared, mut tell: bool) {
    let mut broken = false;
    for order in queue {
        let line = match order {
            Order::Line(line) => line,
            Order::Into(file) => {
                (to, tell, broken) = (Box::new(file), true, false);
                continue;
            }
        };
        // What broke off in the middle of a line ends here.
        let start: &[u8] = if broken { b"\n" } else { b"" };
        match to.write_all(&[start, &line].concat()).and_then(|()| to.flush()) {
            Ok(()) => {
                shared.written.fetch_add(1, Ordering::Relaxed);
                broken = false;
            }
            Err(e) => {
                shared.lost.fetch_add(1, Ordering::Relaxed);
                if tell && !broken {
                    eprintln!(
                        "inprofiled: the log can't be written: {e}; forwarding goes on, lost lines are counted"
                    );
                }
                broken = true;
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a line in a log has the time on the wall, and nothing else does"
)]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// RFC 3339, in UTC, from milliseconds since 1970.
fn stamp(ms: u64) -> String {
    let (days, rest) = (ms / 86_400_000, ms % 86_400_000);
    // Days since 1 March of year 0, in eras of 400 years: a leap day is then always a year's last.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!(
        "{:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}.{:03}Z",
        era * 400 + year + carry,
        rest / 3_600_000,
        rest / 60_000 % 60,
        rest / 1_000 % 60,
        rest % 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_by_hand() {
        assert_eq!(stamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(stamp(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(stamp(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(stamp(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn a_full_disk_is_counted() {
        // /dev/full takes nothing: ENOSPC.
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (log, thread) = Log::start(Level::Info, Some(full)).unwrap();
        (0..5).for_each(|i| log.info("test", "text", &[("i", i.into())]));
        let counts = log.clone();
        let shared = Arc::clone(&counts.shared);
        drop((log, counts));
        thread.join().unwrap();
        assert_eq!((shared.written.load(Ordering::Relaxed), shared.lost.load(Ordering::Relaxed)), (0, 5));
    }
}

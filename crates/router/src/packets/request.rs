//! A request to the packet thread: it is either accepted and answered, or withdrawn, never both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The packet thread's end of a request.
#[derive(Debug)]
pub struct Request<T> {
    answer: Sender<T>,
    decided: Arc<AtomicBool>,
}

/// The other end, of the thread that asks.
#[derive(Debug)]
pub struct Waiting<T> {
    answer: Receiver<T>,
    decided: Arc<AtomicBool>,
}

/// Both ends.
#[must_use]
pub fn ask<T>() -> (Request<T>, Waiting<T>) {
    let (sender, receiver) = channel();
    let decided = Arc::new(AtomicBool::new(false));
    (Request { answer: sender, decided: Arc::clone(&decided) }, Waiting { answer: receiver, decided })
}

impl<T> Request<T> {
    /// Accepts it; `false` if it was withdrawn.
    #[must_use]
    pub fn take(&self) -> bool {
        !self.decided.swap(true, Ordering::AcqRel)
    }

    /// Whether nobody waits for it any more.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.decided.load(Ordering::Acquire)
    }

    /// Answers.
    pub fn answer(self, answer: T) {
        // Whoever asked may be gone; then nobody misses the answer.
        let _ = self.answer.send(answer);
    }
}

impl<T> Waiting<T> {
    /// Waits for the answer. A request not accepted within `patience` is withdrawn; an accepted one has the same time again.
    ///
    /// # Errors
    /// Why there is none.
    pub fn answer(&self, patience: Duration) -> Result<T, String> {
        let ended = || "the packet loop has ended".to_owned();
        match self.answer.recv_timeout(patience) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if !self.decided.swap(true, Ordering::AcqRel) {
            return Err("the packet loop doesn't answer".into());
        }
        self.answer.recv_timeout(patience).map_err(|e| match e {
            RecvTimeoutError::Timeout => "the packet loop accepted it and hasn't finished".into(),
            RecvTimeoutError::Disconnected => ended(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_withdrawn_is_not_taken_up() {
        let (asked, waiting) = ask::<()>();
        assert_eq!(waiting.answer(Duration::from_millis(1)), Err("the packet loop doesn't answer".into()));
        assert!(!asked.take(), "too late");
    }

    #[test]
    fn what_is_taken_up_is_waited_for() {
        let (asked, waiting) = ask();
        assert!(asked.take());
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            asked.answer(7);
        });
        assert_eq!(waiting.answer(Duration::from_millis(200)), Ok(7));
        late.join().unwrap();
        let (asked, waiting) = ask::<()>();
        assert!(asked.take());
        assert!(waiting.answer(Duration::from_millis(1)).unwrap_err().contains("hasn't finished"));
        drop(asked);
        assert_eq!(waiting.answer(Duration::from_millis(1)), Err("the packet loop has ended".into()));
    }
}

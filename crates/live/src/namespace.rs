//! Network namespaces without names: one exists while a descriptor, a thread or a socket holds it, so the kernel removes it
//! whenever and however this process ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::io::sys;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(File);

/// Why no namespace can be made, and what to do.
pub const HINT: &str = "making network namespaces needs root (CAP_SYS_ADMIN), or `unshare -Urn` where user namespaces are allowed";

impl Namespace {
    /// A new one, with nothing in it but a loopback interface that is down.
    ///
    /// # Errors
    /// `PermissionDenied`, with what to do; else what the system says.
    pub fn create() -> io::Result<Namespace> {
        // A thread that leaves for the new namespace and ends; what is left is the descriptor.
        apart(|| {
            sys::unshare_network().map_err(|e| match e.kind() {
                io::ErrorKind::PermissionDenied => io::Error::new(e.kind(), HINT),
                _ => e,
            })?;
            Namespace::current()
        })
    }

    /// That of the calling thread.
    ///
    /// # Errors
    /// The system's error.
    pub fn current() -> io::Result<Namespace> {
        File::open("/proc/thread-self/ns/net").map(Namespace)
    }

    /// Moves the calling thread into it, for good.
    ///
    /// # Errors
    /// The system's error.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter_network(self.0.as_fd())
    }

    /// Does something inside it, on a thread of its own.
    ///
    /// # Errors
    /// The error of the system or of `work`.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        apart(|| {
            self.enter()?;
            work()
        })
    }

    /// The descriptor: `nsenter --net=/proc/PID/fd/N` looks inside.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn apart<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        scope.spawn(work).join().unwrap_or_else(|_| Err(io::Error::other("a thread in a namespace died")))
    })
}

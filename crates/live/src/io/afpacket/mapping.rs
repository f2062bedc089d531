//! Memory that a socket shares with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A mapping, unmapped with its only owner. It hands out raw pointers and nothing else: the code that follows one answers for what the
/// kernel and others do there meanwhile.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping belongs to the process and to no thread, and this is the only owner: nobody unmaps it while it is on its way. No
// reference into it is kept here.
unsafe impl Send for Mapping {}

impl Mapping {
    /// So many bytes of a socket's memory, to be read and written.
    pub(super) fn new(socket: BorrowedFd<'_>, length: usize) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address; nothing else is mapped there.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Mapping { start, length })
    }

    /// Where `length` bytes begin that lie `from` the start.
    ///
    /// # Panics
    /// If they lie outside.
    pub(super) fn at(&self, from: usize, length: usize) -> *mut u8 {
        assert!(from.checked_add(length).is_some_and(|end| end <= self.length), "within the mapping");
        // SAFETY: it lies within the mapping.
        unsafe { self.start.as_ptr().add(from) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what was mapped in `new`, unmapped once.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

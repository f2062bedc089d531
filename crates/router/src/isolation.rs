//! The two ports closed to the machine's own network stack: no customer reaches the machine through them, and the machine sends
//! nothing there of its own accord, while the router runs.
//!
//! How an interface is closed: [`inprofile_live::io::closed`]. It stays so if the process is killed or ends by a fault, so that the ports
//! are not open until the next start, which takes them over. At an orderly end they are opened; after a start that fails they are as it
//! found them.

use std::io;
use std::path::Path;

use inprofile_live::io::afpacket::claim;
use inprofile_live::io::netlink::Netlink;
use inprofile_live::io::sys::interface_index;

use crate::log::Log;

/// Ports that we have closed.
#[derive(Debug)]
pub struct Isolation {
    names: [String; 2],
    /// Their interfaces, by number.
    closed: [Option<u32>; 2],
    /// Whether they were so before, by a router that didn't open them.
    found: [bool; 2],
    /// Why one may not be closed any more, as it was said.
    trouble: [Option<String>; 2],
}

impl Isolation {
    /// Closes these interfaces.
    ///
    /// # Errors
    /// The system's error, with the interface; ports closed by then are opened again.
    pub fn start(names: &[String; 2], indices: [Option<u32>; 2]) -> io::Result<Isolation> {
        let mut this =
            Isolation { names: names.clone(), closed: [None; 2], found: [false; 2], trouble: [None, None] };
        for (port, index) in indices.into_iter().enumerate() {
            let index = index.ok_or_else(|| this.named(port, &io::Error::from_raw_os_error(libc::ENODEV)))?;
            let found = Netlink::open().and_then(|n| n.is_closed(index)).map_err(|e| this.named(port, &e))?;
            this.take_up(port, index)?;
            this.found[port] = found;
        }
        Ok(this)
    }

    /// Closes the interface of this number, which is the port from now on. One that it was before is let go.
    ///
    /// # Errors
    /// The system's error, with the interface.
    pub fn take_up(&mut self, port: usize, index: u32) -> io::Result<()> {
        if self.closed[port] != Some(index) {
            self.let_go(port)?;
        }
        // Even if it fails half-way: then what is there has to go.
        self.closed[port] = Some(index);
        self.found[port] = false;
        Netlink::open().and_then(|n| n.close(index)).map(drop).map_err(|e| self.named(port, &e))
    }

    fn let_go(&mut self, port: usize) -> io::Result<()> {
        let Some(index) = self.closed[port].take() else { return Ok(()) };
        match Netlink::open().and_then(|n| n.reopen(index)) {
            // The filters went with the interface.
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            other => other.map_err(|e| self.named(port, &e)),
        }
    }

    /// Opens a port's interface again, if there still is one: it isn't the port any more.
    pub fn leave(&mut self, port: usize, log: &Log) {
        if let Err(e) = self.let_go(port) {
            let why = ("why", e.to_string().into());
            let interface = ("interface", self.names[port].as_str().into());
            log.error("port", "it stays closed to the machine's own IP stack", &[interface, why]);
        }
    }

    /// Closes a port that somebody has opened meanwhile.
    pub fn look(&mut self, port: usize, log: &Log) {
        let Some(index) = self.closed[port] else { return };
        let interface = ("interface", self.names[port].as_str().into());
        let trouble = match Netlink::open().and_then(|n| n.close(index)) {
            Ok(done) => {
                if done {
                    let text = "somebody opened it to the machine's own IP stack (tc): it is closed again";
                    log.warn("port", text, &[interface]);
                }
                None
            }
            // It is going just now: seen with the next look at the interface itself.
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => None,
            Err(e) => Some(self.named(port, &e).to_string()),
        };
        if let Some(why) = trouble.as_ref().filter(|_| trouble != self.trouble[port]) {
            let why = ("why", why.as_str().into());
            log.error("port", "it may be open to the machine's own IP stack", &[why]);
        }
        self.trouble[port] = trouble;
    }

    fn named(&self, port: usize, e: &io::Error) -> io::Error {
        let text = e.to_string().replace("dev NAME", &format!("dev {}", self.names[port]));
        io::Error::new(e.kind(), format!("interface `{}`: {text}", self.names[port]))
    }

    /// Leaves them closed for the next start, after a fault: what failed may be what an attacker wants.
    pub fn leave_closed(&mut self) {
        self.closed = [None; 2];
    }

    /// Opens both again, even if one fails. Once is enough.
    ///
    /// # Errors
    /// The first failure, with the interface.
    pub fn end(&mut self) -> io::Result<()> {
        let inside = self.let_go(0);
        inside.and(self.let_go(1))
    }
}

/// Opens an interface that a router which was killed has left closed; what its kernel's datapath has pinned for it in this folder is removed.
///
/// # Errors
/// `AddrInUse` while a router forwards there; else what the system says; with the interface.
pub fn release(interface: &str, pins: &Path) -> io::Result<()> {
    let open = || {
        let index = interface_index(interface)?;
        if claim::taken(index)? {
            let text = "a router forwards there, and opens it at its end: `inprofiled stop` ends it";
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        crate::kernel::pins::release(pins, interface)?;
        Netlink::open()?.reopen(index)
    };
    open().map_err(|e| io::Error::new(e.kind(), format!("interface `{interface}`: {e}")))
}

impl Drop for Isolation {
    fn drop(&mut self) {
        for (closed, found) in self.closed.iter_mut().zip(self.found) {
            *closed = closed.filter(|_| !found);
        }
        if let Err(e) = self.end() {
            eprintln!("inprofiled: a port stays closed to the machine's own IP stack: {e}");
        }
    }
}

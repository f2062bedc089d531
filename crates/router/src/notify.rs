//! Notifies systemd of the service's state, as in sd_notify(3): datagrams of `KEY=value` lines to `$NOTIFY_SOCKET`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, io};

use crate::log::Log;

/// Tells it; without a service manager it tells nobody.
#[derive(Debug)]
pub struct Notify {
    to: Option<Manager>,
    watchdog: Option<Duration>,
    failed: AtomicBool,
    log: Log,
}

/// A service manager's socket, by its name.
#[derive(Debug)]
struct Manager {
    name: String,
    socket: OnceLock<UnixDatagram>,
}

impl Notify {
    /// As the environment says. What is wrong with it is said with the first word: forwarding doesn't depend on it.
    #[must_use]
    pub fn from_environment(log: Log) -> Notify {
        let name = env::var("NOTIFY_SOCKET").ok().filter(|name| !name.is_empty());
        // WATCHDOG_PID, where it is set, says for whom.
        let mine = env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        let watchdog = env::var("WATCHDOG_USEC").ok().filter(|_| mine).and_then(|us| us.parse().ok());
        let failed = AtomicBool::new(false);
        Notify { to: name.map(Manager::new), watchdog: watchdog.map(Duration::from_micros), failed, log }
    }

    /// Within which time it wants to hear that we are alive.
    #[must_use]
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Sends a state, such as `READY=1`. That it can't be told is logged, once until it can again.
    pub fn tell(&self, state: &str) {
        let Some(manager) = &self.to else { return };
        match manager.tell(state) {
            Ok(()) => self.failed.store(false, Ordering::Relaxed),
            Err(e) if !self.failed.swap(true, Ordering::Relaxed) => self.log.warn(
                "notify",
                "the service manager can't be told how it is; it may end what it takes for dead",
                &[("socket", manager.name.as_str().into()), ("why", e.to_string().into())],
            ),
            Err(_) => {}
        }
    }
}

impl Manager {
    fn new(name: String) -> Manager {
        Manager { name, socket: OnceLock::new() }
    }

    fn tell(&self, state: &str) -> io::Result<()> {
        let socket = match self.socket.get() {
            Some(socket) => socket,
            None => {
                let socket = UnixDatagram::unbound()?;
                // A manager that doesn't listen holds nobody up.
                socket.set_nonblocking(true)?;
                self.socket.get_or_init(|| socket)
            }
        };
        socket.send_to_addr(state.as_bytes(), &address(&self.name)?).map(drop)
    }
}

fn address(name: &str) -> io::Result<SocketAddr> {
    match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_over_an_abstract_socket() {
        let name = format!("inprofiled-test-{}", std::process::id());
        let here = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        Manager::new(format!("@{name}")).tell("READY=1\nSTATUS=up").unwrap();
        let mut room = [0; 64];
        let n = here.recv(&mut room).unwrap();
        assert_eq!(&room[..n], b"READY=1\nSTATUS=up");
    }
}

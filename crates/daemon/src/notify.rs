//! What systemd is told, as sd_notify(3) has it: datagrams of `KEY=value` lines to `$NOTIFY_SOCKET`.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use std::{env, io};

/// Tells it; without a service manager it tells nobody.
#[derive(Debug)]
pub struct Notify {
    to: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// As the environment says.
    ///
    /// # Errors
    /// If it names a socket that can't be.
    pub fn from_environment() -> io::Result<Notify> {
        let to = match env::var("NOTIFY_SOCKET") {
            Ok(name) if !name.is_empty() => Some((UnixDatagram::unbound()?, address(&name)?)),
            _ => None,
        };
        // WATCHDOG_PID, where it is set, says for whom.
        let mine = env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        let watchdog = env::var("WATCHDOG_USEC").ok().filter(|_| mine).and_then(|us| us.parse().ok());
        Ok(Notify { to, watchdog: watchdog.map(Duration::from_micros) })
    }

    /// Within which time it wants to hear that we are alive.
    #[must_use]
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Sends a state, such as `READY=1`.
    ///
    /// # Errors
    /// What the system says.
    pub fn tell(&self, state: &str) -> io::Result<()> {
        if let Some((socket, to)) = &self.to {
            socket.send_to_addr(state.as_bytes(), to)?;
        }
        Ok(())
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
        let to = address(&format!("@{name}")).unwrap();
        let notify = Notify { to: Some((UnixDatagram::unbound().unwrap(), to)), watchdog: None };
        notify.tell("READY=1\nSTATUS=up").unwrap();
        let mut room = [0; 64];
        let n = here.recv(&mut room).unwrap();
        assert_eq!(&room[..n], b"READY=1\nSTATUS=up");
    }
}

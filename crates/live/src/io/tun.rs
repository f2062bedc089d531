//! TUN devices: the port is the process's end; the host's end is an ordinary interface.
//!
//! Packets are whole IP packets without a link layer. As no offload is requested, the host's stack sends none larger than the
//! MTU and computes every checksum itself.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use inprofile_core::units::Time;

use super::sys::{self, Clock};
use super::{Io, Port, PortCounts, Received};
use crate::packet::Layer;

/// The maker of devices.
const DEVICE_FILE: &str = "/dev/net/tun";
/// The most that one read takes: no MTU is larger.
const LONGEST: usize = 1 << 16;
/// How many packets one port may hand over before the others have their turn.
const BATCH: usize = 32;

/// Makes a TUN device in the calling thread's network namespace. It goes when the file is closed.
///
/// # Errors
/// The system's error; `PermissionDenied` without CAP_NET_ADMIN in the namespace.
pub fn create(name: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(DEVICE_FILE)
        .map_err(|e| io::Error::new(e.kind(), format!("{DEVICE_FILE}: {e}{}", remedy(&e))))?;
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || !name.is_ascii() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` can't name an interface")));
    }
    // SAFETY: an ifreq of zeros is a valid one: numbers and byte arrays.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes the ifreq, which lives through the call.
    sys::check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) }).map_err(|e| {
        let how = match e.raw_os_error() {
            Some(libc::EPERM) => "\n  making a TUN device takes CAP_NET_ADMIN in its network namespace: run it as root, or through `unshare -Urn`",
            _ => remedy(&e),
        };
        io::Error::new(e.kind(), format!("TUN device `{name}`: {e}{how}"))
    })?;
    Ok(file)
}

/// The remedy where the device file can't be opened, or makes no device.
fn remedy(e: &io::Error) -> &'static str {
    match e.raw_os_error() {
        Some(libc::ENOENT) => {
            "\n  `mkdir -p /dev/net && mknod -m 666 /dev/net/tun c 10 200` makes it; in a container, start it with --device /dev/net/tun"
        }
        Some(libc::ENODEV | libc::ENXIO) => {
            "\n  the kernel lacks TUN devices (CONFIG_TUN): `modprobe tun` loads them where they are a module"
        }
        Some(libc::EACCES | libc::EPERM) => {
            "\n  you may not open it: `chmod 666 /dev/net/tun` lets everybody (as root), and in a container --device /dev/net/tun"
        }
        Some(libc::EMFILE | libc::ENFILE) => sys::MORE_FILES,
        _ => "",
    }
}

/// Some TUN devices.
#[derive(Debug)]
pub struct Tun {
    clock: Clock,
    ports: Vec<File>,
    polls: Vec<libc::pollfd>,
    counts: Vec<PortCounts>,
    buffer: Vec<u8>,
}

impl Tun {
    /// These devices, by the number of their port.
    ///
    /// # Errors
    /// If the system refuses precise sleeps.
    pub fn new(devices: Vec<OwnedFd>, clock: Clock) -> io::Result<Tun> {
        sys::sleep_precisely()?;
        let ports: Vec<File> = devices.into_iter().map(File::from).collect();
        let poll = |f: &File| libc::pollfd { fd: f.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let polls = ports.iter().map(poll).collect();
        let counts = vec![PortCounts::default(); ports.len()];
        Ok(Tun { clock, ports, polls, counts, buffer: vec![0; LONGEST] })
    }
}

impl Io for Tun {
    fn layer(&self) -> Layer {
        Layer::Ip
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        sys::wait_readable(&mut self.polls, self.clock.now(), until)
    }

    /// TUN devices don't say when a packet came: it counts as having come now.
    fn receive(&mut self, each: &mut dyn FnMut(Time, Port, &mut [u8])) -> io::Result<Received> {
        let (mut frames, now) = (0, self.clock.now());
        for (port, file) in self.ports.iter_mut().enumerate() {
            if self.polls[port].revents == 0 {
                continue;
            }
            for _ in 0..BATCH {
                match file.read(&mut self.buffer) {
                    Ok(length) => {
                        self.counts[port].received += 1;
                        each(now, port, &mut self.buffer[..length]);
                        frames += 1;
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(Received { frames, until: now })
    }

    fn send(&mut self, port: Port, frame: &[u8]) -> io::Result<()> {
        let sent = self.ports[port].write(frame);
        let counts = &mut self.counts[port];
        match sent {
            Ok(_) => counts.sent += 1,
            // EIO: the interface is down. EINVAL: no IP packet. ENOBUFS, EAGAIN: no room.
            Err(e)
                if matches!(
                    e.raw_os_error(),
                    Some(libc::EIO | libc::EINVAL | libc::ENOBUFS | libc::EAGAIN)
                ) =>
            {
                counts.refused += 1;
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn counts(&self, port: Port) -> PortCounts {
        self.counts[port]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_its_remedy() {
        let of = |code| remedy(&io::Error::from_raw_os_error(code));
        assert!(of(libc::ENOENT).contains("mknod") && of(libc::ENOENT).contains("--device /dev/net/tun"));
        assert!(of(libc::EACCES).contains("chmod 666") && of(libc::ENODEV).contains("modprobe tun"));
        assert!(of(libc::EMFILE).contains("ulimit -n"));
    }
}

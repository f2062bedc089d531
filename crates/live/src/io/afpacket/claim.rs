//! Exclusive use of an interface: a second process forwarding at the same port would send every frame twice.
//!
//! The kernel lets any number of packet sockets use an interface. So a process that wants it for itself binds one more socket to
//! it, for a protocol that nothing uses, and looks for another such socket in the list of packet sockets. Such a socket needs
//! CAP_NET_RAW, so nobody else can keep an interface from us, and it disappears with its process, however that ends.
//! Non-goal: other programs' packet sockets. A capture may run at the same time.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::io::netlink::Netlink;
use crate::io::sys;

/// The loopback's number in every network namespace: where a socket that is bound to no port waits for [`UNUSED`].
pub(super) const NOWHERE: u32 = 1;
/// An EtherType that IANA keeps reserved, and that nothing has.
pub(super) const UNUSED: libc::c_int = 0xffff;

/// All packet sockets of the calling thread's network namespace: number, references, type, protocol, interface, …
const SOCKETS: &str = "/proc/thread-self/net/packet";

/// The hold on an interface.
#[derive(Debug)]
pub struct Claim(OwnedFd);

impl Claim {
    /// Of no interface yet.
    ///
    /// # Errors
    /// The system's error.
    pub fn new() -> io::Result<Claim> {
        Ok(Claim(sys::packet_socket()?))
    }

    /// Takes an interface.
    ///
    /// # Errors
    /// `AddrInUse` if another has it, or it is the port of a bridge or the like; else what the system says.
    pub fn take(&self, index: u32) -> io::Result<()> {
        shared(index)?;
        sys::bind_packet(self.0.as_fd(), index, UNUSED)?;
        if claims(&sockets()?, index) < 2 {
            return Ok(());
        }
        self.leave()?;
        let text = "another inprofiled forwards here: two would send every frame twice\n  stop that one (`ss -0 -p` shows it), or name another interface";
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    }

    /// Lets it go.
    ///
    /// # Errors
    /// The system's error.
    pub fn leave(&self) -> io::Result<()> {
        sys::bind_packet(self.0.as_fd(), NOWHERE, UNUSED)
    }
}

/// Whether a process has taken an interface.
///
/// # Errors
/// The system's error.
pub fn taken(index: u32) -> io::Result<bool> {
    Ok(claims(&sockets()?, index) > 0)
}

fn sockets() -> io::Result<String> {
    fs::read_to_string(SOCKETS)
        .map_err(|e| io::Error::new(e.kind(), format!("{SOCKETS}: {e}: is /proc mounted?")))
}

/// Refuses an interface whose frames another interface of the machine takes.
///
/// # Errors
/// `AddrInUse`, with what to do; else what the system says.
pub fn shared(index: u32) -> io::Result<()> {
    let link = Netlink::open()?.link(index)?;
    let Some(master) = link.master else { return Ok(()) };
    let text = match Netlink::open()?.link(master) {
        Ok(of) => format!("it is a port of `{}` ({})", of.name, of.kind.as_deref().unwrap_or("device")),
        Err(_) => "it is a port of another interface".to_owned(),
    };
    let how = format!(
        "{text}, which forwards or takes its frames too\n  `ip link set {} nomaster` takes it out; or name another interface",
        link.name
    );
    Err(io::Error::new(io::ErrorKind::AddrInUse, how))
}

/// How many have taken the interface, by the kernel's list.
fn claims(list: &str, index: u32) -> usize {
    let ours = |line: &&str| {
        let mut words = line.split_whitespace().skip(3);
        let protocol = words.next().map(|p| libc::c_int::from_str_radix(p, 16));
        protocol == Some(Ok(UNUSED)) && words.next().map(str::parse) == Some(Ok(index))
    };
    list.lines().filter(ours).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_counted_by_interface_and_protocol() {
        let list = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n\
                    00000000d8b6b2a1 3      3    0003   7     1 0      0      7102\n\
                    0000000011c4a7d5 3      3    ffff   7     1 0      0      7103\n\
                    000000004d5a0b0c 3      3    ffff   71    1 0      0      7104\n\
                    000000004d5a0b0d 3      3    ffff   7     0 0      65534  7105\n\
                    broken\n";
        assert_eq!((claims(list, 7), claims(list, 71), claims(list, 3)), (2, 1, 0));
    }
}

//! System calls that the drivers share, each wrapped once.

use std::ffi::CString;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use inprofile_core::units::Time;

/// Wall time as the drivers show it: since the start, monotonic; steps of the system's clock don't touch it.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts now.
    #[must_use]
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Time {
        let nanos = u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Time(nanos.saturating_mul(1_000))
    }
}

/// The system's clock, which people set and which the kernel stamps frames by: nanoseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "it is only taken away from the kernel's stamps, and what comes of it is bounded"
)]
pub(crate) fn time_of_day() -> u64 {
    // A clock set before 1970 gives 0: all frames are new then.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

/// Lets this thread's sleeps end as soon as the system can: by default they may end 50 µs late.
///
/// # Errors
/// The system's error.
pub fn sleep_precisely() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes a number and changes nothing but this thread's slack.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) })?;
    Ok(())
}

/// The remedy where too many files are open.
pub(crate) const MORE_FILES: &str = "\n  too many files are open at a time: each host takes a few, so `ulimit -n 65536` before it, or fewer flows";

/// Turns −1 into the error it stands for.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The number of an interface in this network namespace.
///
/// # Errors
/// `NotFound`, with the name.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let missing = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("there is no interface `{name}`: `ip link` shows those there are"),
        )
    };
    let text = CString::new(name).map_err(|_| missing())?;
    // SAFETY: the pointer is to a string that ends with 0 and lives through the call.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(missing()),
        index => Ok(index),
    }
}

/// The longest IP packet that the interface of this name takes now, in the socket's network namespace.
pub(crate) fn mtu(socket: BorrowedFd<'_>, interface: &str) -> io::Result<usize> {
    // SAFETY: an interface request of zeros is a valid one: an empty name.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads the name, which ends with 0, and writes a number into the request.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) })?;
    // SAFETY: what SIOCGIFMTU writes is the MTU.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as usize)
}

/// The value of a socket option, which the kernel may read and write: numbers, side by side.
///
/// # Safety
/// Any bytes make a value, none of them is padding, and none is an address that the kernel would follow.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a number.
unsafe impl Plain for libc::c_int {}
// SAFETY: a number.
unsafe impl Plain for u32 {}
// SAFETY: bytes.
unsafe impl<const N: usize> Plain for [u8; N] {}
// SAFETY: two numbers of one size.
unsafe impl Plain for libc::timeval {}
// SAFETY: two numbers of one size.
unsafe impl Plain for libc::linger {}
// SAFETY: four numbers of one size.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: two numbers of one size.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: numbers of 4, 2 and 2 bytes, and eight bytes.
unsafe impl Plain for libc::packet_mreq {}

/// Sets a socket option.
pub(crate) fn set_option<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`, which the kernel only reads.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length)
    })?;
    Ok(())
}

/// Waits until one of these can be read, or until `until`. Which ones have something to say.
pub(crate) fn wait_readable(polls: &mut [libc::pollfd], now: Time, until: Option<Time>) -> io::Result<()> {
    let left = until.map(|until| until.since(now).0.div_ceil(1_000));
    let span = left.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let span = span.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: pointer and count describe `polls`; the time lives through the call, or is null; no signal mask.
    let ready =
        unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, span, std::ptr::null()) };
    match check(ready) {
        // A signal woke us: the caller looks at what has changed.
        Err(e) if e.kind() == io::ErrorKind::Interrupted => {
            polls.iter_mut().for_each(|p| p.revents = 0);
            Ok(())
        }
        other => other.map(|_| ()),
    }
}

/// Reads a socket option.
pub(crate) fn get_option<T: Plain>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut T,
) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `value`, in which any bytes are valid.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, std::ptr::from_mut(value).cast(), &raw mut length)
    })?;
    Ok(())
}

/// Asks for a socket's pending error, and clears it.
pub(crate) fn take_error(socket: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    let mut error: libc::c_int = 0;
    get_option(socket, libc::SOL_SOCKET, libc::SO_ERROR, &mut error)?;
    Ok(error)
}

/// A packet socket that isn't bound yet, to which nothing comes in; calls don't wait.
pub(crate) fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers; the descriptor that comes back is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0)).map_err(with_remedy)?) })
}

/// The remedy where the system refuses a packet socket.
fn with_remedy(e: io::Error) -> io::Error {
    match e.kind() {
        io::ErrorKind::PermissionDenied => io::Error::new(
            e.kind(),
            "packet sockets take CAP_NET_RAW: as root, or for ports of one's own through `unshare -Urn`",
        ),
        _ => e,
    }
}

/// Binds a packet socket to an interface: to frames of this protocol, or to none with 0.
pub(crate) fn bind_packet(socket: BorrowedFd<'_>, index: u32, protocol: libc::c_int) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: (protocol as u16).to_be(),
        sll_ifindex: index as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: pointer and length describe `address`, which the kernel only reads.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(())
}

/// The address that a packet socket is bound to.
fn packet_address(socket: BorrowedFd<'_>) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: an address of zeros is a valid one: numbers only.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `address`, in which any bytes are valid.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) })?;
    Ok(address)
}

/// The number of the interface that a packet socket is bound to; `None`: to none, or one that has gone.
pub(crate) fn bound_to(socket: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    // Of one that has gone the kernel says −1.
    Ok(u32::try_from(packet_address(socket)?.sll_ifindex).ok().filter(|index| *index > 0))
}

/// The hardware type of the interface that a packet socket is bound to (ARPHRD_…, linux/if_arp.h).
pub(crate) fn link_type(socket: BorrowedFd<'_>) -> io::Result<u16> {
    Ok(packet_address(socket)?.sll_hatype)
}

/// Sends messages, each of as many of `parts` as `counts` says, one after the other; how many went. An error is about
/// the first of them.
pub(crate) fn send_many(
    socket: BorrowedFd<'_>,
    parts: &[IoSlice<'_>],
    counts: &[usize],
) -> io::Result<usize> {
    let mut rest = parts;
    let mut messages: Vec<libc::mmsghdr> = counts
        .iter()
        .map(|count| {
            let (these, after) = rest.split_at(*count);
            rest = after;
            // SAFETY: a message header of zeros is a valid one: null pointers and lengths of 0.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            // An `IoSlice` is laid out as an iovec.
            message.msg_hdr.msg_iov = these.as_ptr().cast_mut().cast();
            message.msg_hdr.msg_iovlen = these.len();
            message
        })
        .collect();
    // SAFETY: every header points to its own parts within `parts`; they and what they point to live through the call,
    // which only reads them.
    let sent = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), messages.len() as libc::c_uint, 0)
    };
    check(sent).map(|n| n as usize)
}

/// Moves the calling thread into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: no pointers; only this thread's view of the network changes.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    Ok(())
}

/// Moves the calling thread into this network namespace.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers; the kernel checks what the descriptor stands for.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })?;
    Ok(())
}

/// An IPv4 socket address as the kernel takes it.
pub(crate) fn ipv4(address: std::net::SocketAddrV4) -> (libc::sockaddr_in, libc::socklen_t) {
    let raw = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    };
    (raw, size_of::<libc::sockaddr_in>() as libc::socklen_t)
}

/// Lets this thread run before all others that are not real-time, where the system allows it (root); whether it does.
pub fn run_first() -> bool {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel only reads the parameters; 0 is the calling thread.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_comes_with_its_remedy() {
        let refused = with_remedy(io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(refused.to_string().contains("CAP_NET_RAW") && refused.to_string().contains("unshare -Urn"));
        let other = with_remedy(io::Error::from_raw_os_error(libc::ENODEV));
        assert_eq!(other.raw_os_error(), Some(libc::ENODEV));
    }
}

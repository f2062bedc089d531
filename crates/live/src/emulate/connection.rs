//! A TCP connection of the kernel between two hosts: a sender with unlimited data, or a given amount, and a receiver that reads
//! it. Each is a thread in its host's namespace.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use inprofile_core::packet::Ecn;
use inprofile_core::units::Time;

use crate::addresses::PORT;
use crate::code_points::Dscp;
use crate::io::sys::{self, Clock};
use crate::namespace::Namespace;

/// How often a thread that waits looks whether it should stop.
pub const GLANCE: Duration = Duration::from_millis(50);
/// The bytes written and read at a time.
const CHUNK: usize = 1 << 16;

/// The settings of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// The sender's address and the receiver's.
    pub addresses: (Ipv4Addr, Ipv4Addr),
    /// The kernel's name of the congestion control.
    pub congestion: &'static str,
    /// The receiver's window in bytes.
    pub window: u32,
    /// When it starts.
    pub start: Time,
    /// From when on there is nothing new to send.
    pub stop: Option<Time>,
    /// How much there is to send; `None`: without end.
    pub bytes: Option<u64>,
    /// The code point that data leaves its host with.
    pub dscp: Option<Dscp>,
}

/// The state that both ends share with an observer.
#[derive(Debug, Default)]
pub struct Shared {
    /// No more is to be done.
    pub over: AtomicBool,
    /// The sender's socket, once it is connected.
    sender: Mutex<Option<OwnedFd>>,
    /// The receiver's socket, once somebody has connected.
    receiver: Mutex<Option<OwnedFd>>,
}

/// The kernel's report on a sender (linux/tcp.h, struct tcp_info).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; very large before the first loss.
    pub ssthresh: u32,
    /// Segments sent again.
    pub retransmissions: u32,
    /// Retransmission timeouts; 0 before Linux 6.7.
    pub timeouts: u16,
    /// Whether it recovers from a loss without timeout.
    pub recovering: bool,
}

/// TCP_CA_Recovery of enum tcp_ca_state.
const RECOVERY: u8 = 3;

impl Shared {
    /// The kernel's report on the sender; `None` before it is connected.
    #[must_use]
    pub fn info(&self) -> Option<Info> {
        let bytes = tcp_info(&self.sender)?;
        let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(Info {
            cwnd: word(80),
            ssthresh: word(76),
            retransmissions: word(100),
            timeouts: u16::from_ne_bytes([bytes[240], bytes[241]]),
            recovering: bytes[1] == RECOVERY,
        })
    }

    /// Payload that the receiver's TCP has in order, in bytes; how soon its application reads it doesn't count.
    #[must_use]
    pub fn received(&self) -> u64 {
        let at = 128;
        let count = tcp_info(&self.receiver).and_then(|b| b.get(at..at + 8)?.try_into().ok());
        count.map_or(0, u64::from_ne_bytes)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// The kernel's struct tcp_info of a socket: as long as the kernel knows it, zero beyond.
fn tcp_info(socket: &Mutex<Option<OwnedFd>>) -> Option<[u8; 256]> {
    let socket = socket.lock().unwrap_or_else(PoisonError::into_inner);
    let mut bytes = [0u8; 256];
    sys::get_option(socket.as_ref()?.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes).ok()?;
    Some(bytes)
}

/// Lets an observer ask about a socket of ours.
fn show(socket: &Mutex<Option<OwnedFd>>, stream: &TcpStream) -> io::Result<()> {
    let watched = OwnedFd::from(stream.try_clone()?);
    *socket.lock().unwrap_or_else(PoisonError::into_inner) = Some(watched);
    Ok(())
}

/// Whether this kernel has a congestion control, tried in a namespace of ours.
///
/// # Errors
/// `Unsupported`, naming those it has; else what the system says.
pub fn has_congestion(name: &str) -> io::Result<()> {
    let socket = open(name);
    match socket {
        Ok(_) => Ok(()),
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EPERM)) => {
            let has = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
            let has = has.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(", ");
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "the kernel has no congestion control {name}, or does not let this user have it; available: {has}"
                ),
            ))
        }
        Err(e) => Err(e),
    }
}

/// An unconnected TCP socket.
fn open(congestion: &str) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers; the descriptor that comes back is nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(sys::check(libc::socket(libc::AF_INET, kind, 0))?) };
    let mut name = [0u8; 16];
    for (to, from) in name.iter_mut().zip(congestion.bytes()) {
        *to = from;
    }
    sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, &name)?;
    Ok(socket)
}

/// Lets blocking calls on a socket return after a glance.
fn glance(socket: BorrowedFd<'_>) -> io::Result<()> {
    let span = libc::timeval { tv_sec: 0, tv_usec: GLANCE.as_micros() as libc::suseconds_t };
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &span)?;
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &span)?;
    // At the end of the run nothing lingers: no FIN waits for an answer that never comes.
    let abort = libc::linger { l_onoff: 1, l_linger: 0 };
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, &abort)
}

/// Lets a socket's packets leave their host with this DSCP and, datagrams, with these ECN bits: TCP's are the kernel's own.
pub fn leave_as(socket: BorrowedFd<'_>, dscp: Option<Dscp>, ecn: Ecn) -> io::Result<()> {
    let octet = dscp.map_or(0, |d| d.value() << 2) | ecn.bits();
    sys::set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, &libc::c_int::from(octet))
}

/// Whether a call only has to be made again.
pub fn again(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
        || e.raw_os_error() == Some(libc::EINPROGRESS)
}

/// Opens the receiver's door, so that it is there before anybody knocks.
///
/// # Errors
/// The system's error.
pub fn listen(namespace: &Namespace, plan: &ConnectionConfig) -> io::Result<TcpListener> {
    namespace.within(|| {
        let socket = open(plan.congestion)?;
        let fd = socket.as_fd();
        // A buffer set by hand keeps its size, and with it the window that it advertises, which the clamp bounds.
        let room = libc::c_int::try_from(4 * u64::from(plan.window) + (1 << 18)).unwrap_or(libc::c_int::MAX);
        if sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &room).is_err() {
            sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &room)?;
        }
        let clamp = libc::c_int::try_from(plan.window).unwrap_or(libc::c_int::MAX);
        sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &clamp)?;
        let (address, length) = sys::ipv4(SocketAddrV4::new(plan.addresses.1, PORT));
        // SAFETY: pointer and length describe `address`, which lives through the call.
        sys::check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })?;
        // SAFETY: no pointers.
        sys::check(unsafe { libc::listen(fd.as_raw_fd(), 1) })?;
        glance(fd)?;
        Ok(TcpListener::from(socket))
    })
}

/// The receiver's part: takes one connection and reads until the other end or the run is over.
///
/// # Errors
/// The system's error.
pub fn receive(listener: &TcpListener, shared: &Shared) -> io::Result<()> {
    let _ = sys::run_first();
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(e) if again(&e) && !shared.is_over() => {}
            Err(e) if again(&e) => return Ok(()),
            Err(e) => return Err(e),
        }
    };
    glance(stream.as_fd())?;
    show(&shared.receiver, &stream)?;
    let clamp = window_clamp(&stream)?;
    let mut room = vec![0; CHUNK];
    while !shared.is_over() {
        match stream.read(&mut room) {
            Ok(0) => return Ok(()),
            Ok(_) => hold_window(&stream, clamp)?,
            Err(e) if again(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The most that a receiver advertises, in bytes.
fn window_clamp(stream: &TcpStream) -> io::Result<libc::c_int> {
    let mut clamp: libc::c_int = 0;
    sys::get_option(stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &mut clamp)?;
    Ok(clamp)
}

/// Bounds a receiver's window again if the kernel no longer does: Linux 6.18 raises the clamp to what the buffer has room for
/// whenever it learns how much memory a byte of data takes, which it does with the first segment.
fn hold_window(stream: &TcpStream, clamp: libc::c_int) -> io::Result<()> {
    if window_clamp(stream)? > clamp {
        sys::set_option(stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &clamp)?;
    }
    Ok(())
}

/// Makes the calling thread a punctual one of a namespace, for good.
///
/// # Errors
/// The system's error.
pub fn settle(namespace: &Namespace) -> io::Result<()> {
    namespace.enter()?;
    sys::sleep_precisely()?;
    // Without real-time priority it runs all the same, and the report says so of this process as a whole.
    let _ = sys::run_first();
    Ok(())
}

/// Sleeps until then. False: the run is over.
pub fn sleep_until(at: Time, clock: Clock, over: &AtomicBool) -> bool {
    while !over.load(Ordering::Relaxed) {
        let now = clock.now();
        if now >= at {
            return true;
        }
        std::thread::sleep(Duration::from_nanos(at.since(now).0.div_ceil(1_000)).min(GLANCE));
    }
    false
}

/// The sender's part: waits for its time, connects, and writes.
///
/// # Errors
/// The system's error.
pub fn send(namespace: &Namespace, plan: &ConnectionConfig, clock: Clock, shared: &Shared) -> io::Result<()> {
    settle(namespace)?;
    if !sleep_until(plan.start, clock, &shared.over) {
        return Ok(());
    }
    let socket = open(plan.congestion)?;
    glance(socket.as_fd())?;
    if let Some(dscp) = plan.dscp {
        leave_as(socket.as_fd(), Some(dscp), Ecn::NotCapable)?;
    }
    if !connect(socket.as_fd(), plan, shared)? {
        return Ok(());
    }
    let mut stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    show(&shared.sender, &stream)?;
    let data = vec![0x5a; CHUNK];
    let mut left = plan.bytes.unwrap_or(u64::MAX);
    let stopped = || plan.stop.is_some_and(|stop| clock.now() >= stop);
    while left > 0 && !shared.is_over() && !stopped() {
        let most = left.min(CHUNK as u64) as usize;
        match stream.write(&data[..most]) {
            Ok(n) if plan.bytes.is_some() => left -= n as u64,
            Ok(_) => {}
            Err(e) if again(&e) => {}
            Err(e) => return Err(e),
        }
    }
    if !shared.is_over() {
        stream.shutdown(Shutdown::Write)?;
    }
    while !shared.is_over() {
        std::thread::sleep(GLANCE);
    }
    Ok(())
}

/// Connects from the sender's own address. False: the run is over.
fn connect(socket: BorrowedFd<'_>, plan: &ConnectionConfig, shared: &Shared) -> io::Result<bool> {
    let (own, length) = sys::ipv4(SocketAddrV4::new(plan.addresses.0, 0));
    // SAFETY: pointer and length describe `own`, which lives through the call.
    sys::check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const own).cast(), length) })?;
    let (other, length) = sys::ipv4(SocketAddrV4::new(plan.addresses.1, PORT));
    loop {
        // SAFETY: pointer and length describe `other`, which lives through the call.
        let done =
            sys::check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const other).cast(), length) });
        match done {
            Ok(_) => return Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::EISCONN) => return Ok(true),
            Err(e) if (again(&e) || e.raw_os_error() == Some(libc::EALREADY)) && !shared.is_over() => {}
            Err(_) if shared.is_over() => return Ok(false),
            Err(e) => return Err(e),
        }
    }
}

//! System calls that the standard library lacks, each wrapped once.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A user, as the system knows him.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub uid: u32,
    /// His own group.
    pub gid: u32,
}

/// Turns −1 into the error it stands for.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Room for what the databases of users and groups say of one of them.
const ENTRY: usize = 16_384;

/// The user of this name; `None` if there is none.
pub fn user(name: &str) -> io::Result<Option<Account>> {
    let name = CString::new(name)?;
    let mut room = vec![0 as libc::c_char; ENTRY];
    let mut found = std::ptr::null_mut();
    // SAFETY: a passwd of zeros is a valid one: numbers and null pointers.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    // SAFETY: all pointers are to things that live through the call; `room` has the length that is told.
    let code =
        unsafe { libc::getpwnam_r(name.as_ptr(), &raw mut entry, room.as_mut_ptr(), ENTRY, &raw mut found) };
    match code {
        0 if found.is_null() => Ok(None),
        0 => Ok(Some(Account { uid: entry.pw_uid, gid: entry.pw_gid })),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// The number of the group of this name; `None` if there is none.
pub fn group(name: &str) -> io::Result<Option<u32>> {
    let name = CString::new(name)?;
    let mut room = vec![0 as libc::c_char; ENTRY];
    let mut found = std::ptr::null_mut();
    // SAFETY: a group of zeros is a valid one: numbers and null pointers.
    let mut entry: libc::group = unsafe { std::mem::zeroed() };
    // SAFETY: all pointers are to things that live through the call; `room` has the length that is told.
    let code =
        unsafe { libc::getgrnam_r(name.as_ptr(), &raw mut entry, room.as_mut_ptr(), ENTRY, &raw mut found) };
    match code {
        0 if found.is_null() => Ok(None),
        0 => Ok(Some(entry.gr_gid)),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// A number that nobody outside may guess: for mechanisms' random numbers and the keys of hashes.
pub fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // Keyed by the system's random numbers.
    RandomState::new().build_hasher().finish()
}

/// Nanoseconds of the kernel's monotonic clock, by which its programs go.
pub fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local timespec; this clock is always there, so the call can't fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The number of the kind of file system that a path is in (statfs(2)).
pub fn file_system(path: &Path) -> io::Result<i64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a statfs of zeros is a valid one: numbers.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the string ends with 0, and both live through the call.
    check(unsafe { libc::statfs(path.as_ptr(), &raw mut found) })?;
    Ok(found.f_type as i64)
}

/// The user this process acts as.
pub fn own_uid() -> u32 {
    // SAFETY: no arguments; it can't fail.
    unsafe { libc::geteuid() }
}

/// Sets an extended attribute of a file.
pub fn set_attribute(path: &Path, name: &CStr, value: &[u8]) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: both strings end with 0, pointer and length describe `value`, and all live through the call, which only reads.
    check(unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) })?;
    Ok(())
}

/// Who is at the other end of a socket: user, and all groups.
pub fn peer(stream: BorrowedFd<'_>) -> io::Result<(u32, Vec<u32>)> {
    let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let fd = stream.as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes into `who`, in which any bytes are valid.
    check(unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut who).cast(), &raw mut length)
    })?;
    // More groups than this a process can't have (NGROUPS_MAX).
    let mut groups = vec![0u32; 65_536];
    let mut length = (groups.len() * size_of::<u32>()) as libc::socklen_t;
    // SAFETY: as above; `length` is that of `groups`.
    check(unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut length,
        )
    })?;
    groups.truncate(length as usize / size_of::<u32>());
    groups.push(who.gid);
    Ok((who.uid, groups))
}

/// Whether the other end of a socket is closed both ways, so that nothing can be answered any more.
pub fn hung_up(stream: BorrowedFd<'_>) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: stream.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: the pointer is to one pollfd, which lives through the call.
    check(unsafe { libc::poll(&raw mut poll, 1, 0) })?;
    Ok(poll.revents & (libc::POLLHUP | libc::POLLERR) != 0)
}

/// Becomes another user, for good, keeping capabilities for [`keep_capabilities`] to choose from.
pub fn become_user(account: Account) -> io::Result<()> {
    // SAFETY: numbers only, and one null pointer with a count of 0.
    unsafe {
        check(libc::prctl(libc::PR_SET_KEEPCAPS, 1 as libc::c_ulong, 0, 0, 0))?;
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setresgid(account.gid, account.gid, account.gid))?;
        check(libc::setresuid(account.uid, account.uid, account.uid))?;
    }
    Ok(())
}

/// capabilities(7): CAP_NET_ADMIN, by which interfaces are set up.
pub const NET_ADMIN: u32 = 12;

#[repr(C)]
struct CapHeader {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// _LINUX_CAPABILITY_VERSION_3.
const CAP_VERSION: u32 = 0x2008_0522;

/// Gives up every capability of this thread but these, if it has them, and what new privileges programs could give.
pub fn keep_capabilities(keep: &[u32]) -> io::Result<()> {
    let header = CapHeader { version: CAP_VERSION, pid: 0 };
    let mut had = [CapData { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: two structures of the kernel's layout; it writes into the second, which has the room that this version takes.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, had.as_mut_ptr()) } as libc::c_int)?;
    let bits = keep.iter().fold(0, |bits, c| bits | 1u32 << c) & had[0].permitted;
    let low = CapData { effective: bits, permitted: bits, inheritable: 0 };
    let data = [low, CapData { effective: 0, permitted: 0, inheritable: 0 }];
    // SAFETY: numbers only; then two structures of the kernel's layout, which it only reads.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as libc::c_ulong, 0, 0, 0))?;
        check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, 0, 0, 0))?;
        check(libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) as libc::c_int)?;
    }
    Ok(())
}

/// Signals as something to read.
pub struct Signals(OwnedFd);

impl Signals {
    /// SIGHUP, SIGUSR1, SIGTERM and SIGINT from now on come only here, for this thread and those it starts.
    pub fn take() -> io::Result<Signals> {
        // SAFETY: a sigset of zeros is valid, and is emptied; pointers are to it; the descriptor that comes back is
        // nobody else's.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            check(libc::sigemptyset(&raw mut set))?;
            for signal in [libc::SIGHUP, libc::SIGUSR1, libc::SIGTERM, libc::SIGINT] {
                check(libc::sigaddset(&raw mut set, signal))?;
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
            let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            Ok(Signals(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// The next one, if it comes within so many milliseconds.
    pub fn next(&self, ms: i32) -> io::Result<Option<libc::c_int>> {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one pollfd, which lives through the call.
        match check(unsafe { libc::poll(&raw mut poll, 1, ms) }) {
            Ok(0) => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(None),
            other => other?,
        };
        // SAFETY: a signalfd_siginfo of zeros is valid: numbers only.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes into `info`.
        let n = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size) };
        Ok((n == size as isize).then_some(info.ssi_signo as libc::c_int))
    }
}

/// An interface's features, as `ethtool -k` shows them and `-K` sets them (linux/ethtool.h).
pub struct Ethtool(OwnedFd);

const GSTRINGS: u32 = 0x1b;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
/// The set of strings that are the names of features.
const SS_FEATURES: u32 = 4;
/// Features come in blocks of 32; no kernel has as many as this.
const BLOCKS: usize = 8;
/// Length of a name, with what fills it up.
const NAME: usize = 32;

impl Ethtool {
    /// In this network namespace.
    pub fn open() -> io::Result<Ethtool> {
        // SAFETY: no pointers; the descriptor that comes back is nobody else's.
        let fd = check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: it was just made.
        Ok(Ethtool(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// All that this kernel knows, in its order: the name, and whether it is on at the interface.
    pub fn features(&self, interface: &str) -> io::Result<Vec<(String, bool)>> {
        // cmd, blocks; of each block: available, requested, active, never changed.
        let mut state = [0; 2 + 4 * BLOCKS];
        (state[0], state[1]) = (GFEATURES, BLOCKS as u32);
        // SAFETY: the kernel writes no more blocks than are asked for.
        unsafe { self.ask(interface, &mut state)? };
        if state[1] as usize > BLOCKS {
            return Err(io::Error::other(format!("this kernel has {} blocks of features", state[1])));
        }
        // cmd, set, number; then so many names, of which there are no more than bits.
        let mut names = vec![0u32; 3 + BLOCKS * 32 * NAME / 4];
        (names[0], names[1]) = (GSTRINGS, SS_FEATURES);
        // SAFETY: there are no more names than bits in the blocks that it has, for which there is room.
        unsafe { self.ask(interface, &mut names)? };
        let text: Vec<u8> = names[3..].iter().flat_map(|w| w.to_ne_bytes()).collect();
        let name = |i: usize| {
            let end = text[i * NAME..][..NAME].iter().position(|b| *b == 0).unwrap_or(NAME);
            String::from_utf8_lossy(&text[i * NAME..][..end]).into_owned()
        };
        let on = |i: usize| state[2 + 4 * (i / 32) + 2] & 1 << (i % 32) != 0;
        Ok((0..names[2] as usize).map(|i| (name(i), on(i))).collect())
    }

    /// Switches some of them on or off, all at once; those that depend on them may follow.
    pub fn switch(&self, interface: &str, names: &[&str], to: bool) -> io::Result<()> {
        let known = self.features(interface)?;
        let blocks = known.len().div_ceil(32);
        // cmd, blocks; of each block: which are meant, and what they are to be.
        let mut order = vec![0u32; 2 + 2 * blocks];
        (order[0], order[1]) = (SFEATURES, blocks as u32);
        for (i, _) in known.iter().enumerate().filter(|(_, (name, _))| names.contains(&name.as_str())) {
            order[2 + 2 * (i / 32)] |= 1 << (i % 32);
            order[3 + 2 * (i / 32)] |= u32::from(to) << (i % 32);
        }
        // SAFETY: the kernel reads as many blocks as the order says it has.
        unsafe { self.ask(interface, &mut order) }
    }

    /// Asks the driver.
    ///
    /// # Safety
    /// `words` begins with a command, and has room for all that it reads and writes: the kernel is not told how long it is.
    unsafe fn ask(&self, interface: &str, words: &mut [u32]) -> io::Result<()> {
        // SAFETY: an ifreq of zeros is a valid one: numbers and byte arrays.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if interface.len() >= libc::IFNAMSIZ {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: SIOCETHTOOL reads and writes the words behind the request, for which whoever calls made room; both live
        // through the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) })?;
        Ok(())
    }
}

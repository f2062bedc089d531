//! The sending side of a port: a packet socket of its own, which takes frames in batches.
//!
//! If the interface has a queue of its own, it is bypassed (PACKET_QDISC_BYPASS); if not, frames are sent in
//! [trains](super::train). Which applies depends on the interface, so both options are set with each binding.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::train::{AS_IT_IS, Kinds, Train};
use crate::io::netlink::Netlink;
use crate::io::sys;

/// The discipline of an interface that keeps nothing back, such as a veth's.
const NO_QUEUE: &str = "noqueue";
/// How many frames are sent by one call.
const SEND_BATCH: usize = 64;
/// Bytes of memory that frames on their way out may take, the interface's own queue included. The system's default holds 90
/// full frames: a sender that wakes late and sends all that is due would lose the rest.
const SEND_MEMORY: libc::c_int = 64 << 20;

/// The system call that sends: see [`sys::send_many`]. Tests put an older kernel in its place.
type SendMany = fn(BorrowedFd<'_>, &[IoSlice<'_>], &[usize]) -> io::Result<usize>;

/// A socket that sends.
#[derive(Debug)]
pub struct Outlet {
    socket: OwnedFd,
    send_many: SendMany,
    interface: String,
    /// Frames go in trains where they can. A train has to go through the port's own queue, so only where there is none.
    trains: bool,
    /// Of which kinds the kernel takes them, as far as is known.
    kinds: Kinds,
}

/// Frames by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Sent.
    pub frames: u64,
    /// Not taken by the port.
    pub refused: u64,
    /// Trains.
    pub trains: u64,
    /// Of those sent: in trains.
    pub in_trains: u64,
}

impl Outlet {
    /// Opens one, through which nothing leaves yet: for the interface of this name.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(interface: &str) -> io::Result<Outlet> {
        // Protocol 0: nothing comes in here.
        let socket = sys::packet_socket()?;
        let fd = socket.as_fd();
        // Beyond what the system lets everybody have takes the machine's own CAP_NET_ADMIN; without, as much as there is.
        if sys::set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_MEMORY).is_err() {
            sys::set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_MEMORY)?;
        }
        let (send_many, interface) = (sys::send_many as SendMany, interface.to_owned());
        Ok(Outlet { socket, send_many, interface, trains: false, kinds: Kinds::TcpAndUdp })
    }

    /// Gives every frame that is sent this mark.
    ///
    /// # Errors
    /// `PermissionDenied`, with what to do; else what the system says.
    pub fn mark(&self, mark: u32) -> io::Result<()> {
        sys::set_option(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_MARK, &mark).map_err(|e| {
            match e.kind() {
                io::ErrorKind::PermissionDenied => io::Error::new(
                    e.kind(),
                    "marking the frames that are sent takes CAP_NET_ADMIN: as root, or for ports of one's own through `unshare -Urn`",
                ),
                _ => e,
            }
        })
    }

    /// From now on what is sent leaves by the interface of this number.
    ///
    /// # Errors
    /// `InvalidInput` if its frames don't begin with Ethernet's header; else what the system says.
    pub fn bind(&mut self, index: u32) -> io::Result<()> {
        let fd = self.socket.as_fd();
        self.trains = Netlink::open()?.queue(index)? == NO_QUEUE;
        for (option, on) in [(libc::PACKET_VNET_HDR, self.trains), (libc::PACKET_QDISC_BYPASS, !self.trains)]
        {
            sys::set_option(fd, libc::SOL_PACKET, option, &libc::c_int::from(on))?;
        }
        sys::bind_packet(fd, index, 0)?;
        match sys::link_type(fd)? {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(()),
            other => Err(not_ethernet(other)),
        }
    }

    /// From now on nothing leaves: what is to be sent is refused.
    ///
    /// # Errors
    /// The system's error.
    pub fn unbind(&self) -> io::Result<()> {
        sys::bind_packet(self.socket.as_fd(), 0, 0)
    }

    /// Sends frames. One that can't be sent is counted, and the rest goes on.
    ///
    /// # Errors
    /// The system's error, if it isn't about a frame, or the port's state.
    pub fn send(&mut self, frames: &[&[u8]], counts: &mut Sent) -> io::Result<()> {
        frames.chunks(SEND_BATCH).try_for_each(|batch| self.send_batch(batch, counts))
    }

    fn send_batch(&mut self, mut frames: &[&[u8]], counts: &mut Sent) -> io::Result<()> {
        let mut mtu = self.mtu(frames.len());
        while !frames.is_empty() {
            let runs = runs(frames, mtu, self.kinds);
            let done = match self.send_runs(frames, &runs) {
                Ok(n) => runs[..n].iter().map(|run| counts.add(run)).sum(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => 0,
                // Linux before 6.2 cuts no datagrams.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) && runs[0].is_of_datagrams() => {
                    self.kinds = Kinds::Tcp;
                    0
                }
                // Then each by itself, to see which it is about.
                Err(e) if of_this_frame(&e) && runs[0].frames() > 1 => {
                    mtu = None;
                    0
                }
                Err(e) if of_this_frame(&e) => {
                    counts.refused += 1;
                    1
                }
                Err(e) => return Err(e),
            };
            frames = &frames[done..];
        }
        Ok(())
    }

    /// The longest packet that goes out in a train, if so many frames may make one. Asked each time: somebody may set it,
    /// and frames of a train that are too long would be lost uncounted.
    fn mtu(&self, frames: usize) -> Option<usize> {
        (self.trains && frames > 1).then(|| self.interface_mtu())?
    }

    /// The longest packet that the interface takes now. One that has gone has none: that it has gone is seen when something is
    /// sent.
    pub fn interface_mtu(&self) -> Option<usize> {
        sys::mtu(self.socket.as_fd(), &self.interface).ok()
    }

    /// How many runs went.
    fn send_runs(&self, frames: &[&[u8]], runs: &[Run]) -> io::Result<usize> {
        let mut parts = Vec::with_capacity(2 * frames.len());
        let mut counts = Vec::with_capacity(runs.len());
        let mut rest = frames;
        for run in runs {
            let (these, after) = rest.split_at(run.frames());
            rest = after;
            let before = parts.len();
            match run {
                Run::Train(train) => {
                    parts.push(IoSlice::new(train.head()));
                    parts.extend(these.iter().map(|frame| IoSlice::new(&frame[train.body..])));
                }
                Run::Frame => {
                    if self.trains {
                        parts.push(IoSlice::new(&AS_IT_IS));
                    }
                    parts.push(IoSlice::new(these[0]));
                }
            }
            counts.push(parts.len() - before);
        }
        (self.send_many)(self.socket.as_fd(), &parts, &counts)
    }
}

/// Frames that are sent as one.
enum Run {
    Frame,
    Train(Box<Train>),
}

impl Run {
    fn frames(&self) -> usize {
        match self {
            Run::Frame => 1,
            Run::Train(train) => train.frames,
        }
    }

    fn is_of_datagrams(&self) -> bool {
        matches!(self, Run::Train(train) if train.datagrams)
    }
}

impl Sent {
    /// One more has been sent; how many frames it was.
    fn add(&mut self, run: &Run) -> usize {
        let frames = run.frames();
        self.frames += frames as u64;
        if frames > 1 {
            self.trains += 1;
            self.in_trains += frames as u64;
        }
        frames
    }
}

/// How frames are sent: in trains where they can be, of packets no longer than `mtu`.
fn runs(frames: &[&[u8]], mtu: Option<usize>, kinds: Kinds) -> Vec<Run> {
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < frames.len() {
        let train = mtu.and_then(|mtu| Train::at_the_head_of(&frames[at..], mtu, kinds));
        let run = train.map_or(Run::Frame, |t| Run::Train(Box::new(t)));
        at += run.frames();
        runs.push(run);
    }
    runs
}

fn not_ethernet(link_type: u16) -> io::Error {
    let text = format!(
        "its frames have no Ethernet header (link type {link_type}), as those of PPP links and layer-3 tunnels haven't: they can't be read\n  name an Ethernet interface: for a tunnel, one of its layer-2 kind (tap, gretap, vxlan)"
    );
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Whether an error is about one frame, or a port that is down or full for the moment.
fn of_this_frame(e: &io::Error) -> bool {
    let passing = [libc::ENETDOWN, libc::ENOBUFS, libc::EAGAIN, libc::EMSGSIZE, libc::EINVAL, libc::ENXIO];
    e.raw_os_error().is_some_and(|code| passing.contains(&code))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::net::UdpSocket;

    use super::super::train::PREFIX;
    use super::super::train::tests::{segmented, stream};
    use super::*;

    thread_local! {
        /// The frames that have gone out, and how many trains were refused.
        static WIRE: RefCell<(Vec<Vec<u8>>, usize)> = RefCell::default();
    }

    /// As Linux does it that cuts no datagrams: an error if the first message is such a train, else how many went before it.
    fn linux_before_6_2(_: BorrowedFd<'_>, parts: &[IoSlice<'_>], counts: &[usize]) -> io::Result<usize> {
        WIRE.with_borrow_mut(|(out, refused)| {
            let mut rest = parts;
            for (number, count) in counts.iter().enumerate() {
                let (message, after) = rest.split_at(*count);
                rest = after;
                let payload: Vec<u8> = message[1..].iter().flat_map(|part| part.iter().copied()).collect();
                let head = &message[0];
                match head[1] {
                    0 => out.push([&head[PREFIX..], &payload].concat()),
                    // VIRTIO_NET_HDR_GSO_UDP_L4.
                    5 if number == 0 => {
                        *refused += 1;
                        return Err(io::Error::from_raw_os_error(libc::EINVAL));
                    }
                    5 => return Ok(number),
                    _ => out.extend(segmented(head, &payload)),
                }
            }
            Ok(counts.len())
        })
    }

    /// The first train of datagrams is refused; from then on datagrams go one by one, TCP in trains, and nothing is lost, changed or
    /// out of order.
    #[test]
    fn a_kernel_that_cuts_no_datagrams_is_sent_them_one_by_one() {
        let frames =
            [stream(false, 7), stream(true, 20), stream(false, 5), stream(true, 300), stream(false, 40)]
                .concat();
        for first in [0, 7] {
            let mut outlet = Outlet {
                socket: UdpSocket::bind("127.0.0.1:0").unwrap().into(),
                send_many: linux_before_6_2,
                interface: "lo".into(),
                trains: true,
                kinds: Kinds::TcpAndUdp,
            };
            let sent = &frames[first..];
            let (mut counts, each) = (Sent::default(), sent.iter().map(Vec::as_slice).collect::<Vec<_>>());
            outlet.send(&each, &mut counts).unwrap();
            let (out, refused) = WIRE.take();
            assert!(out == sent, "{} of {} frames, or others", out.len(), sent.len());
            assert_eq!((refused, counts.frames, counts.refused), (1, sent.len() as u64, 0));
            // What TCP there is, in trains still.
            let segments = if first == 0 { 52 } else { 45 };
            assert!(counts.in_trains <= segments && counts.in_trains > 40, "{counts:?}");
            assert_eq!(outlet.kinds, Kinds::Tcp);
        }
    }
}

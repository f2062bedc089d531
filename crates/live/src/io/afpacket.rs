//! Ports on Linux's packet sockets: they work on every interface, and without root inside a user and network namespace.
//!
//! Frames are received through a ring shared with the kernel (TPACKET_V2, which hands over each frame as it comes; V3 would
//! collect them for a millisecond) and sent in batches by an [outlet]. Frames that the port itself sends are not received again
//! (PACKET_IGNORE_OUTGOING), and a VLAN tag that the kernel has removed is put back.
//! Every frame has the time at which the kernel received it, so a thread that wakes late still knows when it came.
//! Non-goal: super-packets. A frame longer than a slot of the ring is counted as missed; GRO, TSO and checksum offload must be
//! off at both ends.

pub mod claim;
pub mod outlet;
mod ring;
pub mod train;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use inprofile_core::units::{Duration, Time};

use super::closed::MARK;
use super::replay::Frames;
use super::sys::{self, Clock};
use super::{Io, Port, PortCounts, Received};
use crate::packet::Layer;
use claim::{Claim, NOWHERE, UNUSED};
use outlet::{Outlet, Sent};
use ring::Ring;

/// How many frames are handed over before what is due has its turn.
const BATCH: usize = 64;
/// How many frames are gathered before they are sent.
const SEND_BATCH: usize = 64;

/// How a port is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOptions {
    /// The interface.
    pub interface: String,
    /// The longest frame that is taken in, link layer included.
    pub longest: u32,
    /// How many frames the kernel may keep for us, at least; memory is about this times `longest`.
    pub frames: u32,
    /// Refuse an interface that another process has [taken](claim) or that is in a bridge, now and whenever one is bound; and
    /// mark what is sent, so that it leaves where all else is [kept from it](super::closed).
    pub alone: bool,
}

impl PortOptions {
    /// For an MTU of 1500 with two VLAN tags, and 4096 frames: 6.4 MiB; beside others.
    #[must_use]
    pub fn new(interface: &str) -> PortOptions {
        PortOptions { interface: interface.to_owned(), longest: 1522, frames: 4096, alone: false }
    }
}

/// Frames that [`PortCounts`] do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Longer than the ring's places: super-packets of GRO or TSO. Lost.
    pub too_long: u64,
    /// With a checksum that the sender's interface was to finish: transmit offload is on at the other end.
    pub unfinished_checksum: u64,
    /// That had lost a VLAN tag, which was put back.
    pub tagged: u64,
    /// TCP segments and UDP datagrams of those sent that were handed over in trains: [several at once](train).
    pub in_trains: u64,
    /// How many trains that were.
    pub trains: u64,
}

/// Which interface a port's socket is bound to, to be asked for by another thread.
#[derive(Debug)]
pub struct Binding(OwnedFd);

impl Binding {
    /// The interface's number; `None` once it was deleted or moved to another network namespace, whatever has its name now.
    ///
    /// # Errors
    /// The system's error.
    pub fn index(&self) -> io::Result<Option<u32>> {
        Ok(sys::bound_to(self.0.as_fd())?.filter(|index| *index != NOWHERE))
    }
}

#[derive(Debug)]
struct OnePort {
    socket: OwnedFd,
    /// Keeps others from the interface, if they are to be kept.
    claim: Option<Claim>,
    /// The interface whose frames are all taken, whomever they are for: that it is bound to, or was before it went.
    all_of: Option<u32>,
    ring: Ring,
    outlet: Outlet,
    sent: Sent,
    counts: PortCounts,
    oddities: Oddities,
    /// Frames to be sent.
    gathered: Frames,
}

/// Some interfaces.
#[derive(Debug)]
pub struct AfPacket {
    clock: Clock,
    /// Everything up to this moment has been handed over.
    until: Time,
    ports: Vec<OnePort>,
    polls: Vec<libc::pollfd>,
}

impl AfPacket {
    /// Opens these interfaces, by the number of their port, and takes everything that comes in there.
    ///
    /// # Errors
    /// `NotFound` for an interface that isn't there, `InvalidInput` for one without Ethernet's header, `AddrInUse` for one that
    /// others have, `PermissionDenied` without CAP_NET_RAW, each with the name; else what the system says.
    pub fn open(ports: &[PortOptions], clock: Clock) -> io::Result<AfPacket> {
        sys::sleep_precisely()?;
        let open = |options: &PortOptions| {
            OnePort::open(options)
                .map_err(|e| io::Error::new(e.kind(), format!("interface `{}`: {e}", options.interface)))
        };
        let ports = ports.iter().map(open).collect::<io::Result<Vec<_>>>()?;
        let poll = |p: &OnePort| libc::pollfd { fd: p.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let polls = ports.iter().map(poll).collect();
        Ok(AfPacket { clock, until: Time::ZERO, ports, polls })
    }

    /// Binds a port to the interface of this number, or to none: then nothing comes in, and what is sent there is refused and
    /// counted. Sockets and ring stay as they are, so that this takes no privilege; frames that came in before are still
    /// handed over. Where it fails the port is bound to none.
    ///
    /// # Errors
    /// `InvalidInput` if its frames don't begin with Ethernet's header; `AddrInUse` if others have it; else what the system says:
    /// `ENODEV` if there is no such interface (any more).
    pub fn bind(&mut self, port: Port, index: Option<u32>) -> io::Result<()> {
        let port = &mut self.ports[port];
        port.unbind()?;
        let Some(index) = index else { return Ok(()) };
        port.bind(index).or_else(|e| port.unbind().and(Err(e)))
    }

    /// To see what a port is bound to.
    ///
    /// # Errors
    /// The system's error.
    pub fn binding(&self, port: Port) -> io::Result<Binding> {
        self.ports[port].socket.try_clone().map(Binding)
    }

    /// The MTU of a port's interface now; `None` if it has none, or has gone.
    #[must_use]
    pub fn mtu(&self, port: Port) -> Option<usize> {
        let OnePort { outlet, all_of, .. } = &self.ports[port];
        all_of.and_then(|_| outlet.interface_mtu())
    }

    /// The oddities of the frames that came in by a port.
    #[must_use]
    pub fn oddities(&self, port: Port) -> Oddities {
        let OnePort { oddities, sent, .. } = &self.ports[port];
        Oddities { trains: sent.trains, in_trains: sent.in_trains, ..*oddities }
    }
}

impl Io for AfPacket {
    fn layer(&self) -> Layer {
        Layer::Ethernet
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        let now = self.clock.now();
        if self.ports.iter().any(|p| p.ring.ready()) || until.is_some_and(|until| until <= now) {
            return Ok(());
        }
        sys::wait_readable(&mut self.polls, now, until)?;
        for (poll, port) in self.polls.iter().zip(&self.ports) {
            if poll.revents & libc::POLLERR != 0 {
                // The interface went down: asking for the error clears it, and frames come again when it is up.
                sys::take_error(port.socket.as_fd())?;
            }
        }
        Ok(())
    }

    fn peek(&self, see: &mut dyn FnMut(Port, &[u8])) {
        for (port, number) in self.ports.iter().zip(0..) {
            port.ring.waiting().take(BATCH).for_each(|frame| see(number, frame));
        }
    }

    /// In the order they came, whichever the port.
    fn receive(&mut self, each: &mut dyn FnMut(Time, Port, &mut [u8])) -> io::Result<Received> {
        let (now, today) = (self.clock.now(), sys::time_of_day());
        let mut received = Received { frames: 0, until: now };
        loop {
            let next =
                self.ports.iter().zip(0..).filter_map(|(p, number)| Some((p.ring.next_came()?, number)));
            let Some((came, number)) = next.min() else { break };
            if received.frames == BATCH {
                received.until = self.until;
                break;
            }
            // The kernel stamps by the clock that people set. A step hits the frames in the ring alone, and moves none of
            // them to before the last look or into the future.
            let at = arrived(now, Duration(today.saturating_sub(came).saturating_mul(1_000)), self.until);
            self.until = at;
            let OnePort { ring, counts, oddities, .. } = &mut self.ports[number];
            let whole = ring.take(|frame| {
                counts.received += 1;
                oddities.unfinished_checksum += u64::from(frame.unfinished_checksum);
                oddities.tagged += u64::from(frame.tagged);
                each(at, number, frame.bytes);
            });
            if !whole {
                oddities.too_long += 1;
                counts.missed += 1;
            }
            received.frames += 1;
        }
        self.until = received.until;
        for port in &mut self.ports {
            port.counts.missed += port.ring.missed(port.socket.as_fd())?;
        }
        Ok(received)
    }

    fn send(&mut self, port: Port, frame: &[u8]) -> io::Result<()> {
        let port = &mut self.ports[port];
        port.gathered.push(self.until, frame);
        if port.gathered.times().len() < SEND_BATCH { Ok(()) } else { port.flush() }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ports.iter_mut().try_for_each(OnePort::flush)
    }

    fn send_all(&mut self, port: Port, frames: &Frames) -> io::Result<()> {
        let port = &mut self.ports[port];
        port.flush()?;
        port.send_batch(frames)
    }

    fn counts(&self, port: Port) -> PortCounts {
        let OnePort { counts, sent, .. } = &self.ports[port];
        PortCounts { sent: sent.frames, refused: sent.refused, ..*counts }
    }
}

impl OnePort {
    fn open(options: &PortOptions) -> io::Result<OnePort> {
        let index = sys::interface_index(&options.interface)?;
        let socket = sys::packet_socket()?;
        let fd = socket.as_fd();
        let on: libc::c_int = 1;
        sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &on)?;
        let ring = Ring::new(fd, options.longest, options.frames)?;
        let outlet = Outlet::open(&options.interface)?;
        if options.alone {
            outlet.mark(MARK)?;
        }
        let claim = options.alone.then(Claim::new).transpose()?;
        let counts = PortCounts::default();
        let oddities = Oddities::default();
        let (sent, gathered) = (Sent::default(), Frames::default());
        let mut port =
            OnePort { socket, claim, all_of: None, ring, outlet, sent, counts, oddities, gathered };
        port.bind(index)?;
        Ok(port)
    }

    fn bind(&mut self, index: u32) -> io::Result<()> {
        if let Some(claim) = &self.claim {
            claim.take(index)?;
        }
        self.outlet.bind(index)?;
        let fd = self.socket.as_fd();
        sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous(index))?;
        self.all_of = Some(index);
        sys::bind_packet(fd, index, libc::ETH_P_ALL)
    }

    fn unbind(&mut self) -> io::Result<()> {
        if let Some(claim) = &self.claim {
            claim.leave()?;
        }
        self.outlet.unbind()?;
        let fd = self.socket.as_fd();
        // The kernel takes number 0 for all interfaces, and protocol 0 for the one before.
        sys::bind_packet(fd, NOWHERE, UNUSED)?;
        let Some(index) = self.all_of.take() else { return Ok(()) };
        match sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_DROP_MEMBERSHIP, &promiscuous(index)) {
            // It went with the interface.
            Err(e) if e.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Ok(()),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut gathered = std::mem::take(&mut self.gathered);
        let sent = self.send_batch(&gathered);
        gathered.clear();
        self.gathered = gathered;
        sent
    }

    /// Sends frames. One that can't be sent is counted, and the rest goes on.
    fn send_batch(&mut self, frames: &Frames) -> io::Result<()> {
        let frames: Vec<&[u8]> = frames.iter().collect();
        self.outlet.send(&frames, &mut self.sent)
    }
}

/// The request for all frames of an interface.
fn promiscuous(index: u32) -> libc::packet_mreq {
    libc::packet_mreq {
        mr_ifindex: index as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    }
}

/// When a frame of this age came: no earlier than `before`, no later than `now`.
fn arrived(now: Time, age: Duration, before: Time) -> Time {
    Time(now.0.saturating_sub(age.0)).max(before).min(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of the system's clock makes frames look older than the last look, or not yet sent.
    #[test]
    fn a_moment_lies_between_the_last_look_and_now() {
        let (now, before) = (Time(1_000), Time(400));
        let at = |age| arrived(now, Duration(age), before);
        assert_eq!(
            (at(0), at(250), at(600), at(601), at(u64::MAX)),
            (now, Time(750), before, before, before)
        );
    }
}

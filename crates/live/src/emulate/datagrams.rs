//! Datagrams between two hosts: a sender that keeps the simulator's times, and a receiver that counts arrivals and losses by
//! sequence number. Each is a thread in its host's namespace, with a socket of the kernel.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use inprofile_core::rng::Rng;
use inprofile_core::units::Time;
use inprofile_sim::traffic::udp::{Config, HEADER, Schedule};

use super::connection::{GLANCE, again, leave_as, settle, sleep_until};
use crate::addresses::PORT;
use crate::code_points::Dscp;
use crate::datapath::lateness::Lateness;
use crate::io::sys::{self, Clock};
use crate::namespace::Namespace;

/// The number that a datagram's payload begins with, in bytes.
const NUMBER: usize = 8;
/// The smallest packet that has room for it.
pub const LEAST: u32 = HEADER + NUMBER as u32;
/// Room in the receiver's socket: half a second at 100 Mbit/s, so that a reader that waits for its turn loses nothing.
const ROOM: libc::c_int = 8 << 20;

/// The settings of a flow of datagrams.
#[derive(Clone, Debug)]
pub struct DatagramConfig {
    /// The sender's address and the receiver's.
    pub addresses: (Ipv4Addr, Ipv4Addr),
    /// The segments to send.
    pub config: Config,
    /// When it starts.
    pub start: Time,
    /// From when on nothing is sent.
    pub stop: Option<Time>,
    /// The stream that times are drawn from: the simulator's.
    pub times: Rng,
    /// The code point that packets leave their host with.
    pub dscp: Option<Dscp>,
}

/// The findings of both ends.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Datagrams that the sender's kernel took.
    pub sent: u64,
    /// Datagrams that the receiver has read.
    pub received: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// One above the highest number that has come.
    pub expected: u64,
    /// Those that came after one with a higher number.
    pub overtaken: u64,
    /// How late after its time each was sent.
    pub lateness: Lateness,
}

impl Tally {
    /// Those missing below the highest number that came (RFC 3550 §6.4.1: expected less received).
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.expected.saturating_sub(self.received)
    }

    /// A datagram of this number has come.
    fn count(&mut self, number: u64, bytes: usize) {
        self.received += 1;
        self.bytes += bytes as u64;
        self.overtaken += u64::from(number < self.expected);
        self.expected = self.expected.max(number.saturating_add(1));
    }
}

/// The state that both ends share with an observer.
#[derive(Debug, Default)]
pub struct Shared {
    /// No more is to be done.
    pub over: AtomicBool,
    tally: Mutex<Tally>,
}

impl Shared {
    /// How far both ends are.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn with(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Opens the receiver's socket, so that it is there before the first datagram.
///
/// # Errors
/// The system's error.
pub fn open(namespace: &Namespace, plan: &DatagramConfig) -> io::Result<UdpSocket> {
    namespace.within(|| {
        let socket = UdpSocket::bind((plan.addresses.1, PORT))?;
        socket.connect((plan.addresses.0, PORT))?;
        socket.set_read_timeout(Some(GLANCE))?;
        let fd = socket.as_fd();
        if sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &ROOM).is_err() {
            sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &ROOM)?;
        }
        Ok(socket)
    })
}

/// The receiver's part: reads and counts until the run is over.
///
/// # Errors
/// The system's error; `InvalidData` for a datagram that no sender of ours makes.
pub fn receive(socket: &UdpSocket, shared: &Shared) -> io::Result<()> {
    let _ = sys::run_first();
    let mut room = vec![0; 1 << 16];
    while !shared.is_over() {
        match socket.recv(&mut room) {
            Ok(length) => {
                let number = room[..length].first_chunk::<NUMBER>().ok_or(io::ErrorKind::InvalidData)?;
                shared.with(|t| t.count(u64::from_be_bytes(*number), length));
            }
            Err(e) if again(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The sender's part: each datagram at its time. One that is late goes at once, and the next one keeps its own time.
///
/// # Errors
/// The system's error.
pub fn send(namespace: &Namespace, plan: &DatagramConfig, clock: Clock, shared: &Shared) -> io::Result<()> {
    settle(namespace)?;
    let socket = UdpSocket::bind((plan.addresses.0, PORT))?;
    socket.connect((plan.addresses.1, PORT))?;
    socket.set_write_timeout(Some(GLANCE))?;
    leave_as(socket.as_fd(), plan.dscp, plan.config.ecn)?;
    let mut payload = vec![0x5a; (plan.config.largest() - HEADER) as usize];
    let mut schedule = Schedule::new(plan.config, plan.stop, plan.times.clone());
    let mut due = schedule.begin(plan.start);
    let mut number = 0u64;
    while let Some(at) = due {
        if !sleep_until(at, clock, &shared.over) {
            return Ok(());
        }
        payload[..NUMBER].copy_from_slice(&number.to_be_bytes());
        match socket.send(&payload[..(schedule.size() - HEADER) as usize]) {
            Ok(_) => shared.with(|t| {
                t.sent += 1;
                t.lateness.record(clock.now().since(at));
            }),
            // No room in the host's own device: lost there, as on any interface; its number is missing at the receiver.
            Err(e) if again(&e) || e.raw_os_error() == Some(libc::ENOBUFS) => {}
            Err(e) => return Err(e),
        }
        number += 1;
        due = schedule.following();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(numbers: &[u64]) -> Tally {
        let mut tally = Tally::default();
        numbers.iter().for_each(|n| tally.count(*n, 100));
        tally
    }

    #[test]
    fn loss_is_what_is_missing_below_the_highest_number() {
        for (numbers, lost, overtaken) in [
            (&[][..], 0, 0),
            (&[0, 1, 2], 0, 0),
            // The first two are missing, too.
            (&[2, 3], 2, 0),
            (&[0, 3, 1], 1, 1),
            (&[5], 5, 0),
        ] {
            let t = after(numbers);
            assert_eq!((t.lost(), t.overtaken), (lost, overtaken), "{numbers:?}");
            assert_eq!((t.received, t.bytes), (numbers.len() as u64, 100 * numbers.len() as u64));
        }
    }
}

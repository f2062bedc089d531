//! The two ends of a flow during a run: two threads in two namespaces, and the requests that they answer.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::Ordering;

use inprofile_sim::stage::HostReport;
use inprofile_sim::tcp::Tally;
use inprofile_sim::traffic::ExternalSender;

use super::Host;
use super::connection::{self, Info};
use super::datagrams;
use super::topology::{Connection, Protocol};
use crate::io::sys::Clock;

/// The kernel's word for "no threshold yet" (TCP_INFINITE_SSTHRESH).
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// A flow's ends. The receiver's socket is there from the beginning.
#[derive(Debug)]
pub enum Ends {
    /// Of a connection.
    Tcp {
        /// Where the receiver listens.
        door: TcpListener,
        /// The words of both ends.
        shared: connection::Shared,
    },
    /// Of datagrams.
    Udp {
        /// Where the receiver reads.
        socket: UdpSocket,
        /// The words of both ends.
        shared: Box<datagrams::Shared>,
    },
}

impl Ends {
    /// Opens the receiver's door.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(receiver: &Host, protocol: &Protocol) -> io::Result<Ends> {
        let namespace = &receiver.namespace;
        Ok(match protocol {
            Protocol::Tcp(plan) => Ends::Tcp {
                door: connection::listen(namespace, plan)?,
                shared: connection::Shared::default(),
            },
            Protocol::Udp(plan) => {
                Ends::Udp { socket: datagrams::open(namespace, plan)?, shared: Box::default() }
            }
        })
    }

    /// The receiver's part, until the run is over.
    ///
    /// # Errors
    /// The system's error.
    pub fn receive(&self) -> io::Result<()> {
        match self {
            Ends::Tcp { door, shared } => connection::receive(door, shared),
            Ends::Udp { socket, shared } => datagrams::receive(socket, shared),
        }
    }

    /// The sender's part, until the run is over.
    ///
    /// # Errors
    /// The system's error.
    pub fn send(&self, sender: &Host, protocol: &Protocol, clock: Clock) -> io::Result<()> {
        let namespace = &sender.namespace;
        match (self, protocol) {
            (Ends::Tcp { shared, .. }, Protocol::Tcp(plan)) => {
                connection::send(namespace, plan, clock, shared)
            }
            (Ends::Udp { shared, .. }, Protocol::Udp(plan)) => {
                datagrams::send(namespace, plan, clock, shared)
            }
            _ => Err(io::Error::other("a flow's ends speak what its plan says")),
        }
    }

    /// Nothing more is to be done.
    pub fn halt(&self) {
        match self {
            Ends::Tcp { shared, .. } => shared.over.store(true, Ordering::Relaxed),
            Ends::Udp { shared, .. } => shared.over.store(true, Ordering::Relaxed),
        }
    }
}

/// A flow in the middle of a run.
#[derive(Debug)]
pub struct LiveFlow<'a> {
    /// Whose.
    pub connection: &'a Connection,
    ends: &'a Ends,
    tally: Tally,
    recovering: bool,
}

impl<'a> LiveFlow<'a> {
    /// Nothing is known of it yet.
    pub fn new(connection: &'a Connection, ends: &'a Ends) -> LiveFlow<'a> {
        LiveFlow { connection, ends, tally: Tally::default(), recovering: false }
    }

    /// Asks both ends how far they are.
    pub fn ask(&mut self) -> HostReport {
        match self.ends {
            Ends::Tcp { shared, .. } => {
                let sender = shared.info().map_or_else(ExternalSender::default, |info| self.sender(&info));
                HostReport { sender: Some(sender), in_order_bytes: shared.received() }
            }
            Ends::Udp { shared, .. } => HostReport { sender: None, in_order_bytes: shared.tally().bytes },
        }
    }

    /// The counts of the ends of datagrams.
    pub fn datagrams(&self) -> Option<datagrams::Tally> {
        match self.ends {
            Ends::Tcp { .. } => None,
            Ends::Udp { shared, .. } => Some(shared.tally()),
        }
    }

    fn sender(&mut self, info: &Info) -> ExternalSender {
        self.note(info);
        let ssthresh = if info.ssthresh >= NO_THRESHOLD { f64::INFINITY } else { f64::from(info.ssthresh) };
        ExternalSender { cwnd: f64::from(info.cwnd), ssthresh, tally: self.tally }
    }

    /// The kernel counts segments and timeouts; a recovery is seen when it has begun between two looks.
    fn note(&mut self, info: &Info) {
        self.tally.timeouts = info.timeouts.into();
        self.tally.retransmissions = u64::from(info.retransmissions);
        self.tally.fast_retransmits += u32::from(info.recovering && !self.recovering);
        self.recovering = info.recovering;
    }
}

//! A network with real hosts: the kernel's own TCP and UDP at the ends, and between them the links, queues, markers and monitors
//! of a simulated network, in wall time, in this process.
//!
//! Every sender and every receiving node has a network namespace of its own, joined to this process by a TUN device. A packet
//! that a host sends is read, enters the network at the time of its arrival, and is written to the other host's device when it
//! leaves its last link.
//!
//! ```text
//! namespace of tcp.0 ─ TUN ─┐                                ┌─ TUN ─ namespace of CR2
//! namespace of tcp.1 ─ TUN ─┴─ join ─ ER ─ bottleneck ─ CR2 ─┘
//! ```

#[expect(unsafe_code, reason = "socket calls that the standard library lacks; each with its reason")]
mod connection;
pub mod datagrams;
mod ends;
mod topology;

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::{fs, io};

use ends::{Ends, LiveFlow};
use inprofile_core::packet::{Colour, Ecn, FlowId};
use inprofile_core::units::{Duration, Time};
use inprofile_sim::engine::Failure;
use inprofile_sim::network::Network;
use inprofile_sim::outcome::Outcome;
use inprofile_sim::stage::{Egress, Stage};
use inprofile_sim::tcp::Flags;
use topology::Connection;

use crate::code_points::CodePoints;
use crate::datapath::lateness::Lateness;
use crate::io::Io;
use crate::io::netlink::{Metrics, Netlink};
use crate::io::sys::{self, Clock};
use crate::io::tun::{self, Tun};
use crate::namespace::Namespace;
use crate::packet::{self, Headers, Layer, Transport};

pub use topology::{Refusal, Topology};

/// How often senders are asked how they are.
const ASK: Duration = Duration::from_millis(10);

/// A run with real hosts.
#[derive(Debug)]
pub struct Live {
    /// The outcome, as of a simulation.
    pub outcome: Outcome,
    /// How it was run.
    pub report: Report,
}

/// How well this process kept time, and what it can't vouch for.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How long after its time each packet was handed to its host.
    pub lateness: Lateness,
    /// Whether this process had real-time priority.
    pub real_time: bool,
    /// Packets of hosts that belonged to no flow.
    pub strays: u64,
    /// Packets that a host's device did not take.
    pub refused: u64,
    /// The counts of the ends of each flow of datagrams, by the flow's name.
    pub datagrams: Vec<(String, datagrams::Tally)>,
    /// The experiment's settings that the kernel does not follow.
    pub notes: Vec<String>,
}

/// Why a run with real hosts has no outcome.
#[derive(Debug)]
pub enum Error {
    /// It can't be run with real hosts: every reason.
    Refused(Vec<Refusal>),
    /// The system said no.
    System(String, io::Error),
    /// It was told to stop, or the books don't add up.
    Failure(Failure),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Refused(all) => f.write_str(&together(all)),
            Error::System(what, e) => {
                let full = matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
                write!(f, "{what}: {e}{}", if full { sys::MORE_FILES } else { "" })
            }
            Error::Failure(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// So many flows are named of those that are refused for one reason.
const NAMED: usize = 3;

/// Every reason once, with the flows that it is about.
fn together(all: &[Refusal]) -> String {
    let mut reasons: Vec<(&Refusal, Vec<&str>)> = Vec::new();
    for refusal in all {
        let same = |r: &&mut (&Refusal, Vec<&str>)| {
            (&r.0.problem, &r.0.remedy) == (&refusal.problem, &refusal.remedy)
        };
        match reasons.iter_mut().find(same) {
            Some((_, flows)) => flows.push(&refusal.flow),
            None => reasons.push((refusal, vec![&refusal.flow])),
        }
    }
    let text = |(refusal, flows): (&Refusal, Vec<&str>)| {
        let named = flows[..flows.len().min(NAMED)].join(", ");
        let more =
            if flows.len() > NAMED { format!(" and {} more", flows.len() - NAMED) } else { String::new() };
        let s = if flows.len() > 1 { "s" } else { "" };
        format!("flow{s} {named}{more}: {}\n  {}", refusal.problem, refusal.remedy)
    };
    reasons.into_iter().map(text).collect::<Vec<_>>().join("\n")
}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    move |e| Error::System(what.into(), e)
}

/// Runs a network with real hosts, for as long as it says, in wall time.
///
/// # Errors
/// [`Error::Refused`] before anything was made, if it can't be run this way.
pub fn run(network: Network, stop: &AtomicBool) -> Result<Live, Error> {
    let plan = Topology::of(&network).map_err(Error::Refused)?;
    // Whatever this thread becomes (real-time, precise), it is so only for the run.
    std::thread::scope(|scope| {
        let run = scope.spawn(|| run_here(network, &plan, stop));
        run.join().unwrap_or_else(|_| {
            Err(Error::System("the emulation".into(), io::Error::other("a thread of it died")))
        })
    })
}

fn run_here(network: Network, plan: &Topology, stop: &AtomicBool) -> Result<Live, Error> {
    let mut devices = Vec::new();
    let mut hosts = Vec::new();
    for h in &plan.hosts {
        let (host, device) =
            Host::create(h.stack, h.mtu, &h.routes).map_err(system(format!("host of {}", h.name)))?;
        hosts.push(host);
        devices.push(device);
    }
    let ends = plan.connections.iter().map(|c| {
        Ends::open(&hosts[c.ports.1], &c.protocol).map_err(system(format!("receiver of {}", c.name)))
    });
    let ends = ends.collect::<Result<Vec<Ends>, Error>>()?;

    let clock = Clock::start();
    let mut wires = Tun::new(devices, clock).map_err(system("TUN devices"))?;
    let mut watched: Vec<LiveFlow<'_>> =
        plan.connections.iter().zip(&ends).map(|(c, e)| LiveFlow::new(c, e)).collect();
    std::thread::scope(|scope| {
        let mut threads: Vec<(String, ScopedJoinHandle<'_, io::Result<()>>)> = Vec::new();
        for (c, e) in plan.connections.iter().zip(&ends) {
            let sender = &hosts[c.ports.0];
            threads.push((format!("receiver of {}", c.name), scope.spawn(|| e.receive())));
            threads.push((
                format!("sender of {}", c.name),
                scope.spawn(move || e.send(sender, &c.protocol, clock)),
            ));
        }
        let notes = plan.notes.clone();
        let mut report = Report { real_time: sys::run_first(), notes, ..Report::default() };
        let ran = carry(Stage::new(network), &mut wires, &mut watched, &mut report, stop);
        let tallies = watched.iter().filter_map(|w| Some((w.connection.name.clone(), w.datagrams()?)));
        report.datagrams = tallies.collect();
        ends.iter().for_each(Ends::halt);
        for (what, thread) in threads {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread died")));
            // Once the run is over, a connection that breaks off is no news.
            if ran.is_ok() {
                ended.map_err(system(what))?;
            }
        }
        let outcome = ran?.finish().map_err(Error::Failure)?;
        report.refused = (0..hosts.len()).map(|port| wires.counts(port).refused).sum();
        Ok(Live { outcome, report })
    })
}

/// Carries packets between the hosts and the network until it is over.
fn carry(
    mut stage: Stage,
    wires: &mut Tun,
    watched: &mut [LiveFlow<'_>],
    report: &mut Report,
    stop: &AtomicBool,
) -> Result<Stage, Error> {
    let by_flow = by_flow(watched);
    // A packet's bytes, by its slot in the stage.
    let mut bytes: Vec<Vec<u8>> = Vec::new();
    let mut next_ask = Time::ZERO;
    loop {
        let now = wires.now();
        if now >= next_ask {
            watched.iter_mut().for_each(|w| stage.report_hosts(w.connection.flow, &w.ask()));
            next_ask = now + ASK;
        }
        let mut failed = None;
        let on = stage.advance(now, stop, |e| {
            report.lateness.record(wires.now().since(e.at));
            if let Some(c) = by_flow.get(e.packet.flow.0 as usize).copied().flatten() {
                failed = deliver(wires, c, &mut bytes[e.slot as usize], &e).err();
            }
        });
        if let Some(e) = failed {
            return Err(Error::System("a host's device".into(), e));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Failure(Failure::Stopped));
        }
        if !on {
            return Ok(stage);
        }
        let took = wires.receive(&mut |_, _, frame| match whose(frame) {
            Some((flow, forward, headers)) if by_flow.get(flow as usize).is_some_and(Option::is_some) => {
                let seen = headers.packet(FlowId(flow), Colour::IN, 0);
                let slot = stage.put(flow, &seen, forward, flags(&headers)) as usize;
                if bytes.len() <= slot {
                    bytes.resize(slot + 1, Vec::new());
                }
                bytes[slot].clear();
                bytes[slot].extend_from_slice(frame);
            }
            _ => report.strays += 1,
        });
        took.map_err(system("a host's device"))?;
        let due = stage.due().map_or(next_ask, |at| at.min(next_ask));
        wires.wait(Some(due)).map_err(system("waiting"))?;
    }
}

fn by_flow<'a>(watched: &[LiveFlow<'a>]) -> Vec<Option<&'a Connection>> {
    let flows = watched.iter().map(|w| w.connection.flow as usize + 1).max().unwrap_or(0);
    let mut by_flow = vec![None; flows];
    watched.iter().for_each(|w| by_flow[w.connection.flow as usize] = Some(w.connection));
    by_flow
}

/// Whose packet a host has sent, and which way it goes: both are in its source address.
fn whose(frame: &[u8]) -> Option<(u32, bool, Headers)> {
    let headers = packet::parse(Layer::Ip, frame).ok()?;
    let (Transport::Tcp { .. } | Transport::Udp { .. }) = headers.transport else { return None };
    let [a, b, c, d, ..] = headers.addresses.0;
    let (flow, forward) = crate::addresses::flow_of([a, b, c, d].into())?;
    Some((flow, forward, headers))
}

/// The flags that an ACK filter goes by: ECN's, and for any other than ACK that of a packet that stays.
fn flags(headers: &Headers) -> Flags {
    let Transport::Tcp { flags, .. } = headers.transport else { return Flags::NONE };
    let set = |bits: u8, flag| if flags & bits != 0 { flag } else { Flags::NONE };
    set(0x40, Flags::ECE).and(set(0x80, Flags::CWR)).and(set(0x2f, Flags::SYN))
}

/// Hands a packet to a host, with its class's code point or that of its colour, and its ECN bits.
fn deliver(wires: &mut Tun, c: &Connection, frame: &mut [u8], e: &Egress) -> io::Result<()> {
    if let Ok(headers) = packet::parse(Layer::Ip, frame) {
        if e.forward && c.dscp.is_none() {
            packet::set_dscp(frame, headers.bits(), CodePoints::default().of(e.packet.colour));
        }
        if e.packet.ecn == Ecn::Experienced {
            packet::congestion_experienced(frame, headers.bits());
        }
    }
    wires.send(if e.forward { c.ports.1 } else { c.ports.0 }, frame)
}

// A host: a network namespace with one end of a TUN device, whose other end is in this process.

/// The device's name inside every host.
const DEVICE: &str = "host0";

/// The settings of a host's TCP that can differ between namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323): twelve bytes in every header.
    pub timestamps: bool,
    /// Asks for ECN; every host agrees to it if asked.
    pub ecn: bool,
}

/// A route to another host.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Our address on it.
    pub own: Ipv4Addr,
    /// The other's.
    pub other: Ipv4Addr,
    /// The settings of TCP on it.
    pub metrics: Metrics,
}

/// A host.
#[derive(Debug)]
pub struct Host {
    /// Where it lives.
    pub namespace: Namespace,
}

impl Host {
    /// Makes one; our end of its device comes with it.
    ///
    /// # Errors
    /// The system's error, and the step in which it arose.
    pub fn create(stack: Stack, mtu: u32, routes: &[Route]) -> io::Result<(Host, OwnedFd)> {
        let namespace = Namespace::create()?;
        let device = namespace.within(|| {
            set("ipv6/conf/default/disable_ipv6", "1")?;
            set("ipv4/tcp_sack", flag(stack.sack))?;
            set("ipv4/tcp_timestamps", flag(stack.timestamps))?;
            set("ipv4/tcp_ecn", if stack.ecn { "1" } else { "2" })?;
            // Otherwise a connection starts with what the one before it to the same host had found out.
            set("ipv4/tcp_no_metrics_save", "1")?;
            let device = tun::create(DEVICE).map_err(while_doing("making a TUN device"))?;
            let index = sys::interface_index(DEVICE)?;
            let netlink = Netlink::open()?;
            netlink.up(index, mtu).map_err(while_doing("setting the device up"))?;
            for route in routes {
                netlink.address(index, route.own).map_err(while_doing("giving an address"))?;
                netlink
                    .route(index, route.other, route.own, &route.metrics)
                    .map_err(while_doing("setting a route"))?;
            }
            Ok(OwnedFd::from(device))
        })?;
        Ok((Host { namespace }, device))
    }
}

fn flag(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

/// Sets one of the namespace's own settings.
fn set(what: &'static str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/net/{what}"), value).map_err(while_doing(what))
}

fn while_doing(what: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |e| {
        // The error should also say what to do, and the number of the error is lost with its text.
        let full = matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
        io::Error::new(e.kind(), format!("{what}: {e}{}", if full { sys::MORE_FILES } else { "" }))
    }
}

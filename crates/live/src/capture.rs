//! The packets of a simulated run at links, as a capture (pcapng) that Wireshark and tshark read.
//!
//! A link's interface is what `tcpdump` would see at its sending end: packets as they leave the queue, and, inbound, what the
//! other direction brings. What the queue dropped is on an interface of its own, with the cause as a comment. Addresses are a
//! flow's own ([`crate::addresses`]); the code point is that of the packet's class, or of its colour (RFC 2597), or best
//! effort where nothing marks.

pub mod frame;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use inprofile_core::packet::Kind;
use inprofile_sim::network::{Flow, Network};
use inprofile_sim::run_log::{self, Incomplete};
use inprofile_sim::run_log::{Code, LogRow};

use crate::addresses;
use crate::code_points::{CodePoints, Dscp};
use crate::io::pcapng::{self, Direction, Packet};
use frame::{Options, Outside, Tcp, flags, window_shift};

/// Where packets are captured, and how much of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Links by name.
    pub at: Vec<String>,
    /// At most so many bytes of each packet; 0: all.
    pub snaplen: u32,
    /// The program that wrote it, and a comment on the whole.
    pub program: String,
    /// See `program`.
    pub comment: String,
}

/// How many packets were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Packets that passed.
    pub passed: u64,
    /// Packets that a queue dropped.
    pub dropped: u64,
}

/// Why there is no capture.
#[derive(Debug)]
pub enum Error {
    /// The request can't be met: what is wrong and what to write instead.
    Refused(String),
    /// The run or its file is incomplete.
    Incomplete(Incomplete),
}

/// A flow, as its headers tell of it.
struct Ends {
    /// The code point of its data, where its class has one.
    class: Option<Dscp>,
    /// TCP: bytes of a segment, whether acknowledgements have SACK blocks, the receiver's window and its shift.
    segment: u32,
    sack: bool,
    window: (u32, u8),
    /// The first link of acknowledgements and the last one of data.
    back: Option<u32>,
    last: Option<u32>,
    /// Whether its receiver has had data: until then every acknowledgement answers a SYN.
    has_data: bool,
}

impl Ends {
    fn of(network: &Network, flow: &Flow) -> Ends {
        let tcp = flow.transport.tcp();
        let window = tcp.map_or(0, |t| t.window.saturating_mul(t.segment));
        Ends {
            class: addresses::of_class(network, flow),
            segment: tcp.map_or(0, |t| t.segment),
            sack: tcp.is_some_and(|t| t.congestion.uses_sack()),
            window: (window, window_shift(window)),
            back: flow.back.first().copied(),
            last: flow.path.last().copied(),
            has_data: false,
        }
    }
}

/// The writer of a run's packets.
struct Capture {
    /// By link: the number of its interface, whose drops are on the next one.
    interfaces: BTreeMap<u32, u32>,
    /// By link: the interface at whose end it arrives.
    inbound: BTreeMap<u32, u32>,
    flows: Vec<Ends>,
    /// Numbers of acknowledgements that answer a SYN.
    answers: BTreeSet<u64>,
    /// Whether colours have a meaning.
    coloured: bool,
    snaplen: usize,
    /// A frame being built.
    frame: Vec<u8>,
    counts: Arc<[AtomicU64; 2]>,
}

/// Runs a network to its end and writes what passes these links, and what their queues drop, as a capture.
///
/// `stop` ends the run early, as it does when the capture can't be written any more.
///
/// # Errors
/// [`Error`]; a refusal comes before anything is written.
pub fn run(
    network: Network,
    request: &Request,
    stop: &Arc<AtomicBool>,
    mut to: impl Write + Send + 'static,
) -> Result<Written, Error> {
    let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let mut capture = Capture::of(&network, request, Arc::clone(&counts)).map_err(Error::Refused)?;
    capture.begin(&network, request, &mut to).map_err(|e| Error::Incomplete(Incomplete::Write(e)))?;
    run_log::run(network, stop, to, move |row, to| capture.row(row, to)).map_err(Error::Incomplete)?;
    let [passed, dropped] = [0, 1].map(|i: usize| counts[i].load(Ordering::Relaxed));
    Ok(Written { passed, dropped })
}

impl Capture {
    fn of(network: &Network, request: &Request, counts: Arc<[AtomicU64; 2]>) -> Result<Capture, String> {
        if network.flows.len() > addresses::MOST as usize {
            return Err(format!("a capture has addresses for at most {} flows", addresses::MOST));
        }
        // IPv4's length has 16 bits, and a SACK option may come on top.
        const LONGEST: u32 = 65_480;
        if let Some(flow) = network.flows.iter().find(|f| f.transport.packet() > LONGEST) {
            let (name, size) = (&flow.name, flow.transport.packet());
            return Err(format!(
                "flow {name} has packets of {size} B, and IPv4 none above 65535 B with its options: write packets of at most {LONGEST} B"
            ));
        }
        let mut interfaces = BTreeMap::new();
        let mut inbound = BTreeMap::new();
        for name in &request.at {
            let Some(link) = network.links.iter().position(|l| l.name == *name) else {
                let known: Vec<&str> =
                    network.links.iter().filter(|l| l.reported).map(|l| l.name.as_str()).collect();
                return Err(format!(
                    "there is no link {name:?}: the links are {}, and FLOW.N.join for a host's own",
                    known.join(", ")
                ));
            };
            let l = &network.links[link];
            let interface = 2 * interfaces.len() as u32;
            if interfaces.insert(link as u32, interface).is_some() {
                return Err(format!("link {name:?} is named twice"));
            }
            let other = network.links.iter().position(|o| (o.from, o.to) == (l.to, l.from));
            inbound.extend(other.map(|o| (o as u32, interface)));
        }
        let flows = network.flows.iter().map(|f| Ends::of(network, f)).collect();
        let coloured = !network.edges.is_empty() || network.flows.iter().any(|f| f.marker.is_some());
        let snaplen = if request.snaplen == 0 { usize::MAX } else { request.snaplen as usize };
        Ok(Capture {
            interfaces,
            inbound,
            flows,
            answers: BTreeSet::new(),
            coloured,
            snaplen,
            frame: Vec::with_capacity(128),
            counts,
        })
    }

    /// Writes what comes before the packets.
    fn begin(&self, network: &Network, request: &Request, to: &mut impl Write) -> io::Result<()> {
        pcapng::section(to, &request.program, &request.comment)?;
        let mut links: Vec<(u32, u32)> = self.interfaces.iter().map(|(&l, &i)| (i, l)).collect();
        links.sort_unstable();
        for (_, link) in links {
            let l = &network.links[link as usize];
            let (from, end) = (&network.nodes[l.from as usize], &network.nodes[l.to as usize]);
            let passed = format!("{from} to {end}: packets as they leave the queue, and what comes back");
            let dropped = format!("{from} to {end}: packets that the queue dropped");
            pcapng::interface(to, &l.name, &passed, l.rate, request.snaplen)?;
            pcapng::interface(to, &format!("{} drops", l.name), &dropped, l.rate, request.snaplen)?;
        }
        Ok(())
    }

    /// Writes what a line of the log tells of these links.
    fn row(&mut self, row: &LogRow, to: &mut impl Write) -> io::Result<()> {
        self.follow(row);
        let captured = match row.code {
            Code::Enqueue => None,
            Code::Dequeue => self.interfaces.get(&row.link).map(|&i| (i, Some(Direction::Outbound), None)),
            Code::Receive => self.inbound.get(&row.link).map(|&i| (i, Some(Direction::Inbound), None)),
            Code::Drop(cause) => self.interfaces.get(&row.link).map(|&i| (i + 1, None, Some(cause))),
        };
        let Some((interface, direction, cause)) = captured else { return Ok(()) };
        let length = self.build(row);
        self.counts[usize::from(cause.is_some())].fetch_add(1, Ordering::Relaxed);
        let most = self.snaplen.min(length as usize);
        self.frame.resize(most, 0);
        let comment = cause.map(|cause| format!("dropped: {}", cause.name()));
        pcapng::packet(
            to,
            &Packet {
                interface,
                at: row.time,
                direction,
                number: row.number,
                comment: comment.as_deref(),
                bytes: &self.frame,
                length,
            },
        )
    }

    /// Notes which acknowledgements answer a SYN: those that leave before any data has come.
    fn follow(&mut self, row: &LogRow) {
        let t = &row.packet.packet;
        let ends = &mut self.flows[t.flow.0 as usize];
        match (row.code, t.kind) {
            (Code::Receive, Kind::Data) if Some(row.link) == ends.last => ends.has_data = true,
            (Code::Enqueue, Kind::Ack) if Some(row.link) == ends.back && t.ack == 1 && !ends.has_data => {
                self.answers.insert(row.number);
            }
            _ => {}
        }
    }

    /// The packet's headers into `frame`; the length of the whole.
    fn build(&mut self, row: &LogRow) -> u32 {
        let t = &row.packet.packet;
        let ends = &self.flows[t.flow.0 as usize];
        let (sender, receiver) = addresses::of(t.flow.0);
        let forward = row.packet.forward();
        let dscp = match ends.class {
            Some(dscp) => dscp,
            None if forward && self.coloured => CodePoints::default().of(t.colour),
            None => Dscp::DEFAULT,
        };
        let outside = Outside {
            nodes: (row.from, row.to),
            addresses: if forward { (sender, receiver) } else { (receiver, sender) },
            forward,
            octet: dscp.value() << 2 | t.ecn.bits(),
            identification: row.number as u16,
            size: t.size,
            payload: t.payload,
        };
        let answer = t.kind == Kind::Ack && self.answers.contains(&row.number);
        let syn = Options::of_syn(ends.segment, ends.sack, ends.window.1);
        let (seq, ack, said, options) = match t.kind {
            Kind::Datagram => return frame::udp(&mut self.frame, &outside),
            Kind::Syn => (t.seq, 0, flags::SYN, syn),
            Kind::Data => (t.seq, 1, flags::ACK, Options::default()),
            Kind::Ack if answer => (0, t.ack, flags::SYN | flags::ACK, syn.with_bytes(row.bytes)),
            Kind::Ack => {
                let options =
                    if ends.sack { Options::of_sack(&row.sack, ends.segment) } else { Options::default() };
                (1, t.ack, flags::ACK, options.with_bytes(row.bytes))
            }
        };
        let said = said | flags::of_ecn(row.packet.flags());
        let tcp = Tcp { seq, ack, flags: said, window: ends.window };
        frame::tcp(&mut self.frame, &outside, &tcp, options)
    }
}

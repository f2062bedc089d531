//! Which hosts and connections a network needs, and whether the kernel can replace its senders.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

use inprofile_core::params::Params;
use inprofile_core::units::Duration;
use inprofile_sim::network::{Flow, Network, Transport};
use inprofile_sim::tcp::control::Kind;
use inprofile_sim::tcp::{Config, Congestion, Profile, Settings, SlowStart};
use inprofile_sim::traffic::udp;

use super::{Route, Stack};
use super::{connection, datagrams};
use crate::addresses;
use crate::code_points::Dscp;
use crate::io::netlink::Metrics;

/// The most flows: each takes a namespace, a device and two threads.
pub const MOST: usize = 500;
/// IPv4 and TCP without options.
const PLAIN: u32 = 40;
/// The timestamps option with its padding (RFC 7323 appendix A).
const TIMESTAMPS: u32 = 12;
/// RFC 791: what every host takes. Linux makes no segment smaller than 48 bytes.
const LEAST_MTU: u32 = 88;

/// One reason why a network can't be run with real hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The flow it is about.
    pub flow: String,
    /// The key of the flow's `tcp` that says so; empty where it is none of them.
    pub key: &'static str,
    /// The fault.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "flow {}: {}\n  {}", self.flow, self.problem, self.remedy)
    }
}

/// A host to be made.
#[derive(Debug)]
pub struct HostPlan {
    /// A flow's name, or a node's.
    pub name: String,
    pub(crate) stack: Stack,
    pub(crate) mtu: u32,
    pub(crate) routes: Vec<Route>,
}

/// The protocol of a flow's ends.
#[derive(Debug)]
pub enum Protocol {
    /// A connection of the kernel's.
    Tcp(connection::ConnectionConfig),
    /// Datagrams.
    Udp(datagrams::DatagramConfig),
}

/// A flow between two hosts to be made.
#[derive(Debug)]
pub struct Connection {
    /// The flow, by its number.
    pub flow: u32,
    /// The flow's name.
    pub name: String,
    /// Numbers of the sender's host and of the receiver's.
    pub ports: (usize, usize),
    /// The code point that its data keeps, whatever its colour.
    pub dscp: Option<Dscp>,
    pub(crate) protocol: Protocol,
}

/// Everything that has to be made.
#[derive(Debug, Default)]
pub struct Topology {
    /// Hosts.
    pub hosts: Vec<HostPlan>,
    /// Flows between them.
    pub connections: Vec<Connection>,
    /// The experiment's settings that the kernel does not follow.
    pub notes: Vec<String>,
}

/// The kernel's congestion control, and whether it recovers by selective acknowledgements.
fn control(congestion: Congestion) -> (&'static str, bool) {
    match congestion {
        // Without them Linux recovers by RFC 6582, whatever it is called here.
        Congestion::Reno | Congestion::NewReno => ("reno", false),
        Congestion::Sack => ("reno", true),
        Congestion::Cubic { sack } => ("cubic", sack),
        Congestion::Linux(kind) => (kind.name(), true),
    }
}

impl Topology {
    /// The hosts and flows of this network.
    ///
    /// # Errors
    /// Every reason why it can't be run.
    pub fn of(network: &Network) -> Result<Topology, Vec<Refusal>> {
        let (mut plan, mut refusals) = (Topology::default(), Vec::new());
        let mut receivers: BTreeMap<u32, usize> = BTreeMap::new();
        for (number, flow) in (0..).zip(&network.flows) {
            refusals.extend(match &flow.transport {
                Transport::Tcp(tcp) | Transport::Transfer(tcp, _) => refuse(flow, tcp),
                Transport::Web(..) | Transport::Video(..) => Some(refuse_requests(flow)),
                Transport::Udp(udp) => refuse_datagrams(flow, udp),
            });
            plan.add(network, number, flow, &mut receivers);
        }
        if plan.connections.len() > MOST {
            refusals.push(Refusal {
                flow: network.flows[MOST].name.clone(),
                key: "",
                problem: format!("{} flows; each takes a namespace and two threads", plan.connections.len()),
                remedy: format!("at most {MOST} at a time with real hosts"),
            });
        }
        plan.notes = notes(network);
        if refusals.is_empty() { Ok(plan) } else { Err(refusals) }
    }

    fn add(&mut self, network: &Network, number: u32, flow: &Flow, receivers: &mut BTreeMap<u32, usize>) {
        let addresses = addresses::of(number);
        let dscp = addresses::of_class(network, flow);
        let (stack, mtu, metrics, protocol) = match &flow.transport {
            // Of web and video, which are refused, as of any connection without end.
            Transport::Tcp(tcp) | Transport::Web(tcp, _) | Transport::Video(tcp, _) => {
                connection_of(flow, tcp, None, addresses, dscp)
            }
            Transport::Transfer(tcp, segments) => connection_of(flow, tcp, Some(*segments), addresses, dscp),
            Transport::Udp(udp) => datagrams_of(network, flow, *udp, addresses, dscp),
        };
        let (sender, receiver) = addresses;
        let from = self.hosts.len();
        self.hosts.push(HostPlan {
            name: flow.name.clone(),
            stack,
            mtu,
            routes: vec![Route { own: sender, other: receiver, metrics: metrics.0 }],
        });
        // A receiver agrees to whatever its senders ask for.
        let to = *receivers.entry(flow.to).or_insert_with(|| {
            self.hosts.push(HostPlan {
                name: network.nodes[flow.to as usize].clone(),
                stack: Stack { sack: true, timestamps: true, ecn: false },
                mtu: LEAST_MTU,
                routes: Vec::new(),
            });
            self.hosts.len() - 1
        });
        let host = &mut self.hosts[to];
        host.mtu = host.mtu.max(mtu);
        host.routes.push(Route { own: receiver, other: sender, metrics: metrics.1 });
        let (name, ports) = (flow.name.clone(), (from, to));
        self.connections.push(Connection { flow: number, name, ports, dscp, protocol });
    }
}

/// The hosts of a flow: the sender's stack, the MTU, what TCP does on the way there and on the way back, and what
/// they speak.
type Hosts = (Stack, u32, (Metrics, Metrics), Protocol);

fn connection_of(
    flow: &Flow,
    tcp: &Config,
    segments: Option<u32>,
    addresses: (Ipv4Addr, Ipv4Addr),
    dscp: Option<Dscp>,
) -> Hosts {
    let (congestion, sack) = control(tcp.congestion);
    let there = Metrics {
        initial_window: Some(tcp.initial_window),
        min_rto_ms: Some(in_ms(tcp.min_rto)),
        ..Metrics::default()
    };
    let back = Metrics {
        receive_window: Some(tcp.window),
        quick_ack: tcp.delayed_ack.is_none(),
        ..Metrics::default()
    };
    let plan = connection::ConnectionConfig {
        addresses,
        congestion,
        window: tcp.window.saturating_mul(tcp.segment),
        start: flow.start,
        stop: flow.stop,
        bytes: segments.map(|n| u64::from(n) * u64::from(tcp.segment)),
        dscp,
    };
    let stack = Stack { sack, timestamps: tcp.header() == PLAIN + TIMESTAMPS, ecn: tcp.ecn };
    (stack, tcp.packet(), (there, back), Protocol::Tcp(plan))
}

fn datagrams_of(
    network: &Network,
    flow: &Flow,
    config: udp::Config,
    addresses: (Ipv4Addr, Ipv4Addr),
    dscp: Option<Dscp>,
) -> Hosts {
    let (start, stop) = (flow.start, flow.stop);
    let times = udp::times(network.seed, &flow.name);
    let plan = datagrams::DatagramConfig { addresses, config, start, stop, times, dscp };
    let stack = Stack { sack: false, timestamps: false, ecn: false };
    let mtu = config.largest().max(LEAST_MTU);
    (stack, mtu, (Metrics::default(), Metrics::default()), Protocol::Udp(plan))
}

/// The settings of this experiment that the kernel does not follow, each once.
fn notes(network: &Network) -> Vec<String> {
    let configs = || network.flows.iter().filter_map(|f| f.transport.tcp());
    let any = |wants: fn(&Config) -> bool| configs().any(wants);
    let all = [
        (
            any(|c| c.profile == Profile::Ns2),
            "the TCP is Linux's, not ns-2's: its timers, its initial sequence, its recovery",
        ),
        (
            any(|c| c.congestion == Congestion::Reno),
            "reno: without SACK Linux recovers from loss by RFC 6582 (NewReno), not by RFC 5681",
        ),
        (any(|c| c.accurate_ecn), "accurate_ecn: the hosts agree on ECN-Echo (RFC 3168)"),
        (any(|c| c.receiver_ecn.is_some()), "receiver_ecn: both hosts can what the kernel can"),
        (any(|c| c.delayed_ack.is_some()), "delayed_ack: the time is the kernel's own, 40 to 200 ms"),
        (
            any(|c| c.pacing),
            "pacing: the kernel paces where its device has the fq discipline, and here it has none",
        ),
        (
            any(|c| {
                c.slow_start != SlowStart::of(c.profile, c.congestion) && c.slow_start == SlowStart::Standard
            }),
            "slow_start: the kernel's cubic has HyStart",
        ),
    ];
    let known = all.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text.to_owned());
    let usual = Settings::default().values();
    let changed = usual.0.iter().filter(|(key, value)| {
        *key != "header" && configs().any(|c| c.settings.values().get(key) != Some(value))
    });
    known.chain(changed.map(|(key, _)| format!("{key}: {}", instead(key)))).collect()
}

/// What the kernel has instead of a setting that was changed.
fn instead(key: &str) -> &'static str {
    match key {
        "ect1" => "the kernel's dctcp sends ECT(0)",
        "jitter" => "the kernel has none",
        "prr" => "the kernel's reduction starts from the window, with the bounds of RFC 9937",
        "limited_transmit" => "the kernel always does it (RFC 3042)",
        _ => "the kernel's TCP has a value of its own",
    }
}

fn in_ms(d: Duration) -> u32 {
    u32::try_from(d.0.div_ceil(Duration::from_millis(1).0)).unwrap_or(u32::MAX)
}

/// The settings that a socket's datagrams lack.
fn refuse_datagrams(flow: &Flow, udp: &udp::Config) -> Option<Refusal> {
    let (key, least) = (if udp.drawn().is_some() { "smallest" } else { "packet" }, udp.smallest());
    (least < datagrams::LEAST).then(|| Refusal {
        flow: flow.name.clone(),
        key: "",
        problem: format!("packets of {least} B have no room for the number that tells which are lost"),
        remedy: format!("{key} = \"{} B\" or more", datagrams::LEAST),
    })
}

/// Applications whose requests real hosts do not make.
fn refuse_requests(flow: &Flow) -> Refusal {
    Refusal {
        flow: flow.name.clone(),
        key: "",
        problem: "web and video ask for one piece of data after another, which real hosts here do not".into(),
        remedy: "traffic = { kind = \"transfer\", … } with sizes and starts of your own".into(),
    }
}

/// The settings that the kernel's TCP lacks.
fn refuse(flow: &Flow, tcp: &Config) -> Option<Refusal> {
    let no = |key: &'static str, problem: String, remedy: &str| {
        Some(Refusal { flow: flow.name.clone(), key, problem, remedy: remedy.to_owned() })
    };
    if tcp.congestion.measures_delay() {
        let remedy = "write congestion = \"cubic\" or \"sack\"";
        return no("congestion", "the kernel has no LEDBAT (RFC 6817)".into(), remedy);
    }
    if tcp.congestion == Congestion::Linux(Kind::Dcqcn) {
        let remedy = "write congestion = \"dctcp\"";
        return no("congestion", "the kernel's TCP has no DCQCN: it is of RDMA adapters".into(), remedy);
    }
    if tcp.slow_start == SlowStart::HyStartPlusPlus {
        let remedy = "remove slow_start: the kernel's cubic has HyStart, its reno standard slow start";
        return no("slow_start", "the kernel has no HyStart++ (RFC 9406)".into(), remedy);
    }
    if ![PLAIN, PLAIN + TIMESTAMPS].contains(&tcp.header()) {
        return no(
            "header",
            format!("headers of {} B: the kernel's are 40 B, or 52 B with timestamps", tcp.header()),
            "write header = \"40 B\" or \"52 B\"",
        );
    }
    let mtu = tcp.packet();
    if !(LEAST_MTU..=65_535).contains(&mtu) {
        let remedy = "write a segment and a header of 88 to 65535 B together";
        return no("segment", format!("an MTU of {mtu} B"), remedy);
    }
    let (name, _) = control(tcp.congestion);
    match connection::has_congestion(name) {
        Ok(()) => None,
        Err(e) if e.kind() == io::ErrorKind::Unsupported => {
            let remedy =
                format!("load it (modprobe tcp_{name}), or write congestion = \"cubic\" or \"sack\"");
            no("congestion", e.to_string(), &remedy)
        }
        Err(e) => no("", format!("no TCP socket: {e}"), "a kernel with IPv4 is needed"),
    }
}

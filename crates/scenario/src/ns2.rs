//! The same experiment for ns-2 2.35: its Tcl script, or all that ns-2 has no word for.
//!
//! The script is to give the same packets at the same times as the simulator's ns-2 profile. Two things
//! need care for that. ns-2 has one stream of random numbers, and draws the phase of a sender's clock from it when the
//! sender is made and again when it is reset as the run begins. `$ns run` resets agents node by node, in the order of a Tcl
//! array; the script makes `Node reset` leave agents alone and resets them itself, flow by flow. And a limit of
//! n packets means n − 1 to ns-2's drop-tail queue, so what waits is written, plus one.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use inprofile_core::aqm::curve::Variant;
use inprofile_core::aqm::drop_tail::{self, LimitRule};
use inprofile_core::aqm::red;
use inprofile_core::params::Params;
use inprofile_core::units::{Backlog, Bytes};
use inprofile_sim::network::{Network, Profile, Transport};
use inprofile_sim::tcp;

use crate::model::{Model, Queue, Source, packet};

/// What an experiment asks for that ns-2 doesn't have, one by one, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Inexpressible(pub Vec<String>);

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ns-2 has no word for:")?;
        self.0.iter().try_for_each(|what| write!(f, "\n  {what}"))
    }
}

impl std::error::Error for Inexpressible {}

/// The largest seed that ns-2 reads as it is written.
const MOST_SEED: u64 = i32::MAX as u64;

/// What every script begins with.
const PROLOGUE: &str = "\
# Writes its trace to the file named as its first argument.
set ns [new Simulator]
set trace [open [lindex $argv 0] w]
$ns trace-all $trace

# Agents are reset below, in the order of flows: each reset draws a random number.
Node instproc reset {} { foreach module [$self list-modules] { $module reset } }

proc link {from to rate delay queue settings} {
    global ns n
    $ns simplex-link $n($from) $n($to) $rate $delay $queue
    set q [[$ns link $n($from) $n($to)] queue]
    foreach {name value} $settings { $q set $name $value }
}

proc flow {from to sender sink start settings ack} {
    global ns n agents
    set tcp [new Agent/$sender]
    foreach {name value} $settings { $tcp set $name $value }
    set receiver [new Agent/$sink]
    foreach {name value} $ack { $receiver set $name $value }
    set flow [expr [llength $agents] / 2]
    $tcp set fid_ $flow
    $receiver set fid_ $flow
    $ns attach-agent $n($from) $tcp
    $ns attach-agent $n($to) $receiver
    $ns connect $tcp $receiver
    lappend agents $tcp $receiver
    set ftp [$tcp attach-app FTP]
    $ns at $start \"$ftp start\"
}
set agents {}
";

/// The script of this seed.
pub(crate) fn script(model: &Model, network: &Network) -> Result<String, Inexpressible> {
    let mut script = Script { text: String::new(), missing: Vec::new() };
    script.whole(model, network);
    if script.missing.is_empty() { Ok(script.text) } else { Err(Inexpressible(script.missing)) }
}

struct Script {
    text: String,
    missing: Vec<String>,
}

impl Script {
    fn whole(&mut self, model: &Model, network: &Network) {
        if network.profile != Profile::Ns2 {
            self.lacks("engine.profile: picoseconds and their order of events; write profile = \"ns2\"");
        }
        if network.seed > MOST_SEED {
            self.lacks(format!("seed {}: ns-2's are below 2^31", network.seed));
        }
        for edge in &model.edges {
            let node = &model.nodes[edge.node as usize];
            self.lacks(format!("edges.{node}.marker: {}", edge.marker.name));
        }
        for s in &model.signals {
            self.lacks(format!("signals: from {} to {}", model.target_name(s.from), model.target_name(s.to)));
        }
        for group in &model.groups {
            if let Some(marker) = &group.marker {
                self.lacks(format!("flows.{}.marker: {}", group.name, marker.name));
            }
            if group.traffic.name != "bulk" || group.stop.is_some() {
                self.lacks(format!("flows.{}: traffic other than TCP without end", group.name));
            }
            self.transport(&format!("flows.{}.tcp", group.name), &group.tcp);
        }
        // The title stays in the comment, whatever it says.
        let title: String = model.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.line(format_args!("# {}, seed {}", title.trim_end_matches('\\'), network.seed));
        self.text.push_str(PROLOGUE);
        self.line(format_args!("\n$defaultRNG seed {}", network.seed.max(1)));
        self.line(format_args!("for {{set i 0}} {{$i < {}}} {{incr i}} {{ set n($i) [$ns node] }}\n", {
            network.nodes.len()
        }));
        self.links(model, network);
        self.text.push('\n');
        for flow in &network.flows {
            // Any other traffic has been named above.
            let Transport::Tcp(config) = &flow.transport else { continue };
            let (sender, sink) = agents(config);
            self.line(format_args!(
                "flow {} {} {sender} {sink} {} {{{}}} {{{}}}",
                flow.from,
                flow.to,
                flow.start.secs(),
                sender_settings(config),
                sink_settings(config)
            ));
        }
        let end = network.duration.secs();
        self.line(format_args!("\n$ns at {end} {{ $ns flush-trace; close $trace; exit 0 }}"));
        self.line(format_args!("foreach agent $agents {{ $agent reset }}\n$ns run"));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // A string takes everything.
        let _ = writeln!(self.text, "{line}");
    }

    fn lacks(&mut self, what: impl Into<String>) {
        self.missing.push(what.into());
    }

    fn links(&mut self, model: &Model, network: &Network) {
        let mut between: BTreeMap<(u32, u32), &str> = BTreeMap::new();
        for (link, (queue, size)) in network.links.iter().zip(queues(model)) {
            if let Some(other) = between.insert((link.from, link.to), &link.name) {
                self.lacks(format!("links.{}: a second link beside {other}, from node to node", link.name));
            }
            let Some(queue) = queue else {
                self.lacks(format!("links.{}.queue.scheduler", link.name));
                continue;
            };
            let Some((class, settings)) = self.queue(&link.name, queue, size) else { continue };
            let (rate, delay) = (link.rate.0, link.delay.secs());
            self.line(format_args!("link {} {} {rate} {delay} {class} {{{settings}}}", link.from, link.to));
        }
    }

    /// The class of a queue and its settings.
    fn queue(&mut self, link: &str, queue: &Queue, size: Bytes) -> Option<(&'static str, String)> {
        let Queue { aqm, limit } = queue;
        let Backlog::Packets(limit) = *limit else {
            self.lacks(format!("links.{link}.queue.limit: bytes"));
            return None;
        };
        match aqm.name {
            "drop_tail" => {
                let waiting = match drop_tail::Params::from_values(&aqm.values).limit_rule {
                    LimitRule::Waiting => limit.floor(),
                    LimitRule::Ns2 => limit.ceil() - 1.0,
                };
                Some(("DropTail", format!("limit_ {}", waiting + 1.0)))
            }
            "red" => self.red(link, &red::Params::from_values(&aqm.values), limit, size),
            name => {
                self.lacks(format!("links.{link}.queue.aqm: {name}"));
                None
            }
        }
    }

    fn red(
        &mut self,
        link: &str,
        p: &red::Params,
        limit: f64,
        size: Bytes,
    ) -> Option<(&'static str, String)> {
        let before = self.missing.len();
        if p.variant != Variant::Ns2 {
            let text = format!("links.{link}.queue.variant: {}; write variant = \"ns2\"", p.variant.word());
            self.lacks(text);
        }
        let mean = p.mean_packet.unwrap_or(size).0 as f64;
        let in_bytes = matches!(p.min_th, Backlog::Bytes(_));
        let unit = if in_bytes { mean } else { 1.0 };
        let mut threshold = |name: &str, value: f64| {
            // ns-2's are in packets of the mean size; 0 means that ns-2 is to choose.
            let written = value / unit;
            if written * unit != value || written == 0.0 {
                self.lacks(format!("links.{link}.queue.{name}: {value} with packets of {mean} B"));
            }
            written
        };
        let (min, max) = (threshold("min_th", p.min_th.amount()), threshold("max_th", p.max_th.amount()));
        if self.missing.len() > before {
            return None;
        }
        let settings = format!(
            "limit_ {} thresh_ {min} maxthresh_ {max} linterm_ {} q_weight_ {} mean_pktsize_ {mean} bytes_ {} \
             queue_in_bytes_ {in_bytes} gentle_ {} wait_ {} setbit_ {}",
            limit.floor(),
            1.0 / p.max_p,
            p.w_q,
            p.byte_scaled,
            p.gentle,
            p.wait,
            p.ecn
        );
        Some(("RED", settings))
    }

    fn transport(&mut self, place: &str, config: &tcp::Config) {
        if config.profile != tcp::Profile::Ns2 {
            self.lacks(format!("{place}.profile: rfc; write profile = \"ns2\""));
        }
    }
}

/// The queue before each of a network's links, and the size of a full packet there; none where there are classes.
fn queues(model: &Model) -> impl Iterator<Item = (Option<&Queue>, Bytes)> {
    let listed = packet(&model.tcp);
    let links = model.links.iter().flat_map(move |l| l.ways.iter().map(move |w| (w.queue.one(), listed)));
    let joins = model.groups.iter().flat_map(|group| {
        let join = match &group.source {
            Source::Hosts(join) => Some((Some(&join.queue), packet(&group.tcp))),
            Source::Node(_) => None,
        };
        join.into_iter().flat_map(|found| std::iter::repeat_n(found, 2 * group.count))
    });
    links.chain(joins)
}

fn agents(config: &tcp::Config) -> (&'static str, &'static str) {
    let delays = config.delayed_ack.is_some();
    match (config.congestion, delays) {
        (tcp::Congestion::Sack | tcp::Congestion::Cubic { .. }, true) => {
            ("TCP/Sack1", "TCPSink/Sack1/DelAck")
        }
        (tcp::Congestion::Sack | tcp::Congestion::Cubic { .. }, false) => ("TCP/Sack1", "TCPSink/Sack1"),
        (tcp::Congestion::NewReno, true) => ("TCP/Newreno", "TCPSink/DelAck"),
        (tcp::Congestion::NewReno, false) => ("TCP/Newreno", "TCPSink"),
        (_, true) => ("TCP/Reno", "TCPSink/DelAck"),
        (_, false) => ("TCP/Reno", "TCPSink"),
    }
}

fn sender_settings(c: &tcp::Config) -> String {
    format!(
        "packetSize_ {} tcpip_base_hdr_size_ {} window_ {} windowInit_ {} minrto_ {} singledup_ {} overhead_ {}",
        c.segment,
        c.header,
        c.window,
        c.initial_window,
        c.min_rto.secs(),
        u8::from(c.limited_transmit),
        c.jitter.secs()
    )
}

fn sink_settings(c: &tcp::Config) -> String {
    let delay = c.delayed_ack.map(|d| format!(" interval_ {}", d.secs())).unwrap_or_default();
    format!("packetSize_ {}{delay}", c.header)
}

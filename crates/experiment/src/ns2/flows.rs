//! ns-2's agents and what they send: TCP with unlimited data or a number of segments, datagrams at a constant rate or
//! at given times.
//!
//! From the time at which a flow stops, what it has sent is all the data it has (`seqno_`, which is ns-2's `curseq_`);
//! ns-2's own `FTP stop` would never retransmit the last segment.

use inprofile_sim::network::{Flow, Network, Transport};
use inprofile_sim::ns2::datagram_times;
use inprofile_sim::tcp;
use inprofile_sim::traffic::udp;

use super::{Aim, Script};
use crate::model::Group;
use crate::traffic::Traffic;

/// The most moments of datagrams that one flow's list may have.
const MAX_MOMENTS: usize = 1_000_000;

/// The head of every script: how flows are made.
pub(super) const PROLOGUE: &str = "
proc ends {from to sender receiver} {
    global ns n agents
    set flow [expr [llength $agents] / 2]
    $sender set fid_ $flow
    $receiver set fid_ $flow
    $ns attach-agent $n($from) $sender
    $ns attach-agent $n($to) $receiver
    $ns connect $sender $receiver
    lappend agents $sender $receiver
    return $flow
}

# So many segments after the SYN, or all there are.
proc flow {from to sender sink start settings ack {stop never} {segments all}} {
    global ns
    set tcp [new Agent/$sender]
    foreach {name value} $settings { $tcp set $name $value }
    set receiver [new Agent/$sink]
    foreach {name value} $ack { $receiver set $name $value }
    ends $from $to $tcp $receiver
    set ftp [$tcp attach-app FTP]
    if {$start == \"never\"} return
    if {$segments == \"all\"} { $ns at $start \"$ftp start\" } else { $ns at $start \"$ftp produce $segments\" }
    if {$stop != \"never\"} { $ns at $stop \"no_more $tcp\" }
}

# No new data from now on: seqno_ is one past the last segment that there is data for.
proc no_more tcp {
    set sent [expr [$tcp set maxseq_] + 1]
    if {$sent < [$tcp set seqno_]} { $tcp set seqno_ $sent }
}

proc udp {from to packet} {
    set udp [new Agent/UDP]
    $udp set packetSize_ $packet
    ends $from $to $udp [new Agent/Null]
    return $udp
}

proc cbr {from to start packet rate {stop never}} {
    global ns
    set udp [udp $from $to $packet]
    set source [new Application/Traffic/CBR]
    $source set packetSize_ $packet
    $source set rate_ $rate
    $source attach-agent $udp
    if {$start == \"never\"} return
    $ns at $start \"$source start\"
    if {$stop != \"never\"} { $ns at $stop \"$source stop\" }
}

# A datagram at each of these moments; only the next one is ever in the calendar.
proc datagrams {from to start packet times} {
    global ns moments
    set udp [udp $from $to $packet]
    set moments($udp) $times
    if {$start != \"never\"} { $ns at $start \"await $udp $packet 0\" }
}

proc await {udp packet i} {
    global ns moments
    if {$i < [llength $moments($udp)]} { $ns at [lindex $moments($udp) $i] \"due $udp $packet $i\" }
}

proc due {udp packet i} {
    $udp send $packet
    await $udp $packet [expr $i + 1]
}
set agents {}
";

impl Script {
    /// Lists what a group of flows needs and ns-2 lacks.
    pub(super) fn group(&mut self, group: &Group) {
        let name = &group.name;
        if self.aim == Aim::Counts && (group.traffic.name != "bulk" || group.stop.is_some()) {
            self.lacks(format!(
                "flows.{name}: only TCP without end has figures to compare; [engine] profile = \"ns2\" compares events, of any traffic"
            ));
        }
        if matches!(group.sends(), Traffic::Udp(udp) if udp.ecn.can_mark()) {
            self.lacks(format!(
                "flows.{name}.traffic.ecn: datagrams of ns-2 have no ECN bits; write \"not_ect\""
            ));
        }
        if matches!(group.sends(), Traffic::Udp(udp) if udp.drawn().is_some()) {
            self.lacks(format!(
                "flows.{name}.traffic.sizes: the script's datagrams have one size a flow; write \"fixed\""
            ));
        }
        if matches!(group.sends(), Traffic::Web(_) | Traffic::Video(_)) {
            self.lacks(format!(
                "flows.{name}.traffic: {}, which asks for what it gets; write kind = \"transfer\" with sizes of your own",
                group.traffic.name
            ));
        }
        if !matches!(group.sends(), Traffic::Udp(_)) && group.tcp.profile != tcp::Profile::Ns2 {
            let control = group.tcp.congestion.name();
            if ["reno", "newreno", "sack"].contains(&control) {
                let profile = if group.tcp.profile == tcp::Profile::Linux { "linux" } else { "rfc" };
                self.lacks(format!("flows.{name}.tcp.profile: {profile}; write profile = \"ns2\""));
            } else {
                self.lacks(format!(
                    "flows.{name}.tcp.congestion: {control}; write profile = \"ns2\" and congestion = \"reno\", \"newreno\" or \"sack\""
                ));
            }
        }
    }

    /// The command for this flow.
    pub(super) fn flow(&mut self, flow: &Flow, network: &Network) {
        let Flow { from, to, .. } = flow;
        let never = flow.stop.is_some_and(|stop| stop <= flow.start);
        let start = if never { "never".to_owned() } else { flow.start.secs().to_string() };
        let stop = flow.stop.map_or_else(|| "never".to_owned(), |stop| stop.secs().to_string());
        match &flow.transport {
            Transport::Tcp(c) | Transport::Transfer(c, _) => {
                let (sender, sink) = agents(c);
                let (settings, ack) = (sender_settings(c), sink_settings(c));
                let more = match &flow.transport {
                    Transport::Transfer(_, segments) => format!(" {stop} {segments}"),
                    _ if flow.stop.is_some() => format!(" {stop}"),
                    _ => String::new(),
                };
                self.line(format_args!(
                    "flow {from} {to} {sender} {sink} {start} {{{settings}}} {{{ack}}}{more}"
                ));
            }
            // Named above among what ns-2 lacks.
            Transport::Web(..) | Transport::Video(..) => {}
            Transport::Udp(c) if c.is_steady() => {
                let (packet, rate) = (c.packet, c.rate.0);
                self.line(format_args!("cbr {from} {to} {start} {packet} {rate} {stop}"));
            }
            Transport::Udp(c) => {
                let times = udp::times(network.seed, &flow.name);
                let end = network.duration.secs();
                let moments: Vec<String> = datagram_times(*c, flow.start, flow.stop, times)
                    .take_while(|at| *at <= end)
                    .take(MAX_MOMENTS + 1)
                    .map(|at| at.to_string())
                    .collect();
                if moments.len() > MAX_MOMENTS {
                    self.lacks(format!(
                        "flows.{}: more than {MAX_MOMENTS} datagrams, whose moments the script would list one by one",
                        flow.name
                    ));
                    return;
                }
                let (packet, moments) = (c.packet, moments.join(" "));
                self.line(format_args!("datagrams {from} {to} {start} {packet} {{{moments}}}"));
            }
        }
    }
}

fn agents(config: &tcp::Config) -> (&'static str, &'static str) {
    let delays = config.delayed_ack.is_some();
    match (config.congestion, delays) {
        (tcp::Congestion::Sack | tcp::Congestion::Cubic { .. } | tcp::Congestion::Linux(_), true) => {
            ("TCP/Sack1", "TCPSink/Sack1/DelAck")
        }
        (tcp::Congestion::Sack | tcp::Congestion::Cubic { .. } | tcp::Congestion::Linux(_), false) => {
            ("TCP/Sack1", "TCPSink/Sack1")
        }
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
        c.header(),
        c.window,
        c.initial_window,
        c.min_rto.secs(),
        u8::from(c.settings.limited_transmit),
        c.settings.jitter.secs()
    )
}

fn sink_settings(c: &tcp::Config) -> String {
    let delay = c.delayed_ack.map(|d| format!(" interval_ {}", d.secs())).unwrap_or_default();
    format!("packetSize_ {}{delay}", c.header())
}

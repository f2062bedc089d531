//! The same experiment for ns-2 2.35: its Tcl script, or a list of everything that ns-2 cannot express.
//!
//! `queues` has ns-2's disciplines (`controllers` PI and REM), `markers` its markers, `flows` its agents and their traffic, `counts` what a script
//! counts; the network and the script as a whole are here.
//!
//! The script sends the same packets at the same times as the simulator's ns-2 profile. Two things need care for that.
//! ns-2 has one stream of random numbers, and draws the phase of a sender's clock from it when the sender is made and
//! again when it is reset as the run begins. `$ns run` resets agents node by node, in the order of a Tcl array; the
//! script makes `Node reset` leave agents alone and resets them itself, flow by flow. And a limit of n packets lets n −
//! 1 wait in ns-2's drop-tail queue, so the script writes the number of waiting packets plus one.

mod flows;
mod markers;
mod queues;

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use inprofile_core::units::Bytes;
use inprofile_sim::network::{Flow, Network, Profile};

use crate::model::{Model, Queue, Source, packet};
use markers::Marking;
use queues::{Class, Use};

/// Everything that an experiment needs and ns-2 lacks, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Inexpressible(pub Vec<String>);

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ns-2 cannot express:")?;
        self.0.iter().try_for_each(|what| write!(f, "\n  {what}"))
    }
}

impl std::error::Error for Inexpressible {}

/// The purpose of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The same events as ours: everything in ns-2's own arithmetic, and every event in a trace.
    Events,
    /// Metrics of the same distribution: ns-2's counterpart of every mechanism, and counts over the measured window.
    Counts,
}

struct Script {
    text: String,
    missing: Vec<String>,
    aim: Aim,
}

impl Script {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        // A string takes everything.
        let _ = writeln!(self.text, "{line}");
    }

    fn lacks(&mut self, what: impl Into<String>) {
        self.missing.push(what.into());
    }
}

/// The largest seed that ns-2 takes; it refuses 2^31 − 1 itself.
const MAX_SEED: u64 = i32::MAX as u64 - 1;

/// The head of every script.
const PROLOGUE: &str = "\
# Writes to the file named as its first argument.
set ns [new Simulator]
set out [open [lindex $argv 0] w]

# Agents are reset below, in the order of flows: each reset draws a random number.
Node instproc reset {} { foreach module [$self list-modules] { $module reset } }

proc link {from to rate delay queue settings} {
    global ns n
    $ns simplex-link $n($from) $n($to) $rate $delay $queue
    set q [[$ns link $n($from) $n($to)] queue]
    foreach {name value} $settings { $q set $name $value }
}

# Code points of dsRED: 10, 11 and 12 are green, yellow and red, 0 is what nobody marked. A level is min_th, max_th, max_p, w_q.
proc dsred {from to mean mode levels} {
    global ns n
    set q [[$ns link $n($from) $n($to)] queue]
    $q set numQueues_ 1
    $q setNumPrec 3
    $q meanPktSize $mean
    $q setMREDMode $mode
    foreach {codepoint precedence} {0 0 10 0 11 1 12 2} { $q addPHBEntry $codepoint 0 $precedence }
    set precedence 0
    foreach level $levels {
        eval $q configQ 0 $precedence $level
        incr precedence
    }
}

# A queue for each of these flows; FQLink would make it at a flow's first packet, with the limit of all drop-tail queues.
proc fq {from to limit flows} {
    global ns n
    Queue/DropTail set limit_ $limit
    foreach flow $flows { [$ns link $n($from) $n($to)] new-flow 0 0 $flow }
}

proc policer {from to name downgrades} {
    global ns n
    eval [[$ns link $n($from) $n($to)] queue] addPolicerEntry $name 10 $downgrades
}

# Source and destination are nodes, or -1 for any.
proc policy {from to source destination name settings} {
    global ns n
    eval [[$ns link $n($from) $n($to)] queue] addPolicyEntry $source $destination $name 10 $settings
}

proc tagger {from to} {
    global ns n tagger
    set tagger($from,$to) [$ns maketbtagger Fid]
    $ns attach-tagger [$ns link $n($from) $n($to)] $tagger($from,$to)
}

proc tag {from to flow rate depth tokens} {
    global tagger
    [$tagger($from,$to) classifier] set-flowrate $flow $rate $depth $tokens
}
";

/// The script of this seed.
pub(crate) fn script(model: &Model, network: &Network, aim: Aim) -> Result<String, Inexpressible> {
    let mut script = Script { text: String::new(), missing: Vec::new(), aim };
    script.whole(model, network);
    if script.missing.is_empty() { Ok(script.text) } else { Err(Inexpressible(script.missing)) }
}

impl Script {
    fn whole(&mut self, model: &Model, network: &Network) {
        if self.aim == Aim::Events && network.profile != Profile::Ns2 {
            self.lacks("engine.profile: picoseconds and their order of events; write profile = \"ns2\"");
        }
        if network.seed > MAX_SEED {
            self.lacks(format!("seed {}: ns-2 takes none above {MAX_SEED}", network.seed));
        }
        for s in &model.signals {
            self.lacks(format!("signals: from {} to {}", model.target_name(s.from), model.target_name(s.to)));
        }
        for group in &model.groups {
            self.group(group);
        }
        for i in (0..2 * model.links.len()).filter(|i| model.direction(*i).capacity.is_some()) {
            let name = model.direction_name(i);
            self.lacks(format!("links.{name}.capacity: a rate that changes; write one rate"));
        }
        for i in (0..2 * model.links.len()).filter(|i| model.direction(*i).access.is_some()) {
            let name = model.direction_name(i);
            self.lacks(format!("links.{name}: access and traces; remove them"));
        }
        for i in (0..2 * model.links.len()).filter(|i| model.direction(*i).pause.is_some()) {
            let name = model.direction_name(i);
            self.lacks(format!("links.{name}.pause: links that are paused; remove it"));
        }
        for i in (0..2 * model.links.len()).filter(|i| model.direction(*i).ack_filter) {
            let name = model.direction_name(i);
            self.lacks(format!("links.{name}.ack_filter; remove it"));
        }
        for i in (0..2 * model.links.len()).filter(|i| !model.direction(*i).way.is_plain()) {
            let name = model.direction_name(i);
            self.lacks(format!("links.{name}: jitter, delays that change, and loss on the way; remove them"));
        }
        // The title stays in the comment, whatever it says.
        let title: String = model.title.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.line(format_args!("# {}, seed {}", title.trim_end_matches('\\'), network.seed));
        self.text.push_str(PROLOGUE);
        self.text.push_str(flows::PROLOGUE);
        if self.aim == Aim::Events {
            self.text.push_str("$ns trace-all $out\n");
        }
        self.line(format_args!("\n$defaultRNG seed {}", network.seed.max(1)));
        self.line(format_args!("for {{set i 0}} {{$i < {}}} {{incr i}} {{ set n($i) [$ns node] }}\n", {
            network.nodes.len()
        }));
        self.links(model, network);
        self.text.push('\n');
        for flow in &network.flows {
            self.flow(flow, network);
        }
        match self.aim {
            Aim::Events => {
                let end = network.duration.secs();
                self.line(format_args!("\n$ns at {end} {{ $ns flush-trace; close $out; exit 0 }}"));
            }
            Aim::Counts => self.counts(model, network),
        }
        self.line(format_args!("foreach agent $agents {{ $agent reset }}\n$ns run"));
    }

    fn links(&mut self, model: &Model, network: &Network) {
        let marking = Marking::of(model, network, self);
        let mut between: BTreeMap<(u32, u32), &str> = BTreeMap::new();
        for (i, (link, (queue, size))) in network.links.iter().zip(queues(model)).enumerate() {
            if let Some(other) = between.insert((link.from, link.to), &link.name) {
                self.lacks(format!("links.{}: a second link beside {other}, from node to node", link.name));
            }
            let Some(queue) = queue else {
                self.lacks(format!("links.{}.queue.scheduler", link.name));
                continue;
            };
            let flows = if queue.aqm.name == "ns2_fq" { passing(network, i as u32) } else { Vec::new() };
            let counts = self.aim == Aim::Counts && i == model.at;
            let use_ = Use { polices: marking.polices(i), counts, flows: &flows };
            let Some(Class { class, settings, after }) = self.queue(&link.name, queue, size, use_) else {
                continue;
            };
            let (from, to, rate, delay) = (link.from, link.to, link.rate.0, link.delay.secs());
            self.line(format_args!("link {from} {to} {rate} {delay} {class} {{{settings}}}"));
            if let Some((command, arguments)) = after {
                self.line(format_args!("{command} {from} {to} {arguments}"));
            }
            marking.write(i, (from, to), &mut self.text);
        }
    }
}

/// The flows whose packets or acknowledgements pass a link.
fn passing(network: &Network, link: u32) -> Vec<u32> {
    let passes = |f: &Flow| f.path.contains(&link) || f.back.contains(&link);
    (0..).zip(&network.flows).filter(|(_, f)| passes(f)).map(|(i, _)| i).collect()
}

/// The queue before each of a network's links, and the size of a full packet there; none where there are classes.
fn queues(model: &Model) -> impl Iterator<Item = (Option<&Queue>, Bytes)> {
    let reported = packet(&model.tcp);
    let links =
        model.links.iter().flat_map(move |l| l.directions.iter().map(move |w| (w.queue.one(), reported)));
    let joins = model.groups.iter().flat_map(|group| {
        let join = match &group.source {
            Source::Hosts(join) => Some((Some(&join.queue), group.packet())),
            Source::Node(_) => None,
        };
        join.into_iter().flat_map(|found| std::iter::repeat_n(found, 2 * group.count))
    });
    links.chain(joins)
}

mod counts {
    //! The counts of a script where metrics are compared instead of events: at the start and at the end of the measured window, the
    //! bytes that each receiver has in order and the packets that the measured queue has seen.
    //!
    //! ```text
    //! span 100                                the window in seconds
    //! flow 1300040 2600040 1000 40 1          bytes in order at both ends; segment and header; whether it passes the measured queue
    //! packets 1040 1234 567 0 8               the size of a full packet; green, yellow and red ones that came, packets dropped: at one end
    //! packets 1040 2345 678 0 9               and at the other
    //! bytes 1283360 0 0 8                     where ns-2 counts bytes, these instead
    //! ```

    use inprofile_sim::network::{Network, Transport};

    use super::Script;
    use crate::model::{Model, packet};

    /// A queue that is a dsRED in ns-2 counts by colour; of any other a monitor counts bytes.
    const COLOURED: [&str; 4] = ["drop_tail", "dsred", "rio", "wred"];

    impl Script {
        /// The commands that count, and end the run with the window.
        pub(super) fn counts(&mut self, model: &Model, network: &Network) {
            let at = &network.links[model.at];
            if network.flows.iter().any(|f| f.back.contains(&(model.at as u32))) {
                self.lacks(format!(
                    "measure.at: acknowledgements pass {}, and ns-2 counts packets of any size",
                    at.name
                ));
            }
            let (from, to) = (network.window.0.secs(), network.window.1.secs());
            let mut sizes = Vec::new();
            let mut full = Vec::new();
            for flow in &network.flows {
                // Any other traffic has been named.
                let Transport::Tcp(c) = &flow.transport else { continue };
                let passes = flow.path.contains(&(model.at as u32));
                if passes && !full.contains(&packet(c).0) {
                    full.push(packet(c).0);
                }
                sizes.push(format!("{{{} {} {}}}", c.segment, c.header(), u8::from(passes)));
            }
            let (link_from, link_to) = (at.from, at.to);
            let counts = if model
                .direction(model.at)
                .queue
                .one()
                .is_some_and(|q| !COLOURED.contains(&q.aqm.name))
            {
                self.line(format_args!("set monitor [$ns monitor-queue $n({link_from}) $n({link_to}) {{}}]"));
                "bytes [$monitor set barrivals_] 0 0 [$monitor set pdrops_]".to_owned()
            } else {
                if full.len() > 1 {
                    let of = full.iter().map(|size| format!("{size} B")).collect::<Vec<_>>().join(" and ");
                    let text = "measure.at: packets of ";
                    self.lacks(format!("{text}{of} pass {}, and dsRED counts packets of any size", at.name));
                }
                self.line(format_args!("set queue [[$ns link $n({link_from}) $n({link_to})] queue]"));
                // Where no flow passes, nothing is counted.
                format!(
                    "packets {} [expr [$queue getStat pkts 0] + [$queue getStat pkts 10]] [$queue getStat pkts 11] \
                     [$queue getStat pkts 12] [expr [$queue getStat drops] + [$queue getStat edrops]]",
                    full.first().copied().unwrap_or(0)
                )
            };
            self.line(format_args!(
                "proc seen {{}} {{\n    global queue monitor\n    return \"{counts}\"\n}}"
            ));
            self.text.push_str(BYTES);
            let (sizes, span) = (sizes.join(" "), to - from);
            self.line(format_args!("$ns at {from} {{ set before [bytes]; set first [seen] }}"));
            self.line(format_args!("$ns at {to} {{ write {span} {{{sizes}}}; exit 0 }}"));
        }
    }

    const BYTES: &str = "\
proc bytes {} {
    global agents
    set all {}
    foreach {sender receiver} $agents { lappend all [$receiver set bytes_] }
    return $all
}

proc write {span sizes} {
    global out before first
    puts $out \"span $span\"
    foreach b $before a [bytes] s $sizes { puts $out \"flow $b $a $s\" }
    puts $out $first
    puts $out [seen]
    close $out
}
";
}

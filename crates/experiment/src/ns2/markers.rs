//! ns-2's markers. It has two families, each understood by its own queues only: taggers, which set the bit that
//! Queue/RED/RIO looks at, and dsRED's policers, which set the code point that dsRED looks at.
//!
//! Both work at the first link of a flow, where ours mark. A policer is found by source and destination node, so a link
//! has one for each pair, and one that marks nothing for everybody else who passes there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use inprofile_core::marker::Action;
use inprofile_core::marker::token_bucket::{self, Conforms};
use inprofile_core::marker::tsw2cm;
use inprofile_core::marker::tsw3cm;
use inprofile_core::ns2::offer::{self, is_set};
use inprofile_core::params::{Params, Values};
use inprofile_core::units::{Duration, Rate};
use inprofile_sim::network::Network;

use super::{Aim, Script};
use crate::model::{Marker, Model};

/// ns-2's `MAX_POLICIES`.
const MAX_POLICIES: usize = 20;
/// The window of ns-2's TSW3CM, which can't be set.
const TSW3CM_WINDOW: Duration = Duration::from_millis(1000);

/// A marker in ns-2's words.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    /// A tagger's rate in bit/s, depth and first tokens in bytes.
    Tag(String),
    /// The policers of dsRED's edge.
    Police(Policer),
}

/// One of dsRED's policers.
#[derive(Clone, Debug, PartialEq)]
struct Policer {
    name: &'static str,
    /// The code points that a packet may be downgraded to.
    downgrades: &'static str,
    /// Rates in bit/s and depths in bytes, in its own order.
    settings: String,
}

impl Policer {
    /// One that marks nothing.
    const NULL: Policer = Policer { name: "Null", downgrades: "", settings: String::new() };
}

/// The markers at one link.
#[derive(Clone, Debug, Default)]
struct Here {
    /// Flow and settings.
    tags: Vec<(u32, String)>,
    /// By source and destination node; both absent: everything that passes.
    policies: BTreeMap<Option<(u32, u32)>, Policer>,
}

/// All markers, by the link at which ns-2 has them.
pub(super) struct Marking(BTreeMap<usize, Here>);

impl Marking {
    /// Where and what; what ns-2 doesn't have goes to the script's list.
    pub(super) fn of(model: &Model, network: &Network, script: &mut Script) -> Marking {
        let mut all = Marking(BTreeMap::new());
        all.hosts(model, network, script);
        all.edges(model, network, script);
        all.others(network);
        for (link, here) in &all.0 {
            let name = &network.links[*link].name;
            if here.policies.len() > MAX_POLICIES {
                let text = format!(
                    "links.{name}: {} policers; ns-2 has room for {MAX_POLICIES}",
                    here.policies.len()
                );
                script.lacks(text);
            }
            if !here.tags.is_empty() && !here.policies.is_empty() {
                script.lacks(format!("links.{name}: taggers and policers at once"));
            }
        }
        all
    }

    /// The flows' own markers.
    fn hosts(&mut self, model: &Model, network: &Network, script: &mut Script) {
        let groups = model.groups.iter().flat_map(|g| (0..g.count).map(move |i| (g, i)));
        for (number, ((group, i), flow)) in groups.zip(&network.flows).enumerate() {
            let place = format!("flows.{}.marker", group.name);
            let ends = Some((flow.from, flow.to));
            let queues: Vec<_> =
                flow.path.iter().map(|l| discipline(model, *l as usize, script.aim)).collect();
            let answered = flow.transport.tcp().is_some();
            if answered && flow.back.iter().any(|l| discipline(model, *l as usize, script.aim) == "rio") {
                lacks_once(
                    script,
                    "rio on a way back: Queue/RED/RIO takes acknowledgements for OUT, here they are IN",
                );
            }
            let Some(marker) = &group.marker else {
                if queues.contains(&"rio") {
                    lacks_once(
                        script,
                        &format!("{place}: none, and Queue/RED/RIO takes what nobody marked for OUT, not IN"),
                    );
                }
                continue;
            };
            let full = group.packet().0 as f64;
            let Some(word) = word(marker, group.contract(i), full, &place, script) else { continue };
            let wrong = match word {
                Word::Tag(_) => ("dsred", "dsRED doesn't see taggers' marks; write conforms = \"at_least\""),
                Word::Police(_) => (
                    "rio",
                    "Queue/RED/RIO sees a tagger's marks only; a token_bucket with conforms = \"more_than\"",
                ),
            };
            if queues.contains(&wrong.0) {
                lacks_once(script, &format!("{place}: {}", wrong.1));
            }
            let here = self.0.entry(flow.path[0] as usize).or_default();
            match word {
                Word::Tag(settings) => here.tags.push((number as u32, settings)),
                Word::Police(policer) => {
                    if here.policies.insert(ends, policer).is_some() {
                        lacks_once(
                            script,
                            &format!(
                                "{place}: ns-2 has one policer for both flows from node {} to {}",
                                flow.from, flow.to
                            ),
                        );
                    }
                }
            }
        }
    }

    /// Markers at a node. In ns-2 they are at the one link over which all traffic leaves the node.
    fn edges(&mut self, model: &Model, network: &Network, script: &mut Script) {
        for edge in &model.edges {
            let place = format!("edges.{}.marker", model.nodes[edge.node as usize]);
            let full = model.edge_context(edge).packet.0 as f64;
            let Some(word) = word(&edge.marker, None, full, &place, script) else { continue };
            let Word::Police(policer) = word else {
                lacks_once(script, &format!("{place}: a tagger for several flows together"));
                continue;
            };
            let leaves = |l: &u32| network.links[*l as usize].from == edge.node;
            let mut on: Vec<u32> =
                network.flows.iter().flat_map(|f| f.path[1..].iter().copied().filter(leaves)).collect();
            on.sort_unstable();
            on.dedup();
            let &[link] = on.as_slice() else {
                lacks_once(
                    script,
                    &format!("{place}: traffic leaves the node by {} links; one it must be", on.len()),
                );
                continue;
            };
            if network.flows.iter().any(|f| f.path[0] == link || f.back.contains(&link)) {
                lacks_once(script, &format!("{place}: its link also carries what it doesn't mark"));
            }
            let here = self.0.entry(link as usize).or_default();
            if !here.policies.is_empty() {
                lacks_once(script, &format!("{place}: another marker at the same link"));
            }
            here.policies.insert(None, policer);
        }
    }

    /// Who passes a policing link unmarked, with data or acknowledgements: dsRED has no default.
    fn others(&mut self, network: &Network) {
        for (link, here) in &mut self.0 {
            if here.policies.is_empty() || here.policies.contains_key(&None) {
                continue;
            }
            for flow in &network.flows {
                for (direction, ends) in
                    [(&flow.path, (flow.from, flow.to)), (&flow.back, (flow.to, flow.from))]
                {
                    if direction.contains(&(*link as u32)) {
                        here.policies.entry(Some(ends)).or_insert(Policer::NULL);
                    }
                }
            }
        }
    }

    /// Whether the queue of this link polices.
    pub(super) fn polices(&self, link: usize) -> bool {
        self.0.get(&link).is_some_and(|here| !here.policies.is_empty())
    }

    /// The commands for this link, between these nodes.
    pub(super) fn write(&self, link: usize, (from, to): (u32, u32), text: &mut String) {
        let Some(here) = self.0.get(&link) else { return };
        // A string takes everything.
        if !here.tags.is_empty() {
            let _ = writeln!(text, "tagger {from} {to}");
        }
        for (flow, settings) in &here.tags {
            let _ = writeln!(text, "tag {from} {to} {flow} {settings}");
        }
        let mut policers = BTreeMap::new();
        for (ends, Policer { name, downgrades, settings }) in &here.policies {
            let (source, destination) = ends.map_or((-1, -1), |(s, d)| (i64::from(s), i64::from(d)));
            let _ = writeln!(text, "policy {from} {to} {source} {destination} {name} {{{settings}}}");
            policers.insert(*name, *downgrades);
        }
        for (name, downgrades) in policers {
            let _ = writeln!(text, "policer {from} {to} {name} {{{downgrades}}}");
        }
    }
}

/// The name of the discipline that ns-2 has before a link; links to hosts have drop-tail queues.
fn discipline(model: &Model, link: usize, aim: Aim) -> &'static str {
    if link >= 2 * model.links.len() {
        return "drop_tail";
    }
    // A scheduler has been named.
    match model.direction(link).queue.one().map_or("", |queue| queue.aqm.name) {
        "rio" | "wred" if aim == Aim::Counts => "dsred",
        name => name,
    }
}

/// A marker in ns-2's words, or a line for what it lacks.
fn word(
    marker: &Marker,
    contract: Option<Rate>,
    full: f64,
    place: &str,
    script: &mut Script,
) -> Option<Word> {
    let rate = |own: Option<Rate>| own.or(contract).map_or(0, |r| r.0);
    match marker.name {
        "token_bucket" => {
            let p = token_bucket::Params::from_values(&marker.values);
            if p.action == Action::Drop {
                lacks_once(
                    script,
                    &format!("{place}.action: drop; ns-2's taggers and dsRED's policers only mark"),
                );
                return None;
            }
            let (rate, depth) = (rate(p.rate), p.depth.bytes(inprofile_core::units::Bytes(full as u64)));
            match p.conforms {
                Conforms::MoreThan => {
                    let tokens = if p.starts_full { depth } else { 0.0 };
                    Some(Word::Tag(format!("{rate} {depth} {tokens}")))
                }
                Conforms::AtLeast if p.starts_full => police("TokenBucket", "11", format!("{rate} {depth}")),
                Conforms::AtLeast => {
                    lacks_once(script, &format!("{place}.starts_full: false; dsRED's bucket is full"));
                    None
                }
            }
        }
        "tsw2cm" => {
            let p = tsw2cm::Params::from_values(&marker.values);
            needs_ns2(&marker.values, place, script)?;
            if p.excess != tsw2cm::Excess::Share {
                lacks_once(script, &format!("{place}.excess: all; ns-2's is the share"));
                return None;
            }
            police("TSW2CM", "11", format!("{} {}", rate(p.ctr), p.win_length.secs()))
        }
        "tsw3cm" => {
            let p = tsw3cm::Params::from_values(&marker.values);
            needs_ns2(&marker.values, place, script)?;
            if p.win_length != TSW3CM_WINDOW {
                lacks_once(script, &format!("{place}.win_length: {}; ns-2's is 1 s", p.win_length));
                return None;
            }
            police("TSW3CM", "11 12", format!("{} {}", rate(p.ctr), p.ptr.0))
        }
        name => {
            lacks_once(script, &format!("{place}: {name}"));
            None
        }
    }
}

fn police(name: &'static str, downgrades: &'static str, settings: String) -> Option<Word> {
    Some(Word::Police(Policer { name, downgrades, settings }))
}

fn needs_ns2(values: &Values, place: &str, script: &mut Script) -> Option<()> {
    if is_set(values, "variant") || script.aim == Aim::Counts {
        return Some(());
    }
    lacks_once(
        script,
        &format!("{place}.variant: {}; write variant = \"ns2\"", offer::word(values, "variant")),
    );
    None
}

/// One line for a whole group of flows.
fn lacks_once(script: &mut Script, what: &str) {
    if !script.missing.iter().any(|other| other == what) {
        script.lacks(what);
    }
}

//! `[[flows]]`: groups of flows. Most values are given once for the whole group, or as a list with one for each flow.

use crate::text::named::ParsedMechanism;
use crate::text::problem::Wrong;
use crate::text::{Entry, Location, Section, quantity};
use inprofile_core::registry::AnyMarker;
use inprofile_core::units::{Duration, Rate, Time};
use inprofile_sim::tcp::Config;
use inprofile_sim::traffic::distribution::Distribution;

use crate::model::{At, MAX_FLOWS, Mechanism, PerFlow, Queue, Start};
use crate::read::{Scope, moment};
use crate::read::{mechanism, names, tcp};
use crate::traffic::{Traffic, bulk, no_context};

/// A group as read: what is `None` was invalid and has been reported.
pub(crate) struct Draft<'d, 'r> {
    /// The table it was read from.
    pub section: Section<'d, 'r>,
    /// Its name.
    pub name: Option<At<String>>,
    /// How many flows.
    pub count: Option<usize>,
    /// Where data comes from.
    pub source: Option<Source<'d, 'r>>,
    /// Where data goes.
    pub to: Option<At<String>>,
    /// When they start.
    pub start: Option<Start>,
    /// Their contracts, if they have any.
    pub contract: Option<Option<PerFlow<Rate>>>,
    /// Their marker, if they have one.
    pub marker: Option<Option<ParsedMechanism<'d, 'r, AnyMarker>>>,
    /// Their class at schedulers, if they have one.
    pub class: Option<Option<At<String>>>,
    /// When they stop sending new data, if they do.
    pub stop: Option<Option<PerFlow<Time>>>,
    /// Their traffic.
    pub traffic: Option<Mechanism<Traffic>>,
    /// Their TCP.
    pub tcp: Option<Config>,
}

/// Where the data of a group comes from, as read.
pub(crate) enum Source<'d, 'r> {
    /// A node of the network.
    Node(At<String>),
    /// One host per flow.
    Hosts(Join<'d, 'r>),
}

/// The access links of hosts, as read.
pub(crate) struct Join<'d, 'r> {
    /// The node they lead to.
    pub node: Option<At<String>>,
    /// Their rate.
    pub rate: Option<Rate>,
    /// Their queue.
    pub queue: Option<Queue>,
    /// Round-trip times, and their place in the file.
    pub rtt: Option<(PerFlow<Duration>, Entry<'d, 'r>)>,
}

/// The value of `from` that gives each flow a host of its own.
const HOSTS: &str = "H*";

/// Reads one group.
pub(crate) fn read<'d, 'r>(
    section: &Section<'d, 'r>,
    scope: Scope<'_>,
    base: Option<&tcp::Base>,
    duration: Option<Duration>,
) -> Draft<'d, 'r> {
    section.refuse_unknown(&[
        "name", "count", "from", "join", "to", "rtt", "start", "stop", "contract", "marker", "class",
        "traffic", "tcp",
    ]);
    let name = section.need("name", "\"tcp\"").and_then(|e| names::name(&e));
    let count = match section.get("count") {
        Some(entry) => entry.count_in(0..=MAX_FLOWS).map(|n| n as usize),
        None => Some(1),
    };
    let tcp = base.and_then(|b| tcp::over(b, section));
    let source = source(section, scope, count, tcp.as_ref());
    let to = section.need("to", "\"R2\"").and_then(|e| names::name(&e));
    let start = match section.get("start") {
        Some(entry) => start(&entry, count, duration),
        None => Some(Start::At(PerFlow::All(moment(Duration::ZERO)))),
    };
    let stop = match section.get("stop") {
        Some(entry) => stop(&entry, count, start.as_ref()).map(Some),
        None => Some(None),
    };
    let traffic = match section.get("traffic") {
        Some(entry) => mechanism::traffic(&entry),
        None => Some(bulk()),
    };
    if traffic.as_ref().is_some_and(|t| matches!((t.build)(&t.values, &no_context()), Traffic::Udp(_)))
        && section.get("tcp").is_some()
    {
        let place = Location { quoted: false, ..section.locate("tcp") };
        section.report().error(&place, "the traffic of these flows is not TCP", "remove tcp");
    }
    let contract = match section.get("contract") {
        Some(entry) => per_flow(&entry, count, Entry::positive_rate).map(Some),
        None => Some(None),
    };
    let marker = match section.get("marker") {
        Some(entry) => mechanism::marker(&entry, scope).map(Some),
        None => Some(None),
    };
    let class = match section.get("class") {
        Some(entry) => names::name(&entry).map(Some),
        None => Some(None),
    };
    Draft {
        section: section.clone(),
        name,
        count,
        source,
        to,
        start,
        contract,
        marker,
        class,
        stop,
        traffic,
        tcp,
    }
}

/// Reads `from`, and `join` and `rtt`, which belong to hosts only.
fn source<'d, 'r>(
    section: &Section<'d, 'r>,
    scope: Scope<'_>,
    count: Option<usize>,
    tcp: Option<&Config>,
) -> Option<Source<'d, 'r>> {
    let entry = section.need("from", "\"H*\" for one host per flow, or the name of a node")?;
    if entry.as_text() != Some(HOSTS) {
        for key in ["join", "rtt"] {
            if section.get(key).is_some() {
                let place = Location { quoted: false, ..section.locate(key) };
                let problem = "applies only to flows from \"H*\", with one host each";
                section.report().error(&place, problem, format!("write from = \"H*\", or remove {key}"));
            }
        }
        return names::name(&entry).map(Source::Node);
    }
    let rtt = section.need("rtt", "\"30 ms\"").and_then(|e| rtt(&e, count).map(|r| (r, e.clone())));
    let join = section.need("join", "{ node = \"R1\", rate = \"10 Mbit/s\" }")?;
    let join = join.section(&["node", "rate", "limit"])?;
    let node = join.need("node", "\"R1\"").and_then(|e| names::name(&e));
    let rate = join.need("rate", "\"10 Mbit/s\"").and_then(|e| e.positive_rate());
    let queue = mechanism::drop_tail(join.get("limit").as_ref(), scope, rate, tcp);
    Some(Source::Hosts(Join { node, rate, queue, rtt }))
}

/// Reads a value for all, or a list of one for each.
fn per_flow<'d, 'r, T>(
    entry: &Entry<'d, 'r>,
    count: Option<usize>,
    read: impl Fn(&Entry<'d, 'r>) -> Option<T>,
) -> Option<PerFlow<T>> {
    if !entry.is_list() {
        return read(entry).map(PerFlow::All);
    }
    let elements = entry.elements("a list")?;
    let given = elements.len();
    let values: Vec<Option<T>> = elements.iter().map(read).collect();
    let count = count?;
    if given != count {
        let flows = if count == 1 { "1 flow".to_owned() } else { format!("{count} flows") };
        return entry.wrong(Wrong::new(
            format!("the list has {given} values for {flows}"),
            format!("write one value for all, or {count} in the list, or count = {given}"),
        ));
    }
    values.into_iter().collect::<Option<Vec<T>>>().map(PerFlow::Each)
}

/// Reads round-trip times: one, a list, or a range spread evenly over the flows. A single flow gets the middle of the range.
fn rtt(entry: &Entry<'_, '_>, count: Option<usize>) -> Option<PerFlow<Duration>> {
    let Some(text) = entry.as_text().filter(|t| t.contains("..")) else {
        return per_flow(entry, count, Entry::positive_moment);
    };
    let (low, high) = match quantity::span(text) {
        Ok(span) => span,
        Err(wrong) => return entry.wrong(wrong),
    };
    if low == Duration::ZERO {
        return entry.wrong(Wrong::new(
            "a round-trip time must be above 0",
            "write a range above 0, such as \"26..32 ms\"",
        ));
    }
    let count = count?;
    if count == 0 {
        return Some(PerFlow::Each(Vec::new()));
    }
    if count == 1 {
        return Some(PerFlow::All(Duration(low.0 + (high.0 - low.0) / 2)));
    }
    let (span, steps) = (u128::from(high.0 - low.0), count as u128 - 1);
    // Rounded to the nearest picosecond, each from the start, so that errors do not add up.
    let at = |i: u128| Duration(low.0 + ((span * i + steps / 2) / steps) as u64);
    Some(PerFlow::Each((0..count as u128).map(at).collect()))
}

/// Reads when flows start: a time, a list, `uniform 0..1 s`, or `{ first, every, arrivals }`.
fn start(entry: &Entry<'_, '_>, count: Option<usize>, duration: Option<Duration>) -> Option<Start> {
    let within = |e: &Entry<'_, '_>, t: Duration| match duration {
        Some(end) if t >= end => e.wrong(Wrong::new(
            format!("the flow starts at {t}, the run ends at {end}"),
            "write an earlier start or a longer duration",
        )),
        _ => Some(moment(t)),
    };
    if let Some(range) = entry.as_text().and_then(|t| t.trim().strip_prefix("uniform")) {
        return match quantity::span(range) {
            Ok((low, high)) => Some(Start::Uniform(within(entry, low)?, within(entry, high)?)),
            Err(wrong) => entry.wrong(Wrong::new(wrong.problem, "write \"uniform 0..1 s\"")),
        };
    }
    if entry.is_table() {
        let section = entry.section(&["first", "every", "arrivals"])?;
        let first = section.get("first").map_or(Some(Duration::ZERO), |e| e.moment());
        let every = section.need("every", "\"100 ms\"").and_then(|e| e.positive_duration());
        let law = match section.get("arrivals") {
            Some(e) => match e.word(&["fixed", "poisson"], "arrivals")? {
                "poisson" => Distribution::Exponential,
                _ => Distribution::Fixed,
            },
            None => Distribution::Fixed,
        };
        let (first, every) = (first?, every?);
        // Where arrivals are drawn, the last one within the run is not known; the first may come at once.
        let last = if law == Distribution::Fixed { count?.saturating_sub(1) as u64 } else { 0 };
        within(entry, Duration(first.0.saturating_add(every.0.saturating_mul(last))))?;
        return Some(Start::Arrivals(moment(first), every, law));
    }
    per_flow(entry, count, |e| e.moment().and_then(|t| within(e, t))).map(Start::At)
}

/// Reads when flows stop: a time or a list, after their starts as far as these are known.
fn stop(entry: &Entry<'_, '_>, count: Option<usize>, start: Option<&Start>) -> Option<PerFlow<Time>> {
    let stops = per_flow(entry, count, Entry::positive_moment)?;
    let at = |i: usize| moment(stops.get(i));
    let count = count?;
    for i in 0..count {
        let begins = match start? {
            Start::At(times) => times.get(i),
            Start::Uniform(_, latest) => *latest,
            Start::Arrivals(first, every, Distribution::Fixed) => {
                *first + Duration(every.0.saturating_mul(i as u64))
            }
            Start::Arrivals(first, ..) => *first,
        };
        if at(i) <= begins {
            return entry.wrong(Wrong::new(
                format!("flow {i} may start at {begins} and stops at {}", at(i)),
                "write a later time",
            ));
        }
    }
    Some(match stops {
        PerFlow::All(stop) => PerFlow::All(moment(stop)),
        PerFlow::Each(all) => PerFlow::Each(all.into_iter().map(moment).collect()),
    })
}

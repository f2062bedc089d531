//! `[[links]]`: both directions of each, and the queues before them.

use crate::text::problem::Wrong;
use crate::text::{Entry, Section};
use inprofile_core::units::{Bytes, Duration, Rate, Time};
use inprofile_sim::capacity::Capacity;
use inprofile_sim::flow_control::Pause;

use crate::access::{self, ACCESSES};
use crate::model::{At, Direction, MAX_STEPS, Queues, Steps, Turn, Way};
use crate::read::Scope;
use crate::read::{classes, mechanism, names};
use crate::wire::{JITTERS, LOSSES};

/// A link as read: what is `None` was invalid and has been reported.
pub(crate) struct Draft {
    /// Its name.
    pub name: Option<At<String>>,
    /// Where its forward direction starts.
    pub from: Option<At<String>>,
    /// Where its forward direction ends.
    pub to: Option<At<String>>,
    /// Forward and reverse.
    pub directions: Option<[Direction; 2]>,
}

/// Keys of either direction.
pub(crate) const DIRECTION: [&str; 11] = [
    "rate",
    "capacity",
    "access",
    "trace",
    "delay",
    "delays",
    "jitter",
    "loss",
    "queue",
    "pause",
    "ack_filter",
];

/// Reads every link.
pub(crate) fn read(sections: &[Section<'_, '_>], scope: Scope<'_>) -> Vec<Draft> {
    sections.iter().map(|s| link(s, scope)).collect()
}

fn link(section: &Section<'_, '_>, scope: Scope<'_>) -> Draft {
    section.refuse_unknown(&[&["name", "from", "to", "reverse"], DIRECTION.as_slice()].concat());
    let name = section.need("name", "\"bottleneck\"").and_then(|e| names::name(&e));
    let from = section.need("from", "\"R1\"").and_then(|e| names::name(&e));
    let to = section.need("to", "\"R2\"").and_then(|e| names::name(&e));
    if let (Some(from), Some(to)) = (&from, &to)
        && from.value == to.value
    {
        section.report().error(&to.place, "the link ends where it starts", "name another node");
    }
    let turn = turn(section);
    // A trace has a rate of its own.
    let rate = match (section.get("rate"), &turn) {
        (None, Some(Some(Turn::Trace(trace)))) => Some(trace.mean()),
        (None, None) if section.get("trace").is_some() => None,
        _ => section.need("rate", "\"1.2 Mbit/s\"").and_then(|e| e.positive_rate()),
    };
    let capacity = capacity(section, rate);
    let delay = section.need("delay", "\"5 ms\"").and_then(|e| e.duration());
    let example = "{ aqm = \"drop_tail\", limit = \"100 packets\" }";
    let queue = section.need("queue", example).and_then(|e| classes::queues(&e, scope, rate));
    let way = way(section, delay);
    let pause = pause(section);
    let filter = ack_filter(section, queue.as_ref());
    let forward = (|| {
        Some(Direction {
            rate: rate?,
            capacity: capacity?,
            access: turn?,
            delay: delay?,
            way: way?,
            queue: queue?,
            pause: pause?,
            ack_filter: filter?,
        })
    })();
    let back = match section.get("reverse") {
        Some(entry) => reverse(&entry, scope, rate, delay),
        None => (|| {
            Some(Direction {
                rate: rate?,
                capacity: None,
                access: None,
                delay: delay?,
                way: Way::default(),
                queue: Queues::One(mechanism::drop_tail(None, scope, rate, scope.tcp)?),
                pause: None,
                ack_filter: false,
            })
        })(),
    };
    let directions = forward.zip(back).map(|(forward, back)| [forward, back]);
    Draft { name, from, to, directions }
}

/// Reads `reverse = { … }`. Rate and delay default to those of the forward direction, the queue to a large drop-tail.
fn reverse(
    entry: &Entry<'_, '_>,
    scope: Scope<'_>,
    forward_rate: Option<Rate>,
    forward_delay: Option<Duration>,
) -> Option<Direction> {
    let section = entry.section(&DIRECTION)?;
    let turn = turn(&section);
    let rate = match (section.get("rate"), &turn) {
        (None, Some(Some(Turn::Trace(trace)))) => Some(trace.mean()),
        (None, _) => forward_rate,
        (Some(e), _) => e.positive_rate(),
    };
    let capacity = capacity(&section, rate);
    let delay = section.get("delay").map_or(forward_delay, |e| e.duration());
    let queue = match section.get("queue") {
        Some(e) => classes::queues(&e, scope, rate),
        None => mechanism::drop_tail(None, scope, rate, scope.tcp).map(Queues::One),
    };
    let way = way(&section, delay);
    let ack_filter = ack_filter(&section, queue.as_ref());
    let (rate, capacity, access, pause) = (rate?, capacity?, turn?, pause(&section)?);
    let (delay, way, queue, ack_filter) = (delay?, way?, queue?, ack_filter?);
    Some(Direction { rate, capacity, access, delay, way, queue, pause, ack_filter })
}

/// Reads `capacity = { steps = [{ at, rate }, …], repeat }`: how the rate changes, if it does. `None`: it is wrong.
fn capacity(section: &Section<'_, '_>, rate: Option<Rate>) -> Option<Option<Capacity>> {
    let Some(entry) = section.get("capacity") else { return Some(None) };
    let read = |e: &Entry<'_, '_>| e.positive_rate();
    let (steps, repeat) = steps(&entry, ("capacity", "a capacity"), ("rate", "\"10 Mbit/s\""), read)?;
    Some(Some(Capacity::new(rate?, &steps, repeat)))
}

/// Reads `pause = { xoff, xon, alpha, pool }`: when the queue pauses the links that bring packets to it. `None`: it is wrong.
fn pause(section: &Section<'_, '_>) -> Option<Option<Pause>> {
    let Some(entry) = section.get("pause") else { return Some(None) };
    let keys = entry.section(&["xoff", "xon", "alpha", "pool"])?;
    let (xoff, low) = (keys.need("xoff", "\"100 kB\""), keys.need("xon", "\"90 kB\""));
    let (xoff, at) = (xoff.and_then(|e| e.bytes()), low?);
    let (xoff, xon) = (xoff?, at.bytes()?);
    // Thresholds that move with what is free need both; fixed ones neither.
    let (alpha, pool) = if keys.get("alpha").is_some() || keys.get("pool").is_some() {
        let (alpha, pool) = (keys.need("alpha", "0.125"), keys.need("pool", "\"9 MB\""));
        (alpha.and_then(|e| raises(&e))?, pool.and_then(|e| e.bytes())?)
    } else {
        (0.0, Bytes(0))
    };
    if xon.0 > xoff.0 {
        let problem = format!("a link would go on at {xon}, above the {xoff} at which it is paused");
        return at.wrong(Wrong::new(problem, format!("write \"{xoff}\" or less")));
    }
    Some(Some(Pause { xoff, xon, alpha, pool }))
}

/// By how much of the free pool thresholds lie higher. `None`: it is wrong.
fn raises(entry: &Entry<'_, '_>) -> Option<f64> {
    let alpha = entry.number()?;
    if !(0.0..=1024.0).contains(&alpha) {
        return entry.wrong(Wrong::new(
            format!("{alpha} is no weight of the free pool"),
            "write a number from 0 to 1024, such as 0.125",
        ));
    }
    Some(alpha)
}

/// Reads `ack_filter = true`: whether an acknowledgement that waits goes as a newer one joins this queue. `None`: it is wrong.
fn ack_filter(section: &Section<'_, '_>, queue: Option<&Queues>) -> Option<bool> {
    let Some(entry) = section.get("ack_filter") else { return Some(false) };
    let filters = entry.flag()?;
    match queue {
        Some(queue) if filters && queue.one().is_none_or(|one| one.aqm.name != "drop_tail") => {
            let problem = "the filter takes acknowledgements out of one drop-tail queue, and here is another";
            let remedy = "write aqm = \"drop_tail\", or remove ack_filter";
            entry.wrong(Wrong::new(problem, remedy))
        }
        _ => Some(filters),
    }
}

/// Reads how a link comes to send, if not whenever a packet waits. `None`: it is wrong.
fn turn(section: &Section<'_, '_>) -> Option<Option<Turn>> {
    let [capacity, access, trace] = ["capacity", "access", "trace"].map(|key| section.get(key));
    let several = [&capacity, &access, &trace].into_iter().flatten().count() > 1;
    if let Some(last) = trace.as_ref().or(access.as_ref()).filter(|_| several) {
        let problem = "a link has one of capacity (a rate that changes), access and trace";
        return last.wrong(Wrong::new(problem, "remove the others"));
    }
    Some(match (access, trace) {
        (Some(entry), _) => Some(Turn::Access(mechanism::on_the_way(&entry, "access", ACCESSES)?)),
        (None, Some(entry)) => {
            let text = entry.text("a trace: a line for each opportunity, with its time in ms")?;
            match access::trace(text) {
                Ok(trace) => Some(Turn::Trace(trace)),
                Err(wrong) => return entry.wrong(wrong),
            }
        }
        (None, None) => None,
    })
}

/// Reads how packets are delayed and lost on a link of this delay. `None`: it is wrong.
fn way(section: &Section<'_, '_>, delay: Option<Duration>) -> Option<Way> {
    let jitter = match section.get("jitter") {
        Some(entry) => Some(mechanism::on_the_way(&entry, "jitter", JITTERS)?),
        None => None,
    };
    let loss = match section.get("loss") {
        Some(entry) => Some(mechanism::on_the_way(&entry, "loss", LOSSES)?),
        None => None,
    };
    let delays = match section.get("delays") {
        Some(entry) if jitter.is_some() => {
            let problem = "a link has delays that are drawn (jitter) or that are given (delays), not both";
            return entry.wrong(Wrong::new(problem, "remove one of them"));
        }
        Some(entry) => {
            let least = delay?;
            let read = |e: &Entry<'_, '_>| {
                let delay = e.duration()?;
                if delay >= least {
                    return Some(delay);
                }
                let problem = format!("shorter than the link's delay, {least}, which is the shortest");
                e.wrong(Wrong::new(
                    problem,
                    format!("write at least \"{least}\", or a shorter delay of the link"),
                ))
            };
            Some(steps(&entry, ("delays", "a schedule of delays"), ("delay", "\"50 ms\""), read)?)
        }
        None => None,
    };
    Some(Way { jitter, delays, loss })
}

/// Reads `KEY = { steps = [{ at, VALUE }, …], repeat }`. `None`: it is wrong.
fn steps<T>(
    entry: &Entry<'_, '_>,
    (key, what): (&str, &str),
    (value, example): (&'static str, &str),
    read: impl Fn(&Entry<'_, '_>) -> Option<T>,
) -> Option<Steps<T>> {
    let section = entry.section(&["steps", "repeat"])?;
    let steps = format!("[{{ at = \"20 s\", {value} = {example} }}]");
    let given = section.need("steps", &steps)?;
    let tables = given.tables(&format!("steps, each with at and {value}"))?;
    if tables.is_empty() || tables.len() > MAX_STEPS {
        let problem = format!("{} steps; {what} has 1 to {MAX_STEPS}", tables.len());
        return given.wrong(Wrong::new(problem, format!("write steps = {steps}, or remove {key}")));
    }
    let repeat = match section.get("repeat") {
        Some(e) => Some(e.positive_moment()?),
        None => None,
    };
    let mut all: Vec<(Time, T)> = Vec::with_capacity(tables.len());
    for table in &tables {
        table.refuse_unknown(&["at", value]);
        let at = table.need("at", "\"20 s\"")?;
        let (time, value) = (at.positive_moment()?, read(&table.need(value, example)?)?);
        if let Some((before, _)) = all.last().filter(|(before, _)| before.0 >= time.0) {
            let problem = format!("the step before is at {before}: {what} does not go back in time");
            return at.wrong(Wrong::new(problem, "write the steps in the order of their times"));
        }
        if let Some(repeat) = repeat.filter(|r| *r <= time) {
            let problem = format!("the schedule starts over after {repeat}, before this step");
            return at.wrong(Wrong::new(problem, "write an earlier time, or a longer repeat"));
        }
        all.push((Time(time.0), value));
    }
    Some((all, repeat))
}

pub(super) mod topology {
    //! Nodes and links by name, and the graph that the links span.

    use crate::text::Report;
    use crate::text::nearest::suggest;

    use crate::model::At;
    use crate::read::links;
    use crate::read::names::Names;
    use crate::routes::Graph;

    /// Nodes and links, numbered in the order of the file.
    pub(crate) struct Topology<'d, 'r> {
        pub report: &'r Report<'d>,
        /// Whether the ends of every link could be read. If not, an unknown node may be one of those.
        complete: bool,
        pub nodes: Names,
        pub node_names: Vec<String>,
        pub links: Names,
        link_names: Vec<String>,
        /// The ends of each link, where they could be read.
        pub ends: Vec<Option<(u32, u32)>>,
    }

    impl<'d, 'r> Topology<'d, 'r> {
        /// Of these links; a name that is given twice is reported.
        pub fn new(report: &'r Report<'d>, drafts: &[links::Draft]) -> Topology<'d, 'r> {
            let mut topology = Topology {
                report,
                complete: true,
                nodes: Names::default(),
                node_names: Vec::new(),
                links: Names::default(),
                link_names: Vec::new(),
                ends: Vec::with_capacity(drafts.len()),
            };
            for (k, draft) in drafts.iter().enumerate() {
                match &draft.name {
                    Some(name) => {
                        topology.links.claim(report, name, k, "a link");
                        topology.link_names.push(name.value.clone());
                    }
                    None => {
                        topology.links.incomplete();
                        topology.link_names.push(format!("links.{k}"));
                    }
                }
                let (from, to) = (topology.end(draft.from.as_ref()), topology.end(draft.to.as_ref()));
                topology.complete &= from != to;
                topology.ends.push(from.zip(to));
            }
            topology
        }

        /// The number of the node at one end of a link; a new name is a new node.
        fn end(&mut self, name: Option<&At<String>>) -> Option<u32> {
            let Some(name) = name else {
                self.complete = false;
                return None;
            };
            let index = self.nodes.get(&name.value).unwrap_or_else(|| {
                self.nodes.claim(self.report, name, self.node_names.len(), "a node");
                self.node_names.push(name.value.clone());
                self.node_names.len() - 1
            });
            Some(index as u32)
        }

        /// Whether the ends of every link could be read.
        pub fn is_complete(&self) -> bool {
            self.complete
        }

        /// The number of a node; an unknown one is reported, unless it may be the end of a link that could not be read.
        pub fn node(&self, name: &At<String>) -> Option<u32> {
            let found = self.nodes.get(&name.value);
            if found.is_none() && self.complete {
                let remedy = suggest(&name.value, &self.nodes.some());
                self.report.error(&name.place, "no link starts or ends at this node", remedy);
            }
            found.map(|i| i as u32)
        }

        /// The name of one direction of a link.
        pub fn direction_name(&self, direction: u32) -> String {
            let name = &self.link_names[direction as usize / 2];
            if direction.is_multiple_of(2) { name.clone() } else { format!("{name}.reverse") }
        }

        /// One direction of a link by its name, with `.reverse` for the way back; an unknown one is reported.
        pub fn direction(&self, name: &At<String>) -> Option<usize> {
            let (link, reverse) = match name.value.strip_suffix(".reverse") {
                Some(link) => (link, 1),
                None => (name.value.as_str(), 0),
            };
            let found = self.links.get(link);
            if found.is_none() && self.links.is_complete() {
                let remedy = suggest(link, &self.links.some());
                self.report.error(&name.place, "there is no link with this name", remedy);
            }
            found.map(|k| 2 * k + reverse)
        }

        /// Nodes and links for finding routes.
        pub fn graph(&self) -> Graph {
            let mut graph = Graph::new(self.node_names.len());
            for (k, ends) in self.ends.iter().enumerate() {
                if let Some((from, to)) = ends {
                    graph.join(k as u32, *from, *to);
                }
            }
            graph
        }

        /// A route in words.
        pub fn spell(&self, path: &[u32]) -> String {
            path.iter().map(|w| self.direction_name(*w)).collect::<Vec<_>>().join(", ")
        }
    }
}

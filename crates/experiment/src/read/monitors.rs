//! Finds what is measured and sampled: links, groups and edges by name.

use std::collections::BTreeSet;

use crate::text::nearest::suggest;
use inprofile_core::units::Duration;

use crate::model::{At, Direction, MAX_SAMPLES, Monitor, Target};
use crate::read::classes;
use crate::read::names::Names;
use crate::read::points::{Kind, MonitorDraft};
use crate::read::topology::Topology;

/// The points that can be sampled.
pub(crate) struct Seen<'a, 'd, 'r> {
    pub topology: &'a Topology<'d, 'r>,
    pub groups: &'a Names,
    pub counts: &'a [Option<usize>],
    /// Numbers of edges by node; `None` if they could not be read.
    pub edges: Option<&'a Names>,
}

/// Finds every monitor's target; `None` if anything was reported.
pub(crate) fn monitors(
    seen: &Seen<'_, '_, '_>,
    directions: &[Option<&[Direction; 2]>],
    drafts: Vec<MonitorDraft>,
    duration: Option<Duration>,
) -> Option<Vec<Monitor>> {
    let report = seen.topology.report;
    let mut monitors = Some(Vec::with_capacity(drafts.len()));
    let mut taken = BTreeSet::new();
    let mut samples: u64 = 0;
    for draft in drafts {
        let target = draft.target.as_ref().and_then(|(kind, name)| {
            let target = find(seen, directions, *kind, name)?;
            if !taken.insert(target) {
                report.error(&name.place, "is already monitored", "remove one of the two");
                return None;
            }
            Some(target)
        });
        if let (Some(every), Some(run)) = (&draft.every, duration) {
            let watched = match target {
                Some(Target::Group(g)) => seen.counts[g].unwrap_or(1) as u64,
                _ => 1,
            };
            let before = samples;
            samples =
                samples.saturating_add((run.0 / every.value.0).saturating_add(1).saturating_mul(watched));
            if samples > MAX_SAMPLES && before <= MAX_SAMPLES {
                let problem = format!(
                    "with this monitor the run takes {samples} samples; the maximum is {MAX_SAMPLES}"
                );
                report.error(&every.place, problem, "write a longer time, or monitor single flows");
            }
        }
        match (target.zip(draft.every), &mut monitors) {
            (Some((target, every)), Some(all)) => all.push(Monitor { target, every: every.value }),
            _ => monitors = None,
        }
    }
    monitors
}

fn find(
    seen: &Seen<'_, '_, '_>,
    directions: &[Option<&[Direction; 2]>],
    kind: Kind,
    name: &At<String>,
) -> Option<Target> {
    let report = seen.topology.report;
    let unknown = |what: &str, known: &Names| {
        if known.is_complete() {
            let remedy = suggest(&name.value, &known.some());
            report.error(&name.place, format!("there is no {what} with this name"), remedy);
        }
        None
    };
    match kind {
        Kind::Queue => match name.value.split_once('/') {
            Some((link, class)) => {
                let link =
                    seen.topology.direction(&At { value: link.to_owned(), place: name.place.clone() })?;
                let classes = directions[link / 2]?[link % 2].queue.classes();
                let found = classes::find(
                    report,
                    &name.place,
                    &seen.topology.direction_name(link as u32),
                    classes,
                    class,
                )?;
                Some(Target::Class(link, found))
            }
            None => seen.topology.direction(name).map(Target::Queue),
        },
        Kind::Edge => match (seen.edges?.get(&name.value), seen.edges) {
            (Some(edge), _) => Some(Target::Edge(edge)),
            (None, Some(edges)) => unknown("edge at a node", edges),
            (None, None) => None,
        },
        Kind::Flows => {
            if let Some(group) = seen.groups.get(&name.value) {
                return Some(Target::Group(group));
            }
            let flow = name.value.split_once('.').and_then(|(g, i)| Some((seen.groups.get(g)?, i)));
            let Some((group, number)) = flow else { return unknown("group of flows", seen.groups) };
            let count = seen.counts[group]?;
            match number.parse::<usize>() {
                Ok(i) if i < count && number == i.to_string() => Some(Target::Flow(group, i)),
                _ => {
                    let problem = format!("there is no such flow: the group has {count}");
                    let remedy = match count {
                        0 => "remove the monitor".to_owned(),
                        n => format!("write a number from 0 to {}", n - 1),
                    };
                    report.error(&name.place, problem, remedy);
                    None
                }
            }
        }
    }
}

/// The measured link: the one named, else the slowest, of equals the first.
pub(crate) fn measured(
    topology: &Topology<'_, '_>,
    directions: &[Option<&[Direction; 2]>],
    named: Option<Option<At<String>>>,
) -> Option<usize> {
    if let Some(name) = named? {
        return topology.direction(&name);
    }
    let rates = directions.iter().map(|w| w.map(|pair| pair[0].rate)).collect::<Option<Vec<_>>>()?;
    let slowest = (0..rates.len()).min_by_key(|k| rates[*k])?;
    Some(2 * slowest)
}

pub(super) mod points {
    //! `[[edges]]`, `[[monitors]]` and `measure`: the points of the network at which packets are marked, sampled and measured.

    use crate::text::named::ParsedMechanism;
    use crate::text::problem::Wrong;
    use crate::text::{Location, Section};
    use inprofile_core::registry::AnyMarker;
    use inprofile_core::units::{Duration, Time};

    use crate::model::{At, Distributions};
    use crate::read::{Scope, moment};
    use crate::read::{mechanism, names};

    /// An edge as read.
    pub(crate) struct EdgeDraft<'d, 'r> {
        /// Where.
        pub node: Option<At<String>>,
        /// What.
        pub marker: Option<ParsedMechanism<'d, 'r, AnyMarker>>,
    }

    /// A monitor as read.
    pub(crate) struct MonitorDraft {
        /// The point that it samples.
        pub target: Option<(Kind, At<String>)>,
        /// How often.
        pub every: Option<At<Duration>>,
    }

    /// The points that a monitor can sample.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Kind {
        /// A link's queue.
        Queue,
        /// A group of flows, or one.
        Flows,
        /// An edge.
        Edge,
    }

    /// `measure` as read; its parts where they could be.
    pub(crate) struct Measure {
        /// From (included) to (excluded).
        pub window: Option<(Time, Time)>,
        /// The link, where one is named; `None` if it could not be read.
        pub at: Option<Option<At<String>>>,
        /// The measurements beyond counts; `None` if they could not be read.
        pub distributions: Option<Option<Distributions>>,
    }

    /// Reads one edge.
    pub(crate) fn edge<'d, 'r>(section: &Section<'d, 'r>, scope: Scope<'_>) -> EdgeDraft<'d, 'r> {
        section.refuse_unknown(&["node", "marker"]);
        let node = section.need("node", "\"R1\"").and_then(|e| names::name(&e));
        let example = "{ kind = \"ard\", … }";
        let marker = section.need("marker", example).and_then(|e| mechanism::marker(&e, scope));
        EdgeDraft { node, marker }
    }

    /// Reads one monitor.
    pub(crate) fn monitor(section: &Section<'_, '_>, duration: Option<Duration>) -> MonitorDraft {
        section.refuse_unknown(&["queue", "flows", "edge", "every"]);
        let kinds = [("queue", Kind::Queue), ("flows", Kind::Flows), ("edge", Kind::Edge)];
        let given: Vec<_> =
            kinds.iter().filter_map(|(key, kind)| section.get(key).map(|e| (*kind, e))).collect();
        let target = match given.as_slice() {
            [(kind, entry)] => entry
                .text("a name in quotes")
                .map(|t| (*kind, At { value: t.to_owned(), place: entry.place().clone() })),
            [] => {
                let problem = "a monitor needs something to sample";
                section.report().error(
                    section.place(),
                    problem,
                    "write queue = \"…\", flows = \"…\" or edge = \"…\"",
                );
                None
            }
            _ => {
                let problem = "a monitor samples one thing";
                section.report().error(section.place(), problem, "write a table [[monitors]] for each");
                None
            }
        };
        let every = section.need("every", "\"100 ms\"").and_then(|entry| {
            let every = entry.positive_duration()?;
            match duration {
                Some(run) if every > run => entry.wrong(Wrong::new(
                    format!("is longer than the run of {run}"),
                    "write a shorter time, such as \"100 ms\"",
                )),
                _ => Some(At { value: every, place: entry.place().clone() }),
            }
        });
        MonitorDraft { target, every }
    }

    /// Reads `measure`; the default is the whole run at the slowest link.
    pub(crate) fn measure(root: &Section<'_, '_>, duration: Option<Duration>) -> Measure {
        let whole = duration.map(|d| (Time::ZERO, moment(d)));
        let Some(entry) = root.get("measure") else {
            return Measure { window: whole, at: Some(None), distributions: Some(None) };
        };
        let Some(section) = entry.section(&["from", "to", "at", "distributions", "every"]) else {
            return Measure { window: None, at: None, distributions: None };
        };
        let from = section.get("from").map_or(Some(Duration::ZERO), |e| e.moment());
        let to = section.get("to").map_or(duration, |e| e.moment());
        let at = match section.get("at") {
            Some(e) => e
                .text("the name of a link")
                .map(|t| Some(At { value: t.to_owned(), place: e.place().clone() })),
            None => Some(None),
        };
        let window = window(&section, from, to, duration);
        Measure { window, at, distributions: distributions(&section, window) }
    }

    /// Reads `distributions` and `every`, which implies them.
    fn distributions(
        section: &Section<'_, '_>,
        window: Option<(Time, Time)>,
    ) -> Option<Option<Distributions>> {
        let asked = match section.get("distributions") {
            Some(entry) => Some(entry.flag()?),
            None => None,
        };
        let Some(entry) = section.get("every") else {
            return Some(asked.unwrap_or(false).then(Distributions::default));
        };
        let every = entry.positive_duration()?;
        if asked == Some(false) {
            let problem = "goodput and delay by period are measured with distributions only";
            return entry.wrong(Wrong::new(problem, "write distributions = true, or remove every"));
        }
        let (from, to) = window?;
        if every > to - from {
            let problem = format!("is longer than the measured window of {}", to - from);
            return entry.wrong(Wrong::new(problem, "write a shorter time, such as \"1 s\""));
        }
        Some(Some(Distributions { every: Some(every) }))
    }

    fn window(
        section: &Section<'_, '_>,
        from: Option<Duration>,
        to: Option<Duration>,
        duration: Option<Duration>,
    ) -> Option<(Time, Time)> {
        let (from, to, run) = (from?, to?, duration?);
        let fault = |place: Location, problem: String, remedy: String| {
            section.report().error(&place, problem, remedy);
            None
        };
        if to > run {
            let problem = format!("the window ends after the run, which ends at {run}");
            return fault(
                section.locate("to"),
                problem,
                format!("write to = \"{run}\" or a longer duration"),
            );
        }
        if from >= to {
            let problem = format!("the window from {from} to {to} is empty");
            return fault(section.locate("from"), problem, format!("write a time before {to}"));
        }
        Some((moment(from), moment(to)))
    }
}

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

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
    let given: Vec<_> = kinds.iter().filter_map(|(key, kind)| section.get(key).map(|e| (*kind, e))).collect();
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
        Some(e) => {
            e.text("the name of a link").map(|t| Some(At { value: t.to_owned(), place: e.place().clone() }))
        }
        None => Some(None),
    };
    let window = window(&section, from, to, duration);
    Measure { window, at, distributions: distributions(&section, window) }
}

/// Reads `distributions` and `every`, which implies them.
fn distributions(section: &Section<'_, '_>, window: Option<(Time, Time)>) -> Option<Option<Distributions>> {
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
        return fault(section.locate("to"), problem, format!("write to = \"{run}\" or a longer duration"));
    }
    if from >= to {
        let problem = format!("the window from {from} to {to} is empty");
        return fault(section.locate("from"), problem, format!("write a time before {to}"));
    }
    Some((moment(from), moment(to)))
}

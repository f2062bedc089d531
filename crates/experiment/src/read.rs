//! The experiment file: from a document to a [`Model`], or to every problem it has.
//!
//! Reading continues after a mistake, so that one check reports all of them. What depends on a value that could not be
//! read is not checked, so that no mistake is reported twice.

mod flows;
mod links;
mod mechanism;
mod monitors;
pub(crate) mod plan;
mod resolve;
pub(crate) mod signals;
pub mod tcp;
mod trees;

use crate::text::mechanism::defaults as mechanism_defaults;
use crate::text::problem::{Severity, acts};
use crate::text::{Document, Entry, Location, Problem, Report, Section, extends};
use inprofile_core::registry::Registry;
use inprofile_core::units::{Duration, Time};
use inprofile_sim::network::Profile;
use links::topology;
use mechanism::classes;
use monitors::points;

use crate::model::{MAX_FLOWS, MAX_TABLES, Model};

/// The mechanisms that may be named, and the experiment's defaults.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The mechanisms that may be named.
    pub registry: &'a Registry,
    /// TCP's defaults in this experiment; `None` if they could not be read.
    pub tcp: Option<&'a inprofile_sim::tcp::Config>,
}

/// A time after the start of the run as a moment of the run.
pub(crate) fn moment(d: Duration) -> Time {
    Time(d.0)
}

/// Keys of the file's top level.
const KEYS: [&str; 14] = [
    extends::KEY,
    "title",
    "duration",
    "measure",
    "seeds",
    "engine",
    "tcp",
    "links",
    trees::KEY,
    "flows",
    "edges",
    "signals",
    "monitors",
    "plan",
];

/// The longest title, in characters.
const LONGEST_TITLE: usize = 500;

/// Reads and checks the whole experiment.
///
/// # Errors
/// Every problem, warnings included.
pub(crate) fn read(document: &Document, registry: &Registry) -> Result<(Model, Vec<Problem>), Vec<Problem>> {
    if document.root().get(trees::KEY).is_none() {
        return read_whole(document, registry);
    }
    let (whole, shapes) = trees::expand(document, false)?;
    match read_whole(&whole, registry) {
        Ok((model, warnings)) => Ok((Model { trees: shapes, ..model }, once(warnings))),
        // What is wrong with all nodes of a level is told of one; what names other nodes is wrong only where those are missing.
        Err(problems) => {
            let mut of_one =
                read_whole(&trees::expand(document, true)?.0, registry).err().unwrap_or_default();
            of_one.retain(|p| problems.iter().any(|q| place(p) == place(q)));
            Err(once(if of_one.iter().any(|p| p.severity == Severity::Error) { of_one } else { problems }))
        }
    }
}

/// Of problems that differ only by the node that they are of, the first.
fn once(problems: Vec<Problem>) -> Vec<Problem> {
    let mut seen = std::collections::BTreeSet::new();
    problems.into_iter().filter(|p| p.line.is_none() || seen.insert(place(p))).collect()
}

/// Where a problem is, and what it is.
fn place(p: &Problem) -> (String, Option<u32>, Option<u32>, String) {
    (p.file.clone(), p.line, p.column, p.problem.clone())
}

/// The same of an experiment whose trees are written out.
fn read_whole(document: &Document, registry: &Registry) -> Result<(Model, Vec<Problem>), Vec<Problem>> {
    let report = Report::new(document);
    let root = Section::root(&report, &KEYS);
    if !registry.aqms.iter().any(|e| e.name == "drop_tail" && mechanism_defaults(e.fields).is_some()) {
        report.error(
            root.place(),
            "the registry has no drop_tail",
            "keep drop_tail: links from hosts use it",
        );
    }
    let model = if document.root().0.is_empty() {
        report.error(
            root.place(),
            "the file holds no experiment",
            "`inprofile new NAME` writes one to start from",
        );
        None
    } else {
        read_root(&root, registry)
    };
    if let Some(model) = model.as_ref().filter(|_| !report.has_errors()) {
        crate::cross_check::check(&root, model);
    }
    let failed = report.has_errors();
    let problems = report.finish();
    match model {
        Some(model) if !failed => Ok((model, problems)),
        _ => Err(problems),
    }
}

fn read_root(root: &Section<'_, '_>, registry: &Registry) -> Option<Model> {
    // What a file extends is part of the document, and the key no longer there.
    if let Some(entry) = root.get(extends::KEY) {
        let problem = "only an experiment in a file can extend another, and only there";
        let remedy = format!("write {} in the file, and give inprofile its path", extends::KEY);
        root.report().error(entry.place(), problem, remedy);
        return None;
    }
    let title = root.need("title", "\"Four flows share a link\"").and_then(|e| title(&e));
    let duration = root.need("duration", "\"200 s\"").and_then(|e| e.positive_moment());
    let seeds = match root.get("seeds") {
        Some(entry) => entry.count_in(1..=100_000),
        None => Some(10),
    };
    let profile = engine(root);
    let base = tcp::base(root);
    let config = base.as_ref().and_then(|b| b.config.as_ref());
    let scope = Scope { registry, tcp: config };
    let links = tables(root, "links", true).map(|sections| links::read(&sections, scope));
    let groups =
        tables(root, "flows", true).filter(|sections| within_flow_limit(root, sections)).map(|sections| {
            sections.iter().map(|s| flows::read(s, scope, base.as_ref(), duration)).collect::<Vec<_>>()
        });
    let edges = tables(root, "edges", false)
        .map(|sections| sections.iter().map(|s| points::edge(s, scope)).collect::<Vec<_>>());
    let signals = tables(root, "signals", false).map(|s| s.iter().map(signals::read).collect::<Vec<_>>());
    let monitors = tables(root, "monitors", false)
        .map(|sections| sections.iter().map(|s| points::monitor(s, duration)).collect::<Vec<_>>());
    let measure = points::measure(root, duration);
    let plan = plan::plan(root);

    let drafts = resolve::Drafts { links: links?, groups, edges, signals, monitors, measure, duration };
    let resolved = resolve::all(root, scope, drafts)?;
    Some(Model {
        title: title?,
        duration: duration?,
        window: resolved.window?,
        at: resolved.at?,
        distributions: resolved.distributions?,
        seeds: u32::try_from(seeds?).ok()?,
        profile: profile?,
        tcp: config?.clone(),
        trees: Vec::new(),
        nodes: resolved.nodes,
        links: resolved.links,
        groups: resolved.groups,
        edges: resolved.edges,
        signals: resolved.signals,
        monitors: resolved.monitors,
        plan: plan?,
    })
}

/// Whether all groups together have no more flows than allowed; checked before anything is created for each of them.
fn within_flow_limit(root: &Section<'_, '_>, groups: &[Section<'_, '_>]) -> bool {
    // A count that is invalid, or too large by itself, is reported in its own place.
    let good = |e: Entry<'_, '_>| e.as_whole().filter(|n| *n <= MAX_FLOWS).unwrap_or(0);
    let total: u64 = groups.iter().map(|g| g.get("count").map_or(1, good)).sum();
    if total <= MAX_FLOWS {
        return true;
    }
    let place = Location { quoted: false, ..root.locate("flows") };
    let problem = format!("{total} flows in total; the maximum is {MAX_FLOWS}");
    root.report().error(&place, problem, "write smaller counts");
    false
}

fn title(entry: &Entry<'_, '_>) -> Option<String> {
    let text = entry.text("a title in quotes")?;
    if text.trim().is_empty() {
        entry.report().error(entry.place(), "the title is empty", "write what the experiment is about");
        return None;
    }
    if let Some(c) = text.chars().find(|c| acts(*c)) {
        let problem = format!("the title has a control character, U+{:04X}", u32::from(c));
        entry.report().error(entry.place(), problem, "remove it: a title is one line of plain text");
        return None;
    }
    if text.chars().count() > LONGEST_TITLE {
        let problem = format!("the title has {} characters", text.chars().count());
        entry.report().error(entry.place(), problem, format!("write at most {LONGEST_TITLE}"));
        return None;
    }
    Some(text.to_owned())
}

fn engine(root: &Section<'_, '_>) -> Option<Profile> {
    let Some(entry) = root.get("engine") else { return Some(Profile::Exact) };
    let section = entry.section(&["profile"])?;
    let Some(profile) = section.get("profile") else { return Some(Profile::Exact) };
    match profile.word(&["exact", "exact_ns2_random", "ns2"], "engine profile")? {
        "ns2" => Some(Profile::Ns2),
        "exact_ns2_random" => Some(Profile::ExactNs2Random),
        _ => Some(Profile::Exact),
    }
}

/// The tables of `[[key]]`; an empty list if the key is absent and optional.
fn tables<'d, 'r>(root: &Section<'d, 'r>, key: &'static str, needed: bool) -> Option<Vec<Section<'d, 'r>>> {
    let Some(entry) = root.get(key) else {
        if needed && !root.is_misspelt(key) {
            let what = format!("an experiment needs {key}");
            root.report().error(&root.missing(key), what, format!("add a table [[{key}]] for each"));
        }
        return if needed || root.is_misspelt(key) { None } else { Some(Vec::new()) };
    };
    let sections = entry.tables(&format!("[[{key}]]"))?;
    if sections.is_empty() && needed {
        root.report().error(entry.place(), "the list is empty", format!("add a table [[{key}]]"));
        return None;
    }
    if sections.len() > MAX_TABLES {
        let problem = format!("{} tables; the maximum is {MAX_TABLES}", sections.len());
        root.report().error(entry.place(), problem, "put flows of one kind into one table with a count");
        return None;
    }
    Some(sections)
}

mod names {
    //! Names of links, flows and nodes: their syntax, and that each is given once.

    use std::collections::BTreeMap;

    use crate::text::problem::Wrong;
    use crate::text::{Entry, Report};

    use crate::model::At;

    /// The longest name.
    const LONGEST: usize = 64;

    /// Reads a name: letters, digits, `_` and `-`. Dots and blanks would make results ambiguous.
    pub(crate) fn name(entry: &Entry<'_, '_>) -> Option<At<String>> {
        let text = entry.text("a name in quotes")?;
        let good = !text.is_empty()
            && text.len() <= LONGEST
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !good {
            return entry.wrong(Wrong::new(
                "not a valid name",
                format!("write 1 to {LONGEST} letters, digits, _ or -, such as \"bottleneck\""),
            ));
        }
        Some(At { value: text.to_owned(), place: entry.place().clone() })
    }

    /// Numbers by name, each name once.
    #[derive(Debug, Default)]
    pub(crate) struct Names {
        taken: BTreeMap<String, (usize, crate::text::Location)>,
        incomplete: bool,
    }

    impl Names {
        /// Gives `name` the number `index`; a name that is taken is reported.
        pub fn claim(&mut self, report: &Report<'_>, name: &At<String>, index: usize, what: &str) {
            if let Some((_, first)) = self.taken.get(&name.value) {
                self.incomplete = true;
                let at = report.whereabouts(first);
                report.error(
                    &name.place,
                    format!("{what} with this name already exists ({at})"),
                    "give each its own name",
                );
            } else {
                self.taken.insert(name.value.clone(), (index, name.place.clone()));
            }
        }

        /// The number of `name`.
        pub fn get(&self, name: &str) -> Option<usize> {
            self.taken.get(name).map(|(i, _)| *i)
        }

        /// Records that a name could not be read.
        pub fn incomplete(&mut self) {
            self.incomplete = true;
        }

        /// Whether an unknown name is certainly wrong, because every name could be read and none was given twice.
        pub fn is_complete(&self) -> bool {
            !self.incomplete
        }

        /// Some of the names, for messages.
        pub fn some(&self) -> Vec<&str> {
            self.taken.keys().take(20).map(String::as_str).collect()
        }
    }
}

//! `datapath`: whether packets go through this process, or stay in the kernel; and what is refused there, with what to write instead.

use inprofile_core::aqm::virtual_queue::Params;
use inprofile_core::aqm::virtual_queue::whole::Settings;
use inprofile_core::marker::tsw_whole;
use inprofile_core::params::{Context, Params as _, Value};
use inprofile_core::registry::{AnyMarker, Registry};
use inprofile_core::units::{Backlog, Bytes};
use inprofile_experiment::text::named::{self, Mechanism};
use inprofile_experiment::text::problem::Wrong;
use inprofile_experiment::text::{Entry, Section};

use super::classes::Link;
use super::{Class, classes};

/// The one discipline there is in the kernel.
const VIRTUAL_QUEUE: &str = "virtual_queue";
/// Where nothing waits there is no limit.
const ANY: Backlog = Backlog::Packets(1_000_000.0);

/// The most that the buckets of a meter hold together in the kernel, where they are counted in 64 bits.
pub const MOST_DEPTH: u64 = 1 << 30;
/// The meters there are in the kernel.
pub const METERS: [&str; 6] = ["token_bucket", "srtcm", "trtcm", "rfc4115", "tsw2cm", "tsw3cm"];

/// Where packets are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Datapath {
    /// In this process: every mechanism there is, queues and shapers.
    #[default]
    User,
    /// By programs at the ports' ingress hooks: metered, marked or dropped, and sent at once.
    Kernel,
}

impl Datapath {
    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["user", "kernel"][self as usize]
    }

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Datapath> {
        [Datapath::User, Datapath::Kernel].into_iter().find(|d| d.name() == name)
    }
}

/// How the kernel's programs are put at the ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// By tcx where the kernel has it, else as filters of clsact.
    #[default]
    Auto,
    /// By links that are pinned, from Linux 6.6 on.
    Tcx,
    /// As filters, which are the interface's.
    Clsact,
}

impl Attach {
    /// The names, as in the file.
    pub const NAMES: [&str; 3] = ["auto", "tcx", "clsact"];

    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Attach::NAMES[self as usize]
    }

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Attach> {
        [Attach::Auto, Attach::Tcx, Attach::Clsact].into_iter().find(|a| a.name() == name)
    }
}

/// Or the other datapath.
const ELSE: &str = "datapath = \"user\"";

/// Refuses keys that are about waiting packets; the rest of the table is read all the same.
pub(super) fn refuse_queues<'d: 'r, 'r>(get: impl Fn(&str) -> Option<Entry<'d, 'r>>, keys: &[&str]) {
    for key in keys {
        let Some(entry) = get(key) else { continue };
        let problem = match *key {
            "rate" => "nothing is shaped in the kernel's datapath",
            _ => "no packet waits in the kernel's datapath",
        };
        entry.wrong::<()>(Wrong::new(problem, format!("leave {key} out, or write {ELSE}")));
    }
}

/// Refuses the marker of all assured packets together: a second meter behind each customer's.
pub(super) fn refuse_aggregate<T>(entry: &Entry<'_, '_>, marker: &Mechanism<AnyMarker>) -> Option<T> {
    let (name, problem) =
        (marker.name, "only a customer's own packets are metered together in the kernel's datapath");
    entry.wrong(if METERS.contains(&name) {
        let instead =
            "give all their prefixes to one customer who has this marker and the sum of their contracts";
        Wrong::new(problem, format!("{instead}, or write {ELSE}"))
    } else {
        let problem = format!("{problem}, and there is no {name}");
        Wrong::new(problem, format!("leave aggregate out, or write {ELSE}"))
    })
}

/// A class of this name: with a virtual queue where the table has a discipline, and else one that passes everything.
pub(super) fn class(
    section: &Section<'_, '_>,
    name: &str,
    own: &[&'static str],
    link: &Link<'_>,
) -> Option<Class> {
    refuse_queues(|k| section.get(k), &["limit", "rate"]);
    let passes = Class { name: name.to_owned(), limit: ANY, ..classes::control_class(link.registry)? };
    let Some(word) = section.get("aqm") else { return Some(passes) };
    let others: Vec<&'static str> = own.iter().copied().chain(["limit", "rate"]).collect();
    let found = named::read(section, ("aqm", "queue discipline"), &others, &link.registry.aqms)?;
    if found.mechanism.name != VIRTUAL_QUEUE {
        let problem =
            format!("no packet waits in the kernel's datapath, so there is no {}", found.mechanism.name);
        return word.wrong(Wrong::new(
            problem,
            format!("write aqm = \"{VIRTUAL_QUEUE}\" around this law, or {ELSE}"),
        ));
    }
    let place = place(link.packet);
    if !found.fits(&place, true) {
        return None;
    }
    let aqm = found.mechanism;
    if let Err(fault) = Settings::of(&Params::from_values(&aqm.values), &place) {
        let remedy = format!("write {}, or {ELSE}", fault.remedy);
        section.report().error(&section.locate(fault.field), fault.problem, remedy);
        return None;
    }
    Some(Class { aqm, ..passes })
}

/// A class without settings: it passes everything.
pub(super) fn plain_class(registry: &Registry, name: &str) -> Option<Class> {
    Some(Class { name: name.to_owned(), limit: ANY, ..classes::control_class(registry)? })
}

/// A virtual queue is at a link of any rate.
fn place(packet: Bytes) -> Context {
    Context { link_rate: None, contract: None, packet, limit: None }
}

/// The virtual queue of a class in whole numbers, if it has one.
#[must_use]
pub fn virtual_queue(class: &Class, packet: Bytes) -> Option<Settings> {
    let has = class.aqm.name == VIRTUAL_QUEUE;
    has.then(|| Settings::of(&Params::from_values(&class.aqm.values), &place(packet)).ok()).flatten()
}

/// Whether a meter can be one of the kernel's.
pub(super) fn meter(entry: &Entry<'_, '_>, marker: &Mechanism<AnyMarker>, place: &Context) -> Option<()> {
    if !METERS.contains(&marker.name) {
        let problem = format!("there is no {} in the kernel's datapath", marker.name);
        return entry.wrong(Wrong::new(problem, format!("write one of {}, or {ELSE}", METERS.join(", "))));
    }
    let depths = marker.values.0.iter().filter_map(|(_, value)| match value {
        Value::Backlog(depth) => Some(depth.bytes(place.packet)),
        _ => None,
    });
    if depths.sum::<f64>() > MOST_DEPTH as f64 {
        let problem = format!("buckets of more than {} together", Bytes(MOST_DEPTH));
        return entry.wrong(Wrong::new(problem, format!("write less, or {ELSE}")));
    }
    if let Some(Value::Duration(length)) = marker.values.get("win_length")
        && tsw_whole::Settings::window(*length).is_none()
    {
        let problem = format!("a window of {length}, which is not between 1 ms and 10 s");
        return entry.wrong(Wrong::new(problem, format!("write win_length = \"1 s\", or {ELSE}")));
    }
    Some(())
}

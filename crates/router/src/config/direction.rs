//! `[upstream]` and `[downstream]`: a rate, the assured queue, classes before and after it, customers, the aggregate.

use inprofile_core::registry::Registry;
use inprofile_core::units::Bytes;
use inprofile_experiment::text::Entry;
use inprofile_experiment::text::problem::Wrong;
use inprofile_experiment::text::quantity::FASTEST;
use inprofile_live::code_points::CodePoints;

use super::classes::{ASSURED, BEST_EFFORT, Link, class, classes, control_class, control_limit, marker};
use super::datapath::{self, Datapath};
use super::frames::Frames;
use super::role::{self, RoleSettings};
use super::{Direction, customers, queues};

/// The file's settings for all directions.
pub(super) struct FileWide<'a> {
    pub(super) registry: &'a Registry,
    pub(super) datapath: Datapath,
    /// Size of a full packet on the link.
    pub(super) packet: Bytes,
    pub(super) points: CodePoints,
    pub(super) role: RoleSettings,
    pub(super) frames: Frames,
}

/// Reads one direction.
pub(super) fn read(entry: &Entry<'_, '_>, file_wide: &FileWide<'_>) -> Option<Direction> {
    let FileWide { registry, datapath, packet, points, frames, .. } = *file_wide;
    let own = [
        "rate",
        "queue",
        "classes",
        BEST_EFFORT,
        "aggregate",
        "customers",
        "templates",
        "groups",
        "shared",
        role::OLD_KEY,
    ];
    let section = entry.section(&[&own[..], &role::KEYS].concat())?;
    let kernel = datapath == Datapath::Kernel;
    if kernel {
        datapath::refuse_queues(|k| section.get(k), &["rate", "shared"]);
    }
    let rate = if kernel {
        Some(FASTEST)
    } else {
        section.need("rate", "\"10 Mbit/s\"").and_then(|e| e.positive_rate())
    };
    let said = RoleSettings::read(&section).and_then(|said| said.with_old_key(&section));
    let link = Link { rate, packet, registry, datapath };
    let before = classes(&section, &link, points);
    let example = "{ aqm = \"rio\", limit = \"100 packets\", … }";
    let class = if kernel { datapath::class } else { class };
    let queue = match section.get("queue") {
        None if kernel => datapath::plain_class(registry, ASSURED),
        _ => section.need("queue", example).and_then(|e| class(&e.open(example)?, ASSURED, &[], &link)),
    };
    let last = match section.get(BEST_EFFORT) {
        Some(e) => {
            class(&e.open("{ aqm = \"drop_tail\", limit = \"100 packets\" }")?, BEST_EFFORT, &[], &link)
                .map(Some)
        }
        None => Some(None),
    };
    let mut classes = vec![control_class(registry)?];
    let before = before.map(|before| classes.extend(before));
    let found = customers::read(&section, &link, points, &classes);
    let shared = queues::shared(&section, packet);
    before?;
    let (role, unsold) = said?.or(file_wide.role).in_force();
    let nothing_given_away = role::gives_nothing_away(&section, &unsold, &classes, points);
    let assured = classes.len();
    classes.push(queue?);
    classes.extend(last?);
    let (rate, (customers, groups), shared) = (rate?, found?, shared?);
    let (control, control_sender) = frames.control(rate, customers.len(), packet);
    classes[Direction::CONTROL].limit = control_limit(control.burst);
    let aggregate = None;
    let mut direction = Direction {
        rate,
        role,
        unsold,
        control,
        control_sender,
        classes,
        assured,
        customers,
        groups,
        shared,
        aggregate,
    };
    if direction.most_markers() > usize::from(u16::MAX) {
        let problem = format!("{} markers and policers in one direction", direction.most_markers());
        return section.get("customers")?.wrong(Wrong::new(problem, "give fewer customers services"));
    }
    nothing_given_away.then_some(())?;
    if let Some(entry) = section.get("aggregate") {
        let place = direction.place_of_aggregate(packet);
        let aggregate = marker(&entry, registry, &place)?;
        if kernel {
            return datapath::refuse_aggregate(&entry, &aggregate);
        }
        direction.aggregate = Some(aggregate);
    }
    Some(direction)
}

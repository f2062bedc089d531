//! The queues of a link: one, or the classes of a scheduler.

use crate::text::nearest::suggest;
use crate::text::problem::Wrong;
use crate::text::{Entry, Location, Report, Section, mechanism as parameters};
use inprofile_core::params::Context;
use inprofile_core::registry::SchedulerEntry;
use inprofile_core::units::{Bytes, Rate};

use crate::model::{Class, MAX_CLASSES, Queues, Scheduled, packet};
use crate::read::Scope;
use crate::read::names::Names;
use crate::read::{mechanism, names};

/// Reads `queue = { aqm = …, limit = …, … }` or `queue = { scheduler = …, classes = [ … ] }` before a link of this rate.
pub(crate) fn queues(entry: &Entry<'_, '_>, scope: Scope<'_>, rate: Option<Rate>) -> Option<Queues> {
    let scheduled = entry.is_table() && entry.open("{ … }")?.get("scheduler").is_some();
    if scheduled {
        return read(&entry.section(&["scheduler", "classes"])?, scope, rate).map(Queues::Scheduled);
    }
    mechanism::queue(entry, scope, rate).map(Queues::One)
}

fn read(section: &Section<'_, '_>, scope: Scope<'_>, rate: Option<Rate>) -> Option<Scheduled> {
    let known = &scope.registry.schedulers;
    let words: Vec<&str> = known.iter().map(|e| e.name).collect();
    let scheduler = section.need("scheduler", "\"priority\"").and_then(|word| {
        let name = word.text("\"priority\"")?;
        let found = known.iter().find(|e| e.name == name);
        found.or_else(|| word.wrong(Wrong::new("there is no such scheduler", suggest(name, &words))))
    });
    let example = "[ { name = \"ef\", aqm = \"drop_tail\", limit = \"50 packets\" }, … ]";
    let list = section.need("classes", example)?;
    let tables = list.tables(example)?;
    if tables.is_empty() {
        return list.wrong(Wrong::new("a scheduler needs at least one class", format!("write {example}")));
    }
    if tables.len() > MAX_CLASSES {
        let problem = format!("{} classes; the maximum is {MAX_CLASSES}", tables.len());
        return list.wrong(Wrong::new(problem, "put flows of one kind into one class"));
    }
    let scheduler = scheduler?;
    let mut taken = Names::default();
    let classes: Vec<Option<Class>> = (0..)
        .zip(&tables)
        .map(|(i, table)| {
            let name = table.need("name", "\"ef\"").and_then(|e| names::name(&e));
            if let Some(name) = &name {
                taken.claim(section.report(), name, i, "a class");
            }
            let class = class(table, scheduler, scope, rate);
            class.zip(name).map(|(class, name)| Class { name: name.value, ..class })
        })
        .collect();
    if !taken.is_complete() {
        return None;
    }
    Some(Scheduled {
        name: scheduler.name,
        fields: scheduler.fields,
        build: scheduler.build,
        classes: classes.into_iter().collect::<Option<Vec<Class>>>()?,
    })
}

/// Reads one class, but for its name.
fn class(
    table: &Section<'_, '_>,
    scheduler: &SchedulerEntry,
    scope: Scope<'_>,
    link: Option<Rate>,
) -> Option<Class> {
    let rate = match table.get("rate") {
        Some(entry) => entry.positive_rate().zip(link).and_then(|(rate, link)| {
            if rate <= link {
                return Some(Some(rate));
            }
            entry.wrong(Wrong::new(
                format!("a class can't be served faster than its link, at {link}"),
                format!("write at most \"{link}\", or remove rate"),
            ))
        }),
        None => Some(None),
    };
    let burst = match table.get("burst") {
        Some(entry) if table.get("rate").is_none() => entry.wrong(Wrong::new(
            "a class without a rate of its own sends what the scheduler lets it",
            "write the rate that it may be ahead of, or remove burst",
        )),
        Some(entry) => entry.bytes(),
        None => Some(Bytes(0)),
    };
    let own = parameters::known(&["name", "limit", "rate", "burst"], scheduler.fields);
    let served_at = rate.and_then(|set| set.or(link));
    let queue = mechanism::queue_in(table, &own, scope, served_at);
    let values = parameters::read(table, scheduler.fields);
    let (rate, burst, queue, values, tcp) = (rate?, burst?, queue?, values?, scope.tcp?);
    let context = Context { link_rate: link, contract: None, packet: packet(tcp), limit: Some(queue.limit) };
    match (scheduler.check)(&values, &context) {
        Ok(warnings) => {
            for w in warnings {
                table.report().warning(&table.locate(w.field), w.text, "");
            }
        }
        Err(fault) => {
            let remedy = format!("write {}", fault.remedy);
            table.report().error(&table.locate(fault.field), fault.problem, remedy);
            return None;
        }
    }
    Some(Class { name: String::new(), queue, rate, burst, values })
}

/// The place of a class in a link's scheduler; one that isn't there is reported.
pub(crate) fn find(
    report: &Report<'_>,
    place: &Location,
    link: &str,
    classes: &[Class],
    name: &str,
) -> Option<usize> {
    let found = classes.iter().position(|c| c.name == name);
    if found.is_none() {
        let names: Vec<&str> = classes.iter().map(|c| c.name.as_str()).collect();
        let remedy = if names.is_empty() {
            "remove the class: the link has one queue for all".into()
        } else {
            suggest(name, &names)
        };
        report.error(place, format!("{link} has no class {name}"), remedy);
    }
    found
}

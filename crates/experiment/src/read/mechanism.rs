//! Markers and queues of an experiment: which mechanisms they are, and the limits of queues.

use crate::text::named::{ParsedMechanism, limit, open, read};
use crate::text::problem::Wrong;
use crate::text::{Entry, Section, mechanism};
use inprofile_core::params::{Context, Value, Values};
use inprofile_core::registry;
use inprofile_core::units::{Backlog, Rate};
use inprofile_sim::tcp::{self, Profile};

use crate::model::{AMPLE, Mechanism, Queue, packet};
use crate::read::Scope;
use crate::traffic::{self, Traffic};

/// Reads `marker = { kind = …, … }`.
pub(crate) fn marker<'d, 'r>(
    entry: &Entry<'d, 'r>,
    scope: Scope<'_>,
) -> Option<ParsedMechanism<'d, 'r, registry::AnyMarker>> {
    let section = open(entry, "kind", &scope.registry.markers)?;
    read(&section, ("kind", "marker"), &[], &scope.registry.markers)
}

/// Reads `traffic = { kind = …, … }`.
pub(crate) fn traffic(entry: &Entry<'_, '_>) -> Option<Mechanism<Traffic>> {
    let section = open(entry, "kind", traffic::KINDS)?;
    let found = read(&section, ("kind", "traffic"), &[], traffic::KINDS)?;
    found.fits(&traffic::no_context(), true).then_some(found.mechanism)
}

/// Reads `jitter = { kind = …, … }` or `loss = { kind = …, … }` of a link.
pub(crate) fn on_the_way<M>(
    entry: &Entry<'_, '_>,
    what: &str,
    kinds: &[registry::Entry<M>],
) -> Option<Mechanism<M>> {
    let section = open(entry, "kind", kinds)?;
    let found = read(&section, ("kind", what), &[], kinds)?;
    found.fits(&traffic::no_context(), true).then_some(found.mechanism)
}

/// Reads `queue = { aqm = …, limit = …, … }` before a link of this rate.
pub(crate) fn queue(entry: &Entry<'_, '_>, scope: Scope<'_>, rate: Option<Rate>) -> Option<Queue> {
    queue_in(&open(entry, "aqm", &scope.registry.aqms)?, &["limit"], scope, rate)
}

/// Reads the discipline and limit of a queue that is served at this rate from a table; `others` are keys of the table
/// that are not parameters of the discipline.
pub(crate) fn queue_in(
    section: &Section<'_, '_>,
    others: &[&'static str],
    scope: Scope<'_>,
    rate: Option<Rate>,
) -> Option<Queue> {
    let found = read(section, ("aqm", "queue discipline"), others, &scope.registry.aqms);
    let limit_entry = section.need("limit", "\"100 packets\"");
    let limit = limit_entry.as_ref().and_then(|e| limit(e, rate, scope.tcp.map(packet)));
    let (mut found, limit, tcp) = (found?, limit?, scope.tcp?);
    let mut follows_tcp = false;
    if section.get("limit_rule").is_none() {
        follows_tcp = follow_ns2(&mut found.mechanism.values, limit, tcp);
        if follows_tcp && let Some(entry) = &limit_entry {
            leaves_room(entry, limit, ", or limit_rule = \"waiting\", under which it waits")?;
        }
    }
    let context = Context { link_rate: Some(rate?), contract: None, packet: packet(tcp), limit: Some(limit) };
    found.fits(&context, true).then_some(Queue { aqm: found.mechanism, limit, follows_tcp })
}

/// A drop-tail queue before a link of this rate, of which only the limit can be given; the default is [`AMPLE`].
pub(crate) fn drop_tail(
    given: Option<&Entry<'_, '_>>,
    scope: Scope<'_>,
    rate: Option<Rate>,
    tcp: Option<&tcp::Config>,
) -> Option<Queue> {
    let limit = match given {
        Some(entry) => limit(entry, rate, tcp.map(packet))?,
        None => AMPLE,
    };
    let known = scope.registry.aqms.iter().find(|e| e.name == "drop_tail")?;
    let mut values = mechanism::defaults(known.fields)?;
    let follows_tcp = follow_ns2(&mut values, limit, tcp?);
    if follows_tcp && let Some(entry) = given {
        leaves_room(entry, limit, "")?;
    }
    let context = Context { link_rate: rate, contract: None, packet: packet(tcp?), limit: Some(limit) };
    match ((known.check)(&values, &context), given) {
        (Err(fault), Some(entry)) => {
            entry.wrong(Wrong::new(fault.problem, format!("write {}", fault.remedy)))
        }
        _ => Some(Queue {
            aqm: Mechanism { name: known.name, values, fields: known.fields, build: known.build },
            limit,
            follows_tcp,
        }),
    }
}

/// Under the ns-2 TCP profile, a limit in packets is read as ns-2 reads it, unless the file says otherwise. True: this
/// one is.
fn follow_ns2(values: &mut Values, limit: Backlog, tcp: &tcp::Config) -> bool {
    if tcp.profile != Profile::Ns2 || !matches!(limit, Backlog::Packets(_)) {
        return false;
    }
    let rule = values.0.iter_mut().find(|(name, _)| *name == "limit_rule");
    let found = rule.is_some();
    if let Some((_, value)) = rule {
        *value = Value::Choice("ns2");
    }
    found
}

/// Reports a limit that leaves no room under ns-2's rule, which the file does not name.
fn leaves_room(entry: &Entry<'_, '_>, limit: Backlog, or: &str) -> Option<()> {
    if !matches!(limit, Backlog::Packets(n) if n < 2.0) {
        return Some(());
    }
    let problem = format!(
        "under [tcp] profile = \"ns2\" a drop-tail queue of n packets holds n - 1 waiting ones, as in ns-2: with {limit} none"
    );
    entry.wrong(Wrong::new(problem, format!("write a limit of at least \"2 packets\"{or}")))
}

pub(super) mod classes {
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
            return list
                .wrong(Wrong::new("a scheduler needs at least one class", format!("write {example}")));
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
        let context =
            Context { link_rate: link, contract: None, packet: packet(tcp), limit: Some(queue.limit) };
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
}

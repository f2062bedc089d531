//! Markers and queues: a name from the registry, the parameters it declares, and whether they fit the place.

use inprofile_config::nearest::suggest;
use inprofile_config::problem::Wrong;
use inprofile_config::{Entry, Section, mechanism};
use inprofile_core::params::{Context, Fault, Value, Values, Warning};
use inprofile_core::registry;
use inprofile_core::units::{Backlog, Duration, Rate};
use inprofile_sim::tcp::{self, Profile};

use crate::model::{AMPLE, Mechanism, Queue, packet};
use crate::read::Scope;
use crate::traffic::{self, Traffic};

/// The shortest time a mechanism may be given to repeat something: a run must come to an end.
const SHORTEST: Duration = Duration::from_micros(1);
/// The longest a full queue may take to drain: time stays inside its 64 bits.
const SLOWEST_DRAIN: f64 = 1e6;
/// The most packets or bytes a queue may be allowed to hold.
const LARGEST_LIMIT: f64 = 1e9;

/// A mechanism that was read, and the table it was read from.
pub(crate) struct Found<'d, 'r, M: 'static> {
    /// What it is.
    pub mechanism: Mechanism<M>,
    check: fn(&Values, &Context) -> Result<Vec<Warning>, Fault>,
    section: Section<'d, 'r>,
}

impl<M> Found<'_, '_, M> {
    /// Reports why the mechanism does not go where `context` is, if so; warnings too if `warn`.
    pub fn fits(&self, context: &Context, warn: bool) -> bool {
        let report = self.section.report();
        match (self.check)(&self.mechanism.values, context) {
            Ok(warnings) => {
                for w in warnings.iter().filter(|_| warn) {
                    report.warning(&self.section.locate(w.field), w.text.as_str(), "");
                }
                true
            }
            Err(fault) => {
                let remedy = format!("write {}", fault.remedy);
                report.error(&self.section.locate(fault.field), fault.problem, remedy);
                false
            }
        }
    }
}

/// The table that names one of `entries` under `key`.
fn open<'d, 'r, M>(
    entry: &Entry<'d, 'r>,
    key: &str,
    entries: &[registry::Entry<M>],
) -> Option<Section<'d, 'r>> {
    entry.open(&format!("{{ {key} = \"{}\", … }}", entries.first().map_or("", |e| e.name)))
}

/// Reads the mechanism that `key` names out of `entries`; `others` are keys that are no parameters.
fn read<'d, 'r, M>(
    section: &Section<'d, 'r>,
    (key, what): (&'static str, &str),
    others: &[&'static str],
    entries: &[registry::Entry<M>],
) -> Option<Found<'d, 'r, M>> {
    let first = entries.first().map_or("", |e| e.name);
    let word = section.need(key, &format!("\"{first}\""))?;
    let name = word.text(&format!("\"{first}\""))?;
    let Some(known) = entries.iter().find(|e| e.name == name) else {
        let names: Vec<&str> = entries.iter().map(|e| e.name).collect();
        return word.wrong(Wrong::new(format!("there is no such {what}"), suggest(name, &names)));
    };
    let mut keys = vec![key];
    keys.extend(others);
    section.refuse_unknown(&mechanism::known(&keys, known.fields));
    let values = mechanism::read(section, known.fields)?;
    refuse_haste(section, "", &values)?;
    let mechanism = Mechanism { name: known.name, values, fields: known.fields, build: known.build };
    Some(Found { mechanism, check: known.check, section: section.clone() })
}

/// Refuses intervals so short that a run would be nothing but them.
fn refuse_haste(section: &Section<'_, '_>, prefix: &str, values: &Values) -> Option<()> {
    for (name, value) in &values.0 {
        match value {
            Value::Duration(d) if *d > Duration::ZERO && *d < SHORTEST => {
                let place = section.locate(&format!("{prefix}{name}"));
                section.report().error(&place, "is shorter than 1 us", "write \"1 us\" or more");
                return None;
            }
            Value::Group(inner) => refuse_haste(section, &format!("{prefix}{name}."), inner)?,
            _ => {}
        }
    }
    Some(())
}

/// Reads `marker = { kind = …, … }`.
pub(crate) fn marker<'d, 'r>(
    entry: &Entry<'d, 'r>,
    scope: Scope<'_>,
) -> Option<Found<'d, 'r, registry::AnyMarker>> {
    let section = open(entry, "kind", &scope.registry.markers)?;
    read(&section, ("kind", "marker"), &[], &scope.registry.markers)
}

/// Reads `traffic = { kind = …, … }`.
pub(crate) fn traffic(entry: &Entry<'_, '_>) -> Option<Mechanism<Traffic>> {
    let section = open(entry, "kind", traffic::KINDS)?;
    let found = read(&section, ("kind", "traffic"), &[], traffic::KINDS)?;
    found.fits(&traffic::nowhere(), true).then_some(found.mechanism)
}

/// Reads `queue = { aqm = …, limit = …, … }` before a link of this rate.
pub(crate) fn queue(entry: &Entry<'_, '_>, scope: Scope<'_>, rate: Option<Rate>) -> Option<Queue> {
    queue_in(&open(entry, "aqm", &scope.registry.aqms)?, &["limit"], scope, rate)
}

/// Reads the discipline and limit of a queue that leaves at this rate out of a table; `others` are keys that are no
/// parameters of the discipline.
pub(crate) fn queue_in(
    section: &Section<'_, '_>,
    others: &[&'static str],
    scope: Scope<'_>,
    rate: Option<Rate>,
) -> Option<Queue> {
    let found = read(section, ("aqm", "queue discipline"), others, &scope.registry.aqms);
    let limit_entry = section.need("limit", "\"100 packets\"");
    let limit = limit_entry.as_ref().and_then(|e| limit(e, rate, scope.tcp));
    let (mut found, limit, tcp) = (found?, limit?, scope.tcp?);
    if section.get("limit_rule").is_none() {
        follow_ns2(&mut found.mechanism.values, limit, tcp);
    }
    let context = Context { link_rate: Some(rate?), contract: None, packet: packet(tcp), limit: Some(limit) };
    found.fits(&context, true).then_some(Queue { aqm: found.mechanism, limit })
}

/// A drop-tail queue before a link of this rate, where only a limit can be given; without one there is room for all.
pub(crate) fn drop_tail(
    given: Option<&Entry<'_, '_>>,
    scope: Scope<'_>,
    rate: Option<Rate>,
    tcp: Option<&tcp::Config>,
) -> Option<Queue> {
    let limit = match given {
        Some(entry) => limit(entry, rate, tcp)?,
        None => AMPLE,
    };
    let known = scope.registry.aqms.iter().find(|e| e.name == "drop_tail")?;
    let mut values = mechanism::defaults(known.fields)?;
    follow_ns2(&mut values, limit, tcp?);
    let context = Context { link_rate: rate, contract: None, packet: packet(tcp?), limit: Some(limit) };
    match ((known.check)(&values, &context), given) {
        (Err(fault), Some(entry)) => {
            entry.wrong(Wrong::new(fault.problem, format!("write {}", fault.remedy)))
        }
        _ => Some(Queue {
            aqm: Mechanism { name: known.name, values, fields: known.fields, build: known.build },
            limit,
        }),
    }
}

/// Under ns-2's TCP profile a limit in packets is read as ns-2 reads it, unless the file says otherwise.
fn follow_ns2(values: &mut Values, limit: Backlog, tcp: &tcp::Config) {
    if tcp.profile == Profile::Ns2 && matches!(limit, Backlog::Packets(_)) {
        for (name, value) in &mut values.0 {
            if *name == "limit_rule" {
                *value = Value::Choice("ns2");
            }
        }
    }
}

/// A queue's limit: whole packets or bytes, room for at least one packet, and drained in finite time.
pub(crate) fn limit(entry: &Entry<'_, '_>, rate: Option<Rate>, tcp: Option<&tcp::Config>) -> Option<Backlog> {
    let limit = entry.backlog()?;
    match limit {
        Backlog::Packets(n) if n < 1.0 => {
            return entry.wrong(Wrong::new(
                "a queue that holds no packet drops everything that has to wait",
                "write at least \"1 packets\"",
            ));
        }
        Backlog::Packets(n) if n.fract() != 0.0 => {
            return entry.wrong(Wrong::new("a limit is a whole number of packets", "write \"100 packets\""));
        }
        _ if limit.amount() > LARGEST_LIMIT => {
            return entry
                .wrong(Wrong::new("more than a queue can hold", "write at most \"1000000000 packets\""));
        }
        _ => {}
    }
    let packet = packet(tcp?);
    if let Backlog::Bytes(b) = limit
        && b < packet.0 as f64
    {
        return entry.wrong(Wrong::new(
            format!("less than a full packet of {packet}: every full packet that has to wait is dropped"),
            format!("write at least \"{packet}\""),
        ));
    }
    let rate = rate?;
    let drain = limit.bytes(packet) * 8.0 / rate.0 as f64;
    if drain > SLOWEST_DRAIN {
        return entry.wrong(Wrong::new(
            format!("a full queue would take {drain:.0} s to drain at {rate}"),
            format!("write a limit that drains within {SLOWEST_DRAIN:.0} s"),
        ));
    }
    Some(limit)
}

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

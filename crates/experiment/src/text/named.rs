//! Mechanisms by name: an entry of the registry, what its parameters were set to, and whether they fit their place.

use inprofile_core::params::{Check, Context, Fault, Field, Make, Value, Values, Warning};
use inprofile_core::registry;
use inprofile_core::units::{Backlog, Bytes, Duration, Rate};
use serde_json::{Value as Json, json};

use crate::text::mechanism;
use crate::text::nearest::suggest;
use crate::text::problem::Wrong;
use crate::text::section::{Entry, Section};
use crate::text::show;

/// The shortest interval at which a mechanism may repeat something: a run has to come to an end.
const SHORTEST_INTERVAL: Duration = Duration::from_micros(1);
/// The longest a full queue may take to drain, in seconds, so that times fit into 64 bits.
const SLOWEST_DRAIN: f64 = 1e6;
/// The most packets or bytes a queue may be allowed to hold.
const LARGEST_LIMIT: f64 = 1e9;

/// A mechanism and what it was given.
pub struct Mechanism<M: 'static> {
    /// Its name in the registry.
    pub name: &'static str,
    /// The operator's settings, defaults filled in.
    pub values: Values,
    /// All its parameters.
    pub fields: &'static [Field],
    /// Makes one.
    pub build: Make<M>,
}

impl<M> std::fmt::Debug for Mechanism<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(self.name).field("values", &self.values).finish()
    }
}

// Not derived: that would require the mechanism itself to be Clone.
impl<M> Clone for Mechanism<M> {
    fn clone(&self) -> Mechanism<M> {
        Mechanism { name: self.name, values: self.values.clone(), fields: self.fields, build: self.build }
    }
}

impl<M> Mechanism<M> {
    /// Its name under `key`, and its parameters beside it; see [`show::values`].
    #[must_use]
    pub fn show(&self, key: &str, packet: Bytes, rate: Option<Rate>) -> Json {
        let mut out = show::values(&self.values, packet, rate);
        // A default that follows from the mechanism's place is described in words.
        for field in self.fields.iter().filter(|f| self.values.get(f.name).is_none()) {
            out[field.name] = json!(show::derived(field));
        }
        out[key] = json!(self.name);
        out
    }
}

/// A mechanism that was read, and the table it was read from.
pub struct ParsedMechanism<'d, 'r, M: 'static> {
    /// The mechanism.
    pub mechanism: Mechanism<M>,
    check: Check,
    section: Section<'d, 'r>,
}

impl<M> std::fmt::Debug for ParsedMechanism<'_, '_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.mechanism.fmt(f)
    }
}

impl<M> ParsedMechanism<'_, '_, M> {
    /// The warnings of its check, which are not reported here.
    ///
    /// # Errors
    /// Why it cannot be used there.
    pub fn judge(&self, context: &Context) -> Result<Vec<Warning>, Fault> {
        (self.check)(&self.mechanism.values, context)
    }

    /// Warns of what is a fault for some only.
    pub fn warn_of(&self, fault: Fault, whom: &str) {
        let problem = format!("for {whom}: {}", fault.problem);
        self.section.report().warning(
            &self.section.locate(fault.field),
            problem,
            format!("write {}", fault.remedy),
        );
    }

    /// Whether the mechanism can be used at this place; if not, the reason is reported. Its warnings are too, if `warn`.
    #[must_use]
    pub fn fits(&self, context: &Context, warn: bool) -> bool {
        let report = self.section.report();
        match self.judge(context) {
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
#[must_use]
pub fn open<'d, 'r, M>(
    entry: &Entry<'d, 'r>,
    key: &str,
    entries: &[registry::Entry<M>],
) -> Option<Section<'d, 'r>> {
    entry.open(&format!("{{ {key} = \"{}\", … }}", entries.first().map_or("", |e| e.name)))
}

/// Reads the mechanism that `key` names out of `entries`; `others` are keys that are no parameters.
/// `None` if anything was reported.
#[must_use]
pub fn read<'d, 'r, M>(
    section: &Section<'d, 'r>,
    (key, what): (&'static str, &str),
    others: &[&'static str],
    entries: &[registry::Entry<M>],
) -> Option<ParsedMechanism<'d, 'r, M>> {
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
    reject_tiny_intervals(section, "", &values)?;
    let mechanism = Mechanism { name: known.name, values, fields: known.fields, build: known.build };
    Some(ParsedMechanism { mechanism, check: known.check, section: section.clone() })
}

/// Refuses intervals so short that a run would do nothing but repeat them.
fn reject_tiny_intervals(section: &Section<'_, '_>, prefix: &str, values: &Values) -> Option<()> {
    for (name, value) in &values.0 {
        match value {
            Value::Duration(d) if *d > Duration::ZERO && *d < SHORTEST_INTERVAL => {
                let place = section.locate(&format!("{prefix}{name}"));
                section.report().error(&place, "is shorter than 1 us", "write \"1 us\" or more");
                return None;
            }
            Value::Group(inner) => reject_tiny_intervals(section, &format!("{prefix}{name}."), inner)?,
            _ => {}
        }
    }
    Some(())
}

/// A queue's limit: whole packets or bytes, room for at least one packet, and drained in finite time.
/// `None` also where `rate`, at which it leaves, or the size of a full `packet` is not known.
#[must_use]
pub fn limit(entry: &Entry<'_, '_>, rate: Option<Rate>, packet: Option<Bytes>) -> Option<Backlog> {
    let limit = entry.backlog()?;
    match limit {
        Backlog::Packets(n) if n < 1.0 => {
            return entry.wrong(Wrong::new(
                "a queue that holds no packet drops every packet that has to wait",
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
    let packet = packet?;
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

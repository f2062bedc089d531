//! `services` of a customer: classes that it has bought in addition to its assured packets, each with a policed rate.
//!
//! Packets beyond that rate are dropped, as RFC 3246 §4 asks of an edge: expedited forwarding has low delay only while less
//! arrives than is served.

use inprofile_core::units::Bytes;
use inprofile_experiment::text::Section;
use inprofile_experiment::text::problem::Wrong;

use super::Class;
use super::frames::{self, Policing};

/// A class that a customer has bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its place among the direction's.
    pub class: usize,
    /// How much of it.
    pub police: Policing,
}

/// Reads those of one customer; `classes` are the direction's.
pub(super) fn read(table: &Section<'_, '_>, classes: &[Class], packet: Bytes) -> Option<Vec<Service>> {
    let Some(entry) = table.get("services") else { return Some(Vec::new()) };
    let example = "[{ class = \"voice\", rate = \"1 Mbit/s\", burst = \"15 kB\" }]";
    let mut services: Vec<Service> = Vec::new();
    let mut whole = true;
    for one in &entry.tables(example)? {
        match service(one, classes, packet, &services) {
            Some(service) => services.push(service),
            None => whole = false,
        }
    }
    whole.then_some(services)
}

fn service(table: &Section<'_, '_>, classes: &[Class], packet: Bytes, seen: &[Service]) -> Option<Service> {
    table.refuse_unknown(&["class", "rate", "burst"]);
    let police = frames::policing(table, Some(packet));
    let entry = table.need("class", "\"voice\"")?;
    let name = entry.text("\"voice\"")?;
    // Only classes with code points of their own can be asked for.
    let Some(class) = classes.iter().position(|c| c.name == name && !c.dscp.is_empty()) else {
        let known: Vec<&str> =
            classes.iter().filter(|c| !c.dscp.is_empty()).map(|c| c.name.as_str()).collect();
        let remedy = match known.as_slice() {
            [] => "add it to this direction's classes".to_owned(),
            known => format!("write one of {}", known.join(", ")),
        };
        return entry.wrong(Wrong::new("there is no such class", remedy));
    };
    if seen.iter().any(|s| s.class == class) {
        return entry.wrong(Wrong::new("this class is bought twice", "leave one out, or add the rates up"));
    }
    Some(Service { class, police: police? })
}

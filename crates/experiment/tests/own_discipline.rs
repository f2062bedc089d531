//! A discipline of one's own, without a change to any crate: the example of docs/guides/mechanism.md.

use std::sync::atomic::AtomicBool;

use inprofile_core::aqm::{Aqm, At};
use inprofile_core::mechanism::{Gauge, Mechanism};
use inprofile_core::packet::Packet;
use inprofile_core::params::{Build, Context, Params as _};
use inprofile_core::queue::Queue;
use inprofile_core::registry::{AnyAqm, Entry, Registry};
use inprofile_core::units::{Duration, Time};
use inprofile_core::verdict::{Admission, Cause, Departure, Why};
use inprofile_experiment::Scenario;

// [law]
inprofile_core::params! {
    /// The operator's settings.
    pub struct Params {
        /// The longest that a packet may have waited when its turn comes.
        most: Duration = Duration::from_millis(20);
    }
}

/// Drops a packet whose turn comes after it has waited for longer than `most`.
pub struct Stale {
    most: Duration,
}

impl Build for Params {
    type Mechanism = Stale;

    fn build(&self, _: &Context) -> Stale {
        Stale { most: self.most }
    }
}

impl Mechanism for Stale {
    fn gauges(&self, _: Time, show: Gauge<'_>) {
        show("most", self.most.secs());
    }
}

impl Aqm for Stale {
    // It decides at departure, so the queue has to be served packet by packet.
    fn serves(&self) -> bool {
        true
    }

    fn arrive(&mut self, packet: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Admission {
        if at.queue.fits(packet.size) { Admission::Admit } else { Admission::Drop(Cause::OVERFLOW) }
    }

    fn depart(&mut self, _: &Packet, at: At<'_, impl Queue + ?Sized, impl Why + ?Sized>) -> Departure {
        let waited = at.now - at.since;
        at.why.note("sojourn", waited.secs());
        if waited > self.most { Departure::Drop(Cause::named("early")) } else { Departure::Send }
    }
}
// [/law]

// [registry]
fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.aqms.push(Entry {
        name: "stale",
        summary: "Drops what has waited for too long.",
        source: "docs/guides/mechanism.md",
        fields: Params::FIELDS,
        check: &|values, context| Params::from_values(values).check(context),
        build: &|values, context| AnyAqm::Custom(Box::new(Params::from_values(values).build(context))),
    });
    registry
}
// [/registry]

const FILE: &str = r#"
title    = "A discipline of one's own"
duration = "20 s"

[[links]]
name  = "bottleneck"
from  = "edge"
to    = "server"
rate  = "1 Mbit/s"
delay = "10 ms"
queue = { aqm = "stale", limit = "200 packets", most = "100 ms" }

[[flows]]
name  = "tcp"
count = 4
from  = "H*"
join  = { node = "edge", rate = "100 Mbit/s" }
to    = "server"
rtt   = "40 ms"
"#;

// [test]
#[test]
fn no_packet_is_sent_that_has_waited_for_longer() {
    let scenario = Scenario::parse(FILE, "own.toml", &[], &registry()).unwrap_or_else(|e| panic!("{e:?}"));
    let outcome =
        inprofile_sim::engine::run(scenario.network(1, true), &AtomicBool::new(false), None).unwrap();
    let waited: Vec<f64> = outcome
        .verdicts
        .iter()
        .filter(|verdict| verdict.verdict == "drop")
        .flat_map(|verdict| verdict.why.iter().filter(|(name, _)| *name == "sojourn").map(|(_, s)| *s))
        .collect();
    assert!(waited.len() > 10 && waited.iter().all(|s| *s > 0.1), "{waited:?}");
    let metrics = scenario.metrics(&outcome);
    let value = |name| metrics.iter().find(|m| m.name == name).unwrap().value;
    assert_eq!(value("drops"), waited.len() as f64);
    assert!(value("delay_mean") < 0.1 && value("utilisation") > 0.9);
}
// [/test]

#[test]
fn a_setting_that_is_unknown_is_refused_with_those_there_are() {
    let wrong = FILE.replace("most =", "mots =");
    let problems = Scenario::parse(&wrong, "own.toml", &[], &registry()).err().unwrap();
    let said = format!("{problems:?}");
    assert!(said.contains("mots") && said.contains("most"), "{said}");
}

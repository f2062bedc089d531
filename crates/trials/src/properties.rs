//! The properties that must hold whatever a mechanism decides and however it is set.

use std::sync::atomic::AtomicBool;

use inprofile_core::mechanism::Mechanism;
use inprofile_core::packet::{Direction, FlowId, Kind, Packet};
use inprofile_core::params::{Make, Values};
use inprofile_core::registry::{AnyAqm, AnyMarker, Entry, Registry};
use inprofile_core::rng::Rng;
use inprofile_core::signal::Outbox;
use inprofile_core::units::{Duration, Time};
use inprofile_sim::engine;
use inprofile_sim::network::Network;
use inprofile_sim::outcome::Outcome;

use crate::find;
use crate::parity::{Before, Pair};
use crate::settings::{Setting, built, context, drawn, settings};

/// So many settings are drawn; those that `check` refuses count too.
const DRAWN: u64 = 40;

/// Properties of a marker.
///
/// # Panics
/// If one does not hold.
pub fn marker(entry: &Entry<AnyMarker>) {
    let ours = Registry::default();
    let pair = |setting| Pair { marker: entry, before: Before::One(find(&ours.aqms, "rio")), setting };
    for setting in settings(entry) {
        sees_what_it_says(entry.name, &mut *built(entry, setting).expect("it fits"));
        holds(&format!("{}, {setting:?}", entry.name), &|trace| pair(setting).network(2, trace));
    }
    any(entry, &|values, build, trace| {
        let mut network = pair(Setting::Middle).network(3, trace);
        network.edges[0].marker = build(values, &context());
        network
    });
}

/// Properties of a discipline.
///
/// # Panics
/// If one does not hold.
pub fn discipline(entry: &Entry<AnyAqm>) {
    let ours = Registry::default();
    let pair =
        |setting, entry| Pair { marker: find(&ours.markers, "ard"), before: Before::One(entry), setting };
    for setting in settings(entry) {
        let mut aqm = built(entry, setting).expect("it fits");
        let ticks = aqm.tick(Time(0), &mut Outbox::default()).is_some() || aqm.oracle().is_some();
        assert!(
            !ticks || aqm.keeps_time(),
            "{}: it ticks or asks an oracle, and does not say so: fn keeps_time",
            entry.name
        );
        sees_what_it_says(entry.name, &mut *aqm);
        holds(&format!("{}, {setting:?}", entry.name), &|trace| pair(setting, entry).network(2, trace));
    }
    let drop_tail = find(&ours.aqms, "drop_tail");
    any(entry, &|values, build, trace| {
        let mut network = pair(Setting::Middle, drop_tail).network(3, trace);
        network.links[0].queue = inprofile_sim::network::Queue::One {
            aqm: build(values, &context()),
            limit: crate::settings::QUEUE,
        };
        network
    });
}

/// One that learns from acknowledgements says so; it would not be shown any otherwise.
fn sees_what_it_says(name: &str, mechanism: &mut dyn Mechanism) {
    let shown = |m: &dyn Mechanism| {
        let mut all = Vec::new();
        m.gauges(Time(0), &mut |name, x| all.push(format!("{name} {x}")));
        m.flow_gauges(Time(0), &mut |flow, name, x| all.push(format!("{flow:?} {name} {x}")));
        m.stats(&mut |name, n| all.push(format!("{name} {n}")));
        all
    };
    let before = shown(mechanism);
    for flow in 0..3 {
        let ack =
            Packet { flow: FlowId(flow), ack: 1000 * flow, kind: Kind::Ack, size: 40, ..Packet::default() };
        mechanism.observe(Time(0), &ack, Direction::Reverse);
    }
    let saw = shown(mechanism) != before;
    assert!(
        !saw || mechanism.sees_reverse(),
        "{name}: it looks at acknowledgements, and does not say so: fn sees_reverse"
    );
}

/// Any setting that is accepted.
fn any<M>(entry: &Entry<M>, network: &dyn Fn(&Values, Make<M>, bool) -> Network) {
    for number in 0..DRAWN {
        let values = drawn(entry.fields, &mut Rng::for_component(number, entry.name));
        if (entry.check)(&values, &context()).is_err() {
            continue;
        }
        holds(&format!("{}, {values:?}", entry.name), &|trace| {
            let mut network = network(&values, entry.build, trace);
            network.duration = Duration::from_millis(1_500);
            network
        });
    }
}

/// Runs it three times: twice as it is, and once stepped with every verdict recorded.
fn holds(what: &str, network: &dyn Fn(bool) -> Network) {
    let run = |trace| -> Outcome {
        // That packets are conserved, the engine checks itself.
        engine::run(network(trace), &AtomicBool::new(false), None).unwrap_or_else(|e| panic!("{what}: {e}"))
    };
    let marks = match &network(false).links[0].queue {
        inprofile_sim::network::Queue::One { aqm, .. } => aqm.marks(),
        inprofile_sim::network::Queue::Scheduled(_) => true,
    };
    let (computed, again, stepped) = (run(false), run(false), run(true));
    assert!(marks || computed.links[0].total.marked == [0; 3], "{what}: it marks, and says that it doesn't");
    // By text: a figure that is not a number is unlike itself.
    assert_eq!(format!("{computed:?}"), format!("{again:?}"), "{what}: equal seeds differ");
    assert_eq!(computed.flows, stepped.flows, "{what}: a link computed ahead and one that is stepped differ");
    assert_eq!(computed.drops, stepped.drops, "{what}: a link computed ahead and one that is stepped differ");
    assert_eq!(computed.edges, stepped.edges, "{what}: a link computed ahead and one that is stepped differ");
    assert!(stepped.verdicts.windows(2).all(|w| w[0].at <= w[1].at), "{what}: time ran back");
    for verdict in &stepped.verdicts {
        for (name, value) in &verdict.why {
            assert!(!value.is_nan(), "{what}: {name} of a verdict is not a number");
        }
    }
    for (name, value) in computed.edges.iter().flat_map(|m| &m.gauges) {
        assert!(!value.is_nan(), "{what}: the gauge {name} is not a number");
    }
}

//! A snapshot in the making: a slice of the customers at a time, so that packets wait no longer for it where there are ten thousand.
//!
//! Totals and shared classes are those of its beginning, a customer's those of his slice; what adds up does so within each. Names
//! come from the configuration, and are filled in by whoever asked. Non-goal: all customers at one moment.

use std::collections::HashMap;
use std::sync::Arc;

use inprofile_core::units::Time;
use inprofile_live::datapath::{ClassState as PathClass, Refusal};

use super::{ClassState, DirectionState, MarkerState, PortState, Snapshot};
use crate::config::{Config, DIRECTIONS};
use crate::policers;
use crate::router::{Lane, Router};

/// Customers of a slice.
const SLICE: usize = 128;

/// A snapshot that is being built.
#[derive(Debug)]
pub struct Builder {
    snapshot: Box<Snapshot>,
    direction: usize,
    /// The place, and the number of the marker, that comes next.
    next: usize,
}

impl Builder {
    /// All but customers, their queues and markers.
    #[must_use]
    pub fn begin(router: &Router, now: Time, bypass: bool, ports: [PortState; 2]) -> Builder {
        let directions = router.lanes.iter().zip(DIRECTIONS).map(|(lane, name)| shared(lane, name, now));
        let snapshot = Snapshot {
            uptime: now.secs(),
            bypass,
            failure: router.failure.clone(),
            since_failure: router.since_failure.iter().sum(),
            ports,
            directions: directions.collect(),
            config: Arc::clone(&router.config),
        };
        Builder { snapshot: Box::new(snapshot), direction: 0, next: 0 }
    }

    /// A slice more; whether that was the last. If the router was reconfigured meanwhile it starts over.
    pub fn go_on(&mut self, router: &Router, now: Time) -> bool {
        if !Arc::ptr_eq(&self.snapshot.config, &router.config) {
            let Snapshot { bypass, ports, .. } = &*self.snapshot;
            *self = Builder::begin(router, now, *bypass, ports.clone());
        }
        let Some(lane) = router.lanes.get(self.direction) else { return true };
        let (path, state) = (&lane.path, &mut self.snapshot.directions[self.direction]);
        let until = self.next + SLICE;
        let slice = |len: usize| self.next.min(len)..until.min(len);
        let (places, numbers) = (slice(path.customers().len()), slice(path.markers().len()));
        for place in places.clone() {
            let classes = unnamed(path.classes_of(place as u32), now);
            if !classes.is_empty() {
                state.own_queues.push((place as u32, classes));
            }
        }
        state.by_place.extend_from_slice(&path.customers()[places]);
        state.markers.extend(path.markers()[numbers].iter().map(|m| MarkerState {
            name: String::new(),
            kind: "",
            counts: m.counts(),
            gauges: gather(|show| m.marker.gauges(now, show)),
            stats: gather(|show| m.marker.stats(show)),
        }));
        self.next = until;
        if until >= path.customers().len().max(path.markers().len()) {
            (self.direction, self.next) = (self.direction + 1, 0);
        }
        self.direction == router.lanes.len()
    }

    /// Customers there are already.
    #[must_use]
    pub fn customers(&self) -> usize {
        self.snapshot.directions.iter().map(|d| d.by_place.len()).sum()
    }

    /// The selection asked for, without names.
    #[must_use]
    pub fn finish(self) -> Box<Snapshot> {
        self.snapshot
    }
}

impl Snapshot {
    /// Taken at once, with names: where no packets wait for it.
    #[must_use]
    pub fn of(router: &Router, now: Time, bypass: bool, ports: [PortState; 2]) -> Snapshot {
        let mut building = Builder::begin(router, now, bypass, ports);
        while !building.go_on(router, now) {}
        let mut snapshot = *building.finish();
        snapshot.name_all();
        snapshot
    }

    /// Gives queues and markers the names they have in the file.
    pub fn name_all(&mut self) {
        let config = Arc::clone(&self.config);
        for (i, state) in self.directions.iter_mut().enumerate() {
            name(state, &config, i);
        }
    }
}

fn name(state: &mut DirectionState, config: &Config, i: usize) {
    let Some(d) = &config.directions[i] else {
        state.classes.iter_mut().for_each(|c| c.name = "transparent".to_owned());
        return;
    };
    state.classes.iter_mut().zip(&d.classes).for_each(|(state, c)| state.name.clone_from(&c.name));
    let customers = d.customers.iter().map(|c| (c.name.clone(), c.marker.name));
    let aggregate = d.aggregate.as_ref().map(|m| ("aggregate".to_owned(), m.name));
    let all = customers.chain(aggregate).chain(policers::of(d).map(|p| (p.name, "policer")));
    state.markers.iter_mut().zip(all).for_each(|(m, (name, kind))| (m.name, m.kind) = (name, kind));
    let own: HashMap<u32, _> = d.customers.iter().filter_map(|c| Some((c.place, c.own.as_ref()?))).collect();
    // Packets still queued for a customer who was removed are reported under no name.
    state.own_queues.retain_mut(|(place, classes)| {
        own.get(place).is_some_and(|own| {
            classes.iter_mut().zip(&own.classes).for_each(|(state, (_, c))| state.name.clone_from(&c.name));
            true
        })
    });
}

/// The settings shared by a direction's customers.
fn shared(lane: &Lane, name: &'static str, now: Time) -> DirectionState {
    let path = &lane.path;
    let totals = path.totals();
    DirectionState {
        name,
        came: totals.came,
        passed: totals.passed,
        bypassed: path.policy.bypassed(),
        refused: totals.refused,
        refusals: Refusal::NAMES.into_iter().zip(totals.refusals).collect(),
        marker_dropped: totals.marker_dropped,
        policed: totals.policed,
        too_late: totals.too_late,
        length_disagrees: totals.length_disagrees,
        no_buffer: totals.no_buffer,
        sent: totals.sent,
        dropped: totals.queue_dropped,
        waiting: path.waiting(),
        by_place: Vec::with_capacity(path.customers().len()),
        own_queues: Vec::new(),
        amiss: path.check_totals().err(),
        census: path.census().iter().collect(),
        control_excess: path.policy.control_excess().collect(),
        fragments_without_first: path.policy.fragments_without_first(),
        classes: unnamed(path.classes(), now),
        markers: Vec::with_capacity(path.markers().len()),
        lateness: lane.lateness,
        flows: path.policy.flows().len(),
        flows_replaced: path.policy.flows().replaced(),
    }
}

/// Queues as they are shown, but for their names.
fn unnamed<'c>(states: impl Iterator<Item = PathClass<'c>>, now: Time) -> Vec<ClassState> {
    let each = states.map(|c| ClassState {
        name: String::new(),
        counts: *c.counts(),
        waiting: c.waiting(),
        gauges: gather(|show| c.aqm().gauges(now, show)),
        stats: gather(|show| c.aqm().show_counts(c.counts(), show)),
    });
    each.collect()
}

/// The gauges and statistics of a mechanism, as a list.
fn gather<T>(show: impl FnOnce(&mut dyn FnMut(&'static str, T))) -> Vec<(&'static str, T)> {
    let mut all = Vec::new();
    show(&mut |name, value| all.push((name, value)));
    all
}

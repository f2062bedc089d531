//! A reload: everything that takes time is prepared outside the packet thread, which then switches over at once.

use std::collections::HashMap;
use std::sync::Arc;

use inprofile_core::params::Context;
use inprofile_core::queue::priority::Priority;
use inprofile_core::queue::scheduled::{Migration, Setup};
use inprofile_core::registry::AnyScheduler;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Time};
use inprofile_experiment::text::named::Mechanism;
use inprofile_experiment::text::show;
use inprofile_live::datapath::Parts;
use inprofile_live::datapath::marker::Marking;
use inprofile_live::packet::Layer;

use super::Lane;
use crate::config::{Class, Config, Direction};
use crate::policers;
use crate::policy::{NextRules, Rules};

/// Whatever limits say, no more packets than this wait in one direction.
const MOST_BUFFERS: usize = 1 << 20;

/// The next state of a router.
#[derive(Debug)]
pub struct Next {
    pub(super) config: Arc<Config>,
    pub(super) lanes: Vec<NextLane>,
}

/// The next state of one direction.
#[derive(Debug)]
pub(super) struct NextLane {
    rules: NextRules,
    parts: Parts,
    origins: Vec<Comes>,
    migrations: Vec<Migration>,
    sees_reverse: bool,
}

/// Values no longer used, to be dropped where nobody waits for it.
#[derive(Debug)]
pub struct Unused {
    _config: Arc<Config>,
    rules: Vec<Option<Rules>>,
    markers: Vec<Vec<Option<Marking>>>,
}

impl Unused {
    pub(super) fn of(config: Arc<Config>) -> Unused {
        Unused { _config: config, rules: Vec::new(), markers: Vec::new() }
    }
}

impl Next {
    /// Prepares what a router of the configuration `old` becomes by `new`.
    #[must_use]
    pub fn prepare(old: &Config, mut new: Config, layer: Layer, seed: u64) -> Next {
        for (direction, before) in new.directions.iter_mut().zip(&old.directions) {
            if let Some(direction) = direction {
                direction.keep_places(before.as_ref());
            }
        }
        let lanes = (0..2).map(|i| {
            let (was, is) = (old.directions[i].as_ref(), new.directions[i].as_ref());
            let markers = Vec::from_iter(is.into_iter().flat_map(|d| markers(d, &new, seed)));
            let (parts, sees_reverse) = parts(is, &new, layer, seed, markers, Some((was, old)));
            let (origins, migrations) = (origins(was, old, is, &new), migrations(was, old, is, &new));
            NextLane { rules: NextRules::of(was, is, i == 0, &new), parts, origins, migrations, sees_reverse }
        });
        let lanes = lanes.collect();
        Next { config: Arc::new(new), lanes }
    }
}

impl NextLane {
    pub(super) fn adopt(mut self, mut lane: Lane, now: Time, unused: &mut Unused) -> Lane {
        let mut old: Vec<Option<Marking>> = lane.path.take_markers().into_iter().map(Some).collect();
        let mut take = |i: usize| old.get_mut(i).and_then(Option::take);
        let fresh = std::mem::take(&mut self.parts.markers);
        self.parts.markers = Vec::with_capacity(fresh.len());
        for (new, comes) in fresh.into_iter().zip(self.origins) {
            self.parts.markers.push(match comes {
                Comes::Same(i) => take(i).unwrap_or(new),
                Comes::Changed(i) => match take(i) {
                    Some(marking) => marking.replaced(new.marker, now),
                    None => new.starting(now),
                },
                Comes::New => new.starting(now),
            });
        }
        let (policy, rules) = lane.path.policy.succeeded_by(self.rules, now);
        unused.rules.push(rules);
        unused.markers.push(old);
        let path = lane.path.reconfigure(policy, self.parts, &self.migrations, now);
        Lane { path, sees_reverse: self.sees_reverse, ..lane }
    }
}

/// A customer's or an aggregate's random stream.
fn stream(seed: u64, name: &str) -> Rng {
    Rng::for_component(seed, &format!("marker {name}"))
}

/// The markers of a direction: its customers' in order, then the aggregate's, then policers. Before their first packet.
pub(super) fn markers(direction: &Direction, config: &Config, seed: u64) -> Vec<Marking> {
    let packet = config.full_packet();
    let of = direction
        .customers
        .iter()
        .map(|c| (&c.marker, direction.place_of_customer(c, packet), c.name.as_str()));
    let all = direction.aggregate.as_ref().map(|m| (m, direction.place_of_aggregate(packet), "aggregate"));
    let markers =
        of.chain(all).map(|(m, place, name)| Marking::new((m.build)(&m.values, &place), stream(seed, name)));
    let policers = policers::of(direction).map(|p| Marking::new(p.build(packet), stream(seed, &p.name)));
    markers.chain(policers).collect()
}

/// The inputs of a mechanism, as a text: equal texts, equal mechanisms.
fn fingerprint<M>(mechanism: &Mechanism<M>, place: &Context) -> String {
    format!("{} {} {place:?}", mechanism.name, show::canonical(&show::all(&mechanism.values, show::base)))
}

/// Where a marker of the new configuration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comes {
    /// Nobody had this name.
    New,
    /// The old one of this number, as it is.
    Same(usize),
    /// The old one of this number had the name, with other settings.
    Changed(usize),
}

/// Where each of a direction's markers comes from.
fn origins(was: Option<&Direction>, old: &Config, is: Option<&Direction>, new: &Config) -> Vec<Comes> {
    let before = was.map_or_else(Vec::new, |d| names(d, old.full_packet()));
    let before: HashMap<&str, (usize, &str)> =
        before.iter().enumerate().map(|(i, (name, print))| (name.as_str(), (i, print.as_str()))).collect();
    let now = is.map_or_else(Vec::new, |d| names(d, new.full_packet()));
    let origin = |(name, print): &(String, String)| match before.get(name.as_str()) {
        Some((i, same)) if same == print => Comes::Same(*i),
        Some((i, _)) => Comes::Changed(*i),
        None => Comes::New,
    };
    now.iter().map(origin).collect()
}

/// Each marker's name, and a text that is equal where it works the same.
fn names(d: &Direction, packet: Bytes) -> Vec<(String, String)> {
    let of = d
        .customers
        .iter()
        .map(|c| (format!("customer {}", c.name), fingerprint(&c.marker, &d.place_of_customer(c, packet))));
    let all =
        d.aggregate.as_ref().map(|m| ("aggregate".to_owned(), fingerprint(m, &d.place_of_aggregate(packet))));
    let policers =
        policers::of(d).map(|p| (format!("policer {}", p.name), format!("{:?} {packet}", p.police)));
    of.chain(all).chain(policers).collect()
}

/// Where packets of each old class go: to the class of the same name; else to the last.
fn migrations(was: Option<&Direction>, old: &Config, is: Option<&Direction>, new: &Config) -> Vec<Migration> {
    let of = |d: &Direction, c: &Class, config: &Config| {
        fingerprint(&c.aqm, &d.place_of(c, config.full_packet())) + &format!(" {:?}", c.rate)
    };
    let Some(was) = was else { return vec![Migration { class: last(is), unchanged: false }] };
    let migration = |c: &Class| {
        let found = is.and_then(|is| is.classes.iter().position(|n| n.name == c.name).map(|i| (is, i)));
        match found {
            Some((is, i)) => {
                Migration { class: i, unchanged: of(is, &is.classes[i], new) == of(was, c, old) }
            }
            None => Migration { class: last(is), unchanged: false },
        }
    };
    was.classes.iter().map(migration).collect()
}

fn last(direction: Option<&Direction>) -> usize {
    direction.map_or(0, |d| d.classes.len() - 1)
}

/// The parts of a datapath, and whether any of its mechanisms observes the reverse direction. Without a direction nothing is
/// ever queued, but for what waited before: that goes at once. `before`: the configuration it takes over from.
pub(super) fn parts(
    direction: Option<&Direction>,
    config: &Config,
    layer: Layer,
    seed: u64,
    markers: Vec<Marking>,
    before: Option<(Option<&Direction>, &Config)>,
) -> (Parts, bool) {
    let packet = config.full_packet();
    let classes = match direction {
        Some(d) => (0..)
            .zip(&d.classes)
            .map(|(number, c)| Setup {
                number,
                limit: c.limit,
                aqm: (c.aqm.build)(&c.aqm.values, &d.place_of(c, packet)),
                rate: c.rate,
                burst: Bytes(0),
            })
            .collect(),
        None => vec![transparent()],
    };
    let own = || direction.into_iter().flat_map(|d| d.customers.iter().flat_map(|c| &c.own));
    let limits = own().flat_map(|own| own.classes.iter().map(|(_, c)| c.limit));
    let promised = buffers(classes.iter().map(|c| c.limit).chain(limits));
    let (mut sharing, of_customers) = queues::sharing(direction, config, before);
    if promised > MOST_BUFFERS {
        sharing.reserved = reserved(own().count());
    }
    let sees_reverse = of_customers
        || markers.iter().any(|m| m.marker.sees_reverse())
        || classes.iter().any(|c| c.aqm.sees_reverse());
    let parts = Parts {
        layer,
        markers,
        buffers: promised.min(MOST_BUFFERS),
        classes,
        sharing,
        scheduler: AnyScheduler::Priority(Priority),
        rng: Rng::for_component(seed, "queue"),
        rate: direction.map_or(inprofile_experiment::text::quantity::FASTEST, |d| d.rate),
        charge: config.charge(),
        age_limit: direction.map(|_| config.frames.age_limit),
    };
    (parts, sees_reverse)
}

/// Room for what the limits allow, in the smallest packets.
fn buffers(limits: impl Iterator<Item = Backlog>) -> usize {
    let of = |limit: Backlog| match limit {
        Backlog::Packets(n) => n as usize,
        Backlog::Bytes(b) => b as usize / 20,
    };
    limits.map(|limit| of(limit).saturating_add(1)).fold(0, usize::saturating_add)
}

/// Of the half that is kept: a quarter each for the shared queues, those with priority and the others; the rest for so many customers'.
fn reserved(customers: usize) -> [u32; 2] {
    let half = MOST_BUFFERS / 2;
    [half / 4, half / 2 / customers.max(1)].map(|places| places as u32)
}

fn transparent() -> Setup {
    let limit = Backlog::Packets(1.0);
    let drop_tail = inprofile_core::aqm::drop_tail::DropTail::default();
    Setup {
        number: 0,
        limit,
        aqm: inprofile_core::registry::AnyAqm::DropTail(drop_tail),
        rate: None,
        burst: Bytes(0),
    }
}

mod queues {
    //! Customers' own queues after a reload: which are new, which are reconfigured, which stay and which are removed.

    use std::collections::HashMap;

    use inprofile_core::params::Context;
    use inprofile_core::queue::hierarchy::{MemberSetup, Shape};
    use inprofile_core::queue::priority::Priority;
    use inprofile_core::queue::scheduled::{Migration, Setup};
    use inprofile_core::registry::AnyScheduler;
    use inprofile_core::units::Bytes;
    use inprofile_live::datapath::{CustomerQueue, Sharing};

    use super::fingerprint;
    use crate::config::{Class, Config, Customer, Direction, Own};

    /// How the link is shared out, and whether a discipline of a customer's looks at what goes the other way.
    pub(super) fn sharing(
        direction: Option<&Direction>,
        config: &Config,
        before: Option<(Option<&Direction>, &Config)>,
    ) -> (Sharing, bool) {
        let old: HashMap<u32, (&Customer, &Direction, Bytes)> = match before {
            Some((Some(d), config)) => {
                d.customers.iter().map(|c| (c.place, (c, d, config.full_packet()))).collect()
            }
            _ => HashMap::new(),
        };
        let Some(d) = direction else {
            let gone = old.values().filter(|(c, ..)| c.own.is_some()).map(|(c, ..)| c.place).collect();
            return (Sharing { gone, level: LAST, ..Sharing::default() }, false);
        };
        let packet = config.full_packet();
        let (mut queues, mut gone, mut new, mut sees_reverse) = (Vec::new(), Vec::new(), Vec::new(), false);
        let mut there = vec![false; d.places()];
        for customer in &d.customers {
            there[customer.place as usize] = true;
            let before = old.get(&customer.place);
            if before.is_none() {
                new.push(customer.place);
            }
            let was = before.and_then(|(c, d, packet)| Some((c.own.as_ref()?, *d, *packet)));
            let Some(own) = &customer.own else {
                gone.extend(was.map(|_| customer.place));
                continue;
            };
            let fingerprints = fingerprints(own, d, packet);
            let setup = setup(own, d, packet);
            sees_reverse |= setup.classes.iter().any(|c| c.aqm.sees_reverse());
            let old_fingerprints =
                was.map(|(own, d, packet)| self::fingerprints(own, d, packet)).unwrap_or_default();
            let unchanged = was.is_some_and(|(was, ..)| {
                (was.rate, was.burst, was.share) == (own.rate, own.burst, own.share)
            });
            if unchanged && old_fingerprints == fingerprints {
                continue;
            }
            let migration = |(name, print): &(String, String)| {
                let found = fingerprints.iter().position(|(n, _)| n == name);
                let unchanged = found.is_some_and(|i| fingerprints[i].1 == *print);
                Migration { class: found.unwrap_or(fingerprints.len() - 1), unchanged }
            };
            let migrations = old_fingerprints.iter().map(migration).collect();
            queues.push(CustomerQueue { place: customer.place, setup, migrations });
        }
        let left = old.values().filter(|(c, ..)| !there.get(c.place as usize).is_some_and(|there| *there));
        gone.extend(left.filter(|(c, ..)| c.own.is_some()).map(|(c, ..)| c.place));
        gone.sort_unstable();
        let (level, quantum) = (d.shared.priority, d.shared.quantum);
        let reserved = [u32::MAX; 2];
        (
            Sharing { first: d.assured, level, quantum, places: d.places(), new, queues, gone, reserved },
            sees_reverse,
        )
    }

    /// Where nothing is done in a direction: what waited goes last.
    const LAST: u8 = inprofile_core::queue::hierarchy::LEVELS as u8 - 1;

    /// Where a class of a customer's is.
    fn place(own: &Own, d: &Direction, class: &Class, packet: Bytes) -> Context {
        let link_rate = Some(class.rate.or(own.rate).unwrap_or(d.rate));
        Context { link_rate, contract: None, packet, limit: Some(class.limit) }
    }

    /// The classes' names, each with a text that is equal where the class works the same.
    fn fingerprints(own: &Own, d: &Direction, packet: Bytes) -> Vec<(String, String)> {
        let of = |c: &Class| fingerprint(&c.aqm, &place(own, d, c, packet)) + &format!(" {:?}", c.rate);
        own.classes.iter().map(|(_, c)| (c.name.clone(), of(c))).collect()
    }

    fn setup(own: &Own, d: &Direction, packet: Bytes) -> MemberSetup {
        let class = |(number, c): &(usize, Class)| Setup {
            number: *number as u8,
            limit: c.limit,
            aqm: (c.aqm.build)(&c.aqm.values, &place(own, d, c, packet)),
            rate: c.rate,
            burst: Bytes(0),
        };
        MemberSetup {
            scheduler: AnyScheduler::Priority(Priority),
            classes: own.classes.iter().map(class).collect(),
            level: own.share.priority,
            quantum: own.share.quantum,
            shape: own.rate.map(|rate| Shape { rate, burst: own.burst }),
        }
    }
}

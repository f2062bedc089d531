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
        let unchanged =
            was.is_some_and(|(was, ..)| (was.rate, was.burst, was.share) == (own.rate, own.burst, own.share));
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

//! From a direction of the file to what its maps hold.

use std::collections::HashMap;
use std::net::IpAddr;

use inprofile_core::marker::{Action, tsw_whole};
use inprofile_core::packet::Colour;
use inprofile_core::params::{Context, Value};
use inprofile_core::units::{Backlog, Bytes, Rate};
use inprofile_live::code_points::Dscp;
use inprofile_live::packet::Control;
use prefix_trie::PrefixMap;

use super::layout::{
    Circuit, CircuitKey, GRAINS, KEEP, Law, NO_SESSION, NO_VLAN, Police, PortKey, PrefixKey, PrefixOwner,
    Queue, Rules, Terms,
};
use super::places::{Places, of_control, of_customer, of_service};
use crate::config::frames::Policing;
use crate::config::role::Role;
use crate::config::{self, Config, Customer, Direction, datapath};

/// All but the accounts themselves.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// One.
    pub rules: Rules,
    /// By account.
    pub terms: Vec<(u32, Terms)>,
    /// Circuits of customers.
    pub circuits: Vec<(CircuitKey, Circuit)>,
    /// Prefixes, with their lengths.
    pub prefixes: Vec<(u32, PrefixKey, PrefixOwner)>,
    /// Owners by port.
    pub owners: Vec<(PortKey, u32)>,
    /// By class.
    pub queues: Vec<(u32, Queue)>,
}

/// Which tables: `bank * 2 + direction`.
pub type Set = u32;

impl Tables {
    /// Those of a direction, for `set`, whose rates are in force from `since` on. The places are of all whom it names.
    #[must_use]
    pub fn of(
        direction: Option<&Direction>,
        config: &Config,
        places: &Places,
        set: Set,
        since: u64,
    ) -> Tables {
        let mut tables = Tables::default();
        let Some(d) = direction else { return tables };
        let place = |name: &str| places.get(name).unwrap_or(u32::MAX);
        tables.rules = rules(d, config, set & 1 == 0);
        for (i, class) in (0u32..).zip(&d.classes) {
            if let Some(settings) = datapath::virtual_queue(class, config.full_packet()) {
                tables.rules.queued |= 1 << i;
                tables.queues.push((i, settings.into()));
            }
        }
        tables.rules.control = place(&of_control(Control::ALL[0]));
        for kind in Control::ALL {
            tables.terms.push((place(&of_control(kind)), policer(d.control, since)));
        }
        for customer in &d.customers {
            let mut terms = Terms { since, ..meter(customer, config.full_packet()) };
            for service in &customer.services {
                let account = place(&of_service(&customer.name, &d.classes[service.class].name));
                tables.terms.push((account, policer(service.police, since)));
                terms.policer[service.class & 15] = account + 1;
            }
            tables.terms.push((place(&of_customer(&customer.name)), terms));
        }
        tables.set_owners(d, places, set);
        tables
    }

    fn set_owners(&mut self, direction: &Direction, places: &Places, set: Set) {
        let mut groups: Vec<(Option<config::Circuit>, Group)> = vec![(None, Group::default())];
        let mut number: HashMap<config::Circuit, usize> = HashMap::new();
        for customer in &direction.customers {
            let owner = places.get(&of_customer(&customer.name)).unwrap_or(u32::MAX) + 1;
            if customer.circuits.is_empty() {
                groups[0].1.add(owner, customer);
            }
            for circuit in &customer.circuits {
                let at = *number.entry(*circuit).or_insert_with(|| {
                    groups.push((Some(*circuit), Group::default()));
                    groups.len() - 1
                });
                groups[at].1.add(owner, customer);
            }
        }
        self.rules.rest = groups[0].1.rest;
        self.rules.circuits = u32::from(groups.len() > 1);
        for (i, (circuit, group)) in (0u32..).zip(&groups) {
            let id = set << 30 | i;
            if let Some(config::Circuit { vlans, session }) = circuit {
                let key = CircuitKey {
                    set,
                    vlan: vlans.map(|v| v.unwrap_or(NO_VLAN)),
                    session: session.map_or(NO_SESSION, u32::from),
                };
                self.circuits.push((key, Circuit { group: id, holder: group.holder() }));
            }
            let v4 = group.v4.each().into_iter().map(|(bits, (address, _), sharers)| {
                let mut bytes = [0; 16];
                bytes[..4].copy_from_slice(&address.to_be_bytes());
                (bits, PrefixKey { group: id, address: bytes }, sharers)
            });
            let v6 = group.v6.each().into_iter().map(|(bits, (address, _), sharers)| {
                (bits, PrefixKey { group: id | 1 << 29, address: address.to_be_bytes() }, sharers)
            });
            for (bits, key, sharers) in v4.chain(v6).collect::<Vec<_>>() {
                let list = self.list(sharers.by_port, set);
                self.prefixes.push((32 + bits, key, PrefixOwner { any: sharers.any, list }));
            }
        }
    }

    /// A list of owners by port; 0: of none.
    fn list(&mut self, by_port: HashMap<u16, u32>, set: Set) -> u32 {
        if by_port.is_empty() {
            return 0;
        }
        let list = set << 30 | (self.owners.len() as u32 + 1);
        self.owners
            .extend(by_port.into_iter().map(|(port, owner)| (PortKey { list, port: port.into() }, owner)));
        list
    }
}

/// The owners of one prefix, with what they inherit from shorter ones.
#[derive(Clone, Debug, Default)]
struct Sharers {
    any: u32,
    by_port: HashMap<u16, u32>,
}

/// Prefixes as they were written, of one family.
#[derive(Clone, Debug)]
struct Written<P>(Vec<(P, Option<u16>, u32)>);

impl<P> Default for Written<P> {
    fn default() -> Written<P> {
        Written(Vec::new())
    }
}

impl<P: prefix_trie::Prefix + Copy + Ord> Written<P> {
    /// Each prefix once, with its owners: the longest that contains an address says all, as a longest-prefix map gives no second one.
    fn each(&self) -> Vec<(u32, P, Sharers)> {
        let mut sorted = self.0.clone();
        sorted.sort_by_key(|(prefix, ..)| (prefix.prefix_len(), *prefix));
        let mut all: PrefixMap<P, Sharers> = PrefixMap::new();
        for same in sorted.chunk_by(|a, b| a.0 == b.0) {
            let prefix = same[0].0;
            let any = same.iter().find(|(_, port, _)| port.is_none()).map(|(.., owner)| *owner);
            let before = all.get_lpm(&prefix).map(|(_, s)| s.clone()).filter(|_| any.is_none());
            let mut sharers = before.unwrap_or_default();
            sharers.any = any.unwrap_or(sharers.any);
            sharers.by_port.extend(same.iter().filter_map(|(_, port, owner)| Some(((*port)?, *owner))));
            all.insert(prefix, sharers);
        }
        all.into_iter().map(|(prefix, sharers)| (u32::from(prefix.prefix_len()), prefix, sharers)).collect()
    }
}

/// The customers of one circuit, or of none.
#[derive(Clone, Debug, Default)]
struct Group {
    v4: Written<(u32, u8)>,
    v6: Written<(u128, u8)>,
    first: u32,
    shared: bool,
    rest: u32,
}

impl Group {
    /// The law of [`Owners`](crate::policy::Owners).
    fn add(&mut self, owner: u32, customer: &Customer) {
        self.shared |= self.first != 0 && self.first != owner;
        if self.first == 0 {
            self.first = owner;
        }
        let everybody = customer.prefixes.is_empty();
        let all = |v4: bool| customer.prefixes.iter().any(|p| p.bits == 0 && p.address.is_ipv4() == v4);
        if customer.ports.is_empty() && (everybody || all(true) && all(false)) && self.rest == 0 {
            self.rest = owner;
        }
        let ports = || {
            let any = customer.ports.is_empty().then_some(None);
            any.into_iter().chain(customer.ports.iter().copied().map(Some))
        };
        for port in ports() {
            if everybody {
                self.v4.0.push(((0, 0), port, owner));
                self.v6.0.push(((0, 0), port, owner));
            }
            for prefix in &customer.prefixes {
                match prefix.address {
                    IpAddr::V4(a) => self.v4.0.push(((a.into(), prefix.bits), port, owner)),
                    IpAddr::V6(a) => self.v6.0.push(((a.into(), prefix.bits), port, owner)),
                }
            }
        }
    }

    fn holder(&self) -> u32 {
        match (self.rest, self.shared) {
            (0, false) => self.first,
            (rest, _) => rest,
        }
    }
}

/// A direction's rules, without its customers.
fn rules(d: &Direction, config: &Config, upstream: bool) -> Rules {
    let best_effort = d.classes.len() as u32 - 1;
    let mut class_of = [best_effort as u8; 64];
    for (i, class) in (0u8..).zip(&d.classes) {
        class.dscp.iter().for_each(|dscp| class_of[usize::from(dscp.value())] = i);
    }
    let all = (0..64).filter_map(Dscp::new);
    let mut becomes = [KEEP; 64];
    all.for_each(|dscp| {
        becomes[usize::from(dscp.value())] = d.unsold.becomes(dscp).map_or(KEEP, Dscp::value);
    });
    let [green, yellow, red] = Colour::ALL.map(|c| config.points.of(c).value());
    Rules {
        configured: 1,
        edge: u32::from(d.role == Role::Edge),
        bleach: d.unsold.bleach.into(),
        drop_unreadable: d.drops_unreadable(&config.frames).into(),
        drop_mismatch: config.frames.drop_length_mismatch.into(),
        by_address: upstream.into(),
        overhead: config.overhead,
        mpu: config.mpu,
        assured: d.assured as u32,
        best_effort,
        points: [green, yellow, red, KEEP],
        class_of,
        becomes,
        each: d.control_sender.into(),
        address: all_kinds(d.control_sender),
        addresses: all_kinds(d.control_of_addresses()),
        ..Rules::default()
    }
}

/// A limit for all kinds together: for any, and what is kept for each. The law of the senders of [`policy`](crate::policy).
fn all_kinds(police: Policing) -> [Police; 2] {
    let part = |rate: u64, burst: u64| {
        Police::new(Rate((police.rate.0 * rate / 32).max(1)), police.burst.0 * burst / 8)
    };
    [part(24, 8), part(1, 1)]
}

/// The terms of a policer: a bucket that drops what is out of profile.
fn policer(police: Policing, since: u64) -> Terms {
    let bucket = [police.into(), Police::default()];
    Terms { bucket, since, law: Law::TokenBucket as u32, drop_from: 1, ..Terms::default() }
}

/// The terms of a customer's meter; `config::datapath` has refused what there is none of.
fn meter(customer: &Customer, packet: Bytes) -> Terms {
    let place = Context { link_rate: None, contract: customer.contract, packet, limit: None };
    let values = &customer.marker.values;
    let rate = |key: &str| match values.get(key) {
        Some(Value::Rate(rate)) => *rate,
        _ => place.contract.unwrap_or_default(),
    };
    let backlog = |key: &str| match values.get(key) {
        Some(Value::Backlog(depth)) => *depth,
        _ => Backlog::Bytes(0.0),
    };
    // Depths of the RFCs' meters are whole bytes; a fraction of a grain is nobody's.
    let whole = |key: &str, rate| Police::new(rate, backlog(key).bytes(packet) as u64);
    let says = |key: &str, word: &str| matches!(values.get(key), Some(Value::Choice(w)) if *w == word);
    let (law, bucket, out) = match customer.marker.name {
        "srtcm" => {
            let cir = rate("cir");
            let (c, mut e) = (whole("cbs", cir), whole("ebs", cir));
            e.full = (c.depth + e.depth).div_ceil(cir.0.max(1));
            (Law::SrTcm, [c, e], Colour::Red)
        }
        "trtcm" => (Law::TrTcm, [whole("cbs", rate("cir")), whole("pbs", rate("pir"))], Colour::Red),
        "tsw2cm" | "tsw3cm" => {
            let window = match values.get("win_length") {
                Some(Value::Duration(length)) => {
                    tsw_whole::Settings::window(*length).unwrap_or(tsw_whole::WINDOWS[0])
                }
                _ => tsw_whole::WINDOWS[0],
            };
            let three = customer.marker.name == "tsw3cm";
            let target = |rate: Rate| Police { rate: rate.0, ..Police::default() };
            let bucket = [
                Police { full: window, ..target(rate("ctr")) },
                if three { target(rate("ptr")) } else { Police::default() },
            ];
            (if three { Law::Tsw3cm } else { Law::Tsw2cm }, bucket, Colour::Red)
        }
        "rfc4115" => (Law::Rfc4115, [whole("cbs", rate("cir")), whole("ebs", rate("eir"))], Colour::Red),
        _ => {
            let grains = (backlog("depth").bytes(packet) * GRAINS as f64) as u64;
            let bucket = [Police::of_grains(rate("rate"), grains), Police::default()];
            (Law::TokenBucket, bucket, Colour::OUT)
        }
    };
    Terms {
        metered: customer.dscp.iter().fold(0, |all, d| all | 1 << d.value()),
        bucket,
        law: law as u32,
        aware: says("mode", "colour_aware").into(),
        more: (says("boundary", "T>B") || says("conforms", "more_than") || says("excess", "all")).into(),
        drop_from: if says("action", Action::Drop.word()) { out as u32 } else { 3 },
        policed: customer.is_policed().into(),
        starts_empty: matches!(values.get("starts_full"), Some(Value::Flag(false))).into(),
        ..Terms::default()
    }
}

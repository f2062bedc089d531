//! `[[…customers]]`: whose packets they are, by prefix or port, what was promised, and the marker that meters it.

use std::collections::HashSet;
use std::net::IpAddr;

use inprofile_config::problem::Wrong;
use inprofile_config::{Entry, Section};
use inprofile_core::packet::Colour;
use inprofile_core::params::Context;
use inprofile_core::registry::Registry;
use inprofile_core::units::Bytes;
use inprofile_live::code_points::{CodePoints, Dscp};

use super::{Class, Customer, MOST_CUSTOMERS, Prefix, direction, read, services};
use crate::policy::Whose;

/// Reads all of them.
pub(super) fn read(
    section: &Section<'_, '_>,
    registry: &Registry,
    packet: Bytes,
    points: CodePoints,
    classes: &[Class],
) -> Option<Vec<Customer>> {
    let Some(entry) = section.get("customers") else { return Some(Vec::new()) };
    let tables = entry.tables("[[…customers]]")?;
    if tables.len() > MOST_CUSTOMERS {
        let problem = format!("{} customers; the most is {MOST_CUSTOMERS}", tables.len());
        return entry.wrong(Wrong::new(problem, "give several prefixes to one customer"));
    }
    let all: Vec<Option<Customer>> =
        tables.iter().map(|t| customer(t, registry, packet, points, classes)).collect();
    let all: Vec<Customer> = all.into_iter().collect::<Option<_>>()?;
    let named_once = names(&all, &tables);
    (owners(&all, &tables) && named_once).then_some(all)
}

/// Whether nobody is named twice.
fn names(all: &[Customer], tables: &[Section<'_, '_>]) -> bool {
    let mut seen = HashSet::new();
    let mut once = true;
    for (customer, table) in all.iter().zip(tables) {
        if !seen.insert(customer.name.as_str()) {
            let place = table.locate("name");
            table.report().error(&place, "another customer has this name", "give each its own");
            once = false;
        }
    }
    once
}

/// Whether no packet is two customers'.
fn owners(all: &[Customer], tables: &[Section<'_, '_>]) -> bool {
    let mut whose = Whose::default();
    let mut one = true;
    for (number, (customer, table)) in (0u16..).zip(all.iter().zip(tables)) {
        if let Err((prefix, other)) = whose.add(number, customer) {
            let key = if customer.prefixes.is_empty() { "port" } else { "prefix" };
            let other = &all[usize::from(other)].name;
            table.report().error(
                &table.locate(key),
                format!("packets of {prefix} are {other}'s already"),
                "a longer prefix goes before a shorter one; of equal ones each needs ports of its own",
            );
            one = false;
        }
    }
    one
}

fn customer(
    table: &Section<'_, '_>,
    registry: &Registry,
    packet: Bytes,
    points: CodePoints,
    classes: &[Class],
) -> Option<Customer> {
    table.refuse_unknown(&["name", "prefix", "port", "dscp", "contract", "marker", "services"]);
    let name = table.need("name", "\"alice\"").and_then(|e| read::name(&e, "\"alice\""));
    let prefixes = several(table, "prefix", prefix);
    let ports = several(table, "port", |e| e.count_in(1..=65_535).map(|n| n as u16));
    let given = several(table, "dscp", read::dscp);
    let contract = table.get("contract").map_or(Some(None), |e| e.positive_rate().map(Some));
    let whose = ["prefix", "port"].iter().any(|k| table.get(k).is_some() || table.is_misspelt(k));
    if !whose {
        let remedy =
            "write prefix = \"10.0.1.0/24\", or port = 5001; \"0.0.0.0/0\" and \"::/0\" are everybody";
        table.report().error(&table.missing("prefix"), "nothing says whose packets are meant", remedy);
    }
    let marker = table.need("marker", "{ kind = \"token_bucket\", depth = \"30 kB\" }");
    let contract = contract?;
    let place = Context { link_rate: None, contract, packet, limit: None };
    let marker = marker.and_then(|e| direction::marker(&e, registry, &place));
    let services = services::read(table, classes, packet);
    let dscp = match given? {
        list if list.is_empty() => metered(points),
        list => list,
    };
    let (prefixes, ports, services) = (prefixes?, ports?, services?);
    let customer = Customer { name: name?, prefixes, ports, dscp, contract, marker: marker?, services };
    whose.then_some(customer)
}

/// What is metered unless the file says otherwise: best effort, and what has a colour already.
fn metered(points: CodePoints) -> Vec<Dscp> {
    let colours = Colour::ALL.map(|c| points.of(c)).into_iter();
    let mut all: Vec<Dscp> = std::iter::once(Dscp::DEFAULT).chain(colours).collect();
    all.dedup();
    all
}

/// One value or a list of them; none if the key is absent.
fn several<'d, 'r, T>(
    table: &Section<'d, 'r>,
    key: &str,
    one: impl Fn(&Entry<'d, 'r>) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(entry) = table.get(key) else { return Some(Vec::new()) };
    if !entry.is_list() {
        return one(&entry).map(|v| vec![v]);
    }
    let elements = entry.elements("a list")?;
    if elements.is_empty() {
        return entry.wrong(Wrong::new("the list is empty", format!("leave {key} out, or say which")));
    }
    elements.iter().map(one).collect()
}

fn prefix(entry: &Entry<'_, '_>) -> Option<Prefix> {
    let text = entry.text("\"10.0.1.0/24\"")?;
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let Ok(address) = address.parse::<IpAddr>() else {
        return entry
            .wrong(Wrong::new("not an address or prefix", "write \"10.0.1.0/24\" or \"2001:db8::/48\""));
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits.map_or(Ok(most), str::parse) {
        Ok(bits) if bits <= most => bits,
        _ => {
            let remedy = format!("write a length from 0 to {most}, such as \"{address}/{most}\"");
            return entry.wrong(Wrong::new("not the length of a prefix", remedy));
        }
    };
    let first = Prefix { address: masked(address, bits), bits };
    if first.address != address {
        let problem = format!("the address has bits beyond its prefix of {bits}");
        return entry.wrong(Wrong::new(problem, format!("write \"{first}\"")));
    }
    Some(first)
}

/// The first address with the same leading bits.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(a) => {
            IpAddr::V4((u32::from(a) & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)).into())
        }
        IpAddr::V6(a) => {
            IpAddr::V6((u128::from(a) & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)).into())
        }
    }
}

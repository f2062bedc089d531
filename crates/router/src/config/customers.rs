//! `[[…customers]]`: which packets are a customer's, by prefix or port; the assured rate; and the marker that meters it.

use std::collections::HashSet;
use std::net::IpAddr;

use inprofile_core::packet::Colour;
use inprofile_core::params::Context;
use inprofile_experiment::text::problem::Wrong;
use inprofile_experiment::text::{Entry, Section};
use inprofile_live::code_points::{CodePoints, Dscp};

use super::classes::{self, Link};
use super::datapath::{self, Datapath};
use super::templates::{Common, IDENTITY, Terms};
use super::{Circuit, Class, Customer, MOST_CUSTOMERS, Prefix, queues, values};
use crate::policy::Owners;

/// The keys of a template.
const COMMON: [&str; 9] =
    ["dscp", "contract", "marker", "services", "queue", "best_effort", "rate", "burst", "priority"];

/// Those of them that are about a queue of his own.
const OF_QUEUES: [&str; 6] = ["queue", "best_effort", "rate", "burst", "priority", "quantum"];

/// Reads all of them, and the names of the groups.
pub(super) fn read(
    section: &Section<'_, '_>,
    link: &Link<'_>,
    points: CodePoints,
    classes: &[Class],
) -> Option<(Vec<Customer>, Vec<String>)> {
    let keys = [&COMMON[..], &["quantum"]].concat();
    let common = Common::read(section, &keys);
    let Some(entry) = section.get("customers") else { return Some((Vec::new(), common?.groups())) };
    let tables = entry.tables("[[…customers]]")?;
    if tables.len() > MOST_CUSTOMERS {
        let problem = format!("{} customers; the most is {MOST_CUSTOMERS}", tables.len());
        return entry.wrong(Wrong::new(problem, "give several prefixes to one customer"));
    }
    let (common, known) = (common?, [&IDENTITY[..], &keys].concat());
    let mut all = Vec::with_capacity(tables.len());
    for (table, place) in tables.iter().zip(0..) {
        table.refuse_unknown(&known);
        let found = common.of(table).and_then(|(template, group)| {
            let terms = Terms { own: table, template };
            Some(Customer { group, place, ..customer(&terms, link, points, classes)? })
        });
        all.push(found);
    }
    let all: Vec<Customer> = all.into_iter().collect::<Option<_>>()?;
    let named_once = names(&all, &tables);
    (owners(&all, &tables) && named_once).then(|| (all, common.groups()))
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
    let mut owners = Owners::default();
    let mut one = true;
    for (number, (customer, table)) in (0u16..).zip(all.iter().zip(tables)) {
        if let Err((prefix, circuit, other)) = owners.add(number, customer) {
            let keys = ["prefix", "vlan", "session", "port"];
            let key = keys.into_iter().find(|k| table.get(k).is_some()).unwrap_or("name");
            let other = &all[usize::from(other)].name;
            table.report().error(
                &table.locate(key),
                format!("packets of {prefix}{} are {other}'s already", within(circuit)),
                "a longer prefix goes before a shorter one; of equal ones each needs ports of its own",
            );
            one = false;
        }
    }
    one
}

/// In words.
fn within(circuit: Circuit) -> String {
    if circuit == Circuit::default() { String::new() } else { format!(" in {circuit}") }
}

fn customer(
    terms: &Terms<'_, '_, '_>,
    link: &Link<'_>,
    points: CodePoints,
    classes: &[Class],
) -> Option<Customer> {
    let table = terms.own;
    let name = table.need("name", "\"alice\"").and_then(|e| values::name(&e, "\"alice\""));
    let prefixes = several(table.get("prefix"), prefix);
    let ports = several(table.get("port"), |e| e.count_in(1..=65_535).map(|n| n as u16));
    let circuits = circuits(table);
    let given = several(terms.get("dscp"), values::dscp);
    let contract = terms.get("contract").map_or(Some(None), |e| e.positive_rate().map(Some));
    let who = ["prefix", "port", "vlan", "session"];
    let whose = who.iter().any(|k| table.get(k).is_some() || table.is_misspelt(k));
    if !whose {
        let remedy = "write prefix = \"10.0.1.0/24\", vlan = 100 or port = 5001; \"0.0.0.0/0\" and \"::/0\" are everybody";
        table.report().error(&table.missing("prefix"), "nothing says whose packets are meant", remedy);
    }
    let marker = terms.with("marker").need("marker", "{ kind = \"token_bucket\", depth = \"30 kB\" }");
    let contract = contract?;
    let place = Context { link_rate: None, contract, packet: link.packet, limit: None };
    let kernel = link.datapath == Datapath::Kernel;
    let marker = marker.and_then(|e| {
        let marker = classes::marker(&e, link.registry, &place)?;
        if kernel {
            datapath::meter(&e, &marker, &place)?;
        }
        Some(marker)
    });
    if kernel {
        datapath::refuse_queues(|k| terms.get(k), &OF_QUEUES);
    }
    let services = services::read(terms.with("services"), classes, link.packet);
    let dscp = match given? {
        list if list.is_empty() => metered(points),
        list => list,
    };
    let (prefixes, ports, services, circuits) = (prefixes?, ports?, services?, circuits?);
    let own = if kernel { None } else { queues::read(terms, &services, contract, link, classes)? };
    let (name, marker, group, place) = (name?, marker?, None, 0);
    let customer =
        Customer { name, prefixes, ports, dscp, contract, marker, services, circuits, group, own, place };
    whose.then_some(customer)
}

/// `vlan` and `session`: each VLAN with each session.
fn circuits(table: &Section<'_, '_>) -> Option<Vec<Circuit>> {
    let vlans = several(table.get("vlan"), vlan);
    let sessions = several(table.get("session"), |e| e.count_in(1..=65_535).map(|n| Some(n as u16)));
    let (mut vlans, mut sessions) = (vlans?, sessions?);
    if vlans.is_empty() && sessions.is_empty() {
        return Some(Vec::new());
    }
    if vlans.is_empty() {
        vlans.push([None; 2]);
    }
    if sessions.is_empty() {
        sessions.push(None);
    }
    let each = vlans
        .into_iter()
        .flat_map(|vlans| sessions.clone().into_iter().map(move |session| Circuit { vlans, session }));
    Some(each.collect())
}

/// `100`, or `"100.7"`: VLAN 7 in VLAN 100.
fn vlan(entry: &Entry<'_, '_>) -> Option<[Option<u16>; 2]> {
    let Some(text) = entry.as_text() else {
        return entry.count_in(1..=4094).map(|n| [Some(n as u16), None]);
    };
    let number = |text: &str| digits(text)?.parse().ok().filter(|n| (1..=4094).contains(n));
    let found = match text.split_once('.') {
        None => number(text).map(|n| [Some(n), None]),
        Some((outer, inner)) => number(outer).zip(number(inner)).map(|(a, b)| [Some(a), Some(b)]),
    };
    found.or_else(|| {
        let remedy = "write 100, or \"100.7\" for VLAN 7 in VLAN 100; each from 1 to 4094";
        entry.wrong(Wrong::new("no such VLAN", remedy))
    })
}

/// The code points metered by default: best effort, and those that carry a colour already.
fn metered(points: CodePoints) -> Vec<Dscp> {
    let colours = Colour::ALL.map(|c| points.of(c)).into_iter();
    let mut all: Vec<Dscp> = std::iter::once(Dscp::DEFAULT).chain(colours).collect();
    all.dedup();
    all
}

/// One value or a list of them; none if the key is absent.
fn several<'d, 'r, T>(
    entry: Option<Entry<'d, 'r>>,
    one: impl Fn(&Entry<'d, 'r>) -> Option<T>,
) -> Option<Vec<T>> {
    let Some(entry) = entry else { return Some(Vec::new()) };
    if !entry.is_list() {
        return one(&entry).map(|v| vec![v]);
    }
    let elements = entry.elements("a list")?;
    if elements.is_empty() {
        return entry.wrong(Wrong::new("the list is empty", "leave the key out, or say which"));
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
    let bits = match bits.map_or(Some(most), |b| digits(b)?.parse().ok()) {
        Some(bits) if bits <= most => bits,
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

/// The text where it is digits alone: Rust reads `+24`, too.
fn digits(text: &str) -> Option<&str> {
    text.bytes().all(|b| b.is_ascii_digit()).then_some(text)
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

pub mod services {
    //! `services` of a customer: classes that it has bought in addition to its assured packets, each with a policed rate.
    //!
    //! Packets beyond that rate are dropped, as RFC 3246 §4 asks of an edge: expedited forwarding has low delay only while less
    //! arrives than is served.

    use inprofile_core::units::Bytes;
    use inprofile_experiment::text::Section;
    use inprofile_experiment::text::problem::Wrong;

    use super::super::Class;
    use super::super::frames::{self, Policing};

    /// A class that a customer has bought.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Service {
        /// Its place among the direction's.
        pub class: usize,
        /// How much of it.
        pub police: Policing,
    }

    /// Reads those of one customer; `classes` are the direction's.
    pub(crate) fn read(table: &Section<'_, '_>, classes: &[Class], packet: Bytes) -> Option<Vec<Service>> {
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

    fn service(
        table: &Section<'_, '_>,
        classes: &[Class],
        packet: Bytes,
        seen: &[Service],
    ) -> Option<Service> {
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
            return entry
                .wrong(Wrong::new("this class is bought twice", "leave one out, or add the rates up"));
        }
        Some(Service { class, police: police? })
    }
}

pub(super) mod customer_file {
    //! `customers = "customers.csv"`: customers in a file of their own, a line each, beside the router's file.
    //!
    //! A list may have such names among its tables. `plan` is the template that has a customer's other settings.

    use std::path::Path;

    use inprofile_experiment::text::csv::{Column, Kind};
    use inprofile_experiment::text::file;
    use inprofile_experiment::text::tree::{Item, Node, Origin};
    use inprofile_experiment::text::{Document, Problem};

    use super::super::DIRECTIONS;

    /// The columns that there may be, in any order.
    const COLUMNS: [Column; 8] = [
        Column { heading: "name", key: "name", kind: Kind::Text },
        Column { heading: "prefix", key: "prefix", kind: Kind::Texts },
        Column { heading: "vlan", key: "vlan", kind: Kind::Numbers },
        Column { heading: "session", key: "session", kind: Kind::Numbers },
        Column { heading: "port", key: "port", kind: Kind::Numbers },
        Column { heading: "contract", key: "contract", kind: Kind::Text },
        Column { heading: "plan", key: "template", kind: Kind::Text },
        Column { heading: "group", key: "group", kind: Kind::Text },
    ];

    /// Puts the customers of the files that are named into their places; `file` is the router's own.
    ///
    /// # Errors
    /// A file that cannot be read, and every line of one that is no customer's.
    pub(crate) fn take_in(document: &mut Document, file: &str) -> Result<(), Vec<Problem>> {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let mut problems = Vec::new();
        for direction in DIRECTIONS {
            for (name, origin) in named(document, direction) {
                let path = folder.join(&name);
                let found = match file::read(&path) {
                    Ok(bytes) => document.rows(&bytes, &path.display().to_string(), &COLUMNS),
                    Err(error) => {
                        let problem = format!("{}: {error}", path.display());
                        let remedy =
                            "write the name of a CSV file beside this one, with name,prefix,contract,plan";
                        let at = format!("{direction}.customers");
                        Err(vec![document.problem(&at, origin, true, problem, remedy.into())])
                    }
                };
                match found {
                    Ok(rows) => put(document, direction, origin, rows),
                    Err(wrong) => problems.extend(wrong),
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The files that a direction names, and where.
    fn named(document: &mut Document, direction: &str) -> Vec<(String, Origin)> {
        let Some(customers) = place(document, direction) else { return Vec::new() };
        let of = |node: &Node| match &node.item {
            Item::Text(name) => Some((name.clone(), node.origin)),
            _ => None,
        };
        match &customers.item {
            Item::List(entries) => entries.iter().filter_map(of).collect(),
            _ => of(customers).into_iter().collect(),
        }
    }

    fn place<'d>(document: &'d mut Document, direction: &str) -> Option<&'d mut Node> {
        match &mut document.root_mut().get_mut(direction)?.item {
            Item::Table(table) => table.get_mut("customers"),
            _ => None,
        }
    }

    /// Puts rows where a file's name stands.
    fn put(document: &mut Document, direction: &str, origin: Origin, rows: Vec<Node>) {
        let Some(customers) = place(document, direction) else { return };
        match &mut customers.item {
            Item::List(entries) => {
                let at = entries.iter().position(|e| e.origin == origin).unwrap_or(entries.len());
                entries.splice(at..(at + 1).min(entries.len()), rows);
            }
            item => *item = Item::List(rows),
        }
    }
}

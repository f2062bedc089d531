//! Which customer a packet belongs to. Candidates are the customers of the circuit it came in by or, if that is nobody's, those who
//! name none; of these the one with the longest prefix that contains the packet's inside address and, if he names ports, whose ports
//! include its inside port. At equal length a named port wins. The outside address and port, which his peer writes, never count.
//!
//! Packets that nobody in a circuit claims by address belong to the [holder](Prefixes::holder) of the circuit, as do frames without an
//! address; it never belongs to a customer who is known by addresses alone.
//!
//! A lookup takes time in proportion to the number of prefixes that contain one address, not to the number of customers.
//! Non-goal: ports alone across customers; a customer without a prefix has the shortest one of both families.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use prefix_trie::{self as trie, PrefixMap};

use crate::config::{Circuit, Customer, Prefix};
use inprofile_live::packet::{Family, Link};

/// All addresses, for a customer who names none.
const EVERYBODY: [Prefix; 2] = [
    Prefix { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), bits: 0 },
    Prefix { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), bits: 0 },
];

/// The customers of one prefix. Small, as there are many and each lookup reads a different one.
#[derive(Clone, Debug, Default)]
struct Sharers {
    /// The owner whatever the port.
    any: Option<u16>,
    /// Owners by port, if ports are named.
    #[expect(clippy::box_collection, reason = "a map takes 24 bytes in place, a pointer 8")]
    by_port: Option<Box<BTreeMap<u16, u16>>>,
}

impl Sharers {
    fn of(&self, port: Option<u16>) -> Option<u16> {
        let named = self.by_port.as_ref().and_then(|by_port| by_port.get(&port?).copied());
        named.or(self.any)
    }
}

/// The prefixes of one circuit.
#[derive(Clone, Debug, Default)]
struct Prefixes {
    v4: PrefixMap<(u32, u8), Sharers>,
    v6: PrefixMap<(u128, u8), Sharers>,
    /// The first customer in it, and whether there are others.
    first: Option<u16>,
    shared: bool,
    /// Who owns all addresses and ports that others don't name.
    rest: Option<u16>,
}

/// The owner of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// His number; `None`: nobody's.
    pub customer: Option<u16>,
    /// Whether it is his by address too. If not, it came in his circuit and counts as his, but gets nothing of what he bought.
    pub entitled: bool,
}

impl Owner {
    fn entitled(customer: u16) -> Owner {
        Owner { customer: Some(customer), entitled: true }
    }

    /// The owner of what comes in his circuit.
    #[must_use]
    pub fn of_circuit(customer: Option<u16>) -> Owner {
        Owner { customer, entitled: false }
    }
}

/// The customers of a direction.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Of customers known by addresses and ports alone.
    anywhere: Prefixes,
    /// Of each circuit.
    circuits: HashMap<Circuit, Prefixes>,
    /// Some are known by ports.
    by_ports: bool,
}

impl Owners {
    /// For these customers, numbered by their place in the list.
    #[must_use]
    pub fn new(customers: &[Customer]) -> Owners {
        let mut all = Owners::default();
        for (number, customer) in (0u16..).zip(customers) {
            // The file was refused if this could fail.
            let _ = all.add(number, customer);
        }
        all
    }

    /// Adds a customer.
    ///
    /// # Errors
    /// Prefix, circuit and present owner, if the same packets would belong to both; prefixes before that one are added.
    pub fn add(&mut self, number: u16, customer: &Customer) -> Result<(), (Prefix, Circuit, u16)> {
        self.by_ports |= !customer.ports.is_empty();
        let circuits: &[Circuit] = if customer.circuits.is_empty() {
            &[Circuit { vlans: [None; 2], session: None }]
        } else {
            &customer.circuits
        };
        for circuit in circuits {
            let of = if *circuit == Circuit::default() {
                &mut self.anywhere
            } else {
                self.circuits.entry(*circuit).or_default()
            };
            of.add(number, customer).map_err(|(prefix, other)| (prefix, *circuit, other))?;
        }
        Ok(())
    }

    /// The owner of a packet. `address` and `port` are the inside ones; `port` is `None` if it has none.
    #[must_use]
    pub fn find(&self, link: &Link, family: Family, address: &[u8; 16], port: Option<u16>) -> Owner {
        let mut known = false;
        for circuit in self.circuits_of(link) {
            known = true;
            if let Some(customer) = circuit.find(family, address, port) {
                return Owner::entitled(customer);
            }
        }
        if !known {
            return self.anywhere.find(family, address, port).map_or(Owner::default(), Owner::entitled);
        }
        match self.holder(link) {
            None => self.anywhere.rest.map_or(Owner::default(), Owner::entitled),
            holder => Owner::of_circuit(holder),
        }
    }

    /// Whether the port may tell whose a packet is: else its owner is the same with any port, and without one.
    #[must_use]
    pub fn asks_ports(&self, link: &Link, family: Family, address: &[u8; 16]) -> bool {
        let mut circuits = self.circuits_of(link).peekable();
        let of = if circuits.peek().is_none() {
            self.anywhere.asks_ports(family, address)
        } else {
            circuits.find_map(|circuit| circuit.asks_ports(family, address))
        };
        of.unwrap_or(false)
    }

    /// The owner of a frame by its circuit alone; if that is nobody's, whoever has all addresses.
    #[must_use]
    pub fn of_circuit(&self, link: &Link) -> Option<u16> {
        self.holder(link).or(self.anywhere.rest)
    }

    /// The holder of the circuit that a frame came in.
    #[must_use]
    pub fn holder(&self, link: &Link) -> Option<u16> {
        self.circuits_of(link).find_map(Prefixes::holder)
    }

    /// Whether some customers are known by ports.
    #[must_use]
    pub fn has_ports(&self) -> bool {
        self.by_ports
    }

    /// The customers' circuits that match a frame, the most specific first: both VLANs before the outer one alone, with a session
    /// before without.
    fn circuits_of(&self, link: &Link) -> impl Iterator<Item = &Prefixes> {
        let (vlans, session) = (link.vlans, link.session);
        let any = !self.circuits.is_empty() && (vlans[0].is_some() || session.is_some());
        let each = [vlans, [vlans[0], None], [None; 2]].into_iter();
        let each = each.flat_map(move |vlans| [session, None].map(|session| Circuit { vlans, session }));
        each.take(if any { 6 } else { 0 }).filter_map(|circuit| self.circuits.get(&circuit))
    }
}

impl Prefixes {
    /// Who owns what matches nobody's address: whoever has the rest, else the only customer in the circuit.
    fn holder(&self) -> Option<u16> {
        self.rest.or(self.first.filter(|_| !self.shared))
    }

    fn add(&mut self, number: u16, customer: &Customer) -> Result<(), (Prefix, u16)> {
        self.shared |= self.first.is_some_and(|first| first != number);
        self.first.get_or_insert(number);
        let prefixes = if customer.prefixes.is_empty() { &EVERYBODY } else { customer.prefixes.as_slice() };
        if customer.ports.is_empty() && EVERYBODY.iter().all(|all| prefixes.contains(all)) {
            self.rest.get_or_insert(number);
        }
        for prefix in prefixes {
            let sharers = match prefix.address {
                IpAddr::V4(a) => self.v4.entry((a.into(), prefix.bits)).or_default(),
                IpAddr::V6(a) => self.v6.entry((a.into(), prefix.bits)).or_default(),
            };
            let other = |there: &mut u16| if *there == number { Ok(()) } else { Err((*prefix, *there)) };
            if customer.ports.is_empty() {
                other(sharers.any.get_or_insert(number))?;
            }
            for port in &customer.ports {
                other(sharers.by_port.get_or_insert_default().entry(*port).or_insert(number))?;
            }
        }
        Ok(())
    }

    fn find(&self, family: Family, address: &[u8; 16], port: Option<u16>) -> Option<u16> {
        match family {
            Family::V4 => longest(&self.v4, &v4(address), port),
            Family::V6 => longest(&self.v6, &v6(address), port),
        }
    }

    /// Whether the longest prefix that contains an address names ports; `None`: there is none.
    fn asks_ports(&self, family: Family, address: &[u8; 16]) -> Option<bool> {
        let sharers = match family {
            Family::V4 => self.v4.get_lpm(&v4(address)).map(|(_, sharers)| sharers),
            Family::V6 => self.v6.get_lpm(&v6(address)).map(|(_, sharers)| sharers),
        };
        sharers.map(|s| s.by_port.is_some())
    }
}

fn v4(address: &[u8; 16]) -> (u32, u8) {
    (u32::from_be_bytes([address[0], address[1], address[2], address[3]]), 32)
}

fn v6(address: &[u8; 16]) -> (u128, u8) {
    (u128::from_be_bytes(*address), 128)
}

/// The customer of the longest prefix that has one for this port.
fn longest<P: trie::Prefix>(prefixes: &PrefixMap<P, Sharers>, address: &P, port: Option<u16>) -> Option<u16> {
    let (_, sharers) = prefixes.get_lpm(address)?;
    // Usually it has an owner; else all prefixes that contain the address are tried, the longest last.
    let found = sharers.of(port);
    found.or_else(|| prefixes.cover(address).filter_map(|(_, sharers)| sharers.of(port)).last())
}

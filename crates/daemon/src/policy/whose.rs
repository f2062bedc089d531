//! Which customer a packet belongs to: the one of the circuit it came in, else of any; of these the one with the longest prefix
//! that holds its inside address and, where he names ports, one of its ports. At equal length a port that is named goes before
//! none.
//!
//! A lookup takes time in proportion to the number of prefixes that hold one address, not to the number of customers.
//! Non-goal: ports alone across customers; who names no prefix has both families' shortest.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use prefix_trie::{self as trie, PrefixMap};

use crate::config::{Circuit, Customer, Prefix};
use inprofile_live::packet::{Family, Link};

/// Everybody's addresses, for who names none.
const EVERYBODY: [Prefix; 2] = [
    Prefix { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), bits: 0 },
    Prefix { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), bits: 0 },
];

/// The customers of one prefix.
#[derive(Clone, Debug, Default)]
struct Sharers {
    /// Who has it whatever the port.
    any: Option<u16>,
    /// Who has it for a port.
    by_port: BTreeMap<u16, u16>,
}

impl Sharers {
    fn of(&self, ports: Option<(u16, u16)>) -> Option<u16> {
        let named = |port: u16| self.by_port.get(&port).copied();
        // Where each end's port is another customer's, the first in the file has it.
        let by_port = ports.and_then(|(a, b)| named(a).into_iter().chain(named(b)).min());
        by_port.or(self.any)
    }
}

/// The prefixes of one circuit.
#[derive(Clone, Debug, Default)]
struct Prefixes {
    v4: PrefixMap<(u32, u8), Sharers>,
    v6: PrefixMap<(u128, u8), Sharers>,
}

/// The customers of a direction.
#[derive(Clone, Debug, Default)]
pub struct Whose {
    /// Of those who are known by addresses and ports alone.
    anywhere: Prefixes,
    /// Of each circuit.
    circuits: HashMap<Circuit, Prefixes>,
}

impl Whose {
    /// Of these customers, who go by their place in the list.
    #[must_use]
    pub fn new(customers: &[Customer]) -> Whose {
        let mut all = Whose::default();
        for (number, customer) in (0u16..).zip(customers) {
            // The file was refused if this could fail.
            let _ = all.add(number, customer);
        }
        all
    }

    /// Adds a customer.
    ///
    /// # Errors
    /// The prefix and circuit, and whose they are already, if the same packets would be both's; what comes before is added.
    pub fn add(&mut self, number: u16, customer: &Customer) -> Result<(), (Prefix, Circuit, u16)> {
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

    /// Whose it is. `ports`: `None` where there are none to go by.
    #[must_use]
    pub fn find(
        &self,
        link: &Link,
        family: Family,
        address: &[u8; 16],
        ports: Option<(u16, u16)>,
    ) -> Option<u16> {
        let anywhere = || self.anywhere.find(family, address, ports);
        if self.circuits.is_empty() || link.vlans[0].is_none() && link.session.is_none() {
            return anywhere();
        }
        // What says more goes before what says less: both VLANs before the outer one, with the session before without.
        let [outer, _] = link.vlans;
        [link.vlans, [outer, None], [None; 2]]
            .into_iter()
            .flat_map(|vlans| [link.session, None].map(|session| Circuit { vlans, session }))
            .find_map(|circuit| self.circuits.get(&circuit)?.find(family, address, ports))
            .or_else(anywhere)
    }
}

impl Prefixes {
    fn add(&mut self, number: u16, customer: &Customer) -> Result<(), (Prefix, u16)> {
        let prefixes = if customer.prefixes.is_empty() { &EVERYBODY } else { customer.prefixes.as_slice() };
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
                other(sharers.by_port.entry(*port).or_insert(number))?;
            }
        }
        Ok(())
    }

    fn find(&self, family: Family, address: &[u8; 16], ports: Option<(u16, u16)>) -> Option<u16> {
        match family {
            Family::V4 => {
                let a = u32::from_be_bytes([address[0], address[1], address[2], address[3]]);
                longest(&self.v4, &(a, 32), ports)
            }
            Family::V6 => longest(&self.v6, &(u128::from_be_bytes(*address), 128), ports),
        }
    }
}

/// The customer of the longest prefix that has one for these ports.
fn longest<P: trie::Prefix>(
    prefixes: &PrefixMap<P, Sharers>,
    address: &P,
    ports: Option<(u16, u16)>,
) -> Option<u16> {
    let (_, sharers) = prefixes.get_lpm(address)?;
    // Mostly that is his alone; else all that hold the address are asked, the longest last.
    let found = sharers.of(ports);
    found.or_else(|| prefixes.cover(address).filter_map(|(_, sharers)| sharers.of(ports)).last())
}

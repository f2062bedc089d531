//! Whose a packet is and where it goes: by customer (RFC 2475's multi-field classifier), else by the DSCP it carries
//! (its behaviour-aggregate classifier).

use std::net::IpAddr;

use inprofile_core::packet::Colour;
use inprofile_core::signal::Signal;
use inprofile_core::units::Time;
use inprofile_live::code_points::CodePoints;
use inprofile_live::datapath::{Policy, Way};
use inprofile_live::flow::{FiveTuple, Flows, Numbered};
use inprofile_live::packet::{Family, Headers, Seen, Transport};

use crate::config::{Customer, Direction, Prefix};

/// The most newcomers that are remembered between two batches of packets.
const MOST_NEWCOMERS: usize = 4096;

/// Whose packets a flow's are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// Nobody has looked yet.
    Unknown,
    Nobody,
    Customer(u16),
}

/// One direction's classifier.
#[derive(Debug)]
pub struct Classifier {
    /// `None`: everything passes as it is.
    rules: Option<Rules>,
    /// Everything passes for now.
    bypass: bool,
    /// Frames that passed while it was on.
    bypassed: u64,
    flows: Flows,
    owners: Vec<Owner>,
    newcomers: Vec<Signal>,
}

#[derive(Debug)]
struct Rules {
    /// The customer's address is the source; else the destination.
    inside_is_source: bool,
    customers: Vec<Customer>,
    points: CodePoints,
    trust: bool,
    /// The class of each DSCP that isn't a colour.
    class_of: [u8; 64],
    assured: u8,
    best_effort: u8,
    /// The aggregate's marker, behind all the customers'.
    aggregate: Option<u16>,
}

impl Classifier {
    /// That of a direction; `upstream`: from inside to outside.
    #[must_use]
    pub fn new(
        direction: Option<&Direction>,
        upstream: bool,
        points: CodePoints,
        flows: Flows,
    ) -> Classifier {
        let rules = direction.map(|d| {
            let best_effort = d.classes.len() as u8 - 1;
            let mut class_of = [best_effort; 64];
            for (i, class) in (0..).zip(&d.classes) {
                for dscp in &class.dscp {
                    class_of[usize::from(dscp.value())] = i;
                }
            }
            Rules {
                inside_is_source: upstream,
                customers: d.customers.clone(),
                points,
                trust: d.trust,
                class_of,
                assured: d.assured as u8,
                best_effort,
                aggregate: d.aggregate.as_ref().map(|_| d.customers.len() as u16),
            }
        });
        let owners = vec![Owner::Unknown; flows.capacity() as usize];
        Classifier { rules, bypass: false, bypassed: 0, flows, owners, newcomers: Vec::new() }
    }

    /// Another in its place: the numbers of flows, the bypass and its count go on.
    #[must_use]
    pub fn succeeded_by(
        &mut self,
        direction: Option<&Direction>,
        upstream: bool,
        points: CodePoints,
    ) -> Classifier {
        let flows = std::mem::replace(&mut self.flows, Flows::new(1, 0));
        let new = Classifier::new(direction, upstream, points, flows);
        Classifier { bypass: self.bypass, bypassed: self.bypassed, ..new }
    }

    /// Lets everything pass, or stops doing so.
    pub fn set_bypass(&mut self, on: bool) {
        self.bypass = on;
    }

    /// Frames that passed while everything did.
    #[must_use]
    pub fn bypassed(&self) -> u64 {
        self.bypassed
    }

    /// The table of flows.
    #[must_use]
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// The number of the aggregate's marker.
    #[must_use]
    pub fn aggregate(&self) -> Option<u16> {
        self.rules.as_ref().and_then(|r| r.aggregate)
    }

    /// The contracts of flows that came since the last call, for the aggregate's marker; topic `contract`.
    pub fn newcomers(&mut self) -> impl Iterator<Item = Signal> + '_ {
        self.newcomers.drain(..)
    }

    /// As [`Policy::way`], for a packet that goes the other way: that of the packets it answers.
    pub fn way_back(&mut self, now: Time, headers: &Headers) -> Option<Way> {
        let (a, b) = headers.addresses;
        let turned = Headers { addresses: (b, a), ..*headers };
        let tuple = FiveTuple::of(headers).reversed();
        let owner = self.owner(now, &tuple, &turned)?;
        let rules = self.rules.as_ref()?;
        let markers = match owner.1 {
            Owner::Customer(c) => [Some(c), rules.aggregate],
            _ => [None, rules.aggregate],
        };
        let (Numbered { flow, new }, class) = (owner.0, rules.assured);
        Some(Way { flow, new, class, colour: Colour::IN, markers, paint: None })
    }

    /// The number and the owner of a flow.
    fn owner(&mut self, now: Time, tuple: &FiveTuple, headers: &Headers) -> Option<(Numbered, Owner)> {
        let rules = self.rules.as_ref()?;
        let numbered = self.flows.number(now, tuple);
        let slot = &mut self.owners[numbered.flow.0 as usize];
        if numbered.new || *slot == Owner::Unknown {
            *slot = rules.find(headers);
            if rules.aggregate.is_some() && self.newcomers.len() < MOST_NEWCOMERS {
                let contract = match *slot {
                    Owner::Customer(c) => {
                        rules.customers[usize::from(c)].contract.map_or(0.0, |r| r.0 as f64)
                    }
                    _ => 0.0,
                };
                self.newcomers.push(Signal { topic: "contract", flow: Some(numbered.flow), value: contract });
            }
        }
        Some((numbered, *slot))
    }
}

impl Policy for Classifier {
    fn way(&mut self, now: Time, seen: &Seen) -> Option<Way> {
        if self.bypass {
            self.bypassed += 1;
            return None;
        }
        let headers = seen.as_ref().ok()?;
        let (Numbered { flow, new }, owner) = self.owner(now, &FiveTuple::of(headers), headers)?;
        let rules = self.rules.as_ref()?;
        let colour = rules.points.colour(headers.dscp);
        let customer = match owner {
            Owner::Customer(c) if rules.customers[usize::from(c)].dscp.contains(&headers.dscp) => Some(c),
            _ => None,
        };
        if customer.is_none() && !(rules.trust && colour.is_some()) {
            let class = match colour {
                Some(_) => rules.best_effort,
                None => rules.class_of[usize::from(headers.dscp.value())],
            };
            return Some(Way { flow, new, class, colour: Colour::OUT, markers: [None; 2], paint: None });
        }
        let markers = [customer, rules.aggregate];
        let paint = markers.iter().any(Option::is_some).then_some(rules.points);
        Some(Way { flow, new, class: rules.assured, colour: colour.unwrap_or(Colour::IN), markers, paint })
    }
}

impl Rules {
    /// The first customer in the file that a packet fits. Fragments may lack the ports that say whose they are: one is his
    /// who is known by address alone.
    fn find(&self, headers: &Headers) -> Owner {
        let inside = if self.inside_is_source { headers.addresses.0 } else { headers.addresses.1 };
        let ports = match headers.transport {
            Transport::Tcp { ports, .. } | Transport::Udp { ports } => Some(ports),
            Transport::Other | Transport::Fragment => None,
        };
        let fits = |c: &Customer| {
            let port = |(a, b): (u16, u16)| c.ports.contains(&a) || c.ports.contains(&b);
            (c.prefixes.is_empty() || c.prefixes.iter().any(|p| holds(p, headers.family, &inside)))
                && (c.ports.is_empty() || ports.is_some_and(port))
        };
        let found = self.customers.iter().position(fits);
        found.map_or(Owner::Nobody, |i| Owner::Customer(i as u16))
    }
}

/// Whether an address is among those of a prefix.
fn holds(prefix: &Prefix, family: Family, address: &[u8; 16]) -> bool {
    let same = |a: u128, b: u128, width: u32| {
        let beyond = width - u32::from(prefix.bits);
        a.checked_shr(beyond).unwrap_or(0) == b.checked_shr(beyond).unwrap_or(0)
    };
    match (prefix.address, family) {
        (IpAddr::V4(a), Family::V4) => {
            let b = u32::from_be_bytes([address[0], address[1], address[2], address[3]]);
            same(u128::from(u32::from(a)), u128::from(b), 32)
        }
        (IpAddr::V6(a), Family::V6) => same(u128::from(a), u128::from_be_bytes(*address), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

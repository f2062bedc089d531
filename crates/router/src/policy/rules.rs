//! The rules of one direction: how a packet is treated once its owner has been looked up, whether it has one or not.

use inprofile_core::packet::Colour;
use inprofile_core::units::Rate;
use inprofile_live::code_points::{CodePoints, Dscp};
use inprofile_live::datapath::{Charge, Rewrite, Treatment};
use inprofile_live::packet::Headers;
use inprofile_live::prefetch::prefetch;

use crate::config::frames::Frames;
use crate::config::role::{Role, Unsold};
use crate::config::{Config, Customer, Direction};
use crate::policers;

use super::FlowEntry;
use super::lookups::Ports;
use super::owners::{Owner, Owners};
use super::senders::Allowed;

/// The rules of one direction.
#[derive(Debug)]
pub struct Rules {
    /// Whether the customer's address is the source; if not, it is the destination.
    pub(super) inside_is_source: bool,
    pub(super) terms: Vec<Terms>,
    /// Each customer's contract, for the aggregate's marker; 0: none.
    pub(super) contracts: Vec<Rate>,
    /// Whether any customers have queues of their own.
    own_queues: bool,
    pub(super) owners: Owners,
    points: CodePoints,
    role: Role,
    unsold: Unsold,
    pub(super) frames: Frames,
    pub(super) drop_unreadable: bool,
    /// The markers of services: the class and the number of its policer, customer by customer.
    services: Vec<(u8, u16)>,
    /// The policer of the first kind of control frames.
    pub(super) control: u16,
    pub(super) allowed: Allowed,
    /// The bytes charged for a packet in addition to its own, and the least charge.
    pub(super) charge: Charge,
    /// The class of each DSCP that isn't a colour.
    class_of: [u8; 64],
    pub(super) assured: u8,
    best_effort: u8,
    /// The aggregate's marker, behind all the customers'.
    pub(super) aggregate: Option<u16>,
}

/// The state read for each packet of a customer, kept close together: with ten thousand customers, scattered state is slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// A bit for each DSCP that is metered.
    metered: u64,
    /// The position of his first service among all, and how many he has.
    services: (u32, u16),
    /// See [`Customer::place`].
    place: u32,
    own_queue: bool,
    /// Whether his marker drops what is out of profile: if so, only what he bought elsewhere bypasses it.
    policed: bool,
}

impl Terms {
    fn of(customer: &Customer, services_from: usize) -> Terms {
        let metered = customer.dscp.iter().fold(0, |all, d| all | 1 << d.value());
        let services = (services_from as u32, customer.services.len() as u16);
        let (place, own_queue) = (customer.place, customer.own.is_some());
        Terms { metered, services, place, own_queue, policed: customer.is_policed() }
    }

    fn meters(self, dscp: Dscp) -> bool {
        self.metered >> dscp.value() & 1 == 1
    }
}

impl Rules {
    /// The rules of a direction.
    pub(super) fn of(d: &Direction, upstream: bool, config: &Config) -> Rules {
        let mut services = Vec::new();
        let mut terms = Vec::with_capacity(d.customers.len());
        for customer in &d.customers {
            terms.push(Terms::of(customer, services.len()));
            for service in &customer.services {
                services.push((service.class as u8, policers::first(d) + services.len() as u16));
            }
        }
        let control = policers::first(d) + services.len() as u16;
        let owners = Owners::new(&d.customers);
        let best_effort = d.classes.len() as u8 - 1;
        let mut class_of = [best_effort; 64];
        for (i, class) in (0..).zip(&d.classes) {
            for dscp in &class.dscp {
                class_of[usize::from(dscp.value())] = i;
            }
        }
        Rules {
            inside_is_source: upstream,
            contracts: d.customers.iter().map(|c| c.contract.unwrap_or(Rate(0))).collect(),
            own_queues: d.customers.iter().any(|c| c.own.is_some()),
            terms,
            services,
            control,
            allowed: Allowed {
                each: d.control_sender,
                addresses: d.control_of_addresses(),
                // Outside, one neighbour sends on behalf of all.
                by_address: upstream,
            },
            charge: config.charge(),
            owners,
            points: config.points,
            role: d.role,
            unsold: d.unsold,
            frames: config.frames,
            drop_unreadable: d.drops_unreadable(&config.frames),
            class_of,
            assured: d.assured as u8,
            best_effort,
            aggregate: d.aggregate.as_ref().map(|_| d.customers.len() as u16),
        }
    }

    /// Prefetches the owner's terms.
    pub(super) fn foresee(&self, owner: Owner) {
        if let Some(customer) = owner.customer {
            prefetch(&self.terms[usize::from(customer)]);
        }
    }

    /// A customer's index; see [`Customer::place`].
    pub(super) fn place(&self, customer: u16) -> u32 {
        self.terms[usize::from(customer)].place
    }

    /// The treatment of a packet that a contract may cover.
    pub(super) fn treatment(&self, headers: &Headers, found: &FlowEntry) -> Treatment {
        let unsold = self.unsold_treatment(found, Some(headers));
        let (dscp, points) = (headers.dscp, self.points);
        let (colour, customer) = (points.colour(dscp), found.entitled());
        let terms = customer.map(|c| self.terms[usize::from(c)]);
        let edge = self.role == Role::Edge;
        if let Some(c) = customer.filter(|_| terms.is_some_and(|t| t.meters(dscp))) {
            let (colour, markers) = (colour.unwrap_or(Colour::IN), [Some(c), self.aggregate]);
            let (rewrite, clear_link) = (Rewrite::Colour(points), edge && self.unsold.bleach);
            return Treatment { class: self.assured, colour, markers, rewrite, clear_link, ..unsold };
        }
        if let Some(colour) = colour.filter(|_| !edge) {
            let markers = [None, self.aggregate];
            let rewrite = if self.aggregate.is_some() { Rewrite::Colour(points) } else { Rewrite::Keep };
            return Treatment { class: self.assured, colour, markers, rewrite, clear_link: false, ..unsold };
        }
        let class = self.class_of[usize::from(dscp.value())];
        let treatment = Treatment { class, rewrite: Rewrite::Keep, clear_link: false, ..unsold };
        // DSCPs that no class names belong to best effort.
        if class < self.assured {
            if let Some(policer) = terms.and_then(|t| self.policer(t, class)) {
                return Treatment { markers: [Some(policer), None], ..treatment };
            }
            if !edge {
                return Treatment { markers: [None; 2], ..treatment };
            }
        }
        unsold
    }

    /// The treatment of unsold traffic, which no contract covers: best effort, charged to its owner if it has one.
    pub(super) fn unsold_treatment(&self, found: &FlowEntry, headers: Option<&Headers>) -> Treatment {
        let becomes = headers.and_then(|h| self.unsold.becomes(h.dscp));
        let his = found.owner.customer.map(|c| (c, self.terms[usize::from(c)]));
        Treatment {
            flow: found.flow,
            forget: found.forget,
            contract: found.contract,
            customer: his.map(|(_, terms)| terms.place),
            own_queue: his.is_some_and(|(_, terms)| terms.own_queue),
            class: self.best_effort,
            colour: Colour::OUT,
            markers: [his.filter(|(_, terms)| terms.policed).map(|(c, _)| c), None],
            rewrite: becomes.map_or(Rewrite::Keep, Rewrite::To),
            clear_link: self.unsold.bleach,
        }
    }

    /// The place of a customer who has queues of his own.
    pub(super) fn own_queue_of(&self, customer: Option<u16>) -> Option<u32> {
        // Usually no customer has any, and then no customer's terms are looked up.
        let terms = customer.filter(|_| self.own_queues).map(|c| self.terms[usize::from(c)])?;
        terms.own_queue.then_some(terms.place)
    }

    /// The policer of a class, if it was bought under these terms.
    fn policer(&self, terms: Terms, class: u8) -> Option<u16> {
        let (from, count) = (terms.services.0 as usize, terms.services.1 as usize);
        let his = self.services.get(from..from + count)?;
        his.iter().find(|(bought, _)| *bought == class).map(|(_, policer)| *policer)
    }

    /// The owner of a packet with these ports, by its circuit and the address and port on his side. Without ports, the owner
    /// is whoever is known by address alone.
    pub(super) fn owner(&self, headers: &Headers, ports: Option<Ports>) -> Owner {
        let port =
            ports.map(|(source, destination)| if self.inside_is_source { source } else { destination });
        self.owners.find(&headers.link, headers.family, self.inside(headers), port)
    }

    /// Whether ports may tell whose a packet is.
    pub(super) fn asks_ports(&self, headers: &Headers) -> bool {
        self.owners.asks_ports(&headers.link, headers.family, self.inside(headers))
    }

    fn inside<'h>(&self, headers: &'h Headers) -> &'h [u8; 16] {
        if self.inside_is_source { &headers.addresses.0 } else { &headers.addresses.1 }
    }
}

//! Whose a packet is and where it goes: by customer (RFC 2475's multi-field classifier), else by the DSCP it carries
//! (its behaviour-aggregate classifier).

mod fragments;
mod senders;
mod whose;

use std::collections::HashMap;

use inprofile_core::packet::{Colour, FlowId};
use inprofile_core::units::{Bytes, Rate, Time};
use inprofile_live::code_points::{CodePoints, Dscp};
use inprofile_live::datapath::{Contract, Decision, Former, Paint, Policy, Way};
use inprofile_live::flow::{FiveTuple, Flows, Numbered};
use inprofile_live::packet::{Control, Headers, Link, Opaque, Seen, Transport, Unread};

use crate::config::frames::Frames;
use crate::config::role::{Role, Unsold};
use crate::config::{Config, Customer, Direction};
use crate::policers;

use fragments::{Fragments, Ports};
use senders::{Allowed, Senders};
use whose::Owner;

pub use whose::Whose;

/// Whose packets the flow with some number has.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    owner: Owner,
    /// Looked up since the last reload.
    fresh: bool,
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
    known: Vec<Known>,
    senders: Senders,
    /// Of customers who are known by ports, where there are any.
    fragments: Option<Fragments>,
    /// Fragments for which nobody is known by ports, as the first one of their packet was not seen.
    without_first: u64,
}

/// What is decided by.
#[derive(Debug)]
pub struct Rules {
    /// The customer's address is the source; else the destination.
    inside_is_source: bool,
    terms: Vec<Terms>,
    /// What was promised to each customer, for the aggregate's marker; 0: nothing.
    contracts: Vec<Rate>,
    /// Some customers have queues of their own.
    own_queues: bool,
    whose: Whose,
    points: CodePoints,
    role: Role,
    unsold: Unsold,
    frames: Frames,
    /// The markers of services: the class and the number of its policer, customer by customer.
    services: Vec<(u8, u16)>,
    /// The policer of the first kind of control frames.
    control: u16,
    allowed: Allowed,
    /// What a packet counts for beside its own bytes, and at least.
    overhead: u32,
    mpu: u32,
    /// The class of each DSCP that isn't a colour.
    class_of: [u8; 64],
    assured: u8,
    best_effort: u8,
    /// The aggregate's marker, behind all the customers'.
    aggregate: Option<u16>,
}

/// What a classifier is to become.
#[derive(Debug)]
pub struct NextRules {
    rules: Option<Rules>,
    /// Each old customer's number among those to come.
    stays: Vec<Option<u16>>,
}

impl NextRules {
    /// From one configuration of a direction to another.
    #[must_use]
    pub fn of(was: Option<&Direction>, is: Option<&Direction>, upstream: bool, config: &Config) -> NextRules {
        let names = is.into_iter().flat_map(|d| d.customers.iter().map(|c| c.name.as_str()));
        let new: HashMap<&str, u16> = names.zip(0..).collect();
        let old = was.into_iter().flat_map(|d| &d.customers);
        let stays = old.map(|c| new.get(c.name.as_str()).copied()).collect();
        NextRules { rules: is.map(|d| Rules::of(d, upstream, config)), stays }
    }
}

/// What is looked up for each packet of a customer's, kept close together: with ten thousand of them, what is far apart is slow.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// A bit for each DSCP that is metered.
    metered: u64,
    /// Where his services are among all, and how many.
    services: (u32, u16),
    /// See [`Customer::place`].
    place: u32,
    own_queue: bool,
    /// His marker drops what is out of profile: then nothing of his goes past it but what he bought elsewhere.
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

impl Classifier {
    /// That of a direction; `upstream`: from inside to outside.
    #[must_use]
    pub fn new(direction: Option<&Direction>, upstream: bool, config: &Config, flows: Flows) -> Classifier {
        let rules = direction.map(|d| Rules::of(d, upstream, config));
        let known = vec![Known::default(); flows.capacity() as usize];
        let senders = Senders::new(direction.map_or(0, |d| d.customers.len()), flows.secret());
        let fragments = asks_ports(rules.as_ref()).then(|| Fragments::new(flows.secret()));
        Classifier { rules, bypass: false, bypassed: 0, flows, known, senders, fragments, without_first: 0 }
    }

    /// Another in its place: the numbers of flows, the bypass and its count go on. Flows are looked up anew; those of a
    /// customer who stays are still known as his, by the new number of his marker. The old rules come back.
    #[must_use]
    pub fn succeeded_by(&mut self, next: NextRules) -> (Classifier, Option<Rules>) {
        let flows = std::mem::replace(&mut self.flows, Flows::new(1, 0));
        let mut known = std::mem::take(&mut self.known);
        for Known { owner, fresh } in &mut known {
            owner.customer = owner.customer.and_then(|c| next.stays.get(usize::from(c)).copied()?);
            *fresh = false;
        }
        let mut senders = std::mem::replace(&mut self.senders, Senders::new(0, 0));
        senders.renumber(&next.stays, next.rules.as_ref().map_or(0, |r| r.terms.len()));
        let fragments = asks_ports(next.rules.as_ref())
            .then(|| self.fragments.take().unwrap_or_else(|| Fragments::new(flows.secret())));
        let Classifier { bypass, bypassed, without_first, .. } = *self;
        let rules = next.rules;
        let new = Classifier { rules, bypass, bypassed, flows, known, senders, fragments, without_first };
        (new, self.rules.take())
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

    /// Control frames that went no further because their senders sent too many, by kind.
    pub fn control_excess(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.senders.excess()
    }

    /// Fragments that could not be held against ports, as the first one of their packet was not seen; whose they are was decided
    /// by address alone.
    #[must_use]
    pub fn fragments_without_first(&self) -> u64 {
        self.without_first
    }

    /// What is done with the packets of a flow, for one that goes the other way and answers them.
    pub fn way_back(&mut self, now: Time, headers: &Headers) -> Option<Way> {
        let turned = headers.turned();
        let found = self.found(now, &FiveTuple::of(&turned), |rules| rules.owner(&turned, turned.ports()))?;
        let rules = self.rules.as_ref()?;
        let markers = [found.entitled(), rules.aggregate];
        let (class, colour, paint) = (rules.assured, Colour::IN, Paint::Keep);
        Some(Way { class, colour, markers, paint, clear_link: false, ..rules.way(&found, None) })
    }

    /// The number and the owner of a flow.
    fn found(&mut self, now: Time, tuple: &FiveTuple, owner: impl Fn(&Rules) -> Owner) -> Option<Found> {
        let rules = self.rules.as_ref()?;
        let Numbered { flow, new } = self.flows.number(now, tuple);
        let known = &mut self.known[flow.0 as usize];
        let (mut forget, mut contract) = (None, None);
        if new || !known.fresh {
            let (before, owner) = (known.owner.customer, owner(rules));
            *known = Known { owner, fresh: true };
            // Another flow's number, or a reload has given the flow to somebody else. What anybody keeps under this number
            // was seen by the marker it passed, the aggregate's, or a queue.
            if new || before != owner.customer {
                let markers = [before, rules.aggregate];
                forget = Some(Former { markers, customer: rules.own_queue_of(before) });
            }
            contract = rules.aggregate.map(|marker| {
                let customer = owner.customer.filter(|_| owner.entitled);
                Contract { marker, rate: customer.map_or(Rate(0), |c| rules.contracts[usize::from(c)]) }
            });
        }
        Some(Found { flow, forget, contract, owner: known.owner })
    }
}

/// A flow that was found, or made.
struct Found {
    flow: FlowId,
    /// See [`Way::forget`].
    forget: Option<Former>,
    /// See [`Way::contract`].
    contract: Option<Contract>,
    owner: Owner,
}

impl Found {
    /// Who has what he bought for it.
    fn entitled(&self) -> Option<u16> {
        self.owner.customer.filter(|_| self.owner.entitled)
    }
}

impl Policy for Classifier {
    fn decide(&mut self, now: Time, seen: &Seen) -> Decision {
        if self.bypass {
            self.bypassed += 1;
            return Decision::Pass;
        }
        let decision = match seen {
            Err(Opaque { why: Unread::Control(kind), link, size }) => {
                self.control_frame(now, (*kind, *size), link, None)
            }
            Ok(h @ Headers { control: Some(kind), link, size, .. }) => {
                self.control_frame(now, (*kind, *size), link, Some(h))
            }
            Ok(headers) => self.packet(now, headers),
            Err(Opaque { why: Unread::MacControl, .. }) => self.rules.as_ref().map(|_| Decision::Refuse),
            Err(Opaque { link, .. }) => self.unreadable(now, link),
        };
        // Nothing is done in this direction.
        decision.unwrap_or(Decision::Pass)
    }
}

/// Each `None` without rules.
impl Classifier {
    /// A packet that somebody may have bought something for.
    fn packet(&mut self, now: Time, headers: &Headers) -> Option<Decision> {
        let rules = self.rules.as_ref()?;
        if headers.length_disagrees && rules.frames.drop_length_mismatch {
            return Some(Decision::Refuse);
        }
        let ports = self.ports(now, headers);
        let tuple = FiveTuple::with_ports(headers, ports);
        let found = self.found(now, &tuple, |rules| rules.owner(headers, ports))?;
        let rules = self.rules.as_ref()?;
        Some(Decision::Queue(rules.way_of(headers, &found)))
    }

    /// The ports of a packet or, where it matters, of the packet that this is a fragment of.
    fn ports(&mut self, now: Time, headers: &Headers) -> Option<Ports> {
        let Transport::Fragment { id, first } = headers.transport else { return headers.ports() };
        let ports = self.fragments.as_mut()?.ports(now, &FiveTuple::fragments(headers, id), first);
        self.without_first += u64::from(ports.is_none());
        ports
    }

    /// What keeps links and neighbours up: a class of its own, of which each kind has its share, and of that each sender.
    fn control_frame(
        &mut self,
        now: Time,
        (kind, size): (Control, u32),
        link: &Link,
        headers: Option<&Headers>,
    ) -> Option<Decision> {
        let rules = self.rules.as_ref()?;
        // Outside one neighbour sends for all.
        if let customer = rules.whose.holder(link)
            && (customer.is_some() || rules.inside_is_source)
        {
            let size = Bytes(u64::from((size + rules.overhead).max(rules.mpu)));
            if !self.senders.let_by(now, (kind, size), customer, link, &rules.allowed) {
                return Some(Decision::Police);
            }
        }
        let found = self.found(now, &FiveTuple::opaque(&Link::default()), |_| Owner::default())?;
        let rules = self.rules.as_ref()?;
        let (class, colour) = (Direction::CONTROL as u8, Colour::IN);
        let markers = [Some(rules.control + kind as u16), None];
        let way = rules.way(&found, headers);
        Some(Decision::Queue(Way { class, colour, markers, clear_link: false, ..way }))
    }

    /// Anything else: best effort, and his who has the circuit it came in.
    fn unreadable(&mut self, now: Time, link: &Link) -> Option<Decision> {
        if self.rules.as_ref()?.frames.drop_unreadable {
            return Some(Decision::Refuse);
        }
        let owner = |rules: &Rules| Owner::of_circuit(rules.whose.of_circuit(link));
        let found = self.found(now, &FiveTuple::opaque(link), owner)?;
        Some(Decision::Queue(self.rules.as_ref()?.way(&found, None)))
    }
}

/// Whether some customers are known by ports.
fn asks_ports(rules: Option<&Rules>) -> bool {
    rules.is_some_and(|r| r.whose.has_ports())
}

impl Rules {
    /// Those of a direction.
    fn of(d: &Direction, upstream: bool, config: &Config) -> Rules {
        let mut services = Vec::new();
        let mut terms = Vec::with_capacity(d.customers.len());
        for customer in &d.customers {
            terms.push(Terms::of(customer, services.len()));
            for service in &customer.services {
                services.push((service.class as u8, policers::first(d) + services.len() as u16));
            }
        }
        let control = policers::first(d) + services.len() as u16;
        let whose = Whose::new(&d.customers);
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
                addresses: whose.has_circuits().then(|| d.control.half()),
            },
            overhead: config.overhead,
            mpu: config.mpu,
            whose,
            points: config.points,
            role: d.role,
            unsold: d.unsold,
            frames: config.frames,
            class_of,
            assured: d.assured as u8,
            best_effort,
            aggregate: d.aggregate.as_ref().map(|_| d.customers.len() as u16),
        }
    }

    /// What is done with a packet that somebody may have bought something for.
    fn way_of(&self, headers: &Headers, found: &Found) -> Way {
        let unsold = self.way(found, Some(headers));
        let (dscp, points) = (headers.dscp, self.points);
        let (colour, customer) = (points.colour(dscp), found.entitled());
        let terms = customer.map(|c| self.terms[usize::from(c)]);
        let edge = self.role == Role::Edge;
        if let Some(c) = customer.filter(|_| terms.is_some_and(|t| t.meters(dscp))) {
            let (colour, markers) = (colour.unwrap_or(Colour::IN), [Some(c), self.aggregate]);
            let (paint, clear_link) = (Paint::Colour(points), edge && self.unsold.bleach);
            return Way { class: self.assured, colour, markers, paint, clear_link, ..unsold };
        }
        if let Some(colour) = colour.filter(|_| !edge) {
            let markers = [None, self.aggregate];
            let paint = if self.aggregate.is_some() { Paint::Colour(points) } else { Paint::Keep };
            return Way { class: self.assured, colour, markers, paint, clear_link: false, ..unsold };
        }
        let class = self.class_of[usize::from(dscp.value())];
        let way = Way { class, paint: Paint::Keep, clear_link: false, ..unsold };
        // Those that no class names are best effort's.
        if class < self.assured {
            if let Some(policer) = terms.and_then(|t| self.policer(t, class)) {
                return Way { markers: [Some(policer), None], ..way };
            }
            if !edge {
                return Way { markers: [None; 2], ..way };
            }
        }
        unsold
    }

    /// What is done with what nobody has bought: best effort, and his whose it is.
    fn way(&self, found: &Found, headers: Option<&Headers>) -> Way {
        let becomes = headers.and_then(|h| self.unsold.becomes(h.dscp));
        let his = found.owner.customer.map(|c| (c, self.terms[usize::from(c)]));
        Way {
            flow: found.flow,
            forget: found.forget,
            contract: found.contract,
            customer: his.map(|(_, terms)| terms.place),
            own_queue: his.is_some_and(|(_, terms)| terms.own_queue),
            class: self.best_effort,
            colour: Colour::OUT,
            markers: [his.filter(|(_, terms)| terms.policed).map(|(c, _)| c), None],
            paint: becomes.map_or(Paint::Keep, Paint::As),
            clear_link: self.unsold.bleach,
        }
    }

    /// The place of a customer who has queues of his own.
    fn own_queue_of(&self, customer: Option<u16>) -> Option<u32> {
        // Mostly nobody has any, and then no customer's terms are asked for.
        let terms = customer.filter(|_| self.own_queues).map(|c| self.terms[usize::from(c)])?;
        terms.own_queue.then_some(terms.place)
    }

    /// The policer of a class that somebody on these terms has bought.
    fn policer(&self, terms: Terms, class: u8) -> Option<u16> {
        let (from, count) = (terms.services.0 as usize, terms.services.1 as usize);
        let his = self.services.get(from..from + count)?;
        his.iter().find(|(bought, _)| *bought == class).map(|(_, policer)| *policer)
    }
}

impl Rules {
    /// Whose a packet with these ports is, by what stands on his side. Without ports it belongs to whoever is known by address
    /// alone.
    fn owner(&self, headers: &Headers, ports: Option<Ports>) -> Owner {
        let (address, port) = if self.inside_is_source {
            (&headers.addresses.0, ports.map(|(source, _)| source))
        } else {
            (&headers.addresses.1, ports.map(|(_, destination)| destination))
        };
        self.whose.find(&headers.link, headers.family, address, port)
    }
}

#[cfg(test)]
mod tests;

//! Whose a packet is and where it goes: by customer (RFC 2475's multi-field classifier), else by the DSCP it carries
//! (its behaviour-aggregate classifier).

mod whose;

use std::collections::HashMap;

use inprofile_core::packet::{Colour, FlowId};
use inprofile_core::signal::Signal;
use inprofile_core::units::Time;
use inprofile_live::code_points::{CodePoints, Dscp};
use inprofile_live::datapath::{Decision, Former, Paint, Policy, Way};
use inprofile_live::flow::{FiveTuple, Flows, Numbered};
use inprofile_live::packet::{Control, Headers, Opaque, Seen, Transport};

use crate::config::frames::Frames;
use crate::config::role::{Role, Unsold};
use crate::config::{Config, Customer, Direction};
use crate::policers;

pub use whose::Whose;

/// The most newcomers that are remembered between two batches of packets.
const MOST_NEWCOMERS: usize = 4096;

/// Whose packets the flow with some number has.
#[derive(Clone, Copy, Debug, Default)]
struct Owner {
    customer: Option<u16>,
    /// Looked up since the last reload.
    known: bool,
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

/// What is decided by.
#[derive(Debug)]
pub struct Rules {
    /// The customer's address is the source; else the destination.
    inside_is_source: bool,
    terms: Vec<Terms>,
    whose: Whose,
    points: CodePoints,
    role: Role,
    unsold: Unsold,
    frames: Frames,
    /// The markers of services: the class and the number of its policer, customer by customer.
    services: Vec<(u8, u16)>,
    /// The policer of the first kind of control frames.
    control: u16,
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
    /// Bits per second; 0: nothing was promised.
    contract: f64,
    /// Where his services are among all, and how many.
    services: (u32, u32),
    /// See [`Customer::place`].
    place: u32,
    own_queue: bool,
}

impl Terms {
    fn of(customer: &Customer, services_from: usize) -> Terms {
        let metered = customer.dscp.iter().fold(0, |all, d| all | 1 << d.value());
        let services = (services_from as u32, customer.services.len() as u32);
        let (place, own_queue) = (customer.place, customer.own.is_some());
        let contract = customer.contract.map_or(0.0, |r| r.0 as f64);
        Terms { metered, contract, services, place, own_queue }
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
        let owners = vec![Owner::default(); flows.capacity() as usize];
        Classifier { rules, bypass: false, bypassed: 0, flows, owners, newcomers: Vec::new() }
    }

    /// Another in its place: the numbers of flows, the bypass and its count go on. Flows are looked up anew; those of a
    /// customer who stays are still known as his, by the new number of his marker. The old rules come back.
    #[must_use]
    pub fn succeeded_by(&mut self, next: NextRules) -> (Classifier, Option<Rules>) {
        let flows = std::mem::replace(&mut self.flows, Flows::new(1, 0));
        let mut owners = std::mem::take(&mut self.owners);
        for owner in &mut owners {
            let customer = owner.customer.and_then(|c| next.stays.get(usize::from(c)).copied()?);
            *owner = Owner { customer, known: false };
        }
        let Classifier { bypass, bypassed, .. } = *self;
        let new = Classifier { rules: next.rules, bypass, bypassed, flows, owners, newcomers: Vec::new() };
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

    /// The contracts of flows that came since the last call, for the aggregate's marker; topic `contract`.
    pub fn newcomers(&mut self) -> impl Iterator<Item = Signal> + '_ {
        self.newcomers.drain(..)
    }

    /// What is done with the packets of a flow, for one that goes the other way and answers them.
    pub fn way_back(&mut self, now: Time, headers: &Headers) -> Option<Way> {
        let (a, b) = headers.addresses;
        let turned = Headers { addresses: (b, a), ..*headers };
        let tuple = FiveTuple::of(headers).reversed();
        let Found { flow, forget, customer } = self.found(now, &tuple, &turned)?;
        let rules = self.rules.as_ref()?;
        let markers = [customer, rules.aggregate];
        let (class, colour, paint) = (rules.assured, Colour::IN, Paint::Keep);
        let (customer, own_queue) = rules.queue_of(customer);
        Some(Way { flow, forget, customer, own_queue, class, colour, markers, paint, clear_link: false })
    }

    /// The number and the owner of a flow.
    fn found(&mut self, now: Time, tuple: &FiveTuple, headers: &Headers) -> Option<Found> {
        let rules = self.rules.as_ref()?;
        let Numbered { flow, new } = self.flows.number(now, tuple);
        let owner = &mut self.owners[flow.0 as usize];
        let mut forget = None;
        if new || !owner.known {
            let (before, customer) = (owner.customer, rules.find(headers));
            *owner = Owner { customer, known: true };
            // Another flow's number, or a reload has given the flow to somebody else. What anybody keeps under this number
            // was seen by the marker it passed, the aggregate's, or a queue.
            if new || before != customer {
                let markers = [before, rules.aggregate];
                forget = Some(Former { markers, customer: rules.place_of(before) });
            }
            if rules.aggregate.is_some() && self.newcomers.len() < MOST_NEWCOMERS {
                let value = customer.map_or(0.0, |c| rules.terms[usize::from(c)].contract);
                self.newcomers.push(Signal { topic: "contract", flow: Some(flow), value });
            }
        }
        Some(Found { flow, forget, customer: owner.customer })
    }
}

/// A flow that was found, or made.
struct Found {
    flow: FlowId,
    /// See [`Way::forget`].
    forget: Option<Former>,
    customer: Option<u16>,
}

impl Policy for Classifier {
    fn decide(&mut self, now: Time, seen: &Seen) -> Decision {
        if self.bypass {
            self.bypassed += 1;
            return Decision::Pass;
        }
        let way = match seen {
            Err(Opaque::Control(kind)) | Ok(Headers { control: Some(kind), .. }) => {
                self.way_of_control(now, *kind, seen.as_ref().ok())
            }
            Ok(headers) => self.way_of_packet(now, headers),
            Err(_) => self.way_of_unreadable(now),
        };
        match (way, &self.rules) {
            (Some(way), _) => Decision::Queue(way),
            (None, Some(_)) => Decision::Refuse,
            // Nothing is done in this direction.
            (None, None) => Decision::Pass,
        }
    }
}

impl Classifier {
    /// A packet that somebody may have bought something for; `None` if it is refused.
    fn way_of_packet(&mut self, now: Time, headers: &Headers) -> Option<Way> {
        let rules = self.rules.as_ref()?;
        if headers.length_disagrees && rules.frames.drop_length_mismatch {
            return None;
        }
        let Found { flow, forget, customer } = self.found(now, &FiveTuple::of(headers), headers)?;
        let rules = self.rules.as_ref()?;
        let (place, own_queue) = rules.queue_of(customer);
        let from = Way { flow, forget, customer: place, own_queue, ..rules.unsold(Some(headers)) };
        let (dscp, points) = (headers.dscp, rules.points);
        let colour = points.colour(dscp);
        let terms = customer.map(|c| rules.terms[usize::from(c)]);
        let edge = rules.role == Role::Edge;
        let bleach = rules.unsold.bleach;
        if let Some(c) = customer.filter(|_| terms.is_some_and(|t| t.meters(dscp))) {
            let (colour, markers) = (colour.unwrap_or(Colour::IN), [Some(c), rules.aggregate]);
            let (paint, clear_link) = (Paint::Colour(points), edge && bleach);
            return Some(Way { class: rules.assured, colour, markers, paint, clear_link, ..from });
        }
        if let Some(colour) = colour.filter(|_| !edge) {
            let markers = [None, rules.aggregate];
            let paint = if rules.aggregate.is_some() { Paint::Colour(points) } else { Paint::Keep };
            let (class, clear_link) = (rules.assured, false);
            return Some(Way { class, colour, markers, paint, clear_link, ..from });
        }
        let class = rules.class_of[usize::from(dscp.value())];
        let (colour, paint, clear_link) = (Colour::OUT, Paint::Keep, false);
        // Those that no class names are best effort's.
        if class < rules.assured {
            if let Some(policer) = terms.and_then(|t| rules.policer(t, class)) {
                let markers = [Some(policer), None];
                return Some(Way { class, colour, markers, paint, clear_link, ..from });
            }
            if !edge {
                let markers = [None; 2];
                return Some(Way { class, colour, markers, paint, clear_link, ..from });
            }
        }
        Some(from)
    }

    /// What keeps links and neighbours up: a class of its own, of which each kind has its share.
    fn way_of_control(&mut self, now: Time, kind: Control, headers: Option<&Headers>) -> Option<Way> {
        let (flow, forget) = self.opaque(now)?;
        let rules = self.rules.as_ref()?;
        let markers = [Some(rules.control + kind as u16), None];
        let class = Direction::CONTROL as u8;
        let unsold = rules.unsold(headers);
        Some(Way { flow, forget, class, colour: Colour::IN, markers, clear_link: false, ..unsold })
    }

    /// Anything else: best effort; `None` if it is refused.
    fn way_of_unreadable(&mut self, now: Time) -> Option<Way> {
        if self.rules.as_ref()?.frames.drop_unreadable {
            return None;
        }
        let (flow, forget) = self.opaque(now)?;
        Some(Way { flow, forget, ..self.rules.as_ref()?.unsold(None) })
    }

    /// The number that all frames share that aren't read as IP, and who has to forget whose it was.
    fn opaque(&mut self, now: Time) -> Option<(FlowId, Option<Former>)> {
        let rules = self.rules.as_ref()?;
        let Numbered { flow, new } = self.flows.number(now, &FiveTuple::opaque());
        let owner = &mut self.owners[flow.0 as usize];
        let forget = new.then(|| {
            let before = std::mem::take(owner).customer;
            Former { markers: [before, rules.aggregate], customer: rules.place_of(before) }
        });
        Some((flow, forget))
    }
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
        let best_effort = d.classes.len() as u8 - 1;
        let mut class_of = [best_effort; 64];
        for (i, class) in (0..).zip(&d.classes) {
            for dscp in &class.dscp {
                class_of[usize::from(dscp.value())] = i;
            }
        }
        Rules {
            inside_is_source: upstream,
            terms,
            services,
            control,
            whose: Whose::new(&d.customers),
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

    /// What is done with what nobody has bought.
    fn unsold(&self, headers: Option<&Headers>) -> Way {
        let becomes = headers.and_then(|h| self.unsold.becomes(h.dscp));
        Way {
            flow: FlowId::default(),
            forget: None,
            customer: None,
            own_queue: false,
            class: self.best_effort,
            colour: Colour::OUT,
            markers: [None; 2],
            paint: becomes.map_or(Paint::Keep, Paint::As),
            clear_link: self.unsold.bleach,
        }
    }

    fn place_of(&self, customer: Option<u16>) -> Option<u32> {
        customer.map(|c| self.terms[usize::from(c)].place)
    }

    /// A customer's place, and whether he has queues of his own.
    fn queue_of(&self, customer: Option<u16>) -> (Option<u32>, bool) {
        (self.place_of(customer), customer.is_some_and(|c| self.terms[usize::from(c)].own_queue))
    }

    /// The policer of a class that somebody on these terms has bought.
    fn policer(&self, terms: Terms, class: u8) -> Option<u16> {
        let (from, count) = (terms.services.0 as usize, terms.services.1 as usize);
        let his = self.services.get(from..from + count)?;
        his.iter().find(|(bought, _)| *bought == class).map(|(_, policer)| *policer)
    }
}

impl Rules {
    /// Whose a packet is. Fragments may lack the ports that say so: they belong to whoever is known by address alone.
    fn find(&self, headers: &Headers) -> Option<u16> {
        let inside = if self.inside_is_source { &headers.addresses.0 } else { &headers.addresses.1 };
        let ports = match headers.transport {
            Transport::Tcp { ports, .. } | Transport::Udp { ports } => Some(ports),
            Transport::Other | Transport::Fragment => None,
        };
        self.whose.find(&headers.link, headers.family, inside, ports)
    }
}

#[cfg(test)]
mod tests;

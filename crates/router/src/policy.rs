//! Classifies packets: by customer (RFC 2475's multi-field classifier), otherwise by the DSCP that they carry (its
//! behaviour-aggregate classifier).

mod lookups;
mod owners;
mod rules;
mod senders;

use std::collections::HashMap;

use inprofile_core::packet::{Colour, FlowId};
use inprofile_core::units::{Bytes, Rate, Time};
use inprofile_live::datapath::{
    Contract, Decision, Foreseen, FormerFlow, Policy, Refusal, Rewrite, Treatment,
};
use inprofile_live::flow::{FiveTuple, Flows, Numbered};
use inprofile_live::packet::{Control, Headers, Link, Opaque, Seen, Transport, Unread};

use crate::config::{Config, Direction};

use lookups::{Fragments, Ports};
use lookups::{Key, Lookups};
use owners::Owner;
use senders::Senders;

pub use known::Known;
pub use owners::Owners;
pub use rules::Rules;

/// From so many customers on it pays to look ahead.
const MANY: usize = 256;

/// One direction's classifier.
#[derive(Debug)]
pub struct Classifier {
    /// `None`: everything passes as it is.
    rules: Option<Rules>,
    /// Everything passes for now.
    bypass: bool,
    /// Frames that passed while it was on.
    bypassed: u64,
    /// With each flow, whose its packets are.
    flows: Flows<Known>,
    /// Of frames that wait.
    lookups: Lookups,
    senders: Senders,
    /// Of customers who are known by ports, where there are any.
    fragments: Option<Fragments>,
    /// Fragments for which nobody is known by ports, as the first one of their packet was not seen.
    without_first: u64,
}

/// The next state of a classifier.
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

impl Classifier {
    /// That of a direction; `upstream`: from inside to outside.
    #[must_use]
    pub fn new(
        direction: Option<&Direction>,
        upstream: bool,
        config: &Config,
        flows: Flows<Known>,
    ) -> Classifier {
        let rules = direction.map(|d| Rules::of(d, upstream, config));
        let senders = Senders::new(direction.map_or(0, |d| d.customers.len()), flows.secret());
        let fragments = asks_ports(rules.as_ref()).then(|| Fragments::new(flows.secret()));
        let lookups = Lookups::default();
        Classifier { rules, bypass: false, bypassed: 0, flows, lookups, senders, fragments, without_first: 0 }
    }

    /// Another in its place: the numbers of flows, the bypass and its count go on. Flows are looked up again; those of a
    /// customer who stays are still known as his, by the new number of his marker. The old rules come back.
    #[must_use]
    pub fn succeeded_by(&mut self, next: NextRules, now: Time) -> (Classifier, Option<Rules>) {
        let mut flows = std::mem::replace(&mut self.flows, Flows::keeping(1, 0));
        let stays = |customer: u16| next.stays.get(usize::from(customer)).copied()?;
        flows.all_kept().for_each(|known| *known = known.reloaded(stays));
        let mut senders = std::mem::replace(&mut self.senders, Senders::new(0, 0));
        if let Some(rules) = &next.rules {
            senders.renumber(&next.stays, rules.terms.len(), now, rules.allowed.each);
        }
        let fragments = asks_ports(next.rules.as_ref())
            .then(|| self.fragments.take().unwrap_or_else(|| Fragments::new(flows.secret())));
        let Classifier { bypass, bypassed, without_first, .. } = *self;
        let rules = next.rules;
        let lookups = Lookups::default();
        let new = Classifier { rules, bypass, bypassed, flows, lookups, senders, fragments, without_first };
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
    pub fn flows(&self) -> &Flows<Known> {
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

    /// The treatment of a flow's packets, for the flow in the other direction that answers them.
    pub fn reverse_treatment(&mut self, headers: &Headers) -> Option<Treatment> {
        let reversed = headers.reversed();
        let tuple = FiveTuple::of(&reversed);
        let found =
            self.found(self.flows.hash(&tuple), &tuple, |rules| rules.owner(&reversed, reversed.ports()))?;
        let rules = self.rules.as_ref()?;
        let markers = [found.entitled(), rules.aggregate];
        let (class, colour, rewrite) = (rules.assured, Colour::IN, Rewrite::Keep);
        Some(Treatment {
            class,
            colour,
            markers,
            rewrite,
            clear_link: false,
            ..rules.unsold_treatment(&found, None)
        })
    }

    /// The number and the owner of a flow with this hash.
    fn found(&mut self, hash: u64, tuple: &FiveTuple, owner: impl Fn(&Rules) -> Owner) -> Option<FlowEntry> {
        let rules = self.rules.as_ref()?;
        let Numbered { flow, new } = self.flows.number_by(hash, tuple);
        let mut known = self.flows.kept(flow);
        let (mut forget, mut contract) = (None, None);
        if new || !known.is_fresh() {
            let (before, owner) = (known.owner().customer, owner(rules));
            known = Known::fresh(owner);
            self.flows.keep(flow, known);
            // Another flow's number, or a reload has given the flow to somebody else. What anybody keeps under this number
            // was seen by the marker it passed, the aggregate's, or a queue.
            if new || before != owner.customer {
                let markers = [before, rules.aggregate];
                forget = Some(FormerFlow { markers, customer: rules.own_queue_of(before) });
            }
            contract = rules.aggregate.map(|marker| {
                let customer = owner.customer.filter(|_| owner.entitled);
                Contract { marker, rate: customer.map_or(Rate(0), |c| rules.contracts[usize::from(c)]) }
            });
        }
        Some(FlowEntry { flow, forget, contract, owner: known.owner() })
    }
}

/// A flow that was found, or made.
struct FlowEntry {
    flow: FlowId,
    /// See [`Treatment::forget`].
    forget: Option<FormerFlow>,
    /// See [`Treatment::contract`].
    contract: Option<Contract>,
    owner: Owner,
}

impl FlowEntry {
    /// Who has what he bought for it.
    fn entitled(&self) -> Option<u16> {
        self.owner.customer.filter(|_| self.owner.entitled)
    }
}

impl Policy for Classifier {
    fn looks_ahead(&self) -> bool {
        !self.bypass && self.rules.as_ref().is_some_and(|r| r.terms.len() >= MANY)
    }

    fn look_anew(&mut self) {
        self.lookups.clear();
    }

    fn foresee(&mut self, seen: &Seen) {
        let (Some(rules), Ok(headers)) = (&self.rules, seen) else { return self.lookups.push(None) };
        let key = Key::of(headers, headers.ports());
        let hash = self.flows.hash(key.tuple());
        self.flows.foresee(hash);
        let owner = rules.owner(headers, headers.ports());
        rules.foresee(owner);
        self.lookups.push(Some(lookups::Lookup { key, hash, owner }));
    }

    fn soon(&self) -> Option<Foreseen> {
        let found = self.lookups.soon()?;
        self.flows.foresee_place(found.hash);
        let marker = found.owner.customer?;
        Some(Foreseen { customer: self.rules.as_ref()?.place(marker), marker })
    }

    fn decide(&mut self, now: Time, seen: &Seen) -> Decision {
        if self.bypass {
            self.bypassed += 1;
            return Decision::Pass;
        }
        let foreseen = self.lookups.next();
        let decision = match seen {
            Err(Opaque { why: Unread::Control(kind), link, .. }) => {
                self.control_frame(now, *kind, seen, link, None)
            }
            Ok(h @ Headers { control: Some(kind), link, .. }) => {
                self.control_frame(now, *kind, seen, link, Some(h))
            }
            Ok(headers) => self.packet(now, headers, foreseen),
            Err(Opaque { why: why @ Unread::MacControl, .. }) => {
                self.rules.as_ref().map(|_| Decision::Refuse(Refusal::Unread(*why)))
            }
            Err(Opaque { why, link, .. }) => self.unreadable(*why, link),
        };
        // Nothing is done in this direction.
        decision.unwrap_or(Decision::Pass)
    }
}

/// Each `None` without rules.
impl Classifier {
    /// A packet that somebody may have bought something for. `foreseen`: what was probably looked up for it.
    fn packet(
        &mut self,
        now: Time,
        headers: &Headers,
        foreseen: Option<lookups::Lookup>,
    ) -> Option<Decision> {
        let rules = self.rules.as_ref()?;
        if headers.length_disagrees && rules.frames.drop_length_mismatch {
            return Some(Decision::Refuse(Refusal::LengthMismatch));
        }
        let ports = self.ports(now, headers);
        let key = Key::of(headers, ports);
        let found = match foreseen.filter(|found| found.key == key) {
            Some(lookups::Lookup { hash, owner, .. }) => self.found(hash, key.tuple(), |_| owner),
            None => {
                self.found(self.flows.hash(key.tuple()), key.tuple(), |rules| rules.owner(headers, ports))
            }
        }?;
        let rules = self.rules.as_ref()?;
        Some(Decision::Queue(rules.treatment(headers, &found)))
    }

    /// The ports of a packet or, where they may tell whose it is, of the packet that this is a fragment of.
    fn ports(&mut self, now: Time, headers: &Headers) -> Option<Ports> {
        let Transport::Fragment { id, first } = headers.transport else { return headers.ports() };
        if !self.rules.as_ref()?.asks_ports(headers) {
            return None;
        }
        let ports = self.fragments.as_mut()?.ports(now, &FiveTuple::fragments(headers, id), first);
        self.without_first += u64::from(ports.is_none());
        ports
    }

    /// Frames that keep links and neighbours up: a class of its own, of which each kind has its share, and of that each sender.
    fn control_frame(
        &mut self,
        now: Time,
        kind: Control,
        seen: &Seen,
        link: &Link,
        headers: Option<&Headers>,
    ) -> Option<Decision> {
        let rules = self.rules.as_ref()?;
        let charged = Bytes(u64::from(rules.charge.packet(seen)));
        if !self.senders.admit(now, (kind, charged), rules.owners.holder(link), link, &rules.allowed) {
            return Some(Decision::Police);
        }
        let tuple = FiveTuple::control();
        let found = self.found(self.flows.hash(&tuple), &tuple, |_| Owner::default())?;
        let rules = self.rules.as_ref()?;
        let (class, colour) = (Direction::CONTROL as u8, Colour::IN);
        let markers = [Some(rules.control + kind as u16), None];
        let treatment = rules.unsold_treatment(&found, headers);
        Some(Decision::Queue(Treatment { class, colour, markers, clear_link: false, ..treatment }))
    }

    /// Anything else: dropped, or sent as best effort and charged to the customer whose circuit it arrived on.
    fn unreadable(&mut self, why: Unread, link: &Link) -> Option<Decision> {
        if self.rules.as_ref()?.drop_unreadable {
            return Some(Decision::Refuse(Refusal::Unread(why)));
        }
        let owner = |rules: &Rules| Owner::of_circuit(rules.owners.of_circuit(link));
        let found = self.found_opaque(link, owner)?;
        Some(Decision::Queue(self.rules.as_ref()?.unsold_treatment(&found, None)))
    }

    /// The treatment of a circuit's frames that are not read as IP.
    fn found_opaque(&mut self, link: &Link, owner: impl Fn(&Rules) -> Owner) -> Option<FlowEntry> {
        let tuple = FiveTuple::opaque(link);
        self.found(self.flows.hash(&tuple), &tuple, owner)
    }
}

/// Whether some customers are known by ports.
fn asks_ports(rules: Option<&Rules>) -> bool {
    rules.is_some_and(|r| r.owners.has_ports())
}

mod known {
    //! Whose the packets of a flow are, in four bytes: those of eight flows share a cache line with what finds them.

    use super::owners::Owner;

    /// Of the flow that has some number, or had it last.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Known {
        customer: u16,
        is: u8,
    }

    /// Somebody's.
    const HIS: u8 = 1;
    /// See [`Owner::entitled`].
    const ENTITLED: u8 = 2;
    /// Looked up since the last reload.
    const FRESH: u8 = 4;

    impl Known {
        /// Just looked up.
        pub fn fresh(owner: Owner) -> Known {
            let is = u8::from(owner.customer.is_some()) * HIS + u8::from(owner.entitled) * ENTITLED + FRESH;
            Known { customer: owner.customer.unwrap_or_default(), is }
        }

        /// Whether it was looked up since the last reload.
        pub fn is_fresh(self) -> bool {
            self.is & FRESH != 0
        }

        /// Whose they are.
        pub fn owner(self) -> Owner {
            let customer = (self.is & HIS != 0).then_some(self.customer);
            Owner { customer, entitled: self.is & ENTITLED != 0 }
        }

        /// After a reload: his still who `stays`, under the number that he has now; to be looked up again.
        pub fn reloaded(self, stays: impl Fn(u16) -> Option<u16>) -> Known {
            let owner = self.owner();
            let known = Known::fresh(Owner { customer: owner.customer.and_then(stays), ..owner });
            Known { is: known.is & !FRESH, ..known }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_is_put_in_comes_out() {
            assert_eq!(size_of::<Known>(), 4);
            for customer in [None, Some(0), Some(7), Some(u16::MAX)] {
                for entitled in [false, true] {
                    let owner = Owner { customer, entitled };
                    let known = Known::fresh(owner);
                    assert_eq!((known.is_fresh(), known.owner()), (true, owner));
                    let after = known.reloaded(|c| (c == 7).then_some(9));
                    let customer = (customer == Some(7)).then_some(9);
                    assert_eq!((after.is_fresh(), after.owner()), (false, Owner { customer, entitled }));
                }
            }
            assert_eq!((Known::default().is_fresh(), Known::default().owner()), (false, Owner::default()));
        }
    }
}

#[cfg(test)]
mod tests;

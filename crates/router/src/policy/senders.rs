//! Control frames are policed for each sender, so that one who sends too many takes nothing from the others.
//!
//! Each customer whom a circuit tells has a bucket for each kind. Where none does it is the Ethernet address, of which a bounded
//! number is told apart. An address is forged with a stroke, so addresses have no bucket a kind: each has its rate for [all kinds
//! together](AllKinds), and so have all of them, no more than one kind's policer lets through, half of that where there are
//! circuits. Behind these is each kind's own policer, of everybody together ([`policers`](crate::policers)).
//! Non-goal: fairness among addresses of one network: whoever forges many is many.

use inprofile_core::units::{Bytes, Rate, Time};
use inprofile_live::flow::{FiveTuple, Flows};
use inprofile_live::packet::{Control, Link};

use crate::config::frames::Policing;

/// The most Ethernet addresses that are told apart.
const MOST_ADDRESSES: u32 = 4096;
const KINDS: usize = Control::ALL.len();

/// A token bucket, as the time at which it will be full again: it then holds its burst, and less by what passes until then.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket(Time);

impl Bucket {
    fn empty(now: Time, police: Policing) -> Bucket {
        Bucket(now + police.rate.serialise(police.burst))
    }

    /// Whether so many bytes may pass, which they then do.
    fn take(&mut self, now: Time, size: Bytes, police: Policing) -> bool {
        let full = self.0.max(now) + police.rate.serialise(size);
        let passes = full.since(now) <= police.rate.serialise(police.burst);
        if passes {
            self.0 = full;
        }
        passes
    }
}

/// The limit of a sender, or of many, for all kinds together. A quarter of the rate is kept for the kinds in equal parts, each with
/// an eighth of the burst, so that a flood of one kind does not break what another keeps up. At once at most twice the burst.
#[derive(Clone, Copy, Debug, Default)]
struct AllKinds {
    any: Bucket,
    kept: [Bucket; KINDS],
}

impl AllKinds {
    fn take(&mut self, now: Time, (kind, size): (usize, Bytes), police: Policing) -> bool {
        let part = |rate: u64, burst: u64| Policing {
            rate: Rate((police.rate.0 * rate / 32).max(1)),
            burst: Bytes(police.burst.0 * burst / 8),
        };
        self.kept[kind].take(now, size, part(1, 1)) || self.any.take(now, size, part(24, 8))
    }
}

/// How much control frames are let through.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// To each sender: of each kind to a customer, of all together to an Ethernet address.
    pub each: Policing,
    /// To all whom no circuit tells, of all kinds together.
    pub addresses: Policing,
    /// Ethernet addresses are told apart.
    pub by_address: bool,
}

/// Who sent how much of late.
#[derive(Debug)]
pub struct Senders {
    customers: Vec<[Bucket; KINDS]>,
    /// Numbers addresses as a table of flows numbers flows.
    addresses: Flows,
    by_address: Vec<AllKinds>,
    together: AllKinds,
    excess: [u64; KINDS],
}

impl Senders {
    /// Nobody has sent anything. `secret` keeps addresses from being chosen that collide.
    #[must_use]
    pub fn new(customers: usize, secret: u64) -> Senders {
        let addresses = Flows::new(MOST_ADDRESSES, secret);
        let by_address = vec![AllKinds::default(); addresses.capacity() as usize];
        let (together, excess) = Default::default();
        Senders { customers: vec![Default::default(); customers], addresses, by_address, together, excess }
    }

    /// Whether a frame of this kind and size may go on. `customer`: whose circuit it came in.
    pub fn admit(
        &mut self,
        now: Time,
        (kind, size): (Control, Bytes),
        customer: Option<u16>,
        link: &Link,
        allowed: &Allowed,
    ) -> bool {
        let i = kind as usize;
        let passes = match customer.and_then(|c| self.customers.get_mut(usize::from(c))) {
            Some(buckets) => buckets[i].take(now, size, allowed.each),
            None => self.admit_address(now, (i, size), link, allowed),
        };
        self.excess[i] += u64::from(!passes);
        passes
    }

    /// Whether the frame of an Ethernet address may go on. One that is new, or was forgotten, has all its tokens; it is known from the
    /// first frame on that is let through, so that a flood of forged addresses takes nobody's place.
    fn admit_address(&mut self, now: Time, what: (usize, Bytes), link: &Link, allowed: &Allowed) -> bool {
        let all = allowed.addresses;
        if !allowed.by_address {
            return self.together.take(now, what, all);
        }
        let sender = FiveTuple::sender(link.source);
        if self.addresses.find(&sender).is_some() {
            let flow = self.addresses.number(&sender).flow;
            let his = &mut self.by_address[flow.0 as usize];
            return his.take(now, what, allowed.each) && self.together.take(now, what, all);
        }
        let mut his = AllKinds::default();
        let passes = his.take(now, what, allowed.each) && self.together.take(now, what, all);
        if passes {
            let flow = self.addresses.number(&sender).flow;
            self.by_address[flow.0 as usize] = his;
        }
        passes
    }

    /// Frames that did not go on, by their kind.
    pub fn excess(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Control::ALL.into_iter().map(Control::name).zip(self.excess)
    }

    /// Customers have other numbers now: `of` says which a number becomes. It refills nobody's bucket; a new customer, or a
    /// renamed one, starts with empty ones.
    pub fn renumber(&mut self, of: &[Option<u16>], customers: usize, now: Time, each: Policing) {
        let mut new = vec![[Bucket::empty(now, each); KINDS]; customers];
        for (buckets, number) in self.customers.iter().zip(of) {
            if let Some(place) = number.and_then(|n| new.get_mut(usize::from(n))) {
                *place = *buckets;
            }
        }
        self.customers = new;
    }
}

//! Control frames are policed for each sender, so that one who sends too many takes nothing from the others.
//!
//! Each customer whom a circuit tells has a bucket for each kind; where none does it is the Ethernet address, of which a bounded
//! number is told apart. An address is easily forged, so all these together have no more than half of a kind where
//! there are circuits. Behind these is the kind's own policer, of everybody together ([`policers`](crate::policers)).
//! Non-goal: fairness among addresses of one network: whoever forges many is many.

use inprofile_core::units::{Bytes, Time};
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

/// How much control frames are let through.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// To each sender, of each kind.
    pub each: Policing,
    /// To all who are known by their Ethernet address, of each kind; `None`: as much as to everybody.
    pub addresses: Option<Policing>,
}

/// Who sent how much of late.
#[derive(Debug)]
pub struct Senders {
    customers: Vec<[Bucket; KINDS]>,
    /// Numbers addresses as a table of flows numbers flows.
    addresses: Flows,
    by_address: Vec<[Bucket; KINDS]>,
    together: [Bucket; KINDS],
    excess: [u64; KINDS],
}

impl Senders {
    /// Nobody has sent anything. `secret` keeps addresses from being chosen that collide.
    #[must_use]
    pub fn new(customers: usize, secret: u64) -> Senders {
        let addresses = Flows::new(MOST_ADDRESSES, secret);
        let by_address = vec![Default::default(); addresses.capacity() as usize];
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
            None => {
                let found = self.addresses.number(&FiveTuple::sender(link.source));
                let buckets = &mut self.by_address[found.flow.0 as usize];
                if found.new {
                    *buckets = Default::default();
                }
                buckets[i].take(now, size, allowed.each)
                    && allowed.addresses.is_none_or(|all| self.together[i].take(now, size, all))
            }
        };
        self.excess[i] += u64::from(!passes);
        passes
    }

    /// Frames that did not go on, by their kind.
    pub fn excess(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Control::ALL.into_iter().map(Control::name).zip(self.excess)
    }

    /// Customers have other numbers now: `of` says which a number becomes. Nobody's bucket is filled by it.
    pub fn renumber(&mut self, of: &[Option<u16>], customers: usize) {
        let mut new = vec![Default::default(); customers];
        for (buckets, number) in self.customers.iter().zip(of) {
            if let Some(place) = number.and_then(|n| new.get_mut(usize::from(n))) {
                *place = *buckets;
            }
        }
        self.customers = new;
    }
}

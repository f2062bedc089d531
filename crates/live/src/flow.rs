//! Which flow a packet belongs to: its five-tuple, and a bounded table that gives each flow a number.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use inprofile_core::packet::FlowId;
use inprofile_core::units::Time;

use crate::packet::{Family, Headers, Link};
use crate::prefetch::prefetch;

/// What identifies a flow. Fragments, and protocols without ports, have ports 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiveTuple {
    family: Family,
    addresses: ([u8; 16], [u8; 16]),
    ports: (u16, u16),
    protocol: u8,
    /// The two outer VLANs and the PPPoE session, 0 for none: behind different ones addresses may be the same.
    circuit: [u16; 3],
}

/// The two outer VLANs and the session, 0 for none.
fn circuit(link: &Link) -> [u16; 3] {
    [link.vlans[0], link.vlans[1], link.session].map(Option::unwrap_or_default)
}

impl FiveTuple {
    /// That of a packet.
    #[must_use]
    pub fn of(headers: &Headers) -> FiveTuple {
        FiveTuple::with_ports(headers, headers.ports())
    }

    /// That of a packet which has, or as a fragment should have, these ports.
    #[must_use]
    pub fn with_ports(headers: &Headers, ports: Option<(u16, u16)>) -> FiveTuple {
        let Headers { family, addresses, protocol, .. } = *headers;
        let ports = ports.unwrap_or((0, 0));
        FiveTuple { family, addresses, ports, protocol, circuit: circuit(&headers.link) }
    }

    /// The same for all fragments of a packet, for tables of such packets: RFC 791 §3.2 tells them by identification, addresses and
    /// protocol, RFC 8200 §4.5 without the last, which the fragments of one packet need not agree on.
    #[must_use]
    pub fn fragments(headers: &Headers, id: u32) -> FiveTuple {
        let Headers { family, addresses, .. } = *headers;
        let protocol = if family == Family::V4 { headers.protocol } else { 0 };
        FiveTuple {
            family,
            addresses,
            ports: ((id >> 16) as u16, id as u16),
            protocol,
            circuit: circuit(&headers.link),
        }
    }

    /// The same for all frames of a circuit that are not read as IP. No packet has IANA's reserved protocol and a port.
    #[must_use]
    pub fn opaque(link: &Link) -> FiveTuple {
        let (family, addresses, ports, protocol) = (Family::V4, ([0; 16], [0; 16]), (1, 0), 255);
        FiveTuple { family, addresses, ports, protocol, circuit: circuit(link) }
    }

    /// That of the sender with this Ethernet address, for tables of senders instead of flows.
    #[must_use]
    pub fn sender(address: [u8; 6]) -> FiveTuple {
        let mut source = [0; 16];
        source[..6].copy_from_slice(&address);
        let (family, ports, protocol) = (Family::V4, (2, 0), 255);
        FiveTuple { family, addresses: (source, [0; 16]), ports, protocol, circuit: [0; 3] }
    }

    /// That of the packets in the other direction.
    #[must_use]
    pub fn reversed(self) -> FiveTuple {
        let ((a, b), (c, d)) = (self.addresses, self.ports);
        FiveTuple { addresses: (b, a), ports: (d, c), ..self }
    }

    /// SipHash with a secret key, so that nobody can choose flows that collide.
    #[must_use]
    pub fn hash_with(&self, secret: u64) -> u64 {
        // All at once: piece by piece takes twice as long.
        let mut key = [0; 52];
        key[..8].copy_from_slice(&secret.to_ne_bytes());
        key[8..24].copy_from_slice(&self.addresses.0);
        key[24..40].copy_from_slice(&self.addresses.1);
        key[40..42].copy_from_slice(&self.ports.0.to_ne_bytes());
        key[42..44].copy_from_slice(&self.ports.1.to_ne_bytes());
        key[44] = self.protocol;
        key[45] = u8::from(self.family == Family::V6);
        for (to, id) in key[46..].chunks_exact_mut(2).zip(self.circuit) {
            to.copy_from_slice(&id.to_ne_bytes());
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(&key);
        hasher.finish()
    }
}

/// Entries in a set of the table: a new flow replaces the one not seen for the longest time.
const WAYS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Entry {
    tuple: FiveTuple,
    seen: Time,
}

/// Numbers flows from 0 to its capacity, whatever arrives: the number of a flow that has long been silent is given to a new
/// one. It never grows.
#[derive(Debug)]
pub struct Flows {
    entries: Vec<Option<Entry>>,
    secret: u64,
    used: u32,
    replaced: u64,
}

/// A flow's number, and whether it had one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The number.
    pub flow: FlowId,
    /// The flow is new: state kept under this number must be forgotten.
    pub new: bool,
}

impl Flows {
    /// Room for at least `capacity` flows; bytes needed are about 80 times that, all at once.
    #[must_use]
    pub fn new(capacity: u32, secret: u64) -> Flows {
        let sets = (capacity.max(1) as usize).div_ceil(WAYS).next_power_of_two();
        Flows { entries: vec![None; sets * WAYS], secret, used: 0, replaced: 0 }
    }

    /// The number of the flow of this packet, which counts as seen.
    pub fn number(&mut self, now: Time, tuple: &FiveTuple) -> Numbered {
        let first = self.first_of_set(tuple);
        let set = &mut self.entries[first..first + WAYS];
        if let Some(way) = set.iter().position(|e| e.is_some_and(|e| e.tuple == *tuple)) {
            set[way] = Some(Entry { tuple: *tuple, seen: now });
            return Numbered { flow: FlowId((first + way) as u32), new: false };
        }
        // An empty place has been silent since before the start.
        let age = |e: &Option<Entry>| e.map_or((0, Time::ZERO), |e| (1, e.seen));
        let way = (0..WAYS).min_by_key(|way| age(&set[*way])).unwrap_or(0);
        match set[way] {
            None => self.used += 1,
            Some(_) => self.replaced += 1,
        }
        set[way] = Some(Entry { tuple: *tuple, seen: now });
        Numbered { flow: FlowId((first + way) as u32), new: true }
    }

    /// The number of a flow, if it has one; it doesn't count as seen.
    #[must_use]
    pub fn find(&self, tuple: &FiveTuple) -> Option<FlowId> {
        let first = self.first_of_set(tuple);
        let set = &self.entries[first..first + WAYS];
        let way = set.iter().position(|e| e.is_some_and(|e| e.tuple == *tuple))?;
        Some(FlowId((first + way) as u32))
    }

    /// Prefetches where a flow is, if it has a number; the numbers that it may have or be given.
    #[must_use]
    pub fn foresee(&self, tuple: &FiveTuple) -> Range<usize> {
        let first = self.first_of_set(tuple);
        let numbers = first..first + WAYS;
        prefetch(&self.entries[numbers.clone()]);
        numbers
    }

    /// Where the set is that a flow may be in.
    fn first_of_set(&self, tuple: &FiveTuple) -> usize {
        let sets = self.entries.len() / WAYS;
        (tuple.hash_with(self.secret) as usize & (sets - 1)) * WAYS
    }

    /// What hashes are made with: for another table that must not be guessed either.
    #[must_use]
    pub fn secret(&self) -> u64 {
        self.secret
    }

    /// The most flows it can tell apart at a time: every number is below this.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Flows that have a number.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.used
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Flows that lost their number to another.
    #[must_use]
    pub fn replaced(&self) -> u64 {
        self.replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(n: u32) -> FiveTuple {
        let mut source = [0; 16];
        source[..4].copy_from_slice(&n.to_be_bytes());
        FiveTuple {
            family: Family::V4,
            addresses: (source, [9; 16]),
            ports: (1, 2),
            protocol: 6,
            circuit: [0; 3],
        }
    }

    #[test]
    fn a_flow_keeps_its_number() {
        let mut flows = Flows::new(1024, 1);
        let first: Vec<_> = (0..100).map(|n| flows.number(Time(n), &tuple(n as u32))).collect();
        assert!(first.iter().all(|f| f.new));
        let mut numbers: Vec<u32> = first.iter().map(|f| f.flow.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), flows.len(), flows.replaced()), (100, 100, 0));
        for (n, f) in (0..100).zip(&first) {
            assert_eq!(flows.number(Time(200), &tuple(n)), Numbered { flow: f.flow, new: false });
        }
    }

    #[test]
    fn a_flood_of_flows_stays_within_bounds() {
        let mut flows = Flows::new(1000, 2);
        let favourite = flows.number(Time(0), &tuple(u32::MAX)).flow;
        for n in 0..200_000 {
            assert!(flows.number(Time(2 * n), &tuple(n as u32)).flow.0 < flows.capacity());
            // A flow that goes on keeps its number through the flood.
            assert_eq!(
                flows.number(Time(2 * n + 1), &tuple(u32::MAX)),
                Numbered { flow: favourite, new: false }
            );
        }
        assert_eq!((flows.capacity(), flows.entries.capacity()), (1024, 1024));
        assert_eq!(u64::from(flows.len()) + flows.replaced(), 200_001);
    }

    #[test]
    fn there_and_back() {
        assert_eq!(tuple(3).reversed().reversed(), tuple(3));
        assert_ne!(tuple(3).reversed(), tuple(3));
        assert_ne!(tuple(3).hash_with(1), tuple(3).hash_with(2));
    }

    /// Whatever two flows differ in, they are spread by it.
    #[test]
    fn every_field_counts() {
        let t = FiveTuple { ports: (1, 1), addresses: ([7; 16], [7; 16]), ..tuple(0) };
        let others = [
            FiveTuple { family: Family::V6, ..t },
            FiveTuple { addresses: ([8; 16], [7; 16]), ..t },
            FiveTuple { addresses: ([7; 16], [8; 16]), ..t },
            FiveTuple { ports: (2, 1), ..t },
            FiveTuple { ports: (1, 2), ..t },
            FiveTuple { protocol: 17, ..t },
            FiveTuple { circuit: [5, 0, 0], ..t },
            FiveTuple { circuit: [0, 5, 0], ..t },
            FiveTuple { circuit: [0, 0, 5], ..t },
        ];
        let mut hashes: Vec<u64> = [t].iter().chain(&others).map(|t| t.hash_with(5)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 10);
    }
}

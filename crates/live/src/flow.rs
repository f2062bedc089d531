//! Which flow a packet belongs to: its five-tuple, and a bounded table that gives each flow a number.

use std::hash::{DefaultHasher, Hasher};

use inprofile_core::packet::FlowId;

use crate::packet::{Family, Headers, Link};
use crate::prefetch::prefetch;

/// The identity of a flow. Fragments, and protocols without ports, have ports 0.
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

    /// The same for all control frames, which are nobody's: not that of frames that are not read as IP, which are somebody's.
    #[must_use]
    pub fn control() -> FiveTuple {
        FiveTuple { ports: (3, 0), ..FiveTuple::opaque(&Link::default()) }
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

/// Flows in a set of the table: a new flow replaces the one not seen for the longest time.
const WAYS: usize = 8;

/// Some flows. With `T` of up to four bytes it is one cache line, and the only one that a new flow's packet waits for.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Set<T> {
    /// A part of each flow's hash, so that mostly one tuple is looked at or none; 0: there is no flow.
    tags: [u16; WAYS],
    /// The flows, from the one seen last to the one not seen for the longest time; those that are not there yet come last.
    order: [u8; WAYS],
    /// The state of each.
    kept: [T; WAYS],
}

impl<T: Copy + Default> Set<T> {
    fn new() -> Set<T> {
        let order = std::array::from_fn(|place| (WAYS - 1 - place) as u8);
        Set { tags: [0; WAYS], order, kept: [T::default(); WAYS] }
    }

    /// A flow was seen.
    #[inline]
    fn see(&mut self, way: usize) {
        let place = self.order.iter().position(|w| usize::from(*w) == way).unwrap_or(WAYS - 1);
        self.order[..=place].rotate_right(1);
    }
}

/// Numbers flows from 0 to its capacity, whatever arrives, and keeps something of each: the number of a flow that has long been
/// silent is given to a new one. It never grows.
#[derive(Debug)]
pub struct Flows<T = ()> {
    sets: Vec<Set<T>>,
    /// Each number's flow, if its set says that there is one.
    tuples: Vec<FiveTuple>,
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
    /// Room for at least `capacity` flows, of which nothing is kept.
    #[must_use]
    pub fn new(capacity: u32, secret: u64) -> Flows {
        Flows::keeping(capacity, secret)
    }
}

impl<T: Copy + Default> Flows<T> {
    /// Room for at least `capacity` flows; bytes needed are about 52 times that, all at once, where little is kept of each.
    #[must_use]
    pub fn keeping(capacity: u32, secret: u64) -> Flows<T> {
        let sets = (capacity.max(1) as usize).div_ceil(WAYS).next_power_of_two();
        let tuples = vec![FiveTuple::opaque(&Link::default()); sets * WAYS];
        Flows { sets: vec![Set::new(); sets], tuples, secret, used: 0, replaced: 0 }
    }

    /// The number of the flow of this packet, which counts as seen.
    pub fn number(&mut self, tuple: &FiveTuple) -> Numbered {
        self.number_by(self.hash(tuple), tuple)
    }

    /// The number of the flow of this packet, whose [hash](Flows::hash) is known. It counts as seen.
    pub fn number_by(&mut self, hash: u64, tuple: &FiveTuple) -> Numbered {
        let at = self.set_of(hash);
        let (known, set) = (self.way_of(hash, tuple), &mut self.sets[at]);
        let number = |way| FlowId((at * WAYS + way) as u32);
        if let Some(way) = known {
            set.see(way);
            return Numbered { flow: number(way), new: false };
        }
        let way = usize::from(set.order[WAYS - 1]);
        set.order.rotate_right(1);
        match std::mem::replace(&mut set.tags[way], tag(hash)) {
            0 => self.used += 1,
            _ => self.replaced += 1,
        }
        self.tuples[at * WAYS + way] = *tuple;
        Numbered { flow: number(way), new: true }
    }

    /// The number of a flow, if it has one; it doesn't count as seen.
    #[must_use]
    pub fn find(&self, tuple: &FiveTuple) -> Option<FlowId> {
        let hash = self.hash(tuple);
        let way = self.way_of(hash, tuple)?;
        Some(FlowId((self.set_of(hash) * WAYS + way) as u32))
    }

    /// The state of the flow with this number; a new flow's is still its number's former flow's.
    #[must_use]
    pub fn kept(&self, flow: FlowId) -> T {
        let number = flow.0 as usize;
        self.sets[number / WAYS].kept[number % WAYS]
    }

    /// Keeps this of a flow.
    pub fn keep(&mut self, flow: FlowId, what: T) {
        let number = flow.0 as usize;
        self.sets[number / WAYS].kept[number % WAYS] = what;
    }

    /// The state of all flows, whether there are such or not.
    pub fn all_kept(&mut self) -> impl Iterator<Item = &mut T> {
        self.sets.iter_mut().flat_map(|set| &mut set.kept)
    }

    /// The key of a flow.
    #[must_use]
    pub fn hash(&self, tuple: &FiveTuple) -> u64 {
        tuple.hash_with(self.secret)
    }

    /// Prefetches what is looked at to find a flow with this hash.
    #[inline]
    pub fn foresee(&self, hash: u64) {
        prefetch(&self.sets[self.set_of(hash)]);
    }

    /// Prefetches where a flow with this hash is, or will be if it is new. Where its set is not in the cache yet, that is waited for.
    #[inline]
    pub fn foresee_place(&self, hash: u64) {
        let (at, tag) = (self.set_of(hash), tag(hash));
        let Set { tags, order, .. } = &self.sets[at];
        let way = tags.iter().position(|t| *t == tag).unwrap_or(usize::from(order[WAYS - 1]));
        prefetch(&self.tuples[at * WAYS + way]);
    }

    /// The set that a flow may be in.
    fn set_of(&self, hash: u64) -> usize {
        hash as usize & (self.sets.len() - 1)
    }

    /// Where in its set a flow is.
    #[inline]
    fn way_of(&self, hash: u64, tuple: &FiveTuple) -> Option<usize> {
        let (at, tag) = (self.set_of(hash), tag(hash));
        let tags = &self.sets[at].tags;
        (0..WAYS).find(|way| tags[*way] == tag && self.tuples[at * WAYS + way] == *tuple)
    }

    /// The key of the hashes: for another table that must not be guessed either.
    #[must_use]
    pub fn secret(&self) -> u64 {
        self.secret
    }

    /// The most flows it can tell apart at a time: every number is below this.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.tuples.len() as u32
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

/// The part of a hash that a set keeps: other bits than those that choose the set, and never 0.
fn tag(hash: u64) -> u16 {
    ((hash >> 48) as u16).max(1)
}

#[cfg(test)]
mod tests {
    use inprofile_core::rng::Rng;

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
        let first: Vec<_> = (0..100).map(|n| flows.number(&tuple(n))).collect();
        assert!(first.iter().all(|f| f.new));
        let mut numbers: Vec<u32> = first.iter().map(|f| f.flow.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), flows.len(), flows.replaced()), (100, 100, 0));
        for (n, f) in (0..100).zip(&first) {
            assert_eq!(flows.number(&tuple(n)), Numbered { flow: f.flow, new: false });
        }
    }

    #[test]
    fn a_flood_of_flows_stays_within_bounds() {
        let mut flows = Flows::new(1000, 2);
        let favourite = flows.number(&tuple(u32::MAX)).flow;
        for n in 0..200_000 {
            assert!(flows.number(&tuple(n)).flow.0 < flows.capacity());
            // A flow that goes on keeps its number through the flood.
            assert_eq!(flows.number(&tuple(u32::MAX)), Numbered { flow: favourite, new: false });
        }
        assert_eq!((flows.capacity(), flows.tuples.capacity(), flows.sets.capacity()), (1024, 1024, 128));
        assert_eq!(u64::from(flows.len()) + flows.replaced(), 200_001);
    }

    /// One set of eight says what a list does that is searched from end to end and keeps who was seen last in front; what is kept
    /// of a flow stays until its number is another's.
    #[test]
    fn who_was_seen_longest_ago_makes_room() {
        let (mut flows, mut rng) = (Flows::<u32>::keeping(8, 3), Rng::for_component(1, "flows"));
        let mut list: Vec<(u32, FlowId)> = Vec::new();
        for _ in 0..20_000 {
            let n = (rng.uniform() * 12.0) as u32;
            let found = flows.number(&tuple(n));
            match list.iter().position(|(there, _)| *there == n) {
                Some(place) => {
                    let known = list.remove(place);
                    assert_eq!((found, flows.kept(found.flow)), (Numbered { flow: known.1, new: false }, n));
                }
                None if list.len() < 8 => {
                    assert_eq!(found, Numbered { flow: FlowId(list.len() as u32), new: true });
                }
                None => {
                    let oldest = list.pop().expect("eight");
                    assert_eq!(
                        (found, flows.kept(found.flow)),
                        (Numbered { flow: oldest.1, new: true }, oldest.0)
                    );
                    assert_eq!(flows.find(&tuple(oldest.0)), None);
                }
            }
            flows.keep(found.flow, n);
            list.insert(0, (n, found.flow));
            assert_eq!(flows.find(&tuple(n)), Some(found.flow));
        }
        assert!(flows.replaced() > 1_000);
    }

    /// Two flows whose tags are the same are told apart.
    #[test]
    fn flows_of_the_same_tag_are_two() {
        let mut flows = Flows::new(8, 4);
        let numbers = [1, 2].map(|n| flows.number_by(77 << 48, &tuple(n)));
        assert_eq!(numbers.map(|n| (n.flow.0, n.new)), [(0, true), (1, true)]);
        assert_eq!([1, 2].map(|n| flows.number_by(77 << 48, &tuple(n)).flow.0), [0, 1]);
    }

    #[test]
    fn a_set_is_one_cache_line() {
        assert_eq!(size_of::<Set<u32>>(), 64);
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

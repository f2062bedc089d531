//! One direction through a box: packets are looked at, marked, queued, and sent at a set rate.
//!
//! Time is an argument. [`Datapath::advance`] does everything that is due up to a moment, each thing at its *own*
//! time, in order; so a late caller changes when packets leave the box, but no decision of any mechanism. At the
//! same moment departures come first, then ticks, then arrivals, as in the simulator.
//! Non-goal: routing. What goes in comes out at one port.

pub mod buffers;
pub mod customer;
pub mod delay_line;
pub mod lateness;
pub mod marking;
pub mod shaper;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use inprofile_core::marker::action::POLICED;
use inprofile_core::packet::{Colour, Direction, Ecn, FlowId, Kind, Packet};
use inprofile_core::queue::fifo::{Counts, Item};
use inprofile_core::queue::hierarchy::{Hierarchy, MemberSetup};
use inprofile_core::queue::priority::Priority;
use inprofile_core::queue::scheduled::{Class, Heir, Setup};
use inprofile_core::registry::{AnyAqm, AnyScheduler};
use inprofile_core::rng::Rng;
use inprofile_core::signal::{FORGET, Outbox, Signal};
use inprofile_core::units::{Bytes, Duration, Rate, Time};
use inprofile_core::verdict::{Admission, Cause, Mark, Silent};

use crate::code_points::{CodePoints, Dscp};
use crate::packet::{self, Census, Headers, Layer, Seen};
use buffers::{Buffers, Slot};
use customer::CustomerCounts;
use marking::Marking;
use shaper::Shaper;

/// The most markers one packet passes: its customer's, and the aggregate's.
pub const MOST_MARKERS: usize = 2;

/// What is done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Whose it is.
    pub flow: FlowId,
    /// The flow has only now been given this number: what mechanisms keep under it was another flow's.
    pub forget: Option<Former>,
    /// Whose packet it is, by his place; `None`: nobody's.
    pub customer: Option<u32>,
    /// The customer has queues of his own, and the packet waits there.
    pub own_queue: bool,
    /// The class a scheduler serves it in.
    pub class: u8,
    /// The colour it comes with.
    pub colour: Colour,
    /// Markers it passes, in order, by their number.
    pub markers: [Option<u16>; MOST_MARKERS],
    /// The DSCP it leaves with.
    pub paint: Paint,
    /// The classes of its VLAN tags and MPLS labels are taken off.
    pub clear_link: bool,
}

/// Where a flow's packets went before its number passed to another: what may still keep state under it, beside shared queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Former {
    /// The markers it passed.
    pub markers: [Option<u16>; MOST_MARKERS],
    /// The customer it was of.
    pub customer: Option<u32>,
}

/// Which DSCP a packet leaves with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// The one it came with.
    Keep,
    /// That of its colour.
    Colour(CodePoints),
    /// This one.
    As(Dscp),
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It goes on at once, unqueued and unmarked.
    Pass,
    /// It goes no further.
    Refuse,
    /// It is marked and queued.
    Queue(Way),
}

/// Decides what is done with which frame.
pub trait Policy {
    /// What is done with this one.
    fn decide(&mut self, now: Time, seen: &Seen) -> Decision;
}

/// A packet that leaves, or what became of it. `number` counts the arrivals from 0.
pub trait Witness {
    /// A marker decided.
    fn marked(&mut self, now: Time, number: u64, marker: u16, verdict: Mark) {
        let _ = (now, number, marker, verdict);
    }
    /// The queue decided on an arrival.
    fn queued(&mut self, now: Time, number: u64, verdict: Admission) {
        let _ = (now, number, verdict);
    }
    /// A packet that waited was dropped.
    fn lost(&mut self, now: Time, number: u64, cause: Cause) {
        let _ = (now, number, cause);
    }
    /// A packet goes onto the link, which it may at `due`; `frame` is as it goes out.
    fn send(&mut self, due: Time, number: u64, frame: &mut [u8]);
}

/// A queued packet.
#[derive(Clone, Copy, Debug)]
struct Held {
    packet: Packet,
    /// Of an IP packet: where its DSCP and ECN are.
    headers: Option<Headers>,
    paint: Paint,
    clear_link: bool,
    slot: Slot,
    number: u64,
    since: Time,
    customer: Option<u32>,
}

impl Held {
    /// Gives the frame the DSCP it leaves with, CE if a discipline has marked it, and takes its link's classes off.
    fn write(&self, frame: &mut [u8]) {
        // Most frames have neither tags nor labels.
        if self.clear_link && self.headers.is_none_or(|h| h.link.tags > 0 || h.link.labels > 0) {
            packet::clear_link_classes(frame);
        }
        let Some(headers) = &self.headers else { return };
        match self.paint {
            Paint::Keep => {}
            Paint::Colour(points) => {
                packet::set_dscp(frame, headers, points.of(self.packet.colour));
            }
            Paint::As(dscp) => {
                packet::set_dscp(frame, headers, dscp);
            }
        }
        if self.packet.ecn == Ecn::Experienced && headers.ecn != Ecn::Experienced {
            packet::congestion_experienced(frame, headers);
        }
    }
}

impl Item for Held {
    fn size(&self) -> u32 {
        self.packet.size
    }
    fn colour(&self) -> Colour {
        self.packet.colour
    }
    fn flow(&self) -> FlowId {
        self.packet.flow
    }
    fn since(&self) -> Time {
        self.since
    }
    fn mark(&mut self) -> bool {
        self.packet.ecn.mark()
    }
}

/// Where packets went that neither a marker nor the queue has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames that came in.
    pub came: u64,
    /// Sent on without being queued.
    pub passed: u64,
    /// Refused by the policy.
    pub refused: u64,
    /// Dropped by a marker, but not as out of profile.
    pub marked_away: u64,
    /// Dropped by a marker as out of profile.
    pub policed: u64,
    /// Dropped because every buffer was taken.
    pub no_buffer: u64,
    /// Sent at the shaped rate.
    pub sent: u64,
    /// Thrown away when their turn came, as it had come too long ago.
    pub too_late: u64,
    /// Of those that came: packets with a length field that says something else than what was received.
    pub length_disagrees: u64,
}

/// What a datapath is made of.
#[derive(Debug)]
pub struct Parts {
    /// What frames begin with.
    pub layer: Layer,
    /// Markers, by their number in [`Way::markers`].
    pub markers: Vec<Marking>,
    /// The queues, one a class; at least one. A packet of an unknown class joins the last.
    pub classes: Vec<Setup>,
    /// Shares the link out among the classes.
    pub scheduler: AnyScheduler,
    /// How the link is shared out between these classes and customers who have their own.
    pub sharing: Sharing,
    /// The random numbers of the disciplines.
    pub rng: Rng,
    /// The shaped rate; it must not be zero.
    pub rate: Rate,
    /// Bytes a packet takes on the link beside its IP packet, as in `tc`'s overhead.
    pub overhead: u32,
    /// The fewest bytes a packet counts for, overhead included, as in `tc`'s mpu.
    pub mpu: u32,
    /// A packet whose turn is longer ago than this is thrown away: sent all at once, late ones would exceed the rate.
    pub age_limit: Option<Duration>,
    /// The most packets that are held at a time, whatever the limit says.
    pub buffers: usize,
}

/// How the link is shared out between the classes that customers share, and customers with queues of their own.
#[derive(Debug)]
pub struct Sharing {
    /// So many of the first classes go before everybody.
    pub first: usize,
    /// The level of the other classes among customers', and the bytes of their turn: see [`MemberSetup`].
    pub level: u8,
    /// See `level`.
    pub quantum: u32,
    /// Places of customers: each is below this.
    pub places: usize,
    /// Places that somebody else had, or nobody: their counts begin.
    pub new: Vec<u32>,
    /// Queues of customers that are set up, or set up anew.
    pub queues: Vec<CustomerQueue>,
    /// Places whose queues are wanted no longer.
    pub gone: Vec<u32>,
}

/// The classes have the link for themselves.
impl Default for Sharing {
    fn default() -> Sharing {
        let (new, queues, gone) = (Vec::new(), Vec::new(), Vec::new());
        Sharing { first: 0, level: 0, quantum: 1500, places: 0, new, queues, gone }
    }
}

/// A customer's own queues.
#[derive(Debug)]
pub struct CustomerQueue {
    /// His place.
    pub place: u32,
    /// His classes, by the numbers of the shared ones, and his part of the link.
    pub setup: MemberSetup,
    /// Where he had queues before: who takes over from each class.
    pub heirs: Vec<Heir>,
}

/// Members of the hierarchy: the classes that go first, the others, and then customers by their place.
const FIRST: usize = 0;
const SHARED: usize = 1;
const CUSTOMERS: usize = 2;

/// A class, to be looked at.
#[derive(Clone, Copy, Debug)]
pub struct ClassState<'a>(&'a Class<Held>);

impl ClassState<'_> {
    /// The queue's counts.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        self.0.queue.counts()
    }

    /// Packets waiting, by colour.
    #[must_use]
    pub fn waiting(&self) -> [u32; 3] {
        self.0.queue.waiting()
    }

    /// The discipline: for its gauges and stats.
    #[must_use]
    pub fn aqm(&self) -> &AnyAqm {
        &self.0.aqm
    }
}

/// One direction.
#[derive(Debug)]
pub struct Datapath<P> {
    /// What is done with which packet.
    pub policy: P,
    layer: Layer,
    overhead: u32,
    mpu: u32,
    age_limit: Option<Duration>,
    /// When it really is, as far as it was told: no earlier than what is done.
    present: Time,
    markers: Vec<Marking>,
    queue: Hierarchy<Held>,
    /// So many of the first classes go before everybody.
    first: usize,
    customers: Vec<CustomerCounts>,
    rng: Rng,
    shaper: Shaper,
    /// The link is free and packets wait, but their classes' set rates let none go before this.
    held_until: Option<Time>,
    buffers: Buffers,
    census: Census,
    totals: Totals,
    /// When markers tick, by their number: only those that tick cost anything.
    ticks: BinaryHeap<Reverse<(Time, u16)>>,
}

impl<P: Policy> Datapath<P> {
    /// Empty and idle.
    pub fn new(policy: P, parts: Parts) -> Datapath<P> {
        let mut new = Datapath {
            policy,
            ticks: BinaryHeap::new(),
            layer: parts.layer,
            overhead: parts.overhead,
            mpu: parts.mpu,
            age_limit: parts.age_limit,
            present: Time::ZERO,
            markers: parts.markers,
            queue: Hierarchy::default(),
            first: 0,
            customers: Vec::new(),
            rng: parts.rng,
            shaper: Shaper::new(parts.rate),
            held_until: None,
            buffers: Buffers::new(parts.buffers),
            census: Census::default(),
            totals: Totals::default(),
        };
        new.set_ticks();
        new.set_queues(Time::ZERO, parts.scheduler, parts.classes, parts.sharing, &[]);
        new
    }

    /// Set up anew at `now`, with the packets that wait, the counts and the link as they are. `parts.markers` are all of
    /// them, those that go on included (take them with [`Datapath::take_markers`]); `heirs` says where the packets of
    /// each old class go; of customers' queues `parts.sharing` has those that change. No packet is dropped.
    #[must_use]
    pub fn set_up_anew(self, policy: P, parts: Parts, heirs: &[Heir], now: Time) -> Datapath<P> {
        let mut new = Datapath {
            policy,
            layer: parts.layer,
            overhead: parts.overhead,
            mpu: parts.mpu,
            age_limit: parts.age_limit,
            markers: parts.markers,
            ..self
        };
        new.set_ticks();
        new.set_queues(now, parts.scheduler, parts.classes, parts.sharing, heirs);
        new.shaper.set_rate(parts.rate);
        new.buffers.set_most(parts.buffers);
        // What was held back by a set rate may have another now.
        let sending = new.shaper.due().is_some();
        new.held_until = new.held_until.filter(|_| !sending).map(|_| now);
        new
    }

    /// Notes when which marker ticks.
    fn set_ticks(&mut self) {
        let ticks = (0..).zip(&self.markers).filter_map(|(n, m)| Some(Reverse((m.next_tick()?, n))));
        self.ticks = ticks.collect();
    }

    /// Sets the classes that all share up, and those of customers that change.
    fn set_queues(
        &mut self,
        now: Time,
        scheduler: AnyScheduler,
        mut classes: Vec<Setup>,
        sharing: Sharing,
        heirs: &[Heir],
    ) {
        let (was, first, count) = (self.first, sharing.first.min(classes.len()), classes.len());
        let others = classes.split_off(first);
        // A class that goes leaves its packets to one of the same rank.
        let (of_first, of_others) = heirs.split_at(was.min(heirs.len()));
        let within = |heir: &Heir, from: usize, to: usize, else_to: usize| {
            let class = if (from..to).contains(&heir.class) { heir.class - from } else { else_to };
            Heir { class, unchanged: heir.unchanged && class + from == heir.class }
        };
        let of_first: Vec<Heir> = of_first.iter().map(|h| within(h, 0, first, 0)).collect();
        let last = others.len().saturating_sub(1);
        let of_others: Vec<Heir> = of_others.iter().map(|h| within(h, first, count, last)).collect();
        if classes.is_empty() {
            self.queue.leave(FIRST);
        } else {
            let scheduler = AnyScheduler::Priority(Priority);
            let setup = MemberSetup { scheduler, classes, level: 0, quantum: u32::MAX, shape: None };
            self.queue.put(now, FIRST, setup, &of_first);
        }
        let Sharing { level, quantum, .. } = sharing;
        let setup = MemberSetup { scheduler, classes: others, level, quantum, shape: None };
        self.queue.put(now, SHARED, setup, &of_others);
        self.first = first;
        self.customers.resize_with(self.customers.len().max(sharing.places), CustomerCounts::default);
        sharing.new.iter().for_each(|place| self.customers[*place as usize] = CustomerCounts::default());
        sharing.gone.iter().for_each(|place| self.queue.leave(CUSTOMERS + *place as usize));
        for CustomerQueue { place, setup, heirs } in sharing.queues {
            self.queue.put(now, CUSTOMERS + place as usize, setup, &heirs);
        }
    }

    /// Takes the markers out, to set the rest up anew.
    pub fn take_markers(&mut self) -> Vec<Marking> {
        std::mem::take(&mut self.markers)
    }

    /// Tells a marker something that whoever runs it knows.
    pub fn tell(&mut self, marker: u16, now: Time, signal: &Signal) {
        if let Some(m) = self.markers.get_mut(usize::from(marker)) {
            m.marker.signal(now, signal);
        }
    }

    /// A frame comes in. Everything that was due before is done first. One that leaves at once is painted where it lies; one
    /// that waits is copied.
    pub fn arrive<W: Witness>(&mut self, now: Time, frame: &mut [u8], witness: &mut W) {
        self.advance(now, witness);
        let number = self.totals.came;
        self.totals.came += 1;
        let seen = packet::parse(self.layer, frame);
        self.census.count(&seen);
        self.totals.length_disagrees += u64::from(seen.is_ok_and(|h| h.length_disagrees));
        let way = match self.policy.decide(now, &seen) {
            Decision::Queue(way) => way,
            Decision::Pass => {
                self.totals.passed += 1;
                witness.send(now, number, frame);
                return;
            }
            Decision::Refuse => {
                self.totals.refused += 1;
                return;
            }
        };
        self.fetch(&way);
        self.make_known(now, &way);
        let headers = seen.ok();
        let mut packet = match headers {
            Some(headers) => headers.packet(way.flow, way.colour, way.class),
            None => self.opaque(frame, &way),
        };
        packet.size = (packet.size + self.overhead).max(self.mpu);
        if let Some(counts) = counts(&mut self.customers, way.customer) {
            counts.arrive(packet.size);
        }
        for marker in way.markers.into_iter().flatten() {
            let verdict = self.markers[usize::from(marker)].decide(now, &packet);
            witness.marked(now, number, marker, verdict);
            match verdict {
                Mark::Pass(colour) => packet.colour = colour,
                Mark::Drop(cause) => {
                    *(if cause == POLICED {
                        &mut self.totals.policed
                    } else {
                        &mut self.totals.marked_away
                    }) += 1;
                    self.drop_of(way.customer, cause);
                    return;
                }
            }
        }
        let Some(slot) = self.buffers.take() else {
            self.totals.no_buffer += 1;
            if let Some(counts) = counts(&mut self.customers, way.customer) {
                counts.no_buffer += 1;
            }
            return;
        };
        let (paint, clear_link) = (way.paint, way.clear_link && self.layer == Layer::Ethernet);
        let held =
            Held { packet, headers, paint, clear_link, slot, number, since: now, customer: way.customer };
        let member = self.member_of(&way);
        let verdict = self.queue.arrive(now, member, &packet, held, &mut self.rng, &mut Silent);
        witness.queued(now, number, verdict);
        while let Some(victim) = self.queue.take_evicted() {
            self.buffers.release(victim.slot);
            self.drop_of(victim.customer, Cause::EVICTED);
            witness.lost(now, victim.number, Cause::EVICTED);
        }
        if let Admission::Drop(cause) = verdict {
            self.buffers.release(slot);
            self.drop_of(way.customer, cause);
            return;
        }
        // What leaves at once is never copied here.
        let left = self.shaper.due().is_none() && self.start_next(now, Some((slot, frame)), witness);
        if !left {
            self.buffers.fill(slot, frame);
        }
    }

    /// Prefetches what is kept about a packet's customer.
    #[inline]
    fn fetch(&self, way: &Way) {
        if let Some(counts) = way.customer.and_then(|place| self.customers.get(place as usize)) {
            counts.touch();
        }
        if let Some(marking) = way.markers[0].and_then(|m| self.markers.get(usize::from(m))) {
            marking.touch();
        }
    }

    /// What mechanisms see of a frame that isn't read as IP: all of it behind the link's first header counts, and no less
    /// than the shortest there is.
    fn opaque(&self, frame: &[u8], way: &Way) -> Packet {
        let size = match self.layer {
            Layer::Ethernet => {
                frame.len().saturating_sub(packet::ETHERNET_HEADER).max(packet::SHORTEST_PAYLOAD)
            }
            Layer::Ip => frame.len().max(packet::SHORTEST_IP),
        };
        let Way { flow, colour, class, .. } = *way;
        let ecn = Ecn::NotCapable;
        Packet { flow, colour, class, ecn, size: size as u32, kind: Kind::Datagram, ..Packet::default() }
    }

    /// A frame that goes the other way is seen by the queue's discipline and by markers, which may estimate from both
    /// directions. `way` says whose it is and which markers its data passes.
    pub fn reverse<W: Witness>(&mut self, now: Time, frame: &[u8], way: &Way, witness: &mut W) {
        self.advance(now, witness);
        if let Ok(headers) = packet::parse(self.layer, frame) {
            self.make_known(now, way);
            let mut packet = headers.packet(way.flow, way.colour, way.class);
            packet.size = (packet.size + self.overhead).max(self.mpu);
            self.queue.observe(now, self.member_of(way), &packet, Direction::Reverse);
            for marker in way.markers.into_iter().flatten() {
                self.markers[usize::from(marker)].observe_reverse(now, &packet);
            }
        }
    }

    /// If a flow has just been given its number, whatever keeps state of the number's former flow forgets it.
    fn make_known(&mut self, now: Time, way: &Way) {
        if let Some(Former { markers, customer }) = way.forget {
            let signal = Signal { topic: FORGET, flow: Some(way.flow), value: 0.0 };
            markers.into_iter().flatten().for_each(|m| self.tell(m, now, &signal));
            let his = customer.map(|place| CUSTOMERS + place as usize);
            [Some(FIRST), Some(SHARED), his].into_iter().flatten().for_each(|member| {
                self.queue.signal(now, Some(member), &signal);
            });
        }
    }

    /// Where a packet waits.
    fn member_of(&self, way: &Way) -> usize {
        match way.customer {
            Some(place) if way.own_queue => CUSTOMERS + place as usize,
            _ if usize::from(way.class) < self.first => FIRST,
            _ => SHARED,
        }
    }

    /// One of a customer's packets was dropped.
    fn drop_of(&mut self, customer: Option<u32>, cause: Cause) {
        if let Some(counts) = counts(&mut self.customers, customer) {
            counts.drop(cause);
        }
    }

    /// When something is next due, if nothing comes in before.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.service_due().into_iter().chain(self.next_tick()).min()
    }

    /// The earliest tick of all mechanisms.
    fn next_tick(&self) -> Option<Time> {
        self.ticks.peek().map(|Reverse((at, _))| *at).into_iter().chain(self.queue.next_tick()).min()
    }

    /// When the link may take its next packet, if one waits or it is sending.
    fn service_due(&self) -> Option<Time> {
        self.shaper.due().or(self.held_until)
    }

    /// Does everything that is due up to `now`, that moment included.
    pub fn advance<W: Witness>(&mut self, now: Time, witness: &mut W) {
        while let Some(at) = self.due().filter(|at| *at <= now) {
            if self.service_due() == Some(at) {
                self.start_next(at, None, witness);
            } else {
                self.tick(at);
            }
        }
    }

    /// The link has become free, or was idle. `in_hand` is a packet that joined the queue but is not in its place yet;
    /// whether that is the one that leaves.
    fn start_next<W: Witness>(
        &mut self,
        at: Time,
        in_hand: Option<(Slot, &mut [u8])>,
        witness: &mut W,
    ) -> bool {
        let (buffers, rng, customers) = (&mut self.buffers, &mut self.rng, &mut self.customers);
        let next = self.queue.depart(
            at,
            |held| held.packet,
            rng,
            &mut Silent,
            |held, cause| {
                buffers.release(held.slot);
                if let Some(counts) = counts(customers, held.customer) {
                    counts.drop(cause);
                }
                witness.lost(at, held.number, cause);
            },
        );
        while let Some(victim) = self.queue.take_evicted() {
            self.buffers.release(victim.slot);
            self.drop_of(victim.customer, Cause::EVICTED);
            witness.lost(at, victim.number, Cause::EVICTED);
        }
        self.held_until = None;
        let Some(held) = next else {
            self.shaper.rest();
            self.held_until = self.queue.next_ready().filter(|ready| *ready > at);
            return false;
        };
        self.shaper.start(at, Bytes(u64::from(held.packet.size)));
        let in_hand = in_hand.filter(|(slot, _)| *slot == held.slot);
        let left = in_hand.is_some();
        let frame = in_hand.map_or_else(|| self.buffers.get_mut(held.slot), |(_, frame)| frame);
        if self.age_limit.is_some_and(|limit| self.present.since(at) > limit) {
            self.buffers.release(held.slot);
            self.totals.too_late += 1;
            if let Some(counts) = counts(&mut self.customers, held.customer) {
                counts.too_late += 1;
            }
            return left;
        }
        held.write(frame);
        witness.send(at, held.number, frame);
        self.buffers.release(held.slot);
        self.totals.sent += 1;
        if let Some(counts) = counts(&mut self.customers, held.customer) {
            counts.send(held.packet.colour, held.packet.size, at.since(held.since));
        }
        left
    }

    /// Ticks what is due: markers by their number, then the queue's discipline; then delivers their signals to
    /// each other. Edge and core are one box here, so a signal arrives at once.
    fn tick(&mut self, at: Time) {
        let (mut from_markers, mut from_queue) = (Outbox::default(), Outbox::default());
        while let Some(Reverse((due, number))) =
            self.ticks.peek().copied().filter(|Reverse((due, _))| *due <= at)
        {
            self.ticks.pop();
            let marking = &mut self.markers[usize::from(number)];
            marking.tick(due, &mut from_markers);
            self.ticks.extend(marking.next_tick().map(|next| Reverse((next, number))));
        }
        if self.queue.next_tick().is_some_and(|t| t <= at) {
            self.queue.tick(at, &mut from_queue);
        }
        for signal in &from_markers.signals {
            self.queue.signal(at, None, signal);
        }
        for signal in &from_queue.signals {
            self.markers.iter_mut().for_each(|m| m.marker.signal(at, signal));
        }
    }

    /// The markers, by their number.
    #[must_use]
    pub fn markers(&self) -> &[Marking] {
        &self.markers
    }

    /// The classes that all share: queues with their counts, and disciplines with their gauges and stats.
    pub fn classes(&self) -> impl Iterator<Item = ClassState<'_>> {
        let first = (self.first > 0).then_some(FIRST);
        let members = first.into_iter().chain([SHARED]);
        members.filter_map(|m| self.queue.classes(m)).flatten().map(ClassState)
    }

    /// A customer's own classes, by his place; none where he has none.
    pub fn classes_of(&self, place: u32) -> impl Iterator<Item = ClassState<'_>> {
        self.queue.classes(CUSTOMERS + place as usize).into_iter().flatten().map(ClassState)
    }

    /// What became of customers' packets, by their places.
    #[must_use]
    pub fn customers(&self) -> &[CustomerCounts] {
        &self.customers
    }

    /// The counts of all queues together, those of customers who have left included.
    #[must_use]
    pub fn queued(&self) -> Counts {
        let all = self.queue.members().filter_map(|m| self.queue.classes(m)).flatten();
        all.fold(*self.queue.gone(), |sum, class| sum.and(class.queue.counts()))
    }

    /// Packets that wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.buffers.used() as u64
    }

    /// Frames by what they turned out to be.
    #[must_use]
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// Where packets went.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Tells what time it is: a late caller does so first, and what is too late by then is thrown away.
    pub fn set_present(&mut self, now: Time) {
        self.present = now;
    }

    /// Another rate, from the next packet on. It must not be zero.
    pub fn set_rate(&mut self, rate: Rate) {
        self.shaper.set_rate(rate);
    }

    /// Whether every frame that came in is accounted for.
    ///
    /// # Errors
    /// What doesn't add up.
    pub fn check(&self) -> Result<(), String> {
        let t = &self.totals;
        let counts = self.queued();
        let dropped: u64 = Colour::ALL.iter().map(|c| counts.dropped_of(*c)).sum();
        let sent: u64 = counts.sent.iter().sum();
        let waiting = counts.arrived.iter().sum::<u64>().wrapping_sub(sent + dropped);
        let gone =
            t.passed + t.refused + t.marked_away + t.policed + t.no_buffer + t.sent + t.too_late + dropped;
        if t.came != gone + waiting || self.buffers.used() as u64 != waiting {
            return Err(format!("{t:?}, {dropped} dropped by the queue, {waiting} waiting"));
        }
        Ok(())
    }
}

/// A customer's counts.
fn counts(all: &mut [CustomerCounts], place: Option<u32>) -> Option<&mut CustomerCounts> {
    all.get_mut(place? as usize)
}

#[cfg(test)]
mod tests;

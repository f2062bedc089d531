//! How a datapath is set up, and how it is set up anew while packets wait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use inprofile_core::queue::hierarchy::{Hierarchy, MemberSetup};
use inprofile_core::queue::priority::Priority;
use inprofile_core::queue::scheduled::{Heir, Setup};
use inprofile_core::registry::AnyScheduler;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Rate, Time};

use crate::datapath::Datapath;
use crate::datapath::buffers::Buffers;
use crate::datapath::customer::CustomerCounts;
use crate::datapath::marking::Marking;
use crate::datapath::policy::Policy;
use crate::datapath::shaper::Shaper;
use crate::datapath::state::Totals;
use crate::packet::{Census, Layer};

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
pub(super) const FIRST: usize = 0;
pub(super) const SHARED: usize = 1;
pub(super) const CUSTOMERS: usize = 2;

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
}

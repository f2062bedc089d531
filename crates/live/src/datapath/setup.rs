//! How a datapath is set up, and how it is reconfigured while packets wait.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use inprofile_core::queue::hierarchy::{Hierarchy, MemberSetup};
use inprofile_core::queue::priority::Priority;
use inprofile_core::queue::scheduled::{Migration, Setup};
use inprofile_core::registry::AnyScheduler;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Rate, Time};

use crate::datapath::buffers::Buffers;
use crate::datapath::customer::CustomerCounts;
use crate::datapath::marker::Marking;
use crate::datapath::policy::Policy;
use crate::datapath::shaper::Shaper;
use crate::datapath::state::Totals;
use crate::datapath::{CUSTOMERS, Charge, Datapath, FIRST, SHARED};
use crate::packet::{Census, Layer};

/// The parts of a datapath.
#[derive(Debug)]
pub struct Parts {
    /// The first layer of frames.
    pub layer: Layer,
    /// Markers, by their number in [`Treatment::markers`].
    pub markers: Vec<Marking>,
    /// The queues, one per class; at least one. A packet of an unknown class joins the last.
    pub classes: Vec<Setup>,
    /// Divides the link among the classes.
    pub scheduler: AnyScheduler,
    /// How the link is divided between these classes and customers with queues of their own.
    pub sharing: Sharing,
    /// The random numbers of the disciplines.
    pub rng: Rng,
    /// The shaped rate; it must not be zero.
    pub rate: Rate,
    /// The bytes that a packet counts for beside its own.
    pub charge: Charge,
    /// A packet that should have left longer ago than this is dropped: a backlog sent at once would exceed the rate.
    pub age_limit: Option<Duration>,
    /// The most packets that can wait at a time, whatever the limits of the queues.
    pub buffers: usize,
}

/// How the link is divided between the classes that customers share and the customers with queues of their own.
#[derive(Debug)]
pub struct Sharing {
    /// How many of the first classes have priority over all others.
    pub first: usize,
    /// Priority of the other classes among the customers' queues, and their quantum: see [`MemberSetup`].
    pub level: u8,
    /// See `level`.
    pub quantum: u32,
    /// Customers' indices are below this.
    pub places: usize,
    /// Indices given to new customers: their counts start at zero.
    pub new: Vec<u32>,
    /// Customers' queues that are new or reconfigured.
    pub queues: Vec<CustomerQueue>,
    /// Indices of customers whose queues are removed.
    pub gone: Vec<u32>,
    /// So many packets of each of the shared queues, and of each customer's, find a buffer however many others wait: half of the
    /// buffers are kept for those who have fewer. `u32::MAX`: there are enough for all limits.
    pub reserved: [u32; 2],
}

/// No customer has queues of its own.
impl Default for Sharing {
    fn default() -> Sharing {
        let (new, queues, gone) = (Vec::new(), Vec::new(), Vec::new());
        Sharing { first: 0, level: 0, quantum: 1500, places: 0, new, queues, gone, reserved: [u32::MAX; 2] }
    }
}

/// A customer's own queues.
#[derive(Debug)]
pub struct CustomerQueue {
    /// The customer's index.
    pub place: u32,
    /// Its classes, by the numbers of the shared ones, and its share of the link.
    pub setup: MemberSetup,
    /// If it had queues before: where the packets of each old class go.
    pub migrations: Vec<Migration>,
}

impl<P: Policy> Datapath<P> {
    /// Empty and idle.
    pub fn new(policy: P, parts: Parts) -> Datapath<P> {
        let mut new = Datapath {
            policy,
            ticks: BinaryHeap::new(),
            layer: parts.layer,
            charge: parts.charge,
            mtu: None,
            age_limit: parts.age_limit,
            present: Time::ZERO,
            markers: parts.markers,
            keep_flows: Vec::new(),
            queue: Hierarchy::default(),
            first: 0,
            customers: Vec::new(),
            rng: parts.rng,
            shaper: Shaper::new(parts.rate),
            held_until: None,
            buffers: Buffers::new(parts.buffers),
            reserved: parts.sharing.reserved,
            census: Census::default(),
            totals: Totals::default(),
        };
        new.set_ticks();
        new.set_queues(Time::ZERO, parts.scheduler, parts.classes, parts.sharing, &[]);
        new
    }

    /// The same datapath with another configuration, at `now`. Waiting packets, counts and the state of the link stay; no
    /// packet is dropped. `parts.markers` are all markers, including those that stay (taken out with
    /// [`Datapath::take_markers`]); `migrations` says where the packets of each old class go; `parts.sharing` has only those
    /// customers' queues that change.
    #[must_use]
    pub fn reconfigure(self, policy: P, parts: Parts, migrations: &[Migration], now: Time) -> Datapath<P> {
        let mut new = Datapath {
            policy,
            layer: parts.layer,
            charge: parts.charge,
            age_limit: parts.age_limit,
            markers: parts.markers,
            reserved: parts.sharing.reserved,
            ..self
        };
        new.set_ticks();
        new.set_queues(now, parts.scheduler, parts.classes, parts.sharing, migrations);
        new.shaper.set_rate(parts.rate);
        new.buffers.set_most(parts.buffers);
        // The rate that held packets back may have changed.
        let sending = new.shaper.due().is_some();
        new.held_until = new.held_until.filter(|_| !sending).map(|_| now);
        new
    }

    /// Schedules the markers' ticks, and notes which of them keep flows.
    fn set_ticks(&mut self) {
        self.keep_flows = self.markers.iter().map(Marking::keeps_flows).collect();
        let ticks = (0..).zip(&self.markers).filter_map(|(n, m)| Some(Reverse((m.next_tick()?, n))));
        self.ticks = ticks.collect();
    }

    /// Sets up the shared classes and those customers' queues that change.
    fn set_queues(
        &mut self,
        now: Time,
        scheduler: AnyScheduler,
        mut classes: Vec<Setup>,
        sharing: Sharing,
        migrations: &[Migration],
    ) {
        let (was, first, count) = (self.first, sharing.first.min(classes.len()), classes.len());
        let others = classes.split_off(first);
        // Packets of a removed class go to a class of the same priority.
        let (of_first, of_others) = migrations.split_at(was.min(migrations.len()));
        let within = |migration: &Migration, from: usize, to: usize, else_to: usize| {
            let class = if (from..to).contains(&migration.class) { migration.class - from } else { else_to };
            Migration { class, unchanged: migration.unchanged && class + from == migration.class }
        };
        let of_first: Vec<Migration> = of_first.iter().map(|h| within(h, 0, first, 0)).collect();
        let last = others.len().saturating_sub(1);
        let of_others: Vec<Migration> = of_others.iter().map(|h| within(h, first, count, last)).collect();
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
        for CustomerQueue { place, setup, migrations } in sharing.queues {
            self.queue.put(now, CUSTOMERS + place as usize, setup, &migrations);
        }
    }

    /// Takes the markers out, to be handed back to [`Datapath::reconfigure`].
    pub fn take_markers(&mut self) -> Vec<Marking> {
        std::mem::take(&mut self.markers)
    }
}

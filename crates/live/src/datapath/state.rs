//! What a datapath shows: totals, queues, markers, customers; and whether every frame is accounted for.

use inprofile_core::packet::Colour;
use inprofile_core::queue::fifo::Counts;
use inprofile_core::queue::scheduled::Class;
use inprofile_core::registry::AnyAqm;

use crate::datapath::customer::CustomerCounts;
use crate::datapath::held::Held;
use crate::datapath::marking::Marking;
use crate::datapath::{CUSTOMERS, Datapath, FIRST, SHARED};
use crate::packet::Census;

/// Frames by what became of them, as far as no marker or queue counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames received.
    pub came: u64,
    /// Sent on without being queued.
    pub passed: u64,
    /// Refused by the policy.
    pub refused: u64,
    /// Dropped by a marker, other than by a policer.
    pub marker_dropped: u64,
    /// Dropped as out of profile, by a policer or the policy.
    pub policed: u64,
    /// Dropped because all buffers were in use.
    pub no_buffer: u64,
    /// Sent at the shaped rate.
    pub sent: u64,
    /// Dropped when they should have left too long ago.
    pub too_late: u64,
    /// Of those received: packets whose length field differs from the length received.
    pub length_disagrees: u64,
}

/// A class, read only.
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

    /// The discipline, for its gauges and stats.
    #[must_use]
    pub fn aqm(&self) -> &AnyAqm {
        &self.0.aqm
    }
}

impl<P> Datapath<P> {
    /// The markers, by their number.
    #[must_use]
    pub fn markers(&self) -> &[Marking] {
        &self.markers
    }

    /// The shared classes: queues with their counts, and disciplines with their gauges and stats.
    pub fn classes(&self) -> impl Iterator<Item = ClassState<'_>> {
        let first = (self.first > 0).then_some(FIRST);
        let members = first.into_iter().chain([SHARED]);
        members.filter_map(|m| self.queue.classes(m)).flatten().map(ClassState)
    }

    /// A customer's own classes, if it has any.
    pub fn classes_of(&self, place: u32) -> impl Iterator<Item = ClassState<'_>> {
        self.queue.classes(CUSTOMERS + place as usize).into_iter().flatten().map(ClassState)
    }

    /// Customers' counts, by their index.
    #[must_use]
    pub fn customers(&self) -> &[CustomerCounts] {
        &self.customers
    }

    /// The counts of all queues together, including those of customers who have left.
    #[must_use]
    pub fn queued(&self) -> Counts {
        let all = self.queue.members().filter_map(|m| self.queue.classes(m)).flatten();
        all.fold(*self.queue.gone(), |sum, class| sum.and(class.queue.counts()))
    }

    /// Packets waiting.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.buffers.used() as u64
    }

    /// Frames by protocol.
    #[must_use]
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// Frames by what became of them.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
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
            t.passed + t.refused + t.marker_dropped + t.policed + t.no_buffer + t.sent + t.too_late + dropped;
        if t.came != gone + waiting || self.buffers.used() as u64 != waiting {
            return Err(format!("{t:?}, {dropped} dropped by the queue, {waiting} waiting"));
        }
        Ok(())
    }
}

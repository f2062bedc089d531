//! The figures of a datapath: totals, queues, markers, customers; and whether every frame is accounted for.

use inprofile_core::packet::Colour;
use inprofile_core::queue::Counts;
use inprofile_core::queue::scheduled::Class;
use inprofile_core::registry::AnyAqm;

use crate::datapath::customer::CustomerCounts;
use crate::datapath::marker::Marking;
use crate::datapath::queued_frame::QueuedFrame;
use crate::datapath::{CUSTOMERS, Datapath, FIRST, Refusal, SHARED};
use crate::packet::Census;

/// Frames by what became of them, as far as no marker or queue counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames received.
    pub came: u64,
    /// Sent on without being queued.
    pub passed: u64,
    /// Refused: see `refusals`.
    pub refused: u64,
    /// Of these, by [the reason](Refusal::NAMES).
    pub refusals: [u64; Refusal::NAMES.len()],
    /// Dropped by a marker, other than by a policer.
    pub marker_dropped: u64,
    /// Dropped as out of profile, by a policer or the policy.
    pub policed: u64,
    /// Dropped because all buffers were in use.
    pub no_buffer: u64,
    /// Dropped by queues, on arrival or later.
    pub queue_dropped: u64,
    /// Sent at the shaped rate.
    pub sent: u64,
    /// Dropped when they should have left too long ago.
    pub too_late: u64,
    /// Of those received: packets whose length field differs from the length received.
    pub length_disagrees: u64,
}

impl Totals {
    /// Counts a frame that goes no further.
    pub(super) fn refuse(&mut self, why: Refusal) {
        self.refused += 1;
        self.refusals[why.index()] += 1;
    }
}

/// A class, read only.
#[derive(Clone, Copy, Debug)]
pub struct ClassState<'a>(&'a Class<QueuedFrame>);

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

    /// Whether every frame that came in is accounted for, in total; this takes no longer with more customers.
    ///
    /// # Errors
    /// The counts that do not add up.
    pub fn check_totals(&self) -> Result<(), String> {
        let t = &self.totals;
        let dropped = t.refused + t.marker_dropped + t.policed + t.no_buffer + t.queue_dropped + t.too_late;
        if t.came != t.passed + t.sent + dropped + self.waiting() {
            return Err(format!("{t:?}, {} waiting", self.waiting()));
        }
        Ok(())
    }

    /// Whether the queues' own counts add up, of so many members of the hierarchy from this one on; where the next ones begin.
    ///
    /// # Errors
    /// The counts that do not add up.
    pub fn check_queues(&self, from: usize, count: usize) -> Result<usize, String> {
        let end = CUSTOMERS + self.customers.len();
        let until = from.saturating_add(count).min(end);
        for member in from..until {
            for class in self.queue.classes(member).into_iter().flatten() {
                let (c, waiting) = (class.queue.counts(), class.queue.waiting());
                let dropped: u64 = Colour::ALL.iter().map(|colour| c.dropped_of(*colour)).sum();
                let gone = c.sent.iter().sum::<u64>() + dropped;
                let waiting: u64 = waiting.iter().map(|n| u64::from(*n)).sum();
                if c.arrived.iter().sum::<u64>() != gone + waiting {
                    return Err(format!("queue {member}: {c:?}, {waiting} waiting"));
                }
            }
        }
        Ok(if until == end { 0 } else { until })
    }

    /// Whether every frame that came in is accounted for, by all queues' counts together too.
    ///
    /// # Errors
    /// The counts that do not add up.
    pub fn check(&self) -> Result<(), String> {
        self.check_totals()?;
        self.check_queues(0, usize::MAX)?;
        let counts = self.queued();
        let dropped: u64 = Colour::ALL.iter().map(|c| counts.dropped_of(*c)).sum();
        let sent: u64 = counts.sent.iter().sum();
        let waiting = counts.arrived.iter().sum::<u64>().wrapping_sub(sent + dropped);
        let Totals { queue_dropped, sent: left, too_late, .. } = self.totals;
        if (dropped, sent, waiting) != (queue_dropped, left + too_late, self.waiting()) {
            let t = &self.totals;
            return Err(format!(
                "{t:?}, {dropped} dropped by queues, {sent} sent by them, {waiting} waiting"
            ));
        }
        Ok(())
    }
}

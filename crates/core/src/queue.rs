//! The containers that hold packets, what they show to their disciplines, and the schedulers of classes.

pub mod ack_filter;
pub mod drr;
pub mod fifo;
pub mod flow_queues;
pub mod hierarchy;
pub mod scheduled;

use std::ops::Deref;

use crate::packet::{Colour, FlowId, Packet};
use crate::units::{Backlog, Bytes, PS_PER_S, Rate, Time};
use crate::verdict::Cause;

/// Which of a flow's waiting packets is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The packet that would leave first.
    Head,
    /// The packet that came last.
    Tail,
    /// The packet before which so many others of the flow would leave.
    Nth(u32),
}

/// A queue as its discipline sees it. The packet in transmission is not in the queue.
pub trait Queue {
    /// Packets waiting.
    fn packets(&self) -> u32;
    /// Bytes waiting.
    fn bytes(&self) -> u64;
    /// Packets of this colour waiting.
    fn packets_of(&self, colour: Colour) -> u32;
    /// Bytes of this colour waiting.
    fn bytes_of(&self, colour: Colour) -> u64;
    /// The hard limit.
    fn limit(&self) -> Backlog;
    /// The length, in the limit's unit.
    #[inline]
    fn backlog(&self) -> f64 {
        self.length(matches!(self.limit(), Backlog::Bytes(_)))
    }
    /// The length, in bytes or in packets.
    #[inline(always)]
    fn length(&self, in_bytes: bool) -> f64 {
        if in_bytes { self.bytes() as f64 } else { f64::from(self.packets()) }
    }
    /// The length of this colour's packets, in bytes or in packets.
    #[inline(always)]
    fn length_of(&self, colour: Colour, in_bytes: bool) -> f64 {
        if in_bytes { self.bytes_of(colour) as f64 } else { f64::from(self.packets_of(colour)) }
    }
    /// Whether a packet of this size may join within the limit.
    fn fits(&self, size: u32) -> bool;
    /// Since when the link has had nothing to send; `None` while it sends.
    fn idle_since(&self) -> Option<Time>;

    // What follows is about packets that can be found again: a backlog that is only counted has none, and leaves it as it is here.

    /// When the packet at the head of this queue came; `None` if none waits. Queue 0 is that of a discipline with one. For disciplines
    /// that decide at departure: computed service has no such times.
    fn head_since(&self, _queue: u32) -> Option<Time> {
        None
    }
    /// Whether a packet of this flow waits.
    fn has(&self, _flow: FlowId) -> bool {
        false
    }
    /// Packets of this flow waiting; takes time in proportion to the queue.
    fn packets_of_flow(&self, _flow: FlowId) -> u32 {
        0
    }
    /// Position of a waiting packet of this flow: how many packets would leave before it. `None` if there is none.
    fn position(&self, _flow: FlowId, _end: End) -> Option<u32> {
        None
    }
    /// Whose the waiting packet at this position is; `None` if there is none.
    fn flow_at(&self, _position: u32) -> Option<FlowId> {
        None
    }
    /// Drops the waiting packet at this position; false if there is none.
    fn evict(&mut self, _position: u32) -> bool {
        false
    }
    /// Marks the waiting packet at this position as having experienced congestion; false if there is none, or its
    /// transport doesn't understand ECN.
    fn mark(&mut self, _position: u32) -> bool {
        false
    }
    /// Where the discipline keeps [several queues](crate::aqm::Aqm::flow_queues): the arrival it decides on joins this one, if it joins.
    fn join(&mut self, _queue: u32) {}
    /// Packets in one of several queues.
    fn packets_in(&self, _queue: u32) -> u32 {
        0
    }
    /// Bytes in one of several queues.
    fn bytes_in(&self, _queue: u32) -> u64 {
        0
    }
    /// Size of the packet at the head of one of several queues.
    fn head_size(&self, _queue: u32) -> Option<u32> {
        None
    }
    /// Whose packet is at the head of one of several queues.
    fn head_flow(&self, _queue: u32) -> Option<FlowId> {
        None
    }
    /// Moves the packet at the head of one of several queues to the end of another; false if there was none.
    fn move_head(&mut self, _from: u32, _to: u32) -> bool {
        false
    }
    /// Where the discipline keeps several queues and nothing of them is near: whose turns are next, in order. What they will need may be read
    /// ahead; nothing else comes of it.
    fn expect(&mut self, _turns: [u32; 2]) {}
    /// Drops a packet of one of several queues: its size, if there was one.
    fn evict_from(&mut self, _queue: u32, _end: End) -> Option<u32> {
        None
    }
}

/// Packets counted by colour and by what became of them. `arrived` = `sent` + `dropped` + waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets offered, by colour.
    pub arrived: [u64; 3],
    /// Bytes offered, by colour.
    pub arrived_bytes: [u64; 3],
    /// Packets that left for the link, by colour.
    pub sent: [u64; 3],
    /// Bytes that left for the link, by colour.
    pub sent_bytes: [u64; 3],
    /// Packets dropped, by cause and colour.
    pub dropped: [[u64; 3]; Cause::COUNT],
    /// Packets marked congestion experienced, by colour.
    pub marked: [u64; 3],
}

impl Counts {
    /// Packets of this colour dropped for whatever cause.
    #[must_use]
    pub fn dropped_of(&self, colour: Colour) -> u64 {
        self.dropped.iter().map(|by_colour| by_colour[colour as usize]).sum()
    }

    /// Packets dropped for this cause, of whatever colour.
    #[must_use]
    pub fn dropped_by(&self, cause: Cause) -> u64 {
        self.dropped[cause.index()].iter().sum()
    }

    /// Packets marked, of whatever colour.
    #[must_use]
    pub fn marked(&self) -> u64 {
        self.marked.iter().sum()
    }

    /// These and those of another queue together.
    #[must_use]
    pub fn and(&self, other: &Counts) -> Counts {
        let add = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|i| a[i] + b[i]);
        Counts {
            arrived: add(self.arrived, other.arrived),
            arrived_bytes: add(self.arrived_bytes, other.arrived_bytes),
            sent: add(self.sent, other.sent),
            sent_bytes: add(self.sent_bytes, other.sent_bytes),
            dropped: std::array::from_fn(|i| add(self.dropped[i], other.dropped[i])),
            marked: add(self.marked, other.marked),
        }
    }
}

/// An item in a queue: a packet, or a simulator's or router's own record of one.
pub trait Item {
    /// Size on the wire.
    fn size(&self) -> u32;
    /// Drop precedence.
    fn colour(&self) -> Colour;
    /// Whose it is.
    fn flow(&self) -> FlowId;
    /// When it came to the queue. Asked as it departs, where the discipline decides then.
    fn since(&self) -> Time;
    /// Sets congestion experienced; false if its transport doesn't understand ECN.
    fn mark(&mut self) -> bool;
}

/// A packet of which the queue knows only when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// The packet.
    pub packet: Packet,
    /// When it came to the queue.
    pub since: Time,
}

impl Deref for Stamped {
    type Target = Packet;
    fn deref(&self) -> &Packet {
        &self.packet
    }
}

impl Item for Stamped {
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

/// Decides which class's queue the link takes its next packet from. Classes are numbered in the order in which they
/// were given; the container ([`Scheduled`](crate::queue::scheduled::Scheduled)) holds the packets and obeys.
pub trait Scheduler: Send {
    /// The class that sends next; `None` if none may. `heads` has for each class the size of its first packet, if one
    /// waits and may be sent now.
    fn next(&mut self, heads: &[Option<u32>]) -> Option<usize>;

    /// The class just chosen has sent so many bytes: 0 if its discipline dropped all that waited.
    fn sent(&mut self, class: usize, bytes: u32) {
        let _ = (class, bytes);
    }

    /// The class that was served last has nothing left, now that the link is free: told whether or not anybody asks who is next.
    fn emptied(&mut self, class: usize) {
        let _ = class;
    }
}

// A set rate: a class is served at this rate and no faster, even if the link is free.
//
// Deadlines are absolute: while the class is backlogged, its packet after `b` bytes may leave at `since + 8·b / rate` and not
// before, however late earlier packets left. So the rate is exact over any length of time, and a packet that waited for
// another class's is made up for. After an idle period the class starts afresh: unused rate is lost, but for a burst, if it
// has one, that it may send ahead of these deadlines: then it is a token bucket with a queue, as Linux's tbf. (Rate-controlled
// service, as in Zhang and Ferrari 1993.)
//
// Non-goal: a guarantee. Whether the class gets its rate depends on the scheduler: the first class in strict priority does.

/// The deadlines of one class.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    rate: Rate,
    /// How far ahead of the deadlines it may be.
    burst: u64,
    /// When the current busy period began.
    since: Time,
    /// Sent since then.
    bytes: u64,
}

impl Pace {
    /// At this rate, which must be above 0, and so much ahead of it after an idle period.
    #[must_use]
    pub fn new(rate: Rate, burst: Bytes) -> Pace {
        Pace { rate, burst: burst.0, since: Time::ZERO, bytes: 0 }
    }

    /// When its next packet may leave.
    #[must_use]
    pub fn ready_at(&self) -> Time {
        self.paid_at(self.bytes.saturating_sub(self.burst))
    }

    /// When the rate has made up for so many bytes.
    fn paid_at(&self, bytes: u64) -> Time {
        let ps = (u128::from(bytes) * 8 * u128::from(PS_PER_S)).div_ceil(u128::from(self.rate.0));
        Time(self.since.0.saturating_add(u64::try_from(ps).unwrap_or(u64::MAX)))
    }

    /// A packet has come and nothing waited.
    pub fn begin(&mut self, now: Time) {
        if self.paid_at(self.bytes) <= now {
            (self.since, self.bytes) = (now, 0);
        }
    }

    /// A packet has left.
    pub fn sent(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }
}

pub mod priority {
    //! Strict priority: the first class that has a packet to send is served.
    //!
    //! A class waits for all classes before it, and may starve; they are limited by their own set rate
    //! (see [`Pace`](crate::queue::Pace)) or by a marker at the edge, as RFC 3246 §2.2 asks of expedited forwarding. A packet in
    //! transmission is never interrupted, so the first class waits for at most one packet of another.
    //!
    //! Non-goal: shares. See [`drr`](crate::queue::drr).

    use crate::params::{Context, Fault, Warning};
    use crate::queue::Scheduler;

    crate::params! {
        /// The operator's settings of each class: none but its place in the list.
        pub struct Params {}
    }

    /// The scheduler. It has no state.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Priority;

    impl Params {
        /// Whatever the place, it fits.
        ///
        /// # Errors
        /// None.
        pub fn check(&self, _: &Context) -> Result<Vec<Warning>, Fault> {
            Ok(Vec::new())
        }

        /// The scheduler of these classes, first served first.
        #[must_use]
        pub fn build(_: &[Params], _: &Context) -> Priority {
            Priority
        }
    }

    impl Scheduler for Priority {
        fn next(&mut self, heads: &[Option<u32>]) -> Option<usize> {
            heads.iter().position(Option::is_some)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_first_that_has_something_sends() {
            assert_eq!(Priority.next(&[None, Some(40), Some(1500)]), Some(1));
            assert_eq!(Priority.next(&[Some(1), Some(40), Some(1500)]), Some(0));
            assert_eq!(Priority.next(&[None, None]), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    #[test]
    fn deadlines_do_not_move_with_lateness_but_with_pauses() {
        // 1000 B at 1 Mbit/s: 8 ms.
        let mut pace = Pace::new(Rate(1_000_000), Bytes(0));
        pace.begin(Time(5 * MS));
        assert_eq!(pace.ready_at(), Time(5 * MS));
        pace.sent(1000);
        assert_eq!(pace.ready_at(), Time(13 * MS));
        // Sent at 16 ms instead of 13: the next one is due all the same at 21.
        pace.sent(1000);
        assert_eq!(pace.ready_at(), Time(21 * MS));
        // Comes at 18, and nothing waited: still not before 21.
        pace.begin(Time(18 * MS));
        assert_eq!(pace.ready_at(), Time(21 * MS));
        // After a pause, at once.
        pace.begin(Time(40 * MS));
        assert_eq!(pace.ready_at(), Time(40 * MS));
    }

    /// 1000 B at 1 Mbit/s: 8 ms. Two packets go at once, and as much again only after as long a pause.
    #[test]
    fn a_burst_goes_ahead_of_the_rate_and_comes_back_with_time() {
        let mut pace = Pace::new(Rate(1_000_000), Bytes(1000));
        pace.begin(Time(5 * MS));
        pace.sent(1000);
        assert!(pace.ready_at() <= Time(5 * MS));
        pace.sent(1000);
        assert_eq!(pace.ready_at(), Time(13 * MS));
        // At 17 ms half of the burst is there again: half a packet's time is lacking for a whole one.
        pace.begin(Time(17 * MS));
        pace.sent(1000);
        assert_eq!(pace.ready_at(), Time(21 * MS));
        // At 29 ms all is paid, and no more than the burst is saved.
        pace.begin(Time(90 * MS));
        pace.sent(2000);
        assert_eq!(pace.ready_at(), Time(98 * MS));
    }

    /// 8 ps · 10¹² / 3 never comes out even: a million packets are late by less than a picosecond all the same.
    #[test]
    fn rounding_does_not_add_up() {
        let mut pace = Pace::new(Rate(3), Bytes(0));
        pace.begin(Time::ZERO);
        (0..1_000_000).for_each(|_| pace.sent(1));
        assert_eq!(pace.ready_at(), Time(2_666_666_666_666_666_667));
    }
}

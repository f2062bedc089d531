//! The results of a run. Every count is of packets unless its name says otherwise.

pub use inprofile_core::marker::MarkerCounts;
use inprofile_core::packet::Colour;
use inprofile_core::queue::Counts;
use inprofile_core::units::{Bytes, Duration, Time};
use inprofile_core::verdict::Cause;

use crate::flow_control::Paused;
use crate::measure::Periods;
use crate::measure::losses::LossOutcome;
use crate::measure::waits::{ByGroup, Waits};
use crate::tcp::Tally;

/// One run's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The seed it ran with.
    pub seed: u64,
    /// One row per flow, in the order of the network.
    pub flows: Vec<FlowOutcome>,
    /// One row per link, in the order of the network, up to the last one that is reported.
    pub links: Vec<LinkOutcome>,
    /// One row an edge, in the order of the network.
    pub edges: Vec<MarkerOutcome>,
    /// One row per flow: its own marker, if it has one.
    pub flow_markers: Vec<Option<Box<MarkerOutcome>>>,
    /// Packets dropped, by flow, place, cause and colour; only rows above zero.
    pub drops: Vec<DropRow>,
    /// One row per signal path, in the order of the network.
    pub signals: Vec<SignalCounts>,
    /// One block per monitor.
    pub series: Vec<Series>,
    /// Every verdict, in order, if the network asked for a trace.
    pub verdicts: Vec<VerdictRow>,
    /// Pages and chunks of video that were received whole, in the order of their ends.
    pub downloads: Vec<Download>,
    /// The measurements beyond counts, if anything was.
    pub measured: Option<Box<Measured>>,
    /// Events handled: a measure of work, the same on every machine.
    pub events: u64,
}

/// A page of the web or a chunk of video that was received whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download {
    /// The flow; of a page, its first connection.
    pub flow: u32,
    /// Its number, from 0: among its client's pages, or its flow's chunks.
    pub number: u32,
    /// Payload.
    pub size: Bytes,
    /// When it was asked for.
    pub asked: Time,
    /// When the receiver had all of it.
    pub completed: Time,
    /// How long playback stalled for it.
    pub stalled: Duration,
}

/// The measurements beyond counts, in the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The queueing delays at each reported link, by its index.
    pub queueing: Vec<(u32, Waits)>,
    /// The delays of data from sender to receiver.
    pub one_way: ByGroup,
    /// The part of them that each packet would not have taken without queues (RFC 7928 §2.7: "in excess of minimum RTT").
    pub excess: ByGroup,
    /// RFC 5481 §4.2: that part, less the least of the same flow in the window, whatever its colour.
    pub variation: ByGroup,
    /// When each TCP flow first sent data.
    pub first_data: Vec<Option<Time>>,
    /// Payload that receivers' applications could read, in bytes, by group and period.
    pub goodput: Option<Periods>,
    /// The losses at the measured link.
    pub losses: LossOutcome,
}

/// The outcome of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// Over the whole run.
    pub total: FlowCounts,
    /// In the measured window.
    pub window: FlowCounts,
    /// Dropped anywhere on the forward path, by cause, over the whole run.
    pub dropped: Dropped,
    /// The same in the measured window.
    pub window_dropped: Dropped,
    /// Forward packets in flight when the run ended.
    pub in_flight: u64,
    /// Acknowledgements sent, received, dropped, and in flight at the end.
    pub acks: [u64; 4],
    /// The sender's counts over the whole run.
    pub tally: Tally,
    /// When it started, or was to start.
    pub start: Time,
    /// When the receiver had received all of a transfer; none for pages and video, which are [downloads](Outcome::downloads).
    pub completed: Option<Time>,
    /// The sender's counts in the measured window.
    pub window_tally: Tally,
}

/// A flow's packets that were dropped, by cause; last those that were lost on links.
pub type Dropped = [u64; Cause::COUNT + 1];

/// A flow's forward packets, by colour: what every packet counts. Those dropped are [counted apart](FlowOutcome::dropped).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FlowCounts {
    /// Left the host's marker, or were dropped by it; by the colour it gave (dropped: by arrival).
    pub sent: [u64; 3],
    /// Wire bytes of `sent`.
    pub sent_bytes: [u64; 3],
    /// Reached the receiver, in any order, by the colour they arrived with.
    pub received: [u64; 3],
    /// Wire bytes of `received`.
    pub received_bytes: [u64; 3],
    /// Wire bytes the receiver's application could read: in order, each once, headers included.
    pub in_order_wire_bytes: u64,
    /// Payload bytes the receiver's application could read.
    pub in_order_payload_bytes: u64,
}

impl FlowCounts {
    /// A packet of this colour has left the host's marker, or was dropped by it.
    #[inline]
    pub(crate) fn leave(&mut self, colour: Colour, size: u32) {
        self.sent[colour as usize] += 1;
        self.sent_bytes[colour as usize] += u64::from(size);
    }
}

/// The outcome at one link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkOutcome {
    /// Over the whole run.
    pub total: Counts,
    /// In the measured window.
    pub window: Counts,
    /// Mean packets waiting over the window's time.
    pub queue_mean: f64,
    /// Of these, packets that were dropped before they could be sent; of a link, not of its classes.
    pub queue_mean_dropped: f64,
    /// How long it was sending within the window. Of a packet being sent when the window begins or ends, the part
    /// inside counts; `window` counts it whole, where its transmission begins.
    pub sending: Duration,
    /// Packets waiting at the end.
    pub waiting: u64,
    /// What its queue asked of the links before it in the window, if it may pause them.
    pub window_paused: Option<Paused>,
    /// The discipline's own counts over the whole run, by name.
    pub stats: Vec<(&'static str, u64)>,
    /// The discipline's state at the end, by name.
    pub gauges: Vec<(&'static str, f64)>,
    /// The discipline's state of each flow at the end: the flow, the name, the value.
    pub by_flow: Vec<(u32, &'static str, f64)>,
    /// The same of each class, if it has several: they add up to the link's.
    pub classes: Vec<LinkOutcome>,
}

/// The outcome at one marker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarkerOutcome {
    /// Over the whole run.
    pub total: MarkerCounts,
    /// In the measured window.
    pub window: MarkerCounts,
    /// The marker's own counts over the whole run, by name.
    pub stats: Vec<(&'static str, u64)>,
    /// The marker's state at the end, by name.
    pub gauges: Vec<(&'static str, f64)>,
}

/// The signals of one path over the whole run; those neither lost nor delivered are on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalCounts {
    /// Sent by ticks.
    pub sent: u64,
    /// Lost.
    pub lost: u64,
    /// Handed to the receiver.
    pub delivered: u64,
}

/// Packets of one flow dropped at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropRow {
    /// Which flow.
    pub flow: u32,
    /// Where.
    pub place: VerdictPoint,
    /// Why.
    pub cause: Cause,
    /// By the colour they had.
    pub packets: [u64; 3],
}

/// Where a verdict was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictPoint {
    /// A link's queue, by index.
    Queue(u32),
    /// An edge marker, by index.
    Edge(u32),
    /// The flow's own marker.
    Host,
    /// On the way, behind a link's queue, by the link's index.
    Link(u32),
}

/// A monitor's samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The monitor, by index.
    pub monitor: u32,
    /// When.
    pub times: Vec<Time>,
    /// Each quantity's values, one a time.
    pub columns: Vec<(&'static str, Vec<f64>)>,
}

/// One verdict and the values behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictRow {
    /// When.
    pub at: Time,
    /// The packet's number in the run.
    pub packet: u64,
    /// Whose.
    pub flow: u32,
    /// Where.
    pub place: VerdictPoint,
    /// `in`, `out`, `red` (a marker's); `admit`, `mark`, `drop` (anybody's).
    pub verdict: &'static str,
    /// Why, if it was dropped.
    pub cause: Option<Cause>,
    /// Average, threshold, tokens, random number, …
    pub why: Vec<(&'static str, f64)>,
}

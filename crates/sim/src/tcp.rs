//! TCP: a sender and a receiver for each profile, behind one interface.

use inprofile_core::packet::Ecn;

/// How a connection reacts to loss and grows its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 5681: fast retransmit and fast recovery.
    Reno,
    /// RFC 6582: recovery lasts until everything outstanding at its start is acknowledged.
    NewReno,
    /// RFC 2018 and 6675: recovery by selective acknowledgements.
    Sack,
    /// RFC 9438: the window grows by a cubic function of the time since the last loss.
    Cubic {
        /// Whether recovery is by RFC 6675 or by RFC 6582.
        sack: bool,
    },
    /// One that only the linux profile has.
    Linux(control::Kind),
}

impl Congestion {
    /// The word in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Congestion::Reno => "reno",
            Congestion::NewReno => "newreno",
            Congestion::Sack => "sack",
            Congestion::Cubic { .. } => "cubic",
            Congestion::Linux(kind) => kind.name(),
        }
    }

    /// Whether it answers the share of segments that are marked, and not only that one was: it is of no use without ECN.
    #[must_use]
    pub fn is_scalable(self) -> bool {
        matches!(self, Congestion::Linux(control::Kind::Dctcp | control::Kind::Prague | control::Kind::Dcqcn))
    }

    /// Whether segments carry when they were sent, and acknowledgements how long they took.
    #[must_use]
    pub fn measures_delay(self) -> bool {
        matches!(self, Congestion::Linux(control::Kind::Ledbat))
    }

    /// Whether it draws random numbers.
    #[must_use]
    pub fn draws(self) -> bool {
        matches!(self, Congestion::Linux(control::Kind::Bbr))
    }

    /// Whether it has a rate of its own, and is nothing without pacing.
    #[must_use]
    pub fn has_rate(self) -> bool {
        matches!(self, Congestion::Linux(control::Kind::Bbr | control::Kind::Copa | control::Kind::Dcqcn))
    }

    /// Whether acknowledgements carry SACK blocks.
    #[must_use]
    pub fn uses_sack(self) -> bool {
        matches!(self, Congestion::Sack | Congestion::Cubic { sack: true } | Congestion::Linux(_))
    }
}

/// How the receiver tells of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// ECN-Echo from the first mark until the sender has reduced its window (RFC 3168 §6.1.3).
    Echo,
    /// ECN-Echo on the acknowledgement of what was marked, and on no other (RFC 8257 §3.2).
    EachMark,
    /// How many packets were marked so far, on each acknowledgement (RFC 9768).
    Counter,
}

impl Feedback {
    /// The word in a file for a receiver that tells so.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Feedback::Echo => "classic",
            Feedback::EachMark => "dctcp",
            Feedback::Counter => "accurate",
        }
    }
}

/// The SACK option of an acknowledgement (RFC 2018): blocks received above the cumulative acknowledgement, most recent
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    /// From, to (excluded).
    blocks: [(u32, u32); Sack::MAX_BLOCKS],
    len: u8,
}

impl Sack {
    /// No blocks.
    pub const NONE: Sack = Sack { blocks: [(0, 0); Sack::MAX_BLOCKS], len: 0 };
    /// The most blocks that fit into a header (RFC 2018 §3); beside the timestamp option, which no profile has, only three
    /// would.
    pub const MAX_BLOCKS: usize = 4;
    /// Bytes a block takes in the header.
    pub const BLOCK_BYTES: u32 = 8;

    /// The blocks, most recent first.
    #[must_use]
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Shows the blocks in the order of their numbers.
    #[inline(always)]
    pub fn by_number(&self, mut show: impl FnMut((u32, u32))) {
        // Places without a block come first: zeros. Larger and smaller of two are chosen without a branch that nobody can foresee.
        let mut keys = self.blocks.map(|(from, to)| u64::from(from) << 32 | u64::from(to));
        for (a, b) in [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)] {
            (keys[a], keys[b]) = (keys[a].min(keys[b]), keys[a].max(keys[b]));
        }
        for &key in &keys[Sack::MAX_BLOCKS - usize::from(self.len)..] {
            show(((key >> 32) as u32, key as u32));
        }
    }

    /// RFC 2883 §5: the segment that arrived twice, if the first block tells of one: it is below the acknowledgement's number, or within
    /// the second block.
    #[must_use]
    pub fn duplicate(&self, next: u32) -> Option<u32> {
        let (&(from, to), others) = self.blocks().split_first()?;
        let within = others.first().is_some_and(|second| second.0 <= from && to <= second.1);
        (from < next || within).then_some(from)
    }

    /// Leaves the first `n` blocks at most.
    pub fn truncate(&mut self, n: usize) {
        for block in self.blocks.iter_mut().skip(n) {
            *block = (0, 0);
        }
        self.len = self.len.min(n as u8);
    }

    /// Adds a block if there is room.
    pub fn push(&mut self, block: (u32, u32)) {
        if usize::from(self.len) < Sack::MAX_BLOCKS {
            self.blocks[usize::from(self.len)] = block;
            self.len += 1;
        }
    }
}

/// An acknowledgement as the sender reads it.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// The next segment the receiver expects.
    pub next: u32,
    /// The blocks above that.
    pub sack: &'a Sack,
    /// ECN's flags: ECN-Echo, as a router has marked a segment (RFC 3168 §6.1.3), or the ACE field (RFC 9768 §3.2.2); in a SYN/ACK what the
    /// receiver agrees to.
    pub flags: Flags,
    /// The parts that few flows' acknowledgements have.
    pub more: Option<&'a More>,
}

/// The parts that few flows' acknowledgements have.
#[derive(Clone, Copy, Debug, Default)]
pub struct More {
    /// One-way delays, where the control [measures them](Congestion::measures_delay).
    pub delays: Delays,
    /// The AccECN Option (RFC 9768 §3.2.3).
    pub bytes: Option<ByteOption>,
}

/// One-way delays as a receiver tells of them (RFC 6817 §2.3): of the segments that an acknowledgement stands for, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    secs: [f64; Delays::MOST],
    len: u8,
}

impl Delays {
    /// Every second segment is acknowledged at least (RFC 5681 §4.2).
    const MOST: usize = 2;

    /// One more; the oldest makes room.
    pub fn push(&mut self, secs: f64) {
        if usize::from(self.len) == Delays::MOST {
            self.secs.rotate_left(1);
            self.len -= 1;
        }
        self.secs[usize::from(self.len)] = secs;
        self.len += 1;
    }

    /// In seconds.
    #[must_use]
    pub fn secs(&self) -> &[f64] {
        &self.secs[..usize::from(self.len)]
    }
}

/// A data segment's ECN bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnBits {
    /// Its code point: with ECT a queue may mark the segment instead of dropping it (RFC 3168 §5).
    pub ip: Ecn,
    /// CWR: the sender has reduced its window (RFC 3168 §6.1.2); or the ACE field (RFC 9768 §3.2.2); in a SYN what the sender asks for.
    pub flags: Flags,
}

/// The sequence number of a segment's first byte, modulo 2³²: the SYN takes one number, data follows.
#[inline]
#[must_use]
pub fn sequence_number(segment: u32, size: u32) -> u32 {
    if segment == 0 { 0 } else { (segment - 1).wrapping_mul(size).wrapping_add(1) }
}

pub mod accurate_ecn;
pub mod byte_option;
pub mod config;
pub mod control;
pub mod linux;
pub mod negotiation;
pub mod ns2;
pub mod receiver;
pub mod rfc;
pub mod rto;

pub use negotiation::flags;

use crate::clock::Clock;
pub use byte_option::ByteOption;
pub use config::{Config, Profile, Settings, SlowStart};
pub use flags::Flags;
pub use linux::PrrRules;

/// The environment of a sender. Segment 0 is the SYN; data starts at segment 1.
pub trait Host {
    /// The engine's clock.
    type Clock: Clock;
    /// The current time.
    fn now(&self) -> Self::Clock;
    /// Sends a segment now.
    fn send(&mut self, segment: u32, bits: EcnBits);
    /// Sets one of the sender's timers, replacing whatever it was set to.
    fn set_timer(&mut self, which: TimerKind, after: <Self::Clock as Clock>::Span);
    /// Stops a timer.
    fn cancel_timer(&mut self, which: TimerKind);
    /// Whether a timer is set.
    fn timer_is_set(&self, which: TimerKind) -> bool;
    /// Uniform in [0, 1), from the flow's random stream.
    fn uniform(&mut self) -> f64;
}

/// A flow's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TimerKind {
    /// The sender's retransmission timer.
    Retransmit = 0,
    /// When the sender may send: the end of its random delay, or the next datagram.
    Send = 1,
    /// The receiver's delayed acknowledgement.
    DelayedAck = 2,
}

impl TimerKind {
    /// In the order of their numbers.
    pub const ALL: [TimerKind; 3] = [TimerKind::Retransmit, TimerKind::Send, TimerKind::DelayedAck];
}

/// The counts of a sender since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast retransmits.
    pub fast_retransmits: u32,
    /// Retransmitted segments, each retransmission counted.
    pub retransmissions: u64,
}

impl Tally {
    /// The counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Tally) -> Tally {
        Tally {
            timeouts: self.timeouts - before.timeouts,
            fast_retransmits: self.fast_retransmits - before.fast_retransmits,
            retransmissions: self.retransmissions - before.retransmissions,
        }
    }
}

/// A sender of any profile.
#[derive(Clone, Debug)]
pub enum Sender<C: Clock> {
    /// By the RFCs.
    Rfc(rfc::Sender<C>),
    /// As in Linux.
    Linux(Box<linux::Sender<C>>),
    /// As in ns-2.
    Ns2(ns2::Sender<C>),
}

macro_rules! either {
    ($self:ident, $s:ident => $body:expr) => {
        match $self {
            Sender::Rfc($s) => $body,
            Sender::Linux($s) => $body,
            Sender::Ns2($s) => $body,
        }
    };
}

impl<C: Clock> Sender<C> {
    /// Closed. `uniform` is drawn once by the ns-2 profile (the phase of its coarse clock).
    pub fn new(config: &Config, uniform: impl FnOnce() -> f64) -> Sender<C> {
        match config.profile {
            Profile::Rfc => Sender::Rfc(rfc::Sender::new(config)),
            Profile::Linux => Sender::Linux(Box::new(linux::Sender::new(config))),
            Profile::Ns2 => Sender::Ns2(ns2::Sender::new(config, uniform())),
        }
    }

    /// The application has data.
    pub fn start<H: Host<Clock = C>>(&mut self, host: &mut H) {
        either!(self, s => s.start(host));
    }

    /// Everything is acknowledged, and the application has data again; a segment was last sent at `last_sent`. Not in the ns-2 profile.
    pub fn resume<H: Host<Clock = C>>(&mut self, last_sent: C, host: &mut H) {
        match self {
            Sender::Rfc(s) => s.resume(last_sent, host),
            Sender::Linux(s) => s.resume(last_sent, host),
            Sender::Ns2(s) => s.start(host),
        }
    }

    /// How many segments it has sent, each transmission counted; not in the ns-2 profile.
    pub fn transmissions(&self) -> u64 {
        match self {
            Sender::Rfc(s) => s.transmissions(),
            Sender::Linux(s) => s.transmissions(),
            Sender::Ns2(_) => 0,
        }
    }

    /// An acknowledgement arrived. Each profile has a function of its own: inlined into one, each would save the registers that
    /// any of them needs.
    #[inline]
    pub fn on_ack<H: Host<Clock = C>>(&mut self, ack: Ack<'_>, host: &mut H) {
        either!(self, s => s.on_ack(ack, host));
    }

    /// A timer of the sender expired.
    pub fn on_timer<H: Host<Clock = C>>(&mut self, which: TimerKind, host: &mut H) {
        match which {
            TimerKind::Retransmit => match self {
                Sender::Rfc(s) => s.on_rto(host),
                Sender::Linux(s) => s.on_timer(host),
                Sender::Ns2(s) => s.on_rto(host),
            },
            TimerKind::Send | TimerKind::DelayedAck => either!(self, s => s.on_jitter_end(host)),
        }
    }

    /// The application's data ends before this segment.
    pub fn set_data_end(&mut self, segment: u32) {
        either!(self, s => s.set_data_end(segment));
    }

    /// Whether everything that the application has had data for is acknowledged; not in the ns-2 profile.
    pub fn all_acknowledged(&self) -> bool {
        match self {
            Sender::Rfc(s) => s.all_acknowledged(),
            Sender::Linux(s) => s.all_acknowledged(),
            Sender::Ns2(_) => false,
        }
    }

    /// The application has no more data than has been sent.
    pub fn stop(&mut self) {
        either!(self, s => s.stop());
    }

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        either!(self, s => s.cwnd())
    }

    /// Slow-start threshold in segments.
    pub fn ssthresh(&self) -> f64 {
        either!(self, s => s.ssthresh())
    }

    /// The counts of it since the start of the run.
    pub fn tally(&self) -> Tally {
        either!(self, s => s.tally())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All blocks, each once, whatever their number and order.
        #[test]
        fn blocks_are_shown_in_the_order_of_their_numbers(
            told in prop::collection::vec((0u32..6, 0u32..6), 0..=Sack::MAX_BLOCKS), high in any::<bool>(),
        ) {
            let from = if high { u32::MAX - 6 } else { 0 };
            let mut sack = Sack::default();
            told.iter().for_each(|block| sack.push((from + block.0, from + block.1)));
            let mut want = sack.blocks().to_vec();
            want.sort_unstable();
            let mut shown = Vec::new();
            sack.by_number(|block| shown.push(block));
            prop_assert_eq!(shown, want);
        }
    }
}

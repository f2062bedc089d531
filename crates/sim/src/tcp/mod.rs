//! TCP: a sender and a receiver for each profile, behind one interface.

use inprofile_core::units::Duration;

/// Which TCP a flow speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Whose rules.
    pub profile: Profile,
    /// Which loss recovery and window growth.
    pub congestion: Congestion,
    /// Payload of a full segment in bytes.
    pub segment: u32,
    /// Headers of every packet in bytes (40: IPv4 and TCP without options).
    pub header: u32,
    /// The receiver's window, in segments.
    pub window: u32,
    /// A random delay of up to this much before each send opportunity (Floyd and Jacobson 1992, §5).
    pub jitter: Duration,
    /// Whether the receiver acknowledges every packet, or every other one within a time.
    pub delayed_ack: Option<Duration>,
    /// Least retransmission timeout.
    pub min_rto: Duration,
    /// Initial window, in segments.
    pub initial_window: u32,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Explicit congestion notification (RFC 3168), agreed on by both ends.
    pub ecn: bool,
}

/// Whose rules a connection follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The RFCs'.
    Rfc,
    /// ns-2 2.35's one-way TCP.
    Ns2,
}

/// How a connection reacts to loss and grows its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 5681: fast retransmit and fast recovery.
    Reno,
    /// RFC 6582: recovery lasts until all that was out is acknowledged.
    NewReno,
    /// RFC 2018 and 6675: recovery by what the receiver says it has.
    Sack,
    /// RFC 9438: the window grows by a cubic function of the time since the last loss.
    Cubic {
        /// Whether recovery is by what the receiver says it has, or by RFC 6582.
        sack: bool,
    },
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
        }
    }

    /// Whether the receiver says what it has beyond what it acknowledges.
    #[must_use]
    pub fn selects(self) -> bool {
        matches!(self, Congestion::Sack | Congestion::Cubic { sack: true })
    }
}

/// What the receiver has beyond what it acknowledges (RFC 2018), most recent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    /// From, to (excluded).
    blocks: [(u32, u32); Sack::MOST],
    len: u8,
}

impl Sack {
    /// The most blocks that fit into a header (RFC 2018 §3); beside a timestamp, which no profile has, it were three.
    pub const MOST: usize = 4;
    /// Bytes a block takes in the header.
    pub const BYTES: u32 = 8;

    /// The blocks, most recent first.
    #[must_use]
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Adds a block if there is room.
    pub fn push(&mut self, block: (u32, u32)) {
        if usize::from(self.len) < Sack::MOST {
            self.blocks[usize::from(self.len)] = block;
            self.len += 1;
        }
    }
}

/// An acknowledgement as the sender reads it.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// The segment the receiver waits for.
    pub next: u32,
    /// What it has beyond.
    pub sack: &'a Sack,
    /// ECN-Echo: congestion was experienced on the way (RFC 3168 §6.1.3).
    pub echo: bool,
}

/// What the headers of a segment say of congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    /// ECT(0): a queue may mark it instead of dropping it (RFC 3168 §5).
    pub capable: bool,
    /// The window was reduced (RFC 3168 §6.1.2).
    pub cwr: bool,
}

/// The sequence number of a segment's first byte, modulo 2³²: the SYN takes one number, data follows.
#[inline]
#[must_use]
pub fn sequence_number(segment: u32, size: u32) -> u32 {
    if segment == 0 { 0 } else { (segment - 1).wrapping_mul(size).wrapping_add(1) }
}

pub mod ns2;
pub mod receiver;
pub mod rfc;
pub mod rto;

use crate::clock::Clock;

/// What a sender asks of the world around it. Segment 0 is the SYN; data starts at segment 1.
pub trait Host {
    /// The clock it lives on.
    type Clock: Clock;
    /// The present moment.
    fn now(&self) -> Self::Clock;
    /// Sends a segment now.
    fn send(&mut self, segment: u32, bits: Bits);
    /// Sets one of the sender's timers, instead of whatever it was set to.
    fn set_timer(&mut self, which: Alarm, after: <Self::Clock as Clock>::Span);
    /// Stops a timer.
    fn cancel_timer(&mut self, which: Alarm);
    /// Whether a timer is set.
    fn timer_is_set(&self, which: Alarm) -> bool;
    /// Uniform in [0, 1), from the flow's stream.
    fn uniform(&mut self) -> f64;
}

/// A flow's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Alarm {
    /// The sender's retransmission timer.
    Retransmit = 0,
    /// The sender's random delay before it sends.
    Send = 1,
    /// The receiver's delayed acknowledgement.
    Acknowledge = 2,
}

impl Alarm {
    /// In the order of their numbers.
    pub const ALL: [Alarm; 3] = [Alarm::Retransmit, Alarm::Send, Alarm::Acknowledge];
}

/// What a sender has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Segments sent again, counted at each repetition.
    pub retransmissions: u64,
}

impl Tally {
    /// What was done since `before`.
    #[must_use]
    pub fn since(&self, before: &Tally) -> Tally {
        Tally {
            timeouts: self.timeouts - before.timeouts,
            fast_retransmits: self.fast_retransmits - before.fast_retransmits,
            retransmissions: self.retransmissions - before.retransmissions,
        }
    }
}

/// A sender of either profile.
#[derive(Clone, Debug)]
pub enum Sender<C: Clock> {
    /// By the RFCs.
    Rfc(rfc::Sender<C>),
    /// As ns-2 does.
    Ns2(ns2::Sender<C>),
}

macro_rules! either {
    ($self:ident, $s:ident => $body:expr) => {
        match $self {
            Sender::Rfc($s) => $body,
            Sender::Ns2($s) => $body,
        }
    };
}

impl<C: Clock> Sender<C> {
    /// Closed. `uniform` is drawn once by the ns-2 profile (the phase of its coarse clock).
    pub fn new(config: &Config, uniform: impl FnOnce() -> f64) -> Sender<C> {
        match config.profile {
            Profile::Rfc => Sender::Rfc(rfc::Sender::new(config)),
            Profile::Ns2 => Sender::Ns2(ns2::Sender::new(config, uniform())),
        }
    }

    /// The application has data, without end.
    pub fn start<H: Host<Clock = C>>(&mut self, host: &mut H) {
        either!(self, s => s.start(host));
    }

    /// An acknowledgement arrived.
    pub fn acknowledged<H: Host<Clock = C>>(&mut self, ack: Ack<'_>, host: &mut H) {
        either!(self, s => s.acknowledged(ack, host));
    }

    /// A timer of the sender expired.
    pub fn alarm<H: Host<Clock = C>>(&mut self, which: Alarm, host: &mut H) {
        match (self, which) {
            (Sender::Rfc(s), Alarm::Retransmit) => s.timed_out(host),
            (Sender::Ns2(s), Alarm::Retransmit) => s.timed_out(host),
            (Sender::Rfc(s), _) => s.delay_over(host),
            (Sender::Ns2(s), _) => s.delay_over(host),
        }
    }

    /// The application's data ends before this segment.
    pub fn end_before(&mut self, segment: u32) {
        either!(self, s => s.end_before(segment));
    }

    /// The application has no more data than has been sent.
    pub fn end_here(&mut self) {
        either!(self, s => s.end_here());
    }

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        either!(self, s => s.cwnd())
    }

    /// Slow-start threshold in segments.
    pub fn ssthresh(&self) -> f64 {
        either!(self, s => s.ssthresh())
    }

    /// What it has done so far.
    pub fn tally(&self) -> Tally {
        either!(self, s => s.tally())
    }
}

//! Congestion controls: how the window grows, by how much congestion reduces it, and how fast segments leave. One file each, and one
//! line of [`controls!`]. What is lost, and what is sent again, is the sender's business ([`rfc`](super::rfc), [`linux`](super::linux)).
//!
//! Windows are in segments, times in seconds.

pub mod bbr;
pub mod copa;
pub mod cubic;
pub mod dcqcn;
pub mod dctcp;
pub mod ledbat;
pub mod linux_cubic;
pub mod prague;
pub mod reno;

use super::{Config, Congestion, Feedback, Profile};
use inprofile_core::packet::Ecn;

/// An acknowledgement as the sender has taken it in, once losses are found.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it arrived.
    pub now: f64,
    /// Segments that were not known to have arrived.
    pub delivered: u32,
    /// Of those, the ones that a queue marked CE, as far as the feedback tells.
    pub marked: u32,
    /// Segments that it showed to be lost.
    pub lost: u32,
    /// The shortest round-trip time that it measured, if any.
    pub rtt: Option<f64>,
    /// The smoothed round-trip time; 0 before one is measured.
    pub srtt: f64,
    /// Segments in flight before it.
    pub prior_in_flight: u32,
    /// Segments in flight now.
    pub in_flight: u32,
    /// The first segment not acknowledged (SND.UNA).
    pub una: u32,
    /// The next segment never sent (SND.NXT).
    pub next: u32,
    /// SND.UNA moved on.
    pub advanced: bool,
    /// The window was full when it arrived.
    pub limited: bool,
    /// The state of loss recovery.
    pub phase: Phase,
    /// The rate at which segments were delivered, where the control [asks for it](Control::wants_rate).
    pub rate: Option<RateSample>,
}

/// A sample of the delivery rate (draft-ietf-ccwg-bbr §4.1): of the segment sent last among those that an acknowledgement tells of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Segments delivered over the interval (RS.delivered).
    pub delivered: u32,
    /// Its length (RS.interval): the longer of the time it took to send them and the time it took to acknowledge them. Not positive, or
    /// shorter than the shortest round-trip time: no rate can be told.
    pub interval: f64,
    /// The sender had no data to send for part of it (RS.is_app_limited).
    pub app_limited: bool,
    /// Segments that were found lost since that segment was sent (RS.lost).
    pub lost: u32,
    /// Segments in flight when that segment was sent, itself included (RS.tx_in_flight).
    pub tx_in_flight: u32,
    /// Segments delivered so far (C.delivered).
    pub total: u32,
    /// Segments found lost so far (C.lost).
    pub total_lost: u32,
    /// That segment was sent after the last round trip began: another begins.
    pub round_start: bool,
}

/// A segment found lost, for a control that [asks for rates](Law::wants_rate).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lost {
    /// When it was found.
    pub now: f64,
    /// Its number.
    pub segment: u32,
    /// Segments in flight when it was sent, itself included (P.tx_in_flight).
    pub tx_in_flight: u32,
    /// Segments found lost since it was sent, itself included (C.lost − P.lost).
    pub since: u32,
    /// The sender had no data to send when it was sent (P.is_app_limited).
    pub app_limited: bool,
    /// Segments delivered so far (C.delivered).
    pub delivered: u32,
}

/// The first parameters of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// The initial window in segments.
    pub initial_window: u32,
    /// A full segment's payload in bytes.
    pub segment: u32,
    /// Uniform in [0, 1), from the flow's stream: the seed of what the control draws.
    pub random: f64,
}

/// The state of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing.
    Open,
    /// The window is being reduced, for a loss or a mark.
    Recovery,
    /// The retransmission timer expired, and not everything outstanding then is acknowledged.
    Loss,
}

/// The window that a control sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The congestion window.
    pub cwnd: f64,
    /// The slow-start threshold; infinite before the first congestion.
    pub ssthresh: f64,
}

/// Why the window is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A segment was lost.
    Loss,
    /// A queue marked a segment.
    Mark,
    /// The retransmission timer expired.
    Timeout,
}

/// The larger of two numbers, neither of which is NaN: a single instruction, where `f64::max` takes six.
#[inline(always)]
pub(crate) fn most(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The smaller of two numbers, neither of which is NaN.
#[inline(always)]
pub(crate) fn least(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// One congestion control.
pub trait Law {
    /// The window after `segments` more were acknowledged in congestion avoidance; `at`: the smoothed round-trip time and the current
    /// time.
    fn avoid(&mut self, cwnd: f64, segments: u32, at: impl FnOnce() -> (f64, f64)) -> f64;

    /// Congestion: the slow-start threshold that follows, not yet bounded from below; `flight`: FlightSize.
    fn reduce(&mut self, cause: Cause, cwnd: f64, flight: f64) -> f64;

    /// The timer expired, and an earlier reduction stands for it: for the same segment, or in a recovery.
    fn timed_out_again(&mut self, _cwnd: f64) {}

    /// The losses for which the window was last [reduced](Law::reduce) were none; the sender has restored the window.
    fn undone(&mut self, _window: &mut Window) {}

    /// A recovery of either kind is over; only for a control that [owns the window](Law::owns_window).
    fn recovered(&mut self, _window: &mut Window) {}

    /// An acknowledgement arrived; `unused` gives the current time if less was in flight than the window allows. True: the window
    /// must not grow.
    fn pause(&mut self, _unused: impl FnOnce() -> Option<f64>) -> bool {
        false
    }

    /// The connection begins; only for a control that [draws](Law::wants_rate).
    fn begin(&mut self, _start: &Start) {}

    /// A segment was found lost, before the acknowledgement that showed it is [taken in](Law::acknowledged).
    fn lost(&mut self, _lost: &Lost, _window: &Window) {}

    /// The application has data again after a pause in which everything was acknowledged; the first segment is about to leave. A window that
    /// is below its threshold then grows by slow start.
    fn restarts_from_idle(&mut self, _now: f64, _window: &mut Window) {}

    /// Whether a longer pause brings the window down (RFC 5681 §4.1). As in Linux, not where the control sets the window itself.
    fn restarts_slowly(&self) -> bool {
        true
    }

    /// One-way delays in seconds that an acknowledgement tells of, before it is [taken in](Law::acknowledged).
    fn delays(&mut self, _delays: &[f64], _now: f64) {}

    /// Whether the control now sends less than the path takes: rates tell nothing of the path.
    fn limits_itself(&self) -> bool {
        false
    }

    /// Each acknowledgement. True: the control has set the window, and the sender neither grows nor reduces it.
    fn acknowledged(&mut self, _sample: &Sample, _window: &mut Window) -> bool {
        false
    }

    /// At how many segments a second they leave, so many being in flight; `None`: as fast as the window allows.
    fn pacing_rate(&self, _window: &Window, _in_flight: u32, _srtt: f64) -> Option<f64> {
        None
    }

    /// How long a train of segments may be that leaves at once where the sender paces, in seconds, one segment at least; `None`: as the
    /// sender has it.
    fn train(&self) -> Option<f64> {
        None
    }

    /// Whether a fraction of a segment in the window lets a whole one leave.
    fn rounds_up(&self) -> bool {
        false
    }

    /// Whether the window is its own also while losses are recovered from.
    fn owns_window(&self) -> bool {
        false
    }

    /// Whether samples have delivery rates, and the control is told of each segment lost.
    fn wants_rate(&self) -> bool {
        false
    }
}

/// The controls that every sender has, and those that need what only the linux profile tells: a variant, its law, its word in a file.
macro_rules! controls {
    ($($(#[$doc:meta])* $name:ident($law:ty) = $word:literal),* $(,)?) => {
        /// A control that only the linux profile has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// All.
            pub const ALL: &[Kind] = &[$(Kind::$name),*];

            /// The word in a file.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Kind::$name => $word,)* }
            }

            fn control(self) -> Control {
                match self { $(Kind::$name => Control::$name(Box::default()),)* }
            }
        }

        /// A flow's congestion control.
        #[derive(Clone, Debug)]
        pub enum Control {
            /// RFC 5681.
            Reno(reno::Reno),
            /// RFC 9438.
            Cubic(Box<cubic::Cubic>),
            /// Reno as Linux counts.
            LinuxReno(reno::LinuxReno),
            /// CUBIC as Linux counts.
            LinuxCubic(Box<linux_cubic::LinuxCubic>),
            $($(#[$doc])* $name(Box<$law>),)*
        }

        macro_rules! either {
            ($control:expr, $c:ident => $body:expr) => {
                match $control {
                    Control::Reno($c) => $body,
                    Control::Cubic($c) => $body,
                    Control::LinuxReno($c) => $body,
                    Control::LinuxCubic($c) => $body,
                    $(Control::$name($c) => $body,)*
                }
            };
        }
    };
}

controls! {
    /// draft-ietf-ccwg-bbr.
    Bbr(bbr::Bbr) = "bbr",
    /// RFC 8257.
    Dctcp(dctcp::Dctcp) = "dctcp",
    /// draft-briscoe-iccrg-prague-congestion-control.
    Prague(prague::Prague) = "prague",
    /// RFC 6817.
    Ledbat(ledbat::Ledbat) = "ledbat",
    /// Arun and Balakrishnan, NSDI 2018.
    Copa(copa::Copa) = "copa",
    /// Zhu et al., SIGCOMM 2015.
    Dcqcn(dcqcn::Dcqcn) = "dcqcn",
}

impl Control {
    /// The flow's.
    #[must_use]
    pub fn new(config: &Config) -> Control {
        let linux = config.profile == Profile::Linux;
        match config.congestion {
            Congestion::Cubic { .. } if linux => Control::LinuxCubic(Box::default()),
            Congestion::Cubic { .. } => Control::Cubic(Box::default()),
            Congestion::Reno | Congestion::NewReno | Congestion::Sack if linux => {
                Control::LinuxReno(reno::LinuxReno::default())
            }
            Congestion::Reno | Congestion::NewReno | Congestion::Sack => Control::Reno(reno::Reno),
            // See [`Control::agreed`].
            Congestion::Linux(Kind::Prague) if !config.accurate_ecn => {
                Control::LinuxReno(reno::LinuxReno::default())
            }
            Congestion::Linux(Kind::Prague) => {
                Control::Prague(Box::new(prague::Prague::new(&config.settings)))
            }
            Congestion::Linux(Kind::Ledbat) => {
                Control::Ledbat(Box::new(ledbat::Ledbat::new(&config.settings)))
            }
            Congestion::Linux(Kind::Dcqcn) => Control::Dcqcn(Box::new(dcqcn::Dcqcn::new(config))),
            Congestion::Linux(kind) => kind.control(),
        }
    }

    /// The agreement of the two ends: how marks are told, and the code point of what is sent. A control that can't do without is Reno's then.
    pub fn agreed(&mut self, mode: Option<Feedback>, code_point: Ecn) {
        let lacks = match self {
            // RFC 9331 §4.2: without accurate feedback a sender is no L4S sender; as in Linux, this one is then Reno's.
            Control::Prague(_) => mode != Some(Feedback::Counter) || code_point != Ecn::Ect1,
            // As in Linux.
            Control::Dctcp(_) | Control::Dcqcn(_) => mode.is_none(),
            _ => false,
        };
        if lacks {
            *self = Control::LinuxReno(reno::LinuxReno::default());
        }
    }

    /// See [`Law::avoid`]. Reno's and Linux's CUBIC's are inlined where they are asked.
    #[inline(always)]
    pub fn avoid(&mut self, cwnd: f64, segments: u32, at: impl FnOnce() -> (f64, f64)) -> f64 {
        match self {
            Control::Reno(c) => c.avoid(cwnd, segments, at),
            Control::LinuxReno(c) => c.avoid(cwnd, segments, at),
            Control::LinuxCubic(c) => c.avoid(cwnd, segments, at),
            others => others.avoid_apart(cwnd, segments, at),
        }
    }

    #[inline(never)]
    fn avoid_apart(&mut self, cwnd: f64, segments: u32, at: impl FnOnce() -> (f64, f64)) -> f64 {
        either!(self, c => c.avoid(cwnd, segments, at))
    }

    /// See [`Law::reduce`].
    pub fn reduce(&mut self, cause: Cause, cwnd: f64, flight: f64) -> f64 {
        either!(self, c => c.reduce(cause, cwnd, flight))
    }

    /// See [`Law::timed_out_again`].
    pub fn timed_out_again(&mut self, cwnd: f64) {
        either!(self, c => c.timed_out_again(cwnd));
    }

    /// See [`Law::undone`].
    pub fn undone(&mut self, window: &mut Window) {
        either!(self, c => c.undone(window));
    }

    /// See [`Law::recovered`].
    pub fn recovered(&mut self, window: &mut Window) {
        either!(self, c => c.recovered(window));
    }

    /// See [`Law::pause`].
    #[inline(always)]
    pub fn pause(&mut self, unused: impl FnOnce() -> Option<f64>) -> bool {
        either!(self, c => c.pause(unused))
    }

    /// Whether it looks at each acknowledgement; Reno and CUBIC leave them to the sender.
    #[inline(always)]
    #[must_use]
    pub fn watches(&self) -> bool {
        use Control::{Cubic, LinuxCubic, LinuxReno, Reno};
        !matches!(self, Reno(_) | Cubic(_) | LinuxReno(_) | LinuxCubic(_))
    }

    /// An acknowledgement measured a round-trip time, in seconds.
    #[inline(always)]
    pub fn measured(&mut self, rtt: f64, now: f64) {
        if let Control::LinuxCubic(c) = self {
            c.measured(rtt, now);
        }
    }

    /// A segment leaves when none is in flight; the one before it left at `last`.
    pub fn starts(&mut self, last: f64, now: f64) {
        if let Control::LinuxCubic(c) = self {
            c.starts(last, now);
        }
    }

    /// See [`Law::acknowledged`]; of a control that asks for no rates. Prague's is inlined where it is asked.
    #[inline(always)]
    pub fn acknowledged(&mut self, sample: &Sample, window: &mut Window) -> bool {
        match self {
            Control::Prague(c) => c.acknowledged(sample, window),
            others => others.acknowledged_apart(sample, window),
        }
    }

    /// See [`Law::acknowledged`]; of a control that [asks for rates](Control::wants_rate). BBR's is inlined where it is asked.
    #[inline(always)]
    pub fn acknowledged_with_rate(&mut self, sample: &Sample, window: &mut Window) -> bool {
        match self {
            Control::Bbr(c) => c.acknowledged(sample, window),
            others => {
                // A copy: if these had their address, BBR's would have to be in memory.
                let (sample, mut own) = (*sample, *window);
                let decided = others.acknowledged_apart(&sample, &mut own);
                *window = own;
                decided
            }
        }
    }

    #[inline(never)]
    fn acknowledged_apart(&mut self, sample: &Sample, window: &mut Window) -> bool {
        either!(self, c => c.acknowledged(sample, window))
    }

    /// See [`Law::begin`].
    pub fn begin(&mut self, start: &Start) {
        either!(self, c => c.begin(start));
    }

    /// See [`Law::delays`].
    pub fn delays(&mut self, delays: &[f64], now: f64) {
        either!(self, c => c.delays(delays, now));
    }

    /// See [`Law::lost`].
    pub fn lost(&mut self, lost: &Lost, window: &Window) {
        either!(self, c => c.lost(lost, window));
    }

    /// See [`Law::restarts_from_idle`].
    pub fn restarts_from_idle(&mut self, now: f64, window: &mut Window) {
        either!(self, c => c.restarts_from_idle(now, window));
    }

    /// See [`Law::restarts_slowly`].
    #[must_use]
    pub fn restarts_slowly(&self) -> bool {
        either!(self, c => c.restarts_slowly())
    }

    /// See [`Law::limits_itself`].
    #[must_use]
    pub fn limits_itself(&self) -> bool {
        either!(self, c => c.limits_itself())
    }

    /// See [`Law::pacing_rate`].
    #[inline]
    #[must_use]
    pub fn pacing_rate(&self, window: &Window, in_flight: u32, srtt: f64) -> Option<f64> {
        either!(self, c => c.pacing_rate(window, in_flight, srtt))
    }

    /// See [`Law::train`].
    #[must_use]
    pub fn train(&self) -> Option<f64> {
        either!(self, c => c.train())
    }

    /// See [`Law::rounds_up`].
    #[must_use]
    pub fn rounds_up(&self) -> bool {
        either!(self, c => c.rounds_up())
    }

    /// See [`Law::owns_window`].
    #[must_use]
    pub fn owns_window(&self) -> bool {
        either!(self, c => c.owns_window())
    }

    /// See [`Law::wants_rate`].
    #[must_use]
    pub fn wants_rate(&self) -> bool {
        either!(self, c => c.wants_rate())
    }
}

//! A TCP sender as Linux has it: RACK and tail loss probes (RFC 8985) find losses, proportional rate reduction (RFC 6937, 9937) recovers
//! from them; CUBIC (RFC 9438) with HyStart or HyStart++ (RFC 9406), or Reno; the retransmission timer of RFC 6298; ECN by RFC 3168.
//!
//! Windows and sequence numbers count full segments. Each segment is told apart by when it was last sent, so that the loss of a
//! retransmission needs no timeout. A timeout that proves needless is undone (F-RTO, RFC 5682), and so is any reduction after which all that
//! was sent again has arrived twice (duplicate SACKs, RFC 2883). Not implemented: timestamps.

mod acknowledgement;
mod delivery;
mod hystart;
mod losses;
mod ordinary;
mod pacing;
mod prr;
mod rack;
mod scoreboard;
mod send;
mod timers;

use crate::clock::Clock;
use crate::tcp::accurate_ecn::Tracker;
use crate::tcp::byte_option::Reader;
use crate::tcp::control::{Control, Phase, Start, Window};
use crate::tcp::rfc::Ecn;
use crate::tcp::{Config, Feedback, Host, Tally};
use delivery::Delivery;
use grow::Exit;
use losses::Frto;
use losses::Undo;
use ordinary::grow;
use pacing::Pacer;
pub use prr::PrrRules;
use prr::{Outstanding, Prr};
use rack::Rack;
use scoreboard::Scoreboard;
use timers::Timeout;

/// A fraction of a segment that counts as none: arithmetic is exact to less.
const FRACTION: f64 = 1e-9;

/// The state of loss recovery.
#[derive(Clone, Debug)]
enum State {
    /// Nothing.
    Open,
    /// The window is being reduced for an ECN-Echo, and nothing is lost (Linux's CWR).
    Reduction(Prr),
    /// The window is being reduced, and losses are recovered from.
    Recovery(Prr),
    /// The retransmission timer expired.
    Loss,
}

impl State {
    fn phase(&self) -> Phase {
        match self {
            State::Open => Phase::Open,
            State::Reduction(_) | State::Recovery(_) => Phase::Recovery,
            State::Loss => Phase::Loss,
        }
    }

    /// Whether losses are being recovered from.
    fn recovers(&self) -> bool {
        matches!(self, State::Recovery(_) | State::Loss)
    }
}

/// The purpose of the timer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pending {
    Retransmission,
    /// A segment may only be late (RFC 8985 §6.2, step 5).
    Reordering,
    /// A tail loss probe (RFC 8985 §7).
    Probe,
}

/// The sender. Segment 0 is the SYN. What every acknowledgement and every train touch comes first, in as few cache lines as can be: of a
/// thousand flows the next event's is in no near cache. A test says which, where it begins with a line.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender<C: Clock> {
    cwnd: f64,
    ssthresh: f64,
    /// How much of a segment the window must have room for before one leaves.
    room: f64,
    /// The receiver's window.
    rwnd: u32,
    /// One past the last segment that the application has data for.
    data_end: u32,
    /// Where a window of data ends, and whether the congestion window was full in it.
    full: (u32, bool),
    pending: Pending,
    /// A round-trip time was measured since the last probe (RFC 8985 §7.3): only then there is another.
    sampled: bool,
    /// The first outstanding segment has timed out before.
    una_timed_out: bool,
    /// New data before lost segments, until the next acknowledgement.
    new_first: bool,
    /// See [`Sender::has_nothing_open`].
    ordinary: bool,
    prr: PrrRules,
    control: Control,
    pacer: Option<Pacer>,
    /// The delivery rate, if the control wants it.
    delivery: Option<Box<Delivery<C>>>,
    /// Accurate feedback (RFC 9768).
    marks: Option<Tracker>,
    board: Scoreboard<C>,
    tally: Tally,
    jitter: f64,
    initial_window: u32,
    /// A full segment's payload in bytes.
    segment: u32,
    /// A probe is out: TLP.end_seq, and whether it was a retransmission.
    probe: Option<(u32, bool)>,
    /// The timer has expired, and it is not yet known whether needlessly.
    frto: Option<Frto>,
    timeout: Timeout<C>,
    state: State,
    /// RFC 6298 §3: one measurement a round trip; the next is of a segment from here on.
    next_sample: u32,
    /// Recovery ends when everything before this is acknowledged.
    recovery_point: u32,
    ecn: Option<Ecn>,
    rack: Rack<C>,
    /// The last reduction for a loss, which may have been for nothing.
    undo: Option<Undo>,
    /// The rule that ends slow start.
    exit: Exit,
    /// The AccECN Option's counts.
    reader: Reader,
}

impl<C: Clock> Sender<C> {
    /// Closed.
    pub fn new(config: &Config) -> Sender<C> {
        let control = Control::new(config);
        Sender {
            cwnd: 1.0,
            ssthresh: f64::INFINITY,
            rwnd: config.window,
            initial_window: config.initial_window,
            segment: config.segment,
            prr: config.settings.prr,
            reader: Reader::default(),
            state: State::Open,
            recovery_point: 0,
            board: Scoreboard::new(),
            rack: Rack::new(),
            probe: None,
            sampled: false,
            pacer: config.pacing.then(|| Pacer::new(config.segment, control.train())),
            full: (0, false),
            room: if control.rounds_up() { FRACTION } else { 1.0 },
            delivery: control.wants_rate().then(|| Box::new(Delivery::new())),
            control,
            exit: Exit::new(config),
            ecn: Ecn::new(config),
            marks: (config.speaks() == Some(Feedback::Counter)).then(Tracker::default),
            timeout: Timeout::new(config.min_rto),
            pending: Pending::Retransmission,
            next_sample: 0,
            una_timed_out: false,
            frto: None,
            undo: None,
            new_first: false,
            ordinary: false,
            data_end: u32::MAX,
            jitter: config.settings.jitter.secs(),
            tally: Tally::default(),
        }
    }

    /// The application has data.
    pub fn start<H: Host<Clock = C>>(&mut self, host: &mut H) {
        if self.delivery.is_some() && self.board.max() == 0 {
            self.board.note_lost();
            self.control.begin(&Start {
                initial_window: self.initial_window,
                segment: self.segment,
                random: host.uniform(),
            });
        }
        let now = host.now().secs();
        self.send_data(now, host);
    }

    /// A timer expired.
    pub fn on_timer<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.ordinary = false;
        match self.pending {
            Pending::Retransmission => self.on_rto(host),
            Pending::Probe => self.send_probe(host),
            Pending::Reordering => {
                let (_, wait) = self.detect(host.now());
                // In a recovery that goes on, the last acknowledgement's window counts: what was lost since makes room in it.
                if self.recover_if_lost(false, 0)
                    && let State::Recovery(prr) = &mut self.state
                    && !self.control.owns_window()
                {
                    let pipe = self.board.in_flight();
                    // As in Linux: the timer counts as the arrival of one segment.
                    self.cwnd = f64::from(pipe) + prr.allow(1, pipe, self.ssthresh, false);
                }
                let now = host.now().secs();
                self.send(false, now, host);
                self.set_timer(wait, host);
            }
        }
    }

    /// The random delay before a send is over, or the next train is due.
    pub fn on_jitter_end<H: Host<Clock = C>>(&mut self, host: &mut H) {
        let now = host.now().secs();
        self.send(true, now, host);
    }

    /// The window that controls set.
    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    /// A reduction begins with an acknowledgement that tells of so many segments.
    fn begin_reduction(&self, delivered: u32) -> Prr {
        let flight = self.board.max() - self.board.una();
        Prr::new(self.prr, &Outstanding { cwnd: self.cwnd, flight, sacked: self.board.sacked(), delivered })
    }

    /// One past the last segment that may be sent.
    fn limit(&self) -> u32 {
        (self.board.una() + self.rwnd).min(self.data_end)
    }

    /// The application's data ends before this segment.
    pub fn set_data_end(&mut self, segment: u32) {
        self.data_end = segment;
    }

    /// Whether everything that the application has had data for is acknowledged.
    pub fn all_acknowledged(&self) -> bool {
        self.board.una() >= self.data_end
    }

    /// The application has no more data than has been sent.
    pub fn stop(&mut self) {
        self.data_end = self.data_end.min(self.board.max());
    }

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold in segments; infinite before the first loss.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// The congestion control.
    #[cfg(test)]
    pub(in crate::tcp) fn control(&self) -> &Control {
        &self.control
    }

    /// FlightSize, in segments.
    pub fn flight_size(&self) -> f64 {
        f64::from(self.board.in_flight())
    }

    /// How many segments it has sent, each transmission counted.
    pub fn transmissions(&self) -> u64 {
        u64::from(self.board.max()) + self.tally.retransmissions
    }

    /// The counts of it since the start of the run.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;
    use std::mem::offset_of;

    /// With a thousand flows memory counts more than instructions: an ordinary acknowledgement and a train touch five cache lines; the
    /// control has its own.
    #[test]
    fn what_an_acknowledgement_touches_is_five_lines() {
        type Flow = Sender<Exact>;
        let line = |at: usize| at / 64;
        assert_eq!(
            size_of::<Flow>() + size_of::<crate::timer::Timers<Exact>>(),
            632,
            "ten lines with its timers"
        );
        assert_eq!(line(offset_of!(Flow, control) + size_of::<Control>() - 1), 0);
        assert_eq!((offset_of!(Flow, pacer), size_of::<Option<Pacer>>()), (64, 64));
        assert_eq!([offset_of!(Flow, delivery), offset_of!(Flow, marks)].map(line), [2, 2]);
        assert_eq!(line(offset_of!(Flow, board) + Scoreboard::<Exact>::OFTEN - 1), 2);
        assert_eq!(
            line(offset_of!(Flow, timeout) + size_of::<Timeout<Exact>>() - Timeout::<Exact>::OFTEN),
            5
        );
        assert_eq!([offset_of!(Flow, state), offset_of!(Flow, next_sample)].map(line), [5, 5]);
        assert_eq!(line(offset_of!(Flow, ecn)), 6);
        assert_eq!(line(offset_of!(Flow, rack) + Rack::<Exact>::OFTEN - 1), 6);
    }
}

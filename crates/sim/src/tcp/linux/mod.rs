//! A TCP sender as Linux has it: RACK and tail loss probes (RFC 8985) find losses, proportional rate reduction (RFC 6937, 9937) recovers
//! from them; CUBIC (RFC 9438) with HyStart, or Reno; the retransmission timer of RFC 6298; ECN by RFC 3168.
//!
//! Windows and sequence numbers count full segments. Each segment is told apart by when it was last sent, so that the loss of a
//! retransmission needs no timeout. A timeout that proves needless is undone (F-RTO, RFC 5682). Not implemented: duplicate SACKs
//! (RFC 2883) and the undoing of other reductions, timestamps.

mod delivery;
mod frto;
mod hystart;
mod pacing;
mod prr;
mod rack;
mod scoreboard;

use crate::clock::Clock;
use crate::tcp::accurate_ecn::Tracker;
use crate::tcp::control::{Cause, Control, Phase, Sample, Start, Window};
use crate::tcp::rfc::Ecn;
use crate::tcp::{Ack, Config, Congestion, EcnBits, Feedback, Host, Sack, Tally, TimerKind, rto::Rto};
use delivery::Delivery;
use frto::{Evidence, Frto, Step};
use hystart::HyStart;
use pacing::Pacer;
use prr::Prr;
use rack::Rack;
use scoreboard::Scoreboard;

/// RFC 8985 §7.2: the longest that a receiver may delay an acknowledgement, in seconds; Linux takes its minimum RTO.
const MAX_ACK_DELAY: f64 = 0.2;

/// A fraction of a segment that counts as none: arithmetic is exact to less.
const FRACTION: f64 = 1e-9;

/// What the sender is doing about losses.
#[derive(Clone, Debug)]
enum State {
    /// Nothing.
    Open,
    /// The window is being reduced, for a loss or an ECN-Echo.
    Recovery(Prr),
    /// The retransmission timer expired.
    Loss,
}

impl State {
    fn phase(&self) -> Phase {
        match self {
            State::Open => Phase::Open,
            State::Recovery(_) => Phase::Recovery,
            State::Loss => Phase::Loss,
        }
    }
}

/// What the timer is set for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pending {
    Retransmission,
    /// A segment may only be late (RFC 8985 §6.2, step 5).
    Reordering,
    /// A tail loss probe (RFC 8985 §7).
    Probe,
}

/// The sender. Segment 0 is the SYN.
#[derive(Clone, Debug)]
pub struct Sender<C: Clock> {
    cwnd: f64,
    ssthresh: f64,
    /// The receiver's window.
    rwnd: u32,
    initial_window: u32,
    /// A full segment's payload in bytes.
    segment: u32,
    state: State,
    /// Recovery ends when everything before this is acknowledged.
    recovery_point: u32,
    board: Scoreboard<C>,
    rack: Rack<C>,
    /// A probe is out: TLP.end_seq, and whether it was a retransmission.
    probe: Option<(u32, bool)>,
    /// A round-trip time was measured since the last probe (RFC 8985 §7.3): only then there is another.
    sampled: bool,
    control: Control,
    /// The delivery rate, if the control wants it.
    delivery: Option<Box<Delivery<C>>>,
    hystart: Option<HyStart>,
    pacer: Option<Box<Pacer>>,
    /// Where a window of data ends, and whether the congestion window was full in it.
    full: (u32, bool),
    ecn: Option<Ecn>,
    /// Accurate feedback (RFC 9768).
    marks: Option<Tracker>,
    rto: Rto,
    pending: Pending,
    /// RFC 6298 §3: one measurement a round trip; the next is of a segment from here on.
    next_sample: u32,
    /// The first outstanding segment has timed out before.
    una_timed_out: bool,
    /// The timer has expired, and it is not yet known whether needlessly.
    frto: Option<Frto>,
    /// New data before lost segments, until the next acknowledgement.
    new_first: bool,
    /// One past the last segment that the application has data for.
    data_end: u32,
    jitter: f64,
    /// How much of a segment the window must have room for before one leaves.
    room: f64,
    tally: Tally,
}

/// What one acknowledgement told.
struct News {
    /// Segments that were not known to have arrived.
    delivered: u32,
    /// Whether SND.UNA moved on.
    advanced: bool,
    /// A round-trip time, in seconds.
    rtt: Option<f64>,
    /// The least number among them that was sent only once.
    original: Option<u32>,
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
            state: State::Open,
            recovery_point: 0,
            board: Scoreboard::new(),
            rack: Rack::new(),
            probe: None,
            sampled: false,
            pacer: config.pacing.then(|| Box::new(Pacer::new(config.segment, control.train()))),
            full: (0, false),
            room: if control.rounds_up() { FRACTION } else { 1.0 },
            delivery: control.wants_rate().then(|| Box::new(Delivery::new())),
            control,
            hystart: matches!(config.congestion, Congestion::Cubic { .. }).then(HyStart::new),
            ecn: config.ecn.then(|| Ecn::new(config)),
            marks: (config.feedback() == Feedback::Counter).then(Tracker::default),
            rto: Rto::new(config.min_rto),
            pending: Pending::Retransmission,
            next_sample: 0,
            una_timed_out: false,
            frto: None,
            new_first: false,
            data_end: u32::MAX,
            jitter: config.jitter.secs(),
            tally: Tally::default(),
        }
    }

    /// The application has unlimited data.
    pub fn start<H: Host<Clock = C>>(&mut self, host: &mut H) {
        if self.delivery.is_some() && self.board.max() == 0 {
            self.board.note_lost();
            self.control.begin(&Start {
                now: host.now().secs(),
                initial_window: self.initial_window,
                segment: self.segment,
                random: host.uniform(),
            });
        }
        self.send(false, host);
    }

    /// An acknowledgement arrived. A function of its own: inlined beside the RFCs' sender, it has that one save what registers this
    /// one needs.
    #[inline(never)]
    pub fn on_ack<H: Host<Clock = C>>(&mut self, ack: Ack<'_>, host: &mut H) {
        if ack.next > self.board.max() || ack.next < self.board.una() {
            return;
        }
        let first = self.board.una() == 0 && ack.next > 0;
        if !ack.delays.is_empty() {
            self.control.delays(ack.delays, host.now().secs());
        }
        let prior_in_flight = self.board.in_flight();
        let limited = self.is_limited(ack.next, prior_in_flight);
        let news = self.take_in(&ack, host.now());
        if first {
            self.connected();
        }
        self.probe_answered(&ack, &news);
        if self.frto.is_some() {
            self.judge_timeout(&ack, &news);
        }
        let (lost, wait) = self.detect(host.now());
        if !matches!(self.state, State::Open) && ack.next >= self.recovery_point {
            self.leave_recovery();
        }
        self.recover_if_lost();
        let now = host.now().secs();
        let marked = match &mut self.marks {
            Some(tracker) => tracker.marks(ack.ace, news.delivered),
            None if ack.echo => news.delivered,
            None => 0,
        };
        let echo = if self.marks.is_some() { marked > 0 } else { ack.echo };
        let rate = self.delivery.as_deref_mut().and_then(|d| d.sample(ack.next, news.rtt));
        let sample = Sample {
            now,
            delivered: news.delivered,
            marked,
            lost,
            rtt: news.rtt,
            srtt: self.rto.srtt(),
            prior_in_flight,
            in_flight: self.board.in_flight(),
            una: self.board.una(),
            next: self.board.max(),
            advanced: news.advanced,
            limited,
            phase: self.state.phase(),
            rate,
        };
        let mut window = self.window();
        let decided = self.control.acknowledged(&sample, &mut window);
        (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
        if self.control.limits_itself() {
            self.out_of_data();
        }
        if !decided && echo {
            self.on_echo(&ack);
        }
        match &mut self.state {
            _ if decided => {}
            State::Recovery(prr) => {
                let pipe = self.board.in_flight();
                let safe = news.advanced && lost == 0;
                if news.delivered > 0 {
                    self.cwnd = f64::from(pipe) + prr.allow(news.delivered, pipe, self.ssthresh, safe);
                }
            }
            _ if news.advanced && !first && !echo => self.grow(&news, limited, now),
            _ => {}
        }
        self.set_pacing_rate(&news);
        self.send(false, host);
        if news.advanced || news.delivered > 0 || wait.is_some() {
            self.set_timer(wait, host);
        }
    }

    /// Whether the window was full: when the acknowledgement arrived; or where segments wait for their time, at some time in the last
    /// window of data, as Linux has it.
    fn is_limited(&mut self, next: u32, in_flight: u32) -> bool {
        let full = f64::from(in_flight) + self.room > self.cwnd;
        if self.pacer.is_some() {
            let (end, before) = self.full;
            let window_ends = next >= end || full && !before;
            self.full = if window_ends { (self.board.max(), full) } else { (end, full || before) };
            return full || before;
        }
        full
    }

    /// A timer expired.
    pub fn on_timer<H: Host<Clock = C>>(&mut self, host: &mut H) {
        match self.pending {
            Pending::Retransmission => self.on_rto(host),
            Pending::Probe => self.send_probe(host),
            Pending::Reordering => {
                let (_, wait) = self.detect(host.now());
                self.recover_if_lost();
                if let State::Recovery(prr) = &mut self.state
                    && !self.control.owns_window()
                {
                    let pipe = self.board.in_flight();
                    self.cwnd = f64::from(pipe) + prr.allow(0, pipe, self.ssthresh, false);
                }
                self.send(false, host);
                self.set_timer(wait, host);
            }
        }
    }

    /// The random delay before a send is over, or the next train is due.
    pub fn on_jitter_end<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send(true, host);
    }

    /// What arrived, by the acknowledgement's number and its SACK blocks.
    fn take_in(&mut self, ack: &Ack<'_>, now: C) -> News {
        let mut news =
            News { delivered: 0, advanced: ack.next > self.board.una(), rtt: None, original: None };
        // In the order of their numbers, not of their arrival: what came in between is not overtaken.
        let mut blocks = [(0, 0); Sack::MAX_BLOCKS];
        let blocks = &mut blocks[..ack.sack.blocks().len()];
        blocks.copy_from_slice(ack.sack.blocks());
        blocks.sort_unstable();
        let Sender { board, rack, next_sample, rto, delivery, .. } = self;
        let max = board.max();
        rack.begin();
        let mut arrived = |number: u32, segment: &scoreboard::Segment<C>| {
            news.delivered += 1;
            rack.arrived(number, segment, now);
            if let Some(delivery) = delivery {
                delivery.arrived(number, now);
            }
            // Karn's rule.
            if !segment.retransmitted {
                news.original = Some(news.original.map_or(number, |least: u32| least.min(number)));
                let rtt = C::secs_of(now.since(segment.sent_at));
                news.rtt = Some(news.rtt.map_or(rtt, |shortest: f64| shortest.min(rtt)));
                if number >= *next_sample {
                    *next_sample = max;
                    rto.sample(rtt);
                }
            }
        };
        board.acknowledge(ack.next, &mut arrived);
        for &mut block in blocks {
            board.select(block, &mut arrived);
        }
        if news.advanced {
            self.una_timed_out = false;
        }
        self.sampled |= news.rtt.is_some();
        news
    }

    /// RFC 5682 §2.1, after the timer expired.
    fn judge_timeout(&mut self, ack: &Ack<'_>, news: &News) {
        self.new_first = false;
        let Some(frto) = self.frto else { return };
        let told = Evidence {
            original: news.original.is_some_and(|number| number < frto.point),
            advanced: news.advanced,
            duplicate: !news.advanced || self.board.sacked() > 0 && !ack.sack.blocks().is_empty(),
            una: self.board.una(),
            next: self.board.max(),
            more: self.board.max() < self.limit(),
        };
        match frto.judge(&told) {
            Step::Wait => {}
            Step::SendNew => self.new_first = true,
            Step::Lost => self.frto = None,
            Step::Spurious => {
                // As Linux: nothing is lost, and the window is what it was.
                self.board.unmark_lost();
                self.cwnd = self.cwnd.max(frto.prior.cwnd);
                self.ssthresh = self.ssthresh.max(frto.prior.ssthresh);
                self.state = State::Open;
                self.frto = None;
                self.una_timed_out = false;
            }
        }
    }

    /// The SYN is acknowledged. RFC 6928 §2: the initial window; RFC 6298 §5.7, if the SYN had timed out.
    fn connected(&mut self) {
        if self.tally.timeouts > 0 {
            self.rto.syn_was_lost();
        }
        self.state = State::Open;
        self.cwnd = f64::from(self.initial_window);
    }

    /// RFC 8985 §6.2, step 5.
    fn detect(&mut self, now: C) -> (u32, Option<f64>) {
        let recovering = !matches!(self.state, State::Open);
        let found = self.rack.detect(&mut self.board, now, self.rto.srtt(), recovering);
        self.note_lost(now);
        found
    }

    /// Tells the control of the segments that were found lost.
    fn note_lost(&mut self, now: C) {
        let window = self.window();
        let Some(delivery) = &mut self.delivery else { return };
        while let Some(segment) = self.board.next_found() {
            if let Some(lost) = delivery.lost(segment, now) {
                self.control.lost(&lost, &window);
            }
        }
    }

    /// What controls set.
    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    /// A loss that is not being recovered from begins a recovery.
    fn recover_if_lost(&mut self) {
        if matches!(self.state, State::Open) && self.board.lost() > 0 {
            self.tally.fast_retransmits += 1;
            self.enter_recovery();
        }
    }

    /// The window is reduced, and recovery begins.
    fn enter_recovery(&mut self) {
        let reacted = self.ecn.as_ref().is_some_and(|e| e.has_reacted_to_loss_of(self.board.una()));
        if !reacted {
            // As Linux does, from the window and not from what is in flight.
            self.ssthresh = self.control.reduce(Cause::Loss, self.cwnd, self.cwnd).max(2.0);
            if let Some(ecn) = &mut self.ecn {
                ecn.on_reduction(self.board.max(), false);
            }
        }
        self.state = State::Recovery(Prr::new(self.cwnd));
        self.recovery_point = self.board.max();
        self.probe = None;
    }

    /// The rate at which segments leave, after an acknowledgement.
    fn set_pacing_rate(&mut self, news: &News) {
        let window = self.window();
        let Some(pacer) = &mut self.pacer else { return };
        if let Some(rtt) = news.rtt {
            pacer.measured(rtt);
        }
        match self.control.pacing_rate(&window, self.rto.srtt()) {
            Some(rate) => pacer.set_rate(rate),
            None => pacer.follow_window(self.cwnd, self.ssthresh, self.board.max() - self.board.una()),
        }
    }

    /// Everything outstanding at the start of recovery is acknowledged.
    fn leave_recovery(&mut self) {
        if matches!(self.state, State::Recovery(_)) && !self.control.owns_window() {
            self.cwnd = self.ssthresh;
        }
        self.state = State::Open;
        self.frto = None;
    }

    /// RFC 3168 §6.1.2: an ECN-Echo reduces the window once a window of data, as a loss does; nothing is retransmitted.
    fn on_echo(&mut self, ack: &Ack<'_>) {
        let Some(ecn) = &mut self.ecn else { return };
        if !matches!(self.state, State::Open) || !ecn.is_new_congestion(ack.next) {
            return;
        }
        ecn.on_reduction(self.board.max(), true);
        self.ssthresh = self.control.reduce(Cause::Mark, self.cwnd, self.cwnd).max(2.0);
        self.state = State::Recovery(Prr::new(self.cwnd));
        self.recovery_point = self.board.max();
    }

    /// The window grows. `limited`: it was full when the acknowledgement arrived (RFC 9438 §5.8).
    fn grow(&mut self, news: &News, limited: bool, now: f64) {
        let paused = self.control.pause(|| (!limited).then_some(now));
        if self.cwnd < self.ssthresh {
            let ends = self.hystart.as_mut().is_some_and(|h| {
                let paced = self.pacer.is_some();
                h.acknowledged(self.board.una(), self.board.max(), self.cwnd, news.rtt, paced, now)
            });
            if ends && matches!(self.state, State::Open) {
                self.ssthresh = self.cwnd;
            }
            // Linux: slow start wants the window at least half used.
            if !limited && self.cwnd >= f64::from(2 * self.board.in_flight().max(1)) {
                return;
            }
            self.cwnd = (self.cwnd + f64::from(news.delivered)).min(self.ssthresh.max(self.cwnd));
        } else if !paused && limited {
            let at = || (self.rto.srtt(), now);
            self.cwnd = self.control.avoid(self.cwnd, news.delivered, at);
        }
    }

    /// RFC 6298 §5.4–5.6 and RFC 8985 §6.3.
    fn on_rto<H: Host<Clock = C>>(&mut self, host: &mut H) {
        if self.board.una() == self.board.max() {
            return;
        }
        self.tally.timeouts += 1;
        self.new_first = false;
        let prior = match &self.state {
            // RFC 5682 §2.1: not where an earlier recovery is under way, but for the same segment again.
            State::Open => Some(self.window()),
            State::Loss if self.una_timed_out => self.frto.map(|frto| frto.prior),
            _ => None,
        };
        self.frto =
            prior.filter(|_| self.board.una() > 0).map(|prior| Frto { prior, point: self.board.max() });
        if self.board.una() == 0 {
            // RFC 5681 §3.1: after a lost SYN the initial window is one segment.
            self.initial_window = 1;
        } else if !self.una_timed_out {
            self.ssthresh = self.control.reduce(Cause::Timeout, self.cwnd, self.cwnd).max(2.0);
            if let Some(ecn) = &mut self.ecn {
                ecn.on_reduction(self.board.max(), false);
            }
        }
        let recovering = !matches!(self.state, State::Open);
        self.rack.timed_out(&mut self.board, host.now(), self.rto.srtt(), recovering);
        self.note_lost(host.now());
        self.una_timed_out = true;
        self.state = State::Loss;
        self.recovery_point = self.board.max();
        self.probe = None;
        // One segment more than what may still be in the network.
        self.cwnd = f64::from(self.board.in_flight() + 1);
        self.rto.back_off();
        if self.pacer.is_some() {
            // A train that waits for its time does not hold this one up.
            self.transmit_alone(self.board.una(), host);
        } else {
            self.send(false, host);
        }
        self.set_timer(None, host);
    }

    /// RFC 8985 §7.3: a new segment if there is one, else the last one again; so that its acknowledgement tells of a lost tail.
    fn send_probe<H: Host<Clock = C>>(&mut self, host: &mut H) {
        let max = self.board.max();
        let new = max < self.limit();
        self.transmit_alone(if new { max } else { max - 1 }, host);
        self.probe = Some((self.board.max(), !new));
        self.sampled = false;
        self.set_timer(None, host);
    }

    /// RFC 8985 §7.4.2: whether the probe made good a loss.
    fn probe_answered(&mut self, ack: &Ack<'_>, news: &News) {
        let Some((end, again)) = self.probe.filter(|(end, _)| ack.next >= *end) else { return };
        // Case 2: both transmissions have arrived. (Case 1 needs duplicate SACKs.)
        let duplicate = !news.advanced && ack.sack.blocks().is_empty();
        if !again || ack.next > end || duplicate {
            self.probe = None;
        }
        if again && ack.next > end && matches!(self.state, State::Open) {
            // Nothing told of the segment but the probe: it was lost.
            self.enter_recovery();
        }
    }

    /// One past the last segment that may be sent.
    fn limit(&self) -> u32 {
        (self.board.una() + self.rwnd).min(self.data_end)
    }

    /// Sends what the window allows, lost segments first.
    fn send<H: Host<Clock = C>>(&mut self, jitter_over: bool, host: &mut H) {
        if !jitter_over && host.timer_is_set(TimerKind::Send) {
            return;
        }
        // What has left of a train, and what it may still have.
        let (mut left, mut more) = (0, 0);
        while f64::from(self.board.in_flight()) + self.room <= self.cwnd {
            let next = match self.board.first_lost() {
                // RFC 5682 §2.1, step 2b.
                Some(lost) if !self.new_first || self.board.max() >= self.limit() => lost,
                _ if self.board.max() < self.limit() => self.board.max(),
                _ => {
                    // draft-ietf-ccwg-bbr §4.1.1: a receiver's window that is full is no lack of data.
                    if self.board.max() >= self.data_end {
                        self.out_of_data();
                    }
                    break;
                }
            };
            if self.jitter > 0.0 && !jitter_over {
                let delay = self.jitter * host.uniform();
                return host.set_timer(TimerKind::Send, C::span_secs(delay));
            }
            if more == 0
                && let Some(pacer) = &mut self.pacer
            {
                let now = host.now().secs();
                pacer.left(std::mem::take(&mut left), now);
                if let Some(wait) = pacer.wait(now) {
                    return host.set_timer(TimerKind::Send, C::span_secs(wait));
                }
                more = pacer.train();
            }
            self.transmit(next, host);
            // Linux counts data only.
            left += u32::from(next > 0);
            more = more.saturating_sub(1);
            if !host.timer_is_set(TimerKind::Retransmit) {
                self.set_timer(None, host);
            }
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.left(left, host.now().secs());
        }
    }

    /// Sends a segment without regard to the trains' times, which it puts off.
    fn transmit_alone<H: Host<Clock = C>>(&mut self, segment: u32, host: &mut H) {
        self.transmit(segment, host);
        if let Some(pacer) = &mut self.pacer {
            pacer.left(1, host.now().secs());
        }
    }

    /// The window has room, and there is nothing to send.
    fn out_of_data(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            delivery.app_limited(self.board.in_flight());
        }
    }

    /// Nothing is in flight, for want of data until now.
    fn restart_from_idle(&mut self, now: f64) {
        let mut window = self.window();
        self.control.restarts_from_idle(now, &mut window);
        self.cwnd = window.cwnd;
        if let (Some(pacer), Some(rate)) =
            (&mut self.pacer, self.control.pacing_rate(&window, self.rto.srtt()))
        {
            pacer.set_rate(rate);
        }
    }

    fn transmit<H: Host<Clock = C>>(&mut self, segment: u32, host: &mut H) {
        if self.board.in_flight() == 0 && self.delivery.as_ref().is_some_and(|d| d.is_app_limited()) {
            self.restart_from_idle(host.now().secs());
        }
        let again = segment < self.board.max();
        let bits = self.ecn.as_mut().map_or(EcnBits::default(), |e| e.bits(segment, again));
        host.send(segment, bits);
        self.board.sent(segment, host.now());
        if let Some(delivery) = &mut self.delivery {
            delivery.sent(segment, self.board.in_flight(), host.now());
        }
        self.tally.retransmissions += u64::from(again);
        if let State::Recovery(prr) = &mut self.state {
            prr.sent();
        }
    }

    /// Sets the one timer for what comes first: a segment that may be late, a probe, the retransmission timer.
    fn set_timer<H: Host<Clock = C>>(&mut self, reordering: Option<f64>, host: &mut H) {
        if self.board.una() == self.board.max() {
            // RFC 6298 §5.2: everything is acknowledged.
            return host.cancel_timer(TimerKind::Retransmit);
        }
        let rto = self.rto.timeout();
        let (pending, after) = match (reordering, self.probe_timeout()) {
            (Some(wait), _) => (Pending::Reordering, wait.min(rto)),
            // RFC 8985 §7.2: no later than the retransmission timer would have expired.
            (None, Some(probe)) => (Pending::Probe, probe.min(rto)),
            _ => (Pending::Retransmission, rto),
        };
        self.pending = pending;
        host.set_timer(TimerKind::Retransmit, C::span_secs(after));
    }

    /// RFC 8985 §7.2: none in recovery, before the connection stands, with something SACKed, while a probe is out, or before a
    /// round-trip time is measured.
    fn probe_timeout(&self) -> Option<f64> {
        let quiet = matches!(self.state, State::Open) && self.board.sacked() == 0 && self.probe.is_none();
        if !quiet || self.board.una() == 0 || !self.sampled {
            return None;
        }
        let alone = self.board.in_flight() == 1;
        Some(2.0 * self.rto.srtt() + if alone { MAX_ACK_DELAY } else { 0.0 })
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

    /// What it has done since the start of the run.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

//! TCP by the RFCs: Reno (RFC 5681), NewReno (RFC 6582) or SACK-based recovery (RFC 2018, 6675), limited
//! transmit (RFC 3042), the timer of RFC 6298, and an initial window of ten segments (RFC 6928); congestion
//! avoidance by RFC 5681 or CUBIC's (RFC 9438); explicit congestion notification (RFC 3168).
//!
//! The window is counted in full segments, which for a bulk sender says the same as bytes. Not there: detection of
//! spurious timeouts and retransmits (RFC 5682, 3708), timestamps, HyStart++ (RFC 9406). Each law has a timed packet
//! trace in `tests/tcp`.

mod board;
mod cubic;
mod ecn;
mod growth;
mod recovery;

use crate::clock::Clock;
use crate::tcp::{Ack, Alarm, Bits, Config, Host, Tally, rto::Rto};
use ecn::Ecn;
use growth::Growth;
use recovery::{DUPLICATES, Recovery};

/// The sender. Segment 0 is the SYN.
#[derive(Clone, Debug)]
pub struct Sender<C: Clock> {
    cwnd: f64,
    ssthresh: f64,
    /// The receiver's window.
    window: u32,
    initial_window: u32,
    duplicates: u32,
    in_recovery: bool,
    recovery: Recovery,
    growth: Growth,
    ecn: Option<Ecn>,
    /// `end` when recovery began (RecoveryPoint).
    recovery_point: u32,
    /// First not acknowledged (SND.UNA), next to send (SND.NXT), one past the highest sent.
    una: u32,
    nxt: u32,
    end: u32,
    /// `end` when the retransmission timer last expired: up to there segments are repeated. NewReno: or when
    /// recovery last began (RFC 6582 §3.2, `recover`).
    recover: u32,
    /// One past the last segment the application has data for.
    last: u32,
    /// Segments on the way that limited transmit has sent.
    beyond_window: u32,
    /// The segment being timed, and when it was sent.
    timed: Option<(u32, C)>,
    rto: Rto,
    /// `rto` on the engine's clock.
    timeout: C::Span,
    /// Whether the segment at `una` has timed out before.
    timed_out_before: bool,
    limited_transmit: bool,
    jitter: f64,
    tally: Tally,
}

impl<C: Clock> Sender<C> {
    /// Closed.
    pub fn new(config: &Config) -> Sender<C> {
        Sender {
            cwnd: 1.0,
            // RFC 5681 §3.1: the threshold begins arbitrarily high.
            ssthresh: f64::INFINITY,
            window: config.window,
            initial_window: config.initial_window,
            duplicates: 0,
            in_recovery: false,
            recovery: Recovery::new(config.congestion),
            growth: Growth::new(config),
            ecn: config.ecn.then(Ecn::default),
            recovery_point: 0,
            una: 0,
            nxt: 0,
            end: 0,
            recover: 0,
            last: u32::MAX,
            beyond_window: 0,
            timed: None,
            rto: Rto::new(config.min_rto),
            timeout: C::span_secs(Rto::new(config.min_rto).timeout()),
            timed_out_before: false,
            limited_transmit: config.limited_transmit,
            jitter: config.jitter.secs(),
            tally: Tally::default(),
        }
    }

    /// The application has data, without end.
    pub fn start<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send_window(false, host);
    }

    /// An acknowledgement.
    pub fn acknowledged<H: Host<Clock = C>>(&mut self, ack: Ack<'_>, host: &mut H) {
        let next = ack.next;
        if next > self.end || next < self.una {
            return;
        }
        let out = self.out();
        let in_window = out - self.beyond_window;
        let duplicate = match &mut self.recovery {
            // RFC 6675 §2: what tells something new of what is beyond the hole, and only that; be it cumulative.
            Recovery::Sack(board) => board.update(next, ack.sack),
            _ => next == self.una && self.una < self.end,
        };
        if next > self.una {
            self.new_data_acknowledged(next, ack.echo, out, host);
        }
        if duplicate {
            self.duplicate(host);
        }
        if self.ecn.is_some() {
            self.hear(next, ack.echo, f64::from(in_window), host);
        }
        self.send_window(false, host);
    }

    /// RFC 6298 §5.4–5.6: the earliest segment again, and the timer set for twice the time. RFC 5681 §3.1: a window
    /// of one segment, slow start from `una`.
    pub fn timed_out<H: Host<Clock = C>>(&mut self, host: &mut H) {
        if let Some(ecn) = &mut self.ecn {
            ecn.stopped = false;
            if self.una == self.end {
                // RFC 3168 §6.1.2: the timer only held the next segment back, and nothing is lost.
                return self.send_window(false, host);
            }
        }
        self.tally.timeouts += 1;
        if self.una == 0 {
            // RFC 5681 §3.1: a lost SYN means an initial window of one segment. The threshold stays as high as it
            // begins: Eq. (4) is a share of the data that was on the way, and there was none.
            self.initial_window = 1;
        } else {
            if !self.timed_out_before {
                // RFC 5681, Eq. (4); held when the same segment times out again.
                self.ssthresh = self.growth.timed_out(self.deflated(), self.flight()).max(2.0);
            }
            if let Some(ecn) = &mut self.ecn {
                ecn.reduced(self.end, false);
            }
        }
        self.timed_out_before = true;
        self.cwnd = 1.0;
        self.duplicates = 0;
        self.beyond_window = 0;
        self.in_recovery = false;
        if let Recovery::Sack(board) = &mut self.recovery {
            // RFC 2018 §5: the receiver may have thrown away what it said it had.
            board.clear();
        }
        self.timed = None;
        self.recover = self.end;
        self.nxt = self.una;
        self.rto.back_off();
        self.timeout = C::span_secs(self.rto.timeout());
        self.restart_timer(host);
        self.send_window(false, host);
    }

    /// The random delay before a send is over.
    pub fn delay_over<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send_window(true, host);
    }

    /// `out`: how many segments were on the way when it came.
    fn new_data_acknowledged<H: Host<Clock = C>>(&mut self, next: u32, echo: bool, out: u32, host: &mut H) {
        if let Some((segment, at)) = self.timed
            && next > segment
        {
            self.timed = None;
            self.rto.sample(C::secs_of(host.now().since(at)));
            self.timeout = C::span_secs(self.rto.timeout());
        }
        if self.una == 0 {
            // RFC 6298 §5.7: a SYN that was lost is through at last. RFC 6928 §2: the initial window.
            if self.timed_out_before {
                self.rto.syn_was_lost();
                self.timeout = C::span_secs(self.rto.timeout());
            }
            self.cwnd = f64::from(self.initial_window);
        } else if self.in_recovery {
            if self.recovery_goes_on(next, host) {
                return;
            }
        } else if !echo {
            // RFC 3168 §6.1.2: an acknowledgement that echoes congestion does not open the window.
            self.open(next - self.una, out, host);
        }
        self.duplicates = 0;
        self.beyond_window = 0;
        self.in_recovery = false;
        self.timed_out_before = false;
        self.una = next;
        self.nxt = self.nxt.max(next);
        if self.una == self.end {
            // RFC 6298 §5.2: all is acknowledged, nothing to wait for.
            host.cancel_timer(Alarm::Retransmit);
        } else {
            // RFC 6298 §5.3: anew with each acknowledgement of something new.
            self.restart_timer(host);
        }
    }

    /// So many more segments are acknowledged, of `out` on the way: the window grows.
    fn open<H: Host<Clock = C>>(&mut self, segments: u32, out: u32, host: &mut H) {
        let unused = || out < self.cwnd as u32 && !host.timer_is_set(Alarm::Send);
        if self.growth.pause(|| unused().then(|| host.now().secs())) {
            return;
        }
        if self.cwnd < self.ssthresh {
            // RFC 5681, Eq. (2), counting no more than two segments an acknowledgement (RFC 3465 §2.2). RFC 3465
            // §2.3: after a timeout, where one may cover a window that had arrived long before, one.
            let most = if self.una > self.recover { 2 } else { 1 };
            self.cwnd += f64::from(segments.min(most));
        } else {
            let at = || (self.rto.srtt(), host.now().secs());
            self.cwnd = self.growth.avoid(self.cwnd, segments, at);
        }
    }

    /// What an acknowledgement says of congestion; `flight`: what was on the way when it came.
    fn hear<H: Host<Clock = C>>(&mut self, next: u32, echo: bool, flight: f64, host: &mut H) {
        let cwnd = self.deflated();
        let Some(ecn) = &mut self.ecn else { return };
        if !echo {
            ecn.in_a_row = 0;
            return;
        }
        if !ecn.tells_more(next) {
            return;
        }
        // RFC 3168 §6.1.2: as a loss, but for what is to be repaired. RFC 9438 §4.6: down to one segment.
        ecn.reduced(self.end, true);
        let single = self.cwnd < 2.0;
        let left = self.growth.reduce(cwnd, flight);
        self.ssthresh = left.max(2.0);
        self.cwnd = left.max(1.0).min(self.cwnd);
        if single {
            // RFC 3168 §6.1.2: less than one segment a round trip is one segment a timeout; RFC 9438 §5.5: one
            // that doubles while echoes go on.
            ecn.stopped = true;
            let wait = self.rto.backed_off(ecn.in_a_row);
            ecn.in_a_row += 1;
            host.set_timer(Alarm::Retransmit, C::span_secs(wait));
        }
    }

    /// Segments on the way, as far as the sender knows. RFC 6675 §5.1: after a timeout, what was sent since and has
    /// neither been acknowledged nor selected.
    fn out(&self) -> u32 {
        self.nxt - self.una - if self.repairs() { self.selected() } else { 0 }
    }

    /// [`Sender::out`], in full segments (FlightSize).
    pub fn flight(&self) -> f64 {
        f64::from(self.out())
    }

    /// Whether something that was out when the timer last expired is not acknowledged yet.
    fn repairs(&self) -> bool {
        self.una < self.recover
    }

    /// Segments of those on the way that the receiver has said it has.
    fn selected(&self) -> u32 {
        match &self.recovery {
            Recovery::Sack(board) => board.has(self.una, self.nxt),
            _ => 0,
        }
    }

    /// The window without what duplicates have added to it (RFC 5681 §3.2, step 4).
    fn deflated(&self) -> f64 {
        if self.in_recovery { self.cwnd.min(self.ssthresh) } else { self.cwnd }
    }

    /// How far the windows reach, one past the last segment allowed (RFC 5681 §3.1: the smaller of the two counts).
    #[inline]
    fn limit(&self, mut cwnd: u32) -> u32 {
        if self.duplicates > 0 || self.repairs() {
            cwnd += self.beyond();
        }
        (self.una + cwnd.min(self.window)).min(self.last)
    }

    /// How many segments beyond the congestion window may be sent.
    fn beyond(&self) -> u32 {
        let by_duplicates = self.limited_transmit && !self.in_recovery;
        match &self.recovery {
            // RFC 6675 §5, step 3, and §5.1: the window is for the pipe, and what was selected has left it.
            Recovery::Sack(_) if by_duplicates && self.duplicates > 0 || self.repairs() => self.selected(),
            // RFC 3042 §2: a segment never sent before for each of the first two duplicates.
            Recovery::Reno | Recovery::NewReno { .. } if by_duplicates && self.nxt == self.end => {
                self.duplicates.min(DUPLICATES - 1)
            }
            _ => 0,
        }
    }

    /// RFC 2018 §5 and RFC 6675 §5.1: what has been selected since the timeout is not sent again.
    #[inline]
    fn pass_over(&mut self) {
        if self.repairs()
            && let Recovery::Sack(board) = &self.recovery
        {
            self.nxt = board.lacks(self.nxt);
        }
    }

    fn send_window<H: Host<Clock = C>>(&mut self, delay_over: bool, host: &mut H) {
        let stopped = self.ecn.as_ref().is_some_and(|e| e.stopped);
        if stopped || !delay_over && host.timer_is_set(Alarm::Send) {
            return;
        }
        if self.in_recovery && matches!(self.recovery, Recovery::Sack(_)) {
            return self.send_by_board(delay_over, host);
        }
        let cwnd = self.cwnd as u32;
        self.pass_over();
        while self.nxt < self.limit(cwnd) {
            if self.jitter > 0.0 && !delay_over {
                return self.delay(host);
            }
            let by_limited_transmit = self.duplicates > 0 && !self.in_recovery && self.out() >= cwnd;
            self.beyond_window += u32::from(by_limited_transmit);
            self.transmit(self.nxt, host);
            self.nxt += 1;
            self.pass_over();
        }
    }

    /// In recovery by RFC 6675: what the board says, as long as the pipe has room.
    fn send_by_board<H: Host<Clock = C>>(&mut self, delay_over: bool, host: &mut H) {
        if self.jitter > 0.0 && !delay_over {
            return self.delay(host);
        }
        while let Some(segment) = self.next_by_board() {
            self.transmit(segment, host);
        }
    }

    /// What could be sent now is first delayed at random.
    #[inline(never)]
    fn delay<H: Host<Clock = C>>(&mut self, host: &mut H) {
        let delay = self.jitter * host.uniform();
        host.set_timer(Alarm::Send, C::span_secs(delay));
    }

    fn transmit<H: Host<Clock = C>>(&mut self, segment: u32, host: &mut H) {
        let again = segment < self.end;
        let bits = self.ecn.as_mut().map_or(Bits::default(), |e| e.bits(segment, again));
        host.send(segment, bits);
        if again {
            self.tally.retransmissions += 1;
        } else {
            self.end = segment + 1;
            if self.timed.is_none() {
                self.timed = Some((segment, host.now()));
            }
        }
        if !host.timer_is_set(Alarm::Retransmit) {
            // RFC 6298 §5.1: it runs while anything is on the way.
            self.restart_timer(host);
        }
    }

    fn restart_timer<H: Host<Clock = C>>(&mut self, host: &mut H) {
        host.set_timer(Alarm::Retransmit, self.timeout);
    }

    /// The application's data ends before this segment.
    pub fn end_before(&mut self, segment: u32) {
        self.last = segment;
    }

    /// The application has no more data than has been sent.
    pub fn end_here(&mut self) {
        self.last = self.last.min(self.end);
    }

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold in segments; infinite before the first loss.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// What it has done so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

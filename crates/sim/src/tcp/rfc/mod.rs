//! TCP by the RFCs: Reno (RFC 5681), NewReno (RFC 6582) or SACK-based recovery (RFC 2018, 6675), limited
//! transmit (RFC 3042), the timer of RFC 6298, and an initial window of ten segments (RFC 6928).
//!
//! The window is counted in full segments, which for a bulk sender says the same as bytes.

mod board;

use crate::clock::Clock;
use crate::tcp::{Alarm, Config, Congestion, Host, Sack, Tally, rto::Rto};
use board::Board;

/// RFC 5681 §3.2: three duplicates mean a loss.
const DUPLICATES: u32 = 3;

/// How a loss is repaired.
#[derive(Clone, Debug)]
enum Recovery {
    /// RFC 5681 §3.2: the first new acknowledgement ends it.
    Reno,
    /// RFC 6582: it ends when all is acknowledged that was out at its start; whether a partial acknowledgement
    /// has come.
    NewReno { partial: bool },
    /// RFC 6675: what the receiver has decides what is sent.
    Sack(Box<Board>),
}

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
    /// `end` when recovery began (RecoveryPoint).
    recovery_point: u32,
    /// First not acknowledged (SND.UNA), next to send (SND.NXT), one past the highest sent.
    una: u32,
    nxt: u32,
    end: u32,
    /// `end` when the retransmission timer last expired: up to there segments are repeated.
    recover: u32,
    /// Segments on the way that limited transmit has sent.
    beyond_window: u32,
    /// The segment being timed, and when it was sent.
    timed: Option<(u32, C)>,
    rto: Rto,
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
            // RFC 5681 §3.1: arbitrarily high.
            ssthresh: f64::INFINITY,
            window: config.window,
            initial_window: config.initial_window,
            duplicates: 0,
            in_recovery: false,
            recovery: match config.congestion {
                Congestion::Reno => Recovery::Reno,
                Congestion::NewReno => Recovery::NewReno { partial: false },
                Congestion::Sack => Recovery::Sack(Box::default()),
            },
            recovery_point: 0,
            una: 0,
            nxt: 0,
            end: 0,
            recover: 0,
            beyond_window: 0,
            timed: None,
            rto: Rto::new(config.min_rto),
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

    /// An acknowledgement that the receiver waits for segment `next`, and has those in `sack` too.
    pub fn acknowledged<H: Host<Clock = C>>(&mut self, next: u32, sack: &Sack, host: &mut H) {
        if next > self.end || next < self.una {
            return;
        }
        let news = match &mut self.recovery {
            Recovery::Sack(board) => board.update(next, sack),
            _ => true,
        };
        if next > self.una {
            self.new_data_acknowledged(next, host);
        } else if self.una < self.end && news {
            // With SACK only what tells something new counts (RFC 6675 §2).
            self.duplicate(host);
        }
        self.send_window(false, host);
    }

    /// RFC 6298 §5.4–5.6 and RFC 5681 §3.1: one segment a window, slow start from `una`.
    pub fn timed_out<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.tally.timeouts += 1;
        if !self.timed_out_before {
            // RFC 5681, Eq. (4); held when the same segment times out again.
            self.ssthresh = (self.flight() / 2.0).max(2.0);
        }
        self.timed_out_before = true;
        self.cwnd = 1.0;
        if self.una == 0 {
            // RFC 6928 §3 and RFC 5681 §3.1: a lost SYN means an initial window of one segment.
            self.initial_window = 1;
        }
        self.duplicates = 0;
        self.beyond_window = 0;
        self.in_recovery = false;
        if let Recovery::Sack(board) = &mut self.recovery {
            // RFC 2018 §5.
            board.clear();
        }
        self.timed = None;
        self.recover = self.end;
        self.nxt = self.una;
        self.rto.back_off();
        self.restart_timer(host);
        self.send_window(false, host);
    }

    /// The random delay before a send is over.
    pub fn delay_over<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send_window(true, host);
    }

    fn new_data_acknowledged<H: Host<Clock = C>>(&mut self, next: u32, host: &mut H) {
        if let Some((segment, at)) = self.timed
            && next > segment
        {
            self.timed = None;
            self.rto.sample(C::secs_of(host.now().since(at)));
        }
        if self.una == 0 {
            // The SYN is through (RFC 6298 §5.7; RFC 6928 §2).
            if self.timed_out_before {
                self.rto.syn_was_lost();
            }
            self.cwnd = f64::from(self.initial_window);
        } else if self.in_recovery {
            if self.recovery_goes_on(next, host) {
                return;
            }
        } else if self.cwnd < self.ssthresh {
            // RFC 5681, Eq. (2), counting no more than two segments an acknowledgement (RFC 3465 §2.2), and
            // after a timeout, where one may cover a window that had arrived long before, one (§2.3).
            let most = if self.una > self.recover { 2 } else { 1 };
            self.cwnd += f64::from((next - self.una).min(most));
        } else {
            // RFC 5681, Eq. (3).
            self.cwnd += 1.0 / self.cwnd;
        }
        self.duplicates = 0;
        self.beyond_window = 0;
        self.in_recovery = false;
        self.timed_out_before = false;
        self.una = next;
        self.nxt = self.nxt.max(next);
        if self.una == self.end {
            // RFC 6298 §5.2.
            host.cancel_timer(Alarm::Retransmit);
        } else {
            // RFC 6298 §5.3.
            self.restart_timer(host);
        }
    }

    /// New data is acknowledged in recovery. False if that ends it.
    fn recovery_goes_on<H: Host<Clock = C>>(&mut self, next: u32, host: &mut H) -> bool {
        let whole = next >= self.recovery_point;
        let first = match &mut self.recovery {
            // RFC 5681 §3.2, step 6: deflate.
            Recovery::Reno => {
                self.cwnd = self.ssthresh;
                return false;
            }
            Recovery::NewReno { .. } if whole => {
                // RFC 6582 §3.2, step 3, full acknowledgement, option 1: no burst on leaving.
                let flight = f64::from(self.nxt.max(next) - next);
                self.cwnd = self.ssthresh.min(flight.max(1.0) + 1.0);
                return false;
            }
            // RFC 6675 §5, step A.
            Recovery::Sack(_) if whole => return false,
            Recovery::Sack(_) => {
                self.una = next;
                self.nxt = self.nxt.max(next);
                self.restart_timer(host);
                return true;
            }
            Recovery::NewReno { partial } => !std::mem::replace(partial, true),
        };
        // RFC 6582 §3.2, step 3, partial acknowledgement: fill the next hole, and deflate by what was
        // acknowledged, but for one segment. Only the first one sets the timer (§4, impatient).
        let acknowledged = f64::from(next - self.una);
        self.una = next;
        self.nxt = self.nxt.max(next);
        self.transmit(next, host);
        self.cwnd = (self.cwnd - acknowledged + 1.0).max(1.0);
        if first {
            self.restart_timer(host);
        }
        true
    }

    fn duplicate<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.duplicates += 1;
        if self.in_recovery {
            if !matches!(self.recovery, Recovery::Sack(_)) {
                // RFC 5681 §3.2, step 4: inflate.
                self.cwnd += 1.0;
            }
            return;
        }
        let lost = match &self.recovery {
            // RFC 6675 §5, steps 1 and 2.
            Recovery::Sack(board) => self.duplicates >= DUPLICATES || board.lost_below() > self.una,
            _ => self.duplicates == DUPLICATES,
        };
        // Duplicates of what a timeout repeated without need are no loss (RFC 6582 §3.2, steps 2 and 4).
        if lost && self.una > self.recover {
            self.recover_loss(host);
        }
    }

    /// RFC 5681 §3.2, steps 2 and 3; RFC 6675 §5, step 4. What limited transmit sent does not count as flight.
    fn recover_loss<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.tally.fast_retransmits += 1;
        self.ssthresh = ((self.flight() - f64::from(self.beyond_window)) / 2.0).max(2.0);
        self.in_recovery = true;
        self.recovery_point = self.end;
        self.timed = None;
        self.cwnd = self.ssthresh;
        match &mut self.recovery {
            Recovery::Sack(board) => {
                board.repeated = self.una + 1;
                board.rescued = false;
            }
            Recovery::NewReno { partial } => {
                *partial = false;
                self.cwnd += f64::from(DUPLICATES);
            }
            Recovery::Reno => self.cwnd += f64::from(DUPLICATES),
        }
        self.transmit(self.una, host);
        self.restart_timer(host);
    }

    /// RFC 6675 §5, step C: the segment to send next in recovery, as long as the pipe has room (NextSeg()).
    fn next_by_board(&mut self) -> Option<u32> {
        let Recovery::Sack(board) = &mut self.recovery else { return None };
        if f64::from(board.pipe(self.una, self.end)) + 1.0 > self.cwnd {
            return None;
        }
        let hole = |board: &mut Board, lost| {
            let at = board.hole(self.una, lost)?;
            board.repeated = at + 1;
            Some(at)
        };
        if let Some(at) = hole(board, true) {
            return Some(at);
        }
        if self.nxt < self.una + self.window {
            self.nxt += 1;
            return Some(self.nxt - 1);
        }
        if let Some(at) = hole(board, false) {
            return Some(at);
        }
        // Rule 4: once a recovery, the highest one not sacked, so that a lost tail needs no timeout.
        let tail_open = board.highest() < self.recovery_point && board.repeated < self.recovery_point;
        let rescue = tail_open && !board.rescued;
        board.rescued |= rescue;
        rescue.then(|| self.recovery_point - 1)
    }

    /// Segments on the way, as far as the sender knows (FlightSize).
    fn flight(&self) -> f64 {
        f64::from(self.nxt - self.una)
    }

    /// How far the windows reach, one past the last segment allowed.
    fn limit(&self) -> u32 {
        let mut cwnd = self.cwnd as u32;
        if self.limited_transmit && !self.in_recovery && self.nxt == self.end {
            // RFC 3042 §2: a segment never sent before for each of the first two duplicates.
            cwnd += self.duplicates.min(DUPLICATES - 1);
        }
        self.una + cwnd.min(self.window)
    }

    fn send_window<H: Host<Clock = C>>(&mut self, delay_over: bool, host: &mut H) {
        if !delay_over && host.timer_is_set(Alarm::Send) {
            return;
        }
        loop {
            let by_board = self.in_recovery && matches!(self.recovery, Recovery::Sack(_));
            if !by_board && self.nxt >= self.limit() {
                return;
            }
            if self.jitter > 0.0 && !delay_over {
                let delay = self.jitter * host.uniform();
                host.set_timer(Alarm::Send, C::span_secs(delay));
                return;
            }
            if by_board {
                let Some(segment) = self.next_by_board() else { return };
                self.transmit(segment, host);
                continue;
            }
            let by_limited_transmit = !self.in_recovery && self.nxt - self.una >= self.cwnd as u32;
            self.beyond_window += u32::from(by_limited_transmit);
            self.transmit(self.nxt, host);
            self.nxt += 1;
        }
    }

    fn transmit<H: Host<Clock = C>>(&mut self, segment: u32, host: &mut H) {
        let again = segment < self.end;
        host.send(segment, again);
        if again {
            self.tally.retransmissions += 1;
        } else {
            self.end = segment + 1;
            if self.timed.is_none() {
                self.timed = Some((segment, host.now()));
            }
        }
        if !host.timer_is_set(Alarm::Retransmit) {
            // RFC 6298 §5.1.
            self.restart_timer(host);
        }
    }

    fn restart_timer<H: Host<Clock = C>>(&mut self, host: &mut H) {
        host.set_timer(Alarm::Retransmit, C::span_secs(self.rto.timeout()));
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

#[cfg(test)]
mod recovery_tests;
#[cfg(test)]
mod tests;

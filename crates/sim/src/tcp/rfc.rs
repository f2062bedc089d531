//! TCP by the RFCs: Reno (RFC 5681), limited transmit (RFC 3042), the timer of RFC 6298, and an initial
//! window of ten segments (RFC 6928).
//!
//! The window is counted in full segments, which for a bulk sender says the same as bytes.

use crate::clock::Clock;
use crate::tcp::{Alarm, Config, Host, Sack, Tally, rto::Rto};

/// RFC 5681 §3.2: three duplicates mean a loss.
const DUPLICATES: u32 = 3;

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

    /// An acknowledgement that the receiver waits for segment `next`.
    pub fn acknowledged<H: Host<Clock = C>>(&mut self, next: u32, _: &Sack, host: &mut H) {
        if next > self.end || next < self.una {
            return;
        }
        if next > self.una {
            self.new_data_acknowledged(next, host);
        } else if self.una < self.end {
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
            // RFC 5681 §3.2, step 6: deflate.
            self.cwnd = self.ssthresh;
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

    fn duplicate<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.duplicates += 1;
        // Duplicates of what a timeout repeated without need are no loss (RFC 6582 §3.2, steps 2 and 4).
        if self.duplicates == DUPLICATES && !self.in_recovery && self.una > self.recover {
            // RFC 5681 §3.2, steps 2 and 3. What limited transmit sent does not count as flight.
            self.tally.fast_retransmits += 1;
            self.ssthresh = ((self.flight() - f64::from(self.beyond_window)) / 2.0).max(2.0);
            self.cwnd = self.ssthresh + f64::from(DUPLICATES);
            self.in_recovery = true;
            self.timed = None;
            self.transmit(self.una, host);
            self.restart_timer(host);
        } else if self.in_recovery {
            // RFC 5681 §3.2, step 4: inflate.
            self.cwnd += 1.0;
        }
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
        while self.nxt < self.limit() {
            if self.jitter > 0.0 && !delay_over {
                let delay = self.jitter * host.uniform();
                host.set_timer(Alarm::Send, C::span_secs(delay));
                return;
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
mod tests;

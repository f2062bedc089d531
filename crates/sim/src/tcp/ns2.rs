//! One-way TCP as ns-2 2.35 does it (`Agent/TCP/Reno`), so that runs compare packet by packet.
//!
//! It counts in segments, times one segment a round trip on a coarse clock, and goes back N after a
//! timeout. Comments name the variable of ns-2 where the law is its own and not an RFC's.
//! Non-goal: being right where ns-2 is not; that is what the RFC profile is for.

use crate::clock::Clock;
use crate::tcp::{Alarm, Config, Host, Tally, rto::TickRto};

/// Duplicate acknowledgements that mean a loss (`numdupacks_`).
const DUPLICATES: i32 = 3;

/// What last changed the window (`last_cwnd_action_`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    None,
    Duplicates,
    Timeout,
    Exited,
}

/// The sender. Segment numbers are signed: −1 stands before the SYN.
#[derive(Clone, Debug)]
pub struct Sender<C: Clock> {
    cwnd: f64,
    ssthresh: i32,
    /// The receiver's window (`wnd_`).
    window: i32,
    initial_window: i32,
    /// Window inflation during fast recovery (`dupwnd_`).
    inflation: i32,
    duplicates: i32,
    /// Next to send (`t_seqno_`).
    next: i32,
    /// Highest sent (`maxseq_`).
    highest_sent: i32,
    /// Highest acknowledged (`highest_ack_`).
    acked: i32,
    /// Highest sent when the window was last cut (`recover_`).
    recover: i32,
    last_action: Action,
    /// Segment being timed, and when it was sent (`rtt_active_`, `rtt_seq_`, `rtt_ts_`).
    timing: bool,
    timed: i32,
    timed_at: C,
    rto: TickRto,
    limited_transmit: bool,
    /// Most random delay before a send, in seconds (`overhead_`).
    jitter: f64,
    tally: Tally,
}

impl<C: Clock> Sender<C> {
    /// Closed; `phase` is uniform in [0, 1).
    pub fn new(config: &Config, phase: f64) -> Sender<C> {
        let window = config.window as i32;
        Sender {
            cwnd: 1.0,
            ssthresh: window,
            window,
            initial_window: config.initial_window as i32,
            inflation: 0,
            duplicates: 0,
            next: 0,
            highest_sent: -1,
            acked: -1,
            recover: 0,
            last_action: Action::None,
            timing: false,
            timed: -1,
            timed_at: C::ZERO,
            rto: TickRto::new(phase, config.min_rto.secs()),
            limited_transmit: config.limited_transmit,
            jitter: config.jitter.secs(),
            tally: Tally::default(),
        }
    }

    /// The application has data, without end.
    pub fn start<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send_much(false, host);
    }

    /// An acknowledgement that the receiver waits for segment `next`.
    pub fn acknowledged<H: Host<Clock = C>>(&mut self, next: u32, host: &mut H) {
        let ack = next as i32 - 1;
        if ack > self.acked {
            if self.last_action == Action::Duplicates {
                self.last_action = Action::Exited;
            }
            self.inflation = 0;
            self.new_data_acknowledged(ack, host);
            if ack == 0 {
                // The window opens only once the SYN is through (`delay_growth_`).
                self.cwnd = f64::from(self.initial_window);
            }
        } else if ack == self.acked {
            self.duplicates += 1;
            if self.duplicates == DUPLICATES {
                self.loss_suspected(host);
            } else if self.duplicates > DUPLICATES && self.last_action == Action::Duplicates {
                self.inflation += 1;
            } else if self.duplicates < DUPLICATES && self.limited_transmit {
                self.send_one(host);
            }
        }
        if ack >= self.acked && (self.duplicates == 0 || self.duplicates >= DUPLICATES) {
            self.send_much(false, host);
        }
    }

    /// The retransmission timer expired: one segment a window, slow start, go back N.
    pub fn timed_out<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.tally.timeouts += 1;
        self.inflation = 0;
        self.duplicates = 0;
        self.recover = self.highest_sent;
        if self.cwnd < 1.0 {
            self.cwnd = 1.0;
        }
        let outstanding = self.acked != self.highest_sent;
        if self.acked == -1 && self.initial_window > 1 {
            self.initial_window = 1;
        }
        if outstanding {
            self.ssthresh = ((self.send_window() / 2.0) as i32).max(2);
            self.rto.back_off();
        }
        self.cwnd = 1.0;
        self.set_retransmit_timer(host);
        self.next = self.acked + 1;
        self.timing = false;
        self.last_action = Action::Timeout;
        self.send_much(false, host);
    }

    /// The random delay before a send is over.
    pub fn delay_over<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send_much(true, host);
    }

    fn new_data_acknowledged<H: Host<Clock = C>>(&mut self, ack: i32, host: &mut H) {
        self.duplicates = 0;
        self.acked = ack;
        self.next = self.next.max(ack + 1);
        if self.timing && ack >= self.timed {
            self.timing = false;
            self.rto.sample(host.now().secs(), C::secs_of(host.now().since(self.timed_at)));
        }
        if self.next > ack || ack < self.highest_sent || self.cwnd < 1.0 {
            self.set_retransmit_timer(host);
        } else {
            host.cancel_timer(Alarm::Retransmit);
        }
        // Slow start, else a segment a round trip: also when the window is not used in full.
        self.cwnd += if self.cwnd < f64::from(self.ssthresh) { 1.0 } else { 1.0 / self.cwnd };
    }

    /// The third duplicate: fast retransmit, once a window of data (`bugFix_`).
    fn loss_suspected<H: Host<Clock = C>>(&mut self, host: &mut H) {
        let first_of_window =
            self.acked > self.recover || self.last_action == Action::Duplicates || self.acked == 0;
        if !first_of_window {
            return;
        }
        self.tally.fast_retransmits += 1;
        self.recover = self.highest_sent;
        self.last_action = Action::Duplicates;
        let half = self.send_window() / 2.0;
        self.ssthresh = (half as i32).max(2);
        self.cwnd = half.max(1.0);
        self.set_retransmit_timer(host);
        self.timing = false;
        self.output(self.acked + 1, host);
        self.inflation = DUPLICATES;
    }

    /// The window in use, fractions kept (`windowd()`).
    fn send_window(&self) -> f64 {
        (self.cwnd + f64::from(self.inflation)).min(f64::from(self.window))
    }

    /// The window in use, in whole segments (`window()`).
    fn whole_window(&self) -> i32 {
        (self.cwnd as i32 + self.inflation).min(self.window)
    }

    /// Sends what the window allows; with jitter, only when the delay is over.
    fn send_much<H: Host<Clock = C>>(&mut self, delay_over: bool, host: &mut H) {
        if !delay_over && host.timer_is_set(Alarm::Send) {
            return;
        }
        while self.next <= self.acked + self.whole_window() {
            if self.jitter > 0.0 && !delay_over {
                let delay = self.jitter * host.uniform();
                host.set_timer(Alarm::Send, C::span_secs(delay));
                return;
            }
            self.output(self.next, host);
            self.next += 1;
        }
    }

    /// Limited transmit (RFC 3042): a new segment for each of the first two duplicates.
    fn send_one<H: Host<Clock = C>>(&mut self, host: &mut H) {
        let allowed = self.next <= self.acked + self.window
            && f64::from(self.next) <= f64::from(self.acked) + self.cwnd + f64::from(self.duplicates);
        if allowed {
            self.output(self.next, host);
            self.next += 1;
        }
    }

    fn output<H: Host<Clock = C>>(&mut self, segment: i32, host: &mut H) {
        let nothing_outstanding = self.acked == self.highest_sent;
        let again = segment <= self.highest_sent;
        host.send(segment as u32, again);
        if again {
            self.tally.retransmissions += 1;
        } else {
            self.highest_sent = segment;
            if !self.timing {
                self.timing = true;
                if segment > self.timed {
                    self.timed = segment;
                    self.timed_at = host.now();
                }
            }
        }
        if nothing_outstanding || !host.timer_is_set(Alarm::Retransmit) {
            self.set_retransmit_timer(host);
        }
    }

    fn set_retransmit_timer<H: Host<Clock = C>>(&mut self, host: &mut H) {
        host.set_timer(Alarm::Retransmit, C::span_secs(self.rto.timeout()));
    }

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold in segments.
    pub fn ssthresh(&self) -> f64 {
        f64::from(self.ssthresh)
    }

    /// What it has done so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

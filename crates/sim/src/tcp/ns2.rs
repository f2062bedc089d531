//! The one-way TCP of ns-2 2.35 (`Agent/TCP/Reno`, `/Newreno`, `/Sack1`), so that runs compare packet by packet.
//!
//! It counts segments, measures one round-trip time per round trip on a coarse clock, and goes back N after a timeout.
//! Where a rule is ns-2's own and not an RFC's, the comment names ns-2's variable or function.
//! Non-goal: being right where ns-2 is not; that is what the RFC profile is for.

mod reno;
mod sack;

use crate::clock::Clock;
use crate::tcp::{Ack, Config, Congestion, EcnBits, Host, Tally, TimerKind};
use reno::Reno;
use reno::TickRto;
use sack::Sack1;

/// Duplicate acknowledgements that mean a loss (`numdupacks_`).
const DUP_THRESH: i32 = 3;

/// SACK blocks an acknowledgement carries, and the receiver (`Agent/TCPSink/Sack1`) remembers (`max_sack_blocks_`).
pub(super) const MAX_SACK_BLOCKS: usize = 3;

/// Whether the acknowledgement of `segment` waits for the next arrival or the timer. `DelAckSink` asks only whether the
/// segment is the last one in order, not whether it is new. `expects`: the next segment the receiver waits for; `gap`:
/// whether it has received any above that; `waiting`: whether an acknowledgement is being delayed already.
pub(super) fn delays_ack(segment: u32, expects: u32, gap: bool, waiting: bool) -> bool {
    !waiting && expects == segment + 1 && !gap && segment != 0
}

/// The event that last changed the window (`last_cwnd_action_`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    None,
    Duplicates,
    Timeout,
    Exited,
}

/// The sender: the part common to ns-2's variants, and this one's loss recovery.
#[derive(Clone, Debug)]
pub struct Sender<C: Clock> {
    base: Base<C>,
    recovery: Recovery,
}

/// How a sender recovers from loss.
#[derive(Clone, Debug)]
enum Recovery {
    Reno(Reno),
    Sack(Box<Sack1>),
}

impl<C: Clock> Sender<C> {
    /// Closed; `phase` is uniform in [0, 1).
    pub fn new(config: &Config, phase: f64) -> Sender<C> {
        let recovery = match config.congestion {
            Congestion::Reno => Recovery::Reno(Reno::new(false)),
            Congestion::NewReno => Recovery::Reno(Reno::new(true)),
            // The scenario reader refuses the others here; their loss recovery is SACK's.
            Congestion::Sack | Congestion::Cubic { .. } | Congestion::Linux(_) => {
                Recovery::Sack(Box::default())
            }
        };
        Sender { base: Base::new(config, phase), recovery }
    }

    /// The application has unlimited data.
    pub fn start<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send(false, host);
    }

    /// An acknowledgement.
    #[inline(never)]
    pub fn on_ack<H: Host<Clock = C>>(&mut self, ack: Ack<'_>, host: &mut H) {
        let highest = ack.next as i32 - 1;
        match &mut self.recovery {
            Recovery::Reno(r) => r.on_ack(&mut self.base, highest, host),
            Recovery::Sack(r) => r.on_ack(&mut self.base, highest, ack.sack, host),
        }
    }

    /// The retransmission timer expired: one segment a window, slow start, go back N.
    pub fn on_rto<H: Host<Clock = C>>(&mut self, host: &mut H) {
        if self.base.acked >= self.base.last {
            // The application stopped while nothing was outstanding.
            return;
        }
        match &mut self.recovery {
            Recovery::Reno(r) => r.on_rto(&mut self.base),
            Recovery::Sack(r) => r.on_rto(&mut self.base),
        }
        self.base.on_rto(host);
        self.send(false, host);
    }

    /// The random delay before a send is over.
    pub fn on_jitter_end<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send(true, host);
    }

    #[inline(never)]
    fn send<H: Host<Clock = C>>(&mut self, jitter_over: bool, host: &mut H) {
        match &mut self.recovery {
            Recovery::Reno(r) => r.send(&mut self.base, jitter_over, 0, host),
            Recovery::Sack(r) => r.send(&mut self.base, jitter_over, host),
        }
    }

    /// The application's data ends before this segment.
    pub fn set_data_end(&mut self, segment: u32) {
        self.base.last = segment as i32 - 1;
    }

    /// The application has no more data than has been sent.
    pub fn stop(&mut self) {
        self.base.last = self.base.last.min(self.base.highest_sent);
    }

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        self.base.cwnd
    }

    /// Slow-start threshold in segments.
    pub fn ssthresh(&self) -> f64 {
        f64::from(self.base.ssthresh)
    }

    /// The counts of it since the start of the run.
    pub fn tally(&self) -> Tally {
        self.base.tally
    }
}

/// The part common to all variants (`Agent/TCP`). Segment numbers are signed: −1 is before the SYN.
#[derive(Clone, Debug)]
struct Base<C: Clock> {
    cwnd: f64,
    ssthresh: i32,
    /// The receiver's window (`wnd_`).
    window: i32,
    initial_window: i32,
    dup_acks: i32,
    /// The last segment the application has data for (`curseq_` less one).
    last: i32,
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
    /// `rto` on the engine's clock.
    rto_span: C::Span,
    limited_transmit: bool,
    /// Most random delay before a send, in seconds (`overhead_`).
    jitter: f64,
    tally: Tally,
}

impl<C: Clock> Base<C> {
    fn new(config: &Config, phase: f64) -> Base<C> {
        let window = config.window as i32;
        let rto = TickRto::new(phase, config.min_rto.secs());
        Base {
            cwnd: 1.0,
            ssthresh: window,
            window,
            initial_window: config.initial_window as i32,
            dup_acks: 0,
            last: i32::MAX,
            next: 0,
            highest_sent: -1,
            acked: -1,
            recover: 0,
            last_action: Action::None,
            timing: false,
            timed: -1,
            timed_at: C::ZERO,
            rto_span: C::span_secs(rto.timeout()),
            rto,
            limited_transmit: config.settings.limited_transmit,
            jitter: config.settings.jitter.secs(),
            tally: Tally::default(),
        }
    }

    /// New data is acknowledged: time, timer and window (`recv_newack_helper`).
    #[inline(always)]
    fn new_data<H: Host<Clock = C>>(&mut self, ack: i32, host: &mut H) {
        self.advance(ack, host);
        // Slow start, else a segment a round trip: also when the window is not used in full.
        self.cwnd += if self.cwnd < f64::from(self.ssthresh) { 1.0 } else { 1.0 / self.cwnd };
        if ack == 0 {
            // The window opens only once the SYN is through (`delay_growth_`).
            self.cwnd = f64::from(self.initial_window);
        }
    }

    /// New data is acknowledged, without opening the window (`newack`).
    #[inline(always)]
    fn advance<H: Host<Clock = C>>(&mut self, ack: i32, host: &mut H) {
        self.dup_acks = 0;
        self.acked = ack;
        self.next = self.next.max(ack + 1);
        if self.timing && ack >= self.timed {
            self.timing = false;
            self.sample_rtt(host.now());
        }
        self.new_timer(ack, host);
    }

    /// The round-trip time of the segment that was timed.
    #[inline(never)]
    fn sample_rtt(&mut self, now: C) {
        self.rto.sample(now.secs(), C::secs_of(now.since(self.timed_at)));
        self.rto_span = C::span_secs(self.rto.timeout());
    }

    /// New data was acknowledged, but its round-trip time was not measured.
    fn end_backoff(&mut self) {
        self.rto.end_backoff();
        self.rto_span = C::span_secs(self.rto.timeout());
    }

    /// Restarts the timer if anything is outstanding or waits to be sent; else cancels it (`newtimer`).
    fn new_timer<H: Host<Clock = C>>(&mut self, ack: i32, host: &mut H) {
        let more = ack < self.last;
        if more && self.next > ack || ack < self.highest_sent || self.cwnd < 1.0 {
            self.set_timer(host);
        } else {
            host.cancel_timer(TimerKind::Retransmit);
        }
    }

    /// Halves the threshold, in whole segments, and the window, exactly (`precisionReduce_`), even to half a segment.
    fn slow_down(&mut self, window_in_use: f64) {
        let half = window_in_use / 2.0;
        self.ssthresh = (half as i32).max(2);
        self.cwnd = half;
    }

    /// Restarts the timer after a suspected loss; the round-trip time of what is outstanding is not measured
    /// (`reset_rtx_timer(1, 0)`).
    fn restart_timer<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.set_timer(host);
        self.timing = false;
    }

    /// The part of a timeout that is common to all variants.
    fn on_rto<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.tally.timeouts += 1;
        self.dup_acks = 0;
        self.recover = self.highest_sent;
        if self.cwnd < 1.0 {
            self.cwnd = 1.0;
        }
        if self.acked == -1 && self.initial_window > 1 {
            self.initial_window = 1;
        }
        // With nothing outstanding neither the threshold is cut nor the timer backed off (`restart_bugfix_`).
        if self.acked != self.highest_sent {
            let in_use = self.cwnd.min(f64::from(self.window));
            self.ssthresh = ((in_use / 2.0) as i32).max(2);
            self.rto.back_off();
            self.rto_span = C::span_secs(self.rto.timeout());
        }
        self.cwnd = 1.0;
        self.set_timer(host);
        self.next = self.acked + 1;
        self.timing = false;
        self.last_action = Action::Timeout;
    }

    /// Limited transmit (RFC 3042): a new segment for each of the first two dup_acks (`send_one`).
    fn send_one<H: Host<Clock = C>>(&mut self, host: &mut H) {
        let allowed = self.next <= (self.acked + self.window).min(self.last)
            && f64::from(self.next) <= f64::from(self.acked) + self.cwnd + f64::from(self.dup_acks);
        if allowed {
            self.output_one(self.next, host);
            self.next += 1;
        }
    }

    /// With jitter: whether to wait before sending. The random delay starts here.
    #[inline(always)]
    fn waits<H: Host<Clock = C>>(&mut self, jitter_over: bool, host: &mut H) -> bool {
        let waits = self.jitter != 0.0 && !jitter_over;
        if waits {
            self.start_jitter(host);
        }
        waits
    }

    #[inline(never)]
    fn start_jitter<H: Host<Clock = C>>(&mut self, host: &mut H) {
        let delay = self.jitter * host.uniform();
        host.set_timer(TimerKind::Send, C::span_secs(delay));
    }

    /// [`Base::output`], where the window does not slide.
    #[inline(never)]
    fn output_one<H: Host<Clock = C>>(&mut self, segment: i32, host: &mut H) {
        self.output(segment, host);
    }

    #[inline(always)]
    fn output<H: Host<Clock = C>>(&mut self, segment: i32, host: &mut H) {
        if segment > self.last {
            // Duplicates after everything has been acknowledged.
            return;
        }
        let nothing_outstanding = self.acked == self.highest_sent;
        let again = segment <= self.highest_sent;
        host.send(segment as u32, EcnBits::default());
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
        if nothing_outstanding || !host.timer_is_set(TimerKind::Retransmit) {
            self.set_timer(host);
        }
    }

    fn set_timer<H: Host<Clock = C>>(&mut self, host: &mut H) {
        host.set_timer(TimerKind::Retransmit, self.rto_span);
    }
}

#[cfg(test)]
mod tests {
    use inprofile_core::units::Duration;

    use super::*;
    use crate::ns2::Seconds;
    use crate::tcp::{Flags, Profile, Sack, Settings};

    /// Records what is sent, at one moment.
    #[derive(Default)]
    struct Wire {
        sent: Vec<u32>,
        set: [bool; 3],
    }

    impl Host for Wire {
        type Clock = Seconds;
        fn now(&self) -> Seconds {
            Seconds(1.0)
        }
        fn send(&mut self, segment: u32, _: EcnBits) {
            self.sent.push(segment);
        }
        fn set_timer(&mut self, which: TimerKind, _: f64) {
            self.set[which as usize] = true;
        }
        fn cancel_timer(&mut self, which: TimerKind) {
            self.set[which as usize] = false;
        }
        fn timer_is_set(&self, which: TimerKind) -> bool {
            self.set[which as usize]
        }
        fn uniform(&mut self) -> f64 {
            0.5
        }
    }

    fn config(congestion: Congestion) -> Config {
        Config { profile: Profile::Ns2, congestion, window: 20, initial_window: 2, ..Config::plain() }
    }

    fn acknowledge(sender: &mut Sender<Seconds>, next: u32, wire: &mut Wire) {
        sender.on_ack(Ack { next, sack: &Sack::default(), flags: Flags::NONE, more: None }, wire);
    }

    /// ns-2's `slowdown` halves the window whatever it was. A timeout before the first data is acknowledged makes it 1, and at
    /// `highest_ack_` 0 three dup_acks are a fast retransmit all the same (`bugfix_ss_`): half a segment.
    #[test]
    fn a_window_of_one_is_halved() {
        for congestion in [Congestion::Reno, Congestion::NewReno] {
            let mut wire = Wire::default();
            let mut sender = Sender::new(&config(congestion), 0.0);
            sender.start(&mut wire);
            acknowledge(&mut sender, 1, &mut wire);
            sender.on_rto(&mut wire);
            assert_eq!((wire.sent.as_slice(), sender.cwnd()), ([0, 1, 2, 1].as_slice(), 1.0));
            for _ in 0..3 {
                acknowledge(&mut sender, 1, &mut wire);
            }
            assert_eq!((sender.tally().fast_retransmits, sender.cwnd(), sender.ssthresh()), (1, 0.5, 2.0));
            // Everything is acknowledged, and slow start continues from half a segment.
            let highest = wire.sent.iter().max().copied().expect("something was sent");
            acknowledge(&mut sender, highest + 1, &mut wire);
            assert_eq!(sender.cwnd(), 1.5);
        }
    }

    /// ns-2 looks for something to send only while not all is acknowledged (`last_ack_ + 1 < curseq_`): after the end of a
    /// transfer there is no random delay before a send, and no number is drawn for it.
    #[test]
    fn sack_starts_no_jitter_after_the_end() {
        let jittered = Config {
            settings: Settings { jitter: Duration::from_millis(1), ..Settings::default() },
            ..config(Congestion::Sack)
        };
        let mut wire = Wire::default();
        let mut sender = Sender::new(&jittered, 0.0);
        sender.set_data_end(2);
        sender.start(&mut wire);
        for next in [1, 2] {
            assert!(wire.timer_is_set(TimerKind::Send));
            wire.cancel_timer(TimerKind::Send);
            sender.on_jitter_end(&mut wire);
            acknowledge(&mut sender, next, &mut wire);
        }
        assert_eq!(wire.sent, [0, 1]);
        assert!(!wire.timer_is_set(TimerKind::Send));
    }
}

//! A TCP sender by the RFCs: Reno (RFC 5681), NewReno (RFC 6582) or SACK-based loss recovery (RFC 2018, 6675), limited
//! transmit (RFC 3042), the retransmission timer of RFC 6298 and an initial window of ten segments (RFC 6928); congestion
//! avoidance by RFC 5681 or CUBIC (RFC 9438); HyStart++ (RFC 9406) where it is asked for; explicit congestion notification
//! (RFC 3168).
//!
//! Windows and sequence numbers count full segments; for a bulk sender that is equivalent to bytes. Not implemented:
//! detection of spurious timeouts and retransmissions (RFC 5682, 3708), timestamps. Each rule has a timed packet trace in
//! `tests/tcp`.

mod ecn;
mod hystart;
#[cfg(test)]
mod laws;
mod recovery;
mod scoreboard;

use crate::clock::Clock;
use crate::tcp::control::{Cause, Control, Window};
use crate::tcp::{Ack, Config, EcnBits, Flags, Host, SlowStart, Tally, TimerKind, rto::Rto};
pub(in crate::tcp) use ecn::Ecn;
use hystart::FirstSlowStart;
pub(in crate::tcp) use hystart::HyStartPlusPlus;
use recovery::{DUP_THRESH, Recovery};

/// The sender. Segment 0 is the SYN. What every acknowledgement touches comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Sender<C: Clock> {
    /// The segment whose round-trip time is being measured, and when it was sent. First, as it has room for the tag of the enum that this
    /// is a variant of.
    timed: Option<(u32, C)>,
    cwnd: f64,
    ssthresh: f64,
    /// The receiver's window.
    rwnd: u32,
    dup_acks: u32,
    /// SND.UNA: the first segment not acknowledged.
    snd_una: u32,
    /// SND.NXT: the next segment to send.
    snd_nxt: u32,
    /// One past the highest segment sent.
    snd_max: u32,
    /// `snd_max` when the retransmission timer last expired: below it, segments are retransmissions. NewReno: also when
    /// recovery last began (RFC 6582 §3.2, `recover`).
    recover: u32,
    /// One past the last segment that the application has data for.
    data_end: u32,
    /// Segments in flight that limited transmit has sent.
    limited_transmit_sent: u32,
    in_recovery: bool,
    /// Whether the segment at `snd_una` has timed out before.
    una_timed_out: bool,
    limited_transmit: bool,
    jitter: f64,
    /// `rto` on the engine's clock.
    rto_span: C::Span,
    control: Control,
    recovery: Recovery,
    /// The first slow start, while it lasts, if HyStart++ is to end it.
    first_slow_start: Option<Box<FirstSlowStart<C>>>,
    ecn: Option<Ecn>,
    rto: Rto,
    initial_window: u32,
    /// `snd_max` when recovery began (RFC 6675 §5, RecoveryPoint).
    recovery_point: u32,
    tally: Tally,
}

impl<C: Clock> Sender<C> {
    /// Closed.
    pub fn new(config: &Config) -> Sender<C> {
        let rto = Rto::new(config.min_rto);
        Sender {
            cwnd: 1.0,
            // RFC 5681 §3.1: the slow-start threshold begins arbitrarily high.
            ssthresh: f64::INFINITY,
            rwnd: config.window,
            initial_window: config.initial_window,
            dup_acks: 0,
            in_recovery: false,
            recovery: Recovery::new(config.congestion),
            first_slow_start: (config.slow_start == SlowStart::HyStartPlusPlus)
                .then(|| Box::new(FirstSlowStart::new())),
            control: Control::new(config),
            ecn: Ecn::new(config),
            recovery_point: 0,
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            recover: 0,
            data_end: u32::MAX,
            limited_transmit_sent: 0,
            timed: None,
            rto_span: C::span_secs(rto.timeout()),
            rto,
            una_timed_out: false,
            limited_transmit: config.settings.limited_transmit,
            jitter: config.settings.jitter.secs(),
            tally: Tally::default(),
        }
    }

    /// The application has data.
    pub fn start<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send_again(false, host);
    }

    /// Everything is acknowledged, and the application has data again; a segment was last sent at `last_sent`.
    pub fn resume<H: Host<Clock = C>>(&mut self, last_sent: C, host: &mut H) {
        let now = host.now();
        if C::secs_of(now.since(last_sent)) > self.rto.timeout() {
            // RFC 5681 §4.1: the restart window, RW.
            self.cwnd = self.cwnd.min(f64::from(self.initial_window));
        }
        let mut window = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        self.control.restarts_from_idle(now.secs(), &mut window);
        self.send_again(false, host);
    }

    /// An acknowledgement arrived. What nearly every one does is inlined, what few do is not.
    #[inline(never)]
    pub fn on_ack<H: Host<Clock = C>>(&mut self, ack: Ack<'_>, host: &mut H) {
        let next = ack.next;
        if next > self.snd_max || next < self.snd_una {
            return;
        }
        let in_flight = self.in_flight();
        let in_window = in_flight - self.limited_transmit_sent;
        let duplicate = match &mut self.recovery {
            // RFC 6675 §2: an acknowledgement that SACKs something new counts, even if it is cumulative, and no other.
            Recovery::Sack(scoreboard) => scoreboard.update(next, ack.sack),
            _ => next == self.snd_una && self.snd_una < self.snd_max,
        };
        if next > self.snd_una {
            self.on_new_ack(next, ack.flags, in_flight, host);
        }
        if duplicate {
            self.on_dup_ack(host);
        }
        if self.ecn.is_some() {
            self.on_ecn_echo(next, ack.flags, f64::from(in_window), host);
        }
        self.send_window(false, host);
    }

    /// Reads from each cache line that every acknowledgement touches: what it reads means nothing.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.cwnd.to_bits() ^ self.jitter.to_bits() ^ u64::from(self.ecn.is_some())
    }

    /// The retransmission timer expired. RFC 6298 §5.4–5.6: the earliest segment is retransmitted, and the timer set to
    /// twice the time. RFC 5681 §3.1: a window of one segment, slow start from `snd_una`.
    pub fn on_rto<H: Host<Clock = C>>(&mut self, host: &mut H) {
        if let Some(ecn) = &mut self.ecn {
            ecn.paused = false;
            if self.snd_una == self.snd_max {
                // RFC 3168 §6.1.2: the timer only delayed the next segment; nothing is lost.
                return self.send_again(false, host);
            }
        }
        self.tally.timeouts += 1;
        if self.snd_una == 0 {
            // RFC 5681 §3.1: after a lost SYN the initial window is one segment. The threshold stays arbitrarily high:
            // Eq. (4) is a share of the data in flight, and there was none.
            self.initial_window = 1;
        } else {
            self.first_slow_start = None;
            if !self.una_timed_out {
                // RFC 5681, Eq. (4); held constant when the same segment times out again.
                self.ssthresh = self.reduce(Cause::Timeout, self.flight_size()).max(2.0);
            }
            if let Some(ecn) = &mut self.ecn {
                ecn.on_reduction(self.snd_max, false);
            }
        }
        self.una_timed_out = true;
        self.cwnd = 1.0;
        self.dup_acks = 0;
        self.limited_transmit_sent = 0;
        self.in_recovery = false;
        if let Recovery::Sack(scoreboard) = &mut self.recovery {
            // RFC 2018 §5: the receiver may have discarded what it had SACKed.
            scoreboard.clear();
        }
        self.timed = None;
        self.recover = self.snd_max;
        self.snd_nxt = self.snd_una;
        self.rto.back_off();
        self.rto_span = C::span_secs(self.rto.timeout());
        self.restart_timer(host);
        self.send_again(false, host);
    }

    /// The random delay before a send is over.
    pub fn on_jitter_end<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.send_again(true, host);
    }

    /// New data is acknowledged, all before `ack`. `in_flight`: segments in flight when the acknowledgement arrived.
    #[inline(always)]
    fn on_new_ack<H: Host<Clock = C>>(&mut self, ack: u32, flags: Flags, in_flight: u32, host: &mut H) {
        if let Some((segment, at)) = self.timed
            && ack > segment
        {
            self.timed = None;
            self.sample_rtt(C::secs_of(host.now().since(at)));
        }
        if self.snd_una == 0 {
            self.on_syn_ack(flags);
        } else if self.in_recovery {
            if self.stays_in_recovery(ack, host) {
                return;
            }
        } else if !flags.has(Flags::ECE) || self.ecn.is_none() {
            // RFC 3168 §6.1.2: an acknowledgement with ECN-Echo does not increase the window.
            self.grow_window(ack, in_flight, host);
        }
        self.dup_acks = 0;
        self.limited_transmit_sent = 0;
        self.in_recovery = false;
        self.una_timed_out = false;
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        if self.snd_una == self.snd_max {
            // RFC 6298 §5.2: everything is acknowledged.
            host.cancel_timer(TimerKind::Retransmit);
        } else {
            // RFC 6298 §5.3: restarted by each acknowledgement of new data.
            self.restart_timer(host);
        }
    }

    /// A round-trip time in seconds.
    #[inline(never)]
    fn sample_rtt(&mut self, rtt: f64) {
        self.rto.sample(rtt);
        self.rto_span = C::span_secs(self.rto.timeout());
    }

    /// The SYN is acknowledged.
    #[cold]
    fn on_syn_ack(&mut self, flags: Flags) {
        if let Some(ecn) = &mut self.ecn
            && ecn.agree(flags, self.tally.timeouts).mode.is_none()
        {
            self.ecn = None;
        }
        // RFC 6298 §5.7: it had timed out. RFC 6928 §2: the initial window.
        if self.una_timed_out {
            self.rto.syn_was_lost();
            self.rto_span = C::span_secs(self.rto.timeout());
        }
        self.cwnd = f64::from(self.initial_window);
    }

    /// More segments are acknowledged, all before `ack`, of `in_flight`: the window grows.
    #[inline(always)]
    fn grow_window<H: Host<Clock = C>>(&mut self, ack: u32, in_flight: u32, host: &mut H) {
        let segments = ack - self.snd_una;
        let unused = || in_flight < self.cwnd as u32 && !host.timer_is_set(TimerKind::Send);
        let paused = self.control.pause(|| unused().then(|| host.now().secs()));
        if self.first_slow_start.is_some() && self.grows_by_hystart(ack, paused, host.now()) || paused {
            return;
        }
        if self.cwnd < self.ssthresh {
            // RFC 5681, Eq. (2), counting at most two segments an acknowledgement (RFC 3465 §2.2); after a timeout, when
            // one may cover a window that had arrived long before, at most one (RFC 3465 §2.3).
            let most = if self.snd_una > self.recover { 2 } else { 1 };
            self.cwnd += f64::from(segments.min(most));
        } else {
            // RFC 5681, Eq. (3): Reno's is by acknowledgements, each as of one segment.
            let segments = if matches!(self.control, Control::Reno(_)) { 1 } else { segments };
            let at = || (self.rto.srtt(), host.now().secs());
            self.cwnd = self.control.avoid(self.cwnd, segments, at);
        }
    }

    /// An acknowledgement in the first slow start; `paused`: the window stays, as it was not full. False: that is over, and congestion
    /// avoidance begins.
    #[inline(never)]
    fn grows_by_hystart(&mut self, ack: u32, paused: bool, now: C) -> bool {
        let (next, segments) = (self.snd_max, ack - self.snd_una);
        let growth = self.first_slow_start.as_mut().and_then(|s| s.acknowledged(ack, next, segments, now));
        match growth {
            Some(growth) if !paused => self.cwnd += growth,
            Some(_) => {}
            None => {
                // RFC 9406 §4.2: as after any slow start; §4.3: later ones are the standard's.
                self.ssthresh = self.cwnd;
                self.first_slow_start = None;
            }
        }
        growth.is_some()
    }

    /// Segments in flight, as far as the sender knows. RFC 6675 §5.1: after a timeout, those sent since that are neither
    /// acknowledged nor SACKed.
    fn in_flight(&self) -> u32 {
        self.snd_nxt - self.snd_una - if self.in_rto_recovery() { self.sacked_in_flight() } else { 0 }
    }

    /// FlightSize, in full segments.
    pub fn flight_size(&self) -> f64 {
        f64::from(self.in_flight())
    }

    /// Whether something outstanding when the timer last expired is not acknowledged yet.
    fn in_rto_recovery(&self) -> bool {
        self.snd_una < self.recover
    }

    /// SACKed segments from `snd_una` to `snd_nxt`.
    fn sacked_in_flight(&self) -> u32 {
        match &self.recovery {
            Recovery::Sack(scoreboard) => scoreboard.sacked_in(self.snd_una, self.snd_nxt),
            _ => 0,
        }
    }

    /// Congestion: the slow-start threshold that follows, not yet bounded from below; `flight`: FlightSize. RFC 5681 §3.1 sets it to no more
    /// than Eq. (4), with FlightSize as "the amount of outstanding data in the network" (RFC 9438 §4.6 has the same words). What duplicates
    /// and SACK blocks report to have left the network, while a hole holds SND.UNA, is outstanding no more: the window has kept the rest
    /// below itself (RFC 5681 §3.2, RFC 6675 §5, step C).
    fn reduce(&mut self, cause: Cause, flight: f64) -> f64 {
        let cwnd = self.deflated_cwnd();
        self.control.reduce(cause, cwnd, flight.min(cwnd))
    }

    /// The window without what duplicates have added to it (RFC 5681 §3.2, step 4).
    fn deflated_cwnd(&self) -> f64 {
        if self.in_recovery { self.cwnd.min(self.ssthresh) } else { self.cwnd }
    }

    /// One past the last segment that the windows allow (RFC 5681 §3.1: the smaller of the two counts).
    #[inline]
    fn send_limit(&self, mut cwnd: u32) -> u32 {
        if self.dup_acks > 0 || self.in_rto_recovery() {
            cwnd += self.beyond_cwnd();
        }
        (self.snd_una + cwnd.min(self.rwnd)).min(self.data_end)
    }

    /// How many segments beyond the congestion window may be sent.
    fn beyond_cwnd(&self) -> u32 {
        let by_limited_transmit = self.limited_transmit && !self.in_recovery;
        match &self.recovery {
            // RFC 6675 §5, step 3, and §5.1: the window limits the pipe, and SACKed segments have left it.
            Recovery::Sack(_) if by_limited_transmit && self.dup_acks > 0 || self.in_rto_recovery() => {
                self.sacked_in_flight()
            }
            // RFC 3042 §2: a segment never sent before, for each of the first two duplicates.
            Recovery::Reno | Recovery::NewReno { .. }
                if by_limited_transmit && self.snd_nxt == self.snd_max =>
            {
                self.dup_acks.min(DUP_THRESH - 1)
            }
            _ => 0,
        }
    }

    /// RFC 2018 §5 and RFC 6675 §5.1: what has been SACKed since the timeout is not sent again.
    #[inline]
    fn skip_sacked(&mut self) {
        if self.in_rto_recovery()
            && let Recovery::Sack(scoreboard) = &self.recovery
        {
            self.snd_nxt = scoreboard.first_unsacked(self.snd_nxt);
        }
    }

    /// [`Sender::send_window`], where no acknowledgement has arrived.
    #[inline(never)]
    fn send_again<H: Host<Clock = C>>(&mut self, jitter_over: bool, host: &mut H) {
        self.send_window(jitter_over, host);
    }

    /// Sends what the windows allow, after a random delay if the flow has jitter and that is not over.
    #[inline(always)]
    fn send_window<H: Host<Clock = C>>(&mut self, jitter_over: bool, host: &mut H) {
        let paused = self.ecn.as_ref().is_some_and(|e| e.paused);
        if paused || !jitter_over && host.timer_is_set(TimerKind::Send) {
            return;
        }
        if self.in_recovery && matches!(self.recovery, Recovery::Sack(_)) {
            return self.send_in_sack_recovery(jitter_over, host);
        }
        let cwnd = self.cwnd as u32;
        self.skip_sacked();
        while self.snd_nxt < self.send_limit(cwnd) {
            if self.jitter > 0.0 && !jitter_over {
                return self.start_jitter(host);
            }
            let by_limited_transmit = self.dup_acks > 0 && !self.in_recovery && self.in_flight() >= cwnd;
            self.limited_transmit_sent += u32::from(by_limited_transmit);
            self.transmit(self.snd_nxt, host);
            self.snd_nxt += 1;
            self.skip_sacked();
        }
    }

    /// Sends what RFC 6675 allows in recovery.
    #[inline(never)]
    fn send_in_sack_recovery<H: Host<Clock = C>>(&mut self, jitter_over: bool, host: &mut H) {
        if self.jitter > 0.0 && !jitter_over {
            return self.start_jitter(host);
        }
        while let Some(segment) = self.next_in_sack_recovery() {
            self.repair(segment, host);
        }
    }

    /// The next segment waits for a random time first.
    #[inline(never)]
    fn start_jitter<H: Host<Clock = C>>(&mut self, host: &mut H) {
        let delay = self.jitter * host.uniform();
        host.set_timer(TimerKind::Send, C::span_secs(delay));
    }

    /// [`Sender::transmit`], in recovery.
    #[inline(never)]
    fn repair<H: Host<Clock = C>>(&mut self, segment: u32, host: &mut H) {
        self.transmit(segment, host);
    }

    #[inline(always)]
    fn transmit<H: Host<Clock = C>>(&mut self, segment: u32, host: &mut H) {
        let retransmission = segment < self.snd_max;
        let bits = self
            .ecn
            .as_mut()
            .map_or(EcnBits::default(), |e| e.bits(segment, retransmission, self.tally.timeouts));
        host.send(segment, bits);
        if retransmission {
            self.sent_again(segment);
        } else {
            self.snd_max = segment + 1;
            if let Some(first) = &mut self.first_slow_start {
                first.sent(host.now());
            }
            if self.timed.is_none() {
                self.timed = Some((segment, host.now()));
            }
        }
        if !host.timer_is_set(TimerKind::Retransmit) {
            // RFC 6298 §5.1: it runs while anything is in flight.
            self.restart_timer(host);
        }
    }

    /// A segment was sent again. RFC 6298 §3, Karn's rule: it is no longer timed; new data of a recovery may be sent again in the same one.
    #[inline(never)]
    fn sent_again(&mut self, segment: u32) {
        self.tally.retransmissions += 1;
        if self.timed.is_some_and(|(timed, _)| timed == segment) {
            self.timed = None;
        }
    }

    fn restart_timer<H: Host<Clock = C>>(&mut self, host: &mut H) {
        host.set_timer(TimerKind::Retransmit, self.rto_span);
    }

    /// The application's data ends before this segment.
    pub fn set_data_end(&mut self, segment: u32) {
        self.data_end = segment;
    }

    /// Whether everything that the application has had data for is acknowledged.
    pub fn all_acknowledged(&self) -> bool {
        self.snd_una >= self.data_end
    }

    /// The application has no more data than has been sent.
    pub fn stop(&mut self) {
        self.data_end = self.data_end.min(self.snd_max);
    }

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold in segments; infinite before the first loss.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// How many segments it has sent, each transmission counted.
    pub fn transmissions(&self) -> u64 {
        u64::from(self.snd_max) + self.tally.retransmissions
    }

    /// The counts of it since the start of the run.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

//! The one timer, for what comes first: a segment that may be late (RFC 8985 §6), a tail loss probe (§7), the retransmission timeout
//! (RFC 6298).

use crate::clock::Clock;
use crate::tcp::control::Cause;
use crate::tcp::rto::Rto;
use crate::tcp::{Ack, Host, TimerKind};
use inprofile_core::units::Duration;

use super::acknowledgement::AckOutcome;
use super::grow::Exit;
use super::losses::Frto;
use super::losses::Undo;
use super::{Pending, Sender, State};

/// RFC 8985 §7.2: the longest that a receiver may delay an acknowledgement, in seconds; Linux takes its minimum RTO.
const MAX_ACK_DELAY: f64 = 0.2;

impl<C: Clock> Sender<C> {
    /// RFC 6298 §5.4–5.6 and RFC 8985 §6.3.
    pub(super) fn on_rto<H: Host<Clock = C>>(&mut self, host: &mut H) {
        if self.board.una() == self.board.max() {
            return;
        }
        self.tally.timeouts += 1;
        self.new_first = false;
        let max = self.board.max();
        self.rack.timed_out(&mut self.board, host.now(), self.timeout.srtt(), self.state.recovers());
        if self.board.una() == 0 {
            // RFC 6928 §2, as in Linux: a SYN that is lost once may only be late; RFC 5681 §3.1: lost again, it leaves a window of one segment.
            if self.tally.timeouts > 1 {
                self.initial_window = 1;
            }
        } else {
            // RFC 5682 §3.1, step 1: not where an earlier recovery is under way, but, as in Linux, for the same segment again.
            let judged = !self.state.recovers() || self.una_timed_out;
            self.frto = judged.then_some(Frto { point: max });
            if self.is_unanswered() {
                let undo = Undo::new(self.board.una(), self.board.again_in_flight());
                self.undo = Some(undo.to(self.window()));
                self.ssthresh = self.control.reduce(Cause::Timeout, self.cwnd, self.cwnd).max(2.0);
            } else {
                self.control.timed_out_again(self.cwnd);
            }
            // RFC 3168 §6.1.2: whatever reduces the window.
            if let Some(ecn) = &mut self.ecn {
                ecn.on_reduction(max, false);
            }
        }
        self.note_lost(host.now());
        if let Exit::HyStart(hystart) = &mut self.exit {
            hystart.timed_out(max, host.now().secs());
        }
        self.una_timed_out = true;
        self.state = State::Loss;
        self.recovery_point = max;
        self.probe = None;
        // One segment more than what may still be in the network.
        self.cwnd = f64::from(self.board.in_flight() + 1);
        self.timeout.back_off();
        if self.pacer.is_some() {
            // A train that waits for its time does not hold this one up.
            self.note_again(self.board.una());
            self.transmit_alone(self.board.una(), host);
        } else {
            self.send(false, host.now().secs(), host);
        }
        self.set_timer(None, host);
    }

    /// Whether the window is to be reduced for a timeout. RFC 5681 §3.1, Eq. (4): not when the same segment times out again. As in Linux, nor
    /// when what is outstanding is being recovered from: that loss has reduced the window.
    fn is_unanswered(&self) -> bool {
        match self.state {
            State::Open => true,
            State::Reduction(_) => self.board.una() >= self.recovery_point,
            State::Recovery(_) => false,
            State::Loss => !self.una_timed_out,
        }
    }

    /// RFC 8985 §7.3: a new segment if there is one, else the last one again; so that its acknowledgement tells of a lost tail.
    pub(super) fn send_probe<H: Host<Clock = C>>(&mut self, host: &mut H) {
        let max = self.board.max();
        let new = max < self.limit();
        if !new && let Some(delivery) = &mut self.delivery {
            delivery.probes(max - 1);
        }
        self.transmit_alone(if new { max } else { max - 1 }, host);
        self.probe = Some((self.board.max(), !new));
        self.sampled = false;
        self.set_timer(None, host);
    }

    /// RFC 8985 §7.4.2: whether the probe made good a loss.
    pub(super) fn probe_answered(&mut self, ack: &Ack<'_>, outcome: &AckOutcome, now: C) {
        let Some((end, again)) = self.probe.filter(|(end, _)| ack.next >= *end) else { return };
        // Case 2: both transmissions have arrived, at a receiver without duplicate SACKs.
        let duplicate = !outcome.advanced && ack.sack.blocks().is_empty();
        if !again || ack.next > end || duplicate {
            self.probe = None;
        }
        if again && ack.next > end && !self.state.recovers() {
            // Nothing told of the segment but the probe: it was lost.
            self.answer_repaired_loss(end - 1, now);
        }
    }

    /// Sets the one timer for what comes first: a segment that may be late, a probe, the retransmission timer.
    pub(super) fn set_timer<H: Host<Clock = C>>(&mut self, reordering: Option<f64>, host: &mut H) {
        if self.board.una() == self.board.max() {
            // RFC 6298 §5.2: everything is acknowledged.
            return host.cancel_timer(TimerKind::Retransmit);
        }
        let (pending, after) = match reordering {
            Some(wait) => (Pending::Reordering, C::span_secs(wait.min(self.timeout.secs()))),
            None if !self.may_probe() => (Pending::Retransmission, self.timeout.length),
            None => (Pending::Probe, self.timeout.probe(self.board.in_flight())),
        };
        self.pending = pending;
        host.set_timer(TimerKind::Retransmit, after);
    }

    /// The same where a [probe may be sent](Sender::may_probe), as after an ordinary acknowledgement.
    #[inline(always)]
    pub(super) fn set_probe_timer<H: Host<Clock = C>>(&mut self, host: &mut H) {
        debug_assert!(self.may_probe(), "nothing is open");
        if self.board.una() == self.board.max() {
            return host.cancel_timer(TimerKind::Retransmit);
        }
        self.pending = Pending::Probe;
        host.set_timer(TimerKind::Retransmit, self.timeout.probe(self.board.in_flight()));
    }

    /// RFC 8985 §7.2: whether a probe may be sent; not in recovery, before the connection is established, with something SACKed, while a probe
    /// is out, or before a round-trip time is measured.
    fn may_probe(&self) -> bool {
        self.sampled
            && self.probe.is_none()
            && self.board.sacked() == 0
            && self.board.una() > 0
            && !self.state.recovers()
    }
}

/// The retransmission timeout (RFC 6298), and how long the timer runs, on the engine's clock: converted when the timeout changes, once a
/// round trip, and not with each acknowledgement. What each asks for comes last.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Timeout<C: Clock> {
    length: C::Span,
    rto: Rto,
    probe: C::Span,
    /// With a single segment in flight, whose acknowledgement may be delayed.
    probe_alone: C::Span,
}

impl<C: Clock> Timeout<C> {
    /// So many of its last bytes are what each acknowledgement asks for: the smoothed round-trip time and the probe's lengths.
    #[cfg(test)]
    pub(super) const OFTEN: usize = 24;

    /// Before the first round-trip time.
    pub(super) fn new(min: Duration) -> Timeout<C> {
        let none = C::NO_TIME;
        let mut timeout = Timeout { probe: none, probe_alone: none, rto: Rto::new(min), length: none };
        timeout.convert();
        timeout
    }

    /// See [`Rto::srtt`].
    pub(super) fn srtt(&self) -> f64 {
        self.rto.srtt()
    }

    /// In seconds.
    pub(super) fn secs(&self) -> f64 {
        self.rto.timeout()
    }

    /// See [`Rto::sample`].
    #[inline(never)]
    pub(super) fn sample(&mut self, rtt: f64) {
        self.rto.sample(rtt);
        self.convert();
    }

    /// See [`Rto::back_off`].
    pub(super) fn back_off(&mut self) {
        self.rto.back_off();
        self.convert();
    }

    /// See [`Rto::syn_was_lost`].
    pub(super) fn syn_was_lost(&mut self) {
        self.rto.syn_was_lost();
        self.convert();
    }

    /// How long the probe's timer runs with so many segments in flight.
    #[inline(always)]
    fn probe(&self, in_flight: u32) -> C::Span {
        if in_flight == 1 { self.probe_alone } else { self.probe }
    }

    fn convert(&mut self) {
        let (rto, srtt) = (self.rto.timeout(), self.rto.srtt());
        self.length = C::span_secs(rto);
        // RFC 8985 §7.2: no later than the retransmission timer would have expired.
        self.probe = C::span_secs((2.0 * srtt).min(rto));
        self.probe_alone = C::span_secs((2.0 * srtt + MAX_ACK_DELAY).min(rto));
    }
}

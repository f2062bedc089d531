//! ns-2's Reno and NewReno: in fast recovery each duplicate acknowledgement inflates the window.

use super::{Action, Base, DUP_THRESH};
use crate::clock::Clock;
use crate::tcp::{Host, TimerKind};

/// The most segments sent for one duplicate acknowledgement in NewReno's recovery.
const RECOVERY_BURST: u32 = 2;

/// The state of fast recovery.
#[derive(Clone, Debug)]
pub struct Reno {
    /// Window inflation (`dupwnd_`).
    inflation: i32,
    /// Whether partial acknowledgements keep the sender in recovery (RFC 2582).
    new: bool,
    /// NewReno: whether one was seen in this recovery (`firstpartial_`).
    partial_seen: bool,
}

impl Reno {
    /// Not in recovery.
    pub fn new(new: bool) -> Reno {
        Reno { inflation: 0, new, partial_seen: false }
    }

    #[inline(always)]
    pub fn on_ack<C: Clock, H: Host<Clock = C>>(&mut self, b: &mut Base<C>, ack: i32, host: &mut H) {
        if ack > b.acked {
            let partial = self.new && ack < b.recover && b.last_action == Action::Duplicates;
            if partial {
                self.partial(b, ack, host);
            } else {
                // NewReno recognises by its inflation that it was in recovery.
                if b.last_action == Action::Duplicates && (!self.new || self.inflation > 0) {
                    b.last_action = Action::Exited;
                }
                self.inflation = 0;
                self.partial_seen = false;
                b.new_data(ack, host);
            }
        } else if ack == b.acked {
            b.dup_acks += 1;
            if b.dup_acks == DUP_THRESH {
                self.loss_suspected(b, host);
            } else if b.dup_acks > DUP_THRESH && b.last_action == Action::Duplicates {
                self.inflation += 1;
            } else if b.dup_acks < DUP_THRESH && b.limited_transmit {
                b.send_one(host);
            }
        }
        if b.dup_acks == 0 || b.dup_acks >= DUP_THRESH {
            let burst = if self.new && b.dup_acks > 0 { RECOVERY_BURST } else { 0 };
            self.send(b, false, burst, host);
        }
    }

    pub fn on_rto<C: Clock>(&mut self, _: &mut Base<C>) {
        self.inflation = 0;
    }

    /// The third duplicate: fast retransmit, once a window of data (`bugFix_`).
    #[inline(never)]
    fn loss_suspected<C: Clock, H: Host<Clock = C>>(&mut self, b: &mut Base<C>, host: &mut H) {
        let again_allowed = !self.new && b.last_action == Action::Duplicates;
        if b.acked <= b.recover && !again_allowed && b.acked != 0 {
            return;
        }
        b.tally.fast_retransmits += 1;
        b.recover = b.highest_sent;
        b.last_action = Action::Duplicates;
        b.slow_down(self.window_in_use(b));
        b.restart_timer(host);
        b.output_one(b.acked + 1, host);
        self.inflation = DUP_THRESH;
    }

    /// NewReno: a partial acknowledgement, of less than was outstanding when the loss was detected. The window deflates
    /// by what was acknowledged, and the next hole is retransmitted (`partialnewack`).
    #[inline(never)]
    fn partial<C: Clock, H: Host<Clock = C>>(&mut self, b: &mut Base<C>, ack: i32, host: &mut H) {
        if !self.partial_seen {
            // Only the first one sets the timer, so that a long recovery ends in a timeout (`newreno_changes1_`).
            self.partial_seen = true;
            b.new_timer(ack, host);
        }
        let deflate = ack - b.acked;
        if self.inflation > deflate {
            self.inflation -= deflate - 1;
        } else {
            b.cwnd = (b.cwnd - f64::from(deflate - self.inflation)).max(1.0);
            self.inflation = 1;
        }
        b.acked = ack;
        b.next = b.next.max(ack + 1);
        if b.timing && ack >= b.timed {
            b.timing = false;
            b.end_backoff();
        }
        b.output_one(ack + 1, host);
    }

    /// The window in use, fractions kept (`windowd()`).
    fn window_in_use<C: Clock>(&self, b: &Base<C>) -> f64 {
        (b.cwnd + f64::from(self.inflation)).min(f64::from(b.window))
    }

    /// Sends what the window allows, `burst` segments at the most unless that is 0.
    #[inline(always)]
    pub fn send<C: Clock, H: Host<Clock = C>>(
        &mut self,
        b: &mut Base<C>,
        jitter_over: bool,
        burst: u32,
        host: &mut H,
    ) {
        if !jitter_over && host.timer_is_set(TimerKind::Send) {
            return;
        }
        let mut sent = 0;
        while b.next <= (b.acked + (b.cwnd as i32 + self.inflation).min(b.window)).min(b.last) {
            if b.waits(jitter_over, host) {
                return;
            }
            b.output(b.next, host);
            b.next += 1;
            sent += 1;
            if sent == burst {
                return;
            }
        }
    }
}

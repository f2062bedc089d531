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

// ns-2's retransmission timeout: BSD's integer arithmetic on a clock that ticks every 10 ms, read at a random phase.

/// The estimator.
#[derive(Clone, Debug)]
pub struct TickRto {
    /// Eight times the smoothed round-trip time, in ticks.
    srtt: i32,
    /// Four times its variation, in ticks.
    rttvar: i32,
    /// Timeout before clamping and backing off, in seconds.
    rtxcur: f64,
    backoff: i32,
    phase: f64,
    min: f64,
}

/// `tcpTick_`
const TICK: f64 = 0.01;
/// `maxrto_`
const MAX_RTO: f64 = 60.0;

impl TickRto {
    /// Before any measurement: three seconds (`rtxcur_init_`), variation 12 s (`rttvar_init_`).
    #[must_use]
    pub fn new(phase: f64, min: f64) -> TickRto {
        TickRto { srtt: 0, rttvar: 1200 << 2, rtxcur: 3.0, backoff: 1, phase: phase * TICK, min }
    }

    /// A round-trip time in seconds, measured at `now`. Ends the backoff.
    pub fn sample(&mut self, now: f64, rtt: f64) {
        self.backoff = 1;
        let since_tick = libm::fmod(now - rtt + self.phase, TICK);
        let ticks = (((rtt + since_tick) / TICK) as i32).max(1);
        if self.srtt == 0 {
            self.srtt = ticks << 3;
            self.rttvar = ticks << 1;
        } else {
            // ns-2 keeps the difference in sixteen bits.
            let mut delta = (ticks - (self.srtt >> 3)) as i16;
            self.srtt = (self.srtt + i32::from(delta)).max(1);
            delta = delta.wrapping_abs();
            delta = (i32::from(delta) - (self.rttvar >> 2)) as i16;
            self.rttvar = (self.rttvar + i32::from(delta)).max(1);
        }
        self.rtxcur = f64::from(((self.rttvar << 3) + self.srtt) >> 3) * TICK;
    }

    /// New data was acknowledged, but its round-trip time was not measured.
    pub fn end_backoff(&mut self) {
        self.backoff = 1;
    }

    /// The timer expired: doubles the RTO, and after the third time discards the smoothed round-trip time.
    pub fn back_off(&mut self) {
        if self.backoff < 64 || self.timeout() < MAX_RTO {
            self.backoff <<= 1;
        }
        if self.backoff > 8 {
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    /// The RTO in seconds. The minimum is applied before backing off (`rfc2988_`).
    #[must_use]
    pub fn timeout(&self) -> f64 {
        (self.rtxcur.max(self.min) * f64::from(self.backoff)).clamp(2.0 * TICK, MAX_RTO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_round_as_in_ns2() {
        let mut r = TickRto::new(0.5, 0.2);
        assert_eq!(r.timeout(), 3.0);
        // Sent at 1.000 s, 5 ms into a tick; 42 ms later 4 ticks have passed.
        r.sample(1.042, 0.042);
        assert_eq!((r.srtt, r.rttvar), (4 << 3, 4 << 1));
        // ((8 << 3) + 32) >> 3 = 12 ticks, below the minimum.
        assert_eq!(r.timeout(), 0.2);
        r.back_off();
        assert_eq!(r.timeout(), 0.4);
        r.back_off();
        r.back_off();
        assert_eq!(r.srtt, 32);
        r.back_off();
        assert_eq!((r.srtt, r.rttvar), (0, 8 + 4));
    }
}

//! Loss recovery: from the third duplicate acknowledgement until everything outstanding at that moment is acknowledged, by
//! RFC 5681, 6582 or 6675.

use crate::clock::Clock;
use crate::tcp::control::Cause;
use crate::tcp::{Congestion, Host};

use super::Sender;
use super::scoreboard::Scoreboard;

/// RFC 5681 §3.2: three duplicate acknowledgements mean a loss.
pub const DUP_THRESH: u32 = 3;

/// How losses are recovered.
#[derive(Clone, Debug)]
pub enum Recovery {
    /// RFC 5681 §3.2: the first new acknowledgement ends recovery.
    Reno,
    /// RFC 6582: recovery ends when everything outstanding at its start is acknowledged.
    NewReno {
        /// Whether a partial acknowledgement has arrived in this recovery.
        partial_ack: bool,
    },
    /// RFC 6675: the scoreboard decides what is sent.
    Sack(Box<Scoreboard>),
}

impl Recovery {
    /// As the flow's congestion control has it.
    pub fn new(congestion: Congestion) -> Recovery {
        match congestion {
            Congestion::Reno => Recovery::Reno,
            Congestion::NewReno | Congestion::Cubic { sack: false } => {
                Recovery::NewReno { partial_ack: false }
            }
            Congestion::Sack | Congestion::Cubic { sack: true } | Congestion::Linux(_) => {
                Recovery::Sack(Box::default())
            }
        }
    }
}

impl<C: Clock> Sender<C> {
    /// A duplicate acknowledgement arrived.
    #[inline(never)]
    pub(super) fn on_dup_ack<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.dup_acks += 1;
        if self.in_recovery {
            if !matches!(self.recovery, Recovery::Sack(_)) {
                // RFC 5681 §3.2, step 4: inflate.
                self.cwnd += 1.0;
            }
            return;
        }
        let lost = match &self.recovery {
            // RFC 6675 §5, steps 1 and 2: three duplicates, or three SACKed segments above the hole.
            Recovery::Sack(scoreboard) => {
                self.dup_acks >= DUP_THRESH || scoreboard.lost_below() > self.snd_una
            }
            _ => self.dup_acks == DUP_THRESH,
        };
        // RFC 6582 §3.2, steps 2 and 4: duplicates caused by needless retransmissions are no loss; the heuristics that
        // recognise more of them are not implemented. RFC 6675 §5.1: after a timeout, everything outstanding at that
        // moment has to be acknowledged first.
        let above_recover = match &self.recovery {
            Recovery::Sack(_) => self.snd_una >= self.recover,
            _ => self.snd_una > self.recover,
        };
        if lost && above_recover {
            self.enter_recovery(host);
        }
    }

    /// RFC 5681 §3.2, steps 2 and 3; RFC 6675 §5, step 4. What limited transmit has sent does not count as FlightSize.
    fn enter_recovery<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.tally.fast_retransmits += 1;
        if !self.ecn.as_ref().is_some_and(|e| e.has_reacted_to_loss_of(self.snd_una)) {
            let flight = self.flight_size() - f64::from(self.limited_transmit_sent);
            self.ssthresh = self.reduce(Cause::Loss, flight).max(2.0);
            if let Some(ecn) = &mut self.ecn {
                ecn.on_reduction(self.snd_max, false);
            }
        }
        // From here on they count as FlightSize like any other.
        self.limited_transmit_sent = 0;
        // RFC 9406 §4.2: a loss ends the first slow start.
        self.first_slow_start = None;
        self.in_recovery = true;
        self.recovery_point = self.snd_max;
        self.timed = None;
        self.cwnd = self.ssthresh;
        match &mut self.recovery {
            Recovery::Sack(scoreboard) => {
                // RFC 6675 §5, step 4.3: no rescue retransmission before something above it is acknowledged.
                scoreboard.high_rxt = self.snd_una + 1;
                scoreboard.rescue_rxt = self.snd_una + 1;
            }
            Recovery::NewReno { partial_ack } => {
                *partial_ack = false;
                // RFC 6582 §3.2, step 2: duplicates of segments up to here start no further recovery.
                self.recover = self.snd_max;
                self.cwnd += f64::from(DUP_THRESH);
            }
            Recovery::Reno => self.cwnd += f64::from(DUP_THRESH),
        }
        self.repair(self.snd_una, host);
        self.restart_timer(host);
    }

    /// New data is acknowledged in recovery, all before `ack`. True: recovery goes on.
    #[inline(never)]
    pub(super) fn stays_in_recovery<H: Host<Clock = C>>(&mut self, ack: u32, host: &mut H) -> bool {
        let full = ack >= self.recovery_point;
        let first = match &mut self.recovery {
            // RFC 5681 §3.2, step 6: deflate.
            Recovery::Reno => {
                self.cwnd = self.ssthresh;
                return false;
            }
            Recovery::NewReno { .. } if full => {
                // RFC 6582 §3.2, step 3, full acknowledgement, option 1: no burst on leaving.
                let flight = f64::from(self.snd_nxt.max(ack) - ack);
                self.cwnd = self.ssthresh.min(flight.max(1.0) + 1.0);
                return false;
            }
            // RFC 6675 §5, step A: everything outstanding at the start of recovery is acknowledged.
            Recovery::Sack(_) if full => return false,
            Recovery::Sack(_) => {
                self.snd_una = ack;
                self.snd_nxt = self.snd_nxt.max(ack);
                self.restart_timer(host);
                return true;
            }
            Recovery::NewReno { partial_ack } => !std::mem::replace(partial_ack, true),
        };
        // RFC 6582 §3.2, step 3, partial acknowledgement: retransmit the next hole, and deflate by what was acknowledged
        // less one segment. Only the first one restarts the timer: the impatient variant.
        let acknowledged = f64::from(ack - self.snd_una);
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.repair(ack, host);
        self.cwnd = (self.cwnd - acknowledged + 1.0).max(1.0);
        if first {
            self.restart_timer(host);
        }
        true
    }

    /// RFC 6675 §5, step C: the segment to send next in recovery, as long as cwnd − pipe is at least one segment.
    pub(super) fn next_in_sack_recovery(&mut self) -> Option<u32> {
        let Recovery::Sack(scoreboard) = &mut self.recovery else { return None };
        if f64::from(scoreboard.pipe(self.snd_una, self.snd_max)) + 1.0 > self.cwnd {
            return None;
        }
        let new = (self.snd_nxt < (self.snd_una + self.rwnd).min(self.data_end)).then_some(self.snd_nxt);
        let segment = scoreboard.next_seg(self.snd_una, new, self.snd_max, self.recovery_point)?;
        if new == Some(segment) {
            self.snd_nxt += 1;
        }
        Some(segment)
    }
}

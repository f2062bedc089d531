//! Loss recovery: from the third duplicate to the acknowledgement of all that was out, by RFC 5681, 6582 or 6675.

use crate::clock::Clock;
use crate::tcp::{Congestion, Host};

use super::Sender;
use super::board::Board;

/// RFC 5681 §3.2: three duplicates mean a loss.
pub const DUPLICATES: u32 = 3;

/// How a loss is repaired.
#[derive(Clone, Debug)]
pub enum Recovery {
    /// RFC 5681 §3.2: the first new acknowledgement ends it.
    Reno,
    /// RFC 6582: it ends when all is acknowledged that was out at its start; whether a partial acknowledgement
    /// has come.
    NewReno { partial: bool },
    /// RFC 6675: what the receiver has decides what is sent.
    Sack(Box<Board>),
}

impl Recovery {
    /// As the flow is told.
    pub fn new(congestion: Congestion) -> Recovery {
        match congestion {
            Congestion::Reno => Recovery::Reno,
            Congestion::NewReno | Congestion::Cubic { sack: false } => Recovery::NewReno { partial: false },
            Congestion::Sack | Congestion::Cubic { sack: true } => Recovery::Sack(Box::default()),
        }
    }
}

impl<C: Clock> Sender<C> {
    /// New data is acknowledged in recovery. False if that ends it.
    pub(super) fn recovery_goes_on<H: Host<Clock = C>>(&mut self, next: u32, host: &mut H) -> bool {
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
            // RFC 6675 §5, step A: all is acknowledged that was out at its start.
            Recovery::Sack(_) if whole => return false,
            Recovery::Sack(_) => {
                self.una = next;
                self.nxt = self.nxt.max(next);
                self.restart_timer(host);
                return true;
            }
            Recovery::NewReno { partial } => !std::mem::replace(partial, true),
        };
        // RFC 6582 §3.2, step 3, partial acknowledgement: fill the next hole, and deflate by what was acknowledged, but
        // for one segment. Only the first one sets the timer: the impatient variant.
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

    pub(super) fn duplicate<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.duplicates += 1;
        if self.in_recovery {
            if !matches!(self.recovery, Recovery::Sack(_)) {
                // RFC 5681 §3.2, step 4: inflate.
                self.cwnd += 1.0;
            }
            return;
        }
        let lost = match &self.recovery {
            // RFC 6675 §5, steps 1 and 2: three duplicates, or three segments above the hole.
            Recovery::Sack(board) => self.duplicates >= DUPLICATES || board.lost_below() > self.una,
            _ => self.duplicates == DUPLICATES,
        };
        // RFC 6582 §3.2, steps 2 and 4: duplicates of what was repeated without need are no loss; the heuristics that
        // tell more of them apart are not there. RFC 6675 §5.1: after a timeout, all that was out then has to be
        // acknowledged.
        let past = match &self.recovery {
            Recovery::Sack(_) => self.una >= self.recover,
            _ => self.una > self.recover,
        };
        if lost && past {
            self.recover_loss(host);
        }
    }

    /// RFC 5681 §3.2, steps 2 and 3; RFC 6675 §5, step 4. What limited transmit sent does not count as flight.
    fn recover_loss<H: Host<Clock = C>>(&mut self, host: &mut H) {
        self.tally.fast_retransmits += 1;
        if !self.ecn.as_ref().is_some_and(|e| e.covers(self.una)) {
            let flight = self.flight() - f64::from(self.beyond_window);
            self.ssthresh = self.growth.reduce(self.cwnd, flight).max(2.0);
            if let Some(ecn) = &mut self.ecn {
                ecn.reduced(self.end, false);
            }
        }
        // From here on they are flight as any other.
        self.beyond_window = 0;
        self.in_recovery = true;
        self.recovery_point = self.end;
        self.timed = None;
        self.cwnd = self.ssthresh;
        match &mut self.recovery {
            Recovery::Sack(board) => {
                // RFC 6675 §5, step 4.3: no rescue either before something beyond it is acknowledged.
                board.repeated = self.una + 1;
                board.rescued = self.una + 1;
            }
            Recovery::NewReno { partial } => {
                *partial = false;
                // RFC 6582 §3.2, step 2: up to here duplicates will start no other recovery.
                self.recover = self.end;
                self.cwnd += f64::from(DUPLICATES);
            }
            Recovery::Reno => self.cwnd += f64::from(DUPLICATES),
        }
        self.transmit(self.una, host);
        self.restart_timer(host);
    }

    /// RFC 6675 §5, step C: the segment to send next in recovery, as long as the pipe has room (NextSeg()).
    pub(super) fn next_by_board(&mut self) -> Option<u32> {
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
        if self.nxt < (self.una + self.window).min(self.last) {
            self.nxt += 1;
            return Some(self.nxt - 1);
        }
        if let Some(at) = hole(board, false) {
            return Some(at);
        }
        // Rule 4: once a recovery, the highest one that is out and not selected, so that a lost tail needs no timeout.
        if self.una <= board.rescued {
            return None;
        }
        board.rescued = self.recovery_point;
        Some(board.lacks_last(self.end))
    }
}

//! Undoing a reduction of the window that was for nothing: once every segment that was sent again has arrived twice, as duplicate SACKs
//! (RFC 2883 §5) tell, as Linux does it. RFC 3708 has the same test, with a slow start back to the old window.
//!
//! Linux also compares timestamps (RFC 3522), which no profile carries.

use crate::tcp::control::Window;

/// Linux's `tcp_current_ssthresh` (RFC 2861 §3): three quarters of a window that was in use, of whole segments.
pub fn current_ssthresh(window: Window) -> f64 {
    let cwnd = window.cwnd as u32;
    window.ssthresh.max(f64::from(cwnd / 2 + cwnd / 4))
}

/// A reduction for a loss.
#[derive(Clone, Debug)]
pub struct Undo {
    /// The values before the reduction; none if a mark asked for a reduction, too (`prior_ssthresh` is 0).
    prior: Option<Window>,
    /// SND.UNA at that time (`undo_marker`): segments below it are another recovery's.
    marker: u32,
    /// Retransmissions that have not arrived twice (`undo_retrans`); none before the first.
    in_doubt: Option<u32>,
}

impl Undo {
    /// A recovery begins with all before `una` acknowledged, and so many retransmissions in flight.
    pub fn new(una: u32, again: u32) -> Undo {
        Undo { prior: None, marker: una, in_doubt: (again > 0).then_some(again) }
    }

    /// It restores this window, which is about to be reduced.
    pub fn to(self, prior: Window) -> Undo {
        let ssthresh = current_ssthresh(prior);
        Undo { prior: Some(Window { ssthresh, ..prior }), ..self }
    }

    /// An ECN-Echo arrived: the reduction is due, whatever becomes of the loss (RFC 3168 §6.1.2).
    pub fn forbid(&mut self) {
        self.prior = None;
    }

    /// The values before the reduction, if they may be restored.
    pub fn prior(&self) -> Option<Window> {
        self.prior
    }

    /// A segment was sent again.
    pub fn sent_again(&mut self) {
        *self.in_doubt.get_or_insert(0) += 1;
    }

    /// A segment has arrived twice. True: so have all; nothing was lost.
    pub fn arrived_twice(&mut self, segment: u32) -> bool {
        if let Some(in_doubt) = self.in_doubt.as_mut().filter(|_| segment >= self.marker) {
            *in_doubt = in_doubt.saturating_sub(1);
        }
        self.in_doubt == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2883 §5: only when each of them has arrived twice, and only those of this recovery count. RFC 2861 §3: the threshold is no less than
    /// three quarters of the window.
    #[test]
    fn all_have_to_arrive_twice() {
        let mut undo = Undo::new(7, 0).to(Window { cwnd: 40.0, ssthresh: 10.0 });
        assert!(!undo.arrived_twice(9), "nothing was sent again");
        undo.sent_again();
        undo.sent_again();
        assert!(!undo.arrived_twice(3), "of an earlier recovery");
        assert!(!undo.arrived_twice(7));
        assert!(undo.arrived_twice(8));
        assert_eq!(undo.prior(), Some(Window { cwnd: 40.0, ssthresh: 30.0 }));
        let mut undo = Undo::new(7, 1).to(Window { cwnd: 40.0, ssthresh: 50.0 });
        undo.sent_again();
        assert!(!undo.arrived_twice(7), "one was in flight before");
        assert_eq!(undo.prior().map(|window| window.ssthresh), Some(50.0));
    }
}

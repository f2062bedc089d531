//! The SYN is acknowledged: the initial window, and what the two ends have negotiated about ECN.

use inprofile_core::packet::Ecn as CodePoint;

use super::pacing::Pacer;
use super::undo::current_ssthresh;
use super::{FRACTION, Sender, State};
use crate::clock::Clock;
use crate::tcp::{Feedback, Flags, Host};

impl<C: Clock> Sender<C> {
    /// The SYN is acknowledged, by a SYN/ACK with these flags. RFC 6928 §2: the initial window; RFC 6298 §5.7, if the SYN had timed out. Returns
    /// whether the SYN was marked (RFC 9768 §3.2.2.2: the congestion control responds, and the counter stays as it is).
    #[cold]
    pub(super) fn connected(&mut self, answer: Flags) -> bool {
        if self.tally.timeouts > 0 {
            self.timeout.syn_was_lost();
        }
        self.state = State::Open;
        self.cwnd = f64::from(self.initial_window);
        let Some(ecn) = &mut self.ecn else { return false };
        let agreed = ecn.agree(answer, self.tally.timeouts);
        self.control.agreed(agreed.mode, ecn.code_point());
        // The room and the pacer follow from the control: see [`Sender::new`].
        self.room = if self.control.rounds_up() { FRACTION } else { 1.0 };
        if self.pacer.is_some() {
            self.pacer = Some(Pacer::new(self.segment, self.control.train()));
        }
        if agreed.mode != Some(Feedback::Counter) {
            self.marks = None;
        }
        if agreed.mode.is_none() {
            self.ecn = None;
        }
        agreed.arrived == Some(CodePoint::Experienced)
    }
}

impl<C: Clock> Sender<C> {
    /// Everything is acknowledged, and the application has data again; a segment was last sent at `last_sent`.
    pub fn resume<H: Host<Clock = C>>(&mut self, last_sent: C, host: &mut H) {
        let now = host.now();
        if self.control.restarts_slowly() {
            self.restart_slowly(C::secs_of(now.since(last_sent)), now.secs());
        }
        self.send_data(now.secs(), host);
    }

    /// Nothing was sent for `idle` seconds.
    fn restart_slowly(&mut self, idle: f64, now: f64) {
        let mut window = self.window();
        let rto = self.timeout.secs();
        if idle > rto {
            window.ssthresh = current_ssthresh(window);
            let halvings = libm::ceil(idle / rto) - 1.0;
            let least = window.cwnd.min(f64::from(self.initial_window));
            window.cwnd = libm::floor(window.cwnd * libm::exp2(-halvings)).max(least);
        }
        self.control.restarts_from_idle(now, &mut window);
        (self.cwnd, self.ssthresh) = (window.cwnd, window.ssthresh);
    }
}

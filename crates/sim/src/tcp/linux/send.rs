//! The initial window; the order and the times of sending: lost segments first, as many as the window allows, in trains where the sender paces.

use inprofile_core::packet::Ecn as CodePoint;

use super::losses::current_ssthresh;
use super::pacing::Pacer;
use super::{FRACTION, Pending, Sender, State};
use crate::clock::Clock;
use crate::tcp::{EcnBits, Feedback, Flags, Host, TimerKind};

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

impl<C: Clock> Sender<C> {
    /// Sends what the window allows, lost segments first; `now` in seconds.
    #[inline(always)]
    pub(super) fn send<H: Host<Clock = C>>(&mut self, jitter_over: bool, now: f64, host: &mut H) {
        let waits = !jitter_over && host.timer_is_set(TimerKind::Send);
        if !waits && self.has_room() {
            if self.pacer.is_some() {
                self.send_trains(now, host);
            } else {
                self.send_window(jitter_over, host);
            }
        }
    }

    /// Sends what the application has data for. RFC 8985 §7.2: new segments start the probe's timer anew.
    pub(super) fn send_data<H: Host<Clock = C>>(&mut self, now: f64, host: &mut H) {
        let max = self.board.max();
        self.send(false, now, host);
        if self.board.max() > max && self.pending == Pending::Probe {
            self.set_timer(None, host);
        }
    }

    /// Whether the window has room for a segment.
    #[inline(always)]
    fn has_room(&self) -> bool {
        f64::from(self.board.in_flight()) + self.room <= self.cwnd
    }

    #[inline(never)]
    fn send_window<H: Host<Clock = C>>(&mut self, jitter_over: bool, host: &mut H) {
        let Some(mut next) = self.next_in_window() else { return };
        if self.jitter > 0.0 && !jitter_over {
            let delay = self.jitter * host.uniform();
            return host.set_timer(TimerKind::Send, C::span_secs(delay));
        }
        loop {
            self.send_one(next, host);
            let Some(another) = self.next_segment() else { return };
            next = another;
        }
    }

    /// Sends what the window allows in trains, as far as they are due; sets the timer for the next one.
    #[inline(never)]
    fn send_trains<H: Host<Clock = C>>(&mut self, now: f64, host: &mut H) {
        let Some(mut next) = self.next_in_window() else { return };
        while let Some(pacer) = &mut self.pacer {
            if let Some(wait) = pacer.wait(now) {
                return host.set_timer(TimerKind::Send, C::span_secs(wait));
            }
            // What the train may still have, and what has left of it: Linux counts data only.
            let (mut more, mut left) = (pacer.train(), 0);
            let another = loop {
                self.send_one(next, host);
                left += u32::from(next > 0);
                more -= 1;
                let another = self.next_segment();
                match another {
                    Some(segment) if more > 0 => next = segment,
                    _ => break another,
                }
            };
            if let Some(pacer) = &mut self.pacer {
                pacer.left(left, now);
            }
            let Some(segment) = another else { return };
            next = segment;
        }
    }

    /// The next segment to send, if the window has room: a lost segment, or new data.
    #[inline(always)]
    fn next_segment(&mut self) -> Option<u32> {
        if self.has_room() { self.next_in_window() } else { None }
    }

    /// The next segment to send, as the window has room.
    #[inline(always)]
    fn next_in_window(&mut self) -> Option<u32> {
        match self.board.first_lost() {
            // RFC 5682 §2.1, step 2b.
            Some(lost) if !self.new_first || self.board.max() >= self.limit() => Some(lost),
            _ if self.board.max() < self.limit() => Some(self.board.max()),
            _ => {
                // draft-ietf-ccwg-bbr §4.1.1: a receiver's window that is full is no lack of data.
                if self.board.max() >= self.data_end {
                    self.out_of_data();
                }
                None
            }
        }
    }

    #[inline(always)]
    fn send_one<H: Host<Clock = C>>(&mut self, segment: u32, host: &mut H) {
        self.note_again(segment);
        self.transmit(segment, host);
        if !host.timer_is_set(TimerKind::Retransmit) {
            self.set_timer(None, host);
        }
    }

    /// A segment is about to be sent, and not as a probe: if it was sent before, its reduction of the window waits for it.
    pub(super) fn note_again(&mut self, segment: u32) {
        if segment < self.board.max()
            && let Some(undo) = &mut self.undo
        {
            undo.sent_again();
        }
    }

    /// Sends a segment without regard to the trains' times, which it puts off.
    #[inline(never)]
    pub(super) fn transmit_alone<H: Host<Clock = C>>(&mut self, segment: u32, host: &mut H) {
        self.transmit(segment, host);
        if let Some(pacer) = &mut self.pacer {
            pacer.left(1, host.now().secs());
        }
    }

    #[inline(always)]
    fn transmit<H: Host<Clock = C>>(&mut self, segment: u32, host: &mut H) {
        if self.board.in_flight() == 0 {
            self.send_first(host.now());
        }
        let again = segment < self.board.max();
        let bits =
            self.ecn.as_mut().map_or(EcnBits::default(), |e| e.bits(segment, again, self.tally.timeouts));
        host.send(segment, bits);
        self.board.sent(segment, host.now());
        if let Some(delivery) = &mut self.delivery {
            delivery.sent(segment, self.board.in_flight(), host.now());
        }
        if again {
            self.tally.retransmissions += 1;
        }
        if let State::Reduction(prr) | State::Recovery(prr) = &mut self.state {
            prr.sent();
        }
    }

    /// The window has room, and there is nothing to send.
    pub(super) fn out_of_data(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            delivery.app_limited(self.board.in_flight());
        }
    }

    /// A segment is about to leave, and none is in flight.
    #[cold]
    fn send_first(&mut self, now: C) {
        if let Some(last) = self.rack.last_sent() {
            self.control.starts(last.secs(), now.secs());
        }
        if self.delivery.as_ref().is_some_and(|d| d.is_app_limited()) {
            self.restart_from_idle(now.secs());
        }
    }

    /// Nothing is in flight, as there was no data until now.
    fn restart_from_idle(&mut self, now: f64) {
        let mut window = self.window();
        self.control.restarts_from_idle(now, &mut window);
        self.cwnd = window.cwnd;
        if let Some(pacer) = &mut self.pacer
            && let Some(rate) = self.control.pacing_rate(&window, 0, self.timeout.srtt())
        {
            pacer.set_rate(rate);
        }
    }

    /// The rate at which segments leave, after an acknowledgement.
    #[inline(always)]
    pub(super) fn set_pacing_rate(&mut self, rtt: Option<f64>) {
        let window = self.window();
        let Some(pacer) = &mut self.pacer else { return };
        if let Some(rtt) = rtt {
            pacer.measured(rtt);
        }
        match self.control.pacing_rate(&window, self.board.in_flight(), self.timeout.srtt()) {
            Some(rate) => pacer.set_rate(rate),
            None => pacer.follow_window(self.cwnd, self.ssthresh, self.board.max() - self.board.una()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;
    use crate::tcp::control::Kind;
    use crate::tcp::{Config, Congestion, Profile};

    /// draft-briscoe-iccrg-prague-congestion-control-04 §2.5.1: max(cwnd, inflight) over the smoothed round-trip time.
    #[test]
    fn pragues_rate_is_of_what_is_in_flight() {
        let mut sender = Sender::<Exact>::new(&Config {
            profile: Profile::Linux,
            congestion: Congestion::Linux(Kind::Prague),
            pacing: true,
            ecn: true,
            accurate_ecn: true,
            ..Config::plain()
        });
        (sender.cwnd, sender.ssthresh) = (40.0, 40.0);
        sender.timeout.sample(0.05);
        let mut rate = |in_flight: u32| {
            (sender.board.max()..in_flight).for_each(|n| sender.board.sent(n, Exact(0)));
            sender.set_pacing_rate(Some(0.05));
            sender.pacer.as_ref().expect("it paces").rate()
        };
        assert_eq!((rate(30), rate(60)), (800.0, 1200.0));
    }
}

//! A pause of the application after which it has data again: the window comes down first (RFC 5681 §4.1), as in Linux (`tcp_cwnd_restart`), by half for each
//! retransmission timeout that has passed, and not below the initial window.

use crate::clock::Clock;
use crate::tcp::Host;

use super::Sender;
use super::undo::current_ssthresh;

impl<C: Clock> Sender<C> {
    /// Everything is acknowledged, and the application has data again; a segment was last sent at `last_sent`.
    pub fn resume<H: Host<Clock = C>>(&mut self, last_sent: C, host: &mut H) {
        let now = host.now();
        if self.control.restarts_slowly() {
            self.restart_slowly(C::secs_of(now.since(last_sent)), now.secs());
        }
        self.send_data(now.secs(), host);
    }

    /// Nothing was sent for so many seconds.
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

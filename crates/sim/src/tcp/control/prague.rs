//! Prague (draft-briscoe-iccrg-prague-congestion-control-04; the L4S requirements of RFC 9331 §4): DCTCP for the Internet. Its packets
//! are ECT(1), each mark counts, short round trips gain nothing, and a loss is answered as Reno does.
//!
//! Where the draft names figures of Linux's implementation, they are taken. Not implemented: detection of queues that mark ECT(1) as
//! they would drop (RFC 9331 §4.3 leaves it to the operator; off by default in Linux), the paced chirping and other variants of §3.

use super::dctcp::average;
use super::reno::Reno;
use super::{Cause, Law, Phase, Sample, Window};

/// §2.4.4: the virtual round-trip time is at least this.
const RTT_VIRT_MIN: f64 = 25e-3;
/// §2.4.4: so many round trips after slow start the virtual round-trip time counts; before, a flow may need its speed.
const ROUNDS: u32 = 500;
/// §2.5.2: a train of segments takes no longer than this at the pacing rate; a quarter of the queue at which a queue marks.
const TRAIN: f64 = 1.0 / 4096.0;
/// RFC 9331 §4.3 has a connection respond down to a window of a segment or less; as Linux's, this one stops at two.
const MIN_WINDOW: f64 = 2.0;

/// The share of marked segments, and when it last reduced the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Prague {
    /// §2.3.2: the moving average; 1 until the first mark, which thus halves the window.
    alpha: f64,
    /// A mark has been seen. Before, there may be no L4S queue on the path, and the average stays.
    saw_mark: bool,
    acked: u64,
    marked: u64,
    /// The round trip ends when more than this is acknowledged.
    round_end: u32,
    /// Round trips since slow start.
    rounds: u32,
    /// When the average was last brought up to date.
    averaged_at: f64,
    /// No further reduction before more than this is acknowledged.
    reduced_end: u32,
    reduced_at: f64,
}

impl Default for Prague {
    fn default() -> Prague {
        Prague {
            alpha: 1.0,
            saw_mark: false,
            acked: 0,
            marked: 0,
            round_end: 0,
            rounds: 0,
            averaged_at: f64::NEG_INFINITY,
            reduced_end: 0,
            reduced_at: f64::NEG_INFINITY,
        }
    }
}

impl Prague {
    /// §2.4.4: the virtual round-trip time, and whether it counts.
    fn virtual_rtt(&self, srtt: f64) -> Option<f64> {
        (self.rounds >= ROUNDS && srtt > 0.0).then(|| srtt.max(RTT_VIRT_MIN))
    }

    /// §2.4.4: the additive increase in segments a round trip, so that the window grows as fast in time as that of a flow with the
    /// virtual round-trip time, and the rate, too.
    fn increase(&self, srtt: f64) -> f64 {
        self.virtual_rtt(srtt).map_or(1.0, |rtt| (srtt / rtt) * (srtt / rtt))
    }

    /// §2.3.2: the average, once a round trip, and once a virtual one.
    fn average(&mut self, sample: &Sample, slow_start: bool) {
        self.acked += u64::from(sample.delivered);
        self.marked += u64::from(sample.marked.min(sample.delivered));
        let soon = self.virtual_rtt(sample.srtt).is_some_and(|rtt| sample.now - self.averaged_at < rtt);
        if sample.una <= self.round_end || soon {
            return;
        }
        if self.saw_mark && self.acked > 0 {
            self.alpha = average(self.alpha, self.marked as f64 / self.acked as f64);
            self.averaged_at = sample.now;
        }
        (self.acked, self.marked) = (0, 0);
        self.round_end = sample.next;
        self.rounds = self.rounds.saturating_add(u32::from(!slow_start));
    }

    /// §2.4.2: at once with the first mark, by half the average, then not again for a round trip.
    fn on_marks(&mut self, sample: &Sample, window: &mut Window) {
        self.saw_mark = true;
        let soon = self.virtual_rtt(sample.srtt).is_some_and(|rtt| sample.now - self.reduced_at < rtt);
        if sample.una <= self.reduced_end || soon {
            return;
        }
        window.cwnd = self.reduce(Cause::Mark, window.cwnd, window.cwnd).max(MIN_WINDOW);
        window.ssthresh = window.cwnd;
        (self.reduced_end, self.reduced_at) = (sample.next, sample.now);
    }

    /// §2.4.3: what is not marked increases the window, also in a round trip that has reduced it.
    fn grow(&self, unmarked: u32, sample: &Sample, window: &mut Window) {
        let mut unmarked = f64::from(unmarked);
        if window.cwnd < window.ssthresh {
            let room = (window.ssthresh - window.cwnd).min(unmarked);
            window.cwnd += room;
            unmarked -= room;
        }
        window.cwnd += unmarked * self.increase(sample.srtt) / window.cwnd;
    }
}

impl Law for Prague {
    fn acknowledged(&mut self, sample: &Sample, window: &mut Window) -> bool {
        if sample.next <= 1 {
            // The SYN's acknowledgement is none of data.
            return false;
        }
        let slow_start = window.cwnd < window.ssthresh;
        // §2.4.1: while a loss is recovered from, the sender reduces the window as for any other control.
        let own = sample.phase == Phase::Open;
        if own {
            if sample.marked > 0 {
                self.on_marks(sample, window);
            }
            let unmarked = sample.delivered.saturating_sub(sample.marked);
            // As in Linux: in slow start a window that is half used grows.
            let used = sample.limited || slow_start && window.cwnd < 2.0 * f64::from(sample.prior_in_flight);
            if unmarked > 0 && used {
                self.grow(unmarked, sample, window);
            }
        }
        self.average(sample, slow_start);
        own
    }

    fn avoid(&mut self, cwnd: f64, segments: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        // Where the sender grows the window itself, after a timeout.
        cwnd + f64::from(segments) / cwnd
    }

    fn reduce(&mut self, cause: Cause, cwnd: f64, flight: f64) -> f64 {
        match cause {
            Cause::Mark => cwnd * (1.0 - self.alpha / 2.0),
            // §2.4.1, RFC 9331 §4.3: as a Reno-friendly control.
            Cause::Loss | Cause::Timeout => Reno.reduce(cause, cwnd, flight),
        }
    }

    /// §2.5.1: the window over a round-trip time; twice that while the window doubles.
    fn pacing_rate(&self, window: &Window, srtt: f64) -> Option<f64> {
        let gain = if window.cwnd < window.ssthresh / 2.0 { 2.0 } else { 1.0 };
        (srtt > 0.0).then(|| gain * window.cwnd / srtt)
    }

    fn train(&self) -> Option<f64> {
        Some(TRAIN)
    }
}

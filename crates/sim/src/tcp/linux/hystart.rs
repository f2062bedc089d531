//! HyStart, as Linux's CUBIC has it (Ha and Rhee 2011): slow start ends before it overflows the path, once a train of acknowledgements
//! spans the round-trip time, or the shortest round-trip time of a round is clearly above the shortest of all. Once it has ended one, it ends
//! no other until a timeout.

/// In seconds and segments: Linux's `hystart_ack_delta_us`, `hystart_low_window`, `HYSTART_MIN_SAMPLES`, `HYSTART_DELAY_MIN`,
/// `HYSTART_DELAY_MAX`.
const ACK_DELTA: f64 = 2e-3;
const LOW_WINDOW: f64 = 16.0;
const SAMPLES: u32 = 8;
const DELAY: (f64, f64) = (4e-3, 16e-3);
/// The delay that offloading may add to a round-trip time (`hystart_ack_delay`); less only above 2 Gbit/s.
const ACK_DELAY: f64 = 1e-3;

/// The measurements of the round under way.
#[derive(Clone, Debug)]
pub struct HyStart {
    /// The round ends when this is acknowledged.
    end: u32,
    began: f64,
    /// The last acknowledgement of the train.
    last: f64,
    /// The shortest round-trip time of the first samples of the round.
    shortest: f64,
    samples: u32,
    /// The shortest of all.
    delay_min: f64,
    /// It has ended a slow start.
    found: bool,
}

impl HyStart {
    /// Before the first round.
    pub fn new() -> HyStart {
        HyStart {
            end: 0,
            began: 0.0,
            last: 0.0,
            shortest: f64::INFINITY,
            samples: 0,
            delay_min: f64::INFINITY,
            found: false,
        }
    }

    /// A round begins, of all before `max`.
    fn begin(&mut self, max: u32, now: f64) {
        *self = HyStart {
            end: max,
            began: now,
            last: now,
            delay_min: self.delay_min,
            found: self.found,
            ..HyStart::new()
        };
    }

    /// The retransmission timer expired: the path may be another.
    pub fn timed_out(&mut self, max: u32, now: f64) {
        (self.delay_min, self.found) = (f64::INFINITY, false);
        self.begin(max, now);
    }

    /// An acknowledgement of all before `una` arrived in slow start, with a round-trip time in seconds if one was measured; `paced`:
    /// segments leave at a rate. True: slow start ends.
    pub fn acknowledged(
        &mut self,
        una: u32,
        max: u32,
        cwnd: f64,
        rtt: Option<f64>,
        paced: bool,
        now: f64,
    ) -> bool {
        let Some(rtt) = rtt else { return false };
        self.delay_min = self.delay_min.min(rtt);
        if self.found {
            return false;
        }
        if una > self.end {
            self.begin(max, now);
        }
        self.found = cwnd >= LOW_WINDOW && self.ends(rtt, paced, now);
        self.found
    }

    /// Whether slow start ends, in a window that is large enough.
    fn ends(&mut self, rtt: f64, paced: bool, now: f64) -> bool {
        if now - self.last <= ACK_DELTA {
            self.last = now;
            // Half of the round trip; all of it where the sender paces, which spreads a window over half.
            let share = if paced { 1.0 } else { 0.5 };
            if now - self.began > (self.delay_min + ACK_DELAY) * share {
                return true;
            }
        }
        self.shortest = self.shortest.min(rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        self.shortest > self.delay_min + (self.delay_min / 8.0).clamp(DELAY.0, DELAY.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledgements of one segment each `gap` seconds from `from` on, the window one segment larger with each; when slow start ends.
    fn train(h: &mut HyStart, una: u32, cwnd: f64, gap: f64, from: f64) -> Option<f64> {
        (0..60).map(|i| (una + i, cwnd + f64::from(i), from + gap * f64::from(i))).find_map(
            |(una, cwnd, now)| h.acknowledged(una, una + 60, cwnd, Some(0.04), false, now).then_some(now),
        )
    }

    /// Linux's `hystart_low_window`: rounds are counted in any window, but acknowledgements only from a window of 16 on, so a train is one that begins with its
    /// round. It is long when it takes half of a round trip and a millisecond: 20.5 ms.
    #[test]
    fn a_train_begins_with_its_round_in_a_window_of_sixteen() {
        let ends = |cwnd, gap| train(&mut HyStart::new(), 2, cwnd, gap, 0.0);
        assert_eq!(ends(15.0, 0.0015), Some(0.0015 * 14.0));
        assert_eq!(ends(10.0, 0.0015), None);
        // With a gap of more than 2 ms it is no train.
        assert_eq!(ends(20.0, 0.0025), None);
    }

    /// Linux's `found`: what has ended a slow start once ends no other, until a timeout.
    #[test]
    fn it_ends_slow_start_once() {
        let mut h = HyStart::new();
        assert!(train(&mut h, 2, 20.0, 0.0015, 0.0).is_some());
        assert_eq!(train(&mut h, 400, 20.0, 0.0015, 10.0), None);
        h.timed_out(800, 20.0);
        assert!(train(&mut h, 900, 20.0, 0.0015, 30.0).is_some());
    }

    /// As in Linux (`bictcp_reset`), after a timeout nothing is known of the path: a longer round trip is no queue.
    #[test]
    fn a_timeout_forgets_the_path() {
        for forget in [false, true] {
            let mut h = HyStart::new();
            h.acknowledged(2, 40, 20.0, Some(0.04), false, 0.0);
            if forget {
                h.timed_out(60, 1.0);
            }
            let ends = (0..9)
                .any(|i| h.acknowledged(61 + i, 100, 20.0, Some(0.06), false, 2.0 + 0.01 * f64::from(i)));
            assert_eq!(ends, !forget);
        }
    }
}

//! HyStart, as Linux's CUBIC has it (Ha and Rhee 2011): slow start ends before it overflows the path, once a train of acknowledgements
//! spans the round-trip time, or the shortest round-trip time of a round is clearly above the shortest of all.

/// In seconds and segments: Linux's `hystart_ack_delta_us`, `hystart_low_window`, `HYSTART_MIN_SAMPLES`, `HYSTART_DELAY_MIN`,
/// `HYSTART_DELAY_MAX`.
const ACK_DELTA: f64 = 2e-3;
const LOW_WINDOW: f64 = 16.0;
const SAMPLES: u32 = 8;
const DELAY: (f64, f64) = (4e-3, 16e-3);

/// What it knows of the round under way.
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
        }
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
        if una > self.end {
            self.end = max;
            (self.began, self.last) = (now, now);
            (self.shortest, self.samples) = (f64::INFINITY, 0);
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        if now - self.last <= ACK_DELTA {
            self.last = now;
            // Half of the round trip; all of it where the sender paces, which spreads a window over half.
            let share = if paced { 1.0 } else { 0.5 };
            if now - self.began > self.delay_min * share {
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

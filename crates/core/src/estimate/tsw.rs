//! The time-sliding window: an estimate of a flow's rate whose memory is a length of time, not a number of packets.
//!
//! At each packet the window is taken to hold rate · length bytes; the packet's bytes are added, and the window is extended by
//! the time since the last packet. So a burst raises the estimate at once by size / length, silence of one window's length
//! halves it, and the state is one number.
//! Source: Clark and Fang 1998, §3.3, Fig. 3; RFC 2859 §3. Non-goal: the exact count over a window, which would need the time
//! of every packet.

use crate::units::{Duration, Rate, Time};

/// A rate over a time-sliding window. Times are seconds in double precision.
#[derive(Clone, Debug)]
pub struct TswRate {
    /// Bytes a second.
    avg_rate: f64,
    /// Length of the window in seconds.
    win_length: f64,
    /// When the last packet came, in seconds.
    t_front: f64,
    /// The next packet's time as [told](TswRate::tell_secs), in seconds; NaN if nobody has.
    told: f64,
}

impl TswRate {
    /// Starts from `rate` at time 0 (RFC 2859 §3: the committed target rate).
    #[must_use]
    pub fn new(rate: Rate, win_length: Duration) -> TswRate {
        TswRate { avg_rate: rate.0 as f64 / 8.0, win_length: win_length.secs(), t_front: 0.0, told: f64::NAN }
    }

    /// Tells the time of the next packet in seconds, where the clock is finer than [`Time`].
    pub fn tell_secs(&mut self, secs: f64) {
        self.told = secs;
    }

    /// Updates the estimate with a packet of `size` bytes on the wire, and returns it in bytes a second.
    #[inline]
    pub fn packet(&mut self, now: Time, size: u32) -> f64 {
        let secs = if self.told.is_nan() { now.secs() } else { std::mem::replace(&mut self.told, f64::NAN) };
        self.avg_rate = after(self.avg_rate, self.win_length, secs - self.t_front, f64::from(size));
        self.t_front = secs;
        self.avg_rate
    }

    /// The estimate as of the last packet, in bit/s.
    #[must_use]
    pub fn bits_per_second(&self) -> f64 {
        self.avg_rate * 8.0
    }
}

/// The estimate after a packet of `size` bytes that came `gap` seconds after the one before (RFC 2859 §3, Fig. 2).
#[inline]
fn after(avg_rate: f64, win_length: f64, gap: f64, size: f64) -> f64 {
    (avg_rate * win_length + size) / (gap + win_length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000_000)
    }

    /// RFC 2859 §3, Fig. 2.
    #[test]
    fn by_hand() {
        // 8 kbit/s is 1,000 B/s. 500 B after half a window of 1 s: (1000 + 500) / 1.5.
        let mut tsw = TswRate::new(Rate(8_000), Duration::from_millis(1000));
        assert_eq!(tsw.packet(ms(500), 500), 1000.0);
        // A burst counts at once, (1000 + 1000) / 1; silence of one window halves.
        assert_eq!(tsw.packet(ms(500), 1000), 2000.0);
        assert_eq!(tsw.packet(ms(1500), 0), 1000.0);
        assert_eq!(tsw.bits_per_second(), 8_000.0);
    }

    #[test]
    fn a_told_time_counts_once() {
        let mut tsw = TswRate::new(Rate(8_000), Duration::from_millis(1000));
        tsw.tell_secs(1.0);
        assert_eq!(tsw.packet(ms(999), 0), 500.0);
        assert_eq!(tsw.packet(ms(2000), 0), 250.0);
    }

    proptest! {
        /// Of a steady stream the estimate becomes its rate, wherever it started.
        #[test]
        fn finds_a_steady_rate(start in 1u64..10_000_000, gap in 1u64..200, size in 40u32..1500, win in 10u64..2000) {
            let mut tsw = TswRate::new(Rate(start), Duration::from_millis(win));
            let packets = 40 * (win / gap + 1);
            for i in 1..=packets {
                tsw.packet(ms(i * gap), size);
            }
            let rate = f64::from(size) * 8.0 / (gap as f64 * 1e-3);
            // The fixed point is size / gap exactly; what is left of the start fades by win / (win + gap) a packet.
            prop_assert!((tsw.bits_per_second() / rate - 1.0).abs() < 1e-6 * (start as f64 / rate).max(1.0));
        }

        /// Clark and Fang 1998, §3.3: twice the same from the definition, unrolled: each packet's bytes, faded by every stretch after it.
        #[test]
        fn agrees_with_the_sum_over_all_packets(gaps in prop::collection::vec((0u64..3000, 40u32..1500), 1..60)) {
            let mut tsw = TswRate::new(Rate(800_000), Duration::from_millis(500));
            let mut t = 0;
            for &(gap, size) in &gaps {
                t += gap;
                tsw.packet(ms(t), size);
            }
            let fade = |gap: u64| 0.5 / (gap as f64 * 1e-3 + 0.5);
            let from = |i: usize| gaps[i..].iter().map(|g| fade(g.0)).product::<f64>();
            let bytes = |i: usize| f64::from(gaps[i].1) / 0.5 * from(i);
            let slow = 100_000.0 * from(0) + (0..gaps.len()).map(bytes).sum::<f64>();
            prop_assert!((tsw.bits_per_second() / (8.0 * slow) - 1.0).abs() < 1e-9);
        }
    }
}

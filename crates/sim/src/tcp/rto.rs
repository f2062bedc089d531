//! The retransmission timeout (RTO), from measured round-trip times.

use inprofile_core::units::Duration;

/// RFC 6298, in seconds, with a clock fine enough that its granularity never counts.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Rto {
    min: f64,
    rttvar: f64,
    rto: f64,
    /// Smoothed round-trip time; below zero: none measured yet. Last, as some ask for it with each acknowledgement.
    srtt: f64,
}

/// RFC 6298 §2.5: "MAY be placed on RTO provided it is at least 60 seconds".
const MAX_RTO: f64 = 60.0;

impl Rto {
    /// Before the first measurement: one second (RFC 6298 §2.1), or `min` if that is more.
    #[must_use]
    pub fn new(min: Duration) -> Rto {
        let min = min.secs();
        Rto { srtt: -1.0, rttvar: 0.0, rto: min.max(1.0), min }
    }

    /// The maximum RTO.
    fn max(&self) -> f64 {
        self.min.max(MAX_RTO)
    }

    /// A round-trip time in seconds, of a segment that was sent once (RFC 6298 §3, Karn's rule): once a round trip.
    #[inline(never)]
    pub fn sample(&mut self, rtt: f64) {
        if self.srtt < 0.0 {
            // RFC 6298 §2.2: the first measurement, and half of it for the variation.
            self.srtt = rtt;
            self.rttvar = rtt / 2.0;
        } else {
            // RFC 6298 §2.3: α = 1/8, β = 1/4, the variation first.
            self.rttvar = 0.75 * self.rttvar + 0.25 * (rtt - self.srtt).abs();
            self.srtt += (rtt - self.srtt) / 8.0;
        }
        self.rto = (self.srtt + 4.0 * self.rttvar).clamp(self.min, self.max());
    }

    /// The smoothed round-trip time in seconds; none before one is measured.
    #[must_use]
    pub fn srtt(&self) -> f64 {
        self.srtt.max(0.0)
    }

    /// What the RTO would be doubled this many times more, up to the same maximum; the RTO itself stays.
    #[must_use]
    pub fn backed_off(&self, times: u32) -> f64 {
        (self.rto * libm::exp2(f64::from(times))).min(self.max())
    }

    /// RFC 6298 §5.5: the timer expired, so the RTO doubles, at most to 60 s or the minimum RTO if that is more.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2.0).min(self.max());
    }

    /// RFC 6298 §5.7: the SYN had timed out, so the RTO for the first data is three seconds, however long it was for
    /// the SYN; unless the minimum is longer.
    pub fn syn_was_lost(&mut self) {
        if self.min < 3.0 {
            self.rto = 3.0;
        }
    }

    /// The RTO in seconds.
    #[must_use]
    pub fn timeout(&self) -> f64 {
        self.rto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc6298_by_hand() {
        let mut r = Rto::new(Duration::from_millis(1));
        assert_eq!(r.timeout(), 1.0);
        r.sample(0.1);
        assert!((r.timeout() - 0.3).abs() < 1e-12);
        r.sample(0.2);
        // rttvar = 0.75·0.05 + 0.25·0.1 = 0.0625; srtt = 0.1125
        assert!((r.timeout() - (0.1125 + 0.25)).abs() < 1e-12);
        r.back_off();
        assert!((r.timeout() - 0.725).abs() < 1e-12);
        for _ in 0..20 {
            r.back_off();
        }
        assert_eq!(r.timeout(), 60.0);
    }

    #[test]
    fn a_least_timeout_of_minutes_holds_from_the_start() {
        let mut r = Rto::new(Duration::from_millis(100_000));
        assert_eq!(r.timeout(), 100.0);
        r.sample(0.1);
        assert_eq!(r.timeout(), 100.0);
        r.back_off();
        assert_eq!(r.timeout(), 100.0);
    }
}

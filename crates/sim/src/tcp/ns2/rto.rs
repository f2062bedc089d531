//! ns-2's retransmission timeout: BSD's integer arithmetic on a clock that ticks every 10 ms, read at a random phase.

/// The estimator.
#[derive(Clone, Debug)]
pub struct TickRto {
    /// Eight times the smoothed round-trip time, in ticks.
    srtt: i32,
    /// Four times its variation, in ticks.
    rttvar: i32,
    /// Timeout before clamping and backing off, in seconds.
    rtxcur: f64,
    backoff: i32,
    phase: f64,
    min: f64,
}

/// `tcpTick_`
const TICK: f64 = 0.01;
/// `maxrto_`
const MAX_RTO: f64 = 60.0;

impl TickRto {
    /// Before any measurement: three seconds (`rtxcur_init_`), variation 12 s (`rttvar_init_`).
    #[must_use]
    pub fn new(phase: f64, min: f64) -> TickRto {
        TickRto { srtt: 0, rttvar: 1200 << 2, rtxcur: 3.0, backoff: 1, phase: phase * TICK, min }
    }

    /// A round-trip time in seconds, measured at `now`. Ends the backoff.
    pub fn sample(&mut self, now: f64, rtt: f64) {
        self.backoff = 1;
        let since_tick = libm::fmod(now - rtt + self.phase, TICK);
        let ticks = (((rtt + since_tick) / TICK) as i32).max(1);
        if self.srtt == 0 {
            self.srtt = ticks << 3;
            self.rttvar = ticks << 1;
        } else {
            // ns-2 keeps the difference in sixteen bits.
            let mut delta = (ticks - (self.srtt >> 3)) as i16;
            self.srtt = (self.srtt + i32::from(delta)).max(1);
            delta = delta.wrapping_abs();
            delta = (i32::from(delta) - (self.rttvar >> 2)) as i16;
            self.rttvar = (self.rttvar + i32::from(delta)).max(1);
        }
        self.rtxcur = f64::from(((self.rttvar << 3) + self.srtt) >> 3) * TICK;
    }

    /// New data was acknowledged, but its round-trip time was not measured.
    pub fn end_backoff(&mut self) {
        self.backoff = 1;
    }

    /// The timer expired: doubles the RTO, and after the third time discards the smoothed round-trip time.
    pub fn back_off(&mut self) {
        if self.backoff < 64 || self.timeout() < MAX_RTO {
            self.backoff <<= 1;
        }
        if self.backoff > 8 {
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
    }

    /// The RTO in seconds. The minimum is applied before backing off (`rfc2988_`).
    #[must_use]
    pub fn timeout(&self) -> f64 {
        (self.rtxcur.max(self.min) * f64::from(self.backoff)).clamp(2.0 * TICK, MAX_RTO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_round_as_in_ns2() {
        let mut r = TickRto::new(0.5, 0.2);
        assert_eq!(r.timeout(), 3.0);
        // Sent at 1.000 s, 5 ms into a tick; 42 ms later 4 ticks have passed.
        r.sample(1.042, 0.042);
        assert_eq!((r.srtt, r.rttvar), (4 << 3, 4 << 1));
        // ((8 << 3) + 32) >> 3 = 12 ticks, below the minimum.
        assert_eq!(r.timeout(), 0.2);
        r.back_off();
        assert_eq!(r.timeout(), 0.4);
        r.back_off();
        r.back_off();
        assert_eq!(r.srtt, 32);
        r.back_off();
        assert_eq!((r.srtt, r.rttvar), (0, 8 + 4));
    }
}

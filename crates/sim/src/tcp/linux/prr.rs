//! Proportional rate reduction (RFC 6937 §3, with the bound of RFC 9937: one segment more where acknowledgements make progress): during
//! recovery the window goes down to the threshold in proportion to what arrives, instead of waiting for half of it. As in Linux, it starts
//! from the window, where the RFCs have what is in flight (RecoverFS).

/// Its state during one recovery, in segments.
#[derive(Clone, Debug, Default)]
pub struct Prr {
    /// The window when recovery began: Linux's `prior_cwnd`, in the place of RecoverFS.
    prior_cwnd: f64,
    /// prr_delivered: segments that have arrived since.
    delivered: f64,
    /// prr_out: segments that were sent since.
    out: f64,
}

impl Prr {
    /// Recovery begins with this window.
    pub fn new(cwnd: f64) -> Prr {
        Prr { prior_cwnd: cwnd.max(1.0), delivered: 0.0, out: 0.0 }
    }

    /// A segment is sent.
    pub fn sent(&mut self) {
        self.out += 1.0;
    }

    /// So many segments have arrived: how many may be sent now. `pipe` are in flight; `safe`: `snd_una` moved on, and nothing
    /// more was found lost.
    pub fn allow(&mut self, delivered: u32, pipe: u32, ssthresh: f64, safe: bool) -> f64 {
        let (arrived, pipe) = (f64::from(delivered), f64::from(pipe));
        self.delivered += arrived;
        let allowed = if pipe > ssthresh {
            (self.delivered * ssthresh / self.prior_cwnd).ceil() - self.out
        } else {
            // PRR-SSRB: slow start up to the threshold.
            let by_arrivals = (self.delivered - self.out).max(arrived) + f64::from(u8::from(safe));
            by_arrivals.min(ssthresh - pipe)
        };
        // The first acknowledgement of a recovery retransmits, whatever the counts.
        allowed.max(if self.out > 0.0 { 0.0 } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 §4: a window of 20, half of it the threshold, one loss: a segment for every other acknowledgement.
    #[test]
    fn the_window_goes_down_with_what_arrives() {
        let mut prr = Prr::new(20.0);
        let mut pipe = 19;
        let mut sent = Vec::new();
        for _ in 0..19 {
            pipe -= 1;
            let n = prr.allow(1, pipe, 10.0, false) as u32;
            for _ in 0..n {
                prr.sent();
            }
            pipe += n;
            sent.push(n);
        }
        assert_eq!(sent.iter().sum::<u32>(), 10);
        assert!(sent.iter().all(|n| *n <= 1), "{sent:?}");
        assert_eq!(pipe, 10);
    }

    /// RFC 6937 §3: after heavy losses it sends as much as arrives, and one more where there is progress.
    #[test]
    fn below_the_threshold_it_grows_as_slow_start_does() {
        let mut prr = Prr::new(20.0);
        assert_eq!(prr.allow(1, 2, 10.0, false), 1.0);
        prr.sent();
        assert_eq!(prr.allow(1, 2, 10.0, true), 2.0);
        prr.sent();
        prr.sent();
        assert_eq!(prr.allow(1, 9, 10.0, true), 1.0);
    }
}

//! DCQCN (Zhu et al., SIGCOMM 2015): congestion notifications cut a sender's rate by half the share of time that was congested; without
//! them it comes back to the rate before, and then beyond it, by a timer and a byte counter (QCN's).
//!
//! For RDMA over Converged Ethernet: there is a rate and no window, and a flow starts at its port's rate. The paper's three parts are the
//! switch (a `red` queue that marks), the receiver, which notifies of a mark at once, but at most once in `cnp_interval`, and the sender. The
//! receiver's rule is applied here to the marks that acknowledgements tell of, one per packet: a notification then takes as long as an
//! acknowledgement. Timers are looked at when an acknowledgement arrives, so that one is late by up to the time between two packets, and the
//! byte counter counts what is delivered. What is lost is sent again selectively, as later adapters do, where the paper's went back to the
//! first packet lost; the rate answers no loss.
//! Adapters differ: theirs update α and cut at times of their own and not with each notification.

use super::{Cause, Law, Sample, Window, least, most};
use crate::tcp::Config;
use inprofile_core::units::Rate;

/// §3.1, g.
const GAIN: f64 = 1.0 / 256.0;
/// §3.1, K in seconds: longer than the interval between notifications.
const ALPHA_TIMER: f64 = 55e-6;
/// §3.1, F: so many steps of fast recovery.
const FAST_STEPS: u32 = 5;
/// R_HAI, the first step of hyper increase, is so many times R_AI: QCN's and the adapters' 50 and 5 Mbit/s (IEEE 802.1Q §32.11).
const HYPER: f64 = 10.0;
/// The lowest rate is this share of the port's: QCN's 10 Mbit/s of 40 Gbit/s.
const LOWEST: f64 = 1.0 / 4000.0;
/// The ports of the paper's testbed (§6); what builds a flow says its own.
const LINE_RATE: Rate = Rate(40_000_000_000);
/// No window: what a control sets that has none.
const NO_WINDOW: f64 = 1e9;

/// What `[tcp]` sets, in segments, bytes and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    /// The port's rate, in segments a second.
    line: f64,
    /// R_AI, in segments a second.
    step: f64,
    /// The timer's period, in seconds.
    timer: f64,
    /// The least time between two notifications, in seconds.
    interval: f64,
    /// The byte counter in segments.
    count: f64,
}

/// The rates, in segments a second, and how many steps back.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    /// R_C, at which segments leave.
    current: f64,
    /// R_T, to which it returns.
    target: f64,
    /// α.
    alpha: f64,
    /// Expirations of the timer and of the byte counter since the last notification.
    by_time: u32,
    by_bytes: u32,
}

impl Rates {
    /// §3.1, Eq. (1): a notification.
    fn cut(&mut self, lowest: f64) {
        self.target = self.current;
        self.current = most(self.current * (1.0 - self.alpha / 2.0), lowest);
        self.alpha = (1.0 - GAIN) * self.alpha + GAIN;
        (self.by_time, self.by_bytes) = (0, 0);
    }

    /// §3.1, Eq. (2): none for K.
    fn forget(&mut self) {
        self.alpha *= 1.0 - GAIN;
    }

    /// §3.1, Eqs. (3) and (4): the timer or the byte counter expired and is counted already.
    fn raise(&mut self, setting: &Setting) {
        let (more, fewer) = (self.by_time.max(self.by_bytes), self.by_time.min(self.by_bytes));
        if fewer > FAST_STEPS {
            // IEEE 802.1Q §32.15: each cycle of hyper increase adds one R_HAI more than the one before.
            self.target += f64::from(fewer - FAST_STEPS) * HYPER * setting.step;
        } else if more >= FAST_STEPS {
            self.target += setting.step;
        }
        self.target = least(self.target, setting.line);
        self.current = (self.target + self.current) / 2.0;
    }
}

/// The reaction point.
#[derive(Clone, Debug, PartialEq)]
pub struct Dcqcn {
    setting: Setting,
    rates: Rates,
    /// The last notification; none before the first: the flow is at its port's rate.
    notified: Option<f64>,
    /// A marked packet came since then: the next notification leaves when the interval ends.
    pending: bool,
    /// When α's timer and the rate's expire.
    alpha_due: f64,
    rate_due: f64,
    /// Segments that the byte counter has counted.
    counted: f64,
}

impl Default for Dcqcn {
    fn default() -> Dcqcn {
        Dcqcn::new(&Config::default())
    }
}

impl Dcqcn {
    /// At its port's rate.
    #[must_use]
    pub fn new(config: &Config) -> Dcqcn {
        let (settings, packet) = (&config.settings, f64::from(config.packet()));
        let segments = |bits: u64| bits as f64 / (8.0 * packet);
        let setting = Setting {
            line: segments(settings.line_rate.unwrap_or(LINE_RATE).0),
            step: segments(settings.rate_increase.0),
            timer: settings.rate_timer.secs(),
            interval: settings.cnp_interval.secs(),
            count: settings.rate_bytes.0 as f64 / packet,
        };
        let line = setting.line;
        Dcqcn {
            setting,
            rates: Rates { current: line, target: line, alpha: 1.0, by_time: 0, by_bytes: 0 },
            notified: None,
            pending: false,
            alpha_due: f64::INFINITY,
            rate_due: f64::INFINITY,
            counted: 0.0,
        }
    }

    /// What is due up to `now`, in its order; a notification first, which sets the timers anew.
    fn expire(&mut self, now: f64) {
        loop {
            let notification = match self.notified {
                Some(last) if self.pending => last + self.setting.interval,
                _ => f64::INFINITY,
            };
            let due = least(notification, least(self.alpha_due, self.rate_due));
            if due > now {
                return;
            }
            if notification <= due {
                self.notify(due);
            } else if self.alpha_due <= due {
                self.rates.forget();
                self.alpha_due += ALPHA_TIMER;
            } else {
                self.rates.by_time += 1;
                self.rates.raise(&self.setting);
                self.rate_due += self.setting.timer;
            }
        }
    }

    /// Segments were delivered.
    fn count(&mut self, segments: f64) {
        self.counted += segments;
        while self.counted >= self.setting.count {
            self.counted -= self.setting.count;
            self.rates.by_bytes += 1;
            self.rates.raise(&self.setting);
        }
    }

    /// §3.1, the notification point: a marked packet arrived. It is told at once, or when the interval since the last notification ends.
    fn marked(&mut self, now: f64) {
        if self.notified.is_some_and(|last| now - last < self.setting.interval) {
            self.pending = true;
        } else {
            self.notify(now);
        }
    }

    /// A notification arrives at the sender.
    fn notify(&mut self, now: f64) {
        (self.notified, self.pending) = (Some(now), false);
        self.rates.cut(LOWEST * self.setting.line);
        self.counted = 0.0;
        (self.alpha_due, self.rate_due) = (now + ALPHA_TIMER, now + self.setting.timer);
    }
}

impl Law for Dcqcn {
    fn acknowledged(&mut self, sample: &Sample, window: &mut Window) -> bool {
        window.cwnd = NO_WINDOW;
        self.expire(sample.now);
        if self.notified.is_some() {
            self.count(f64::from(sample.delivered));
        }
        if sample.marked > 0 {
            self.marked(sample.now);
        }
        true
    }

    fn pacing_rate(&self, _: &Window, _: u32, _: f64) -> Option<f64> {
        Some(self.rates.current)
    }

    /// Packets leave one by one, the first ones too.
    fn train(&self) -> Option<f64> {
        Some(0.0)
    }

    fn reduce(&mut self, _: Cause, _: f64, _: f64) -> f64 {
        f64::INFINITY
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn restarts_slowly(&self) -> bool {
        false
    }

    fn avoid(&mut self, cwnd: f64, _: u32, _: impl FnOnce() -> (f64, f64)) -> f64 {
        cwnd
    }
}

#[cfg(test)]
mod tests;

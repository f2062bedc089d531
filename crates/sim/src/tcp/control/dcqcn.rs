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
mod tests {
    //! DCQCN's laws, and an oracle that keeps each timer as an event of its own.

    use proptest::prelude::*;

    use super::*;
    use crate::tcp::control::Phase;

    const US: f64 = 1e-6;

    fn at_line_rate() -> Dcqcn {
        Dcqcn::default()
    }

    fn ack(now: f64, delivered: u32, marked: u32) -> Sample {
        Sample {
            now,
            delivered,
            marked,
            lost: 0,
            rtt: Some(20.0 * US),
            srtt: 20.0 * US,
            prior_in_flight: 100,
            in_flight: 99,
            una: 1000,
            next: 1100,
            advanced: true,
            limited: true,
            phase: Phase::Open,
            rate: None,
        }
    }

    fn tell(d: &mut Dcqcn, now: f64, delivered: u32, marked: u32) {
        let mut window = Window { cwnd: 1.0, ssthresh: f64::INFINITY };
        assert!(d.acknowledged(&ack(now, delivered, marked), &mut window));
        assert_eq!(window.cwnd, NO_WINDOW);
    }

    /// §3.1: a flow starts at its port's rate and stays there until it is told otherwise; no timer runs.
    #[test]
    fn it_starts_at_the_ports_rate() {
        let mut d = at_line_rate();
        for n in 0..1000 {
            tell(&mut d, f64::from(n) * 100.0 * US, 64, 0);
        }
        assert_eq!(d.rates.current, d.setting.line);
        assert!((d.setting.line * 8.0 * f64::from(Config::default().packet()) - 40e9).abs() < 1.0);
    }

    /// §3.1, Eq. (1): α = 1, so the first notification halves the rate; what was is the target. Of marks in the 50 µs after it, one more notification
    /// tells when these end, whether or not another marked packet comes (§3.1, Figure 6); of none, nothing.
    #[test]
    fn a_notification_cuts_the_rate_by_half_of_alpha() {
        let mut d = at_line_rate();
        let line = d.setting.line;
        tell(&mut d, 0.0, 1, 1);
        assert_eq!((d.rates.current, d.rates.target, d.rates.alpha), (line / 2.0, line, 1.0));
        tell(&mut d, 20.0 * US, 1, 1);
        tell(&mut d, 49.0 * US, 1, 0);
        assert_eq!(d.rates.current, line / 2.0);
        tell(&mut d, 50.001 * US, 1, 0);
        assert_eq!((d.rates.current, d.rates.target), (line / 4.0, line / 2.0));
        tell(&mut d, 104.0 * US, 1, 0);
        assert_eq!(d.rates.current, line / 4.0, "no mark since");
        tell(&mut d, 104.5 * US, 1, 1);
        assert_eq!((d.rates.current, d.rates.target), (line / 8.0, line / 4.0), "told at once");
    }

    /// §3.1: with K longer than the notifications' interval, α does not fade while packets are marked, and the timer does not raise the rate.
    #[test]
    fn while_packets_are_marked_the_rate_only_falls() {
        let mut d = at_line_rate();
        let mut before = f64::INFINITY;
        for n in 0..100 {
            tell(&mut d, f64::from(n) * 10.0 * US, 1, 1);
            assert!(d.rates.current <= before && d.rates.alpha == 1.0);
            before = d.rates.current;
        }
        assert_eq!(d.rates.current, d.setting.line * libm::pow(0.5, 12.0).max(LOWEST));
    }

    /// §3.1, Eq. (2): without a notification α fades by g every 55 µs.
    #[test]
    fn alpha_fades() {
        let mut d = at_line_rate();
        tell(&mut d, 0.0, 1, 1);
        tell(&mut d, 10.5 * 55.0 * US, 1, 0);
        assert!((d.rates.alpha - libm::pow(255.0 / 256.0, 10.0)).abs() < 1e-12);
    }

    /// §3.1, Eqs. (3) and (4): four steps of fast recovery halve the distance to the target; from the fifth on the target grows by R_AI; once both
    /// counts are beyond F, by more.
    #[test]
    fn it_recovers_fast_then_adds_then_leaps() {
        let setting = Setting { line: 1e6, step: 10.0, timer: 55.0 * US, interval: 50.0 * US, count: 1e9 };
        let mut rates = Rates { current: 500.0, target: 1000.0, alpha: 0.5, by_time: 0, by_bytes: 0 };
        for step in 1..=4 {
            rates.by_time = step;
            rates.raise(&setting);
            assert_eq!((rates.target, rates.current), (1000.0, 1000.0 - 500.0 / f64::from(1 << step)));
        }
        rates.by_time = 5;
        rates.raise(&setting);
        assert_eq!(rates.target, 1010.0);
        (rates.by_time, rates.by_bytes) = (9, 5);
        rates.raise(&setting);
        assert_eq!(rates.target, 1020.0, "the byte counter is not beyond F");
        rates.by_bytes = 6;
        rates.raise(&setting);
        assert_eq!(rates.target, 1120.0);
        // IEEE 802.1Q §32.15: the second cycle of hyper increase adds twice as much.
        rates.by_bytes = 7;
        rates.raise(&setting);
        assert_eq!(rates.target, 1320.0);
    }

    /// The slow way: microsecond by microsecond, each part a counter of its own.
    struct Oracle {
        line: f64,
        step: f64,
        bytes: f64,
        rate: f64,
        target: f64,
        alpha: f64,
        since_cnp: Option<u32>,
        untold: bool,
        alpha_clock: u32,
        rate_clock: u32,
        delivered: f64,
        steps: (u32, u32),
    }

    impl Oracle {
        fn step(&mut self) {
            let (t, b) = self.steps;
            if t > 5 && b > 5 {
                self.target += f64::from(t.min(b) - 5) * 10.0 * self.step;
            } else if t >= 5 || b >= 5 {
                self.target += self.step;
            }
            self.target = self.target.min(self.line);
            self.rate = 0.5 * (self.rate + self.target);
        }

        fn notify(&mut self) {
            self.target = self.rate;
            self.rate = (self.rate - self.rate * self.alpha / 2.0).max(self.line / 4000.0);
            self.alpha += (1.0 - self.alpha) / 256.0;
            (self.since_cnp, self.untold, self.alpha_clock, self.rate_clock) = (Some(0), false, 0, 0);
            (self.delivered, self.steps) = (0.0, (0, 0));
        }

        fn microsecond(&mut self, delivered: u32, marked: bool) {
            if let Some(since) = &mut self.since_cnp {
                *since += 1;
                self.alpha_clock += 1;
                self.rate_clock += 1;
                if *since == 50 && self.untold {
                    self.notify();
                }
                if self.alpha_clock == 55 {
                    self.alpha_clock = 0;
                    self.alpha -= self.alpha / 256.0;
                }
                if self.rate_clock == 70 {
                    self.rate_clock = 0;
                    self.steps.0 += 1;
                    self.step();
                }
                self.delivered += f64::from(delivered);
                if self.delivered >= self.bytes {
                    self.delivered -= self.bytes;
                    self.steps.1 += 1;
                    self.step();
                }
            }
            if !marked {
                return;
            }
            match self.since_cnp {
                Some(0..50) => self.untold = true,
                _ => self.notify(),
            }
        }
    }

    proptest! {
        /// Whatever is marked and when, the rates are the oracle's, between the lowest and the port's, and α is a share.
        #[test]
        fn the_rates_are_the_oracles(
            acks in prop::collection::vec((1u32..200, 0u32..40, prop::bool::weighted(0.2)), 1..200),
            count in 50.0f64..500.0,
        ) {
            let setting = Setting { line: 1e6, step: 300.0, timer: 70.0 * US, interval: 50.0 * US, count };
            let mut d = at_line_rate();
            d.setting = setting;
            (d.rates.current, d.rates.target) = (setting.line, setting.line);
            let mut o = Oracle {
                line: setting.line, step: setting.step, bytes: count, rate: setting.line, target: setting.line,
                alpha: 1.0, since_cnp: None, untold: false, alpha_clock: 0, rate_clock: 0, delivered: 0.0, steps: (0, 0),
            };
            let mut now = 0u32;
            for (gap, delivered, marked) in acks {
                for _ in 1..gap {
                    o.microsecond(0, false);
                }
                o.microsecond(delivered, marked);
                now += gap;
                // By a clock that is a millionth fast: what is due at this microsecond is due.
                tell(&mut d, f64::from(now) * 1.000_001 * US, delivered, u32::from(marked));
                prop_assert!((d.rates.current / o.rate - 1.0).abs() < 1e-9, "{} {}", d.rates.current, o.rate);
                prop_assert!((d.rates.alpha - o.alpha).abs() < 1e-9);
                prop_assert!(d.rates.current <= setting.line && d.rates.current >= LOWEST * setting.line);
                prop_assert!(d.rates.current <= d.rates.target * (1.0 + 1e-12));
                prop_assert!((0.0..=1.0).contains(&d.rates.alpha));
            }
        }
    }
}

//! DCQCN's laws, and an oracle that keeps each timer as an event of its own.

use super::*;
use crate::tcp::control::Phase;
use proptest::prelude::*;

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

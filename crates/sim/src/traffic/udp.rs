//! Datagrams on a schedule: at a constant rate, at a peak rate during on periods and none during off periods, or as a Poisson
//! process, whose sizes may be drawn, too.
//!
//! The schedule at the peak rate stops during off periods and resumes where it stopped. So the mean rate is exactly
//! peak · on / (on + off), even where an on period is not a whole number of packets. Nothing is acknowledged or
//! retransmitted. Non-goal: congestion control.

use inprofile_core::packet::Ecn;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Bytes, Duration, Rate, Time};

use crate::clock::Clock;
use crate::traffic::distribution::Distribution;

/// IPv4 (20 B) and UDP (8 B).
pub const HEADER: u32 = 28;

/// The traffic of a source of datagrams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Bits per second on the wire, while it is on.
    pub rate: Rate,
    /// Size of each packet on the wire, in bytes; the mean that sizes are drawn around.
    pub packet: u32,
    /// Each packet is late by a random part, up to this share, of the time between two: 0 to 1.
    pub dither: f64,
    /// On and off periods; `None`: always on.
    pub periods: Option<Periods>,
    /// Times between packets are exponential, and their sizes drawn; `None`: neither.
    pub poisson: Option<Sizes>,
    /// The code point of each packet. No mark is answered: the source never slows down.
    pub ecn: Ecn,
}

/// How the sizes of packets are drawn around their mean, in bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The distribution, rounded to whole bytes.
    pub law: Distribution,
    /// Smaller values become this.
    pub least: u32,
    /// Larger values become this.
    pub most: u32,
}

impl Config {
    /// Whether every packet is a fixed time after the last one: what ns-2 calls CBR.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.periods.is_none() && self.dither == 0.0 && self.poisson.is_none()
    }

    /// How sizes are drawn, if they are.
    #[must_use]
    pub fn drawn(&self) -> Option<Sizes> {
        self.poisson.filter(|sizes| sizes.law != Distribution::Fixed)
    }

    /// The size of the smallest packet.
    #[must_use]
    pub fn smallest(&self) -> u32 {
        self.drawn().map_or(self.packet, |sizes| sizes.least)
    }

    /// The size of the largest packet.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.drawn().map_or(self.packet, |sizes| sizes.most)
    }

    /// The mean size of a packet, its bounds kept.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let packet = f64::from(self.packet);
        let within = |s: Sizes| s.law.mean_within(packet, f64::from(s.least), f64::from(s.most));
        self.drawn().map_or(packet, within)
    }
}

/// On and off periods; the first one is on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Periods {
    /// Mean length of an on period.
    pub on: Duration,
    /// Mean length of an off period.
    pub off: Duration,
    /// How lengths are drawn.
    pub law: Distribution,
}

/// When datagrams are due.
#[derive(Debug)]
pub struct Schedule {
    config: Config,
    rng: Rng,
    stop: Option<Time>,
    /// When the next packet is due, without dither.
    next: Time,
    /// When the current on period ends.
    until: Time,
    /// The sum of the fractions cut off when the times between packets were rounded down to picoseconds, in units of
    /// 1/rate ps.
    left_over: u128,
}

/// The stream that a flow's times are drawn from.
#[must_use]
pub fn times(seed: u64, flow: &str) -> Rng {
    Rng::for_component(seed, &format!("traffic {flow}"))
}

/// The end of a period that never ends.
const NEVER: Time = Time(u64::MAX);

impl Schedule {
    /// Of a source that sends nothing from `stop` on. Equal random streams give equal schedules.
    #[must_use]
    pub fn new(config: Config, stop: Option<Time>, rng: Rng) -> Schedule {
        Schedule { config, rng, stop, next: Time::ZERO, until: NEVER, left_over: 0 }
    }

    /// The source starts now: when its first packet is due, if ever.
    pub fn begin(&mut self, now: Time) -> Option<Time> {
        self.next = now;
        if self.config.poisson.is_some() {
            return self.poisson();
        }
        if let Some(p) = self.config.periods {
            self.until = now + self.period(p.on, p.law);
        }
        self.dithered()
    }

    /// When the next packet is due, if ever: one packet's time at the peak rate later, not counting off periods.
    pub fn following(&mut self) -> Option<Time> {
        if self.config.poisson.is_some() {
            return self.poisson();
        }
        let rate = u128::from(self.config.rate.0);
        let bits = u128::from(self.config.packet) * 8 * 1_000_000_000_000 + self.left_over;
        self.left_over = bits % rate;
        self.next = later(self.next, u64::try_from(bits / rate).unwrap_or(u64::MAX));
        if let Some(p) = self.config.periods {
            while self.next >= self.until && self.next < NEVER {
                let beyond = self.next.0 - self.until.0;
                let begins = later(self.until, self.period(p.off, p.law).0);
                self.until = later(begins, self.period(p.on, p.law).0);
                self.next = later(begins, beyond);
            }
        }
        self.dithered()
    }

    /// An exponential time later, of the mean that gives the rate.
    fn poisson(&mut self) -> Option<Time> {
        let mean = self.config.mean() * 8e12 / self.config.rate.0 as f64;
        self.next = later(self.next, Distribution::Exponential.draw(mean, &mut self.rng) as u64);
        (self.next < NEVER && self.stop.is_none_or(|stop| self.next < stop)).then_some(self.next)
    }

    /// The size of the packet that is due.
    pub fn size(&mut self) -> u32 {
        let Some(sizes) = self.config.drawn() else { return self.config.packet };
        let drawn = sizes.law.draw(f64::from(self.config.packet), &mut self.rng);
        // A cast keeps the largest number of what is above it.
        (libm::round(drawn) as u32).clamp(sizes.least, sizes.most)
    }

    fn period(&mut self, mean: Duration, law: Distribution) -> Duration {
        // At most some 200 days, the range of time.
        Duration(law.draw(mean.0 as f64, &mut self.rng).min(u64::MAX as f64) as u64)
    }

    fn dithered(&mut self) -> Option<Time> {
        let mut at = self.next;
        if self.config.dither > 0.0 {
            let between = f64::from(self.config.packet) * 8e12 / self.config.rate.0 as f64;
            at = later(at, (between * self.config.dither * self.rng.uniform()) as u64);
        }
        (at < NEVER && self.stop.is_none_or(|stop| at < stop)).then_some(at)
    }
}

/// A source in the middle of a run.
#[derive(Debug)]
pub struct Source {
    schedule: Schedule,
    sent: u32,
}

impl Source {
    /// Not started; it sends nothing from `stop` on.
    #[must_use]
    pub fn new(config: Config, stop: Option<Time>, rng: Rng) -> Source {
        Source { schedule: Schedule::new(config, stop, rng), sent: 0 }
    }

    /// It starts now: how long until its first packet; `None`: it sends none.
    pub fn start<C: Clock>(&mut self, now: C) -> Option<C::Span> {
        Some(C::span(until(self.schedule.begin(now.time())?, now)))
    }

    /// A packet is due now: its number, its size on the wire and its code point.
    pub fn packet(&mut self) -> (u32, u32, Ecn) {
        let number = self.sent;
        self.sent = self.sent.wrapping_add(1);
        (number, self.schedule.size(), self.schedule.config.ecn)
    }

    /// How long until the packet after the one that was due now; `None`: that was the last.
    pub fn next<C: Clock>(&mut self, now: C) -> Option<C::Span> {
        if self.is_ns2_cbr::<C>() {
            let Config { rate, packet, .. } = self.schedule.config;
            return Some(C::serialise(rate, Bytes(u64::from(packet))));
        }
        Some(C::span(until(self.schedule.following()?, now)))
    }

    /// ns-2's CBR sends its first packet as it starts, and adds its interval to the time of the last packet: sums of
    /// doubles, which drift.
    pub fn is_ns2_cbr<C: Clock>(&self) -> bool {
        C::NS2 && self.schedule.config.is_steady()
    }
}

/// How long to wait for a moment.
pub(crate) fn until<C: Clock>(at: Time, now: C) -> Duration {
    Duration(at.0.saturating_sub(now.time().0))
}

/// A later time, or [`NEVER`] if it is out of range.
fn later(t: Time, ps: u64) -> Time {
    Time(t.0.saturating_add(ps))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    /// When its packets are due, without dither.
    fn times(config: Config, n: usize) -> Vec<u64> {
        let mut s = Schedule::new(config, None, Rng::for_component(1, "udp"));
        let first = s.begin(Time(5 * MS));
        std::iter::successors(first, |_| s.following()).map(|at| at.0).take(n).collect()
    }

    fn config(periods: Option<Periods>) -> Config {
        Config {
            rate: Rate(3_000_000),
            packet: 1000,
            dither: 0.0,
            periods,
            poisson: None,
            ecn: Ecn::NotCapable,
        }
    }

    /// Times and sizes by their means and variances; the rate holds whatever the bounds take away.
    #[test]
    fn a_poisson_process_has_its_rate_and_its_sizes() {
        let n = 200_000;
        for (law, least, most) in [
            (Distribution::Fixed, 29, 65_535),
            (Distribution::Exponential, 29, 65_535),
            (Distribution::Exponential, 200, 1500),
            (Distribution::Pareto(2.5), 29, 1500),
        ] {
            let poisson = Some(Sizes { law, least, most });
            let config = Config { poisson, ..config(None) };
            let mut s = Schedule::new(config, None, Rng::for_component(2, "udp"));
            let (mut at, mut gaps, mut bytes) = (s.begin(Time::ZERO).unwrap().0, Vec::new(), 0);
            for _ in 0..n {
                let size = s.size();
                assert!(
                    law == Distribution::Fixed && size == 1000 || (least..=most).contains(&size),
                    "{size}"
                );
                bytes += u64::from(size);
                let next = s.following().unwrap().0;
                gaps.push((next - at) as f64);
                at = next;
            }
            let rate = bytes as f64 * 8e12 / at as f64;
            assert!((rate / 3e6 - 1.0).abs() < 0.01, "{law:?}: {rate}");
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance =
                gaps.iter().map(|g| (g / mean - 1.0) * (g / mean - 1.0)).sum::<f64>() / gaps.len() as f64;
            assert!((variance - 1.0).abs() < 0.03, "{law:?}: {variance}");
            assert_eq!(config.largest(), if law == Distribution::Fixed { 1000 } else { most });
        }
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        // 8000 bits at 3 Mbit/s: 2.666… ms.
        let all = times(config(None), 30_001);
        assert_eq!(all[..4], [5 * MS, 7_666_666_666, 10_333_333_333, 13 * MS]);
        assert_eq!(all[30_000], 5 * MS + 80_000 * MS);
    }

    #[test]
    fn the_schedule_stops_during_off_periods() {
        let fixed = Periods { on: Duration(4 * MS), off: Duration(10 * MS), law: Distribution::Fixed };
        // On time 0, 2⅔, 5⅓, 8 ms of a period of 4 ms: the second one 1⅓ ms into the next period, the third at the start
        // of the one after that.
        let all = times(config(Some(fixed)), 4);
        assert_eq!(all, [5 * MS, 7_666_666_666, 5 * MS + 15_333_333_333, 5 * MS + 28 * MS]);
    }

    #[test]
    fn the_mean_rate_is_peak_times_the_part_of_the_time_on() {
        for law in [Distribution::Fixed, Distribution::Exponential, Distribution::Pareto(2.5)] {
            let p = Periods { on: Duration(50 * MS), off: Duration(150 * MS), law };
            let n = 100_000;
            let all = times(config(Some(p)), n);
            let rate = n as f64 * 8000.0 / ((all[n - 1] - all[0]) as f64 * 1e-12);
            assert!((rate / 750_000.0 - 1.0).abs() < 0.05, "{law:?}: {rate}");
            assert!(all.windows(2).all(|w| w[0] < w[1]));
        }
    }
}

//! The traffic that a contract lets pass, as a leaky bucket in whole numbers.

use inprofile_core::units::{Duration, PS_PER_S, Time};

/// Over any stretch of time no more than rate × time + depth: a bucket that leaks at the rate never holds more than the depth.
pub struct LeakyBucket {
    rate: u64,
    level: u128,
    most: u128,
    last: Time,
}

/// A bit in a picosecond at a bit per second.
const GRAINS: u128 = 8 * PS_PER_S as u128;

impl LeakyBucket {
    pub fn new(rate: u64) -> LeakyBucket {
        LeakyBucket { rate, level: 0, most: 0, last: Time::ZERO }
    }

    pub fn see(&mut self, at: Time, bytes: u64) {
        self.level = self.level(at) + u128::from(bytes) * GRAINS;
        self.most = self.most.max(self.level);
        self.last = at;
    }

    fn level(&self, at: Time) -> u128 {
        self.level.saturating_sub(u128::from(self.rate) * u128::from(at.since(self.last).0))
    }

    /// In bytes.
    pub fn most(&self) -> f64 {
        self.most as f64 / GRAINS as f64
    }

    /// Whether a depth holds so many bytes more.
    pub fn fits(&self, at: Time, bytes: u64, depth: u64) -> bool {
        self.level(at) + u128::from(bytes) * GRAINS <= u128::from(depth) * GRAINS
    }

    /// When it first does.
    pub fn until(&self, bytes: u64, depth: u64) -> Time {
        let over = (self.level + u128::from(bytes) * GRAINS).saturating_sub(u128::from(depth) * GRAINS);
        self.last + Duration(over.div_ceil(u128::from(self.rate)) as u64)
    }
}

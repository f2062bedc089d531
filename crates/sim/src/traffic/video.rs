//! Adaptive video over TCP: a player that asks for one chunk after the other, each at the highest rate that the last ones
//! allow, and waits while its buffer is full (RFC 7928 §9.1).
//!
//! The rule is the plain one by throughput: the highest level of at most four fifths of the mean of the last chunk's
//! throughput and the mean before. Non-goal: any product's player.

use inprofile_core::units::{Duration, Rate, Time};

/// The share of the throughput that a level may need.
const SAFE: f64 = 0.8;

/// The video that is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The lowest level's rate, of payload.
    pub lowest: Rate,
    /// The highest level's.
    pub highest: Rate,
    /// How many levels there are, each the same factor above the one before.
    pub levels: u32,
    /// How much is played by a chunk.
    pub chunk: Duration,
    /// How much the buffer holds.
    pub buffer: Duration,
}

impl Config {
    /// The rate of a level, from 0, in bit/s.
    #[must_use]
    pub fn rate(&self, level: u32) -> f64 {
        let (lowest, highest) = (self.lowest.0 as f64, self.highest.0 as f64);
        let steps = f64::from(self.levels.saturating_sub(1).max(1));
        lowest * libm::pow(highest / lowest, f64::from(level) / steps)
    }
}

/// A player.
#[derive(Clone, Debug)]
pub struct Player {
    config: Config,
    /// Mean throughput in bit/s, once a chunk has arrived.
    throughput: Option<f64>,
    /// Until when what has arrived can be played; `None` before the first chunk.
    plays_until: Option<Time>,
    /// Chunks that have been asked for.
    pub asked: u32,
}

/// The next action of a player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// It asks for so many bits.
    Chunk(f64),
    /// Its buffer is full: it asks after that.
    Wait(Duration),
}

impl Player {
    /// Nothing has been played.
    #[must_use]
    pub fn new(config: Config) -> Player {
        Player { config, throughput: None, plays_until: None, asked: 0 }
    }

    /// The next action.
    pub fn next(&mut self, now: Time) -> Next {
        if let Some(until) = self.plays_until {
            let filled = until.since(now).0 + self.config.chunk.0;
            if filled > self.config.buffer.0 {
                return Next::Wait(Duration(filled - self.config.buffer.0));
            }
        }
        self.asked += 1;
        Next::Chunk(self.config.rate(self.level()) * self.config.chunk.secs())
    }

    /// The level of the next chunk.
    fn level(&self) -> u32 {
        let allowed = SAFE * self.throughput.unwrap_or(0.0);
        (0..self.config.levels).rev().find(|l| self.config.rate(*l) <= allowed).unwrap_or(0)
    }

    /// A chunk of so many bits has arrived, `took` after it was asked for. How long playback stalled for it.
    pub fn arrived(&mut self, bits: f64, took: Duration, now: Time) -> Duration {
        let new = bits / took.secs().max(1e-9);
        self.throughput = Some(self.throughput.map_or(new, |mean| (mean + new) / 2.0));
        let until = self.plays_until.unwrap_or(now);
        let stalled = now.since(until);
        self.plays_until = Some(until.max(now) + self.config.chunk);
        stalled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000_000;

    fn player() -> Player {
        let (lowest, highest) = (Rate(1_000_000), Rate(8_000_000));
        let chunk = Duration(2 * S);
        Player::new(Config { lowest, highest, levels: 4, chunk, buffer: Duration(6 * S) })
    }

    /// Levels of 1, 2, 4 and 8 Mbit/s, chunks of 2 s.
    #[test]
    fn it_takes_the_highest_level_that_four_fifths_of_the_throughput_allow() {
        let mut p = player();
        assert_eq!(p.next(Time(0)), Next::Chunk(2e6));
        // 2 Mbit in 0.5 s: 4 Mbit/s, of which 3.2.
        assert_eq!(p.arrived(2e6, Duration(S / 2), Time(S / 2)), Duration::ZERO);
        let Next::Chunk(bits) = p.next(Time(S / 2)) else { panic!("the buffer has room") };
        assert!((bits - 4e6).abs() < 1.0, "{bits}");
        // 4 Mbit in 0.2 s: 20, and the mean is 12 Mbit/s, of which 9.6.
        p.arrived(4e6, Duration(S / 5), Time(S));
        let Next::Chunk(bits) = p.next(Time(S)) else { panic!("the buffer has room") };
        assert!((bits - 16e6).abs() < 1.0, "{bits}");
    }

    #[test]
    fn it_waits_while_its_buffer_is_full_and_stalls_when_it_is_empty() {
        let mut p = player();
        p.next(Time(0));
        // The first chunk begins to play, until 3 s; two more to 7 s.
        for _ in 0..3 {
            assert_eq!(p.arrived(2e6, Duration(S), Time(S)), Duration::ZERO);
        }
        // 6 s are there, and a chunk more would be 8 s.
        assert_eq!(p.next(Time(S)), Next::Wait(Duration(2 * S)));
        assert!(matches!(p.next(Time(3 * S)), Next::Chunk(_)));
        // All was played at 7 s, and the next chunk comes at 9 s.
        assert_eq!(p.arrived(2e6, Duration(6 * S), Time(9 * S)), Duration(2 * S));
    }
}

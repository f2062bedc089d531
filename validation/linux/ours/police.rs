//! A policer, in lockstep: packets are put to it as they come.

use std::io::{self, BufRead, Write};

use inprofile_core::marker::Marker;
use inprofile_core::registry::AnyMarker;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Rate, Time};
use inprofile_core::verdict::{Mark, Silent};

use crate::events::{Event, Events};
use crate::lockstep::{Fate, agree, tell};

/// A line of tokens: so many at a time, and more as time goes on.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    held: f64,
    at: Time,
    /// A picosecond.
    rate: f64,
    depth: f64,
}

impl Tokens {
    fn by(&self, now: Time) -> f64 {
        (self.held + self.rate * now.since(self.at).picos()).min(self.depth)
    }

    fn set(&mut self, now: Time, held: f64) {
        (self.held, self.at) = (held, now);
    }
}

/// A policer: packets are put to it as they come.
pub fn police<R: BufRead>(
    events: Events<R>,
    marker: &mut AnyMarker,
    (rate, depth): (Rate, f64),
    out: &mut impl Write,
) -> io::Result<()> {
    let AnyMarker::TokenBucket(bucket) = marker else {
        return Err(io::Error::other("police is for a token_bucket"));
    };
    let mut rng = Rng::for_component(0, "unused");
    let full = Tokens { held: depth, at: Time::ZERO, rate: rate.0 as f64 / 8e12, depth };
    let (mut most, mut fewest) = (full, full);
    for event in events {
        let Event::Arrival(a) = event? else {
            return Err(io::Error::other("a policer has no queue to ask"));
        };
        let linux = if a.passed { Fate::Sent } else { Fate::Dropped };
        let size = f64::from(a.packet.size);
        let (ours, shift, law) = agree(linux, a.at, |now| {
            let mut law = bucket.clone();
            let fate = match law.mark(now, &a.packet, &mut rng, &mut Silent) {
                Mark::Pass(_) => Fate::Sent,
                Mark::Drop(_) => Fate::Dropped,
            };
            (fate, law)
        });
        *bucket = law;
        // A full bucket loses what comes: the later that is, the less is lost by the next packet.
        let (earliest, latest) = a.within;
        let possible = if a.passed { most.by(latest) >= size } else { fewest.by(earliest) < size };
        let (up, down) = (most.by(earliest), fewest.by(latest));
        if a.passed {
            most.set(earliest, up - size);
            fewest.set(latest, (down - size).max(0.0));
        } else {
            most.set(earliest, up.min(size));
            fewest.set(latest, down);
        }
        tell(out, a.number, (linux, ours), shift, possible)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 Mbit/s and 2,000 B: the third packet comes 8 ms after the first, when 1,000 B are back, give or take 5 us.
    #[test]
    fn a_bucket_on_the_verge_may_do_either() {
        let ask = |third: u64, passed: u8| {
            let mut text = String::new();
            for (number, at) in [0, 0, third].into_iter().enumerate() {
                let passed = if number == 2 { passed } else { 1 };
                text += &format!("a {number} {at} 1000 0 0 {at} {} {passed}\n", at + 5_000);
            }
            let registry = inprofile_core::registry::Registry::default();
            let table = "kind = \"token_bucket\"\nrate = \"1 Mbit/s\"\ndepth = \"2000 B\"\naction = \"drop\"";
            let (mut marker, _) = crate::built(table, "kind", &registry.markers).expect("it is right");
            let mut out = Vec::new();
            police(Events::read(text.as_bytes()), &mut marker, (Rate(1_000_000), 2000.0), &mut out)
                .expect("the events are whole");
            String::from_utf8(out).expect("text").lines().nth(2).is_some_and(|line| line.ends_with('1'))
        };
        assert!(ask(8_001_000, 0) && ask(7_999_000, 1), "within the stamps");
        assert!(!ask(7_990_000, 1) && !ask(8_010_000, 0), "beyond them");
    }
}

//! The rate at which segments are delivered (draft-ietf-ccwg-bbr §4.1, which Linux has in `tcp_rate.c`): how many arrived between the
//! sending of a segment and its acknowledgement, over the longer of the time it took to send them and the time it took to acknowledge
//! them.

use std::collections::VecDeque;

use crate::clock::Clock;
use crate::tcp::control::{Lost, RateSample, least};

use super::scoreboard::sent_after;

/// The note taken when a segment is sent (P.…); when, the scoreboard knows. Two to a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Sent<C> {
    /// P.first_send_time: when the first segment of the flight that it belongs to was sent.
    first_sent_at: C,
    delivered_at: C,
    /// Counts of segments fit, as their numbers do.
    delivered: u32,
    lost: u32,
    in_flight: u32,
    app_limited: bool,
}

/// The connection's counts (C.…), and the sample under way (RS.…). All but the last is asked for by every acknowledgement, and is two cache
/// lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Delivery<C> {
    /// Of the segments from `una` on.
    sent: VecDeque<Sent<C>>,
    /// The segment sent last among those that the acknowledgement tells of, and when.
    newest: Option<(C, u32)>,
    una: u32,
    delivered: u32,
    delivered_at: C,
    first_sent_at: C,
    min_rtt: f64,
    lost: u32,
    /// C.app_limited: samples are, until so many segments have been delivered.
    app_limited: u32,
    /// A segment sent once this many were delivered begins the next round trip.
    round_end: u32,
    /// Of the segment that a tail loss probe repeats, as it was before.
    probed: Option<Sent<C>>,
}

impl<C: Clock> Delivery<C> {
    /// Nothing is sent.
    pub fn new() -> Delivery<C> {
        Delivery {
            delivered: 0,
            delivered_at: C::ZERO,
            first_sent_at: C::ZERO,
            lost: 0,
            app_limited: 0,
            sent: VecDeque::new(),
            probed: None,
            una: 0,
            newest: None,
            round_end: 0,
            min_rtt: f64::INFINITY,
        }
    }

    /// OnPacketSent (§4.1.2.2): `in_flight` counts the segment itself.
    pub fn sent(&mut self, segment: u32, in_flight: u32, now: C) {
        if in_flight <= 1 {
            // Nothing else is in flight: the pipe is idle until now.
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        let note = Sent {
            first_sent_at: self.first_sent_at,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            in_flight,
            app_limited: self.app_limited > 0,
        };
        let place = (segment - self.una) as usize;
        if place < self.sent.len() {
            self.sent[place] = note;
        } else {
            self.sent.push_back(note);
        }
    }

    /// UpdateRateSample (§4.1.2.3): this segment is found to have arrived.
    pub fn arrived(&mut self, segment: u32, sent_at: C, now: C) {
        if (segment - self.una) as usize >= self.sent.len() {
            return;
        }
        self.delivered += 1;
        self.delivered_at = now;
        let sent = (sent_at, segment);
        if self.newest.is_none_or(|newest| sent_after(sent, newest)) {
            self.newest = Some(sent);
            self.first_sent_at = sent_at;
        }
    }

    /// A tail loss probe is about to repeat this segment.
    pub fn probes(&mut self, segment: u32) {
        self.probed = segment.checked_sub(self.una).and_then(|place| self.sent.get(place as usize)).copied();
    }

    /// It was lost, and the probe has made it good.
    pub fn probe_repaired(&mut self, segment: u32, now: C) -> Option<Lost> {
        self.lost += 1;
        let note = self.probed.take()?;
        Some(self.lost_one(&note, segment, now))
    }

    /// This segment was found lost.
    pub fn lost(&mut self, segment: u32, now: C) -> Option<Lost> {
        self.lost += 1;
        let note = self.sent.get(segment.checked_sub(self.una)? as usize)?;
        Some(self.lost_one(note, segment, now))
    }

    /// A lost segment, as it was when it was sent.
    fn lost_one(&self, note: &Sent<C>, segment: u32, now: C) -> Lost {
        Lost {
            now: now.secs(),
            segment,
            tx_in_flight: note.in_flight,
            since: self.lost - note.lost,
            app_limited: note.app_limited,
            delivered: self.delivered,
        }
    }

    /// Whether the application has had no data since, or has none.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// The application has no data, though the window has room: what is delivered until the end of the flight says nothing of the
    /// path's rate (§4.1.2.4).
    pub fn app_limited(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// GenerateRateSample (§4.1.2.3), at the end of an acknowledgement of all before `una`; `rtt`: what it measured.
    pub fn sample(&mut self, una: u32, rtt: Option<f64>) -> Option<RateSample> {
        if let Some(rtt) = rtt {
            self.min_rtt = least(rtt, self.min_rtt);
        }
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let sample = self.newest.take().map(|newest| self.sample_of(newest));
        while self.una < una && self.sent.pop_front().is_some() {
            self.una += 1;
        }
        self.una = una;
        sample
    }

    /// The sample of the segment that was sent last.
    #[inline(always)]
    fn sample_of(&mut self, (sent_at, segment): (C, u32)) -> RateSample {
        let note = &self.sent[(segment - self.una) as usize];
        let sending = sent_at.since(note.first_sent_at);
        let acknowledging = self.delivered_at.since(note.delivered_at);
        let interval = C::secs_of(if sending > acknowledging { sending } else { acknowledging });
        let round_start = note.delivered >= self.round_end;
        if round_start {
            self.round_end = self.delivered;
        }
        RateSample {
            delivered: self.delivered - note.delivered,
            // Shorter than a round trip can be: acknowledgements of an earlier transmission.
            interval: if interval < self.min_rtt { 0.0 } else { interval },
            app_limited: note.app_limited,
            lost: self.lost - note.lost,
            tx_in_flight: note.in_flight,
            total: self.delivered,
            total_lost: self.lost,
            round_start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000_000;

    /// §4.1.1 and §4.1.2.3: ten segments every 10 ms over a round trip of 100 ms, acknowledged all at once: the acknowledgements' burst does not
    /// raise the rate above that of the sending, nor does a burst of sending raise it above that of the acknowledgements.
    #[test]
    fn the_longer_interval_counts() {
        let mut d = Delivery::new();
        for n in 0..10 {
            d.sent(n, n + 1, Exact(u64::from(n) * 10 * MS));
        }
        for n in 0..10 {
            d.arrived(n, Exact(u64::from(n) * 10 * MS), Exact(190 * MS));
        }
        let sample = d.sample(10, Some(0.1)).expect("segments arrived");
        // The last was sent at 90 ms, the first at 0, when none had been delivered.
        assert_eq!((sample.delivered, sample.interval, sample.tx_in_flight), (10, 0.19, 10));
        assert!(sample.round_start && !sample.app_limited);
        // A burst, which arrives at a segment each 5 ms.
        for n in 10..20 {
            d.sent(n, n - 9, Exact(200 * MS));
        }
        let mut rates = Vec::new();
        for n in 10..20 {
            d.arrived(n, Exact(200 * MS), Exact((300 + 5 * u64::from(n - 10)) * MS));
            let s = d.sample(n + 1, Some(0.1)).expect("a segment arrived");
            rates.push(f64::from(s.delivered) / s.interval);
        }
        assert!(rates.iter().all(|r| *r < 200.0) && rates[9] > 60.0, "{rates:?}");
    }

    /// §4.1.2.4: samples are app-limited until what was in flight at that moment has arrived.
    #[test]
    fn app_limited_until_the_flight_has_passed() {
        let mut d = Delivery::new();
        d.sent(0, 1, Exact(0));
        d.app_limited(1);
        d.arrived(0, Exact(0), Exact(100 * MS));
        assert!(!d.sample(1, Some(0.1)).expect("arrived").app_limited, "sent before");
        d.sent(1, 1, Exact(100 * MS));
        d.arrived(1, Exact(100 * MS), Exact(200 * MS));
        assert!(d.sample(2, Some(0.1)).expect("arrived").app_limited);
        d.sent(2, 1, Exact(200 * MS));
        d.arrived(2, Exact(200 * MS), Exact(300 * MS));
        assert!(!d.sample(3, Some(0.1)).expect("arrived").app_limited);
    }

    proptest! {
        /// §4.1 and §4.1.2.2: at a constant service rate no sample is faster than that rate, whatever was lost, as long as it spans a round trip.
        #[test]
        fn never_faster_than_the_link(window in 2u32..40, gap in 1u64..20, lose in prop::collection::vec(0u32..200, 0..20)) {
            let mut d = Delivery::new();
            let (rtt, mut link_free) = (100 * MS, 0u64);
            // Segment, arrival of its acknowledgement; in order of time.
            let mut on_the_way: VecDeque<(u32, u64)> = VecDeque::new();
            let mut sent_at = Vec::new();
            let mut next = 0;
            let mut now = 0;
            while next < 200 {
                while on_the_way.len() < window as usize && next < 200 {
                    d.sent(next, on_the_way.len() as u32 + 1, Exact(now));
                    sent_at.push(Exact(now));
                    link_free = link_free.max(now) + gap * MS;
                    on_the_way.push_back((next, link_free + rtt));
                    next += 1;
                }
                let (segment, at) = on_the_way.pop_front().expect("a window of segments");
                now = at;
                if lose.contains(&segment) {
                    d.lost(segment, Exact(now));
                    continue;
                }
                d.arrived(segment, sent_at[segment as usize], Exact(now));
                // SND.UNA stays behind a loss.
                let una = lose.iter().copied().filter(|l| *l <= segment).min().unwrap_or(segment + 1);
                let s = d.sample(una.max(d.una), Some(0.1)).expect("a segment arrived");
                if s.interval > 0.0 {
                    let rate = f64::from(s.delivered) / s.interval;
                    prop_assert!(rate <= 1000.0 / gap as f64 * (1.0 + 1e-9), "{rate} at a segment each {gap} ms");
                }
            }
        }
    }
}

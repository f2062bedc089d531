//! RACK (RFC 8985 §6): a segment is lost when another that was sent later, by more than a reordering window, has arrived. As times of
//! sending are compared, not numbers, the loss of a retransmission is seen like any other.

use crate::clock::Clock;

use super::scoreboard::{Scoreboard, Segment};

/// RFC 8985 §6.2, step 4: so many SACKed segments are a loss, as long as no reordering has been seen.
const DUP_THRESH: u32 = 3;
/// Linux's clock of this law, in seconds: what is late by less than a tick is late now, and a timer is never set for less.
const TICK: f64 = 1e-6;

/// The state between acknowledgements; times in seconds.
#[derive(Clone, Debug)]
pub struct Rack<C> {
    /// RACK.xmit_ts and RACK.end_seq: of the segments that have arrived, the one sent last.
    latest: Option<(C, u32)>,
    /// RACK.rtt: its round-trip time.
    rtt: f64,
    /// The shortest round-trip time so far.
    min_rtt: f64,
    /// RACK.fack: one past the highest segment that has arrived.
    fack: u32,
    reordering_seen: bool,
    /// Whether a segment sent later than all others that have arrived has arrived since [`Rack::detect`].
    advanced: bool,
}

/// RACK_sent_after() (§6.2, step 2).
fn sent_after<C: Clock>(a: (C, u32), b: (C, u32)) -> bool {
    a.0 > b.0 || a.0 == b.0 && a.1 > b.1
}

impl<C: Clock> Rack<C> {
    /// Nothing has arrived.
    pub fn new() -> Rack<C> {
        Rack {
            latest: None,
            rtt: 0.0,
            min_rtt: f64::INFINITY,
            fack: 0,
            reordering_seen: false,
            advanced: false,
        }
    }

    /// The shortest round-trip time, if there is one.
    pub fn min_rtt(&self) -> Option<f64> {
        self.min_rtt.is_finite().then_some(self.min_rtt)
    }

    /// Whether there is anything new to detect losses by.
    pub fn advanced(&self) -> bool {
        self.advanced
    }

    /// §6.2, steps 1 to 3: this segment has arrived.
    pub fn arrived(&mut self, number: u32, segment: &Segment<C>, now: C) {
        let rtt = C::secs_of(now.since(segment.sent_at));
        if segment.retransmitted && rtt < self.min_rtt {
            // Step 2: it was an earlier transmission that arrived.
            return;
        }
        if !segment.retransmitted {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        // Step 3: one below others that have arrived, which was sent once, was overtaken.
        if number >= self.fack {
            self.fack = number + 1;
        } else if !segment.retransmitted {
            self.reordering_seen = true;
        }
        let sent = (segment.sent_at, number);
        if self.latest.is_none_or(|latest| sent_after(sent, latest)) {
            self.latest = Some(sent);
            self.rtt = rtt;
            self.advanced = true;
        }
    }

    /// §6.2, step 4: how much later another has to have been sent.
    fn reordering_window(&self, srtt: f64, recovering: bool, sacked: u32) -> f64 {
        if !self.reordering_seen && (recovering || sacked >= DUP_THRESH) {
            return 0.0;
        }
        // Without duplicate SACKs (RFC 2883) the multiplier stays at one.
        if self.min_rtt.is_finite() { (self.min_rtt / 4.0).min(srtt) } else { 0.0 }
    }

    /// §6.2, step 5, RACK_detect_loss(): marks what is lost; how many, and in how many seconds one more may be, if none
    /// arrives till then.
    pub fn detect(
        &mut self,
        board: &mut Scoreboard<C>,
        now: C,
        srtt: f64,
        recovering: bool,
    ) -> (u32, Option<f64>) {
        self.advanced = false;
        let Some(latest) = self.latest else { return (0, None) };
        let window = self.reordering_window(srtt, recovering, board.sacked());
        let (mut lost, mut wait) = (0, None::<f64>);
        while let Some(sent) = board.earliest()
            && sent_after(latest, sent)
        {
            if self.remaining(sent.0, now, window) > TICK {
                // The last of those that may be late.
                let late = board.in_order().take_while(|sent| sent_after(latest, *sent)).last();
                wait = late.map(|(at, _)| self.remaining(at, now, window));
                break;
            }
            board.lose(sent.1);
            lost += 1;
        }
        (lost, wait)
    }

    fn remaining(&self, sent_at: C, now: C, window: f64) -> f64 {
        self.rtt + window - C::secs_of(now.since(sent_at))
    }

    /// §6.3, RACK_mark_losses_on_RTO(): the first segment is lost, and those sent so long ago that they should have arrived.
    pub fn timed_out(&mut self, board: &mut Scoreboard<C>, now: C, srtt: f64, recovering: bool) {
        let window = self.reordering_window(srtt, recovering, board.sacked());
        for number in board.una()..board.max() {
            let Some(segment) = board.get(number).copied() else { break };
            if number == board.una() || self.remaining(segment.sent_at, now, window) <= TICK {
                board.lose(number);
            }
        }
    }
}

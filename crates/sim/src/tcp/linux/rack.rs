//! RACK (RFC 8985 §6): a segment is lost when another that was sent later, by more than a reordering window, has arrived. As times of
//! sending are compared, not numbers, the loss of a retransmission is seen like any other.

use crate::clock::Clock;
use crate::tcp::control::least;

use super::scoreboard::{Scoreboard, Segment, sent_after};

/// RFC 8985 §6.2, step 4: so many SACKed segments are a loss, as long as no reordering has been seen.
const DUP_THRESH: u32 = 3;
/// RFC 8985 §6.2, step 4: for so many recoveries without duplicates the window stays as wide as they have made it.
const PERSIST: u32 = 16;
/// Linux's clock of this law, in seconds: what is late by less than a tick is late now, and a timer is never set for less.
const TICK: f64 = 1e-6;

/// The state between acknowledgements; times in seconds. What each acknowledgement asks for comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Rack<C> {
    /// RACK.xmit_ts and RACK.end_seq: of the segments that have arrived, the one sent last.
    latest: Option<(C, u32)>,
    /// RACK.rtt: the round-trip time of the segment sent last of those that the last acknowledgement told of.
    rtt: f64,
    /// The shortest round-trip time so far.
    min_rtt: f64,
    /// RACK.fack: one past the highest segment that has arrived.
    fack: u32,
    reordering_seen: bool,
    /// The segment that [`Rack::rtt`] is of.
    newest: Option<(C, u32)>,
    duplicates: Duplicates,
}

/// How much wider duplicates have made the reordering window (RFC 8985 §6.2, step 4).
#[derive(Clone, Debug)]
struct Duplicates {
    /// RACK.dsack_round: no further growth before this is acknowledged.
    round_end: u32,
    /// RACK.reo_wnd_mult.
    multiplier: u32,
    /// RACK.reo_wnd_persist.
    persist: u32,
    /// The window has grown by the acknowledgement that is read.
    grown: bool,
}

impl<C: Clock> Rack<C> {
    /// So many of its first bytes are what each acknowledgement asks for.
    #[cfg(test)]
    pub const OFTEN: usize = std::mem::offset_of!(Rack<C>, newest);

    /// Nothing has arrived.
    pub fn new() -> Rack<C> {
        Rack {
            latest: None,
            rtt: 0.0,
            min_rtt: f64::INFINITY,
            fack: 0,
            reordering_seen: false,
            newest: None,
            duplicates: Duplicates { round_end: 0, multiplier: 1, persist: 0, grown: false },
        }
    }

    /// When the segment sent last of those that have arrived was sent: where none is in flight, the last of all.
    pub fn last_sent(&self) -> Option<C> {
        self.latest.map(|(sent_at, _)| sent_at)
    }

    /// An acknowledgement arrives.
    pub fn begin(&mut self) {
        self.newest = None;
        self.duplicates.grown = false;
    }

    /// §6.2, steps 1 to 3: this segment has arrived. Those that one acknowledgement tells of come in the order of their numbers.
    /// `rtt`: since it was last sent.
    #[inline]
    pub fn arrived(&mut self, number: u32, segment: &Segment<C>, rtt: f64) {
        // Step 3: one below others that have arrived, which was sent once, was overtaken.
        if number >= self.fack {
            self.fack = number + 1;
        } else if !segment.retransmitted {
            self.reordering_seen = true;
        }
        if !segment.retransmitted {
            self.min_rtt = least(rtt, self.min_rtt);
        } else if rtt < self.min_rtt {
            // Step 2: it was an earlier transmission that arrived.
            return;
        }
        let sent = (segment.sent_at, number);
        // Step 2 goes through them in the order of sending: the last one's round-trip time stays.
        if self.newest.is_none_or(|newest| sent_after(sent, newest)) {
            self.newest = Some(sent);
            self.rtt = rtt;
        }
        if self.latest.is_none_or(|latest| sent_after(sent, latest)) {
            self.latest = Some(sent);
        }
    }

    /// The same of several segments that were sent once, in the order of their numbers and after all that had arrived: of those before
    /// `next`, the last was sent at `sent_at` and took `rtt`, the shortest took `shortest`.
    #[inline(always)]
    pub fn arrived_in_order(&mut self, next: u32, sent_at: C, rtt: f64, shortest: f64) {
        self.fack = next;
        self.min_rtt = least(shortest, self.min_rtt);
        self.rtt = rtt;
        self.latest = Some((sent_at, next - 1));
    }

    /// §6.2, step 4: how much later another has to have been sent.
    fn reordering_window(&self, srtt: f64, recovering: bool, sacked: u32) -> f64 {
        if !self.reordering_seen && (recovering || sacked >= DUP_THRESH) {
            return 0.0;
        }
        let times = f64::from(self.duplicates.multiplier);
        if self.min_rtt.is_finite() { (times * self.min_rtt / 4.0).min(srtt) } else { 0.0 }
    }

    /// §6.2, step 4: an acknowledgement of all before `una` tells of a segment that was sent again in vain; once in a round trip the
    /// window grows by a quarter of the shortest round-trip time. As in Linux, where reordering has been seen: what was sent again in vain
    /// for another reason says nothing of it.
    pub fn sent_in_vain(&mut self, una: u32, next: u32) {
        let d = &mut self.duplicates;
        if self.reordering_seen && una >= d.round_end {
            let multiplier = d.multiplier.saturating_add(1);
            *d = Duplicates { round_end: next, multiplier, persist: PERSIST, grown: true };
        }
    }

    /// §6.2, step 4: a recovery has ended; after sixteen without growth the window is as at first.
    pub fn recovered(&mut self) {
        let d = &mut self.duplicates;
        if d.grown {
            return;
        }
        d.persist = d.persist.saturating_sub(1);
        if d.persist == 0 {
            d.multiplier = 1;
        }
    }

    /// Whether what has arrived has overtaken nothing, as is seen at once most often.
    #[inline(always)]
    pub fn has_overtaken_nothing(&self, board: &Scoreboard<C>) -> bool {
        self.latest.is_none_or(|latest| board.is_all_later(latest))
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
        let Some(latest) = self.latest else { return (0, None) };
        let window = self.reordering_window(srtt, recovering, board.sacked());
        let (mut lost, mut wait) = (0, None::<f64>);
        while let Some(sent) = board.earliest()
            && sent_after(latest, sent)
        {
            if self.remaining(sent.0, now, window) > TICK {
                // The last of those that may be late.
                wait = board.last_before(latest).map(|at| self.remaining(at, now, window));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;

    const MS: u64 = 1_000_000_000;

    /// A board with a segment sent at each of these times, in ms.
    fn board(sent: &[u64]) -> Scoreboard<Exact> {
        let mut board = Scoreboard::new();
        for (number, at) in (0..).zip(sent) {
            board.sent(number, Exact(at * MS));
        }
        board
    }

    fn arrive(rack: &mut Rack<Exact>, board: &mut Scoreboard<Exact>, block: (u32, u32), ms: u64) {
        rack.begin();
        board.select(block, |number, segment| {
            let rtt = Exact::secs_of(Exact(ms * MS).since(segment.sent_at));
            rack.arrived(number, segment, rtt);
        });
    }

    /// RFC 8985 §6.2, step 2: the round-trip time is that of what the last acknowledgement told of, even where something sent later
    /// had arrived before.
    #[test]
    fn the_round_trip_time_is_the_last_acknowledgements() {
        let (mut rack, mut board) = (Rack::new(), board(&[0, 1, 2]));
        arrive(&mut rack, &mut board, (2, 3), 102);
        assert_eq!(rack.rtt, 0.1);
        arrive(&mut rack, &mut board, (1, 2), 161);
        assert_eq!((rack.rtt, rack.latest), (0.16, Some((Exact(2 * MS), 2))));
    }

    /// RFC 8985 §6.2, step 3: one that was overtaken, and only one that was sent once.
    #[test]
    fn reordering_is_what_was_sent_once_and_overtaken() {
        let (mut rack, mut board) = (Rack::new(), board(&[0, 0, 0, 0]));
        arrive(&mut rack, &mut board, (2, 4), 100);
        board.sent(0, Exact(101 * MS));
        arrive(&mut rack, &mut board, (0, 1), 300);
        assert!(!rack.reordering_seen);
        arrive(&mut rack, &mut board, (1, 2), 301);
        assert!(rack.reordering_seen);
    }

    /// RFC 8985 §6.2, step 3, is of all that have arrived, also of those whose earlier transmission it was (step 2).
    #[test]
    fn an_earlier_transmission_overtakes_too() {
        let (mut rack, mut board) = (Rack::new(), board(&[0, 0, 0]));
        arrive(&mut rack, &mut board, (0, 1), 100);
        board.sent(2, Exact(140 * MS));
        arrive(&mut rack, &mut board, (2, 3), 141);
        assert_eq!((rack.fack, rack.reordering_seen), (3, false));
        arrive(&mut rack, &mut board, (1, 2), 142);
        assert!(rack.reordering_seen);
    }

    /// RFC 8985 §6.2, step 4: a quarter of the shortest round-trip time more for each round trip with a duplicate, up to the smoothed
    /// round-trip time; as at first after sixteen recoveries. Nothing of it before reordering is seen, as in Linux.
    #[test]
    fn duplicates_widen_the_reordering_window() {
        let (mut rack, mut board) = (Rack::new(), board(&[0, 0, 0, 0]));
        arrive(&mut rack, &mut board, (2, 4), 100);
        // In ms.
        let window = |rack: &Rack<Exact>| (rack.reordering_window(0.11, false, 0) * 1e3 + 1e-6) as u32;
        rack.sent_in_vain(10, 20);
        assert_eq!(window(&rack), 25, "no reordering was seen");
        arrive(&mut rack, &mut board, (1, 2), 101);
        rack.sent_in_vain(10, 20);
        assert_eq!(window(&rack), 50);
        rack.sent_in_vain(19, 30);
        assert_eq!(window(&rack), 50, "the same round trip");
        for una in [20, 30, 40] {
            rack.sent_in_vain(una, una + 10);
        }
        assert_eq!(window(&rack), 110, "no more than the round-trip time");
        rack.begin();
        (0..15).for_each(|_| rack.recovered());
        assert_eq!(window(&rack), 110);
        rack.recovered();
        assert_eq!(window(&rack), 25);
    }

    /// RFC 8985 §6.2, step 5: lost once RACK.rtt and the reordering window have passed, and not before.
    #[test]
    fn lost_is_what_a_later_one_has_overtaken_by_a_window() {
        let (mut rack, mut board) = (Rack::new(), board(&[0, 10, 200]));
        arrive(&mut rack, &mut board, (1, 2), 110);
        // 0 is late by 10 ms: within a quarter of 100 ms.
        let (lost, wait) = rack.detect(&mut board, Exact(110 * MS), 0.1, false);
        assert_eq!(lost, 0);
        assert!((wait.expect("it may still come") - 0.015).abs() < 1e-9);
        assert_eq!(rack.detect(&mut board, Exact(125 * MS), 0.1, false), (1, None));
        // 2 was sent later than what has arrived: nothing is known of it, however late it is.
        assert_eq!(rack.detect(&mut board, Exact(900 * MS), 0.1, false), (0, None));
        assert_eq!((board.lost(), board.in_flight()), (1, 1));
    }
}

//! Timed traces: what the sender does, acknowledgement by acknowledgement.

use inprofile_core::units::{Duration, Time};

use super::Sender;
use crate::clock::{Clock, Exact};
use crate::tcp::{Ack, Alarm, Bits, Config, Congestion, Host, Profile, Sack};

/// A world that writes down what is sent and when timers are due.
struct Script {
    now: Exact,
    sent: Vec<u32>,
    due: [Option<Exact>; 3],
}

impl Host for Script {
    type Clock = Exact;
    fn now(&self) -> Exact {
        self.now
    }
    fn send(&mut self, segment: u32, _: Bits) {
        self.sent.push(segment);
    }
    fn set_timer(&mut self, which: Alarm, after: Duration) {
        self.due[which as usize] = Some(self.now.after(after));
    }
    fn cancel_timer(&mut self, which: Alarm) {
        self.due[which as usize] = None;
    }
    fn timer_is_set(&self, which: Alarm) -> bool {
        self.due[which as usize].is_some()
    }
    fn uniform(&mut self) -> f64 {
        0.5
    }
}

/// A sender in that world.
pub struct Connection {
    pub sender: Sender<Exact>,
    host: Script,
}

pub fn config() -> Config {
    Config {
        profile: Profile::Rfc,
        congestion: Congestion::Reno,
        segment: 1000,
        header: 40,
        window: 1000,
        jitter: Duration::ZERO,
        delayed_ack: None,
        min_rto: Duration::from_millis(1000),
        initial_window: 10,
        limited_transmit: true,
        ecn: false,
    }
}

impl Connection {
    /// Started at 0; the SYN is on its way.
    fn open(config: &Config) -> Connection {
        let host = Script { now: Exact(0), sent: Vec::new(), due: [None; 3] };
        let mut c = Connection { sender: Sender::new(config), host };
        c.sender.start(&mut c.host);
        if config.jitter == Duration::ZERO {
            assert_eq!(c.sent(), [0]);
        }
        c
    }

    /// What was sent since the last time.
    fn sent(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.host.sent)
    }

    /// At `ms` the receiver says that it waits for `next`; what is sent then.
    pub fn ack(&mut self, ms: u64, next: u32) -> Vec<u32> {
        self.said(ms, next, &Sack::default())
    }

    /// As [`Connection::ack`], and the receiver says what else it has.
    pub fn said(&mut self, ms: u64, next: u32, sack: &Sack) -> Vec<u32> {
        let now = Exact::at(Time::ZERO + Duration::from_millis(ms));
        assert!(now >= self.host.now, "the script goes back in time");
        self.host.now = now;
        self.sender.acknowledged(Ack { next, sack, echo: false }, &mut self.host);
        self.sent()
    }

    /// `n` of the same, at once.
    pub fn acks(&mut self, ms: u64, next: u32, n: usize) -> Vec<u32> {
        (0..n).flat_map(|_| self.ack(ms, next)).collect()
    }

    /// The next timer expires; when, in ms, and what is sent then.
    fn expire(&mut self, which: Alarm) -> (u64, Vec<u32>) {
        let at = self.host.due[which as usize].take().expect("the timer is set");
        self.host.now = at;
        match which {
            Alarm::Retransmit => self.sender.timed_out(&mut self.host),
            _ => self.sender.delay_over(&mut self.host),
        }
        (at.0 / 1_000_000_000, self.sent())
    }

    /// In slow start, with `n` segments on the way, the first of them `una`, round trips of 100 ms.
    pub fn with_flight(config: &Config, n: u32) -> (Connection, u32) {
        let mut c = Connection::open(config);
        let mut una = 1;
        let mut ms = 100;
        c.ack(ms, una);
        while (c.sender.flight() as u32) < n {
            una += 1;
            ms += 1;
            c.ack(ms, una);
        }
        assert_eq!(c.sender.flight(), f64::from(n));
        (c, una)
    }
}

/// `from` to `to`, the latter excluded.
pub fn segments(from: u32, to: u32) -> Vec<u32> {
    (from..to).collect()
}

#[test]
fn slow_start_doubles_a_round_trip() {
    let mut c = Connection::open(&config());
    assert_eq!(c.ack(100, 1), segments(1, 11));
    assert_eq!(c.sender.cwnd(), 10.0);
    let second: Vec<u32> = (2..=11).flat_map(|next| c.ack(200, next)).collect();
    assert_eq!(second, segments(11, 31));
    assert_eq!(c.sender.cwnd(), 20.0);
    // An acknowledgement for two counts two, one for five no more than that.
    assert_eq!(c.ack(300, 13), segments(31, 35));
    assert_eq!(c.ack(301, 18), segments(35, 42));
    assert_eq!(c.sender.cwnd(), 24.0);
}

#[test]
fn congestion_avoidance_adds_a_segment_a_round_trip() {
    let (mut c, una) = Connection::with_flight(&config(), 20);
    c.acks(500, una, 3);
    c.ack(600, una + 22);
    assert_eq!(c.sender.cwnd(), 10.0);
    let before = c.sender.nxt;
    assert_eq!(before, una + 32);
    for next in una + 23..=una + 32 {
        c.ack(700, next);
    }
    assert!((c.sender.cwnd() - 11.0).abs() < 0.06, "{}", c.sender.cwnd());
}

#[test]
fn limited_transmit_sends_a_new_segment_for_each_of_two_duplicates() {
    let (mut c, una) = Connection::with_flight(&config(), 20);
    assert_eq!(c.ack(500, una), [una + 20]);
    assert_eq!(c.ack(500, una), [una + 21]);
    assert_eq!(c.sender.cwnd(), 20.0);

    let (mut c, una) = Connection::with_flight(&Config { limited_transmit: false, ..config() }, 20);
    assert_eq!(c.acks(500, una, 2), []);
}

/// RFC 5681 §3.2, step by step.
#[test]
fn fast_retransmit_and_fast_recovery() {
    let (mut c, una) = Connection::with_flight(&config(), 20);
    c.acks(500, una, 2);
    assert_eq!(c.ack(500, una), [una]);
    // What limited transmit sent is no part of the flight: 20 / 2, and three for the duplicates.
    assert_eq!((c.sender.ssthresh(), c.sender.cwnd()), (10.0, 13.0));
    // The window of 13 grows by one a duplicate; with 22 on the way it lets something out at 23.
    assert_eq!(c.acks(500, una, 9), []);
    assert_eq!(c.ack(500, una), [una + 22]);
    assert_eq!(c.acks(500, una, 5), segments(una + 23, una + 28));
    // Deflation: back to half.
    assert_eq!(c.ack(600, una + 20), [una + 28, una + 29]);
    assert_eq!((c.sender.cwnd(), c.sender.ssthresh()), (10.0, 10.0));
    let t = c.sender.tally();
    assert_eq!((t.fast_retransmits, t.retransmissions, t.timeouts), (1, 1, 0));
}

#[test]
fn without_limited_transmit_the_flight_is_the_window() {
    let (mut c, una) = Connection::with_flight(&Config { limited_transmit: false, ..config() }, 20);
    assert_eq!(c.acks(500, una, 3), [una]);
    assert_eq!((c.sender.ssthresh(), c.sender.cwnd()), (10.0, 13.0));
}

/// The receiver's window is full: limited transmit sends nothing, and nothing is to be taken off the flight.
#[test]
fn only_what_limited_transmit_has_sent_is_taken_off_the_flight() {
    let (mut c, una) = Connection::with_flight(&Config { window: 20, ..config() }, 20);
    assert_eq!(c.acks(500, una, 2), []);
    assert_eq!(c.ack(500, una), [una]);
    assert_eq!(c.sender.ssthresh(), 10.0);
}

#[test]
fn a_timeout_starts_again_from_one_segment_and_backs_off_to_a_minute() {
    let (mut c, una) = Connection::with_flight(&config(), 20);
    let (first, sent) = c.expire(Alarm::Retransmit);
    assert_eq!(sent, [una]);
    assert_eq!((c.sender.cwnd(), c.sender.ssthresh()), (1.0, 10.0));
    let mut last = first;
    let mut gaps = Vec::new();
    for _ in 0..9 {
        let (at, sent) = c.expire(Alarm::Retransmit);
        assert_eq!(sent, [una]);
        gaps.push(at - last);
        last = at;
    }
    assert_eq!(gaps, [2, 4, 8, 16, 32, 60, 60, 60, 60].map(|s| s * 1000));
    // The threshold was set once, by what was on the way then.
    assert_eq!(c.sender.ssthresh(), 10.0);
    assert_eq!(c.sender.tally().timeouts, 10);
}

/// Karn's rule: an acknowledgement of what was sent twice says nothing about the round trip, and the
/// timer stays backed off until one does.
#[test]
fn the_timer_stays_backed_off_until_a_new_measurement() {
    let (mut c, una) = Connection::with_flight(&config(), 20);
    let (at, _) = c.expire(Alarm::Retransmit);
    // Everything but `una` had arrived. Two new segments go out, and the first of them is timed.
    assert_eq!(c.ack(at + 100, una + 20), [una + 20, una + 21]);
    assert_eq!(c.sender.timed, Some((una + 20, c.host.now)));
    let due = |c: &Connection| c.host.due[Alarm::Retransmit as usize].map(|t| t.0 / 1_000_000_000);
    assert_eq!(due(&c), Some(at + 100 + 2000));
    c.ack(at + 200, una + 21);
    assert_eq!(due(&c), Some(at + 200 + 1000));
}

/// RFC 3465 §2.3: in the slow start after a timeout one acknowledgement may cover a whole window that had
/// arrived long before; it counts as one segment.
#[test]
fn slow_start_after_a_timeout_counts_one_segment_an_acknowledgement() {
    let (mut c, una) = Connection::with_flight(&config(), 20);
    let (at, _) = c.expire(Alarm::Retransmit);
    c.ack(at + 100, una + 5);
    assert_eq!(c.sender.cwnd(), 2.0);
    c.ack(at + 200, una + 20);
    assert_eq!(c.sender.cwnd(), 3.0);
}

/// Going back N repeats segments that had arrived; the duplicates that come of it mean no loss.
#[test]
fn duplicates_of_what_was_repeated_are_no_loss() {
    let (mut c, una) = Connection::with_flight(&config(), 20);
    // Lost: `una` and `una + 7`.
    let (at, sent) = c.expire(Alarm::Retransmit);
    assert_eq!(sent, [una]);
    assert_eq!(c.ack(at + 100, una + 7), [una + 7, una + 8]);
    // Both arrive; the first fills the gap, the second is old.
    let new = c.ack(at + 200, una + 20);
    assert_eq!(new, segments(una + 20, una + 23));
    c.ack(at + 201, una + 20);
    // Three more of the kind, as from a longer repetition.
    c.acks(at + 202, una + 20, 3);
    assert_eq!(c.sender.tally().fast_retransmits, 0);
    // Once something sent after the timeout is through, three duplicates mean a loss again.
    c.ack(at + 300, una + 21);
    let sent = c.acks(at + 301, una + 21, 3);
    assert!(sent.contains(&(una + 21)), "{sent:?}");
    assert_eq!(c.sender.tally().fast_retransmits, 1);
}

/// RFC 3042 §2: limited transmit is of data never sent before.
#[test]
fn limited_transmit_repeats_nothing() {
    let (mut c, una) = Connection::with_flight(&config(), 20);
    let (at, sent) = c.expire(Alarm::Retransmit);
    assert_eq!(sent, [una]);
    assert_eq!(c.acks(at + 50, una, 2), []);
}

/// RFC 6298 §5.7, RFC 6928 §3.
#[test]
fn a_lost_syn_costs_the_initial_window_and_three_seconds() {
    let mut c = Connection::open(&config());
    assert_eq!(c.expire(Alarm::Retransmit), (1000, vec![0]));
    assert_eq!(c.ack(1100, 1), [1]);
    assert_eq!(c.expire(Alarm::Retransmit), (4100, vec![1]));
}

#[test]
fn nothing_on_the_way_no_timer() {
    let mut c = Connection::open(&Config { jitter: Duration::from_millis(10), ..config() });
    // Until the random delay is over nothing is on the way.
    assert_eq!(c.host.sent, []);
    assert!(!c.host.timer_is_set(Alarm::Retransmit));
    assert_eq!(c.expire(Alarm::Send), (5, vec![0]));
    assert!(c.host.timer_is_set(Alarm::Retransmit));
    assert_eq!(c.ack(100, 1), []);
    assert!(!c.host.timer_is_set(Alarm::Retransmit));
    assert_eq!(c.expire(Alarm::Send), (105, segments(1, 11)));
}

#[test]
fn acknowledgements_of_the_past_and_of_the_future_are_ignored() {
    let (mut c, una) = Connection::with_flight(&config(), 20);
    let before = c.sender.cwnd();
    assert_eq!(c.ack(500, una - 1), []);
    assert_eq!(c.ack(500, una + 21), []);
    assert_eq!((c.sender.una, c.sender.cwnd(), c.sender.duplicates), (una, before, 0));
}

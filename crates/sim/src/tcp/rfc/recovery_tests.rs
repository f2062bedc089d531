//! Timed traces of NewReno and SACK: twenty segments on the way from `una` on, some of them lost.

use super::tests::{Connection, config, segments};
use crate::tcp::{Config, Congestion, Sack};

fn with(congestion: Congestion) -> (Connection, u32) {
    let config = Config { congestion, ..config() };
    let (c, una) = Connection::with_flight(&config, 20);
    assert_eq!(una + 20, c.sender.end);
    (c, una)
}

fn sacked(blocks: &[(u32, u32)]) -> Sack {
    let mut sack = Sack::default();
    blocks.iter().for_each(|b| sack.push(*b));
    sack
}

#[test]
fn newreno_fills_a_hole_a_round_trip_and_leaves_without_a_burst() {
    // The first and the sixth are lost.
    let (mut c, una) = with(Congestion::NewReno);
    // Two by limited transmit, then the first again.
    assert_eq!(c.acks(1000, una, 3), [una + 20, una + 21, una]);
    assert_eq!((c.sender.ssthresh, c.sender.cwnd), (10.0, 13.0));
    // RFC 6582: each further duplicate inflates; 20 − 3 − 2 of them, and the two of limited transmit.
    let inflated = c.acks(1010, una, 15 + 2);
    assert_eq!(inflated, segments(una + 22, una + 30));
    assert_eq!(c.sender.cwnd, 30.0);
    // Partial: up to the second hole, which is filled at once; 5 acknowledged, so 30 − 5 + 1.
    assert_eq!(c.ack(1100, una + 5), [una + 5, una + 30]);
    assert_eq!(c.sender.cwnd, 26.0);
    assert!(c.sender.in_recovery);
    // All that was out at the start and more: 9 still on the way, so min(10, 9 + 1).
    c.ack(1200, una + 22);
    assert!(!c.sender.in_recovery);
    assert_eq!(c.sender.cwnd, 10.0);
    assert_eq!(c.sender.tally.timeouts, 0);
}

#[test]
fn sack_fills_three_holes_in_one_round_trip() {
    // Segments 0, 5 and 6 of the flight are lost; all others arrive.
    let (mut c, una) = with(Congestion::Sack);
    let mut sent = Vec::new();
    for top in 1..20 {
        if top == 5 || top == 6 {
            continue;
        }
        let blocks = if top < 5 {
            sacked(&[(una + 1, una + top + 1)])
        } else {
            sacked(&[(una + 7, una + top + 1), (una + 1, una + 5)])
        };
        sent.extend(c.said(1000 + u64::from(top), una, &blocks));
    }
    assert_eq!(c.sender.ssthresh, 10.0);
    let repeated: Vec<u32> = sent.iter().copied().filter(|s| *s < una + 20).collect();
    assert_eq!(repeated, [una, una + 5, una + 6]);
    // Nothing else was repeated, and the rest is new data.
    let new: Vec<u32> = sent.iter().copied().filter(|s| *s >= una + 20).collect();
    assert_eq!(new, segments(una + 20, una + 20 + new.len() as u32));
    // The pipe never held more than the window.
    assert!(new.len() + 3 <= 10 + 2);
    // All that was out when the loss was found, the two of limited transmit included.
    c.said(1200, una + 22, &Sack::default());
    assert!(!c.sender.in_recovery);
    assert_eq!((c.sender.cwnd, c.sender.tally.timeouts), (10.0, 0));
}

#[test]
fn sack_counts_only_what_tells_something_new() {
    let (mut c, una) = with(Congestion::Sack);
    let same = sacked(&[(una + 1, una + 2)]);
    for _ in 0..5 {
        c.said(1000, una, &same);
    }
    assert!(!c.sender.in_recovery);
    assert_eq!(c.sender.duplicates, 1);
}

#[test]
fn sack_rescues_a_lost_tail_without_a_timeout() {
    // The first is lost and so is the last one that was out when that was found.
    let (mut c, una) = with(Congestion::Sack);
    let mut sent = Vec::new();
    for top in 1..19 {
        sent.extend(c.said(1000 + u64::from(top), una, &sacked(&[(una + 1, una + top + 1)])));
    }
    assert!(c.sender.in_recovery && sent.contains(&una));
    // Acknowledged up to the tail; the receiver's window leaves no room for new data.
    let tail = c.sender.recovery_point - 1;
    c.sender.window = c.sender.nxt - tail;
    let rescue = c.said(1100, tail, &Sack::default());
    assert_eq!(rescue, [tail]);
    assert_eq!(c.said(1101, tail, &Sack::default()), [0u32; 0]);
}

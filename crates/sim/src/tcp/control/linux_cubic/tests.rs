//! The law of `tcp_cubic.c`, by sequences computed by hand and by the function it approximates.

use super::*;
use proptest::prelude::*;

const MS: f64 = 1e-3;

/// One acknowledgement of a segment at each of these times: the window after each.
fn windows(cubic: &mut LinuxCubic, mut cwnd: f64, times: impl Iterator<Item = f64>) -> Vec<u32> {
    times
        .map(|now| {
            cwnd = cubic.avoid(cwnd, 1, || (0.1, now));
            cwnd as u32
        })
        .collect()
}

/// A flow that fills its window: the window at the start of each round trip.
fn rounds(cubic: &mut LinuxCubic, mut cwnd: f64, rtt: f64, from: f64, n: usize) -> Vec<f64> {
    let mut seen = Vec::new();
    for round in 0..n {
        seen.push(cwnd);
        let acks = cwnd as u32;
        for i in 0..acks {
            let now = from + (round as f64 + f64::from(i) / f64::from(acks)) * rtt;
            cubic.measured(rtt, now);
            cwnd = cubic.avoid(cwnd, 1, || (rtt, now));
        }
    }
    seen
}

/// After a loss in a window of `lost_at`, with nothing known before.
fn after_loss(lost_at: f64) -> (LinuxCubic, f64) {
    let mut cubic = LinuxCubic::default();
    let cwnd = cubic.reduce(Cause::Loss, lost_at, lost_at);
    (cubic, cwnd)
}

/// RFC 9438 §4.6 and §4.7 in 1024ths, rounded down: 717, and 1741 / 2048 where the last maximum was not reached.
#[test]
fn a_loss_leaves_seven_tenths_rounded_down() {
    let mut cubic = LinuxCubic::default();
    let left = |cwnd| LinuxCubic::default().reduce(Cause::Loss, cwnd, 1.0);
    assert_eq!([3.0, 7.0, 10.0, 20.0, 1000.0].map(left), [2.0, 4.0, 7.0, 14.0, 700.0]);
    cubic.reduce(Cause::Loss, 10.0, 10.0);
    assert_eq!(cubic.last_max, 10);
    cubic.reduce(Cause::Mark, 8.0, 8.0);
    assert_eq!(cubic.last_max, 6, "8 × 1741 / 2048 = 6.8");
    cubic.reduce(Cause::Loss, 6.0, 6.0);
    assert_eq!(cubic.last_max, 6, "reached");
}

/// RFC 9438 §4.2: from 700 back to 1000 takes cbrt(300 / 0.4) s; C is 410 / 1024 here, and 2^40 / 410 is rounded down.
#[test]
fn the_way_back_takes_a_cube_root() {
    assert_eq!(time_to(300), 9300, "9.082 s");
    assert_eq!(time_to(1), 1389, "1.356 s");
    assert_eq!((distance(1389), distance(1390)), (0, 1));
    assert_eq!(distance(9300), 299);
    assert_eq!(distance(u64::MAX), distance(FARTHEST));
}

/// Below the flat part, the distance to it is rounded down: a window that the function has just left lies one below it, and grows as Reno's does. A loss
/// in a window of 10 leaves 7, and K is cbrt(3 × 2^40 / 410) = 2003 units of 1/1024 s: at once the function is 2 below, at 8, and from 62 ticks of 4 ms on, 1
/// below.
#[test]
fn cnt_is_the_window_by_its_distance() {
    let (mut cubic, cwnd) = after_loss(10.0);
    assert_eq!(cwnd, 7.0);
    let mut at =
        |cwnd, tick: u32| windows(&mut cubic, cwnd, std::iter::once(10.0 + 0.0041 * f64::from(tick)));
    let first: Vec<u32> = (0..7).flat_map(|_| at(7.0, 0)).collect();
    assert_eq!(first, [7, 7, 7, 7, 7, 7, 8]);
    // In the same tick the function has no other value.
    at(8.0, 0);
    assert_eq!((cubic.k, cubic.origin, cubic.cnt), (2003, 10, 7));
    let cnt = |cubic: &mut LinuxCubic, tick: i64| {
        cubic.update(8, 1, 2500 + tick);
        cubic.cnt
    };
    assert_eq!(cnt(&mut cubic, 1), 800, "8 is what the function asks for");
    assert_eq!((cubic.value(61), cubic.value(62)), (8, 9));
    cubic.acked = 0;
    assert_eq!(cnt(&mut cubic, 61), 800);
    assert_eq!(cnt(&mut cubic, 68), 800, "not before a 32nd of a second has passed");
    assert_eq!(cnt(&mut cubic, 69), 8);
}

/// RFC 9438 §4.3: the friendly window grows by one for each 15/8 of the window, beyond the window of the last loss as well, and the window follows once
/// it is behind.
#[test]
fn the_friendly_window_grows_by_15_eighths_of_the_window() {
    assert_eq!(FRIENDLY, 15);
    let (mut cubic, cwnd) = after_loss(20.0);
    // The function takes 2.5 s to 20, and 4.9 s to 26; at 50 ms Reno is faster.
    let seen = rounds(&mut cubic, cwnd, 0.05, 0.0, 100);
    for (round, cwnd) in seen.iter().enumerate() {
        let law = 14.0 + 8.0 / 15.0 * round as f64;
        assert!((cwnd - law).abs() <= 2.0, "{cwnd} for {law} in round {round}");
    }
}

/// Linux: as long as no loss is known, twenty segments are one more in the window, at most.
#[test]
fn without_a_loss_growth_is_a_twentieth() {
    let mut cubic = LinuxCubic::default();
    let seen = windows(&mut cubic, 100.0, std::iter::repeat_n(5.0, 40));
    assert_eq!((seen[18], seen[19], seen[38], seen[39]), (100, 101, 101, 102));
}

/// RFC 9438 §4.2: however far the window is below the function, it grows by no more than half in a round trip.
#[test]
fn growth_is_bounded_by_half() {
    let (mut cubic, _) = after_loss(1000.0);
    windows(&mut cubic, 100.0, std::iter::once(5.0));
    let seen = windows(&mut cubic, 100.0, std::iter::repeat_n(30.0, 100));
    assert_eq!(seen[99], 150);
}

/// Linux's `bictcp_reset`: a timeout, also one in a recovery, forgets all; a loss does not forget the shortest round-trip time.
#[test]
fn a_timeout_forgets_everything() {
    for again in [false, true] {
        let (mut cubic, _) = after_loss(100.0);
        cubic.measured(0.1, 1.0);
        cubic.avoid(70.0, 1, || (0.1, 2.0));
        if again {
            cubic.timed_out_again(70.0);
        } else {
            assert_eq!(cubic.reduce(Cause::Timeout, 70.0, 1.0), 49.0);
        }
        let fresh = LinuxCubic::default();
        assert_eq!(format!("{cubic:?}"), format!("{fresh:?}"));
        cubic.measured(0.2, 3.0);
        assert_eq!(cubic.delay_min, 0.2);
        cubic.reduce(Cause::Loss, 40.0, 40.0);
        assert_eq!((cubic.last_max, cubic.delay_min), (40, 0.2));
    }
}

/// Linux's `bictcp_acked`: round-trip times of a stage's first second do not count, those of a recovery do.
#[test]
fn the_shortest_round_trip_is_not_of_a_stages_first_second() {
    let (mut cubic, cwnd) = after_loss(100.0);
    cubic.measured(0.1, 0.5);
    cubic.avoid(cwnd, 1, || (0.1, 1.0));
    cubic.measured(0.05, 1.9);
    assert_eq!(cubic.delay_min, 0.1);
    cubic.measured(0.05, 2.0);
    assert_eq!(cubic.delay_min, 0.05);
}

/// RFC 9438 §4.2, `bictcp_cwnd_event`: time with nothing in flight is no part of the stage, which never begins in the future.
#[test]
fn a_pause_moves_the_stage() {
    let (mut cubic, cwnd) = after_loss(100.0);
    cubic.avoid(cwnd, 1, || (0.1, 1.0));
    assert_eq!(cubic.epoch, Some(250));
    cubic.starts(3.0, 13.0);
    assert_eq!(cubic.epoch, Some(2750));
    cubic.starts(0.0, 14.0);
    assert_eq!(cubic.epoch, Some(3500), "14 s");
}

proptest! {
    /// RFC 9438 §4.2: where windows are large, whole numbers matter little: the window is within two segments, and what the function grows in a round trip
    /// and a 32nd of a second, of the function.
    #[test]
    fn large_windows_follow_the_function(lost_at in 300u32..3000, rtt_ms in 20u32..200) {
        let rtt = f64::from(rtt_ms) * MS;
        let (mut cubic, cwnd) = after_loss(f64::from(lost_at));
        let n = (12.0 / rtt) as usize;
        let k = libm::cbrt((f64::from(lost_at) - cwnd) / 0.4);
        let law = |t: f64| 0.4 * libm::pow(t - k, 3.0) + f64::from(lost_at);
        for (round, cwnd) in rounds(&mut cubic, cwnd, rtt, 7.0, n).iter().enumerate().skip(3) {
            let t = round as f64 * rtt;
            // Reno's window is below the function here but at the longest times; it only adds.
            let least = law(t - rtt - 0.036) - 3.0;
            let most = (law(t + rtt + 0.036) + 3.0).max(0.7 * f64::from(lost_at) + 0.54 * round as f64 + 3.0);
            prop_assert!(*cwnd >= least && *cwnd <= most, "{cwnd} at {t}: {least} to {most}");
        }
    }

    /// An acknowledgement never lowers the window, and adds no more than half of what it acknowledges, and one.
    #[test]
    fn growth_is_bounded(
        lost_at in 3u32..5000,
        acks in prop::collection::vec((1u32..60, 0.0f64..0.5), 1..200),
    ) {
        let (mut cubic, mut cwnd) = after_loss(f64::from(lost_at));
        cwnd = cwnd.max(2.0);
        let mut now = 0.0;
        for (segments, gap) in acks {
            now += gap;
            cubic.measured(0.01 + gap, now);
            let next = cubic.avoid(cwnd, segments, || (0.1, now));
            prop_assert!(next >= cwnd && next <= cwnd + f64::from(segments) / 2.0 + 1.0, "{cwnd} to {next}");
            prop_assert_eq!(next.fract(), 0.0);
            cwnd = next;
        }
    }
}

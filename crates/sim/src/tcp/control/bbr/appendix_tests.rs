//! More test cases of draft-ietf-ccwg-bbr, Appendix A: an application that limits the sender, losses, policers, acknowledgements that come together.

use super::tests::{Path, in_state};
use super::{Bbr, MIN_PIPE_CWND, State};
use crate::tcp::control::{Cause, Law, Lost, RateSample, Sample, Start, Window};
use proptest::prelude::*;

/// §5.3.1, A.2: six ranges and more than 2 % lost in a round trip end Startup also where the application limits the rate, so that no plateau
/// can.
#[test]
fn losses_end_startup_of_an_application_limited_flow() {
    let mut p = Path::new(10_000.0, 0.05, 1000);
    p.feed(60, 0.05, 1.0, |_| false);
    assert_eq!((p.bbr().state, p.bbr().full_bw_count), (State::Startup, 0));
    p.one_lost_of = 7;
    p.feed(60, 0.05, 3.0, |p| p.bbr().full_bw_reached);
    assert!(p.bbr().full_bw_reached && p.bbr().full_bw_now && p.bbr().inflight_longterm.is_finite());
    assert_eq!(p.bbr().full_bw_count, 0);
}

/// §4.1.1, §5.3.1, A.7: without losses an application-limited Startup goes on for ever; §5.3.4, A.20: ProbeRTT returns to it.
#[test]
fn startup_goes_on_while_the_application_limits_it() {
    let mut p = Path::new(10_000.0, 0.05, 1000);
    p.feed(20, 0.05, 8.0, in_state(State::ProbeRtt));
    assert_eq!(p.bbr().state, State::ProbeRtt);
    p.feed(20, 0.05, 2.0, in_state(State::Startup));
    assert_eq!(p.bbr().state, State::Startup);
    p.feed(20, 0.05, 20.0, |p| p.bbr().full_bw_reached);
    assert!(!p.bbr().full_bw_reached);
}

/// §5.3.2, A.4: where the bandwidth was overestimated, Drain ends after three round trips, with more in flight than the estimate.
#[test]
fn drain_ends_after_three_round_trips() {
    let mut p = Path::new(1000.0, 0.1, 2000);
    p.until(5.0, in_state(State::Drain));
    let round = p.bbr().rounds.count;
    p.slow_down(5.0);
    p.until(10.0, |p| p.bbr().state != State::Drain);
    assert_eq!((p.bbr().state, p.bbr().rounds.count), (State::ProbeBwDown, round + 4));
    assert!(p.sender.flight_size() > p.bbr().inflight(p.bbr().bw, 1.0));
}

/// §5.3.3, A.9: where what is in flight does not come down, DOWN ends when the next probe is due, without CRUISE.
#[test]
fn down_ends_when_the_next_probe_is_due() {
    let mut p = Path::new(400.0, 0.05, 2000);
    p.until(10.0, in_state(State::ProbeBwUp));
    p.until(10.0, in_state(State::ProbeBwDown));
    let began = p.now();
    p.slow_down(2.0);
    p.until(4.0, |p| p.bbr().state != State::ProbeBwDown);
    assert_eq!(p.bbr().state, State::ProbeBwRefill);
    // Two seconds at least, or as many round trips as there are segments on the path.
    assert!(p.now() - began >= 2.0 || p.bbr().probing.rounds_since_probe_up >= 16, "{}", p.now() - began);
}

/// §5.5.10, A.6: more than 2 % lost end the probe of an application-limited flow; what was in flight says nothing of the path then.
#[test]
fn losses_end_the_probe_of_an_application_limited_flow() {
    let mut p = Path::new(1000.0, 0.05, 1000);
    p.until(10.0, in_state(State::ProbeBwCruise));
    p.sender.stop();
    p.feed(20, 0.05, 20.0, in_state(State::ProbeBwUp));
    assert_eq!(p.bbr().state, State::ProbeBwUp);
    // A.7: it goes on while nothing is lost.
    p.feed(20, 0.05, 0.5, |_| false);
    assert_eq!(p.bbr().state, State::ProbeBwUp);
    let bound = p.bbr().inflight_longterm;
    p.one_lost_of = 8;
    p.feed(20, 0.05, 1.0, |p| p.bbr().state != State::ProbeBwUp);
    // DOWN finds no queue, and CRUISE begins.
    assert_eq!((p.bbr().state, p.bbr().inflight_longterm), (State::ProbeBwCruise, bound));
    assert!(p.bbr().probing.prev_probe_too_high);
}

/// §5.5.9, A.12 and A.13: acknowledgements that come each 20 ms, two fifths of a round trip: extra_acked widens the window beyond twice the path's
/// volume, in Startup and later, and the link stays full.
#[test]
fn acknowledgements_may_come_together() {
    let mut p = Path::new(1000.0, 0.05, 1000);
    p.slot = 0.02;
    p.until(5.0, |p| p.bbr().full_bw_reached);
    assert!(p.bbr().max_bw > 950.0 && p.bbr().max_bw < 1300.0, "{}", p.bbr().max_bw);
    assert!(p.bbr().ahead.extra_acked() > 5.0 && p.sender.cwnd() > 2.0 * p.bbr().bdp(1.0));
    p.until(5.0, in_state(State::ProbeBwCruise));
    let (from, delivered) = (p.now(), p.delivered);
    p.run(4.0);
    assert!((p.delivered - delivered) as f64 > 0.95 * 1000.0 * (p.now() - from));
    assert!(p.bbr().ahead.extra_acked() >= 10.0, "{}", p.bbr().ahead.extra_acked());
}

/// §5.5.9: "in Startup, just remember 1 round": what came together while the rate doubled is forgotten when Startup ends.
#[test]
fn startup_remembers_a_single_round_trip() {
    let (mut ahead, mut past) =
        (super::model::LongestAhead::default(), super::model::EarlierAhead::default());
    for (most, earlier) in [(90.0, false), (70.0, false), (5.0, true), (6.0, true)] {
        ahead.next_round(&mut past, earlier);
        ahead.note(most);
    }
    // The round trip in which it ends is the last that counts.
    assert_eq!(ahead.extra_acked(), 70.0);
    (0..8).for_each(|_| ahead.next_round(&mut past, true));
    assert_eq!(ahead.extra_acked(), 6.0);
}

/// §5.5.10, A.17: a token bucket without a queue behind it. The rate becomes that of the bucket, and few are lost.
#[test]
fn a_policer_is_found() {
    let mut p = Path::new(5000.0, 0.05, 1000);
    p.until(5.0, in_state(State::ProbeBwCruise));
    p.policer = Some((1000.0, 100.0, 100.0, p.now()));
    p.until(2.0, |p| p.bbr().bw_shortterm.is_finite());
    p.run(15.0);
    let (dropped, delivered, from) = (p.dropped, p.delivered, p.now());
    p.run(40.0);
    let (dropped, delivered) = ((p.dropped - dropped) as f64, (p.delivered - delivered) as f64);
    assert!(dropped / delivered < 0.03, "{dropped} of {delivered}");
    assert!(delivered / (p.now() - from) > 0.85 * 1000.0, "{}", delivered / (p.now() - from));
}

/// §5.5.11, A.19: all acknowledgements of a probe are late by a second. The timeout proves spurious, the model is at least what it was, and
/// the probe starts over.
#[test]
fn a_spurious_timeout_is_undone() {
    let mut p = Path::new(1000.0, 0.05, 1000);
    p.until(5.0, in_state(State::ProbeBwCruise));
    p.until(5.0, in_state(State::ProbeBwUp));
    p.run(0.02);
    let before = p.bbr().clone();
    p.arrivals.iter_mut().for_each(|arrival| arrival.0 += 1.0);
    p.until(2.0, |p| p.sender.tally().timeouts > 0);
    assert!(p.sender.cwnd() <= p.sender.flight_size() + 1.0);
    p.until(2.0, |p| p.sender.cwnd() >= 0.5 * before.bdp(1.0));
    let after = p.bbr();
    assert!(matches!(after.state, State::ProbeBwRefill | State::ProbeBwUp), "{:?}", after.state);
    assert!(after.inflight_longterm >= before.inflight_longterm && after.bw_shortterm >= before.bw_shortterm);
    assert!(p.sender.cwnd() >= MIN_PIPE_CWND);
}

/// §5.5.10 ("whether in fast recovery, RTO recovery, TLP recovery"), RFC 8985 §7.4.2: a lost last segment that a tail loss probe repairs is a loss in
/// its round trip, and the short-term model adapts to it.
#[test]
fn a_loss_that_a_probe_repairs_counts() {
    let mut p = Path::new(1000.0, 0.05, 1000);
    p.until(5.0, in_state(State::ProbeBwCruise));
    p.sender.stop();
    // The last segment is lost.
    let last = p.arrivals.pop_back().expect("segments are in flight");
    while !p.arrivals.is_empty() {
        p.step();
    }
    p.until(1.0, |p| p.arrivals.iter().any(|a| a.1 == last.1));
    while !p.arrivals.is_empty() {
        p.step();
    }
    assert!(p.bbr().bw_shortterm.is_infinite());
    p.feed(20, 0.05, 0.5, |p| p.bbr().bw_shortterm.is_finite());
    assert!(p.bbr().bw_shortterm.is_finite() && p.bbr().inflight_shortterm.is_finite());
    assert_eq!((p.sender.tally().timeouts, p.sender.tally().fast_retransmits), (0, 0));
}

proptest! {
    /// §2.8, §5.5.10, §5.6.4: whatever acknowledgements and losses tell, the window is four segments at least and no more than the model's bounds or
    /// those, the rate is positive, and BBR.bw no more than BBR.max_bw.
    #[test]
    fn the_model_bounds_the_window(
        acks in prop::collection::vec((1u32..40, 0.001f64..0.5, 0u32..6, any::<bool>(), 0.01f64..0.3, 0u32..8), 1..300),
    ) {
        let mut bbr = Bbr::default();
        bbr.begin(&Start { initial_window: 10, segment: 1000, random: 0.25 });
        let mut window = Window { cwnd: 10.0, ssthresh: f64::INFINITY };
        let (mut now, mut total, mut total_lost) = (0.0, 1u32, 0u32);
        for (delivered, interval, lost, app_limited, rtt, event) in acks {
            now += interval / 4.0;
            total += delivered;
            total_lost += lost;
            for n in 0..lost {
                let since = n + 1;
                bbr.lost(&Lost { now, segment: 3 * total + n, tx_in_flight: 20 + n, since, app_limited, delivered: total }, &window);
            }
            match event {
                0 if lost > 0 => _ = bbr.reduce(Cause::Loss, window.cwnd, window.cwnd),
                1 => bbr.recovered(&mut window),
                2 => bbr.undone(&mut window),
                _ => {}
            }
            let rate = RateSample {
                delivered, interval, app_limited, lost, tx_in_flight: 20, total, total_lost, round_start: false,
            };
            let sample = Sample {
                now, delivered, marked: 0, lost, rtt: Some(rtt), srtt: rtt, prior_in_flight: 20 + delivered, in_flight: 20, una: total,
                next: total + 20, advanced: true, limited: event > 4, phase: bbr.phase, rate: Some(rate),
            };
            prop_assert!(bbr.acknowledged(&sample, &mut window));
            prop_assert!(window.cwnd >= MIN_PIPE_CWND && window.cwnd.is_finite(), "{}", window.cwnd);
            prop_assert!(bbr.pacing_rate > 0.0 && bbr.bw <= bbr.max_bw);
            if bbr.state.probes_bw() {
                let bound = bbr.inflight_longterm.min(bbr.inflight_shortterm).max(MIN_PIPE_CWND);
                prop_assert!(window.cwnd <= bound + 1e-9, "{} > {bound} in {:?}", window.cwnd, bbr.state);
            }
            if bbr.full_bw_reached {
                let most = bbr.quantization_budget(bbr.bdp(bbr.state.gains().1) + bbr.ahead.extra_acked());
                prop_assert!(window.cwnd <= most + 1e-9, "{} > {most}", window.cwnd);
            }
        }
    }
}

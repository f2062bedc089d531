//! The test cases of draft-ietf-ccwg-bbr, Appendix A, over a path of one bottleneck: the linux profile's own sender, its pacing and its
//! receiver, so that what is tried is the whole.

use std::collections::VecDeque;

use inprofile_core::units::Duration;

use super::{Bbr, MIN_PIPE_CWND, State};
use crate::clock::{Clock, Exact};
use crate::tcp::control::{Cause, Control, Kind, Law, Window};
use crate::tcp::linux::Sender;
use crate::tcp::receiver::Receiver;
use crate::tcp::{Ack, Config, Congestion, EcnBits, Flags, Host, Profile, TimerKind};

/// The timers that the sender has set.
pub(super) struct Ports {
    pub(super) now: Exact,
    timers: [Option<Exact>; 3],
    sent: Vec<u32>,
}

impl Host for Ports {
    type Clock = Exact;
    fn now(&self) -> Exact {
        self.now
    }
    fn send(&mut self, segment: u32, _: EcnBits) {
        self.sent.push(segment);
    }
    fn set_timer(&mut self, which: TimerKind, after: Duration) {
        self.timers[which as usize] = Some(self.now.after(after));
    }
    fn cancel_timer(&mut self, which: TimerKind) {
        self.timers[which as usize] = None;
    }
    fn timer_is_set(&self, which: TimerKind) -> bool {
        self.timers[which as usize].is_some()
    }
    fn uniform(&mut self) -> f64 {
        0.25
    }
}

/// A sender, a link with a drop-tail queue, and a receiver that acknowledges each segment.
pub(super) struct Path {
    pub(super) ports: Ports,
    pub(super) sender: Sender<Exact>,
    receiver: Receiver,
    /// Seconds a segment, of serialisation; of the round trip without it; segments that may wait.
    pub(super) gap: f64,
    pub(super) rtt: f64,
    room: usize,
    /// Of so many segments one is lost; 0: none.
    pub(super) one_lost_of: u32,
    /// A policer: segments a second, the most that may come at once, how many may now, and since when.
    pub(super) policer: Option<(f64, f64, f64, f64)>,
    /// Acknowledgements come together, at multiples of this.
    pub(super) slot: f64,
    launched: u32,
    free_at: f64,
    /// When each segment that waits leaves.
    waiting: VecDeque<f64>,
    /// When each segment's acknowledgement arrives.
    pub(super) arrivals: VecDeque<(f64, u32)>,
    pub(super) dropped: u64,
    pub(super) delivered: u64,
}

impl Path {
    /// So many segments a second, a round trip of `rtt` seconds, a queue of `room` segments.
    pub(super) fn new(rate: f64, rtt: f64, room: usize) -> Path {
        let config = Config {
            profile: Profile::Linux,
            congestion: Congestion::Linux(Kind::Bbr),
            segment: 1460,
            window: 100_000,
            pacing: true,
            ..Config::plain()
        };
        let mut path = Path {
            ports: Ports { now: Exact(0), timers: [None; 3], sent: Vec::new() },
            sender: Sender::new(&config),
            receiver: Receiver::new(&config),
            gap: 1.0 / rate,
            rtt,
            room,
            one_lost_of: 0,
            policer: None,
            slot: 0.0,
            launched: 0,
            free_at: 0.0,
            waiting: VecDeque::new(),
            arrivals: VecDeque::new(),
            dropped: 0,
            delivered: 0,
        };
        path.sender.start(&mut path.ports);
        path.launch();
        path
    }

    pub(super) fn now(&self) -> f64 {
        self.ports.now.secs()
    }

    /// The packet that was sent joins the queue.
    pub(super) fn launch(&mut self) {
        let now = self.now();
        while self.waiting.front().is_some_and(|at| *at <= now) {
            self.waiting.pop_front();
        }
        for segment in std::mem::take(&mut self.ports.sent) {
            self.launched += 1;
            let unlucky = self.one_lost_of > 0 && self.launched.is_multiple_of(self.one_lost_of);
            if self.waiting.len() > self.room || unlucky || !self.conforms(now) {
                self.dropped += 1;
                continue;
            }
            self.free_at = self.free_at.max(now) + self.gap;
            self.waiting.push_back(self.free_at);
            let mut at = self.free_at + self.rtt;
            if self.slot > 0.0 {
                at = (at / self.slot).ceil() * self.slot;
            }
            self.arrivals.push_back((at, segment));
        }
    }

    /// The link takes so many times as long for a segment, those that wait before it included.
    pub(super) fn slow_down(&mut self, times: f64) {
        let (now, more) = (self.now(), self.gap * (times - 1.0));
        self.gap *= times;
        self.waiting.retain(|at| *at > now);
        let late = |i: usize| more * (i + 1) as f64;
        self.waiting.iter_mut().enumerate().for_each(|(i, at)| *at += late(i));
        let passed = self.arrivals.len() - self.waiting.len();
        self.arrivals.iter_mut().skip(passed).enumerate().for_each(|(i, arrival)| arrival.0 += late(i));
        self.free_at += late(self.waiting.len());
    }

    /// Whether the policer lets a segment pass.
    fn conforms(&mut self, now: f64) -> bool {
        let Some((rate, depth, tokens, since)) = self.policer else { return true };
        let tokens = (tokens + rate * (now - since)).min(depth);
        let passes = tokens >= 1.0;
        self.policer = Some((rate, depth, if passes { tokens - 1.0 } else { tokens }, now));
        passes
    }

    /// When the timer, the next train and the next acknowledgement are due.
    fn due(&self) -> (f64, f64, f64) {
        let due = |timer: Option<Exact>| timer.map_or(f64::INFINITY, Clock::secs);
        let [rto, train, _] = self.ports.timers.map(due);
        (rto, train, self.arrivals.front().map_or(f64::INFINITY, |a| a.0))
    }

    /// The application has so many more segments each `every` seconds, until `when` or for `most` seconds.
    pub(super) fn feed(&mut self, segments: u32, every: f64, most: f64, when: impl Fn(&Path) -> bool) {
        let (mut at, end) = (self.now(), self.now() + most);
        let mut data = self.sender.transmissions() as u32 - self.sender.tally().retransmissions as u32;
        while !when(self) && at < end {
            data += segments;
            self.sender.set_data_end(data);
            self.sender.start(&mut self.ports);
            self.launch();
            at += every;
            loop {
                let (rto, train, arrival) = self.due();
                if rto.min(train).min(arrival) > at {
                    break;
                }
                self.step();
            }
            self.ports.now = Exact(Duration::from_secs(at).0);
        }
    }

    /// One event.
    pub(super) fn step(&mut self) {
        let (rto, train, arrival) = self.due();
        let at = arrival.min(rto).min(train);
        assert!(at.is_finite(), "nothing will ever happen");
        if at == arrival {
            let (_, segment) = self.arrivals.pop_front().expect("one is due");
            self.ports.now = Ord::max(self.ports.now, Exact(Duration::from_secs(at).0));
            self.delivered += 1;
            self.receiver.on_segment(segment, || false);
            let (next, sack) = (self.receiver.rcv_nxt(), self.receiver.sack());
            self.sender.on_ack(Ack { next, sack: &sack, flags: Flags::NONE, more: None }, &mut self.ports);
        } else {
            let which = if at == rto { TimerKind::Retransmit } else { TimerKind::Send };
            self.ports.now = self.ports.timers[which as usize].take().expect("it is set");
            if which == TimerKind::Send {
                self.sender.on_jitter_end(&mut self.ports);
            } else {
                self.sender.on_timer(&mut self.ports);
            }
        }
        self.launch();
    }

    pub(super) fn bbr(&self) -> &Bbr {
        match self.sender.control() {
            Control::Bbr(bbr) => bbr,
            other => panic!("{other:?}"),
        }
    }

    /// Goes on until `when`; fails after `most` seconds.
    pub(super) fn until(&mut self, most: f64, when: impl Fn(&Path) -> bool) {
        let end = self.now() + most;
        while !when(self) {
            self.step();
            assert!(self.now() < end, "not within {most} s: {:?}", self.bbr());
        }
    }

    pub(super) fn run(&mut self, seconds: f64) {
        let end = self.now() + seconds;
        self.until(seconds + 1.0, |p| p.now() >= end);
    }
}

pub(super) fn in_state(state: State) -> impl Fn(&Path) -> bool {
    move |p| p.bbr().state == state
}

/// §5.3.1 and Appendix A.1: the rate is found to within 2 %, and three round trips without a quarter more end Startup. §2.5, §2.6 and §5.3.2,
/// A.3: Drain at half the rate until no more than the path's volume is in flight.
#[test]
fn startup_ends_after_three_rounds_without_growth_and_drain_empties_the_queue() {
    let mut p = Path::new(1000.0, 0.1, 1000);
    p.until(0.15, |p| p.sender.cwnd() > 1.0);
    assert!((p.bbr().initial_pacing_rate(0.101) - 2.77 * 10.0 / 0.101).abs() < 1e-9);
    p.until(5.0, |p| p.bbr().full_bw_count == 1);
    let round = p.bbr().rounds.count;
    p.until(5.0, in_state(State::Drain));
    assert_eq!(p.bbr().rounds.count, round + 2);
    assert!(p.bbr().full_bw_now && p.bbr().full_bw_reached);
    assert!((p.bbr().max_bw / 1000.0 - 1.0).abs() < 0.02, "{}", p.bbr().max_bw);
    assert!(p.bbr().pacing_rate < 0.5 * p.bbr().bw);
    let began = p.now();
    // ProbeBW_DOWN finds the queue gone, and CRUISE begins with the same acknowledgement.
    p.until(1.0, in_state(State::ProbeBwCruise));
    assert!(p.now() - began < 0.25, "a round trip or so");
    assert!(p.sender.flight_size() <= 1.02 * 101.0);
}

/// §5.1, §5.2.3, §5.3.3 and §5.6.1: down, cruise, refill, up, in this order; over cycles the mean rate is the link's; less than twice the path's volume is
/// in flight; A.5: a plateau ends the probe, after which the queue is gone. §5.5.3: max_bw stays.
#[test]
fn the_cycle_keeps_the_link_full_and_the_queue_short() {
    let mut p = Path::new(500.0, 0.04, 1000);
    p.until(5.0, in_state(State::ProbeBwCruise));
    let bdp = 500.0 * 0.042;
    for next in [State::ProbeBwRefill, State::ProbeBwUp, State::ProbeBwDown, State::ProbeBwCruise] {
        let before = p.bbr().state;
        p.until(4.0, |p| p.bbr().state != before);
        assert_eq!(p.bbr().state, next);
        let gains = [(1.0, 2.0), (1.25, 2.25), (0.9, 2.0), (1.0, 2.0)];
        assert!(gains.contains(&p.bbr().state.gains()));
    }
    let (from, delivered) = (p.now(), p.delivered);
    let mut most: f64 = 0.0;
    let mut sum = 0.0;
    let end = from + 20.0;
    let mut steps = 0.0;
    while p.now() < end {
        p.step();
        most = most.max(p.sender.flight_size());
        sum += p.sender.flight_size();
        steps += 1.0;
    }
    let goodput = (p.delivered - delivered) as f64 / (p.now() - from);
    assert!(goodput > 0.95 * 500.0, "{goodput}");
    assert!(most <= 2.0 * bdp, "{most}");
    assert!(sum / steps < 1.2 * bdp, "{}", sum / steps);
    assert_eq!(p.dropped, 0);
    assert!((p.bbr().max_bw / 500.0 - 1.0).abs() < 0.03);
}

/// §5.3.4 and A.10: five seconds after the shortest round-trip time was seen, ProbeRTT with half the path's volume, for 200 ms and a round
/// trip; a path that has become longer is measured again there, within the filter's ten seconds. §2.16: no sooner than every 5 s.
#[test]
fn probe_rtt_finds_the_shortest_round_trip() {
    let mut p = Path::new(1000.0, 0.05, 1000);
    p.until(5.0, in_state(State::ProbeBwCruise));
    assert!((p.bbr().min_rtt.value - 0.051).abs() < 1e-3, "{}", p.bbr().min_rtt.value);
    p.rtt = 0.08;
    p.until(6.0, in_state(State::ProbeRtt));
    let began = p.now();
    let bdp = p.bbr().bdp(1.0);
    p.until(1.0, |p| p.bbr().min_rtt.done_at.is_some());
    assert!(p.sender.flight_size() <= (0.5 * bdp).max(MIN_PIPE_CWND));
    let held = p.now();
    p.until(1.0, in_state(State::ProbeBwCruise));
    assert!(p.now() - held >= 0.2 && p.now() - held < 0.5, "{}", p.now() - held);
    p.until(6.0, in_state(State::ProbeRtt));
    assert!(p.now() - began >= 5.0, "{}", p.now() - began);
    p.run(2.0);
    assert!((p.bbr().min_rtt.value - 0.081).abs() < 1e-3, "{}", p.bbr().min_rtt.value);
}

/// §5.2.1, §5.3.1: where the queue overflows, more than 2 % lost in six ranges end Startup, and inflight_longterm is set; §5.5.10: from then on
/// probes that lose too much set it, and few are lost between them. A.21: such a loss ends the probe.
#[test]
fn losses_bound_what_is_in_flight() {
    let mut p = Path::new(1000.0, 0.1, 25);
    p.until(10.0, |p| p.bbr().full_bw_reached);
    assert!(p.bbr().inflight_longterm.is_finite());
    p.run(10.0);
    let (dropped, delivered) = (p.dropped, p.delivered);
    p.run(30.0);
    let (dropped, delivered) = ((p.dropped - dropped) as f64, (p.delivered - delivered) as f64);
    assert!(dropped / delivered < 0.01, "{dropped} of {delivered}");
    assert!(delivered > 0.9 * 30.0 * 1000.0, "{delivered}");
    assert!(p.bbr().inflight_longterm < 101.0 + 30.0 + 5.0, "{}", p.bbr().inflight_longterm);
}

/// §5.5.10 and A.16: when the link slows down to a tenth, losses bring bw_shortterm down, and max_bw within two cycles (§5.5.6). A.15:
/// when it is ten times as fast, the rate is found.
#[test]
fn the_model_follows_the_link() {
    let mut p = Path::new(1000.0, 0.04, 60);
    p.until(5.0, in_state(State::ProbeBwCruise));
    p.gap = 0.01;
    p.until(5.0, |p| p.bbr().bw_shortterm.is_finite());
    p.until(20.0, |p| p.bbr().max_bw < 110.0);
    p.gap = 0.001;
    p.until(20.0, |p| p.bbr().max_bw > 900.0);
}

/// §2.8, §5.5.8, §5.6.4 and A.14: a path of less than a segment: the window is four or the budget of three quanta, the rate the link's.
#[test]
fn four_segments_are_in_flight_at_least() {
    let mut p = Path::new(20.0, 0.001, 100);
    p.run(20.0);
    assert!(p.bbr().full_bw_reached);
    assert!(p.sender.cwnd() >= MIN_PIPE_CWND && p.sender.flight_size() < 15.0, "{}", p.sender.flight_size());
    assert!((p.bbr().max_bw / 20.0 - 1.0).abs() < 0.05, "{}", p.bbr().max_bw);
}

/// §5.4.1 and A.11: idleness refreshes the round-trip time; the connection restarts at the bandwidth it knows, without ProbeRTT. §4.1.2.4:
/// what the application has limited doesn't lower max_bw (A.22).
#[test]
fn a_pause_restarts_at_the_known_rate() {
    let mut p = Path::new(1000.0, 0.05, 1000);
    p.until(5.0, in_state(State::ProbeBwCruise));
    let known = p.bbr().max_bw;
    p.sender.stop();
    while !p.arrivals.is_empty() {
        p.step();
    }
    p.ports.now = Exact(p.ports.now.0 + Duration::from_millis(6000).0);
    p.sender.set_data_end(u32::MAX);
    p.sender.start(&mut p.ports);
    p.launch();
    assert!(p.bbr().idle_restart);
    assert!((p.bbr().pacing_rate / (0.99 * p.bbr().bw) - 1.0).abs() < 1e-9);
    p.run(0.3);
    assert!(p.bbr().state != State::ProbeRtt && !p.bbr().idle_restart);
    assert!(p.bbr().max_bw >= known * 0.99);
}

/// §5.6.4: a timeout leaves one segment above what is in flight, and the window comes back when all is repaired.
#[test]
fn after_a_timeout_the_window_comes_back() {
    let mut p = Path::new(1000.0, 0.05, 1000);
    p.until(5.0, in_state(State::ProbeBwCruise));
    p.run(0.2);
    let before = p.sender.cwnd();
    // Everything under way is lost, and so is what follows for a second.
    p.room = 0;
    p.waiting.clear();
    p.waiting.push_back(f64::INFINITY);
    p.arrivals.clear();
    p.until(5.0, |p| p.sender.tally().timeouts > 0);
    assert!(p.sender.cwnd() <= p.sender.flight_size() + 1.0);
    p.room = 1000;
    p.waiting.clear();
    p.free_at = p.now();
    p.until(5.0, |p| p.sender.cwnd() >= 0.7 * before);
    p.run(5.0);
    let delivered = p.delivered;
    p.run(5.0);
    assert!((p.delivered - delivered) as f64 > 4500.0);
}

/// §5.5.11 and A.18: segments that are overtaken in ProbeBW_UP count as lost, which ends the probe; once all of them have arrived, and what was sent
/// again has arrived twice, the model is at least what it was, and the probe starts over.
#[test]
fn a_spurious_recovery_is_undone() {
    let mut p = Path::new(1000.0, 0.05, 1000);
    p.until(5.0, in_state(State::ProbeBwCruise));
    p.until(5.0, in_state(State::ProbeBwUp));
    p.run(0.02);
    let (before, cwnd) = (p.bbr().clone(), p.sender.cwnd());
    assert_eq!((before.state, p.sender.tally().fast_retransmits), (State::ProbeBwUp, 0));
    // Five segments arrive after ten that were sent later.
    p.arrivals.make_contiguous()[..15].rotate_left(5);
    let times: Vec<f64> = (0..15).map(|i| p.now() + 0.001 * f64::from(i)).collect();
    p.arrivals.iter_mut().zip(times).for_each(|(arrival, at)| arrival.0 = at);
    p.until(0.1, in_state(State::ProbeBwDown));
    assert!(p.bbr().inflight_longterm < before.inflight_longterm);
    // By its time the next probe would begin after two seconds.
    p.until(0.3, in_state(State::ProbeBwRefill));
    assert_eq!((p.sender.tally().fast_retransmits, p.dropped), (1, 0));
    let after = p.bbr();
    assert!(after.inflight_longterm >= before.inflight_longterm && after.bw_shortterm >= before.bw_shortterm);
    // §5.6.1: twice the path's volume, and 2.25 times in the probe.
    assert!(p.sender.cwnd() > cwnd * 2.0 / 2.25, "{} after {cwnd}", p.sender.cwnd());
}

/// §5.5.11.2: a spurious recovery that ended Startup returns there; in ProbeRTT it is left for Startup. What was not ended by losses stays.
#[test]
fn a_spurious_recovery_returns_to_startup() {
    for (state, ended, back) in [
        (State::Drain, Some(State::Startup), State::Startup),
        (State::ProbeRtt, Some(State::Startup), State::ProbeRtt),
        (State::ProbeRtt, Some(State::ProbeBwUp), State::ProbeRtt),
        (State::ProbeBwDown, Some(State::ProbeBwUp), State::ProbeBwRefill),
        (State::ProbeBwCruise, None, State::ProbeBwCruise),
    ] {
        let mut bbr =
            Bbr { inflight_longterm: 80.0, bw_shortterm: 500.0, full_bw_reached: true, ..Bbr::default() };
        bbr.reduce(Cause::Loss, 60.0, 60.0);
        (bbr.state, bbr.undo.state) = (state, ended);
        (bbr.inflight_longterm, bbr.bw_shortterm, bbr.inflight_shortterm) = (40.0, 350.0, 30.0);
        let mut window = Window { cwnd: 25.0, ssthresh: f64::INFINITY };
        bbr.undone(&mut window);
        assert_eq!((bbr.state, window.cwnd), (back, 60.0));
        // A probe that starts over has no short-term bounds (§5.3.3).
        let bw = if back == State::ProbeBwRefill { f64::INFINITY } else { 500.0 };
        assert_eq!(
            (bbr.inflight_longterm, bbr.bw_shortterm, bbr.inflight_shortterm),
            (80.0, bw, f64::INFINITY)
        );
        assert_eq!(bbr.full_bw_reached, ended != Some(State::Startup));
    }
}

/// §5.2.1 and §5.6.2: the handshake's round-trip time is the first BBR.min_rtt, and the first pacing rate is of it, also where data take
/// longer.
#[test]
fn the_handshake_is_measured() {
    let mut path = Path::new(1000.0, 0.05, 100);
    path.step();
    let handshake = 0.051;
    assert!((path.bbr().min_rtt.value - handshake).abs() < 1e-9);
    let first = 2.77 * 10.0 / handshake;
    assert!((path.bbr().pacing_rate - first).abs() < 1e-6 * first);
    // Ten segments leave at once, and queue.
    while path.delivered < 4 {
        path.step();
    }
    assert!((path.bbr().min_rtt.value - handshake).abs() < 1e-9);
    assert!(path.bbr().pacing_rate >= first * (1.0 - 1e-9), "{} of {first}", path.bbr().pacing_rate);
}

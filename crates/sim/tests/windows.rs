//! The windows of scalable controls where each packet is marked with the same probability, whatever the window: a path of a fixed
//! round-trip time without a queue.

use std::collections::VecDeque;

use inprofile_core::packet::Ecn;
use inprofile_core::rng::Rng;
use inprofile_core::units::Duration;
use inprofile_sim::clock::{Clock, Exact};
use inprofile_sim::tcp::control::Kind;
use inprofile_sim::tcp::receiver::Receiver;
use inprofile_sim::tcp::{
    Ack, Config, Congestion, EcnBits, Host, Profile, Sack, Sender, SlowStart, TimerKind,
};

const RTT: Duration = Duration::from_millis(50);

/// The sender's host: what it sends reaches the receiver after half a round trip.
struct Path {
    now: Exact,
    sent: Vec<(u32, EcnBits)>,
    due: [Option<Exact>; 3],
}

impl Host for Path {
    type Clock = Exact;
    fn now(&self) -> Exact {
        self.now
    }
    fn send(&mut self, segment: u32, bits: EcnBits) {
        self.sent.push((segment, bits));
    }
    fn set_timer(&mut self, which: TimerKind, after: Duration) {
        self.due[which as usize] = Some(self.now.after(after));
    }
    fn cancel_timer(&mut self, which: TimerKind) {
        self.due[which as usize] = None;
    }
    fn timer_is_set(&self, which: TimerKind) -> bool {
        self.due[which as usize].is_some()
    }
    fn uniform(&mut self) -> f64 {
        0.5
    }
}

/// The mean number of segments delivered in a round trip, over `rounds` of them after the first 150.
fn mean_window(congestion: Congestion, accurate_ecn: bool, p: f64, rounds: u32, seed: u64) -> f64 {
    let config = Config {
        profile: Profile::Linux,
        congestion,
        segment: 1000,
        header: 40,
        window: 100_000,
        jitter: Duration::ZERO,
        delayed_ack: None,
        min_rto: Duration::from_millis(200),
        initial_window: 10,
        limited_transmit: true,
        prr: Default::default(),
        slow_start: SlowStart::Standard,
        ledbat: Default::default(),
        l4s: Default::default(),
        pacing: false,
        ecn: true,
        accurate_ecn,
    };
    let mut rng = Rng::for_component(seed, "marks");
    let mut path = Path { now: Exact(0), sent: Vec::new(), due: [None; 3] };
    let mut sender = Sender::<Exact>::new(&config, || 0.5);
    let mut receiver = Receiver::new(&config);
    let mut acks = VecDeque::<(Exact, u32, Sack, bool, u8)>::new();
    let (mut last, mut from) = (Exact(0), None);
    sender.start(&mut path);
    let end = |rounds: u32| Exact(RTT.0 * u64::from(rounds));
    while path.now < end(150 + rounds) {
        for (segment, bits) in std::mem::take(&mut path.sent) {
            let ce = bits.ip != Ecn::NotCapable && segment > 0 && rng.uniform() < p;
            receiver.on_ecn_bits(segment, ce, bits.cwr);
            assert!(receiver.on_segment(segment, || false).acknowledge);
            // One by one.
            last = Exact(path.now.after(RTT).0.max(last.0 + 1000));
            acks.push_back((last, receiver.rcv_nxt(), receiver.sack(), receiver.ecn_echo(), receiver.ace()));
        }
        // A paced sender's next train, before the acknowledgement.
        let train = path.due[TimerKind::Send as usize];
        if let Some(at) = train.filter(|at| acks.front().is_none_or(|ack| *at <= ack.0)) {
            path.due[TimerKind::Send as usize] = None;
            path.now = at;
            sender.on_timer(TimerKind::Send, &mut path);
            continue;
        }
        let (at, next, sack, echo, ace) = acks.pop_front().expect("something is in flight");
        path.now = at;
        if path.now >= end(150) {
            from.get_or_insert(next);
        }
        sender.on_ack(Ack { next, sack: &sack, echo, ace, delays: &[] }, &mut path);
    }
    f64::from(receiver.rcv_nxt() - from.expect("more than 150 round trips")) / f64::from(rounds)
}

/// A mark reduces the window W by pW/2 on average, as the average settles at p. The next reduction is by the first mark after a round
/// trip, 1/p packets later. DCTCP as Linux has it grows by a segment a round trip only between the two: pW/2 = 1/(pW), W = √2/p, if windows were real
/// numbers. In whole segments a reduction of less than one is none, so the window grows to where it takes off one: pW/2 = 1, W = 2/p.
/// Prague grows all the time (draft-briscoe-iccrg-prague-congestion-control §2.4.3): pW/2 = (1 − p)(1 + 1/(pW)), W = (1 + √3)/p for
/// small p. RFC 9332, Eq. (6), has 2/p, for a sender that reduces once in each round trip.
#[test]
fn windows_are_inversely_proportional_to_the_probability() {
    for p in [0.02, 0.05] {
        let mean = |kind, accurate| {
            let windows = (1..=3).map(|seed| mean_window(Congestion::Linux(kind), accurate, p, 1000, seed));
            windows.sum::<f64>() / 3.0
        };
        let (dctcp, prague) = (mean(Kind::Dctcp, false), mean(Kind::Prague, true));
        let law = (1.0 - p) + libm::sqrt((1.0 - p) * (1.0 - p) + 2.0 * (1.0 - p));
        assert!((dctcp * p - 2.0).abs() < 0.3, "{dctcp} at {p}: {}/p", dctcp * p);
        assert!((prague * p - law).abs() < 0.2, "{prague} at {p}: {}/p, not {law}/p", prague * p);
    }
}

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
    Ack, ByteOption, Config, Congestion, EcnBits, Flags, Host, More, Profile, Sack, Sender, Settings,
    TimerKind,
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

/// How the sender is told of marks.
#[derive(Clone, Copy)]
struct Told {
    accurate: bool,
    option: bool,
    /// Of this many acknowledgements one arrives.
    one_of: u32,
}

const EACH: Told = Told { accurate: false, option: false, one_of: 1 };
const COUNTED: Told = Told { accurate: true, ..EACH };

/// The mean number of segments delivered in a round trip, over `rounds` of them after the first 150.
fn mean_window(congestion: Congestion, told: Told, p: f64, rounds: u32, seed: u64) -> f64 {
    let config = Config {
        profile: Profile::Linux,
        congestion,
        window: 100_000,
        ecn: true,
        accurate_ecn: told.accurate,
        settings: Settings { accurate_ecn_option: told.option, ..Settings::default() },
        ..Config::plain()
    };
    let mut rng = Rng::for_component(seed, "marks");
    let mut path = Path { now: Exact(0), sent: Vec::new(), due: [None; 3] };
    let mut sender = Sender::<Exact>::new(&config, || 0.5);
    let mut receiver = Receiver::new(&config);
    let mut acks = VecDeque::<(Exact, u32, Sack, Flags, Option<ByteOption>)>::new();
    let (mut last, mut from, mut held) = (Exact(0), None, None);
    sender.start(&mut path);
    let end = |rounds: u32| Exact(RTT.0 * u64::from(rounds));
    while path.now < end(150 + rounds) {
        for (segment, bits) in std::mem::take(&mut path.sent) {
            let ce = bits.ip != Ecn::NotCapable && segment > 0 && rng.uniform() < p;
            let ip = if ce { Ecn::Experienced } else { bits.ip };
            receiver.count_bytes(segment, ip);
            receiver.on_ecn_bits(segment, ip, bits.flags);
            assert!(receiver.on_segment(segment, || false).acknowledge);
            // One by one.
            last = Exact(path.now.after(RTT).0.max(last.0 + 1000));
            let (next, sack) = (receiver.rcv_nxt(), receiver.sack());
            let (flags, bytes) = (receiver.flags(), receiver.byte_option());
            let ack = (last, next, sack, flags, bytes);
            if next.is_multiple_of(told.one_of) {
                acks.push_back(ack);
                held = None;
            } else {
                held = Some(ack);
            }
        }
        // A paced sender's next train, before the acknowledgement.
        let train = path.due[TimerKind::Send as usize];
        if let Some(at) = train.filter(|at| acks.front().or(held.as_ref()).is_none_or(|ack| *at <= ack.0)) {
            path.due[TimerKind::Send as usize] = None;
            path.now = at;
            sender.on_timer(TimerKind::Send, &mut path);
            continue;
        }
        // The last of all arrives.
        let (at, next, sack, flags, bytes) =
            acks.pop_front().or_else(|| held.take()).expect("something is in flight");
        path.now = at;
        if path.now >= end(150) {
            from.get_or_insert(next);
        }
        let more = bytes.map(|bytes| More { bytes: Some(bytes), ..More::default() });
        sender.on_ack(Ack { next, sack: &sack, flags, more: more.as_ref() }, &mut path);
    }
    f64::from(receiver.rcv_nxt() - from.expect("more than 150 round trips")) / f64::from(rounds)
}

fn mean(kind: Kind, told: Told, p: f64, rounds: u32) -> f64 {
    (1..=3).map(|seed| mean_window(Congestion::Linux(kind), told, p, rounds, seed)).sum::<f64>() / 3.0
}

/// A mark reduces the window W by pW/2 on average, as the average settles at p. The next reduction is by the first mark after a round
/// trip, 1/p packets later. DCTCP as Linux has it grows by a segment a round trip only between the two: pW/2 = 1/(pW), W = √2/p, if windows were real
/// numbers. In whole segments a reduction of less than one is none, so the window grows to where it takes off one: pW/2 = 1, W = 2/p.
/// Prague grows all the time (draft-briscoe-iccrg-prague-congestion-control §2.4.3): pW/2 = (1 − p)(1 + 1/(pW)), W = (1 + √3)/p for
/// small p. RFC 9332, Eq. (6), has 2/p, for a sender that reduces once in each round trip.
#[test]
fn windows_are_inversely_proportional_to_the_probability() {
    for p in [0.02, 0.05] {
        let (dctcp, prague) = (mean(Kind::Dctcp, EACH, p, 1000), mean(Kind::Prague, COUNTED, p, 1000));
        let law = (1.0 - p) + libm::sqrt((1.0 - p) * (1.0 - p) + 2.0 * (1.0 - p));
        assert!((dctcp * p - 2.0).abs() < 0.3, "{dctcp} at {p}: {}/p", dctcp * p);
        assert!((prague * p - law).abs() < 0.2, "{prague} at {p}: {}/p, not {law}/p", prague * p);
    }
}

/// RFC 9768 §3.2.2.5, §3.2.3: where acknowledgements tell of two segments each, the field's count is exact, and the window as with one each. Of sixteen
/// it tells by the safest likely case, eight or sixteen marks where there were none, and the window is a few segments. The option's count is exact again:
/// Prague's window is nearly what it was; DCTCP's is smaller, as it does not grow by what an acknowledgement of a mark tells of.
#[test]
fn the_option_makes_up_for_acknowledgements_that_are_missing() {
    let p = 0.02;
    for kind in [Kind::Prague, Kind::Dctcp] {
        let window = |one_of, option| mean(kind, Told { one_of, option, ..COUNTED }, p, 300);
        let (each, second) = (window(1, false), window(2, false));
        let (with, without) = (window(16, true), window(16, false));
        let least = if kind == Kind::Prague { 0.8 } else { 0.4 };
        assert!((second / each - 1.0).abs() < 0.05, "{kind:?}: {second} and {each}");
        assert!((least..1.05).contains(&(with / each)), "{kind:?}: {with} and {each}");
        assert!(without < 0.1 * each, "{kind:?}: {without} and {each}");
        // Where nothing is missing it makes no difference.
        assert_eq!(window(1, true), each, "{kind:?}");
    }
}

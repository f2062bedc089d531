//! The ordinary acknowledgement: it covers segments in the order in which they were sent, each sent once, while nothing is lost, recovered
//! from, probed for or marked. Most of what the laws ask of an acknowledgement is then known without asking, and what is left is the same
//! as [`Sender::on_any_ack`] does: a test compares the two. Without it the simulator
//! runs at .85 of its speed with CUBIC and at .96 with BBR (a hundred flows, medians of 18 interleaved pairs), hence the second path.

use crate::clock::Clock;
use crate::tcp::Host;
use crate::tcp::control::least;

use super::acknowledgement::{AckContext, AckSample};
use super::{Sender, State};

impl<C: Clock> Sender<C> {
    /// Whether the next acknowledgement, if it advances and tells of nothing else, is ordinary.
    #[inline(always)]
    pub(super) fn has_nothing_open(&self) -> bool {
        matches!(self.state, State::Open)
            && self.board.is_whole()
            && self.probe.is_none()
            && self.frto.is_none()
            && self.sampled
            && self.rack.has_overtaken_nothing(&self.board)
    }

    /// All before `next` has arrived, and nothing else is told.
    #[inline(always)]
    pub(super) fn on_ordinary_ack<H: Host<Clock = C>>(&mut self, next: u32, host: &mut H) {
        let now = host.now();
        let secs = now.secs();
        let prior_in_flight = self.board.in_flight();
        let limited = self.is_limited(next, prior_in_flight);
        let sample = self.take_in_order(next, now);
        self.una_timed_out = false;
        if let Some(rtt) = sample.rtt {
            self.control.measured(rtt, secs);
        }
        let decided = self.control.watches()
            && self.consult(sample, &AckContext { now: secs, prior_in_flight, limited, marked: 0, lost: 0 });
        if !decided {
            self.grow(sample, limited, secs);
        }
        if self.pacer.is_some() {
            self.set_pacing_rate(sample.rtt);
        }
        self.send(false, secs, host);
        self.set_probe_timer(host);
    }

    /// The segments before `next` have arrived, each after those before it.
    #[inline(always)]
    fn take_in_order(&mut self, next: u32, now: C) -> AckSample {
        let Sender { board, rack, next_sample, timeout, delivery, .. } = self;
        let (max, first) = (board.max(), board.una());
        let (mut shortest, mut newest) = (f64::INFINITY, None);
        board.acknowledge_in_order(next, |number, sent_at| {
            let rtt = C::secs_of(now.since(sent_at));
            shortest = least(rtt, shortest);
            newest = Some((sent_at, rtt));
            if let Some(delivery) = delivery.as_deref_mut() {
                delivery.arrived(number, sent_at, now);
            }
            // RFC 6298 §3: one measurement a round trip.
            if number >= *next_sample {
                *next_sample = max;
                timeout.sample(rtt);
            }
        });
        if let Some((sent_at, rtt)) = newest {
            rack.arrived_in_order(next, sent_at, rtt, shortest);
        }
        AckSample { delivered: next - first, advanced: true, rtt: Some(shortest) }
    }
}

pub(super) mod grow {
    //! How the window grows: slow start, what ends it, and congestion avoidance.

    use crate::clock::Clock;
    use crate::tcp::control::least;
    use crate::tcp::rfc::HyStartPlusPlus;
    use crate::tcp::{Config, SlowStart};

    use super::super::Sender;
    use super::super::acknowledgement::AckSample;
    use super::super::hystart::HyStart;

    /// The rule that ends slow start before a loss.
    #[derive(Clone, Debug)]
    pub(crate) enum Exit {
        /// Nothing.
        None,
        /// HyStart, in any slow start.
        HyStart(HyStart),
        /// HyStart++ (RFC 9406), in the first.
        HyStartPlusPlus(HyStartPlusPlus),
    }

    impl Exit {
        /// The flow's.
        pub(crate) fn new(config: &Config) -> Exit {
            match config.slow_start {
                SlowStart::Standard => Exit::None,
                SlowStart::HyStart => Exit::HyStart(HyStart::new()),
                SlowStart::HyStartPlusPlus => Exit::HyStartPlusPlus(HyStartPlusPlus::new(config.pacing)),
            }
        }
    }

    impl<C: Clock> Sender<C> {
        /// The window grows. `limited`: it was full when the acknowledgement arrived (RFC 9438 §5.8).
        #[inline]
        pub(in crate::tcp::linux) fn grow(&mut self, sample: AckSample, limited: bool, now: f64) {
            let paused = self.control.pause(|| (!limited).then_some(now));
            let rest = if self.cwnd < self.ssthresh {
                self.grow_in_slow_start(sample, limited, now)
            } else if !paused && limited {
                sample.delivered
            } else {
                0
            };
            if rest > 0 {
                let at = || (self.timeout.srtt(), now);
                self.cwnd = self.control.avoid(self.cwnd, rest, at);
            }
        }

        /// The window is below the threshold. As in Linux, what an acknowledgement tells of beyond it, or when slow start ends, counts in congestion
        /// avoidance: so many segments.
        #[inline]
        fn grow_in_slow_start(&mut self, sample: AckSample, limited: bool, now: f64) -> u32 {
            let Some(growth) = self.slow_start_growth(sample, now) else {
                self.ssthresh = self.cwnd;
                return if limited { sample.delivered } else { 0 };
            };
            // Linux: slow start wants the window at least half used.
            if !limited && self.cwnd >= f64::from(2 * self.board.in_flight().max(1)) {
                return 0;
            }
            let room = self.ssthresh - self.cwnd;
            self.cwnd += least(growth, room);
            if growth > room { (growth - room) as u32 } else { 0 }
        }

        /// By how much an acknowledgement lets the window grow in slow start, unless that ends with it.
        fn slow_start_growth(&mut self, sample: AckSample, now: f64) -> Option<f64> {
            let (una, max) = (self.board.una(), self.board.max());
            match &mut self.exit {
                Exit::HyStart(h) => {
                    let ends = h.acknowledged(una, max, self.cwnd, sample.rtt, self.pacer.is_some(), now);
                    (!ends).then_some(f64::from(sample.delivered))
                }
                // RFC 9406 §4.3: only while nothing has set the threshold.
                Exit::HyStartPlusPlus(h) if self.ssthresh == f64::INFINITY => {
                    h.acknowledged(una, max, sample.delivered, sample.rtt)
                }
                Exit::None | Exit::HyStartPlusPlus(_) => Some(f64::from(sample.delivered)),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::clock::Exact;
        use crate::tcp::{Congestion, Profile};

        /// RFC 9406 §4.3: only the first slow start is HyStart++'s, whose limit is eight segments an acknowledgement; later ones are the standard's.
        #[test]
        fn a_later_slow_start_is_the_standards() {
            let mut sender = Sender::<Exact>::new(&Config {
                profile: Profile::Linux,
                congestion: Congestion::Sack,
                slow_start: SlowStart::HyStartPlusPlus,
                ..Config::plain()
            });
            let sample = AckSample { delivered: 12, advanced: true, rtt: None };
            sender.cwnd = 20.0;
            sender.grow(sample, true, 0.0);
            assert_eq!(sender.cwnd, 28.0);
            sender.ssthresh = 60.0;
            sender.grow(sample, true, 0.0);
            assert_eq!(sender.cwnd, 40.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Exact;
    use crate::tcp::control::Kind;
    use crate::tcp::receiver::Receiver;
    use crate::tcp::{Ack, Config, Congestion, EcnBits, Flags, Profile, Sack, SlowStart, TimerKind};
    use inprofile_core::packet::Ecn;
    use inprofile_core::units::Duration;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000_000;

    /// The timers that the sender has set, and the segments it has sent.
    struct Ports {
        now: Exact,
        timers: [Option<Exact>; 3],
        sent: Vec<(u32, EcnBits)>,
    }

    impl Host for Ports {
        type Clock = Exact;
        fn now(&self) -> Exact {
            self.now
        }
        fn send(&mut self, segment: u32, bits: EcnBits) {
            self.sent.push((segment, bits));
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

    /// The time, window and threshold as bits, how many segments were sent, when the timers run out.
    type Row = (u64, u64, u64, usize, [Option<Exact>; 3]);

    /// A path: of so many packets one is dropped, one marked, one overtaken by its followers.
    #[derive(Clone, Copy, Debug)]
    struct Path {
        gap_us: u64,
        drop: u32,
        mark: u32,
        delay: u32,
        kind: Option<Kind>,
        pacing: bool,
        ecn: bool,
    }

    impl Path {
        fn config(self) -> Config {
            Config {
                profile: Profile::Linux,
                congestion: self.kind.map_or(Congestion::Cubic { sack: true }, Congestion::Linux),
                window: 60,
                initial_window: 4,
                pacing: self.pacing || self.kind == Some(Kind::Bbr),
                slow_start: if self.kind.is_none() { SlowStart::HyStart } else { SlowStart::Standard },
                ecn: self.ecn,
                accurate_ecn: self.ecn && self.kind == Some(Kind::Prague),
                ..Config::plain()
            }
        }

        /// Two seconds of it: a row after each event, and how many acknowledgements were ordinary. `long`: none is taken for one.
        fn play(self, long: bool) -> (Vec<Row>, u32) {
            let config = self.config();
            let mut sender = Sender::<Exact>::new(&config);
            let mut receiver = Receiver::new(&config);
            let mut ports = Ports { now: Exact(0), timers: [None; 3], sent: Vec::new() };
            let (mut data, mut acks) =
                (Vec::<(u64, u32, Ecn, u8)>::new(), Vec::<(u64, u32, Sack, Flags)>::new());
            let (mut free_at, mut launched, mut ordinary, mut rows) = (0, 0, 0, Vec::new());
            sender.start(&mut ports);
            loop {
                for &(segment, bits) in &ports.sent[launched as usize..] {
                    launched += 1;
                    let hits = |every: u32| every > 0 && launched % every == 0;
                    if hits(self.drop) {
                        continue;
                    }
                    free_at = ports.now.0.max(free_at) + self.gap_us * 1_000_000;
                    let late = if hits(self.delay) { 3 * MS } else { 0 };
                    let marked = hits(self.mark) && bits.ip != Ecn::NotCapable;
                    let ip = if marked { Ecn::Experienced } else { bits.ip };
                    data.push((free_at + 10 * MS + late, segment, ip, bits.flags.bits()));
                }
                data.sort_by_key(|d| d.0);
                let arrives = data.first().map_or(u64::MAX, |d| d.0);
                let told = acks.first().map_or(u64::MAX, |a| a.0);
                let timer = |which: TimerKind| ports.timers[which as usize].map_or(u64::MAX, |at| at.0);
                let (send, lost) = (timer(TimerKind::Send), timer(TimerKind::Retransmit));
                let next = arrives.min(told).min(send).min(lost);
                if next > 2_000 * MS {
                    return (rows, ordinary);
                }
                ports.now = Exact(next);
                if arrives == next {
                    let (_, segment, ip, flags) = data.remove(0);
                    if config.ecn {
                        receiver.on_ecn_bits(segment, ip, Flags::from_bits(flags));
                    }
                    receiver.on_segment(segment, || false);
                    let sack = if receiver.selects() { receiver.sack() } else { Sack::NONE };
                    let flags = if config.ecn { receiver.flags() } else { Flags::NONE };
                    acks.push((next + 10 * MS, receiver.rcv_nxt(), sack, flags));
                    continue;
                }
                if told == next {
                    let (_, next, sack, flags) = acks.remove(0);
                    sender.ordinary &= !long;
                    ordinary += u32::from(sender.ordinary);
                    sender.on_ack(Ack { next, sack: &sack, flags, more: None }, &mut ports);
                } else if send == next {
                    ports.timers[TimerKind::Send as usize] = None;
                    sender.on_jitter_end(&mut ports);
                } else {
                    ports.timers[TimerKind::Retransmit as usize] = None;
                    sender.on_timer(&mut ports);
                }
                let window = (sender.cwnd().to_bits(), sender.ssthresh().to_bits());
                rows.push((next, window.0, window.1, ports.sent.len(), ports.timers));
            }
        }
    }

    fn paths() -> impl Strategy<Value = Path> {
        let every = || prop_oneof![Just(0u32), 5u32..200];
        let kinds = vec![None, Some(Kind::Bbr), Some(Kind::Prague), Some(Kind::Dctcp)];
        (100u64..3_000, every(), every(), every(), prop::sample::select(kinds), any::<bool>(), any::<bool>())
            .prop_map(|(gap_us, drop, mark, delay, kind, pacing, ecn)| Path {
                gap_us,
                drop,
                mark,
                delay,
                kind,
                pacing,
                ecn,
            })
    }

    proptest! {
        /// Whatever is lost, marked or overtaken, the short way does what the long one does.
        #[test]
        fn the_short_way_is_the_long_one(path in paths()) {
            let (long, none) = path.play(true);
            let (short, _) = path.play(false);
            prop_assert_eq!(none, 0);
            prop_assert_eq!(short, long);
        }
    }

    /// Nearly all are, where nothing is lost.
    #[test]
    fn most_are_ordinary() {
        for kind in [None, Some(Kind::Bbr), Some(Kind::Prague)] {
            let path = Path {
                gap_us: 500,
                drop: 0,
                mark: 0,
                delay: 0,
                kind,
                pacing: true,
                ecn: kind == Some(Kind::Prague),
            };
            let (rows, ordinary) = path.play(false);
            assert!(
                ordinary > 1000 && f64::from(ordinary) > 0.3 * rows.len() as f64,
                "{kind:?}: {ordinary} of {}",
                rows.len()
            );
        }
    }
}

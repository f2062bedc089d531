//! Properties that hold whatever acknowledgements arrive: a loss, a mark or a timeout leaves a threshold of no more than its share of the window just
//! left, and of FlightSize.

use inprofile_core::units::Duration;
use proptest::prelude::*;

use super::{Recovery, Sender};
use crate::clock::Exact;
use crate::tcp::{Ack, Config, Congestion, EcnBits, Flags, Host, Sack, TimerKind};

/// A host whose segments arrive nowhere.
struct Ports {
    now: u64,
    timers: [bool; 3],
}

impl Host for Ports {
    type Clock = Exact;
    fn now(&self) -> Exact {
        Exact(self.now)
    }
    fn send(&mut self, _: u32, _: EcnBits) {}
    fn set_timer(&mut self, which: TimerKind, _: Duration) {
        self.timers[which as usize] = true;
    }
    fn cancel_timer(&mut self, which: TimerKind) {
        self.timers[which as usize] = false;
    }
    fn timer_is_set(&self, which: TimerKind) -> bool {
        self.timers[which as usize]
    }
    fn uniform(&mut self) -> f64 {
        0.25
    }
}

fn config(congestion: Congestion, ecn: bool) -> Config {
    Config { congestion, window: 300, min_rto: Duration::from_millis(1000), ecn, ..Config::plain() }
}

/// The event at the sender.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Of a thousandth of what is outstanding, so much more is acknowledged.
    News(u32),
    /// The same again, with a block of what is outstanding: where it begins, in thousandths, and its length.
    Same(u32, u32, bool),
    /// The retransmission timer expires.
    Timeout,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => (0u32..300).prop_map(Event::News),
        12 => (0u32..1000, 1u32..20, prop::bool::weighted(0.1)).prop_map(|(at, len, ece)| Event::Same(at, len, ece)),
        1 => Just(Event::Timeout),
    ];
    prop::collection::vec(event, 20..250)
}

impl Sender<Exact> {
    fn outstanding(&self) -> u32 {
        self.snd_max - self.snd_una
    }

    fn acknowledge(&mut self, next: u32, sack: Option<(u32, u32)>, flags: Flags, ports: &mut Ports) {
        let mut blocks = Sack::NONE;
        if let Some(block) = sack.filter(|_| matches!(self.recovery, Recovery::Sack(_))) {
            blocks.push(block);
        }
        self.on_ack(Ack { next, sack: &blocks, flags, more: None }, ports);
    }
}

proptest! {
    /// RFC 5681 §3.1, Eq. (4), and §4.3; RFC 9438 §4.6 and §4.8.
    #[test]
    fn congestion_never_raises_the_window(
        which in 0usize..5, ecn: bool, events in events(),
    ) {
        let congestion = [
            Congestion::Reno, Congestion::NewReno, Congestion::Sack,
            Congestion::Cubic { sack: true }, Congestion::Cubic { sack: false },
        ][which];
        let beta = if which < 3 { 0.5 } else { 0.7 };
        let mut ports = Ports { now: 0, timers: [false; 3] };
        let mut sender = Sender::<Exact>::new(&config(congestion, ecn));
        sender.start(&mut ports);
        sender.acknowledge(1, None, if ecn { Flags::SYN.and(Flags::ECE) } else { Flags::NONE }, &mut ports);
        for event in events {
            ports.now += 10_000_000_000;
            let (una, out) = (sender.snd_una, sender.outstanding());
            let (window, flight) = (sender.deflated_cwnd(), f64::from(sender.snd_nxt - una));
            let (before, timed_out) = (sender.ssthresh, sender.una_timed_out);
            match event {
                Event::News(share) if out > 0 => {
                    sender.acknowledge(una + 1 + share * (out - 1) / 1000, None, Flags::NONE, &mut ports);
                    continue;
                }
                Event::Same(at, len, ece) if out > 1 => {
                    let from = una + 1 + at * (out - 1) / 1000;
                    let flags = if ece { Flags::ECE } else { Flags::NONE };
                    sender.acknowledge(una, Some((from, (from + len).min(sender.snd_max))), flags, &mut ports);
                }
                Event::Timeout if out > 0 => sender.on_rto(&mut ports),
                _ => continue,
            }
            let after = sender.ssthresh;
            if timed_out && matches!(event, Event::Timeout) {
                prop_assert_eq!(after, before);
            } else if after != before || matches!(event, Event::Timeout) {
                let most = (beta * window.min(flight)).max(2.0);
                prop_assert!(after <= most + 1e-9, "{congestion:?}, {event:?}: {after} after {window}, {flight} in flight");
            }
        }
    }
}

use inprofile_core::units::Duration;

use super::*;
use crate::ns2::clock::Seconds;
use crate::tcp::{Flags, Profile, Sack, Settings};

/// Records what is sent, at one moment.
#[derive(Default)]
struct Wire {
    sent: Vec<u32>,
    set: [bool; 3],
}

impl Host for Wire {
    type Clock = Seconds;
    fn now(&self) -> Seconds {
        Seconds(1.0)
    }
    fn send(&mut self, segment: u32, _: EcnBits) {
        self.sent.push(segment);
    }
    fn set_timer(&mut self, which: TimerKind, _: f64) {
        self.set[which as usize] = true;
    }
    fn cancel_timer(&mut self, which: TimerKind) {
        self.set[which as usize] = false;
    }
    fn timer_is_set(&self, which: TimerKind) -> bool {
        self.set[which as usize]
    }
    fn uniform(&mut self) -> f64 {
        0.5
    }
}

fn config(congestion: Congestion) -> Config {
    Config { profile: Profile::Ns2, congestion, window: 20, initial_window: 2, ..Config::plain() }
}

fn acknowledge(sender: &mut Sender<Seconds>, next: u32, wire: &mut Wire) {
    sender.on_ack(Ack { next, sack: &Sack::default(), flags: Flags::NONE, more: None }, wire);
}

/// ns-2's `slowdown` halves the window whatever it was. A timeout before the first data is acknowledged makes it 1, and at
/// `highest_ack_` 0 three dup_acks are a fast retransmit all the same (`bugfix_ss_`): half a segment.
#[test]
fn a_window_of_one_is_halved() {
    for congestion in [Congestion::Reno, Congestion::NewReno] {
        let mut wire = Wire::default();
        let mut sender = Sender::new(&config(congestion), 0.0);
        sender.start(&mut wire);
        acknowledge(&mut sender, 1, &mut wire);
        sender.on_rto(&mut wire);
        assert_eq!((wire.sent.as_slice(), sender.cwnd()), ([0, 1, 2, 1].as_slice(), 1.0));
        for _ in 0..3 {
            acknowledge(&mut sender, 1, &mut wire);
        }
        assert_eq!((sender.tally().fast_retransmits, sender.cwnd(), sender.ssthresh()), (1, 0.5, 2.0));
        // Everything is acknowledged, and slow start continues from half a segment.
        let highest = wire.sent.iter().max().copied().expect("something was sent");
        acknowledge(&mut sender, highest + 1, &mut wire);
        assert_eq!(sender.cwnd(), 1.5);
    }
}

/// ns-2 looks for something to send only while not all is acknowledged (`last_ack_ + 1 < curseq_`): after the end of a
/// transfer there is no random delay before a send, and no number is drawn for it.
#[test]
fn sack_starts_no_jitter_after_the_end() {
    let jittered = Config {
        settings: Settings { jitter: Duration::from_millis(1), ..Settings::default() },
        ..config(Congestion::Sack)
    };
    let mut wire = Wire::default();
    let mut sender = Sender::new(&jittered, 0.0);
    sender.set_data_end(2);
    sender.start(&mut wire);
    for next in [1, 2] {
        assert!(wire.timer_is_set(TimerKind::Send));
        wire.cancel_timer(TimerKind::Send);
        sender.on_jitter_end(&mut wire);
        acknowledge(&mut sender, next, &mut wire);
    }
    assert_eq!(wire.sent, [0, 1]);
    assert!(!wire.timer_is_set(TimerKind::Send));
}

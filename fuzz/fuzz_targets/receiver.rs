//! Any segments in any order at TCP's receiver: it delivers each once and in order, as a set of numbers would say, and
//! reports only what it has.

#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeSet;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| run(bytes));

use inprofile_core::packet::Ecn;
use inprofile_core::units::Duration;
use inprofile_sim::tcp::receiver::{Receiver, TimerAction};
use inprofile_sim::tcp::{Config, Congestion, Flags, Profile};

/// The first byte chooses the connection; then each byte is a segment near the one that is expected, or 0xff and four
/// bytes any segment at all, or 0xfe the timer of delayed acknowledgements.
pub fn run(bytes: &[u8]) {
    let Some((&how, mut rest)) = bytes.split_first() else { return };
    let config = Config {
        profile: if how & 1 == 0 { Profile::Rfc } else { Profile::Ns2 },
        congestion: if how & 2 == 0 { Congestion::Reno } else { Congestion::Sack },
        window: 20,
        delayed_ack: (how & 4 != 0).then(|| Duration::from_millis(100)),
        initial_window: 2,
        ecn: how & 8 != 0,
        ..Config::plain()
    };
    let mut receiver = Receiver::new(&config);
    let (mut next, mut beyond, mut waiting) = (0u32, BTreeSet::new(), false);
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        let segment = match byte {
            0xfe => {
                if waiting {
                    receiver.on_delayed_ack_timer();
                    waiting = false;
                }
                continue;
            }
            0xff => {
                let Some((word, more)) = rest.split_first_chunk::<4>() else { return };
                rest = more;
                // The last number is never sent: a run that long is refused.
                u32::from_le_bytes(*word).min(u32::MAX - 1)
            }
            near => next.saturating_add(u32::from(near)).saturating_sub(64).min(u32::MAX - 1),
        };
        if config.ecn {
            receiver.on_ecn_bits(segment, Ecn::of_octet(byte), Flags::from_bits(byte >> 2));
        }
        let before = next;
        if segment >= next {
            beyond.insert(segment);
        }
        while beyond.remove(&next) {
            next += 1;
        }
        let reply = receiver.on_segment(segment, || waiting);
        assert_eq!(receiver.rcv_nxt(), next, "expects another segment");
        assert_eq!(reply.delivered, next - before, "delivered another number");
        match reply.timer {
            TimerAction::Leave => {}
            TimerAction::Set => waiting = true,
            TimerAction::Cancel => waiting = false,
        }
        assert!(reply.acknowledge || waiting, "nothing will be acknowledged");
        if reply.acknowledge && config.ecn {
            receiver.flags();
        }
        if reply.acknowledge && receiver.uses_sack() {
            for &(from, to) in receiver.sack().blocks() {
                assert!(from < to, "an empty block");
                // Enough of a block to find what is not there, without counting millions.
                let all = from <= next || (from..to).take(300).all(|s| beyond.contains(&s));
                assert!(to <= next || all, "reports {from}..{to}, which did not all come");
            }
        }
    }
}

//! Decision by decision, from the state that Linux's own verdicts have led to.
//!
//! Laws without chance only. A verdict of ours that differs may be due to the stamps: the guest knows when it was about to send,
//! not when the law was asked. So the law, as it was before, is asked again a little earlier and later; the least
//! shift with which it agrees is what that decision takes. It is compared with how far the stamps of the decision and of those
//! that set the law's state lie apart.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};

use inprofile_core::aqm::Aqm;
use inprofile_core::marker::Marker;
use inprofile_core::packet::{Colour, FlowId};
use inprofile_core::queue::{End, Queue, Strike};
use inprofile_core::registry::{AnyAqm, AnyMarker};
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Duration, Time};
use inprofile_core::verdict::{Departure, Mark, Silent};

use crate::events::{Arrival, Call, Event, Events, NANO};

/// By how many nanoseconds a decision is moved.
const SHIFTS: [u64; 22] = [
    0, 500, 1_000, 2_000, 3_000, 5_000, 7_000, 10_000, 15_000, 20_000, 30_000, 50_000, 70_000, 100_000,
    150_000, 200_000, 300_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// Linux counts CoDel's time in units of 1,024 ns; three such roundings meet in a decision.
const GRAIN: u64 = 3 * 1024;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Sent,
    Marked,
    Dropped,
}

impl Fate {
    fn word(self) -> &'static str {
        ["sent", "marked", "dropped"][self as usize]
    }
}

/// A line of packets that says how many bytes wait.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Arrival>,
    bytes: u64,
}

impl Queue for Line {
    fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn packets_of(&self, colour: Colour) -> u32 {
        self.waiting.iter().filter(|a| a.packet.colour == colour).count() as u32
    }
    fn bytes_of(&self, colour: Colour) -> u64 {
        self.waiting.iter().filter(|a| a.packet.colour == colour).map(|a| u64::from(a.packet.size)).sum()
    }
    fn limit(&self) -> Backlog {
        crate::LIMIT
    }
    fn fits(&self, _: u32) -> bool {
        true
    }
    fn idle_since(&self) -> Option<Time> {
        None
    }
    fn has(&self, flow: FlowId) -> bool {
        self.packets_of_flow(flow) > 0
    }
    fn packets_of_flow(&self, flow: FlowId) -> u32 {
        self.waiting.iter().filter(|a| a.packet.flow == flow).count() as u32
    }
    fn strike(&mut self, _: FlowId, _: End, _: Strike) -> bool {
        false
    }
    fn strike_at(&mut self, _: u32, _: Strike) -> bool {
        false
    }
}

/// The least shift, in nanoseconds, with which `ask` says `linux`, and the law as it is then. Where none does: the law as it was
/// asked first.
fn agree<L>(linux: Fate, at: Time, mut ask: impl FnMut(Time) -> (Fate, L)) -> (Fate, Option<u64>, L) {
    let (ours, law) = ask(at);
    if ours == linux {
        return (ours, Some(0), law);
    }
    for shift in &SHIFTS[1..] {
        for moved in [at + Duration(shift * NANO), Time(at.0.saturating_sub(shift * NANO))] {
            let (other, law) = ask(moved);
            if other == linux {
                return (ours, Some(*shift), law);
            }
        }
    }
    (ours, None, law)
}

/// A line of the answer.
fn tell(
    out: &mut impl Write,
    number: u32,
    fates: (Fate, Fate),
    shift: Option<u64>,
    allowed: Duration,
) -> io::Result<()> {
    let shift = shift.map_or(-1, |s| s as i64);
    writeln!(out, "{number} {} {} {shift} {}", fates.0.word(), fates.1.word(), allowed.0 / NANO)
}

/// CoDel: packets are put to it as they are about to leave.
pub fn queue<R: BufRead>(events: Events<R>, aqm: &mut AnyAqm, out: &mut impl Write) -> io::Result<()> {
    let AnyAqm::Codel(codel) = aqm else { return Err(io::Error::other("lockstep is for codel")) };
    let mut line = Line::default();
    let mut rng = Rng::for_component(0, "unused");
    // How far stamps lay apart since the last packet that let the law begin anew.
    let mut state = Duration(0);
    for event in events {
        match event? {
            Event::Arrival(arrival) => {
                line.bytes += u64::from(arrival.packet.size);
                line.waiting.push_back(arrival);
            }
            Event::Call(Call { at, latest, number, marked }) => loop {
                let head = line.waiting.pop_front();
                let head =
                    head.ok_or_else(|| io::Error::other(format!("packet {number} left before it came")))?;
                line.bytes -= u64::from(head.packet.size);
                let left = if marked { Fate::Marked } else { Fate::Sent };
                let linux = if head.number == number { left } else { Fate::Dropped };
                let own = latest - at + (head.within.1 - head.within.0);
                state = state.max(own);
                let (ours, shift, law) = agree(linux, at, |now| {
                    let mut law = codel.clone();
                    let said = law.depart(now, &head.packet, head.at, &mut line, &mut rng, &mut Silent);
                    let fate = match said {
                        Departure::Send => Fate::Sent,
                        Departure::Mark => Fate::Marked,
                        Departure::Drop(_) => Fate::Dropped,
                    };
                    (fate, law)
                });
                *codel = law;
                tell(out, head.number, (linux, ours), shift, own + state + Duration(GRAIN * NANO))?;
                if linux != Fate::Dropped {
                    if at.since(head.at) < Duration::from_millis(1) {
                        state = Duration(0);
                    }
                    break;
                }
            },
        }
    }
    Ok(())
}

/// A policer: packets are put to it as they come.
pub fn police<R: BufRead>(events: Events<R>, marker: &mut AnyMarker, out: &mut impl Write) -> io::Result<()> {
    let AnyMarker::TokenBucket(bucket) = marker else {
        return Err(io::Error::other("police is for a token_bucket"));
    };
    let mut rng = Rng::for_component(0, "unused");
    let mut state = Duration(0);
    for event in events {
        let Event::Arrival(a) = event? else { return Err(io::Error::other("a policer has no queue to ask")) };
        let linux = if a.passed { Fate::Sent } else { Fate::Dropped };
        let own = a.within.1 - a.within.0;
        let (ours, shift, law) = agree(linux, a.at, |now| {
            let mut law = bucket.clone();
            let fate = match law.mark(now, &a.packet, &mut rng, &mut Silent) {
                Mark::Pass(_) => Fate::Sent,
                Mark::Drop(_) => Fate::Dropped,
            };
            (fate, law)
        });
        // The error of a time is undone by the next one's, but for the first since the bucket was full.
        state = state.max(own);
        tell(out, a.number, (linux, ours), shift, own + state)?;
        *bucket = law;
    }
    Ok(())
}

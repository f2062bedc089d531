//! What the guest saw, a line an event. Times are nanoseconds since the start.
//!
//! - `a NUMBER TIME SIZE FLOW ECN EARLIEST LATEST VERDICT`: a packet came, at TIME as far as is known, and within these bounds for
//!   sure; ECN are its two bits, VERDICT is 1 if it got through in the end, else 0;
//! - `c TIME SLACK NUMBER MARKED`: the link asked for a packet, at TIME or up to SLACK later, and got this one; MARKED is 1 if it
//!   left with congestion experienced;
//! - `l TIME`: a packet left;
//! - `s FROM TO`: the guest stalled, though something waited;
//! - `t TIME`: from then on the discipline's timer counts.

use std::io::{self, BufRead};

use inprofile_core::packet::{Ecn, FlowId, Packet};
use inprofile_core::units::Time;

/// A packet came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// In the order of the plan.
    pub number: u32,
    /// When, as far as is known.
    pub at: Time,
    /// Between these.
    pub within: (Time, Time),
    /// What it is.
    pub packet: Packet,
    /// Whether it got through.
    pub passed: bool,
}

/// The link asked for a packet.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// When at the earliest.
    pub at: Time,
    /// When at the latest.
    pub latest: Time,
    /// What it got.
    pub number: u32,
    /// Whether that was marked.
    pub marked: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A packet came.
    Arrival(Arrival),
    /// The link asked for one.
    Call(Call),
    /// A packet left.
    Left(Time),
    /// The guest stalled.
    Stall(Time, Time),
    /// The discipline's timer starts.
    Timer(Time),
}

/// A nanosecond in picoseconds.
pub const NANO: u64 = 1000;

/// The events of a text.
#[derive(Debug)]
pub struct Events<R> {
    lines: io::Lines<R>,
    line: usize,
}

impl<R: BufRead> Events<R> {
    /// Of this text.
    pub fn read(text: R) -> Events<R> {
        Events { lines: text.lines(), line: 0 }
    }

    fn parsed(&self, line: &str) -> io::Result<Event> {
        let wrong = || io::Error::other(format!("standard input, line {}: {line}", self.line));
        let mut words = line.split(' ');
        let kind = words.next().ok_or_else(wrong)?;
        let numbers: Vec<u64> = words.map(|w| w.parse().map_err(|_| wrong())).collect::<io::Result<_>>()?;
        match (kind, &numbers[..]) {
            ("a", &[number, at, size, flow, ecn, earliest, latest, passed]) => {
                let ecn =
                    [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0].get(ecn as usize).copied().ok_or_else(wrong)?;
                let size = u32::try_from(size).map_err(|_| wrong())?;
                let flow = FlowId(u32::try_from(flow).map_err(|_| wrong())?);
                Ok(Event::Arrival(Arrival {
                    number: u32::try_from(number).map_err(|_| wrong())?,
                    at: Time(at * NANO),
                    within: (Time(earliest * NANO), Time(latest * NANO)),
                    packet: Packet { flow, size, payload: size, ecn, ..Packet::default() },
                    passed: passed == 1,
                }))
            }
            ("c", &[at, slack, number, marked]) => Ok(Event::Call(Call {
                at: Time(at * NANO),
                latest: Time((at + slack) * NANO),
                number: u32::try_from(number).map_err(|_| wrong())?,
                marked: marked == 1,
            })),
            ("l", &[at]) => Ok(Event::Left(Time(at * NANO))),
            ("t", &[at]) => Ok(Event::Timer(Time(at * NANO))),
            ("s", &[from, to]) => Ok(Event::Stall(Time(from * NANO), Time(to * NANO))),
            _ => Err(wrong()),
        }
    }
}

impl<R: BufRead> Iterator for Events<R> {
    type Item = io::Result<Event>;

    fn next(&mut self) -> Option<io::Result<Event>> {
        let line = self.lines.next()?;
        self.line += 1;
        Some(line.and_then(|line| self.parsed(&line)))
    }
}

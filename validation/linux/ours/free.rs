//! The discipline decides for itself over Linux's arrivals, below a token bucket such as the guest's.
//!
//! The guest's timer is late now and then, and packets then leave in a bunch. So a packet for which there are tokens leaves here
//! when Linux's left, if one did about then.

use std::io::{self, BufRead, Write};

use inprofile_core::packet::{Colour, Ecn, FlowId, Packet};
use inprofile_core::queue::fifo::{Fifo, Item};
use inprofile_core::registry::AnyAqm;
use inprofile_core::rng::Rng;
use inprofile_core::signal::Outbox;
use inprofile_core::units::{Backlog, Duration, Time};
use inprofile_core::verdict::{Admission, Silent};

use crate::events::{Arrival, Event, Events, NANO};

/// The guest's link: its rate in bytes a picosecond, and its burst in bytes.
const LINK: (f64, f64) = (8_000_000.0 / 8e12, 30_000.0);

/// A departure of Linux's is that of ours if ours has its tokens no more than the first before it, or than the second after:
/// what the stamps are off by, and what a packet takes.
const ABOUT: (Duration, Duration) = (Duration(1_000_000_000), Duration(100_000_000));

/// The guest's clock: HZ is 100.
const JIFFY: Duration = Duration::from_millis(10);

/// A packet that waits.
#[derive(Debug)]
struct Waiting(Arrival);

impl Item for Waiting {
    fn size(&self) -> u32 {
        self.0.packet.size
    }
    fn colour(&self) -> Colour {
        self.0.packet.colour
    }
    fn flow(&self) -> FlowId {
        self.0.packet.flow
    }
    fn since(&self) -> Time {
        self.0.at
    }
    fn mark(&mut self) -> bool {
        self.0.packet.ecn.mark()
    }
}

/// The link: `tbf`, which asks a discipline for a packet as soon as the last has left (`ahead`), or as it has the tokens.
struct Link {
    queue: Fifo<Waiting>,
    aqm: AnyAqm,
    rng: Rng,
    ahead: bool,
    /// What it has asked for ahead.
    held: Option<Waiting>,
    tokens: f64,
    at: Time,
    /// When something last changed: nothing is served before.
    changed: Time,
    /// When the guest stalled.
    stalls: Vec<(Time, Time)>,
    /// When packets left there.
    left: Vec<Time>,
}

impl Link {
    /// When the next packet leaves, if nothing else happens until then.
    fn next(&self) -> Option<Time> {
        let size = self.held.as_ref().or_else(|| self.queue.head()).map(Item::size)?;
        let missing = f64::from(size) - self.tokens;
        let ready = self.at + Duration((missing.max(0.0) / LINK.0) as u64);
        let at = self.awake(ready.max(self.changed));
        let late = self.left[self.left.partition_point(|left| *left + ABOUT.1 < at)..].first();
        Some(late.filter(|late| **late < at + ABOUT.0).map_or(at, |late| self.changed.max(*late)))
    }

    /// This time, or when the guest went on, if it was stalled then.
    fn awake(&self, at: Time) -> Time {
        let began = self.stalls[..self.stalls.partition_point(|(from, _)| *from < at)].last();
        began.map_or(at, |(_, to)| at.max(*to))
    }

    /// Takes a packet out of the discipline.
    fn ask(&mut self, now: Time, out: &mut impl Write) -> io::Result<Option<Waiting>> {
        let mut dropped = Vec::new();
        let as_packet = |item: &Waiting| -> Packet { item.0.packet };
        let lost = |item, _| dropped.push(item);
        let asked = self.queue.depart(now, as_packet, &mut self.aqm, &mut self.rng, &mut Silent, lost);
        for Waiting(arrival) in dropped {
            tell(out, &arrival, "dropped", now)?;
        }
        Ok(asked)
    }

    /// The next packet leaves.
    fn serve(&mut self, now: Time, out: &mut impl Write) -> io::Result<()> {
        let earned = LINK.0 * now.since(self.at).picos();
        (self.tokens, self.at, self.changed) = ((self.tokens + earned).min(LINK.1), now, now);
        let leaves = if self.ahead { self.held.take() } else { self.ask(now, out)? };
        if let Some(Waiting(arrival)) = leaves {
            self.tokens -= f64::from(arrival.packet.size);
            let marked = arrival.packet.ecn == Ecn::Experienced;
            tell(out, &arrival, if marked { "marked" } else { "sent" }, now)?;
        }
        self.hold(now, out)
    }

    fn hold(&mut self, now: Time, out: &mut impl Write) -> io::Result<()> {
        if self.ahead && self.held.is_none() {
            self.held = self.ask(now, out)?;
        }
        Ok(())
    }

    fn arrive(&mut self, arrival: Arrival, out: &mut impl Write) -> io::Result<()> {
        let now = arrival.at;
        self.changed = now;
        let item = Waiting(arrival);
        let verdict =
            self.queue.arrive(now, &arrival.packet, item, &mut self.aqm, &mut self.rng, &mut Silent);
        if let Admission::Drop(_) = verdict {
            tell(out, &arrival, "dropped", now)?;
        }
        while let Some(Waiting(evicted)) = self.queue.take_evicted() {
            tell(out, &evicted, "dropped", now)?;
        }
        self.hold(now, out)
    }
}

/// Runs until all have left.
pub fn run<R: BufRead>(
    events: Events<R>,
    (limit, ahead): (Backlog, bool),
    aqm: AnyAqm,
    seed: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let (mut stalls, mut left) = (Vec::new(), Vec::new());
    let mut arrivals = Vec::new();
    let mut timer = Time::ZERO;
    for event in events {
        match event? {
            Event::Arrival(arrival) => arrivals.push(arrival),
            Event::Stall(from, to) => stalls.push((from, to)),
            Event::Left(at) => left.push(at),
            Event::Timer(at) => timer = at,
            Event::Call(_) => {}
        }
    }
    let mut link = Link {
        queue: Fifo::before(limit, &aqm),
        aqm,
        rng: Rng::for_component(seed, "linux"),
        ahead,
        held: None,
        tokens: LINK.1,
        at: Time::ZERO,
        changed: Time::ZERO,
        stalls,
        left,
    };
    // tbf asks for a packet only when one has come: to the discipline below it the link is never idle.
    link.queue.went_busy();
    let mut outbox = Outbox::default();
    let mut planned = Some(timer);
    let mut arrivals = arrivals.into_iter().peekable();
    loop {
        let (came, leaves) = (arrivals.peek().map(|a| a.at), link.next());
        let Some(now) = [came, leaves].into_iter().flatten().min() else { return Ok(()) };
        let tick = planned.map(|at| (at, link.awake(at)));
        if let Some((due, at)) = tick.filter(|(_, at)| *at <= now) {
            // A timer is set again when it has run, however late, and runs on the ticks of the kernel's clock.
            planned = link.aqm.tick(at, &mut outbox).map(|next| Time(next.0 - (at.0 - due.0) % JIFFY.0));
        } else if leaves.is_some_and(|at| at <= now) {
            link.serve(now, out)?;
        } else if let Some(arrival) = arrivals.next() {
            link.arrive(arrival, out)?;
        }
    }
}

fn tell(out: &mut impl Write, packet: &Arrival, what: &str, at: Time) -> io::Result<()> {
    writeln!(out, "{} {what} {}", packet.number, at.0 / NANO)
}

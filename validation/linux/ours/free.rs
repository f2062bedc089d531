//! The discipline decides for itself over Linux's arrivals; a packet leaves whenever one left there.

use std::io::{self, BufRead, Write};

use inprofile_core::packet::{Colour, FlowId, Packet};
use inprofile_core::queue::fifo::{Fifo, Item};
use inprofile_core::registry::AnyAqm;
use inprofile_core::rng::Rng;
use inprofile_core::signal::Outbox;
use inprofile_core::units::{Backlog, Time};
use inprofile_core::verdict::{Admission, Silent};

use crate::events::{Arrival, Event, Events, NANO};

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

/// Runs to the end of the events. The link is never idle there: tbf, which shapes it, asks for a packet only when one has come.
pub fn run<R: BufRead>(
    events: Events<R>,
    limit: Backlog,
    mut aqm: AnyAqm,
    seed: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut queue: Fifo<Waiting> = Fifo::before(limit, &aqm);
    let mut rng = Rng::for_component(seed, "linux");
    let mut outbox = Outbox::default();
    let mut next = aqm.tick(Time::ZERO, &mut outbox);
    for event in events {
        let event = event?;
        let now = match &event {
            Event::Arrival(arrival) => arrival.at,
            Event::Call(call) => call.at,
        };
        while let Some(at) = next.filter(|at| *at <= now) {
            next = aqm.tick(at, &mut outbox);
        }
        match event {
            Event::Arrival(arrival) => {
                let verdict =
                    queue.arrive(now, &arrival.packet, Waiting(arrival), &mut aqm, &mut rng, &mut Silent);
                if let Admission::Drop(_) = verdict {
                    tell(out, &arrival, "dropped", now)?;
                }
                while let Some(Waiting(evicted)) = queue.take_evicted() {
                    tell(out, &evicted, "dropped", now)?;
                }
            }
            Event::Call(_) => {
                let mut dropped = Vec::new();
                let as_packet = |item: &Waiting| -> Packet { item.0.packet };
                let left = queue
                    .depart(now, as_packet, &mut aqm, &mut rng, &mut Silent, |item, _| dropped.push(item));
                for Waiting(arrival) in dropped {
                    tell(out, &arrival, "dropped", now)?;
                }
                if let Some(Waiting(arrival)) = left {
                    let marked = arrival.packet.ecn == inprofile_core::packet::Ecn::Experienced;
                    tell(out, &arrival, if marked { "marked" } else { "sent" }, now)?;
                }
            }
        }
    }
    Ok(())
}

fn tell(out: &mut impl Write, packet: &Arrival, what: &str, at: Time) -> io::Result<()> {
    writeln!(out, "{} {what} {}", packet.number, at.0 / NANO)
}

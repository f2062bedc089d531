//! The two backends, and what both report for each packet.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use inprofile_core::packet::{Colour, Ecn, FlowId, Kind, Packet};
use inprofile_core::queue::scheduled::Setup;
use inprofile_core::registry::{AnyMarker, AnyScheduler};
use inprofile_core::rng::Rng;
use inprofile_core::signal::Signal;
use inprofile_core::units::{Rate, Time};
use inprofile_core::verdict::{Admission, Cause, Mark};
use inprofile_live::code_points::CodePoints;
use inprofile_live::datapath::marker::Marking;
use inprofile_live::datapath::{
    Charge, Datapath, Decision, Parts, Policy, Rewrite, Sharing, Treatment, Witness,
};
use inprofile_live::io::Io;
use inprofile_live::io::replay::{Frame, Replay};
use inprofile_live::packet::{Layer, Seen, checksum, parse};
use inprofile_sim::engine;
use inprofile_sim::network::Network;
use inprofile_sim::outcome::VerdictPoint;
use inprofile_sim::run_log::Code;

/// The fate of one packet, in the order of arrival at the edge.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub flow: FlowId,
    /// The time, and the colour or `drop`.
    pub marker: (Time, &'static str),
    /// The time, `admit`, `mark` or `drop`, and the cause; `None` if the marker dropped the packet.
    pub queue: Option<(Time, &'static str, Option<Cause>)>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// It went onto the link at this time, with this colour and this ECN field.
    Sent { at: Time, colour: Colour, ecn: Ecn },
    /// It was dropped at this time, on arrival or while it waited.
    Dropped(Time),
    /// It was dropped by the marker, or was still waiting when the run ended.
    Neither,
}

/// A packet that arrived at the edge.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    at: Time,
    packet: Packet,
    forward: bool,
}

/// Runs the network; returns the arrivals at its edge, and the decisions made there and in front of `link`.
pub fn simulated(network: Network, link: u32) -> (Vec<Arrival>, Vec<Row>) {
    let (router, beyond) = (network.links[link as usize].from, network.links[link as usize].to);
    let end = Time(network.duration.0);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = {
        let seen = Arc::clone(&seen);
        Box::new(move |row: &inprofile_sim::run_log::LogRow| {
            let came = row.to == router && row.code == Code::Receive;
            let at_the_queue = row.from == router && row.to == beyond && row.code != Code::Receive;
            if came || at_the_queue {
                seen.lock().expect("nobody panicked").push(*row);
            }
        })
    };
    let outcome = engine::run(network, &AtomicBool::new(false), Some(log)).expect("the run ends");
    let (mut arrivals, mut rows, mut place_of) = (Vec::new(), Vec::new(), BTreeMap::new());
    for row in seen.lock().expect("nobody panicked").iter() {
        let (at, t) = (row.time, &row.packet);
        match row.code {
            Code::Receive => {
                arrivals.push(Arrival { at, packet: t.packet, forward: t.forward() });
                if t.forward() {
                    place_of.insert(row.number, rows.len());
                    let marker = (Time::NEVER, "");
                    rows.push(Row { flow: t.packet.flow, marker, queue: None, outcome: Outcome::Neither });
                }
            }
            Code::Dequeue => {
                let Packet { colour, ecn, .. } = t.packet;
                rows[place_of[&row.number]].outcome = Outcome::Sent { at, colour, ecn };
            }
            Code::Drop(_) => rows[place_of[&row.number]].outcome = Outcome::Dropped(at),
            Code::Enqueue => {}
        }
    }
    for v in &outcome.verdicts {
        let Some(row) = place_of.get(&v.packet).map(|i| &mut rows[*i]) else { continue };
        match v.place {
            VerdictPoint::Edge(0) => row.marker = (v.at, v.verdict),
            // A discipline that drops at departure reports a second verdict: the first is the one on arrival.
            VerdictPoint::Queue(l) if l == link && row.queue.is_none() => {
                row.queue = Some((v.at, v.verdict, v.cause))
            }
            _ => {}
        }
    }
    assert!(arrivals.iter().all(|a| a.at <= end));
    (arrivals, rows)
}

/// The packet as it would be on a wire: IPv4 and TCP or UDP, with the flow in the source address.
fn bytes(packet: &Packet, points: &CodePoints) -> Vec<u8> {
    let size = packet.size as usize;
    let mut p = vec![0u8; size];
    let protocol = if packet.kind == Kind::Datagram { 17 } else { 6 };
    (p[0], p[1], p[8], p[9]) =
        (0x45, points.of(packet.colour).value() << 2 | packet.ecn.bits(), 64, protocol);
    p[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    p[12..16].copy_from_slice(&packet.flow.0.to_be_bytes());
    p[16..20].copy_from_slice(&[10, 0, 0, 1]);
    let sum = checksum::check(&p[..20]);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    if packet.kind == Kind::Datagram {
        p[24..26].copy_from_slice(&((size - 20) as u16).to_be_bytes());
        return p;
    }
    p[24..28].copy_from_slice(&packet.seq.to_be_bytes());
    p[28..32].copy_from_slice(&packet.ack.to_be_bytes());
    p[32] = ((size - 20 - packet.payload as usize) / 4 * 16) as u8;
    p[33] = if packet.kind == Kind::Syn { 2 } else { 16 };
    p
}

/// The source address gives the flow, the DSCP the colour; flow i is in class i modulo the number of classes.
#[derive(Clone, Copy)]
struct ByAddress(u32);

fn treatment(seen: &Seen, classes: u32) -> Option<Treatment> {
    let headers = seen.as_ref().ok()?;
    let [a, b, c, d, ..] = headers.addresses.0;
    let flow = FlowId(u32::from_be_bytes([a, b, c, d]));
    let points = CodePoints::default();
    let colour = points.colour(headers.dscp)?;
    let class = (flow.0 % classes) as u8;
    let (markers, rewrite) = ([Some(0), None], Rewrite::Colour(points));
    let (customer, own_queue) = (None, false);
    let (forget, contract, clear_link) = (None, None, false);
    Some(Treatment {
        flow,
        forget,
        customer,
        own_queue,
        class,
        colour,
        markers,
        rewrite,
        clear_link,
        contract,
    })
}

impl Policy for ByAddress {
    fn decide(&mut self, _: Time, seen: &Seen) -> Decision {
        treatment(seen, self.0).map_or(Decision::Pass, Decision::Queue)
    }
}

#[derive(Default)]
struct Rows(Vec<Row>);

impl Witness for Rows {
    fn marked(&mut self, now: Time, number: u64, marker: u16, verdict: Mark) {
        assert_eq!((number as usize, marker), (self.0.len(), 0));
        let word = match verdict {
            Mark::Pass(colour) => colour.name(),
            Mark::Drop(_) => "drop",
        };
        let outcome = Outcome::Neither;
        self.0.push(Row { flow: FlowId(u32::MAX), marker: (now, word), queue: None, outcome });
    }
    fn queued(&mut self, now: Time, number: u64, verdict: Admission) {
        let row = &mut self.0[number as usize];
        row.queue = Some(match verdict {
            Admission::Admit => (now, "admit", None),
            Admission::Mark => (now, "mark", None),
            Admission::Drop(cause) => {
                row.outcome = Outcome::Dropped(now);
                (now, "drop", Some(cause))
            }
        });
    }
    fn lost(&mut self, now: Time, number: u64, _: Cause) {
        self.0[number as usize].outcome = Outcome::Dropped(now);
    }
    fn send(&mut self, at: Time, number: u64, frame: &mut [u8]) {
        let headers = parse(Layer::Ip, frame).expect("what went in is a packet");
        assert_eq!(checksum::check(&frame[..20]), 0);
        let seen = treatment(&Ok(headers), 1).expect("a code point of ours");
        let row = &mut self.0[number as usize];
        row.outcome = Outcome::Sent { at, colour: seen.colour, ecn: headers.ecn };
        row.flow = seen.flow;
    }
}

/// Replays the arrivals through a datapath of our own, up to the end of the simulation.
pub fn live(
    arrivals: &[Arrival],
    marker: AnyMarker,
    contracts: &[Option<Rate>],
    (classes, scheduler): (Vec<Setup>, AnyScheduler),
    rate: Rate,
    seed: u64,
    end: Time,
) -> Vec<Row> {
    let points = CodePoints::default();
    let frames = arrivals.iter().map(|a| Frame {
        at: a.at,
        port: usize::from(!a.forward),
        bytes: bytes(&a.packet, &points),
    });
    let mut driver = Replay::new(Layer::Ip, frames.collect());
    let number = classes.len() as u32;
    let mut path = Datapath::new(
        ByAddress(number),
        Parts {
            layer: Layer::Ip,
            markers: vec![Marking::new(marker, Rng::for_component(seed, "edge ER"))],
            classes,
            scheduler,
            sharing: Sharing::default(),
            rng: Rng::for_component(seed, "queue bottleneck"),
            rate,
            charge: Charge::default(),
            age_limit: None,
            buffers: 100_000,
        },
    );
    for (i, rate) in (0..).zip(contracts).filter_map(|(i, rate)| Some((i, (*rate)?))) {
        path.tell(0, Time::ZERO, &Signal { topic: "contract", flow: Some(FlowId(i)), value: rate.0 as f64 });
    }
    let mut rows = Rows::default();
    while !driver.ended() {
        driver.wait(path.due()).expect("memory can be waited for");
        path.advance(driver.now(), &mut rows);
        driver
            .receive(&mut |now, port, frame| {
                if port == 0 {
                    path.arrive(now, frame, &mut rows);
                } else if let Some(treatment) = treatment(&parse(Layer::Ip, frame), number) {
                    path.reverse(now, frame, &treatment, &mut rows);
                }
            })
            .expect("memory can be read");
    }
    // The simulation goes on for a while after the last arrival.
    path.advance(end, &mut rows);
    path.check().expect("nothing is lost");
    let forward = arrivals.iter().filter(|a| a.forward);
    rows.0.iter_mut().zip(forward).for_each(|(row, a)| row.flow = a.packet.flow);
    rows.0
}

//! What a marking decision costs with TWAM and with TSW2CM: the question of claim E6 of paper E.
//!
//! `bench-markers [ROUNDS]` prints JSON. Ten flows of 1 to 5 Mbit/s send a fifth more than their contracts, and are acknowledged 60 ms
//! later. In turns, their order changing from round to round, all flows pass one TWAM at an edge that looks at data and
//! acknowledgements to see windows and round-trip times; one that knows the path's round-trip time and counts packets for
//! windows, the paper's own case (§3, §5.2); one that is told both; and a TSW2CM each. Counted is everything the marker does,
//! TWAM's ticks included.

use std::collections::BTreeMap;
use std::{env, fs, hint};

use inprofile_benches::cpu_time;
use inprofile_core::marker::{Marker, tsw2cm, twam};
use inprofile_core::mechanism::Mechanism;
use inprofile_core::packet::{Direction, FlowId, Kind, Packet};
use inprofile_core::params::{Build, Context};
use inprofile_core::rng::Rng;
use inprofile_core::signal::{Outbox, Signal};
use inprofile_core::units::{Bytes, Duration, Rate, Time};
use inprofile_core::verdict::Silent;

/// Contracts in Mbit/s.
const CONTRACTS: [u64; 10] = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5];
/// Data packets of a round.
const PACKETS: usize = 20_000;
/// Payload and header.
const SIZES: (u32, u32) = (1000, 40);
/// From data to its acknowledgement.
const RTT: Duration = Duration::from_millis(60);

/// A packet as it passes the edge.
struct Passing(Time, Packet, Direction);

/// Data of all flows and its acknowledgements, in the order in which they pass.
fn stream() -> Vec<Passing> {
    let mut rng = Rng::for_component(1, "stream of segments");
    let sum: u64 = CONTRACTS.iter().sum();
    let mut all = Vec::with_capacity(2 * PACKETS);
    for (i, &mbit) in CONTRACTS.iter().enumerate() {
        let size = SIZES.0 + SIZES.1;
        let spacing = f64::from(8 * size) / (1.2 * mbit as f64 * 1e6) * 1e12;
        let mut at = 0.0;
        for n in 0..(PACKETS as u64 * mbit / sum) as u32 {
            // Windows come in bursts: half of the gaps are short.
            at += spacing * if rng.below(2) == 0 { 0.1 } else { 1.9 };
            let data = Packet {
                flow: FlowId(i as u32),
                size,
                payload: SIZES.0,
                seq: n.wrapping_mul(SIZES.0),
                kind: Kind::Data,
                ..Packet::default()
            };
            let ack = Packet {
                size: SIZES.1,
                payload: 0,
                seq: 0,
                ack: data.seq + SIZES.0,
                kind: Kind::Ack,
                ..data
            };
            all.push(Passing(Time(at as u64), data, Direction::Forward));
            all.push(Passing(Time(at as u64) + RTT, ack, Direction::Reverse));
        }
    }
    all.sort_by_key(|p| (p.0, p.1.flow, p.1.kind == Kind::Ack));
    all
}

fn context(contract: Option<Rate>) -> Context {
    Context { link_rate: None, contract, packet: Bytes(u64::from(SIZES.0 + SIZES.1)), limit: None }
}

/// What a TWAM knows.
#[derive(Clone, Copy, PartialEq)]
enum Knows {
    /// Nothing: it sees windows and round-trip times.
    Nothing,
    /// The round-trip time; it counts packets for windows.
    Rtt,
    /// Both.
    Windows,
}

/// CPU time a data packet in ns, of one TWAM for all.
fn twam(stream: &[Passing], knows: Knows) -> f64 {
    use twam::WindowSource::{Estimated, Oracle};
    let params = twam::Params {
        shares: twam::Sharing::Contract,
        alpha: 1,
        rtt: (knows != Knows::Nothing).then_some(RTT),
        window_source: if knows == Knows::Windows { Oracle } else { Estimated },
    };
    let mut marker = params.build(&context(None));
    for (flow, mbit) in (0..).zip(CONTRACTS) {
        let value = mbit as f64 * 1e6;
        marker.signal(Time::ZERO, &Signal { topic: "contract", flow: Some(FlowId(flow)), value });
    }
    let mut rng = Rng::for_component(1, "twam");
    let mut due = Some(Time::ZERO);
    let before = cpu_time();
    for Passing(at, packet, direction) in stream {
        while let Some(now) = due.filter(|due| due <= at) {
            if knows == Knows::Windows {
                for (flow, mbit) in (0..).zip(CONTRACTS) {
                    let value = Rate(mbit * 1_200_000).bytes_in(RTT);
                    marker.signal(now, &Signal { topic: "window", flow: Some(FlowId(flow)), value });
                }
            }
            due = marker.tick(now, &mut Outbox::default());
        }
        // Told both, it has nothing to look at; knowing the time, no use for acknowledgements.
        let looks = match knows {
            Knows::Nothing => true,
            Knows::Rtt => *direction == Direction::Forward,
            Knows::Windows => false,
        };
        if looks {
            marker.observe(*at, packet, *direction);
        }
        if *direction == Direction::Forward {
            hint::black_box(marker.mark(*at, packet, &mut rng, &mut Silent));
        }
    }
    (cpu_time() - before).as_nanos() as f64 / PACKETS as f64
}

/// The same of a TSW2CM for each flow, found by the flow as TWAM finds its records.
fn tsw2cm(stream: &[Passing]) -> f64 {
    let built = (0..).zip(CONTRACTS).map(|(flow, mbit)| {
        let params = tsw2cm::Params {
            ctr: None,
            win_length: Duration::from_millis(1000),
            excess: tsw2cm::Excess::Share,
        };
        (FlowId(flow), params.build(&context(Some(Rate(mbit * 1_000_000)))))
    });
    let mut markers: BTreeMap<FlowId, tsw2cm::Tsw2cm> = built.collect();
    let mut rng = Rng::for_component(1, "tsw2cm");
    let before = cpu_time();
    for Passing(at, packet, direction) in stream {
        if *direction == Direction::Forward {
            let Some(marker) = markers.get_mut(&packet.flow) else { continue };
            hint::black_box(marker.mark(*at, packet, &mut rng, &mut Silent));
        }
    }
    (cpu_time() - before).as_nanos() as f64 / PACKETS as f64
}

/// The processor's name, as Linux has it.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("an unnamed processor");
    name.trim_start_matches([' ', '\t', ':']).replace('"', "")
}

fn main() {
    let rounds: usize = env::args().nth(1).map_or(100, |n| n.parse().expect("a number of rounds"));
    let stream = stream();
    let measures: [&dyn Fn() -> f64; 4] = [
        &|| twam(&stream, Knows::Nothing),
        &|| twam(&stream, Knows::Rtt),
        &|| twam(&stream, Knows::Windows),
        &|| tsw2cm(&stream),
    ];
    // One round of each to warm up, which is not counted.
    measures.iter().for_each(|measure| {
        hint::black_box(measure());
    });
    let mut found = [(); 4].map(|()| Vec::with_capacity(rounds));
    for round in 0..rounds {
        for turn in 0..4 {
            let which = (round + turn) % 4;
            found[which].push(measures[which]());
        }
    }
    let list = |xs: &[f64]| xs.iter().map(|x| format!("{x:.2}")).collect::<Vec<_>>().join(", ");
    println!(
        "{{\n  \"machine\": \"{}\",\n  \"flows\": {},\n  \"packets\": {PACKETS},",
        machine(),
        CONTRACTS.len()
    );
    for (name, times) in ["twam_ns", "twam_rtt_known_ns", "twam_told_ns"].iter().zip(&found) {
        println!("  \"{name}\": [{}],", list(times));
    }
    println!("  \"tsw2cm_ns\": [{}]\n}}", list(&found[3]));
}

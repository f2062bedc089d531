//! The two-flow dumbbell of the golden traces, and its comparison with them.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use inprofile_core::aqm::drop_tail;
use inprofile_core::params::{Context, Value, Values};
use inprofile_core::registry::{AnyAqm, Registry};
use inprofile_core::units::{Backlog, Bytes, Duration, Rate, Time};
use inprofile_sim::network::{self, Flow, Link, Network, Profile, Transport};
use inprofile_sim::ns2;
use inprofile_sim::tcp;
use inprofile_sim::wire::Wire;

/// The discipline at the bottleneck.
pub enum Queue {
    /// First in, first out.
    DropTail,
    /// Without gentle.
    Red { min: f64, max: f64, p: f64 },
}

/// a ─10 Mbit/s, 2 ms─┐
///                    r ─1.5 Mbit/s, 20 ms─ d
/// b ─10 Mbit/s, 3 ms─┘
pub struct Dumbbell {
    pub queue: Queue,
    pub limit: f64,
    /// Of the queue before the way back, from d.
    pub limit_back: f64,
    /// `TCPSink/DelAck`, with its 100 ms.
    pub delayed_ack: bool,
    /// `overhead_`.
    pub jitter: Duration,
}

impl Dumbbell {
    /// With ns-2's defaults elsewhere.
    pub fn of(queue: Queue, limit: f64) -> Dumbbell {
        Dumbbell { queue, limit, limit_back: 50.0, delayed_ack: false, jitter: Duration::ZERO }
    }

    /// In the ns-2 profile, for 20 seconds.
    pub fn network(&self) -> Network {
        let fast = Rate(10_000_000);
        let slow = Rate(1_500_000);
        let mut links = Vec::new();
        let mut duplex = |a: u32, b: u32, rate: Rate, ms: u64, queue: &Queue, limit: f64| {
            for (from, to) in [(a, b), (b, a)] {
                let limit = Backlog::Packets(match (from, to) {
                    (2, 3) => limit,
                    (3, 2) => self.limit_back,
                    _ => 50.0,
                });
                links.push(Link {
                    name: format!("{from}-{to}"),
                    from,
                    to,
                    rate,
                    capacity: None,
                    access: None,
                    wire: Wire::default(),
                    delay: Duration::from_millis(ms),
                    queue: network::Queue::One { aqm: aqm(queue, rate, limit), limit },
                    reported: true,
                    pause: None,
                    ack_filter: false,
                });
            }
        };
        duplex(0, 2, fast, 2, &Queue::DropTail, 50.0);
        duplex(1, 2, fast, 3, &Queue::DropTail, 50.0);
        duplex(2, 3, slow, 20, &self.queue, self.limit);
        let flow = |i: u32, start: u64| Flow {
            name: format!("tcp.{i}"),
            from: i,
            to: 3,
            path: vec![2 * i, 4],
            back: vec![5, 2 * i + 1],
            start: Time(start),
            contract: None,
            marker: None,
            class: 0,
            stop: None,
            transport: Transport::Tcp(tcp::Config {
                profile: tcp::Profile::Ns2,
                window: 20,
                settings: tcp::Settings { jitter: self.jitter, ..tcp::Settings::default() },
                delayed_ack: self.delayed_ack.then(|| Duration::from_millis(100)),
                initial_window: 2,
                ..tcp::Config::plain()
            }),
        };
        Network {
            nodes: ["a", "b", "r", "d"].map(String::from).to_vec(),
            links,
            flows: vec![flow(0, 0), flow(1, 500_000_000_000)],
            edges: Vec::new(),
            pages: Vec::new(),
            signals: Vec::new(),
            monitors: Vec::new(),
            measure: None,
            duration: Duration::from_millis(20_000),
            window: (Time::ZERO, Time(20_000_000_000_000)),
            seed: 1,
            profile: Profile::Ns2,
            trace: false,
        }
    }
}

fn aqm(queue: &Queue, rate: Rate, limit: Backlog) -> AnyAqm {
    let context = Context { link_rate: Some(rate), contract: None, packet: Bytes(1000), limit: Some(limit) };
    match *queue {
        Queue::DropTail => AnyAqm::DropTail(drop_tail::DropTail::with_the_one_in_transmission()),
        Queue::Red { min, max, p } => {
            let entry = Registry::default().aqms.into_iter().find(|e| e.name == "red").expect("RED");
            let given = [
                ("min_th", Value::Backlog(Backlog::Packets(min))),
                ("max_th", Value::Backlog(Backlog::Packets(max))),
                ("max_p", Value::Number(p)),
                ("gentle", Value::Flag(false)),
                ("wait", Value::Flag(true)),
                ("variant", Value::Choice("ns2")),
            ];
            (entry.build)(&Values(given.to_vec()).filled(entry.fields), &context)
        }
    }
}

/// FNV-1a over every line, but for the column of flags.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// A file in memory.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs the scenario in the ns-2 profile and compares it with ns-2's trace: how many lines, and their checksum.
pub fn compare(name: &str, dumbbell: &Dumbbell, theirs: (usize, u64)) {
    let ours = Shared::default();
    ns2::run(dumbbell.network(), &Arc::new(AtomicBool::new(false)), ours.clone()).expect("a whole trace");
    let ours = String::from_utf8(ours.0.lock().expect("nobody panicked").clone()).expect("lines of text");
    let ours = ours.replace(" ------- ", " ");
    if let Ok(folder) = std::env::var("NS2_TRACES") {
        let theirs = std::fs::read_to_string(format!("{folder}/{name}.tr")).expect("a whole trace");
        for (i, (a, b)) in ours.lines().zip(theirs.lines()).enumerate() {
            assert_eq!(a, b, "line {} of {name}", i + 1);
        }
    }
    let (lines, sum) = (ours.lines().count(), checksum(&ours));
    assert_eq!((lines, sum), theirs, "{name}: {lines} lines, checksum {sum:016x}");
}

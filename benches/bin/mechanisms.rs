//! Decisions of token bucket, RED and RIO, one after the other, on a stream of packets read from a file.
//!
//! `bench-mechanisms write FILE OBJECTS PACKETS` makes the stream; `bench-mechanisms run FILE BURST` decides on it. The
//! peer reads the same file. Little-endian: u32 objects, u32 packets, then records of [`Record::BYTES`] bytes.
//! One record for every object comes first and is not timed: it takes the object's bucket and averages somewhere
//! within their range, so that the timed packets meet every case.
//! Packets come in bursts, as a router takes them from its ring: the buckets of a burst are touched, then decided on.

use inprofile_core::aqm::red::{EARLY, FORCED};
use std::time::Duration;
use std::{env, fs, hint};

use inprofile_benches::cpu_time;
use inprofile_core::aqm::red::common::{Common, Thresholds};
use inprofile_core::aqm::{Aqm, At, red, rio};
use inprofile_core::marker::Action;
use inprofile_core::marker::Marker;
use inprofile_core::marker::token_bucket::{self, TokenBucket};
use inprofile_core::packet::{Colour, FlowId, Packet};
use inprofile_core::params::{Build, Context, defaults};
use inprofile_core::queue::Queue;
use inprofile_core::rng::Rng;
use inprofile_core::units::{Backlog, Bytes, Rate, Time};
use inprofile_core::verdict::{Admission, Cause, Mark, Silent};

/// Each object's contract, bits a second; the stream brings a quarter more.
const CONTRACT: u64 = 1_000_000;
/// Depth of the bucket in bytes.
const DEPTH: u64 = 15_000;
/// Rate of the link behind the queue; packets of 1,000 B count as typical: 1,250 a second.
const LINK: u64 = 10_000_000;
/// 1 / w_q.
const WEIGHT: u32 = 512;

/// An arrival, and the queue that it finds.
#[derive(Clone, Copy)]
struct Record {
    at: Time,
    /// How long the queue has been idle, if it is empty.
    idle_ns: u32,
    object: u32,
    size: u16,
    waiting: u16,
    waiting_in: u16,
    colour: Colour,
}

impl Record {
    const BYTES: usize = 24;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.at.0.to_le_bytes());
        out.extend(self.idle_ns.to_le_bytes());
        out.extend(self.object.to_le_bytes());
        for half in [self.size, self.waiting, self.waiting_in, u16::from(self.colour as u8)] {
            out.extend(half.to_le_bytes());
        }
    }

    fn read(b: &[u8]) -> Record {
        let word = |i: usize| u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
        let half = |i: usize| u16::from_le_bytes([b[i], b[i + 1]]);
        Record {
            at: Time(u64::from(word(4)) << 32 | u64::from(word(0))),
            idle_ns: word(8),
            object: word(12),
            size: half(16),
            waiting: half(18),
            waiting_in: half(20),
            colour: if half(22) == 0 { Colour::IN } else { Colour::OUT },
        }
    }
}

/// The queue as the record says it is.
struct Seen<'a>(&'a Record);

impl Queue for Seen<'_> {
    #[inline]
    fn packets(&self) -> u32 {
        u32::from(self.0.waiting)
    }
    #[inline]
    fn bytes(&self) -> u64 {
        u64::from(self.0.waiting) * 1000
    }
    #[inline]
    fn packets_of(&self, colour: Colour) -> u32 {
        u32::from(if colour.is_in() { self.0.waiting_in } else { self.0.waiting - self.0.waiting_in })
    }
    #[inline]
    fn bytes_of(&self, colour: Colour) -> u64 {
        u64::from(self.packets_of(colour)) * 1000
    }
    fn limit(&self) -> Backlog {
        Backlog::Packets(f64::from(u16::MAX) + 1.0)
    }
    #[inline]
    fn fits(&self, _: u32) -> bool {
        true
    }
    #[inline]
    fn idle_since(&self) -> Option<Time> {
        (self.0.waiting == 0).then(|| Time(self.0.at.0 - u64::from(self.0.idle_ns) * 1000))
    }
}

/// One object on a cache line of its own, as a table of flows or queues would keep it.
#[repr(align(64))]
#[derive(Clone)]
struct Line<T>(T);

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["write", file, objects, packets] => {
            let numbers = (objects.parse(), packets.parse());
            let (Ok(objects), Ok(packets)) = numbers else { usage() };
            fs::write(file, stream(objects, packets)).unwrap_or_else(|e| panic!("{file}: {e}"));
        }
        ["run", file, burst] => {
            let Some(burst) = burst.parse().ok().filter(|n| *n > 0) else { usage() };
            decide(&fs::read(file).unwrap_or_else(|e| panic!("{file}: {e}")), burst);
        }
        _ => usage(),
    }
}

fn usage() -> ! {
    eprintln!("bench-mechanisms write FILE OBJECTS PACKETS | run FILE BURST");
    std::process::exit(2);
}

/// Objects are hit at random; each queue's length varies evenly around its own mean of 2 to 31 packets.
fn stream(objects: u32, packets: u32) -> Vec<u8> {
    let mut rng = Rng::for_component(1, "stream of packets");
    let means: Vec<u32> = (0..objects).map(|_| 2 + rng.below(30)).collect();
    let mut out = Vec::with_capacity(8 + Record::BYTES * (objects + packets) as usize);
    out.extend(objects.to_le_bytes());
    out.extend(packets.to_le_bytes());
    // 4 ms on, so that every queue can have been idle for as long as that.
    let start = Time(4_000_000_000);
    for (object, &mean) in (0..objects).zip(&means) {
        let waiting = (WEIGHT * mean) as u16;
        let size = rng.below(DEPTH as u32) as u16;
        let first = Record {
            at: start,
            idle_ns: 0,
            object,
            size,
            waiting,
            waiting_in: waiting / 2,
            colour: Colour::IN,
        };
        first.write(&mut out);
    }
    let mean_size = (64 + 1500) / 2;
    let spacing = 8e12 * f64::from(mean_size) / (1.25 * CONTRACT as f64) / f64::from(objects);
    let mut at = start.0 as f64;
    for _ in 0..packets {
        at += 2.0 * spacing * rng.uniform();
        let object = rng.below(objects);
        let waiting = rng.below(2 * means[object as usize] + 1) as u16;
        let waiting_in = if waiting == 0 { 0 } else { 1 + rng.below(u32::from(waiting)) as u16 };
        let record = Record {
            at: Time(at as u64),
            idle_ns: rng.below(4_000_000),
            object,
            size: (64 + rng.below(1437)) as u16,
            waiting,
            waiting_in,
            colour: if rng.below(2) == 0 { Colour::IN } else { Colour::OUT },
        };
        record.write(&mut out);
    }
    out
}

fn decide(file: &[u8], burst: usize) {
    let word = |i: usize| u32::from_le_bytes([file[i], file[i + 1], file[i + 2], file[i + 3]]);
    let (objects, packets) = (word(0) as usize, word(4) as usize);
    let records: Vec<Record> = file[8..].chunks_exact(Record::BYTES).map(Record::read).collect();
    assert_eq!(records.len(), objects + packets, "the file is cut off");
    let context = Context {
        link_rate: Some(Rate(LINK)),
        contract: Some(Rate(CONTRACT)),
        packet: Bytes(1000),
        limit: None,
    };
    let mut rng = Rng::for_component(1, "decisions");

    let bucket = token_bucket::Params {
        rate: None,
        depth: Backlog::Bytes(DEPTH as f64),
        starts_full: true,
        conforms: token_bucket::Conforms::AtLeast,
        action: Action::Mark,
    };
    let stream = Stream { objects, records: &records, burst };
    let (fresh, touch) = (Line(bucket.build(&context)), |bucket: &Line<TokenBucket>| bucket.0.touch());
    stream.time("token_bucket", fresh, touch, |Line(bucket), r| {
        let verdict = bucket.mark(r.at, &packet(r), &mut rng, &mut Silent);
        verdict == Mark::Pass(Colour::IN)
    });

    let packets = |n: u32| Backlog::Packets(f64::from(n));
    let w_q = 1.0 / f64::from(WEIGHT);
    let red = red::Params {
        min_th: packets(10),
        max_th: packets(30),
        max_p: 0.1,
        byte_scaled: false,
        drop: red::DropAt::Tail,
        common: Common { w_q, ..defaults() },
    };
    // What these two hold is not fetched ahead: neither simulator nor router does.
    let fresh = Line(red.build(&context));
    stream.time(
        "red",
        fresh,
        |_| (),
        |Line(red), r| admitted(red.arrive(&packet(r), At::new(r.at, &mut Seen(r), &mut rng, &mut Silent))),
    );

    let rio = rio::Params {
        r#in: Thresholds { min_th: packets(8), max_th: packets(14), max_p: 0.05 },
        out: Thresholds { min_th: packets(5), max_th: packets(20), max_p: 0.1 },
        avg_update: rio::AvgUpdate::ClarkFang,
        count: rio::Counted::Own,
        byte_scaled: false,
        watch: false,
        common: Common { w_q, ..defaults() },
    };
    let fresh = Line(rio.build(&context));
    stream.time(
        "rio",
        fresh,
        |_| (),
        |Line(rio), r| admitted(rio.arrive(&packet(r), At::new(r.at, &mut Seen(r), &mut rng, &mut Silent))),
    );
}

#[inline]
fn packet(r: &Record) -> Packet {
    Packet { flow: FlowId(r.object), size: u32::from(r.size), colour: r.colour, ..Packet::default() }
}

#[inline]
fn admitted(verdict: Admission) -> bool {
    !matches!(verdict, Admission::Drop(EARLY | FORCED | Cause::OVERFLOW))
}

/// What is decided on.
struct Stream<'a> {
    objects: usize,
    /// The first of them, one an object, are not timed.
    records: &'a [Record],
    /// Packets that are received at once; with more than one their objects are touched before the first is decided on.
    burst: usize,
}

impl Stream<'_> {
    /// Nanoseconds of CPU time a decision, and the share of packets passed (or marked IN).
    fn time<M: Clone>(
        &self,
        name: &str,
        fresh: M,
        touch: impl Fn(&M),
        mut passes: impl FnMut(&mut M, &Record) -> bool,
    ) {
        let mut table = vec![fresh; self.objects];
        let (first, timed) = self.records.split_at(self.objects);
        let mut pass = |records: &[Record]| {
            let mut passed = 0u64;
            for burst in records.chunks(self.burst) {
                if burst.len() > 1 {
                    burst.iter().for_each(|r| touch(&table[r.object as usize]));
                }
                for r in burst {
                    passed += u64::from(passes(&mut table[r.object as usize], r));
                }
            }
            passed
        };
        pass(first);
        let before = cpu_time();
        let passed = pass(timed);
        let took: Duration = cpu_time() - before;
        hint::black_box(&table);
        let n = timed.len() as f64;
        println!(
            "name={name} ns={:.3} passed={:.5} bytes={}",
            took.as_secs_f64() * 1e9 / n,
            passed as f64 / n,
            size_of::<M>()
        );
    }
}

//! A day of a full link of 10 Mbit/s, packet by packet through the router's own loop, under a virtual clock: nothing is
//! lost without a cause and memory doesn't grow, not by a byte: what the loop's thread has allocated is counted.
#![cfg(target_os = "linux")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use inprofile_core::rng::Rng;
use inprofile_core::units::{Duration, Time};
use inprofile_live::io::afpacket::Oddities;
use inprofile_live::io::{Io, Port, PortCounts, Received};
use inprofile_live::packet::Layer;
use inprofile_router::config::Level;
use inprofile_router::log::Log;
use inprofile_router::packets::{self, Command, Ports, Pulse, Waiting, ask};
use inprofile_router::presence::Standing;
use inprofile_router::router::{self, Router};
use inprofile_router::snapshot::Snapshot;

/// 24 hours of 10 Mbit/s at 1500 B.
const DAY: u64 = 72_000_000;
/// How often memory and accounts are looked at.
const LOOKS: u64 = 12;
/// Size of every packet.
const SIZE: usize = 1500;
/// Two customers' and a stranger's traffic, one packet of each in turn: 12 Mbit/s into 10.
const FILE: &str = r#"
inside = "a"
outside = "b"
[upstream]
rate = "10 Mbit/s"
[upstream.queue]
aqm = "rio"
limit = "100 packets"
in = { min_th = "40 packets", max_th = "70 packets", max_p = 0.02 }
out = { min_th = "10 packets", max_th = "30 packets", max_p = 0.1 }
[upstream.aggregate]
kind = "ard"
tpr_max = "5 Mbit/s"
bucket = "60 packets"
t_rd = "15 packets"
max_rem = 0.5
p_drop = 0.02
interval = "10 s"
[[upstream.customers]]
name = "one"
prefix = "10.0.0.0/16"
contract = "3 Mbit/s"
marker = { kind = "token_bucket", depth = "30 kB" }
[[upstream.customers]]
name = "two"
prefix = "10.1.0.0/16"
contract = "2 Mbit/s"
marker = { kind = "srtcm", cbs = "30 kB", ebs = "30 kB" }
"#;

/// The system's allocator, and a count of what this thread holds. Resident memory alone would not show a slow leak: it counts
/// whole pages, code that runs for the first time among them.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; this one hands everything on to the system's"
)]
// SAFETY: as the system's allocator, which does all the work.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as i64);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as i64);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(at, layout) }
    }
}

/// The memory held at one sample.
#[derive(Clone, Copy, Debug)]
struct Look {
    made: u64,
    /// Bytes the loop's thread has allocated and not freed.
    held: i64,
    /// Resident memory of the process.
    kib: u64,
}

/// Makes packets as they are asked for, and throws away what is sent.
struct Source {
    now: Time,
    next: Time,
    rng: Rng,
    made: u64,
    most: u64,
    frame: Vec<u8>,
    sent: u64,
    looks: Vec<Look>,
    asked: Option<Waiting<Box<Snapshot>>>,
    commands: Sender<Command>,
}

impl Source {
    fn new(most: u64, commands: Sender<Command>) -> Source {
        let mut frame = vec![0; SIZE];
        (frame[0], frame[8], frame[9]) = (0x45, 64, 17);
        frame[2..4].copy_from_slice(&(SIZE as u16).to_be_bytes());
        frame[12] = 10;
        let (now, next, looks, asked) = (Time::ZERO, Time::ZERO, Vec::with_capacity(LOOKS as usize), None);
        let rng = Rng::for_component(1, "source");
        Source { now, next, rng, made: 0, most, frame, sent: 0, looks, asked, commands }
    }

    /// The next packet, 1 ms after the last on average: one of 3,000 flows.
    fn make(&mut self) {
        let n = self.made;
        self.made += 1;
        // As the source made it: a router may have painted the one before in its place.
        (self.frame[1], self.frame[10], self.frame[11]) = (0, 0, 0);
        self.frame[13] = (n % 3) as u8;
        self.frame[14..16].copy_from_slice(&((n / 3 % 1000) as u16).to_be_bytes());
        self.next = self.now + Duration((self.rng.uniform() * 2e9) as u64);
        if self.made.is_multiple_of(self.most / LOOKS) {
            self.check();
            let look = Look { made: self.made, held: HELD.get(), kib: memory_kib() };
            self.looks.push(look);
            let (asked, waiting) = packets::ask();
            self.commands.send(Command::Snapshot(asked)).expect("the loop runs");
            self.asked = Some(waiting);
        }
    }

    /// The accounts at the last look, which has been answered by now.
    fn check(&mut self) {
        let (Some(asked), Some(Look { made, .. })) = (self.asked.take(), self.looks.last()) else { return };
        let shown = asked.answer(std::time::Duration::ZERO).expect("every look is answered");
        let up = &shown.directions[0];
        let drops = up.dropped + up.refused + up.marker_dropped + up.policed + up.no_buffer + up.too_late;
        let gone = up.passed + up.sent + drops;
        assert_eq!((up.came, up.came), (*made, gone + up.waiting), "{up:?}");
        assert_eq!((up.amiss.as_deref(), up.passed, up.no_buffer), (None, 0, 0));
    }
}

impl Io for Source {
    fn layer(&self) -> Layer {
        Layer::Ip
    }
    fn now(&self) -> Time {
        self.now
    }
    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        let next = if self.made < self.most { Some(self.next) } else { None };
        self.now = next.into_iter().chain(until).min().unwrap_or(self.now).max(self.now);
        if self.made == self.most {
            self.commands.send(Command::Stop(ask().0)).map_err(io::Error::other)?;
        }
        Ok(())
    }
    fn receive(&mut self, each: &mut dyn FnMut(Time, Port, &mut [u8])) -> io::Result<Received> {
        let mut frames = 0;
        while self.made < self.most && self.next <= self.now {
            self.make();
            each(self.now, 0, &mut self.frame);
            frames += 1;
        }
        Ok(Received { frames, until: self.now })
    }
    fn send(&mut self, _: Port, frame: &[u8]) -> io::Result<()> {
        assert_eq!(frame.len(), SIZE);
        self.sent += 1;
        Ok(())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn counts(&self, _: Port) -> PortCounts {
        PortCounts::default()
    }
}

impl Ports for Source {
    fn odd(&self, _: Port) -> Oddities {
        Oddities::default()
    }
    fn mtu(&self, _: Port) -> Option<usize> {
        None
    }
    fn bind(&mut self, _: Port, _: Option<u32>) -> io::Result<()> {
        Ok(())
    }
}

fn memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("Linux tells");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// So many packets; prints what became of them as name=value.
fn soak(most: u64) {
    let (config, _) = inprofile_router::config::parse(FILE.as_bytes(), "soak.toml", &router::registry())
        .unwrap_or_else(|problems| panic!("{problems:?}"));
    let (commands, queue) = channel();
    let mut source = Source::new(most, commands);
    let (log, _) = Log::start(Level::Error, None).expect("a thread");
    let router = Router::new(config, Layer::Ip, 1);
    let start = Instant::now();
    let there = [1, 2].map(Standing::InUse);
    let ended =
        packets::run(&mut source, router, there, 1, &queue, &Pulse::default(), log).expect("no fault");
    let wall = start.elapsed().as_secs_f64();
    assert_eq!(ended.left_behind, 0);

    source.check();
    let looks = &source.looks;
    assert_eq!((looks.len() as u64, looks.last().map(|l| l.made)), (LOOKS, Some(most)));
    // Buffers and tables have been taken by the first look; after it there is not a byte more.
    let grown = looks.iter().map(|l| l.held - looks[1].held).max();
    assert_eq!(grown, Some(0), "{looks:?}");
    let memory: Vec<u64> = looks.iter().map(|l| l.kib).collect();
    let dropped = most - source.sent;
    // 12 Mbit/s into 10: a sixth goes.
    let share = dropped as f64 / most as f64;
    assert!((0.16..0.175).contains(&share), "{share}");
    let memory: Vec<String> = memory.iter().map(u64::to_string).collect();
    println!(
        "soak packets={most} sent={} dropped={dropped} hours={:.2} wall_s={wall:.1} rss_kib={}",
        source.sent,
        source.now.secs() / 3600.0,
        memory.join(",")
    );
}

#[test]
fn a_short_soak() {
    soak(120_000);
}

#[test]
#[ignore = "a minute or two: make soak"]
fn a_day_of_ten_megabits() {
    soak(DAY);
}

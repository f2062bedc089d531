//! The harness of these tests: the kernel's programs under BPF_PROG_TEST_RUN ([`Tried`]), and the router in user space ([`User`]).

use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;

use aya::TestRunOptions;
use aya::maps::MapData;
use aya::programs::TestRun;
use inprofile_core::units::Time;
use inprofile_live::packet::Layer;
use inprofile_router::config::{self, Config};
use inprofile_router::kernel::maps::Maps;
use inprofile_router::router::{self, Router};

/// Whether the kernel takes programs. Says so aloud where it does not, and is no reason to pass unless ALLOW_MISSING names `bpf`.
pub fn permitted() -> bool {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    let permitted = TRIED.get_or_init(|| Maps::load(&config("[upstream]\n"), None).map(drop));
    let allowed = std::env::var("ALLOW_MISSING").is_ok_and(|v| v.split(',').any(|w| w == "bpf"));
    if let Err(e) = permitted {
        eprintln!("NOT TESTED: {e}");
        assert!(allowed, "{e}\nthis test loads BPF programs; ALLOW_MISSING=bpf leaves it out");
    }
    permitted.is_ok()
}

/// A file of the kernel's datapath.
pub fn config(rest: &str) -> Config {
    let text = format!("inside = \"a\"\noutside = \"b\"\ndatapath = \"kernel\"\npacket = \"9000 B\"\n{rest}");
    let parsed = config::parse(text.as_bytes(), "kernel.toml", &router::registry());
    parsed.unwrap_or_else(|p| panic!("{p:#?}")).0
}

/// The programs, by a clock of ours.
pub struct Tried {
    pub maps: Maps,
    /// What virtual queues draw next.
    pub random: u32,
}

/// `struct __sk_buff`, and where the frame's stamp and the super-packet's parts are in it.
const CONTEXT: usize = 192;
const STAMP: usize = 152;
const PARTS: usize = 164;
const PART: usize = 176;
/// TC_ACT_REDIRECT, TC_ACT_SHOT.
const SENT: u32 = 7;
const DROPPED: u32 = 2;
/// The kernel tries no longer ones.
const LONGEST: usize = 3_500;

/// Whether the kernel tries such a frame: none that ends with its Ethernet header or within the fixed part of IP's, though it does with tags
/// before it.
pub fn can_be_tried(frame: &[u8]) -> bool {
    let least = match frame.get(12..14) {
        Some([0x08, 0x00]) => 34,
        Some([0x86, 0xdd]) => 54,
        _ => 15,
    };
    (least..=LONGEST).contains(&frame.len())
}

impl Tried {
    pub fn new(config: &Config) -> Tried {
        let mut maps = Maps::load(config, None).unwrap();
        maps.apply(config, 0).unwrap();
        maps.change(|s| (s.clock, s.on, s.out) = (1, 1, [1, 1])).unwrap();
        Tried { maps, random: 0 }
    }

    /// A map of the programs.
    pub fn map(&mut self, name: &str) -> MapData {
        let info = self.maps.program(0).unwrap().info().unwrap();
        let ids = info.map_ids().unwrap().expect("Linux 5.16 and newer tell them");
        let mut maps = ids.into_iter().map(|id| MapData::from_id(id).unwrap());
        maps.find(|map| map.info().unwrap().name_as_str() == Some(name)).expect("there is one of this name")
    }

    /// Nanoseconds that a program has taken, and how often it ran, where the kernel counts that.
    pub fn spent(&mut self, port: usize) -> (u64, u64) {
        let fd = self.maps.program(port).unwrap().fd().unwrap().as_fd().as_raw_fd();
        let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
        let of = |name: &str| {
            let line =
                told.lines().find_map(|line| line.strip_prefix(name)).expect("Linux 5.1 and newer tell it");
            line.trim().parse().expect("a count")
        };
        (of("run_time_ns:"), of("run_cnt:"))
    }

    /// Whose accounts have a name in the kernel.
    pub fn names(&mut self, direction: usize) -> Vec<String> {
        self.maps.names(direction).unwrap().into_iter().map(|(_, name)| name).collect()
    }

    /// A frame at a port: as it leaves by the other, if it does.
    pub fn arrive(&mut self, now: Time, port: usize, frame: &[u8]) -> Option<Vec<u8>> {
        self.arrive_as(now, port, frame, [0; 2])
    }

    /// The same of several packets in one, of so many bytes each.
    pub fn arrive_as(
        &mut self,
        now: Time,
        port: usize,
        frame: &[u8],
        [parts, part]: [u32; 2],
    ) -> Option<Vec<u8>> {
        assert_eq!(now.0 % 1_000, 0, "the kernel's clock counts nanoseconds");
        let (mut out, mut context) = (vec![0; frame.len() + 64], [0; CONTEXT]);
        // The frame's mark.
        context[8..12].copy_from_slice(&self.random.to_ne_bytes());
        // A stamp of 0 is none.
        context[STAMP..STAMP + 8].copy_from_slice(&(now.0 / 1_000).to_ne_bytes());
        context[PARTS..PARTS + 4].copy_from_slice(&parts.to_ne_bytes());
        context[PART..PART + 4].copy_from_slice(&part.to_ne_bytes());
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ctx_in: Some(&context),
            ..TestRunOptions::new()
        };
        let done = self
            .maps
            .program(port)
            .unwrap()
            .test_run(options)
            .unwrap_or_else(|e| panic!("{e}: {} B {:02x?}", frame.len(), &frame[..frame.len().min(40)]));
        out.truncate(done.data_size_out as usize);
        match done.return_value {
            SENT => Some(out),
            DROPPED => None,
            other => panic!("a verdict of {other}"),
        }
    }
}

/// The router in user space, which queues nothing: what comes in leaves at once or is dropped.
pub struct User(pub Router);

impl User {
    pub fn new(config: &Config) -> User {
        User(Router::new(config.clone(), Layer::Ethernet, 1))
    }

    pub fn arrive(&mut self, now: Time, port: usize, frame: &[u8]) -> Option<Vec<u8>> {
        self.0.set_present(now);
        self.0.arrive(now, port, Layer::Ethernet, &mut frame.to_vec());
        while let Some(due) = self.0.due().filter(|_| self.0.waiting() > 0) {
            self.0.advance(due);
        }
        let leaving = &mut self.0.lanes[port].leaving;
        let out = leaving.iter().next().map(<[u8]>::to_vec);
        leaving.clear();
        out
    }
}

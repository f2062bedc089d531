//! A namespace with two pairs of interfaces, the router between them, and a host's hand at either end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use inprofile_core::units::Duration as Span;
use inprofile_live::io::Io;
use inprofile_live::io::afpacket::{AfPacket, PortOptions};
use inprofile_live::io::sys::{Clock, interface_index};
use inprofile_live::namespace::Namespace;
use serde_json::Value as Json;

use crate::frames::{self, Got};

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_inprofiled");

pub struct Bench {
    pub namespace: Namespace,
    /// Ends inside and outside: what a test sends and receives.
    pub hosts: AfPacket,
    /// Where the router is asked.
    pub socket: PathBuf,
    folder: PathBuf,
    router: Option<Child>,
}

/// One queue for all, drop-tail, no customers.
pub fn plain(rate: &str) -> String {
    format!(
        "[upstream]\nrole = \"core\"\nrate = \"{rate}\"\nqueue = {{ aqm = \"drop_tail\", limit = \"400 packets\" }}\n"
    )
}

/// Whether a test may do what it needs to. It fails where it can't, unless `ALLOW_MISSING=live` says that this is fine.
pub fn may(what: &str, can: bool) -> bool {
    let allowed = env::var("ALLOW_MISSING").is_ok_and(|v| v.split(',').any(|w| w == "live"));
    assert!(can || allowed, "this test can't {what} here; ALLOW_MISSING=live leaves it out");
    can
}

impl Bench {
    /// A bench, not started yet; `None` if there can't be one and `ALLOW_MISSING=live` says that this is fine.
    pub fn new(name: &str) -> Option<Bench> {
        let namespace = Namespace::create();
        if !may(&format!("make a namespace ({:?})", namespace.as_ref().err()), namespace.is_ok()) {
            return None;
        }
        let namespace = namespace.expect("there is one");
        let hosts = namespace
            .within(|| {
                fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
                ip("link set lo up");
                ["h0 lan0", "h1 wan0"].iter().for_each(|pair| plug(pair));
                ends()
            })
            .expect("namespaces work");
        let folder = env::temp_dir().join(format!("inprofiled-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        let socket = folder.join("control.sock");
        Some(Bench { namespace, hosts, socket, folder, router: None })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes the configuration: ports and socket, then `rest`.
    pub fn configure(&self, rest: &str) {
        let socket = self.path("control.sock");
        let head = format!(
            "inside = \"lan0\"\noutside = \"wan0\"\nfix_offloads = true\n[control]\nsocket = {socket:?}\n"
        );
        // Keys of the root come before its tables.
        let (keys, tables) = rest.split_once("\n---\n").unwrap_or(("", rest));
        // All at once: a reload by a signal may read it just now.
        let new = self.path("router.toml.new");
        fs::write(&new, format!("{keys}\n{head}{tables}")).expect("the folder is ours");
        fs::rename(&new, self.path("router.toml")).expect("the folder is ours");
    }

    /// Starts the router and waits until it answers.
    pub fn start(&mut self, rest: &str) {
        self.configure(rest);
        self.start_again();
    }

    pub fn start_again(&mut self) {
        self.start_by(Command::new(PROGRAM).arg("run").arg(self.path("router.toml")));
    }

    /// Starts it as the last word of a shell's line, `exec "$@"`, which makes ready what the router finds.
    pub fn start_behind(&mut self, line: &str, rest: &str) {
        self.configure(rest);
        let file = self.path("router.toml");
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-ec", line, "sh", PROGRAM, "run"]).arg(file);
        self.start_by(&mut command);
    }

    /// Starts it by this command and waits until it answers.
    pub fn start_by(&mut self, command: &mut Command) {
        let errors = self.path("stderr");
        let child = self.namespace.within(|| {
            let errors = fs::File::create(&errors)?;
            command.stderr(errors).stdin(Stdio::null()).spawn()
        });
        self.router = Some(child.expect("the router starts"));
        let patience = Instant::now() + Duration::from_secs(10);
        while !self.tell(&["stats"]).status.success() {
            assert!(Instant::now() < patience, "the router doesn't answer: {}", self.errors());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs it to its end, which comes at once as it is refused: the exit code, and what it says.
    pub fn refused(&self) -> (Option<i32>, String) {
        self.refused_by(&self.path("router.toml"))
    }

    /// The same, by another file.
    pub fn refused_by(&self, file: &Path) -> (Option<i32>, String) {
        let mut command = Command::new("timeout");
        let run = self.namespace.within(|| command.args(["5", PROGRAM, "run"]).arg(file).output());
        let out = run.expect("the router starts");
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    }

    pub fn errors(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    /// Runs a command of the client's.
    pub fn tell(&self, words: &[&str]) -> Output {
        Command::new(PROGRAM).args(words).arg("--socket").arg(&self.socket).output().expect("the client runs")
    }

    pub fn obey(&self, words: &[&str]) {
        let out = self.tell(words);
        assert!(out.status.success(), "{words:?}: {}{}", String::from_utf8_lossy(&out.stderr), self.errors());
    }

    pub fn stats(&self) -> Json {
        let out = self.tell(&["stats", "--json"]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).expect("stats are JSON")
    }

    pub fn pid(&self) -> u32 {
        self.router.as_ref().expect("it runs").id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        // The shell's own: a small system has no program of this name.
        let kill = ["-c", "kill \"$0\" \"$1\"", signal, &self.pid().to_string()];
        let run = Command::new("sh").args(kill).status().expect("sh runs");
        assert!(run.success());
    }

    /// Waits for its end: the exit code.
    pub fn ended(&mut self) -> Option<i32> {
        let mut child = self.router.take().expect("it runs");
        let patience = Instant::now() + Duration::from_secs(15);
        loop {
            if let Some(status) = child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            assert!(Instant::now() < patience, "it doesn't end: {}", self.errors());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends frames into a port: 0 inside, 1 outside.
    pub fn send<'a>(&mut self, port: usize, frames: impl IntoIterator<Item = &'a Vec<u8>>) {
        for f in frames {
            self.hosts.send(port, f).expect("it is sent");
        }
        self.hosts.flush().expect("it is sent");
    }

    /// The frames that come out until there are `n`, or none has come for `quiet`.
    pub fn receive(&mut self, port: usize, n: usize, quiet: Span) -> Vec<Got> {
        let (mut got, mut until) = (Vec::new(), self.hosts.now() + quiet);
        while got.len() < n && self.hosts.now() < until {
            self.hosts.wait(Some(until)).expect("the system waits");
            let before = got.len();
            self.hosts
                .receive(&mut |_, p, frame| got.extend(frames::read(frame).filter(|_| p == port)))
                .expect("the system gives");
            if got.len() > before {
                until = self.hosts.now() + quiet;
            }
        }
        got
    }

    /// Frames of [`attack`](crate::attack) that come out of a port: until there are `n`, or none came for so long.
    pub fn receive_frames(&mut self, port: usize, n: usize, quiet: Span) -> Vec<Vec<u8>> {
        let (mut got, mut until) = (Vec::<Vec<u8>>::new(), self.hosts.now() + quiet);
        while got.len() < n && self.hosts.now() < until {
            self.hosts.wait(Some(until)).expect("the system waits");
            let before = got.len();
            self.hosts
                .receive(&mut |_, p, frame| {
                    if p == port && frame.starts_with(&[2, 0, 0, 0, 0, 9]) {
                        got.push(frame.to_vec());
                    }
                })
                .expect("the system gives");
            if got.len() > before {
                until = self.hosts.now() + quiet;
            }
        }
        got
    }

    /// Makes the outside's pair again, after it was taken away.
    pub fn plug(&mut self) {
        self.plug_as("wan0");
    }

    /// The same, with these words of `ip link` after the port's name.
    pub fn plug_as(&mut self, port: &str) {
        let pair = format!("{port} h1");
        self.hosts = self
            .namespace
            .within(|| {
                plug(&pair);
                ends()
            })
            .expect("namespaces work");
    }

    /// The number of an interface in the namespace.
    pub fn index(&self, interface: &str) -> u32 {
        self.namespace.within(|| interface_index(interface)).expect("it is there")
    }

    /// Packets that the kernel had no room for between this end and its port: nobody's, and not the router's.
    pub fn lost_from(&self, interface: &str) -> u64 {
        let shown = self
            .namespace
            .within(|| Command::new("ip").args(["-json", "-stats", "link", "show", interface]).output());
        let links: Json = serde_json::from_slice(&shown.expect("ip runs").stdout).expect("ip writes JSON");
        figure(&links, "0.stats64.tx.dropped")
    }

    /// Whether there is an interface of this name in the namespace.
    pub fn has(&self, interface: &str) -> bool {
        self.namespace.within(|| interface_index(interface)).is_ok()
    }

    /// Runs `ip link` in the namespace.
    pub fn link(&self, words: &str) {
        self.ip(&format!("link {words}"));
    }

    /// Runs `ip` in the namespace.
    pub fn ip(&self, words: &str) {
        self.namespace
            .within(|| {
                ip(words);
                Ok(())
            })
            .expect("namespaces work");
    }

    /// The response at 127.0.0.1:9474 of the namespace, with its head.
    pub fn page(&self) -> String {
        self.namespace
            .within(|| {
                let mut stream = TcpStream::connect("127.0.0.1:9474")?;
                stream.set_read_timeout(Some(Duration::from_secs(10)))?;
                stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
                let mut text = String::new();
                stream.read_to_string(&mut text).map(|_| text)
            })
            .expect("metrics are served")
    }

    /// One figure of the stats: `directions.0.came`.
    pub fn figure(&self, path: &str) -> u64 {
        figure(&self.stats(), path)
    }
}

/// in = sent + passed + dropped by cause + waiting, in both directions; and what leaves goes to a port.
pub fn assert_adds_up(stats: &Json) {
    for i in 0..2 {
        let of = |key: &str| figure(stats, &format!("directions.{i}.{key}"));
        let fates =
            ["passed", "sent", "dropped", "refused", "marker_dropped", "policed", "no_buffer", "too_late"];
        let gone: u64 = fates.into_iter().map(of).sum();
        assert_eq!(of("came"), gone + of("waiting"), "{stats:#}");
        assert_eq!(stats["directions"][i]["adds_up"], true);
        assert_eq!(of("came"), figure(stats, &format!("ports.{i}.received")));
        let left = figure(stats, &format!("ports.{}.sent", 1 - i))
            + figure(stats, &format!("ports.{}.refused", 1 - i));
        assert_eq!(left, of("passed") + of("sent"), "{stats:#}");
    }
}

pub fn figure(stats: &Json, path: &str) -> u64 {
    let mut at = stats;
    for part in path.split('.') {
        at = part.parse::<usize>().map_or_else(|_| &at[part], |i| &at[i]);
    }
    at.as_u64().unwrap_or_else(|| panic!("{path} is no count in {stats:#}"))
}

pub const QUIET: Span = Span::from_millis(1_500);

/// A cable: its two ends' names, the first with what else `ip link` is told of it.
fn plug(pair: &str) {
    let (one, other) = pair.rsplit_once(' ').expect("two names");
    ip(&format!("link add {one} type veth peer name {other}"));
    let names = [one, other].map(|end| end.split(' ').next().unwrap_or(end));
    names.iter().for_each(|i| ip(&format!("link set {i} up")));
}

/// The hosts' ends, in the namespace of the calling thread.
fn ends() -> std::io::Result<AfPacket> {
    let ports = ["h0", "h1"].map(|i| PortOptions { frames: 16_384, ..PortOptions::new(i) });
    AfPacket::open(&ports, Clock::start())
}

fn ip(words: &str) {
    let run = Command::new("ip").args(words.split_whitespace()).output().expect("iproute2 is installed");
    assert!(run.status.success(), "ip {words}: {}", String::from_utf8_lossy(&run.stderr));
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(mut child) = self.router.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
